# ruff: noqa: E501 - files as people write them
"""Valid files with every kind of factor: they run, are put back, and say what is not known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from lab.experiment_attacks.bench import LOAD, AttackBench, WrongError


def valid(bench: AttackBench, factors: str, runs: int, *words: str, **changes: str) -> None:
    """Plan, run and report a file with these factors, and count its runs."""
    path = bench.file(bench.text(factors, **changes))
    bench.ran("plan", path, *(word for word in words if word == "--allow-exec")).ends(0)
    bench.is_put_back()
    bench.ran("run", path, *words).ends(0)
    bench.complete(bench.folder / "out", runs)
    bench.ran("report", bench.folder / "out", "--output", str(bench.folder / "page.html")).ends(0)


def option(bench: AttackBench) -> None:
    """Any option of a job."""
    name, levels = bench.draw.choice([("bs", '"4k", "8k"'), ("rwmixread", "20, 80"), ("numjobs", "1, 2")])
    valid(bench, f'\n[[factors]]\nname = "f"\noption = "{name}"\nlevels = [{levels}]\n', 4)


def parameter(bench: AttackBench) -> None:
    """A parameter of a named workload."""
    load = '\n[[patterns]]\nname = "load"\nworkload = "storagereview-sql-80-20-like"\noptions = { ioengine = "psync" }\n'
    text = bench.text('\n[[factors]]\nname = "f"\nparameter = "dephts"\nlevels = [1, 2]\n', load=load)
    path = bench.file(text)
    bench.ran("plan", path).ends(2).says("dephts")


def control(bench: AttackBench) -> None:
    """A scheduler or a read-ahead of a device."""
    device = bench.stage.loop(32, written=False)
    bench.before = bench.snapshot()
    name, levels = bench.draw.choice(
        [("io_scheduler", '"none", "mq-deadline"'), ("read_ahead_kb", "128, 16")]
    )
    factor = f'\n[[factors]]\nname = "f"\ncontrol = "{name}"\nsubject = "{device}"\nlevels = [{levels}]\n'
    valid(bench, factor, 4, "--i-accept-data-loss", device, target=device)


def layout(bench: AttackBench) -> None:
    """Layouts on two devices."""
    devices = [bench.stage.loop(200, written=False) for _ in range(2)]
    bench.before = bench.snapshot()
    raid = bench.draw.choice(["0", "1"])
    factors = (
        f'\n[layouts.array]\nmanager = "btrfs"\nraid = "{raid}"\n\n[layouts.each]\nfilesystem = "ext4"\n'
        '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["array", "each"]\n'
    )
    text = bench.text(factors, target="{file}")
    names = ", ".join(f'"{one}"' for one in devices)
    path = bench.file(f"devices = [{names}]\n{text}")
    bench.ran("run", path).ends(0)
    bench.complete(bench.folder / "out", 4)


def two_targets(bench: AttackBench) -> None:
    """Targets."""
    names = ", ".join(f'"{bench.folder}/{one}"' for one in "ab")
    valid(bench, f'\n[[factors]]\nname = "f"\nkind = "target"\nlevels = [{names}]\n', 4)


def allocation(bench: AttackBench) -> None:
    """States of a file."""
    levels = ", ".join(
        f'"{one}"' for one in bench.draw.sample(["first pass", "later pass", "holes", "preallocated"], 2)
    )
    # A load that reads as well lays a new file out: it is refused.
    factor = f'\n[[factors]]\nname = "f"\nkind = "allocation"\nlevels = [{levels}]\n'
    valid(bench, factor, 4, load=LOAD.replace("randrw", "randwrite"))


def page_cache(bench: AttackBench) -> None:
    """The page cache."""
    valid(bench, '\n[[factors]]\nname = "f"\nkind = "page_cache"\nlevels = ["kept", "dropped"]\n', 4)


def cache_share(bench: AttackBench) -> None:
    """Sizes as a share of memory."""
    factor = '\n[[factors]]\nname = "f"\nkind = "cache_share"\nof = "8m"\nlevels = ["25%", "100%"]\n'
    valid(bench, factor, 4)


def _volume(bench: AttackBench) -> Path:
    volume = bench.stage.ext4(bench.stage.loop(96, written=False), options="relatime")
    bench.before = bench.snapshot()
    return volume


def fill(bench: AttackBench) -> None:
    """How full a file system is."""
    volume = _volume(bench)
    percent = bench.draw.randrange(40, 80)
    factor = (
        f'\n[[factors]]\nname = "f"\nkind = "fill_level"\nof = "{volume}"\nlevels = ["as is", "{percent}%"]\n'
    )
    valid(bench, factor, 4, target=str(volume / "data"))


def group(bench: AttackBench) -> None:
    """Limits of a control group."""
    file = "memory.limit_in_bytes" if Path("/sys/fs/cgroup/memory").is_dir() else "memory.max"
    level = f'{{ name = "small", limits = {{ "{file}" = "{bench.draw.randrange(400, 900)}M" }} }}'
    valid(bench, f'\n[[factors]]\nname = "f"\nkind = "cgroup"\nlevels = ["as is", {level}]\n', 4)


def once(bench: AttackBench) -> None:
    """One repeat: it runs, and says that chance cannot be ruled out."""
    target = _volume(bench) / "data"
    # Direct, or nothing of it may have reached the disk when it ends, and no run is valid.
    load = LOAD.replace("bs =", "direct = 1, bs =")
    path = bench.file(bench.text(target=str(target), load=load).replace("repeats = 2", "repeats = 1"))
    ended = bench.ran("run", path).ends(0)
    if "chance cannot be ruled out" not in ended.out + ended.err:
        raise WrongError(f"does not say that nothing is known: {ended.out[-800:]}")


def aliased(bench: AttackBench) -> None:
    """A fraction: what cannot be told apart is named; one that is too small is refused."""
    names = ("bs", "numjobs", "rwmixread", "fsync")
    levels = ('"4k", "8k"', "1, 2", "20, 80", "0, 8")
    factors = "".join(
        f'\n[[factors]]\nname = "{name}"\noption = "{name}"\nlevels = [{level}]\n'
        for name, level in zip(names, levels, strict=True)
    )
    small = bench.draw.random() < 0.5
    extra = f'repeats = 1\ndesign = "fraction"\nbudget = {{ time = "{"9s" if small else "18s"}" }}'
    path = bench.file(bench.text(factors).replace("repeats = 2", extra))
    if small:
        for action in ("plan", "run"):
            bench.ran(action, path).ends(2).says("budget")
        return
    ended = bench.ran("plan", path).ends(0)
    if not re.search("is aliased with|is mixed in part with", ended.out):
        raise WrongError(f"does not say what is aliased: {ended.out[-800:]}")


ATTACKS: Final = (
    option,
    parameter,
    control,
    layout,
    two_targets,
    allocation,
    page_cache,
    cache_share,
    fill,
    group,
    once,
    aliased,
)
