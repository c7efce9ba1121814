"""Options of fio, each read for itself, to the fields of a job.

Knows what fio makes of several together: which one goes before another, what holds without any,
and where that is a trap. Knows no text of an option and no host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, RefusedError
from loadstone.formats.fio import stamps
from loadstone.messages import make_error, say
from loadstone.workload.addresses import UNIFORM, Aging, Distribution
from loadstone.workload.block_sizes import fixed
from loadstone.workload.engine_choice import BatchSizes
from loadstone.workload.model import Job, Note
from loadstone.workload.output_requests import LogRequests
from loadstone.workload.payload import CompressibleContent, PayloadRequests, RepeatedContent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import NoteKind

DEFAULT_BLOCK_BYTES: Final = 4096
DEFAULT_ENGINE: Final = "psync"
"""fio's on Linux."""
_OF_A_RING: Final = ("registerfiles", "fixedbufs", "sqthread_poll", "force_async", "hipri")
_BATCH: Final = {
    "submit": "iodepth_batch",
    "complete_min": "iodepth_batch_complete_min",
    "complete_max": "iodepth_batch_complete_max",
    "low": "iodepth_low",
}
_BATCHING: Final = (None, "io_uring", "io_uring_cmd", "libaio", "posixaio")
_REAL_TIME: Final = 1
DEFAULT_CHUNK_BYTES: Final = 512
DEFAULT_SET_PERCENT: Final = 5
_NONE: Final = (None, None, None)
_AGING: Final = "aging."
_NOT_AGED: Final = {"addresses.random_generator": "lfsr", "addresses.norandommap": True}
"""What sprandom sets; another value is an error, as in fio."""
_SIZES: Final = ("bssplit", "bsrange", "bs")
"""Each goes before those behind it."""
_MIXED: Final = ("rw", "randrw")
_RECORD: Final = ("logs", "stats")


@dataclass(slots=True)
class Lowering:
    """The options of a job by their fields, on their way."""

    fields: dict[str, Any]
    set_at: dict[str, Where]
    where: Where
    """Of the job."""
    strict: bool = False
    """What fio does goes before what its user can have meant."""
    base: Job | None = None
    """The job in which they are set; None: they are all of it."""
    notes: list[Note] = field(default_factory=list)

    def note(self, kind: NoteKind, name: str, text: str) -> None:
        """Say something about an option."""
        self.notes.append(Note(where=self.at(name), text=text, kind=kind))

    def at(self, name: str) -> Where:
        """Return where a value was written, or the job's place."""
        return self.set_at.get(name, self.where)

    def move(self, name: str, to: str) -> None:
        """Let a value have another field."""
        if name in self.fields:
            self.fields[to] = self.fields.pop(name)
            self.set_at[to] = self.set_at.pop(name)

    def known(self, name: str, default: object) -> Any:
        """Return a value that is given, or the base's."""
        if name in self.fields:
            return self.fields[name]
        return default if self.base is None else self.base.value(name)


def lowered(
    fields: Mapping[str, Any],
    set_at: Mapping[str, Where],
    *,
    where: Where,
    strict: bool = False,
    base: Job | None = None,
) -> Lowering:
    """Return the fields of a job that options ask for, with what is to be said about them.

    Raises InputError and RefusedError for options that do not go together.
    """
    lowering = Lowering(dict(fields), dict(set_at), where, strict, base)
    if base is None or base.blocks is not None:
        rw = _direction(lowering)
        _sizes(lowering, rw)
        _addresses(lowering)
        _aging(lowering, rw)
        _open_files(lowering, rw)
        _zones(lowering)
    _seeds(lowering)
    _recording(lowering)
    _engine(lowering)
    _batch(lowering)
    _priorities(lowering)
    _payload(lowering)
    _verification(lowering)
    _steady_state(lowering)
    return lowering


def _direction(lowering: Lowering) -> str:
    rw = str(lowering.known("mix.rw", "read"))
    random = rw.startswith("rand")
    number = lowering.fields.pop("addresses.rw_number", None)
    if "mix.rw" in lowering.fields:
        lowering.fields["addresses.stride_bytes"] = 0 if random else number or 0
        lowering.fields["addresses.run_length"] = (number or 1) if random else 1
        lowering.set_at["addresses.stride_bytes"] = lowering.set_at["addresses.run_length"] = lowering.set_at[
            "mix.rw"
        ]
    if "mix.read_percent" in lowering.fields and rw not in _MIXED:
        lowering.note("info", "mix.read_percent", say("formats_fio.lower.no_mix", rw=rw))
    return rw


def _sizes(lowering: Lowering, rw: str) -> None:
    """Of each direction a split goes before a range, and a range before a fixed size."""
    size_options = {name: lowering.fields.pop(f"sizes.{name}", _NONE) for name in _SIZES}
    by_order = bool(lowering.fields.pop("sizes.bs_is_seq_rand", False))
    options = [name for name in _SIZES if any(size_options[name])]
    before = lowering.base.blocks if lowering.base else None
    if not options and not by_order and before:
        return
    standing = before.sizes.bs if before else fixed(DEFAULT_BLOCK_BYTES)
    sizes: list[BlockSizes] = [
        next((size_options[name][i] for name in options if size_options[name][i]), standing[i])
        for i in range(3)
    ]
    if by_order:
        sizes = [sizes[1] if rw.startswith("rand") else sizes[0]] * 3
        if any(share not in (None, 100) for share in lowering.known("addresses.percentage_random", _NONE)):
            raise make_error(
                RefusedError,
                "formats_fio.lower.bs_is_seq_rand",
                where=lowering.set_at["sizes.bs_is_seq_rand"],
            )
    for at, better in enumerate(options):
        for worse in options[at + 1 :]:
            if lowering.set_at[f"sizes.{better}"] != lowering.set_at[f"sizes.{worse}"]:
                text = say("formats_fio.lower.other_sizes", worse=worse, better=better)
                lowering.note("trap", f"sizes.{worse}", text)
    lowering.fields["sizes.bs"] = tuple(sizes)
    lowering.fields["outputs.bs_is_seq_rand"] = by_order
    if options:
        lowering.set_at["sizes.bs"] = lowering.set_at[f"sizes.{options[0]}"]


def _addresses(lowering: Lowering) -> None:
    lowering.fields.pop("addresses.softrandommap", None)
    order = lowering.fields.pop("addresses.rw_sequencer", None)
    if order is not None:
        lowering.fields["addresses.run_identical"] = order == "identical"
    shares = lowering.fields.get("addresses.percentage_random")
    if shares is not None:
        lowering.fields["addresses.percentage_random"] = tuple(
            100.0 if share is None else float(share) for share in shares
        )


def _aging(lowering: Lowering, rw: str) -> None:
    """Let writes age what they write, as far as fio does it."""
    names = [name for name in lowering.fields if name.startswith(_AGING)]
    aging_options = {name.removeprefix(_AGING): lowering.fields.pop(name) for name in names}
    standing: tuple[Distribution, ...] = lowering.known("addresses.random_distribution", (UNIFORM,) * 3)
    before = standing[1].aging
    if not aging_options.pop("asked", before is not None):
        if before is not None:
            lowering.fields["addresses.random_distribution"] = (UNIFORM,) * 3
        for name in aging_options:
            text = say("formats_fio.lower.no_effect_without", missing="sprandom=1")
            lowering.note("info", f"{_AGING}{name}", text)
        return
    where = lowering.at(f"{_AGING}asked")
    other = next(
        (name for name, wanted in _NOT_AGED.items() if lowering.fields.get(name, wanted) != wanted), None
    )
    if rw != "randwrite" or other is not None or any(one.kind not in ("random", "aged") for one in standing):
        raise make_error(InputError, "formats_fio.lower.sprandom", where=where)
    aged = Distribution(kind="aged", aging=(before or Aging()).model_copy(update=aging_options))
    lowering.fields["addresses.random_distribution"] = (UNIFORM, aged, UNIFORM)
    lowering.set_at["addresses.random_distribution"] = where


def _seeds(lowering: Lowering) -> None:
    """Let a sequence repeat unless one of two options says that it does not."""
    options = [name for name in ("seeds.randrepeat", "seeds.allrandrepeat") if name in lowering.fields]
    if options:
        against = [name for name in options if lowering.fields[name] is False]
        lowering.set_at["seeds.repeatable"] = lowering.set_at[(against or options)[0]]
        lowering.fields["seeds.repeatable"] = not against
    for name in options:
        del lowering.fields[name]


def _recording(lowering: Lowering) -> None:
    """Say how finely I/Os have to be recorded for the logs that are asked for."""
    for name in [name for name in lowering.fields if name.partition(".")[0] in _RECORD]:
        lowering.move(name, f"outputs.{name}")
    lowering.move("description", "outputs.description")
    lowering.move("process.thread", "outputs.thread")
    own = {
        name.removeprefix("outputs.logs."): value
        for name, value in lowering.fields.items()
        if name.startswith("outputs.logs.")
    }
    if own:
        logs = LogRequests(**own)
        lowering.fields["recording.every_io"] = logs.every_io
        lowering.fields["recording.windows_msec"] = logs.windows_msec


def _engine(lowering: Lowering) -> None:
    """Take fio's default, unless the depth shows that it cannot have been meant."""
    if lowering.known("engine.ioengine", None) is not None:
        return
    if lowering.strict:
        lowering.fields["engine.ioengine"] = DEFAULT_ENGINE
        return
    iodepth = lowering.known("engine.iodepth", None) or 1
    if iodepth > 1 or any(lowering.known(f"engine.{name}", None) for name in _OF_A_RING):
        text = say("formats_fio.lower.depth_without_engine", iodepth=iodepth, engine=DEFAULT_ENGINE)
        lowering.note("trap", "engine.iodepth", text)


def _batch(lowering: Lowering) -> None:
    """Fill in sizes of batches when one is asked for; without any fio submits one I/O at a time."""
    batch_sizes = {
        name: lowering.fields.pop(f"engine.{option}", None)
        for name, option in _BATCH.items()
        if f"engine.{option}" in lowering.fields
    }
    before = None if lowering.base is None else lowering.base.engine.batch
    depth, engine = lowering.known("engine.iodepth", None) or 1, lowering.known("engine.ioengine", None)
    if lowering.base is None and "submit" not in batch_sizes and depth > 1 and engine in _BATCHING:
        lowering.note("info", "engine.iodepth", say("formats_fio.lower.no_batch"))
    if batch_sizes:
        standing = BatchSizes(submit=1, complete_min=1, complete_max=0) if before is None else before
        lowering.fields["engine.batch"] = standing.model_copy(update=batch_sizes)


def _open_files(lowering: Lowering, rw: str) -> None:
    """Tell where a file is left that fio would never leave."""
    most, service = lowering.fields.get("placement.openfiles"), lowering.fields.get("placement.file_service")
    files = len(lowering.fields.get("placement.targets", ())) or lowering.fields.get("placement.nrfiles") or 1
    left = rw.startswith("rand") and (service is None or service.kind != "sequential")
    if most is not None and most < files and left and lowering.fields.get("addresses.norandommap"):
        text = say("formats_fio.lower.file_is_left", most=most, files=files)
        lowering.note("trap", "placement.openfiles", text)


def _zones(lowering: Lowering) -> None:
    """Leave zones out where fio does: "strided zone mode only really works with 1 file"."""
    strided = lowering.fields.get("placement.zone_mode") == "strided"
    if not strided or (lowering.fields.get("placement.openfiles") or 0) < 2:
        return
    lowering.note("trap", "placement.zone_mode", say("formats_fio.lower.strided_files"))
    for name in ("zone_mode", "zone_size_bytes", "zone_range_bytes", "zone_skip_bytes"):
        lowering.fields.pop(f"placement.{name}", None)


def _priorities(lowering: Lowering) -> None:
    """Let I/Os with a priority of their own be real time unless a class is given."""
    by_size = [share for shares in lowering.fields.get("priorities.by_size", ()) for share in shares]
    if any(lowering.fields.get("priorities.percent", ())) or any(share["percent"] for share in by_size):
        classes = lowering.known("priorities.classes", (None, None))
        lowering.fields["priorities.classes"] = tuple(one or _REAL_TIME for one in classes)


def _payload(lowering: Lowering) -> None:
    """Make compressible and repeated content anew for each write, unless an option says that it is not."""
    before = PayloadRequests() if lowering.base is None else lowering.base.payload
    names = [name for name in lowering.fields if name.startswith(("payload.compress_", "payload.dedupe_"))]
    if not names:
        return
    options = {name.removeprefix("payload."): lowering.fields.pop(name) for name in names}
    compress, repeat = _compressible(options, before), _repeated(lowering, options, before)
    lowering.fields |= {"payload.compress": compress, "payload.repeat": repeat}
    for part, name in (("compress", "compress_percent"), ("repeat", "dedupe_percent")):
        lowering.set_at[f"payload.{part}"] = lowering.at(f"payload.{name}")
    set_at = lowering.set_at if lowering.base is None else {**lowering.base.set_at, **lowering.set_at}
    if "payload.refill_buffers" not in set_at:
        lowering.fields["payload.refill_buffers"] = bool(compress or repeat)


def _compressible(options: Mapping[str, Any], before: PayloadRequests) -> CompressibleContent | None:
    old = before.compress
    percent = options.get("compress_percent", old.percent if old else 0)
    chunk = options.get("compress_chunk_bytes") or (old.chunk_bytes if old else DEFAULT_CHUNK_BYTES)
    return CompressibleContent(percent=percent, chunk_bytes=chunk) if percent else None


def _repeated(
    lowering: Lowering, options: Mapping[str, Any], before: PayloadRequests
) -> RepeatedContent | None:
    """Choose how content repeats; a working set without a size is a share of the job's."""
    old = before.repeat
    percent = options.get("dedupe_percent", old.percent if old else 0)
    standing = old.set_percent if old else None
    mode = options.get("dedupe_mode") or ("repeat" if standing is None else "working_set")
    if not percent or mode != "working_set":
        for name, needed in (
            ("dedupe_mode", "dedupe_percentage"),
            ("dedupe_set_percent", "dedupe_mode=working_set"),
            ("dedupe_global", "dedupe_mode=working_set"),
        ):
            if options.get(name) not in (None, False, "repeat"):
                raise make_error(
                    RefusedError,
                    "formats_fio.lower.no_effect_without_other",
                    where=lowering.at(f"payload.{name}"),
                    needed=needed,
                )
        standing = None
    else:
        standing = options.get("dedupe_set_percent", standing or DEFAULT_SET_PERCENT)
    if not percent:
        return None
    return RepeatedContent(
        percent=percent,
        unit_bytes=old.unit_bytes if old else None,
        set_percent=standing,
        set_is_shared=options.get("dedupe_global", old.set_is_shared if old else False),
    )


def _verification(lowering: Lowering) -> None:
    """Let a pattern alone mean `verify=pattern`; fio's null engine verifies nothing."""
    method, pattern = "verification.verify", "verification.verify_pattern"
    if lowering.fields.get(pattern) is not None and lowering.known(method, None) is None:
        lowering.fields[method] = "pattern"
        lowering.set_at[method] = lowering.at(pattern)
    if not lowering.strict:
        stamps.check(lowering)
        return
    lowering.fields["verification.by"] = "headers"
    if lowering.fields.get("engine.ioengine") == "null" and lowering.fields.get(method) is not None:
        lowering.note("trap", method, say("formats_fio.lower.null_keeps_nothing"))
        lowering.fields |= {method: None, pattern: None}


def _steady_state(lowering: Lowering) -> None:
    """Leave out a steady state that is never looked for."""
    rule, duration = "steady.rule", "steady.duration_ns"
    has_rule = lowering.known(rule, None) is not None
    if has_rule == bool(lowering.known(duration, None)):
        return
    name, missing = (rule, "ss_dur") if has_rule else (duration, "ss")
    if not lowering.strict:
        raise make_error(
            RefusedError, "formats_fio.lower.no_effect_without", where=lowering.at(name), missing=missing
        )
    lowering.note("trap", name, say("formats_fio.lower.no_steady_state", missing=missing))
    lowering.fields |= {rule: None, duration: None}
