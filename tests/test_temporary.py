"""No temporary directory stays behind, however the program ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from loadstone import temporary

HOLD = "from loadstone import temporary\nwith temporary.directory() as d:\n print(d, flush=True)\n input()"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_goes_with_its_block_and_is_for_nobody_else(place: Path) -> None:
    with temporary.directory() as made:
        assert made.is_dir()
        assert made.stat().st_mode & 0o777 == 0o700
        assert made.parent.stat().st_mode & 0o777 == 0o700
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_request_to_die_leaves_none(number: signal.Signals, place: Path) -> None:
    process, made = holder()
    assert made.is_dir()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert list(place.iterdir()) == []


def test_what_a_killed_program_left_goes_with_the_next_and_what_is_in_use_stays(place: Path) -> None:
    killed, left = holder()
    alive, kept = holder()
    (left / "bundle").mkdir()
    killed.kill()
    killed.communicate(timeout=60)
    assert left.is_dir()
    with temporary.directory():
        assert not left.parent.exists()
        assert kept.is_dir()
    alive.communicate("\n", timeout=60)
    assert list(place.iterdir()) == []


def test_only_our_own_directories_are_removed(place: Path) -> None:
    others = [
        place / f"{temporary.PREFIX}the_file",
        place / f"{temporary.PREFIX}the_link",
        place / f"{temporary.PREFIX}made_now",
    ]
    mine = place / "mine"
    mine.mkdir()
    (mine / temporary.LOCK).touch()
    others[0].write_text("a file")
    others[1].symlink_to(mine)
    others[2].mkdir()  # Made this moment, not locked yet.
    temporary.remove_abandoned(place)
    assert all(one.exists() for one in [*others, mine / temporary.LOCK])
    os.utime(others[2], (0, 0))
    temporary.remove_abandoned(place)
    assert not others[2].exists()


def test_what_has_a_name_like_ours_and_holds_anything_is_kept(place: Path) -> None:
    """A bundle in /tmp/loadstone-run-baseline was removed by the next run."""
    bundle, locked, odd, longer = (
        place / f"{temporary.PREFIX}{name}" for name in ("baseline", "a_locked", "with_odd", "my-results")
    )
    for one in (bundle, locked, odd, longer):
        one.mkdir()
    (bundle / "manifest.json").write_text("{}")
    (locked / temporary.LOCK).touch()
    (locked / "letter").write_text("dear")
    (odd / temporary.LOCK).write_text("a note of mine")
    (odd / temporary.INSIDE).mkdir()
    for one in (bundle, locked, odd, longer):
        os.utime(one, (0, 0))
    temporary.remove_abandoned(place)
    assert (bundle / "manifest.json").read_text() == "{}"
    assert (locked / "letter").read_text() == "dear"
    assert (odd / temporary.LOCK).read_text() == "a note of mine"
    assert longer.is_dir()
    assert not temporary.holds(bundle / "sub")
    assert temporary.holds(bundle / temporary.INSIDE / "bundle")
