"""What comes of an agent over two pipes, and of who is none."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from loadstone.hosts import agent_links
from loadstone.hosts.agent_links import PipeLink

if TYPE_CHECKING:
    import pytest


def test_a_line_without_end_is_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was kept in memory, as long as it went on."""
    monkeypatch.setattr(agent_links, "LINE_BYTES", 1 << 16)
    monkeypatch.setattr(agent_links, "CLOSE_S", 0.1)
    heard: list[dict[str, Any]] = []
    came = threading.Event()

    def hear(_: str, message: dict[str, Any]) -> None:
        heard.append(message)
        came.set()

    endless = "import os\nwhile True: os.write(1, b' ' * 4096)"
    link = PipeLink("h1", [sys.executable, "-S", "-c", endless], hear)
    link.open()
    try:
        assert came.wait(60)
    finally:
        link.close()
    assert [message["type"] for message in heard] == ["lost"]
    assert "without the end of a line" in heard[0]["why"]
