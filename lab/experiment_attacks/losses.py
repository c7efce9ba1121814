"""What must not be lost: somebody's data, a run that completed, a file that was edited meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import Final

from lab.experiment_attacks.bench import AttackBench, WrongError, begun
from lab.parts import call


def precious(bench: AttackBench) -> None:
    """A device that holds a file system, without consent; one that is mounted, with it."""
    device = bench.stage.loop(200, written=False)
    call("mkfs.ext4", "-q", "-L", "precious", device)
    factors = (
        '\n[layouts.one]\nfilesystem = "ext4"\n\n[layouts.two]\nfilesystem = "none"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["one", "two"]\n'
    )
    path = bench.file(f'devices = ["{device}"]\n' + bench.text(factors, target="{file}"))
    bench.ran("run", path).ends(2).says("--i-accept-data-loss")
    folder = bench.folder / "mounted"
    folder.mkdir()
    call("mount", device, folder)
    try:
        bench.ran("run", path, "--i-accept-data-loss", device).ends(2).says("mounted")
    finally:
        call("umount", folder)
    if "precious" not in call("blkid", "-p", device):
        raise WrongError("the file system is lost")


def own_file(bench: AttackBench) -> None:
    """A target that is somebody's file."""
    data = bench.folder / "data"
    data.write_bytes(os.urandom(8 << 20))
    before = data.read_bytes()
    bench.ran("run", bench.file(bench.text())).ends(2).says("--i-accept-data-loss")
    if data.read_bytes() != before:
        raise WrongError("the file was changed")


def target_goes(bench: AttackBench) -> None:
    """The directory of the target is removed, or the device shrinks, while it runs."""
    folder = bench.folder / "sub"
    folder.mkdir()
    path, out = bench.file(bench.text(target=str(folder / "data"))), bench.folder / "out"
    process = bench.start("run", path)
    begun(process, out, 1)
    time.sleep(bench.draw.uniform(0.2, 1.5))
    shutil.rmtree(folder)
    bench.ended(process).ends(1).says("sub")
    bench.is_put_back()
    folder.mkdir()
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


def used_directory(bench: AttackBench) -> None:
    """A directory that is there already, or may not be written."""
    path, out = bench.file(bench.text()), bench.folder / "out"
    out.mkdir()
    (out / "mine").write_text("x")
    bench.ran("run", path).ends(1, 2).says("out")
    if (out / "mine").read_text() != "x":
        raise WrongError("somebody's file was changed")


def edited(bench: AttackBench) -> None:
    """The file is edited between run and resume: repeats, seed, a level more, another factor, a comment."""
    path, out = bench.file(bench.text()), bench.folder / "out"
    process = bench.start("run", path)
    begun(process, out, 2)
    process.send_signal(signal.SIGINT)
    bench.ended(process).ends(130)
    text = path.read_text()
    right, wrong = bench.draw.choice(
        [
            ("repeats = 2", "repeats = 3"),
            ("repeats = 2", "repeats = 2\nseed = 9"),
            ("[1, 7]", "[1, 7, 9]"),
            ("[1, 7]", "[7, 1]"),
            ('"vm.stat_interval"', '"vm.page-cluster"'),
            ("rate_iops = 400", "rate_iops = 500"),
            ("repeats = 2", "repeats = 2 # still"),
        ]
    )
    path.write_text(text.replace(right, wrong))
    bench.ran("resume", out).ends(2).says("is not the file that the experiment began with", path.name)
    path.write_text(text)
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


ATTACKS: Final = (precious, own_file, target_goes, used_directory, edited)
