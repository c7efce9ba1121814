#!/bin/sh
# The six published job files of examples/vostok before and after: fio measures before, Loadstone
# after, and one command makes the table. Eight files of 64 MiB stand in for the eight LUNs.
# Usage: vostok.sh [DIRECTORY [SECONDS]]. Needs fio. About five minutes; the eight files are removed.
# Below ten seconds fio's results have too few samples to tell how sure they are.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${1:-vostok-comparison} seconds=${2:-20}
loadstone=${LOADSTONE:-loadstone}
mkdir -p "$out/luns" "$out/jobs" "$out/before"
out=$(CDPATH='' cd -- "$out" && pwd)
trap 'rm -rf "$out/luns"' EXIT

# Each device becomes a file, the run shorter; the last section of the sixth file names no device
# as published. The logs are left out.
for job in "$here"/../vostok/*.fio; do
    sed -e "s|^filename=/dev/|filename=$out/luns/|" -e "s|^runtime=.*|runtime=$seconds|" \
        -e '/^per_job_logs=/d' -e '/^log_avg_msec=/d' -e '/^write_.*_log=/d' \
        -e "\$s|^\[job-8\]\$|[job-8]\nfilename=$out/luns/sdi|" "$job" > "$out/jobs/$(basename "$job")"
done
for disk in c d e f g h i j; do
    dd if=/dev/urandom of="$out/luns/sd$disk" bs=1M count=64 status=none
done
sync

for job in "$out"/jobs/*.fio; do
    echo "before: $(basename "$job")" >&2
    fio --output-format=json --output="$out/before/$(basename "$job" .fio).json" "$job"
done
consent=$(for disk in c d e f g h i j; do echo "--i-accept-data-loss $out/luns/sd$disk"; done)
# shellcheck disable=SC2086 # each word is one of the command's
"$loadstone" run "$out/jobs" --out "$out/after" $consent
"$loadstone" compare "$out/before" "$out/after" \
    -o "$out/comparison.html" -o "$out/comparison.md" -o "$out/comparison.pdf"
