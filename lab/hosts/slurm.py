"""A Slurm of two nodes that are network namespaces of this machine: `python -m lab.hosts.slurm`.

Starts munged, slurmctld and a slurmd on each node, then does what docs/hosts.md says of Slurm: a scheduler
and workers by `srun`, and a run on them. Needs root and the packages slurm-wlm and munge. What is made
is below one directory and ends with this process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.programs import Programs
from lab.parts import LOADSTONE

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = {"srun": "slurm-wlm", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge"}
JOB = "[readers]\nioengine=psync\nrw=randread\nbs=4k\nsize=1m\nio_size=4m\nfilename={file}\n"
PORTS = 10_000
OPERATIONS = 1024
"""Of one host."""


def missing() -> str | None:
    """Return why Slurm cannot be had here; None: it can."""
    if (why := namespaces.missing()) is not None:
        return why
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=path) is None:
            return f"{program} is not installed (package {package})"
    return None


class Slurm(Programs):
    """While entered, `srun` starts programs on the nodes."""

    def __init__(self, hosts: NamespaceHosts) -> None:
        super().__init__(Path())
        self.hosts = hosts

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="loadstone-slurm-"))
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.directory / "slurm.conf")}

    def _answers(self, words: Sequence[str], output: str) -> bool:
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment, check=False)
        return output in done.stdout

    def _begin(self) -> None:
        key, munge = self.directory / "munge.key", self.directory / "munge.socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.directory.chmod(0o755)
        nodes = "\n".join(
            f"NodeName={name} NodeAddr={self.hosts.address(name)} CPUs=2 RealMemory=100 State=UNKNOWN"
            for name in self.hosts.names
        )
        (self.directory / "state").mkdir()
        (self.directory / "slurm.conf").write_text(
            f"ClusterName=loadstone\nSlurmctldHost={socket.gethostname()}({self.hosts.coordinator})\n"
            "SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nCredType=cred/munge\n"
            # One of two that run at the same time would talk to the other's controller.
            f"AuthInfo=socket={munge}\nSlurmctldPort={PORTS + os.getpid() % PORTS}\n"
            f"StateSaveLocation={self.directory}/state\nSlurmdSpoolDir={self.directory}/spool-%n\n"
            f"SlurmctldPidFile={self.directory}/slurmctld.pid\nSlurmdPidFile={self.directory}/slurmd-%n.pid\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nMpiDefault=none\n"
            "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
            f"ReturnToService=2\nSlurmctldTimeout=300\nSlurmdTimeout=300\nMessageTimeout=100\n{nodes}\n"
            "PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES:4 MaxTime=INFINITE State=UP\n"
        )
        self.start(
            "munged", "--foreground", "--force", f"--socket={munge}", f"--key-file={key}",
            f"--log-file={self.directory}/munge.log", f"--pid-file={self.directory}/munge.pid",
            f"--seed-file={self.directory}/munge.seed",
        )  # fmt: skip
        encode = ["munge", f"--socket={munge}", "--no-input"]
        self.wait_until(lambda: self._answers(encode, "MUNGE:"), "munged")
        self.start("slurmctld", "-D")
        for name in self.hosts.names:
            inside = [*self.hosts.argv(name), "unshare", "--uts", "sh", "-c"]
            self.start(*inside, f"hostname {name}; exec slurmd -D -N {name}")
        nodes_of = ["sinfo", "--noheader", "--format=%D %t"]
        idle = f"{len(self.hosts.names)} idle"
        self.wait_until(lambda: self._answers(nodes_of, idle), "nodes")


class SrunScheduler(Slurm):
    """While entered, hosts files with `settings` find the hosts' workers at a scheduler that `srun` started.

    As docs/hosts.md says: certificates, the scheduler on the first node, a worker on each.
    """

    def _begin(self) -> None:
        super()._begin()
        certificates = [*LOADSTONE, "hosts", "certificates", ",".join(self.hosts.names)]
        subprocess.run(
            [*certificates, "--directory", str(self.certificates)], check=True, capture_output=True
        )
        head = self.hosts.names[0]
        dask = [sys.executable, "-m", "dask"]
        on_head = ["srun", "--nodes=1", "--ntasks=1", f"--nodelist={head}", "--overlap"]
        at = ["--host", self.hosts.address(head), "--port", "8786", "--no-dashboard"]
        self.start(*on_head, *dask, "scheduler", *at, *self._own("coordinator"))
        words = [*dask, "worker", self.address, "--no-nanny", "--nthreads", "1", "--memory-limit", "0"]
        words += ["--no-dashboard", "--name", "$SLURMD_NODENAME"]
        words += ["--local-directory", f"{self.directory}/$SLURMD_NODENAME", *self._own("$SLURMD_NODENAME")]
        on_all = ["srun", f"--nodes={len(self.hosts.names)}", "--ntasks-per-node=1", "--overlap", "sh", "-c"]
        self.start(*on_all, " ".join(words))

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"DASK_CONFIG": f"{self.certificates}/dask.yaml"}

    @property
    def address(self) -> str:
        return f"tls://{self.hosts.address(self.hosts.names[0])}:8786"

    @property
    def certificates(self) -> Path:
        return self.directory / "certificates"

    @property
    def settings(self) -> str:
        """Lines of [run] of a hosts file."""
        return f'scheduler = "{self.address}"\ncertificates = "{self.certificates}"'

    def _own(self, name: str) -> list[str]:
        files = self.certificates
        words = ["--tls-ca-file", f"{files}/ca.pem", "--tls-cert", f"{files}/{name}.pem"]
        return [*words, "--tls-key", f"{files}/{name}.key"]


def run_by_srun(slurm: SrunScheduler, place: Path) -> dict[str, Any]:
    """Run on the hosts of a scheduler that `srun` started. Return what it printed."""
    (place / "data").write_bytes(bytes(1 << 20))
    (place / "job.fio").write_text(JOB.format(file=place / "data"))
    lines = ["[run]", slurm.settings, "connect_s = 300"]
    for name in slurm.hosts.names:
        lines += ["[[host]]", f'name = "{name}"', f'directory = "{place}/bundles-{name}"']
    (place / "hosts.toml").write_text("\n".join(lines) + "\n")
    words = [*LOADSTONE, "run", str(place / "job.fio"), "--json"]
    words += ["--hosts", str(place / "hosts.toml")]
    words += ["--out", str(place / "out"), "--no-report", "--no-calibration"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{done.stderr}\n{slurm.log_text()[-3000:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def main() -> int:
    if (why := missing()) is not None:
        print(f"not tried: {why}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with (
        NamespaceHosts(2, name="hostsslurm") as hosts,
        SrunScheduler(hosts) as slurm,
        tempfile.TemporaryDirectory() as directory,
    ):
        document = run_by_srun(slurm, Path(directory))
    ops = {host["name"]: host["ops"] for host in document["hosts"]}
    print(f"{document['total']['operations']} I/Os of {ops}")
    return 0 if ops == dict.fromkeys(ops, OPERATIONS) and len(ops) == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
