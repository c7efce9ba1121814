"""`make watch`: a storage server of our own that is watched while it is loaded, and what the verdict says.

A client and a storage server in a network namespace, with a link of 1 Gbit/s between them (tc), or of half
of what this machine moves without a limit where that is less. The server exports its disk over NBD
(qemu-storage-daemon) and is watched by SSH, SNMP and node_exporter.
Each case changes one thing about the server, and knows what the verdict must say then. Needs root.
Removes what it made.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.parts import MissingPartError, Stage, call, missing, until

from loadstone.watch.address import COMMUNITY as COMMUNITY_IN
from loadstone.watch.address import addresses
from loadstone.watch.snmp import Snmp
from loadstone.watch.source import WatchError

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = "198.18.1.2"
CLIENT = "198.18.1.1"
COMMUNITY = "loadstone-lab"
PROGRAMS = (
    "ip",
    "tc",
    "ssh",
    "ssh-keygen",
    "sshd",
    "snmpd",
    "prometheus-node-exporter",
    "qemu-storage-daemon",
    "nbdfuse",
)
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
MOUNTS = """
mount -t tmpfs none /sys/fs/cgroup
for one in cpu cpuacct; do mkdir /sys/fs/cgroup/$one; mount -t cgroup -o $one none /sys/fs/cgroup/$one; done
exec "$@"
"""
"""What a namespace of the network hides of /sys, for the shell that looks at its own CPU limit."""
MIB = 1 << 20
PERIOD_US = 100_000
FILLED_S = 3.0
FILLED_SHARE = 0.5
"""Of what one reader moves without a limit: where the server's CPU is busy, the link would not fill."""


class StorageServer(Stage):
    """A server behind a link, watched in three ways."""

    def __init__(self, runtime_s: int = 15) -> None:
        super().__init__()
        self.runtime_s = runtime_s
        self.run_words: tuple[str | Path, ...] = ()
        """More words of every run."""
        self._ports = iter(range(10809, 10900))

    def build(self, rate: str | None = None) -> None:
        """Make the namespace, the link and whoever answers in it."""
        name = self.folder.name[-8:]
        self.space, self.here, self.there = f"{name}n", f"{name}h", f"{name}t"
        self.groups = [self.cgroup("cpu"), self.cgroup("cpuacct")]
        call("ip", "netns", "add", self.space)
        self._stack.callback(call, "ip", "netns", "del", self.space)
        call("ip", "link", "add", self.here, "type", "veth", "peer", "name", self.there, "netns", self.space)
        call("ip", "addr", "add", f"{CLIENT}/30", "dev", self.here)
        call("ip", "link", "set", self.here, "up")
        inside = ("ip", "netns", "exec", self.space)
        call(*inside, "ip", "link", "set", "lo", "up")
        call(*inside, "ip", "addr", "add", f"{SERVER}/30", "dev", self.there)
        call(*inside, "ip", "link", "set", self.there, "up")
        self.rate = rate
        self.link(rate)
        self._sshd()
        self._snmpd()
        collectors = ("cpu", "diskstats", "loadavg", "meminfo", "netdev", "netclass", "uname", "time")
        self.serve(
            "prometheus-node-exporter",
            f"--web.listen-address={SERVER}:9100",
            "--collector.disable-defaults",
            *(f"--collector.{one}" for one in collectors),
            "--collector.diskstats.device-exclude=^ram",
        )
        for port in (22, 9100):
            until(lambda port=port: listens(port), f"port {port} of the server")
        until(answers_snmp, "the server's SNMP agent")

    def serve(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """Run a program on the server, within its share of CPU."""
        inside = ("ip", "netns", "exec", self.space)
        return self._program("sh", "-c", JOIN, "sh", *self.groups, "--", *inside, *words)

    def link(self, rate: str | None) -> None:
        """Limit the link both ways, or lift the limit."""
        for where, device in ((("ip", "netns", "exec", self.space), self.there), ((), self.here)):
            subprocess.run(
                [*where, "tc", "qdisc", "del", "dev", device, "root"], capture_output=True, check=False
            )
            if rate is not None:
                limit = ("tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
                call(*where, "tc", "qdisc", "add", "dev", device, "root", *limit)

    def rate_to_fill(self, device: str) -> str:
        """Return a rate for the link that this machine fills whatever else it does: 1 Gbit/s at most."""
        self.link(None)
        call("dd", f"if={device}", "of=/dev/null", "bs=256k", "iflag=direct", "count=64")
        began_s, read = time.monotonic(), 0
        while (length_s := time.monotonic() - began_s) < FILLED_S:
            call("dd", f"if={device}", "of=/dev/null", "bs=256k", "iflag=direct", "count=256")
            read += 256 * 256 * 1024
        return f"{max(20, min(1000, round(read * 8 / length_s / 1e6 * FILLED_SHARE)))}mbit"

    def cpu(self, share: float | None) -> None:
        """Limit what all programs of the server may take of one CPU."""
        quota = -1 if share is None else round(share * PERIOD_US)
        (self.groups[0] / "cpu.cfs_quota_us").write_text(str(quota))

    def _sshd(self) -> None:
        configure_sshd(self.folder, f"{SERVER}:22", SERVER)
        self.serve("sh", "-c", MOUNTS, "sh", which("sshd"), "-D", "-f", self.folder / "sshd.conf")

    def _snmpd(self) -> None:
        (self.folder / "snmpd.conf").write_text(f"agentaddress udp:{SERVER}:161\nrocommunity {COMMUNITY}\n")
        self.serve(
            which("snmpd"),
            "-f", "-C", "-c", self.folder / "snmpd.conf", "-Lf", self.folder / "snmpd.log",
            "-p", self.folder / "snmpd.pid",
        )  # fmt: skip

    def export(self, disk: str, mib: int, *, direct: bool = True) -> str:
        """Serve a disk of the server; return the client's device."""
        port = self.offer(disk, direct=direct)
        return self._nbd(self.folder / f"client{port}.nbd", uri_of(port), mib, 4)

    def offer(self, disk: str, *, direct: bool) -> int:
        """Serve a disk of the server; return the port."""
        port = next(self._ports)
        kind = "host_device" if Path(disk).is_block_device() else "file"
        cache = f"cache.direct={'on' if direct else 'off'}"
        self.serve(
            "qemu-storage-daemon",
            "--blockdev", f"driver={kind},node-name=disk,filename={disk},{cache}",
            "--nbd-server", f"addr.type=inet,addr.host={SERVER},addr.port={port}",
            "--export", "type=nbd,id=export,node-name=disk,name=disk,writable=on",
        )  # fmt: skip
        until(lambda: listens(port), "the server's export")
        return port

    def watched_run(self, job: str, *more: str) -> tuple[dict[str, Any], Path]:
        """Run a job with the server watched in all three ways."""
        bundle = self.folder / f"run{len(list(self.folder.glob('run*')))}"
        file = self.folder / "job.fio"
        file.write_text(job)
        os.environ["LOADSTONE_SSH"] = f"ssh -F {self.folder}/ssh.conf"
        os.environ[COMMUNITY_IN] = COMMUNITY
        printed = self.loadstone(
            "run", file, "--json", "--out", bundle, "--watch", f"nas=ssh://root@{SERVER}",
            "--watch", f"nas-snmp=snmp://{SERVER}",
            "--watch", f"nas-node=http://{SERVER}:9100/metrics", *self.run_words, *more,
        )  # fmt: skip
        return json.loads(printed), bundle


def uri_of(port: int) -> str:
    """Return the address of a served disk."""
    return f"nbd://{SERVER}:{port}/disk"


def configure_sshd(home: Path, listens_on: str, known_as: str, more: str = "") -> None:
    """Write keys and settings of a server, with `more` lines, and of a client that knows it by a name."""
    for key in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / f"{key}_key")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (home / "sshd.conf").write_text(
        f"ListenAddress {listens_on}\nHostKey {home}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {home}/user_key.pub\nPasswordAuthentication no\nPermitRootLogin yes\n{more}"
    )
    public = (home / "host_key.pub").read_text().split()
    (home / "known").write_text(f"{known_as} {public[0]} {public[1]}\n")
    (home / "ssh.conf").write_text(
        f"Host *\n IdentityFile {home}/user_key\n IdentitiesOnly yes\n UserKnownHostsFile {home}/known\n"
    )


def which(name: str) -> str:
    """Where a program of the system is."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or name


def answers_snmp() -> bool:
    """Whether the server's agent answers."""
    agent = Snmp(addresses([f"nas=snmp://{SERVER}"], environment={COMMUNITY_IN: COMMUNITY})[0], timeout_s=0.5)
    try:
        agent.connect()
    except WatchError:
        return False
    finally:
        agent.close()
    return True


def listens(port: int) -> bool:
    """Whether something answers at a port of the server."""
    try:
        socket.create_connection((SERVER, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def job(device: str, runtime_s: int, **options: object) -> str:
    """A job file with one job."""
    settings = {
        "filename": device,
        "ioengine": "io_uring",
        "direct": 1,
        "time_based": 1,
        "runtime": runtime_s,
    } | options
    return "[load]\n" + "".join(f"{name}={value}\n" for name, value in settings.items())


@dataclass(frozen=True, slots=True)
class WatchCase:
    """One case: what is staged, and which rules must find it, by name and effect.

    What limits must be the verdict of the whole run, too.
    """

    name: str
    says: str
    stage: Callable[[StorageServer], tuple[dict[str, Any], Path]]
    expected: dict[str, str]


def link(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """A fast disk behind a link that this machine can fill."""
    device = lab.export(lab.loop(128), 128)
    lab.rate = lab.rate or lab.rate_to_fill(device)
    lab.link(lab.rate)
    print(f"link: {lab.rate}", flush=True)
    return lab.watched_run(job(device, lab.runtime_s, rw="randread", bs="256k", iodepth=32))


def cpu(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """The same with the link lifted and a tenth of a CPU for the server."""
    lab.link(None)
    device = lab.export(lab.loop(128), 128)
    lab.cpu(0.1)
    return lab.watched_run(job(device, lab.runtime_s, rw="randread", bs="4k", iodepth=8))


def disk(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """Link and CPU lifted, and a disk that does one I/O after the other."""
    lab.link(None)
    device = lab.export(lab.single_server(64, read="10ms", write="10ms"), 64)
    return lab.watched_run(job(device, lab.runtime_s, rw="randread", bs="4k", iodepth=4))


def cache(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """A server that keeps what it read in memory."""
    lab.link(None)
    device = lab.export(lab.loop(128), 128, direct=False)
    Path(device).read_bytes()
    return lab.watched_run(job(device, lab.runtime_s, rw="randread", bs="16k", iodepth=4))


def amplification(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """A server that writes everything twice: btrfs with raid1."""
    lab.link(None)
    point = lab.btrfs(lab.loop(256, written=False), lab.loop(256, written=False), data="raid1")
    image = point / "image"
    image.touch()
    call("chattr", "+C", image)
    with image.open("wb") as out:
        for _ in range(64):
            out.write(os.urandom(MIB))
    call("sync", "-f", image)
    device = lab.export(str(image), 64)
    accept = ("--i-accept-data-loss", device)
    return lab.watched_run(job(device, lab.runtime_s, rw="randwrite", bs="64k", iodepth=4), *accept)


def background(lab: StorageServer) -> tuple[dict[str, Any], Path]:
    """A server that trims another part of its disk meanwhile."""
    lab.link(None)
    own = lab.loop(256)
    device = lab.export(own, 256)
    timer = threading.Timer(lab.runtime_s / 2, call, ("blkdiscard", "-f", "-o", "128M", "-l", "128M", own))
    timer.start()
    try:
        return lab.watched_run(job(device, lab.runtime_s, rw="randread", bs="16k", iodepth=4, size="128m"))
    finally:
        timer.join()


CASES = (
    WatchCase("link", "the link carries less than this machine moves", link, {"storage_link": "limited"}),
    WatchCase("cpu", "the server has a tenth of a CPU", cpu, {"storage_cpu": "limited"}),
    WatchCase("disk", "the disk does one I/O after the other", disk, {"storage_disk": "note"}),
    WatchCase("cache", "the server's memory has it all", cache, {"storage_memory_cache": "limited"}),
    WatchCase(
        "amplification", "the server writes two copies", amplification, {"write_amplification": "note"}
    ),
    WatchCase("background", "the server trims meanwhile", background, {"background_work": "suspect"}),
)
DEMO = ("link", "cpu", "disk")
"""What sets the number: told apart by the same three ways of watching."""
OWN = (
    "storage_link",
    "storage_cpu",
    "storage_memory_cache",
    "write_amplification",
    "background_work",
    "storage_disk",
)
DECIDING = ("storage_link", "storage_cpu", "storage_memory_cache")


def why_missing() -> str | None:
    """Why nothing can be staged here, or None."""
    absent = [name for name in PROGRAMS if which(name) == name]
    return missing() or (f"not installed: {', '.join(absent)}" if absent else None)


def staged(
    case: WatchCase, storage: StorageServer, keep: Path | None = None, rate: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Stage a case; return its result, and what is not as it must be."""
    with storage as lab:
        lab.build(rate)
        result, bundle = case.stage(lab)
        if keep is not None:
            shutil.copytree(bundle, keep / case.name, dirs_exist_ok=True)
    return result, wrong(case, result)


def wrong(case: WatchCase, result: dict[str, Any]) -> list[str]:
    """Return what the verdict of a case says and must not, or does not say and must."""
    verdict = result["verdict"]
    effects = {cause["rule"]: cause["effect"] for cause in verdict["causes"] if cause["rule"] in OWN}
    problems = [
        f"{rule} must be {effect}, and is {effects.get(rule, 'not found')}"
        for rule, effect in case.expected.items()
        if effects.get(rule) != effect
    ]
    problems += [
        f"{rule} is {effect}, and must not be"
        for rule, effect in effects.items()
        if rule in DECIDING and effect == "limited" and rule not in case.expected
    ]
    deciding = next((rule for rule, effect in case.expected.items() if effect == "limited"), None)
    if deciding is not None and (verdict["kind"] != "limited" or verdict["causes"][0]["rule"] != deciding):
        problems.append(f"the verdict must be limited by {deciding}, and is {verdict['kind']}")
    return problems


def told(case: WatchCase, result: dict[str, Any]) -> str:
    """Write a case as a few lines: what was staged, the figure, the verdict, the server as each way saw."""
    verdict, total = result["verdict"], result["total"]
    lines = [
        f"{case.name}: {case.says}",
        f"  {total['iops']:,.0f} IOPS, {total['bandwidth_bytes_per_s'] / 1e6:.1f} MB/s",
    ]
    lines.append(f"  {verdict['kind']} ({verdict['confidence']:.0%}): {verdict['sentences']}")
    lines += [
        f"  {one['rule']} ({one['effect']}): {one['text']}" for one in verdict["causes"] if one["rule"] in OWN
    ]
    for name, host in result["watched"].items():
        known = host["quantities"]
        shown = {
            key: known[key]["mean"]
            for key in ("cpu_percent", "cpu_of_limit_percent", "net_tx_bytes_per_s", "disks_read_bytes_per_s")
            if key in known
        }
        cost = host["cpu_share_here"] or 0.0
        cpu_share = host["cpu_share_there"]
        lines.append(
            f"  {name}: {host['rows']} rows, {', '.join(f'{key} {one:.3g}' for key, one in shown.items())}; "
            f"watching took {cost:.2%} of a CPU here{'' if cpu_share is None else f', {cpu_share:.2%} there'}"
        )
    return "\n".join(lines)


def is_as_expected(
    case: WatchCase, storage: StorageServer, keep: Path | None, rate: str | None = None
) -> bool:
    """Stage a case and print what came of it; one that cannot be staged here is left out."""
    began_s = time.monotonic()
    try:
        result, problems = staged(case, storage, keep, rate)
    except MissingPartError as error:
        print(f"{case.name}: left out: {error}")
        return True
    print(told(case, result))
    for problem in problems:
        print(f"  WRONG: {problem}")
    print(f"  ({time.monotonic() - began_s:.0f} s)\n", flush=True)
    return not problems


def main() -> int:
    """Run the demo, or the cases that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(DEMO), help=", ".join(one.name for one in CASES))
    parser.add_argument("--all", action="store_true", help="every case")
    parser.add_argument("--seconds", type=int, default=15, help="length of each run")
    parser.add_argument("--rate", help="of the link, as tc takes it; else what this machine can fill")
    parser.add_argument("--keep", type=Path, help="directory for the bundles and their reports")
    options = parser.parse_args()
    absent = why_missing()
    if absent is not None:
        print(f"nothing is staged: {absent}")
        return 1
    failed = 0
    for case in CASES:
        if not options.all and case.name not in options.cases:
            continue
        storage = StorageServer(options.seconds)
        failed += not is_as_expected(case, storage, options.keep, options.rate)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
