#!/usr/bin/env bash
# Builds into $BIN what the cluster and its tests consist of, but for what is there
# already. Everything comes from Go modules, so a version is a line of a go.mod; runc and
# the tools in the images are Debian's.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
export CGO_ENABLED=0
MODULE=$HERE/../cluster/binaries CONTAINERS=$HERE/containers
VERSION=
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	VERSION+=" -X $p.gitVersion=$KUBERNETES -X $p.gitMajor=1 -X $p.gitMinor=${KUBERNETES:3:2} -X $p.gitTreeState=clean"
done
mkdir -p "$BIN/cni"

# build MODULE OUTPUT PACKAGE FLAGS: unless OUTPUT is newer than what the module says, and
# than the package when that is the project's own
build() {
	local module=$1 out=$BIN/$2 package=$3 started=$SECONDS
	shift 3
	if [ "$out" -nt "$module/go.mod" ] && [ -z "$(cd "$module" && [ -d "$package" ] && find "$package" -newer "$out")" ]; then
		return
	fi
	case $package in
	./e2e) (cd "$module" && go test -c -vet=off "$@" -o "$out" "$package") ;;
	*) (cd "$module" && go build "$@" -o "$out" "$package") ;;
	esac
	echo "built ${out#"$BIN/"} in $((SECONDS - started)) s"
}

for p in controlplane node dns cloud pause; do build "$MODULE" $p ./$p -ldflags "-s -w$VERSION"; done
# Its own binary starts twice as fast as a part of a larger one, and the tests start it all the time.
build "$MODULE" kubectl k8s.io/kubernetes/cmd/kubectl -ldflags "-s -w$VERSION"
for p in agnhost regression-issue-74839; do build "$MODULE" $p k8s.io/kubernetes/test/images/$p -ldflags "-s -w"; done
for p in main/ptp main/loopback ipam/host-local meta/portmap; do
	build "$CONTAINERS" "cni/${p#*/}" "github.com/containernetworking/plugins/plugins/$p" -ldflags "-s -w"
done
for p in containerd containerd-shim-runc-v2 ctr; do
	build "$CONTAINERS" $p github.com/containerd/containerd/v2/cmd/$p -tags no_btrfs,no_zfs,no_devmapper,no_tracing -ldflags "-s -w"
done
build "$MODULE" ginkgo github.com/onsi/ginkgo/v2/ginkgo -ldflags "-s -w"
build "$MODULE" e2e.test ./e2e -ldflags "-s -w$VERSION"

for f in "$HERE/images.sh" "$BIN"/{agnhost,pause,regression-issue-74839}; do
	if [ ! "$BIN/images.tar" -nt "$f" ]; then
		"$HERE/images.sh"
		break
	fi
done
