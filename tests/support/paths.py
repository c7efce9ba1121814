"""Runs with a data path under their target, and monitors' rows that say what its layers did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.analysis.summary import Summary, summarise
from loadstone.bundle.read import Bundle
from loadstone.path.layers import DataPath, Layer
from tests.support.runs import MadeJob, begun_again, make

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SECOND_NS = 1_000_000_000


def run_on(
    place: Path,
    layers: Sequence[Layer],
    counters: Mapping[str, int],
    *,
    job: MadeJob | None = None,
    gaps: tuple[str, ...] = (),
    seconds: int = 4,
) -> Summary:
    """One job on a target that stands on `layers`; every second each counter grows by its value."""
    made = make(place / "b", job or MadeJob(), seconds=float(seconds), seal=None, host=False)
    target = made.plan.targets[0].path
    top = Layer(name=target, kind="file", below=(layers[0].name,))
    path = DataPath(target=target, layers=(top, *layers), gaps=gaps)
    told = made.path / "environment.json"
    environment = json.loads(told.read_text()) | {
        "paths": [path.model_dump(mode="json", exclude_defaults=True)]
    }
    told.write_text(json.dumps(environment))
    with (made.path / "host.jsonl").open("w") as file:
        for at in range(1, seconds + 1):
            row = {"t_ns": at * SECOND_NS, "dt_ns": SECOND_NS, **counters}
            file.write(json.dumps(row) + "\n")
    return summarise(Bundle.open(begun_again(made.path)))
