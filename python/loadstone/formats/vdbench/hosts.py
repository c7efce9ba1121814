"""Hosts of a parameter file: which of them are this machine, and what runs on them.

Knows that load is generated here only, and that vdbench divides the threads and the rate of an SD
among the hosts that use it: several hosts that are all this machine do together what one does.
Reads no keyword.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.formats.suggest import nearest
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.expand import ParameterFileRun
    from loadstone.formats.vdbench.general import LoadHost
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.formats.vdbench.storage import Storage
    from loadstone.formats.vdbench.workload import WorkloadDefinition

HERE: Final = "localhost"
_SHOWN: Final = 8


def mapped(file: ParameterFile, mapping: Mapping[str, str]) -> tuple[ParameterFile, dict[str, str]]:
    """Let hosts be this machine where a mapping says so, by label or system; `*` stands for anything.

    Returns the rest of the mapping, too. Raises InputError for a host that is to be another one, and
    for an SD whose lun would be that of another host's SD because nobody said what it is here.
    """
    rest: dict[str, str] = {}
    found: set[str] = set()
    for old, new in mapping.items():
        away = [host for host in file.hosts if not host.is_local]
        meant = [host.name for host in away if any(_fits(old, name) for name in _names(host))]
        local = [
            host.name
            for host in file.hosts
            if host.is_local and any(_fits(old, name) for name in _names(host))
        ]
        if new == HERE and (meant or local):
            # Those that are this machine anyway need nothing.
            found.update(meant)
        elif meant and "*" not in old and not _is_place(file, old):
            raise InputError(f"hd={old} can only be {HERE}", hint=f"write --map {old}={HERE}")
        else:
            rest[old] = new
    if not found:
        return file, rest
    _check_luns(file, found, rest)
    hosts = tuple(replace(host, system=HERE) if host.name in found else host for host in file.hosts)
    text = f"as asked: {_listed(sorted(found))} {'is' if len(found) == 1 else 'are'} this machine"
    return replace(file, hosts=hosts, notes=(*file.notes, Note(where=None, text=text, kind="changed"))), rest


def check(file: ParameterFile, run: ParameterFileRun, note: Callable[[Where, str], None]) -> None:
    """Refuse a run on hosts that are not this machine, and say what becomes of those that are."""
    hosts = file.hosts
    away = [host for host in hosts if not host.is_local]
    if len(hosts) > 1 and away:
        raise RefusedError(
            f"hd={away[0].name} is another host: load is generated on this machine only",
            where=away[0].where,
            hint=f"to run its part here: --map {away[0].name}={HERE}; that of all hosts: --map '*={HERE}'",
        )
    if away:
        note(away[0].where, f"hd={away[0].name} is taken for this machine: nothing runs elsewhere")
    elif len(hosts) > 1:
        note(
            hosts[0].where,
            f"{_listed([host.name for host in hosts])} run here as one: threads and rate of an "
            f"{'FWD' if run.file_works else 'SD'} are those of all its hosts together, as in vdbench",
        )


def meeting(file: ParameterFile, workload: WorkloadDefinition, storages: Sequence[Storage]) -> list[Storage]:
    """Return the SDs that have a host in common with a workload: on the others vdbench does not run it.

    Raises InputError for a host there is not, and for a workload without any SD.
    """
    mine = _hosts(file, workload.hosts, workload.at.get("hosts", workload.where))
    found = [
        storage
        for storage in storages
        if mine & _hosts(file, storage.hosts, storage.at.get("hosts", storage.where))
    ]
    if not found:
        raise InputError(
            f"no SD of wd={workload.name} is on one of its hosts ({_listed(sorted(mine))})",
            where=workload.at.get("hosts", workload.where),
            hint="change host= of the workload or of its SDs",
        )
    return found


def _hosts(file: ParameterFile, words: Sequence[str], where: Where) -> set[str]:
    found: set[str] = set()
    known = [host.name for host in file.hosts]
    for word in words:
        # A host with clients= is meant by its own label, too.
        meant = [name for name in known if _fits(word, name) or _fits(word, re.sub(r"_cl\d+\Z", "", name))]
        if not meant:
            raise InputError(f"there is no hd={word}", where=where, hint=nearest(word, known))
        found.update(meant)
    return found


def _check_luns(file: ParameterFile, found: set[str], mapping: Mapping[str, str]) -> None:
    """Refuse that one path, which was a device of each of several hosts, becomes one device by mistake."""
    seen: dict[str, tuple[Storage, set[str]]] = {}
    for storage in file.storages:
        its_hosts = _hosts(file, storage.hosts, storage.at.get("hosts", storage.where))
        if storage.lun in mapping or storage.name in mapping or not its_hosts & found:
            continue
        other, other_hosts = seen.setdefault(storage.lun, (storage, its_hosts))
        if not its_hosts & other_hosts:
            raise InputError(
                f"sd={other.name} and sd={storage.name} are {storage.lun} of two hosts",
                where=storage.at.get("lun", storage.where),
                hint=f"say what each is here: --map {other.name}=PATH --map {storage.name}=PATH, or "
                f"--map {storage.lun}=PATH for all of them",
            )


def _is_place(file: ParameterFile, word: str) -> bool:
    places = [(storage.name, storage.lun) for storage in file.storages]
    return any(word in place for place in places + [(one.name, one.anchor) for one in file.file_systems])


def _names(host: LoadHost) -> tuple[str, ...]:
    return (host.name,) if host.system is None else (host.name, host.system)


def _fits(word: str, name: str) -> bool:
    """Whether a name is meant; `*` stands for anything."""
    return re.fullmatch(".*".join(re.escape(part) for part in word.split("*")), name) is not None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "hd=" + ", ".join(names[:_SHOWN]) + more
