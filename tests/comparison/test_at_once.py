"""Results of another tool that ran at the same time are one load: their total, and no repeats."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.statistics.significance import Sample
from loadstone.comparison import at_once, pairing
from loadstone.comparison.compare import compare
from loadstone.comparison.metric import IOPS, MEAN
from loadstone.comparison.side import side as read_side
from loadstone.report.results_report import article
from tests.comparison.test_repeats import of_fio

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.metric import Metric
    from loadstone.comparison.phase import ComparedPhase

ENDED_S = 1_700_000_000.0
LENGTH_S = 60.0


def of_lun(path: Path, lun: int, ended_s: float, factor: float = 1.0, seconds: float = LENGTH_S) -> float:
    """Write what fio tells of one LUN; return its IOPS."""
    of_fio(path, factor * (1 + lun / 50), filename=f"/dev/sd{chr(98 + lun)}", size="64m")
    told = json.loads(path.read_text())
    (one,) = told["jobs"]
    one.pop("job_start", None)
    scale = 1000 * seconds / one["read"]["runtime"]
    one["job_runtime"] *= scale
    for name in ("runtime", "total_ios", "io_bytes"):
        one["read"][name] = round(one["read"][name] * scale)
    told["timestamp"], told["timestamp_ms"] = round(ended_s), round(1000 * ended_s)
    path.write_text(json.dumps(told))
    return float(one["read"]["iops"])


def value_of(phase: ComparedPhase, metric: Metric) -> float:
    sample = phase.values[metric]
    assert isinstance(sample, Sample)
    return sample.value


@pytest.mark.in_turn
def test_files_of_luns_that_ran_together_are_a_total(tmp_path: Path) -> None:
    """Eight LUNs side by side were eight repeats: the table had the mean of a LUN, an eighth of the array."""
    for seed in range(996_010, 996_014):
        drawn = random.Random(seed)
        luns, rounds = drawn.randint(2, 8), drawn.randint(1, 4)
        place = tmp_path / str(seed)
        totals = []
        for number in range(rounds):
            ended_s = ENDED_S + number * (LENGTH_S + 5) + drawn.random()
            totals.append(
                sum(
                    of_lun(
                        place / f"{number}-lun{lun}.json", lun, ended_s + drawn.uniform(0, 3),
                        1 + number / 370,
                    )
                    for lun in range(luns)
                )
            )  # fmt: skip
        read = read_side(place)
        (cell,) = pairing.cells(read)
        assert [value_of(one, IOPS) for one in cell.phases] == pytest.approx(totals)
        assert cell.first.depth == luns * 4 * 8
        (alone,) = read_side(place / "0-lun0.json").phases
        assert value_of(cell.first, MEAN) == pytest.approx(value_of(alone, MEAN))
        assert len(read.at_once) == rounds
        assert f"one load of {luns} results" in str(article(read).blocks)


def test_runs_that_follow_each_other_are_repeats(tmp_path: Path) -> None:
    for number in range(4):
        of_lun(tmp_path / "a" / f"{number}.json", number, ENDED_S + number * (LENGTH_S + 0.5))
    read = read_side(tmp_path / "a")
    assert [len(cell.phases) for cell in pairing.cells(read)] == [4]
    assert not read.at_once


def test_runs_that_overlap_in_part_are_repeats_with_a_warning(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for number in range(3):
            of_lun(
                tmp_path / name / f"{number}.json", number, ENDED_S + number * LENGTH_S * 2 / 3,
                1 + 0.01 * len(name) * number,
            )  # fmt: skip
    of_lun(tmp_path / "b" / "3.json", 3, ENDED_S + 1e6)
    made = compare([tmp_path / "a", tmp_path / "b"])
    (cells,) = [row.cells for row in made.pairs]
    assert [len(cell.phases) for cell in cells if cell is not None] == [3, 4]
    assert sum("ran at the same time in part" in warning for warning in made.warnings) == 2


def test_a_total_of_files_is_held_against_one_file_of_all_luns(tmp_path: Path) -> None:
    """Before: one program for all LUNs. After: one for each. The same load, 5 % and more faster."""
    one = of_lun(tmp_path / "before.json", 0, ENDED_S)
    told = json.loads((tmp_path / "before.json").read_text())
    told["jobs"] = [{**told["jobs"][0], "jobname": f"lun{lun}"} for lun in range(4)]
    (tmp_path / "before.json").write_text(json.dumps(told))
    after = [of_lun(tmp_path / "after" / f"lun{lun}.json", lun, ENDED_S + 1e5, 1.05) for lun in range(4)]
    made = compare([tmp_path / "before.json", tmp_path / "after"])
    (effect,) = [one for one in made.effects if one.metric is IOPS]
    assert effect.contrast is not None
    assert effect.contrast.change == pytest.approx(sum(after) / (4 * one) - 1)
    assert not any("another load" in warning for warning in made.warnings)


def test_two_forms_of_one_time_are_not_added_up(tmp_path: Path) -> None:
    """They may be one run, printed twice with other digits."""
    of_lun(tmp_path / "lun0.json", 0, ENDED_S)
    of_lun(tmp_path / "lun1.json", 1, ENDED_S)
    phases = read_side(tmp_path / "lun0.json").phases + read_side(tmp_path / "lun1.json").phases
    assert {one.form for one in phases} == {"fio JSON"}
    assert len(at_once.joined(phases).phases) == 1
    assert len(at_once.joined([phases[0], replace(phases[1], form="fio text")]).phases) == 2


def counted(path: Path, drawn: random.Random, share: float, start_s: float, name: str = "a") -> float:
    """Write what fio has counted when a share of a run is over; return its IOPS."""
    of_fio(path, 1.0, size="64m")
    told = json.loads(path.read_text())
    (one,) = told["jobs"]
    one.pop("job_start", None)
    one["jobname"] = name
    read = one["read"]
    scale = share * LENGTH_S * 1000 / read["runtime"]
    one["job_runtime"] *= scale
    read["iops"] *= drawn.uniform(0.98, 1.02)
    read["runtime"] = round(read["runtime"] * scale)
    read["total_ios"] = round(read["iops"] * read["runtime"] / 1000)
    read["io_bytes"] = read["total_ios"] * 65536
    read["lat_ns"]["min"] = round(read["lat_ns"]["min"] * (2 - share))
    read["lat_ns"]["max"] = round(read["lat_ns"]["max"] * (1 + share))
    printed_s = start_s + share * LENGTH_S + drawn.uniform(0, 0.2)
    told["timestamp"], told["timestamp_ms"] = round(printed_s), round(1000 * printed_s)
    path.write_text(json.dumps(told))
    return float(read["iops"])


@pytest.mark.in_turn
def test_of_several_counts_of_one_run_the_last_one_counts(tmp_path: Path) -> None:
    """`--status-interval` into files: the last two were added up as one load, the others were repeats."""
    for seed in range(997_000, 997_012):
        drawn = random.Random(seed)
        place = tmp_path / str(seed)
        shares = sorted(drawn.uniform(0.2, 0.98) for _ in range(drawn.randint(1, 4)))
        runs = drawn.randint(1, 3)
        totals = []
        for run in range(runs):
            start_s = ENDED_S + run * (LENGTH_S + 10)
            for at, share in enumerate(shares):
                counted(place / f"{run}-{at}.json", drawn, share, start_s)
            totals.append(counted(place / f"{run}-last.json", drawn, 1.0, start_s))
        read = read_side(place)
        (cell,) = pairing.cells(read)
        assert [value_of(one, IOPS) for one in cell.phases] == pytest.approx(totals), seed
        assert len(read.at_once) == runs * len(shares)
        assert all("is a count of the same run" in note for note in read.at_once)


def test_programs_that_end_apart_are_no_counts_of_one_run(tmp_path: Path) -> None:
    """Two LUNs beside each other whose jobs have one name: what one did is no part of what the other did."""
    drawn = random.Random(997_100)
    for name in ("a", "b"):
        counted(tmp_path / f"{name}.json", drawn, 1.0, ENDED_S)
    one, other = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("a", "b"))
    other["jobs"][0]["read"]["lat_ns"]["max"] /= 2
    for told, length_ms in ((one, 56_000), (other, 60_000)):
        told["jobs"][0]["read"].update(runtime=length_ms, total_ios=10 * length_ms, iops=10_000.0)
    for name, told in (("a", one), ("b", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    read = read_side(tmp_path)
    assert [value_of(one, IOPS) for one in read.phases] == [20_000.0]
    assert "one load of 2 results" in read.at_once[0]
