"""DISKSPD's XML results as Cases: one for each time span.

Knows the profile (what was asked for) and the results that stand beside it in the same file.
Judges nothing.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RECOGNISED: Final = re.compile(rb"<Results>\s*<System>|<Results>.{0,4000}?<Profile>", re.DOTALL)
MS: Final = 1e6


def recognises(_: Path, head: bytes) -> bool:
    """Tell a result by its root and what follows it."""
    return RECOGNISED.search(head.replace(b"\x00", b"")) is not None


def read(path: Path) -> reader.ForeignResults:
    """Read a result. Raises InputError for XML that is broken or defines entities."""
    text = reader.text(path)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise reader.wrong(path, "entities")
    try:
        root = ET.fromstring(text.strip())  # noqa: S314 - entities were refused above
    except ET.ParseError as error:
        line, column = error.position
        reason = f"{str(error).partition(': line')[0]} at column {column + 1}"
        raise reader.wrong(path, "not_xml", line, reason=reason) from error
    requested_spans = root.findall("Profile/TimeSpans/TimeSpan")
    measured = root.findall("TimeSpan")
    if root.tag != "Results" or not measured:
        raise reader.wrong(path, "no_time_span")
    cases = [
        _case(
            span, requested_spans[index] if index < len(requested_spans) else None, f"time span {index + 1}"
        )
        for index, span in enumerate(measured)
    ]
    version = root.findtext("System/Tool/Version") or ""
    return reader.ForeignResults(f"DISKSPD {version[:32]}".strip(), reader.with_siblings(cases))


def _case(span: ET.Element, asked: ET.Element | None, name: str) -> shape.Case:
    seconds = reader.positive(span.findtext("TestTimeSeconds"))
    jobs = (
        tuple(_asked(target, asked) for target in asked.findall("Targets/Target"))
        if asked is not None
        else ()
    )
    parts: dict[shape.Op, shape.OpMeasurement] = {}
    for op, label in (("read", "Read"), ("write", "Write")):
        measurement = _direction(span, label, seconds)
        if measurement is not None:
            parts["read" if op == "read" else "write"] = measurement
    title = ", ".join(job.job for job in jobs[:3]) or name
    return shape.Case(
        name=title if asked is None or len(jobs) else name,
        source="diskspd",
        jobs=jobs,
        total=_total(span, parts),
        ops=parts,
        seconds=seconds,
        targets=tuple(
            shape.TargetState(job.job, kind="block" if job.job.startswith(("#", "\\\\.\\")) else "file")
            for job in jobs
        ),
        host_cpu_percent=reader.number(span.findtext("CpuUtilization/Average/UsagePercent")),
        host_cpus=reader.whole(span.findtext("ProcCount")),
    )


def _sum(span: ET.Element, name: str) -> int | None:
    """Add a counter of all targets of all threads."""
    values = [reader.whole(one.text) for one in span.findall(f"Thread/Target/{name}")]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _direction(span: ET.Element, what: str, seconds: float | None) -> shape.OpMeasurement | None:
    ios, moved = _sum(span, f"{what}Count"), _sum(span, f"{what}Bytes")
    if not ios:
        return None
    mean = reader.positive(span.findtext(f"Latency/Average{what}Milliseconds"))
    return shape.OpMeasurement(
        operations=ios,
        bytes=moved,
        iops=reader.figure(ios / seconds if seconds else None),
        bandwidth=reader.figure(moved / seconds if moved is not None and seconds else None),
        latencies=_latencies(span, what, mean, ios),
    )


def _latencies(span: ET.Element, what: str, mean_ms: float | None, count: int | None) -> dict[str, Latency]:
    if mean_ms is None:
        return {}
    buckets = [
        (reader.number(one.findtext("Percentile")), reader.positive(one.findtext(f"{what}Milliseconds")))
        for one in span.findall("Latency/Bucket")
    ]
    table = {percent: value * MS for percent, value in buckets if percent is not None and value is not None}
    deviation = reader.positive(
        span.findtext("Latency/LatencyStdev" if what == "Total" else f"Latency/{what}LatencyStdev")
    )
    latency = Latency(
        count=count,
        mean_ns=mean_ms * MS,
        stddev_ns=None if deviation is None else deviation * MS,
        max_ns=table.get(100.0),
        printed={percent: value for percent, value in table.items() if 0 < percent < 100},
    )
    return {"lat": latency}


def _total(span: ET.Element, parts: dict[shape.Op, shape.OpMeasurement]) -> shape.OpMeasurement:
    if not parts:
        return shape.OpMeasurement()
    added = reader.added([*parts.values()])
    mean = reader.positive(span.findtext("Latency/AverageTotalMilliseconds"))
    return shape.OpMeasurement(
        operations=added.operations,
        bytes=added.bytes,
        iops=added.iops,
        bandwidth=added.bandwidth,
        latencies=_latencies(span, "Total", mean, added.operations) or added.latencies,
    )


def _true(element: ET.Element, name: str) -> bool | None:
    value = element.findtext(name)
    return None if value is None else value.strip().lower() in ("true", "1")


def _asked(target: ET.Element, span: ET.Element | None) -> shape.JobRequest:
    """Return what was asked of one target; `-F` and `-O` count threads and requests for all of them."""
    path = target.findtext("Path") or "target"
    size = reader.whole(target.findtext("BlockSize"))
    writes = reader.number(target.findtext("WriteRatio"))
    reads = None if writes is None else 100 - min(100.0, writes)
    for_all = (reader.whole(span.findtext("ThreadCount")) or 0) if span is not None else 0
    threads = None if for_all else reader.whole(target.findtext("ThreadsPerFile"))
    depth = reader.whole(target.findtext("RequestCount"))
    throughput = reader.positive(target.findtext("Throughput"))
    sizes = {size: 1.0} if size else {}
    return shape.JobRequest(
        job=path,
        clones=threads,
        iodepth=None if for_all else depth,
        read_percent=reads,
        random_percent=_random(target),
        block_bytes=sizes,
        read_block_bytes=sizes if reads else {},
        write_block_bytes=sizes if reads is not None and reads < 100 else {},
        direct=_true(target, "DisableOSCache"),
        synchronous=_true(target, "WriteThrough"),
        rate_bytes_per_s=_rate(throughput, target, threads),
        targets=(path,),
        clones_share=_share(target, threads),
        size_bytes=_working_set(target),
        payload=_payload(target),
        runtime_s=reader.positive(span.findtext("Duration")) if span is not None else None,
        ramp_s=reader.number(span.findtext("Warmup")) if span is not None else None,
    )


def _share(target: ET.Element, threads: int | None) -> bool | None:
    """Whether threads start together: they do, unless they are given a stride or take turns (-si)."""
    if threads is None or threads < 2:
        return None
    stride = reader.whole(target.findtext("ThreadStride"))
    return not stride and not _true(target, "InterlockedSequential")


def _random(target: ET.Element) -> float | None:
    ratio = reader.number(target.findtext("RandomRatio"))
    if ratio is not None:
        return ratio
    if reader.positive(target.findtext("Random")) is not None:
        return 100.0
    return 0.0 if target.find("StrideSize") is not None else None


def _rate(throughput: float | None, target: ET.Element, threads: int | None) -> float | None:
    """Return the rate asked for, which counts bytes a millisecond for each thread."""
    element = target.find("Throughput")
    if throughput is None or element is None or element.get("unit", "").upper() == "IOPS":
        return None
    return throughput * 1000 * (threads or 1)


def _working_set(target: ET.Element) -> int | None:
    limit = reader.whole(target.findtext("MaxFileSize"))
    return limit or reader.whole(target.findtext("FileSize")) or None


def _payload(target: ET.Element) -> shape.PayloadProperties | None:
    pattern = target.findtext("WriteBufferContent/Pattern")
    kinds: Sequence[str] = ("zero", "random")
    if pattern is None:
        return None
    return shape.PayloadProperties(
        kind="zero" if pattern == kinds[0] else "random" if pattern == kinds[1] else "pattern", repeats=True
    )
