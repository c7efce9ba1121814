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


def environment(path: Path) -> Path:
    """Make what is left of an environment of ours."""
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "loadstone-engine").touch()
    (path / "pyvenv.cfg").touch()
    return path


def put(place: Path, mark: str) -> set[str]:
    subprocess.run(["sh", "-c", install.put_in_place(str(place), mark)], check=True)
    assert (place / "venv").readlink() == Path(f"versions/{mark}")
    return {path.name for path in (place / "versions").iterdir()}


def test_what_was_there_goes_when_the_next_one_has_come(tmp_path: Path) -> None:
    """It was overwritten first, also where the new one could not be installed."""
    place = tmp_path / "place"
    for name in ("versions/2", "versions/3", "versions/4", "venv"):
        environment(place / name)
    (place / "venv" / "here").touch()
    (place / "incoming-1.0-9").mkdir()
    (place / "incoming-1.0-9" / "loadstone.whl").touch()
    assert put(place, "2") == {"2", "before-2"}
    assert (place / "versions" / "before-2" / "here").exists()
    environment(place / "versions" / "3")
    assert put(place, "3") == {"2", "3"}
    assert not (place / "incoming-1.0-9").exists()


def test_nobodys_files_are_removed_where_it_is_installed(tmp_path: Path) -> None:
    """Another program of that name may have files there: all of `versions`, `wheels`, `incoming-*` went."""
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    (elsewhere / "bin").mkdir(parents=True)
    names = [
        "versions/saved/game.dat",
        "versions/notes",
        "wheels/a.whl",
        "incoming-mail/letter",
        "incoming-2",
    ]
    names += ["incoming-1.0-9/notes.txt"]
    for path in (*(place / name for name in names), elsewhere / "a.whl", elsewhere / "pyvenv.cfg"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("somebody's")
    (elsewhere / "bin" / "loadstone-engine").touch()
    (place / "incoming-1.0-8").symlink_to(elsewhere)
    (place / "versions" / "link").symlink_to(elsewhere)
    environment(place / "versions" / "2")
    assert put(place, "2") == {"2", "saved", "notes", "link"}
    assert [(place / name).read_text() for name in names] == ["somebody's"] * len(names)
    assert sorted(path.name for path in elsewhere.iterdir()) == ["a.whl", "bin", "pyvenv.cfg"]


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_an_environment_that_is_somebodys_is_not_taken_away(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    environment(place / "versions" / "2")
    venv = place / "venv"
    match kind:
        case "directory":
            venv.mkdir()
            (venv / "pyvenv.cfg").write_text("somebody's")
        case "file":
            venv.write_text("somebody's")
        case _:
            venv.symlink_to("/opt/somebodys")
    before = unread(venv)
    script = install.put_in_place(str(place), "2")
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
    told = "~/.local/share/loadstone/venv is no environment that Loadstone made: move it away"
    assert (done.returncode, done.stderr.strip()) == (1, told)
    assert unread(venv) == before


def unread(path: Path) -> tuple[int, ...]:
    """What a reader leaves as it is: the time of access changes when a link is followed."""
    status = path.lstat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns
