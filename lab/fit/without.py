"""Fits made without one kind, or one family of kinds, so that they can be scored on what they never saw.

`python -m lab.fit.without FILE` makes all of them and keeps them: a page that is written again needs none
anew.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab.fit import lines, model
from lab.fit.pointed import AS_TOLD
from lab.probes import rows
from lab.probes.draw import FAMILIES, LIES, NEVER_FITTED
from lab.rules_digest import weights_digest

from loadstone.explanations.weights import FITTED, Fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lab.fit.model import FitSample
    from lab.probes.rows import Row


@dataclass(frozen=True)
class FitsWithout:
    """A fit without each kind of lie and one without each family, by their names."""

    kinds: dict[str, Fitted] = field(default_factory=dict)
    families: dict[str, Fitted] = field(default_factory=dict)


def left_out(kept: Path | None = None) -> FitsWithout:
    """Return all of them; `kept`: where those of the present weights stand, or are kept now."""
    kept_lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    known = [json.loads(line) for line in kept_lines if line.endswith("}")]
    documents = {
        (one["of"], one["name"]): one["fitted"] for one in known if one["weights"] == weights_digest()
    }
    fits: dict[tuple[str, str], Fitted] = {
        at: Fitted.model_validate(fitted) for at, fitted in documents.items()
    }
    missing = [at for at in _every() if at not in fits]
    for at, fitted in _fits(missing) if missing else ():
        fits[at] = fitted
        if kept is not None:
            line = {"weights": weights_digest(), "of": at[0], "name": at[1]}
            with kept.open("a") as file:
                file.write(json.dumps({**line, "fitted": fitted.model_dump(mode="json")}) + "\n")
    return FitsWithout(
        {name: one for (of, name), one in fits.items() if of == "kind"},
        {name: one for (of, name), one in fits.items() if of == "family"},
    )


def _every() -> list[tuple[str, str]]:
    kinds = [("kind", kind.name) for kind in LIES if kind.family not in NEVER_FITTED]
    return [*(("family", family) for family in FAMILIES), *kinds]


def _fits(wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Fitted]]:
    every, _ = lines.kept()
    sample = model.sample(every)
    calibration, _ = lines.kept(lines.CALIBRATION)
    later = model.sample(calibration, alone=True)
    for of, name in wanted:

        def leave(row: Row, of: str = of, name: str = name) -> bool:
            return name == (row["kind"] if of == "kind" else rows.kind_row(row).family)

        fit = _without(every, sample, later, FITTED, leave)
        yield (of, name), fit.model_copy(update={"findings": model.fit_findings(calibration, leave)})


def _without(
    every: Sequence[Row],
    sample: FitSample,
    later: FitSample,
    whole: Fitted,
    leave: Callable[[Row], bool],
) -> Fitted:
    # The weights are of what the simulated device did: a kind of the host alone has no part in them.
    of_device = any(leave(row) for row in sample.rows)
    weights = model.rounded(model.fit_weights(sample, leave, whole.weights)) if of_device else whole.weights
    probed, limited = model.fit_probed(model.believed_lines(sample, weights, leave))
    fit = whole.model_copy(
        update={
            "weights": weights,
            "untried": model.fit_untried(every, leave),
            "probed": probed,
            "strange": model.fit_strange(sample, leave),
            "limited": limited,
            # Not counted anew: it changes how sure a finding is, and not what is first. So is what the
            # unexplained is told by, which stays that of the whole calibration.
            "pointed": AS_TOLD,
        }
    )
    return fit.model_copy(update=model.fit_frequencies(later, fit, leave))


if __name__ == "__main__":
    left_out(Path(sys.argv[1]))
