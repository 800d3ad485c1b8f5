#!/usr/bin/env bash
# Builds $BIN/images.tar, a docker archive of the images that the tests need, under the
# names that images.yaml gives them: a layer of Debian tools that all share, and a layer
# with the image's own binary. Takes the binaries from $BIN.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
W=$BIN/images
SOURCE=$(cd "$HERE/../cluster/binaries" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/images
mkdir -p "$W/out"
cd "$W"

base() {
	[ -d base ] || {
		rm -rf base.new
		mmdebstrap --quiet --variant=extract bookworm base.new --include=bash,libc-bin,dash,coreutils,curl,ca-certificates,netcat-openbsd,bind9-dnsutils,iproute2,socat,busybox,wget,iputils-ping,iperf,grep,sed,mawk
		mv base.new base
	}
	rm -rf base/usr/share/{doc,man,locale} base/var/lib/{apt,dpkg} base/var/cache/*
	ln -sf nc.openbsd base/bin/nc
	local a d
	for a in $(base/bin/busybox --list); do
		for d in bin sbin usr/bin usr/sbin; do
			if [ -e "base/$d/$a" ] || [ -L "base/$d/$a" ]; then continue 2; fi
		done
		ln -s /bin/busybox "base/usr/bin/$a"
	done
	cat > base/etc/passwd <<-P
	root:x:0:0:root:/root:/bin/sh
	nobody:x:65534:65534:nobody:/:/bin/false
	user-defined-in-image:x:1000:1000::/:/bin/sh
	P
	printf 'root:x:0:\nnogroup:x:65534:\nuser:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n' > base/etc/group
	echo 'hosts: files dns' > base/etc/nsswitch.conf
	layer base
}

# layer FOLDER: out/FOLDER.tar, the same bytes from the same files
layer() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "out/$1.tar" .; }

binary() { # FOLDER BINARY
	mkdir -p "$1"
	cp "$BIN/$2" "$1/$2"
}

entries=()
image() { # NAME:TAG ENTRYPOINT COMMAND LAYER...
	local name=$1 entry=$2 command=$3 file l sums=() layers=()
	shift 3
	for l in "$@"; do
		sums+=("\"sha256:$(sha256sum "out/$l.tar" | cut -d' ' -f1)\"")
		layers+=("\"$l.tar\"")
	done
	file=${name%%:*}.json
	printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],"Entrypoint":%s,"Cmd":%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
		"$entry" "$command" "$(IFS=,; echo "${sums[*]}")" > "out/$file"
	entries+=("{\"Config\":\"$file\",\"RepoTags\":[\"$REGISTRY/$name\"],\"Layers\":[$(IFS=,; echo "${layers[*]}")]}")
}

base
binary agnhost agnhost
ln -sf agnhost agnhost/agnhost-2
mkdir -p agnhost/uploads
cp -f "$SOURCE"/agnhost/porter/localhost.* agnhost/
chmod -R u+w agnhost
layer agnhost
binary pause pause
layer pause
binary regression regression-issue-74839
layer regression

image "agnhost:$(cat "$SOURCE/agnhost/VERSION")" '["/agnhost"]' '["pause"]' base agnhost
image nginx:1.27.0-2 '["/agnhost"]' '["netexec","--http-port=80"]' base agnhost # the tests want something that serves on 80
image glibc-dns-testing:2.1.1 null '["/bin/bash"]' base
image busybox:1.37.0-2 null '["sh"]' base
image "regression-issue-74839:$(cat "$SOURCE/regression-issue-74839/VERSION")" '["/regression-issue-74839"]' null base regression
image pause:3.10.2 '["/pause"]' null pause

(IFS=,; echo "[${entries[*]}]") > out/manifest.json
tar -C out -cf "$BIN/images.tar.new" manifest.json base.tar agnhost.tar pause.tar regression.tar \
	agnhost.json nginx.json glibc-dns-testing.json busybox.json regression-issue-74839.json pause.json
mv "$BIN/images.tar.new" "$BIN/images.tar"
