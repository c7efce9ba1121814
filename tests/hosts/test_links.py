"""What comes of an agent over two pipes, and of who is none."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from loadstone.hosts import agent_links
from loadstone.hosts.agent_links import PipeLink, ssh_argv, why_gone
from loadstone.hosts.greeting import word_every_s
from loadstone.hosts.hosts_file import HostsFile


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


def test_ssh_is_as_patient_as_the_hosts_file_and_what_the_user_says_goes_first() -> None:
    """ssh gave a host up after 15 s whatever `lost_after_s` was, and ssh takes the first of two values."""
    file = HostsFile.model_validate(
        {
            "run": {"lost_after_s": 300.0, "connect_s": 600.0},
            "host": [{"name": "h1", "ssh_options": ["ConnectTimeout=7"]}],
        }
    )
    words = ssh_argv(file.host[0], file.run)
    options = [words[at + 1] for at, word in enumerate(words) if word == "-o"]
    assert options == [
        "BatchMode=yes",
        "ConnectTimeout=7",
        "ConnectTimeout=300",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=60",
    ]
    assert ssh_argv(file.host[0])[-1] == "h1"


def test_an_agent_hears_of_its_coordinator_several_times_before_it_gives_it_up() -> None:
    assert (word_every_s(10.0), word_every_s(300.0), word_every_s(1.0)) == (2.0, 2.0, 0.2)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ((), "its host key is not known here"),
        (("Host key for h1 has changed and you have requested strict checking.",), "not the one that"),
    ],
)
def test_a_host_key_that_nobody_saw_before_is_no_other_one(first: tuple[str, ...], why: str) -> None:
    """Regression: a host that was never connected to was said to have another key than the known one."""
    assert why in why_gone(255, [*first, "Host key verification failed."], ssh=True)
