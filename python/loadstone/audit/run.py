"""The audit of a run: its cases put before the rules, and what is kept of it when the run is sealed.

Knows the order of the steps: the hosts of a run on several are judged each for itself, then all of
them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import cases
from loadstone.audit.from_hosts import beside_the_sum, cases_of_all, cases_of_hosts
from loadstone.audit.judge import judge, judge_case

if TYPE_CHECKING:
    from loadstone.analysis.summary import Summary
    from loadstone.audit.case import Case
    from loadstone.bundle.read import Bundle
    from loadstone.verdict import Audited


def audit(made: Summary) -> Audited:
    """Return the verdict on a run, whole or partial."""
    return judge(cases_of_run(made))


def cases_of_run(made: Summary) -> list[Case]:
    """Return what a run puts before the rules: of several hosts each one's cases, behind those of all."""
    if made.bundle.hosts is None:
        return cases(made)
    own = cases_of_hosts(made)
    verdicts = {name: [judge_case(one) for one in host_cases] for name, host_cases in own}
    of_all = cases_of_all(made, dict(own), verdicts)
    return [*of_all, *beside_the_sum(made, own, [judge_case(one) for one in of_all])]


class SealedFigures:
    """A run added up and judged once, when it is sealed: for its `result.json` and for who shows it.

    What it has is None until `document` was called, which sealing does.
    """

    summary: Summary | None = None
    audited: Audited | None = None
    told: dict[str, Any] | None = None
    """The document."""

    def document(self, bundle: Bundle) -> dict[str, Any]:
        """Compute `result.json`, which is the document of `--json`."""
        self.summary = summarise(bundle)
        self.audited = audit(self.summary)
        self.told = self.summary.document(self.audited)
        return self.told
