"""Linux as a watched host: what its shell is asked, and what the answer means.

Formats: proc(5), Linux Documentation/block/stat.rst, admin-guide/md.rst, admin-guide/bcache.rst and
device-mapper/cache.rst; /proc/net/rpc/nfsd as fs/nfsd/stats.c writes it; OpenZFS's kstats. Knows text
only: one process prints all files, each line behind its file's name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from loadstone.monitor.counters import Counters
from loadstone.watch.malformed_lines import tolerant, whole
from loadstone.watch.zpool_work import zpool_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SCRIPT: Final = r"""
group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
[ -r "$group/cpu.stat" ] ||
  group=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:[^:]*\<cpu\>[^:]*://p' /proc/self/cgroup)
account=/sys/fs/cgroup/cpuacct$(sed -n 's/^[0-9]*:[^:]*cpuacct[^:]*://p' /proc/self/cgroup)
n=0
mappings() {
  dmsetup status --target cache 2>/dev/null | sed 's/^/@@dmcache:/'
  timeout 2 zpool status 2>/dev/null | sed -n -e 's/^ *pool: */@@zpool:/p' -e 's/^ *scan: */@@scan:/p'
}
root=
[ "$(id -u)" = 0 ] && root=1
look_sample() {
  grep -sH '' /proc/uptime /proc/stat /proc/loadavg /proc/meminfo /proc/net/dev /sys/block/*/stat \
    /proc/net/rpc/nfsd /proc/fs/nfsd/threads /proc/spl/kstat/zfs/arcstats /proc/spl/kstat/zfs/zil \
    /proc/spl/kstat/zfs/*/objset-* /proc/spl/kstat/zfs/*/state /sys/block/md*/md/sync_action \
    /sys/block/md*/md/degraded /sys/block/bcache*/bcache/stats_total/cache_* \
    /sys/block/bcache*/bcache/dirty_data /sys/fs/btrfs/*/exclusive_operation \
    "$group/cpu.stat" "$account/cpuacct.usage" /proc/pressure/cpu
  if [ $((n % 10)) = 0 ]; then
    grep -sH '' /sys/class/hwmon/hwmon*/temp*_input /sys/class/thermal/thermal_zone*/temp
    [ -z "$root" ] || mappings
  fi
  n=$((n + 1))
}
look_facts() {
  echo "@@host $(uname -n)"
  echo "@@kernel $(uname -r)"
  echo "@@boot_id $(cat /proc/sys/kernel/random/boot_id)"
  grep -sH '' /sys/class/net/*/speed /sys/class/net/*/mtu /sys/block/*/size /sys/block/*/dev \
    /sys/block/*/*/dev /sys/block/*/queue/rotational /sys/block/loop*/loop/backing_file \
    /sys/class/hwmon/hwmon*/name /proc/meminfo "$group/cpu.max" "$group/cpu.cfs_quota_us" \
    "$group/cpu.cfs_period_us" /proc/fs/nfsd/threads
  for slave in /sys/block/*/slaves/*; do [ -e "$slave" ] && echo "@@slave $slave"; done
  for file in /sys/block/loop*/loop/backing_file; do
    [ -r "$file" ] && read -r name <"$file" && echo "@@backing $file $(stat -c %d -- "$name" 2>/dev/null)"
  done
  echo "@@cores $(grep -c '^cpu[0-9]' /proc/stat)"
  tc qdisc show 2>/dev/null | sed 's/^/@@qdisc /'
  for one in /sys/class/net/*; do
    tc class show dev "${one##*/}" 2>/dev/null | sed "s/^/@@class ${one##*\/} /"
  done
}
"""
NS_PER_TICK: Final = 10_000_000
"""Every Linux tells user space hundredths of a second (USER_HZ)."""
SECTOR: Final = 512
MEMORY: Final = {
    "MemTotal": "total_bytes",
    "MemFree": "free_bytes",
    "MemAvailable": "available_bytes",
    "Cached": "cached_bytes",
    "Buffers": "buffers_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
}
MODES: Final = ("user_ns", "nice", "system_ns", "idle_ns", "iowait_ns", "irq", "softirq", "steal_ns")
ARC: Final = {"hits": "hits", "misses": "misses"}
ARC_LEVELS: Final = {"size": "size_bytes", "c_max": "limit_bytes"}
NFS4_OPS: Final = {25: "read", 38: "write", 5: "commit", 9: "getattr"}
"""Number of an operation in RFC 7530 to its name."""
NFS3_OPS: Final = {6: "read", 7: "write", 21: "commit", 1: "getattr"}
IDLE_WORK: Final = frozenset({"idle", "frozen", "none"})
MOST_BITS_PER_S: Final = 1e15
RATE: Final = re.compile(r"\b(?:rate|ceil) (\d+(?:\.\d+)?)([KMGT]?)bit\b")
BITS: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
QUOTA: Final = re.compile(r"(\d+) (\d+)")


def counters(lines: Iterable[str]) -> tuple[Counters, int | None]:
    """Return the counters of one look, and the uptime of the host."""
    reading = Counters()
    uptime_ns: int | None = None
    pool = ""
    for line in lines:
        if line.startswith("@@zpool:"):
            pool = line[8:].strip()
        elif line.startswith("@@scan:"):
            zpool_work(reading, pool, line[7:])
        elif line.startswith("@@dmcache:"):
            _dm_cache(reading, line[10:])
        elif line.startswith("/"):
            path, _, text = line.partition(":")
            if path == "/proc/uptime":
                uptime_ns = _hundredths_ns(text.split(" ")[0])
                continue
            _file(reading, path, text)
    return reading, uptime_ns


@tolerant
def _file(reading: Counters, path: str, text: str) -> None:
    reader = READERS.get(path)
    if reader is not None:
        reader(reading, text)
        return
    for pattern, read in PATTERNS:
        if name := pattern.match(path):
            read(reading, name[1], text)
            return


def _hundredths_ns(text: str) -> int | None:
    seconds, _, part = text.partition(".")
    whole_s, hundredths = whole(seconds), whole((part + "00")[:2])
    return None if whole_s is None or hundredths is None else whole_s * 10**9 + hundredths * 10_000_000


def _stat(reading: Counters, text: str) -> None:
    if not text.startswith("cpu"):
        return
    name, *fields = text.split()
    ticks = dict(zip(MODES, (int(one) * NS_PER_TICK for one in fields[: len(MODES)]), strict=False))
    prefix = f"cpu.{name.removeprefix('cpu') or 'all'}"
    reading.growing |= {
        f"{prefix}.user_ns": ticks["user_ns"] + ticks["nice"],
        f"{prefix}.system_ns": ticks["system_ns"],
        f"{prefix}.irq_ns": ticks.get("irq", 0) + ticks.get("softirq", 0),
        f"{prefix}.iowait_ns": ticks.get("iowait_ns", 0),
        f"{prefix}.steal_ns": ticks.get("steal_ns", 0),
        f"{prefix}.idle_ns": ticks["idle_ns"],
    }


def _load(reading: Counters, text: str) -> None:
    for name, value in zip(("one", "five", "fifteen"), text.split()[:3], strict=True):
        reading.levels[f"load.{name}_milli"] = round(float(value) * 1000)


def _memory(reading: Counters, text: str) -> None:
    name, _, rest = text.partition(":")
    known = MEMORY.get(name)
    if known is not None:
        reading.levels[f"memory.{known}"] = int(rest.split()[0]) * 1024


def _net(reading: Counters, text: str) -> None:
    name, colon, rest = text.partition(":")
    fields = rest.split()
    if not colon or len(fields) < 12 or not fields[0].isdecimal():
        return
    for direction, at in (("rx", 0), ("tx", 8)):
        reading.growing |= {
            f"net.{name.strip()}.{direction}_bytes": int(fields[at]),
            f"net.{name.strip()}.{direction}_packets": int(fields[at + 1]),
            f"net.{name.strip()}.{direction}_errors": int(fields[at + 2]),
            f"net.{name.strip()}.{direction}_drops": int(fields[at + 3]),
        }


def _disk(reading: Counters, name: str, text: str) -> None:
    fields = [int(one) for one in text.split()]
    if not any(fields):
        return  # It has never been used, as most of the loop devices that are there.
    prefix = f"disk.{name}"
    reading.levels[f"{prefix}.inflight"] = fields[8]
    reading.growing |= {
        f"{prefix}.busy_ns": fields[9] * 1_000_000,
        f"{prefix}.queue_time_ns": fields[10] * 1_000_000,
        f"{prefix}.reads": fields[0],
        f"{prefix}.read_bytes": fields[2] * SECTOR,
        f"{prefix}.read_time_ns": fields[3] * 1_000_000,
        f"{prefix}.writes": fields[4],
        f"{prefix}.write_bytes": fields[6] * SECTOR,
        f"{prefix}.write_time_ns": fields[7] * 1_000_000,
    }
    if len(fields) > 14:
        reading.growing |= {f"{prefix}.trims": fields[11], f"{prefix}.trim_bytes": fields[13] * SECTOR}
    if len(fields) > 16:
        reading.growing[f"{prefix}.flushes"] = fields[15]


def _nfsd(reading: Counters, text: str) -> None:
    name, *rest = text.split()
    match name:
        case "io":
            reading.growing |= {"nfsd.read_bytes": int(rest[0]), "nfsd.write_bytes": int(rest[1])}
        case "rpc":
            reading.growing["nfsd.calls"] = int(rest[0])
        case "th":
            reading.levels["nfsd.threads"] = int(rest[0])
        case "proc3":
            _ops(reading, NFS3_OPS, rest[1:])
        case "proc4ops":
            _ops(reading, NFS4_OPS, rest[1:])
        case _:
            return


def _ops(reading: Counters, known: dict[int, str], counts: list[str]) -> None:
    for number, name in known.items():
        if number < len(counts):
            key = f"nfsd.{name}s"
            reading.growing[key] = reading.growing.get(key, 0) + int(counts[number])


def _threads(reading: Counters, text: str) -> None:
    reading.levels["nfsd.threads"] = int(text)


def _arc(reading: Counters, text: str) -> None:
    fields = text.split()
    if len(fields) != 3:
        return
    name, _, value = fields
    if name in ARC:
        reading.growing[f"zfs.arc.{ARC[name]}"] = int(value)
    elif name in ARC_LEVELS:
        reading.levels[f"zfs.arc.{ARC_LEVELS[name]}"] = int(value)
    elif name in ("l2_hits", "l2_misses"):
        reading.growing[f"zfs.l2arc.{name[3:]}"] = int(value)


def _zil(reading: Counters, text: str) -> None:
    fields = text.split()
    if len(fields) != 3:
        return
    name, _, value = fields
    if name == "zil_commit_count":
        reading.growing["zfs.zil.commits"] = int(value)
    elif name in ("zil_itx_metaslab_slog_bytes", "zil_itx_metaslab_normal_bytes"):
        which = "slog" if "slog" in name else "pool"
        reading.growing[f"zfs.zil.{which}_bytes"] = int(value)


def _dataset(reading: Counters, name: str, text: str) -> None:
    """Add up what the data sets of a pool read and wrote."""
    pool, _, dataset = name.partition("/")
    fields = text.split()
    names = {"reads": "reads", "nread": "read_bytes", "writes": "writes", "nwritten": "write_bytes"}
    if len(fields) == 3 and fields[0] in names:
        key = f"zfs.pool-{pool}.{names[fields[0]]}"
        reading.add(key, dataset, int(fields[2]))


def _md_work(reading: Counters, name: str, text: str) -> None:
    action = text.strip()
    reading.levels[f"work.{name}.running"] = int(action not in IDLE_WORK)
    if action not in IDLE_WORK:
        reading.levels[f"work.{name}.{action}"] = 1


def _human(text: str) -> int:
    """Read bcache's `1.2G`, `512k`, `0`."""
    scale = {"k": 10, "M": 20, "G": 30, "T": 40}.get(text[-1:], 0)
    return round(float(text[:-1] if scale else text) * (1 << scale))


@tolerant
def _dm_cache(reading: Counters, text: str) -> None:
    name, _, rest = text.partition(":")
    fields = rest.split()
    if len(fields) < 14 or fields[2] != "cache":
        return
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions")
    block_bytes = int(fields[5]) * SECTOR
    for key, value in zip(names, fields[7:13], strict=True):
        reading.growing[f"cache.{name}.{key}"] = int(value)
    reading.levels[f"cache.{name}.dirty_bytes"] = int(fields[13]) * block_bytes


def _group(reading: Counters, text: str) -> None:
    """Read the limit of the group the shell is in: a container's, or a service's."""
    name, value = text.split()
    match name:
        case "throttled_usec":
            reading.growing["group.throttled_ns"] = int(value) * 1000
        case "throttled_time":
            reading.growing["group.throttled_ns"] = int(value)
        case "usage_usec":
            reading.growing["group.used_ns"] = int(value) * 1000
        case "nr_periods" | "nr_throttled":
            reading.growing[f"group.{name.removeprefix('nr_')}_count"] = int(value)
        case _:
            return


def _pressure(reading: Counters, text: str) -> None:
    if text.startswith("some"):
        reading.growing["pressure.cpu_ns"] = int(text.rpartition("=")[2]) * 1000


def _temperature(reading: Counters, name: str, text: str) -> None:
    reading.levels[f"temperature.{name.replace('/', '-')}.millicelsius"] = int(text)


READERS: Final[dict[str, Callable[[Counters, str], None]]] = {
    "/proc/stat": _stat,
    "/proc/loadavg": _load,
    "/proc/meminfo": _memory,
    "/proc/net/dev": _net,
    "/proc/net/rpc/nfsd": _nfsd,
    "/proc/fs/nfsd/threads": _threads,
    "/proc/spl/kstat/zfs/arcstats": _arc,
    "/proc/spl/kstat/zfs/zil": _zil,
    "/proc/pressure/cpu": _pressure,
}


def _counter(key: str) -> Callable[[Counters, str, str], None]:
    """Return the reader of a file that is one growing number; `{}` in the key is the name it stands under."""
    return lambda reading, name, text: reading.growing.update({key.format(name): int(text)})


def _level(key: str, read: Callable[[str], int]) -> Callable[[Counters, str, str], None]:
    """Return the reader of a file that is one level."""
    return lambda reading, name, text: reading.levels.update({key.format(name): read(text.strip())})


PATTERNS: Final[tuple[tuple[re.Pattern[str], Callable[[Counters, str, str], None]], ...]] = (
    (re.compile(r"/sys/block/([^/]+)/stat$"), _disk),
    (re.compile(r"/proc/spl/kstat/zfs/([^/]+/objset-[^/]+)"), _dataset),
    (
        re.compile(r"/proc/spl/kstat/zfs/([^/]+)/state$"),
        _level("work.{}.degraded", lambda text: int(text != "ONLINE")),
    ),
    (re.compile(r"/sys/block/([^/]+)/md/sync_action$"), _md_work),
    (
        re.compile(r"/sys/block/([^/]+)/md/degraded$"),
        _level("work.{}.degraded", lambda text: int(int(text) > 0)),
    ),
    (
        re.compile(r"/sys/fs/btrfs/([^/]+)/exclusive_operation$"),
        lambda reading, name, text: _md_work(reading, f"btrfs-{name[:8]}", text.replace(" ", "_")),
    ),
    (re.compile(r"/sys/block/([^/]+)/bcache/dirty_data$"), _level("cache.{}.dirty_bytes", _human)),
    (re.compile(r"/sys/block/([^/]+)/bcache/stats_total/cache_hits$"), _counter("cache.{}.read_hits")),
    (re.compile(r"/sys/block/([^/]+)/bcache/stats_total/cache_misses$"), _counter("cache.{}.read_misses")),
    (re.compile(r"/sys/class/(hwmon/hwmon\d+/temp\d+)_input$"), _temperature),
    (re.compile(r"/sys/class/(thermal/thermal_zone\d+)/temp$"), _temperature),
    (re.compile(r"(/sys/fs/cgroup.*)/cpu\.stat$"), lambda reading, _, text: _group(reading, text)),
    (re.compile(r"(/sys/fs/cgroup.*)/cpuacct\.usage$"), _counter("group.used_ns")),
)


def facts(lines: Iterable[str]) -> dict[str, Any]:
    """Return what does not change while the host is watched."""
    collected = _Facts()
    for line in lines:
        collected.take(line)
    return collected.document()


class _Facts:
    """Lines in, facts out."""

    def __init__(self) -> None:
        self._plain: dict[str, Any] = {}
        self._disks: dict[str, dict[str, Any]] = {}
        self._links: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, str] = {}
        """`8:1` to the disk it is on."""
        self._backing: dict[str, str] = {}
        self._shaped: dict[str, float] = {}
        self._quota: list[int | None] = [None, None]

    @tolerant
    def take(self, line: str) -> None:
        if line.startswith("@@"):
            word, _, rest = line[2:].partition(" ")
            self._marked(word, rest)
            return
        path, _, text = line.partition(":")
        parts = path.split("/")
        text = text.strip()
        if path == "/proc/meminfo" and text.startswith("MemTotal:"):
            self._plain["memory_bytes"] = int(text.split()[1]) * 1024
        elif path.startswith("/sys/class/net/") and parts[-1] == "speed":
            # -1: it is not known; some drivers say so as an unsigned number.
            if text.isdecimal() and 0 < int(text) < 10_000_000:
                self._link(parts[4])["bits_per_s"] = int(text) * 1_000_000
        elif path.startswith("/sys/class/net/") and text.isdecimal():
            self._link(parts[4])["mtu_bytes"] = int(text)
        elif path.startswith("/sys/block/"):
            self._block(parts, text)
        elif path.endswith("/cpu.max"):
            quota = QUOTA.match(text)
            self._quota = [int(quota[1]), int(quota[2])] if quota else self._quota
        elif path.endswith("/cpu.cfs_quota_us") and int(text) > 0:
            self._quota[0] = int(text)
        elif path.endswith("/cpu.cfs_period_us"):
            self._quota[1] = int(text)

    def _block(self, parts: list[str], text: str) -> None:
        name = parts[3]
        if parts[-1] == "dev":
            self._numbers[text] = name
        elif parts[-1] == "size" and text.isdecimal() and int(text):
            self._disk(name)["size_bytes"] = int(text) * SECTOR
        elif parts[-1] == "rotational":
            self._disk(name)["rotational"] = text == "1"

    def _marked(self, word: str, rest: str) -> None:
        match word:
            case "host" | "kernel" | "boot_id":
                self._plain[word] = rest.strip()
            case "cores":
                self._plain["cores"] = int(rest) if rest.strip().isdecimal() else None
            case "slave":
                parts = rest.split("/")
                self._disk(parts[3]).setdefault("over", []).append(parts[5])
            case "backing":
                file, _, device = rest.partition(" ")
                self._backing[file.split("/")[3]] = device.strip()
            case "qdisc":
                _shape(self._shaped, re.search(r"\bdev (\S+)", rest), rest)
            case "class":
                name, _, shape = rest.partition(" ")
                _shape(self._shaped, re.match(r"(\S+)", name), shape)
            case _:
                return

    def _disk(self, name: str) -> dict[str, Any]:
        return self._disks.setdefault(name, {})

    def _link(self, name: str) -> dict[str, Any]:
        return self._links.setdefault(name, {})

    def document(self) -> dict[str, Any]:
        """Return all of it."""
        for name, number in self._backing.items():
            # Where the file's system has no device of its own (tmpfs, FUSE) nothing is below it.
            device = whole(number) or 0
            major, minor = divmod(device, 256) if device < 1 << 20 else (0, 0)
            under = self._numbers.get(f"{major}:{minor}")
            if under is not None:
                self._disk(name).setdefault("over", []).append(under)
        for name, bits_per_s in self._shaped.items():
            self._link(name)["shaped_bits_per_s"] = round(bits_per_s)
        quota, period = self._quota
        limit = {"cpu_limit": quota / period} if quota and period and max(quota, period) < 1 << 63 else {}
        return {**self._plain, **limit, "disks": self._disks, "links": self._links}


def _shape(shaped: dict[str, float], name: re.Match[str] | None, text: str) -> None:
    """Note the rate that a queueing discipline lets through: the largest of an interface's."""
    rates = [float(value) * BITS[unit] for value, unit in RATE.findall(text)]
    if name is not None and rates and max(rates) < MOST_BITS_PER_S:
        shaped[name[1]] = max([*rates, shaped.get(name[1], 0.0)])
