"""Open files are found to be too few before anything is asked of a host, and named where they are too few."""

from __future__ import annotations

import resource
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from loadstone.errors import RefusedError
from loadstone.hosts.descriptor_limit import make_room, needed_by
from loadstone.hosts.ending import HostsRunKnown
from loadstone.hosts.host_state import HostState
from loadstone.hosts.hosts_file import HostsFile
from loadstone.hosts.phases import Phases

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.hosts.agent_links import Link


def hosts(count: int, transport: str) -> HostsFile:
    entries = [{"name": f"h{number}"} for number in range(count)]
    return HostsFile.model_validate({"run": {"transport": transport}, "host": entries})


def test_a_limit_that_may_be_raised_is_and_one_that_may_not_is_refused_with_the_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each host was said to have too many open files, and were to be checked: it was this machine."""
    limits = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    make_room(hosts(100, "pipe"))
    assert limits == [(1024, 4096)]
    make_room(hosts(330, "pipe"))
    assert limits[-1] == (needed_by(hosts(330, "pipe")), 4096) == (1054, 4096)
    with pytest.raises(
        RefusedError, match=r"2000 hosts need 16064 open files here, .* allows 4096"
    ) as refused:
        make_room(hosts(2000, "dask"))
    assert "ulimit -Hn 16064" in str(refused.value.hint)
    limits.append((1024, resource.RLIM_INFINITY))
    make_room(hosts(2000, "dask"))
    assert limits[-1] == (16064, resource.RLIM_INFINITY)


def test_a_host_that_could_not_be_armed_is_told_with_its_remedy(tmp_path: Path) -> None:
    """The last words were "the load was not begun", with the hint to see what was said before."""
    names = ("h1", "h2")
    link = cast("Link", SimpleNamespace())
    states = {name: HostState(link) for name in names}
    why, hint = "open files: the Plan needs 66, the hard limit is 64", "raise it: ulimit -Hn 66"
    states["h2"].ended = {"status": "failed", "error": {"error": why, "hint": hint, "code": 1}}
    states["h1"].ended = {"status": "interrupted", "error": None}
    phases = Phases(list(names), 0.0)
    known = HostsRunKnown(states, phases, hosts(2, "pipe"), "1", tmp_path, None)
    refusal = known.why_not()
    assert refusal.message == f"the load was not begun: 1 of 2 hosts cannot:\n  h2: {why}"
    assert refusal.hint == hint
