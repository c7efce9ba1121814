"""The report of an experiment: what it says first, what it never hides, and its JSON's schema."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from rich.console import Console

from loadstone import output, units
from loadstone.analysis.study import run_figures
from loadstone.bundle.experiment import (
    DesignFactor,
    DesignPattern,
    ExperimentDocument,
    ExperimentRun,
    MachineSetting,
)
from loadstone.bundle.study import Point
from loadstone.effects.analyse import analyse
from loadstone.effects.findings import OutlierRun, RatioInterval
from loadstone.effects.observations import Aim, Factor, Observation, Observations
from loadstone.errors import InputError
from loadstone.report.article.files import as_file, ending_of
from loadstone.report.article.markdown import markdown
from loadstone.report.experiment import article, charts, document, tables, terminal, words
from loadstone.report.experiment.story import ExperimentStory
from loadstone.report.pictures.charts import colour
from tests.effects.drawn import table
from tests.report.test_path_diagram import nfs
from tests.support import links

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = Path(__file__).parents[2] / "contract" / "experiment-report.schema.json"
TWO = (("governor", ("powersave", "performance")), ("cache", ("kept", "dropped")))


def story(made: Observations, *, outcome: str | None = "restored", why: str = "") -> ExperimentStory:
    runs = tuple(
        ExperimentRun(
            name=row.run, block=row.block, pattern=row.pattern, levels=dict(row.levels),
            started="2026-11-23T04:00:00Z",
            settings=(
                MachineSetting.model_validate(
                    {"control": "cpu_governor", "subject": "policy0", "before": "powersave",
                     "asked": row.levels.get("governor", "powersave"), "outcome": outcome, "why": why}
                ),
            ),
        )
        for row in made.rows
    )  # fmt: skip
    record = ExperimentDocument(
        title="Governor <and> cache", question="Which one?", file="g.toml", file_blake3="ab" * 32,
        factors=tuple(DesignFactor(name=one.name, kind="control", levels=one.levels) for one in made.factors),
        patterns=(DesignPattern(name="4k random read"),), design="full", combinations=4, full_combinations=4,
        order="random", seed=7, blocks=4, metrics=("iops",), runs=runs,
    )  # fmt: skip
    return ExperimentStory(record, made, analyse(made, seed=1), "loadstone experiment run g.toml")


@pytest.fixture(scope="module")
def planted() -> ExperimentStory:
    return story(
        table(
            TWO, repeats=4, log=lambda levels, _: 0.2 * (levels["governor"] == "performance"),
            more=lambda value: {"lat_p99_ns": 1e10 / value},
            invalid=lambda levels, place: "the file fits into memory" if place == 5 else None,
            aims=(Aim("iops", larger_is_better=True, limit_metric="lat_p99_ns", limit_at_most=1e7),),
        )
    )  # fmt: skip


def lines(told: ExperimentStory, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    terminal.terminal(told, console)
    return " ".join(console.export_text().split())


def test_the_answer_comes_first_and_names_level_and_size(planted: ExperimentStory) -> None:
    answer = words.headline(planted)
    assert answer.startswith("IOPS: governor=performance gives +2")
    assert "(confidence 95" in answer
    assert "cache makes no difference above 5" in answer
    page = markdown(article.article(planted))
    assert page.index("governor=performance gives") < page.index("| governor |")
    assert "<and>" not in page


@pytest.mark.in_turn
def test_what_holds_of_several_factors_is_said_once() -> None:
    """Three factors without an effect were three clauses with nearly the same figures in brackets."""
    names = (("mount", ("a", "b")), ("full", ("c", "d")), ("group", ("e", "f")))
    answer = words.headline(story(table(names, repeats=3, noise=0.2))).replace("\N{NO-BREAK SPACE}", " ")
    assert answer == (
        "IOPS: mount, full and group have no significant effect "
        "(a difference of -30 % or +44 % would have been seen)."
    )
    answer = words.headline(story(table(names, repeats=4, noise=0.001)))
    assert answer.startswith("IOPS: mount, full and group make no difference above 5"), answer


def test_an_experiment_without_a_valid_run_says_why_first_and_once() -> None:
    """The answer said that no factor has valid runs, and the reason stood once for each combination."""
    zeros = "332 MiB of 400 MiB in /dev/sdb were never written."
    made = story(table(TWO, repeats=3, invalid=lambda _levels, _place: zeros))
    assert words.headline(made) == f"No effect is known: none of 12 runs is valid: {zeros}"
    page = markdown(article.article(made)).replace("\\", "")
    assert f"4k random read: all 12 runs: {zeros}" in page
    assert "All combinations" not in page


def test_what_was_measured_once_is_not_said_to_have_no_data() -> None:
    """The matrix had -54 % for a layout of which the answer said that it has no data."""
    names = (("layout", ("a", "b")), ("block", ("4k", "16k")))
    whole = table(names, repeats=2)
    by_layout = {name: [row for row in whole.rows if row.levels["layout"] == name] for name in "ab"}
    few = (*by_layout["a"], by_layout["b"][0])
    answer = words.headline(story(Observations(whole.factors, few)))
    assert "no data" not in answer, answer


def test_the_answer_names_every_level_that_differs_from_the_first() -> None:
    """Of RAID10 and RAID5, both half as fast as RAID0, it named one."""
    sizes = {"RAID0": 0.0, "JBOD": 0.0, "RAID10": -0.7, "RAID5": -0.6}
    made = table((("layout", tuple(sizes)),), repeats=4, log=lambda levels, _: sizes[levels["layout"]])
    answer = words.headline(story(made)).replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"layout=RAID10 gives -\d+[^,]* against RAID0, RAID5 -4\d[^,]*\.$", answer), answer
    assert "JBOD" not in answer


@pytest.mark.parametrize(
    ("factor", "sizes"),
    [
        ("governor", r": [+-]?\d+(\.\d+)? % .* with cache=dropped, \+17\d % .* with cache=kept"),
        (
            "cache",
            r": -6\d(\.\d+)? % .* with governor=performance, [+-]?\d(\.\d+)? % .* with governor=powersave",
        ),
    ],
)
def test_an_effect_that_depends_on_another_factor_is_told_at_its_levels(factor: str, sizes: str) -> None:
    made = table(
        TWO,
        repeats=4,
        log=lambda levels, _: float(levels["governor"] == "performance" and levels["cache"] == "kept"),
    )
    answer = words.headline(story(made)).replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(f"{factor}=[a-z]+ gives [^;]*{sizes}", answer), answer


def test_an_effect_that_cancels_itself_out_on_average_is_told_at_its_levels() -> None:
    """Faster with one level and slower with the other: the factor "makes no difference" was the answer."""
    made = table(
        TWO,
        repeats=4,
        log=lambda levels, _: (
            0.4 if (levels["governor"] == "performance") == (levels["cache"] == "kept") else 0.0
        ),
    )
    answer = words.headline(story(made)).replace("\N{NO-BREAK SPACE}", " ")
    assert "makes no difference" not in answer
    pattern = (
        r"governor has no significant effect on average, but governor=\w+ against \w+ gives [+-][\d.]+ %"
    )
    assert re.search(pattern, answer), answer
    assert "with cache=kept" in answer
    assert "with cache=dropped" in answer


def test_where_nothing_is_varied_each_pattern_has_its_figures() -> None:
    came = [row for name in ("4k write", "4k read") for row in table((), pattern=name).rows]
    told = story(Observations((), tuple(came), patterns=("4k read", "4k write")))
    said = lines(told)
    assert "Nothing was varied" in said
    assert said.index("4k read") < said.index("4k write")
    page = markdown(article.article(told))
    assert "| 4k read | 3 |" in page
    assert "What matters most" not in page
    assert "significant" not in page.partition("How it was computed")[0].replace("no significant drift", "")


@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_of_any_width_has_the_matrix_and_what_was_left_out(
    planted: ExperimentStory, width: int
) -> None:
    said = lines(planted, width)
    for part in (
        "most IOPS with latency p99 at most 10.0 ms",
        "▲",
        "the file fits into memory",
        "= no difference",
    ):
        assert part in said


@pytest.mark.in_turn
def test_every_form_says_what_was_changed_left_out_and_how_to_redo_it(
    planted: ExperimentStory, tmp_path: Path
) -> None:
    for ending in (".md", ".html"):
        output.write(tmp_path / f"r{ending}", as_file(article.article(planted), ending))
        said = (tmp_path / f"r{ending}").read_text()
        for part in (
            "cpu_governor",
            "put back (16×)",
            "the file fits into memory",
            "loadstone experiment run g.toml",
        ):
            assert part in said, (ending, part)
    assert "NOT PUT BACK" not in said
    assert "<and>" not in said
    assert links.dead(tmp_path / "r.html") == []


@pytest.mark.in_turn
def test_the_pdf_is_one(planted: ExperimentStory) -> None:
    assert as_file(article.article(planted), ".pdf")[:4] == b"%PDF"


def test_what_was_not_put_back_is_said_before_anything_else(planted: ExperimentStory) -> None:
    left = story(planted.table, outcome="failed", why="device or resource busy")
    page = markdown(article.article(left))
    assert page.index("NOT PUT BACK") < page.index("| governor |")
    assert "device or resource busy" in page
    assert "NOT PUT BACK" in lines(left)
    assert document.document(left)["settings"][0]["left"] is True


def test_nothing_repeated_and_nothing_valid_are_said_plainly() -> None:
    once = story(table(TWO, repeats=1, keep=lambda levels: levels["cache"] == "kept"))
    assert "chance cannot be ruled out" in words.headline(once)
    nothing = story(table(TWO, invalid=lambda *_: "too short"))
    assert "No effect is known" in words.headline(nothing)
    assert "too short" in markdown(article.article(nothing))
    lines(nothing)
    document.document(nothing)


def test_what_is_open_says_what_would_settle_it() -> None:
    few = story(table(TWO, repeats=3, noise=0.08, seed=5))
    assert any(
        "would have been seen" in one and "more repeat" in one for one in words.open_points(few.effects)
    )


def test_a_range_that_leaves_out_zero_without_a_mark_is_told_with_that_of_all_tests() -> None:
    several = [(name, ("1", "2")) for name in "abc"]

    def log(levels: Mapping[str, str], _: int) -> float:
        return 0.02 * (levels["a"] == "2")

    # A seed whose effect is clear for itself alone, and not among six tests.
    drawn = story(table(several, repeats=3, noise=0.02, seed=8, log=log))
    (one,) = (one for one in drawn.effects.effects if one.factor == "a" and one.first)
    assert one.change is not None
    assert one.together is not None
    assert one.judgement == "open"
    assert (one.change.low or 0.0) > 1.0
    assert one.together[0] < 1.0 < one.together[1]
    (line,) = (line for line in words.open_points(drawn.effects) if "a=2" in line)
    assert "with all 6 tests together" in line
    assert "if it were the only one" in line
    assert "for this change alone" in words.legend(drawn.effects, "full")


def test_changes_are_written_as_far_as_they_are_known() -> None:
    def written(ratio: float, low: float | None, high: float | None) -> str:
        return words.change(RatioInterval(ratio=ratio, low=low, high=high, p=None, raw_p=None)).replace(
            "\N{NO-BREAK SPACE}", " "
        )

    assert written(1.123, 1.101, 1.144) == "+12 % (+10 to +14)"
    assert written(1.0012, 1.0008, 1.0016) == "+0.12 % (+0.08 to +0.16)"
    assert written(0.5, None, None) == "-50 %"
    assert written(0.0024, None, None) == "-99.8 %"
    assert written(0.00482, 0.0001, 0.02) == "-99.5 % (>-99.99 to -98.0)"
    assert written(40.0, 35.0, 45.0) == "40.0× (35.0 to 45.0)"
    assert written(5.0, 1e-3, math.inf).endswith("any)")


def test_the_document_keeps_its_schema_and_the_committed_one_is_fresh(planted: ExperimentStory) -> None:
    schema = document.ExperimentReportDocument.model_json_schema()
    assert json.loads(SCHEMA.read_text()) == schema
    jsonschema.validate(document.document(planted), schema)


def test_an_ending_that_says_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="html"):
        ending_of(Path("report.doc"), "experiment")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document.ExperimentReportDocument.model_json_schema(), indent=2) + "\n")


def test_the_legend_of_a_small_chart_has_room_for_its_names() -> None:
    names = ["layout=RAID0", "layout=JBOD", "layout=RAID10", "layout=RAID5"]
    assert colour("level", names)["legend"]["columns"] == 3
    assert colour("level", names, width=380)["legend"]["columns"] == 2


def test_what_cannot_be_told_from_another_factor_is_named_and_has_no_figure() -> None:
    rows = [
        Observation(f"{block}{at}", 2 * block + at, 20.0 * block + at, block, {"a": level, "b": level}, "p",
            {"iops": rate * (1 + 0.001 * ((at + block) % 3))})
        for block in range(4)
        for at, (level, rate) in enumerate((("1", 100.0), ("2", 300.0)))
    ]  # fmt: skip
    made = Observations((Factor("a", ("1", "2")), Factor("b", ("1", "2"))), tuple(rows))
    found = story(made)
    assert words.headline(found) == (
        "Effects cannot be separated: in valid runs a and b change only together."
    )
    matrix = lines(found)
    assert "not known" in matrix
    assert "no data" not in matrix


def test_a_level_with_a_value_is_not_compared_where_the_first_has_none() -> None:
    """The page of a study that was stopped said `11.4k`, and `no data` below it."""
    made = table(
        (("file", ("fits", "large")),), repeats=3, log=lambda *_: 0.0,
        invalid=lambda levels, _: "It was too short." if levels["file"] == "fits" else None,
    )  # fmt: skip
    line = tables.matrix(story(made), ["iops"])[0].lines[0]
    assert line.cells[0].value == "no data"
    assert line.cells[1].value != "no data"
    assert line.cells[1].change == "not compared"
    why = [one.why for one in story(made).effects.cells if one.value is None]
    assert why == ["No run of this combination is valid: It was too short."]


def test_shares_that_add_up_to_more_than_all_are_explained(planted: ExperimentStory) -> None:
    assert tables.shared(planted) == ""
    shares = [one.model_copy(update={"eta_squared": 0.9}) for one in planted.effects.shares]
    told = tables.shared(replace(planted, effects=planted.effects.model_copy(update={"shares": shares})))
    assert told.startswith("Shares add up to more than 100 %")
    shares = [one.model_copy(update={"eta_squared": 0.1}) for one in planted.effects.shares]
    told = tables.shared(replace(planted, effects=planted.effects.model_copy(update={"shares": shares})))
    assert told.startswith("Shares add up to less than 100 %")


def test_what_explains_differences_is_written_for_people(planted: ExperimentStory) -> None:
    """Tables and pictures named two factors together `governor:cache`, as a formula does."""
    assert "governor × cache" in [row[0] for row in tables.shares(planted)[1]]
    drawn = charts.shares(planted)
    assert drawn is not None
    assert "governor × cache" in drawn["encoding"]["y"]["sort"]
    assert "governor:cache" not in json.dumps(drawn)


def two_patterns() -> Observations:
    """Return two runs of each of two patterns, with no factor."""
    read, write = (
        table((), repeats=2, more=lambda _: {"lat_mean_ns": 1e5}, pattern=pattern)
        for pattern in ("read", "write")
    )
    return replace(read, rows=(*read.rows, *write.rows))


def test_a_page_on_which_nothing_was_varied_has_no_empty_heading_and_says_the_same_once() -> None:
    bare = story(two_patterns())
    found = replace(bare, record=bare.record.model_copy(update={"metrics": ("iops", "lat_mean_ns")}))
    assert found.metrics[1:]
    assert "Other metrics" not in markdown(article.article(found))
    assert tables.drifts(found) == ["read, write: There are too few runs to tell a drift from noise."]


def test_the_name_of_an_outlier_is_drawn_where_there_is_room_for_it(planted: ExperimentStory) -> None:
    """The picture of the runs in order cut it off at its right edge."""
    runs = [one.run for one in planted.table.rows if one.pattern == planted.effects.patterns[0]]
    outliers = [
        OutlierRun(run=run, pattern=planted.effects.patterns[0], metric="iops", ratio=0.2, p=0.001)
        for run in (runs[0], runs[-1])
    ]
    found = replace(planted, effects=planted.effects.model_copy(update={"outliers": outliers}))
    spec = charts.over_time(found)[0]
    names = [layer for layer in spec["layer"] if layer["mark"].get("type") == "text"]
    assert [one["mark"]["align"] for one in names] == ["right", "left"]
    assert all(one["mark"]["limit"] <= spec["width"] for one in names)


def test_runs_in_order_have_no_axis_below_nothing(planted: ExperimentStory) -> None:
    """It went down to -200 %, where one run was twice the mean of its combination."""
    rows = list(planted.table.rows)
    rows[0] = replace(rows[0], metrics={**rows[0].metrics, "iops": 9 * rows[0].metrics["iops"]})
    spec = charts.over_time(replace(planted, table=replace(planted.table, rows=tuple(rows))))[0]
    low, high = spec["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert low == -1
    assert high > 2


@pytest.mark.parametrize(
    ("share", "told"), [(0.05, "5 %"), (0.14, "14 %"), (1.0, "-50 % or +100 %"), (1.63, "-62 % or +163 %")]
)
def test_a_large_difference_that_would_have_been_seen_is_told_both_ways(share: float, told: str) -> None:
    """A factor that halved the rate was said not to be told apart, and 163 % would have been seen."""
    assert words.either_way(share).replace(units.THIN, " ") == told


def test_what_has_no_figure_is_told_with_its_reason() -> None:
    """A metric that no run had vanished from the page, and a combination whose runs failed had no word."""
    whole = story(table(TWO, repeats=2, log=lambda _, __: 0.0))
    kept = tuple(row for row in whole.table.rows if row.levels["cache"] == "kept")
    made = replace(whole.table, rows=kept, metrics=("iops", "lat_p999_ns"))
    dropped = [run.name for run in whole.record.runs if run.levels["cache"] == "dropped"]
    failed = dict.fromkeys(dropped, "dirty_limit: '120%' was not accepted: Invalid argument")
    runs = tuple(run.model_copy(update={"started": None}) for run in whole.record.runs)
    told = replace(whole, table=made, effects=analyse(made, seed=1), failed=failed)
    failure = "no data: no run of it completed: dirty_limit: '120%' was not accepted: Invalid argument"
    unmeasured = (
        "4k random read: latency p99.9 has no value in 4 of 4 valid runs: a run needs 10,000 I/Os for it"
    )
    missing = tables.missing(told)
    assert [line for line in missing if line.endswith(failure)] == missing[:2]
    assert missing[2].startswith(unmeasured)
    assert len(missing) == 3
    assert unmeasured in lines(told)
    assert "What has no figure, and why" in markdown(article.article(told))
    not_begun = replace(told, failed={}, record=whole.record.model_copy(update={"runs": runs}))
    assert [line for line in tables.missing(not_begun) if "no run of it was begun" in line] == [
        f"4k random read, governor={governor}, cache=dropped: no data: no run of it was begun: "
        "`loadstone experiment resume` does it. Where the budget ended before it, allow a larger one in "
        "[budget] of the file"
        for governor in ("powersave", "performance")
    ]


def test_a_combination_that_was_tried_in_vain_is_not_also_told_to_be_not_begun() -> None:
    """After Ctrl-C in a first repeat it said both of one combination: nothing completed, nothing began."""
    whole = story(table(TWO, repeats=2, log=lambda _, __: 0.0))
    kept = tuple(row for row in whole.table.rows if row.levels["cache"] == "kept")
    made = replace(whole.table, rows=kept)
    runs = tuple(run.model_copy(update={"started": None}) for run in whole.record.runs)
    first = next(run for run in runs if run.levels["cache"] == "dropped")
    stopped = replace(
        whole,
        table=made,
        effects=analyse(made, seed=1),
        failed={first.name: "it was cut short"},
        record=whole.record.model_copy(update={"runs": runs}),
    )
    of_first = [line for line in tables.missing(stopped) if f"governor={first.levels['governor']}" in line]
    assert [line.partition("no data: ")[2] for line in of_first] == [
        "no run of it completed: it was cut short"
    ]


def test_a_study_of_one_combination_without_a_valid_run_has_a_page() -> None:
    made = table((("cache", ("kept", "dropped")),), repeats=2, log=lambda _, __: 0.0)
    rows = tuple(replace(row, levels={}, invalid="it was too short") for row in made.rows if row.block == 0)
    told = story(replace(made, factors=(), rows=rows))
    assert tables.patterns(told) == [["4k random read", "0", "no data"]]
    assert "too short" in lines(told)


def test_one_other_metric_is_named_as_several_are(planted: ExperimentStory) -> None:
    """The row of a single other metric had the pattern's name only, beside 1.74 ms of nobody knew what."""
    (first,) = {line.name for one in tables.matrix(planted, ["iops"]) for line in one.lines}
    (other,) = {line.name for one in tables.matrix(planted, ["lat_p99_ns"]) for line in one.lines}
    assert (first, other) == ("4k random read", "4k random read, latency p99")


@pytest.mark.in_turn
def test_an_experiment_has_the_data_path_of_a_run(planted: ExperimentStory, tmp_path: Path) -> None:
    """Pages of studies had it, and those of experiments did not."""
    point = Point(name="first", factors={}, bundle="", status="complete")
    figures = run_figures.run(point, nfs(tmp_path))
    text = as_file(article.article(replace(planted, runs=(figures,))), ".md")
    assert isinstance(text, str)
    path = text.partition("## Data path")[2].partition("## What was changed on the machine")[0]
    assert "- network file system " in path
    assert "97.7 % of 118 MB/s each way" in path
    assert "As run first saw it." in path


def test_a_rate_that_a_factor_requests_is_no_result_of_it() -> None:
    """`rate_iops` at half was a worse IOPS, in orange, though nothing else was requested."""
    factors = (("rate", ("1000", "500")), ("cache", ("kept", "dropped")))
    made = table(factors, repeats=4, log=lambda levels, _: -0.7 * (levels["rate"] == "500"))
    rows = tuple(replace(row, asked=(float(row.levels["rate"]), 0.0)) for row in made.rows)
    whole = story(replace(made, rows=rows))
    pattern = whole.effects.patterns[0]
    requested, cache = (whole.effect(pattern, "iops", name, level) for name, level in (
        ("rate", "500"), ("cache", "dropped"),
    ))  # fmt: skip
    assert requested is not None
    assert cache is not None
    assert (requested.judgement, cache.judgement) == ("requested", "alike")
    assert words.told(requested).endswith("requested")
    assert "rate sets the rate that is requested, which is no result" in words.headline(whole)
    (rates, _) = tables.matrix(whole, ["iops"])
    assert [cell.kind for cell in rates.lines[0].cells] == ["base", "requested"]
    free = story(made).effect(pattern, "iops", "rate", "500")
    assert free is not None
    assert free.judgement == "worse", "a load that is not held to a rate"


def test_in_a_fraction_a_factor_is_known_to_request_a_rate_too() -> None:
    rows = [
        Observation("r", at, 0.0, 0, {"rate": rate, "b": b}, "p", {}, asked=(float(rate), 0.0))
        for at, (rate, b) in enumerate((("1000", "x"), ("500", "y")))
    ]
    table_of = Observations((Factor("rate", ("1000", "500")), Factor("b", ("x", "y"))), tuple(rows))
    assert table_of.requests("rate", "p")
    alike = Observations(table_of.factors, tuple(replace(row, asked=(9.0, 0.0)) for row in rows))
    assert not alike.requests("rate", "p")
