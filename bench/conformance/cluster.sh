#!/usr/bin/env bash
# A Kubernetes cluster of real components in namespaces of this machine.
# cluster.sh up                 control plane, nodes with containerd and kubelet, DNS, a cloud
# cluster.sh serve lace|kube-proxy|none    what carries the packets of Services
# cluster.sh kubectl ARGUMENTS
# cluster.sh in NODE COMMAND    run a command inside node1, node2 ...
# cluster.sh down               end everything, leave nothing
set -euo pipefail
. "$(dirname "$0")/settings.sh"
export NODES

nodes() { [ "$NODES" = 0 ] || seq -f node%g "$NODES"; }
netns() { echo "lace-conf-$1"; }

# attach NAME IPV4 IPV6: a network namespace on the underlay's switch
attach() {
	local n; n=$(netns "$1")
	ip netns add "$n"
	ip -n "$n" link set lo up
	ip link add eth0 netns "$n" type veth peer name "$1" netns "$(netns switch)"
	ip -n "$(netns switch)" link set "$1" master br0 up
	ip netns exec "$n" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.eth0.accept_dad=0
	ip -n "$n" addr add "$2/24" dev eth0
	ip -n "$n" addr add "$3/64" dev eth0 nodad
	ip -n "$n" link set eth0 up
}

# start NAME SCRIPT ARGUMENTS: the first process of a machine's namespaces. When it is
# killed, so is everything in them.
start() {
	local n=$1
	shift
	nsenter --net="/run/netns/$(netns "$n")" setsid unshare --fork --pid --mount --uts --propagation private --kill-child=KILL \
		bash "$@" > "$RUN/log/$n.log" 2>&1 < /dev/null &
	echo $! > "$RUN/$n.pid"
}

# inside NAME COMMAND: run it in a machine's namespaces
inside() {
	local n=$1
	shift
	nsenter -t "$(pgrep -P "$(cat "$RUN/$n.pid")")" -n -p -m -u "$@"
}

kubectl_here() { ip netns exec "$(netns control)" kubectl "$@"; }

# kubeconfig NAME TOKEN
kubeconfig() {
	cat > "$RUN/$1.kubeconfig" <<-K
	apiVersion: v1
	kind: Config
	clusters: [{name: c, cluster: {server: "https://$API:6443", certificate-authority: $RUN/keys/ca.crt}}]
	users: [{name: u, user: {token: $2}}]
	contexts: [{name: x, context: {cluster: c, user: u}}]
	current-context: x
	K
}

keys() {
	local new=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365)
	mkdir -p "$RUN/keys"
	cd "$RUN/keys"
	"${new[@]}" -subj /CN=lace-conformance -keyout ca.key -out ca.crt -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
	"${new[@]}" -CA ca.crt -CAkey ca.key -subj /CN=kube-apiserver -keyout apiserver.key -out apiserver.crt \
		-addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth \
		-addext "subjectAltName=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$API,IP:10.96.0.1,IP:fd00:10:96::1"
	"${new[@]}" -CA ca.crt -CAkey ca.key -subj /O=system:masters/CN=kubelet-client -keyout kubelet-client.key -out kubelet-client.crt \
		-addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=clientAuth
	openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
	cd - > /dev/null

	local n
	{
		echo 'admin-token,admin,admin,"system:masters"'
		echo 'scheduler-token,system:kube-scheduler,scheduler'
		echo 'proxy-token,system:kube-proxy,proxy'
		echo 'lace-token,lace-agent,lace'
		for n in $(nodes); do echo "$n-token,system:node:$n,$n,\"system:nodes\""; done
	} > "$RUN/keys/tokens.csv"
	for n in admin scheduler proxy lace $(nodes); do kubeconfig "$n" "$n-token"; done
}

# components: names under which the binaries are called
components() {
	local c
	mkdir -p "$RUN/bin"
	for c in etcd kube-apiserver kube-controller-manager; do ln -s "$BIN/controlplane" "$RUN/bin/$c"; done
	for c in kube-scheduler kubelet kube-proxy; do ln -s "$BIN/node" "$RUN/bin/$c"; done
	for c in kubectl containerd containerd-shim-runc-v2 ctr ginkgo e2e.test dns cloud; do ln -s "$BIN/$c" "$RUN/bin/$c"; done
	for c in lace lace-agent lace-fastpath; do ln -s "$TOP/bin/$c" "$RUN/bin/$c"; done
}

network() {
	local s i n
	s=$(netns switch)
	ip netns add "$s"
	ip -n "$s" link add br0 type bridge
	ip -n "$s" link set br0 up
	attach control "$NET4.10" "${NET6}10"
	attach client "$NET4.100" "${NET6}100"
	for i in $(seq "$NODES"); do attach "node$i" "$NET4.1$i" "${NET6}1$i"; done
	# Clients of balancers come from beyond the nodes' network; a balancer's address that
	# nobody has swallows packets, as the Internet does.
	ip -n "$(netns control)" addr add "$CLIENT4/32" dev lo
	ip -n "$(netns control)" addr add "$CLIENT6/128" dev lo
	ip -n "$(netns control)" route add "$BALANCERS4" via "$NET4.100"
	ip -n "$(netns control)" -6 route add "$BALANCERS6" via "${NET6}100"
	ip -n "$(netns client)" route add blackhole "$BALANCERS4"
	ip -n "$(netns client)" -6 route add blackhole "$BALANCERS6"
	# Without a default route a node's own connection to a Service's address fails before
	# anybody has seen it.
	for n in client $(nodes); do
		ip -n "$(netns "$n")" route add default via "$API"
		ip -n "$(netns "$n")" -6 route add default via "${NET6}10"
	done
}

# podnetwork I: once the node has its ranges, its CNI configuration and the others' routes
podnetwork() {
	local ranges n d=$RUN/node$1/etc/cni/net.d
	for _ in $(seq 300); do
		ranges=$(kubectl_here get node "node$1" -o 'jsonpath={.spec.podCIDRs[*]}' 2> /dev/null) && [ -n "$ranges" ] && break
		sleep 0.2
	done
	set -- "$1" $ranges
	mkdir -p "$d"
	cat > "$d/.10-ptp.conflist" <<-C
	{"cniVersion": "1.0.0", "name": "ptp", "plugins": [
	  {"type": "ptp", "mtu": 1500, "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/networks",
	   "ranges": [[{"subnet": "$2"}], [{"subnet": "$3"}]], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
	  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	C
	mv "$d/.10-ptp.conflist" "$d/10-ptp.conflist"
	for n in control client $(nodes); do
		[ "$n" = "node$1" ] && continue
		ip -n "$(netns "$n")" route replace "$2" via "$NET4.1$1"
		ip -n "$(netns "$n")" -6 route replace "$3" via "${NET6}1$1"
	done
}

# background NAME COMMAND: a process of the control plane's network
background() {
	local n=$1
	shift
	setsid ip netns exec "$(netns control)" "$@" > "$RUN/log/$n.log" 2>&1 < /dev/null &
	echo $! > "$RUN/$n.pid"
}

up() {
	local i n
	[ ! -e "$RUN/control.pid" ] || { echo "a cluster is up: cluster.sh down ends it" >&2; exit 1; }
	mkdir -p "$RUN"
	mount -t tmpfs -o mode=755 lace-conformance "$RUN"
	mkdir -p "$RUN/log"
	components
	keys 2> "$RUN/log/keys.log"
	network
	start control "$HERE/controlplane.sh"
	for i in $(seq "$NODES"); do start "node$i" "$HERE/node.sh" "$i"; done
	for i in $(seq 600); do kubectl_here get --raw /readyz > /dev/null 2>&1 && break; sleep 0.2; done
	echo "the API server is ready after $SECONDS s"
	for i in $(seq "$NODES"); do podnetwork "$i"; done
	kubectl_here wait --for=condition=Ready node --all --timeout=120s > /dev/null
	for n in $(nodes); do kubectl_here label node "$n" "topology.kubernetes.io/zone=zone-$n" > /dev/null; done
	kubectl_here apply -f "$HERE/dns.yaml" -f "$HERE/rights.yaml" > /dev/null
	background dns dns --kubeconfig "$KUBECONFIG" --listen "$API:53"
	# A balancer spreads connections, not clients.
	ip netns exec "$(netns control)" sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1
	background cloud cloud --kubeconfig "$KUBECONFIG" --netns "$(netns control)" --source "$CLIENT4,$CLIENT6"
	echo "$NODES nodes are ready after $SECONDS s"
}

# run NODE NAME COMMAND: a process on a node, as a DaemonSet would start it
run() {
	local n=$1 name=$2
	shift 2
	inside "$n" setsid bash -c 'echo $$ > "$0"; exec "$@"' "$RUN/$n/$name.pid" "$@" > "$RUN/log/$name-$n.log" 2>&1 < /dev/null &
}

# halt NODE NAME
halt() {
	local f=$RUN/$1/$2.pid p
	[ -e "$f" ] || return 0
	p=$(cat "$f")
	rm -f "$f"
	inside "$1" bash -c 'kill "$1" 2> /dev/null; while kill -0 "$1" 2> /dev/null; do sleep 0.1; done' - "$p"
}

serve() {
	local n
	for n in $(nodes); do
		halt "$n" kube-proxy
		halt "$n" lace-agent
		halt "$n" lace-fastpath
		inside "$n" kube-proxy --cleanup > /dev/null 2>&1 || true
		inside "$n" lace-agent --cleanup > /dev/null 2>&1 || true
		case $1 in
		lace)
			run "$n" lace-fastpath lace-fastpath
			run "$n" lace-agent lace-agent --apiserver "$API:6443" --kubeconfig "$RUN/lace.kubeconfig" --node-name "$n" ;;
		kube-proxy)
			run "$n" kube-proxy kube-proxy --kubeconfig "$RUN/proxy.kubeconfig" --hostname-override "$n" --proxy-mode nftables \
				--cluster-cidr "$PODS4,$PODS6" --conntrack-max-per-core 0 ;;
		none) ;;
		*) echo "cluster.sh serve: neither lace, kube-proxy nor none: $1" >&2; exit 2 ;;
		esac
	done
}

down() {
	local f n c
	for f in "$RUN"/*.pid; do
		[ -e "$f" ] || continue
		kill -9 "$(cat "$f")" 2> /dev/null || true
	done
	sleep 0.5
	for n in $(ip netns list | awk '$1 ~ /^lace-conf-/ { print $1 }'); do ip netns del "$n"; done
	for c in /sys/fs/cgroup/*/lace-conf-node*; do
		[ ! -d "$c" ] || find "$c" -depth -type d -exec rmdir {} \; 2> /dev/null || true
	done
	! mountpoint -q "$RUN" || umount -l "$RUN"
	[ ! -d "$RUN" ] || rmdir "$RUN"
}

case ${1:-} in
up) up ;;
serve) serve "${2:-}" ;;
kubectl) shift; kubectl_here "$@" ;;
in) shift; inside "$@" ;;
down) down ;;
*) sed -n '2,7s/^# //p' "$0"; exit 2 ;;
esac
