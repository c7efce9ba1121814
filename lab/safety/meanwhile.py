"""A run that works in a tree, and what somebody puts into it meanwhile, on several file systems.

Knows how each is staged: the run is over when the tree is given back, and what came must be as it was.
Knows no verb that is tried afterwards.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.safety import trial, verbs
from lab.safety.contents import call
from tests.support.started import StartedProgram

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable
    from pathlib import Path

SIZE_BYTES = 8192
"""Of the tree's files."""
LOAD = verbs.TREE + "rd=r,fwd=w,fwdrate=100,format=no,elapsed=4,interval=1\n"
FILE_SYSTEM_BYTES = 64 << 20
PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class TreeFileSystem:
    """Where a tree may lie. `tells`: it keeps what tells a file from another of the same size."""

    name: str
    mount: Callable[[Path, contextlib.ExitStack], None]
    """Mounts it at the given directory."""
    needs: str | None = None
    tells: bool = True


def _mounted(*words: str) -> Callable[[Path, contextlib.ExitStack], None]:
    def mount(point: Path, stack: contextlib.ExitStack) -> None:
        call("mount", *words, point)
        stack.callback(call, "umount", point)

    return mount


def _ext(*options: str) -> Callable[[Path, contextlib.ExitStack], None]:
    def mount(point: Path, stack: contextlib.ExitStack) -> None:
        image = _image(point)
        call("mkfs.ext4", "-q", "-F", *options, image)
        _mounted("-o", "loop", str(image))(point, stack)

    return mount


def _fuse(point: Path, stack: contextlib.ExitStack) -> None:
    image = _image(point)
    call("mkfs.ext4", "-q", "-F", image)
    call("fuse2fs", "-o", "rw", image, point)
    stack.callback(call, "umount", point)


def _overlay(point: Path, stack: contextlib.ExitStack) -> None:
    below = {name: point.with_name(name) for name in ("lowerdir", "upperdir", "workdir")}
    for directory in below.values():
        directory.mkdir()
    options = ",".join(f"{name}={directory}" for name, directory in below.items())
    _mounted("-t", "overlay", "overlay", "-o", options)(point, stack)


def _image(point: Path) -> Path:
    image = point.with_name("image")
    with image.open("wb") as file:
        file.truncate(FILE_SYSTEM_BYTES)
    return image


FILE_SYSTEMS = (
    TreeFileSystem("tmpfs", _mounted("-t", "tmpfs", "none")),
    TreeFileSystem("ext4", _ext(), "mkfs.ext4"),
    TreeFileSystem("ext4 without times of birth", _ext("-I", "128"), "mkfs.ext4"),
    TreeFileSystem("overlay", _overlay, tells=False),
    TreeFileSystem("FUSE", _fuse, "fuse2fs", tells=False),
)


def moved_over(mine: Path, name: Path) -> Path:
    return mine.replace(name)


def moved_beside(mine: Path, name: Path) -> Path:
    """Under a name of a tree that this one has no use for."""
    return mine.replace(name.with_name("vdb_f0031.file"))


def linked_over(mine: Path, name: Path) -> Path:
    second = mine.with_name("second")
    second.hardlink_to(mine)
    return second.replace(name)


def directory_moved_over(mine: Path, name: Path) -> Path:
    whole = mine.with_name("directory")
    whole.mkdir()
    mine.rename(whole / name.name)
    name.parent.rename(mine.with_name("before"))
    return whole.rename(name.parent) / name.name


def changes(one: TreeFileSystem) -> list[tuple[str, Callable[[Path, Path], Path], int, str]]:
    """What is tried there: in words, how, the size of what comes, and what a later run has to do."""
    tried: list[tuple[str, Callable[[Path, Path], Path], int, str]] = [
        ("a file moved onto a name of it", moved_over, 100, trial.ASKED),
        ("a file moved in under another name", moved_beside, 100, trial.ASKED),
        ("a second name of a file", linked_over, 100, trial.REFUSED),
        ("a directory moved over its own", directory_moved_over, 100, trial.ASKED),
    ]
    if one.tells:
        tried.append(("a file of the same size moved onto a name of it", moved_over, SIZE_BYTES, trial.ASKED))
    return tried


def put_in(
    file_system: TreeFileSystem, change: Callable[[Path, Path], Path], size_bytes: int
) -> Callable[[Path, contextlib.ExitStack], Path]:
    """Stage it in a folder; the tree is returned when the run has ended."""

    def place(folder: Path, stack: contextlib.ExitStack) -> Path:
        (point := folder / "mounted").mkdir()
        file_system.mount(point, stack)
        tree = point / "tree"
        _must(trial.loadstone(verbs.tree("yes").words(tree, folder, "first"), folder, {}))
        ours, text = point / "mine", (b"mine" * size_bytes)[:size_bytes]
        ours.write_bytes(text)
        name = min(tree.glob("vdb.1_1.dir/vdb_f*.file"))
        with _loaded(tree, folder) as load:
            came = change(ours, name)
            load.communicate(timeout=PATIENCE_S)
        if came.read_bytes() != text:
            raise RuntimeError("the run that was under way wrote it")
        return tree

    return place


def came(tree: Path) -> Path:
    """What somebody put into a tree."""
    return next(path for path in sorted(tree.glob("vdb.1_1.dir/vdb_f*.file")) if _is_mine(path))


def _is_mine(path: Path) -> bool:
    return path.read_bytes().startswith(b"minemine")


def _loaded(tree: Path, folder: Path) -> StartedProgram:
    """Start a run in a tree, and return when its load has begun."""
    job = folder / "load.parm"
    job.write_text(LOAD.format(target=tree))
    words = ["run", str(job), "--out", "load", *verbs.QUIET]
    with (folder / "load said").open("w") as log:
        load = StartedProgram(words, stdout=log, stderr=log, cwd=folder, env=dict(os.environ), text=True)
    end_s = time.monotonic() + PATIENCE_S
    while not any('"start"' in events.read_text() for events in folder.glob("load/**/events.jsonl")):
        if load.poll() is not None or time.monotonic() > end_s:
            raise RuntimeError((folder / "load said").read_text())
        time.sleep(0.05)
    return load


def _must(done: tuple[int, str]) -> None:
    if done[0] not in (0, 98):
        raise RuntimeError(done[1])
