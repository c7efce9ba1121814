"""`python -m lab.verdicts.collect --seeds A:B --keep FILE`: real parts drawn from seeds, a line for each.

`--bundles FOLDER` keeps the bundles. A line that other rules judged is then judged again from its bundle;
without one it is staged again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import missing
from lab.probes.rows import read, said_of
from lab.rules_digest import rules_digest
from lab.verdicts import outside, outside_again
from lab.verdicts.drawn import kind_of, scenario, spinning
from lab.verdicts.score import score, score_bundle

from loadstone.analysis import contention
from loadstone.bundle.read import Bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.verdicts.scenarios import Scenario
    from lab.verdicts.score import ScoredScenario


def line(
    seed: int, one: ScoredScenario, spinning: int, alone: ScoredScenario | None = None
) -> dict[str, Any]:
    """Return what is kept of a run. `alone`: what would have been said without the probes after it."""
    return {
        "seed": seed,
        "rules": rules_digest(),
        "kind": one.scenario.name,
        "expected": one.scenario.expected,
        "also": list(one.scenario.also),
        "busy": one.busy,
        "spinning": spinning,
        "absent": one.absent,
        **_verdict_fields(one),
        "alone": _verdict_fields(alone) if alone is not None else None,
    }


def _verdict_fields(one: ScoredScenario) -> dict[str, Any]:
    verdict = one.verdict
    rests = one.findings
    return {
        "verdict": verdict.kind if verdict is not None else None,
        "confidence": verdict.confidence if verdict is not None else None,
        "plain": said_of(verdict) if verdict is not None else None,
        "findings": [[cause.rule, cause.confidence] for cause in rests],
        "named_first": bool(rests)
        and verdict is not None
        and verdict.kind != "measures_storage"
        and one.right(rests[0]) is True,
        "named": one.named,
        "alarm": one.scenario.expected is None and not one.passed,
        "uncounted": one.uncounted,
    }


def anew(
    seed: int,
    known: dict[str, Any] | None,
    bundles: Path | None,
    *,
    honest_only: bool = False,
    alone: bool = False,
    among: Sequence[str] = (),
    probe: str | None = None,
) -> dict[str, Any]:
    """Return the line of a seed by the present rules: from its bundle, or staged."""
    bundle = bundles / str(seed) if bundles else None
    # A table that has grown since stands for other kinds.
    name = known["kind"] if known else kind_of(seed, honest_only=honest_only, among=among)
    one = scenario(seed, name)
    beside = spinning(seed) if honest_only and not alone else 0
    options = (f"--probe={probe}",) if probe else ()
    try:
        if bundle is not None and bundle.exists():
            if known is not None and not known["absent"]:
                busy, beside = known["busy"], known.get("spinning", 0)
                kept_score = score_bundle(one, bundle, busy=busy)
                return line(
                    seed, kept_score, beside, _alone(one, bundle, probe, busy=busy)
                ) | _contention_fields(bundle)
            shutil.rmtree(bundle)
        fresh_score = score(one, bundle, spinning=beside, options=options)
        return line(
            seed, fresh_score, beside, _alone(one, bundle, probe, busy=fresh_score.busy)
        ) | _contention_fields(bundle)
    except RuntimeError as error:
        return {"seed": seed, "rules": rules_digest(), "kind": one.name, "absent": str(error)}


def _contention_fields(bundle: Path | None) -> dict[str, Any]:
    """Return what others on the CPUs could take of a rate while it ran."""
    share = contention.of_bundle(Bundle.open(bundle)) if bundle is not None and bundle.exists() else None
    return {"taken": None if share is None else round(share.share, 3)}


def _alone(one: Scenario, bundle: Path | None, probe: str | None, *, busy: bool) -> ScoredScenario | None:
    if probe is None or bundle is None or not bundle.exists():
        return None
    return score_bundle(one, bundle, busy=busy, probes=False)


def main() -> int:
    """Stage, run, judge and keep."""
    options = argparse.ArgumentParser(prog="python -m lab.verdicts.collect", description=__doc__)
    options.add_argument("--seeds", default="1:60")
    options.add_argument("--keep", type=Path, required=True)
    options.add_argument("--bundles", type=Path, help="folder that keeps the bundles")
    options.add_argument(
        "--honest",
        action="store_true",
        help="honest runs only, programs that use up CPUs beside half of them",
    )
    options.add_argument("--alone", action="store_true", help="no such programs: others use this host, too")
    options.add_argument("--outside", action="store_true", help="the kinds of lab.verdicts.outside")
    options.add_argument("--again", action="store_true", help="the kinds of lab.verdicts.outside_again")
    options.add_argument("--probe", help="budget of probes after each run, like 10s")
    arguments = options.parse_args()
    absent = missing()
    if absent is not None:
        sys.stderr.write(f"cannot stage anything: {absent}\n")
        return 2
    known = {row["seed"]: row for row in read(arguments.keep)}
    first, last = (int(word) for word in arguments.seeds.split(":"))
    for folder in (arguments.keep.parent, *([arguments.bundles] if arguments.bundles else [])):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, last + 1):
        before = known.get(seed)
        if before is not None and before.get("rules") == rules_digest():
            continue
        row = anew(
            seed,
            before,
            arguments.bundles,
            honest_only=arguments.honest,
            alone=arguments.alone,
            among=outside_again.AGAIN if arguments.again else outside.OUTSIDE if arguments.outside else (),
            probe=arguments.probe,
        )
        with arguments.keep.open("a") as file:
            file.write(json.dumps(row) + "\n")
        sys.stderr.write(f"{seed} {row['kind']}: {row.get('verdict')} {row.get('findings')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
