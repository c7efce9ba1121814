"""Installing on a host that does not answer, or cannot: what is said."""

from __future__ import annotations

import io
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from loadstone.errors import RunError
from loadstone.hosts import install
from loadstone.hosts.hosts_file import HostEntry

HERE = HostEntry(name="h1", launch="local")


def test_a_host_that_does_not_answer_is_told_in_time() -> None:
    """It was waited for 15 minutes, and then told in the words of a library."""
    with pytest.raises(RunError, match=r"^h1: no answer within "):
        install._run_on_host(HERE, "exec sleep 60", timeout_s=0.2)
    assert install.LOOK_S < install.TIMEOUT_S


def test_a_command_that_fails_is_told_with_what_it_said_last() -> None:
    """It was called the host's agent."""
    with pytest.raises(RunError, match=r"^h1: installing ended with code 3: no index$") as raised:
        install._run_on_host(HERE, "echo first >&2; echo no index >&2; exit 3", hint="bring them")
    assert raised.value.hint == "bring them"


@pytest.mark.in_turn
def test_programs_of_the_wheel_are_files_that_may_be_run() -> None:
    """`pip` takes no mode from an entry that does not say it is a file: the engine could not be run."""
    content = zipfile.ZipFile(io.BytesIO(install.wheel()[1]))
    mode = content.getinfo("loadstone-0.1.0.data/scripts/loadstone-engine").external_attr >> 16
    assert stat.S_ISREG(mode)
    assert mode & 0o111 == 0o111


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("uname -m() { echo aarch64; }", "its CPU is aarch64, and the engine is made for x86_64"),
        ("python3() { return 127; }", "it has no Python, and Python 3.11 is needed"),
        ("python3() { echo python 3.9; }", "it has Python 3.9, and Python 3.11 is needed"),
        ("getconf() { return 1; }", "its C library is not glibc, and the engine needs glibc 2.99"),
        ("getconf() { echo glibc 2.17; }", "its C library is 2.17, and the engine needs glibc 2.99"),
    ],
)
def test_a_host_that_cannot_have_it_is_told_why(
    monkeypatch: pytest.MonkeyPatch, told: str, said: str
) -> None:
    """One without Python was told that it has Python glibc.2.36."""
    told = told.replace("uname -m()", "uname()")
    monkeypatch.setattr(install, "LOOK", f"{told}\n{install.LOOK}")
    monkeypatch.setattr(install, "PYTHON", (3, 11))
    with pytest.raises(RunError) as raised:
        install._looked_at(HERE, (2, 99))
    assert raised.value.message.endswith(said)


def test_what_was_there_goes_when_the_next_one_has_come(tmp_path: Path) -> None:
    """It was overwritten first, also where the new one could not be installed."""
    place = tmp_path / "place"
    for name in ("versions/2", "versions/3", "versions/4", "venv", "incoming-9"):
        (place / name).mkdir(parents=True)
    (place / "venv" / "here").touch()

    def put(mark: str) -> set[str]:
        script = install.PUT_IN_PLACE.format(place=place, mark=mark)
        subprocess.run(["sh", "-c", script], check=True)
        assert (place / "venv").readlink() == Path(f"versions/{mark}")
        return {path.name for path in (place / "versions").iterdir()}

    assert put("2") == {"2", "before-2"}
    assert (place / "versions" / "before-2" / "here").exists()
    (place / "versions" / "3").mkdir()
    assert put("3") == {"2", "3"}
    assert not (place / "incoming-9").exists()
