"""What stands on a device is found where the beginning is empty, on real loop devices."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from lab.safety.contents import KINDS, SIZE_BYTES

from loadstone.errors import RefusedError
from loadstone.plan.safety import content, content_evidence, guard
from loadstone.plan.safety.run_targets import hold
from tests.support.devices import attached, empty

from .plans import plan, target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.safety.contents import ContentKind

    from loadstone.plan.model import Plan

pytestmark = pytest.mark.root


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return empty(tmp_path / "image", SIZE_BYTES)


@pytest.fixture
def loop(image: Path) -> Iterator[str]:
    with attached(image) as device:
        yield device


def written(device: str) -> Plan:
    return plan(target(device, "block", size_bytes=SIZE_BYTES))


@pytest.mark.drawn(60)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "sampled"])
def test_every_kind_needs_consent_and_nothing_does_not(
    image: Path, kind: ContentKind, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 11, 1.2. `sampled`: as on a device that is too large to be read and knows no holes."""
    if kind.missing:
        pytest.skip(f"{kind.missing} is not installed")
    kind.make(image, Random(kind.name))
    if not whole:
        if kind.name == "one byte somewhere":
            pytest.skip("a sample cannot find that")
        monkeypatch.setattr(content, "WHOLE_BYTES", 0)
        monkeypatch.setattr(content.BlockReader, "backed", lambda _: None)
    with attached(image) as device:
        found = content_evidence.evidence(Path(device))
    assert bool(found) == kind.precious


def test_a_file_systems_name_is_told(loop: str, image: Path) -> None:
    named = {kind.name: kind for kind in KINDS}
    kind = named["XFS, only its backup superblocks"]
    if kind.missing:
        pytest.skip(f"{kind.missing} is not installed")
    kind.make(image, Random(1))
    with attached(image) as device, pytest.raises(RefusedError, match="xfs") as caught:
        guard.secure(written(device), guard.Consent())
    assert f"--i-accept-data-loss {device}" in (caught.value.hint or "")


def test_runs_of_one_process_know_what_they_left_on_a_device(loop: str) -> None:
    consent = guard.Consent()
    for _ in range(2):
        held = hold(written(loop), consent)
        assert held.own == {0}
        Path(loop).write_bytes(os.urandom(1 << 20))
        held.seal()
    with pytest.raises(RefusedError, match="look random"):
        guard.secure(written(loop), guard.Consent())
    with Path(loop).open("r+b") as device:
        device.seek(SIZE_BYTES - 1000)
        device.write(b"mine")
    with pytest.raises(RefusedError, match="it holds"):
        guard.secure(written(loop), consent)


def test_another_disk_under_the_number_of_one_that_was_written_is_looked_at(image: Path, loop: str) -> None:
    """A copy that somebody filled elsewhere: the places of the sample hold what the run left on the first."""
    consent = guard.Consent()
    held = hold(written(loop), consent)
    Path(loop).write_bytes(os.urandom(1 << 20))
    held.seal()
    other = image.with_name("other")
    shutil.copy(image, other)
    for words in (("--detach", loop), (loop, str(other))):
        subprocess.run(["losetup", *words], check=True)
    with pytest.raises(RefusedError, match="look random"):
        guard.secure(written(loop), consent)


def test_what_is_in_a_devices_cache_only_is_seen(loop: str) -> None:
    with Path(loop).open("r+b", buffering=0) as device:
        device.seek(200 << 20)
        device.write(b"mine")
        assert "text" in str(content_evidence.evidence(Path(loop)))


def test_a_device_that_never_answers_needs_consent(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    real, main = content.BlockReader.read, threading.main_thread()

    def stuck(reader: content.BlockReader, offset: int, length: int) -> bytes:
        if threading.current_thread() is not main:
            over.wait(60)
        return real(reader, offset, length)

    monkeypatch.setattr(content.BlockReader, "read", stuck)
    monkeypatch.setattr(content, "SILENT_S", 0.5)
    try:
        (said,) = content_evidence.evidence(Path(loop))
    finally:
        over.set()
    assert "it did not answer for" in said
