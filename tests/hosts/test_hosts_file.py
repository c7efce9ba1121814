"""Mistakes in `hosts.toml` and in the words of `--hosts`: what is told, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, each
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
        ('name = "h2"', 'nme = "h2"', 7, "host.nme: is not a known key", "'name'"),
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


SEVERAL = """[run]
transport = "pip"
lost_after_s = 0
[defaults]
prot = 22
[[host]]
nmae = "h1"
address = "10.0.0.11:22"
[[host]]
name = "h2"
port = 70000
[[host]]
name = "h3"
launch = "local"
user = "root"
[[host]]
name = "h3"
[[shared]]
name = "lun"
targets = { h2 = "/dev/sdb", h7 = "/dev/sdc" }
"""


def test_mistakes_of_all_kinds_are_told_in_one_round(tmp_path: Path) -> None:
    """Each look told one. A key of the defaults is told of the defaults, and not of each host."""
    path = tmp_path / "hosts.toml"
    path.write_text(SEVERAL)
    with pytest.raises(InputError) as raised:
        read_hosts_file(path)
    mistakes = each(raised.value)
    assert [one.where.line for one in mistakes if one.where] == [2, 3, 5, 7, 8, 11, 15, 17]


def test_words_that_are_no_hosts_are_told_together() -> None:
    with pytest.raises(InputError) as raised:
        read_hosts("a b,c,d:x,fe80::1")
    assert len(each(raised.value)) == 3


def test_addresses_of_ipv6_stand_in_brackets_with_their_interface() -> None:
    (host,) = read_hosts("root@[fe80::1%eth0]:22").host
    assert (host.address, host.user, host.port, host.name) == ("fe80::1%eth0", "root", 22, "fe80--1-eth0")
    with pytest.raises(InputError) as raised:
        read_hosts("fe80::1")
    assert "brackets" in str(raised.value.hint)


def refusal_of(folder: Path, text: str) -> str:
    path = folder / "hosts.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_hosts_file(path)
    return str(raised.value).removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('transport = "pipe"\ncertificates = "c"', "run: certificates has no effect with transport"),
        ('transport = "pipe"\ncoordinator = "10.0.0.1"', "run: coordinator has no effect with transport"),
        ('transport = "pipe"\ntls = true', "run: tls has no effect with transport"),
        ('tls = false\ncertificates = "c"', "run: certificates has no effect with tls = false"),
        ('scheduler = "tls://a:1"\ncoordinator = "b"', "run: coordinator has no effect with a scheduler"),
        ('scheduler = "tcp://a:1"', "run: tcp:// has no TLS"),
        ('scheduler = "tls://a:1"\ntls = false', "run: tls:// needs TLS"),
        ('coordinator = "10.0.0.1:99"', "2: run.coordinator: expected a name or an address without a port"),
        ('coordinator = "[fe80::1]:99"', "2: run.coordinator: expected a name or an address without a port"),
    ],
)
def test_a_setting_without_effect_is_refused(tmp_path: Path, settings: str, said: str) -> None:
    """`transport = "pipe"` ignored certificates, and a coordinator's port went where nobody looked."""
    assert said in refusal_of(tmp_path, GOOD.replace('transport = "pipe"', settings))


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ('address = "-oProxyCommand=x"', "5: host.address: expected a name or an address without a port"),
        ('address = "tls://10.0.0.11:8786"', "5: host.address: expected a name or an address without a port"),
        ('address = "10.0.0.11:22"', "5: host.address: expected a name or an address without a port"),
        ('launch = "local"\nuser = "root"', "6: host.user: user has no effect on a host with launch"),
    ],
)
def test_a_host_says_nothing_that_is_not_done(tmp_path: Path, host: str, said: str) -> None:
    assert refusal_of(tmp_path, GOOD.replace('address = "10.0.0.11"', host)).startswith(said)


def test_hosts_of_this_machine_alone_need_no_way_to_speak(tmp_path: Path) -> None:
    refusal = refusal_of(tmp_path, '[run]\ntls = false\n[[host]]\nname = "a"\nlaunch = "local"\n')
    assert refusal.startswith("2: run.tls: tls has no effect where all hosts have launch")


def test_an_address_of_ipv6_may_stand_in_brackets_and_a_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_bytes(b'\xef\xbb\xbf[run]\ncoordinator = "[fe80::1]"\n[[host]]\nname = "h1"\n')
    assert read_hosts_file(path).run.coordinator == "fe80::1"


@pytest.mark.parametrize(
    "word", ["root:Geheim@h1", "h2,root:Geheim@h1", "root:Geheim@[::1]:22", "root:Geheim@", "root:Geheim@h1,"]
)
def test_a_password_in_hosts_is_refused_and_not_repeated(word: str) -> None:
    """It went to ssh as the user's name, in words that every user of the host can read."""
    with pytest.raises(InputError) as raised:
        read_hosts(word)
    assert "the address has a password" in str(raised.value)
    assert "Geheim" not in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("line", ['user = "root:Geheim"', 'address = "root:Geheim@10.0.0.11"'])
def test_a_password_in_a_hosts_file_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(GOOD.replace('address = "10.0.0.11"', line))
    with pytest.raises(InputError) as raised:
        read_hosts_file(path)
    assert f"{path}:5: host.{line.split(maxsplit=1)[0]}: the address has a password" in str(raised.value)
    assert "Geheim" not in f"{raised.value} {raised.value.hint}"


def test_an_address_has_no_user(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(GOOD.replace("10.0.0.11", "root@10.0.0.11"))
    with pytest.raises(InputError, match="give the user with the key user"):
        read_hosts_file(path)
