"""What a run does on which file systems: workloads, operations, threads, and how trees are made.

Knows which entities a name means, and how vdbench divides threads and skew. Does not know how
anything is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.vdbench.entity_values import Sizes
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.formats.vdbench.filesystem import FileSystem, FileWorkload
    from loadstone.formats.vdbench.loops import Turn
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.formats.vdbench.rundef import RunDefinition

Entity = TypeVar("Entity")
TRANSFERS: Final = ("read", "write")
_FORMAT_WORKLOAD: Final = "format"
_FORMAT_THREADS: Final = 8
_FORMAT_SIZES: Final = Sizes(((128 << 10, 100.0),))


@dataclass(frozen=True, slots=True)
class FileWork:
    """One operation of a workload on a file system. `skew`: its percent of the rate; None: not said."""

    workload: FileWorkload
    system: FileSystem
    operation: str
    threads: int
    asked_threads: int
    """Of the workload on all of its file systems."""
    skew: float | None = None
    goal: FileSystem | None = None
    """Where files are copied or moved to."""


def meant(word: str, known: Mapping[str, Entity], kind: str, where: Where) -> list[Entity]:
    """Return the entities a name means, `*` standing for anything."""
    pattern = re.compile(".*".join(re.escape(part) for part in word.split("*")) + r"\Z")
    entities = [entity for name, entity in known.items() if pattern.match(name)]
    if not entities:
        raise make_error(
            InputError,
            "formats_vdbench.file_work.unknown",
            where=where,
            hint=nearest(word, known),
            found=kind,
            word=word,
        )
    return entities


def file_works(file: ParameterFile, definition: RunDefinition, turn: Turn) -> tuple[FileWork, ...]:
    """Return what a run definition does on which file systems, in order."""
    known = {one.name: one for one in file.file_workloads if one.name != _FORMAT_WORKLOAD}
    systems = {one.name: one for one in file.file_systems}
    workloads = [
        workload
        for word in definition.fwds
        for workload in meant(word, known, "fwd", definition.at.get("fwds", definition.where))
    ]
    if not workloads and definition.fsds is None:
        raise make_error(
            InputError,
            "formats_vdbench.file_work.no_work",
            where=definition.where,
            definition=definition.name,
        )
    works: list[FileWork] = []
    for workload in workloads or [file.default_file_workload]:
        words = definition.fsds if definition.fsds is not None else workload.fsds
        where = definition.at.get("fsds") or workload.at.get("fsds") or workload.where
        if not words:
            raise make_error(
                InputError, "formats_vdbench.file_work.no_fsd", where=workload.where, workload=workload.name
            )
        chosen_systems = {one.name: one for word in words for one in meant(word, systems, "fsd", where)}
        works += _on_systems(workload, list(chosen_systems.values()), definition, turn, systems)
    anchors: dict[str, FileSystem] = {}
    for work in works:
        for system in (work.system, work.goal):
            if system is not None and anchors.setdefault(system.anchor, system) is not system:
                raise make_error(
                    RefusedError,
                    "formats_vdbench.file_work.same_anchor",
                    where=system.where,
                    anchors=anchors[system.anchor].name,
                    system=system.name,
                )
    return tuple(works)


def _on_systems(
    workload: FileWorkload,
    systems: Sequence[FileSystem],
    definition: RunDefinition,
    turn: Turn,
    known: Mapping[str, FileSystem],
) -> list[FileWork]:
    """Return a workload on each of its file systems, its threads divided as vdbench does."""
    looped = turn.values.get("operations")
    operations = definition.operations or ((looped,) if isinstance(looped, str) else (workload.operation,))
    set_operations = definition.operations or (looped if isinstance(looped, str) else None)
    if (
        workload.rdpct is not None
        and set_operations
        and (len(operations) > 1 or operations[0] not in TRANSFERS)
    ):
        raise make_error(
            InputError,
            "formats_vdbench.file_work.rdpct_of_several",
            where=workload.at.get("rdpct", workload.where),
            workload=workload.name,
        )
    threads = int(turn.number("threads") or workload.threads)
    thread_share = max(1, threads // len(operations) // len(systems))
    skew = None if not workload.skew else workload.skew / len(systems)
    return [
        FileWork(
            workload,
            system,
            operation,
            thread_share,
            threads,
            skew,
            _goal(workload, system, operation, known),
        )
        for system in systems
        for operation in operations
    ]


def _goal(
    workload: FileWorkload, system: FileSystem, operation: str, known: Mapping[str, FileSystem]
) -> FileSystem | None:
    """Return the file system that `target=` names, for copies and moves."""
    where = workload.at.get("target", workload.where)
    if operation not in ("copy", "move"):
        if workload.target is not None:
            raise make_error(
                InputError,
                "formats_vdbench.file_work.target_unused",
                where=where,
                workload=workload.name,
                operation=operation,
            )
        return None
    if workload.target is None:
        raise make_error(
            InputError,
            "formats_vdbench.file_work.no_target",
            where=where,
            operation=operation,
            workload=workload.name,
        )
    goal = meant(workload.target, known, "fsd", where)[0]
    same = ("depth", "width", "files", "sizes", "average", "distribution", "totalsize")
    if goal is system or any(getattr(goal, word) != getattr(system, word) for word in same):
        raise make_error(
            InputError,
            "formats_vdbench.file_work.other_structure",
            where=where,
            goal=goal.name,
            system=system.name,
        )
    return goal


def format_workload(file: ParameterFile) -> FileWorkload:
    """Return `fwd=format`, whose transfers are 128k unless it says so itself."""
    default = file.default_file_workload
    for workload in file.file_workloads:
        if workload.name == _FORMAT_WORKLOAD:
            own = workload.at.get("xfersize") is not default.at.get("xfersize")
            first = Sizes(((workload.xfersize.pairs[0][0], 100.0),)) if own else _FORMAT_SIZES
            return replace(workload, xfersize=first)
    return replace(
        default,
        name=_FORMAT_WORKLOAD,
        at={},
        threads=_FORMAT_THREADS,
        xfersize=_FORMAT_SIZES,
        openflags=None,
    )
