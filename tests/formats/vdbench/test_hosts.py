"""Hosts are this machine only where the user says so."""

from __future__ import annotations

import pytest

from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench import ParameterFile, ParameterText, expand, lower, map_hosts, read
from loadstone.workload.other_hosts import refuse_elsewhere

HOSTS = """
hd=default,shell=ssh,user=root
hd=one,system=192.0.2.1
hd=two,system=192.0.2.2
sd=sd1,lun=/dev/sdb,host=one
sd=sd2,lun=/dev/sdb,host=two
wd=wd1,sd=sd*
rd=rd1,wd=wd1,iorate=max,elapsed=4
"""


def parsed(text: str = HOSTS) -> ParameterFile:
    return read([ParameterText(text.encode())])


def notes(file: ParameterFile) -> list[str]:
    return [note.text for note in lower(file, expand(file)[0]).notes if note.kind == "changed"]


@pytest.mark.parametrize("words", [["one", "two"], ["192.0.2.1", "192.0.2.2"], ["*"], ["192.0.2.*"]])
def test_hosts_that_are_here_run_as_one(words: list[str]) -> None:
    mapping = dict.fromkeys(words, "localhost") | {"sd1": "/data/a", "sd2": "/data/b"}
    file, rest = map_hosts(parsed(), mapping)
    assert rest == {"sd1": "/data/a", "sd2": "/data/b"}
    said = notes(file.map_luns(rest))
    assert said[0] == "as asked: hd=one, two are this machine"
    assert "hd=one, two run here as one" in said[2]


def test_a_host_that_is_left_is_refused() -> None:
    file, _ = map_hosts(parsed(), {"one": "localhost", "sd1": "/data/a"})
    with pytest.raises(RefusedError, match=r"<text>:4: hd: hd=two is another host"):
        refuse_elsewhere(lower(file, expand(file)[0]))


def test_one_path_of_two_hosts_is_not_taken_for_one_device() -> None:
    with pytest.raises(InputError, match=r":6: lun: sd=sd1 and sd=sd2 are /dev/sdb of two hosts"):
        map_hosts(parsed(), {"*": "localhost"})
    file, _ = map_hosts(parsed(), {"*": "localhost", "/dev/sdb": "/dev/sdz"})
    assert all(host.is_local for host in file.hosts)


def test_a_host_cannot_be_another_host() -> None:
    with pytest.raises(InputError, match="hd=one can only be localhost"):
        map_hosts(parsed(), {"one": "192.0.2.9"})


def test_what_has_no_effect_stays_for_the_luns() -> None:
    file = parsed("sd=sd1,lun=/data/a\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n")
    assert map_hosts(file, {"*": "localhost"}) == (file, {})


def test_a_file_of_the_windows_code_page_is_read() -> None:
    text = "* 50% – read\nsd=sd1,lun=/data/a\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n"
    assert len(read([ParameterText(text.encode("cp1252"))]).runs) == 1
