"""`loadstone fio` verifies as fio does: each reads what the other wrote, in the same sizes and order."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.formats.fio import supported_options
from tests.e2e.program import needs_engine, run
from tests.support.devices import attached

if TYPE_CHECKING:
    from pathlib import Path

FIO = shutil.which("fio")
OPS = ("read", "write", "trim")
METHODS = [name for name in supported_options.METHODS if name not in ("0", "none", "null", "pattern_hdr")]


def _layout() -> str:
    """Return what LOADSTONE_FIO_VERIFY must be for the fio that is installed."""
    if FIO is None:
        return "3.42"
    told = subprocess.run([FIO, "--version"], capture_output=True, text=True, check=True).stdout
    number = re.match(r"fio-(\d+)\.(\d+)", told)
    return "3.33" if number and (int(number[1]), int(number[2])) < (3, 41) else "3.42"


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_engine()
    monkeypatch.setenv("LOADSTONE_FIO_VERIFY", _layout())


def options(**given: object) -> list[str]:
    wanted = {"name": "j", "filename": "data", "size": "256k", "bs": "4k", "output-format": "json", **given}
    return [f"--{name.replace('__', '-')}={value}" for name, value in wanted.items()]


def ours(place: Path, **given: object) -> tuple[int, dict[str, Any], str]:
    done = run("fio", *options(**given), cwd=place)
    return done.code, json.loads(done.out[done.out.index("{") :])["jobs"][0], done.err


def fios(place: Path, **given: object) -> tuple[int, dict[str, Any], str]:
    assert FIO is not None
    done = subprocess.run([FIO, *options(**given)], cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0], done.stderr


def counts(job: dict[str, Any], ops: tuple[str, ...] = ("read", "write")) -> list[tuple[int, int]]:
    return [(job[op]["total_ios"], job[op]["io_bytes"]) for op in ops]


@pytest.mark.in_turn
@pytest.mark.skipif(FIO is None, reason="fio is not installed: nothing to compare with")
@pytest.mark.drawn(5)
@pytest.mark.parametrize("method", METHODS)
def test_each_verifies_what_the_other_wrote(tmp_path: Path, method: str) -> None:
    kind = {"verify": method, "verify_interval": 1024}
    if method == "pattern":
        kind["verify_pattern"] = '0xdead%o"xy"'
    for writer, reader in ((ours, fios), (fios, ours)):
        code, wrote, said = writer(tmp_path, rw="randwrite", **kind)
        assert (code, counts(wrote)) == (0, [(64, 1 << 18), (64, 1 << 18)]), said
        code, read, said = reader(tmp_path, rw="read", **kind)
        assert (code, counts(read)[0]) == (0, (64, 1 << 18)), said


@pytest.mark.in_turn
@pytest.mark.parametrize(("method", "moved"), [("sha512", 0), ("crc7", 300), ("pattern_hdr", 300)])
def test_headers_of_either_layout_are_read_whatever_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, moved: int
) -> None:
    kind = {"verify": method, "verify_interval": 1024, "verify_offset": moved}
    if method == "pattern_hdr":
        kind["verify_pattern"] = "0xdead"
    for written, read in (("3.33", "3.42"), ("3.42", "3.33")):
        monkeypatch.setenv("LOADSTONE_FIO_VERIFY", written)
        assert ours(tmp_path, rw="write", **kind)[0] == 0
        head = (tmp_path / "data").read_bytes()[moved : moved + 3]
        assert head[:2] == b"\xca\xac"
        assert (head[2] == 0x81) == (written == "3.42")
        monkeypatch.setenv("LOADSTONE_FIO_VERIFY", read)
        code, job, said = ours(tmp_path, rw="read", **kind)
        assert (code, counts(job)[0][0]) == (0, 64), said


def test_an_unknown_version_of_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_FIO_VERIFY", "4")
    done = run("fio", *options(rw="write", verify="md5"), cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err == "fio: LOADSTONE_FIO_VERIFY is '4'\nvalid are 3.33 and 3.42\n"


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("given", "reads"),
    [
        ({"rw": "write", "loops": 2}, 128),
        ({"rw": "randwrite", "verify_backlog": 7, "verify_backlog_batch": 3}, 64),
        ({"rw": "randwrite", "number_ios": 10}, 10),
        ({"rw": "write", "do_verify": 0}, 0),
        ({"rw": "write", "nrfiles": 2, "filename": "a:b"}, 64),
        ({"rw": "write", "experimental_verify": 1}, 64),
        ({"rw": "write", "io_size": "128k"}, 32),
    ],
)
def test_as_much_is_read_back_as_fio_reads(tmp_path: Path, given: dict[str, object], reads: int) -> None:
    code, job, said = ours(tmp_path, verify="crc32c", **given)
    assert (code, counts(job)[0][0]) == (0, reads), said
    if FIO is not None:
        assert counts(fios(tmp_path, verify="crc32c", **given)[1]) == counts(job)


@pytest.mark.in_turn
@pytest.mark.root
@pytest.mark.parametrize(
    "given",
    [
        {"rw": "trimwrite", "verify": "md5"},
        {"rw": "trimwrite", "verify": "meta", "ioengine": "libaio", "iodepth": 16, "direct": 1},
        {"rw": "randtrimwrite", "verify": "crc32c", "number_ios": 10},
        {"rw": "trimwrite", "verify": "sha1", "verify_backlog": 4},
    ],
)
def test_writes_after_trims_are_read_back_as_fio_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, object]
) -> None:
    """At depth 16 a write went past the trim of its place, and what it wrote was gone."""
    (tmp_path / "image").write_bytes(bytes(1 << 20))
    with attached(tmp_path / "image") as loop:
        monkeypatch.setenv("LOADSTONE_ACCEPT_DATA_LOSS", loop)
        code, job, said = ours(tmp_path, **given, filename=loop)
        assert code == 0, said
        all_three = counts(job, OPS)
        assert len(set(all_three)) == 1
        if FIO is not None:
            assert counts(fios(tmp_path, **given, filename=loop)[1], OPS) == all_three


@pytest.mark.parametrize("kind", [{}, {"experimental_verify": 1}])
@pytest.mark.in_turn
def test_a_sequential_pass_moves_io_size_before_it_is_read_back(
    tmp_path: Path, kind: dict[str, object]
) -> None:
    # As since fio 3.38; those before moved no more than size.
    code, job, said = ours(tmp_path, verify="crc32c", rw="write", io_size="512k", **kind)
    assert (code, counts(job)[1]) == (0, (128, 1 << 19)), said
    assert counts(job)[0] == ((128, 1 << 19) if kind else (64, 1 << 18))


@pytest.mark.in_turn
def test_a_walk_that_comes_round_again_is_held_against_its_last_writes(tmp_path: Path) -> None:
    code, job, said = ours(tmp_path, verify="md5", rw="write:4096", experimental_verify=1)
    assert (code, counts(job)) == (0, [(64, 1 << 18), (64, 1 << 18)]), said


@pytest.mark.in_turn
def test_what_is_read_back_has_the_sizes_that_were_written(tmp_path: Path) -> None:
    code, job, said = ours(tmp_path, verify="md5", rw="randwrite", bssplit="4k/50:16k/50", size="2m")
    assert code == 0, said
    read, wrote = counts(job)
    assert read == wrote
    assert 128 < read[0] < 512


@pytest.mark.in_turn
def test_damage_is_said_and_counted_as_fio_says_it(tmp_path: Path) -> None:
    kind = {"verify": "crc32c", "verify_dump": 1}
    assert ours(tmp_path, rw="write", **kind)[0] == 0
    with (tmp_path / "data").open("r+b") as file:
        file.seek(9000)
        file.write(b"\xff\x00\xff\x00")
    answers = [ours(tmp_path, rw="read", **kind)]
    kept = [(tmp_path / f"data.8192.{what}").read_bytes() for what in ("received", "expected")]
    assert [len(part) for part in kept] == [4096, 4096]
    assert sum(a != b for a, b in zip(*kept, strict=True)) in range(1, 60)
    if FIO is not None:
        for what in ("received", "expected"):
            (tmp_path / f"data.8192.{what}").unlink()
        answers.append(fios(tmp_path, rw="read", **kind))
    for code, job, said in answers:
        assert (code, job["error"]) == (1, 84)
        # What was read wrong counts as read.
        assert job["read"]["total_ios"] == 3
        assert "crc32c: verify failed at file data offset 8192, length 4096" in said.replace(
            f"{tmp_path}/", ""
        )
        assert "       Expected CRC: " in said
        assert "received data dumped as data.8192.received\n" in said


@pytest.mark.in_turn
def test_a_dump_goes_over_nothing(tmp_path: Path) -> None:
    assert ours(tmp_path, rw="write", verify="md5")[0] == 0
    (tmp_path / "data.0.received").write_text("mine")
    with (tmp_path / "data").open("r+b") as file:
        file.seek(300)
        file.write(b"\xff\x00\xff\x00")
    _, _, said = ours(tmp_path, rw="read", verify="md5", verify_dump=1)
    assert "received data not dumped as data.0.received: File exists" in said
    assert (tmp_path / "data.0.received").read_text() == "mine"


@pytest.mark.in_turn
def test_continue_on_error_verify_goes_on_to_the_end(tmp_path: Path) -> None:
    assert ours(tmp_path, rw="write", verify="md5")[0] == 0
    with (tmp_path / "data").open("r+b") as file:
        for block in (1, 5):
            file.seek(block * 4096 + 200)
            file.write(b"\xff\x00\xff\x00")
    _, job, said = ours(tmp_path, rw="read", verify="md5", continue_on_error="verify")
    assert job["read"]["total_ios"] == 64
    assert said.count("md5: verify failed") == 2


@pytest.mark.in_turn
@pytest.mark.skipif(FIO is None, reason="fio is not installed: nothing to compare with")
@pytest.mark.parametrize("rw", ["write", "rw"])
def test_each_takes_the_state_that_the_other_saved(tmp_path: Path, rw: str) -> None:
    kind = {"verify": "md5", "rw": rw, "number_ios": 40}
    for writer, reader in ((ours, fios), (fios, ours)):
        (tmp_path / "local-j-0-verify.state").unlink(missing_ok=True)
        code, wrote, said = writer(tmp_path, **kind, verify_state_save=1)
        assert code == 0, said
        if rw == "write":
            code, read, said = reader(tmp_path, verify="md5", rw=rw, verify_only=1, verify_state_load=1)
            assert (code, counts(read)[0][0]) == (0, counts(wrote)[1][0]), said


@pytest.mark.in_turn
def test_reading_stops_where_the_other_run_ended(tmp_path: Path) -> None:
    assert ours(tmp_path, verify="md5", rw="randwrite", number_ios=10)[0] == 0
    code, job, said = ours(tmp_path, verify="md5", rw="randwrite", verify_only=1, verify_state_load=1)
    assert (code, counts(job)) == (0, [(10, 40960), (64, 1 << 18)]), said


@pytest.mark.in_turn
def test_a_state_goes_over_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "local-j-0-verify.state").write_text("mine")
    _, _, said = ours(tmp_path, verify="md5", rw="write")
    assert "state file not written: " in said
    assert (tmp_path / "local-j-0-verify.state").read_text() == "mine"


@pytest.mark.in_turn
def test_zones_that_come_again_are_no_damage(tmp_path: Path) -> None:
    """990300-011: what was written over in a later round of the zones was told to have a bad header."""
    zones = {"zonemode": "strided", "zonesize": "64k", "zonerange": "128k", "zoneskip": "64k"}
    code, job, said = ours(tmp_path, rw="randwrite", size="777k", verify="md5", verify_backlog=32, **zones)
    assert (code, job["error"], "bad header" in said) == (0, 0, False)
    assert counts(job, ("write",)) == [(195, 195 * 4096)]
