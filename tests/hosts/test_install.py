"""Installing on a host that does not answer, or cannot: what is said."""

from __future__ import annotations

import pytest

from loadstone.errors import RunError
from loadstone.hosts import install
from loadstone.hosts.hosts_file import HostEntry

HERE = HostEntry(name="h1", launch="local")


def test_a_host_that_does_not_answer_is_told_in_time() -> None:
    """It was waited for 15 minutes, and then told in the words of a library."""
    with pytest.raises(RunError, match=r"^h1: no answer within "):
        install._there(HERE, "exec sleep 60", timeout_s=0.2)
    assert install.LOOK_S < install.TIMEOUT_S


def test_a_command_that_fails_is_told_with_what_it_said_last() -> None:
    """It was called the host's agent."""
    with pytest.raises(RunError, match=r"^h1: installing ended with code 3: no index$") as raised:
        install._there(HERE, "echo first >&2; echo no index >&2; exit 3", hint="bring them")
    assert raised.value.hint == "bring them"
