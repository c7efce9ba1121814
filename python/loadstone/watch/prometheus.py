"""Watching by Prometheus text over HTTP: what node_exporter tells.

Formats: Prometheus' text exposition, read by its own client library; names as node_exporter 1.x has
them, on FreeBSD and illumos, too, where some differ. The host's time is `node_time_seconds`, or else
the Date header, which tells whole seconds.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import http.client
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from loadstone.messages import make_error
from loadstone.version import __version__
from loadstone.watch.source import LASTING, Counters, HostReading, WallClock, WatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from loadstone.watch.address import WatchedAddress

MOST_BYTES: Final = 64 << 20
MODES: Final = {
    "user": "user_ns",
    "nice": "user_ns",
    "system": "system_ns",
    "kernel": "system_ns",
    "irq": "irq_ns",
    "softirq": "irq_ns",
    "interrupt": "irq_ns",
    "iowait": "iowait_ns",
    "wait": "iowait_ns",
    "steal": "steal_ns",
    "idle": "idle_ns",
}
LEVELS: Final = {
    "node_load1": ("load.one_milli", 1000.0),
    "node_load5": ("load.five_milli", 1000.0),
    "node_load15": ("load.fifteen_milli", 1000.0),
    "node_memory_MemTotal_bytes": ("memory.total_bytes", 1.0),
    "node_memory_MemFree_bytes": ("memory.free_bytes", 1.0),
    "node_memory_MemAvailable_bytes": ("memory.available_bytes", 1.0),
    "node_memory_Cached_bytes": ("memory.cached_bytes", 1.0),
    "node_memory_Buffers_bytes": ("memory.buffers_bytes", 1.0),
    "node_memory_Dirty_bytes": ("memory.dirty_bytes", 1.0),
    "node_memory_Writeback_bytes": ("memory.writeback_bytes", 1.0),
    "node_nfsd_server_threads": ("nfsd.threads", 1.0),
    "node_zfs_arc_size": ("zfs.arc.size_bytes", 1.0),
    "node_zfs_arc_c_max": ("zfs.arc.limit_bytes", 1.0),
    "node_memory_size_bytes": ("memory.total_bytes", 1.0),
    "node_memory_free_bytes": ("memory.free_bytes", 1.0),
    "node_memory_buffer_bytes": ("memory.buffers_bytes", 1.0),
    "node_zfs_arcstats_size_bytes": ("zfs.arc.size_bytes", 1.0),
    "node_zfs_arcstats_c_max_bytes": ("zfs.arc.limit_bytes", 1.0),
}
GROWING: Final = {
    "node_nfsd_disk_bytes_read_total": ("nfsd.read_bytes", 1.0),
    "node_nfsd_disk_bytes_written_total": ("nfsd.write_bytes", 1.0),
    "node_nfsd_server_rpcs_total": ("nfsd.calls", 1.0),
    "node_zfs_arc_hits": ("zfs.arc.hits", 1.0),
    "node_zfs_arc_misses": ("zfs.arc.misses", 1.0),
    "node_zfs_arcstats_hits_total": ("zfs.arc.hits", 1.0),
    "node_zfs_arcstats_misses_total": ("zfs.arc.misses", 1.0),
    "node_zfs_zil_zil_commit_count": ("zfs.zil.commits", 1.0),
    "node_pressure_cpu_waiting_seconds_total": ("pressure.cpu_ns", 1e9),
}
DISK: Final = {
    "node_disk_reads_completed_total": ("reads", 1.0),
    "node_disk_read_bytes_total": ("read_bytes", 1.0),
    "node_disk_read_time_seconds_total": ("read_time_ns", 1e9),
    "node_disk_writes_completed_total": ("writes", 1.0),
    "node_disk_written_bytes_total": ("write_bytes", 1.0),
    "node_disk_write_time_seconds_total": ("write_time_ns", 1e9),
    "node_disk_io_time_seconds_total": ("busy_ns", 1e9),
    "node_disk_io_time_weighted_seconds_total": ("queue_time_ns", 1e9),
    "node_disk_discards_completed_total": ("trims", 1.0),
    "node_disk_discarded_sectors_total": ("trim_bytes", 512.0),
    "node_disk_flush_requests_total": ("flushes", 1.0),
    "node_devstat_busy_time_seconds_total": ("busy_ns", 1e9),
}
DEVSTAT: Final = {"node_devstat_transfers_total": "{}s", "node_devstat_bytes_total": "{}_bytes"}
WORK: Final = {"resync": "resync", "recovering": "recover", "check": "check"}
"""What md does, as the exporter calls it, to what the kernel calls it."""
NET: Final = {
    "node_network_receive_bytes_total": "rx_bytes",
    "node_network_receive_packets_total": "rx_packets",
    "node_network_receive_errs_total": "rx_errors",
    "node_network_receive_drop_total": "rx_drops",
    "node_network_transmit_bytes_total": "tx_bytes",
    "node_network_transmit_packets_total": "tx_packets",
    "node_network_transmit_errs_total": "tx_errors",
    "node_network_transmit_drop_total": "tx_drops",
}
NFS: Final = ("read", "write", "commit", "getattr")
NOW: Final = "node_time_seconds"
WHOLE: Final = 2
"""A whole answer may take so many times as long as a server may be silent."""
BOOTED: Final = "node_boot_time_seconds"
Row = tuple[str, dict[str, str], float]


MOST: Final = 2.0**63
"""What tables hold."""


class Prometheus:
    """An exporter, over a connection that is kept."""

    def __init__(self, address: WatchedAddress, *, timeout_s: float | None = None) -> None:
        self._address = address
        self._timeout_s = timeout_s or max(5.0, 2 * address.interval_s)
        self._parts = urlsplit(address.url)
        self._connection: http.client.HTTPConnection | None = None

    def connect(self) -> dict[str, Any]:
        """Fetch once, and see that it is what we can read."""
        self.close()
        text, _, _, _ = self._fetch()
        rows = _rows(text)
        if not any(name == "node_cpu_seconds_total" for name, _, _ in rows):
            names = sorted({name for name, _, _ in rows})
            others = f"{len(names)} others such as {names[0]}" if names else "none"
            raise make_error(LASTING, "watch.prometheus.not_exporter", found=others)
        return facts(rows)

    def read(self) -> HostReading:
        """Look once."""
        text, date, sent_ns, received_ns = self._fetch()
        rows = _rows(text)
        return HostReading(
            sent_ns, received_ns, counters(rows), age_ns=_age_ns(rows), clock=_clock(rows, date)
        )

    def close(self) -> int:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        return 0

    def _fetch(self) -> tuple[str, str | None, int, int]:
        """Return the text, the Date header, and when it was asked and begun to be answered."""
        was_connected = self._connection is not None
        try:
            return self._once()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # A server may close a connection that is kept; only the second time it says something.
            self.close()
            if not was_connected:
                raise make_error(WatchError, "watch.prometheus.closed") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _unreachable(error, self._parts.scheme) from error
        try:
            return self._once()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _unreachable(error, self._parts.scheme) from error

    def _once(self) -> tuple[str, str | None, int, int]:
        connection = self._connection
        if connection is None:
            kind = (
                http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            )
            connection = self._connection = kind(
                self._address.host, self._address.port, timeout=self._timeout_s
            )
            connection.connect()
        query = "&".join(filter(None, (self._parts.query, self._address.secrets.query)))
        path = (self._parts.path or "/metrics") + (f"?{query}" if query else "")
        sent_ns = time.monotonic_ns()
        with _ended_after(connection, WHOLE * self._timeout_s):
            connection.request("GET", path, headers=self._headers())
            answer = connection.getresponse()
            received_ns = time.monotonic_ns()
            data = answer.read(MOST_BYTES + 1)
        if answer.status in (401, 403):
            raise make_error(
                LASTING, "watch.prometheus.denied", status=answer.status, name=self._address.name
            )
        if answer.status != 200:
            raise make_error(
                WatchError, "watch.prometheus.status", status=answer.status, phrase=answer.reason
            )
        if len(data) > MOST_BYTES:
            raise make_error(LASTING, "watch.prometheus.too_long", most_mib=MOST_BYTES >> 20)
        return data.decode(errors="replace"), answer.headers.get("Date"), sent_ns, received_ns

    def _headers(self) -> dict[str, str]:
        secrets = self._address.secrets
        # The plain text, whose version the parser of our library reads.
        headers = {"User-Agent": f"loadstone/{__version__}", "Accept": "text/plain;version=0.0.4"}
        if secrets.token:
            headers["Authorization"] = f"Bearer {secrets.token}"
        elif secrets.user and secrets.password:
            pair = base64.b64encode(f"{secrets.user}:{secrets.password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        return headers


@contextlib.contextmanager
def _ended_after(connection: http.client.HTTPConnection, most_s: float) -> Iterator[None]:
    """End an exchange that goes on for longer: a server may send a byte now and then, and for ever.

    Raises `WatchError` for one that was ended.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(most_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        connection.close()
        raise make_error(WatchError, "watch.prometheus.slow", most=f"{most_s:.0f}")


def _unreachable(error: Exception, scheme: str) -> WatchError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return make_error(LASTING, "watch.prometheus.certificate")
    if isinstance(error, ssl.SSLError):
        return make_error(LASTING, "watch.prometheus.no_tls", scheme=scheme)
    if isinstance(error, ConnectionRefusedError):
        return make_error(WatchError, "watch.prometheus.not_listening")
    if isinstance(error, TimeoutError):
        return make_error(WatchError, "watch.prometheus.silent")
    if isinstance(error, OSError) and error.errno is not None and error.errno < 0:
        return make_error(LASTING, "watch.hosts.unknown_name")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return make_error(WatchError, "watch.prometheus.unreachable", reason=reason)


def _rows(text: str) -> list[Row]:
    try:
        return [
            (sample.name, sample.labels, float(sample.value))
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            # Not a number, and what no counter reaches, is nothing that was told.
            if sample.name.startswith("node_") and abs(float(sample.value)) < MOST
        ]
    except (ValueError, IndexError, KeyError) as error:
        raise make_error(LASTING, "watch.prometheus.not_text", reason=str(error)[:150]) from error


def _clock(rows: Iterable[Row], date: str | None) -> WallClock | None:
    for name, _, value in rows:
        if name == NOW:
            return WallClock(round(value * 1e9), 0)
    if date is None:
        return None
    try:
        server_time = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    return WallClock(round(server_time.timestamp()) * 10**9, 10**9)


def _age_ns(rows: Iterable[Row]) -> int | None:
    """Return how long the host has been up; a clock that is set moves both of its ends."""
    times = {name: value for name, _, value in rows if name in {NOW, BOOTED}}
    return round((times[NOW] - times[BOOTED]) * 1e9) if len(times) == 2 else None


def counters(rows: Sequence[Row]) -> Counters:
    """Return what one answer says."""
    reading = Counters()
    for name, labels, value in rows:
        if name == "node_cpu_seconds_total":
            _cpu(reading, labels, value)
        elif name in LEVELS:
            key, scale = LEVELS[name]
            reading.levels[key] = round(value * scale)
        elif name in GROWING:
            key, scale = GROWING[name]
            reading.growing[key] = round(value * scale)
        elif name in DISK:
            key, scale = DISK[name]
            reading.growing[f"disk.{labels.get('device', '')}.{key}"] = round(value * scale)
        elif name == "node_disk_io_now":
            reading.levels[f"disk.{labels.get('device', '')}.inflight"] = round(value)
        elif name in NET:
            reading.growing[f"net.{labels.get('device', '')}.{NET[name]}"] = round(value)
        else:
            _rarer(reading, name, labels, value)
    # A pool's own count is of the same bytes as its data sets', which older systems do not tell.
    for pools in (_pools(rows, "node_zfs_zpool_n"), _pools(rows, "node_zfs_zpool_dataset_n")):
        reading.growing |= pools.growing
        reading.parts |= pools.parts
    return reading


def _cpu(reading: Counters, labels: Mapping[str, str], value: float) -> None:
    mode = MODES.get(labels.get("mode", ""))
    if mode is None:
        return
    cpu = labels.get("cpu", "")
    for which in (cpu, "all"):
        reading.add(f"cpu.{which}.{mode}", f"{cpu} {labels['mode']}", round(value * 1e9))


def _pools(rows: Sequence[Row], prefix: str) -> Counters:
    reading = Counters()
    for metric, column in (("read", "read_bytes"), ("written", "write_bytes")):
        for name, labels, value in rows:
            if name == prefix + metric:
                key = f"zfs.pool-{labels.get('zpool', '')}.{column}"
                reading.add(key, labels.get("dataset", ""), round(value))
    return reading


def _rarer(reading: Counters, name: str, labels: Mapping[str, str], value: float) -> None:  # noqa: C901 - a table
    match name:
        case "node_nfsd_requests_total":
            method = labels.get("method", "").lower()
            if method in NFS:
                reading.add(f"nfsd.{method}s", labels.get("proto", ""), round(value))
        case "node_devstat_transfers_total" | "node_devstat_bytes_total":
            if (kind := labels.get("type", "")) in ("read", "write"):
                column = DEVSTAT[name].format(kind)
                reading.growing[f"disk.{labels.get('device', '')}.{column}"] = round(value)
        case "node_md_state":
            device, state = labels.get("device", ""), WORK.get(labels.get("state", ""))
            if state is not None:
                key = f"work.{device}.running"
                reading.levels[key] = max(reading.levels.get(key, 0), round(value))
                if value:
                    reading.levels[f"work.{device}.{state}"] = 1
        case "node_md_degraded":
            reading.levels[f"work.{labels.get('device', '')}.degraded"] = int(value > 0)
        case "node_bcache_cache_hits_total" | "node_bcache_cache_misses_total":
            outcome = "hits" if "hits" in name else "misses"
            key = f"cache.{labels.get('backing_device', 'bcache')}.read_{outcome}"
            reading.add(key, labels.get("uuid", ""), round(value))
        case "node_hwmon_temp_celsius":
            which = f"{labels.get('chip', '')}-{labels.get('sensor', '')}"
            reading.levels[f"temperature.{which}.millicelsius"] = round(value * 1000)
        case "node_thermal_zone_temp":
            which = f"{labels.get('type', '')}-{labels.get('zone', '')}"
            reading.levels[f"temperature.{which}.millicelsius"] = round(value * 1000)
        case _:
            return


def facts(rows: Iterable[Row]) -> dict[str, Any]:
    """Return what does not change while the host is watched."""
    plain: dict[str, Any] = {}
    links: dict[str, dict[str, Any]] = {}
    cores: set[str] = set()
    for name, labels, value in rows:
        match name:
            case "node_uname_info":
                plain |= {
                    "host": labels.get("nodename"),
                    "system": labels.get("sysname"),
                    "kernel": labels.get("release"),
                }
            case "node_cpu_seconds_total":
                cores.add(labels.get("cpu", ""))
            case "node_memory_MemTotal_bytes" | "node_memory_size_bytes":
                plain["memory_bytes"] = round(value)
            case "node_network_speed_bytes" if 0 < value < 1.25e12:
                links.setdefault(labels.get("device", ""), {})["bits_per_s"] = round(value * 8)
            case "node_network_mtu_bytes":
                links.setdefault(labels.get("device", ""), {})["mtu_bytes"] = round(value)
            case _:
                continue
    return {**plain, "cores": len(cores) or None, "disks": {}, "links": links}
