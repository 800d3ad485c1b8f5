# Settings that the scripts of this folder share; source it.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOP=$(cd "$HERE/../.." && pwd)
KUBERNETES=v1.37.2
BIN=${BIN:-$TOP/.cache/cluster/$KUBERNETES}        # what make conformance-binaries built
RUN=${RUN:-/run/lace-conformance}                  # state and logs, a tmpfs; gone after down
NODES=${NODES:-3}                                  # each in a zone of its own
NET4=172.30.0 NET6=fd30::                          # .10 control plane, .1N node N, .100 client
API=$NET4.10
SERVICES4=10.96.0.0/16 SERVICES6=fd00:10:96::/112
PODS4=10.244.0.0/16 PODS6=fd00:10:244::/56
BALANCERS4=172.30.1.0/24 BALANCERS6=fd30:0:0:1::/64  # what the command cloud gives out
CLIENT4=198.18.0.1 CLIENT6=fd18::1
REGISTRY=lace.test/e2e                             # a name, no host: nothing is ever pulled
export KUBECONFIG=$RUN/admin.kubeconfig
export PATH=$RUN/bin:$PATH
