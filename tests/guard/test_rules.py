"""What may be written, on plain files; devices are in test_devices.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loadstone.cli.fio import run_jobs
from loadstone.errors import RefusedError, RunError
from loadstone.plan.model import TargetKind
from loadstone.plan.safety import guard
from loadstone.plan.safety.run_targets import hold

from .plans import plan, target

NO = guard.Consent()


def test_consent_in_the_environment_is_given_as_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(run_jobs.ACCEPT, raising=False)
    paths = ["/dev/a", "/dev/b"]
    said = run_jobs._consent().remedy(paths)
    assert said == "set LOADSTONE_ACCEPT_DATA_LOSS=/dev/a:/dev/b"
    monkeypatch.setenv(*said.removeprefix("set ").split("="))
    assert all(run_jobs._consent().given(path, []) for path in paths)


def full(path: Path) -> str:
    path.write_bytes(b"precious" * 1000)
    return str(path)


def test_a_file_with_content_is_refused_with_evidence_and_remedy(tmp_path: Path) -> None:
    path = full(tmp_path / "vm.img")
    with pytest.raises(RefusedError) as caught:
        guard.secure(plan(target(path)), NO)
    told = str(caught.value).replace("\N{NO-BREAK SPACE}", " ")
    assert "holds 7.81 KiB and was not created by Loadstone" in told
    assert f"--i-accept-data-loss {path}" in (caught.value.hint or "")


@pytest.mark.parametrize("shares", [{"write": 100}, {"write": 0, "trim": 100}, {"read": 99, "write": 1}])
def test_any_write_or_trim_counts(tmp_path: Path, shares: dict[str, int]) -> None:
    with pytest.raises(RefusedError):
        guard.secure(
            plan(
                target(full(tmp_path / "x")),
                read=shares.get("read", 0),
                write=shares["write"],
                trim=shares.get("trim", 0),
            ),
            NO,
        )


def test_reading_needs_no_consent(tmp_path: Path) -> None:
    path = full(tmp_path / "x")
    secured = guard.secure(plan(target(path, read_only=True), read=100, write=0), NO)
    status = Path(path).stat()
    identity = secured.targets[0].identity
    assert identity is not None
    assert (identity.device, identity.inode, identity.special) == (status.st_dev, status.st_ino, 0)


def test_removing_a_file_is_losing_it(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        guard.secure(plan(target(full(tmp_path / "x"), unlink=True), read=100, write=0), NO)


@pytest.mark.parametrize(
    ("size", "truncate", "refused"),
    [(8000, True, False), (9000, False, True), (10, True, True), (10, False, False)],
)
def test_a_layout_counts_when_it_changes_the_file(
    tmp_path: Path, size: int, truncate: bool, refused: bool
) -> None:
    layout = {
        "size_bytes": size,
        "truncate": truncate,
        "fallocate": "none",
        "write": True,
        "fsync": False,
        "seed": 1,
    }
    one = plan(target(full(tmp_path / "x"), layout=layout), read=100, write=0)
    if refused:
        with pytest.raises(RefusedError):
            guard.secure(one, NO)
    else:
        assert guard.secure(one, NO).targets[0].identity is not None


def test_consent_is_per_path_and_follows_links(tmp_path: Path) -> None:
    first, second = full(tmp_path / "a"), full(tmp_path / "b")
    (tmp_path / "link").symlink_to(first)
    consent = guard.Consent(frozenset({str(tmp_path / "link")}))
    guard.secure(plan(target(first)), consent)
    with pytest.raises(RefusedError) as caught:
        guard.secure(plan(target(first), target(second)), consent)
    assert first not in str(caught.value)
    assert second in str(caught.value)


@pytest.mark.parametrize("typed", ["yes", "y", "", "*", "all"])
def test_only_the_path_itself_is_an_answer(tmp_path: Path, typed: str) -> None:
    with pytest.raises(RefusedError):
        guard.secure(plan(target(full(tmp_path / "x"))), guard.Consent(ask=lambda _path, _evidence: typed))


def test_typing_the_path_is_consent(tmp_path: Path) -> None:
    path = full(tmp_path / "x")
    asked: list[tuple[str, list[str]]] = []

    def ask(shown: str, evidence: list[str]) -> str:
        asked.append((shown, evidence))
        return shown + "\n"

    guard.secure(plan(target(path)), guard.Consent(ask=ask))
    assert asked[0][0] == path
    assert "holds 7.81" in asked[0][1][0]


def test_an_empty_file_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    guard.secure(plan(target(str(tmp_path / "x"))), NO)


def test_holding_keeps_what_exists(tmp_path: Path) -> None:
    path = full(tmp_path / "x")
    hold(plan(target(path, create=True)), guard.Consent(frozenset({path})))
    assert (tmp_path / "x").read_bytes() == b"precious" * 1000


def test_holding_makes_missing_directories_for_nobody_else(tmp_path: Path) -> None:
    hold(plan(target(str(tmp_path / "not" / "there" / "x"), create=True)), NO)
    assert (tmp_path / "not" / "there" / "x").is_file()
    assert (tmp_path / "not").stat().st_mode & 0o777 == 0o700


def test_holding_says_where_a_directory_cannot_be_made(tmp_path: Path) -> None:
    full(tmp_path / "file")
    with pytest.raises(RunError, match="file/x cannot be created: Not a directory"):
        hold(plan(target(str(tmp_path / "file" / "x"), create=True)), NO)


def test_a_directory_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="neither a file nor a device"):
        guard.secure(plan(target(str(tmp_path))), NO)


def test_dev_null_is_harmless_and_other_characters_are_not() -> None:
    guard.secure(plan(target("/dev/null", "char")), NO)
    with pytest.raises(RefusedError, match="character device"):
        guard.secure(plan(target("/dev/tty", "char")), guard.Consent(frozenset({"/dev/tty"})))


def test_a_file_being_written_by_another_process_is_refused_even_with_consent(tmp_path: Path) -> None:
    path = full(tmp_path / "x")
    program = f"import sys; f = open({path!r}, 'r+'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(RefusedError, match=f"process {holder.pid} .* has it open for writing"):
            guard.secure(plan(target(path)), guard.Consent(frozenset({path})))
        assert holder.stdin is not None
        holder.stdin.close()
    guard.secure(plan(target(path)), guard.Consent(frozenset({path})))


def test_virtual_targets_are_nobodys() -> None:
    one = plan(target("/nowhere", TargetKind.VIRTUAL.value))
    assert guard.written(one) == set()
    assert guard.secure(one, NO) == one


def test_the_content_of_files_can_be_left_unseen_but_makes_them_nobodys(tmp_path: Path) -> None:
    own = guard.secured(plan(target(full(tmp_path / "x"))), NO, content=False).own
    assert own == frozenset()
