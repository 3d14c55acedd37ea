#!/usr/bin/env bash
# What tests/package.sh does on the machine that it made: installs /plumb.deb, uses it, purges it.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

fail() {
    echo "package: $*" >&2
    exit 1
}
step() { echo "package: $*"; }
# Every file that is no package list, log or cache.
files() {
    find / -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/log -o -path /var/cache -o -path /tmp -o -path /root \) \
        -prune -o -printf '%p %y %m %u %g %l\n' | sort
}
# What every user may, without the groups of root.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
# Runs a responder with its output in /tmp/serve, for as long as a command takes.
beside() {
    local command=$1 pid
    shift
    : > /tmp/serve
    "$@" > /tmp/serve 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        ! grep -q 'listening on' /tmp/serve || break
        sleep 0.1
    done
    "$command" || fail "$command beside the responder: $(cat /tmp/serve)"
    kill "$pid"
    wait "$pid" || [ $? = 143 ] || fail "the responder did not end as asked: $(cat /tmp/serve)"
}

files > /tmp/before
step "installing"
apt-get -q -y install --no-install-recommends /plumb.deb > /tmp/apt 2>&1 || fail "cannot install: $(cat /tmp/apt)"
! grep '^plumb:' /tmp/apt || fail "the installation complained"
setcap -q -v 'cap_net_raw=ep cap_net_bind_service=ei' /usr/bin/plumb || fail "the capabilities are not as they should be"
for file in /usr/share/man/man1/plumb{,-check,-lab-run}.1.gz /usr/share/bash-completion/completions/plumb \
    /usr/share/zsh/vendor-completions/_plumb /usr/share/fish/vendor_completions.d/plumb.fish \
    /lib/systemd/system/plumb-{serve,watch}.service /lib/systemd/system/plumb-serve.socket /etc/default/plumb-serve; do
    # Smallest images leave manual pages out.
    [ -e "$file" ] || grep -rqs 'path-exclude.*man' /etc/dpkg/dpkg.cfg.d || fail "$file is missing"
done
plumb --version

step "using it as root and as anybody"
plumb ping 127.0.0.1 --count 3 --interval 10ms > /dev/null
nobody plumb path 127.0.0.1 > /tmp/path 2>&1 || fail "a user cannot trace: $(cat /tmp/path)"
! grep -i 'CAP_NET_RAW' /tmp/path || fail "a user has no raw sockets"
check() {
    nobody plumb check --quick 127.0.0.1 --budget 200mb > /tmp/check 2>&1 || { cat /tmp/check; return 1; }
    grep -q 'Mbit/s\|Gbit/s' /tmp/check || { cat /tmp/check; return 1; }
    ! grep 'no responder' /tmp/check
}
beside check plumb serve

step "the responder as its unit has it"
stamp() {
    grep -q '^plumb: stamp on' /tmp/serve && nobody plumb owd 127.0.0.1 --protocol stamp --count 3 --interval 10ms > /dev/null
}
beside stamp setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+net_raw,+net_bind_service \
    --ambient-caps=-all,+net_raw,+net_bind_service --bounding-set=-all,+net_raw,+net_bind_service --no-new-privs plumb serve
# A user may not take port 862.
beside true nobody plumb serve
grep -q 'not serving stamp' /tmp/serve || fail "any user may bind port 862"

step "names in a lab, with the static binary"
plumb lab run fibre -- plumb ping server --count 3 --interval 10ms > /dev/null
plumb lab run dual-stack -- plumb ping server --count 3 --interval 10ms > /dev/null
plumb lab run home-cable -- plumb check --quick server > /tmp/check 2>&1 || fail "a check in a lab: $(cat /tmp/check)"
grep -q '^server (10\.' /tmp/check || fail "the far end's name: $(cat /tmp/check)"
if nobody unshare --user true 2> /dev/null; then
    nobody plumb lab run fibre -- plumb ping server --count 3 --interval 10ms > /tmp/lab 2>&1 || fail "a lab without root: $(cat /tmp/lab)"
fi

step "removing"
apt-get -q -y purge plumb > /tmp/apt 2>&1 || fail "cannot purge: $(cat /tmp/apt)"
files > /tmp/after
diff /tmp/before /tmp/after > /tmp/left || fail "this stays: $(cat /tmp/left)"
