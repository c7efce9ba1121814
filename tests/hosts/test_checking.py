"""What hosts say of themselves, held against each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from loadstone.hosts import checking
from loadstone.hosts.greeting import is_one_machine
from loadstone.hosts.hosts_file import HostsFile


def test_two_names_of_one_machine_are_told_apart_from_two_hosts() -> None:
    """A host that was named twice did the load of two, and nobody said so."""
    one = {"boot_id": "b", "host_name": "h1"}
    assert is_one_machine(one, dict(one))
    assert not is_one_machine(one, {"boot_id": "b", "host_name": "h2"})
    assert not is_one_machine({"host_name": "h1"}, {"host_name": "h1"})
    every = [
        SimpleNamespace(name=name, told=told, targets={}, tell=None)
        for name, told in (
            ("h1", one),
            ("alias", dict(one)),
            ("h2", {"boot_id": "c", "host_name": "h1"}),
            ("third", one),
        )
    ]
    found: list[tuple[str, ...]] = []
    for each in every:
        each.tell = lambda *words, name=each.name: found.append((name, *words))
    checking._compare(cast("Any", every), HostsFile())
    # Once for each name too many: 64 names of one machine were 2,016 warnings.
    assert [(name, what, state) for name, what, state, *_ in found] == [
        ("alias", "machine", "warn"),
        ("third", "machine", "warn"),
    ]
    assert all("same machine as h1" in text for *_, text, _ in found)


def test_one_device_under_other_names_is_told() -> None:
    """Only the same path of other hosts was looked at, and a device has another on each."""
    targets = {
        "h1": {"/dev/sdb": {"identity": "naa.1"}, "/dev/sdc": {"identity": "naa.2"}},
        "h2": {"/dev/sdb": {"identity": "naa.2"}, "/dev/sdc": {"missing": "No such file or directory"}},
        "h3": {"/dev/sdb": {"identity": "naa.2 from sector 63"}, "/dev/sdc": {"identity": None}},
    }
    found: list[tuple[str, ...]] = []
    every = [SimpleNamespace(name=name, told={}, targets=each, tell=None) for name, each in targets.items()]
    for each in every:
        each.tell = lambda *words, name=each.name: found.append((name, *words))
    checking._compare(cast("Any", every), HostsFile())
    assert [one[:4] for one in found] == [
        ("h1", "target /dev/sdc", "warn", "h2:/dev/sdb, h3:/dev/sdb reach the same target")
    ]
