"""Targets as the engine opens and prepares them: nothing is written before all are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.plan.safety import seen
from tests.support.plans import layout, plan, stream, target, worker

from .runs import run

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1 << 20


def identity(path: Path, **changes: int) -> dict[str, Any]:
    """What a safety check would have noted of a file."""
    found = path.stat()
    born = seen.look(path)[1].born_ns
    return {"device": found.st_dev, "inode": found.st_ino, "special": 0, "born_ns": born} | changes


def test_a_file_that_was_replaced_is_not_laid_out(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"precious")
    wrong = identity(path, inode=path.stat().st_ino + 1)
    made = target(path, create=True, identity=wrong, layout=layout(SIZE) | {"truncate": True})
    outcome = run(plan([made], [stream(ops=1)]), tmp_path)
    assert outcome.code == 3
    assert "not what was checked" in outcome.of("fatal")[0]["message"]
    assert path.read_bytes() == b"precious"


def test_a_file_made_later_with_the_inode_of_the_one_that_was_checked_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(SIZE))
    noted = identity(path)
    for _ in range(50):
        path.unlink()
        path.write_bytes(b"precious")
        if path.stat().st_ino == noted["inode"]:
            break
    else:
        pytest.skip("this file system gives no inode number again so soon: needs ext4")
    outcome = run(plan([target(path, identity=noted, layout=layout(SIZE))], [stream(ops=1)]), tmp_path)
    assert outcome.code == 3
    assert "a file made later has its inode number" in outcome.of("fatal")[0]["message"]
    assert path.read_bytes() == b"precious"


def test_a_file_of_which_nothing_is_told_but_its_inode_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(SIZE))
    noted = identity(path) | {"born_ns": None}
    outcome = run(plan([target(path, identity=noted)], [stream(ops=1)]), tmp_path)
    assert outcome.code == 0


def test_no_target_is_written_before_all_are_checked(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"kept")
    second.write_bytes(bytes(SIZE))
    targets = [
        target(first, identity=identity(first), layout=layout(SIZE)),
        target(second, identity=identity(second, device=0)),
    ]
    outcome = run(plan(targets, [stream(ops=1)]), tmp_path)
    assert outcome.code == 3
    assert first.read_bytes() == b"kept"


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"")
    noted = identity(path)
    path.unlink()
    outcome = run(plan([target(path, create=True, identity=noted)], [stream(ops=1)]), tmp_path)
    assert outcome.code == 3
    assert not path.exists()


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    outcome = run(plan([target("/dev/zero", "file")], [stream(ops=1)]), tmp_path)
    assert outcome.code == 3
    assert "is not a regular file" in outcome.of("fatal")[0]["message"]


@pytest.mark.parametrize("direct", [False, True])
def test_a_file_that_is_only_read_is_laid_out_all_the_same(tmp_path: Path, direct: bool) -> None:
    path = tmp_path / "data"
    made = target(path, create=True, read_only=True, direct=direct, layout=layout(SIZE + 512))
    outcome = run(plan([made], [stream(ops=256)]), tmp_path)
    assert (outcome.code, outcome.total("ops"), outcome.total("errors")) == (0, 256, 0)
    assert path.stat().st_size == SIZE + 512
    assert path.read_bytes()[-512:] != bytes(512)


@pytest.mark.parametrize(
    ("changes", "direct", "field"),
    [({"iodepth": 2}, False, "/streams/0/iodepth"), ({"iodepth": 1}, True, "/streams/0/files/0/target")],
)
def test_a_mapping_is_neither_deep_nor_direct(
    tmp_path: Path, changes: dict[str, Any], direct: bool, field: str
) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(SIZE))
    document = plan([target(path, direct=direct)], [stream(ops=1, **changes)], [worker({"type": "mmap"})])
    outcome = run(document, tmp_path)
    assert outcome.code == 2
    assert outcome.of("fatal")[0]["message"].startswith(field)


def test_a_block_beyond_what_the_kernel_moves_at_once_is_refused(tmp_path: Path) -> None:
    document = plan(
        [target("/dev/zero", "char", 1 << 40)], [stream(ops=1, block_bytes=1 << 31, length_bytes=1 << 40)]
    )
    outcome = run(document, tmp_path)
    assert outcome.code == 2
    assert outcome.of("fatal")[0]["message"].startswith("/streams/0/pattern/read/sizes")
