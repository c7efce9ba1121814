"""Names of jobs and files become names of files that stay in their directory, fit and differ."""

from __future__ import annotations

import random
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone import file_name
from loadstone.api.place import default_directory
from loadstone.bundle.write import input_files
from loadstone.cli.main import main
from loadstone.report.vdbench.directory import Page
from tests.support.runs import make

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = (
    "a",
    "/",
    "..",
    ".",
    "-",
    "\0",
    "\n",
    "\x1b[2J",
    "日本",
    "𝔸",
    "é",
    " ",
    "job",
    "x" * 200,
    "日" * 100,
    "\udcff",
)


def names(count: int) -> Iterator[str]:
    draw = random.Random(17)
    for _ in range(count):
        yield "".join(draw.choices(PARTS, k=draw.randint(1, 5)))


def test_of_five_thousand_names_each_is_one_file_of_its_directory(tmp_path: Path) -> None:
    for number, name in enumerate(names(5000)):
        made = file_name.safe(name)
        assert len(made.encode()) <= 120
        assert made.isprintable()
        assert made not in ("", ".", "..")
        assert not set(made) & set("/\0")
        assert made[0] not in ".-"
        assert len(default_directory(name).name.encode()) <= file_name.MOST_BYTES
        if number % 50 == 0:
            (tmp_path / made).touch()


@pytest.mark.parametrize("letter", ["x", "é", "日", "𝔸"])
def test_long_names_that_differ_at_their_end_stay_different(letter: str) -> None:
    one, other = letter * 300 + "1", letter * 300 + "2"
    assert file_name.safe(one) != file_name.safe(other)
    for name in (one, other):
        page = Page(name).file
        assert len(page.encode()) <= 255
        assert page.endswith(".html")
    assert Page(one).file != Page(other).file
    assert Page("sd1").file == "sd1.html"


def test_inputs_of_the_longest_names_are_kept_apart() -> None:
    longest = "n" * 255
    files = input_files({f"a/{longest}": b"", f"b/{longest}": b"", f"c/{longest}": b""})
    assert len(set(files.values())) == 3
    assert all(len(Path(file).name.encode()) <= 255 for file in files.values())


def test_a_bundle_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    run = make(tmp_path / "b", seconds=1.0)
    for path in (run.path, *run.path.rglob("*")):
        if path.name not in ("samples.arrows", "ios.arrows"):  # Made here by the test, not by the engine.
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_a_log_whose_name_does_not_fit_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "日" * 84
    words = ["fio", f"--name={name}", "--ioengine=null", "--size=64k", "--rw=read"]
    assert main([*words, f"--write_bw_log={name}"]) == 1
    said = capfd.readouterr()
    assert "File name too long" in said.err
    assert "255 bytes" in said.err
    assert "Starting" not in said.out


@pytest.mark.in_turn
def test_a_kept_bundle_stays_in_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept" / "here"
    monkeypatch.setenv("LOADSTONE_FIO_BUNDLES", str(kept))
    for name in ("../../out", "x" * 255, "-rf"):
        assert main(["fio", f"--name={name}", "--ioengine=null", "--size=64k", "--rw=read"]) == 0
    assert len(list(kept.iterdir())) == 3
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
