"""`python -m lab.probes`: draw situations, run, judge and probe them, and print what verdicts were worth.

`--write probes` writes docs/probes-tried.md, `--write verdicts` docs/verdicts.md. Ends with 1 where a
`--check` does not hold.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.fit import without
from lab.probes import judged, page, rows, tables
from lab.verdicts import cost

from loadstone.explanations.weights import FITTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.probes.tables import ScoredLine

COMMAND = "`make lab-full`"
REAL = 300
"""Runs with real parts that it asks for."""
DOCS = Path(__file__).parents[2] / "docs"
MOST_ACCUSED = 0.06
MOST_BELIEVED = 0.15
"""Coarser than the aims, as far as a few hundred situations tell: `make lab` is a smoke test."""


def wrong(every: Sequence[ScoredLine]) -> list[str]:
    """Return in words what is far from where it should be."""
    honest = [one for one in every if one.honest]
    lies = [one for one in every if not one.honest and one.probed is not None]
    accused = sum(judged.accused(one.row, one.untried) for one in honest)
    believed = sum(one.probed is not None and one.probed.believed for one in lies)
    mistakes = []
    if honest and tables.wilson(accused, len(honest))[0] > MOST_ACCUSED:
        mistakes.append(f"{accused} of {len(honest)} honest situations are accused")
    if lies and tables.wilson(believed, len(lies))[0] > MOST_BELIEVED:
        mistakes.append(f"{believed} of {len(lies)} lies are believed after probes")
    return mistakes


def options_read() -> argparse.Namespace:
    """Return the options of the command line."""
    options = argparse.ArgumentParser(prog="python -m lab.probes", description=__doc__)
    options.add_argument("--seeds", default=["300001:300240"], nargs="+", help="first and last of each range")
    options.add_argument("--kinds", nargs="*", help="only situations of these kinds")
    options.add_argument("--each", type=int, default=1, help="probe one of so many")
    options.add_argument("--keep", type=Path, help="file of one JSON line per situation, gone on with")
    options.add_argument("--bundles", type=Path, help="folder that keeps their bundles, to judge them again")
    options.add_argument("--from", dest="more", type=Path, nargs="*", default=[], help="collected elsewhere")
    options.add_argument(
        "--looked-at",
        type=Path,
        nargs="*",
        default=[],
        help="collected before the rules were final: counted together with the others in one more table",
    )
    options.add_argument("--real", type=Path, help="lines of lab.verdicts.collect, for the page of verdicts")
    options.add_argument("--honest", type=Path, help="the same of honest runs with probes (--honest --probe)")
    options.add_argument(
        "--outside",
        type=Path,
        nargs="*",
        default=[],
        help="the same of kinds from outside (--outside, --again)",
    )
    options.add_argument("--cost", type=Path, help="lines of lab.verdicts.cost, for the same page")
    options.add_argument("--write", choices=("probes", "verdicts"), nargs="*", default=[])
    options.add_argument("--whole", action="store_true", help="leave no kind out: that takes minutes")
    options.add_argument("--left-out", type=Path, help="file that keeps the fits without a kind or a family")
    options.add_argument("--run-by", default=COMMAND, help="what was run, as the pages say it")
    options.add_argument("--check", action="store_true", help="end with 1 where something is far off")
    return options.parse_args()


def lines_of(arguments: argparse.Namespace, ranges: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return the lines of the seeds in `ranges`: collected elsewhere, or now."""
    given_rows = (row for path in arguments.more for row in rows.read(path))
    every = [row for row in given_rows if any(first <= row["seed"] <= last for first, last in ranges)]
    if not every:
        for first, last in ranges:
            for row in rows.collect(
                first, last, arguments.keep, arguments.each, bundles=arguments.bundles, kinds=arguments.kinds
            ):
                every.append(row)
                sys.stderr.write(f"{row['seed']} {row['kind']} {row.get('failed', '')}\n")
    return every


def write_pages(
    arguments: argparse.Namespace, scored: Sequence[ScoredLine], drawn: page.DrawnSituations
) -> None:
    """Write the pages of the documents that `--write` names."""
    if "probes" in arguments.write:
        (DOCS / "probes-tried.md").write_text(page.probes(scored, FITTED, drawn))
    if "verdicts" in arguments.write:
        real = page.RealLines(
            rows.read(arguments.real) if arguments.real else [],
            rows.read(arguments.honest) if arguments.honest else [],
            [row for path in arguments.outside for row in rows.read(path)],
        )
        costs = cost.read(arguments.cost) if arguments.cost else []
        (DOCS / "verdicts.md").write_text(page.verdicts(scored, FITTED, drawn, real, costs))


def main() -> int:
    """Collect, score, and print or write."""
    arguments = options_read()
    ranges = [(int(first), int(last)) for first, last in (one.split(":") for one in arguments.seeds)]
    every = lines_of(arguments, ranges)
    failed = sum("failed" in row for row in every)
    used = [row for row in every if "failed" not in row and rows.counts(row)]
    left_out = without.FitsWithout() if arguments.whole else without.left_out(arguments.left_out)
    scored = tables.score(used, FITTED, left_out.kinds, left_out.families)
    earlier = [row for path in arguments.looked_at for row in rows.read(path)]
    looked_at = [row for row in earlier if "failed" not in row and rows.counts(row)]
    drawn = page.DrawnSituations(
        arguments.run_by,
        sum(last - first + 1 for first, last in ranges),
        len(every),
        failed,
        REAL,
        tables.score(looked_at, FITTED, left_out.kinds, left_out.families),
    )
    write_pages(arguments, scored, drawn)
    explained = tables.of_explanations([one for one in scored if one.probed is not None])
    sys.stdout.write("\n".join([*tables.summary(scored), "", *tables.by_kind(scored), "", *explained, ""]))
    mistakes = wrong(scored) if arguments.check else []
    for text in mistakes:
        sys.stderr.write(f"{text}\n")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
