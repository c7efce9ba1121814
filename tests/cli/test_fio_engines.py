"""Engines that work on names, space and pipes: what they do and count, beside the real fio.

Cases are drawn by seed; names of files, sizes and operations are compared, no time.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.cli.fio.program import main

if TYPE_CHECKING:
    from pathlib import Path

FIO = shutil.which("fio")
OPS = ("read", "write", "trim")
NAMES = ("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete")


def counts(document: dict[str, Any]) -> list[object]:
    return [
        (job["error"], *((job[op]["total_ios"], job[op]["io_bytes"], job[op]["clat_ns"]["N"]) for op in OPS))
        for job in document["jobs"]
    ]


def found(place: Path) -> dict[str, tuple[str, int]]:
    return {
        name.name: ("directory", 0) if name.is_dir() else ("file", name.stat().st_size)
        for name in sorted(place.iterdir())
    }


def ours(words: list[str], place: Path) -> tuple[int, dict[str, Any]]:
    place.mkdir()
    out = place.parent / "ours.json"
    code = main([*words, f"--directory={place}", "--output-format=json", f"--output={out}"])
    return code, json.loads(out.read_text())


def theirs(words: list[str], place: Path) -> tuple[int, dict[str, Any]]:
    place.mkdir()
    command = [str(FIO), *words, f"--directory={place}", "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place.parent)
    return done.returncode, json.loads(done.stdout[done.stdout.index("{") :])


def known_to_fio(engine: str) -> bool:
    if FIO is None:
        return False
    listed = subprocess.run([FIO, "--enghelp"], capture_output=True, text=True, check=False).stdout
    return f"\t{engine}\n" in listed


def drawn(chance: random.Random) -> list[str]:
    engine = chance.choice([*NAMES, "falloc", "splice"])
    block = chance.choice([4096, 8192, 65536])
    words = [f"--ioengine={engine}", f"--bs={block}", f"--numjobs={chance.randint(1, 2)}"]
    if engine in NAMES:
        words += [f"--filesize={block}", f"--nrfiles={chance.randint(1, 12)}"]
        words += [f"--rw={chance.choice(['read', 'write', 'randwrite'])}"]
        words += [f"--loops={chance.randint(1, 2)}"] if "delete" not in engine else []
        words += ["--openfiles=1"] if chance.random() < 0.5 else []
        words += ["--fallocate=none"]
    else:
        moves = ["read", "write", "randread", "randwrite"] + (
            ["trim", "randtrim"] if engine == "falloc" else []
        )
        words += [f"--size={block * chance.randint(1, 20)}", f"--rw={chance.choice(moves)}"]
    return [*words, f"--unlink={chance.choice([0, 0, 1])}"]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(16))
def test_an_engine_does_and_counts_what_the_real_fio_does(seed: int, tmp_path: Path) -> None:
    words = ["--name=job", *drawn(random.Random(seed))]
    engine = words[1].partition("=")[2]
    if not known_to_fio(engine):
        pytest.skip(f"no fio here that knows {engine}")
    here, document = ours(words, tmp_path / "ours")
    there, other = theirs(words, tmp_path / "theirs")
    assert (here, counts(document)) == (there, counts(other)), words
    assert found(tmp_path / "ours") == found(tmp_path / "theirs"), words


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("engine", "left"),
    [
        ("filecreate", {f"a.0.{n}": ("file", 0) for n in range(3)}),
        ("filestat", {f"a.0.{n}": ("file", 4096) for n in range(3)}),
        ("filedelete", {}),
        ("dircreate", {f"a.0.{n}": ("directory", 0) for n in range(3)}),
        ("dirstat", {f"a.0.{n}": ("directory", 0) for n in range(3)}),
        ("dirdelete", {}),
    ],
)
def test_each_name_is_one_io_with_a_latency_and_no_total(
    engine: str, left: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    words = ["--name=a", f"--ioengine={engine}", "--filesize=4k", "--nrfiles=3", "--rw=write"]
    code, document = ours(words, tmp_path / "place")
    figures = document["jobs"][0]["write"]
    assert (code, figures["total_ios"], figures["io_bytes"]) == (0, 3, 12288)
    assert (figures["clat_ns"]["N"], figures["lat_ns"]["N"], figures["slat_ns"]["N"]) == (3, 0, 0)
    assert found(tmp_path / "place") == left


@pytest.mark.in_turn
def test_a_directory_that_is_there_fails_its_making_as_in_fio(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "a.0.0").mkdir()
    words = ["--name=a", "--ioengine=dircreate", "--filesize=4k", f"--directory={tmp_path / 'place'}"]
    out = tmp_path / "out.json"
    assert main([*words, "--output-format=json", f"--output={out}"]) == 1
    assert json.loads(out.read_text())["jobs"][0]["error"] == 17


@pytest.mark.in_turn
def test_extents_are_exchanged_with_a_donor_and_the_content_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_FIO_OVERWRITE", "1")  # The file is this test's own.
    content = os.urandom(1 << 20)
    (tmp_path / "file").write_bytes(content)
    words = ["--name=a", "--ioengine=e4defrag", "--rw=write", "--bs=64k", "--size=1m", "--inplace=1"]
    words += ["--donorname=donor", "--filename=file", f"--directory={tmp_path}", "--output-format=json"]
    out = tmp_path / "out.json"
    code = main([*words, f"--output={out}"])
    [job] = json.loads(out.read_text())["jobs"]
    if job["error"] in (25, 95):  # ENOTTY, EOPNOTSUPP
        pytest.skip("the file system here is not ext4")
    assert (code, job["write"]["total_ios"], job["error"]) == (0, 16, 0)
    assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "donor").stat().st_size == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--ioengine=filestat", "--rw=trim"], "does no trims"),
        (["--ioengine=e4defrag", "--rw=read", "--donorname=x"], "only writes"),
        (["--ioengine=e4defrag", "--rw=write"], "needs a donor"),
        (["--ioengine=psync", "--stat_type=lstat"], "has no effect with ioengine=psync"),
        (["--ioengine=falloc", "--rw=write", "--verify=md5"], "no content that could be verified"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--name=a", "--size=4k", f"--directory={tmp_path}", *words])
    assert (code, says in capsys.readouterr().err) == (1, True)
    assert list(tmp_path.iterdir()) == [], sys.argv
