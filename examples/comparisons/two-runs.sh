#!/bin/sh
# Every pattern twice with both values given, as an Iometer study does it: four patterns on a small
# file, once with what the page cache keeps and once with direct I/O, then one comparison.
# Usage: two-runs.sh [DIRECTORY [SECONDS]]. About a minute; the file is removed.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${1:-two-runs-comparison} seconds=${2:-3}
loadstone=${LOADSTONE:-loadstone}
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
file=$out/store.bin
trap 'rm -f "$file"' EXIT
dd if=/dev/urandom of="$file" bs=1M count=128 status=none
sync

job=$here/../nfs-queue-depth/four-patterns.fio
sed 's/^direct=1/direct=0/' "$job" > "$out/cached.fio"
for how in cached direct; do
    from=$job
    [ "$how" = direct ] || from=$out/cached.fio
    "$loadstone" run "$from" --target "$file" --runtime "${seconds}s" --repeat 2 \
        --i-accept-data-loss "$file" --out "$out/$how"
    "$loadstone" report "$out/$how" -o "$out/$how.pdf"
done
"$loadstone" compare "$out/cached" "$out/direct" \
    -o "$out/comparison.html" -o "$out/comparison.md" -o "$out/comparison.pdf"
