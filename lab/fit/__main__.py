"""`python -m lab.fit`: fit how evidence is combined, and write it to `explanations/weights.json`.

python -m lab.probes --seeds 100001:101000 --keep fit.jsonl   # situations to fit on, none of them scored
python -m lab.fit --from fit.jsonl                            # kept with the source, compressed; then fitted
python -m lab.fit                                             # fitted again from what is kept
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
from lab.probes import rows

from loadstone.explanations.weights import FILE, Fitted, FittedOn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.probes.rows import Row


def fitted(every: Sequence[Row], hashed: str) -> Fitted:
    """Fit on all of these."""
    sample = model.sample(every)
    weights = model.rounded(model.fit_weights(sample))
    probed, limited = model.fit_probed(sample, weights)
    return Fitted(
        format=1,
        source=FittedOn(
            command="python -m lab.fit",
            seeds=tuple(ranges([int(row["seed"]) for row in every])),
            situations=len(every),
            kinds=len({row["kind"] for row in every}),
            lines_blake3=hashed,
        ),
        weights=weights,
        findings=model.fit_findings(every),
        untried=model.fit_untried(every),
        probed=probed,
        strange=model.fit_strange(sample),
        limited=limited,
    )


def ranges(seeds: Sequence[int]) -> Iterator[str]:
    """Yield what seeds lie between, a range for each ten thousand."""
    for _, part in itertools.groupby(sorted(seeds), key=lambda seed: seed // 10_000):
        mine = list(part)
        yield f"{mine[0]}:{mine[-1]}"


def main() -> int:
    """Fit, and write."""
    options = argparse.ArgumentParser(prog="python -m lab.fit", description=__doc__)
    options.add_argument(
        "--from", dest="collected", type=Path, nargs="+", help="situations to keep and fit on"
    )
    asked = options.parse_args()
    if asked.collected:
        lines.keep(row for path in asked.collected for row in rows.read(path))
    every, hashed = lines.kept()
    made = fitted(every, hashed)
    target = Path(str(resources.files("loadstone.explanations").joinpath(FILE)))
    target.write_text(json.dumps(made.model_dump(mode="json"), indent=2) + "\n")
    sys.stdout.write(f"fitted on {len(every)} situations: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
