"""An output directory of vdbench as Cases: one for each run.

Knows flatfile.html (columns by the names in its header, so that every 5.04 reads alike),
totals.html and summary.html for runs it is missing from, histogram.html, and of parmfile.html the
storage definitions. MB there is MiB, times are in ms. Judges nothing.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone.audit import case as shape
from loadstone.audit.foreign import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FLATFILE: Final = "flatfile.html"
TOTALS: Final = ("totals.html", "summary.html")
HISTOGRAM: Final = "histogram.html"
PARAMETERS: Final = "parmfile.html"
MIB: Final = 1 << 20
START: Final = re.compile(r"Starting RD=(?P<run>[^;]+);(?P<rest>.*)")
AVERAGE: Final = re.compile(r"avg_(?P<first>\d+)-(?P<last>\d+|n)")
CLOCK: Final = re.compile(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)")
PAIR: Final = re.compile(r"([A-Za-z]\w*)=(\([^)]*\)|\"[^\"]*\"|[^,\s]+)")
UNLIMITED: Final = re.compile(r"9+77(\.0*)?")
"""The rate that stands for 'as fast as it goes'."""
RAW: Final = re.compile(r"/dev/rdsk/|\\\\\.\\physicaldrive", re.IGNORECASE)


def recognises(path: Path, _: bytes) -> bool:
    """Tell an output directory by its files, and a file of one by its name."""
    return path.is_dir() and any((path / name).is_file() for name in (FLATFILE, *TOTALS))


@dataclass(slots=True)
class _Run:
    """One run: columns of its average, and its intervals."""

    name: str
    average: dict[str, str]
    first: int | None = None
    last: int | None = None
    intervals: list[dict[str, str]] = field(default_factory=list)
    loops: str = ""


def read(path: Path) -> reader.Results:
    """Read a directory. Raises InputError when no run in it came to its end."""
    runs: list[_Run] = []
    if (path / FLATFILE).is_file():
        runs = list(_flat(path / FLATFILE))
    told = next(((path / name) for name in TOTALS if (path / name).is_file()), None)
    printed = list(_printed(told)) if told is not None else []
    if not runs:
        runs = printed
    if not runs:
        raise reader.wrong(
            path, "has no average of a run", hint="vdbench writes it when a run ends by itself"
        )
    if len(runs) == len(printed):
        for run, other in zip(runs, printed, strict=True):
            run.loops = other.loops
    histograms = list(_histograms(path / HISTOGRAM)) if (path / HISTOGRAM).is_file() else []
    counts = histograms if len(histograms) == len(runs) else [None] * len(runs)
    storage = _storage(path / PARAMETERS) if (path / PARAMETERS).is_file() else None
    cases = [_case(run, count, storage) for run, count in zip(runs, counts, strict=True)]
    notes = () if storage else ("there is no parmfile.html: targets and openflags are not known",)
    return reader.Results("vdbench", reader.with_siblings(cases), notes=notes)


def _lines(path: Path) -> list[str]:
    text = re.sub(r"<[^>\n]*>", "", reader.text(path))
    return html.unescape(text).splitlines()


def _flat(path: Path) -> Iterator[_Run]:
    """Read flatfile.html: a header whose names are single words, then rows."""
    names: list[str] = []
    intervals: list[dict[str, str]] = []
    for number, line in enumerate(_lines(path), start=1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if words[0] == "tod":
            names, intervals = words, []
            continue
        if not names:
            continue
        if len(words) != len(names):
            raise reader.wrong(path, f"found {len(words)} columns, expected {len(names)}", number)
        row = dict(zip(names, words, strict=True))
        interval, run = row.get("Interval", ""), row.get("Run", "")
        match = AVERAGE.fullmatch(interval)
        if match is None:
            intervals = [one for one in intervals if one.get("Run") == run] + [row]
            continue
        first = int(match["first"][:9])
        last = None if match["last"] == "n" else int(match["last"][:9])
        kept = [one for one in intervals if _between(one["Interval"], first, last)]
        yield _Run(run, row, first, last, kept)
        intervals = []


def _between(interval: str, first: int, last: int | None) -> bool:
    number = reader.whole(interval)
    return number is not None and first <= number and (last is None or number <= last)


_COLUMNS: Final = {
    "i/o rate": "rate",
    "MB/sec 1024**2": "MB/sec",
    "bytes i/o": "bytes/io",
    "read pct": "read%",
    "resp time": "resp",
    "read resp": "read_resp",
    "write resp": "write_resp",
    "resp max": "resp_max",
    "read max": "read_max",
    "write max": "write_max",
    "resp stddev": "resp_std",
    "queue depth": "queue_depth",
    "cpu% sys+u": "cpu_used",
    "cpu% sys": "cpu_kernel",
}
"""Names of the two header lines of a summary to those of the flatfile."""


def _printed(path: Path) -> Iterator[_Run]:
    """Read averages as summary.html and totals.html print them."""
    upper: list[str] = []
    columns: list[str] = []
    run, loops = "", ""
    for line in _lines(path):
        words = line.split()
        start = START.search(line)
        if start is not None:
            run = start["run"].strip()
            _, _, loops = start["rest"].partition("For loops:")
            loops = "" if loops.strip() == "None" else loops
        elif "interval" in words:
            upper = words[words.index("interval") + 1 :]
        elif upper and words and len(words) == len(upper):
            columns = [_COLUMNS.get(f"{one} {two}", "") for one, two in zip(upper, words, strict=True)]
            upper = []
        elif len(words) > 2 and (match := AVERAGE.fullmatch(words[1])) and len(words) - 2 == len(columns):
            row = {name: value for name, value in zip(columns, words[2:], strict=True) if name}
            last = None if match["last"] == "n" else int(match["last"][:9])
            yield _Run(run, row | {"tod": words[0]}, int(match["first"][:9]), last, loops=loops.strip())


def _histograms(path: Path) -> Iterator[int]:
    """Count the I/Os of each run: of its first histogram, which has all of them."""
    count, taken = 0, True
    for line in _lines(path):
        if START.search(line):
            if count:
                yield count
            count, taken = 0, False
        elif line.rstrip().endswith(":") and ("workload" in line or "eads" in line or "rites" in line):
            taken = count > 0
        elif not taken and (match := re.match(r"\s*[\d.]+ <\s+(?:[\d.]+|max)\s+([\d,]+)\s", line)):
            count += reader.whole(match[1]) or 0
    if count:
        yield count


@dataclass(frozen=True, slots=True)
class _Storage:
    """What the storage definitions say."""

    targets: tuple[str, ...]
    direct: bool | None
    size_text: str | None


def _storage(path: Path) -> _Storage | None:
    """Read the lines of storage definitions; what they share is known."""
    luns: list[str] = []
    direct: list[bool] = []
    sizes: list[str] = []
    common: dict[str, str] = {}
    for line in _lines(path):
        if not re.match(r"\s*sd=", line):
            continue
        told = {key.lower(): value.strip('"()') for key, value in PAIR.findall(line)}
        if told.get("sd") == "default":
            common = told
            continue
        told = common | told
        lun = told.get("lun", told["sd"])
        luns.append(lun)
        flags = told.get("openflags", "").lower()
        direct.append("o_direct" in flags or "directio" in flags.split(",") or RAW.match(lun) is not None)
        if "size" in told:
            sizes.append(told["size"])
    if not luns:
        return None
    same = set(direct)
    return _Storage(tuple(luns), same.pop() if len(same) == 1 else None, sizes[0] if sizes else None)


def _case(run: _Run, count: int | None, storage: _Storage | None) -> shape.Case:
    row = run.average
    seconds = _seconds(run)
    iops, mib = reader.number(row.get("rate")), reader.number(row.get("MB/sec"))
    share = reader.number(row.get("read%"))
    total = shape.Measured(
        operations=count or (round(iops * seconds) if iops is not None and seconds else None),
        bytes=round(mib * MIB * seconds) if mib is not None and seconds else None,
        iops=reader.figure(iops),
        bandwidth=reader.figure(None if mib is None else mib * MIB),
        latency=_latency(row, "resp", count),
    )
    used = reader.number(row.get("cpu_used"))
    name = f"{run.name} ({run.loops})" if run.loops else run.name
    return shape.Case(
        name=name,
        source="vdbench",
        jobs=(_asked(name, row, storage),),
        total=total,
        ops=_ops(row, total, share),
        seconds=seconds,
        targets=tuple(
            shape.Target(path, kind="block" if path.startswith("/dev/") or RAW.match(path) else "file")
            for path in (storage.targets if storage else ())
        ),
        series=_series(run, share),
        host_cpu_percent=used,
        queue_depth=reader.positive(row.get("queue_depth")),
        extra={"printed": {"iops": (iops,) if iops else (), "bandwidth": (f"{mib} MiB/s",) if mib else ()}},
    )


def _latency(row: dict[str, str], column: str, count: int | None) -> shape.LatencyFigures | None:
    mean = reader.positive(row.get(column))
    if mean is None:
        return None
    maxima = [reader.positive(row.get(name)) for name in ("resp_max", "read_max", "write_max")]
    known = [one for one in maxima if one is not None]
    deviation = reader.positive(row.get("resp_std")) if column == "resp" else None
    return shape.LatencyFigures(
        mean_ns=mean * 1e6,
        kind="lat",
        count=count,
        max_ns=max(known) * 1e6 if known and column == "resp" else None,
        stddev_ns=None if deviation is None else deviation * 1e6,
    )


def _ops(row: dict[str, str], total: shape.Measured, share: float | None) -> dict[shape.Op, shape.Measured]:
    """Divide the total by the share of reads that was seen."""
    if share is None:
        return {}
    if share in (0.0, 100.0):
        return {"read" if share else "write": total}
    found: dict[shape.Op, shape.Measured] = {}
    for op, part, column in (("read", share / 100, "read_resp"), ("write", 1 - share / 100, "write_resp")):
        found["read" if op == "read" else "write"] = shape.Measured(
            operations=round(total.operations * part) if total.operations is not None else None,
            iops=reader.figure(total.iops.value * part if total.iops else None),
            bandwidth=reader.figure(total.bandwidth.value * part if total.bandwidth else None),
            latency=_latency(row, column, None),
        )
    return found


def _asked(name: str, row: dict[str, str], storage: _Storage | None) -> shape.Asked:
    """Return what was asked for. Threads are for each storage definition, so that one tells the depth."""
    size = reader.whole(row.get("xfersize")) or None
    one = storage is not None and len(storage.targets) == 1
    seek = reader.number(row.get("seekpct"))
    rate = row.get("reqrate", "")
    reads = reader.number(row.get("rdpct"))
    sizes = {size: 1.0} if size else {}
    return shape.Asked(
        job=name,
        clones=1 if one else None,
        iodepth=reader.whole(row.get("threads")) if one else None,
        read_percent=reads,
        random_percent=seek,
        block_bytes=sizes,
        read_block_bytes=sizes if reads else {},
        write_block_bytes=sizes if reads is not None and reads < 100 else {},
        direct=storage.direct if storage else None,
        rate_iops=None if not rate or UNLIMITED.fullmatch(rate) else reader.positive(rate),
        targets=storage.targets if storage else (),
    )


def _clock_s(text: str) -> float | None:
    match = CLOCK.match(text)
    return int(match[1]) * 3600.0 + int(match[2]) * 60.0 + float(match[3]) if match else None


def _step_s(rows: Sequence[dict[str, str]]) -> float | None:
    """Return the interval, by the times of the rows; a run over midnight starts anew."""
    times = [time for row in rows if (time := _clock_s(row.get("tod", ""))) is not None]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    return float(max(1, round(median(steps)))) if steps else None


def _seconds(run: _Run) -> float | None:
    step = _step_s(run.intervals)
    if step is None or run.first is None or run.last is None:
        return None
    return (run.last - run.first + 1) * step


def _series(run: _Run, share: float | None) -> pl.DataFrame | None:
    """Return the measured intervals of a run that only reads or only writes."""
    step = _step_s(run.intervals)
    if step is None or share not in (0.0, 100.0):
        return None
    rows = []
    for index, row in enumerate(run.intervals):
        iops, mib = reader.number(row.get("rate")), reader.number(row.get("MB/sec"))
        mean = reader.positive(row.get("resp"))
        if iops is None or mib is None:
            return None
        rows.append(
            {
                "op": "read" if share else "write",
                "start_ns": round(index * step * 1e9),
                "end_ns": round((index + 1) * step * 1e9),
                "seconds": step,
                "ops": round(iops * step),
                "bytes": round(mib * MIB * step),
                "errors": 0,
                "iops": iops,
                "bytes_per_s": mib * MIB,
                "mean_ns": None if mean is None else mean * 1e6,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)
