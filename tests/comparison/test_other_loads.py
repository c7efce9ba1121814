"""Two sides of one pattern that did other work: what is told of it, and that no gate passes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone import units
from loadstone.api.comparing import Comparison
from loadstone.comparison.compare import compare
from tests.comparison.test_repeats import of_fio

if TYPE_CHECKING:
    from pathlib import Path


def repeated(path: Path, gain: float = 1.0, **options: str) -> Path:
    for number in range(4):
        file = of_fio(path / f"{number}.json", gain + number / 1000, **options)
        if options.get("rw") == "write":
            told = json.loads(file.read_text())
            job = told["jobs"][0]
            job["read"], job["write"] = job["write"], job["read"]
            file.write_text(json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        ({"direct": "0"}, "direct I/O no in place of yes"),
        ({"size": "16m"}, "working set 16.0 MiB in place of 256 MiB"),
        ({"rw": "write", "sync": "1"}, "synchronous writes yes in place of no"),
        ({"rw": "write", "end_fsync": "1"}, "fsync at the end yes in place of no"),
        ({"rw": "write", "zero_buffers": "1"}, "written data zero in place of random"),
        ({"random_distribution": "zipf:1.2"}, "random_distribution zipf 1.2 in place of not set"),
        ({"thinktime": "1ms"}, "thinktime 1.00 ms in place of not set"),
        ({"rw": "write", "fsync": "8"}, "fsync_every 8 in place of not set"),
        ({"prio": "3"}, "job_level 3 in place of not set"),
        ({"iodepth_batch": "4"}, "batch 4 1 in place of not set"),
    ],
)
def test_a_gate_passes_no_side_of_which_other_work_reached_the_storage(
    tmp_path: Path, options: dict[str, str], differs: str
) -> None:
    """16 MiB in place of 256, or through the page cache, was *better* in green, and the gate passed."""
    same = {"size": "256m"} | {key: value for key, value in options.items() if key == "rw"}
    before, alike = repeated(tmp_path / "before", 1.0, **same), repeated(tmp_path / "alike", 1.0004, **same)
    after = repeated(tmp_path / "after", 1.0004, **same | options)
    assert Comparison(compare([before, alike])).made.alone == ()
    comparison = Comparison(compare([before, after]))
    assert [one.side for one in comparison.made.alone if differs in one.why.replace(units.THIN, " ")] == [
        "after"
    ]
    assert comparison.gate(detect=0.2) in ("no_data", "not_valid")
    assert [one for one in comparison.warnings if differs in one]


def test_block_sizes_in_other_shares_are_another_load(tmp_path: Path) -> None:
    before = repeated(tmp_path / "before", 1.0, bssplit="4k/60:16k/40")
    after = repeated(tmp_path / "after", 1.0004, bssplit="4k/40:16k/60")
    comparison = Comparison(compare([before, after]))
    differs = "shares of block sizes 4k 40 %, 16k 60 % in place of 4k 60 %, 16k 40 %"
    assert any(differs in one.replace(units.THIN, " ") for one in comparison.warnings), comparison.warnings
    assert comparison.gate(detect=0.2) in ("no_data", "not_valid")


def mixed(path: Path, reads: float, runs: int = 4) -> Path:
    """Write results of a job that was to read a half, at rates of each operation that make another mix."""
    for number in range(runs):
        file = of_fio(path / f"{number}.json", 1 + number / 1000, rw="randrw", rate_iops="1000,1000")
        told = json.loads(file.read_text())
        job = told["jobs"][0]
        job["write"] = json.loads(json.dumps(job["read"]))
        for op, share in (("read", reads), ("write", 1 - reads)):
            for name in ("iops", "iops_mean", "iops_stddev", "bw", "bw_bytes", "total_ios", "io_bytes"):
                job[op][name] = type(job[op][name])(2 * share * job[op][name])
        file.write_text(json.dumps(told))
    return path


def test_rates_of_each_operation_make_another_mix(tmp_path: Path) -> None:
    """`rate_iops=300,100` and `rate_iops=100,300` were one load: half reads, 400 I/Os per second."""
    sides = [mixed(tmp_path / name, reads) for name, reads in (("before", 0.75), ("after", 0.25))]
    comparison = Comparison(compare(sides))
    assert comparison.gate(detect=0.5) == "no_data"
    differences = {one.key: one.values for one in comparison.made.differences}
    assert differences["reads of all I/Os"] == ("75 %", "25 %")


def test_runs_of_another_mix_are_no_repeats(tmp_path: Path) -> None:
    mixed(tmp_path / "before", 0.75)
    for file in mixed(tmp_path / "more", 0.25).iterdir():
        file.rename(tmp_path / "before" / f"more-{file.name}")
    comparison = compare([tmp_path / "before", mixed(tmp_path / "after", 0.75)])
    assert [
        [None if cell is None else len(cell.phases) for cell in row.cells] for row in comparison.pairs
    ] == [[4, 4]]
    assert comparison.alone
