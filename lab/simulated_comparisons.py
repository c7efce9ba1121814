# ruff: noqa: E501 - a page of text
"""How often a comparison is right: pairs whose runs the engine measured on a simulated device.

Draws a pair from a seed: a known difference, one to five runs of each side of 10 s to 200 s, drift,
stalls, runs that differ among themselves, and in some pairs a phase whose I/Os fail and that is three
times as fast. The clock is virtual. Phases of several pairs are jobs of one Plan, each with a device and
a clock of its own; those of one length are a stage, and those that fail are others. What the audit says
of a stage is what its phases are worth. Judges as `loadstone compare` and its gate do.

    python -m lab.simulated_comparisons --pairs 1000 --seed 561200 --more 256 --keep build/lab/comparisons.jsonl > docs/compare-calibration.md

What was measured is kept in the file, and a later run goes on from it. With `--pairs 0` only the table of the
stated power is printed, of `--more` pairs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from lab.comparisons import (
    DETECT,
    PATTERNS,
    PairKind,
    PairOutcome,
    calibration,
    difference_lines,
    judged,
    names,
    power_lines,
)
from lab.experiments import share
from lab.steady_device import steady_device

from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge_case
from loadstone.bundle.read import Bundle
from loadstone.comparison import measured_values
from loadstone.comparison.compare import beside
from loadstone.comparison.phase import ComparedPhase
from loadstone.comparison.side import Side
from loadstone.formats.fio.read import TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.model import BackendSim, SimBehaviour, SimDevice
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from loadstone.session import RunRequest, run_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.audit.case import Case
    from loadstone.plan.model import Plan

DIFFERENCES: Final = {0.0: 0.35, 0.01: 0.1, 0.02: 0.15, 0.05: 0.25, 0.10: 0.15}
"""By how much the second side is slower, and in which share of the pairs."""
REPEATS: Final = ((1, 1), (1, 1), (2, 2), (3, 3), (5, 5), (1, 3), (5, 1), (2, 5))
LENGTHS_S: Final = (10, 20, 60, 60, 200)
OPTIONS: Final = dict(
    zip(PATTERNS, ("rw=randread bs=4k", "rw=randwrite bs=4k", "rw=read bs=128k"), strict=True)
)
BLOCK_BYTES: Final = dict(zip(PATTERNS, (4096, 4096, 131_072), strict=True))
SERVERS: Final = 4
CHUNK_BYTES: Final = 65_536
"""The simulated device takes longer for the first I/O in each of these."""
TOGETHER: Final = 16
"""Pairs of one Plan."""
STALLED_S: Final = 8
"""A device that stalls does so about as often."""
FAILING_PPM: Final = 200_000
FASTER: Final = 3


@dataclass(frozen=True)
class PlannedPhase:
    """One phase of one run: how its device is."""

    name: str
    side: int
    run: int
    pattern: str
    length_s: int
    service_ns: float
    drift: float
    """Share by which an I/O takes longer at the beginning (random) or at the end (sequential)."""
    stalled: float
    """Share of the time in which the device stands still."""
    valid: bool


@dataclass(frozen=True)
class PlannedPair:
    """A pair before its runs, and what is true of it."""

    seed: int
    difference: float
    everywhere: bool
    kind: PairKind
    invalid: bool
    phases: tuple[PlannedPhase, ...]


def draw(seed: int) -> PlannedPair:
    """Draw a pair."""
    chance = np.random.default_rng(seed)
    slower = float(chance.choice(list(DIFFERENCES), p=list(DIFFERENCES.values())))
    everywhere, invalid = chance.random() < 0.3, chance.random() < 0.1
    long = [int(one) for one in chance.choice(LENGTHS_S, 2)]
    kind = PairKind(
        repeats=REPEATS[chance.integers(len(REPEATS))],
        lengths=(long[0], long[1] if chance.random() < 0.5 else long[0]),
        drift=bool(chance.random() < 0.4),
        outliers=bool(chance.random() < 0.4),
    )
    phases = []
    for number, pattern in enumerate(PATTERNS):
        service_ns = SERVERS * 1e9 / float(10 ** chance.uniform(2.5, 3.3))
        between = float(10 ** chance.uniform(-3.5, -1.5))
        drift = float(chance.choice([0.05, 0.15])) if kind.drift else 0.0
        stalled = float(chance.choice([0.005, 0.01, 0.02])) if kind.outliers else 0.0
        for side in (0, 1):
            for run in range((kind.repeats or ())[side]):
                valid = not (invalid and side == 1 and number == 0 and run == 0)
                takes = service_ns * float(np.exp(chance.normal(0, between)))
                takes /= 1 - slower if side and (everywhere or number == 0) else 1
                phases.append(
                    PlannedPhase(
                        f"{side}-{run}-{number}", side, run, pattern, (kind.lengths or ())[side],
                        takes if valid else takes / FASTER, drift, stalled, valid,
                    )
                )  # fmt: skip
    return PlannedPair(seed, slower, bool(everywhere), kind, bool(invalid), tuple(phases))


def _device(one: PlannedPhase, seed: int) -> SimDevice:
    stalls = max(1, round(one.length_s / STALLED_S)) if one.stalled else 0
    length_ns = one.length_s * 10**9
    return steady_device(
        round(one.service_ns), seed=seed, servers=SERVERS, service="exponential",
        # So many stalls that the last is over before the end, whatever the length.
        stall_every_ns=round(length_ns / (stalls + 0.5)) if stalls else 0,
        stall_ns=round(one.stalled * length_ns / stalls) if stalls else 0,
        error_ppm=0 if one.valid else FAILING_PPM, behaviour=_behaviour(one) if one.drift else None,
    )  # fmt: skip


def _behaviour(one: PlannedPhase) -> SimBehaviour:
    """Let a random load touch new parts ever more rarely, and a sequential one go from end to end."""
    nothing = dict.fromkeys(SimBehaviour.model_fields, 0)
    random = one.pattern != PATTERNS[-1]
    return SimBehaviour.model_validate_json(
        json.dumps(
            nothing
            | {
                "state": None, "limits": [], "shared_limits": False, "size_bytes": _size_bytes(one),
                "first_touch_ns": round(one.drift * one.service_ns) if random else 0,
                "end_percent": 0 if random else round(100 * (1 + one.drift)),
            }
        )
    )  # fmt: skip


def _size_bytes(one: PlannedPhase) -> int:
    """Return a size that the load covers in the time it has, so that every length drifts alike."""
    ios = SERVERS * one.length_s * 1e9 / one.service_ns
    covered = ios * (CHUNK_BYTES / 2 if one.pattern != PATTERNS[-1] else BLOCK_BYTES[one.pattern])
    return max(1, round(covered / (1 << 20))) << 20


def _text(every: Sequence[tuple[PlannedPair, PlannedPhase]]) -> str:
    lines = ["[global]", f"ioengine=null\niodepth={SERVERS}\ntime_based\ncontinue_on_error=all"]
    before = None
    for pair, one in every:
        options = OPTIONS[one.pattern].replace(" ", "\n")
        lines.append(f"[{pair.seed}-{one.name}]\n{options}\nsize={_size_bytes(one)}\nruntime={one.length_s}s")
        lines += ["stonewall"] if before not in {None, _stage(one)} else []
        before = _stage(one)
    return "\n".join(lines) + "\n"


def _stage(one: PlannedPhase) -> tuple[bool, int]:
    """Return what the jobs of a stage have in common: it is judged, and timed, as a whole."""
    return one.valid, one.length_s


def _planned(every: Sequence[tuple[PlannedPair, PlannedPhase]], text: str) -> tuple[Plan, str]:
    """Give every job a worker, and with that a device and a clock of its own."""
    workload = read_jobfiles([TextSource(text.encode(), name="pairs.fio")])
    host = HostFacts.here()
    plan = resolve(workload, host=replace(host, cpus=host.cpus[:1]), options=ResolveOptions()).plan
    workers = tuple(
        plan.workers[stream.worker].model_copy(
            update={"backend": BackendSim(device=_device(one, pair.seed * 1000 + pair.phases.index(one)))}
        )
        for at, (stream, (pair, one)) in enumerate(zip(plan.streams, every, strict=True))
    )
    streams = tuple(stream.model_copy(update={"worker": at}) for at, stream in enumerate(plan.streams))
    return plan.model_copy(update={"workers": workers, "streams": streams}), workload.model_dump_json()


def measure(pairs: Sequence[PlannedPair], folder: Path) -> dict[tuple[int, str], ComparedPhase]:
    """Run all phases of some pairs; return them by pair and name, as a comparison reads them."""
    every = sorted(((pair, one) for pair in pairs for one in pair.phases), key=lambda it: _stage(it[1]))
    text = _text(every)
    plan, workload_json = _planned(every, text)
    request = RunRequest(
        request={"argv": [], "cwd": "/", "front_end": "run", "options": {}},
        inputs={"pairs.fio": text.encode()},
        workload_json=workload_json,
        notes=[],
    )
    with contextlib.redirect_stdout(sys.stderr):
        outcome = run_plan(plan, request=request, out_dir=folder / "bundle", calibration=False)
    summary = summarise(Bundle.open(outcome.bundle_path))
    _, tails = measured_values.tails(summary)
    stages = [(case, judge_case(case)) for case in cases(summary)]
    judged_as = {job.job: (case, verdict) for case, verdict in stages for job in case.jobs}
    known = {f"{pair.seed}-{one.name}": (pair, one) for pair, one in every}
    by_phase = {}
    for total in summary.totals("job"):
        pair, one = known[total.line.name]
        case, verdict = judged_as[total.line.name]
        # A percentile's error comes from within a run where it has no repeat.
        alone = sum(it.valid and it.pattern == one.pattern and it.side == one.side for it in pair.phases) == 1
        errors = {total.line.key: next(iter(tails[total.line.key, op] for op in total.ops))} if alone else {}
        by_phase[pair.seed, one.name] = ComparedPhase(
            run=f"{one.side}-{one.run}", path=folder, name=one.name, pattern=one.pattern, verdict=verdict,
            case=_own(case, total.line.name), number=1, values=measured_values.of_stage(total, errors),
        )  # fmt: skip
    return by_phase


def _own(case: Case, job: str) -> Case:
    """Return a stage's case as if one job had run alone: its neighbours are other runs, and other pairs.

    Its working set is how its device drifts and differs from run to run; the load is the same.
    """
    own_jobs = tuple(replace(one, size_bytes=None) for one in case.jobs if one.job == job)
    return replace(case, jobs=own_jobs, ops=case.by_job[job], by_job={job: case.by_job[job]})


def judge(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Draw pairs, measure and compare them; return what is kept of each."""
    pairs = [draw(seed) for seed in seeds]
    with tempfile.TemporaryDirectory(prefix="loadstone-pairs-") as folder:
        measured = measure(pairs, Path(folder))
    return [_compared(pair, measured) for pair in pairs]


def _compared(pair: PlannedPair, measured: Mapping[tuple[int, str], ComparedPhase]) -> dict[str, Any]:
    phases = [(one, measured[pair.seed, one.name]) for one in pair.phases]
    comparison = beside(
        tuple(
            Side(name, Path(name), tuple(phase for one, phase in phases if one.side == at))
            for at, name in enumerate("ab")
        )
    )
    outcome = judged(
        comparison.effects, comparison.sides, difference=pair.difference, everywhere=pair.everywhere,
        kind=pair.kind, invalid=pair.invalid, alone=comparison.alone,
    )  # fmt: skip
    wrong = [f"{phase.name}: {phase.why}" for one, phase in phases if one.valid != phase.valid]
    return {"seed": pair.seed, **asdict(outcome), "wrong_verdicts": wrong}


def alike_lines(outcomes: Sequence[PairOutcome]) -> list[str]:
    """Return how often valid pairs without a difference are significant, by how they were measured."""
    without_difference = [one for one in outcomes if one.difference == 0 and not one.invalid]
    groups = {"all": without_difference}
    for one in without_difference:
        for name in names(one.kind):
            groups.setdefault(name, []).append(one)
    lines = ["| pairs with | pairs | some row better | some row worse |", "|---|---:|---:|---:|"]
    for name in ("all", *sorted(set(groups) - {"all"})):
        some = groups[name]
        ways = (sum(one.better for one in some), sum(one.worse for one in some))
        lines.append(
            f"| {name} | {len(some)} | {' | '.join(share(kind_of_row, len(some)) for kind_of_row in ways)} |"
        )
    return lines


def for_power(seed: int) -> Iterator[int]:
    """Yield the seeds from this one on whose pairs tell how right the stated power is: with repeats, and valid."""
    for at in itertools.count(seed):
        pair = draw(at)
        slower = pair.difference == DETECT and not pair.everywhere
        if slower and not pair.invalid and pair.kind.repeats != (1, 1):
            yield at


def page(kept: Sequence[dict[str, Any]], command: str, more: Sequence[dict[str, Any]] = ()) -> str:
    """Return the page; `more`: pairs for the stated power alone."""
    outcomes = [_outcome(one) for one in kept]
    invalid = [one for one in outcomes if one.invalid]
    misjudged = sum(bool(one["wrong_verdicts"]) for one in kept)
    return (
        "\n".join(
            [
                "# How often a comparison is right",
                "",
                f"`{command}` measured {len(outcomes)} pairs of results with the engine, on simulated devices whose clock is virtual. Each pair has three patterns, and one to five runs of 10 s to 200 s on each side. The sides may differ in the number and the length of their runs. Service times are exponential. Some pairs have drift, stalls, runs that differ, or a phase that is three times as fast because its I/Os fail. The second side is slower by a known share, in seven of ten pairs in one pattern alone. ± is the binomial standard error.",
                "",
                *difference_lines(outcomes),
                "",
                f"*Not significant*: no row differs, and a regression of {100 * DETECT:.0f} % would have been seen. *Cannot say*: no row differs, and it would not have been seen, or a side is not valid. A pair may have a row that is better and one that is worse.",
                "",
                "## Pairs without a difference",
                "",
                "Valid pairs. Promised is that chance calls any row better in at most 2.5 % of the comparisons, and worse in as many.",
                "",
                *alike_lines(outcomes),
                "",
                "## Sides that are not valid",
                "",
                f"In {len(invalid)} pairs a phase of the second side was not valid, and three times as fast. In {sum(one.green_invalid for one in invalid)} of them a difference or a pass rested on it; {sum(one.gate == 'not_valid' for one in invalid)} ended with 98 because the side is not valid. Phases that fail share a stage of the run, and have the audit's verdict on it. That was not the verdict that was drawn in {misjudged} of all pairs.",
                "",
                "## The power that the gate states",
                "",
                f"Valid pairs of which one pattern alone is slower by {100 * DETECT:.0f} %. The table has the stated chance to find that, and how often it was found. The stated chance is of one regression alone; of several at once one is found more often.",
                "",
                *power_lines(calibration(outcomes)),
                "",
                _expected(calibration(outcomes)),
                "",
                *_of_more(calibration([_outcome(one) for one in more])),
                "Neighbouring intervals of these devices depend on each other by drift and stalls alone. [compare-series.md](compare-series.md) has series with correlated noise, and 400 pairs of every kind.",
            ]
        )
        + "\n"
    )


def _expected(tests: Sequence[tuple[PairKind, float, bool]]) -> str:
    """Say how many were to be found by what was stated, and how many were."""
    mean = sum(power for _, power, _ in tests)
    deviation = sum(power * (1 - power) for _, power, _ in tests) ** 0.5
    hits = sum(hit for *_, hit in tests)
    return f"By what was stated {mean:.0f} of these {len(tests)} were to be found, with a standard deviation of {deviation:.1f}; {hits} were."


def _of_more(tests: Sequence[tuple[PairKind, float, bool]]) -> list[str]:
    if not tests:
        return []
    table = power_lines(tests)
    return [
        f"{len(tests)} more such pairs, all with repeats on a side:",
        "",
        *table[: table.index("")],
        "",
        _expected(tests),
        "",
    ]


def _outcome(record: Mapping[str, Any]) -> PairOutcome:
    kind: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record["kind"].items()
    }
    known: dict[str, Any] = {field.name: record[field.name] for field in fields(PairOutcome)}
    known["kind"] = PairKind(**kind)
    known["tests"] = tuple((power, hit) for power, hit in record["tests"])
    return PairOutcome(**known)


def main() -> int:
    """Measure what the file does not have yet, and print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--more", type=int, default=0, help="further pairs, for the stated power alone")
    parser.add_argument("--keep", type=Path, required=True, help="file of what was measured")
    options = parser.parse_args()
    keep: Path = options.keep
    lines = keep.read_text().splitlines() if keep.exists() else []
    known = {record["seed"]: record for record in map(json.loads, lines)}
    seeds = [options.seed * 1_000_000 + at for at in range(options.pairs)]
    more = list(itertools.islice(for_power((options.seed + 1) * 1_000_000), options.more))
    open_ = [seed for seed in (*seeds, *more) if seed not in known]
    with keep.open("a") as file:
        for at in range(0, len(open_), TOGETHER):
            for record in judge(open_[at : at + TOGETHER]):
                known[record["seed"]] = record
                file.write(json.dumps(record) + "\n")
            file.flush()
    command = f"python -m lab.simulated_comparisons --pairs {options.pairs} --seed {options.seed} --more {options.more} --keep FILE"
    further = [known[seed] for seed in more]
    if seeds:
        sys.stdout.write(page([known[seed] for seed in seeds], command, further))
    else:
        sys.stdout.write("\n".join(_of_more(calibration(list(map(_outcome, further))))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
