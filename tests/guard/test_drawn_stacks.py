"""Devices upon devices, drawn by seed, with one of them in use: what a write would end up in decides.

Each device is known by the bytes of the file at the bottom that it stands for, so that it is known
without looking whether a write to one changes another. Loop devices over files and devices, with
offsets and limits, their partitions, bind mounts and further nodes; used by a mount (also in another
mount namespace), by swap, by a process, or by nobody.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.safety import guard, in_use
from tests.support.devices import call, tool

from .plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.root
MIB = 1 << 20
DRAWS = int(os.environ.get("LOADSTONE_DRAWS", "12"))
FIRST = int(os.environ.get("LOADSTONE_SEED", "1"))


@dataclass(frozen=True)
class StackedName:
    """A name, and which bytes of the file at the bottom it stands for."""

    path: Path
    kind: str
    begin: int
    end: int

    def meets(self, other: StackedName) -> bool:
        return self.begin < other.end and other.begin < self.end


def tried(name: str, *words: str | Path, text: str = "") -> bool:
    return (
        subprocess.run(
            [tool(name), *words], input=text, text=True, capture_output=True, check=False
        ).returncode
        == 0
    )


class Built:
    """A stack while it stands."""

    def __init__(self, folder: Path, draw: Random, stack: contextlib.ExitStack) -> None:
        self.draw, self.stack, self.folder = draw, stack, folder
        bottom = folder / "bottom"
        with bottom.open("wb") as file:
            file.truncate(96 * MIB)
        self.places = [StackedName(bottom, "file", 0, 96 * MIB)]

    def grow(self) -> None:
        """Put one more thing upon what is there."""
        what = self.draw.choice(("loop", "loop", "loop", "partitions", "node", "bind", "link"))
        # Of devices only those that are large enough for a file system upon them.
        under = self.draw.choice([one for one in self.places if one.end - one.begin >= 16 * MIB])
        getattr(self, f"_{what}")(under)

    def _loop(self, under: StackedName) -> None:
        size = under.end - under.begin
        offset = self.draw.choice((0, 0, 0, MIB, size // 4 // MIB * MIB))
        limit = self.draw.choice((0, 0, size // 2 // MIB * MIB))
        words = ["--find", "--show", "--offset", str(offset), "--sizelimit", str(limit), str(under.path)]
        path = Path(call("losetup", *words))
        self.stack.callback(self._detach, path)
        end = min(size, offset + limit) if limit else size
        self.places.append(StackedName(path, "loop", under.begin + offset, under.begin + end))

    @staticmethod
    def _detach(path: Path) -> None:
        for _ in range(50):
            if tried("losetup", "--detach", path):
                return
            time.sleep(0.1)

    def _partitions(self, under: StackedName) -> None:
        name = under.path.name
        if under.kind != "loop" or any(one.path.name.startswith(f"{name}p") for one in self.places):
            return
        half = (under.end - under.begin) // 2 // 512
        table = f"label: dos\n2048,{half - 4096}\n{half},\n"
        if not tried("sfdisk", "-q", "--no-reread", under.path, text=table) or not tried(
            "partx", "-a", under.path
        ):
            return
        self.stack.callback(tried, "partx", "-d", under.path)
        for number in (1, 2):
            place = Path(f"/sys/class/block/{name}p{number}")
            if place.exists():
                begin = under.begin + 512 * int((place / "start").read_text())
                end = begin + 512 * int((place / "size").read_text())
                self.places.append(StackedName(Path(f"{under.path}p{number}"), "partition", begin, end))

    def _node(self, under: StackedName) -> None:
        """Another node of the same number, as in a container's /dev."""
        if under.kind == "file":
            return
        path = self.folder / f"node{len(self.places)}"
        os.mknod(path, 0o60600, under.path.stat().st_rdev)
        self.places.append(StackedName(path, under.kind, under.begin, under.end))

    def _bind(self, under: StackedName) -> None:
        path = self.folder / f"bound{len(self.places)}"
        path.touch()
        call("mount", "--bind", str(under.path), str(path))
        self.stack.callback(tried, "umount", path)
        self.places.append(StackedName(path, under.kind, under.begin, under.end))

    def _link(self, under: StackedName) -> None:
        path = self.folder / f"link{len(self.places)}"
        if under.kind == "file" and "bound" not in under.path.name and self.draw.random() < 0.5:
            path.hardlink_to(under.path)
        else:
            path.symlink_to(under.path)
        self.places.append(StackedName(path, under.kind, under.begin, under.end))

    def use(self) -> tuple[str, StackedName] | None:
        """Let somebody use one of them."""
        how = self.draw.choice(("mount", "elsewhere", "swap", "open", "locked", "nobody"))
        fit = [one for one in self.places if one.end - one.begin >= 8 * MIB]
        devices = [one for one in fit if one.kind != "file"]
        if how == "nobody" or (how in ("mount", "elsewhere", "swap") and not devices):
            return None
        one = self.draw.choice(fit if how in ("open", "locked") else devices)
        getattr(self, f"_{how}")(one)
        return how, one

    def _mount(self, one: StackedName) -> None:
        call("mkfs.ext2", "-q", "-F", str(one.path))
        point = self.folder / "point"
        point.mkdir()
        call("mount", str(one.path), str(point))
        self.stack.callback(tried, "umount", point)

    def _elsewhere(self, one: StackedName) -> None:
        call("mkfs.ext2", "-q", "-F", str(one.path))
        point = self.folder / "point"
        point.mkdir()
        script = f"mount --make-rprivate /; mount {one.path} {point} && echo 1; read x"
        self._held(["unshare", "--mount", "sh", "-c", script])

    def _swap(self, one: StackedName) -> None:
        call("mkswap", str(one.path))
        call("swapon", str(one.path))
        self.stack.callback(tried, "swapoff", one.path)

    def _open(self, one: StackedName) -> None:
        self._held(
            [
                sys.executable,
                "-c",
                f"import sys; f = open({str(one.path)!r}, 'r+b'); print(1, flush=True); sys.stdin.read()",
            ]
        )

    def _locked(self, one: StackedName) -> None:
        """Open for reading only, and locked: a database that is asleep."""
        if one.kind != "file":
            self._open(one)
            return
        lines = f"import fcntl, sys; f = open({str(one.path)!r}, 'rb'); fcntl.flock(f, fcntl.LOCK_SH)"
        self._held([sys.executable, "-c", f"{lines}; print(1, flush=True); sys.stdin.read()"])

    def _held(self, words: list[str]) -> None:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        self.stack.callback(process.wait)
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.stdin.close)
        if process.stdout.readline() != b"1\n":
            pytest.skip("this cannot be staged here")


def drawn(folder: Path, seed: int) -> Iterator[tuple[str, bool, bool]]:
    """Yield for every name of one stack what it is, whether a write meets the use, and what was said."""
    draw = Random(seed)
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        built = Built(folder, draw, stack)
        for _ in range(draw.randrange(1, 7)):
            built.grow()
        used = built.use()
        host = in_use.Snapshot()
        for one in built.places:
            consent = guard.Consent(frozenset({str(one.path)}))
            asked = target(str(one.path), "file" if one.kind == "file" else "block", size_bytes=MIB)
            found = guard.examine(plan(asked).targets[0], host, consent)
            meets = used is not None and one.meets(used[1])
            names = [f"{place.path.name} {place.begin >> 20}-{place.end >> 20}" for place in built.places]
            told = f"seed {seed}: {one.path.name} of {names}, {used}: {found.in_use}"
            yield told, meets, bool(found.in_use)


@pytest.mark.in_turn
def test_what_meets_a_use_is_refused_whatever_it_is_called(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("devices need root")
    missed = [
        told
        for seed in range(FIRST, FIRST + DRAWS)
        for told, meets, refused in drawn(tmp_path / str(seed), seed)
        if meets and not refused
    ]
    assert missed == []
