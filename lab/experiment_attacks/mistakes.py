# ruff: noqa: E501 - files as people write them
"""Mistakes in a file: each is said with its line, and nothing is begun."""

from __future__ import annotations

import os
from typing import Final

from lab.experiment_attacks.bench import LOAD, VARIED, AttackBench, WrongError, line_of


def misspelt(bench: AttackBench) -> None:
    """A name that is none, in one of many places."""
    right, wrong, near = bench.draw.choice(
        [
            ("repeats", "repaets", "repeats"),
            ("levels", "level", "levels"),
            ('control = "sysctl"', 'control = "sysctrl"', "sysctl"),
            ("[[patterns]]", "[[pattern]]", "patterns"),
            ("rate_iops", "rate_iopps", "rate_iops"),
            ("subject", "subjct", "subject"),
        ]
    )
    path = bench.file(bench.text().replace(right, wrong, 1))
    for action in ("plan", "run"):
        refusal = bench.ran(action, path).ends(2).says(rf"did you mean '?{near}|{near}")
        if wrong != "rate_iopps":
            refusal.says(line_of(path, wrong))


def wrong_value(bench: AttackBench) -> None:
    """A value that is none."""
    right, wrong = bench.draw.choice(
        [
            ("repeats = 2", "repeats = 0"),
            ('runtime = "1s"', 'runtime = "1"'),
            ('size = "4m"', 'size = "four"'),
            ('control = "sysctl"', 'control = "sysctl"\noption = "bs"'),
            ("levels = [1, 7]", "levels = [1]"),
            ("levels = [1, 7]", "levels = [1, 1]"),
        ]
    )
    path = bench.file(bench.text().replace(right, wrong, 1))
    bench.ran("run", path).ends(2).says(rf"{path.name}:\d+")


def one_thing_twice(bench: AttackBench) -> None:
    """Two factors on one control or one option, or a factor and a setting."""
    second = VARIED.replace('name = "pressure"', 'name = "again"')
    either = bench.draw.choice(
        [
            (VARIED + second, "again"),
            (VARIED + '\n[[settings]]\ncontrol = "sysctl"\nsubject = "vm.stat_interval"\nvalue = 5\n', "settings"),
            ("".join(f'\n[[factors]]\nname = "{name}"\noption = "bs"\nlevels = ["4k", "8k"]\n' for name in "ab"), "b"),
        ]
    )  # fmt: skip
    path = bench.file(bench.text(either[0]))
    bench.ran("plan", path).ends(2).says(rf"{path.name}:\d+")
    bench.ran("run", path).ends(2)


def cannot_be_set(bench: AttackBench) -> None:
    """A level that this host does not have."""
    factor = bench.draw.choice(
        [
            VARIED.replace("stat_interval", "no_such_parameter"),
            '\n[[factors]]\nname = "f"\ncontrol = "governor"\nlevels = ["performance", "powersave"]\n',
            '\n[[factors]]\nname = "f"\nkind = "cgroup"\nlevels = ["as is", { name = "x", limits = { "nosuch.max" = "1" } }]\n',
        ]
    )  # fmt: skip
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says("cannot be set here", "--leave-out-unset")
    if (bench.folder / "out").exists():
        raise WrongError("a study was begun")


def not_taken(bench: AttackBench) -> None:
    """A value that only the kernel refuses, during the study."""
    path = bench.file(bench.text(VARIED.replace("1, 7", '1, "many"')))
    bench.ran("run", path).ends(1, 2).says("stat_interval")


def unknown_kind(bench: AttackBench) -> None:
    """A factor of no kind, of two, or of one that needs something else."""
    factor = bench.draw.choice(
        [
            VARIED.replace('control = "sysctl"', 'kind = "governer"'),
            VARIED.replace('control = "sysctl"\n', ""),
            VARIED + 'kind = "page_cache"\n',
            '\n[[factors]]\nname = "f"\nkind = "fill_level"\nlevels = ["10%", "20%"]\n',
            '\n[[factors]]\nname = "f"\nkind = "layout"\nlevels = ["one", "two"]\n',
        ]
    )
    path = bench.file(bench.text(factor))
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says(rf"{path.name}:\d+")


def no_effect(bench: AttackBench) -> None:
    """A factor that does nothing to this workload: refused before the study."""
    name, levels = bench.draw.choice(
        [("rwmixread", "20, 80"), ("iodepth", "1, 8"), ("numjobs", '1, "1"'), ("bs", '"4k", "4096"')]
    )
    load = LOAD if name != "rwmixread" else LOAD.replace("randrw", "randread")
    path = bench.file(
        bench.text(f'\n[[factors]]\nname = "f"\noption = "{name}"\nlevels = [{levels}]\n', load=load)
    )
    for action in ("plan", "run"):
        bench.ran(action, path).ends(2).says(rf"{path.name}:\d+")
    if (bench.folder / "out").exists():
        raise WrongError("a study was begun")


def no_file(bench: AttackBench) -> None:
    """What is no file of an experiment."""
    path = bench.folder / "attack.toml"
    kind = bench.draw.choice(["absent", "empty", "binary", "folder", "json", "cut"])
    match kind:
        case "empty":
            path.write_text("")
        case "binary":
            path.write_bytes(os.urandom(4096))
        case "folder":
            path.mkdir()
        case "json":
            path.write_text('{"title": 1}')
        case "cut":
            path.write_text(bench.text()[: bench.draw.randrange(20, 200)])
        case _:
            pass
    bench.ran("plan", path).ends(2).says(path.name)
    bench.ran("run", path).ends(2)
    bench.ran("resume", path).ends(1, 2)
    bench.ran("report", path).ends(1, 2)


def small_budget(bench: AttackBench) -> None:
    """Less time or fewer bytes than it takes: the last runs are left out, and `resume` begins no more."""
    limit = bench.draw.choice(['time = "6s"', 'written = "1200k"', 'time = "1s"', 'written = "1k"'])
    path = bench.file(bench.text().replace("repeats = 2", f"repeats = 40\nbudget = {{ {limit} }}"))
    ran = bench.ran("run", path).says("budget")
    out = bench.folder / "out"
    count = len(bench.runs(out))
    ran.ends(0 if count else 1)
    if count >= 80:
        raise WrongError("the budget was exceeded")
    if limit.startswith("time"):
        bench.ran("resume", out).ends(0 if count else 1).says("budget")
        if len(bench.runs(out)) > count + 1:
            raise WrongError(f"resumed, it did {len(bench.runs(out)) - count} more runs")


ATTACKS: Final = (
    misspelt,
    wrong_value,
    one_thing_twice,
    cannot_be_set,
    not_taken,
    unknown_kind,
    no_effect,
    no_file,
    small_budget,
)
