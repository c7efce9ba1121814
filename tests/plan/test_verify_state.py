"""fio's state files: what is written is read, what is damaged is refused."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.verification import verify_state

if TYPE_CHECKING:
    from pathlib import Path

DONE = ((0, 4096), (0, 0))


def built() -> bytes:
    return verify_state.built_for_earlier("job", 1, depth=4, files=1, number=9, done=DONE)


def test_the_file_of_fio_3_33_has_its_layout() -> None:
    content = built()
    version, size, crc = struct.unpack_from("<QQQ", content)
    assert (version, size, len(content)) == (3, 152 + 4 * 16, 24 + size)
    assert crc == verify_state._crc32c(content[24:])
    assert struct.unpack_from("<QIIQQ", content, 24) == (2, 4, 1, 9, 0)
    assert content[24 + 32 + 56 :][:4] == b"job\0"


def test_the_check_sum_is_fios_crc_32c() -> None:
    assert verify_state._crc32c(b"123456789") == 0xE3069283 ^ 0xFFFFFFFF


def test_what_is_written_is_read() -> None:
    until = verify_state.parsed(built())
    assert (until.number, until.in_doubt, until.done, until.open) == (9, 4, DONE, ())


def test_the_file_of_fio_3_42_has_its_layout_and_is_read() -> None:
    content = verify_state.built("job", 1, depth=3, number=7, open_writes=(5,))
    version, size, crc = struct.unpack_from("<QQQ", content)
    assert (version, size, len(content)) == (5, 144 + 3 * 8, 24 + size)
    assert crc == verify_state._crc32c(content[24:])
    assert struct.unpack_from("<IxxxxQQ", content, 24) == (3, 7, 0)
    assert struct.unpack_from("<3Q", content, 24 + 144) == (5, 2**64 - 1, 2**64 - 1)
    until = verify_state.parsed(content)
    assert (until.number, until.open, until.in_doubt) == (7, (5,), 0)


def test_the_layout_of_later_versions_is_read() -> None:
    body = struct.pack("<IxxxxQQ56s64s", 3, 7, 0, b"", b"job") + struct.pack("<3Q", 5, 2**64 - 1, 6)
    content = struct.pack("<QQQ", 7, len(body), verify_state._crc32c(body)) + body
    until = verify_state.parsed(content)
    assert (until.number, until.open, until.in_doubt) == (7, (5, 6), 0)


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c[:40] + b"x" + c[41:], lambda _: b"short"])
def test_a_damaged_file_is_refused(change: object) -> None:
    with pytest.raises((ValueError, struct.error)):
        verify_state.parsed(change(built()))  # type: ignore[operator] # any function of bytes


def test_only_a_state_file_may_be_replaced(tmp_path: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    assert verify_state.may_be_replaced(str(state))
    state.write_bytes(built())
    other.write_text("mine")
    assert verify_state.may_be_replaced(str(state))
    assert not verify_state.may_be_replaced(str(other))


def test_the_name_is_fios() -> None:
    assert verify_state.path_of("a/b", 2, None) == "local-a.b-1-verify.state"
    assert verify_state.path_of("a", 1, "/x") == "/x/local-a-0-verify.state"
