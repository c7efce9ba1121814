"""Which hosts, and how each is reached: `hosts.toml`, or names on a command line.

Knows the keys of the file; docs/hosts.md lists them. Reaches nothing.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, Field, ValidationError, model_validator

from loadstone import input_file, toml_text
from loadstone.errors import InputError, Where, raise_all
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.toml_repair import RepairedDocument, RuleMistake, TomlMistake, located

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.toml_repair import Keys

DIRECTORY: Final = "/var/tmp/loadstone-hosts"  # noqa: S108 # on a host a run may be the only user
"""Where agents keep their bundles until they are collected."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,62}")
_WORD: Final = re.compile(
    r"(?:(?P<user>[^@:\s]+)@)?(?P<host>\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\]|[^@:\s\[\]]+)(?::(?P<port>\d+))?"
)

_HOST_AND_PORT: Final = re.compile(r"[^:\s]+:\d+|\[.*\]:\d+")

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False, strict=True)]
Port = Annotated[int, Field(ge=1, le=65_535, strict=True)]

BY_SSH: Final = ("user", "port", "identity_file", "ssh_options", "program")
"""Keys of a host that say how it is reached, and nothing of a process of this machine."""
BY_DASK: Final = ("coordinator", "certificates", "tls")
"""Keys of a run that say how Dask carries words."""
_LEFT_OUT: Final = "left-out-"
"""Begins the name of a host whose own is not known."""
SCHEDULER: Final = re.compile(r"(?:tls|tcp)://(?:\[[0-9a-fA-F:]+\]|[^\s/:]+):[0-9]{1,5}")


def _one_word(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        raise ValueError(say("hosts.file.blanks"))
    return text


def _user(text: str) -> str:
    if ":" in text:
        raise ValueError(say("hosts.file.password"))
    return _one_word(text)


def _without_port(text: str) -> str:
    if "@" in text:
        raise ValueError(say("hosts.file.user"))
    if _HOST_AND_PORT.fullmatch(text) is not None or text.startswith("-") or "/" in text:
        raise ValueError(say("hosts.file.port"))
    return _one_word(text[1:-1] if text.startswith("[") and text.endswith("]") else text)


def _scheduler(text: str) -> str:
    if SCHEDULER.fullmatch(text) is None:
        raise ValueError(say("hosts.file.scheduler"))
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(say("hosts.file.shared_path"))
    return text


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ValueError(say("hosts.file.name"))
    return text


Text = Annotated[str, Field(min_length=1)]
Address = Annotated[str, AfterValidator(_without_port)]


class HostDefaults(FrozenModel):
    """What holds for every host that does not say otherwise."""

    launch: Literal["ssh", "local"] = "ssh"
    """`local`: a process on this machine, for a host that is this machine."""
    user: Annotated[str, AfterValidator(_user)] | None = None
    port: Port | None = None
    identity_file: Text | None = None
    ssh_options: tuple[Text, ...] = ()
    """As `-o` of ssh takes them: `StrictHostKeyChecking=accept-new`."""
    program: Annotated[tuple[Text, ...], Field(min_length=1)] = ("loadstone",)
    """Words that start Loadstone there."""
    directory: Text = DIRECTORY


class HostEntry(HostDefaults):
    """One host. `name` is what reports call it."""

    name: Annotated[str, AfterValidator(_name)]
    address: Address | None = None
    """Name or address to reach it by; its own name when there is none."""

    @property
    def reached_by(self) -> str:
        """Name or address to reach it by."""
        return self.address or self.name


class SharedTarget(FrozenModel):
    """A device that several hosts see, said where they could not find out: paths by host."""

    name: Text
    targets: dict[str, Annotated[str, AfterValidator(_absolute)]]


class RunSettings(FrozenModel):
    """How the hosts are held together."""

    coordinator: Address | None = None
    """Address of this machine as hosts reach it; the port is a free one."""
    transport: Literal["dask", "pipe"] = "dask"
    """How words travel: Dask distributed under TLS, or the standard streams of ssh."""
    scheduler: Annotated[str, AfterValidator(_scheduler)] | None = None
    """Address of a Dask scheduler whose workers are the hosts, in place of starting any."""
    certificates: Text | None = None
    """Directory that `loadstone hosts certificates` wrote; without it each run makes its own."""
    tls: Annotated[bool, Field(strict=True)] = True
    on_loss: Literal["stop", "continue"] = "stop"
    lost_after_s: Seconds = 10.0
    connect_s: Seconds = 30.0
    lead_s: Seconds = 2.0

    @model_validator(mode="after")
    def _one_way(self) -> RunSettings:
        """Refuse what has no effect beside what else is set."""
        located(RuleMistake(text, ()) for text in self._misfits())
        return self

    def _misfits(self) -> Iterator[str]:
        if self.scheduler is None:
            yield from self._idle("pipe", BY_DASK if self.transport == "pipe" else ())
        else:
            yield from self._idle("scheduler", ("coordinator",))
            if self.transport == "pipe":
                yield say("hosts.file.two_ways")
            if self.scheduler.startswith("tls:") is not self.tls:
                yield say("hosts.file.scheduler_tls" if self.tls else "hosts.file.scheduler_no_tls")
        yield from self._idle("no_tls", () if self.tls else ("certificates",))

    def _idle(self, why: str, keys: tuple[str, ...]) -> Iterator[str]:
        """Say of the first of these keys that is set that it has no effect."""
        given_key = next((key for key in keys if key in self.model_fields_set), None)
        if given_key is not None:
            yield say(f"hosts.file.no_effect.{why}", key=given_key)


class HostsFile(FrozenModel):
    """`hosts.toml`."""

    run: RunSettings = RunSettings()
    defaults: HostDefaults = HostDefaults()
    host: tuple[HostEntry, ...] = ()
    shared: tuple[SharedTarget, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, document: Any) -> Any:
        """Give each host the defaults it does not replace."""
        if not isinstance(document, dict) or not isinstance(document.get("defaults"), dict):
            return document
        hosts = document.get("host")
        if not isinstance(hosts, (list, tuple)):
            return document
        merged = [{**document["defaults"], **one} if isinstance(one, dict) else one for one in hosts]
        return {**document, "host": merged}

    @model_validator(mode="after")
    def _apart(self) -> HostsFile:
        names = self.names
        located(
            RuleMistake(say("hosts.file.twice", name=repr(name)), ("host", at, "name"))
            for at, name in enumerate(names)
            if name in names[:at]
        )
        return self

    @property
    def names(self) -> list[str]:
        """The hosts' names in their order."""
        return [host.name for host in self.host]

    def entry(self, name: str) -> HostEntry:
        """Return the host of this name."""
        return next(host for host in self.host if host.name == name)


def read_hosts(word: str) -> HostsFile:
    """Read what `--hosts` was given: a file, or names with commas between. Raises `InputError`.

    A file that is no TOML is one of `fio --client`: a host on each line.
    """
    where = Where("command line", option="--hosts")
    if word.endswith(".toml"):
        return read_hosts_file(Path(word))
    if os.path.isfile(word):  # noqa: PTH113 - the names of many hosts are longer than a file may be called
        return _named(_client_file(Path(word)), where)
    if "/" in word:
        return read_hosts_file(Path(word))
    return _named([one.strip() for one in word.split(",")], where)


def _client_file(path: Path) -> list[str]:
    """Read the hosts of a file of `fio --client`; where fio's own server listens is of no use here."""
    try:
        lines = input_file.read(path, "list of hosts").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise make_error(InputError, "hosts.clients.unreadable", where=Where(str(path))) from error
    addresses = []
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        kind, colon, rest = text.partition(":")
        if kind == "sock" and colon:
            raise make_error(InputError, "hosts.clients.socket", where=Where(str(path), number))
        name = rest if kind in {"ip", "ip4", "ip6"} and colon else text
        host = name.partition(",")[0].strip()
        addresses.append(f"[{host}]" if kind == "ip6" and colon else host)
        if any(character.isspace() for character in host):
            raise InputError(say("hosts.clients.words", text=text), where=Where(str(path), number))
    if not addresses:
        raise make_error(InputError, "hosts.clients.empty", where=Where(str(path)))
    return addresses


def _has_password(text: str) -> bool:
    """Whether a user of `USER@HOST` has something behind a colon: it is never repeated."""
    return ":" in text.rpartition("@")[0]


def _named(names: list[str], where: Where) -> HostsFile:
    if any(_has_password(name) for name in names):
        raise InputError(say("hosts.file.password"), where=where, hint=say("hosts.file.password_hint"))
    if not all(names):
        raise InputError(say("hosts.file.names", found=repr(",".join(names))), where=where)
    entries, wrong = [], []
    for name in names:
        match = _WORD.fullmatch(name)
        if match is None:
            hint = say("hosts.file.brackets_hint" if name.count(":") > 1 else "hosts.file.word_hint")
            wrong.append(InputError(say("hosts.file.word", found=repr(name)), where=where, hint=hint))
            continue
        address = match["host"].strip("[]")
        entries.append(
            {
                "name": re.sub(r"[:%]", "-", address).strip("-") if ":" in address else address,
                "address": address,
                "user": match["user"],
                "port": int(match["port"]) if match["port"] else None,
                "launch": "local" if address == "localhost" else "ssh",
            }
        )
    raise_all(wrong)
    try:
        return HostsFile.model_validate({"host": entries})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        number = next((part for part in first["loc"] if isinstance(part, int)), None)
        if number is None:
            raise InputError(toml_text.wrong_value(first), where=where) from error
        raise InputError(
            say("hosts.file.word", found=repr(names[number])), where=where, hint=say("hosts.file.word_hint")
        ) from error


def read_hosts_file(path: Path) -> HostsFile:
    """Read `hosts.toml`. Raises `InputError` of all mistakes: line, key, what was found and what is near."""
    try:
        content = toml_text.decoded(input_file.read(path, "list of hosts"))
        document = toml_text.parsed(content)
    except UnicodeDecodeError as error:
        raise make_error(InputError, "hosts.file.binary", where=Where(str(path))) from error
    except toml_text.TomlError as error:
        where = Where(str(path), error.line)
        raise make_error(InputError, "hosts.file.syntax", where=where, reason=str(error)) from error
    repaired = RepairedDocument(document, _stand_in, lambda loc: _model(loc).model_fields)
    hosts_file = cast("HostsFile | None", repaired.read(HostsFile))
    wrong = [_explained(path, content, one) for one in repaired.mistakes]
    if hosts_file is not None:
        wrong += _without_hosts(path, hosts_file, repaired)
        wrong += _wrong_shared(path, content, hosts_file)
        wrong += _without_effect(path, content, hosts_file, repaired)
    raise_all(sorted(wrong, key=lambda one: (one.where.line if one.where else None) or sys.maxsize))
    assert hosts_file is not None  # noqa: S101 - without a mistake there is one
    return hosts_file


def _stand_in(document: dict[str, Any], loc: Keys) -> Any:
    """Return what stands for a host that is wrong while the rest is looked at; None: nothing."""
    if len(loc) < 2 or loc[0] != "host":
        return None
    own = document["host"][loc[1]]
    name = own.get("name") if isinstance(own, dict) else None
    names = [one.get("name") for one in document["host"] if isinstance(one, dict)]
    fit = isinstance(name, str) and _NAME.fullmatch(name) is not None and names.count(name) == 1
    return {"name": name if fit else f"{_LEFT_OUT}{loc[1]}"}


def _model(loc: Keys) -> type[FrozenModel]:
    models: dict[str, type[FrozenModel]] = {
        "run": RunSettings,
        "defaults": HostDefaults,
        "host": HostEntry,
        "shared": SharedTarget,
    }
    return models.get(str(loc[0]), HostsFile) if loc else HostsFile


def _without_hosts(path: Path, hosts_file: HostsFile, repaired: RepairedDocument) -> Iterator[InputError]:
    if not hosts_file.host and not repaired.is_left_out("host"):
        yield InputError(
            say("hosts.clients.empty"), where=Where(str(path)), hint=say("hosts.file.empty_hint")
        )


def _without_effect(
    path: Path, content: str, hosts_file: HostsFile, repaired: RepairedDocument
) -> Iterator[InputError]:
    """Refuse what is said of ssh where nothing is started by ssh."""
    document = repaired.document
    for number, host in enumerate(hosts_file.host):
        keys = [key for key in BY_SSH if key in document["host"][number]]
        if host.launch == "local" and keys:
            where = Where(str(path), _line(content, "host", number, keys[0]), f"host.{keys[0]}")
            yield InputError(say("hosts.file.no_effect.local", key=keys[0]), where=where)
    if repaired.is_left_out("host", "defaults", "run") or not hosts_file.host:
        return
    if hosts_file.run.scheduler is None and all(host.launch == "local" for host in hosts_file.host):
        keys = [key for key in ("transport", *BY_DASK) if key in document.get("run", {})]
        if keys:
            where = Where(str(path), _line(content, "run", 0, keys[0]), f"run.{keys[0]}")
            yield InputError(say("hosts.file.no_effect.all_local", key=keys[0]), where=where)


def _wrong_shared(path: Path, content: str, hosts_file: HostsFile) -> Iterator[InputError]:
    known: dict[tuple[str, str], str] = {}
    every_name = not any(_LEFT_OUT in name for name in hosts_file.names)
    for number, shared in enumerate(hosts_file.shared):
        line = _line(content, "shared", number, "targets")
        where = Where(str(path), line, f"shared.{shared.name}.targets")
        if shared.name in known.values():
            yield make_error(InputError, "hosts.file.shared_twice", where=where, name=repr(shared.name))
        for place in shared.targets.items():
            if place in known:
                reason = say("hosts.file.shared_path_twice", place=":".join(place), name=repr(known[place]))
                yield InputError(reason, where=where)
            known[place] = shared.name
        for name in shared.targets:
            if name not in hosts_file.names and every_name:
                yield InputError(
                    say("hosts.file.no_host", name=repr(name)),
                    where=where,
                    hint=nearest(name, hosts_file.names),
                )
        if len(shared.targets) < 2:
            hint = say("hosts.file.shared_one_hint")
            yield InputError(say("hosts.file.shared_one"), where=where, hint=hint)


def _explained(path: Path, content: str, mistake: TomlMistake) -> InputError:
    loc, error = list(mistake.loc), mistake.error
    table = str(loc[0]) if loc else ""
    number = next((one for one in loc if isinstance(one, int)), 0)
    keys = [str(one) for one in loc if isinstance(one, str)]
    key = keys[-1] if keys else ""
    where = Where(str(path), _line(content, table, number, key), ".".join(keys) or None)
    model = _model(tuple(loc)) if len(loc) > 1 else HostsFile
    if mistake.kind == "extra_forbidden":
        return InputError(say("hosts.file.key"), where=where, hint=_near(key, model.model_fields))
    if mistake.kind == "missing":
        return InputError(say("hosts.file.missing"), where=where, hint=say("hosts.file.missing_hint"))
    value = error.get("input")
    if isinstance(value, str) and (_has_password(value) or (key == "user" and ":" in value)):
        return InputError(say("hosts.file.password"), where=where, hint=say("hosts.file.password_hint"))
    if mistake.rule is not None:
        return InputError(mistake.rule.text, where=where)
    hint = say("hosts.file.empty_hint") if loc[:1] == ["host"] and len(loc) <= 2 else None
    return InputError(toml_text.wrong_value(error), where=where, hint=hint or toml_text.near_choice(error))


def _near(key: str, valid: Iterable[str]) -> str | None:
    return nearest(key, valid, limit=20)


def _line(content: str, table: str, number: int, key: str) -> int | None:
    """Find where a key stands in the table of this number; without one, where the table begins."""
    current_table, table_number, begin = "", -1, None
    for at, line in enumerate(content.splitlines(), start=1):
        header = re.match(r"\s*(\[+)\s*([\w.]+)", line)
        if header:
            current_table = header[2]
            table_number = table_number + 1 if current_table == table else table_number
            if current_table == table and (header[1] == "[" or table_number == number):
                begin = at
                if key == table:
                    return at
        elif (
            key
            and (current_table == table and (table_number == number or table not in {"host", "shared"}))
            and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line)
        ) or (not current_table and key == table and re.match(rf"\s*{re.escape(key)}\s*=", line)):
            return at
    return begin
