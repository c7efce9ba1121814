"""What holds for every test of hosts: this machine is a host of its own for each of them."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.hosts import agent_links
from tests.support.started import StartedProgram

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = ["-m", "loadstone.hosts.agent"]
"""How an agent on this machine is started."""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find this machine used by the run of another."""
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def warm_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start agents on this machine without an interpreter's second of CPU time: two in nearly every test."""

    def start(argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        if argv[1:] == LOCAL:
            return StartedProgram(["hosts", "agent"], **options)
        return subprocess.Popen(argv, **options)

    monkeypatch.setattr(agent_links, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": start}))
