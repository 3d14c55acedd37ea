#!/usr/bin/env bash
# Runs `make test` as on a machine where plumb is built for the first time: Debian's base, a Rust toolchain, git, make
# and a C compiler, and nothing else. Whatever the tests need besides, they must install themselves (tests/tools.sh).
#
#   tests/fresh-machine.sh [COMMAND...]   needs root, debootstrap's network, and a toolchain by rustup; half an hour
#
# The base is kept in target/fresh-machine; what is installed and built on it is new each time.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

SUITE=bookworm
# gcc without the headers of the C library compiles nothing.
PACKAGES=git,make,gcc,libc6-dev

fail() {
    echo "fresh-machine: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "needs root"
[ $# -gt 0 ] || set -- make test
source=$PWD
place=$(mkdir -p "${CARGO_TARGET_DIR:-target}/fresh-machine" && cd "${CARGO_TARGET_DIR:-target}/fresh-machine" && pwd)
base=$place/base
machine=$place/machine

if [ ! -d "$base" ]; then
    command -v debootstrap > /dev/null || { apt-get -q update && apt-get -q -y install --no-install-recommends debootstrap; } > /dev/null
    rm -rf "$base.part"
    debootstrap --include="$PACKAGES" "$SUITE" "$base.part" > "$place/debootstrap.log" ||
        fail "debootstrap failed (see $place/debootstrap.log)"
    mv "$base.part" "$base"
fi

echo "fresh-machine: $* in $machine"
rm -rf "$machine"
cp -a "$base" "$machine"
cp /etc/resolv.conf "$machine/etc/resolv.conf"
mkdir -p "$machine"/root/{.cargo,.rustup,plumb} "$machine/outside"
# What would be committed.
git ls-files -z --cached --others --exclude-standard | xargs -0 -r ls -d 2> /dev/null | tar -c -T - | tar -x -C "$machine/root/plumb"

# Mounts and processes end with this. Its root is made the root of a mount namespace and not by chroot, in which no
# user namespace can be made (user_namespaces(7)).
export place machine source
unshare --mount --pid --fork --kill-child --propagation private bash -euo pipefail -c '
    mount --bind "$machine" "$machine"
    mount --bind "${CARGO_HOME:-$HOME/.cargo}" "$machine/root/.cargo"
    mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$machine/root/.rustup"
    mount --rbind /dev "$machine/dev"
    mount -t proc proc "$machine/proc"
    mount -t sysfs sysfs "$machine/sys"
    cd "$machine"
    pivot_root . outside
    umount -l /outside
    cd /root/plumb
    exec env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 "$@"
' bash "$@"
rm -rf "$machine"
echo "fresh-machine: $* passed"
