"""fio's files that say how far a verified job came: written when it ends, read by a later one.

Knows their name and their layouts: version 3 of fio 3.33 and version 5 of fio 3.42, of which either
is written, and those up to version 7, which are read. Does not know what is verified by them.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final

from loadstone import input_file
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.plan.model import HeaderUntil

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.workload.model import Job

_HEADER: Final = struct.Struct("<QQQ")
"""Version, size and check sum of the rest."""
_RANDOM_BYTES: Final = 56
_NAME_BYTES: Final = 64
_V3: Final = struct.Struct(f"<QIIQQ{_RANDOM_BYTES}s{_NAME_BYTES}s")
_V4: Final = struct.Struct(f"<QIIIxxxxQQ{_RANDOM_BYTES}s{_NAME_BYTES}s")
_V5: Final = struct.Struct(f"<IxxxxQQ{_RANDOM_BYTES}s{_NAME_BYTES}s")
_NONE: Final = 2**64 - 1
"""In place of a number: no write was in flight there."""
_MOST_BYTES: Final = 64 << 20


def path_of(name: str, thread: int, aux_directory: str | None) -> str:
    """Return where the state of a job is; `thread` is its number from 1."""
    file = f"local-{name.replace('/', '.')}-{thread - 1}-verify.state"
    return os.path.join(aux_directory, file) if aux_directory else file  # noqa: PTH118 - text, as fio has it


def load(job: Job, thread: int, aux_directory: str | None) -> HeaderUntil:
    """Read the state of a job. Raises InputError when it is missing or damaged."""
    path = path_of(job.name, thread, aux_directory)
    where = job.at("headers.verify_state_load")
    try:
        content = input_file.start(path, _MOST_BYTES)
    except OSError as error:
        raise make_error(
            InputError,
            "plan.verify.state_unreadable",
            where=where,
            path=path,
            reason=error.strerror,
        ) from None
    try:
        return parsed(content)
    except (ValueError, struct.error) as error:
        raise make_error(
            InputError, "plan.verify.state_unusable", where=where, path=path, reason=str(error)
        ) from None


def parsed(content: bytes) -> HeaderUntil:
    """Return what a state file says. Raises ValueError or struct.error when it is none."""
    version, size, crc = _HEADER.unpack_from(content)
    body = content[_HEADER.size : _HEADER.size + size]
    if len(body) != size or _crc32c(body) != crc:
        raise make_error(ValueError, "plan.verify.state_damaged")
    if version in (3, 4):
        layout = _V3 if version == 3 else _V4
        count, depth, *_, number, _, _, _ = layout.unpack_from(body)
        places = [struct.unpack_from("<QQ", body, layout.size + 16 * i) for i in range(count)]
        return HeaderUntil(number=number, open=(), in_doubt=depth, done=tuple(places))
    if version in (5, 6, 7):
        depth, number, _, _, _ = _V5.unpack_from(body)
        numbers = struct.unpack_from(f"<{depth}Q", body, _V5.size)
        waiting = tuple(one for one in numbers if one != _NONE)
        return HeaderUntil(number=number, open=waiting, in_doubt=0, done=())
    raise make_error(ValueError, "plan.verify.state_version", version=version)


def built(name: str, thread: int, *, depth: int, number: int, open_writes: Sequence[int]) -> bytes:
    """Return the content of a state file; `open_writes` are numbers of writes that were not done."""
    numbers = [*open_writes, *[_NONE] * (depth - len(open_writes))]
    label = name.encode()[: _NAME_BYTES - 1]
    head = _V5.pack(len(numbers), number, thread - 1, bytes(_RANDOM_BYTES), label)
    return _sealed(5, head + struct.pack(f"<{len(numbers)}Q", *numbers))


def built_for_earlier(
    name: str, thread: int, *, depth: int, files: int, number: int, done: Sequence[Sequence[int]]
) -> bytes:
    """Return the same for fio up to 3.40; `done` are places of the last writes, the last first."""
    body = bytearray(_V3.size + 16 * depth * files)
    label = name.encode()[: _NAME_BYTES - 1]
    _V3.pack_into(body, 0, len(done), depth, files, number, thread - 1, bytes(_RANDOM_BYTES), label)
    for index, (file, offset) in enumerate(done):
        struct.pack_into("<QQ", body, _V3.size + 16 * index, file, offset)
    return _sealed(3, bytes(body))


def _sealed(version: int, body: bytes) -> bytes:
    return _HEADER.pack(version, len(body), _crc32c(body)) + body


def may_be_replaced(path: str) -> bool:
    """Whether nothing is there, or a state file."""
    try:
        parsed(input_file.start(path, _MOST_BYTES))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, struct.error):
        return False
    return True


def _table() -> tuple[int, ...]:
    entries = []
    for byte in range(256):
        entry = byte
        for _ in range(8):
            entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
        entries.append(entry)
    return tuple(entries)


_CRC_TABLE: Final = _table()


def _crc32c(data: bytes) -> int:
    """Return the CRC-32C of fio: without its last inversion."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc
