"""What holds for every test of hosts: this machine is a host of its own for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find this machine used by the run of another."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))
