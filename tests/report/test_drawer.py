"""The process that draws a page's charts: begun early, taken by the page, and never left behind."""

from __future__ import annotations

import pytest

from loadstone import helpers
from loadstone.report.pictures import chart_images, drawer

SPEC = {"data": {"values": [{"x": 1, "y": 2}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}


@pytest.fixture(autouse=True)
def real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawer, "Helpers", helpers.Helpers)
    monkeypatch.setattr(drawer, "cpus", lambda: 2)


@pytest.mark.in_turn
def test_a_page_takes_the_process_that_was_started_early() -> None:
    with drawer.started_early():
        (early,) = drawer._early
        with drawer.Drawer() as page:
            assert page._helper is early
            assert str(page.svg(SPEC)) == chart_images.svg(SPEC)
            with drawer.Drawer() as another:
                assert another._helper is not early
        assert [process.poll() is None for process in early._processes] == [False]


@pytest.mark.parametrize("error", [None, OSError("no space")])
def test_a_process_that_no_page_took_is_ended(error: OSError | None) -> None:
    try:
        with drawer.started_early():
            (early,) = drawer._early
            if error is not None:
                raise error
    except OSError as raised:
        assert raised is error  # noqa: PT017 # or none was raised
    assert drawer._early == []
    assert all(process.poll() is not None for process in early._processes)


def test_with_one_cpu_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawer, "cpus", lambda: 1)
    with drawer.started_early():
        assert drawer._early == []
