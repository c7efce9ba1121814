#!/bin/sh
# Latency against load of four layouts of the same eight slow devices, laid over each other, and
# compared with RAID0. Needs root: `python -m lab.vroc` builds the layouts and removes them.
# Usage: layouts.sh [DIRECTORY [SECONDS]], from the root of the repository. About three minutes.
set -eu
out=${1:-layouts-comparison} seconds=${2:-3}
loadstone=${LOADSTONE:-loadstone} python=${PYTHON:-python}
"$python" -m lab.vroc --out "$out" --seconds "$seconds" --points 25,50,75,90,105 --load write-4k-random
set -- "$out/write-4k-random/RAID0" "$out/write-4k-random/JBOD" "$out/write-4k-random/RAID10" \
    "$out/write-4k-random/RAID5"
"$loadstone" report "$@" -o "$out/curves.html"
"$loadstone" report "$@" -o "$out/curves.pdf"
"$loadstone" compare "$@" -o "$out/comparison.html" -o "$out/comparison.md" -o "$out/comparison.pdf"
