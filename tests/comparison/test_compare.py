from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import exitcodes
from loadstone.analysis.statistics.significance import Contrast
from loadstone.api.comparing import Comparison
from loadstone.bundle import study as on_disk
from loadstone.cli.main import main
from loadstone.cli.verbs.compare import compare as verb
from loadstone.comparison import pairing
from loadstone.comparison.compare import JobRow, compare
from loadstone.comparison.metric import MEAN
from loadstone.comparison.side import named
from loadstone.comparison.side import side as read_side
from loadstone.errors import InputError
from loadstone.report.article.elements import ArticleTable
from loadstone.report.comparison import article, page, words
from loadstone.report.comparison.words import headline
from tests.comparison.test_repeats import of_fio
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from loadstone.bundle.study import Factor

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"


def rows(paths: list[Path]) -> dict[str, JobRow]:
    return {row.metric.name: row for row in compare(paths).rows}


def made(
    path: Path, hz: float = 1000.0, median_ns: float = 100_000.0, seed: int = 1, errors: int = 0
) -> Path:
    job = MadeJob("a", {"read": hz}, median_ns=median_ns, errors=errors)
    return runs.make(path, job, seconds=20.0, seed=seed).path


@pytest.mark.in_turn
def test_a_slower_run_is_worse_and_a_like_one_is_the_same(tmp_path: Path) -> None:
    base = made(tmp_path / "base")
    found = rows([base, made(tmp_path / "like", seed=2), made(tmp_path / "slow", 150.0, 650_000.0, seed=3)])
    for name in ("IOPS", "latency mean", "latency p50", "latency p99"):
        _, like, slow = found[name].cells
        assert like.judgement == "same", name
        assert slow.judgement == "worse", name
    change = found["IOPS"].cells[2].contrast
    assert change is not None
    assert change.change == pytest.approx(-0.85, abs=0.01)
    mean = found["latency mean"].cells[2].contrast
    assert mean is not None
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low < 5.5 < mean.high


@pytest.mark.in_turn
def test_more_is_better_only_where_it_is(tmp_path: Path) -> None:
    found = rows([made(tmp_path / "a"), made(tmp_path / "b", 5000.0, 20_000.0, seed=2)])
    assert found["IOPS"].cells[1].judgement == "better"
    assert found["latency p99"].cells[1].judgement == "better"


@pytest.mark.in_turn
def test_nothing_rests_on_a_run_that_is_not_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, failing = made(tmp_path / "a"), made(tmp_path / "b", 2000.0, 50_000.0, seed=2, errors=1)
    found = compare([base, failing])
    assert [side.verdict for side in found.sides] == ["cannot_tell", "not_valid"]
    assert [(one.side, one.run) for one in found.excluded] == [("b", "b")]
    assert not found.rows
    assert {one.judgement for one in found.effects} == {"unknown"}
    assert verb(base, failing, gate=True, json=True) == exitcodes.NOT_VALID
    told = json.loads(capsys.readouterr().out)
    assert told["gate"] == "not_valid"
    assert told["sides"][1]["counts"] == {"not_valid": 1}
    iops = next(one for one in told["matrix"] if one["metric"] == "IOPS")
    assert (iops["valid"], iops["change"], iops["better"]) == ([True, False], None, None)
    files = [tmp_path / f"c.{ending}" for ending in ("html", "md", "pdf")]
    verb(base, failing, markdown=True, output=files)
    assert "<s>" in files[0].read_text()
    assert 'class="better' not in files[0].read_text()
    assert "~~" in files[1].read_text()
    assert files[2].read_bytes().startswith(b"%PDF")
    assert re.search(r"\| ~~[12]\.\d\dk~~ \| not valid \|", capsys.readouterr().out)


@pytest.mark.in_turn
def test_what_is_left_out_for_one_reason_is_said_once(tmp_path: Path) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    blocks = (512, 4096, 8192, 16384)
    for size in blocks:
        runs.make(base / f"{size}", MadeJob("a", block_bytes=size), seed=size)
        runs.make(other / f"{size}", MadeJob("a", block_bytes=size, iodepth=1, errors=1), seed=size + 1)
    found = compare([base, other])
    whys = {one.why for one in found.excluded}
    assert (len(found.excluded), len(whys)) == (4, 1)
    [(side, phases, why)] = words.excluded(found)
    assert (side, why) == ("other", whys.pop())
    assert phases == f"4 phases ({', '.join(f'{one.run} (a)' for one in found.excluded[:3])} and 1 more)"
    names = {"4k repeat 2": "4k repeat 2", "4k": "4k", "4k-write": "4k-write (4k)"}
    for run, named_so in names.items():
        renamed = replace(found, excluded=(replace(found.excluded[0], run=run, phase="4k"),))
        assert words.excluded(renamed) == [(side, named_so, why)]
    depths = [one for one in found.warnings if "depth" in one]
    patterns = [row.pattern for row in found.pairs]
    assert depths == [
        f"other: {patterns[0]}; {patterns[1]} and 2 more are other loads: depth 1 in place of depth 32"
    ]


@pytest.mark.in_turn
def test_one_invalid_repeat_is_left_out_and_the_side_is_what_its_worst_run_is(tmp_path: Path) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    for number in range(3):
        made(base / f"{number}", seed=number)
        made(other / f"{number}", 1000.0 if number else 3000.0, seed=10 + number, errors=0 if number else 1)
    found = compare([base, other])
    assert found.sides[1].counts == {"not_valid": 1, "cannot_tell": 2}
    iops = next(one for one in found.effects if one.metric.name == "IOPS")
    assert (iops.before.runs, iops.after.runs, iops.after.left_out) == (3, 2, 1)
    assert iops.after.sample is not None
    assert iops.after.sample.value == pytest.approx(1000, rel=0.05)
    assert Comparison(found).gate() == "not_valid"


def study(path: Path, reached: list[float], *, rates: list[float | None] | None = None) -> Path:
    """Write a study of repeats; with `rates` of the loads of a curve."""
    path.mkdir()
    points = []
    for number, hz in enumerate(reached, start=1):
        made(path / "runs" / f"{number}", hz, seed=10 * number)
        factors: dict[str, Factor] = {"repeat": number}
        if rates is not None:
            factors = {"repeat": 1, "rate_percent": rates[number - 1]}
        points.append(
            on_disk.Point(name=f"{number}", factors=factors, bundle=f"runs/{number}", status="complete")
        )
    told = on_disk.StudyRecord(
        kind="repeat",
        name="x",
        front_end="fio",
        loadstone_version="0",
        started="2026-01-01T00:00:00+00:00",
        request={},
        points=tuple(points),
        status="complete",
    )
    on_disk.write(path, told)
    return path


@pytest.mark.in_turn
def test_repeats_that_scatter_hide_a_difference_that_single_runs_would_show(tmp_path: Path) -> None:
    base = study(tmp_path / "base", [1000.0, 1100.0, 900.0])
    other = study(tmp_path / "other", [960.0, 1060.0, 860.0])
    found = rows([base, other])
    assert found["IOPS"].cells[0].sample is not None
    assert found["IOPS"].cells[0].sample.runs == 3
    assert found["IOPS"].cells[1].judgement == "same"
    single = rows([base / "runs" / "1", other / "runs" / "1"])
    assert single["IOPS"].cells[1].judgement == "unrepeated"


def at_rate(path: Path, rate: int, latency: float, runs: int = 4) -> Path:
    """Write runs that were to do so many I/Os per second, at a multiple of the kept latency."""
    for number in range(runs):
        file = of_fio(path / f"{number}.json", 1 + number / 1000, rate_iops=str(rate))
        told = json.loads(file.read_text())
        for figures in (told["jobs"][0]["read"]["lat_ns"], told["jobs"][0]["read"]["clat_ns"]):
            figures["mean"] *= latency * (1 + number / 1000)
        file.write_text(json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("rate", "latency", "judged"),
    [
        (1000, 0.5, "better"),
        (1000, 2.0, "worse"),
        (500, 0.5, "unknown"),
        (500, 2.0, "worse"),
        (2000, 0.5, "better"),
        (2000, 2.0, "unknown"),
    ],
)
def test_a_latency_that_its_rate_explains_is_neither_better_nor_worse(
    tmp_path: Path, rate: int, latency: float, judged: str
) -> None:
    """Half the load had half the latency, in green."""
    before, after = at_rate(tmp_path / "a", 1000, 1.0), at_rate(tmp_path / "b", rate, latency)
    compared = compare([before, after])
    assert {one.judgement for one in compared.effects if one.metric is MEAN} == {judged}
    told_apart = [cell.judgement for row in compared.rows for cell in row.cells[1:]]
    assert rate == 1000 or set(told_apart) == {"unknown"}


def test_what_two_of_three_sides_have_is_not_told_to_be_of_one_alone(tmp_path: Path) -> None:
    """Both had it, and each was said to be the only one."""
    for side, sizes in (("a", ["64k"]), ("b", ["64k", "8k"]), ("c", ["64k", "8k"])):
        for size in sizes:
            of_fio(tmp_path / side / f"{size}.json", 1 + len(size) / 10 + ord(side) / 1000, bs=size)
    warnings = compare([tmp_path / name for name in "abc"]).warnings
    assert [one for one in warnings if "8k" in one] == [
        "a does not have 8k sequential read of b, c: to compare those, name b first",
    ]


@pytest.mark.in_turn
def test_copies_of_a_study_are_told_together(tmp_path: Path) -> None:
    """Three copies of a study of ten runs were thirty warnings, one for each run."""
    base = study(tmp_path / "base", [1000.0, 1010.0, 990.0, 1005.0])
    for copy in ("a", "b", "c"):
        shutil.copytree(base, tmp_path / "copies" / copy)
    warnings = compare([base, tmp_path / "copies"]).warnings
    first = tmp_path / "copies" / "a"
    assert [one for one in warnings if "same measurement" in one or "count once" in one] == [
        "copies: 1 is the same measurement as 1 of base",
        "copies: 2 is the same measurement as 2 of base",
        "copies: 2 other runs are the same measurements as some of base",
        f"copies: b has 4 runs that are in {first}, too: they count once",
        f"copies: c has 4 runs that are in {first}, too: they count once",
    ]


def test_a_figure_without_an_error_beside_repeats_is_not_said_to_be_beyond_comparison(tmp_path: Path) -> None:
    """It was *better*, and the warning said that it cannot be compared."""
    repeats = [of_fio(tmp_path / "a" / f"{n}.json", 1 + n / 500, iodepth="4") for n in range(4)]
    text = json.loads(repeats[0].read_text())
    for name in ("iops", "bw", "bw_bytes"):
        text["jobs"][0]["read"][name] *= 2
    for name in ("iops_stddev", "iops_samples"):
        text["jobs"][0]["read"].pop(name, None)
    (tmp_path / "b.json").write_text(json.dumps(text))
    compared = compare([tmp_path / "a", tmp_path / "b.json"])
    assert {one.judgement for one in compared.effects if one.first} == {"better"}
    assert not any("cannot be compared" in one for one in compared.warnings)


@pytest.mark.in_turn
def test_several_curves_of_one_name_and_single_maxima_are_told(tmp_path: Path) -> None:
    """The second curve of a side was left out, and the maximum of one run *worse*, without a word."""
    rates = [None, 20.0, 50.0]
    base = study(tmp_path / "base", [1000.0, 200.0, 500.0], rates=rates)
    for name, most in (("a", 700.0), ("b", 1100.0)):
        place = tmp_path / "other" / name
        place.parent.mkdir(exist_ok=True)
        study(place, [most, 0.21 * most, 0.51 * most], rates=rates)
    warnings = compare([base, tmp_path / "other"]).warnings
    assert "other: has 2 of curve: the first is compared, and the others are not" in warnings
    assert any(one.startswith("one valid run of each side: curve") for one in warnings)


@pytest.mark.in_turn
def test_a_few_repeats_are_shown_one_by_one(tmp_path: Path) -> None:
    base = study(tmp_path / "base", [1000.0, 1100.0])
    found = Comparison(compare([base, made(tmp_path / "other", 1050.0, seed=5)]))
    cell = next(one for one in found.document()["matrix"] if one["metric"] == "IOPS")
    assert [len(one) for one in cell["each"]] == [2, 1]
    assert cell["each"][0] == pytest.approx([1000.0, 1100.0], rel=0.05)
    assert sum(cell["each"][0]) / 2 == pytest.approx(cell["values"][0])
    first, second = (words.short(value, "count") for value in cell["each"][0])
    assert f"(runs: {first}, {second})" in found.markdown()
    assert words.each(found.made.effects[0].after, "count") == ""


def test_what_is_many_times_as_much_is_a_factor() -> None:
    assert words.change(Contrast(67.8, 9.2, 448.0, 1e-6)) == "68.8× (10.2× to 449×)"
    assert words.change(Contrast(3031.0, 2500.0, 3600.0, 1e-6)) == "3032× (2501× to 3601×)"
    assert words.change(Contrast(30.0, 0.1, 9e5, 0.1)) == "31.0× (1.10× to any)"
    assert words.change(Contrast(-0.5, -0.6, 20.0, 0.1)).startswith("-50")
    # It was (-98 to 98.4×), with no unit at its lower end.
    assert (
        words.change(Contrast(0.38, -0.98, 97.4, 0.1)).replace("\N{NO-BREAK SPACE}", " ")
        == "+38 % (-98 % to 98.4×)"
    )


def test_only_what_fell_to_nothing_fell_by_a_hundred_percent() -> None:
    def written(change: float, low: float | None = None, high: float | None = None) -> str:
        return words.change(Contrast(change, low, high, 0.1)).replace("\N{NO-BREAK SPACE}", " ")

    assert written(-0.9976) == "-99.8 %"
    assert written(-1.0) == "-100 %"
    assert written(-0.9999999) == ">-99.99 %"
    assert written(-0.9, -0.99999, -0.5) == "-90 % (>-99.99 to -50)"
    assert written(-0.29, -0.99999, 1e9) == "-29 % (no bounds)"


@pytest.mark.in_turn
def test_repeats_of_a_paced_job_are_repeats_though_no_two_had_as_much_due(tmp_path: Path) -> None:
    for number, seconds in enumerate((9.9, 10.0, 10.3)):
        runs.make(
            tmp_path / str(number), MadeJob("a", {"read": 1000.0}, paced=True), seconds=seconds, seed=number
        )
    found = read_side(tmp_path)
    due = {phase.case.jobs[0].rate_iops for phase in found.phases}
    assert len(due) > 1
    (cell,) = pairing.cells(found)
    assert len(cell.valid) == 3


@pytest.mark.in_turn
def test_runs_at_two_rates_are_no_repeats(tmp_path: Path) -> None:
    for rate in (1000.0, 2000.0):
        runs.make(tmp_path / str(rate), MadeJob("a", {"read": rate}, paced=True))
    assert len(pairing.cells(read_side(tmp_path))) == 2


@pytest.mark.in_turn
def test_copies_of_a_run_count_once(tmp_path: Path) -> None:
    for side, hz in (("a", 1000.0), ("b", 1003.0)):
        made(tmp_path / side / "1", hz, seed=3 if side == "a" else 4)
        for number in "234":
            shutil.copytree(tmp_path / side / "1", tmp_path / side / number)
    found = compare([tmp_path / "a", tmp_path / "b"])
    assert {one.after.runs for one in found.effects} == {1}
    assert {one.judgement for one in found.effects} == {"same"}
    again = [text for text in found.warnings if "is the same measurement as" in text]
    assert len(again) == 6


def test_rounded_figures_of_another_tool_are_not_exact(tmp_path: Path) -> None:
    told = json.loads((FOREIGN / "fio" / "grouped.json").read_text())
    for side, iops in (("a", 17500.0), ("b", 17450.0)):
        (tmp_path / side).mkdir()
        told["jobs"][0]["read"]["iops"] = iops
        for number in range(3):
            told["jobs"][0]["read"]["lat_ns"]["mean"] = 1_824_788.0 + number
            (tmp_path / side / f"{number}.json").write_text(json.dumps(told))
    found = compare([tmp_path / "a", tmp_path / "b"])
    mine = [one for one in found.effects if one.pattern.startswith("64k") and one.metric.name == "IOPS"]
    assert [(one.before.runs, one.judgement) for one in mine] == [(3, "same")]


def test_results_of_two_tools_are_paired_by_their_pattern(tmp_path: Path) -> None:
    found = compare([FOREIGN / "fio" / "shared.json", FOREIGN / "vdbench-5.04.06"])
    assert [row.pattern for row in found.pairs] == ["64k sequential read, depth 32 → 8"]
    assert any("no error is known" in text for text in found.warnings)
    assert Comparison(found).gate() == "no_data"


@pytest.mark.in_turn
def test_what_else_differs_is_told_and_what_moves_by_itself_is_not(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a"), made(tmp_path / "b", seed=2)
    for path, kernel, uptime, method in ((a, "6.1.0", 5, "fiemap"), (b, "6.18.0", 900, "seek")):
        file = path / "environment.json"
        told = json.loads(file.read_text())
        told["host"] |= {"kernel": kernel, "uptime_s": uptime}
        # By which system call a file's holes were looked for says nothing of the storage.
        told["paths"] = [{"target": "/t", "layers": [{"kind": "file", "facts": {"method": method}}]}]
        file.write_text(json.dumps(told))
        runs.reseal(path)
    found = compare([a, b]).differences
    assert [(one.where, one.key, one.values) for one in found] == [
        ("environment", "kernel", ("6.1.0", "6.18.0"))
    ]


@pytest.mark.in_turn
def test_other_settings_of_the_plan_are_told(tmp_path: Path) -> None:
    a = runs.make(tmp_path / "a", MadeJob("a", iodepth=32)).path
    b = runs.make(tmp_path / "b", MadeJob("a", iodepth=64)).path
    found = {one.key: one.values for one in compare([a, b]).differences}
    assert found["iodepth"] == ("32", "64")


@pytest.mark.in_turn
def test_results_without_a_common_job_are_refused(tmp_path: Path) -> None:
    a = runs.make(tmp_path / "a", MadeJob("a")).path
    b = runs.make(tmp_path / "b", MadeJob("b", block_bytes=8192)).path
    with pytest.raises(InputError, match="no load can be compared"):
        compare([a, b])
    with pytest.raises(InputError, match="given twice"):
        compare([a, a])
    with pytest.raises(InputError, match="cannot be compared"):
        compare([a])


@pytest.mark.in_turn
def test_the_maximum_of_a_curve_is_held_against_a_run_in_a_closed_loop(tmp_path: Path) -> None:
    curve = study(tmp_path / "curve", [1000.0, 500.0], rates=[None, 50.0])
    run = made(tmp_path / "run", 200.0, seed=3)
    found = compare([curve, run])
    assert [row.pattern for row in found.pairs] == ["4k random read"]
    assert [len(cell.phases) for cell in found.pairs[0].cells if cell is not None] == [1, 1]
    assert {one.metric.name: one.judgement for one in found.effects}["IOPS"] == "worse"
    assert not found.alone


@pytest.mark.parametrize("job_runtime_ms", [23_800, 32_000])
def test_clones_that_are_worked_out_from_times_make_no_other_load(
    tmp_path: Path, job_runtime_ms: int
) -> None:
    # Eight jobs of two clones ran for two seconds; where some ended early it looks like seven or six.
    told = json.loads((FOREIGN / "fio" / "grouped.json").read_text())
    one = told["jobs"][0]
    told["jobs"] = [one]
    told["global options"] |= {"numjobs": "2", "iodepth": "16"}
    one["job options"].pop("numjobs", None)
    one["job_runtime"] = job_runtime_ms
    one["read"]["runtime"] = 2000
    (tmp_path / "a.json").write_text(json.dumps(told))
    (phase,) = read_side(tmp_path / "a.json").phases
    assert len(phase.case.jobs) == round(job_runtime_ms / 4000)
    assert phase.depth is None


@pytest.mark.in_turn
def test_loads_that_no_other_side_has_are_told_with_what_decides_it(tmp_path: Path) -> None:
    one = runs.make(tmp_path / "one", MadeJob("a", iodepth=4)).path
    many = tmp_path / "many"
    for depth in (1, 2):
        runs.make(many / f"{depth}", MadeJob("b", iodepth=depth), seed=depth)
    with pytest.raises(InputError) as told:
        compare([one, many])
    assert told.value.hint == (
        "one has a (4k random read, depth 4); "
        "many has b (4k random read, depth 1), b (4k random read, depth 2)"
    )


@pytest.mark.in_turn
def test_the_gate_catches_a_regression_and_lets_what_is_tolerated_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = study(tmp_path / "a", [1000.0, 1003.0, 997.0, 1001.0])
    slow = study(tmp_path / "b", [900.0, 903.0, 897.0, 901.0])
    assert verb(base, slow, gate=True) == exitcodes.REGRESSION
    assert verb(base, slow, gate=True, tolerance="60%") == exitcodes.DONE
    assert verb(base, slow) == exitcodes.DONE
    capsys.readouterr()
    assert verb(base, slow, gate=True, json=True) == exitcodes.REGRESSION
    told = json.loads(capsys.readouterr().out)
    assert told["gate"] == "regression"
    with pytest.raises(InputError, match="without --gate"):
        verb(base, slow, tolerance="5%")


@pytest.mark.in_turn
def test_nothing_that_could_be_tested_is_not_a_pass(tmp_path: Path) -> None:
    short = [
        runs.make(tmp_path / name, MadeJob("a"), seconds=1.0, seed=n).path for n, name in enumerate("ab")
    ]
    assert Comparison(compare(short)).gate() == "no_data"


def of_patterns(path: Path, seed: int, *jobs: str, seconds: float = 20.0) -> Path:
    """A run with a pattern for each job, one after the other."""
    ops = {"reading": {"read": 1000.0}, "writing": {"write": 1000.0}}
    made_of = [MadeJob(name, ops[name], stage=at, group=at) for at, name in enumerate(jobs)]
    return runs.make(path, *made_of, seconds=seconds, seed=seed).path


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [11, 12])
def test_a_gate_passes_nothing_where_a_side_lacks_a_pattern(tmp_path: Path, seed: int) -> None:
    """Seeded: the base has two patterns, a side one of them, in either order."""
    both = of_patterns(tmp_path / "both", seed, "reading", "writing")
    one = of_patterns(tmp_path / "one", seed + 100, "reading" if seed % 2 else "writing")
    for paths in ([both, one], [one, both]):
        compared = Comparison(compare(paths))
        found = compared.decide(detect=0.5)
        assert found.outcome == "no_data", found
        assert "does not have" in found.why[0] or "no other side has" in found.why[0]
        assert verb(*paths, gate=True, detect="50%") == exitcodes.NOT_VALID
    again = of_patterns(tmp_path / "again", seed + 200, "reading", "writing")
    assert Comparison(compare([both, again])).decide(detect=0.8).outcome == "passed"


@pytest.mark.in_turn
def test_a_gate_passes_nothing_where_a_result_could_not_be_read(tmp_path: Path) -> None:
    base, side = tmp_path / "base", tmp_path / "side"
    made(base / "1")
    made(side / "1", seed=2)
    assert Comparison(compare([base, side])).decide(detect=0.8).outcome == "passed"
    (side / "2.json").write_text('{"fio version": "fio-3.36", "jobs": [')
    found = Comparison(compare([base, side])).decide(detect=0.5)
    assert found.outcome == "no_data"
    assert "2.json was not read" in found.why[0]
    assert verb(base, side) == exitcodes.USAGE
    assert verb(base, side, gate=True) == exitcodes.NOT_VALID


@pytest.mark.parametrize("broken", ["altered", "cut off", "empty"])
@pytest.mark.in_turn
def test_a_gate_ends_with_98_for_a_side_without_data_and_with_2_for_a_wrong_word(
    tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base, side = str(made(tmp_path / "base")), tmp_path / "side"
    if broken == "altered":
        made(side, seed=2)
        (side / "result.json").write_text("{}")
    elif broken == "cut off":
        side.write_text('{"fio version": "fio-3.36", "jobs": [')
    else:
        side.mkdir()
    assert main(["compare", base, str(side)]) == exitcodes.USAGE
    assert main(["compare", base, str(side), "--gate"]) == exitcodes.NOT_VALID
    assert str(side) in capsys.readouterr().err
    for paths in ([base], [base, base], [base, str(tmp_path / "nowhere")]):
        assert main(["compare", *paths, "--gate"]) == exitcodes.USAGE


@pytest.mark.in_turn
def test_the_markdown_has_a_row_for_each_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "c.html"
    verb(made(tmp_path / "a"), made(tmp_path / "b", 200.0, seed=2), markdown=True, html=page)
    lines = capsys.readouterr().out.splitlines()
    assert "| pattern |  | a | b | change |" in lines
    assert any(line.startswith("| 4k random read | IOPS | ") and "▼" in line for line in lines)
    assert "| job | op | metric | a | b | change |" in lines
    assert any(line.startswith("| a | read | IOPS | ") and "▼" in line for line in lines)
    assert 'class="worse"' in page.read_text()


@pytest.mark.in_turn
def test_what_is_true_of_several_sides_is_said_once(tmp_path: Path) -> None:
    paths = [made(tmp_path / name, seed=seed) for seed, name in enumerate("abc", start=1)]
    found = compare([*paths, made(tmp_path / "slow", 200.0, seed=4)])
    told = headline(found)
    assert told.startswith("b, c against a: not significant. slow against a: worse in the one pattern")


@pytest.mark.in_turn
def test_sides_of_one_name_are_told_apart_by_as_much_of_their_paths_as_that_takes(tmp_path: Path) -> None:
    paths = [made(tmp_path / name / "1") for name in ("before", "after")]
    sides = named([*map(read_side, paths), read_side(made(tmp_path / "x"))])
    assert [one.name for one in sides] == ["before/1", "after/1", "x"]


def test_a_result_that_is_given_twice_is_named(tmp_path: Path) -> None:
    base = made(tmp_path / "a")
    (tmp_path / "link").symlink_to(base)
    with pytest.raises(InputError, match=f"{base} is given twice"):
        compare([base, base])
    with pytest.raises(InputError, match=f"{base} and {tmp_path / 'link'} are the same result"):
        compare([base, tmp_path / "link"])


@pytest.mark.in_turn
def test_runs_without_anything_to_compare_have_a_page_all_the_same(tmp_path: Path) -> None:
    """Found by damaging bundles (seed 30010): the table of no rows ended in a traceback."""
    base, failing = made(tmp_path / "a"), made(tmp_path / "b", 2000.0, 50_000.0, seed=2, errors=1)
    page = tmp_path / "c.html"
    verb(base, failing, html=page)
    assert "<html" in page.read_text()


@pytest.mark.in_turn
def test_a_valid_figure_is_not_called_invalid_because_of_the_first_side(tmp_path: Path) -> None:
    broken, fine = made(tmp_path / "a", errors=7), made(tmp_path / "b")
    (first,) = {words.told(one) for one in compare([broken, fine]).effects}
    (second,) = {words.told(one) for one in compare([fine, broken]).effects}
    assert (first, second) == ("first side not valid", "not valid")


def test_jobs_of_which_nobody_tells_whether_they_were_random_are_no_repeats(tmp_path: Path) -> None:
    """fio's terse output of a random and a sequential read was one pattern of two repeats."""
    fields = (FOREIGN / "fio" / "shared.terse3").read_text().splitlines()[0].split(";")
    for side, factor in (("before", 1.0), ("after", 0.5)):
        (tmp_path / side).mkdir()
        for at, name in enumerate(("seq-read", "rand-read"), start=1):
            rates = [str(round(int(one) * factor / at)) for one in fields[5:8]]
            line = ";".join([*fields[:2], name, *fields[3:5], *rates, *fields[8:]])
            (tmp_path / side / f"{name}.txt").write_text(line)
    before, after = (read_side(tmp_path / side) for side in ("before", "after"))
    assert [[phase.name for phase in cell.phases] for cell in pairing.cells(before)] == [
        ["rand-read"],
        ["seq-read"],
    ]
    made, alone = pairing.rows([before, after])
    pairs = [[cell.first.name for cell in row.cells if cell is not None] for row in made]
    assert pairs == [["rand-read"] * 2, ["seq-read"] * 2]
    assert alone == [[], []]


@pytest.mark.in_turn
def test_reads_are_not_held_against_writes_of_a_job_of_the_same_name(tmp_path: Path) -> None:
    made(tmp_path / "a")
    runs.make(tmp_path / "b", MadeJob("a", {"write": 500.0}), seed=2)
    with pytest.raises(InputError, match="no load can be compared"):
        compare([tmp_path / "a", tmp_path / "b"])


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("other", "pattern", "why"),
    [
        (
            MadeJob("a", block_bytes=8192),
            "4k random read → 8k random read",
            "",
        ),
        (MadeJob("a", iodepth=1), "4k random read, depth 32 → 1", ": depth 1 in place of depth 32"),
        (MadeJob("a", paced=True), "4k random read", ": 1000 I/O per s in place of no limit to the rate"),
    ],
)
def test_a_gate_does_not_pass_what_ran_another_load(
    tmp_path: Path, other: MadeJob, pattern: str, why: str
) -> None:
    runs.make(tmp_path / "a", MadeJob("a"), seconds=40.0)
    runs.make(tmp_path / "b", other, seconds=40.0, seed=2)
    found = Comparison(compare([tmp_path / "a", tmp_path / "b"]))
    assert {one.pattern for one in found.made.effects} == {pattern}
    assert f"b: {pattern} is another load{why}" in found.made.warnings
    assert found.decide(detect=0.5).outcome != "passed"


@pytest.mark.in_turn
def test_a_rate_that_was_asked_for_is_never_better(tmp_path: Path) -> None:
    runs.make(tmp_path / "a", MadeJob("a", paced=True), seconds=40.0)
    runs.make(tmp_path / "b", MadeJob("a", {"read": 2000.0}, paced=True), seconds=40.0, seed=2)
    effects = compare([tmp_path / "a", tmp_path / "b"]).effects
    assert {one.judgement for one in effects if one.metric.name == "IOPS"} == {"unknown"}


@pytest.mark.parametrize("seal", ["interrupted", None])
@pytest.mark.in_turn
def test_a_gate_does_not_pass_a_run_that_did_not_come_to_its_end(tmp_path: Path, seal: str | None) -> None:
    made(tmp_path / "a")
    runs.make(tmp_path / "b", MadeJob("a"), seconds=40.0, seed=2, seal=seal)
    found = Comparison(compare([tmp_path / "a", tmp_path / "b"]))
    assert found.decide(detect=0.5).outcome == "no_data"
    assert any("b is not complete" in text for text in found.made.warnings)


@pytest.mark.in_turn
def test_the_answer_tells_a_latency_that_the_rate_does_not(tmp_path: Path) -> None:
    """The rate did not differ and p99 was eight times as long: the sentence said 'not significant'."""
    runs.make(tmp_path / "a", MadeJob("a", sigma=0.2), seconds=40.0)
    runs.make(tmp_path / "b", MadeJob("a", sigma=1.2, median_ns=80_000.0), seconds=40.0, seed=2)
    told = headline(compare([tmp_path / "a", tmp_path / "b"]))
    assert told.startswith("b against a: not significant; but worse: latency p99 +")


@pytest.mark.in_turn
def test_the_answer_of_many_sides_is_a_sentence(tmp_path: Path) -> None:
    for number in range(12):
        rate = 1000.0 * (1 + 0.1 * number)
        runs.make(
            tmp_path / f"config-{number:02d}", runs.MadeJob(ops_hz={"read": rate}), seconds=20.0, seed=number
        )
    made = compare([tmp_path / f"config-{number:02d}" for number in range(12)])
    said = words.headline(made).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("11 sides against config-00: ")
    assert "best: config-11, IOPS +1" in said
    assert len(said) < 120
    assert words.title(made) == "11 sides against config-00"


@pytest.mark.in_turn
@pytest.mark.parametrize("sides", [4, 5])
def test_the_jobs_of_many_sides_are_rows_and_stay_within_the_page(tmp_path: Path, sides: int) -> None:
    """The table of four sides ended 300 px beyond a page of 1,200: nobody saw the fourth."""
    paths = [made(tmp_path / f"side{at}", 1000.0 + 10 * at, seed=at + 1) for at in range(sides)]
    found = compare(paths)
    html = page.page(found)
    head = html.partition("<h2>Each job</h2>")[2].partition("</thead>")[0]
    assert re.findall(r"<th>(\w+)</th>", head) == ["job", "metric", "side", "value", "change"]
    tables = [one for one in article.article(found).blocks if isinstance(one, ArticleTable)]
    assert list(tables[-1].headings) == ["job", "metric", "side", "value"]
    assert [str(getattr(row[2], "text", row[2])) for row in tables[-1].rows[:sides]] == [
        f"side{at}" for at in range(sides)
    ]


@pytest.mark.in_turn
def test_repeats_that_are_not_alike_are_told(tmp_path: Path) -> None:
    """Runs under two kernels were repeats of one thing, and only the first one's kernel was shown."""
    for number, kernel in enumerate(("6.1.0", "6.18.0")):
        run = made(tmp_path / "two" / f"{number}", seed=number)
        told = json.loads((run / "environment.json").read_text())
        told["host"]["kernel"] = kernel
        (run / "environment.json").write_text(json.dumps(told))
        runs.reseal(run)
        made(tmp_path / "one" / f"{number}", seed=7 + number)
    warnings = compare([tmp_path / "one", tmp_path / "two"]).warnings
    assert [one for one in warnings if "alike" in one] == [
        "two: runs of 4k random read are not alike: kernel (6.1.0, 6.18.0)"
    ]
