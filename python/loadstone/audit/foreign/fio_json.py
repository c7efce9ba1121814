"""fio's JSON and JSON+ output as Cases: one for each group of jobs that ran together.

Knows the fields of fio 2 and 3 and what group_reporting hides. Judges nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import fio_case, fio_disks, fio_options, reader
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGINS: Final = re.compile(rb'^\{\s*"fio version"\s*:\s*"', re.MULTILINE)
"""fio's own writing: messages may come before it."""
REWRITTEN: Final = re.compile(rb'\A\s*\{.*"fio version"\s*:\s*"', re.DOTALL)
"""Whatever wrote the document again may have sorted its keys."""
CALENDAR_MS: Final = 1e12
"""A start after this (2001) is of a calendar; smaller ones are of some other clock."""
CLOCK_MS: Final = 50.0
"""By which the moment of a print and the count of seconds may differ."""
NEAR: Final = 0.1
"""Threads that group_reporting hides are worked out from their times, so well."""


def recognises(_: Path, head: bytes) -> bool:
    """Tell fio's JSON by its first key: programs that read or write it have the word, too."""
    return BEGINS.search(head) is not None or REWRITTEN.match(head) is not None


def read(path: Path) -> reader.ForeignResults:
    """Read a file, which may hold several runs; of what one run printed (`--status-interval`) the last."""
    every = _documents(path)
    runs: list[dict[str, Any]] = []
    for document in every:
        before = next((at for at, run in enumerate(runs) if _is_of_run(document, run)), None)
        if before is None:
            runs.append(document)
        else:
            runs[before] = document
    entries = [_entries(path, root) for root in runs]
    notes: list[str] = []
    if len(runs) < len(every) and not all(map(_began_ms, every)):
        notes.append(say("audit.foreign.last_result", documents=len(every)))
    cases = [case for root, own in zip(runs, entries, strict=True) for case in _cases(root, own, notes)]
    version = str(runs[-1].get("fio version", "fio"))[:32]
    storage_cases = fio_case.of_storage(path, cases, notes)
    return reader.ForeignResults(f"fio JSON ({version})", storage_cases, notes=tuple(dict.fromkeys(notes)))


def _entries(path: Path, root: dict[str, Any]) -> list[_Entry]:
    entries = root.get("jobs") or root.get("client_stats")
    if not isinstance(entries, list) or not entries:
        raise reader.wrong(path, "no_jobs")
    clients = [one for one in entries if isinstance(one, dict) and one.get("jobname") != "All clients"]
    if not clients:
        raise reader.wrong(path, "jobs_of_other_shape")
    return [_Entry.of(one, _texts(root.get("global options"))) for one in clients]


def _is_of_run(document: dict[str, Any], run: dict[str, Any]) -> bool:
    """Tell whether the program that printed a result printed this one, too: it began at one moment.

    True where that is not known. Programs that began side by side have other options.
    """
    one, other = _began_ms(document), _began_ms(run)
    if one is None or other is None:
        return True
    options, others = _options_by_name(document), _options_by_name(run)
    alike = all(options[name] == others[name] for name in options.keys() & others.keys())
    return alike and one[0] < other[1] and other[0] < one[1]


def _options_by_name(document: dict[str, Any]) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Return the options of each job by its name, and those of all jobs."""
    general = _texts(document.get("global options"))
    return {str(one.get("jobname")): (_texts(one.get("job options")), general) for one in _listed(document)}


def _listed(document: dict[str, Any]) -> list[dict[str, Any]]:
    entries = document.get("jobs") or document.get("client_stats")
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _began_ms(document: dict[str, Any]) -> tuple[float, float] | None:
    """Return between which moments fio began, ms: it counts its seconds (`elapsed`) up to the next whole one.

    Source: stat.c of fio, `show_thread_status_json`, and libfio.c, `mtime_since_genesis`.
    """
    elapsed_s = max((reader.positive(one.get("elapsed")) or 0.0 for one in _listed(document)), default=0.0)
    in_seconds, in_ms = (reader.positive(document.get(key)) for key in ("timestamp", "timestamp_ms"))
    if not elapsed_s or (in_ms is None and in_seconds is None):
        return None
    printed_ms = in_ms if in_ms is not None else 1e3 * (in_seconds or 0.0)
    wide_ms = 1e3 if in_ms is not None else 2e3
    first_ms = printed_ms - 1e3 * elapsed_s
    return first_ms - CLOCK_MS, first_ms + wide_ms + CLOCK_MS


def _documents(path: Path) -> list[dict[str, Any]]:
    """Find the JSON objects of a file that are results: fio writes messages between them."""
    text, decoder, documents = reader.text(path), json.JSONDecoder(), []
    at, problem, line = text.find("{"), "there is no object in it", None
    while at >= 0:
        try:
            one, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            problem, line, end = *_problem(error), at + 1
            following = text.find("\n{", end)
            at = following + 1 if following >= 0 else -1
            continue
        if isinstance(one, dict) and "fio version" in one:
            documents.append(one)
        at = text.find("{", end)
    if not documents:
        raise reader.wrong(path, "not_whole", line, reason=problem)
    return documents


def _problem(error: Exception) -> tuple[str, int | None]:
    """Return what is wrong with it in words, and its line."""
    if isinstance(error, RecursionError):
        return "it is nested too deep", None
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}", error.lineno
    return str(error), None


def _texts(value: Any) -> dict[str, str]:
    """Return options as text; anything else is not known."""
    if not isinstance(value, dict):
        return {}
    return {str(key): one for key, one in value.items() if isinstance(one, str)}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of `jobs`, and what only JSON says of it."""

    job: fio_case.FioJob
    group: int
    options: dict[str, str] | None
    general: dict[str, str]
    threads: int | None
    """Threads it stands for, by the sum of their runtimes."""
    start_ms: float | None

    @classmethod
    def of(cls, job: dict[str, Any], general: dict[str, str]) -> _Entry:
        """Read an entry."""
        job_options = job.get("job options")
        sections = {op: section for op in fio_case.OPS if isinstance(section := job.get(op), dict)}
        mixed = job.get("mixed")
        every = [*sections.values(), mixed if isinstance(mixed, dict) else {}]
        runtime = max((reader.number(section.get("runtime")) or 0.0 for section in every), default=0.0)
        whole = reader.positive(job.get("job_runtime"))
        threads = _plausible(max(1, round(whole / runtime))) if whole and runtime else None
        cpu = [reader.number(job.get(key)) for key in ("usr_cpu", "sys_cpu")]
        known = [one for one in cpu if one is not None]
        return cls(
            job=fio_case.FioJob(
                name=str(job.get("jobname") or "job"),
                ops={
                    op: measurement
                    for op, one in sections.items()
                    if (measurement := _measured(one, threads or 1)) is not None
                },
                mixed=_measured(mixed, threads or 1) if isinstance(mixed, dict) else None,
                seconds=runtime / 1e3,
                cpu_percent=sum(known) * (threads or 1) if known else None,
                error=reader.whole(job.get("error")) or 0,
                flush=_flush(job.get("sync"), runtime / 1e3),
                clones=threads or 1,
                depths=_depths(job.get("iodepth_level")),
            ),
            group=reader.whole(job.get("groupid")) or 0,
            options=_texts(job_options) if isinstance(job_options, dict) else None,
            general=general,
            threads=threads,
            start_ms=reader.positive(job.get("job_start")),
        )

    @property
    def numjobs(self) -> int | None:
        """Clones asked for, None where no options were recorded."""
        if self.options is None:
            return None
        return _plausible(reader.whole((self.general | self.options).get("numjobs", "1"))) or 1


def _plausible(clones: int | None) -> int | None:
    """Return a number of clones; None for one that no run has: each has a place."""
    return clones if clones is not None and clones <= reader.MOST_CLONES else None


def _measured(section: dict[str, Any], clones: int) -> shape.OpMeasurement | None:
    """Read one direction; None when it did nothing."""
    ios = reader.whole(section.get("total_ios"))
    iops = reader.number(section.get("iops"))
    if not ios and not iops:
        return None
    # fio 2 had no io_kbytes, and counted io_bytes in KiB.
    moved = reader.number(section.get("io_bytes"))
    if moved is not None and "io_kbytes" not in section:
        moved *= 1024
    rate = reader.number(section.get("bw_bytes"))
    kib_per_s = reader.number(section.get("bw"))
    if rate is None and kib_per_s is not None:
        rate = kib_per_s * 1024
    return shape.OpMeasurement(
        operations=ios,
        bytes=None if moved is None else int(moved),
        iops=reader.figure(iops),
        bandwidth=reader.figure(rate),
        latencies=_latencies(section),
        spread=fio_case.spread(
            iops,
            reader.number(section.get("iops_mean")),
            reader.number(section.get("iops_stddev")),
            reader.whole(section.get("iops_samples")),
            clones=clones,
            seconds=(reader.number(section.get("runtime")) or 0.0) / 1e3,
        ),
    )


def _depths(table: Any) -> dict[int, float]:
    """Read how many I/Os were outstanding as each began."""
    levels = table if isinstance(table, dict) else {}
    read = {reader.whole(str(key).removeprefix(">=")): reader.number(value) for key, value in levels.items()}
    return {key: value for key, value in read.items() if key and value is not None}


def _flush(section: Any, seconds: float) -> shape.OpMeasurement | None:
    """Read the flushes of a job; None when it made none, or an old fio did not time them."""
    if not isinstance(section, dict):
        return None
    latencies = _latencies(section)
    # fio 3.33 and others count none of them in total_ios, and time all.
    timed = max((one.count or 0 for one in latencies.values()), default=0)
    count = reader.whole(section.get("total_ios")) or timed
    if not count or not latencies or not seconds:
        return None
    return shape.OpMeasurement(operations=count, iops=shape.Figure(count / seconds), latencies=latencies)


def _latencies(section: dict[str, Any]) -> dict[str, Latency]:
    """Read the latencies of one direction; fio 2 has them in microseconds."""
    for unit, scale in (("_ns", 1.0), ("", 1000.0)):
        every = {kind: _latency(section.get(kind + unit), scale) for kind in ("lat", "clat")}
        known = {kind: latency for kind, latency in every.items() if latency is not None}
        if known:
            return known
    return {}


def _latency(told: Any, scale: float) -> Latency | None:
    """Read one kind; None where fio did not measure it."""
    if not isinstance(told, dict):
        return None
    mean, percentiles = reader.positive(told.get("mean")), _percentiles(told, scale)
    if mean is None and not percentiles:
        return None
    figures = {name: reader.number(told.get(name)) for name in ("min", "max", "stddev")}
    return Latency(
        count=reader.whole(told.get("N")),
        mean_ns=_scaled(mean, scale),
        stddev_ns=_scaled(figures["stddev"], scale),
        min_ns=_scaled(figures["min"], scale),
        max_ns=_scaled(figures["max"], scale),
        printed=percentiles,
    )


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _percentiles(told: dict[str, Any], scale: float) -> dict[float, float]:
    table = told.get("percentile")
    if not isinstance(table, dict):
        return {}
    percentiles = {reader.number(key): reader.positive(value) for key, value in table.items()}
    return {key: value * scale for key, value in percentiles.items() if key is not None and value is not None}


def _cases(root: dict[str, Any], entries: list[_Entry], notes: list[str]) -> list[shape.Case]:
    """Return the cases of one run."""
    groups: dict[int, list[_Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.group].append(entry)
    phases = _together(list(groups.values()))
    cases = [_case(phase, notes) for phase in phases]
    cases = [
        replace(case, ran_s=_ran(root, phase, case.seconds, alone=len(phases) == 1))
        for phase, case in zip(phases, cases, strict=True)
    ]
    if len(cases) == 1:
        cases = [fio_disks.with_traffic(cases[0], fio_disks.of_json(root.get("disk_util")))]
    return cases


def _ran(
    root: dict[str, Any], entries: Sequence[_Entry], seconds: float | None, *, alone: bool
) -> tuple[float, float] | None:
    """Return when a phase ran: by the starts of its jobs, or backwards from when all was printed."""
    starts = [entry.start_ms for entry in entries if entry.start_ms is not None]
    if seconds is None:
        return None
    if len(starts) == len(entries) and min(starts) >= CALENDAR_MS:
        return min(starts) / 1e3, max(starts) / 1e3 + seconds
    printed_ms = reader.positive(root.get("timestamp_ms"))
    printed_s = printed_ms / 1e3 if printed_ms else reader.positive(root.get("timestamp"))
    return (printed_s - seconds, printed_s) if alone and printed_s else None


def _together(groups: list[list[_Entry]]) -> list[list[_Entry]]:
    """Join groups that ran at the same time (new_group), where fio tells when jobs started."""
    phases: list[list[_Entry]] = []
    for group in groups:
        before = phases[-1] if phases else []
        starts = [entry.start_ms for entry in group]
        ends = [entry.start_ms + 1e3 * entry.job.seconds for entry in before if entry.start_ms is not None]
        known = [start for start in starts if start is not None]
        if ends and len(known) == len(starts) and min(known) < max(ends) - 100:
            before.extend(group)
        else:
            phases.append(list(group))
    return phases


def _case(entries: Sequence[_Entry], notes: list[str]) -> shape.Case:
    jobs: dict[tuple[str, int], list[_Entry]] = defaultdict(list)
    for entry in entries:
        jobs[entry.job.name, entry.group].append(entry)
    requests = tuple(one for clones in jobs.values() for one in _asked(clones, notes))
    return fio_case.case([entry.job for entry in entries], requests, notes)


def _asked(clones: list[_Entry], notes: list[str]) -> tuple[shape.JobRequest, ...]:
    """Return what a job asked for; what group_reporting left of several jobs is told by their defaults."""
    first = clones[0]
    if first.options is None:
        count = len(clones) if len(clones) > 1 else first.threads
        return (shape.JobRequest(job=first.job.name, clones=count),)
    numjobs = first.numjobs or 1
    threads = len(clones) if len(clones) > 1 else first.threads or numjobs
    if len(clones) == 1:
        threads = _whole_jobs(threads, numjobs)
    options = first.general | first.options
    hidden = len(clones) == 1 and threads != numjobs and not numjobs * 0.95 < threads < numjobs * 1.05
    if not hidden:
        return (fio_options.asked(first.job.name, options, max(numjobs, len(clones))),)
    notes.append(
        f"{first.job.name} stands for {threads} clones of several jobs (group_reporting): only what all jobs "
        "have in common is known of them"
    )
    return _common(first, threads)


def _whole_jobs(threads: int, numjobs: int) -> int:
    """Return threads, which are worked out from times, as so many jobs of `numjobs` where that is near."""
    near = max(1, round(threads / numjobs)) * numjobs
    return near if abs(near - threads) <= NEAR * threads else threads


_PACES: Final = frozenset({"rate", "rate_iops", "rate_process", "thinktime", "flow"})


def _common(entry: _Entry, threads: int) -> tuple[shape.JobRequest, ...]:
    """Return what the options of all jobs say, and the directions that were measured.

    The options of one job are recorded: where it goes its own way, others may, too. Where it has
    as many clones as all are told to have, the threads are so many jobs of that many clones.
    """
    own = entry.options or {}
    general = {name: value for name, value in entry.general.items() if name not in own}
    request = fio_options.asked(f"{entry.job.name} and others", general, threads)
    each = reader.whole(general.get("numjobs", "1")) or 1
    even = each > 1 and threads % each == 0
    named = "filename" in own and not {"offset_increment"} & (own.keys() | general.keys())
    one = shape.JobRequest(
        job=request.job,
        clones=each if even else threads,
        clones_from_times=True,
        clones_share=True if even and named else None,
        iodepth=request.iodepth
        if "iodepth" in general or request.backend in fio_options.SYNCHRONOUS
        else None,
        read_percent=fio_case.read_percent(set(entry.job.ops)),
        random_percent=request.random_percent if {"rw", "readwrite"} & general.keys() else None,
        block_bytes=request.block_bytes if {"bs", "blocksize"} & general.keys() else {},
        direct=request.direct if {"direct", "buffered"} & general.keys() else None,
        backend=request.backend if "ioengine" in general else None,
        runtime_s=request.runtime_s,
        ramp_s=request.ramp_s if "ramp_time" not in own else None,
        paced=request.paced if not _PACES & own.keys() else None,
    )
    return (one,) * (threads // each if even else 1)
