"""An output directory of vdbench as Cases: one for each run that came to an average.

Everything of a run is taken from the time that its average is of: vdbench counts the warmup in
histogram.html, so no count is taken from there. MB there is MiB, times are in ms. Judges nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone import file_kind
from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.case_queries import FILES
from loadstone.audit.foreign import reader, vdbench_parameters, vdbench_tables

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.foreign.vdbench_parameters import Parameters
    from loadstone.audit.foreign.vdbench_tables import AveragedRun

FLATFILE: Final = "flatfile.html"
TOTALS: Final = ("totals.html", "summary.html")
PARAMETERS: Final = "parmfile.html"
MIB: Final = 1 << 20
UNLIMITED: Final = re.compile(r"9{4,}(77|88)(\.0*)?")
"""Rates that stand for 'as fast as it goes': 999977, 999988, 9999977 and 9999988 so far."""
LEAST_UNLIMITED: Final = 999_977
FAR_BELOW: Final = 0.5
"""Where less than this of such a rate was reached, it was nobody's wish."""
SAME_SIZE: Final = 0.005
OPS: Final[tuple[shape.Op, ...]] = ("read", "write")


def recognises(path: Path, _: bytes) -> bool:
    """Tell an output directory by its files, and what they hold."""
    if not file_kind.is_directory(path):
        return False
    return any(_is_vdbench(path / name) for name in (FLATFILE, *TOTALS))


def _is_vdbench(path: Path) -> bool:
    """Whether a page is one of vdbench's: other programs write a summary.html, too."""
    if not file_kind.is_file(path):
        return False
    head = reader.head(path)
    return (
        re.search(rb"(?i)vdbench|Starting RD=|^\s+tod\s.*\bRun\s+Interval\b", head, re.MULTILINE) is not None
    )


def read(path: Path) -> reader.ForeignResults:
    """Read a directory. Raises InputError when no run in it came to its end."""
    totals_file = next((path / name for name in TOTALS if file_kind.is_file(path / name)), None)
    announced = vdbench_tables.starts(totals_file) if totals_file is not None else []
    runs: list[AveragedRun] = []
    notes: list[str] = []
    if file_kind.is_file(path / FLATFILE):
        runs, notes = vdbench_tables.flat(path / FLATFILE, announced)
    if not runs and totals_file is not None:
        runs = list(vdbench_tables.printed(totals_file))
    if not runs:
        reasons = f": {'; '.join(notes)}" if notes else ""
        raise reader.wrong(path, "no_average", said=reasons)
    parameters = vdbench_parameters.read(path / PARAMETERS) if file_kind.is_file(path / PARAMETERS) else None
    if parameters is None:
        notes.append("there is no parmfile.html: targets and openflags are not known")
    cases = [_case(run, parameters) for run in runs]
    if any(not _sizes(run.average, run, parameters) and run.average.get("xfersize") for run in runs):
        notes.append("sizes of some runs are a mixture, of which only the mean is known")
    return reader.ForeignResults("vdbench", reader.with_siblings(cases), notes=tuple(notes))


def _case(run: AveragedRun, asked: Parameters | None) -> shape.Case:
    row = run.average
    total = _total(row, run.seconds)
    sizes = _sizes(row, run, asked)
    iops, bandwidth = reader.number(row.get("rate")), row.get("MB/sec")
    anchors = asked.anchors if asked else []
    return shape.Case(
        name=run.name,
        source="vdbench",
        jobs=(_asked(run, asked),),
        total=total,
        ops=_ops_in_files(row, run.seconds) if _in_files(row) else _ops(row, total, sizes),
        seconds=run.seconds,
        targets=tuple(
            shape.TargetState(path, kind="block" if _is_device(path) else "file")
            for path in (asked.targets if asked else ())
        )
        + tuple(shape.TargetState(path, kind="tree") for path in anchors),
        series=(series := _series(run, sizes)),
        series_of_all=_series_of_all(run) if series is None else None,
        host_cpu_percent=reader.number(row.get("cpu_used")),
        queue_depth=reader.positive(row.get("queue_depth")),
        printed=shape.Printed(
            iops=(iops,) if iops else (),
            bandwidth=(f"{bandwidth} MiB/s",) if reader.number(bandwidth) else (),
        ),
    )


def _is_device(path: str) -> bool:
    return path.startswith("/dev/") or vdbench_parameters.RAW.match(path) is not None


def _in_files(row: dict[str, str]) -> bool:
    """Whether the row is one of operations on files, which are told apart by name."""
    return "Read_rate" in row


def _told(row: dict[str, str], name: str) -> str | None:
    """Return a column of all operations on files: since 5.04.06 they begin with a capital."""
    return row.get(name.capitalize()) or row.get(name)


def _total(row: dict[str, str], seconds: float | None) -> shape.OpMeasurement:
    mean = "Resp" if "Resp" in row else "resp"
    iops, mib = reader.number(_told(row, "rate")), reader.number(row.get("MB/sec"))
    operations = _times(iops, seconds)
    # The mean size has more digits than the bandwidth, where the printed rate is low.
    size = None if _in_files(row) else reader.positive(row.get("bytes/io"))
    return shape.OpMeasurement(
        operations=operations,
        bytes=round(size * operations) if size and operations else _times(mib, seconds, MIB),
        iops=reader.figure(iops),
        bandwidth=reader.figure(None if mib is None else mib * MIB),
        latencies=_latencies(row, mean, operations),
    )


def _times(rate: float | None, seconds: float | None, unit: int = 1) -> int | None:
    return None if rate is None or not seconds else round(rate * unit * seconds)


def _latencies(row: dict[str, str], column: str, count: int | None) -> dict[str, Latency]:
    """Return the response times of a column; `resp` and those of its kind, whatever their case."""
    mean = reader.positive(row.get(column))
    if mean is None:
        return {}
    longest = [f"{column}_max"]
    if column == "resp":
        longest += ["read_max", "write_max"]
    elif not _in_files(row):
        longest = [column.replace("_resp", "_max")]
    known = [one for name in longest if (one := reader.positive(row.get(name))) is not None]
    of_op = row.get(column.removesuffix("_resp") + "_std") if column.endswith("_resp") else None
    deviation = reader.positive(row.get(f"{column}_std") or of_op)
    latency = Latency(
        count=count,
        mean_ns=mean * 1e6,
        stddev_ns=None if deviation is None else deviation * 1e6,
        max_ns=max(known) * 1e6 if known else None,
    )
    return {"lat": latency}


def _ops(
    row: dict[str, str], total: shape.OpMeasurement, sizes: dict[int, float]
) -> dict[shape.Op, shape.OpMeasurement]:
    """Divide the total by the share of reads that was seen.

    The bytes of each are told apart only where all I/Os have one size.
    """
    share = reader.number(row.get("read%"))
    if share is None:
        return {}
    if share in (0.0, 100.0):
        return {"read" if share else "write": total}
    measurements: dict[shape.Op, shape.OpMeasurement] = {}
    for op, part in zip(OPS, (share / 100, 1 - share / 100), strict=True):
        count = round(total.operations * part) if total.operations is not None else None
        iops = total.iops.value * part if total.iops else None
        size = next(iter(sizes), None)
        measurements[op] = shape.OpMeasurement(
            operations=count,
            bytes=None if size is None or count is None else size * count,
            iops=reader.figure(iops),
            bandwidth=reader.figure(None if size is None or iops is None else size * iops),
            latencies=_latencies(row, f"{op}_resp", count),
        )
    return measurements


def _ops_in_files(row: dict[str, str], seconds: float | None) -> dict[shape.Op, shape.OpMeasurement]:
    """Read what a run in a file system says of reads and writes each."""
    measurements: dict[shape.Op, shape.OpMeasurement] = {}
    for op, name in zip(OPS, ("Read", "Write"), strict=True):
        iops, mib = reader.number(row.get(f"{name}_rate")), reader.number(row.get(f"MB_{op}"))
        if not iops:
            continue
        count = _times(iops, seconds)
        measurements[op] = shape.OpMeasurement(
            operations=count,
            bytes=_times(mib, seconds, MIB),
            iops=reader.figure(iops),
            bandwidth=reader.figure(None if mib is None else mib * MIB),
            latencies=_latencies(row, f"{name}_resp", count),
        )
    return measurements


def _asked(run: AveragedRun, asked: Parameters | None) -> shape.JobRequest:
    """Return what was asked for. Threads are for each storage definition, so that one tells the depth."""
    row = run.average
    rate = _rate(row)
    if _in_files(row):
        return shape.JobRequest(
            job=run.name,
            backend=FILES,
            direct=asked.direct if asked else None,
            rate_iops=rate,
            targets=tuple(asked.anchors) if asked else (),
        )
    one = asked is not None and len(asked.targets) == 1 and not asked.counted
    reads = None if asked is not None and asked.verifies else reader.number(row.get("rdpct"))
    sizes = _sizes(row, run, asked)
    return shape.JobRequest(
        job=run.name,
        clones=1 if one else None,
        iodepth=reader.whole(row.get("threads")) or None if one else None,
        read_percent=reads,
        random_percent=reader.number(row.get("seekpct")),
        block_bytes=sizes,
        read_block_bytes=sizes if reads else {},
        write_block_bytes=sizes if reads is not None and reads < 100 else {},
        direct=asked.direct if asked else None,
        rate_iops=rate,
        paced=False if rate is None and reader.positive(row.get("reqrate")) else None,
        targets=tuple(asked.targets) if asked else (),
    )


def _rate(row: dict[str, str]) -> float | None:
    """Return the rate that was asked for; None where it was to go as fast as it can."""
    text = _told(row, "reqrate") or ""
    requested_rate = reader.positive(text)
    if requested_rate is None or UNLIMITED.fullmatch(text):
        return None
    reached = reader.number(_told(row, "rate")) or 0.0
    return (
        None if requested_rate >= LEAST_UNLIMITED and reached < FAR_BELOW * requested_rate else requested_rate
    )


def _sizes(row: dict[str, str], run: AveragedRun, asked: Parameters | None) -> dict[int, float]:
    """Return the size of the I/Os; nothing where the column may hide a table or a range.

    Of a table or a range vdbench writes the first number there.
    """
    size = reader.whole(row.get("xfersize"))
    if not size:
        return {}
    done = reader.positive(row.get("bytes/io"))
    alike = done is not None and abs(done - size) <= SAME_SIZE * size
    specified = "xfersize=" in run.started.loops or (asked is not None and asked.one_size)
    return {size: 1.0} if alike or specified else {}


def _series(run: AveragedRun, sizes: dict[int, float]) -> pl.DataFrame | None:
    """Return the measured intervals of a run; nothing where one does not tell reads and writes apart."""
    step = run.step_s
    if step is None:
        return None
    rows: list[dict[str, Any]] = []
    for index, row in enumerate(run.intervals):
        ops = _ops_in_files(row, step) if _in_files(row) else _ops(row, _total(row, step), sizes)
        if not ops:
            return None
        parts = [_interval(op, index, step, one) for op, one in ops.items()]
        if None in parts:
            return None
        rows += [part for part in parts if part is not None]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def _series_of_all(run: AveragedRun) -> pl.DataFrame | None:
    """Return the measured intervals of a run, reads and writes together: a mixture of sizes tells no more."""
    step = run.step_s
    if step is None:
        return None
    parts = (_interval("all", index, step, _total(row, step)) for index, row in enumerate(run.intervals))
    rows = [part for part in parts if part is not None]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def _interval(op: str, index: int, step: float, one: shape.OpMeasurement) -> dict[str, Any] | None:
    """Return the row of an interval; None where not all of it is told."""
    if one.operations is None or one.bytes is None or one.iops is None or one.bandwidth is None:
        return None
    return {
        "op": op,
        "start_ns": round(index * step * 1e9),
        "end_ns": round((index + 1) * step * 1e9),
        "seconds": step,
        "ops": one.operations,
        "bytes": one.bytes,
        "errors": 0,
        "iops": one.iops.value,
        "bytes_per_s": one.bandwidth.value,
        "mean_ns": None if one.latency is None else one.latency.mean_ns,
    }
