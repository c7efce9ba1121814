"""Mistakes in `hosts.toml` and in the words of `--hosts`: what is told, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError
from loadstone.hosts.hosts_file import read_hosts, read_hosts_file

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """[run]
transport = "pipe"
[[host]]
name = "h1"
address = "10.0.0.11"
[[host]]
name = "h2"
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "said", "hint"),
    [
        ('name = "h2"', 'nme = "h2"', 7, "host.nme: is no key here", "'name'"),
        ('"h2"', '"h1"', 7, "host.name: two hosts are called 'h1'", ""),
        ('"pipe"', '"pipe"\nscheduler = "tls://10.0.0.1:8786"', 1, "leave one of them out", ""),
        ('"pipe"', '"pip"', 2, "expected 'dask' or 'pipe', found 'pip'", "'pipe'"),
    ],
)
def test_a_mistake_is_told_where_it_is_and_as_what_it_is(
    tmp_path: Path, right: str, wrong: str, line: int, said: str, hint: str
) -> None:
    """A key that was written wrong was told as one that is missing, and a second name at the first."""
    path = tmp_path / "hosts.toml"
    path.write_text(GOOD.replace(right, wrong))
    with pytest.raises(InputError) as raised:
        read_hosts_file(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert said in str(raised.value)
    assert hint in (raised.value.hint or "")


def test_addresses_of_ipv6_stand_in_brackets_with_their_interface() -> None:
    (host,) = read_hosts("root@[fe80::1%eth0]:22").host
    assert (host.address, host.user, host.port, host.name) == ("fe80::1%eth0", "root", 22, "fe80--1-eth0")
    with pytest.raises(InputError) as raised:
        read_hosts("fe80::1")
    assert "brackets" in str(raised.value.hint)
