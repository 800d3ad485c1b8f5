# The first process of the control plane's machine.
. "$(dirname "$0")/settings.sh"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
hostname control
L=$RUN/log K=$RUN/keys

etcd --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn \
	--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 > "$L/etcd.log" 2>&1 &

kube-apiserver --etcd-servers http://127.0.0.1:2379 --secure-port 6443 --bind-address 0.0.0.0 \
	--advertise-address "$API" --service-cluster-ip-range "$SERVICES4,$SERVICES6" \
	--tls-cert-file "$K/apiserver.crt" --tls-private-key-file "$K/apiserver.key" --client-ca-file "$K/ca.crt" \
	--service-account-issuer https://kubernetes.default.svc \
	--service-account-key-file "$K/accounts.key" --service-account-signing-key-file "$K/accounts.key" \
	--kubelet-client-certificate "$K/kubelet-client.crt" --kubelet-client-key "$K/kubelet-client.key" \
	--kubelet-preferred-address-types InternalIP \
	--token-auth-file "$K/tokens.csv" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
	--allow-privileged --profiling=false > "$L/kube-apiserver.log" 2>&1 &

for _ in $(seq 300); do kubectl get --raw /readyz > /dev/null 2>&1 && break; sleep 0.2; done

kube-controller-manager --kubeconfig "$RUN/admin.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 \
	--root-ca-file "$K/ca.crt" --service-account-private-key-file "$K/accounts.key" \
	--allocate-node-cidrs --cluster-cidr "$PODS4,$PODS6" --node-cidr-mask-size-ipv4 24 --node-cidr-mask-size-ipv6 64 \
	--service-cluster-ip-range "$SERVICES4,$SERVICES6" --profiling=false > "$L/kube-controller-manager.log" 2>&1 &

kube-scheduler --kubeconfig "$RUN/scheduler.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 \
	--profiling=false > "$L/kube-scheduler.log" 2>&1 &

while :; do wait -n; sleep 1; done # as init: reap whatever ends
