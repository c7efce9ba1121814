#!/bin/sh
# Four corners on a file in a temporary directory, sized to the free space, under a minute of load.
# Usage: demo.sh [LOADSTONE]. The bundle and its report stay; the test file is removed.
set -eu
loadstone=${1:-loadstone}
work=$(mktemp -d "${TMPDIR:-/tmp}/loadstone-demo.XXXXXX")
file=$work/four-corners.bin
trap 'rm -f "$file"' EXIT

free_mib=$(df --output=avail --block-size=1M "$work" | tail -n 1 | tr -d ' ')
size_mib=$((free_mib / 8))
[ "$size_mib" -le 1024 ] || size_mib=1024
if [ "$size_mib" -lt 16 ]; then
    echo "demo: $work has only $free_mib MiB free; set TMPDIR to a directory with 128 MiB or more" >&2
    exit 1
fi

# What a build has just written would reach the disk beside the load.
sync
echo "demo: four corners on $file, $size_mib MiB, about 40 s of load" >&2
"$loadstone" run four-corners --target "$file" --size "${size_mib}M" --runtime 8s --out "$work/run"
