#!/usr/bin/env bash
# Tests what plumb asks of the kernel (netem, tbf and the like) on a stock Debian kernel in a virtual
# machine, because the machine that builds plumb need not have those modules, and because a test must
# not touch its interfaces. Boots once and runs crates/plumb/tests/vm in it.
#
#   vm/run.sh [FILTER]    FILTER: part of the names of the tests to run
#
# What is missing is installed with apt; the kernel is only downloaded and unpacked. Everything is kept
# in target/vm: console.log is what the machine said, bench.jsonl what the tests measured.
#
# The machine's clock counts instructions (-icount): a nanosecond each, and time in which nothing
# happens passes at once. So its timers are exact however busy this machine is, and waiting is free.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/vm"
vm=$(cd "$target/vm" && pwd)
filter=${1:-}

# Longer than this and the machine hangs: it takes a minute and a half of one processor, of which a machine on which
# much is built at once gives it a sixth.
TIME_LIMIT_S=1200
# The last line that it must say (vm/init).
PASSED='plumb-vm: all tests passed'
# What the tests load.
MODULES='veth tun dummy sch_netem sch_tbf sch_htb sch_cake sch_codel sch_fq_codel sch_pie sch_red sch_prio sch_fq tcp_bbr vmxnet3'
# Programs that the tests run, besides busybox.
TOOLS='tc ip iperf3 modprobe'

fail() {
    echo "vm: $*" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "the virtual machine is x86-64, and this is $(uname -m)"
command -v apt-get dpkg-deb > /dev/null || fail "needs Debian's apt to fetch a kernel"

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o APT::Sandbox::User=root "$@" < /dev/null
}

updated=
update_once() {
    [ -n "$updated" ] || apt update
    updated=yes
}

# Installs the package of a program that is missing.
need() {
    command -v "$1" > /dev/null && return
    [ "$(id -u)" = 0 ] || fail "$1 is missing: install $2"
    echo "vm: installing $2"
    update_once
    apt install --no-install-recommends "$2" > "$vm/apt.log" 2>&1 || { cat "$vm/apt.log" >&2; fail "cannot install $2"; }
}
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need modprobe kmod
need tc iproute2
need iperf3 iperf3
need cpio cpio

# The kernel: the package that Debian's cloud image depends on, unpacked and not installed.
if [ ! -d "$vm/kernel/lib/modules" ]; then
    [ -n "$(apt-cache depends linux-image-cloud-amd64 2> /dev/null)" ] || update_once
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
    [ -n "$package" ] || fail "apt knows no linux-image-cloud-amd64: the tests need Debian's kernel"
    echo "vm: fetching $package"
    (cd "$vm" && rm -f linux-image-*.deb && { apt download "$package" || { update_once && apt download "$package"; }; })
    rm -rf "$vm/kernel.part"
    dpkg-deb -x "$vm"/linux-image-*.deb "$vm/kernel.part"
    mv "$vm/kernel.part" "$vm/kernel"
fi
release=$(ls "$vm/kernel/lib/modules")
depmod -b "$vm/kernel" "$release"

# plumb and the test program. With --workspace the libraries are those that "make test" has built.
executables=$("${CARGO:-cargo}" test --workspace --test vm --no-run --locked --message-format=json < /dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
tests=$(grep '/deps/vm-' <<< "$executables") || fail "cargo built no test program"
plumb=$(grep '/plumb$' <<< "$executables") || fail "cargo built no plumb"

# The file system: programs at the same paths as here, with the libraries that they load.
root=$vm/root
rm -rf "$root"
mkdir -p "$root"/{bin,proc,sys,dev,run,root,tmp,etc,var/lib,usr/sbin}
# Where the kernel looks for modprobe.
ln -s usr/sbin "$root/sbin"
put() { install -D "$1" "$root$1"; }
put_program() {
    put "$1"
    { ldd "$1" 2> /dev/null || true; } | grep -o '/[^ ]*' | sort -u | while read -r library; do put "$library"; done
}
install "$(readlink -f "$(command -v busybox)")" "$root/bin/busybox"
for tool in $TOOLS; do
    path=$(command -v "$tool")
    put_program "$(readlink -f "$path")"
    [ -e "$root$path" ] || { mkdir -p "$root$(dirname "$path")" && ln -s "$(readlink -f "$path")" "$root$path"; }
done
for program in "$plumb" "$tests"; do
    put_program "$program"
    strip "$root$program"
done
for module in $MODULES; do
    modprobe -d "$vm/kernel" -S "$release" --show-depends "$module"
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r file; do
    install -D -m 644 "$file" "$root/${file#"$vm/kernel/"}"
done
cp "$vm/kernel/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
depmod -b "$root" "$release"
# netem's tables of distributions, where tc looks for them.
for tables in /usr/lib/tc /usr/lib/*/tc /usr/share/tc; do
    [ ! -e "$tables/normal.dist" ] || { mkdir -p "$root$tables" && cp "$tables"/*.dist "$root$tables/"; }
done
install vm/init "$root/init"
(cd "$root" && find . | cpio --create --format=newc --quiet | gzip -1) > "$vm/initramfs.gz"

echo "vm: Linux $release: a minute and a half"
status=0
timeout "$TIME_LIMIT_S" qemu-system-x86_64 -accel tcg -icount shift=0,sleep=off -rtc clock=vm -cpu max -smp 1 -m 1024 \
    -netdev user,id=net,restrict=on -device vmxnet3,netdev=net,romfile= \
    -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -kernel "$vm/kernel/boot/vmlinuz-$release" -initrd "$vm/initramfs.gz" \
    -append "console=ttyS0 quiet panic=-1 oops=panic plumb.tests=$tests plumb.filter=$filter" \
    < /dev/null 2>&1 | tr -d '\r' | tee "$vm/console.log" || status=$?
sed -n 's/.*vm-bench: //p' "$vm/console.log" > "$vm/bench.jsonl"
[ "$status" != 124 ] || fail "no end after $TIME_LIMIT_S s (console in $vm/console.log)"
[ "$status" = 0 ] || fail "qemu ended with status $status (console in $vm/console.log)"
! grep -E 'Kernel panic|Oops:|BUG:|Call Trace' "$vm/console.log" || fail "the kernel complained (console in $vm/console.log)"
grep -qx "$PASSED" "$vm/console.log" || fail "tests failed, or did not come to their end (console in $vm/console.log)"
