#!/usr/bin/env bash
# run.sh [REPORT-FLAGS]: bring a cluster up, have Lace serve it, run the tests, say what
# came of them, and take everything down again. Ends with 1 when a test failed.
# CARRIER=kube-proxy runs the same tests with kube-proxy; FOCUS narrows them; KEEP=1
# leaves the cluster up.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
CARRIER=${CARRIER:-lace} FOCUS=${FOCUS:-'\[sig-network\]'}
OUT=$TOP/.cache/conformance
for tool in runc nft iptables conntrack openssl jq curl ip nsenter; do
	command -v $tool > /dev/null || { echo "conformance: $tool is missing; docs/how-to/run-conformance.md names what to install" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "conformance: namespaces and mounts need root" >&2; exit 2; }
[ ! -e "$RUN/control.pid" ] || { echo "conformance: a cluster is up: bench/conformance/cluster.sh down ends it" >&2; exit 2; }

finish() {
	[ ! -d "$RUN/log" ] || { rm -rf "$OUT/log"; mkdir -p "$OUT"; cp -r "$RUN/log" "$OUT/log"; }
	[ -n "${KEEP:-}" ] || "$HERE/cluster.sh" down
}
trap finish EXIT

rm -rf "$OUT"
"$HERE/cluster.sh" up
"$HERE/cluster.sh" serve "$CARRIER"
"$HERE/smoke.sh"
echo "running the tests; $RUN/log/tests.log tells how far they are"
"$HERE/tests.sh" "$FOCUS" > "$RUN/log/tests.log" 2>&1 || true # the report says it better
[ -e "$RUN/tests/report.json" ] || {
	tail -20 "$RUN/log/tests.log" >&2
	echo "conformance: the tests ended without a report; see $OUT/log" >&2
	exit 2
}
mkdir -p "$OUT"
cp "$RUN/tests/report.json" "$OUT/report.json"
"$TOP/bin/conformance-report" --excluded "$HERE/excluded.txt" --focus "$FOCUS" --kubernetes "$KUBERNETES" --nodes "$NODES" \
	--carrier "$CARRIER" --revision "$(git -C "$TOP" describe --tags --always --dirty 2> /dev/null || echo unknown)" "$@" "$OUT/report.json"
