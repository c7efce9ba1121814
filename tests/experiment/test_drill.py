"""Experiments killed at random moments on real parts: `restore` leaves everything as it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.parts import missing

from lab import experiment_drill


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


@pytest.mark.root
@pytest.mark.serial
@pytest.mark.in_turn
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_drill_that_is_interrupted_puts_back_what_it_had_set(number: signal.Signals) -> None:
    """Its layouts stayed, so its loop devices could not go."""
    if reason := missing():
        pytest.skip(reason)
    command = [sys.executable, "-m", "lab.experiment_drill", "--points", "40", "--whole", "0", "--seed", "5"]
    drill = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        end_s = time.monotonic() + 120
        while drill.poll() is None and not layouts(drill.pid) and time.monotonic() < end_s:
            time.sleep(0.01)
    finally:
        drill.send_signal(number)
        _, printed = drill.communicate(timeout=120)
    assert drill.returncode != 0, printed
    assert "NOT put back" not in printed
    assert "losetup" not in printed
    assert layouts(drill.pid) == []
    assert not [one for one in devices(drill.pid) if Path("/sys/block", one, "loop/backing_file").exists()]


def devices(drill: int) -> list[str]:
    """The loop devices of a drill, by its pid."""
    first = experiment_drill.FIRST_LOOP + drill % 10000 * experiment_drill.DEVICES
    return [f"loop{first + at}" for at in range(experiment_drill.DEVICES)]


def layouts(drill: int) -> list[str]:
    """What is mounted of a drill's layouts."""
    sources = {f"/dev/{one}" for one in devices(drill)}
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[0] in sources]
