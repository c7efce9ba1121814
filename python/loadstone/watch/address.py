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
from urllib.parse import parse_qsl, unquote, urlsplit

from loadstone import input_file, toml_text
from loadstone.errors import InputError, Where
from loadstone.messages import make_error
from loadstone.units import digits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from urllib.parse import SplitResult

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
FILTERS: Final = frozenset({"collect[]", "exclude[]"})
"""What node_exporter reads of an address; anything else may be a secret."""
PRIVACIES: Final = ("des", "3des", "aes", "aes192", "aes256")
LETS_IN: Final[dict[Kind, frozenset[str]]] = {
    "ssh": frozenset(),
    "local": frozenset(),
    "http": frozenset({"user", "password", "token", "query"}),
    "snmp": frozenset(
        {"community", "user", "authentication", "auth_password", "privacy", "privacy_password"}
    ),
}
"""Which secrets a way uses."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What lets us in; it is never shown. SNMPv3 where there is a `user` of it."""

    community: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    query: str | None = field(default=None, repr=False)
    """Of an http address, what stands after its question mark."""
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
        raise make_error(InputError, "watch.address.no_hosts", where=_at(SECRETS), shape=SHAPE)
    if not SHORTEST_S <= interval_s <= LONGEST_S:
        raise make_error(
            InputError, "watch.address.interval", where=_at("--watch-interval"), interval=digits(interval_s)
        )
    host_secrets = _secrets(secrets) if secrets is not None else {}
    names = [word.partition("=")[0] for word in words]
    for name in host_secrets:
        if name not in names:
            raise make_error(
                InputError, "watch.address.secret_of_nobody", where=_at(SECRETS), secrets=secrets, name=name,
                known=", ".join(names),
            )  # fmt: skip
    watched: dict[str, WatchedAddress] = {}
    for word in words:
        one = _address(word, host_secrets, interval_s, environment)
        if one.name in watched:
            raise make_error(InputError, "watch.address.twice", where=_at(), name=one.name)
        watched[one.name] = one
    return tuple(watched.values())


def _address(
    word: str, known_secrets: Mapping[str, Secrets], interval_s: float, environment: Mapping[str, str]
) -> WatchedAddress:
    name, equals, url = word.partition("=")
    if not equals or not url:
        raise make_error(
            InputError, "watch.address.shape", where=_at(), address=repr(_harmless(word)), shape=SHAPE
        )
    if not NAME.fullmatch(name):
        raise make_error(InputError, "watch.address.name", where=_at(), name=repr(_harmless(name)))
    address = _parsed(name, url)
    secrets = known_secrets.get(name, Secrets())
    _check_effects(address, secrets)
    if address.kind == "snmp":
        secrets = _community(address, secrets, environment)
        address = replace(address, user=None)
    return replace(address, secrets=secrets, interval_s=interval_s)


def _parsed(name: str, url: str) -> WatchedAddress:
    """Read an address that must not have a secret in it."""
    if url == "local":
        return WatchedAddress(name, "local", url)
    parts = urlsplit(url)
    kind = KINDS.get(parts.scheme)
    if kind is None:
        shown = f"the scheme {parts.scheme!r}" if parts.scheme else f"{_harmless(url)!r}"
        raise make_error(InputError, "watch.address.scheme", where=_at(), name=name, found=shown, shape=SHAPE)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise make_error(InputError, "watch.address.port", where=_at(), name=name) from error
    if not host or host.startswith("-"):
        raise make_error(InputError, "watch.address.no_host", where=_at(), name=name, shape=SHAPE)
    user = unquote(parts.username) if parts.username else None
    _check_open(name, kind, parts)
    if user is not None and user.startswith("-"):
        raise make_error(InputError, "watch.address.user", where=_at(), name=name, user=repr(user))
    place = parts.netloc.rpartition("@")[2]
    if parts.fragment or (kind != "http" and (parts.path.strip("/") or parts.query)):
        raise make_error(InputError, "watch.address.more", where=_at(), name=name, shape=SHAPE)
    if kind == "snmp":
        return WatchedAddress(name, kind, f"snmp://{place}", host, port or SNMP_PORT, user)
    if kind == "ssh":
        return WatchedAddress(name, kind, f"ssh://{f'{user}@' if user else ''}{place}", host, port, user)
    query = f"?{parts.query}" if parts.query else ""
    return WatchedAddress(
        name, kind, f"{parts.scheme}://{place}{parts.path or '/metrics'}{query}", host, port
    )


def _check_open(name: str, kind: Kind, parts: SplitResult) -> None:
    """Refuse an address with a secret in it."""
    # An @ behind a slash is one of a password that has a slash.
    if parts.password is not None or "@" in parts.path or (kind == "http" and parts.username is not None):
        raise _on_command_line(name, "a password")
    if any(key not in FILTERS for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise _on_command_line(name, "what stands after the question mark")


def _check_effects(address: WatchedAddress, secrets: Secrets) -> None:
    """Refuse secrets that the way to a host does not use."""
    uses = LETS_IN[address.kind]
    unused = [key for key in Secrets.__dataclass_fields__ if getattr(secrets, key) and key not in uses]
    if unused:
        raise make_error(
            InputError, "watch.secrets.no_effect", where=_at(SECRETS), name=address.name, option=unused[0],
            kind=address.kind, known=", ".join(sorted(uses)) or "none",
        )  # fmt: skip


def _community(address: WatchedAddress, secrets: Secrets, environment: Mapping[str, str]) -> Secrets:
    """Find the community: in the file, the environment, or the well-known one in the address."""
    if address.user is not None and address.user != WELL_KNOWN:
        raise _on_command_line(address.name, "a community")
    if secrets.user or secrets.community:
        return secrets
    community = address.user or environment.get(COMMUNITY)
    if not community:
        raise make_error(
            InputError,
            "watch.address.no_community",
            where=_at(),
            name=address.name,
            community=COMMUNITY,
            secrets=SECRETS,
            host=address.host,
        )
    return Secrets(community=community)


def _on_command_line(name: str, what: str) -> InputError:
    return make_error(
        InputError, "watch.address.secret_in_sight", where=_at(), name=name, what=what, secrets=SECRETS
    )


def _secrets(path: Path) -> dict[str, Secrets]:
    """Read the file of secrets, a table for each name; others must not be able to."""
    try:
        with input_file.opened(path) as file:
            if stat.S_IMODE(file.status.st_mode) & 0o077:
                raise make_error(InputError, "watch.secrets.readable", where=_at(SECRETS), path=path)
            tables = toml_text.parsed(toml_text.decoded(file.read(input_file.MOST_BYTES)))
    except OSError as error:
        raise make_error(
            InputError, "watch.secrets.unreadable", where=_at(SECRETS), path=path, reason=error.strerror
        ) from error
    except ValueError as error:
        # The parser's own words may quote the line.
        raise make_error(InputError, "watch.secrets.not_toml", where=_at(SECRETS), path=path) from error
    return {name: _of_table(path, name, table) for name, table in tables.items()}


def _of_table(path: Path, name: str, table: Any) -> Secrets:
    known = tuple(Secrets.__dataclass_fields__)
    if not isinstance(table, dict):
        raise make_error(InputError, "watch.secrets.no_table", where=_at(SECRETS), path=path, name=name)
    for key, value in table.items():
        if key not in known:
            raise make_error(
                InputError,
                "watch.secrets.unknown_key",
                where=_at(SECRETS),
                path=path,
                name=name,
                found=repr(key),
                known=", ".join(known),
            )
        if not isinstance(value, str) or not value:
            raise make_error(
                InputError, "watch.secrets.no_text", where=_at(SECRETS), path=path, name=name, option=key
            )
    secrets = Secrets(**table)
    for value, allowed, key in (
        (secrets.authentication, AUTHENTICATIONS, "authentication"),
        (secrets.privacy, PRIVACIES, "privacy"),
    ):
        if value is not None and value not in allowed:
            raise make_error(
                InputError,
                "watch.secrets.unknown_value",
                where=_at(SECRETS),
                path=path,
                name=name,
                option=key,
                value=repr(value),
                allowed=", ".join(allowed),
            )
    if secrets.privacy_password and not secrets.auth_password:
        raise make_error(InputError, "watch.secrets.privacy_alone", where=_at(SECRETS), path=path, name=name)
    return secrets


def _harmless(text: str) -> str:
    """Return what may be repeated: nothing that stands where a password may."""
    return re.sub(r"(?<=//)[^@/]*@", "…@", text)


def _at(option: str = OPTION) -> Where:
    return Where("command line", option=option)
