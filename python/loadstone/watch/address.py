"""Who is watched, and how it is reached: `NAME=ssh://…`, `snmp://…`, `http://…` or `local`.

Knows the words of `--watch` and where secrets come from: a file or the environment, never the
command line, because every user of the host can read that, and it is kept in the bundle.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from loadstone import input_file, toml_text
from loadstone.errors import InputError, Where
from loadstone.units import digits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Kind = Literal["ssh", "snmp", "http", "local"]
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
SHAPE: Final = "NAME=ssh://USER@HOST, NAME=snmp://HOST, NAME=http://HOST:9100/metrics or NAME=local"
OPTION: Final = "--watch"
SECRETS: Final = "--watch-secrets"
COMMUNITY: Final = "LOADSTONE_SNMP_COMMUNITY"
WELL_KNOWN: Final = "public"
"""The one community that everybody knows, so that it may stand on a command line."""
SHORTEST_S: Final = 1.0
LONGEST_S: Final = 3600.0
SNMP_PORT: Final = 161
KINDS: Final[dict[str, Kind]] = {"ssh": "ssh", "snmp": "snmp", "http": "http", "https": "http"}
AUTHENTICATIONS: Final = ("md5", "sha", "sha224", "sha256", "sha384", "sha512")
PRIVACIES: Final = ("des", "3des", "aes", "aes192", "aes256")


@dataclass(frozen=True, slots=True)
class Secrets:
    """What lets us in; it is never shown. SNMPv3 where there is a `user` of it."""

    community: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    authentication: str | None = None
    auth_password: str | None = field(default=None, repr=False)
    privacy: str | None = None
    privacy_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WatchedAddress:
    """One host that is watched. `url` may be shown and kept: it has no secret."""

    name: str
    kind: Kind
    url: str
    host: str = ""
    port: int | None = None
    user: str | None = None
    secrets: Secrets = field(default_factory=Secrets, repr=False)
    interval_s: float = 1.0


def addresses(
    words: Sequence[str],
    *,
    interval_s: float = 1.0,
    secrets: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[WatchedAddress, ...]:
    """Read every `--watch`. Raises `InputError`."""
    if secrets is not None and not words:
        raise InputError("has no effect without --watch", where=_at(SECRETS), hint=f"write {SHAPE}")
    if not SHORTEST_S <= interval_s <= LONGEST_S:
        raise InputError(
            f"found {digits(interval_s)} s, expected 1 s to 1 h", where=_at("--watch-interval"),
            hint="counters of a watched host tell nothing within a second",
        )  # fmt: skip
    told = _secrets(secrets) if secrets is not None else {}
    names = [word.partition("=")[0] for word in words]
    for name in told:
        if name not in names:
            hint = f"names are {', '.join(names)}"
            raise InputError(
                f"{secrets} has [{name}], and no --watch has this name", where=_at(SECRETS), hint=hint
            )
    found: dict[str, WatchedAddress] = {}
    for word in words:
        one = _address(word, told, interval_s, environment)
        if one.name in found:
            raise InputError(f"{one.name} is given twice", where=_at(), hint="give each host its own name")
        found[one.name] = one
    return tuple(found.values())


def _address(
    word: str, told: Mapping[str, Secrets], interval_s: float, environment: Mapping[str, str]
) -> WatchedAddress:
    name, equals, url = word.partition("=")
    if not equals or not url:
        raise InputError(f"found {_harmless(word)!r}, expected {SHAPE}", where=_at())
    if not NAME.fullmatch(name):
        raise InputError(
            f"found the name {_harmless(name)!r}, expected up to 32 letters, digits, - or _",
            where=_at(),
            hint="the name becomes a file of the bundle",
        )
    made = _parsed(name, url)
    secrets = told.get(name, Secrets())
    if made.kind == "snmp":
        secrets = _community(made, secrets, environment)
        made = replace(made, user=None)
    return replace(made, secrets=secrets, interval_s=interval_s)


def _parsed(name: str, url: str) -> WatchedAddress:
    """Read an address that must not have a secret in it."""
    if url == "local":
        return WatchedAddress(name, "local", url)
    parts = urlsplit(url)
    kind = KINDS.get(parts.scheme)
    if kind is None:
        found = f"the scheme {parts.scheme!r}" if parts.scheme else f"{_harmless(url)!r}"
        raise InputError(f"{name}: found {found}, expected {SHAPE}", where=_at())
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise InputError(f"{name}: the port is no number from 1 to 65535", where=_at()) from error
    if not host or host.startswith("-"):
        raise InputError(f"{name}: the host is missing", where=_at(), hint=f"write {SHAPE}")
    user = unquote(parts.username) if parts.username else None
    if parts.password is not None or (kind == "http" and user is not None):
        raise _on_command_line(name, "a password")
    if user is not None and user.startswith("-"):
        raise InputError(f"{name}: found the user {user!r}, expected a name", where=_at())
    place = parts.netloc.rpartition("@")[2]
    if kind == "snmp":
        return WatchedAddress(name, kind, f"snmp://{place}", host, port or SNMP_PORT, user)
    if kind == "ssh":
        if parts.path not in ("", "/"):
            raise InputError(f"{name}: found the path {parts.path!r}, expected ssh://USER@HOST", where=_at())
        return WatchedAddress(name, kind, f"ssh://{f'{user}@' if user else ''}{place}", host, port, user)
    query = f"?{parts.query}" if parts.query else ""
    return WatchedAddress(
        name, kind, f"{parts.scheme}://{place}{parts.path or '/metrics'}{query}", host, port
    )


def _community(made: WatchedAddress, secrets: Secrets, environment: Mapping[str, str]) -> Secrets:
    """Find the community: in the file, the environment, or the well-known one in the address."""
    if made.user is not None and made.user != WELL_KNOWN:
        raise _on_command_line(made.name, "a community")
    if secrets.user or secrets.community:
        return secrets
    community = made.user or environment.get(COMMUNITY)
    if not community:
        raise InputError(
            f"{made.name}: no community is known",
            where=_at(),
            hint=f"set {COMMUNITY}, name it in the file of {SECRETS}, or write snmp://public@{made.host}",
        )
    return Secrets(community=community)


def _on_command_line(name: str, what: str) -> InputError:
    return InputError(
        f"{name}: {what} on the command line can be read by every user of this host",
        where=_at(),
        hint=f"put it into a file that only you can read, and name that with {SECRETS} FILE",
    )


def _secrets(path: Path) -> dict[str, Secrets]:
    """Read the file of secrets, a table for each name; others must not be able to."""
    try:
        with input_file.opened(path) as file:
            if stat.S_IMODE(file.status.st_mode) & 0o077:
                raise InputError(
                    f"{path} can be read by other users",
                    where=_at(SECRETS),
                    hint=f"chmod 600 {path}",
                )
            tables = toml_text.parsed(file.read(input_file.MOST_BYTES).decode())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", where=_at(SECRETS)) from error
    except ValueError as error:
        # The parser's own words may quote the line.
        raise InputError(
            f"{path} is not TOML", where=_at(SECRETS), hint='write [NAME], then lines of KEY = "VALUE"'
        ) from error
    return {name: _of_table(path, name, table) for name, table in tables.items()}


def _of_table(path: Path, name: str, table: Any) -> Secrets:
    known = tuple(Secrets.__dataclass_fields__)
    if not isinstance(table, dict):
        raise InputError(
            f"{path}: {name} is no table", where=_at(SECRETS), hint=f"write [{name}] above its keys"
        )
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{path}: [{name}] has {key!r}, expected {', '.join(known)}", where=_at(SECRETS))
        if not isinstance(value, str) or not value:
            raise InputError(f"{path}: [{name}] {key} is no text", where=_at(SECRETS))
    made = Secrets(**table)
    for value, allowed, key in (
        (made.authentication, AUTHENTICATIONS, "authentication"),
        (made.privacy, PRIVACIES, "privacy"),
    ):
        if value is not None and value not in allowed:
            raise InputError(
                f"{path}: [{name}] {key}: found {value!r}, expected {', '.join(allowed)}", where=_at(SECRETS)
            )
    if made.privacy_password and not made.auth_password:
        raise InputError(f"{path}: [{name}] has privacy_password and no auth_password", where=_at(SECRETS))
    return made


def _harmless(text: str) -> str:
    """Return what may be repeated: nothing that stands where a password may."""
    return re.sub(r"(?<=//)[^@/]*@", "…@", text)


def _at(option: str = OPTION) -> Where:
    return Where("command line", option=option)
