# ruff: noqa: E501 - a page of text
"""How much runs of one load differ without a cause, and how often single runs are told apart.

Draws targets and patterns from a seed, and runs each job file several times on one target that nobody
changes: a file on this host's disk, loop devices and zram, file systems on them, served and limited
disks. Prints how far two runs of one load are apart, and the same of published repeats. Then every second
run is compared with the one before it, as `loadstone compare` and its gate do. Of planted pairs the
second run is on a target that is slower by a known share.

    python -m lab.single_runs --seed 560901 --keep FILE > docs/compare-single-runs.md

Needs root. About two minutes for a target with six runs. What was measured is kept in the file, and a later run goes
on from it; without new targets it only prints.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from lab.parts import MissingPartError, Stage, missing, write
from lab.plateaus import PLATTER

from loadstone.analysis.statistics.significance import Sample
from loadstone.comparison import gate as gates
from loadstone.comparison import single_runs
from loadstone.comparison.compare import compare
from loadstone.comparison.metric import IOPS, MEAN, P99
from loadstone.comparison.side import side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.comparison.measured_values import Value
    from loadstone.comparison.phase import ComparedPhase

    Staged = Callable[[Stage, float], str | Path]

DETECT: Final = 0.05
PLANTED: Final = (0.05, 0.1, 0.2, 0.3, 0.5)
"""By how much the second target is slower."""
METRICS: Final = (IOPS, MEAN, P99)
OPS: Final = ("randread", "randwrite", "read", "write", "randrw")
SIZES: Final = ("4k", "4k", "16k", "64k")
DEPTHS: Final = (1, 4, 16)
LENGTH_S: Final = 5
FILE_MIB: Final = 256
PATTERNS: Final = 2
PUBLISHED: Final = ("fio-governor.toml", "iometer-nfs.toml")
EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "published"
SPREADS: Final = (
    "| two runs of one load | loads | half are above | above 10 % | above 1.4× | above 2× | farthest |"
)
ANSWERS: Final = "| slower by | pairs | not valid | some row better | some row worse | single runs differ | gate 0 | gate 97 | gate 98 |"


def _disk_file(stage: Stage, _: float) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="loadstone-single-", dir="/var/tmp"))
    stage.afterwards("rm", "-r", folder)
    return write(folder / "file", FILE_MIB)


def _in_memory(stage: Stage, _: float) -> Path:
    return stage.backing(128)


def _loop(stage: Stage, _: float) -> str:
    return stage.loop(128)


def _cached_loop(stage: Stage, _: float) -> str:
    return stage.loop_over(stage.backing(128), direct=False)


def _zram(stage: Stage, _: float) -> str:
    return stage.zram(128)


def _ext4(stage: Stage, _: float) -> Path:
    return write(stage.ext4(stage.loop(400, written=False)) / "file", 128)


def _xfs(stage: Stage, _: float) -> Path:
    return write(stage.xfs(stage.loop(400, written=False)) / "file", 128)


def _btrfs(stage: Stage, _: float) -> Path:
    return write(stage.btrfs(stage.loop(400, written=False)) / "file", 128)


def _fuse(stage: Stage, _: float) -> Path:
    return stage.fuse_file(mib=64)


def _delayed(stage: Stage, slower: float) -> str:
    delay = f"{round(20 / (1 - slower))}ms"
    return stage.served(f"rdelay={delay}", f"wdelay={delay}", filters=["delay"])


def _platter(stage: Stage, slower: float) -> str:
    turn = f"TURN_S, TRACK = 64 << 20, {60 / 7200 / (1 - slower)!r}"
    return stage.plugin(PLATTER.replace("TURN_S, TRACK = 64 << 20, 60 / 7200", turn), 64)


def _throttled(stage: Stage, slower: float) -> str:
    device = stage.loop(128)
    limit = round(900 * (1 - slower))
    stage.throttle(device, read_iops=limit, write_iops=limit)
    return device


def _limited(stage: Stage, slower: float) -> str:
    return stage.smooth(iops=round(1500 * (1 - slower)))


def _slow_network(stage: Stage, slower: float) -> str:
    return stage.remote(f"{round(200_000 * (1 - slower))}kbit")


KNOWN: Final[Mapping[str, Staged]] = {
    "a disk of 20 ms": _delayed,
    "a platter": _platter,
    "a limit of the block layer": _throttled,
    "a limit of a hypervisor": _limited,
    "a network of 200 Mbit/s": _slow_network,
}
"""Targets that can be slower by a known share."""
TARGETS: Final[Mapping[str, Staged]] = {
    "a file on the host's disk": _disk_file,
    "a file in memory": _in_memory,
    "a loop device": _loop,
    "a loop device through the page cache": _cached_loop,
    "zram": _zram,
    "ext4": _ext4,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "a file of a FUSE server": _fuse,
    **KNOWN,
}


@dataclass(frozen=True)
class DrawnTarget:
    """What is run, and on what."""

    number: int
    target: str
    slower: float
    job: str


def draw(seed: int, number: int, *, planted: bool) -> DrawnTarget:
    """Draw the patterns of a target; targets take turns."""
    chance = np.random.default_rng([seed, number])
    names = list(KNOWN if planted else TARGETS)
    name = names[number % len(names)]
    cached = not planted and name in {"a file on the host's disk", "ext4", "xfs", "btrfs", "a file in memory"}
    lines = [
        "[global]",
        "filename={0}",
        "time_based",
        f"runtime={LENGTH_S}s",
        "ramp_time=1s",
        "refill_buffers=1",
    ]
    direct = not (name == "a file in memory" or (cached and chance.random() < 0.35))
    lines += ["ioengine=libaio", "direct=1"] if direct else ["ioengine=psync"]
    for at in range(PATTERNS):
        depth = int(chance.choice(DEPTHS))
        queue = f"iodepth={depth}" if direct else f"numjobs={min(depth, 4)}\ngroup_reporting"
        op = OPS[chance.integers(len(OPS))]
        lines += [f"[phase{at}]", "stonewall", f"rw={op}", f"bs={SIZES[chance.integers(len(SIZES))]}", queue]
    slower = float(chance.choice(PLANTED)) if planted else 0.0
    return DrawnTarget(number, name, slower, "\n".join(lines) + "\n")


def measure(drawn: DrawnTarget, runs: int) -> dict[str, Any]:
    """Run it so often; return what is kept of each run and of each comparison of one with the next."""
    with tempfile.TemporaryDirectory(prefix="loadstone-single-") as place:
        bundles = []
        if drawn.slower:
            for at, slower in enumerate((0.0, drawn.slower)):
                with Stage() as stage:
                    bundles.append(_run(stage, drawn, slower, Path(place) / f"run{at}"))
        else:
            with Stage() as stage:
                target = TARGETS[drawn.target](stage, 0.0)
                bundles = [
                    _moved(stage.run(drawn.job, target), Path(place) / f"run{at}") for at in range(runs)
                ]
        phases = [side(bundle).phases for bundle in bundles]
        pairs = list(zip(bundles[::2], bundles[1::2], strict=False))
        return {
            "number": drawn.number, "target": drawn.target, "slower": drawn.slower,
            "phases": [[_figures(one) for one in some] for some in phases],
            "pairs": [compared(pair) for pair in pairs],
        }  # fmt: skip


def _run(stage: Stage, drawn: DrawnTarget, slower: float, place: Path) -> Path:
    return _moved(stage.run(drawn.job, KNOWN[drawn.target](stage, slower)), place)


def _moved(bundle: Path, place: Path) -> Path:
    shutil.move(bundle, place)
    return place


def _figures(phase: ComparedPhase) -> dict[str, Any]:
    def number(value: Value | None) -> float | None:
        return value.value if isinstance(value, Sample) else None

    return {
        "name": phase.name, "pattern": phase.pattern, "depth": phase.depth, "valid": phase.valid,
        "values": {metric.name: number(phase.values.get(metric)) for metric in METRICS},
    }  # fmt: skip


def compared(pair: Sequence[Path]) -> dict[str, Any]:
    """Return what the program says of two runs."""
    table = compare(list(pair))
    powers = gates.powers(table.effects, table.sides, detect=DETECT, alpha=table.alpha)
    gate = gates.gate(table.effects, table.sides, powers, detect=DETECT, alone=table.alone)
    rows = [
        {
            "pattern": one.pattern, "metric": one.metric.name, "first": one.first, "judgement": one.judgement,
            "change": None if one.contrast is None else one.contrast.change,
            "interval": None if one.contrast is None else [one.contrast.low, one.contrast.high],
        }
        for one in table.effects
    ]  # fmt: skip
    return {"rows": rows, "gate": gate.outcome}


def apart(records: Sequence[Mapping[str, Any]], metric: str) -> list[list[float]]:
    """Return of each load how many times any two of its valid runs are apart."""
    every = []
    for record in records:
        for phase in zip(*record["phases"], strict=True):
            values = [one["values"][metric] for one in phase if one["valid"]]
            every.append([value for value in values if value])
    return [_apart(values) for values in every if len(values) > 1]


def published() -> list[list[float]]:
    """Return the same of rates that others measured again and again, and published."""
    phases = [phase for name in PUBLISHED for phase in side(EXAMPLES / name).phases]
    every = [[one.value for one in phase.case.repeats] for phase in phases]
    return [_apart(values) for values in every if len(values) > 1]


def _apart(values: Sequence[float]) -> list[float]:
    return [max(a, b) / min(a, b) for a, b in combinations(values, 2)]


def spread_line(name: str, loads: Sequence[Sequence[float]]) -> str:
    """Return a line: each load counts once, whatever the number of its runs."""
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for one in loads]) / len(loads)
    factors = np.concatenate([np.array(one) for one in loads])
    order = np.argsort(factors)
    middle = factors[order][np.searchsorted(np.cumsum(weights[order]), 0.5)]
    shares = " | ".join(
        f"{100 * weights[factors > limit].sum():.1f} %" for limit in (1.1, single_runs.BEYOND, 2.0)
    )
    return f"| {name} | {len(loads)} | {100 * (middle - 1):.1f} % | {shares} | {factors.max():.2f}× |"


def page(records: Sequence[Mapping[str, Any]], command: str) -> str:
    """Return the page."""
    lines = [SPREADS, "|---|---:|---:|---:|---:|---:|---:|", spread_line("published rates", published())]
    alike = [record for record in records if not record["slower"]]
    measured = {metric.name: apart(alike, metric.name) for metric in METRICS}
    lines += [spread_line(f"measured here, {name}", loads) for name, loads in measured.items() if loads]
    return (
        "\n".join(
            [
                "# How much single runs differ",
                "",
                f"`{command}` ran loads again and again on targets that did not change. Every second run was compared with the one before it. Targets are a file on the host's disk, loop devices, zram, file systems, a FUSE server, served and limited disks. The published rates are those of `examples/published` that were repeated.",
                "",
                *lines,
                "",
                f"Each load counts once. A column has the share of its pairs of valid runs that are farther apart. A busy host drives runs apart, and their own errors say so. So a difference between two single runs is significant only beyond a factor of {single_runs.BEYOND:g}. That was chosen from the published rates, after the pairs below had been seen.",
                "",
                "## What is said of two single runs",
                "",
                f"The first line has pairs without a difference, the others pairs whose second target was slower by a known share. A row of a pair may be *better*, *worse*, or differ more than within the two runs. The gate was to find {100 * DETECT:.0f} %.",
                "",
                *answer_lines(records),
            ]
        )
        + "\n"
    )


def answer_lines(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of what was said of the pairs, by how much slower the second run's target is."""
    lines = [ANSWERS, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for slower in sorted({record["slower"] for record in records}):
        pairs = [pair for record in records if record["slower"] == slower for pair in record["pairs"]]
        judged = [{row["judgement"] for row in pair["rows"]} for pair in pairs]
        codes = Counter({"passed": 0, "regression": 97}.get(pair["gate"], 98) for pair in pairs)
        invalid = sum(pair["gate"] == "not_valid" for pair in pairs)
        counts = [
            invalid,
            *(sum(word in one for one in judged) for word in ("better", "worse", "unrepeated")),
        ]
        cells = " | ".join(map(str, [*counts, *(codes[code] for code in (0, 97, 98))]))
        lines.append(f"| {100 * slower:.0f} % | {len(pairs)} | {cells} |")
    return lines


def main() -> int:
    """Measure what the file does not have yet, and print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--targets", type=int, default=14)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--planted", type=int, default=20, help="pairs with a planted difference")
    parser.add_argument("--keep", type=Path, required=True, help="file of what was measured")
    options = parser.parse_args()
    if (why := missing()) is not None:
        sys.exit(why)
    keep: Path = options.keep
    records = [json.loads(line) for line in keep.read_text().splitlines()] if keep.exists() else []
    done = {(record["slower"] > 0, record["number"]) for record in records}
    wanted = [(False, at) for at in range(options.targets)] + [(True, at) for at in range(options.planted)]
    with keep.open("a") as file:
        for planted, number in wanted:
            if (planted, number) in done:
                continue
            drawn = draw(options.seed, number, planted=planted)
            sys.stderr.write(f"{number}: {drawn.target}\n")
            try:
                record = measure(drawn, options.runs)
            except (MissingPartError, RuntimeError) as error:
                sys.stderr.write(f"  left out: {error}\n")
                continue
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
    command = "python -m lab.single_runs"
    for name in ("seed", "targets", "runs", "planted"):
        command += f" --{name} {getattr(options, name)}"
    sys.stdout.write(page(records, f"{command} --keep FILE"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
