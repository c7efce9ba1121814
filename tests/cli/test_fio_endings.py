"""What ends a run of `loadstone fio` before its time, and what is said of it then."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.bundle import schemas
from tests.e2e.program import needs_engine
from tests.support import started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = ("--ioengine=null", "--size=1g", "--time_based", "--runtime=30")


@pytest.fixture(autouse=True)
def _engine() -> None:
    needs_engine()


def fio(*words: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = started.run(["fio", *words], cwd=cwd, timeout=60)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def jobs(*words: str, cwd: Path, code: int = 0) -> list[dict[str, Any]]:
    out = fio("--output-format=json", *words, cwd=cwd, code=code).stdout
    found = json.loads(out[out.index("{") :])["jobs"]
    assert isinstance(found, list)
    return found


@pytest.mark.in_turn
def test_a_steady_state_that_is_attained_is_told_with_its_samples(tmp_path: Path) -> None:
    # Any two samples are within so wide a limit.
    [job] = jobs("--name=a", *LONG, "--ss=iops:500%", "--ss_dur=2", "--ss_ramp=1", cwd=tmp_path)
    state = job["steadystate"]
    assert state["attained"] == 1
    assert len(state["data"]["iops"]) == 2
    assert min(state["data"]["iops"]) > 1000
    assert job["read"]["runtime"] < 20_000


def test_the_event_of_a_steady_state_has_a_number_for_each_sample() -> None:
    event = {
        "type": "steady",
        "t_ns": 20_000_000_000,
        "rule": 0,
        "attained": True,
        "criterion": 0.078,
        "deviation": 0.0,
        "slope": -3012.8,
        "ops_per_second": [3526141, 4173161],
        "bytes_per_second": [14443073536, 17093267456],
        "lat_mean_ns": [283, 239],
    }
    assert schemas.is_event(event, None)
    assert not schemas.is_event({**event, "ops_per_second": ["many"]}, None)


@pytest.mark.in_turn
def test_exitall_on_error_ends_the_others_when_a_job_fails(tmp_path: Path) -> None:
    failed, other = jobs(
        "--exitall_on_error",
        *LONG[1:],
        *("--name=bad", "--ioengine=psync", "--filename=data", "--size=1m", "--rw=read", "--max_latency=1ns"),
        *("--name=other", "--ioengine=null"),
        cwd=tmp_path,
        code=1,
    )
    assert (failed["error"], other["error"]) == (110, 0)
    assert other["read"]["runtime"] < 20_000


@pytest.mark.in_turn
def test_without_a_failure_exitall_on_error_ends_nothing(tmp_path: Path) -> None:
    short, longer = jobs(
        *("--exitall_on_error", "--ioengine=null", "--size=1g", "--time_based"),
        *("--name=a", "--runtime=1", "--name=b", "--runtime=3"),
        cwd=tmp_path,
    )
    assert short["read"]["runtime"] < 2_500 <= longer["read"]["runtime"]


@pytest.mark.in_turn
def test_a_trigger_needs_permission_for_its_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOADSTONE_ALLOW_EXEC", raising=False)
    words = ("--trigger-timeout=1", "--trigger=touch ran", "--name=a", *LONG)
    done = fio(*words, cwd=tmp_path, code=1)
    assert done.stderr.startswith("fio: command line: --trigger: would run 'touch ran'\n")
    assert "LOADSTONE_ALLOW_EXEC=1" in done.stderr
    [job] = jobs(words[0], *words[2:], cwd=tmp_path)
    assert (job["error"], job["read"]["runtime"] < 20_000) == (0, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.in_turn
def test_a_trigger_ends_the_run_keeps_the_state_and_runs_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_ALLOW_EXEC", "1")
    data = tmp_path / "data"

    def trigger() -> None:
        """Let the load begin first: what ends before its first I/O has no line."""
        while not (data.exists() and data.stat().st_blocks):
            time.sleep(0.01)
        (tmp_path / "now").touch()

    threading.Thread(target=trigger, daemon=True).start()
    out = fio(
        *("--trigger-file=now", "--trigger=ls *.state > seen", "--name=a", "--filename=data", "--size=64k"),
        *("--rw=write", "--rate_iops=10", "--verify=md5", "--do_verify=0", "--number_ios=16"),
        cwd=tmp_path,
    ).stdout
    assert "err= 0" in out
    assert not (tmp_path / "now").exists()
    assert (tmp_path / "seen").read_text() == "local-a-0-verify.state\n"


def test_a_file_with_content_is_no_trigger_to_be_removed(tmp_path: Path) -> None:
    (tmp_path / "now").write_text("mine")
    done = fio("--trigger-file=now", "--name=a", *LONG, cwd=tmp_path)
    assert done.stderr == "fio: now is not empty, so it is not removed\n"
    assert (tmp_path / "now").read_text() == "mine"


@pytest.mark.in_turn
def test_idle_prof_tells_how_idle_the_processors_were(tmp_path: Path) -> None:
    words = ("--name=a", "--ioengine=null", "--size=1g", "--time_based", "--runtime=1")
    text = fio("--idle-prof=percpu", *words, cwd=tmp_path).stdout
    told = text[text.index("\nCPU idleness:\n") :].splitlines()
    assert told[2].startswith("  system: ")
    assert told[3].startswith("  percpu: ")
    assert told[3].count("%") == told[3].count(",") + 1
    assert told[4].startswith("  unit work: mean=")
    out = fio("--idle-prof=system", "--output-format=json", *words, cwd=tmp_path).stdout
    found = json.loads(out)["cpu_idleness"]
    assert list(found) == ["system", "unit_mean", "unit_stddev"]
    assert 0 <= found["system"] <= 100
    assert found["unit_mean"] > 0
    calibrated = fio("--idle-prof=calibrate", cwd=tmp_path).stdout
    assert calibrated.startswith("CPU idleness:\n  unit work: mean=")
    assert fio("--idle-prof=all", cwd=tmp_path, code=1).stderr.startswith(
        "fio: incorrect idle-prof option: all"
    )


@pytest.mark.in_turn
def test_errors_name_a_file_as_the_job_does(tmp_path: Path) -> None:
    place = ("--directory=here", "--name=a", "--filename=data", "--size=64k", "--bs=4k", "--verify=md5")
    (tmp_path / "here").mkdir()
    fio(*place, "--rw=write", cwd=tmp_path)
    with (tmp_path / "here" / "data").open("r+b") as file:
        file.write(b"\0\0\0\0")
    done = fio(*place, "--rw=read", cwd=tmp_path, code=1)
    assert "at file here/data offset 0, length 4096" in done.stderr
    assert str(tmp_path) not in done.stderr
    done = fio(*place, "--rw=read", "--max_latency=1ns", cwd=tmp_path, code=1)
    assert "): here/data read " in done.stderr


@pytest.mark.parametrize("text", ["", "[global]\nbs=4k\n"])
@pytest.mark.in_turn
def test_a_file_without_a_job_can_be_parsed(tmp_path: Path, text: str) -> None:
    (tmp_path / "none.fio").write_text(text)
    assert fio("--parse-only", "none.fio", cwd=tmp_path).stdout == ""
    assert fio("--showcmd", "none.fio", cwd=tmp_path).stdout == ("fio --bs=4k \n" if text else "fio \n")
    (tmp_path / "bad.fio").write_text("[global]\nbs=many\n")
    fio("--parse-only", "bad.fio", cwd=tmp_path, code=1)
    assert "there is no job in none.fio" in fio("none.fio", cwd=tmp_path, code=1).stderr


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid():
        pytest.skip("only root mounts")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", small], check=True)
    yield small
    subprocess.run(["umount", small], check=True)


@pytest.mark.in_turn
def test_results_that_their_file_does_not_take_are_on_standard_output(tmp_path: Path, full: Path) -> None:
    """The bundle is temporary: they were lost."""
    (full / "rest").write_bytes(bytes(60 << 10))
    words = ("--name=w", f"--filename={tmp_path}/f", "--size=64k", "--rw=write", "--output-format=json")
    done = fio(*words, f"--output={full}/out.json", cwd=tmp_path, code=1)
    [job] = json.loads(done.stdout)["jobs"]
    assert job["write"]["total_ios"] == 16
    assert f"{full}/out.json: cannot be written: No space left on device" in done.stderr


@pytest.mark.in_turn
def test_a_bundle_without_room_is_told_with_what_decides_its_place(tmp_path: Path, full: Path) -> None:
    (full / "rest").write_bytes(bytes(60 << 10))
    words = ["fio", "--name=w", f"--filename={tmp_path}/f", "--size=64k", "--rw=write"]
    done = started.run(words, cwd=tmp_path, timeout=60, env=os.environ | {"TMPDIR": str(full)})
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "TMPDIR" in done.stderr
    assert "--out" not in done.stderr
