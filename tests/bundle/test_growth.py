"""What a killed run's growing files held is known: nobody alters them unnoticed."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle import growth, layout, members, seal
from loadstone.bundle.disk import Disk
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError
from tests.support import runs

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

GROWN = ("samples.arrows", "events.jsonl", "host.jsonl")


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    return runs.make(tmp_path / "b", seconds=2.0, seal=None).path


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("name", GROWN)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_byte_of_a_killed_runs_files_cannot_be_altered_in_silence(
    killed: Path, name: str, share: float
) -> None:
    file = killed / name
    data = file.read_bytes()
    file.write_bytes(flipped(data, round(share * (len(data) - 1))))
    with pytest.raises(BundleError, match=f"was changed since its run began: {name} was altered"):
        Bundle.open(killed)
    bundle = Bundle.open(killed, unverified=True)
    assert bundle.altered == (f"{name} was altered",)
    assert bundle.doubt is not None


def test_zeros_in_place_of_samples_are_told(killed: Path) -> None:
    """They read as a run that measured nothing."""
    file = killed / "samples.arrows"
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(BundleError, match=r"samples\.arrows was altered"):
        Bundle.open(killed)


def test_lines_and_rows_that_are_gone_are_told(killed: Path) -> None:
    events = killed / "events.jsonl"
    length = events.stat().st_size
    os.truncate(events, length - 7)
    (killed / "samples.arrows").unlink()
    with pytest.raises(BundleError) as caught:
        Bundle.open(killed)
    assert f"events.jsonl lost its end: it has {length - 7} bytes of {length}" in str(caught.value)
    assert "samples.arrows is missing" in str(caught.value)


def test_what_came_after_the_last_note_is_read(killed: Path) -> None:
    """A run that is killed between two notes loses nothing of what it wrote since."""
    with (killed / "events.jsonl").open("ab") as file:
        file.write(b'{"t_ns": 1, "type": "note", "text": "later"}\n{"t_ns": 2, "ty')
    bundle = Bundle.open(killed)
    assert bundle.verified is None
    assert any(event.get("text") == "later" for event in bundle.events)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": {}}', b"\xff"])
def test_a_note_that_was_altered_or_taken_away_is_told(killed: Path, content: bytes) -> None:
    note = killed / layout.GROWTH
    note.write_bytes(content)
    with pytest.raises(BundleError, match=r"growth\.json (was altered|is empty)"):
        Bundle.open(killed)
    note.unlink()
    with pytest.raises(BundleError, match=r"growth\.json is missing"):
        Bundle.open(killed)


def test_a_power_failure_leaves_what_can_be_read_and_the_refusal_says_how(killed: Path) -> None:
    """The note reached the disk before the samples it is about, or was itself lost."""
    whole = Bundle.open(killed).samples()
    samples = killed / "samples.arrows"
    os.truncate(samples, samples.stat().st_size * 3 // 4)
    with pytest.raises(BundleError) as caught:
        Bundle.open(killed)
    assert "lost its end" in caught.value.message
    assert "power failure" in str(caught.value.hint)
    assert "--unverified" in str(caught.value.hint)
    bundle = Bundle.open(killed, unverified=True)
    left = bundle.samples()
    assert 0 < left.height < whole.height
    assert left.equals(whole.head(left.height))
    assert "lost its end" in str(bundle.doubt)
    (killed / layout.GROWTH).write_bytes(bytes(4096))
    assert growth.differences(killed) == ["growth.json is empty"]


def test_a_run_that_is_killed_while_it_is_sealed_is_not_called_altered(killed: Path) -> None:
    """Its rows become tables one by one; the note goes last."""
    for name, table in (("samples.arrows", "samples.parquet"), ("host.jsonl", "host.parquet")):
        (killed / table).write_bytes(b"")
        assert growth.differences(killed) == []
        (killed / name).unlink()
        assert growth.differences(killed) == []
    (killed / layout.GROWTH).unlink()
    assert growth.differences(killed) == []


def test_a_sealed_bundle_has_no_note(tmp_path: Path) -> None:
    path = runs.make(tmp_path / "b", seconds=1.0).path
    assert not (path / layout.GROWTH).exists()
    assert "growth" not in json.loads((path / layout.MANIFEST).read_text())
    assert Bundle.open(path).verified is True


def test_a_bundle_of_before_there_were_notes_is_read(killed: Path) -> None:
    (killed / layout.GROWTH).unlink()
    manifest = json.loads((killed / layout.MANIFEST).read_text())
    del manifest["growth"]
    (killed / layout.MANIFEST).write_text(json.dumps(seal.with_digest(manifest)))
    assert Bundle.open(killed).verified is None


def test_a_read_that_fails_half_way_leaves_a_note_that_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash had gone on and the size had not: the next note called a sound file altered."""
    file = tmp_path / layout.EVENTS
    file.write_bytes(b"one\n")
    descriptor = os.open(tmp_path / layout.GROWTH, os.O_RDWR | os.O_CREAT)
    noted = growth.Growth(descriptor, Disk())
    noted.note(tmp_path)
    file.write_bytes(b"one\n" + bytes(2 * growth._PIECE_BYTES))
    opened = members.open_member

    def failing(directory: Path, name: str) -> FailingReader:
        return FailingReader(opened(directory, name))

    with monkeypatch.context() as patched:
        patched.setattr(members, "open_member", failing)
        noted.note(tmp_path)
    assert growth.differences(tmp_path) == []
    noted.note(tmp_path)
    os.close(descriptor)
    assert growth.differences(tmp_path) == []


def test_a_first_note_without_a_file_that_cannot_be_opened_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left out as a whole: a run that failed then was called changed since it began."""
    for name in (layout.EVENTS, *layout.STREAMS):
        (tmp_path / name).write_bytes(b"one\n")
    descriptor = os.open(tmp_path / layout.GROWTH, os.O_RDWR | os.O_CREAT)
    opened = members.open_member

    def failing(directory: Path, name: str) -> object:
        if name == layout.EVENTS:
            raise OSError(24, "Too many open files")
        return opened(directory, name)

    with monkeypatch.context() as patched:
        patched.setattr(members, "open_member", failing)
        growth.Growth(descriptor, Disk()).note(tmp_path)
    os.close(descriptor)
    assert growth.differences(tmp_path) == []


class FailingReader:
    """A file of which the second read fails."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._reads = 0

    def __enter__(self) -> FailingReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def seek(self, at: int) -> int:
        return self._file.seek(at)

    def read(self, length: int) -> bytes:
        self._reads += 1
        if self._reads > 1:
            raise OSError(errno.EIO, "Input/output error")
        return self._file.read(length)


def test_a_note_that_was_never_written_is_no_alteration(tmp_path: Path) -> None:
    """As of a run that was killed between making the file and writing it, before there were samples."""
    (tmp_path / layout.GROWTH).touch()
    assert growth.differences(tmp_path) == []
    (tmp_path / next(iter(layout.STREAMS))).write_bytes(b"x")
    assert growth.differences(tmp_path) == ["growth.json is empty"]
