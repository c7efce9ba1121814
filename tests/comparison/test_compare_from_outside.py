"""`loadstone compare` as a script uses it: the names in its JSON, and what its gate ends with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.cli.main import main
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


def test_without_a_gate_the_comparison_is_no_failure(tmp_path: Path) -> None:
    made(tmp_path / "before")
    made(tmp_path / "after", 800.0, seed=2)
    done = program.run("compare", "before", "after", "--json", cwd=tmp_path)
    assert (done.code, json.loads(done.out)["gate"]) == (0, None)


def test_a_gate_does_not_pass_for_a_typo_where_it_has_seen_nothing(tmp_path: Path) -> None:
    made(tmp_path / "before")
    runs.make(tmp_path / "after", MadeJob("b", {"write": 1000.0}, block_bytes=8192))
    words = ["compare", str(tmp_path / "before"), str(tmp_path / "after")]
    assert main([*words, "--gate"]) == 98
    assert main(words) == 2
