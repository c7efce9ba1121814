"""What else differs between results that are compared, in the field's words, the most suspect first.

Knows which facts of an environment and which settings of a job an engineer asks about first, and
which move from minute to minute and are no difference. Judges nothing.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone import units
from loadstone.comparison.pattern import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadstone.audit.case import Case, JobRequest, Source
    from loadstone.bundle.read import Bundle
    from loadstone.comparison.phase import ComparedPhase

Place = Literal["environment", "plan"]

MOVING: Final = (
    "host.uptime_s",
    "host.load_average",
    "host.memory.available_bytes",
    "host.clock.available",
    "host.cgroup.*",
    "targets[[]*].path",
    "targets[[]*].real_path",
    "targets[[]*].devices*",
    "targets[[]*].allocated_bytes",
    "targets[[]*].file_system_space.*",
    "targets[[]*].missing",
    "targets[[]*].size_bytes",
    "targets[[]*].kind",
    "targets[[]*].device_number",
    "targets[[]*].mount.point",
    "targets[[]*].mount.source",
    "paths[[]*].target",
    "paths[[]*].gaps*",
    "paths[[]*].layers[[]*].name",
    "paths[[]*].layers[[]*].below*",
    "paths[[]*].layers[[]*].counters",
    "paths[[]*].layers[[]*].ceilings*",
    "paths[[]*].layers[[]*].facts.*bytes*",
    "paths[[]*].layers[[]*].facts.*share*",
    "paths[[]*].layers[[]*].facts.*extents*",
    "paths[[]*].layers[[]*].facts.backing_file",
    "paths[[]*].layers[[]*].facts.complete",
    "paths[[]*].layers[[]*].facts.missing",
    "paths[[]*].layers[[]*].facts.source",
    "paths[[]*].layers[[]*].facts.uuid",
    "devices.*.name",
    "devices.*.start_bytes",
    "devices.*.dm_uuid",
    "devices.*.backing_file",
    "devices.*.disk",
    "devices.*.on*",
    "same_sequence*",
)
"""Facts of the environment that differ from run to run on the same system, or only name what was tested."""

WORDS: Final[tuple[tuple[str, str], ...]] = (
    ("host.kernel", "kernel"),
    ("host.cpu.governors*", "CPU governor"),
    ("governor", "CPU governor"),
    ("devices.*.queue.scheduler", "I/O scheduler"),
    ("*.facts.scheduler", "I/O scheduler"),
    ("targets[[]*].mount.file_system", "file system"),
    ("targets[[]*].mount.options", "mount options"),
    ("targets[[]*].mount.super_options", "file system options"),
    ("devices.*.device.firmware_rev", "firmware"),
    ("devices.*.device.rev", "firmware"),
    ("devices.*.device.model", "device model"),
    ("devices.*.device.vendor", "device vendor"),
    ("devices.*.serial_sha256", "device (by its serial number)"),
    ("devices.*.md_level", "RAID level"),
    ("*.facts.data_profile", "RAID level"),
    ("devices.*.queue.write_cache", "write cache"),
    ("devices.*.queue.nr_requests", "queue length"),
    ("devices.*.queue.read_ahead_kb", "read-ahead"),
    ("devices.*.queue.nomerges", "merging of requests"),
    ("devices.*.queue.wbt_lat_usec", "writeback throttling"),
    ("devices.*.queue.max_sectors_kb", "largest request"),
    ("devices.*.queue.rotational", "rotating medium"),
    ("devices.*.queue.rq_affinity", "completion on the submitting CPU"),
    ("devices.*.device.queue_depth", "device queue depth"),
    ("devices.*.size_bytes", "device size"),
    ("host.cpu.model", "CPU model"),
    ("host.cpu.online", "CPUs"),
    ("host.cpu.usable", "usable CPUs"),
    ("host.cpu.turbo", "CPU turbo"),
    ("host.cpu.smt", "CPU hyper-threading"),
    ("host.cpu.max_khz*", "CPU frequency limit"),
    ("host.cpu.min_khz*", "CPU frequency minimum"),
    ("host.cpu.frequency_drivers*", "CPU frequency driver"),
    ("host.cpu.mitigations*", "CPU mitigations"),
    ("host.memory.total_bytes", "memory"),
    ("host.memory.vm_*", "writeback settings"),
    ("host.memory.transparent_huge_pages", "transparent huge pages"),
    ("host.virtualisation.*", "virtualisation"),
    ("host.host_name", "host"),
    ("host.operating_system", "operating system"),
    ("host.kernel_command_line", "kernel command line"),
    ("host.loadstone_version", "Loadstone version"),
)
"""What an engineer calls a fact, the most suspect first."""
MOST_NAMED: Final = 3
"""Of more values of one kind the first are named."""
JOB_WORDS: Final = (
    "block size",
    "read share",
    "random share",
    "iodepth",
    "clones",
    "direct I/O",
    "synchronous writes",
    "fsync at the end",
    "I/O backend",
    "rate",
    "size of the tested range",
    "fill of the target",
    "written data",
    "run time",
    "ramp",
)
"""Settings of a job, the most suspect first; `fill` is what of the target had been written before.

Those that only name what was tested come after everything."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same on all sides; a side that does not know it has a dash."""

    where: Place
    key: str
    """In the field's words."""
    values: tuple[str, ...]


def differences(
    environments: Sequence[dict[str, Any] | None], phases: Sequence[ComparedPhase]
) -> list[Difference]:
    """Return what differs between one phase of each side: jobs by their settings, hosts by their facts."""
    known = [] if any(one is None for one in environments) else [_facts(one or {}) for one in environments]
    facts = list(_differing("environment", known, [words for _, words in WORDS])) if known else []
    jobs = [_settings(phase) for phase in phases]
    settings = _differing("plan", jobs, JOB_WORDS, both=True)
    every = [*settings, *facts]
    first = dict.fromkeys((*SUSPECTS, *JOB_WORDS, *(words for _, words in WORDS)))
    rank = {words: at for at, words in enumerate(first)}
    return sorted(every, key=lambda one: rank.get(one.key, len(rank)))


MEASURED_BY: Final[dict[Source, str]] = {
    "bundle": "Loadstone",
    "fio": "fio",
    "vdbench": "vdbench",
    "iometer": "Iometer",
    "diskspd": "DiskSpd",
    "published": "as published",
}
SUSPECTS: Final = (
    "measured by",
    "block size", "kernel", "CPU governor", "I/O scheduler", "file system", "mount options", "firmware",
    "fill of the target", "iodepth", "clones", "direct I/O", "device model", "RAID level", "write cache",
)  # fmt: skip
"""Asked about before everything else."""


def environment_of(bundle: Bundle | None, case: Case) -> dict[str, Any] | None:
    """Return what is known of a host."""
    if bundle is not None:
        return dict(bundle.environment)
    return case.environment


def _differing(
    where: Place, sides: Sequence[dict[str, str]], order: Sequence[str], *, both: bool = False
) -> Iterator[Difference]:
    """Yield what differs; with `both` only what every side knows: another tool may not tell it."""
    keys = dict.fromkeys([*order, *sorted({key for side in sides for key in side})])
    for key in keys:
        values = tuple(side.get(key, units.NONE) for side in sides)
        if len(set(values)) > 1 and not (both and units.NONE in values):
            yield Difference(where, key, values)


def _facts(environment: dict[str, Any]) -> dict[str, str]:
    """Return the facts of a host by an engineer's words; several of one kind are one entry."""
    facts: dict[str, dict[str, None]] = {}
    for key, value in _leaves({name: one for name, one in environment.items() if name != "spec"}, ""):
        if not any(fnmatch.fnmatchcase(key, pattern) for pattern in MOVING):
            facts.setdefault(_words(key), {})[_written(key, value)] = None
    return {key: _first(values) for key, values in facts.items()}


def _first(values: Iterable[str]) -> str:
    """Return the first of many values, and how many more there are."""
    every = list(values)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _words(key: str) -> str:
    for pattern, words in WORDS:
        if fnmatch.fnmatchcase(key, pattern):
            return words
    plain = re.sub(r"\[\d+\]", "", key)
    parts = [part for part in plain.split(".") if part not in ("host", "facts", "layers", "paths", "targets")]
    if key.startswith("devices."):
        parts = ["device", *parts[2:]]
    return " ".join(part.replace("_", " ") for part in parts).replace("cpu ", "CPU ")


def _written(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int):
        return units.size(value)
    if key.endswith("scheduler"):
        chosen = re.search(r"\[([^\]]+)\]", str(value))
        return chosen[1] if chosen else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if key.endswith("_kb") and text.isdecimal():
        return units.size(int(text) * 1024)
    return f"{key.rpartition('.')[2].removeprefix('vm_')} {text}" if ".vm_" in key else text


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for name, branch in tree.items():
            yield from _leaves(branch, f"{path}.{name}" if path else str(name))
    elif isinstance(tree, list | tuple):
        for at, branch in enumerate(tree):
            yield from _leaves(branch, f"{path}[{at}]")
    elif tree is not None:
        yield path, tree


def _settings(phase: ComparedPhase) -> dict[str, str]:
    """Return what the jobs of a phase asked for; what none of them tells is left out."""
    case = phase.case
    by_key: dict[str, dict[str, None]] = {}
    for job in case.jobs:
        for key, value in _of_job(job):
            if value is not None:
                by_key.setdefault(key, {})[value] = None
    settings = {key: _first(values) for key, values in by_key.items()}
    settings["measured by"] = MEASURED_BY[case.source]
    ops, moved = phase.asked
    rates = [f"{units.count(ops)} IOPS"] if ops else []
    rates += [units.bandwidth(moved)] if moved else []
    if rates:
        settings["rate"] = " and ".join(rates)
    fill = _fill(case)
    if fill is not None:
        settings["fill of the target"] = fill
    return settings


def _of_job(job: JobRequest) -> Iterator[tuple[str, str | None]]:
    sizes = sorted(job.block_bytes)
    yield "block size", ("/".join(size(one) for one in sizes[:4]) + ("/…" if sizes[4:] else "")) or None
    yield "read share", _percent(job.read_percent)
    yield "random share", _percent(job.random_percent)
    yield "iodepth", None if job.iodepth is None else str(job.iodepth)
    yield "clones", None if job.clones is None else str(job.clones)
    yield "direct I/O", _yes(job.direct)
    yield "synchronous writes", _yes(job.synchronous)
    yield "fsync at the end", _yes(job.end_fsync)
    yield "I/O backend", job.backend
    yield "size of the tested range", None if not job.size_bytes else units.size(job.size_bytes)
    yield "written data", None if job.payload is None else _payload(job)
    for target in job.targets:
        yield "targets", target
    yield "run time", None if job.runtime_s is None else units.seconds(job.runtime_s)
    yield "ramp", None if job.ramp_s is None else units.seconds(job.ramp_s)


def _payload(job: JobRequest) -> str | None:
    payload = job.payload
    if payload is None or payload.kind == "unknown":
        return None
    parts: list[str] = [payload.kind]
    parts += [f"{payload.compress_percent:.3g} % compressible"] if payload.compress_percent else []
    parts += [f"{payload.dedupe_percent:.3g} % duplicates"] if payload.dedupe_percent else []
    return ", ".join(parts)


def _fill(case: Case) -> str | None:
    """Return how much of the targets had been written before the run."""
    known = [
        (one.size_bytes, one.unwritten_bytes_before)
        for one in case.targets
        if one.size_bytes and one.unwritten_bytes_before is not None
    ]
    if not known or len(known) < len(case.targets):
        return None
    whole = sum(size_bytes for size_bytes, _ in known)
    written = whole - sum(unwritten for _, unwritten in known)
    return f"{100 * max(0, written) / whole:.0f} % written before"


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g} %"


def _yes(value: bool | None) -> str | None:
    return None if value is None else ("yes" if value else "no")
