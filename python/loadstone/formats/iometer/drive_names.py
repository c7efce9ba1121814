"""Iometer's names of drives, and what they are on this host.

Knows how a drive is written on Windows (`C: ""`, `1: "VENDOR DISK"`) and on Linux (`sdb`,
`/mnt/x [xfs]`), and that a logical drive is a file in its root. Knows no I/O.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone import file_kind
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.workload.placement import TargetName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.formats.iometer.managers import IometerTarget, Manager

TEST_FILE: Final = "iobw.tst"
"""The file in the root of a logical drive."""
_LABEL: Final = re.compile(r'\s*"[^"]*"\s*$|\s*\[[^\]]*\]\s*$')


def short(name: str) -> str:
    """Return a drive's name without its label or its file system."""
    return _LABEL.sub("", name).strip() or name


def _names(name: str) -> set[str]:
    """Every way to write a drive's name for `--map`."""
    brief = short(name)
    return {one.lower() for one in (name, brief, brief.removesuffix(":"))}


def check_mapping(mapping: Mapping[str, str], managers: Sequence[Manager]) -> None:
    """Refuse to map what the file does not name."""
    targets = [target for manager in managers for worker in manager.workers for target in worker.targets]
    known = {name for target in targets for name in _names(target.name)}
    for old in mapping:
        if old.lower() not in known:
            shown = ", ".join(sorted({short(target.name) for target in targets})) or "none"
            raise make_error(InputError, "formats_iometer.drive_names.not_used", old=f"{old!r}", shown=shown)


def place(target: IometerTarget, mapping: Mapping[str, str]) -> TargetName:
    """Return what a target is here. Raises InputError for a drive of another host."""
    names = _names(target.name)
    mapped = mapping.get(target.name)
    if mapped is None:
        mapped = next((new for old, new in mapping.items() if old.lower() in names), None)
    path = mapped if mapped is not None else short(target.name)
    if mapped is None and not path.startswith("/"):
        raise make_error(
            InputError,
            "formats_iometer.drive_names.of_other_host",
            where=target.where,
            target=target.name,
            path=path,
        )
    if _holds_devices(Path(path)):
        raise make_error(
            InputError,
            "formats_iometer.drive_names.directory",
            where=target.where,
            path=path,
            target=short(target.name),
            directory=path.rstrip("/."),
        )
    if file_kind.is_directory(Path(path)):
        path = str(Path(path) / TEST_FILE)
    return TargetName(path=path, written=target.name)


def _holds_devices(path: Path) -> bool:
    """Whether it is a directory of the file system at /dev, in which a test file would be in memory."""
    try:
        return path.is_dir() and path.stat().st_dev == Path("/dev").stat().st_dev
    except OSError:
        return False
