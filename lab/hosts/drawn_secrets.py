"""Places in which a user may put a secret, and whether anybody else can read it during a run or after it."""

from __future__ import annotations

import contextlib
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lab.hosts.namespaces import NamespaceHosts
    from lab.hosts.trial import HostsTrial

IN_USE = (
    "token in --watch-secrets",
    "password in --watch-secrets",
    "query in --watch-secrets",
    "environment",
)
"""Where a secret belongs: the run goes on with it."""
REFUSED = (
    "query of --watch", "password of --watch (http)", "password of --watch (ssh)", "community of --watch",
    "key of hosts.toml", "word of --hosts", "secrets file that others can read",
)  # fmt: skip
"""Where one does not belong: the command is refused, and does not repeat it."""
PLACES = (*IN_USE, *IN_USE, *IN_USE, *REFUSED)
METRICS = b"""# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
node_cpu_seconds_total{cpu="0",mode="user"} 10
node_load1 0.1
"""
EVERY_S = 0.1


class Secret:
    """While entered, there is a secret in one place; `leaks` says who else could read it."""

    def __init__(self, where: str, place: Path) -> None:
        self.where = where
        self.value = "Geheim" + secrets.token_hex(12)
        self.words: list[str] = []
        self.environment: dict[str, str] = {}
        self._place = place
        self._ended = threading.Event()
        self._looking: threading.Thread | None = None
        self._seen: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
        self._serving = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._serving.start()
        try:
            self._put()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()

    def _put(self) -> None:
        address = f"127.0.0.1:{self._server.server_port}"
        file = self._place / "secrets.toml"
        url = f"http://{address}/metrics"
        line = {
            "token in --watch-secrets": f'token = "{self.value}"',
            "password in --watch-secrets": f'user = "u"\npassword = "{self.value}"',
            "query in --watch-secrets": f'query = "key={self.value}"',
            "secrets file that others can read": f'token = "{self.value}"',
        }.get(self.where)
        if line is not None:
            file.write_text(f"[w]\n{line}\n")
            file.chmod(0o644 if "others" in self.where else 0o600)
            self.words = ["--watch", f"w={url}", "--watch-secrets", str(file)]
        if self.where == "environment":
            self.environment = {"LOADSTONE_SNMP_COMMUNITY": self.value}
        watched = {
            "query of --watch": f"{url}?key={self.value}",
            "password of --watch (http)": f"http://u:{self.value}@{address}/metrics",
            "password of --watch (ssh)": f"ssh://root:{self.value}@127.0.0.1",
            "community of --watch": f"snmp://{self.value}@127.0.0.1",
        }.get(self.where)
        if watched is not None:
            self.words = ["--watch", f"w={watched}"]

    def hosts_word(self, file: Path, hosts: NamespaceHosts) -> str:
        """Return what `--hosts` is given."""
        if self.where == "key of hosts.toml":
            file.write_text(
                file.read_text().replace("[defaults]", f'[defaults]\npassword = "{self.value}"', 1)
            )
        if self.where == "word of --hosts":
            return ",".join(f"root:{self.value}@{hosts.address(name)}" for name in hosts.names)
        return str(file)

    # Who can read it.

    def look_while(self, trial: HostsTrial, hosts: NamespaceHosts) -> None:
        """Look at all processes until `stop`."""
        self._ended.clear()
        self._looking = threading.Thread(target=self._look, args=(trial, hosts))
        self._looking.start()

    def stop(self) -> None:
        self._ended.set()
        if self._looking is not None:
            self._looking.join()
            self._looking = None

    def _look(self, trial: HostsTrial, hosts: NamespaceHosts) -> None:
        secret = self.value.encode()
        while not self._ended.wait(EVERY_S):
            own = str(trial.out).encode()
            on_hosts = {pid for name in hosts.names for pid in hosts.processes(name)}
            for entry in Path("/proc").iterdir():
                if not entry.name.isdecimal():
                    continue
                pid = int(entry.name)
                with contextlib.suppress(OSError):
                    name = (entry / "comm").read_text().strip()
                    # Who typed it has it in the words of its own command.
                    words = (entry / "cmdline").read_bytes()
                    if secret in words and own not in words:
                        self._seen.add(f"words of {name}")
                    if pid in on_hosts and secret in (entry / "environ").read_bytes():
                        self._seen.add(f"environment of {name} on a host")

    def leaks(self, trial: HostsTrial) -> list[str]:
        """Say where it can be read, beside where the user put it."""
        places = {f"the secret is in the {one}" for one in self._seen}
        if self.value in trial.said or self.value in trial.told:
            places.add("the secret is in what was told")
        for root in (trial.out, self._place / "state", trial.hosts.directory):
            for path in root.rglob("*"):
                is_own = path == trial.hosts.directory / "hosts.toml"
                with contextlib.suppress(OSError):
                    if path.is_file() and not is_own and self.value.encode() in path.read_bytes():
                        places.add(f"the secret is in {path.name}")
        return sorted(places)


class _Exporter(BaseHTTPRequestHandler):
    """node_exporter as far as it is needed, whoever asks."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(METRICS)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
