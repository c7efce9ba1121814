"""What is said of two single runs: their own error knows nothing of how much runs differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadstone import exitcodes
from loadstone.analysis.statistics.significance import Sample
from loadstone.audit.find_results import SearchProgress
from loadstone.cli.verbs.compare import compare as verb
from loadstone.comparison.compare import compare
from loadstone.comparison.metric import BANDWIDTH, IOPS, MEAN
from loadstone.comparison.repeat_command import repeat_command
from loadstone.comparison.side import side as read_side
from loadstone.report.comparison.words import headline
from tests.comparison.test_compare import made, study


@pytest.mark.in_turn
def test_one_run_each_is_said(tmp_path: Path) -> None:
    told = compare([made(tmp_path / "a"), made(tmp_path / "b", seed=2)]).warnings
    assert any(text.startswith("one valid run of each side: 4k random read.") for text in told)


@pytest.mark.parametrize(("slower", "judged"), [(0.9, "unrepeated"), (0.75, "unrepeated"), (0.68, "worse")])
@pytest.mark.in_turn
def test_single_runs_are_told_apart_only_beyond_what_runs_of_one_load_differ_by(
    tmp_path: Path, slower: float, judged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 38 pairs of runs without a difference three were *better*: one run knows of no other."""
    base, other = made(tmp_path / "a"), made(tmp_path / "b", 1000 * slower, seed=2)
    found = compare([base, other])
    rate = next(one for one in found.effects if one.first)
    assert rate.judgement == judged
    assert rate.contrast is not None
    assert rate.contrast.change == pytest.approx(slower - 1, abs=0.02)
    assert rate.contrast.high is not None
    assert rate.contrast.high < 0
    page = tmp_path / "c.html"
    is_apart = judged == "worse"
    code = exitcodes.REGRESSION if is_apart else exitcodes.NOT_VALID
    assert verb(base, other, gate=True, json=True, html=page) == code
    cell = json.loads(capsys.readouterr().out)["matrix"][0]
    assert (cell["told_apart"], cell["better"]) == ((True, False) if is_apart else (False, None))
    assert cell["unrepeated"] is not is_apart
    assert cell["interval"][0] < cell["change"] < cell["interval"][1]
    assert ('class="worse' in page.read_text()) is is_apart
    assert ("repeats are needed to say which side is better" in headline(found)) is not is_apart


@pytest.mark.in_turn
def test_a_single_run_beside_repeats_is_told_apart_by_their_spread(tmp_path: Path) -> None:
    base = study(tmp_path / "base", [1000.0, 1005.0, 995.0])
    found = compare([base, made(tmp_path / "b", 850.0, seed=7)])
    assert next(one for one in found.effects if one.first).judgement == "worse"
    assert any(one.startswith("one valid run of some patterns of b") for one in found.warnings)


@pytest.mark.in_turn
def test_the_command_that_repeats_a_side_is_the_one_it_came_from(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    request = json.loads((run / "request.json").read_text())
    words = ["/usr/bin/loadstone", "run", "job 1.fio", "--out", "x", "--runtime=3s", "--repeat=1"]
    (run / "request.json").write_text(json.dumps(request | {"argv": words}))
    command = "loadstone run 'job 1.fio' --runtime=3s --repeat 3"
    assert repeat_command(read_side(run, SearchProgress(unverified=True))) == command
    other = made(tmp_path / "b")
    (other / "request.json").write_text(json.dumps(request | {"argv": ["pytest", "-q"]}))
    assert repeat_command(read_side(other, SearchProgress(unverified=True))) is None


def test_the_intervals_that_vdbench_prints_tell_the_error_of_its_mean() -> None:
    """Two output directories of one parameter file were *cannot say* in all of 38 patterns."""
    phases = read_side(Path(__file__).parents[1] / "data" / "foreign" / "vdbench-5.04.07").phases
    by_name = {phase.name: phase.values for phase in phases}
    (reads,) = (values for name, values in by_name.items() if "xfersize=64k" in name)
    for metric in (IOPS, BANDWIDTH, MEAN):
        known = reads[metric]
        assert isinstance(known, Sample)
        assert known.error is not None
        assert 0 < known.error < 0.5 * known.value
    figures = phases[0].case.total
    assert figures.iops is not None
    assert figures.latency is not None
    means = [reads[metric] for metric in (IOPS, MEAN)]
    assert [one.value for one in means if isinstance(one, Sample)] == [
        figures.iops.value,
        figures.latency.mean_ns,
    ]
