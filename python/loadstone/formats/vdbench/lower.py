"""A run to a Workload: one job for each workload on each SD.

Knows what vdbench's words mean for a job, what is said about a difference, and what is refused.
Touches no device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench import hosts, joined, open_flags, payload, verify_block
from loadstone.formats.vdbench.address_range import Access, Hits, place
from loadstone.formats.vdbench.entity_values import Seek, Sizes
from loadstone.formats.vdbench.file_systems import file_jobs
from loadstone.formats.vdbench.mix import Mix, addresses, shown_sizes
from loadstone.formats.vdbench.pace import SECOND_NS, paces
from loadstone.formats.vdbench.vocabulary import OF_SDS
from loadstone.messages import make_error, say
from loadstone.workload.model import Job, Note, NoteKind, Workload
from loadstone.workload.placement import Amount, TargetName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.expand import ParameterFileRun, Work
    from loadstone.formats.vdbench.pace import WorkloadPace
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.formats.vdbench.rundef import MaxData
    from loadstone.formats.vdbench.storage import Storage


@dataclass(frozen=True, slots=True)
class Given:
    """What is not in the file: a rate that follows from earlier runs, and what is permitted."""

    rate_iops: float | None = None
    observed: tuple[float, ...] | None = None
    """What each workload of the run did of all I/Os in the maximum of its curve."""
    allow_exec: bool = False


@dataclass(slots=True)
class _Lowering:
    """One run on its way."""

    file: ParameterFile
    run: ParameterFileRun
    notes: list[Note]

    def note(self, where: Where, text: str, kind: NoteKind = "changed") -> None:
        """Say something once."""
        note = Note(where=where, text=text, kind=kind)
        if note not in self.notes:
            self.notes.append(note)


def lower(file: ParameterFile, run: ParameterFileRun, overrides: Given | None = None) -> Workload:
    """Return the Workload of a run.

    Raises RefusedError, with file, line and keyword, for what is understood and not done.
    """
    overrides = overrides or Given()
    making = _Lowering(file, run, list(file.notes))
    if run.file_works:
        jobs = file_jobs(file, run, overrides.rate_iops, making.note)
    else:
        jobs = []
        for work, its_pace in zip(
            run.works, paces(run, overrides.rate_iops, overrides.observed), strict=True
        ):
            jobs += _jobs(making, work, its_pace)
        jobs = _bounded(making, jobs)
    jobs = hosts.placed(file, run, _commands(making, jobs, overrides), making.note)
    return Workload(
        name=run.title,
        jobs=tuple(jobs),
        notes=tuple(making.notes),
        global_options={**facts(run, overrides.rate_iops), **_data(file, run)},
        hand_over=file.general.verified_at is not None,
        sources=file.sources,
    )


def facts(run: ParameterFileRun, rate_iops: float | None = None) -> dict[str, str]:
    """Return what vdbench says about a run: its name, rate, times and loops."""
    variable = run.definition.arrivals.variable
    rate = "variable" if variable else str(run.rate)
    if rate_iops is not None and run.rate.kind == "percent":
        rate = f"{rate_iops:.0f}"
    return {
        "rd": run.name,
        "loops": run.loops,
        ("fwdrate" if run.file_works else "iorate"): rate,
        "controlled": "yes" if run.is_controlled else "no",
        "elapsed": str(run.times.elapsed),
        "warmup": str(run.times.warmup),
        "interval": str(run.times.interval),
        **({"made_for": " ".join(run.made_for)} if run.made_for else {}),
        **({"operations_after": " ".join(run.operations_after)} if run.operations_after else {}),
    }


def workload_facts(work: Work, run: ParameterFileRun) -> dict[str, str]:
    """Return what vdbench says about a workload on an SD."""
    request = _load_of(work, run)
    return _own(work, request, _all_threads(work, run))


def _jobs(making: _Lowering, work: Work, pace: WorkloadPace) -> list[Job]:
    """Return the jobs of a workload on an SD: one, or one for each of its streams."""
    run, workload, storage = making.run, work.workload, work.storage
    _refuse_storage(making, storage)
    sizes, seek, reads, hits = request = _load_of(work, run)
    spot = place(Access(workload, storage, seek, hits, sizes.largest_bytes))
    threads = _all_threads(work, run)
    iodepth = _threads(making, work, threads)
    fields: dict[str, Any] = {
        "name": f"{workload.name}.{storage.name}",
        "where": workload.where,
        "set_at": {**_places(work), **_timed_at(run)},
        "vocabulary": OF_SDS,
        "own_options": _own(work, request, threads),
        "placement.targets": (TargetName(path=storage.lun, written=storage.lun),),
        "engine.ioengine": "io_uring",
        "engine.iodepth": iodepth,
        "placement.offset": spot.offset,
        "placement.size": spot.size,
        "limits.ramp_ns": run.times.ramp * SECOND_NS,
        "limits.runtime_ns": run.times.measured * SECOND_NS,
        "limits.time_based": True,
        **_open(making, work),
        **_payload(making, work, sizes, reads),
        **pace.fields(reads),
    }
    fields |= _served_together(making, work, threads)
    fields |= _verified(making, work, reads)
    fields |= addresses(work, Mix(sizes, seek, reads), spot, verified="verification.verify" in fields)
    if storage.joined:
        fields |= joined.fields(storage, spot, seek, workload.at.get("seekpct", workload.where))
    if seek.ends:
        fields |= {"limits.time_based": False, "limits.ramp_ns": run.times.warmup * SECOND_NS}
        fields["limits.runtime_ns"] = run.times.elapsed * SECOND_NS
    if seek.anywhere:
        making.note(
            workload.at.get("seekpct", workload.where),
            say("formats_vdbench.lower.seqnz"),
        )
    if workload.priority is not None:
        making.note(workload.at["priority"], say("formats_vdbench.lower.priority"))
    if workload.streams is None:
        return [Job.of(fields)]
    if workload.streams.sized:
        making.note(workload.at["streams"], say("formats_vdbench.lower.size_of_streams"), "harmless")
    return _streams(work, workload.streams.parts, Job.of(fields), sizes)


def _refuse_storage(making: _Lowering, storage: Storage) -> None:
    """Raise where an SD cannot be used here, or not with what the file asks of it."""
    if storage.is_of_windows:
        raise make_error(
            RefusedError,
            "formats_vdbench.lower.windows_path",
            where=storage.at["lun"],
            lun=storage.lun,
            storage=storage.name,
        )
    if storage.joined and making.file.general.verified_at is not None:
        raise make_error(
            RefusedError,
            "formats_vdbench.lower.validate_and_joined",
            where=making.file.general.verified_at,
        )


def _places(work: Work) -> dict[str, Where]:
    """Return where the fields of a job were written."""
    workload, storage = work.workload, work.storage
    places = {
        "placement.targets": storage.at["lun"],
        "placement.size": storage.at.get("size", storage.where),
        "engine.iodepth": storage.at.get("threads", storage.where),
        "placement.offset": workload.at.get("range") or storage.at.get("range") or storage.where,
        "engine.direct": workload.at.get("openflags") or storage.at.get("openflags") or storage.where,
        "sizes.bs": workload.at.get("xfersize", workload.where),
        "mix.rw": workload.at.get("rdpct", workload.where),
    }
    return places | {
        "rows": places["sizes.bs"],
        "addresses.random_distribution": places["placement.offset"],
    }


def _timed_at(run: ParameterFileRun) -> dict[str, Where]:
    where = run.definition.where
    at = run.definition.at
    return {
        "limits.runtime_ns": at.get("elapsed", where),
        "limits.ramp_ns": at.get("warmup", where),
        "pacing.rate_iops": at.get("iorate", where),
    }


def _data(file: ParameterFile, run: ParameterFileRun) -> dict[str, str]:
    """Return what reports need of the general section."""
    ratio = run.turn.number("compratio") or file.general.compratio
    settings = {
        "histogram": ",".join(file.general.histogram),
        "compratio": "" if ratio is None else f"{ratio:g}",
        "dedupratio": "" if file.general.dedupratio is None else f"{file.general.dedupratio:g}",
    }
    return {word: text for word, text in settings.items() if text}


_Asked = tuple[Sizes, Seek, float, Hits]
"""What a workload asks for once the loops have had their say."""


def _load_of(work: Work, run: ParameterFileRun) -> _Asked:
    workload, turn = work.workload, run.turn
    reads = turn.number("rdpct")
    return (
        _sizes(work, turn.number("xfersize")),
        _seek(workload.seekpct, turn.number("seekpct")),
        float(workload.rdpct) if reads is None else reads,
        _hits(work, run),
    )


def _all_threads(work: Work, run: ParameterFileRun) -> int:
    return int(run.turn.number("threads") or work.storage.threads)


def _sizes(work: Work, looped: float | None) -> Sizes:
    return work.workload.xfersize if looped is None else Sizes(((int(looped), 100.0),))


def _seek(seek: Seek, looped: float | None) -> Seek:
    if looped is None:
        return seek
    return Seek(0.0, ends=True) if looped == -1 else replace(seek, percent=looped, ends=False)


def _hits(work: Work, run: ParameterFileRun) -> Hits:
    reads, writes = (
        default if (looped := run.turn.number(word)) is None else looped
        for word, default in (("rhpct", work.workload.rhpct), ("whpct", work.workload.whpct))
    )
    area = run.turn.number("hitarea")
    return Hits(reads, writes, int(work.storage.hitarea if area is None else area))


def _threads(making: _Lowering, work: Work, threads: int) -> int:
    """Return the threads of an SD that serve one workload: they are shared by those on the SD."""
    beside = [one for one in making.run.works if one.storage.name == work.storage.name]
    if len(beside) == 1:
        return threads
    if threads < len(beside):
        name, count = work.storage.name, len(beside)
        if threads == 1:
            text = say("formats_vdbench.lower.one_thread", storage=name, workloads=count)
        else:
            text = say(
                "formats_vdbench.lower.threads_in_turn", threads=threads, storage=name, workloads=count
            )
        making.note(work.storage.where, text)
        return 1
    making.note(
        work.storage.where,
        say(
            "formats_vdbench.lower.threads_divided",
            threads=threads,
            storage=work.storage.name,
            workloads=len(beside),
        ),
    )
    position = next(index for index, one in enumerate(beside) if one is work)
    return threads // len(beside) + (position < threads % len(beside))


def _served_together(making: _Lowering, work: Work, threads: int) -> dict[str, Any]:
    """Let workloads take turns on the threads of an SD that has fewer than them."""
    beside = [one for one in making.run.works if one.storage.name == work.storage.name]
    if threads >= len(beside):
        return {}
    position = next(index for index, one in enumerate(beside) if one is work)
    return {"engine.ioengine": "psync", "schedule.thread_of": f"{work.storage.name}.{position % threads}"}


def _open(making: _Lowering, work: Work) -> dict[str, Any]:
    """Return how the SD is opened."""
    run, workload, storage = making.run.definition, work.workload, work.storage
    flags, where = open_flags.that_hold(run, workload, storage)
    fields = open_flags.fields(flags)
    if storage.is_raw and not fields["engine.direct"]:
        fields["engine.direct"] = True
        making.note(where, say("formats_vdbench.lower.direct", lun=storage.lun))
    if fields.get("durability.sync") == "sync":
        making.note(where, say("formats_vdbench.lower.o_sync"), "trap")
    if "fsync" in flags:
        fields["durability.end_fsync"] = True
    if not storage.is_raw and storage.size is not None:
        # A file that is missing or too short is written before the run, as by vdbench's SD_format.
        fields["files.overwrite"] = True
    return fields


def _payload(making: _Lowering, work: Work, sizes: Sizes, reads: float) -> dict[str, Any]:
    """Return what is written."""
    if reads == 100:
        return {}
    general, storage = making.file.general, work.storage
    reduction = payload.Reduction(
        compression=making.run.turn.number("compratio") or general.compratio or 1.0,
        dedup=storage.dedupratio or general.dedupratio or 1.0,
        dedup_at=storage.at.get("dedupratio") or general.at.get("dedupratio") or storage.where,
    )
    return payload.fields(general, reduction, sizes, making.note)


def _verified(making: _Lowering, work: Work, reads: float) -> dict[str, Any]:
    """Return how data is verified."""
    general = making.file.general
    where = general.verified_at
    if where is None:
        return {}
    if work.storage.offset or work.storage.align:
        raise make_error(InputError, "formats_vdbench.lower.validate_and_offset", where=work.storage.where)
    before, after = "no_preread" not in general.validate, "read_after_write" in general.validate
    if (before or after) and reads < 100:
        one = "formats_vdbench.lower.read_before" if before else "formats_vdbench.lower.read_after"
        making.note(where, say("formats_vdbench.lower.read_before_and_after" if before and after else one))
    making.note(where, say("formats_vdbench.lower.stamped"))
    if "time" in general.validate:
        making.note(where, say("formats_vdbench.lower.validate_time"), "harmless")
    if general.journal:
        making.note(general.at["journal"], say("formats_vdbench.lower.journal"))
    return {
        "verification.verify": "crc32c",
        "verification.verify_interval_bytes": verify_block.of(making.file),
        "verification.do_verify": reads < 100,
        "verification.verify_before_write": before and reads < 100,
        "verification.verify_after_write": after and reads < 100,
    }


def _streams(work: Work, count: int, job: Job, sizes: Sizes) -> list[Job]:
    """Divide a job over the equal parts of its range, its threads likewise."""
    where = work.workload.at["streams"]
    if (
        job.placement.size is None
        or job.placement.size.bytes is None
        or job.placement.offset is None
        or job.placement.offset.bytes is None
    ):
        raise make_error(
            RefusedError, "formats_vdbench.lower.streams_without_size", where=where, storage=work.storage.name
        )
    depth = job.engine.iodepth or 1
    if depth % count:
        raise make_error(
            InputError,
            "formats_vdbench.lower.threads_of_streams",
            where=where,
            depth=depth,
            count=count,
            nearest=depth - depth % count + count,
        )
    part = job.placement.size.bytes // count // sizes.largest_bytes * sizes.largest_bytes
    if part < 2 * sizes.largest_bytes:
        raise make_error(InputError, "formats_vdbench.lower.part_small", where=where, part=part)
    rates = tuple(None if rate is None else rate / count for rate in job.pacing.rate_iops)
    return [
        job.changed(
            {
                "name": f"{job.name}.{number + 1}",
                "placement.offset": Amount(bytes=job.placement.offset.bytes + number * part),
                "placement.size": Amount(bytes=part),
                "engine.iodepth": depth // count,
                "pacing.rate_iops": rates,
            }
        )
        for number in range(count)
    ]


def _bounded(making: _Lowering, jobs: list[Job]) -> list[Job]:
    """Let a run end by its data: `maxdata=`, and workloads that stop at the end of their SD."""
    ending = [job for job in jobs if job.limits.time_based is False]
    if ending and len(ending) < len(jobs):
        if len(ending) > 1:
            raise make_error(RefusedError, "formats_vdbench.lower.several_eof", where=ending[1].where)
        jobs = [job.changed({"schedule.exitall": True}) if job is ending[0] else job for job in jobs]
    for limit in making.run.definition.maxdata:
        jobs = _limited(making, jobs, limit)
    return jobs


def _limited(making: _Lowering, jobs: Sequence[Job], limit: MaxData) -> list[Job]:
    """Let jobs end after their part of so many bytes: each SD the same multiple of itself, or equal parts."""
    where = making.run.definition.at[f"maxdata:{limit.of}"]
    does = {"read": 100.0, "write": 0.0}.get(limit.of)
    sizes = {work.storage.lun: work.storage.size for work in making.run.works}
    many = {lun: sum(job.own_options["lun"] == lun for job in jobs) for lun in sizes}
    limited_jobs = []
    for job in jobs:
        lun = job.own_options["lun"]
        if does is not None and float(job.own_options["rdpct"]) != does:
            raise make_error(
                RefusedError, "formats_vdbench.lower.limit_of_direction", where=where, job=job.name
            )
        size = sizes[lun]
        if limit.is_multiple and size is None:
            raise make_error(
                RefusedError,
                "formats_vdbench.lower.multiple_without_size",
                where=where,
                storage=job.own_options["sd"],
            )
        whole = limit.amount * (size or 0) / many[lun] if limit.is_multiple else limit.amount / len(jobs)
        limited_jobs.append(
            job.changed({"limits.time_based": False, "limits.io_size": Amount(bytes=int(whole))})
        )
    one = "formats_vdbench.lower.maxdata"
    making.note(where, say("formats_vdbench.lower.maxdata_in_parts" if len(jobs) > 1 else one))
    return limited_jobs


def _commands(making: _Lowering, jobs: list[Job], overrides: Given) -> list[Job]:
    """Put the commands of a run before and after it, where they are permitted."""
    definition = making.run.definition
    update: dict[str, Any] = {}
    for word, field in (("startcmd", "process.exec_prerun"), ("endcmd", "process.exec_postrun")):
        command = getattr(definition, word)
        if command is None:
            continue
        where = definition.at[word]
        if not overrides.allow_exec:
            raise make_error(
                RefusedError, "formats_vdbench.lower.command", where=where, word=word, command=f"{command!r}"
            )
        if "$" in command:
            making.note(where, say("formats_vdbench.lower.dollar"), "trap")
        update[field] = command
        update["set_at"] = {**update.get("set_at", jobs[0].set_at), field: where}
    return [jobs[0].changed(update), *jobs[1:]] if update else jobs


def _own(work: Work, targets: _Asked, threads: int) -> dict[str, str]:
    """Return what reports in vdbench's shape say about a workload on an SD."""
    sizes, seek, reads, hits = targets
    return {
        "wd": work.workload.name,
        "sd": work.storage.name,
        **({"joined": " ".join(one.name for one in work.storage.joined)} if work.storage.joined else {}),
        "lun": work.storage.lun,
        "xfersize": str(sizes.pairs[0][0]),
        "xfersizes": shown_sizes(sizes),
        "threads": str(threads),
        "rdpct": f"{reads:g}",
        "rhpct": f"{hits.reads:g}",
        "whpct": f"{hits.writes:g}",
        "seekpct": "-1" if seek.ends else f"{seek.percent:g}",
        **({"skew": f"{work.share:g}"} if work.share is not None else {}),
        **({"size": str(work.storage.size)} if work.storage.size is not None else {}),
    }
