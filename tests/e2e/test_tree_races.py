"""Somebody works in a tree while a load does: what came from elsewhere is as it was, whatever the load does.

Each race goes on from the load's start to its end, at the names that the load uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e import program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TREE = "fsd=f,anchor={place}/a,depth=2,width=2,files=4,size=16k\n"
ASKED = "fwd=default,fsd=f,xfersize=4k,fileselect=random,threads=2\n"
LOADS = {
    "write": "fwd=w,operation=write,fileio=random\n",
    "mixed": "fwd=w,rdpct=30,fileio=random\n",
    "files": "fwd=w1,operation=create\nfwd=w2,operation=write\nfwd=w3,operation=delete\n",
    "directories": "fwd=w1,operation=mkdir\nfwd=w2,operation=rmdir\nfwd=w3,operation=delete\n",
    "open": "fwd=w1,operation=open\nfwd=w2,operation=write\n",
}
RUN = "rd=r,fwd=w*,fwdrate=500,format=yes,elapsed=2,interval=1\n"
CONTENT = b"Dear Ada, these are two years of work.\n" * 500


def exchange(one: Path, other: Path) -> None:
    """Let two names change places (RENAME_EXCHANGE of renameat2(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


class Stranger:
    """Who has files of the same names beside the tree, and puts them in the load's way."""

    def __init__(self, place: Path, seed: int) -> None:
        self.tree, self.mine = place / "a", place / "mine"
        self._rng = random.Random(seed)
        self._number = 0
        self.content: dict[int, bytes] = {}
        for middle in ("vdb.1_1.dir", "vdb.1_2.dir"):
            for leaf in ("vdb.2_1.dir", "vdb.2_2.dir"):
                (self.mine / middle / leaf).mkdir(parents=True)
                for number in range(1, 5):
                    self.write(self.mine / middle / leaf / f"vdb_f{number:04d}.file")

    def write(self, path: Path) -> Path:
        """Make a file of one's own, as long as those of the tree or not."""
        self._number += 1
        path.write_bytes(CONTENT[: self._rng.choice([16376, 100, 4088])] + b"%08d" % self._number)
        self.content[path.stat().st_ino] = path.read_bytes()
        return path

    def new(self) -> Path:
        """Make one more, at a name of its own."""
        return self.write(self.mine / f"new{self._number}")

    def place(self) -> Path:
        """Return a name of a file of the tree."""
        middle, leaf = (f"vdb.{depth}_{self._rng.randint(1, 2)}.dir" for depth in (1, 2))
        return self.tree / middle / leaf / f"vdb_f{self._rng.randint(1, 4):04d}.file"

    def forget(self, path: Path) -> None:
        """Leave out what the stranger's next step removes."""
        if path.lstat().st_nlink == 1:
            self.content.pop(path.lstat().st_ino, None)

    def beside(self, path: Path) -> Path:
        """Return the stranger's own of a name in the tree."""
        return self.mine / path.relative_to(self.tree)

    # What is done.

    def anchor(self) -> None:
        exchange(self.tree, self.mine)

    def directory(self) -> None:
        middle = self.place().parents[1]
        exchange(middle, self.beside(middle))

    def leaf(self) -> None:
        leaf = self.place().parent
        exchange(leaf, self.beside(leaf))

    def file(self) -> None:
        file = self.place()
        exchange(file, self.beside(file))

    def over(self) -> None:
        file, new = self.place(), self.new()
        self.forget(file)
        new.rename(file)

    def second_name(self) -> None:
        file, name = self.place(), self.mine / "second"
        self.forget(file)
        name.unlink(missing_ok=True)
        name.hardlink_to(self.beside(file))
        name.rename(file)

    def link(self) -> None:
        file, name = self.place(), self.mine / "link"
        name.unlink(missing_ok=True)
        name.symlink_to(self.beside(file))
        name.rename(file)

    def where_nothing_is(self) -> None:
        file = self.place()
        other = self._rng.choice([file, file.with_name("vdb_f0005.file"), file.parents[1] / file.name])
        new = self.new()
        other.hardlink_to(new)
        new.unlink()

    def moved_away(self) -> None:
        middle = self.place().parents[1]
        self._number += 1
        copied = self.mine / f"copy{self._number}"
        shutil.copytree(self.beside(middle), copied)
        for path in copied.rglob("*.file"):
            self.content[path.stat().st_ino] = path.read_bytes()
        middle.rename(self.mine / f"away{self._number}")
        copied.rename(middle)


RACES: dict[str, Callable[[Stranger], None]] = {
    one.__name__: one
    for one in (
        Stranger.anchor,
        Stranger.directory,
        Stranger.leaf,
        Stranger.file,
        Stranger.over,
        Stranger.second_name,
        Stranger.link,
        Stranger.where_nothing_is,
        Stranger.moved_away,
    )
}


def files(place: Path) -> dict[int, bytes]:
    """Return all files below a directory by inode."""
    return {
        path.stat().st_ino: path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.drawn(4)
@pytest.mark.slow
@pytest.mark.parametrize("drawn", [f"{race} {load}" for race in RACES for load in LOADS])
def test_what_is_put_in_the_way_of_a_load_in_a_tree_is_kept(tmp_path: Path, drawn: str) -> None:
    race, load = drawn.split()
    seed = random.randrange(1 << 32)
    parameters = tmp_path / "t.parm"
    parameters.write_text(TREE.format(place=tmp_path) + ASKED + LOADS[load] + RUN)
    stranger = Stranger(tmp_path, seed)
    process = program.start("run", parameters, "--out", "s", "--no-report", cwd=tmp_path)
    program.until(lambda: process.poll() is not None or begun(tmp_path / "s"), "the load after the format")
    steps = 0
    while process.poll() is None:
        with contextlib.suppress(OSError):
            RACES[race](stranger)
            steps += 1
        time.sleep(0.005)
    done = program.finish(process)
    assert steps, done.err
    there = files(tmp_path)
    lost = [content[-8:] for inode, content in stranger.content.items() if there.get(inode) != content]
    assert lost == [], (seed, steps, done.err)


def begun(study: Path) -> bool:
    return any('"start"' in one.read_text() for one in study.glob("runs/002*/events.jsonl"))
