"""`python -m lab.verdicts.collect --seeds A:B --keep FILE`: real parts drawn from seeds, a line for each."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import missing
from lab.probes.rows import said_of
from lab.verdicts.drawn import scenario
from lab.verdicts.score import score

if TYPE_CHECKING:
    from lab.verdicts.score import Scored


def line(seed: int, one: Scored) -> dict[str, Any]:
    """Return what is kept of a run."""
    said = one.verdict
    rests = one.findings
    return {
        "seed": seed,
        "kind": one.scenario.name,
        "expected": one.scenario.expected,
        "also": list(one.scenario.also),
        "busy": one.busy,
        "absent": one.absent,
        "verdict": said.kind if said is not None else None,
        "confidence": said.confidence if said is not None else None,
        "plain": said_of(said) if said is not None else None,
        "findings": [[cause.rule, cause.confidence] for cause in rests],
        "named_first": bool(rests)
        and said is not None
        and said.kind != "measures_storage"
        and rests[0].rule in (one.scenario.expected, *one.scenario.also),
        "named": one.named,
        "alarm": one.scenario.expected is None and not one.passed,
        "uncounted": one.uncounted,
    }


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file."""
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    """Stage, run, judge and keep."""
    options = argparse.ArgumentParser(prog="python -m lab.verdicts.collect", description=__doc__)
    options.add_argument("--seeds", default="1:60")
    options.add_argument("--keep", type=Path, required=True)
    asked = options.parse_args()
    absent = missing()
    if absent is not None:
        sys.stderr.write(f"cannot stage anything: {absent}\n")
        return 2
    known = {row["seed"] for row in read(asked.keep)}
    first, last = (int(word) for word in asked.seeds.split(":"))
    asked.keep.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(first, last + 1):
        if seed in known:
            continue
        try:
            row = line(seed, score(scenario(seed)))
        except RuntimeError as error:
            row = {"seed": seed, "kind": scenario(seed).name, "absent": str(error)}
        with asked.keep.open("a") as file:
            file.write(json.dumps(row) + "\n")
        sys.stderr.write(f"{seed} {row['kind']}: {row.get('verdict')} {row.get('findings')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
