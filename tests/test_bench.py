"""The comparisons can be begun, read what they are told and leave the host as it was; what they
find is no matter of a test."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"

PROFILE = """\
fl=(1) /home/u/crates/worker/src/record.rs
fn=(1) count
12 40
+1 2
fi=(2) /rustc/59807616/library/core/src/cmp.rs
* 8
fe=(1)
-3 1
cfi=(3) /home/u/crates/worker/src/state/lane.rs
cfn=(2) complete
calls=5 70
16 500
fl=(3)
fn=(2)
70 25
fl=(4) ???
fn=(3) unknown
0 3
"""


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["compare.py", "depths.py", "instructions.py", "scale.py"])
def test_a_comparison_says_how_it_is_used(name: str) -> None:
    command = [sys.executable, str(BENCH / name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout


def test_instructions_are_those_of_a_file_itself_and_not_of_what_it_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    counts = importlib.import_module("instructions").by_file(PROFILE)
    assert counts == {
        "worker/record.rs": 43,
        "Rust's library": 8,
        "worker/state/lane.rs": 25,
        "other code": 3,
    }


def test_kernel_workers_go_back_to_where_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    loops = importlib.import_module("loops")
    mask = tmp_path / "cpumask"
    mask.write_text("f,00000003\n")
    monkeypatch.setattr(loops, "WORKERS", mask)

    def compare() -> None:
        with loops.kernel_workers_on(2):
            assert mask.read_text() == "4"
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        compare()
    assert mask.read_text() == "f,00000003\n"
    mask.unlink()
    assert loops.cannot_move_workers() == f"{mask} cannot be written"


def test_both_sides_of_the_comparison_with_vdbench_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    vdbench = importlib.import_module("vdbench")
    head = "         tod               timestamp Run Interval reqrate rate resp "
    rows = ["10:00:01.0 d rd1 1 9999988 100 0.5 ", "10:00:02.0 d rd1 2 9999988 300 0.25 "]
    average = "10:00:02.0 d rd1  avg_2-2 9999988 300 0.25 "
    (tmp_path / "flatfile.html").write_text("\n".join(["<pre>", "* x", head, *rows, average]) + "\n")
    found = vdbench.flat(tmp_path)
    assert (found.ios, found.iops, found.lat_ns) == (400, 300.0, 250_000.0)
    assert vdbench.ratio(150.0, 300.0) == "0.50"
    assert vdbench.ratio(1.0, float("nan")) == "no data"
