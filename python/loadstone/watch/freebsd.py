"""FreeBSD as a watched host: what its shell is asked, and what the answer means.

Formats: sysctl(8), iostat(8) with -I (totals since the start), netstat(1) with -b, nfsstat(1) with -es,
zpool(8). Written from these pages and their programs' sources, and tried on recorded text only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from loadstone.monitor.counters import Counters
from loadstone.watch.malformed_lines import tolerant, whole
from loadstone.watch.zpool_work import zpool_work

if TYPE_CHECKING:
    from collections.abc import Iterable

SCRIPT: Final = r"""
n=0
look_sample() {
  sysctl kern.clockrate kern.cp_time kern.cp_times vm.loadavg hw.physmem vm.stats.vm.v_page_size \
    vm.stats.vm.v_free_count vm.stats.vm.v_inactive_count vm.stats.vm.v_laundry_count vfs.bufspace \
    vfs.nfsd.threads 2>/dev/null
  sysctl kstat.zfs.misc.arcstats kstat.zfs.misc.zil 2>/dev/null
  iostat -Ixd | sed 's/^/@@iostat /'
  netstat -ibnW | sed 's/^/@@netstat /'
  nfsstat -es 2>/dev/null | sed 's/^/@@nfsstat /'
  if [ $((n % 10)) = 0 ]; then
    sysctl dev.cpu 2>/dev/null | grep temperature
    zpool status 2>/dev/null | sed -n -e 's/^ *pool: */@@zpool /p' -e 's/^ *scan: */@@scan /p'
  fi
  n=$((n + 1))
}
look_facts() {
  echo "@@host $(uname -n)"
  echo "@@kernel $(uname -r)"
  sysctl hw.ncpu hw.physmem
  ifconfig -a | sed 's/^/@@ifconfig /'
}
"""
STATES: Final = ("user", "nice", "system", "irq", "idle")
STATHZ: Final = re.compile(r"stathz = (\d+)")
PLAIN: Final = {
    "kstat.zfs.misc.arcstats.hits": ("growing", "zfs.arc.hits"),
    "kstat.zfs.misc.arcstats.misses": ("growing", "zfs.arc.misses"),
    "kstat.zfs.misc.arcstats.size": ("levels", "zfs.arc.size_bytes"),
    "kstat.zfs.misc.arcstats.c_max": ("levels", "zfs.arc.limit_bytes"),
    "kstat.zfs.misc.zil.zil_commit_count": ("growing", "zfs.zil.commits"),
    "hw.physmem": ("levels", "memory.total_bytes"),
    "vfs.bufspace": ("levels", "memory.buffers_bytes"),
    "vfs.nfsd.threads": ("levels", "nfsd.threads"),
}
NFS: Final = {"Read": "reads", "Write": "writes", "Commit": "commits", "Getattr": "getattrs"}
PAGES: Final = {
    "vm.stats.vm.v_free_count": "free",
    "vm.stats.vm.v_inactive_count": "inactive",
    "vm.stats.vm.v_laundry_count": "laundry",
}
IOSTAT: Final = {
    "r/i": ("reads", 1.0),
    "w/i": ("writes", 1.0),
    "kr/i": ("read_bytes", 1024.0),
    "kw/i": ("write_bytes", 1024.0),
    "sb/i": ("busy_ns", 1e9),
}
PASS_THROUGH: Final = re.compile(r"pass\d+$")
"""The second door to a device that has a name of its own: its commands are no I/O of a disk."""
MEDIA: Final = re.compile(r"(\d+)(G)?base", re.IGNORECASE)


def counters(lines: Iterable[str]) -> tuple[Counters, int | None]:
    """Return what one look says; the host's own steady clock is not told."""
    reading = Counters()
    sysctls: dict[str, str] = {}
    header: list[str] = []
    operations: list[str] = []
    pool = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        match word:
            case "@@iostat":
                header = _disks(reading, header, rest.split())
            case "@@netstat":
                _net(reading, rest.split())
            case "@@nfsstat":
                operations = _nfs(reading, operations, rest.split())
            case "@@zpool":
                pool = rest.strip()
            case "@@scan":
                zpool_work(reading, pool, rest)
            case _ if word.endswith(":"):
                sysctls[word[:-1]] = rest.strip()
            case _:
                continue
    for read in (_processors, _load, _plain, _memory, _temperatures):
        read(reading, sysctls)
    return reading, None


def _nfs(reading: Counters, names: list[str], fields: list[str]) -> list[str]:
    """Read a row of counts beneath the row of their names; return the names of the next."""
    counts = [whole(one) for one in fields]
    if len(fields) != len(names) or None in counts:
        return fields
    known = {f"nfsd.{NFS[name]}": count for name, count in zip(names, counts, strict=True) if name in NFS}
    reading.growing |= {key: count for key, count in known.items() if count is not None}
    return []


@tolerant
def _processors(reading: Counters, sysctls: dict[str, str]) -> None:
    stathz = STATHZ.search(sysctls.get("kern.clockrate", ""))
    if stathz and int(stathz[1]):
        tick_ns = 1e9 / int(stathz[1])
        _cpu(reading, "all", sysctls.get("kern.cp_time", "").split(), tick_ns)
        ticks = sysctls.get("kern.cp_times", "").split()
        for at in range(0, len(ticks) - len(STATES) + 1, len(STATES)):
            _cpu(reading, str(at // len(STATES)), ticks[at : at + len(STATES)], tick_ns)


@tolerant
def _load(reading: Counters, sysctls: dict[str, str]) -> None:
    load = sysctls.get("vm.loadavg", "").strip("{} ").split()
    for name, value in zip(("one", "five", "fifteen"), load, strict=False):
        reading.levels[f"load.{name}_milli"] = round(float(value) * 1000)


def _plain(reading: Counters, sysctls: dict[str, str]) -> None:
    for name, (kind, key) in PLAIN.items():
        if (value := whole(sysctls.get(name, ""))) is not None:
            getattr(reading, kind)[key] = value


def _memory(reading: Counters, sysctls: dict[str, str]) -> None:
    page = whole(sysctls.get("vm.stats.vm.v_page_size", ""))
    if page is not None:
        counts = {name: whole(sysctls.get(key, "")) for key, name in PAGES.items()}
        pages = {name: count * page for name, count in counts.items() if count is not None}
        if "free" in pages:
            reading.levels["memory.free_bytes"] = pages["free"]
        if "inactive" in pages:
            reading.levels["memory.cached_bytes"] = pages["inactive"] + pages.get("laundry", 0)


def _temperatures(reading: Counters, sysctls: dict[str, str]) -> None:
    for name, value in sysctls.items():
        if name.startswith("dev.cpu.") and name.endswith(".temperature"):
            _temperature(reading, name.split(".")[2], value)


@tolerant
def _temperature(reading: Counters, core: str, value: str) -> None:
    reading.levels[f"temperature.cpu{core}.millicelsius"] = round(float(value.rstrip("C")) * 1000)


@tolerant
def _cpu(reading: Counters, name: str, ticks: list[str], tick_ns: float) -> None:
    if len(ticks) != len(STATES):
        return
    state = {key: round(int(value) * tick_ns) for key, value in zip(STATES, ticks, strict=True)}
    reading.growing |= {
        f"cpu.{name}.user_ns": state["user"] + state["nice"],
        f"cpu.{name}.system_ns": state["system"],
        f"cpu.{name}.irq_ns": state["irq"],
        f"cpu.{name}.idle_ns": state["idle"],
    }


def _disks(reading: Counters, header: list[str], fields: list[str]) -> list[str]:
    """Read a row beneath the row of the columns' names; return those names."""
    if fields[:1] == ["device"]:
        return fields
    if header and len(fields) == len(header):
        _disk(reading, dict(zip(header, fields, strict=True)))
    return header


@tolerant
def _disk(reading: Counters, row: dict[str, str]) -> None:
    name = row.get("device", "")
    if PASS_THROUGH.match(name):
        return
    values = {
        key: round(float(row[column]) * scale) for column, (key, scale) in IOSTAT.items() if column in row
    }
    if not any(values.values()):
        return
    name = _own_name(reading, name)
    reading.growing |= {f"disk.{name}.{key}": value for key, value in values.items()}
    if "qlen" in row:
        reading.levels[f"disk.{name}.inflight"] = int(row["qlen"])


def _own_name(reading: Counters, name: str) -> str:
    """Return a name that no other disk of this look has: iostat cuts names after eight letters."""
    same = re.compile(rf"disk\.{re.escape(name)}(~\d+)?\.reads")
    count = sum(1 for key in reading.growing if same.fullmatch(key))
    return f"{name}~{count + 1}" if count else name


@tolerant
def _net(reading: Counters, fields: list[str]) -> None:
    """Read a row of an interface itself; its address may be missing, so it is counted from the right."""
    if len(fields) < 11 or not fields[2].startswith("<Link"):
        return
    numbers = fields[-8:]
    if not all(one.isdecimal() for one in numbers):
        return
    packets_in, errors_in, drops_in, bytes_in, packets_out, errors_out, bytes_out, _ = map(int, numbers)
    # One that is down has a star; where names are cut short two may have one, and each is told.
    name = fields[0].rstrip("*")
    if f"net.{name}.rx_bytes" in reading.growing:
        name += fields[2].removeprefix("<Link").rstrip(">")
    reading.growing |= {
        f"net.{name}.rx_bytes": bytes_in,
        f"net.{name}.rx_packets": packets_in,
        f"net.{name}.rx_errors": errors_in,
        f"net.{name}.rx_drops": drops_in,
        f"net.{name}.tx_bytes": bytes_out,
        f"net.{name}.tx_packets": packets_out,
        f"net.{name}.tx_errors": errors_out,
    }


def facts(lines: Iterable[str]) -> dict[str, Any]:
    """Return what does not change while the host is watched."""
    plain: dict[str, Any] = {}
    links: dict[str, dict[str, Any]] = {}
    interface = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        match word:
            case "@@host" | "@@kernel":
                plain[word[2:]] = rest.strip()
            case "hw.ncpu:":
                plain["cores"] = whole(rest.strip())
            case "hw.physmem:":
                plain["memory_bytes"] = whole(rest.strip())
            case "@@ifconfig":
                if rest and not rest[0].isspace():
                    interface = rest.partition(":")[0]
                media = MEDIA.search(rest) if rest.strip().startswith("media:") else None
                if media and interface and (speed := whole(media[1])) is not None:
                    links.setdefault(interface, {})["bits_per_s"] = speed * (10**9 if media[2] else 10**6)
            case _:
                continue
    return {**plain, "disks": {}, "links": links}
