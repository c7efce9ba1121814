"""Each way to watch, over the real thing where it is there: and what is said when it does not work."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.errors import RunError
from loadstone.monitor.counters import Counters
from loadstone.watch.address import WatchedAddress, addresses
from loadstone.watch.prometheus import Prometheus
from loadstone.watch.shell import Shell
from loadstone.watch.snmp import CPU, DISK, DISK_NAME, Snmp
from loadstone.watch.source import HostReading, WatchError
from loadstone.watch.watcher import Watcher, same_host
from loadstone.watch.watching import Watching
from tests.watch.test_systems import EXPORTER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SNMPD = shutil.which("snmpd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def address(word: str, **more: Any) -> WatchedAddress:
    return addresses([word], environment={}, **more)[0]


def test_the_shell_of_this_host_tells_what_it_is_and_does() -> None:
    shell = Shell(address("me=local"))
    try:
        facts = shell.connect()
        assert facts["system"] == os.uname().sysname
        assert facts["host"] == os.uname().nodename
        assert same_host(facts, "ssh") is True
        first, second = shell.read(), shell.read()
    finally:
        shell.close()
    assert second.sent_ns >= first.received_ns
    assert first.clock is not None
    assert abs(first.clock.unix_ns - time.time_ns()) < 60 * 10**9
    assert second.counters.growing["cpu.all.idle_ns"] >= first.counters.growing["cpu.all.idle_ns"]
    assert first.there_cpu_ns is not None


def test_the_shell_ends_when_the_connection_does() -> None:
    shell = Shell(address("me=local"))
    shell.connect()
    process = shell._process
    assert process is not None
    process.send_signal(signal.SIGKILL)
    with pytest.raises(WatchError, match="connection ended"):
        shell.read()
    shell.close()
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("says", "means"),
    [
        ("nas: Permission denied (publickey).", "key or the user was refused"),
        ("Host key verification failed.", "host key is not known here"),
        ("REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.", "not the one that"),
        ("ssh: Could not resolve hostname nas: Name or service not known", "name does not resolve"),
        ("ssh: connect to host nas port 22: Connection refused", "nothing listens"),
        ("something else", "something else"),
    ],
)
def test_what_ssh_says_is_told_with_a_remedy(
    says: str, means: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "ssh"
    fake.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 255\n")
    fake.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_SSH", str(fake))
    with pytest.raises(RunError, match=means):
        Watching.connect([address("nas=ssh://admin@nas")])


def test_a_system_nobody_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uname").write_text("#!/bin/sh\necho Plan9\n")
    (tmp_path / "uname").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    shell = Shell(address("me=local"))
    with pytest.raises(WatchError, match="Plan9"):
        shell.connect()
    shell.close()


class Exporter(BaseHTTPRequestHandler):
    """Answers as node_exporter does, to who has the password where one is asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status = {"/closed": 401, "/none": 404}.get(self.path, 200)
        if self.path == "/closed" and self.headers.get("Authorization") == "Basic dTpw":
            status = 200
        text = (
            "# TYPE x gauge\nx 1\n"
            if self.path == "/other"
            else "<html>"
            if self.path == "/page"
            else EXPORTER
        )
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def exporter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_exporter_over_a_connection_that_is_kept(exporter: str, tmp_path: Path) -> None:
    source = Prometheus(address(f"nas={exporter}"))
    assert source.connect()["host"] == "nas"
    connection = source._connection
    assert source.read().counters.growing["disk.sda.write_bytes"] == 8192
    assert source._connection is connection
    source.close()
    secrets = tmp_path / "s"
    secrets.write_text('[nas]\nuser = "u"\npassword = "p"\n')
    secrets.chmod(0o600)
    allowed = Prometheus(address(f"nas={exporter}/closed", secrets=secrets))
    assert allowed.connect()["cores"] == 2
    allowed.close()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/closed", "user or password"),
        ("/none", "404"),
        ("/other", "node_exporter"),
        ("/page", "found none|text format"),
    ],
)
def test_what_is_no_exporter_is_told(exporter: str, path: str, says: str) -> None:
    source = Prometheus(address(f"nas={exporter}{path}"))
    with pytest.raises(WatchError, match=says):
        source.connect()
    source.close()


def test_a_port_where_nothing_listens_is_told() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(RunError, match="nothing listens"):
            Watching.connect([address(f"nas=http://127.0.0.1:{held.getsockname()[1]}")])


class Flaky:
    """A host that is away from its third look to its fifth."""

    def __init__(self) -> None:
        self.looks = 0
        self.connects = 0
        self.seen_ns: list[int] = []

    def connect(self) -> dict[str, Any]:
        self.connects += 1
        if self.connects == 2:
            raise WatchError("nothing listens there")
        return {"host": "nas"}

    def read(self) -> HostReading:
        self.looks += 1
        if self.looks == 3:
            raise WatchError("it did not answer for 5 s")
        now_ns = time.monotonic_ns()
        self.seen_ns.append(now_ns)
        return HostReading(now_ns, now_ns, Counters({"disk.a.reads": 100 * self.looks}, {}))

    def close(self) -> int:
        return 7


class NeverAnswering(Flaky):
    """A host that does not answer at its third look, and lets it wait."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def read(self) -> HostReading:
        if self.looks == 2:
            self.over.wait(60)
            raise WatchError("it did not answer for 60 s")
        return super().read()


def test_a_host_that_goes_away_is_a_gap_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadstone.watch.watcher.AGAIN_S", (0.05, 0.05))
    fast = WatchedAddress("nas", "ssh", "ssh://nas", interval_s=0.02)
    source, rows, told = Flaky(), [], []  # type: ignore[var-annotated]
    watcher = Watcher(fast, source)
    watcher.connect()
    origin_ns = time.monotonic_ns()
    watcher.start(origin_ns, rows.append, told.append)
    until = time.monotonic() + 20
    while len(rows) < 4 and time.monotonic() < until:
        time.sleep(0.01)
    account = watcher.stop()
    assert [one["type"] for one in told] == ["watch_lost", "watch_back"]
    assert told[0]["text"] == "it did not answer for 5 s"
    assert len(account["gaps"]) == 1
    # A host of which a link was cut at 8 s was told to be unwatched from 12 s on, when ssh gave up.
    assert account["gaps"][0]["from_ns"] == source.seen_ns[1] - origin_ns
    assert account["gaps"][0]["to_ns"] > account["gaps"][0]["from_ns"]
    assert source.connects == 3
    # Each row is of one look to the next, and none reaches over the gap.
    assert {row["disk.a.reads"] for row in rows} == {100}
    assert account["rows"] == len(rows)


def test_a_host_that_hangs_at_the_end_was_watched_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told not to have been watched from 0 s on, beside its rows."""
    monkeypatch.setattr("loadstone.watch.watcher.STOP_S", 0.05)
    source, rows = NeverAnswering(), []  # type: ignore[var-annotated]
    watcher = Watcher(WatchedAddress("nas", "ssh", "ssh://nas", interval_s=0.02), source)
    watcher.connect()
    origin_ns = time.monotonic_ns()
    watcher.start(origin_ns, rows.append, lambda _: None)
    until = time.monotonic() + 20
    while not rows and time.monotonic() < until:
        time.sleep(0.01)
    (gap,) = watcher.stop()["gaps"]
    source.over.set()
    assert rows
    assert gap == {"from_ns": source.seen_ns[1] - origin_ns, "why": "the last look took more than 0 s"}


class AnsweringLate(NeverAnswering):
    """A host that answers its third look when nobody waits for it any more."""

    def read(self) -> HostReading:
        self.looks += 1
        if self.looks > 2:
            self.over.wait(60)
        now_ns = time.monotonic_ns()
        return HostReading(now_ns, now_ns, Counters({"disk.a.reads": self.looks}, {}))


def test_hosts_that_hang_at_the_end_are_waited_for_together_and_write_nothing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each was given three seconds after the others, and a late row went into files being sealed."""
    monkeypatch.setattr("loadstone.watch.watching.STOP_S", 0.3)
    sources = {name: AnsweringLate() for name in ("a", "b", "c", "d")}
    rows: list[str] = []
    hosts = [WatchedAddress(name, "ssh", f"ssh://{name}", interval_s=0.02) for name in sources]
    watching = Watching.connect(hosts, lambda one: sources[one.name])
    list(watching.begin(time.monotonic_ns(), lambda name, _: rows.append(name)))
    until = time.monotonic() + 20
    while len(set(rows)) < len(sources) and time.monotonic() < until:
        time.sleep(0.01)
    accounts = [one for one in watching.end() if one["type"] == "watch_end"]
    assert sum("the last look took more than" in str(one["gaps"]) for one in accounts) == len(sources)
    before = len(rows)
    for source in sources.values():
        source.over.set()
    for watcher in watching._watchers:
        assert watcher._thread is not None
        watcher._thread.join(20)
        assert not watcher._thread.is_alive()
    assert len(rows) == before == len(sources)


class Dripping(BaseHTTPRequestHandler):
    """Sends a byte now and then, and never ends."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            for _ in range(600):
                self.wfile.write(b"#")
                time.sleep(0.05)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_an_exporter_that_drips_is_given_up_within_its_time() -> None:
    """Each byte began the time anew: the look never ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Dripping)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    source = Prometheus(address(f"nas=http://127.0.0.1:{server.server_address[1]}/metrics"), timeout_s=0.4)
    try:
        with pytest.raises(WatchError, match="its answer took more than"):
            source.connect()
    finally:
        source.close()
        server.shutdown()
        server.server_close()


def test_an_agent_that_just_started_has_counted_no_processor_yet() -> None:
    """net-snmp tells zeros for five seconds, and then all that the host has counted since its boot."""
    source = Snmp(address("nas=snmp://public@127.0.0.1"))
    early, later = Counters(), Counters()
    source._scalars(early, dict.fromkeys(CPU, 0))
    source._scalars(later, dict.fromkeys(CPU, 7))
    assert not early.growing
    assert later.growing["cpu.all.idle_ns"] == 70_000_000


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[int]:
    if SNMPD is None:
        pytest.skip("snmpd is not installed")
    pytest.importorskip("pysnmp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    configuration = tmp_path / "snmpd.conf"
    configuration.write_text(
        f"agentaddress udp:127.0.0.1:{port}\nrocommunity right\n"
        'createUser watcher SHA-256 "auth-right" AES "priv-right"\nrouser watcher priv\n'
    )
    quiet = subprocess.DEVNULL
    words = [
        SNMPD,
        "-f",
        "-C",
        "-c",
        str(configuration),
        "-Lf",
        str(tmp_path / "log"),
        "-p",
        str(tmp_path / "pid"),
    ]
    environment = {**os.environ, "SNMP_PERSISTENT_DIR": str(tmp_path)}
    process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, env=environment)
    until = time.monotonic() + 20
    log = tmp_path / "log"
    while time.monotonic() < until and not (log.exists() and "NET-SNMP version" in log.read_text()):
        time.sleep(0.05)
    yield port
    process.terminate()
    process.wait(60)


def snmp(port: int, tmp_path: Path, secrets: dict[str, str], timeout_s: float = 60.0) -> Any:
    file = tmp_path / "secrets"
    file.write_text("[nas]\n" + "".join(f'{key} = "{value}"\n' for key, value in secrets.items()))
    file.chmod(0o600)
    return Snmp(address(f"nas=snmp://127.0.0.1:{port}", secrets=file), timeout_s=timeout_s)


@pytest.mark.in_turn
def test_an_agent_by_community_and_by_user(agent: int, tmp_path: Path) -> None:
    for secrets in (
        {"community": "right"},
        {"user": "watcher", "auth_password": "auth-right", "privacy_password": "priv-right"},
    ):
        source = snmp(agent, tmp_path, secrets)
        try:
            facts = source.connect()
            reading = source.read()
        finally:
            source.close()
        assert facts["host"] == os.uname().nodename
        assert reading.counters.levels["memory.total_bytes"] == facts["memory_bytes"]
        assert any(key.endswith(".rx_bytes") for key in reading.counters.growing)


@pytest.mark.in_turn
def test_wrong_secrets_of_an_agent_are_told(agent: int, tmp_path: Path) -> None:
    for secrets, timeout_s, says in (
        # The whole time, and it was asked twice within.
        ({"community": "wrong"}, 1.0, "within 1 s: .* community"),
        (
            {"user": "nobody", "auth_password": "auth-right", "privacy_password": "priv-right"},
            60.0,
            "user is not known",
        ),
        (
            {"user": "watcher", "auth_password": "auth-wrong", "privacy_password": "priv-right"},
            60.0,
            "authentication password",
        ),
    ):
        source = snmp(agent, tmp_path, secrets, timeout_s)
        with pytest.raises(WatchError, match=says):
            source.connect()
        source.close()


def test_disks_that_an_agent_numbers_anew_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that came before another shifted the rows: one got the counters of the other."""
    tables = iter(({"1": b"sda", "2": b"sdc"}, {"1": b"sda", "2": b"sdb", "3": b"sdc"}))
    reads = {b"sda": 10, b"sdb": 7, b"sdc": 1000}
    column = next(oid for oid, (name, _) in DISK.items() if name == "reads")

    def table(_: Snmp, columns: list[str]) -> dict[str, dict[str, Any]]:
        names = next(tables)
        answers: dict[str, dict[str, Any]] = {
            DISK_NAME: names,
            column: {index: reads[name] for index, name in names.items()},
        }
        return {key: value for key, value in answers.items() if key in columns}

    monkeypatch.setattr(Snmp, "_table", table)
    monkeypatch.setattr(Snmp, "_get", lambda *_: {next(iter(CPU)): 1})
    source = Snmp(address("nas=snmp://public@127.0.0.1"))
    source._reads = 1
    first, second = (source.read().counters.growing for _ in range(2))
    assert {key: count for key, count in first.items() if key.startswith("disk.")} == {
        "disk.sda.reads": 10,
        "disk.sdc.reads": 1000,
    }
    assert (second["disk.sdb.reads"], second["disk.sdc.reads"]) == (7, 1000)


def test_without_its_library_snmp_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pysnmp", None)
    monkeypatch.setitem(sys.modules, "pysnmp.hlapi.v3arch", None)
    source = snmp(1, tmp_path, {"community": "x"})
    with pytest.raises(WatchError, match="not installed") as caught:
        source.connect()
    assert caught.value.hint is not None
    assert "loadstone[watch]" in caught.value.hint
    source.close()
