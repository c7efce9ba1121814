"""What else differs between results that are compared, in the field's words, the most suspect first.

Knows which facts of an environment an engineer asks about first, and which move from minute to
minute and are no difference. Judges nothing.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone import units
from loadstone.comparison.settings import JOB_WORDS, TARGETS, first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.audit.case import Case
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
    "paths[[]*].layers[[]*].facts.method",
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

IN_BYTES: Final = ("_bytes", "_granularity", "_block_size", "_io_size")
"""How keys end whose values are bytes; in sysfs they have no unit (Documentation/ABI/stable/sysfs-block)."""
WORDS: Final[tuple[tuple[str, str], ...]] = (
    ("host.kernel", "kernel"),
    ("host.cpu.governors*", "CPU governor"),
    ("governor", "CPU governor"),
    ("devices.*.queue.scheduler", "I/O scheduler"),
    ("*.facts.scheduler", "I/O scheduler"),
    ("targets[[]*].mount.file_system", "file system"),
    ("targets[[]*].mount.options", "mount options"),
    ("targets[[]*].mount.super_options", "file system options"),
    ("*.facts.super_options", "file system options"),
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


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same on all sides; a side that does not know it has a dash."""

    where: Place
    key: str
    """In the field's words."""
    values: tuple[str, ...]


def differences(
    environments: Sequence[dict[str, Any] | None], rows: Mapping[str, Sequence[ComparedPhase | None]]
) -> list[Difference]:
    """Return what differs between the sides: jobs by their settings, hosts by their facts.

    `rows` has one phase of each side for each pattern that is compared, None for a side without it.
    """
    known = [] if any(one is None for one in environments) else [_facts(one or {}) for one in environments]
    facts = list(_differing("environment", known, [words for _, words in WORDS])) if known else []
    of_rows = {
        pattern: list(
            _differing(
                "plan", [None if phase is None else phase.settings for phase in phases], JOB_WORDS, both=True
            )
        )
        for pattern, phases in rows.items()
    }
    ranked = dict.fromkeys((*SUSPECTS, *JOB_WORDS, *(words for _, words in WORDS)))
    rank = {words: at for at, words in enumerate(ranked)}
    every = [(one.key, one) for one in facts] + list(_of_patterns(of_rows))
    return [one for _, one in sorted(every, key=lambda pair: rank.get(pair[0], len(ranked)))]


def _of_patterns(of_rows: Mapping[str, Sequence[Difference]]) -> Iterator[tuple[str, Difference]]:
    """Yield each setting that differs once, and of which patterns where that is not true of all."""
    patterns_by_values: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for pattern, of_row in of_rows.items():
        for one in of_row:
            groups = patterns_by_values.setdefault(one.key, {})
            alike = next((values for values in groups if _agree(values, one.values)), one.values)
            patterns = groups.pop(alike, [])
            groups[_together(alike, one.values)] = [*patterns, pattern]
    for key, groups in patterns_by_values.items():
        if len(groups) > MOST_GROUPS:
            values = tuple(first_of(dict.fromkeys(of_side)) for of_side in zip(*groups, strict=True))
            yield key, Difference("plan", key, values)
            continue
        for values, patterns in groups.items():
            of_all = len(patterns) == len(of_rows)
            some = first_of(patterns, most=MOST_GROUPS if len(patterns) <= MOST_GROUPS else 1)
            yield key, Difference("plan", key if of_all else f"{key} ({some})", values)


def _agree(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Tell whether two patterns have the same values on all sides that have both."""
    return all(a == b for a, b in zip(one, other, strict=True) if units.NONE not in (a, b))


def _together(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(b if a == units.NONE else a for a, b in zip(one, other, strict=True))


SUSPECTS: Final = (
    "measured by",
    "block size", "kernel", "CPU governor", "I/O scheduler", "file system", "mount options", "firmware",
    "fill of the target", "iodepth", "clones", "direct I/O", "device model", "RAID level", "write cache",
)  # fmt: skip
"""Asked about before everything else."""
MOST_GROUPS: Final = 2
"""Where a setting differs in more ways over the patterns, its values are listed and not their patterns."""


OF_REPEATS: Final = ("measured by", "fill of the target", TARGETS, "run time", "ramp")
"""Settings that repeats of one load may differ in, and should not."""
DEVICES: Final = "/dev/"
"""How the names of devices begin: of repeats each file may be in a directory of its own."""


def within(phases: Sequence[ComparedPhase]) -> dict[str, str]:
    """Return what differs between repeats of one load, by its words: its values, as far as all tell it."""
    all_settings = [phase.settings for phase in phases]
    environments = [
        environment_of(None if phase.summary is None else phase.summary.bundle, phase.case)
        for phase in phases
    ]
    known = [
        {key: one[key] for key in OF_REPEATS if key in one and (key != TARGETS or DEVICES in one[key])}
        | ({} if environment is None else _facts(environment))
        for one, environment in zip(all_settings, environments, strict=True)
    ]
    return {
        one.key: first_of(dict.fromkeys(one.values))
        for one in _differing("plan", known, (*SUSPECTS, *(words for _, words in WORDS)), both=True)
    }


def environment_of(bundle: Bundle | None, case: Case) -> dict[str, Any] | None:
    """Return what is known of a host."""
    if bundle is not None:
        return dict(bundle.environment)
    return case.environment


def _differing(
    where: Place, sides: Sequence[Mapping[str, str] | None], order: Sequence[str], *, both: bool = False
) -> Iterator[Difference]:
    """Yield what differs; with `both` only what every side that is there knows: a tool may not tell it."""
    present = [side for side in sides if side is not None]
    keys = dict.fromkeys([*order, *sorted({key for side in present for key in side})])
    for key in keys:
        known = [side.get(key, units.NONE) for side in present]
        if len(set(known)) > 1 and not (both and units.NONE in known):
            yield Difference(where, key, tuple((side or {}).get(key, units.NONE) for side in sides))


def _facts(environment: dict[str, Any]) -> dict[str, str]:
    """Return the facts of a host by an engineer's words; several of one kind are one entry."""
    facts: dict[str, dict[str, None]] = {}
    for key, value in _leaves({name: one for name, one in environment.items() if name != "spec"}, ""):
        if not _is_moving(key):
            facts.setdefault(_words(key), {})[_written(key, value)] = None
    # In which order devices are told says nothing of them.
    return {key: first_of(sorted(values)) for key, values in facts.items()}


@cache
def _is_moving(key: str) -> bool:
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in MOVING)


@cache
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
    if key.endswith(IN_BYTES) and str(value).isdecimal():
        return units.size(int(value))
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
