"""Hosts that are network namespaces of this machine, reached by ssh."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts

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
def test_a_run_by_ssh_gives_the_sum_of_its_hosts(tmp_path: Path, transport: str) -> None:
    if transport == "dask":
        pytest.importorskip("distributed", reason="the extra `hosts` is not installed")
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    job = tmp_path / "job.fio"
    job.write_text(JOB.format(file=tmp_path / "data"))
    with NamespaceHosts(2) as hosts:
        path = hosts.hosts_toml(run=f'transport = "{transport}"')
        words = [sys.executable, "-m", "loadstone", "run", str(job), "--hosts", str(path), "--json"]
        words += ["--out", str(tmp_path / "out"), "--no-report", "--no-calibration"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        assert told["total"]["operations"] == 2048 == sum(host["ops"] for host in told["hosts"])
        record = json.loads((tmp_path / "out" / "hosts.json").read_text())
        assert [host["host_name"] for host in record["hosts"]] == ["h1", "h2"]
        for name in hosts.names:
            assert hosts.engines(name) == []
