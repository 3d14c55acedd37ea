#!/usr/bin/env bash
# Makes the Debian package, installs it on Debian's smallest base, uses it there, removes it, and compares what is left with
# what was there before.
#
#   tests/package.sh      needs root, debootstrap's network, and what `make dist` needs; some minutes after the build
#
# The base is kept in target/package; what is installed on it is new each time.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
SUITE=bookworm

fail() {
    echo "package: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "needs root"
make -s dist
target=${CARGO_TARGET_DIR:-target}
place=$(mkdir -p "$target/package" && cd "$target/package" && pwd)
base=$place/base
machine=$place/machine
(cd "$target/dist" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums are wrong"

if [ ! -d "$base" ]; then
    command -v debootstrap > /dev/null || { apt-get -q update && apt-get -q -y install --no-install-recommends debootstrap; } > /dev/null
    rm -rf "$base.part"
    # Where this machine gets its packages.
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $SUITE" | head -n 1)
    # setcap, which the package recommends.
    debootstrap --variant=minbase --include=libcap2-bin "$SUITE" "$base.part" ${mirror:+"$mirror"} > "$place/debootstrap.log" ||
        fail "debootstrap failed (see $place/debootstrap.log)"
    mv "$base.part" "$base"
fi
rm -rf "$machine"
cp -a "$base" "$machine"
mkdir "$machine/outside"
# Every machine that was installed has one, and it is what names in a lab stand in.
echo '127.0.0.1 localhost' > "$machine/etc/hosts"
install -m 644 "$target"/dist/plumb_*_amd64.deb "$machine/plumb.deb"
install -m 755 tests/package-inside.sh "$machine/inside.sh"

# Its own loopback, and nothing else of the network. Mounts and processes end with it. Its root is made the root of a mount
# namespace and not by chroot, in which no user namespace can be made (user_namespaces(7)). Every user may open TUN devices.
export machine
unshare --mount --pid --net --fork --kill-child --propagation private bash -euo pipefail -c '
    ip link set lo up
    mount --bind "$machine" "$machine"
    mount --rbind /dev "$machine/dev"
    mknod -m 666 "$machine/tun" c 10 200
    mount --bind "$machine/tun" "$machine/dev/net/tun"
    mount -t proc proc "$machine/proc"
    mount -t sysfs sysfs "$machine/sys"
    cd "$machine"
    pivot_root . outside
    umount -l /outside
    cd /
    exec env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /inside.sh
'
rm -rf "$machine"
# The tarball holds the same program, which runs where it was unpacked.
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar -xzf "$target"/dist/plumb-*-x86_64-linux.tar.gz -C "$unpacked"
"$unpacked"/plumb-*/plumb --version
echo "package: passed"
