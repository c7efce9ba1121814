"""Experiments killed at random moments on real parts: `restore` leaves everything as it was."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from lab.parts import missing


@pytest.mark.root
@pytest.mark.serial
@pytest.mark.nightly
def test_killed_at_random_moments_everything_is_put_back() -> None:
    if reason := missing():
        pytest.skip(reason)
    command = [sys.executable, "-m", "lab.experiment_drill", "--points", "30", "--whole", "3", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["killed"] >= 15
