# ruff: noqa: ARG001, E501 - each way to stage takes the same three; lines of files
"""Hosts as people have them, drawn from a seed: `python -m lab.hosts.odd --seed 163001 --draws 40`.

A draw is a transport and one thing that is unusual about a host, about ssh, or about who started the run:
a login shell that is none of POSIX, a banner on stdout, another locale, a jump host, a full disk of temporary
files, a terminal that goes. Known for each is whether the run must work, or what must be said. In any case
it ends in time, says no traceback, and leaves no process. Needs root and sshd.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab.hosts import namespaces
from lab.hosts.namespaces import NamespaceHosts
from lab.hosts.trial import JOB, HostsTrial
from lab.parts import LOADSTONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASKED = '"$SSH_ORIGINAL_COMMAND"'
WORKS, REFUSED, ENDED = "works", "refused", "ended"


@dataclass
class OddHost:
    """One thing that is unusual."""

    name: str
    force: str = ""
    """What an ssh server runs in the place of what is asked."""
    environment: dict[str, str] = field(default_factory=dict)
    run: str = ""
    hosts: dict[str, str] = field(default_factory=dict)
    ssh_options: tuple[str, ...] = ()
    job: str = JOB
    env: dict[str, str] = field(default_factory=dict)
    must: str = WORKS
    terminal: int = -1
    """The other end of the terminal it was started on."""
    says: str = ""
    during: Callable[[HostsTrial], None] | None = None
    around: Callable[[OddHost, NamespaceHosts, Path], contextlib.AbstractContextManager[None]] | None = None


def shell(program: str) -> OddHost:
    return OddHost(f"login shell {program}", f"{program} -c {ASKED}")


def noise(name: str, before: str) -> OddHost:
    return OddHost(f"noise: {name}", f"/bin/sh -c '{before}; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"'")


@contextlib.contextmanager
def tmpfs(path: Path, size: str, *, full: bool) -> Iterator[None]:
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path], check=True)
    try:
        if full:
            with contextlib.suppress(OSError), (path / "filler").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=False)


@contextlib.contextmanager
def full_tmp(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    with tmpfs(folder / "tmp", "1m", full=True):
        one.environment["TMPDIR"] = str(folder / "tmp")
        yield


@contextlib.contextmanager
def full_here(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    """The coordinator's disk has no room for what comes from the hosts."""
    with tmpfs(folder / "small", "192k", full=False):
        yield


@contextlib.contextmanager
def own_directory(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    match one.name:
        case "directory with blanks and quotes":
            path = folder / 'it\'s a "place"'
        case "directory is a link":
            (folder / "real").mkdir()
            path = folder / "link"
            path.symlink_to(folder / "real")
        case "directory is a file":
            path = folder / "file"
            path.write_text("x")
        case _:
            path = Path("/proc/nothing")
    one.hosts["h2"] = f"directory = '''{path}'''"
    yield


@contextlib.contextmanager
def few_cpus(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    one.force = f"taskset -c 1 /bin/sh -c {ASKED}"
    yield


@contextlib.contextmanager
def jump(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    """h2 is reached through h1 alone."""
    key, known = hosts.directory / "key", hosts.directory / "known"
    words = f"ssh -i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile={known} -W %h:%p"
    options = [
        "StrictHostKeyChecking=no", f"UserKnownHostsFile={known}", "LogLevel=ERROR", "IdentitiesOnly=yes",
        f"ProxyCommand={words} root@{hosts.address('h1')}",
    ]  # fmt: skip
    one.hosts["h2"] = f"ssh_options = {options!r}".replace("'", '"')
    yield


@contextlib.contextmanager
def master(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    one.ssh_options = ("ControlMaster=auto", f"ControlPath={folder}/%C", "ControlPersist=60")
    try:
        yield
    finally:
        for path in folder.glob("*"):
            if path.is_socket():
                subprocess.run(
                    ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "x"], capture_output=True, check=False
                )


@contextlib.contextmanager
def twice(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    one.hosts["h2"] = (
        f'[[host]]\nname = "again"\naddress = "{hosts.address("h1")}"\ndirectory = "{folder}/again"'
    )
    yield


@contextlib.contextmanager
def this_machine(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    """A third host is this machine, by ssh."""
    conf = folder / "sshd"
    conf.write_text(
        f"ListenAddress {hosts.coordinator}\nHostKey {hosts.directory / 'host_key'}\nUsePAM no\nPidFile none\n"
        f"AuthorizedKeysFile {hosts.directory / 'authorized_keys'}\nStrictModes no\nPermitRootLogin yes\n"
    )
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", conf], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    one.hosts["h2"] = f'[[host]]\nname = "self"\naddress = "{hosts.coordinator}"\ndirectory = "{folder}/self"'
    try:
        yield
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def ipv6(one: OddHost, hosts: NamespaceHosts, folder: Path) -> Iterator[None]:
    """h2 is reached by an IPv6 address alone."""
    bridge = next(
        words[3] for words in hosts._made if words[:3] == ["ip", "link", "del"] and words[3].startswith("b")
    )
    subprocess.run(["ip", "-6", "addr", "add", "fd77::1/64", "dev", bridge, "nodad"], check=True)
    hosts.run("h2", "ip", "-6", "addr", "add", "fd77::2/64", "dev", "eth0", "nodad")
    conf = folder / "sshd6"
    conf.write_text(
        f"ListenAddress [fd77::2]\nHostKey {hosts.directory / 'host_key'}\nUsePAM no\nPidFile none\n"
        f"AuthorizedKeysFile {hosts.directory / 'authorized_keys'}\nStrictModes no\nPermitRootLogin yes\n"
    )
    server = subprocess.Popen(
        [*hosts.argv("h2"), "/usr/sbin/sshd", "-D", "-e", "-f", str(conf)], stderr=subprocess.DEVNULL
    )
    time.sleep(0.5)
    one.environment["ADDRESS_OF_H2"] = "[fd77::2]"
    try:
        yield
    finally:
        server.kill()
        server.wait()
        subprocess.run(["ip", "-6", "addr", "del", "fd77::1/64", "dev", bridge], check=False)
        hosts.run("h2", "ip", "-6", "addr", "del", "fd77::2/64", "dev", "eth0")


def hang_up(trial: HostsTrial) -> None:
    trial.reach(trial.running)
    assert trial.process is not None
    trial.process.send_signal(signal.SIGHUP)


def suspended(trial: HostsTrial) -> None:
    trial.reach(trial.running)
    pids = trial.coordinator()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(5)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)


def stepped(trial: HostsTrial) -> None:
    """A host is paused while it is armed: its start has passed when it goes on."""
    trial.reach(lambda: trial.armed("h2"))
    pids = trial.hosts.agents("h2")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


MANY = "[global]\nioengine=psync\nrw=randread\nbs=4k\ntime_based\nruntime={seconds}\n" + "".join(
    f"[t{number}]\nsize=64k\nfilename={{file}}\noffset={number * 4096}\n" for number in range(120)
)


def kinds() -> list[OddHost]:
    """Return all kinds, each new."""
    return [
        shell("/usr/bin/fish"), shell("/bin/csh"), shell("/bin/tcsh"), shell("/usr/bin/rbash"), shell("/bin/dash"),
        noise("a banner", "echo Welcome to the machine"),
        noise("no newline", "printf Hello"),
        noise("JSON", 'echo "{\\\\"event\\\\": 1}"'),
        noise("bytes", "head -c 3000 /dev/urandom"),
        noise("much", "yes | head -c 3000000"),
        noise("on stderr", "echo mail waiting >&2"),
        noise("slow profile", "sleep 4"),
        OddHost("few files", "/bin/sh -c 'ulimit -n 40; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"'", must=REFUSED, says="h2: .*open files"),
        noise("umask", "umask 0777"),
        noise("no home", "unset HOME; cd /"),
        noise("home cannot be written", "HOME=/proc; export HOME"),
        noise("gone directory", "d=$(mktemp -d); cd $d; rmdir $d"),
        OddHost("little memory", "/bin/sh -c 'ulimit -v 400000; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"'", must=REFUSED, says="h2: .*the limit on address space"),
        OddHost("locale that is not there", environment={"LC_ALL": "xx_YY.UTF-8"}),
        OddHost("locale C", environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        OddHost("locale of Turkey", environment={"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR"}),
        OddHost("Python warns", environment={"PYTHONWARNINGS": "always", "PYTHONVERBOSE": "1"}),
        OddHost("Python is unbuffered and optimised", environment={"PYTHONUNBUFFERED": "1", "PYTHONOPTIMIZE": "2"}),
        OddHost("terminal forced", ssh_options=("RequestTTY=force",)),
        OddHost("compression", ssh_options=("Compression=yes",)),
        OddHost("variables are sent", ssh_options=("SendEnv=*", "SetEnv=LC_ALL=de_DE")),
        OddHost("master connection", around=master),
        OddHost("jump host", around=jump),
        OddHost("full disk of temporary files", around=full_tmp),
        OddHost("full disk of the coordinator", around=full_here, must=ENDED, says="No space left"),
        OddHost("directory with blanks and quotes", around=own_directory),
        OddHost("directory is a link", around=own_directory),
        OddHost("directory is a file", around=own_directory, must=REFUSED, says="h2"),
        OddHost("directory cannot be made", around=own_directory, must=REFUSED, says="h2"),
        OddHost("another count of CPUs", around=few_cpus),
        OddHost("a host twice", around=twice, says="two names are not two hosts"),
        OddHost("this machine is a host", around=this_machine),
        OddHost("IPv6", around=ipv6),
        OddHost("terminal closed (SIGHUP)", during=hang_up, must=ENDED),
        OddHost("terminal closed (pty)", env={"PTY": "1"}, must=ENDED),
        OddHost("coordinator suspended for 5 s", during=suspended, run="lost_after_s = 10"),
        OddHost("host paused while armed", during=stepped, run="lost_after_s = 10"),
        OddHost("many targets", job=MANY),
        OddHost("stdin closed", env={"STDIN": "closed"}),
        OddHost("output into a pipe that is closed", env={"STDOUT": "closed"}, must=ENDED),
        OddHost("long names"),
    ]  # fmt: skip


def tried(one: OddHost, transport: str, hosts: NamespaceHosts) -> list[str]:
    """Stage it, and return what is wrong."""
    with tempfile.TemporaryDirectory(prefix="loadstone-odd-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        if one.around is not None:
            stack.enter_context(one.around(one, hosts, folder))
        hosts.force = one.force
        hosts.stop_server("h2")
        hosts.start_server("h2")
        time.sleep(0.5)
        hosts.environment = dict(one.environment)
        address = hosts.environment.pop("ADDRESS_OF_H2", None)
        trial = HostsTrial(hosts, folder, transport)
        out = folder / "small" / "out" if one.around is full_here else trial.out
        words = prepared(trial, one, out, address)
        trial.process = started(words, one, trial)
        try:
            if one.during is not None:
                one.during(trial)
            if one.env.get("PTY"):
                trial.reach(trial.running)
                os.close(one.terminal)
            ended(trial, one)
        except LookupError as error:
            trial.process.kill()
            trial.finish()
            return [f"{error}: {trial.said[-1500:]}"]
        return wrong(trial, one, out)


def prepared(trial: HostsTrial, one: OddHost, out: Path, address: str | None) -> list[str]:
    data = trial.directory / "data"
    data.write_bytes(bytes(1 << 20))
    path = trial.directory / "job.fio"
    path.write_text(one.job.format(file=data, seconds=4))
    toml = trial.hosts.hosts_toml(run=f'transport = "{trial.transport}"\n{one.run}', hosts=one.hosts)
    text = toml.read_text()
    if address is not None:
        text = text.replace(f'address = "{trial.hosts.address("h2")}"', f'address = "{address}"')
    if one.ssh_options:
        more = ", ".join(f'"{option}"' for option in one.ssh_options)
        text = text.replace("ssh_options = [", f"ssh_options = [{more}, ", 1)
    if one.name == "long names":
        text = text.replace('name = "h2"\n', f'name = "{"n" * 63}"\n', 1)
    toml.write_text(text)
    words = [*LOADSTONE, "run", str(path), "--hosts", str(toml), "--out", str(out)]
    return [*words, "--no-report", "--no-calibration"]


def started(words: list[str], one: OddHost, trial: HostsTrial) -> subprocess.Popen[str]:
    if one.env.get("PTY"):
        parent, child = pty.openpty()
        one.terminal = parent
        process = subprocess.Popen(
            words, stdin=child, stdout=child, stderr=child, text=True, start_new_session=True
        )
        os.close(child)
        return process
    if one.env.get("STDOUT"):
        reader, writer = os.pipe()
        os.close(reader)
        return subprocess.Popen(words, stdout=writer, stderr=subprocess.PIPE, text=True, pass_fds=())
    if one.env.get("STDIN"):
        words = ["sh", "-c", 'exec "$@" <&-', "sh", *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(trial: HostsTrial, one: OddHost) -> None:
    assert trial.process is not None
    if one.env.get("PTY"):
        try:
            trial.code = trial.process.wait(120)
        except subprocess.TimeoutExpired:
            trial.process.kill()
            trial.notes.append("DID NOT END")
        return
    trial.finish(150)


def wrong(trial: HostsTrial, one: OddHost, out: Path) -> list[str]:
    problems = list(trial.notes)
    trial.said, trial.told = trial.said or "", trial.told or ""
    if "Traceback" in trial.said + trial.told or "mistake in the program" in trial.said:
        problems.append("a traceback")
    trial.settle(20)
    if "LEFT" in trial.back():
        problems.append(trial.back())
    remains = ""
    if out == trial.out:
        remains = trial.kept()
    if one.must == WORKS and (trial.code != 0 or not remains.startswith("complete")):
        problems.append(f"must work: code {trial.code}, {remains}")
    if one.must == REFUSED and (trial.code not in (1, 2) or not remains.startswith("nothing")):
        problems.append(f"must be refused: code {trial.code}, {remains}")
    if one.must == ENDED and trial.code == 0 and one.says:
        problems.append("must fail")
    if one.says and not re.search(one.says, trial.said):
        problems.append(f"does not say {one.says!r}")
    return [*problems, f"code {trial.code}; {remains}\n{trial.said[-1800:]}"] if problems else []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--only", default="")
    parser.add_argument("--first", type=int, default=1, help="number of the draw to begin with")
    options = parser.parse_args()
    if (why := namespaces.missing()) is not None:
        print(f"not staged: {why}")
        return 0
    draw = random.Random(options.seed)
    names = [one.name for one in kinds()]
    chosen = [
        (name, draw.choice(("pipe", "dask"))) for name in draw.sample(names, min(options.draws, len(names)))
    ]
    if options.only:
        chosen = [
            (name, transport) for name in names if options.only in name for transport in ("pipe", "dask")
        ]
    failures = 0
    with NamespaceHosts(2) as hosts:
        for number, (name, transport) in enumerate(chosen, start=1):
            if number < options.first:
                continue
            began_s = time.monotonic()
            one = next(one for one in kinds() if one.name == name)
            problems = tried(one, transport, hosts)
            failures += bool(problems)
            outcome = "as it should be" if not problems else "WRONG: " + "\n    ".join(problems)
            print(
                f"{number}. {name}, {transport} ({time.monotonic() - began_s:.0f} s): {outcome}", flush=True
            )
            for host in hosts.names:
                hosts.sweep(host)
    print(f"{len(chosen) - failures} of {len(chosen)} as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
