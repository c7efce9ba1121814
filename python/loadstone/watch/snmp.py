"""Watching by SNMP v2c or v3: HOST-RESOURCES-MIB, UCD-SNMP-MIB with its disk I/O, IF-MIB.

Knows object numbers and that agents keep what they read for some seconds: counters that stood still
since the last look are not told again, so that nothing looks like zero that was not asked. Needs the
extra `loadstone[watch]`.
"""

from __future__ import annotations

import asyncio
import struct
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import make_error
from loadstone.watch.source import LASTING, Counters, HostReading, WallClock, WatchError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from loadstone.watch.address import WatchedAddress

UCD: Final = "1.3.6.1.4.1.2021"
SYSTEM: Final = {"kernel": "1.3.6.1.2.1.1.1.0", "host": "1.3.6.1.2.1.1.5.0", "memory": "1.3.6.1.2.1.25.2.2.0"}
UPTIME: Final = "1.3.6.1.2.1.1.3.0"
"""Of the agent: where it restarts, what it counts itself does so, too."""
DATE: Final = "1.3.6.1.2.1.25.1.2.0"
CPU: Final = {
    f"{UCD}.11.50.0": "user_ns",
    f"{UCD}.11.51.0": "user_ns",
    f"{UCD}.11.52.0": "system_ns",
    f"{UCD}.11.53.0": "idle_ns",
    f"{UCD}.11.54.0": "iowait_ns",
    f"{UCD}.11.56.0": "irq_ns",
    f"{UCD}.11.61.0": "irq_ns",
    f"{UCD}.11.64.0": "steal_ns",
}
NS_PER_TICK: Final = 10_000_000
MEMORY: Final = {
    f"{UCD}.4.5.0": "total_bytes",
    f"{UCD}.4.6.0": "free_bytes",
    f"{UCD}.4.14.0": "buffers_bytes",
    f"{UCD}.4.15.0": "cached_bytes",
}
LOAD: Final = {f"{UCD}.10.1.5.1": "one", f"{UCD}.10.1.5.2": "five", f"{UCD}.10.1.5.3": "fifteen"}
DISK_NAME: Final = f"{UCD}.13.15.1.1.2"
DISK: Final = {
    f"{UCD}.13.15.1.1.12": ("read_bytes", 1),
    f"{UCD}.13.15.1.1.13": ("write_bytes", 1),
    f"{UCD}.13.15.1.1.5": ("reads", 1),
    f"{UCD}.13.15.1.1.6": ("writes", 1),
    f"{UCD}.13.15.1.1.14": ("busy_ns", 1000),
}
NET_NAME: Final = "1.3.6.1.2.1.31.1.1.1.1"
NET_SPEED: Final = "1.3.6.1.2.1.31.1.1.1.15"
NET: Final = {
    "1.3.6.1.2.1.31.1.1.1.6": "rx_bytes",
    "1.3.6.1.2.1.31.1.1.1.10": "tx_bytes",
    "1.3.6.1.2.1.2.2.1.14": "rx_errors",
    "1.3.6.1.2.1.2.2.1.20": "tx_errors",
    "1.3.6.1.2.1.2.2.1.13": "rx_drops",
    "1.3.6.1.2.1.2.2.1.19": "tx_drops",
}
LOADED: Final = "1.3.6.1.2.1.25.3.3.1.2"
"""hrProcessorLoad: percent of each processor over the last minute."""
SENSOR_NAME: Final = f"{UCD}.13.16.2.1.2"
SENSOR: Final = f"{UCD}.13.16.2.1.3"
KEPT_NS: Final = 20_000_000_000
"""After so long without change a group of counters did not move at all (net-snmp keeps 15 s at most)."""
LAZY: Final = ("cpu", "net")
"""Groups that an agent that was asked cannot have left where they were: to answer takes both."""
ANSWER_S: Final = 4.0
TRIES: Final = 2
"""Of which a question is asked within that time: a datagram may be lost, and nobody says so."""
LOOK_S: Final = 15.0
"""All answers of one look: an agent may take a second and more for each."""
CONNECT_S: Final = 25.0
ROWS: Final = 24
MOST_ROWS: Final = 4096
SILENT: Final = "No SNMP response"
FAULTS: Final = (
    ("unknownusername", "user"),
    ("unknown usm user", "user"),
    ("wrong digest", "authentication"),
    ("wrong snmp pdu digest", "authentication"),
    ("unsupported snmp security level", "level"),
    ("decrypt", "privacy"),
    ("authorizationerror", "access"),
)
"""What the library says, and the message of it."""


class Snmp:
    """An agent."""

    def __init__(self, address: WatchedAddress, *, timeout_s: float | None = None) -> None:
        self._address = address
        self._timeout_s = timeout_s or ANSWER_S
        self._look_s = max(LOOK_S, 2 * address.interval_s, self._timeout_s)
        self._until_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ask: _Agent | None = None
        self._before: dict[str, dict[str, int]] = {}
        self._changed_ns: dict[str, int] = {}
        self._reads = 0

    def connect(self) -> dict[str, Any]:
        """Ask who it is; there is no connection to keep."""
        self.close()
        self._loop = asyncio.new_event_loop()
        self._until_s = time.monotonic() + max(CONNECT_S, self._timeout_s)
        self._ask = self._run(_agent(self._address, self._timeout_s))
        self._before, self._changed_ns, self._reads = {}, {}, 0
        answers = self._get(list(SYSTEM.values()))
        known = {name: answers.get(oid) for name, oid in SYSTEM.items()}
        links, disks = self._texts(NET_NAME), self._texts(DISK_NAME)
        speeds = self._table([NET_SPEED]).get(NET_SPEED, {})
        if not self._get([*CPU]) and not self._table([LOADED]).get(LOADED):
            raise make_error(LASTING, "watch.snmp.nothing")
        memory = _number(known["memory"])
        return {
            "host": _text(known["host"]),
            "kernel": _text(known["kernel"]),
            "memory_bytes": None if memory is None else memory * 1024,
            "cores": len(self._table([LOADED]).get(LOADED, {})) or None,
            "disks": {name: {} for name in disks.values()},
            "links": {
                links.get(index, index): {"bits_per_s": mbit * 10**6}
                for index, value in speeds.items()
                if (mbit := _number(value))
            },
        }

    def read(self) -> HostReading:
        """Look once."""
        self._reads += 1
        slow = self._reads % 10 == 1
        wanted = [*CPU, *MEMORY, *LOAD, UPTIME, *([DATE] if slow else [])]
        sent_ns = time.monotonic_ns()
        self._until_s = time.monotonic() + self._look_s
        answers = self._get(wanted)
        clock = _date(answers.get(DATE))
        reading = Counters()
        self._scalars(reading, answers)
        # With their names: an agent numbers its disks anew when one comes or goes.
        self._rows(reading, self._table([NET_NAME, DISK_NAME, *NET, *DISK]))
        if not any(key.startswith("cpu.") for key in reading.growing):
            for at, value in enumerate(self._table([LOADED]).get(LOADED, {}).values()):
                percent = _number(value)
                if percent is not None:
                    reading.levels[f"processor.{at}.busy_percent"] = percent
        if slow:
            names = self._texts(SENSOR_NAME)
            for index, value in self._table([SENSOR]).get(SENSOR, {}).items():
                millicelsius = _number(value)
                if millicelsius is not None:
                    reading.levels[f"temperature.{names.get(index, index)}.millicelsius"] = millicelsius
        # Its tables take a question each: what is counted was so at any time until the last answer.
        received_ns = time.monotonic_ns()
        self._leave_out_unchanged(reading, received_ns)
        ticks = _number(answers.get(UPTIME))
        age_ns = None if ticks is None else ticks * NS_PER_TICK
        return HostReading(sent_ns, received_ns, reading, age_ns=age_ns, clock=clock)

    def close(self) -> int:
        """Close the socket."""
        agent, self._ask = self._ask, None
        loop, self._loop = self._loop, None
        if loop is not None:
            if agent is not None:
                agent.close()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
        return 0

    def _run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None:
            doing.close()
            raise make_error(WatchError, "watch.hosts.no_connection")
        left_s = self._until_s - time.monotonic()
        try:
            return self._loop.run_until_complete(asyncio.wait_for(doing, max(left_s, 0.0)))
        except TimeoutError:
            raise make_error(WatchError, "watch.snmp.slow", most=f"{self._look_s:.0f}") from None

    def _agent(self) -> _Agent:
        if self._ask is None:
            raise make_error(WatchError, "watch.hosts.no_connection")
        return self._ask

    def _get(self, oids: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = self._run(self._agent().get(oids))
        return values

    def _table(self, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = self._run(self._agent().table(columns))
        return rows

    def _texts(self, column: str) -> dict[str, str]:
        return {
            index: _text(value) or index for index, value in self._table([column]).get(column, {}).items()
        }

    def _scalars(self, reading: Counters, answers: dict[str, Any]) -> None:
        for oid, mode in CPU.items():
            ticks = _number(answers.get(oid))
            if ticks is not None:
                reading.add(f"cpu.all.{mode}", oid, ticks * NS_PER_TICK)
        if not any(value for key, value in reading.growing.items() if key.startswith("cpu.all.")):
            # net-snmp tells zeros for some seconds after its start, and then what the host counts.
            reading.growing.clear()
        for oid, name in MEMORY.items():
            kib = _number(answers.get(oid))
            if kib is not None:
                reading.levels[f"memory.{name}"] = kib * 1024
        for oid, name in LOAD.items():
            hundredths = _number(answers.get(oid))
            if hundredths is not None:
                reading.levels[f"load.{name}_milli"] = hundredths * 10

    def _rows(self, reading: Counters, columns: dict[str, dict[str, Any]]) -> None:
        counted = {column: ("net", name, 1) for column, name in NET.items()}
        counted |= {column: ("disk", name, scale) for column, (name, scale) in DISK.items()}
        names = {"net": columns.get(NET_NAME, {}), "disk": columns.get(DISK_NAME, {})}
        for column, (group, counter, scale) in counted.items():
            for index, value in columns.get(column, {}).items():
                count = _number(value)
                if count is not None:
                    name = _text(names[group].get(index)) or index
                    reading.growing[f"{group}.{name}.{counter}"] = count * scale

    def _leave_out_unchanged(self, reading: Counters, now_ns: int) -> None:
        for group in LAZY:
            counters = {key: value for key, value in reading.growing.items() if key.startswith(f"{group}.")}
            same = counters == self._before.get(group)
            if same and now_ns - self._changed_ns.get(group, now_ns) < KEPT_NS:
                for key in counters:
                    del reading.growing[key]
                continue
            self._before[group], self._changed_ns[group] = counters, now_ns


class _Agent:
    """Requests to one agent, as objects by number."""

    def __init__(self, api: Any, engine: Any, access: Any, transport: Any, silent: WatchError) -> None:
        self._api = api
        self._engine = engine
        self._access = access
        self._transport = transport
        self._silent = silent

    def close(self) -> None:
        self._engine.close_dispatcher()

    async def get(self, oids: Sequence[str]) -> dict[str, Any]:
        """Return what there is of single objects."""
        api = self._api
        values: dict[str, Any] = {}
        for at in range(0, len(oids), ROWS):
            objects = [api.ObjectType(api.ObjectIdentity(oid)) for oid in oids[at : at + ROWS]]
            answer = await api.get_cmd(
                self._engine, self._access, self._transport, api.ContextData(), *objects, lookupMib=False
            )
            values |= dict(self._bindings(answer))
        return values

    async def table(self, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return columns as index to value, several columns with each request."""
        api = self._api
        cells: dict[str, dict[str, Any]] = {column: {} for column in columns}
        at = dict(zip(columns, columns, strict=True))
        while at:
            objects = [api.ObjectType(api.ObjectIdentity(oid)) for oid in at.values()]
            rows = max(1, 2 * ROWS // len(at))
            context = api.ContextData()
            answer = await api.bulk_cmd(
                self._engine, self._access, self._transport, context, 0, rows, *objects, lookupMib=False
            )
            going = dict.fromkeys(at, "")
            for oid, value in self._bindings(answer):
                column = next((one for one in at if oid.startswith(f"{one}.")), None)
                if column is not None and len(cells[column]) < MOST_ROWS:
                    index = oid[len(column) + 1 :]
                    if index not in cells[column]:
                        going[column] = oid
                        cells[column][index] = value
            at = {column: oid for column, oid in going.items() if oid}
        return cells

    def _bindings(self, answer: Any) -> Iterable[tuple[str, Any]]:
        failed, status, _, bindings = answer
        if failed:
            raise _fault(str(failed) or type(failed).__name__, self._silent)
        if status and int(status) != 2:
            raise _fault(status.prettyPrint(), self._silent)
        for oid, value in bindings:
            if type(value).__name__ not in ("NoSuchObject", "NoSuchInstance", "EndOfMibView", "Null"):
                yield str(oid), value


async def _agent(address: WatchedAddress, timeout_s: float) -> _Agent:
    try:
        from pysnmp.hlapi.v3arch import asyncio as api  # noqa: PLC0415 - an extra, loaded where it is used
    except ImportError as error:
        raise make_error(LASTING, "watch.snmp.no_library") from error
    try:
        transport = await api.UdpTransportTarget.create(
            (address.host, address.port or 161), timeout=timeout_s / TRIES, retries=TRIES - 1
        )
    except Exception as error:
        raise make_error(LASTING, "watch.hosts.unknown_name") from error
    silent = make_error(WatchError, "watch.snmp.silent", port=address.port, timeout=f"{timeout_s:g}")
    return _Agent(api, api.SnmpEngine(), _access(api, address), transport, silent)


def _access(api: Any, address: WatchedAddress) -> Any:
    secrets = address.secrets
    if not secrets.user:
        return api.CommunityData(secrets.community, mpModel=1)
    protocols = {
        "md5": api.USM_AUTH_HMAC96_MD5,
        "sha": api.USM_AUTH_HMAC96_SHA,
        "sha224": api.USM_AUTH_HMAC128_SHA224,
        "sha256": api.USM_AUTH_HMAC192_SHA256,
        "sha384": api.USM_AUTH_HMAC256_SHA384,
        "sha512": api.USM_AUTH_HMAC384_SHA512,
    }
    ciphers = {
        "des": api.USM_PRIV_CBC56_DES,
        "3des": api.USM_PRIV_CBC168_3DES,
        "aes": api.USM_PRIV_CFB128_AES,
        "aes192": api.USM_PRIV_CFB192_AES,
        "aes256": api.USM_PRIV_CFB256_AES,
    }
    credentials: dict[str, Any] = {}
    if secrets.auth_password:
        credentials = {
            "authKey": secrets.auth_password,
            "authProtocol": protocols[secrets.authentication or "sha256"],
        }
    if secrets.privacy_password:
        credentials |= {
            "privKey": secrets.privacy_password,
            "privProtocol": ciphers[secrets.privacy or "aes"],
        }
    return api.UsmUserData(secrets.user, **credentials)


def _fault(said: str, silent: WatchError) -> WatchError:
    if SILENT in said:
        return silent
    for words, fault in FAULTS:
        if words in said.lower():
            return make_error(LASTING, f"watch.snmp_access.{fault}")
    return make_error(WatchError, "watch.snmp.agent", reason=said[:200])


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _text(value: Any) -> str | None:
    return None if value is None else bytes(value).decode(errors="replace")


def _date(value: Any) -> WallClock | None:
    """Read a DateAndTime (SNMPv2-TC); one without its zone says nothing."""
    data = b"" if value is None else bytes(value)
    if len(data) != 11:
        return None
    year, month, day, hour, minute, second, tenths, sign, hours, minutes = struct.unpack(">HBBBBBBcBB", data)
    zone = timedelta(hours=hours, minutes=minutes)
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        moment += zone if sign == b"-" else -zone
    except (ValueError, OverflowError):
        return None
    # Most agents leave the tenths at zero.
    return WallClock(round(moment.timestamp()) * 10**9 + tenths * 10**8, 10**8 if tenths else 10**9)
