#!/usr/bin/env bash
# Fetches the kernel of the virtual machine into target/vm/kernel, where it is not there yet: the package that Debian's
# cloud image depends on, unpacked and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

fail() {
    echo "vm: $*" >&2
    exit 1
}

vm=${CARGO_TARGET_DIR:-target}/vm
[ ! -d "$vm/kernel/lib/modules" ] || exit 0
[ "$(uname -m)" = x86_64 ] || fail "the virtual machine is x86-64, and this is $(uname -m)"
command -v apt-get dpkg-deb > /dev/null || fail "needs Debian's apt to fetch a kernel"

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o APT::Sandbox::User=root "$@" < /dev/null
}

package() {
    apt-cache depends linux-image-cloud-amd64 2> /dev/null | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1
}

name=$(package)
if [ -z "$name" ]; then
    apt update
    name=$(package)
fi
[ -n "$name" ] || fail "apt knows no linux-image-cloud-amd64: the tests need Debian's kernel"
echo "vm: fetching $name"
mkdir -p "$vm"
cd "$vm"
rm -rf linux-image-*.deb kernel.part
apt download "$name" || { apt update && apt download "$name"; }
dpkg-deb -x linux-image-*.deb kernel.part
mv kernel.part kernel
