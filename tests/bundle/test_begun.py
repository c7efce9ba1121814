"""A bundle or a study that cannot be begun leaves nothing that a later verb would call altered."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from loadstone.bundle import study
from loadstone.bundle.disk import Disk
from loadstone.bundle.write import BundleWriter
from loadstone.errors import BundleError
from tests.support import runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def begin_bundle(directory: Path) -> None:
    BundleWriter.create(
        directory,
        request={},
        inputs={"r.fio": b"[r]"},
        workload_json="{}",
        plan_json="{}",
        notes=[],
        environment={},
    ).close()


def begin_study(directory: Path) -> None:
    study.begin(directory, runs.study_record("repeat"), {"r.fio": b"[r]"})


@pytest.mark.parametrize("begin", [begin_bundle, begin_study])
@pytest.mark.parametrize("step", ["write", "replace", "open"])
@pytest.mark.parametrize("is_there", [False, True])
def test_what_cannot_be_begun_is_taken_back(
    begin: Callable[[Path], None],
    step: str,
    is_there: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A disk that was full left an input of 0 bytes: *it was changed since its run began*."""
    original: Callable[..., object] = getattr(Disk, step)
    number, failing, reasons = 0, True, list[str]()
    while failing:
        number += 1
        count, failing = 0, False

        def refusing(*words: object, number: int = number) -> object:
            nonlocal count, failing
            count += 1
            if count == number:
                failing = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return original(*words)

        directory = tmp_path / str(number) / "probes" / "001"
        if is_there:
            directory.mkdir(parents=True)
        monkeypatch.setattr(Disk, step, refusing)
        try:
            begin(directory)
        except BundleError as error:
            reasons.append(str(error))
            assert directory.parent.parent.is_dir() == directory.is_dir() == is_there
            assert not is_there or list(directory.iterdir()) == []
    assert len(reasons) == number - 1 > 0
    assert all("No space left on device" in reason for reason in reasons)


@pytest.mark.parametrize("begin", [begin_bundle, begin_study])
def test_what_is_there_already_is_neither_written_over_nor_taken_back(
    begin: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two studies of one `--out`: the second would have removed the first one's record."""
    (tmp_path / study.STUDY).write_text("somebody's")
    for fails in (False, True):
        if fails:
            monkeypatch.setattr(
                Disk, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
            )
        with pytest.raises(BundleError, match="is not empty"):
            begin(tmp_path)
        assert [one.name for one in tmp_path.iterdir()] == [study.STUDY]
        assert (tmp_path / study.STUDY).read_text() == "somebody's"
