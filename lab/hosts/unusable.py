"""Faults of what a run uses: targets, room for bundles, and storage that is watched."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from lab.hosts.trial import JOB, WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.hosts.trial import HostsTrial


def watched_clock_off(trial: HostsTrial) -> None:
    """Watch a host by ssh whose `date` is three seconds ahead of everybody's."""
    shim = trial.directory / "date"
    shim.write_text('#!/bin/sh\nexec /bin/date -d "3 seconds" "$@"\n')
    shim.chmod(0o755)
    client = trial.directory / "client"
    client.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"path = 'PATH={trial.directory}:$PATH; export PATH; '\n"
        f"words = ['ssh', '-i', {str(trial.hosts.directory / 'key')!r}, '-o', 'StrictHostKeyChecking=no',\n"
        f"    '-o', 'UserKnownHostsFile={trial.hosts.directory / 'known'}', *sys.argv[1:-1]]\n"
        "os.execvp('ssh', [*words, path + sys.argv[-1]])\n"
    )
    client.chmod(0o755)
    trial.start(
        "--watch",
        f"nas=ssh://root@{trial.hosts.address('h2')}",
        env={"LOADSTONE_SSH": str(client)},
        seconds=4,
    )
    trial.finish()
    result = trial.out / "result.json"
    if result.exists():
        watched = json.loads(result.read_text())["watched"]["nas"]
        off_s, error_s = watched["clock_offset_s"], watched["clock_error_s"]
        trial.notes.append(f"clock of nas off by {off_s:.2f} s ± {error_s:.2f} s")


def disk_full(trial: HostsTrial) -> None:
    small = trial.directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "loadstone-hosts", str(small)], check=True)
    try:
        trial.start(hosts={"h2": f'directory = "{small}"\n'}, seconds=20)
        trial.finish()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


def no_room_here(trial: HostsTrial) -> None:
    trial.directory.joinpath("out").mkdir()
    (trial.out / "something").write_text("kept")
    trial.start()
    trial.finish()


def mounted_on_one(trial: HostsTrial) -> None:
    trial.start(job="[w]\nioengine=psync\nrw=write\nbs=4k\nsize=1m\nfilename=/proc/version\n")
    trial.finish()


def same_target_written(trial: HostsTrial) -> None:
    trial.start(job=WRITERS)
    trial.finish()


def missing_target(trial: HostsTrial) -> None:
    trial.start(job="[r]\nioengine=psync\nrw=read\nfilename=/dev/nosuchdisk\nsize=1m\n")
    trial.finish()


@contextlib.contextmanager
def serves(trial: HostsTrial, *words: str) -> Iterator[None]:
    """While entered, a program runs on h2."""
    process = subprocess.Popen(
        [*trial.hosts.argv("h2"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()


def wrong_community(trial: HostsTrial) -> None:
    conf = trial.directory / "snmpd.conf"
    conf.write_text(f"agentaddress udp:{trial.hosts.address('h2')}:161\nrocommunity right\n")
    with serves(trial, "/usr/sbin/snmpd", "-f", "-C", "-c", str(conf), "-Lf", "/dev/null"):
        watch = ["--watch", f"nas=snmp://{trial.hosts.address('h2')}"]
        trial.start(*watch, env={"LOADSTONE_SNMP_COMMUNITY": "wrong"})
        trial.finish()


def wrong_snmp_password(trial: HostsTrial) -> None:
    conf = trial.directory / "snmpd.conf"
    conf.write_text(
        f"agentaddress udp:{trial.hosts.address('h2')}:161\n"
        "createUser watcher SHA-256 right-password AES right-password\nrouser watcher\n"
    )
    secrets = trial.directory / "secrets.toml"
    secrets.write_text(
        '[nas]\nuser = "watcher"\nauth_password = "wrong-password"\nprivacy_password = "right-password"\n'
    )
    secrets.chmod(0o600)
    with serves(
        trial, "env", f"SNMP_PERSISTENT_DIR={trial.directory}",
        "/usr/sbin/snmpd", "-f", "-C", "-c", str(conf), "-Lf", "/dev/null",
    ):  # fmt: skip
        watch = ["--watch", f"nas=snmp://{trial.hosts.address('h2')}"]
        trial.start(*watch, "--watch-secrets", str(secrets))
        trial.finish()


def watched_key_refused(trial: HostsTrial) -> None:
    other = trial.directory / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    known = trial.directory / "known"
    words = f"ssh -i {other} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile={known}"
    trial.start("--watch", f"nas=ssh://root@{trial.hosts.address('h2')}", env={"LOADSTONE_SSH": words})
    trial.finish()


def storage_link_short(trial: HostsTrial) -> None:
    """Both hosts read a disk that h2 serves over its link; the link is down for 5 s."""
    address = f"nbd://{trial.hosts.address('h2')}:10809"
    with serves(trial, "nbdkit", "-f", "-i", trial.hosts.address("h2"), "memory", "64M"):
        file = trial.directory / "client.nbd"
        file.touch()
        client = subprocess.Popen(["nbdfuse", str(file), address])
        device = ""
        try:
            trial.reach(lambda: file.stat().st_size > 0)
            words = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
            device = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
            job = JOB.replace("{file}", device) + "direct=1\n"
            trial.start(job=job, seconds=30, run="lost_after_s = 20")
            trial.reach(trial.running)
            trial.hosts.link("h2", "down")
            time.sleep(5)
            trial.hosts.link("h2", "up")
            trial.finish()
        finally:
            trial.hosts.link("h2", "up")
            if device:
                subprocess.run(["losetup", "--detach", device], check=False)
            subprocess.run(["fusermount", "-u", "-z", str(file)], check=False)
            client.kill()
            client.wait()
    if (trial.out / "result.json").exists():
        total = json.loads((trial.out / "result.json").read_text())["total"]
        trial.notes.append(f"slowest I/O {total['latency_ns']['max'] / 1e9:.1f} s")
