"""Whenever a process that changes settings is killed, `restore` leaves every one as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.in_turn
@pytest.mark.slow
def test_killed_at_every_step_everything_is_put_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.control.drill", str(tmp_path), "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["points"] >= 200


@pytest.mark.in_turn
@pytest.mark.root
def test_killed_on_a_full_file_system_nothing_is_changed_that_is_not_written_down(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root and mount")
    command = [sys.executable, "-m", "tests.control.full_drill", str(tmp_path), "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["refused"] >= 10
    assert result["killed"] >= 20
