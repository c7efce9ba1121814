#!/bin/sh
# The same load twice on files that do not exist before: the first pass allocates, the second writes
# over it. Then the first passes of three files against their second ones.
# Usage: passes.sh [DIRECTORY [MIB]]. A minute or two; each file is removed after its passes.
set -eu
out=${1:-passes-comparison} mib=${2:-2048}
loadstone=${LOADSTONE:-loadstone}
mkdir -p "$out/first" "$out/later"
out=$(CDPATH='' cd -- "$out" && pwd)
trap 'rm -f "$out"/iops.*.0' EXIT

for number in 1 2 3; do
    job=$out/iops-$number.fio
    printf '%s\n' '[iops]' rw=randwrite bs=64k iodepth=8 "size=${mib}m" ioengine=libaio direct=1 \
        fallocate=none group_reporting "filename=$out/iops.$number.0" > "$job"
    "$loadstone" run "$job" --out "$out/first/$number"
    "$loadstone" run "$job" --i-accept-data-loss "$out/iops.$number.0" --out "$out/later/$number"
    rm -f "$out/iops.$number.0"
done
"$loadstone" compare "$out/first" "$out/later" \
    -o "$out/comparison.html" -o "$out/comparison.md" -o "$out/comparison.pdf"
