#!/usr/bin/env bash
# How large the binary for routers is, and packed: by gzip as in an .ipk, and by xz as in a squashfs image.
# Usage: size.sh BINARY. 1 where xz makes it larger than it was when this was written, and a little: 3 MB is the goal.
set -euo pipefail
most=4200000
binary=$1
gzip=$(gzip -9 < "$binary" | wc -c) xz=$(xz -9e --x86 --lzma2=dict=1MiB < "$binary" 2> /dev/null | wc -c)
printf '%s: %.2f MB, %.2f MB by gzip, %.2f MB by xz\n' "$binary" "$(stat -c %s "$binary")e-6" "${gzip}e-6" "${xz}e-6"
[ "$xz" -le "$most" ]
