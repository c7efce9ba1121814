"""The sections of a run's page that are tables and charts: this table has them in their order.

A section is one file, a function from a run's figures to blocks of an article, and one row here. One
that has nothing to say returns none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.report.run.sections import latency_parts, slowest_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.report.article.elements import Block

SECTIONS: Final[tuple[Callable[[Summary], Sequence[Block]], ...]] = (
    slowest_windows.section,
    latency_parts.section,
)
