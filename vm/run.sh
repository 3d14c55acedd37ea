#!/usr/bin/env bash
# Tests what plumb asks of the kernel (netem, tbf and the like) on a stock Debian kernel in a virtual
# machine, because the machine that builds plumb need not have those modules, and because a test must
# not touch its interfaces. Boots once and runs the tests of crates/plumb/tests/it/vm in it.
#
#   vm/run.sh [FILTER]                          builds first; FILTER: parts of the names of the tests to run: vm::tune,vm::clock;
#                                               with a minus, of those not to run: vm::,-vm::shape
#   vm/run.sh --programs TESTS PLUMB [FILTER]   with programs that are built
#
# tests/tools.sh installs what this needs. Everything is kept in target/vm: console.log is what the machine
# said, bench.jsonl what the tests measured.
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
tests=
if [ "${1:-}" = --programs ]; then
    tests=$2 plumb=$3
    shift 3
fi
filter=${1:-vm::}

# Longer than this and the machine hangs. All tests take ten minutes of one processor, of which a machine on which much is built at
# once gives it a sixth.
TIME_LIMIT_S=${VM_TIME_LIMIT_S:-3600}
# The last line that it must say (vm/init).
PASSED='plumb-vm: all tests passed'
# What the tests load.
MODULES='veth tun dummy sch_netem sch_tbf sch_htb sch_cake sch_codel sch_fq_codel sch_pie sch_red sch_prio sch_fq sch_sfq sch_ingress ifb cls_matchall cls_flow cls_u32 act_mirred act_gact bridge tcp_bbr vmxnet3'
# Programs that the tests run, besides busybox.
TOOLS='tc ip iperf3 modprobe'

fail() {
    echo "vm: $*" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "the virtual machine is x86-64, and this is $(uname -m)"
for program in qemu-system-x86_64 busybox modprobe cpio $TOOLS; do
    command -v "$program" > /dev/null || fail "$program is missing: run tests/tools.sh"
done
vm/kernel.sh
release=$(ls "$vm/kernel/lib/modules")
depmod -b "$vm/kernel" "$release"

if [ -z "$tests" ]; then
    # With --workspace the libraries are those that "make test" has built.
    executables=$("${CARGO:-cargo}" test --workspace --test it --no-run --locked --message-format=json < /dev/null |
        sed -n '/crates\/plumb\/Cargo.toml/s/.*"executable":"\([^"]*\)".*/\1/p')
    tests=$(grep '/deps/it-' <<< "$executables") || fail "cargo built no test program"
    plumb=$(grep '/plumb$' <<< "$executables") || fail "cargo built no plumb"
fi

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

echo "vm: Linux $release: at most $TIME_LIMIT_S s"
status=0
timeout "$TIME_LIMIT_S" qemu-system-x86_64 -accel tcg -icount shift=0,sleep=off -rtc clock=vm -cpu max -smp 1 -m 1024 \
    -netdev user,id=net,restrict=on -device vmxnet3,netdev=net,romfile= \
    -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -kernel "$vm/kernel/boot/vmlinuz-$release" -initrd "$vm/initramfs.gz" \
    -append "console=ttyS0 quiet panic=-1 oops=panic plumb.tests=$tests plumb.filter=$filter" \
    < /dev/null 2>&1 | sed -u 's/\r$//' | tee "$vm/console.log" || status=$?
sed -n 's/.*vm-bench: //p' "$vm/console.log" > "$vm/bench.jsonl"
[ "$status" != 124 ] || fail "no end after $TIME_LIMIT_S s (console in $vm/console.log)"
[ "$status" = 0 ] || fail "qemu ended with status $status (console in $vm/console.log)"
! grep -E 'Kernel panic|Oops:|BUG:|Call Trace' "$vm/console.log" || fail "the kernel complained (console in $vm/console.log)"
grep -qx "$PASSED" "$vm/console.log" || fail "tests failed, or did not come to their end (console in $vm/console.log)"
