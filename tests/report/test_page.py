from __future__ import annotations

import io
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from loadstone.analysis.summary import summarise
from loadstone.audit.run import audit
from loadstone.bundle.read import Bundle
from loadstone.errors import InputError
from loadstone.report.pictures import charts
from loadstone.report.run import answer, files, page, terminal
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

SEVERAL = (
    MadeJob("first", {"read": 3000, "write": 900}, ramp_s=0.5, paced=True),
    MadeJob("second & last", stage=1, group=1),
)


def several(tmp_path: Path) -> Bundle:
    return Bundle.open(runs.make(tmp_path / "b", *SEVERAL, seconds=3, text=b"[<job>]\nbs=4k & more\n").path)


@pytest.mark.in_turn
def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    html = page.render(summarise(several(tmp_path)))
    assert "<script" not in html
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<(link|img|iframe|object)\b", html)
    assert len(html) < 3_000_000


@pytest.mark.in_turn
def test_a_page_says_what_ran_and_what_it_measured(tmp_path: Path) -> None:
    html = page.render(summarise(several(tmp_path)))
    assert "[&lt;job&gt;]\nbs=4k &amp; more" in html
    assert "second &amp; last" in html
    assert "/mnt/test/data0" in html
    assert "Test CPU" in html
    # Overview 3, two for each of two jobs, host 2.
    assert html.count("<figure") == 10
    titles = re.findall(r'aria-label="([^"]+)"', html)
    assert titles.count("Latency heat map") == 2
    assert "Memory of the host, GiB" in titles


@pytest.mark.in_turn
def test_the_picture_of_the_answer_has_the_total_of_jobs_that_run_together(tmp_path: Path) -> None:
    together = [MadeJob("a", {"read": 1000}), MadeJob("b", {"write": 500}, block_bytes=65536)]
    made = summarise(Bundle.open(runs.make(tmp_path / "b", *together, seconds=3).path))
    spec = page.rate_over_time(made)
    assert spec is not None
    names = spec["layer"][-1]["encoding"]["color"]["scale"]["domain"]
    assert names == ["total", "a", "b"]
    assert spec["title"] == "IOPS"
    whole = [row["v"] for row in spec["data"]["values"] if row["line"] == "total"]
    assert sum(whole) / len(whole) == pytest.approx(1500, rel=0.05)
    apart = [MadeJob("a", {"read": 1000}), MadeJob("b", stage=1, group=1)]
    made = summarise(Bundle.open(runs.make(tmp_path / "c", *apart, seconds=3).path))
    spec = page.rate_over_time(made)
    assert spec is not None
    assert "total" not in {row["line"] for row in spec["data"]["values"]}


@pytest.mark.in_turn
def test_no_raw_floats_in_the_tables(tmp_path: Path) -> None:
    html = page.render(summarise(several(tmp_path)))
    tables = "".join(re.findall(r"<tbody>.*?</tbody>", html, re.DOTALL))
    assert not re.findall(r"\d\.\d{4,}", tables)


@pytest.mark.in_turn
def test_many_jobs_have_one_set_of_charts_and_a_table_of_their_own(tmp_path: Path) -> None:
    jobs = [MadeJob(f"j{number}", {"read": 100}) for number in range(40)]
    html = page.render(summarise(Bundle.open(runs.make(tmp_path / "b", *jobs, seconds=2).path)))
    assert html.count("Latency heat map") >= 1
    assert "All jobs" in html
    assert "40 jobs, j0 to j39" in html
    assert html.count('scope="row">j17<') == 1
    assert len(html) < 3_000_000


@pytest.mark.parametrize("seal", ["complete", "interrupted", "failed", None])
@pytest.mark.in_turn
def test_every_status_is_said(tmp_path: Path, seal: str | None) -> None:
    html = page.render(summarise(Bundle.open(runs.make(tmp_path / "b", seconds=1, seal=seal).path)))
    status = seal or "partial"
    assert f'<span class="status {status}">{status}</span>' in html
    assert page.STATUS[status] in html


def test_a_run_without_data_has_a_page_that_says_so(tmp_path: Path) -> None:
    fatal = {"type": "fatal", "code": 3, "message": "cannot open /dev/x", "hint": "plug it in"}
    run = runs.make(tmp_path / "b", seconds=1, seal=None, host=False, extra_events=[fatal])
    (run.path / "samples.arrows").unlink()
    bundle = Bundle.open(runs.begun_again(run.path))
    html = page.render(summarise(bundle))
    assert "Nothing was measured" in html
    assert "cannot open /dev/x (plug it in)" in html
    assert "<figure" not in html
    with pytest.raises(InputError, match="nothing to draw"):
        files.write(summarise(bundle), tmp_path / "x.svg")


def test_a_picture_of_samples_that_cannot_be_read_names_them(tmp_path: Path) -> None:
    """992051: *the run measured nothing* was all that was said of a damaged file."""
    run = runs.make(tmp_path / "b", seconds=1, seal=None)
    damaged = run.path / "samples.arrows"
    damaged.write_bytes(damaged.read_bytes()[:16].ljust(4096, b"\0"))
    with pytest.raises(InputError, match="nothing to draw") as raised:
        files.write(summarise(Bundle.open(runs.begun_again(run.path))), tmp_path / "x.svg")
    assert "samples.arrows" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("ending", "start"),
    [(".html", b"<!doctype html>"), (".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")],
)
@pytest.mark.in_turn
def test_every_format_is_written(tmp_path: Path, ending: str, start: bytes) -> None:
    bundle = Bundle.open(runs.make(tmp_path / "b", seconds=1).path)
    files.write(summarise(bundle), tmp_path / f"x{ending}")
    assert (tmp_path / f"x{ending}").read_bytes().startswith(start)


@pytest.mark.in_turn
def test_another_ending_and_a_place_that_is_not_there_are_refused(tmp_path: Path) -> None:
    bundle = Bundle.open(runs.make(tmp_path / "b", seconds=1).path)
    with pytest.raises(InputError, match=r"\.docx.*one of \.html"):
        files.write(summarise(bundle), tmp_path / "x.docx")
    with pytest.raises(InputError, match="cannot be written"):
        files.write(summarise(bundle), tmp_path / "none" / "x.html")


def test_charts_hold_the_series_and_leave_gaps_open(tmp_path: Path) -> None:
    made = summarise(several(tmp_path))
    spec = charts.iops(made)
    assert spec is not None
    rows = spec["data"]["values"]
    assert {row["line"] for row in rows} == {"first read", "first write", "second & last"}
    mean = sum(row["v"] for row in rows if row["line"] == "second & last") / 6
    assert mean == pytest.approx(1000, rel=0.1)
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rect", "line"]
    latency = charts.latency(made, "job", 0)
    assert latency is not None
    assert latency["layer"][-1]["encoding"]["x"]["scale"]["domain"] == [0.0, 3.0]


def test_the_tail_goes_out_to_the_slowest_io(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", seconds=3)
    spec = charts.distribution(summarise(Bundle.open(run.path)))
    assert spec is not None
    slowest = max(int(part.max()) for part in run.latencies[0, "read"])
    assert max(row["ns"] for row in spec["data"]["values"]) == slowest
    sure = [row["x"] for row in spec["data"]["values"] if row["sure"]]
    count = sum(len(part) for part in run.latencies[0, "read"])
    assert max(sure) <= count / 9


def printed(bundle: Bundle, width: int) -> str:
    out = io.StringIO()
    terminal.summary(summarise(bundle), Console(file=out, width=width, highlight=False))
    return out.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_the_terminal_shows_jobs_wide_and_narrow(tmp_path: Path) -> None:
    told = [
        {
            "type": "io_error",
            "t_ns": 1,
            "stream": 0,
            "target": 0,
            "op": 0,
            "offset": 0,
            "bytes": 4096,
            "errno": 5,
        }
    ]
    jobs = MadeJob("a"), MadeJob("b", {"write": 50})
    run = runs.make(tmp_path / "b", *jobs, seconds=3, notes=["mind this"], extra_events=told)
    bundle = Bundle.open(run.path)
    wide, narrow = printed(bundle, 140), printed(bundle, 80)
    for text in (wide, narrow):
        assert "complete after 3.00 s" in text
        assert "CPU per I/O: 100 ns user + 1.50 µs system" in text
        assert "note: mind this" in text
        assert "Input/output error (EIO)" in " ".join(text.split())
    assert re.search(r"a +read +\S+ ± \S+k? +\S+ ± \S+ MiB/s", wide)
    assert max(map(len, narrow.splitlines())) <= 80
    assert re.search(r"^a\n +read +\S+ ± \S+ +\S+ MiB/s +\S+ µs +\S+ µs", narrow, re.MULTILINE)
    assert "total" in wide


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_row_of_the_terminal_fits_in_one_line(tmp_path: Path, width: int) -> None:
    run = runs.make(tmp_path / "b", MadeJob("a-job-with-a-long-name"), MadeJob("b", {"write": 50}), seconds=3)
    rows = [
        line
        for line in printed(Bundle.open(run.path), width).splitlines()
        if " ± " in line and "is" not in line
    ]
    assert len(rows) == 4
    assert max(map(len, rows)) <= width


def test_rates_of_jobs_one_after_the_other_are_not_summed_up(tmp_path: Path) -> None:
    assert "total" not in printed(several(tmp_path), 140)


@pytest.mark.in_turn
def test_many_jobs_in_phases_have_the_total_of_each_phase_and_none_of_all(tmp_path: Path) -> None:
    small = [MadeJob(f"small{at:02d}", {"read": 1000}) for at in range(10)]
    large = [
        MadeJob(f"large{at:02d}", {"write": 100}, block_bytes=128 << 10, stage=1, group=1) for at in range(10)
    ]
    bundle = Bundle.open(runs.make(tmp_path / "b", *small, *large, seconds=3).path)
    text = printed(bundle, 140)
    assert "total" not in text
    assert re.search(r"10 jobs, small00 to small09 +read +\S+k", text)
    assert re.search(r"10 jobs, large00 to large09 +write", text)
    made = summarise(bundle)
    rows = page.headline(made)
    assert [(name, op) for name, op, *_ in rows] == [
        ("10 jobs, small00 to small09", "read"),
        ("10 jobs, large00 to large09", "write"),
    ]
    # The sum over its jobs, not the mean over both phases.
    assert rows[0][2][0].replace("\N{NO-BREAK SPACE}", " ").startswith(("10.", "9.9"))


@pytest.mark.in_turn
def test_a_note_of_many_jobs_is_told_once(tmp_path: Path) -> None:
    said = [
        {"kind": "info", "text": "mind this", "where": {"file": "a.fio", "line": line, "option": "iodepth"}}
        for line in range(3, 35)
    ]
    bundle = Bundle.open(runs.make(tmp_path / "b", seconds=2, notes=said).path)
    assert printed(bundle, 140).count("mind this") == 1
    assert "note: a.fio:3: iodepth and 31 more: mind this" in printed(bundle, 140)
    html = page.render(summarise(bundle))
    assert html.count("mind this") == 1
    assert "and 31 more:" in html


def test_no_line_goes_over_a_time_in_which_nothing_ran(tmp_path: Path) -> None:
    jobs = [MadeJob("a", stage=0), MadeJob("b", {"write": 100}, stage=1), MadeJob("c", stage=2)]
    made = summarise(Bundle.open(runs.make(tmp_path / "b", *jobs, seconds=9).path))
    rows = [{"t": float(at), "v": 1.0, "line": "read"} for at in (0, 1, 2, 8, 9)]
    spec = charts.time_chart(made, "x", rows, names=["read"], span_s=(0.0, 9.0))
    assert [(row["t"], row.get("v")) for row in spec["data"]["values"]] == [
        (0, 1), (1, 1), (2, 1), (5, None), (8, 1), (9, 1),
    ]  # fmt: skip


def test_the_terminal_says_when_nothing_was_measured(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", seconds=1, seal=None)
    (run.path / "samples.arrows").unlink()
    assert "nothing was measured" in printed(Bundle.open(runs.begun_again(run.path)), 100)


@pytest.mark.in_turn
def test_the_page_begins_with_the_total_of_all_jobs_and_what_it_is_worth(tmp_path: Path) -> None:
    jobs = [MadeJob(f"lun{at}", {"read": 100, "write": 50}, targets=(at,)) for at in range(8)]
    made = summarise(Bundle.open(runs.make(tmp_path / "b", *jobs, seconds=8, targets=8).path))
    found = answer.answer(made, audit(made))
    (phase,) = found.phases
    assert re.fullmatch(r"1\.[12]\d*k ± 0\.0\d+k", re.sub(r"\s", " ", phase.number))
    assert phase.unit == "IOPS"
    assert [part.split()[0] for part in phase.details[1:]] == ["mean", "p99", "read", "write"]
    html = page.render(made, partial(audit, made))
    first = html.index('class="number"')
    assert html.index('class="believe"') > first
    assert first < html.index("<figure") < html.index('class="facts"')
    assert html.count(found.why) == 1


@pytest.mark.in_turn
def test_phases_have_a_number_each_and_no_sum(tmp_path: Path) -> None:
    jobs = MadeJob("small", {"read": 1000}), MadeJob("large", {"write": 100}, block_bytes=128 << 10, stage=1)
    made = summarise(Bundle.open(runs.make(tmp_path / "b", *jobs, seconds=3).path))
    small, large = answer.answer(made, audit(made)).phases
    assert (small.name, small.unit) == ("small", "IOPS")
    assert (large.name, large.unit) == ("large", "MiB/s")
    assert page.render(made).count('class="main"') == 2


@pytest.mark.in_turn
def test_targets_of_several_phases_have_a_row_for_each_phase(tmp_path: Path) -> None:
    """Two targets under 4 KiB and then 128 KiB had one mean over both, as hosts had."""
    jobs = (
        MadeJob("small", {"read": 1000}, targets=(0, 1)),
        MadeJob("large", {"write": 100}, block_bytes=128 << 10, targets=(0, 1), stage=1),
    )
    run = runs.make(tmp_path / "b", *jobs, seconds=3, targets=2)
    made = summarise(Bundle.open(run.path))
    paths = [target.path for target in made.measurement.plan.targets]
    found = answer.by_phase(made, "target")
    assert [name for name, _ in found] == [f"{path} · {job}" for job in ("small", "large") for path in paths]
    assert [list(total.ops) for _, total in found] == [["read"], ["read"], ["write"], ["write"]]
    assert all(f"{path} · small" in page.render(made) for path in paths)
    alone = summarise(Bundle.open(runs.make(tmp_path / "one", jobs[0], seconds=3, targets=2).path))
    assert [name for name, _ in answer.by_phase(alone, "target")] == paths


def test_the_last_lines_of_a_run_are_its_answer(tmp_path: Path) -> None:
    made = summarise(Bundle.open(runs.make(tmp_path / "b", seconds=3).path))
    out = io.StringIO()
    answer.terminal(answer.answer(made, audit(made)), Console(file=out, width=120))
    number, believe = out.getvalue().splitlines()
    assert "IOPS" in number
    assert "±" in number
    assert believe.startswith("cannot tell")


def test_latencies_at_a_glance_are_those_of_the_table(tmp_path: Path) -> None:
    made = summarise(several(tmp_path))
    spec = charts.spread(made)
    assert spec is not None
    lat = made.totals("job")[0].ops["read"].latencies["lat"]
    shown = {row["p"]: row["ns"] for row in spec["data"]["values"] if row["line"] == "first read"}
    assert shown["p50"] == lat.percentile(50)
    assert shown["max"] == lat.max_ns
