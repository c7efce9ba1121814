"""What we write in the forms of other tools, `audit` finds nothing against, whatever was run.

Loads are drawn by a seed in the languages of all front ends and run on a simulated device: mixes,
sizes and tables of them, depths, clones, ramps, rates and phases. Draw more with `SEEDS=20`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from loadstone.audit import foreign
from loadstone.audit.find_results import bundle
from loadstone.audit.judge import judge_case
from loadstone.bundle.read import Bundle
from tests.audit import generated
from tests.support import simulated

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case

SEEDS = int(os.environ.get("SEEDS", "2"))
MOST_RUNS = 3
"""Of each file, so that loops do not make a test long."""


def against(case: Case) -> list[str]:
    """What is said against a result, but for a rate that the job itself asked for."""
    causes = judge_case(case).causes
    return [
        f"{case.name}: {cause.rule}: {cause.text}"
        for cause in causes
        if cause.effect != "note" and cause.rule != "own_limit"
    ]


@pytest.mark.in_turn
@pytest.mark.drawn(3)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("front", generated.FRONTS)
def test_exports_come_back_clean(tmp_path: Path, front: str, seed: int) -> None:
    for number, (workload, inputs) in enumerate(generated.workloads(front, seed)[:MOST_RUNS]):
        made = simulated.run(workload, tmp_path / str(number), inputs=inputs)
        own = bundle(Bundle.open(made)).cases
        # A drawn rate may be more than the device can do at its depth, and is told of every export, too.
        unreached = {text for case in own for text in against(case) if "rate_not_reached" in text}
        assert [text for case in own for text in against(case) if text not in unreached] == []
        done = sum(case.total.operations or 0 for case in own)
        written: set[str] = set()
        for name, path in generated.exports(made, tmp_path / f"{number}-out"):
            written.add(name)
            if name.startswith("vdbench") and len(own) > 1:
                continue  # Phases are one run there, whose load changes in the middle: that is told.
            found = foreign.read(path).cases
            told = [text for case in found for text in against(case)]
            assert [text for text in told if not (unreached and "rate_not_reached" in text)] == [], name
            if name.startswith("vdbench"):
                continue  # It leaves out the first interval where there is no warmup.
            counted = sum(case.total.operations or 0 for case in found)
            lost = 0.0
            if "terse" in name:
                # It has no count, but whole I/Os a second of each job and direction, rounded down.
                lost = sum(len(case.ops) * len(case.jobs) * (case.seconds or 0.0) for case in found)
            assert counted == pytest.approx(done, rel=0.02, abs=8 + lost), name
        assert written == set(generated.FORMATS)
