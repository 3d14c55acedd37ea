#!/usr/bin/env bash
# Installs a built plumb with its manual, completions, units and documentation, as `make install` and the packages do.
#
#   PREFIX=/usr/local DESTDIR= UNITS=PREFIX/lib/systemd/system dist/install.sh BINARY
#
# DESTDIR goes before each path, for packages that are made of a folder.
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
to=${DESTDIR:-}$prefix
units=${DESTDIR:-}${UNITS:-$prefix/lib/systemd/system}
documents=$to/share/doc/plumb
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

install -D -m 755 "$binary" "$to/bin/plumb"
"$binary" generate man "$work/man"
install -d "$to/share/man/man1"
for page in "$work"/man/*; do
    gzip -9n < "$page" > "$to/share/man/man1/$(basename "$page").gz"
done
complete() {
    install -d "$to/share/$2"
    "$binary" generate completions "$1" > "$to/share/$2/$3"
}
complete bash bash-completion/completions plumb
complete zsh "${ZSH_COMPLETIONS:-zsh/site-functions}" _plumb
complete fish fish/vendor_completions.d plumb.fish
install -d "$units"
for unit in plumb-serve.service plumb-serve.socket plumb-watch.service; do
    sed "s#/usr/bin/plumb#$prefix/bin/plumb#" "dist/$unit" > "$units/$unit"
done
install -D -m 644 -t "$documents" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md
cp -r docs "$documents/"
if [ -n "${THIRD_PARTY:-}" ]; then
    install -m 644 "$THIRD_PARTY" "$documents/THIRD-PARTY"
fi
