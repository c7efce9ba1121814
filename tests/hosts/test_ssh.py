"""Hosts that are network namespaces of this machine, reached by ssh."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pytest
from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts

from tests.support import started
from tests.support.devices import attached

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.root, pytest.mark.slow]
WHY_NOT = namespaces.missing()
JOB = """[readers]
ioengine=psync
rw=randread
bs=4k
size=1m
io_size=4m
filename={file}
"""


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
@pytest.mark.parametrize("transport", ["dask", pytest.param("pipe", marks=pytest.mark.nightly)])
@pytest.mark.in_turn
def test_a_run_by_ssh_gives_the_sum_of_its_hosts(tmp_path: Path, transport: str) -> None:
    if transport == "dask":
        pytest.importorskip("distributed", reason="the extra `hosts` is not installed")
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    job = tmp_path / "job.fio"
    job.write_text(JOB.format(file=tmp_path / "data"))
    with NamespaceHosts(2) as hosts:
        path = hosts.hosts_toml(run=f'transport = "{transport}"')
        words = ["run", str(job), "--hosts", str(path), "--json"]
        done = started.run([*words, "--out", str(tmp_path / "out"), "--no-report", "--no-calibration"])
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        assert told["total"]["operations"] == 2048 == sum(host["ops"] for host in told["hosts"])
        record = json.loads((tmp_path / "out" / "hosts.json").read_text())
        assert [host["host_name"] for host in record["hosts"]] == ["h1", "h2"]
        for name in hosts.names:
            assert hosts.engines(name) == []


WRITES = """[w]
ioengine=psync
rw=randwrite
bs=4k
size=1m
io_size=64k
filename={file}
"""
MIB = 1 << 20


def archive() -> bytes:
    return b"mine/notes".ljust(257, b"\0") + b"ustar  \0" + b"lines that somebody wrote\n" * 2000


@pytest.mark.in_turn
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
@pytest.mark.parametrize("kind", ["a new file and an archive", "two devices"])
def test_what_only_the_second_host_has_under_a_name_is_refused_there(tmp_path: Path, kind: str) -> None:
    """The same path is another file on each host: each looks at its own, and none starts when one refuses."""
    place = tmp_path / "place"
    place.mkdir()
    file = place / "data"
    job = tmp_path / "job.fio"
    job.write_text(WRITES.format(file=file))
    with ExitStack() as stack, NamespaceHosts(2, own_mounts=True) as hosts:
        for name in hosts.names:
            hosts.inside(name, "mount", "-t", "tmpfs", "none", place)
        mine = tmp_path / "mine"
        if kind == "two devices":
            # Of ext4 nothing is left but a copy of its superblock, 8 MiB into the second device.
            mine.write_bytes(bytes(64 * MIB))
            subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "1024", str(mine)], check=True)
            with mine.open("r+b") as opened:
                opened.write(bytes(8 * MIB))
            (tmp_path / "empty").write_bytes(bytes(64 * MIB))
            for name, backing in zip(hosts.names, (tmp_path / "empty", mine), strict=True):
                device = stack.enter_context(attached(backing))
                hosts.inside(name, "ln", "-s", device, file)
        else:
            mine.write_bytes(archive())
            hosts.inside("h2", "cp", mine, file)
        before = blake2b(mine.read_bytes()).digest()
        path = hosts.hosts_toml(run='transport = "pipe"')
        words = ["run", str(job), "--hosts", str(path), "--no-report", "--no-calibration", "--out"]
        done = started.run([*words, str(tmp_path / "out")])
        assert done.returncode == 2, done.stderr
        assert "these would be overwritten" in done.stderr
        assert f"--i-accept-data-loss h2:{file}" in done.stderr
        assert f"h1:{file}" not in done.stderr
        assert hosts.inside("h1", "ls", place).split() == (["data"] if kind == "two devices" else [])
        assert not (tmp_path / "out").exists()
        if kind == "two devices":
            assert blake2b(mine.read_bytes()).digest() == before
            assert not any((tmp_path / "empty").read_bytes())
        else:
            assert (
                hosts.inside("h2", "sha256sum", file, mine).count(
                    hosts.inside("h2", "sha256sum", mine).split()[0]
                )
                == 2
            )
        # It runs with what the hint says, and what it writes is each host's own.
        agreed = started.run([*words, str(tmp_path / "agreed"), "--i-accept-data-loss", f"h2:{file}"])
        assert agreed.returncode in {0, 98}, agreed.stderr
