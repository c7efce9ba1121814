"""illumos as a watched host: what its shell is asked, and what the answer means.

Formats: kstat(8) with -p, a statistic a line; zpool(8). Written from these pages and tried on
recorded text only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.monitor.counters import Counters
from loadstone.watch.malformed_lines import tolerant, whole
from loadstone.watch.zpool_work import zpool_work

if TYPE_CHECKING:
    from collections.abc import Iterable

SCRIPT: Final = r"""
n=0
look_sample() {
  echo "@@pagesize $(pagesize)"
  kstat -p cpu::sys:/cpu_nsec/ unix:0:system_misc unix:0:system_pages zfs:0:arcstats link:::/64$/ \
    link:::/errors$/ nfs:0:rfsproccnt_v3 nfs:0:rfsproccnt_v4 2>/dev/null
  kstat -p -c disk 2>/dev/null
  if [ $((n % 10)) = 0 ]; then
    zpool status 2>/dev/null | sed -n -e 's/^ *pool: */@@zpool /p' -e 's/^ *scan: */@@scan /p'
  fi
  n=$((n + 1))
}
look_facts() {
  echo "@@host $(uname -n)"
  echo "@@kernel $(uname -v)"
  echo "@@pagesize $(pagesize)"
  kstat -p cpu_info:::state unix:0:system_pages:physmem link:::ifspeed
}
"""
DISK: Final = {
    "reads": ("reads", 1.0),
    "writes": ("writes", 1.0),
    "nread": ("read_bytes", 1.0),
    "nwritten": ("write_bytes", 1.0),
    "rtime": ("busy_ns", 1e9),
    "rlentime": ("queue_time_ns", 1e9),
}
NET: Final = {
    "rbytes64": "rx_bytes",
    "obytes64": "tx_bytes",
    "ipackets64": "rx_packets",
    "opackets64": "tx_packets",
    "ierrors": "rx_errors",
    "oerrors": "tx_errors",
}
CPU: Final = {"user": "user_ns", "kernel": "system_ns", "intr": "irq_ns", "idle": "idle_ns"}
ARC: Final = {"hits": "hits", "misses": "misses"}
ARC_LEVELS: Final = {"size": "size_bytes", "c_max": "limit_bytes"}
LOADS: Final = {"avenrun_1min": "one", "avenrun_5min": "five", "avenrun_15min": "fifteen"}
NFS: Final = ("read", "write", "commit", "getattr")


def counters(lines: Iterable[str]) -> tuple[Counters, int | None]:
    """Return what one look says, and how long the host has been up."""
    reading = Counters()
    uptime_ns: int | None = None
    pool, page = "", 4096
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "@@pagesize":
            page = whole(rest.strip()) or page
        elif word == "@@zpool":
            pool = rest.strip()
        elif word == "@@scan":
            zpool_work(reading, pool, rest)
        elif "\t" in line:
            key, _, value = line.partition("\t")
            if key == "unix:0:system_misc:snaptime":
                uptime_ns = _seconds_ns(value)
            else:
                _statistic(reading, key.split(":"), value.strip(), page)
    _all_cores(reading)
    return reading, uptime_ns


def _seconds_ns(text: str) -> int | None:
    try:
        return round(float(text) * 1e9)
    except (ValueError, OverflowError):
        return None


@tolerant
def _statistic(reading: Counters, key: list[str], value: str, page: int) -> None:  # noqa: C901 - a table
    if len(key) != 4:
        return
    module, number, name, statistic = key
    match module, name:
        case "cpu", "sys":
            mode = CPU.get(statistic.removeprefix("cpu_nsec_"))
            if mode:
                reading.growing[f"cpu.{number}.{mode}"] = int(value)
        case "unix", "system_misc" if statistic in LOADS:
            reading.levels[f"load.{LOADS[statistic]}_milli"] = int(value) * 1000 // 256
        case "unix", "system_pages" if statistic in ("physmem", "freemem"):
            reading.levels[f"memory.{'total' if statistic == 'physmem' else 'free'}_bytes"] = (
                int(value) * page
            )
        case "zfs", "arcstats":
            if statistic in ARC:
                reading.growing[f"zfs.arc.{ARC[statistic]}"] = int(value)
            elif statistic in ARC_LEVELS:
                reading.levels[f"zfs.arc.{ARC_LEVELS[statistic]}"] = int(value)
        case "link", _ if statistic in NET:
            reading.growing[f"net.{name}.{NET[statistic]}"] = int(value)
        case "nfs", _ if name.startswith("rfsproccnt") and statistic in NFS:
            total = f"nfsd.{statistic}s"
            reading.growing[total] = reading.growing.get(total, 0) + int(value)
        case _ if statistic in DISK and module not in ("cpu", "unix", "zfs", "link", "nfs"):
            column, scale = DISK[statistic]
            reading.growing[f"disk.{name}.{column}"] = round(float(value) * scale)
        case _:
            return


def _all_cores(reading: Counters) -> None:
    cores = {key.split(".")[1] for key in reading.growing if key.startswith("cpu.")}
    for mode in CPU.values():
        for core in cores:
            if (value := reading.growing.get(f"cpu.{core}.{mode}")) is not None:
                reading.add(f"cpu.all.{mode}", core, value)


def facts(lines: Iterable[str]) -> dict[str, Any]:
    """Return what does not change while the host is watched."""
    plain: dict[str, Any] = {}
    links: dict[str, dict[str, Any]] = {}
    page, cores = 4096, 0
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "@@pagesize":
            page = whole(rest.strip()) or page
        elif word in ("@@host", "@@kernel"):
            plain[word[2:]] = rest.strip()
        elif "\t" in line:
            key, _, value = line.partition("\t")
            parts, number = key.split(":"), whole(value.strip())
            if parts[0] == "cpu_info":
                cores += 1
            elif parts[0] == "unix" and number is not None:
                plain["memory_bytes"] = number * page
            elif parts[0] == "link" and number and len(parts) > 2:
                links[parts[2]] = {"bits_per_s": number}
    return {**plain, "cores": cores or None, "disks": {}, "links": links}
