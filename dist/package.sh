#!/usr/bin/env bash
# Packs a static plumb for x86-64 as a Debian package and as a tarball, with checksums.
#
#   dist/package.sh BINARY FOLDER
#
# The same sources and toolchain give the same bytes: times are those of the last commit (SOURCE_DATE_EPOCH).
set -euo pipefail
binary=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
cd "$(dirname "$0")/.."

fail() {
    echo "dist/package.sh: $*" >&2
    exit 1
}
for program in dpkg-deb:dpkg python3:python3 gzip:gzip tar:tar sha256sum:coreutils readelf:binutils; do
    command -v "${program%:*}" > /dev/null || fail "needs ${program%:*}: apt-get install ${program#*:}"
done
# An interpreter in the file would be a library that the machine has to have.
! readelf -l "$binary" | grep -q INTERP || fail "$binary is not static"

version=$("$binary" --version | awk '{ print $2 }')
architecture=amd64
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# What both have.
"$binary" generate man "$work/man"
mkdir "$work/completions"
"$binary" generate completions bash > "$work/completions/plumb.bash"
"$binary" generate completions zsh > "$work/completions/_plumb"
"$binary" generate completions fish > "$work/completions/plumb.fish"

# The tarball: one folder, to be copied from.
name=plumb-$version-x86_64-linux
tree=$work/$name
mkdir "$tree"
install -m 755 "$binary" "$tree/plumb"
cp -r "$work/man" "$work/completions" docs README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE dist/plumb-serve.{service,socket} dist/plumb-watch.service "$tree"
dist/third-party.py > "$tree/THIRD-PARTY"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -c "$name" |
    gzip -9n > "$out/$name.tar.gz"

# The Debian package.
tree=$work/debian
PREFIX=/usr DESTDIR=$tree UNITS=/lib/systemd/system ZSH_COMPLETIONS=zsh/vendor-completions \
    THIRD_PARTY=$work/$name/THIRD-PARTY dist/install.sh "$binary"
install -D -m 644 dist/debian/plumb-serve.default "$tree/etc/default/plumb-serve"
install -m 644 dist/debian/copyright "$tree/usr/share/doc/plumb"
gzip -9n "$tree/usr/share/doc/plumb/CHANGELOG.md" "$tree/usr/share/doc/plumb/THIRD-PARTY"
mv "$tree/usr/share/doc/plumb/CHANGELOG.md.gz" "$tree/usr/share/doc/plumb/changelog.gz"
mkdir "$tree/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$(du -sk "$tree" | cut -f 1)/" \
    dist/debian/control.in > "$tree/DEBIAN/control"
echo /etc/default/plumb-serve > "$tree/DEBIAN/conffiles"
install -m 755 dist/debian/{postinst,prerm,postrm} "$tree/DEBIAN"
(cd "$tree" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/plumb_${version}_$architecture.deb" > /dev/null

# The kernel of labs in virtual time: a package of its own, because its licence and its age are Linux's.
kernel=$(lab-kernel/build.sh)
# The folder is named PACKAGE_VERSION-CONFIGURATION-RECIPE.
source=$(basename "$(dirname "$kernel")")
kernel_version=$(sed 's/^[^_]*_//; s/-[^-]*-[^-]*$//' <<< "$source")
tree=$work/kernel
install -D -m 755 "$kernel" "$tree/usr/lib/plumb/plumb-lab-kernel"
documents=$tree/usr/share/doc/plumb-lab-kernel
install -D -m 644 -t "$documents" lab-kernel/config lab-kernel/build.sh
sed "s/@SOURCE@/${source%%_*} $kernel_version/" dist/debian/kernel-copyright.in > "$documents/copyright"
mkdir "$tree/DEBIAN"
sed -e "s/@VERSION@/$kernel_version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$(du -sk "$tree" | cut -f 1)/" \
    -e "s/@SOURCE@/${source%%_*} $kernel_version/" dist/debian/kernel-control.in > "$tree/DEBIAN/control"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums)
kernel_package=plumb-lab-kernel_${kernel_version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/$kernel_package" > /dev/null

cd "$out"
sha256sum "$name.tar.gz" "plumb_${version}_$architecture.deb" "$kernel_package" > SHA256SUMS
ls -l "$name.tar.gz" "plumb_${version}_$architecture.deb" "$kernel_package" SHA256SUMS
