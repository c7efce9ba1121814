"""A run whose scheduler and workers `srun` started, on a Slurm of two nodes that are namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lab.hosts import slurm
from lab.hosts.namespaces import NamespaceHosts

if TYPE_CHECKING:
    from pathlib import Path

WHY_NOT = slurm.missing()


@pytest.mark.root
@pytest.mark.nightly
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_a_run_on_workers_that_srun_started(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra `hosts` is not installed")
    with NamespaceHosts(2, name="slurm") as hosts, slurm.SrunScheduler(hosts) as nodes:
        told = slurm.run_by_srun(nodes, tmp_path)
    assert {host["name"]: host["ops"] for host in told["hosts"]} == dict.fromkeys(
        ("h1", "h2"), slurm.OPERATIONS
    )
    assert told["total"]["operations"] == 2 * slurm.OPERATIONS
