"""A file that a person names is read as far as such a file may go, whatever the name leads to."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loadstone import input_file
from loadstone.api.jobs.job_changes import JobText, job_at
from loadstone.errors import InputError, Where

MOST_MEMORY_BYTES = 4 << 30
"""Without a bound a device without end takes all there is: the machine is to survive this test."""


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"[a]\n" * 100_000,))
    writer.start()
    assert input_file.read(pipe, "job file") == b"[a]\n" * 100_000
    writer.join()


def test_a_pipe_that_nobody_writes_into_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_file, "SILENCE_S", 0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="this pipe brought nothing for 0 s"):
        input_file.read(pipe, "job file")


def test_a_job_file_in_a_pipe_is_read_once(tmp_path: Path) -> None:
    """`loadstone run <(...)` found no job: what told its language had read it all."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = b"[a]\nioengine=null\nfilename=x\nrw=read\nsize=1m\n"
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    assert job_at(str(pipe)) == JobText(str(pipe), text)
    writer.join()


def test_a_file_of_the_kernels_that_waits_is_not_read() -> None:
    """/proc/kmsg is a regular file by its mode; its readers wait, and take from the log what they read."""
    log = Path("/proc/kmsg")
    if not os.access(log, os.R_OK):
        pytest.skip(f"{log} cannot be read here: needs root")
    assert input_file.read(log, "job file") == b""


@pytest.mark.parametrize(("size", "said"), [(8, None), (9, "is larger than 8 bytes: not a job file")])
def test_the_largest_file_is_taken_and_a_larger_one_refused(
    tmp_path: Path, size: int, said: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    if said is None:
        assert input_file.read(path, "job file", 8) == b"x" * size
        return
    with pytest.raises(InputError, match=said):
        input_file.read(path, "job file", 8)


def test_what_is_not_there_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line\.fio:3: cannot read the job file .*: No such file"):
        input_file.read(tmp_path / "none", "job file", where=Where("line.fio", 3))


def test_a_block_device_is_no_job_file() -> None:
    devices = [one for one in Path("/dev").iterdir() if one.is_block_device()]
    if not devices:
        pytest.skip("no block device is in /dev here")
    with pytest.raises(InputError, match="is a block device, not a job file") as error:
        input_file.read(devices[0], "job file")
    assert f"loadstone probe {devices[0]}" in str(error.value.hint)


@pytest.mark.in_turn
@pytest.mark.drawn(4)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/kmsg"])
@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["plan"],
        ["fio"],
        ["plan", "--language", "iometer"],
        ["experiment", "plan"],
        ["run", "four-corners", "--target", "null", "--spec"],
        ["run", "four-corners", "--target", "null", "--hosts"],
    ],
    ids=" ".join,
)
def test_a_device_is_no_file_to_read(words: list[str], device: str, tmp_path: Path) -> None:
    """One without end was read until memory ended; the kernel's log was waited for without end."""
    limits = (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES)
    done = subprocess.run(
        [sys.executable, "-m", "loadstone", *words, device],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
    )
    code = 1 if words[0] == "fio" else 2
    said = f"{device} is a character device, not a" in done.stderr
    assert (done.returncode, said) == (code, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("what", "said"), [("job file", "not a job file"), ("experiment", "not an experiment")]
)
def test_what_a_file_is_not_has_its_article(tmp_path: Path, what: str, said: str) -> None:
    with pytest.raises(InputError, match=f"{said}$"):
        input_file.read(tmp_path, what)
