#!/usr/bin/env bash
# smoke.sh: does a Service with three pods answer a pod, a node and an outside client?
# Prints who answered how often; an empty or failed answer ends it with an error.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
k() { "$HERE/cluster.sh" kubectl "$@"; }

k apply -f "$HERE/smoke.yaml" > /dev/null
k rollout status deploy/web --timeout=120s > /dev/null
pod=$(k get pod -l app=web -o 'jsonpath={.items[0].metadata.name}')
read -r v4 v6 <<< "$(k get svc web -o 'jsonpath={.spec.clusterIPs[0]} {.spec.clusterIPs[1]}')"

# ask WHAT COMMAND... URL
ask() {
	local what=$1 i
	shift
	printf '%-40s' "$what"
	for i in $(seq 12); do "$@" | sed 's/$/\n/'; done | sort | uniq -c | awk 'NF == 2 { printf " %s×%s", $2, $1; n += $1 } END { print ""; exit n != 12 }'
}
curl="curl -sS -m 5"
for a in "$v4" "[$v6]"; do
	ask "pod to $a" k exec "$pod" -- $curl "http://$a/hostname"
	ask "node1 to $a" "$HERE/cluster.sh" in node1 $curl "http://$a/hostname"
done
for a in "$NET4.11" "$NET4.12" "[${NET6}11]"; do
	ask "outside client to $a:30080" ip netns exec lace-conf-client $curl "http://$a:30080/hostname"
	ask "node1 to $a:30080" "$HERE/cluster.sh" in node1 $curl "http://$a:30080/hostname"
	ask "pod to $a:30080" k exec "$pod" -- $curl "http://$a:30080/hostname"
done
k delete -f "$HERE/smoke.yaml" --wait=false > /dev/null
