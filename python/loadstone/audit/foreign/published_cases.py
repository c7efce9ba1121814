"""Published figures to Cases.

Knows what follows from what was written down: the bandwidth from the rate and the size of an I/O,
the mean of repeats and its error. Judges nothing and makes up nothing.
"""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import polars as pl

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import published, reader
from loadstone.path import quantity
from loadstone.path.ceilings import parse_link
from loadstone.path.layers import Ceiling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.audit.foreign.published import Matrix, MatrixRow, Published, PublishedResult, System


def read(path: Path) -> reader.ForeignResults:
    """Read a file of published figures; baselines follow the result they belong to."""
    document = published.read(path)
    cases: list[shape.Case] = []
    for result in document.result:
        load = _load(result)
        cases.append(_case(document, result.name, load, result, result))
        for baseline in result.baseline:
            name = f"{result.name} ({baseline.name})"
            cases.append(_case(document, name, load, baseline, None, baseline=True))
    for matrix in document.matrix:
        cases += _cells(document, matrix)
    return reader.ForeignResults("published", reader.with_siblings(cases), document.title, document.source)


def _load(*parts: published.PublishedLoad) -> dict[str, Any]:
    """Return what is said of a load, a later part's word before an earlier one's."""
    return {
        name: value
        for part in parts
        for name in published.PublishedLoad.model_fields
        if (value := getattr(part, name)) is not None
    }


def _cells(document: Published, matrix: Matrix) -> list[shape.Case]:
    cases = []
    for row in matrix.row:
        for index, column in enumerate(matrix.column):
            cell_figures = {key: _cell(row, key, index) for key in ("iops", "bandwidth", "latency")}
            if any(value not in (None, ()) for value in cell_figures.values()):
                figures = published.PublishedFigures(**cell_figures, author_says=row.author_says)
                name = f"{row.name}: {column.name}"
                load = _load(matrix, column, row)
                cases.append(_case(document, name, load, figures, None, row=row.name))
    return cases


def _cell(row: MatrixRow, key: str, index: int) -> Any:
    values = getattr(row, key)
    return (values[index] or None) if values else None


def _case(
    document: Published,
    name: str,
    load: dict[str, Any],
    figures: published.PublishedFigures,
    result: PublishedResult | None,
    *,
    baseline: bool = False,
    row: str | None = None,
) -> shape.Case:
    system = next((one for one in document.system if one.name == load.get("system")), None)
    request = _asked(name, load, system)
    measured = _measured(load, figures)
    moved = quantity.size_bytes(figures.written) if figures.written else None
    rate = measured.bandwidth.value if measured.bandwidth else None
    runtime = request.runtime_s
    return shape.Case(
        name=name,
        source="published",
        jobs=(request,),
        total=measured,
        ops={asked_op: measured} if (asked_op := _op(load)) else {},
        seconds=runtime or (moved / rate if moved and rate else None),
        targets=_targets(load, system),
        series=_series(result, _op(load)) if result is not None and result.series else None,
        environment={"governor": figures.governor} if figures.governor else None,
        declared=_declared(system, figures.author_says),
        generator_cpu_percent=figures.generator_cpu_percent,
        queue_depth=figures.queue_depth,
        repeats=_repeats(figures),
        printed=shape.Printed(published.many(figures.iops), published.many(figures.bandwidth)),
        setup=shape.PublishedSetup(
            system=load.get("system"),
            drives=_drives(document, system),
            drive_writes_per_write=system.drive_writes_per_write if system else None,
            row=row,
            baseline=baseline,
            new_file=bool(load.get("new_file")),
        ),
    )


def _op(load: dict[str, Any]) -> shape.Op | None:
    op = load.get("op")
    return op if op in ("read", "write") else None


def _asked(name: str, load: dict[str, Any], system: System | None) -> shape.JobRequest:
    """Return what was asked for: `jobs` of the same kind on a target each are one with that many clones."""
    percent = {"read": 100.0, "write": 0.0}.get(load.get("op", ""), load.get("read_percent"))
    access = {"random": 100.0, "sequential": 0.0}.get(load.get("access", ""), load.get("random_percent"))
    jobs, numjobs = load.get("jobs"), load.get("numjobs")
    size = quantity.size_bytes(load["size"]) if "size" in load else None
    block = {quantity.block_bytes(load["block"]): 1.0} if "block" in load else {}
    return shape.JobRequest(
        job=name,
        clones=(jobs or 1) * (numjobs or 1) if jobs or numjobs else None,
        iodepth=load.get("iodepth"),
        read_percent=percent,
        random_percent=access,
        block_bytes=block,
        read_block_bytes=block if percent else {},
        write_block_bytes=block if percent is not None and percent < 100 else {},
        direct=load.get("direct"),
        targets=tuple(f"{system.name if system else 'target'} {index + 1}" for index in range(jobs or 1)),
        ranges=_ranges(load, system, size),
        size_bytes=size,
        runtime_s=quantity.time_ns(load["runtime"]) / 1e9 if "runtime" in load else None,
        ramp_s=quantity.time_ns(load["ramp"]) / 1e9 if "ramp" in load else None,
    )


def _ranges(
    load: dict[str, Any], system: System | None, size: int | None
) -> tuple[tuple[shape.Range, ...], ...]:
    """Return where each clone works: clones of a job start together unless an increment is written down."""
    jobs, numjobs = load.get("jobs"), load.get("numjobs")
    if numjobs is None or size is None:
        return ()
    step = quantity.size_bytes(load["offset_increment"]) if "offset_increment" in load else 0
    stem = system.name if system else "target"
    if (jobs or 1) * numjobs > reader.MOST_CLONES:
        return ()
    clones = [(job, clone) for job in range(jobs or 1) for clone in range(numjobs)]
    return tuple((shape.Range(f"{stem} {job + 1}", clone * step, size),) for job, clone in clones)


def _measured(load: dict[str, Any], figures: published.PublishedFigures) -> shape.OpMeasurement:
    block = quantity.block_bytes(load["block"]) if "block" in load else None
    iops = _figure([float(value) for value in published.many(figures.iops)])
    moved = _figure([quantity.bandwidth_bytes_per_s(value) for value in published.many(figures.bandwidth)])
    if moved is None and iops is not None and block:
        moved = shape.Figure(iops.value * block, iops.error * block if iops.error is not None else None)
    if iops is None and moved is not None and block:
        iops = shape.Figure(moved.value / block, moved.error / block if moved.error is not None else None)
    latencies = {}
    if figures.latency is not None:
        latencies["unknown"] = Latency(
            mean_ns=quantity.time_ns(figures.latency),
            max_ns=quantity.time_ns(figures.latency_max) if figures.latency_max else None,
            stddev_ns=quantity.time_ns(figures.latency_stddev) if figures.latency_stddev else None,
        )
    return shape.OpMeasurement(
        bytes=quantity.size_bytes(figures.written) if figures.written else None,
        iops=iops,
        bandwidth=moved,
        latencies=latencies,
    )


def _figure(values: Sequence[float]) -> shape.Figure | None:
    if not values:
        return None
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 2 else None
    return shape.Figure(fmean(values), error)


def _repeats(figures: published.PublishedFigures) -> tuple[shape.Figure, ...]:
    values = [float(value) for value in published.many(figures.iops)] or [
        quantity.bandwidth_bytes_per_s(value) for value in published.many(figures.bandwidth)
    ]
    return tuple(shape.Figure(value) for value in values) if len(values) > 1 else ()


def _targets(load: dict[str, Any], system: System | None) -> tuple[shape.TargetState, ...]:
    if system is None:
        return ()
    new = load.get("new_file") is True
    return (
        shape.TargetState(
            path=system.name,
            size_bytes=quantity.size_bytes(system.capacity) if system.capacity else None,
            kind="file" if load.get("new_file") is not None else None,
            allocated_bytes_before=0 if new else None,
            allocated_bytes_after=quantity.size_bytes(load["size"]) if new and "size" in load else None,
            rotational=system.rotational,
        ),
    )


def _drives(document: Published, system: System | None) -> str | None:
    """Return the name of the system that the drives are called after, so that layouts can be compared."""
    visited = set()
    while system is not None and system.same_drives_as is not None and system.name not in visited:
        visited.add(system.name)
        system = next(one for one in document.system if one.name == system.same_drives_as)
    return system.name if system else None


def _declared(system: System | None, author_says: str | None) -> shape.Declared | None:
    if system is None:
        return shape.Declared(author_says=author_says) if author_says else None
    links = [parsed for link in system.links if (parsed := parse_link(link)) is not None]
    return shape.Declared(
        ceilings=(*links, *map(_specified, system.specified)),
        links=system.links,
        media=system.media,
        rotational=system.rotational,
        spindles=system.drives,
        raid=system.raid,
        cache_bytes=quantity.size_bytes(system.cache) if system.cache else None,
        memory_bytes=quantity.size_bytes(system.memory) if system.memory else None,
        author_says=author_says,
    )


def _specified(line: published.SpecifiedRate) -> Ceiling:
    value = quantity.bandwidth_bytes_per_s(line.bandwidth) if line.bandwidth else float(line.iops or 0)
    return Ceiling(
        quantity="bytes_per_s" if line.bandwidth else "iops",
        op=line.op,
        per_s=value,
        kind="specified",
        source=line.source,
        access=line.access,
    )


def _series(result: PublishedResult, op: shape.Op | None) -> pl.DataFrame | None:
    if result.series is None or op is None:
        return None
    step = quantity.time_ns(result.series.interval)
    block = quantity.block_bytes(result.block) if result.block else None
    rows = [
        {
            "op": op,
            "start_ns": round(index * step),
            "end_ns": round((index + 1) * step),
            "seconds": step / 1e9,
            "ops": iops * step / 1e9,
            "bytes": iops * step / 1e9 * block if block else None,
            "errors": 0,
            "iops": iops,
            "bytes_per_s": iops * block if block else None,
            "mean_ns": None,
        }
        for index, iops in enumerate(result.series.iops)
    ]
    return pl.DataFrame(rows)
