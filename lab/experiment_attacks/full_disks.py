"""Disks that are full, or get full, under the journal and under the study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lab.experiment_attacks.bench import AttackBench, WrongError, begun
from lab.parts import call

if TYPE_CHECKING:
    from pathlib import Path


def full_journal(bench: AttackBench) -> None:
    """The disk of the journal is full before, or gets full during a run: all is put back, and it ends."""
    state, later = bench.small, bench.draw.random() < 0.5
    state.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", state)
    try:
        (state / "changes").mkdir(mode=0o700)
        path, out = bench.file(bench.text(runtime="2s")), bench.folder / "out"
        process = bench.start("run", path, state=state) if later else None
        if process is not None:
            begun(process, out, 1)
        _fill(state / "filler", 1 << 20)
        if process is None:
            bench.ran("run", path, state=state).ends(1, 2).says("changes cannot be recorded", "No space left")
        else:
            # What a record that is removed leaves free may be enough for the next one.
            ran = bench.ended(process).ends(0, 1)
            if ran.code:
                ran.says("changes cannot be recorded", "No space left")
        bench.is_put_back()
        if later:
            (state / "filler").unlink()
            bench.ran("resume", out, state=state).ends(0)
            bench.complete(out, 4)
            if left := list((state / "changes").glob("*.jsonl")):
                raise WrongError(f"journals are left: {left}")
    finally:
        call("umount", state)


def _fill(path: Path, size_bytes: int) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            for _ in range(0, size_bytes, 512):
                file.write(bytes(512))
        except OSError:
            pass


def full_study(bench: AttackBench) -> None:
    """The disk of the study fills up while it runs."""
    folder = bench.small
    folder.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    try:
        path, out = bench.file(bench.text(runtime="2s")), folder / "out"
        process = bench.start("run", path, "--out", str(out))
        begun(process, out, bench.draw.randrange(1, 3))
        _fill(folder / "filler", 4 << 20)
        bench.ended(process).ends(1).says("No space left")
        bench.is_put_back()
        (folder / "filler").unlink()
        bench.ran("resume", out).ends(0)
        bench.complete(out, 4)
    finally:
        call("umount", folder)


ATTACKS: Final = (full_journal, full_study)
