"""The comparisons can be begun; what they find is no matter of a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize("name", ["compare.py", "instructions.py", "scale.py"])
def test_a_comparison_says_how_it_is_used(name: str) -> None:
    command = [sys.executable, str(BENCH / name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage: " in done.stdout
