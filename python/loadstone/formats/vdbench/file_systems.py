"""A run on file systems to a Workload: one job for each workload, file system and operation.

Knows what vdbench's words mean for work in a tree, what is said about a difference, and what is
refused. Touches no directory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Protocol

from loadstone import messages
from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench import open_flags, payload, tree_shape, verify_block
from loadstone.formats.vdbench.entity_values import Sizes, skew_shares
from loadstone.formats.vdbench.file_work import TRANSFERS
from loadstone.formats.vdbench.mix import shown_sizes, sized
from loadstone.formats.vdbench.pace import AHEAD, FLOW, PROCESSES, SECOND_NS, in_whole_numbers
from loadstone.formats.vdbench.values import shown
from loadstone.formats.vdbench.vocabulary import OF_FSDS
from loadstone.messages import make_error, say
from loadstone.workload.block_sizes import fixed
from loadstone.workload.model import Job
from loadstone.workload.placement import Amount, TargetName
from loadstone.workload.trees import ALONE, FileSelection, TreeShape, TreeWork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.expand import ParameterFileRun
    from loadstone.formats.vdbench.file_work import FileWork
    from loadstone.formats.vdbench.filesystem import FileSystem, FileWorkload
    from loadstone.formats.vdbench.loops import Turn
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.workload.model import NoteKind

_LOOPS: Final = (
    *("xfersize", "threads", "rdpct", "operations", "compratio", "iorate"),
    *("depth", "width", "files", "sizes", "totalsize", "wss"),
)
USE_UP: Final = ("mkdir", "rmdir", "create", "delete", "move")
"""Operations that end when all of the tree is there, or gone."""
EVEN_PERCENT: Final = 50.0
"""Half of the files have half of the choices: nothing is skewed."""
_MIDPOINT: Final = 3.0
"""What `poisson` and `skewed` mean without a number."""


class Say(Protocol):
    """Who takes what is said about a run, each thing once."""

    def __call__(self, where: Where, text: str, kind: NoteKind = "changed") -> None:
        """Say something."""


def file_jobs(file: ParameterFile, run: ParameterFileRun, rate_ops: float | None, note: Say) -> list[Job]:
    """Return the jobs of a run on file systems. `rate_ops`: the rate where it follows from earlier runs.

    Raises InputError for what means nothing and RefusedError for what is not done, each with file,
    line and keyword.
    """
    _check(file, run)
    if run.formats is not None:
        return _format(file, run, note)
    _say_threads(run, note)
    rates = _rates(run, rate_ops)
    jobs = [_job(file, run, work, rate, note) for work, rate in zip(run.file_works, rates, strict=True)]
    jobs = _bounded(run, jobs, note)
    weights = _weights(run, rates)
    return [
        job
        if weight is None
        else job.changed({"pacing.flow": weight, "pacing.flow_id": FLOW, "pacing.flow_ahead": AHEAD})
        for job, weight in zip(jobs, weights, strict=True)
    ]


def _check(file: ParameterFile, run: ParameterFileRun) -> None:
    """Refuse what has no effect on file systems, or is not done there."""
    definition, general = run.definition, file.general
    for loop, value in definition.loops.items():
        if loop not in _LOOPS:
            raise make_error(InputError, "formats_vdbench.files.no_effect", where=value.where, loop=loop)
    if general.journal:
        raise make_error(RefusedError, "formats_vdbench.files.journal", where=general.at["journal"])
    arrivals = definition.arrivals
    if arrivals.variable:
        raise make_error(
            RefusedError,
            "formats_vdbench.files.distribution",
            where=definition.at["arrivals"],
            value="spike" if arrivals.spike else "variable",
        )
    if "operations" in definition.loops and definition.operations:
        raise make_error(InputError, "formats_vdbench.files.operations", where=definition.at["operations"])


def _rates(run: ParameterFileRun, rate_ops: float | None) -> list[float | None]:
    """Return the operations per second of each workload on each file system; None: as many as it can."""
    definition = run.definition
    where = definition.at.get("fwdrate", definition.where)
    parts = _parts(run)
    if run.rate.kind in ("max", "curve"):
        return [None] * len(parts)
    total = run.rate.value if run.rate.kind == "number" else rate_ops
    if total is None:
        raise make_error(
            InputError, "formats_vdbench.files.rate_not_measured", where=where, rate=str(run.rate)
        )
    return [total * part / 100 for part in parts]


def _parts(run: ParameterFileRun) -> list[float]:
    """Return each workload's percent of the operations, as skew= says it."""
    definition = run.definition
    where = definition.at.get("fwdrate", definition.where)
    return skew_shares([work.skew for work in run.file_works], 0.0001, definition.name, where)


def _weights(run: ParameterFileRun, rates: Sequence[float | None]) -> list[int | None]:
    """Return each thread's weight where skew= shares out what is done as fast as it can be."""
    works = run.file_works
    if any(rate is not None for rate in rates) or not any(work.skew for work in works):
        return [None] * len(works)
    each = zip(_parts(run), works, strict=True)
    return [*in_whole_numbers([part / work.threads for part, work in each])]


def _job(file: ParameterFile, run: ParameterFileRun, work: FileWork, rate: float | None, note: Say) -> Job:
    workload, system = work.workload, work.system
    reads = _reads(run, work)
    if reads is not None and "sequential" in workload.fileio:
        raise make_error(
            InputError, "formats_vdbench.files.sequential_mix", where=workload.at.get("rdpct", workload.where)
        )
    if reads is not None and work.operation not in TRANSFERS:
        note(
            workload.at.get("rdpct", workload.where),
            say("formats_vdbench.files.read_and_write", workload=workload.name, operation=work.operation),
            "trap",
        )
    fields = {
        **_common(run, system, workload),
        **_written(file, run, work, reads, note),
        **verified(file, note),
        "name": f"{workload.name}.{system.name}"
        + (f".{work.operation}" if run.definition.operations else ""),
        "schedule.numjobs": work.threads,
        **_times(run, work),
        "limits.time_based": True,
        "pacing.rate_process": PROCESSES[run.definition.arrivals.kind],
        "work": _work(run, work, rate, note),
        **sized_transfers(run, workload),
        **_direction(work, reads),
    }
    if work.goal is not None:
        fields["placement.targets"] = (
            *fields["placement.targets"],
            TargetName(path=work.goal.anchor, written=work.goal.anchor),
        )
    if rate is None:
        del fields["pacing.rate_process"]
    fields["own_options"] |= {
        "operation": "rdpct" if reads is not None else work.operation,
        "threads": str(work.threads),
        **({"rdpct": f"{reads:g}"} if reads is not None else {}),
        **({"skew": f"{work.skew:g}"} if work.skew is not None else {}),
    }
    return Job.of(fields)


def _bounded(run: ParameterFileRun, jobs: list[Job], note: Say) -> list[Job]:
    """Let each job end after its part of `maxdata=`, in the shares of `skew=`."""
    for limit in run.definition.maxdata:
        where = run.definition.at[f"maxdata:{limit.of}"]
        if limit.is_multiple:
            raise make_error(
                RefusedError, "formats_vdbench.files.maxdata_of_sds", where=where, amount=f"{limit.amount:g}"
            )
        ways = {"read": ("read", "randread"), "write": ("write", "randwrite")}.get(limit.of)
        for job in jobs:
            work = job.work
            if isinstance(work, TreeWork) and work.operation != "transfer":
                raise make_error(
                    RefusedError,
                    "formats_vdbench.files.maxdata_of_operation",
                    where=where,
                    job=job.name,
                    operation=work.operation,
                )
            if ways is not None and (job.blocks is None or job.blocks.mix.rw not in ways):
                raise make_error(
                    RefusedError, "formats_vdbench.files.limit_of_direction", where=where, job=job.name
                )
        jobs = [
            job.changed(
                {
                    "limits.time_based": False,
                    "limits.io_size": Amount(bytes=int(limit.amount * part / 100)),
                    "set_at": {**job.set_at, "limits.io_size": where},
                }
            )
            for job, part in zip(jobs, _parts(run), strict=True)
        ]
        one = "formats_vdbench.lower.maxdata"
        note(where, say("formats_vdbench.files.maxdata_in_parts" if len(jobs) > 1 else one))
    return jobs


def _times(run: ParameterFileRun, work: FileWork) -> dict[str, int]:
    """Return ramp and runtime.

    What can be done to each file only once is not thrown away with the first interval, unless there
    is a warmup: it may be all there is.
    """
    times = run.times
    if work.operation in USE_UP or "once" in work.workload.fileselect:
        return {"limits.ramp_ns": times.warmup * SECOND_NS, "limits.runtime_ns": times.elapsed * SECOND_NS}
    return {"limits.ramp_ns": times.ramp * SECOND_NS, "limits.runtime_ns": times.measured * SECOND_NS}


def _reads(run: ParameterFileRun, work: FileWork) -> float | None:
    """Return the percent of reads of a mix; None: reads or writes alone."""
    looped = run.turn.number("rdpct")
    return work.workload.rdpct if looped is None else looped


def _direction(work: FileWork, reads: float | None) -> dict[str, Any]:
    direction = "write" if work.operation in ("write", "create") else "read"
    fields: dict[str, Any] = {}
    if reads is not None:
        if reads != int(reads):
            raise make_error(
                RefusedError,
                "formats_vdbench.files.rdpct_fraction",
                where=work.workload.at.get("rdpct", work.workload.where),
                reads=f"{reads:g}",
            )
        direction = "read" if reads == 100 else "write" if reads == 0 else "rw"
        if direction == "rw":
            fields["mix.read_percent"] = int(reads)
    if work.workload.fileio[0] == "random" and (reads is not None or work.operation in TRANSFERS):
        return {**fields, "mix.rw": f"rand{direction}", "addresses.norandommap": True}
    return {**fields, "mix.rw": direction}


def sized_transfers(run: ParameterFileRun, workload: FileWorkload) -> dict[str, Any]:
    """Return the sizes of transfers."""
    looped = run.turn.number("xfersize")
    if looped is not None:
        return {"sizes.bs": fixed(int(looped))}
    return sized(workload.xfersize)


def _common(run: ParameterFileRun, system: FileSystem, workload: FileWorkload) -> dict[str, Any]:
    """Return what every job in a tree has."""
    definition = run.definition
    flags, where = open_flags.that_hold(definition, workload, system)
    size = run.turn.number("xfersize")
    sizes = shown(size) if size is not None else shown_sizes(workload.xfersize)
    return {
        "where": workload.where,
        "set_at": {
            "placement.targets": system.at.get("anchor", system.where),
            "schedule.numjobs": workload.at.get("threads", workload.where),
            "sizes.bs": workload.at.get("xfersize", workload.where),
            "limits.runtime_ns": definition.at.get("elapsed", definition.where),
            "engine.direct": where,
        },
        "vocabulary": OF_FSDS,
        "placement.targets": (TargetName(path=system.anchor, written=system.anchor),),
        "own_options": {
            "fwd": workload.name,
            "fsd": system.name,
            "anchor": system.anchor,
            "xfersizes": sizes,
        },
        "durability.fsync_on_close": "fsync" in flags,
        "files.invalidate": False,
        **open_flags.fields(flags),
    }


def _written(
    file: ParameterFile, run: ParameterFileRun, work: FileWork, reads: float | None, note: Say
) -> dict[str, Any]:
    """Return what is written, where something is."""
    if reads == 100 or (reads is None and work.operation != "write"):
        return {}
    size = run.turn.number("xfersize")
    sizes = work.workload.xfersize if size is None else Sizes(((int(size), 100.0),))
    return _content(file, run, work.system, sizes, note)


def verified(file: ParameterFile, say: Say) -> dict[str, Any]:
    """Return how what files hold is verified."""
    general = file.general
    if not general.validate:
        return {}
    where = general.at["validate"]
    before, after = "no_preread" not in general.validate, "read_after_write" in general.validate
    say(where, messages.say("formats_vdbench.file_work.validate"))
    return {
        "verification.verify": "crc32c",
        "verification.verify_interval_bytes": verify_block.of(file),
        "verification.verify_before_write": before,
        "verification.verify_after_write": after,
    }


def _content(
    file: ParameterFile, run: ParameterFileRun, system: FileSystem, transfers: Sizes, note: Say
) -> dict[str, Any]:
    general = file.general
    reduction = payload.Reduction(
        compression=run.turn.number("compratio") or general.compratio or 1.0,
        dedup=general.dedupratio or 1.0,
        dedup_at=general.at.get("dedupratio", system.where),
    )
    fields = payload.fields(general, reduction, transfers, note)
    if "payload.repeat" in fields:
        tree = tree_shape.shape(system, run.turn)
        if tree.around:
            raise make_error(
                RefusedError,
                "formats_vdbench.files.dedup_around_mean",
                where=system.at.get("sizes", system.where),
                system=system.name,
            )
        every = [size for size, _ in tree.sizes]
        payload.whole_units(general, every, f"the size of a file of fsd={system.name}", "sizes=")
    return fields


def _work(run: ParameterFileRun, work: FileWork, rate: float | None, note: Say) -> dict[str, Any]:
    """Return the work in a tree without its transfers."""
    workload, system = work.workload, work.system
    mixed = _reads(run, work) is not None
    operation = "transfer" if mixed or work.operation in TRANSFERS else work.operation
    access, *more = workload.fileio
    random = operation == "transfer" and access == "random"
    where = workload.at.get("fileio", workload.where)
    if access.startswith("seqnz") or access == "sequentialnz":
        raise make_error(RefusedError, "formats_vdbench.files.seqnz", where=where)
    if "shared" in more and workload.fileselect[0] in ("random", "poisson", "skewed"):
        raise make_error(InputError, "formats_vdbench.files.random_shared", where=where)
    delete = "delete" in more and operation == "transfer" and work.operation == "write"
    if "delete" in more and mixed:
        raise make_error(InputError, "formats_vdbench.files.sequential_delete", where=where)
    if "delete" in more and not delete:
        note(where, say("formats_vdbench.files.delete"), "harmless")
    shape = tree_shape.shape(system, run.turn)
    on_directories = operation in ("mkdir", "rmdir")
    return {
        "kind": "tree",
        "shape": shape,
        "operation": operation,
        # Files are selected; directories are taken as they come.
        "select": FileSelection() if on_directories else _select(workload),
        "random": random,
        "delete_before": delete,
        "fill": False,  # Only a format fills what it creates.
        "shared": "shared" in more and operation not in ALONE,
        "working_set_bytes": 0 if on_directories else _working_set(system, run.turn, shape),
        "rate_ops": rate,
        **_stop(workload),
    }


def _working_set(system: FileSystem, turn: Turn, tree: TreeShape) -> int:
    looped = turn.number("wss")
    working_set_bytes = int(system.workingsetsize or 0) if looped is None else int(looped)
    if working_set_bytes > tree.expected_bytes and len(tree.sizes) == 1 and not tree.around:
        raise make_error(
            InputError,
            "formats_vdbench.files.working_set",
            where=system.at.get("workingsetsize", system.where),
            asked=shown(working_set_bytes),
            expected=shown(tree.expected_bytes),
            system=system.name,
        )
    return working_set_bytes


def _stop(workload: FileWorkload) -> dict[str, int]:
    """Return when a file is left for another."""
    if workload.stopafter is None:
        return {}
    value, percent = workload.stopafter
    return {"stop_percent" if percent else "stop_transfers": int(value)}


def _select(workload: FileWorkload) -> FileSelection:
    """Return how the next file is chosen."""
    words, once = [word for word in workload.fileselect if word != "once"], "once" in workload.fileselect
    where = workload.at.get("fileselect", workload.where)
    numbers = [float(word) for word in words if word[:1].isdigit() or word[:1] == "."]
    ways = [word for word in words if word[:1].isalpha()] or ["sequential"]
    crowded = bool(numbers) or ways[0] in ("poisson", "skewed")
    if ways[0] == "random" or crowded:
        if once:
            raise make_error(RefusedError, "formats_vdbench.files.fileselect_once", where=where, ways=ways[0])
        if not crowded:
            return FileSelection(kind="random")
        midpoint = numbers[0] if numbers else _MIDPOINT
        # Files are chosen by an exponential distribution whose mean is 1/midpoint of them.
        half_percent = 100 * math.log(2) / midpoint if midpoint else 100.0
        if half_percent >= EVEN_PERCENT:
            raise make_error(
                InputError, "formats_vdbench.files.midpoint", where=where, midpoint=f"{midpoint:g}"
            )
        return FileSelection(kind="skewed", midpoint_percent=half_percent)
    return FileSelection(random_start=ways[0] in ("seqnz", "sequentialnz"), once=once)


def _format(file: ParameterFile, run: ParameterFileRun, note: Say) -> list[Job]:
    """Return the jobs that make the trees of a run: directories, and when these are there, files."""
    flags = run.formats or ()
    restart = "restart" in flags
    clean = "clean" in flags
    stages = () if clean else ("mkdir",) if "directories" in flags else ("mkdir", "create")
    if clean or not restart:
        stages = ("delete", "rmdir", *stages)
    jobs: list[list[Job]] = [[] for _ in stages]
    for work in run.file_works:
        system, workload = work.system, work.workload
        where = system.at.get("shared", system.where)
        if system.shared and not clean and not restart:
            raise make_error(
                InputError, "formats_vdbench.files.shared_format", where=where, system=system.name
            )
        common = {
            **_common(run, system, workload),
            **_content(file, run, system, workload.xfersize, note),
            **verified(file, note),
            **sized(workload.xfersize),
            "schedule.numjobs": workload.threads,
            "mix.rw": "write",
            "limits.ramp_ns": 0,
            "limits.time_based": False,
        }
        if "limited" in flags:
            common |= {"limits.runtime_ns": run.times.elapsed * SECOND_NS}
        shape = tree_shape.shape(system, run.turn)
        for operation, stage_jobs in zip(stages, jobs, strict=True):
            own = {**common["own_options"], "operation": operation, "threads": str(workload.threads)}
            tree = {
                "kind": "tree",
                "shape": shape,
                "operation": operation,
                "clear": clean or not restart,
                # A run that only removes has something to do where there is nothing, too.
                "removes": operation == "delete" or (operation == "rmdir" and not clean),
            }
            name = f"format.{system.name}.{operation}"
            stage_jobs.append(Job.of({**common, "own_options": own, "name": name, "work": tree}))
    for later in jobs[1:]:
        later[0] = later[0].changed({"schedule.stonewall": True})
    return [job for stage in jobs for job in stage]


def _say_threads(run: ParameterFileRun, note: Say) -> None:
    """Say where threads do not divide over file systems and operations."""
    used: dict[str, int] = {}
    requested: dict[str, tuple[int, Where]] = {}
    for work in run.file_works:
        used[work.workload.name] = used.get(work.workload.name, 0) + work.threads
        where = work.workload.at.get("threads", work.workload.where)
        requested[work.workload.name] = (work.asked_threads, where)
    for name, (wanted, where) in requested.items():
        if used[name] != wanted:
            text = say("formats_vdbench.files.threads", threads=wanted, workload=name, used=used[name])
            note(where, text, "changed")
