"""The named workloads: TOML files beside this one, with their meaning and source.

Knows how a file becomes a Workload and what its parameters accept. Knows no job-file
language and no host. Keys of a job are fields of `workload.model.Job`; `block_bytes`
stands for one fixed block size; a text `$name` is the value of a parameter.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, Where
from loadstone.workload.model import Amount, FixedSize, Job, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS_NS: Final = {"": 10**9, "s": 10**9, "ms": 10**6, "m": 60 * 10**9, "h": 3600 * 10**9}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something a user may set: `integer`, `seconds` (becomes nanoseconds) or `amount` (bytes or %)."""

    name: str
    type: str
    default: str
    meaning: str

    def value(self, text: str) -> object:
        """Read a value. Raises InputError for one of another type."""
        read = {"integer": _integer, "seconds": _seconds_ns, "amount": _amount}[self.type]
        value = read(text.strip().lower())
        if value is None:
            example = {"integer": "32", "seconds": "30, 30s or 5m", "amount": "1g or 80%"}[self.type]
            raise InputError(f"found {text!r} for {self.name}, expected {example}", hint=self.meaning)
        return value


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


def _seconds_ns(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|)", text)
    return int(match[1]) * _SECONDS_NS[match[2]] if match else None


def _amount(text: str) -> Amount | None:
    match = re.fullmatch(r"(\d{1,12})([kmgt%]?)", text)
    if match is None or int(match[1]) == 0:
        return None
    if match[2] == "%":
        return Amount(percent=float(match[1])) if int(match[1]) <= 100 else None
    return Amount(bytes=int(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True, slots=True)
class Entry:
    """A named workload before its parameters are set."""

    name: str
    meaning: str
    source: str
    parameters: tuple[Parameter, ...]
    text: str
    """The TOML file."""

    def workload(self, given: Mapping[str, str] | None = None) -> Workload:
        """Return the Workload with parameters set. Raises InputError for an unknown one."""
        given = given or {}
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise InputError(
                    f"{self.name} has no parameter {name!r}", hint="it has: " + ", ".join(sorted(known))
                )
        values = {name: p.value(given.get(name, p.default)) for name, p in known.items()}
        content = tomllib.loads(self.text)
        where = Where(f"{self.name}.toml")
        common = content.get("all", {})
        jobs = tuple(_job({**common, **job}, values, where) for job in content["jobs"])
        return Workload(
            name=self.name,
            jobs=jobs,
            needs_targets=True,
            job_per_target=bool(content.get("job_per_target", False)),
            sources={f"{self.name}.toml": self.text.encode()},
        )

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON-ready values."""
        return {
            "name": self.name,
            "meaning": self.meaning,
            "source": self.source,
            "parameters": [
                {"name": p.name, "type": p.type, "default": p.default, "meaning": p.meaning}
                for p in self.parameters
            ],
        }


def _job(fields: Mapping[str, Any], values: Mapping[str, object], where: Where) -> Job:
    ready: dict[str, Any] = {
        key: values[value[1:]] if isinstance(value, str) and value.startswith("$") else value
        for key, value in fields.items()
    }
    block = ready.pop("block_bytes", None)
    if block is not None:
        ready["bs"] = (FixedSize(bytes=block),) * 3
    return Job(where=where, **ready)


def names() -> list[str]:
    """Return the names of all workloads, sorted."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load(name: str) -> Entry:
    """Return the entry of one name. Raises InputError for an unknown one."""
    if name not in names():
        raise InputError(f"there is no workload {name!r}", hint="there are: " + ", ".join(names()))
    text = (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    parameters = tuple(
        Parameter(key, row["type"], str(row["default"]), row["meaning"])
        for key, row in content.get("parameters", {}).items()
    )
    return Entry(name, content["meaning"], content["source"], parameters, text)
