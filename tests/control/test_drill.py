"""Whenever a process that changes settings is killed, `restore` leaves every one as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_killed_at_every_step_everything_is_put_back(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.control.drill", str(tmp_path), "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["points"] >= 200
