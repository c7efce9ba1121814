"""What was measured, held against a data sheet: which figure for which job."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from loadstone.analysis.summary import Summary, summarise
from loadstone.bundle.read import Bundle
from loadstone.path.spec import Spec
from loadstone.report.run import page, terminal
from tests.support.runs import MadeJob, make, reseal

if TYPE_CHECKING:
    from pathlib import Path

SHEET = {
    "format": 1,
    "name": "sheet",
    "drives": 4,
    "raid": "10",
    "links": ["10GbE", "SATA 6G"],
    "drive": {"read_iops": 5000, "write_iops": 4000, "read_bandwidth": 1e7, "write_bandwidth": 1e7},
}


def summary(place: Path, *jobs: MadeJob, sheet: dict[str, object] | None = None) -> Summary:
    made = make(place / "b", *jobs)
    told = place / "b" / "environment.json"
    environment = json.loads(told.read_text())
    if sheet is not None:
        environment["spec"] = Spec.model_validate(sheet).model_dump(mode="json")
    told.write_text(json.dumps(environment))
    reseal(place / "b")
    return summarise(Bundle.open(made.path))


def test_random_reads_against_iops_and_every_link(tmp_path: Path) -> None:
    found = summary(tmp_path, MadeJob(name="a", ops_hz={"read": 1000.0}), sheet=SHEET)
    row = found.spec[0]
    assert (row.name, row.op, row.quantity, row.specified) == ("a", "read", "iops", 20e3)
    assert row.share == pytest.approx(0.05, rel=0.03)
    assert row.share_error is not None
    assert [one.kind for one in found.spec[1:]] == ["link", "link"]
    assert found.spec[2].specified == 600e6


@pytest.mark.in_turn
def test_writes_pay_the_penalty_and_mixtures_the_time_of_both(tmp_path: Path) -> None:
    found = summary(tmp_path, MadeJob(ops_hz={"write": 100.0}), sheet=SHEET)
    assert found.spec[0].specified == 8000
    (tmp_path / "x").mkdir()
    mixed = summary(tmp_path / "x", MadeJob(ops_hz={"read": 500.0, "write": 500.0}), sheet=SHEET)
    assert mixed.spec[0].op == "mixed"
    assert mixed.spec[0].specified == pytest.approx(1 / (0.5 / 20e3 + 0.5 / 8e3), rel=0.02)
    # Ethernet carries both ways at once, SATA does not.
    assert [row.op for row in mixed.spec[1:]] == ["read", "write", "mixed"]


@pytest.mark.in_turn
def test_sequential_io_is_held_against_bandwidth_and_large_random_io_against_links_alone(
    tmp_path: Path,
) -> None:
    streamed = summary(tmp_path, MadeJob(random_percent=0, block_bytes=65536), sheet=SHEET)
    assert streamed.spec[0].quantity == "bytes_per_s"
    assert streamed.spec[0].specified == 4e7
    for name, job in (("x", MadeJob(block_bytes=65536)), ("y", MadeJob(random_percent=50))):
        (tmp_path / name).mkdir()
        other = summary(tmp_path / name, job, sheet=SHEET)
        assert {row.kind for row in other.spec} == {"link"}


def test_jobs_of_one_stage_are_held_against_a_figure_together(tmp_path: Path) -> None:
    jobs = [MadeJob(name=f"j{at}", stage=at // 2, group=at) for at in range(3)]
    found = summary(tmp_path, *jobs, sheet={**SHEET, "links": []})
    assert [(row.name, round(row.share, 2)) for row in found.spec] == [
        ("2 jobs, j0 to j1", 0.1),
        ("j2", 0.05),
    ]


@pytest.mark.in_turn
def test_without_a_data_sheet_nothing_is_said(tmp_path: Path) -> None:
    found = summary(tmp_path, MadeJob())
    assert found.spec == []
    assert found.document()["spec"] == []
    assert "data sheet" not in page.render(found)


@pytest.mark.in_turn
def test_it_is_in_the_document_the_page_and_on_the_terminal(tmp_path: Path) -> None:
    found = summary(tmp_path, MadeJob(name="a"), sheet=SHEET)
    told = found.document()["spec"][0]
    assert told["share"] == told["measured"] / told["specified"]
    assert "Against the data sheet" in page.render(found)
    out = io.StringIO()
    terminal.summary(found, Console(file=out, width=120))
    line = next(line for line in out.getvalue().splitlines() if line.startswith("data sheet: a read"))
    assert "% of 20.0k IOPS" in line.replace("\N{NO-BREAK SPACE}", " ")
    assert "4 x 5,000 IOPS of the drives' data sheet" in out.getvalue().replace("\n", " ")
