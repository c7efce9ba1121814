"""Who has what mapped, where the mappings of one process cannot be read (a FIFO blocks as they do)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loadstone.plan.safety import open_files

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_process_whose_mappings_do_not_come_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "PATIENCE_S", 0.3)
    file = tmp_path / "file"
    file.touch()
    status = file.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    line = f"7f0000000000-7f0000001000 rw-s 00000000 {device} {status.st_ino} {file}\n"
    processes = [tmp_path / "proc" / name for name in ("11", "12", "13")]
    for process in processes:
        (process / "fd").mkdir(parents=True)
        if process.name == "12":
            os.mkfifo(process / "maps")
        else:
            (process / "maps").write_text(line)
    try:
        found = list(open_files._mapped_by(processes, open_files._SHARED))
    finally:
        os.close(os.open(processes[1] / "maps", os.O_WRONLY | os.O_NONBLOCK))
    key = open_files.key_of(file)
    assert found == [{key}, set(), {key}]
