"""The audit of a run: its cases put before the rules.

Knows the order of the two steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.audit.from_bundle import cases
from loadstone.audit.judge import judge

if TYPE_CHECKING:
    from loadstone.analysis.summary import Summary
    from loadstone.verdict import Audited


def audit(made: Summary) -> Audited:
    """Return the verdict on a run, whole or partial."""
    return judge(cases(made))
