"""A control group's limits are told as they stand in an experiment's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone import engine_groups
from loadstone.control.own_group import OwnGroup, in_words

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "said"),
    [("as is", "as is"), ('{"memory.max": "256M", "pids.max": "9"}', "memory.max = 256M, pids.max = 9")],
)
def test_limits_are_no_json(value: str, said: str) -> None:
    assert in_words(value) == said


def test_a_limit_that_no_group_has_is_known_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    (tmp_path / "memory.stat").touch()
    assert OwnGroup(tmp_path).why_not({"memory.max": "64M"}) is None, "no group shows what groups have"
    (tmp_path / "system.slice").mkdir()
    (tmp_path / "system.slice" / "memory.max").touch()
    assert OwnGroup(tmp_path).why_not({"memory.max": "64M"}) is None
    assert OwnGroup(tmp_path).why_not({"cpu.max": "1000 20000"}) is None
    why = OwnGroup(tmp_path).why_not({"memory.mx": "64M"})
    assert why == "control groups have no memory.mx here: did you mean 'memory.max'?"


def test_limits_of_the_first_version_are_those_of_its_root(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").touch()
    assert OwnGroup(tmp_path).why_not({"memory.limit_in_bytes": "64M"}) is None
    assert "memory.limit_in_bytes" in (OwnGroup(tmp_path).why_not({"memory.max": "64M"}) or "")


@pytest.mark.parametrize("version", [1, 2])
def test_engines_begin_in_the_group_and_this_process_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """The process that plans and judges was moved there, and its CPU time counted against the load's."""
    monkeypatch.setattr(engine_groups, "_JOINED", {})
    root = tmp_path if version == 2 else tmp_path / "cpu"
    folder = root / "g"
    folder.mkdir(parents=True)
    (folder / "cpu.max").touch()
    if version == 2:
        (root / "cgroup.controllers").write_text("cpu memory")
    group = OwnGroup(tmp_path)
    monkeypatch.setattr(group, "why_not", lambda _: None)
    group.write("g", '{"cpu.max": "1000 20000"}')
    assert (folder / "cpu.max").read_text() == "1000 20000"
    assert not (folder / "cgroup.procs").exists(), "nobody was moved"
    assert engine_groups.inside(["true"])[-3:] == [str(folder), "--", "true"]
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("2:cpu:/b\n0::/c\n")
    assert engine_groups.lines(tmp_path) == (["2:cpu:/g", "0::/c"] if version == 1 else ["2:cpu:/b", "0::/g"])
    (folder / "cpu.max").unlink()
    group.write("g", "as is")
    assert not folder.exists()
    assert engine_groups.inside(["true"]) == ["true"]
