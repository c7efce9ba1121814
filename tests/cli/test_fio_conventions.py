"""Small things scripts look for: what is printed when, what ends a job, what is only prepared."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.api.jobs import schedulers
from loadstone.cli.fio.program import main
from loadstone.errors import InputError, RefusedError, Where
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts
from loadstone.plan.resolve import resolve
from loadstone.report.fio.normal import _time
from loadstone.workload.block_sizes import SizeRequests, fixed
from loadstone.workload.blocks import BlockWork
from loadstone.workload.job_parts import ProcessRequests
from loadstone.workload.model import Job, Workload
from tests.control import machine

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan


def document(words: list[str], place: Path) -> tuple[int, dict[str, Any]]:
    out = place / "out.json"
    code = main([*words, "--output-format=json", f"--output={out}"])
    [job] = json.loads(out.read_text())["jobs"]
    return code, job


def plan_of(text: str, host: HostFacts | None = None) -> Plan:
    options = ReadOptions(strict_fio_reading=True, environment={})
    return resolve(read_jobfiles([TextSource(f"[a]\n{text}")], options=options), host=host).plan


@pytest.mark.in_turn
def test_create_only_prepares_the_file_and_does_nothing_else(tmp_path: Path) -> None:
    words = ["--name=a", f"--filename={tmp_path / 'f'}", "--size=1m", "--rw=read", "--create_only=1"]
    code, job = document(words, tmp_path)
    assert (code, job["error"], job["read"]["total_ios"]) == (0, 0, 0)
    assert (tmp_path / "f").stat().st_size == 1 << 20


@pytest.mark.in_turn
def test_a_longer_latency_than_allowed_is_told_with_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--name=a", f"--filename={tmp_path / 'f'}", "--size=1m", "--rw=read", "--max_latency=1ns"]
    code, job = document(words, tmp_path)
    told = capsys.readouterr().err
    assert (code, job["error"]) == (1, 110)
    expected = rf"fio: latency of \d+ nsec exceeds specified max \(1 nsec\): {tmp_path / 'f'} read 0 4096\n"
    assert re.search(expected, told), told


@pytest.mark.in_turn
def test_the_last_interval_has_its_result_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--name=a", "--filename=/dev/zero", "--size=1m", "--time_based", "--runtime=2"]
    assert main([*words, "--status-interval=500ms"]) == 0
    assert capsys.readouterr().out.count("err= 0") == 5  # At 0.5, 1, 1.5 and 2 s, and at the end.


@pytest.mark.in_turn
def test_a_latency_target_is_told_in_the_units_of_its_keys(tmp_path: Path) -> None:
    words = ["--name=a", f"--filename={tmp_path / 'f'}", "--size=1m", "--rw=randread", "--ioengine=io_uring"]
    words += ["--iodepth=2", "--latency_target=5s", "--latency_window=50ms", "--runtime=1", "--time_based"]
    _, job = document(words, tmp_path)
    found = {key: job[key] for key in job if key.startswith("latency_") and key[-1] not in "0123456789"}
    assert (found["latency_target"], found["latency_target_ns"]) == (5_000_000_000, 5_000_000_000)
    assert (found["latency_window"], found["latency_window_us"]) == (50_000, 50_000)


@pytest.mark.in_turn
def test_a_search_for_a_latency_target_that_has_not_ended_counts_all_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--name=a", "--ioengine=null", "--size=1m", "--rw=randread", "--iodepth=32"]
    words += ["--latency_target=20us", "--latency_window=5s", "--latency_percentile=99"]
    words += [f"--write_lat_log={tmp_path / 'each'}"]
    _, job = document(words, tmp_path)
    assert (job["read"]["total_ios"], job["read"]["clat_ns"]["N"], job["latency_depth"]) == (256, 256, 1)
    assert "note: a: the search for latency_target had not ended (depth 1)" in capsys.readouterr().err
    assert len((tmp_path / "each_lat.1.log").read_text().splitlines()) == 256


@pytest.mark.parametrize(
    ("value_ns", "written"),
    [(0, "0.00ns"), (1999, "1999.00ns"), (2000, "2.00us"), (1_500_000, "1500.00us"), (10**10, "10.00s")],
)
def test_times_of_a_target_have_the_unit_of_which_there_are_two(value_ns: int, written: str) -> None:
    assert _time(value_ns) == written


@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="needs mkfs.ext4")
@pytest.mark.in_turn
def test_a_full_disk_ends_a_job_that_continues_on_errors(tmp_path: Path) -> None:
    image, place = tmp_path / "image", tmp_path / "place"
    image.write_bytes(bytes(8 << 20))
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        words = ["--name=a", f"--directory={place}", "--size=20m", "--rw=write", "--bs=64k"]
        code, job = document([*words, "--fallocate=none", "--continue_on_error=all"], tmp_path)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert (code, job["error"], job["total_err"], job["first_error"]) == (1, 28, 1, 28)


@pytest.mark.in_turn
@pytest.mark.parametrize("words", ["EIO", ",EIO", "none"])
def test_what_may_fail_has_its_errors_told(tmp_path: Path, words: str) -> None:
    asked = [] if words == "none" else [f"--ignore_error={words}"]
    code, job = document(["--name=a", "--ioengine=null", "--size=64k", *asked], tmp_path)
    assert (code, job.get("total_err"), job.get("first_error")) == ((0, 0, 0) if asked else (0, None, None))


def test_continue_on_error_names_what_it_continues_after() -> None:
    [stream] = plan_of("filename=/dev/zero\nsize=1m\ncontinue_on_error=io\n").streams
    assert (stream.errors.continue_read, stream.errors.continue_after) == (True, (5, 84))


def test_force_async_reaches_the_ring_and_nothing_else() -> None:
    text = "filename=/dev/zero\nsize=1m\nforce_async=4\n"
    plan = plan_of(f"{text}ioengine=io_uring\n")
    assert [(worker.backend.type, worker.force_async) for worker in plan.workers] == [("io_uring", 4)]
    with pytest.raises(RefusedError, match="has no effect with ioengine=psync"):
        plan_of(f"{text}ioengine=psync\n")


def test_a_nice_value_that_may_not_be_taken_is_refused() -> None:
    host = HostFacts((0,), 1 << 30, least_nice=0)
    assert [w.nice for w in plan_of("filename=/dev/zero\nsize=1m\nnice=5\n", host).workers] == [5]
    with pytest.raises(InputError, match="nice -5 is not permitted: it comes to -5, and 0 is the lowest"):
        plan_of("filename=/dev/zero\nsize=1m\nnice=-5\n", host)


def test_who_is_nice_already_may_run_and_a_jobs_nice_comes_on_top() -> None:
    """An ordinary user's `nice loadstone run` was refused: 0 is below what such a process may take."""
    host = HostFacts((0,), 1 << 30, nice=5, least_nice=5)
    for own, expected in (("", 0), ("nice=0\n", 0), ("nice=3\n", 3)):
        workers = plan_of(f"filename=/dev/zero\nsize=1m\n{own}", host).workers
        assert [worker.nice for worker in workers] == [expected]
    with pytest.raises(InputError, match="nice -1 is not permitted: it comes to 4, and 5 is the lowest"):
        plan_of("filename=/dev/zero\nsize=1m\nnice=-1\n", host)


@pytest.fixture
def scheduled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a machine of files of which a run uses `sda`."""
    machine.make(tmp_path / "host")
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(schedulers, "Controls", lambda: machine.controls(tmp_path / "host"))
    monkeypatch.setattr(schedulers, "_disks", lambda _: ["sda"])
    return tmp_path / "host/sys/block/sda/queue"


def plan_job(scheduler: str) -> Job:
    work = BlockWork(sizes=SizeRequests(bs=fixed(4096)))
    return Job(name="a", where=Where("job"), work=work, process=ProcessRequests(ioscheduler=scheduler))


def test_a_scheduler_is_put_back_with_the_length_of_the_queue(scheduled: Path) -> None:
    job = plan_job("bfq")
    plan = plan_of("filename=/dev/zero\nsize=1m\n")
    said: list[str] = []
    with schedulers.as_asked(Workload(name="w", jobs=(job,), notes=()), plan, said.append):
        assert (scheduled / "scheduler").read_text() == "none mq-deadline [bfq]\n"
    assert (scheduled / "scheduler").read_text() == "none [mq-deadline] bfq\n"
    assert (scheduled / "nr_requests").read_text() == "200"
    assert said[0].endswith("bfq instead of mq-deadline, until the run is over")


def test_a_scheduler_that_is_not_there_is_refused_where_it_stands(scheduled: Path) -> None:
    plan = plan_of("filename=/dev/zero\nsize=1m\n")
    workload = Workload(
        name="w",
        jobs=(plan_job("bogus"),),
        notes=(),
    )
    with (
        pytest.raises(RefusedError, match="io_scheduler of sda: found 'bogus'") as error,
        schedulers.as_asked(workload, plan, print),
    ):
        pass
    assert error.value.hint == "it takes none, mq-deadline, bfq"
    assert (scheduled / "scheduler").read_text() == "none [mq-deadline] bfq\n"
