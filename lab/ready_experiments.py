"""Run the ready experiments small, on real parts whose truth is known, and hold the finding against it.

Knows what stands in for what: disks in memory behind a limit of the block layer, btrfs profiles, ZFS in
user space, control groups for memory and CPU time. Needs root; what a host lacks is named and left out.

    python -m lab.ready_experiments --out FOLDER [NAME...] > docs/ready-experiments.md

Leaves a study per experiment (one that is there is not run again), and prints a page: what was planted
beside what was found, and the answer that the experiment's own page gives.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from lab.parts import JOIN, LOADSTONE, Stage, call, missing

import loadstone
from loadstone.bundle.experiment import is_experiment
from loadstone.experiment.observe import observations
from loadstone.experiment.report_content import story_on_disk
from loadstone.report.experiment import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.effects.observations import Observations

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "experiments"
IOPS = 500


@dataclass(frozen=True, slots=True)
class Truth:
    """A ratio of means that was planted, and how far it may be off."""

    text: str
    found: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether what was found lies where it should."""
        return self.low <= self.found <= self.high

    def __str__(self) -> str:
        verdict = "yes" if self.holds else "**no**"
        return f"| {self.text} | {self.low:g} to {self.high:g} | {self.found:.3g} | {verdict} |"


def mean(table: Observations, pattern: str, metric: str = "iops", **levels: str) -> float:
    """Return the mean of the valid runs of a pattern at some levels (`_` stands for a blank)."""
    wanted = {name.replace("_", " "): level for name, level in levels.items()}
    values = [
        row.metrics[metric]
        for row in table.rows
        if row.pattern == pattern and row.invalid is None and metric in row.metrics
        if all(row.levels[name] == level for name, level in wanted.items())
    ]
    return statistics.fmean(values) if values else float("nan")


def run(file: str, out: Path, *words: str, devices: Sequence[str] = (), join: Sequence[Path] = ()) -> None:
    """Run an experiment of the examples, in control groups if there are any; one that is there is kept."""
    if is_experiment(out):
        return
    consent = [word for one in devices for word in ("--i-accept-data-loss", one)]
    command = [*LOADSTONE, "experiment", "run", str(EXAMPLES / file), "--out", str(out)]
    # The page of this room is what is printed.
    subprocess.run(
        [*before_others(join), *command, *words, *consent, "--no-progress"], check=True, stdout=sys.stderr
    )


def before_others(join: Sequence[Path] = ()) -> list[str]:
    """Return words that let a command go before whatever else the host does: that is not under test."""
    return ["setsid", "--wait", "/bin/sh", "-c", JOIN, "sh", *map(str, join), "--"]


def small(**values: str) -> list[str]:
    """Return words that set parameters."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def raid_layouts(stage: Stage, out: Path) -> Iterator[Truth]:
    """Four disks of 500 reads and 500 writes a second each."""
    disks = [stage.loop(320, written=False) for _ in range(4)]
    for disk in disks:
        stage.throttle(disk, read_iops=IOPS, write_iops=IOPS)
    words = small(devices=",".join(disks), runtime="2s", ramp="500ms", size="32m", repeats="3")
    run("raid-layouts.toml", out, *words, devices=disks)
    table = observations(out)
    base = mean(table, "4k-randwrite", layout="RAID0")
    read = mean(table, "4k-randread", layout="RAID0")
    yield Truth("RAID0: random writes, IOPS of one disk", base / IOPS, 3.2, 4.3)
    for layout, low, high in (("RAID10", 0.4, 0.6), ("RAID5", 0.2, 0.6), ("JBOD", 0.75, 1.15)):
        share = mean(table, "4k-randwrite", layout=layout) / base
        yield Truth(f"{layout}: random writes as a share of RAID0's", share, low, high)
    for layout, low, high in (("RAID10", 0.75, 1.2), ("RAID5", 0.75, 1.2), ("JBOD", 0.7, 1.2)):
        share = mean(table, "4k-randread", layout=layout) / read
        yield Truth(f"{layout}: random reads as a share of RAID0's", share, low, high)


def cache_regimes(stage: Stage, out: Path) -> Iterator[Truth]:
    """A disk of 8,000 reads a second, and a memory of 320 MiB for everything.

    What fits is 12,288 blocks: a ramp of 6 s reads 48,000 at random, which leaves 2 of 100 unread.
    """
    limit = 8000
    disk = stage.loop(1200, written=False)
    call("mkfs.ext4", "-q", disk)
    folder = stage.folder / "cache"
    folder.mkdir()
    call("mount", disk, folder)
    stage._stack.callback(call, "umount", folder)
    group = stage.cgroup("memory", memory__limit_in_bytes=str(320 << 20))
    call("sync")
    stage.throttle(disk, read_iops=limit)
    words = small(
        target=str(folder / "data"), runtime="2s", ramp="6s", memory="192m", every="1s", repeats="3"
    )
    run("cache-regimes.toml", out, *words, join=[group])
    table = observations(out)
    fits = mean(table, "4k-randread", file="fits", page_cache="kept")
    yield Truth("random reads that fit, cache kept: times the disk's limit", fits / limit, 20, 1e6)
    for cache in ("kept", "dropped"):
        share = mean(table, "4k-randread", file="does not fit", page_cache=cache) / limit
        yield Truth(f"random reads that do not fit, cache {cache}: times the disk's limit", share, 0.6, 2.2)
    dropped = mean(table, "4k-randread", file="fits", page_cache="dropped")
    yield Truth("random reads that fit, dropped each second: share of those kept", dropped / fits, 0, 0.9)


def log_device(stage: Stage, out: Path) -> Iterator[Truth]:
    """Four slow disks of 50 writes a second in two mirrors, and a log of 500.

    Slower than what a busy host adds to each write, which hid the log at 100 a second. The log holds all
    that is written to it while one pool stands, in two blocks where these follow each other. A full one is
    passed by, and the disks decide: one without a limit was full then, and the page could tell nothing. The
    file is so small that the disks take it in, or writers wait for them with a log as well.
    """
    with _zfs_in_user_space(stage):
        disks = [stage.loop(256, written=False) for _ in range(4)]
        log = stage.loop(4096, written=False)
        for disk in disks:
            stage.throttle(disk, write_iops=50)
        stage.throttle(log, write_iops=500)
        words = small(devices=",".join(disks), log=log, runtime="8s", ramp="500ms", size="2m", repeats="3")
        run("log-device.toml", out, *words, devices=[*disks, log])
    table = observations(out)
    for size in ("4k", "32k", "128k"):
        slow = mean(table, "sync-write", log_device="no log", block_size=size)
        fast = mean(table, "sync-write", log_device="log", block_size=size)
        yield Truth(f"synchronous writes of {size} with a log: times those without", fast / slow, 4, 20)


@contextlib.contextmanager
def _zfs_in_user_space(stage: Stage) -> Iterator[None]:
    if shutil.which("zfs-fuse") is None:
        raise RuntimeError("not installed: zfs-fuse")
    pid = stage.folder / "zfs.pid"
    daemon = stage.beside("zfs-fuse", "--no-daemon", "--pidfile", pid)
    try:
        for _ in range(100):
            if subprocess.run(["zpool", "list"], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        yield
    finally:
        daemon.terminate()
        daemon.wait(30)


def governor_stand_in(stage: Stage, out: Path) -> Iterator[Truth]:
    """A disk in memory, so that only CPU time limits it, of which a group gets 5 % of one CPU.

    The engine alone is in the group. So its CPU time is the quota, however slow or busy the host is. With the
    rest of Loadstone beside it the IOPS left were 0.264 of those with all CPUs one day, and 0.0059 the next.
    """
    disk = stage.loop(256)
    words = small(device=disk, runtime="2s", size="64m", repeats="6")
    run("governor-stand-in.toml", out, *words, devices=[disk])
    table = observations(out)
    limited = [row.metrics for row in table.rows if row.levels["cpu"] != "as is" and row.invalid is None]
    used = statistics.fmean(one["iops"] * one["cpu_ns_per_io"] / 0.05e9 for one in limited)
    yield Truth("CPU time of the I/Os as a share of the 5 % of the group", used, 0.8, 1.1)
    slow = mean(table, "4k-randwrite", cpu="5 % of one CPU")
    whole = mean(table, "4k-randwrite", cpu="as is")
    yield Truth("IOPS with 5 % of a CPU: share of those with all", slow / whole, 0.02, 0.7)
    first = mean(table, "4k-randwrite", layer="ext4", **{"pass": "first pass"}, cpu="as is")
    later = mean(table, "4k-randwrite", layer="ext4", **{"pass": "later pass"}, cpu="as is")
    yield Truth("first pass in a file: share of later passes", first / later, 0.05, 0.9)


def upgrade(stage: Stage, out: Path) -> Iterator[Truth]:
    """A disk of 2,000 reads and 2,000 writes a second; after the "upgrade" its writes are halved.

    What was before is a directory of fio's own JSON, a file for each pattern and repeat.
    """
    disk = stage.loop(128)
    out.mkdir(parents=True, exist_ok=True)
    before, after = out / "fio", out / "after"
    patterns = tomllib.loads((EXAMPLES / "upgrade.toml").read_text())["patterns"]
    if not before.is_dir():
        stage.throttle(disk, read_iops=2000, write_iops=2000)
        before.mkdir()
        for repeat in range(2):
            for one in patterns:
                _fio(disk, one["name"], one["options"], before / f"{one['name']}-{repeat}.json")
    stage.throttle(disk, read_iops=2000, write_iops=1000)
    words = small(target=disk, runtime="2s", size="64m", repeats="2")
    run("upgrade.toml", after, *words, devices=[disk])
    page = out / "upgrade.html"
    call(*LOADSTONE, "compare", before, after, "-o", page, "-o", page.with_suffix(".pdf"))
    iops_rows = loadstone.compare(before, after).frame().filter(pl.col("metric") == "IOPS")
    for one in patterns:
        rows = iops_rows.filter(
            pl.col("part").str.contains(one["name"]) | pl.col("job").str.contains(one["name"])
        )
        change = rows.filter((pl.col("metric") == "IOPS") & pl.col("change").is_not_null())["change"]
        share = float(change[0]) + 1 if len(change) else float("nan")
        low, high = (0.42, 0.6) if "write" in one["name"] else (0.85, 1.15)
        yield Truth(f"{one['name']}: IOPS after as a share of before", share, low, high)


def _fio(disk: str, name: str, options: dict[str, object], out: Path) -> None:
    """Measure a pattern as somebody did years ago."""
    words = [f"--{key}={value}" for key, value in options.items()]
    call(
        *before_others(), "fio", f"--name={name}", f"--filename={disk}", "--size=64m", "--runtime=2",
        "--time_based", "--group_reporting", "--output-format=json", f"--output={out}", *words,
    )  # fmt: skip


READY: dict[str, Callable[[Stage, Path], Iterator[Truth]]] = {
    "raid-layouts": raid_layouts,
    "cache-regimes": cache_regimes,
    "log-device": log_device,
    "governor-stand-in": governor_stand_in,
    "upgrade": upgrade,
}


HEAD = f"""# The ready experiments, tried where the truth is known

What each of [examples/experiments](../examples/experiments/README.md) says on parts whose truth is planted.
Disks are memory behind a limit of the block layer. Control groups stand in for slow CPUs and small memories.
*Planted* is the range that the parts allow.

    python -m lab.ready_experiments --out FOLDER > docs/ready-experiments.md

On a machine with {os.cpu_count()} CPUs ({platform.platform(terse=True)}).
"""


def answer(out: Path) -> str:
    """Return what an experiment's page says first, and what it recommends."""
    story = story_on_disk(out)
    if story is None:
        return "No run completed."
    several = len(story.effects.patterns) > 1
    chosen = [
        f"{words.sentence(words.aim(one))}{f', {one.pattern}' if several else ''}: "
        f"{words.choice(story.effects, one)}"
        for one in story.effects.recommendations
    ]
    return " ".join([words.headline(story), *chosen])


def section(name: str, out: Path, truths: Sequence[Truth]) -> list[str]:
    """Return what is told of an experiment."""
    planted = inspect.getdoc(READY[name]) or ""
    answered = answer(out) if is_experiment(out) else compared(out)
    return [
        f"## {name}", "", planted.replace("\n\n", "\n"), "",
        "| what | planted | found | as planted |", "|---|---:|---:|---|", *map(str, truths), "",
        "The page says:", "", f"    {answered}", "",
    ]  # fmt: skip


def compared(out: Path) -> str:
    """Return what `loadstone compare` says of the directories before and after."""
    output = " ".join(call(*LOADSTONE, "compare", out / "fio", out / "after").split())
    return output[output.index("after against fio") :].partition(" pattern ")[0]


def main() -> int:
    """Run those that are named, or all; print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *READY], help="without names: all")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the studies")
    options = parser.parse_args()
    if reason := missing():
        print(f"cannot run here: {reason}", file=sys.stderr)
        return 2
    wrong, page = 0, [HEAD]
    os.environ.setdefault("LOADSTONE_STATE", str(options.out / "state"))
    for name in options.names or READY:
        with Stage() as stage:
            truths = list(READY[name](stage, options.out / name))
        page += section(name, options.out / name, truths)
        wrong += sum(not truth.holds for truth in truths)
    print("\n".join(page).rstrip())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
