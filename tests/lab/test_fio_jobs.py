"""The comparison with a real fio: what it draws, how it cuts, and what it takes for a difference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from lab.fio_jobs import __main__ as beside
from lab.fio_jobs import compare, cut, draw

from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles

if TYPE_CHECKING:
    from pathlib import Path


def test_job_files_are_drawn_again_alike_and_all_are_read() -> None:
    drawn = [draw.drawn(1, number) for number in range(60)]
    assert drawn == [draw.drawn(1, number) for number in range(60)]
    assert len(set(drawn)) == len(drawn)
    assert draw.drawn(2, 0) != drawn[0]
    for text in drawn:
        assert read_jobfiles([TextSource(text)], options=ReadOptions(strict_fio_reading=True)).jobs


@pytest.mark.parametrize(
    ("line", "less"),
    [
        ("filename=/dev/nvme0n1", "filename=dev_nvme0n1"),
        ("directory = /mnt/x ; a place", "directory = place ; a place"),
        ("runtime=2h", "runtime=2"),
        ("runtime=500ms", "runtime=500ms"),
        ("numjobs=128", "numjobs=4"),
        ("size=100%", "size=100%"),
        ("bs=1m", "bs=1m"),
    ],
)
def test_a_published_line_is_cut_to_what_is_small_and_here(line: str, less: str) -> None:
    assert cut.cut(line) == f"{less}\n"


def test_sizes_of_a_file_keep_their_proportions() -> None:
    sizes = [int(number) for number in re.findall(r"=(\d+)", cut.cut("size=10g\noffset=5g\nio_size=1g\n"))]
    assert sizes == [cut.MOST_BYTES, cut.MOST_BYTES // 2, pytest.approx(cut.MOST_BYTES / 10, rel=0.01)]


def made(path: Path, ios: int, size: int, error: int = 0) -> compare.FioResult:
    path.mkdir()
    nothing = {"total_ios": 0, "io_bytes": 0}
    read = {"total_ios": ios, "io_bytes": ios * size}
    job = {"jobname": "a", "error": error, "read": read, "write": nothing, "trim": nothing}
    (path / "log_lat.1.log").write_text("".join(f"1, 5, 0, {size}, {n * size}, 0\n" for n in range(ios)))
    done = compare.read(path, 0, "")
    done.document = {"jobs": [job]}
    return done


@pytest.mark.parametrize(
    ("ios", "size", "error", "told"),
    [
        (200, 4096, 0, ""),
        (150, 4096, 0, "bytes"),
        (100, 8192, 0, "size 8192"),
        (200, 4096, 5, "error 0, ours 5"),
    ],
)
def test_what_differs_is_told(tmp_path: Path, ios: int, size: int, error: int, told: str) -> None:
    real, ours = made(tmp_path / "real", 200, 4096), made(tmp_path / "ours", ios, size, error)
    found = compare.differences(real, ours, timed=False, text="")
    assert (told in " ".join(found)) if told else found == []


def test_a_program_that_does_not_end_is_ended_with_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "fio"
    script.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    script.chmod(0o755)
    monkeypatch.setattr(beside, "PATIENCE_S", 0.5)
    assert beside.call(str(script), tmp_path, {}) == (124, "it did not end")


def test_a_group_without_a_name_is_compared_as_one_that_differs() -> None:
    """882200-011: fio 3.33 names no job where `group_reporting` stands in a later job of a group."""
    named = {"jobname": "a", "read": {"io_bytes": 1}}
    both = compare.FioResult(0, "", {"jobs": [named, {"read": {"io_bytes": 2}}]})
    alone = compare.FioResult(0, "", {"jobs": [named]})
    assert compare.differences(both, alone, timed=False, text="") == ["2 jobs, ours 1"]
