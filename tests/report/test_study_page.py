"""Pages and pictures of studies of a simulated device, and the sentences on the terminal."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import polars as pl
import pytest
from rich.console import Console

from loadstone import units
from loadstone.analysis.histogram import BUCKETS, Histogram, lows_of
from loadstone.analysis.study.curve import curves, limit
from loadstone.analysis.study.document import document, schema
from loadstone.analysis.study.pooled import pooled
from loadstone.analysis.study.repeats import RepeatedLine, repeated
from loadstone.analysis.study.slo import read as read_slo
from loadstone.bundle import study as on_disk
from loadstone.cli.verbs.export import export
from loadstone.cli.verbs.report import report
from loadstone.errors import InputError
from loadstone.report.pictures import chart_images
from loadstone.report.study import charts as study_charts
from loadstone.report.study import curve as study_curve
from loadstone.report.study import curve_charts as study_curve_charts
from loadstone.report.study import page as study_page
from loadstone.report.study import terminal as study_terminal
from loadstone.report.study.repeat_errors import told_lines
from loadstone.study.controller import Next
from loadstone.study.curve import VDBENCH_PERCENTS, CurveController, CurveOptions
from loadstone.study.repeat import RepeatController
from loadstone.study.run import Hooks, StudyRequest, run_study
from loadstone.study.sweep import SweepController
from tests.analysis.test_repeats import measured, run, with_histogram
from tests.study import simulated
from tests.support import links, runs

if TYPE_CHECKING:
    from loadstone.plan.model import SimDevice
    from loadstone.report.study.page import StudyPage
    from loadstone.study.controller import Controller
    from loadstone.study.factors import Name

SCHEMA = Path(__file__).parents[2] / "contract" / "study-result.schema.json"


def study(
    path: Path, kind: Any, controller: Controller, settings: dict[str, Any], **device: Any
) -> StudyPage:
    asked = StudyRequest(kind, "the study", kind, {"argv": ["loadstone"]}, {"job.fio": b"[j]\n"}, settings)

    def of_run(wanted: Next) -> SimDevice:
        """Another seed for each repeat, as no device does the same twice."""
        return simulated.device(**{"seed": wanted.factors["repeat"]} | device)

    hooks = Hooks(simulated.on(of_run))
    run_study(controller, request=asked, out_dir=path, hooks=hooks, after_failure="go_on")
    return study_page.read(path)


def curve(
    path: Path,
    slo: str | None = "mean<200us",
    percents: tuple[float, ...] = VDBENCH_PERCENTS,
    **job: Any,
) -> StudyPage:
    options = CurveOptions(percents=percents, slo=read_slo(slo) if slo else None)
    work = simulated.workload(5, **{"iodepth": 1024} | job)
    return study(path, "curve", CurveController(work, options), {"slo": slo})


@pytest.fixture(scope="module")
def curved(tmp_path_factory: pytest.TempPathFactory) -> StudyPage:
    return curve(tmp_path_factory.mktemp("curved") / "raid0")


def swept(path: Path, *axes: tuple[Name, tuple[int, ...]]) -> StudyPage:
    controller = SweepController([("job", simulated.workload(1))], axes)
    settings = {"axes": [[name, list(values)] for name, values in axes], "gain_share": 0.1}
    return study(path, "sweep", controller, settings, servers=4)


def summary_of(whole: StudyPage, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    study_terminal.summary(whole.study, whole.runs, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    return text.replace("\N{NO-BREAK SPACE}", " ")


def page(whole: StudyPage) -> str:
    out = whole.path / "report.html"
    study_page.write([whole], out)
    assert links.dead(out) == []
    return out.read_text().replace("\N{NO-BREAK SPACE}", " ")


def drawn(html: str) -> int:
    """How many charts stand before the small ones over time."""
    return html.partition("<h2>Over time</h2>")[0].count("<figure")


@pytest.mark.in_turn
def test_a_curve_has_a_table_its_knee_its_limit_and_charts(curved: StudyPage) -> None:
    whole = curved
    text, html = summary_of(whole), page(whole)
    for place in (text, html):
        assert re.search(r"knee: 5\.\d+k IOPS \(", place)
        assert re.search(r"mean&lt;200us: kept up to|mean<200us: kept up to", place)
        assert "closed loop" in place
    assert drawn(html) == 2
    # No run has a page yet, and a link leads to a page that exists.
    assert "href=" not in html
    report_of_run = whole.path / "runs" / "001-maximum" / "report.html"
    report_of_run.write_text("")
    assert 'href="runs/001-maximum/report.html"' in page(whole)
    # From another directory, too.
    elsewhere = whole.path.parent / "pages" / "of a curve.html"
    elsewhere.parent.mkdir()
    study_page.write([whole], elsewhere)
    assert "../raid0/runs/001-maximum/report.html" in links.links(elsewhere)
    assert links.dead(elsewhere) == []
    report_of_run.unlink()
    assert html.index("5.") < html.index("<table")
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)
    made = json.loads((whole.path / "study.json").read_text())
    assert made["status"] == "complete"


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_limit_says_which_share_decided_it_and_where_nothing_did(tmp_path: Path) -> None:
    """Where there are too few I/Os for the percentile itself, the share is all there is to see."""
    text = summary_of(curve(tmp_path / "s", slo="p99<300us"), width=160)
    assert re.search(r"30 % .* limit kept \(0\.\d+ % beyond it\)", text)
    assert re.search(r"100 % .* limit exceeded \(9\d\.\d % beyond it\)", text)
    assert not re.search(r"closed loop .* limit", text)


@pytest.mark.in_turn
def test_a_limit_that_lower_loads_leave_open_is_not_broken_at_every_load(curved: StudyPage) -> None:
    found = curves(curved.runs, read_slo("mean<200us"))[0]
    loads = [dataclasses.replace(load, keeps=None if load.percent == 10 else False) for load in found.loads]
    left = dataclasses.replace(found, loads=tuple(loads), limit=limit(loads, read_slo("mean<200us")))
    last = study_curve.sentences(left)[-1]
    assert "exceeded at every measured load" not in last
    assert "lower loads undecided: 1" in last
    assert "limit undecided" in study_curve.cells(loads[0], left)


@pytest.mark.in_turn
def test_a_narrow_terminal_drops_columns_and_not_numbers(curved: StudyPage) -> None:
    text = summary_of(curved, width=80)
    table = text[: text.index("knee:")]
    assert max(map(len, table.splitlines())) <= 80
    assert "p99" in text
    assert "p50" not in table
    assert "…" not in table


@pytest.mark.in_turn
def test_curves_join_points_in_the_order_asked_and_keep_loads_that_turn_back(curved: StudyPage) -> None:
    found = curves(curved.runs)[0]
    turned = [*found.loads[:3], found.loads[5], found.loads[4]]
    spec = study_curve_charts.latency_of_curves([dataclasses.replace(found, loads=tuple(turned))], "mean")
    assert spec is not None
    xs = [row["x"] for row in sorted(spec["data"]["values"], key=lambda row: row["at"])]
    assert xs == [load.iops.value for load in turned]
    assert xs != sorted(xs)
    line = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["order"]["field"] == "at"


def test_a_load_that_is_not_valid_is_a_cross_that_nothing_joins(curved: StudyPage) -> None:
    found = curves(curved.runs)[0]
    loads = (*found.loads[:2], dataclasses.replace(found.loads[2], valid=False), *found.loads[3:])
    spec = study_curve_charts.latency_of_curves([dataclasses.replace(found, loads=loads)], "mean")
    assert spec is not None
    assert spec["title"].endswith("(× not valid)")
    assert [row["valid"] for row in spec["data"]["values"]].count(False) == 1
    *joined, cross = [layer for layer in spec["layer"] if "transform" in layer]
    assert {layer["transform"][0]["filter"] for layer in joined} == {"datum.valid"}
    assert (cross["mark"]["type"], cross["transform"][0]["filter"]) == ("point", "!datum.valid")
    chart_images.svg(spec)


def test_a_curve_without_a_percentile_is_named_and_the_others_have_their_own_colours(
    curved: StudyPage,
) -> None:
    """Of four layouts one had no p99: it was not in the chart, without a word."""
    (curve_figures,) = curves(curved.runs)
    unknown = dict.fromkeys(curve_figures.loads[0].percentiles_ns)
    loads = [dataclasses.replace(one, percentiles_ns=unknown) for one in curve_figures.loads]
    without = dataclasses.replace(curve_figures, name="a", loads=tuple(loads))
    both = [without, dataclasses.replace(curve_figures, name="b")]
    charts = {name: study_curve_charts.latency_of_curves(both, name) for name in ("mean", "p99")}
    mean, p99 = charts["mean"], charts["p99"]
    assert mean is not None
    assert p99 is not None
    assert p99["title"]["subtitle"] == "too few I/Os at every load: a"
    assert isinstance(mean["title"], str)
    colours = [one["layer"][2]["encoding"]["color"]["scale"] for one in (mean, p99)]
    assert colours[0] == colours[1]
    assert colours[0]["domain"] == ["a", "b"]
    assert p99["layer"][2]["encoding"]["color"]["legend"]["values"] == ["b"]


@pytest.mark.in_turn
def test_large_blocks_are_drawn_against_bandwidth(tmp_path: Path) -> None:
    whole = curve(tmp_path / "s", slo=None, percents=(50.0, 90.0), bs="128k")
    found = curves(whole.runs)
    spec = study_curve_charts.latency_of_curves(found, "mean")
    assert spec is not None
    assert spec["title"] == "Mean latency against bandwidth, GiB/s"
    assert re.search(r"closed loop\s+1\.22 GiB/s|closed loop\s+1\.22\d ± <?0\.\d+ GiB/s", summary_of(whole))


@pytest.mark.in_turn
def test_studies_laid_over_each_other_have_the_names_of_their_directories(
    curved: StudyPage, tmp_path: Path
) -> None:
    one, two = curved, curve(tmp_path / "raid5", slo=None, percents=(50.0, 90.0))
    study_page.write([one, two], tmp_path / "both.html")
    html = (tmp_path / "both.html").read_text()
    assert "raid0 · raid5" in html
    assert html.count("<figure") == 2
    found = [*curves(one.runs), *curves(two.runs)]
    assert len(found) == 2
    repeated = study(tmp_path / "r", "repeat", RepeatController(Next("j", simulated.workload(1)), most=2), {})
    with pytest.raises(InputError, match="has no curve"):
        study_page.write([one, repeated], tmp_path / "none.html")


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_sweep_of_one_two_and_three_factors(tmp_path: Path) -> None:
    one = swept(tmp_path / "1", ("iodepth", (1, 2, 4, 8, 16)))
    assert "recommended iodepth 4" in summary_of(one)
    assert drawn(page(one)) == 2
    two = swept(tmp_path / "2", ("bs", (4096, 131072)), ("iodepth", (1, 4, 16)))
    text = summary_of(two)
    assert "bs 4k: recommended iodepth 4" in text
    assert re.search(r"bs \\ iodepth\s+1\s+4\s+16\n4k\s+10\.0k\s+40\.0k\s+40\.0k", text)
    # Small and large blocks: IOPS and bandwidth and p99, each as a map and as lines.
    assert drawn(page(two)) == 6
    three = swept(tmp_path / "3", ("bs", (4096, 8192)), ("read", (0, 100)), ("iodepth", (1, 4)))
    html = page(three)
    assert drawn(html) == 8
    assert "<h2>bs 4k</h2>" in html


@pytest.mark.in_turn
def test_repeats_say_their_mean_and_its_interval(tmp_path: Path) -> None:
    controller = RepeatController(Next("j", simulated.workload(1)), most=3)
    whole = study(tmp_path / "s", "repeat", controller, {}, service="exponential")
    text, html = summary_of(whole), page(whole)
    assert re.search(r"job read\s+IOPS\s+[\d.]+k ± [\d.]+k\s+± [\d.]+ %", text)
    assert drawn(html) == 2
    assert "repeat-3" in html


@pytest.mark.in_turn
def test_a_phone_has_the_matrix_before_what_it_was_measured_on(tmp_path: Path) -> None:
    controller = RepeatController(Next("j", simulated.workload(1)), most=1)
    whole = study(tmp_path / "s", "list", controller, {}, service="exponential")
    html = page(whole)
    assert html.index('class="matrix') < html.index('class="facts"')
    # What the matrix says of the only run of a pattern is not said again.
    runs_table = html.partition("<h2>Runs</h2>")[2].partition("</table>")[0]
    assert re.findall(r"<th[^>]*>(\w[^<]*)</th>", runs_table.partition("<tbody>")[0]) == [
        "run", "p50", "p99.9", "max",
    ]  # fmt: skip
    spec = study_charts.latency_of_runs(whole.runs)
    assert spec is not None
    shapes = spec["layer"][0]["encoding"]["shape"]["scale"]
    assert shapes == {"domain": ["p50", "p99"], "range": ["circle", "square"]}


def test_of_many_jobs_a_terminal_has_the_totals() -> None:
    def of(jobs: int) -> str:
        lines = [measured(100.0, job=f"lun{at}") for at in range(jobs)]
        whole = dataclasses.replace(lines[0], job="total")
        return study_terminal._table([run(*lines, whole=whole)] * 4, 120).plain

    assert "lun0" in of(6)
    assert "lun0" not in of(8)
    assert len(of(8).splitlines()) == 5


def test_a_line_of_a_run_is_told_once_and_by_its_name_once() -> None:
    """A file with a job of its own name had *mixed mixed read*, for the rate and for the latency."""
    rate = repeated([1000.0, 2000.0], [10.0, 10.0], "1/s")
    latency = repeated([100.0, 200.0], [1.0, 1.0], "ns")
    line = RepeatedLine("mixed", "read", False, rate, rate, latency, dict.fromkeys((50.0, 99.0, 99.9)))
    noise = "the runs differ by more than their own noise: "
    assert study_terminal.apart([line], "mixed") == [f"{noise}mixed read, IOPS and latency, mean"]
    assert study_terminal.apart([line]) == [f"{noise}mixed read, IOPS and latency, mean"]
    assert study_terminal.apart([line], "a.fio") == [f"{noise}a.fio mixed read, IOPS and latency, mean"]
    names = [row[0] for row in study_terminal.repeated_rows([line], "mixed")]
    assert names == ["mixed read", *[""] * (len(names) - 1)]


@pytest.mark.parametrize(
    ("rates", "text", "reach"),
    [
        # They held one rate; each knows it to 6, so their mean to 6 / sqrt(3), and not to nothing.
        ((3000.0, 3000.0, 3000.0), "3.000k ± 0.003k", "± 0.226 %"),
        ((2800.0, 3000.0, 3200.0), "3.00k ± 0.12k", "± 16.6 %"),
    ],
)
def test_a_mean_of_runs_has_one_error_in_matrix_and_table(
    rates: tuple[float, ...], text: str, reach: str
) -> None:
    """The table had the runs' spread alone, the matrix what they know themselves where that is more."""
    lines = [measured(rate, 6.0, p99=None) for rate in rates]
    together = pooled(lines)
    assert together is not None
    row = study_terminal.repeated_rows(told_lines([run(one) for one in lines]))[0]
    cells = [one.replace("\N{NO-BREAK SPACE}", " ") for one in row]
    assert units.with_error(together.iops, "count").replace("\N{NO-BREAK SPACE}", " ") == text
    assert cells[2:4] == [text, reach]
    assert cells[-1] == "± 6"


def test_a_percentile_of_runs_is_one_in_matrix_and_table() -> None:
    """The matrix had that of all I/Os, the table the mean of the runs' own."""
    lows, figures = lows_of(np.arange(BUCKETS)), []
    for slow_ns, count in ((1_000_000, 5_000), (9_000_000, 20_000)):
        buckets = np.searchsorted(lows, [100_000, slow_ns], side="right") - 1
        histogram = Histogram.of(buckets, np.array([count * 49, count]))
        figures.append(with_histogram(measured(100.0), histogram))
    together = pooled(figures)
    assert together is not None
    assert together.percentiles_ns[99.0] == pytest.approx(9_000_000, rel=0.02)
    rows = study_terminal.repeated_rows(told_lines([run(one) for one in figures]))
    (row,) = [row for row in rows if row[1] == "latency, p99"]
    cells = [one.replace("\N{NO-BREAK SPACE}", " ") for one in row]
    assert cells[2].startswith("9 "), "and not 5 ms"
    assert [cell.split()[1] for cell in cells[4:6]] == ["ms", "ms"]


def test_repeats_of_one_rate_have_an_axis_that_can_be_read() -> None:
    """Rates that were alike to a millionth had five marks of "2k"."""
    line = RepeatedLine(
        "j", "read", False, repeated([1999.999, 2000.0, 2000.001], [0.0] * 3, ""), None, None, {}
    )
    spec = study_charts.rate_of_repeats(line)
    assert spec is not None
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert (low, high) == (pytest.approx(1990.0), pytest.approx(2010.0))


def test_a_reason_is_told_once_for_all_runs_it_decides() -> None:
    def of(*decided: tuple[Any, Any]) -> list[str]:
        points = [
            on_disk.Point(name=f"rd{n}", verdict=kind, decided_by=rule, why=rule and f"{rule} {n}.")
            for n, (kind, rule) in enumerate(decided)
        ]
        return study_terminal.verdicts([dataclasses.replace(run(), point=point) for point in points])

    good, cached = ("measures_storage", None), ("not_valid", "page_cache_read")
    assert of(good, good, (None, None)) == []
    assert of(cached, good, ("limited", "generator_cpu"), cached) == [
        "not valid: rd0, rd3. page_cache_read 0. (rd0)",
        "limited: rd2. generator_cpu 2.",
    ]
    assert of(*[cached] * 9)[0].startswith("not valid: rd0, rd1, rd2, rd3, rd4, rd5 and 3 more. page")
    # A study of before reasons were kept.
    assert of(("cannot_tell", None)) == ["cannot tell: rd0."]


@pytest.mark.in_turn
def test_a_note_of_many_files_is_told_once_with_its_first_place(curved: StudyPage) -> None:
    of_files = [
        {
            "kind": "info",
            "text": "the engine chooses",
            "where": {"file": name, "line": 6, "option": "iodepth"},
        }
        for name in ("a.fio", "b.fio", "c.fio")
    ]
    noted = curved.study.model_copy(update={"notes": [*of_files, "as asked"]})
    whole = dataclasses.replace(curved, study=noted)
    assert study_terminal.notes(noted) == ["the engine chooses (a.fio:6: iodepth and 2 more)", "as asked"]
    assert summary_of(whole).count("the engine chooses") == 1
    assert page(whole).count("the engine chooses") == 1


@pytest.mark.in_turn
def test_every_chart_can_be_drawn_and_written_as_a_picture(curved: StudyPage, tmp_path: Path) -> None:
    whole = curved
    for ending in (".svg", ".png", ".pdf"):
        study_page.write([whole], tmp_path / f"charts{ending}")
        assert (tmp_path / f"charts{ending}").stat().st_size > 5000
    with pytest.raises(InputError, match="a report is one of"):
        study_page.write([whole], tmp_path / "charts.txt")
    for spec in (study_charts.rate_of_runs(whole.runs), study_charts.latency_of_runs(whole.runs)):
        assert spec is not None
        assert "<svg" in chart_images.svg(spec)
    assert study_charts.rate_of_runs([run(measured(100.0, error=None))]) is not None
    assert study_charts.rate_of_runs([]) is None


@pytest.mark.in_turn
def test_the_document_of_a_study_is_its_schema(curved: StudyPage, tmp_path: Path) -> None:
    wholes = [
        curved,
        swept(tmp_path / "s", ("iodepth", (1, 8))),
        study(tmp_path / "r", "repeat", RepeatController(Next("j", simulated.workload(1)), most=2), {}),
    ]
    for whole in wholes:
        made = json.loads(json.dumps(document(whole.path, whole.study, whole.runs)))
        jsonschema.validate(made, schema())
        assert made["status"] == "complete"
        filled = [name for name in ("repeats", "curves", "sweep") if made[name] is not None]
        assert filled == [{"curve": "curves", "sweep": "sweep", "repeat": "repeats"}[whole.study.kind]]


@pytest.mark.in_turn
def test_a_study_is_a_table_for_a_spreadsheet_and_for_an_issue(curved: StudyPage, tmp_path: Path) -> None:
    assert export(curved.path, "csv", output=tmp_path / "runs.csv") == 0
    rows = pl.read_csv(tmp_path / "runs.csv")
    assert rows.height == len(curved.runs)
    assert rows["run"][0] == "maximum"
    assert rows["iops"][0] == pytest.approx(10_000, rel=0.01)
    assert rows["asked_iops"].null_count() == 1
    assert {"rate_percent", "latency_p99_ns", "verdict", "bundle"} <= set(rows.columns)
    assert export(curved.path, "markdown", output=tmp_path / "runs.md") == 0
    text = (tmp_path / "runs.md").read_text()
    assert text.startswith("| run | job | op | IOPS |")
    assert "knee: " in text
    with pytest.raises(InputError, match="export prometheus takes one run"):
        export(curved.path, "prometheus")


def test_the_committed_schema_is_fresh() -> None:
    assert SCHEMA.read_text() == json.dumps(schema(), indent=2) + "\n", (
        "write it anew: python -m tests.report.test_study_page > contract/study-result.schema.json"
    )


def test_a_study_that_was_killed_before_its_first_run_has_a_page(tmp_path: Path) -> None:
    on_disk.begin(tmp_path / "s", runs.study_record("curve"), {})
    assert report(tmp_path / "s") == 0
    assert "killed or still runs" in (tmp_path / "s" / "report.html").read_text()
    assert "nothing was measured" in summary_of(study_page.read(tmp_path / "s"))


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))  # noqa: T201 - this is how the schema is written


@pytest.mark.in_turn
def test_a_job_that_completed_nothing_has_a_row_without_numbers(tmp_path: Path) -> None:
    # Within 10 ms nothing of one I/O a second is due, unless it is the first.
    slow = simulated.workload(0.01, rate_iops=1, rate_process="poisson", randseed=3)
    one = simulated.workload(0.01)
    (quiet,), (busy,) = slow.jobs, one.jobs
    work = one.model_copy(update={"jobs": (busy, quiet.model_copy(update={"name": "quiet"}))})
    whole = study(tmp_path / "two", "repeat", RepeatController(Next("j", work), most=2), {})
    assert [found.silent for found in whole.runs] == [("quiet",)] * 2
    assert len(re.findall(r"quiet +no data", summary_of(whole))) == 2
    rows = re.findall(r"<tr\b.*?</tr>", page(whole), flags=re.DOTALL)
    assert sum("quiet" in row and "no data" in row for row in rows) == 2


@pytest.mark.in_turn
def test_a_list_of_runs_names_the_targets_of_all_of_them(tmp_path: Path) -> None:
    """Of four runs on two disks a study named the disk of the first."""
    points = []
    for at in range(2):
        made = runs.make(tmp_path / "runs" / f"{at}", targets=at + 1)
        paths = [target.path for target in made.plan.targets]
        points.append(on_disk.Point(name=f"{at}", factors={}, bundle=f"runs/{at}", status="complete"))
    record = on_disk.StudyRecord(
        kind="list", name="x", front_end="fio", loadstone_version="0", started="2026-01-01T00:00:00+00:00",
        request={}, points=tuple(points), status="complete",
    )  # fmt: skip
    on_disk.write(tmp_path, record)
    facts = dict(study_page._facts(study_page.read(tmp_path)))
    assert facts["On"] == ", ".join(paths)
    assert len(paths) == 2
