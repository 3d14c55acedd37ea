#!/usr/bin/env bash
# Installs the programs that tests run, where they are missing: the only place that names them. No test installs
# anything. Quick when all is there.
#
#   tests/tools.sh          install what is missing (as root, with Debian's apt)
#   tests/tools.sh slow     those of the slow tests, too
#   tests/tools.sh --list   the packages of the fast ones
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

# A program, its package in Debian, and who runs it.
TOOLS='
ip                  iproute2            laboratories of the tests, tc
ping                iputils-ping        compared with plumb ping
tracepath           iputils-tracepath   compared with plumb path and plumb mtu
fping               fping               compared with plumb ping --fping
mtr                 mtr-tiny            compared with plumb path
traceroute          traceroute          compared with plumb path
irtt                irtt                delays by plumb serve
iperf3              iperf3              compared with plumb rate, and in the virtual machine
flent               flent               opens what plumb report --flent wrote
kill                procps              ends what a test started
script              bsdutils            the terminal of plumb lab shell
setpriv             util-linux          tests without privileges
mandoc              mandoc              the manual
zsh                 zsh                 completions
fish                fish                completions
python3             python3             services and senders of the laboratory tests
tshark              tshark              compared with plumb capture
tcptrace            tcptrace            compared with plumb capture
zstd                zstd                packs captures
lz4                 lz4                 packs captures
tcpdump             tcpdump             compared with filters of plumb capture
curl                curl                downloads from plumb serve, and uploads to it
snmpd               snmpd               a device for plumb watch
freeradius          freeradius          a RADIUS server for plumb watch
softflowd           softflowd           exports flows to plumb watch
nfcapd              nfdump              exports flows again, and compared with plumb watch flows
nginx               nginx-light         pages for plumb page, HTTP/1.1 and HTTP/2
nghttpd             nghttp2-server      pages for plumb page, HTTP/2
qemu-system-x86_64  qemu-system-x86     the virtual machine
busybox             busybox-static      its programs
modprobe            kmod                its modules
cpio                cpio                its file system
flex                flex                builds the kernel of labs in virtual time
bison               bison               builds it
bc                  bc                  builds it
xz                  xz-utils            unpacks its source
make                make                builds it
gcc                 gcc                 builds it
'
# A slow test runs them.
SLOW_TOOLS='
chromium            chromium            the page of plumb serve
firefox-esr         firefox-esr         the page of plumb serve
prometheus          prometheus          reads plumb watch, with the rules and the dashboard of contrib, and is sent to by it
'
# What is no program: flent plots with it, and NDT7 is spoken by it.
LIBRARIES='
/usr/lib/python3/dist-packages/matplotlib  python3-matplotlib
/usr/lib/python3/dist-packages/websockets  python3-websockets
'

rows() { sed '/^$/d' <<< "$1"; }

if [ "${1:-}" = --list ]; then
    { rows "$TOOLS"; rows "$LIBRARIES"; } | awk '{ print $2 }' | sort -u
    exit
fi

[ "${1:-}" != slow ] || TOOLS+=$SLOW_TOOLS
missing=
while read -r program package _; do
    command -v "$program" > /dev/null || missing+=" $package"
done < <(rows "$TOOLS")
while read -r path package; do
    [ -e "$path" ] || missing+=" $package"
done < <(rows "$LIBRARIES")
if [ -n "$missing" ]; then
    command -v apt-get > /dev/null || { echo "tests need$missing (Debian's packages), and there is no apt-get" >&2; exit 1; }
    [ "$(id -u)" = 0 ] || { echo "tests need$missing: install them, or run this as root" >&2; exit 1; }
    echo "installing$missing"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # What it says is shown where it fails.
    quietly() { "$@" > "$log" 2>&1 < /dev/null || { cat "$log" >&2; exit 1; }; }
    export DEBIAN_FRONTEND=noninteractive
    quietly apt-get -q update
    # shellcheck disable=SC2086 # a word is a package
    quietly apt-get -q -y install --no-install-recommends $missing
fi

# The kernel that the virtual machine boots.
vm/kernel.sh
# That of labs in virtual time: built once, in three minutes on two processors.
lab-kernel/build.sh > /dev/null
