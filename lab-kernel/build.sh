#!/usr/bin/env bash
# Builds the kernel of labs in virtual time (plumb lab run --virtual) where it is not there yet: User Mode Linux, from
# Debian's source. It is kept in the user's cache by source version and configuration, so that a fresh clone finds it, and
# linked to from target/plumb-lab-kernel, where plumb looks for it.
#
# On two processors it takes three minutes, 2 GB in /var/tmp meanwhile, and then 8 MB. Needs apt, make, gcc, flex, bison,
# bc and xz; no root.
#
#   lab-kernel/build.sh            build it where it is missing, and print where it is
#   lab-kernel/build.sh --source   print the name and version of the source package that it is built from
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

# Linux from 6.16 on can catch the system calls of its programs by seccomp, which takes half of what ptrace does. The first
# that apt knows is taken, from the machine's own release or from the backports of a newer one.
PACKAGES='linux-source-7.2 linux-source-6.12 linux-source-6.1'
NEWER_SUITE=trixie-backports
# Part of the name in the cache: counted up when what is done to the source below changes.
RECIPE=3

cache=${XDG_CACHE_HOME:-$HOME/.cache}/plumb
target=${CARGO_TARGET_DIR:-target}

fail() {
    echo "lab-kernel: $*" >&2
    exit 1
}

found() {
    mkdir -p "$target"
    ln -sfn "$1" "$cache/plumb-lab-kernel"
    ln -sfn "$1" "$target/plumb-lab-kernel"
    echo "$1"
}

[ "$(uname -m)" = x86_64 ] || fail "labs in virtual time need an x86-64 machine, and this is $(uname -m)"
configuration=$(sha256sum lab-kernel/config | cut -c 1-12)
mkdir -p "$cache"
exec 9> "$cache/lock"
flock 9 # another clone may build it just now
for package in $PACKAGES; do
    kept=("$cache"/"$package"_*-"$configuration-$RECIPE"/plumb-lab-kernel)
    if [ "${1:-}" != --source ] && [ -x "${kept[0]}" ]; then
        found "${kept[0]}"
        exit
    fi
done

for program in apt-get apt-cache dpkg-deb make gcc flex bison bc xz; do
    command -v "$program" > /dev/null || fail "$program is missing: run tests/tools.sh"
done

# Lists of packages of our own, beside the machine's: the newer suite is asked for this source alone.
lists=$cache/apt
mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' 'Component: main' |
    awk '$2 == "Debian" { print $1; exit }')
if [ -z "$mirror" ]; then
    # A machine whose lists were never fetched names its mirror in its sources alone.
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2> /dev/null |
        grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ')
fi
[ -n "$mirror" ] || fail "apt has no mirror of Debian to fetch the kernel's source from"
# The machine's own release; an image without its name has backports all the same.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in ${release:+"$release" "$release-backports"} "$NEWER_SUITE"; do
    echo "deb [signed-by=$keys] $mirror $suite main"
done | sort -u > "$lists/sources.list"

apt() {
    local command=$1
    shift
    "$command" -q -o APT::Sandbox::User= -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$lists/lists" -o Dir::Cache="$lists/cache" -o Acquire::Languages=none "$@" < /dev/null
}

apt apt-get update > "$lists/log" 2>&1 || { cat "$lists/log" >&2; fail "apt could not fetch its lists"; }
for package in $PACKAGES; do
    version=$(apt apt-cache madison "$package" 2> /dev/null | awk -F '|' '{ gsub(/ /, ""); print $2; exit }')
    [ -z "$version" ] || break
done
[ -n "$version" ] || fail "apt knows none of $PACKAGES"
if [ "${1:-}" = --source ]; then
    echo "$package $version"
    exit
fi

work=$(mktemp -d -p "${TMPDIR:-/var/tmp}" plumb-lab-kernel.XXXXXX)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" > "$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; fail "could not be built: $*"; }; }
started=$SECONDS
echo "lab-kernel: building $package $version, which takes some minutes" >&2
config=$PWD/lab-kernel/config
(cd "$work" && quietly apt apt-get download "$package=$version")
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" --wildcards '*/linux-source-*.tar.xz'
rm "$work"/*.deb
mkdir "$work/source"
tar -x -C "$work/source" --strip-components=1 -f "$work"/usr/src/linux-source-*.tar.xz
rm -r "$work/usr"
# Timers of delayed acknowledgements and retransmissions are in jiffies, of which real machines have up to 1000 a second;
# this architecture has 100 and no option.
sed -i '/^config HZ$/,/^$/s/default 100$/default 1000/' "$work/source/arch/um/Kconfig"
# It would leave a folder with its process number in the user's home.
sed -i '/^__initcall(make_umid_init);$/d' "$work/source/arch/um/os-Linux/umid.c"
# A console that was sent more than it holds at once would never read again: this switches its reading off, and nothing on.
sed -i '/^void line_throttle(/,/^}/{/deactivate_chan/d}' "$work/source/arch/um/drivers/line.c"
# Random numbers are the same each time: nothing is mixed into them, and the host gives none. Otherwise two labs of one seed
# would differ by the ports and the hashes that the kernel and programs draw.
sed -i '/^static void _mix_pool_bytes(/,/^}/{/blake2s_update/d}' "$work/source/drivers/char/random.c"
sed -i 's/ret = os_getrandom(v, max_longs \* sizeof(\*v), 0);/ret = max_longs * sizeof(*v); __builtin_memset(v, 1, ret);/' \
    "$work/source/arch/um/include/asm/archrandom.h"
um() { quietly make -C "$work/source" ARCH=um SUBARCH=x86_64 -j "$(nproc)" "$@"; }
um KCONFIG_ALLCONFIG="$config" allnoconfig
for option in $(grep -oE '^CONFIG_[A-Z0-9_]+=y$' "$config"); do
    grep -qx "$option" "$work/source/.config" || fail "$package has no $option"
done
um linux
kept=$cache/${package}_$version-$configuration-$RECIPE
mkdir -p "$kept"
# The debug symbols are most of it.
strip -s -o "$kept/plumb-lab-kernel.part" "$work/source/linux"
cp "$config" "$kept/config"
mv "$kept/plumb-lab-kernel.part" "$kept/plumb-lab-kernel"
echo "lab-kernel: built in $((SECONDS - started)) s" >&2
found "$kept/plumb-lab-kernel"
