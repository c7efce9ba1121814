"""`python -m lab.fit`: fit how evidence is combined, and write it to `explanations/weights.json`.

python -m lab.probes --seeds 100001:101000 --keep fit.jsonl   # situations to fit on, none of them scored
python -m lab.fit --from fit.jsonl                            # kept with the source, compressed; then fitted
python -m lab.fit                                             # fitted again from what is kept
python -m lab.fit --counts                                    # the weights stay, frequencies are counted
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from lab.fit import lines, model
from lab.fit.nameless import UNCOUNTED, fit_unexplained
from lab.fit.pointed import AS_TOLD, fit_pointed
from lab.probes import rows

from loadstone.explanations.weights import FILE, FITTED, Fitted, FittedOn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.probes.rows import Row


def fitted() -> Fitted:
    """Fit on all that is kept."""
    every, hashed = lines.kept()
    later, later_hashed = lines.kept(lines.CALIBRATION)
    sample = model.sample(every)
    weights = model.rounded(model.fit_weights(sample))
    probed, limited = model.fit_probed(model.believed_lines(sample, weights))
    fit = Fitted(
        format=1,
        source=_source(every, hashed),
        calibrated_on=_source(later, later_hashed),
        weights=weights,
        findings=model.fit_findings(later),
        untried=model.fit_untried(every),
        probed=probed,
        strange=model.fit_strange(sample),
        frequency=AS_TOLD,
        open_frequency=AS_TOLD,
        decided=AS_TOLD,
        causes=AS_TOLD,
        decided_causes=AS_TOLD,
        unexplained=UNCOUNTED,
        pointed=AS_TOLD,
        limited=limited,
    )
    return _counted(fit, later)


def counted_anew() -> Fitted:
    """Return what is fitted, with frequencies counted on all situations that are kept for that."""
    later, hashed = lines.kept(lines.CALIBRATION)
    findings = model.fit_findings(later)
    return _counted(
        FITTED.model_copy(update={"calibrated_on": _source(later, hashed), "findings": findings}), later
    )


def _counted(fit: Fitted, later: Sequence[Row]) -> Fitted:
    """Return a fit with how often what it tells was right."""
    fit = fit.model_copy(update=model.fit_frequencies(model.sample(later, alone=True), fit))
    fit = fit.model_copy(update={"unexplained": fit_unexplained(later, fit)})
    return fit.model_copy(update={"pointed": fit_pointed(later, fit)})


def _source(every: Sequence[Row], hashed: str) -> FittedOn:
    return FittedOn(
        command="python -m lab.fit",
        seeds=tuple(ranges([int(row["seed"]) for row in every])),
        situations=len(every),
        kinds=len({row["kind"] for row in every}),
        lines_blake3=hashed,
    )


def ranges(seeds: Sequence[int]) -> Iterator[str]:
    """Yield what seeds lie between, a range for each ten thousand."""
    for _, part in itertools.groupby(sorted(seeds), key=lambda seed: seed // 10_000):
        values = list(part)
        yield f"{values[0]}:{values[-1]}"


def main() -> int:
    """Fit, and write."""
    options = argparse.ArgumentParser(prog="python -m lab.fit", description=__doc__)
    options.add_argument(
        "--from", dest="collected", type=Path, nargs="+", help="situations to keep and fit on"
    )
    options.add_argument(
        "--calibrate-on", type=Path, nargs="+", default=[], help="situations to keep and calibrate on"
    )
    options.add_argument(
        "--counts", action="store_true", help="only count anew how often what is told was right"
    )
    arguments = options.parse_args()
    if arguments.collected:
        lines.keep(row for path in arguments.collected for row in rows.read(path))
    if arguments.calibrate_on:
        later = (row for path in arguments.calibrate_on for row in rows.read(path))
        lines.keep(later, lines.CALIBRATION, several=True)
    fit = counted_anew() if arguments.counts else fitted()
    target = Path(str(resources.files("loadstone.explanations").joinpath(FILE)))
    target.write_text(json.dumps(fit.model_dump(mode="json"), indent=2) + "\n")
    sys.stdout.write(f"fitted on {fit.source.situations} situations: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
