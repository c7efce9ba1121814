"""The page of a list of runs that prepares its target, measures large blocks, and overloads it."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.study.curve import curves
from loadstone.bundle import study as on_disk
from loadstone.report.article.elements import Paragraph
from loadstone.report.pictures import chart_images, charts
from loadstone.report.run import path_blocks, path_chart, path_diagram
from loadstone.report.study import answer as study_answer
from loadstone.report.study import charts as study_charts
from loadstone.report.study import curve as study_curve
from loadstone.report.study import curve_charts as study_curve_charts
from loadstone.report.study import effects as study_effects
from loadstone.report.study import matrix as study_matrix
from loadstone.report.study import page as study_page
from loadstone.report.study import sweep as study_sweep
from tests.report.test_study_page import curve
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.study.curve import Curve


def figures(path: Path, block: str) -> Curve:
    return curves(curve(path, slo=None, percents=(20.0, 50.0, 60.0, 70.0, 90.0), bs=block).runs)[0]


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.in_turn
def test_a_knee_is_told_in_what_its_curve_is_told_in(tmp_path: Path) -> None:
    """Of a curve with a maximum of 297 MiB/s the knee was at 640 IOPS, and not drawn."""
    large, small = figures(tmp_path / "large", "128k"), figures(tmp_path / "small", "4k")
    for one, unit, size in ((large, "MiB/s", 2**17), (small, "IOPS", 1)):
        assert one.knee is not None
        amount = rf"\d[\d.]*k? ?{unit}"
        assert re.search(rf"maximum .*, knee {amount} at ", plain(study_answer.of_curves([one])))
        assert re.match(rf"knee: {amount} \(", plain(study_curve.sentences(one)[0]))
        row = study_matrix._curve("", one)
        assert re.fullmatch(amount, plain(str(row[4])))
        spec = study_curve_charts.latency_of_curves([one], "mean")
        assert spec is not None
        drawn = next(layer for layer in spec["layer"] if layer["mark"].get("shape") == "diamond")
        (place,) = drawn["data"]["values"]
        scale = size / 2**30 if size > 1 else 1  # 1.22 GiB/s at most
        assert place["x"] == pytest.approx(one.knee.load * scale, rel=1e-3)


@pytest.mark.in_turn
def test_loads_beyond_the_end_of_a_curve_do_not_press_the_others_onto_its_axis(tmp_path: Path) -> None:
    """Two loads that were held had 3 and 14 ms; beside two that were not, at 1 s, they were one line at 0."""
    whole = figures(tmp_path / "s", "4k")
    slow = [
        dataclasses.replace(
            load, valid=False, mean_ns=dataclasses.replace(load.mean_ns, value=600 * load.mean_ns.value)
        )
        for load in whole.loads[2:]
    ]
    spec = study_curve_charts.latency_of_curves(
        [dataclasses.replace(whole, knee=None, loads=(*whole.loads[:2], *slow))], "mean"
    )
    assert spec is not None
    assert spec["layer"][-1]["encoding"]["y"]["scale"]["type"] == "log"
    plain_spec = study_curve_charts.latency_of_curves([whole], "mean")
    assert plain_spec is not None
    assert plain_spec["layer"][-1]["encoding"]["y"]["scale"]["domain"][0] == 0


@pytest.mark.in_turn
def test_what_prepares_a_target_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data path of a study of 28 runs was that of the format before them, which was in their charts."""
    points = []
    for name, role in (("format", "prepare"), ("read", "measure"), ("write", "measure")):
        runs.make(tmp_path / "runs" / name)
        points.append(
            on_disk.Point(name=name, factors={}, bundle=f"runs/{name}", status="complete", role=role)  # type: ignore[arg-type]
        )
    record = on_disk.StudyRecord(
        kind="list", name="x", front_end="vdbench", loadstone_version="0",
        started="2026-01-01T00:00:00+00:00", request={}, points=tuple(points), status="complete",
    )  # fmt: skip
    on_disk.write(tmp_path, record)
    whole = study_page.read(tmp_path)
    for name in ("render", "in_words"):
        monkeypatch.setattr(path_diagram, name, lambda _: "")
    monkeypatch.setattr(path_chart, "path", lambda _: None)
    path_of = [
        dataclasses.replace(run, summary=SimpleNamespace(paths=[run.point.name]))  # type: ignore[arg-type]
        for run in whole.runs
    ]
    assert path_blocks.of_runs(path_of)[-1] == Paragraph("As run read saw it.", "soft")
    assert path_blocks.of_runs(path_of[:1])[-1] == Paragraph("As run format saw it.", "soft")
    for spec in study_page._parts(whole)[-1].charts:
        assert {row["x"] for row in spec["data"]["values"]} == {"read", "write"}


def test_the_answer_of_a_sweep_has_what_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two block sizes one had a depth to operate at, and the answer had only the other one."""
    advice = [
        SimpleNamespace(value=value, others=(("bs", bs),))
        for bs, value in (("4k", None), ("64k", 8), ("1m", 4), ("2m", 2), ("4m", None))
    ]
    swept = SimpleNamespace(advice=advice, cells=[], left_out=0)
    monkeypatch.setattr(
        study_sweep,
        "sentence",
        lambda one, _: f"{one.others[0][1]}: {'no depth' if one.value is None else one.value}",
    )
    text = study_answer._of_sweep(swept, 0.1, [])  # type: ignore[arg-type] # what it reads of it
    assert text == "64k: 8; 1m: 4; 2m: 2; and 2 more."
    swept.advice = advice[:1]
    assert study_answer._of_sweep(swept, 0.1, []) == "4k: no depth"  # type: ignore[arg-type] # as above


def test_numbers_of_passes_that_are_alike_stand_beside_each_other() -> None:
    """Of three passes with 800 IOPS each the numbers lay on each other."""
    values = {"alike": (0.0, 0.001, -0.001), "apart": (-4.0, 1.0, 3.0)}
    points = [
        {"line": line, "v": value, "n": str(at)}
        for line, row in values.items()
        for at, value in enumerate(row, 1)
    ]
    texts = [(one["line"], round(one["v"], 3), one["n"]) for one in study_effects._numbers(points, 0.6)]
    assert texts == [("alike", 0.0, "3 1 2"), ("apart", -4.0, "1"), ("apart", 1.0, "2"), ("apart", 3.0, "3")]


def test_the_names_of_many_runs_stand_upright_and_whole(tmp_path: Path) -> None:
    """Slanted, the name of the first run began left of the picture, and each lay on the next."""
    names = [f"write xfersize={size}k" for size in (4, 8, 16, 32, 64, 128, 256, 512)]
    axis = study_charts._ordinal("x", None, names)["axis"]
    assert axis["labelAngle"] == -90
    assert axis["labelLimit"] >= axis["minExtent"] >= 6.5 * len("write xfersize=512k")
    assert study_charts._ordinal("x", None, ["1", "2", "4"])["axis"]["labelAngle"] == 0
    spec = charts.base("t", [{"x": name, "v": 1.0} for name in names])
    x = study_charts._ordinal("x", None, names)
    y = charts.axis_from_zero("v")
    text = chart_images.svg(spec | {"mark": "point", "encoding": {"x": x, "y": y}})
    assert all(f">{name}<" in text for name in names)
    assert "…" not in text
