"""What a killed run wrote in its last second has no hash: every verb that shows its numbers says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from loadstone.api.export_formats import Kind
from loadstone.cli.main import main
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

UNSEALED = "the run was never sealed: damage to what it wrote in its last second may go unnoticed"
SHOWN = {
    "report": ("report", "{run}", "-o", "{place}/page.md"),
    "audit": ("audit", "{run}"),
    "compare": ("compare", "{run}", "{other}"),
    **{kind: ("export", "{run}", kind, "-o", "{place}/exported") for kind in get_args(Kind)},
}


@pytest.mark.in_turn
@pytest.mark.parametrize("verb", SHOWN)
def test_a_killed_run_is_said_to_be_in_part_without_a_hash(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exports and comparisons had said nothing of it."""
    other = runs.make(tmp_path / "other", seconds=3).path
    for name, seal in (("killed", None), ("sealed", "complete")):
        place = tmp_path / f"of-{name}"
        place.mkdir()
        run = runs.make(tmp_path / name, seconds=3, seal=seal).path
        words = [word.format(run=run, other=other, place=place) for word in SHOWN[verb]]
        assert main(words) == 0
        shown = " ".join("".join(capsys.readouterr()).split())
        assert (UNSEALED in shown) == (name == "killed"), shown


def test_a_page_does_not_say_of_a_run_that_goes_on_that_it_was_killed(tmp_path: Path) -> None:
    """What was written of a run is read at any moment, and its page said that the run had been killed."""
    run = runs.make(tmp_path / "running", seconds=3, seal=None).path
    assert main(["report", str(run), "-o", str(tmp_path / "page.md")]) == 0
    assert (
        "The run was killed or still goes on; this is what it has written."
        in (tmp_path / "page.md").read_text()
    )
