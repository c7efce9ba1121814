"""What a test starts is ended, and what that had set is put back, where the test gives it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import program

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = """title = "t"
repeats = 1
order = "given"
runtime = "60s"
size = "1g"
[[patterns]]
name = "read"
options = { ioengine = "null", rw = "randread", bs = "4k", rate_iops = 100 }
[[factors]]
name = "file"
kind = "command"
levels = [{ name = "there", do = "touch FOLDER/set; touch FOLDER/was-set", undo = "rm FOLDER/set" }, "as is"]
"""


@pytest.mark.in_turn
@pytest.mark.parametrize("end_s", [60.0, 0.0])
def test_a_program_that_is_given_up_on_a_busy_host_leaves_nothing_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_s: float
) -> None:
    """It was killed, and what its experiment had set stayed: layouts, and the loop devices below them."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))
    (tmp_path / "x.toml").write_text(EXPERIMENT.replace("FOLDER", str(tmp_path)))
    words = ("experiment", "run", "x.toml", "--out", "e", "--no-report", "--allow-exec")
    running = program.start(*words, cwd=tmp_path)
    # The rehearsal sets it once before.
    program.until(lambda: list(tmp_path.glob("e/runs/*")) and (tmp_path / "set").exists(), "the first run")
    monkeypatch.setattr(program, "PATIENCE_S", 0.1)
    monkeypatch.setattr(program, "END_S", end_s)
    monkeypatch.setattr(program, "overloaded", lambda: "busy")
    with pytest.raises(pytest.skip.Exception, match="busy"):
        program.finish(running)
    assert running.returncode is not None
    assert (tmp_path / "was-set").exists()
    assert not (tmp_path / "set").exists()


def test_waiting_in_vain_ends_what_a_test_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = program.start("run", "-", cwd=tmp_path)
    monkeypatch.setattr(program, "PATIENCE_S", 0.1)
    with pytest.raises(pytest.fail.Exception, match="in vain for nothing"):
        program.until(lambda: False, "nothing")
    assert running.returncode is not None
