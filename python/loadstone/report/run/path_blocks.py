"""The data path as a part of an article on several runs, as one of them saw it.

Knows how a diagram, its charts and its words stand together. The shares are worked out elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.analysis.study.patterns import PREPARED
from loadstone.messages import say
from loadstone.report.article.elements import Diagram, Heading, Paragraph, drawing
from loadstone.report.run import path_chart, path_diagram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.report.article.elements import Block


def of_runs(runs: Sequence[RunFigures]) -> list[Block]:
    """Return the data path as the first valid run saw it; nothing where no run saw one.

    What prepares a target is asked last: it loads the path as nothing that was measured does.
    """
    order = sorted(runs, key=lambda run: (run.point.role == PREPARED, not run.valid))
    run = next((one for one in order if one.summary is not None and one.summary.paths), None)
    if run is None or run.summary is None:
        return []
    paths = run.summary.paths
    specs = [spec for one in paths if (spec := path_chart.path(one)) is not None]
    return [
        Heading(say("report.heading.path")),
        Diagram(
            "".join(path_diagram.render(one) for one in paths),
            [drawing(spec) for spec in specs],
            [pair for one in paths for pair in path_diagram.in_words(one)],
        ),
        Paragraph(say("report.study.path_of", run=run.point.name), "soft"),
    ]
