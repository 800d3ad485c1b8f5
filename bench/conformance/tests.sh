#!/usr/bin/env bash
# tests.sh [FOCUS]: run Kubernetes' own tests of sig-network, those in excluded.txt left
# out, against the cluster that is up. The report is $RUN/tests/report.json.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
SKIP=$(grep -v '^#' "$HERE/excluded.txt" | cut -f1 | paste -sd'|')
OUT=${OUT:-$RUN/tests}
mkdir -p "$OUT"
cd "$OUT" # ginkgo looks for its reports from where it was started
export KUBE_TEST_REPO_LIST=$HERE/images.yaml
exec ip netns exec lace-conf-control ginkgo --procs="${PROCS:-4}" --no-color --timeout="${TIMEOUT:-90m}" \
	--focus="${1:-\[sig-network\]}" --skip="$SKIP" --silence-skips --output-dir="$OUT" --json-report=report.json \
	"$RUN/bin/e2e.test" -- --provider=skeleton --kubeconfig="$KUBECONFIG" --kubectl-path="$RUN/bin/kubectl" \
	--report-dir="$OUT" --num-nodes="$NODES" --allowed-not-ready-nodes=0 --disable-log-dump=true
