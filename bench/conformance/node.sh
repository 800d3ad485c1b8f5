# The first process of a node: its number is the argument. A folder of its own lies over
# each path in which a node keeps state, so that every component has its default paths.
. "$(dirname "$0")/settings.sh"
I=$1 N=node$1 D=$RUN/node$1 L=$RUN/log G=lace-conf-node$1
hostname "$N"
mount -t proc proc /proc

# This network namespace's /sys/class/net, the machine's control groups, maps of its own.
mkdir -p "$D/cgroup"
mount --rbind /sys/fs/cgroup "$D/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$D/cgroup" /sys/fs/cgroup
umount -l "$D/cgroup"
mount -t bpf bpf /sys/fs/bpf

for p in /var/lib/kubelet /var/lib/containerd /run/containerd /run/netns /run/lace /var/lib/cni /etc/cni /opt/cni /var/log/pods /var/log/containers; do
	mkdir -p "$p" "$D$p"
	mount --bind "$D$p" "$p"
done

# A group of its own in each hierarchy. That of version 2 is the root that the node sees:
# programs attached there meet this node's processes and no other's.
for c in /sys/fs/cgroup/*/; do mkdir -p "$c$G"; done
for f in cpus mems; do
	[ ! -e /sys/fs/cgroup/cpuset ] || cat "/sys/fs/cgroup/cpuset/cpuset.$f" > "/sys/fs/cgroup/cpuset/$G/cpuset.$f"
done
if [ -e /sys/fs/cgroup/unified ]; then
	echo 0 > "/sys/fs/cgroup/unified/$G/cgroup.procs"
	mount --bind "/sys/fs/cgroup/unified/$G" /sys/fs/cgroup/unified
fi

# For volumes that mount in both directions. After the umount above, which would spread.
mount --make-rshared /

# The kubelet insists on settings of the whole machine: it is shown files that have them.
setting() {
	mkdir -p "$D/sysctl"
	echo "$2" > "$D/sysctl/${1//\//_}"
	mount --bind "$D/sysctl/${1//\//_}" "/proc/sys/$1"
}
setting vm/overcommit_memory 1
setting vm/panic_on_oom 0
setting kernel/panic 10
setting kernel/panic_on_oops 1
setting kernel/keys/root_maxkeys 1000000
setting kernel/keys/root_maxbytes 25000000

mkdir -p /opt/cni/bin /etc/cni/net.d
cp "$BIN"/cni/* /opt/cni/bin/

# restrict_oom_score_adj: where CAP_SYS_RESOURCE is missing runc could start no pod.
cat > "$D/containerd.toml" <<C
version = 3
oom_score = 0
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '$REGISTRY/pause:3.10.2'
[plugins.'io.containerd.cri.v1.runtime']
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'runc'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = '/usr/sbin/runc'
        SystemdCgroup = false
C

echo "nameserver 10.96.0.10" > "$D/resolv.conf"
cat > "$D/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/keys/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$G
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
evictionHard: {nodefs.available: 0%, imagefs.available: 0%, memory.available: 50Mi}
imageGCHighThresholdPercent: 100
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: $D/resolv.conf
maxPods: 110
nodeStatusReportFrequency: 10s
C

containerd -c "$D/containerd.toml" > "$L/containerd-$N.log" 2>&1 &
for _ in $(seq 200); do ctr version > /dev/null 2>&1 && break; sleep 0.1; done
ctr -n k8s.io images import --local "$BIN/images.tar" > "$L/images-$N.log" 2>&1
kubelet --config "$D/kubelet.yaml" --kubeconfig "$RUN/$N.kubeconfig" --hostname-override "$N" \
	--node-ip "$NET4.1$I,${NET6}1$I" > "$L/kubelet-$N.log" 2>&1 &

while :; do wait -n; sleep 1; done # as init: reap whatever ends
