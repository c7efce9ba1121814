"""`make bench`: what an I/O costs, fio beside Loadstone, every ratio in one table.

Each case runs its programs in turn, round after round, so that a slow minute of the machine
hits all of them; a table shows medians. Processor time per I/O is the slope between a short
and a long run, so start-up does not count, and comes from the kernel's books for the whole
process tree, not from what a program says of itself. Judges ratios only: absolute times
belong to the machine.

    python bench/compare.py [--rounds 3] [--seconds 5] [--only null,zero] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cases
import measure
import programs
from cases import CASES, BenchCase, Goal
from loops import cannot_move_workers, kernel_workers_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHORT_S = 1.0
Medians = dict[str, measure.CostPerIo]


def program(name: str, job: programs.Job, folder: Path) -> programs.Program:
    """The program of this name on a job."""
    makers: dict[str, Callable[[str, programs.Job], programs.Program]] = {
        cases.FIO: programs.fio,
        cases.TUNED: programs.fio_tuned,
        cases.BARE: partial(programs.fio_tuned, latency=False),
        cases.PRODUCT: programs.loadstone,
        cases.RING: programs.loadstone_ring,
        cases.ENGINE: partial(programs.engine, folder=folder),
        cases.NULL: partial(programs.engine, folder=folder, io=False),
    }
    return makers[name](name, job)


def compare(case: BenchCase, target: str, options: argparse.Namespace) -> tuple[Medians, dict[str, str]]:
    """Medians and commands of a case, by program."""
    short: dict[str, list[measure.MeasuredRun]] = {name: [] for name in case.programs}
    long: dict[str, list[measure.MeasuredRun]] = {name: [] for name in case.programs}
    place = kernel_workers_on(cases.CPU) if case.together else contextlib.nullcontext()
    with measure.scratch() as folder, place:
        sides = [program(name, case.job(target), Path(folder)) for name in case.programs]
        for number in range(options.rounds):
            for side in sides:
                print(f"{case.name}: round {number + 1}, {side.name}", file=sys.stderr)
                short[side.name].append(side.run(SHORT_S, options.patience))
                long[side.name].append(side.run(options.seconds, options.patience))
        commands = {side.name: side.shown(options.seconds) for side in sides}
    return {name: measure.slope(short[name], long[name]) for name in case.programs}, commands


def ratio(goal: Goal, medians: Medians) -> float:
    """What was found for a goal."""
    ours, theirs = medians[cases.PRODUCT], medians[goal.against]
    match goal.what:
        case "iops":
            return ours.iops / theirs.iops
        case "cpu":
            return theirs.total_ns / ours.total_ns
        case "lat":
            return ours.lat_ns / theirs.lat_ns
    raise AssertionError(goal.what)


def met(goal: Goal, measured_ratio: float) -> bool:
    """Whether a ratio is as asked; latencies should be small, everything else large."""
    return measured_ratio <= goal.asked if goal.what == "lat" else measured_ratio >= goal.asked


def costs_table(results: dict[str, Medians]) -> str:
    """Every side's numbers."""
    rows = [
        [case, name, *_numbers(cost), _times(medians, name)]
        for case, medians in results.items()
        for name, cost in medians.items()
    ]
    head = [
        "case",
        "program",
        "IOPS",
        "user ns",
        "system ns",
        "kernel ns",
        "mean lat",
        "others",
        "IOPS, loadstone fio over it",
    ]
    return markdown(head, rows)


def goals_table(results: dict[str, Medians]) -> str:
    """Every ratio asked for."""
    words = {
        "iops": "IOPS, loadstone fio over {}",
        "cpu": "processor time per I/O, {} over loadstone fio",
        "lat": "mean latency, loadstone fio over {}",
    }
    rows = []
    for case in CASES:
        for goal in case.goals if case.name in results else ():
            measured = ratio(goal, results[case.name])
            sign = "≤" if goal.what == "lat" else "≥"
            verdict = "no data" if math.isnan(measured) else "yes" if met(goal, measured) else "**no**"
            rows.append(
                [
                    case.name,
                    words[goal.what].format(goal.against),
                    f"{sign} {goal.asked:g}",
                    f"{measured:.2f}",
                    verdict,
                ]
            )
    return markdown(["case", "ratio", "asked", "found", "met"], rows)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def nanoseconds(value_ns: float) -> str:
    """Whole nanoseconds, or that there are none."""
    return "no data" if math.isnan(value_ns) else f"{value_ns:.0f}"


def _numbers(cost: measure.CostPerIo) -> list[str]:
    latency = f"{cost.lat_ns / 1e3:.2f} µs" if cost.lat_ns else "not kept"
    per_io = [nanoseconds(value) for value in (cost.user_ns, cost.system_ns, cost.kernel_ns)]
    return [f"{cost.iops / 1e6:.3f} M", *per_io, latency, f"{cost.others_cores:.2f}"]


def _times(medians: Medians, name: str) -> str:
    return "" if name == cases.PRODUCT else f"x{medians[cases.PRODUCT].iops / medians[name].iops:.2f}"


def arguments() -> argparse.Namespace:
    """The command line."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (default 3)")
    parser.add_argument("--seconds", type=float, default=5, help="length of the long runs (default 5)")
    parser.add_argument("--only", default=",".join(names), help=f"cases, of {','.join(names)}")
    parser.add_argument("--patience", type=float, default=0, help="seconds to wait for an idle machine")
    parser.add_argument("--folder", help="where the test file is made (default: the temporary directory)")
    parser.add_argument("--json", type=Path, help="write all numbers there, too")
    options = parser.parse_args()
    options.only = named(parser, options.only, names, "case")
    if options.rounds < 1 or options.seconds <= SHORT_S:
        parser.error(f"--rounds must be at least 1 and --seconds above {SHORT_S:g}, the short run")
    return options


def named(parser: argparse.ArgumentParser, names: str, valid: Sequence[str], kind: str) -> list[str]:
    """Return the names of `--only`; end with what is valid where one is not."""
    words = names.split(",")
    if unknown := [name for name in words if name not in valid]:
        parser.error(f"--only: there is no {kind} {unknown[0]}; there are {', '.join(valid)}")
    return words


def main() -> None:
    """Run the cases; print the tables and the commands."""
    options = arguments()
    measure.tidy_when_stopped()
    results: dict[str, Medians] = {}
    commands: dict[str, dict[str, str]] = {}
    with cases.targets(options.folder) as paths:
        for case in CASES:
            if case.name not in options.only or (case.needs and case.needs not in paths):
                continue
            if case.together and (reason := cannot_move_workers()):
                print(f"{case.name}: left out: {reason}", file=sys.stderr)
                continue
            results[case.name], commands[case.name] = compare(case, paths.get(case.needs, ""), options)
    where = f"{time.strftime('%Y-%m-%d')}, Linux {platform.release()}, {'; '.join(programs.versions())}"
    print(f"{where}; medians of {options.rounds} rounds of {options.seconds:g} s\n")
    print(costs_table(results), goals_table(results), sep="\n\n")
    for heading, lines in commands.items():
        print(f"\n{heading}:", *(f"    {line}  # {name}" for name, line in lines.items()), sep="\n")
    if options.json:
        document = {
            "taken": where,
            "rounds": options.rounds,
            "seconds": options.seconds,
            "commands": commands,
            "costs": {
                case: {name: measure.known(cost) for name, cost in medians.items()}
                for case, medians in results.items()
            },
        }
        options.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
