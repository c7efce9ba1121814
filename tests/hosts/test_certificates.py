"""Certificates that cannot be used are told before any host is asked, each with its file."""

from __future__ import annotations

import datetime
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("cryptography")

from loadstone.hosts import certificates


def take(names: tuple[str, ...]) -> Callable[[Path, Path], None]:
    def taken(ours: Path, others: Path) -> None:
        for name in names:
            (ours / name).write_bytes((others / name).read_bytes())

    return taken


def another_hosts(ours: Path, _: Path) -> None:
    """The same authority signed it, and its key is beside it: it was accepted."""
    for suffix in ("pem", "key"):
        (ours / f"h2.{suffix}").write_bytes((ours / f"h1.{suffix}").read_bytes())


def garbled(ours: Path, _: Path) -> None:
    (ours / "h2.pem").write_text("-----BEGIN CERTIFICATE-----")


def readable(ours: Path, _: Path) -> None:
    (ours / "h2.key").chmod(0o640)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (take(("h2.pem", "h2.key")), r"h2\.pem: it is not signed by .*ca\.pem"),
        (take(("h2.key",)), r"h2\.key: it is not the key of .*h2\.pem"),
        (another_hosts, r"h2\.pem: it is the certificate of h1, not of h2"),
        (garbled, r"h2\.pem: it is not a certificate"),
        (readable, r"h2\.key: other users can read this key"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_file(
    tmp_path: Path, spoil: Callable[[Path, Path], None], told: str
) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for place in (ours, others):
        certificates.write(place, ["h1", "h2"])
    spoil(ours, others)
    assert certificates.read(ours, "h1").certificate.startswith("-----BEGIN")
    with pytest.raises(InputError, match=told) as raised:
        certificates.read(ours, "h2")
    assert raised.value.hint


def test_a_host_may_be_known_by_its_address(tmp_path: Path) -> None:
    certificates.write(tmp_path / "made", ["10.0.0.7"])
    for suffix in ("pem", "key"):
        (tmp_path / "made" / f"10.0.0.7.{suffix}").rename(tmp_path / "made" / f"h7.{suffix}")
    assert certificates.read(tmp_path / "made", "h7", "10.0.0.7").key.startswith("-----BEGIN")
    with pytest.raises(InputError, match=r"h7\.pem: it is the certificate of 10\.0\.0\.7, not of h7"):
        certificates.read(tmp_path / "made", "h7")


@pytest.mark.parametrize("name", ["coordinator", "ca"])
def test_a_host_with_the_name_of_another_file_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    """`coordinator.pem: File exists`, and half of the files were there."""
    with pytest.raises(InputError, match=f"a host cannot be called {name}"):
        certificates.write(tmp_path / "made", ["h1", name])
    assert not (tmp_path / "made").exists()


@pytest.mark.in_turn
def test_dask_that_others_start_finds_its_settings_beside_the_certificates(tmp_path: Path) -> None:
    """Plain `dask worker` processes took 2 % of a CPU each beside the load, with Dask's own settings."""
    files = certificates.write(tmp_path / "made", ["h1"])
    environment = os.environ | {"DASK_CONFIG": str(tmp_path / "made" / "dask.yaml")}
    program = "import dask.config, distributed; print(dask.config.get('distributed.worker.profile.enabled'))"
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert tmp_path / "made" / "dask.yaml" in files
    assert printed.stdout == "False\n"


def test_days_that_are_over_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class EarlierDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> EarlierDatetime:
            return super().now(tz) - datetime.timedelta(days=certificates.DAYS + 2)

    # The library keeps the class that it meets first: without this, that was ours, in every test after.
    certificates.write(tmp_path / "now", ["h1"])
    with monkeypatch.context() as patched:
        patched.setattr(datetime, "datetime", EarlierDatetime)
        certificates.write(tmp_path / "old", ["h1"])
    with pytest.raises(InputError, match=r"ca\.pem: it is valid from \S+ to \S+ only"):
        certificates.read(tmp_path / "old", "h1")


def test_where_they_cannot_be_written_none_is_left_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="cannot be written: File name too long") as error:
        certificates.write(tmp_path / ("x" * 300), ["one"])
    assert error.value.hint == "a name has at most 255 bytes"
    opened, place = os.open, tmp_path / "made"

    def full(path: Path, *rest: int) -> int:
        if Path(path).name == "one.key":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *rest)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        certificates.write(place, ["one"])
    assert list(place.iterdir()) == []
    monkeypatch.undo()
    assert len(certificates.write(place, ["one"])) == 6
