"""Somebody else at the same time: another experiment, `loadstone restore`, another hand on a setting."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from lab.experiment_attacks.bench import VARIED, AttackBench, WrongError, begun


def changed_by_others(bench: AttackBench) -> None:
    """Somebody sets the control to a third value during a run: it is theirs, and that is said."""
    path, out = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="3s")), bench.folder / "out"
    process = bench.start("run", path)
    begun(process, out, 1)
    time.sleep(bench.draw.uniform(1.0, 3.0))
    file = Path("/proc/sys/vm/stat_interval")
    try:
        file.write_text("5")
        bench.ended(process).ends(1).says(
            "STILL CHANGED", "NOT put back to 1: something else set it to 5 since"
        )
        if file.read_text().strip() != "5":
            raise WrongError(f"somebody's value was changed to {file.read_text().strip()}")
        bench.restore().ends(1).says("something else set it to 5")
        bench.restore("--force").ends(0)
        bench.is_put_back()
    finally:
        file.write_text(bench.before["sysctl"])
    bench.ran("resume", out).ends(0)
    bench.complete(out, 4)


def restored_meanwhile(bench: AttackBench) -> None:
    """`loadstone restore` while an experiment runs: refused, and the experiment goes on."""
    path, out = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="3s")), bench.folder / "out"
    process = bench.start("run", path)
    begun(process, out, 1)
    time.sleep(bench.draw.uniform(1.0, 3.0))
    before = Path("/proc/sys/vm/stat_interval").read_text()
    restored = bench.restore(*bench.draw.choice([(), ("--force",)])).ends(0, 1)
    # Between two runs all is as it was, and nothing is to be put back.
    restored.says(r"refused: process \d+ is alive" if restored.code else "nothing was left changed")
    if before.strip() in ("6", "7") and Path("/proc/sys/vm/stat_interval").read_text().strip() == "1":
        raise WrongError("what a living experiment set was put back")
    bench.ended(process).ends(0)
    bench.complete(out, 4)


def one_target(bench: AttackBench) -> None:
    """Two experiments on one target: the second is refused, also between two runs of the first."""
    path = bench.file(bench.text(runtime="4s"))
    second = bench.folder / "second.toml"
    second.write_text(
        path.read_text().replace("vm.stat_interval", "vm.page-cluster").replace("[1, 7]", "[3, 2]")
    )
    process = bench.start("run", path)
    begun(process, bench.folder / "out", 1)
    time.sleep(1.0)
    bench.ran("run", second, "--out", str(bench.folder / "out2")).ends(2).says(
        r"data: process \d+ uses it", "wait for it"
    )
    bench.ended(process).ends(0)
    bench.complete(bench.folder / "out", 4)


def two_at_once(bench: AttackBench) -> None:
    """Two experiments on one control: the second is refused what the first has set."""
    first = bench.file(bench.text(VARIED.replace("[1, 7]", "[6, 7]"), runtime="4s"))
    second = bench.folder / "second.toml"
    second.write_text(first.read_text().replace("/data", "/other").replace('"4s"', '"1s"'))
    process = bench.start("run", first)
    begun(process, bench.folder / "out", 1)
    other = bench.ran("run", second, "--out", str(bench.folder / "out2"))
    other.ends(2).says(r"sysctl of vm.stat_interval: process \d+ uses it", "wait for it")
    bench.ended(process).ends(0)
    bench.complete(bench.folder / "out", 4)
    bench.is_put_back()
    bench.ran("run", second, "--out", str(bench.folder / "out2")).ends(0)
    bench.complete(bench.folder / "out2", 4)


ATTACKS: Final = (changed_by_others, restored_meanwhile, one_target, two_at_once)
