"""Faults of reaching a host: its link, its ssh server, its keys, its version, its clock, and who answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lab.hosts.trial import kill
from lab.parts import LOADSTONE, loadstone_with

from loadstone.hosts import certificates

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.hosts.trial import HostsTrial


def unreachable(trial: HostsTrial) -> None:
    trial.hosts.link("h2", "down")
    trial.start(run="connect_s = 6")
    trial.finish()
    trial.hosts.link("h2", "up")


def no_server(trial: HostsTrial) -> None:
    trial.hosts.stop_server("h2")
    trial.start()
    trial.finish()
    trial.hosts.start_server("h2")


def no_such_name(trial: HostsTrial) -> None:
    trial.start(hosts={"h2": "port = 2\n"})
    trial.finish()


def key_refused(trial: HostsTrial) -> None:
    other = trial.directory / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    trial.start(hosts={"h2": f'identity_file = "{other}"\n'})
    trial.finish()


def host_key_differs(trial: HostsTrial) -> None:
    known = trial.directory / "known"
    key = trial.directory / "other.pub"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(trial.directory / "other")], check=True
    )
    known.write_text(f"{trial.hosts.address('h2')} {' '.join(key.read_text().split()[:2])}\n")
    options = ["StrictHostKeyChecking=yes", f"UserKnownHostsFile={known}", "LogLevel=ERROR"]
    trial.start(hosts={"h2": "ssh_options = " + json.dumps(options)})
    trial.finish()


def not_installed(trial: HostsTrial) -> None:
    trial.start(hosts={"h2": 'program = ["loadstone-is-not-there"]\n'})
    trial.finish()


def version_differs(trial: HostsTrial) -> None:
    copy = trial.directory / "old"
    copy.mkdir()
    subprocess.run(
        ["cp", "-r", str(Path(os.environ["PYTHONPATH"].split(":")[0]) / "loadstone"), str(copy)], check=True
    )
    (copy / "loadstone" / "version.py").write_text('__version__ = "0.0.9"\n')
    program = loadstone_with(PYTHONPATH=str(copy))
    trial.start(hosts={"h2": "program = " + json.dumps(program)})
    trial.finish()


def clock_off(trial: HostsTrial) -> None:
    shim = trial.directory / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(
        "import time\n_ns = time.time_ns\ntime.time_ns = lambda: _ns() + 3_000_000_000\n"
    )
    base = os.environ.get("PYTHONPATH", "")
    program = loadstone_with(PYTHONPATH=f"{shim}:{base}")
    trial.start(hosts={"h2": "program = " + json.dumps(program)}, seconds=2)
    trial.finish()


def wrong_certificate(trial: HostsTrial) -> None:
    _with_certificate_of(trial, "others/h2")


def another_hosts_certificate(trial: HostsTrial) -> None:
    _with_certificate_of(trial, "certs/h1")


def _with_certificate_of(trial: HostsTrial, whose: str) -> None:
    """Run with that certificate in the files of the second host."""
    make = [*LOADSTONE, "hosts", "certificates", "h1,h2", "--directory"]
    for place in ("certs", "others"):
        subprocess.run([*make, str(trial.directory / place)], check=True, capture_output=True)
    for ending in ("pem", "key"):
        source = trial.directory / f"{whose}.{ending}"
        (trial.directory / "certs" / f"h2.{ending}").write_text(source.read_text())
    trial.start(run=f'certificates = "{trial.directory / "certs"}"\nconnect_s = 8')
    trial.finish()


def certificate_missing(trial: HostsTrial) -> None:
    (trial.directory / "certs").mkdir()
    trial.start(run=f'certificates = "{trial.directory / "certs"}"')
    trial.finish()


def stranger(manner: str) -> Callable[[HostsTrial], None]:
    """Start something else on h2 in the place of an agent."""

    def make(trial: HostsTrial) -> None:
        path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}:{Path(__file__).parents[2]}"
        program = ["env", path, sys.executable, "-m", "lab.hosts.stranger", manner]
        trial.start(run="connect_s = 60", hosts={"h2": "program = " + json.dumps(program)})
        trial.finish()

    return make


def server_hangs(trial: HostsTrial) -> None:
    server = trial.hosts.processes("h2")
    kill(server, signal.SIGSTOP)
    try:
        trial.start(run="connect_s = 40")
        trial.finish()
    finally:
        kill(server, signal.SIGCONT)


def no_scheduler(trial: HostsTrial) -> None:
    """The address of a scheduler is that of an ssh server."""
    directory = trial.directory / "certs"
    make = [*LOADSTONE, "hosts", "certificates", "h1,h2", "--directory"]
    subprocess.run([*make, str(directory)], check=True, capture_output=True)
    address = f"tls://{trial.hosts.address('h2')}:22"
    trial.start(run=f'scheduler = "{address}"\ncertificates = "{directory}"\nconnect_s = 15')
    trial.finish()


def certificate_over(trial: HostsTrial) -> None:
    directory = trial.directory / "certs"
    directory.mkdir()
    authority = certificates.Authority(days=-0.5)
    for name in (certificates.COORDINATOR, "h1", "h2"):
        one = authority.issue(name)
        (directory / "ca.pem").write_text(one.authority)
        (directory / f"{name}.pem").write_text(one.certificate)
        (directory / f"{name}.key").write_text(one.key)
        (directory / f"{name}.key").chmod(0o600)
    trial.start(run=f'certificates = "{directory}"')
    trial.finish()
