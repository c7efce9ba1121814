"""Charts that are drawn beside this process while the rest of a page is computed.

Knows that a page needs a chart no earlier than when it is written. Knows no chart.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from loadstone.helpers import Helpers, cpus
from loadstone.report.pictures import chart_images

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from loadstone.report.pictures.charts import Spec


class PendingChart:
    """A chart as SVG; whoever writes it waits until it is drawn."""

    def __init__(self, drawn: Future[str]) -> None:
        self._drawn = drawn

    def __str__(self) -> str:
        return self._drawn.result()

    __html__ = __str__


Svg = str | PendingChart
_early: Final[list[Helpers]] = []


@contextmanager
def started_early() -> Iterator[None]:
    """Start the process of the next `Drawer`: its renderer takes a second to begin, in which others read."""
    if cpus() > 1:
        _early.append(Helpers(1))
        _early[-1].do(chart_images.begin)
    try:
        yield
    finally:
        while _early:
            _early.pop().close()


class Drawer:
    """Draws charts, in a process of its own where there is a CPU for it; to be used in a `with` statement."""

    def __init__(self) -> None:
        self._helper = (_early.pop() if _early else Helpers(1)) if cpus() > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._helper is not None:
            self._helper.close()

    def svg(self, spec: Spec) -> Svg:
        """Have a chart drawn."""
        if self._helper is None:
            return chart_images.svg(spec)
        return PendingChart(self._helper.do(chart_images.svg, spec))
