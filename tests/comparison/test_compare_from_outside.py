"""`loadstone compare` as a script uses it: the names in its JSON, and what its gate ends with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.statistics.significance import Sample, contrast
from loadstone.api.comparing import Comparison
from loadstone.cli.main import main
from loadstone.comparison import gate, pattern_name
from loadstone.comparison.compare import compare
from loadstone.comparison.gate import _power
from loadstone.comparison.matrix import Effect, SideValue
from loadstone.comparison.metric import BANDWIDTH, IOPS
from loadstone.errors import InputError
from loadstone.report.comparison.words import headline
from tests.comparison.test_compare import at_rate
from tests.comparison.test_repeats import of_fio
from tests.e2e import program
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


def made(path: Path, hz: float = 1000.0, seed: int = 1, errors: int = 0) -> Path:
    return runs.make(path, MadeJob("a", {"read": hz}, errors=errors), seconds=40.0, seed=seed).path


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("hz", "errors", "code", "gate", "told_apart"),
    [
        (1000.0, 0, 0, "passed", False),
        (200.0, 0, 97, "regression", True),
        (1000.0, 4000, 98, "not_valid", False),
    ],
)
def test_a_script_finds_the_names_and_the_exit_code(
    tmp_path: Path, hz: float, errors: int, code: int, gate: str, *, told_apart: bool
) -> None:
    made(tmp_path / "before")
    made(tmp_path / "after", hz, seed=2, errors=errors)
    done = program.run("compare", "before", "after", "--gate", "--detect", "80%", "--json", cwd=tmp_path)
    assert done.code == code, done.err
    told: dict[str, Any] = json.loads(done.out)
    assert told["gate"] == gate
    assert [side["name"] for side in told["sides"]] == ["before", "after"]
    verdicts = [(side["verdict"], side["counts"]) for side in told["sides"]]
    assert all(verdict in counts and sum(counts.values()) == 1 for verdict, counts in verdicts)
    first = told["matrix"][0]
    assert {"pattern", "metric", "values", "change", "interval", "told_apart", "better"} <= set(first)
    assert (first["pattern"], first["metric"]) == ("4k random read", "IOPS")
    assert first["told_apart"] is told_apart
    assert first["better"] is (False if told_apart else None)
    if errors:
        assert verdicts[1][0] == "not_valid"
        assert [(one["run"], bool(one["why"])) for one in told["excluded"]] == [("after", True)]
        assert (first["values"][1], first["change"], first["interval"]) == (None, None, None)
    else:
        before, after = first["values"]
        assert first["change"] == pytest.approx(after / before - 1)
        assert first["interval"][0] < first["change"] < first["interval"][1]
        assert told["excluded"] == []
        assert told["power"] > 0.8


@pytest.mark.in_turn
def test_without_a_gate_the_comparison_is_no_failure(tmp_path: Path) -> None:
    made(tmp_path / "before")
    made(tmp_path / "after", 800.0, seed=2)
    done = program.run("compare", "before", "after", "--json", cwd=tmp_path)
    assert (done.code, json.loads(done.out)["gate"]) == (0, None)


@pytest.mark.in_turn
def test_a_gate_does_not_pass_for_a_typo_where_it_has_seen_nothing(tmp_path: Path) -> None:
    made(tmp_path / "before")
    runs.make(tmp_path / "after", MadeJob("b", {"write": 1000.0}, block_bytes=8192))
    words = ["compare", str(tmp_path / "before"), str(tmp_path / "after")]
    assert main([*words, "--gate"]) == 98
    assert main(words) == 2


@pytest.mark.parametrize("option", ["--detect", "--tolerance"])
def test_what_only_a_gate_reads_is_refused_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """`--detect` was read and forgotten: nothing of it was printed, and nobody was told."""
    words = ["compare", str(made(tmp_path / "before")), str(made(tmp_path / "after", seed=2))]
    assert main([*words, option, "7%"]) == 2
    assert f"{option}: has no effect without --gate" in capsys.readouterr().err
    assert main([*words, "--detect", "7%", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["detect"] == 0.07


def without_options(folder: Path) -> None:
    """As fio 2.1 wrote it: nothing of what a job asked for."""
    for file in folder.glob("*.json"):
        document = json.loads(file.read_text())
        document.pop("global options", None)
        document["jobs"][0].pop("job options", None)
        file.write_text(json.dumps(document))


def test_a_rate_that_an_old_result_does_not_tell_is_not_said_to_be_none(tmp_path: Path) -> None:
    """It was called *no limit to the rate*, and surely another load; of it nothing is known."""
    before, after = at_rate(tmp_path / "a", 1000, 1.0), at_rate(tmp_path / "b", 1000, 1.0)
    without_options(before)
    made_of = Comparison(compare([before, after]))
    (warning,) = [one for one in made_of.made.warnings if "load" in one]
    assert warning.endswith("may be another load: 4000 I/O per s in place of a rate that is not known")
    assert made_of.decide(detect=0.5).outcome != "passed"


def test_the_answer_says_that_a_rate_was_asked_for_and_is_not_judged(tmp_path: Path) -> None:
    """It said *not significant* beside -50 % (-51 to -49)."""
    before, after = at_rate(tmp_path / "a", 1000, 1.0), at_rate(tmp_path / "b", 500, 1.0)
    text = headline(compare([before, after]))
    assert "IOPS and bandwidth are not judged, as the requested rates differ" in text
    same = at_rate(tmp_path / "c", 1000, 1.0)
    assert "not judged" not in headline(compare([before, same]))


def test_loads_without_a_partner_are_named_with_the_rates_that_keep_them_apart(tmp_path: Path) -> None:
    """Both sides were listed with the very same words, and none of them could be compared."""
    for side, rates in (("a", (1000, 1001)), ("b", (500, 501, 502))):
        for rate in rates:
            # No two of them are copies.
            of_fio(tmp_path / side / f"{rate}.json", 1 + rate / 1e5, rate_iops=str(rate))
    with pytest.raises(InputError) as refused:
        compare([tmp_path / "a", tmp_path / "b"])
    hint = str(refused.value.hint)
    assert "4000 I/O per s); " in hint
    assert "2004 I/O per s)" in hint


PUBLISHED = """format = 1
title = "a review"
source = "a review, 2020"
[[system]]
name = "A"
links = ["4 x 16GFC"]
[[result]]
name = "128K write"
system = "A"
op = "write"
access = "sequential"
block = "128k"
bandwidth = [{}]
"""


def test_printed_repeats_of_a_bandwidth_are_repeats(tmp_path: Path) -> None:
    """Three were taken for one run: only a factor of 1.4 counted, and the remedy was to repeat them."""
    for name, factor in (("a", 1.0), ("b", 0.9)):
        rates = ", ".join(f'"{rate * factor:g} GB/s"' for rate in (2.0, 2.02, 1.99))
        (tmp_path / f"{name}.toml").write_text(PUBLISHED.format(rates))
    found = compare([tmp_path / "a.toml", tmp_path / "b.toml"])
    (bandwidth,) = [one for one in found.effects if one.metric is BANDWIDTH]
    assert bandwidth.before.sample is not None
    assert bandwidth.before.sample.runs == 3
    assert bandwidth.judgement == "worse"
    assert not [one for one in found.warnings if "one valid run" in one]


def test_printed_repeats_that_are_all_alike_are_not_known_without_an_error(tmp_path: Path) -> None:
    """115 against 116 MB/s was better for sure, and a gate on it never ended."""
    for name, rate in (("a", 115), ("b", 116)):
        (tmp_path / f"{name}.toml").write_text(PUBLISHED.format(", ".join([f'"{rate} MB/s"'] * 3)))
    found = compare([tmp_path / "a.toml", tmp_path / "b.toml"])
    assert {one.judgement for one in found.effects} == {"same"}
    decided = Comparison(found).decide(detect=0.5)
    assert decided.outcome == "passed"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "5 %"), (0.8924, "89.2 %"), (9.99, "999 %"), (9.996, "1000 %"), (13.105, "1310 %")],
)
def test_a_gate_writes_no_exponent(share: float, text: str) -> None:
    """A latency that was 14 times as long was worse by 1.31e+03 %."""
    assert gate._percent(share) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (512, "512"),
        (1536, "1.5k"),
        (4096, "4k"),
        (5_000_704, "4.77m"),
        (3 << 29, "1536m"),
        (1023.9e3, "1000k"),
    ],
)
def test_a_block_size_has_no_exponent(size_bytes: float, text: str) -> None:
    """Blocks of 5,000,704 bytes were 4.88e+03k."""
    assert pattern_name.size(size_bytes) == text


def test_a_gate_ends_where_figures_have_no_error_at_all() -> None:
    sample = Sample(1000.0, 0.0, 2.0, 3)
    value = SideValue(sample, 3, 0, None)
    effect = Effect("p", IOPS, 1, value, value, contrast(sample, sample), 1.0, "same", True, 0)
    assert _power(effect, 0.05, 0.05, 0.0) == (1.0, None)
