"""The short samples of a run (events `fine_samples`), as rates of one stage.

Knows where they lie in a bundle and which of them count. Looks for nothing in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loadstone.analysis.time_structure import FineRates

if TYPE_CHECKING:
    from loadstone.analysis.measurement import MeasuredLine, Measurement


def of_stage(measurement: Measurement, line: MeasuredLine, bounds_ns: tuple[int, int]) -> FineRates | None:
    """Return the samples of a stage within bounds, without the engine's own stops; None without any."""
    stages = measurement.stages_of(line)
    events = [
        event
        for event in measurement.bundle.events
        if event.get("type") == "fine_samples" and event.get("stage") in stages
    ]
    if not events:
        return None
    lengths = [np.asarray(event["lengths_us"], np.float64) * 1e3 for event in events]
    ends = [event["start_ns"] + np.cumsum(part) for event, part in zip(events, lengths, strict=True)]
    ops = [np.asarray(event["ops"], np.float64) for event in events]
    whole = FineRates(np.concatenate(ends), np.concatenate(lengths), np.concatenate(ops))
    rates = whole.within(*bounds_ns)
    for first, last in measurement.stops.left_out:
        outside = (rates.ends_ns <= first) | (rates.ends_ns - rates.lengths_ns >= last)
        rates = FineRates(rates.ends_ns[outside], rates.lengths_ns[outside], rates.ops[outside])
    return rates if len(rates.ops) else None
