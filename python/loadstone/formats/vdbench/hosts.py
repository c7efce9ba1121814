"""Hosts of a parameter file: which of them are this machine, and what runs on them.

Knows that vdbench divides the threads and the rate of an SD among the hosts that use it: several hosts
that are all this machine do together what one does. Reads no keyword.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Note
from loadstone.workload.placement import HostPlace, TargetName

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.expand import ParameterFileRun, Work
    from loadstone.formats.vdbench.file_systems import Say
    from loadstone.formats.vdbench.filesystem import FileSystem, FileWorkload
    from loadstone.formats.vdbench.general import LoadHost
    from loadstone.formats.vdbench.read import ParameterFile
    from loadstone.formats.vdbench.storage import Storage
    from loadstone.formats.vdbench.workload import WorkloadDefinition
    from loadstone.workload.model import Job

HERE: Final = "localhost"
_SHOWN: Final = 8


def mapped(file: ParameterFile, mapping: Mapping[str, str]) -> tuple[ParameterFile, dict[str, str]]:
    """Let hosts be this machine where a mapping says so, by label or system; `*` stands for anything.

    Returns the rest of the mapping, too. Raises InputError for a host that is to be another one, and
    for an SD whose lun would be that of another host's SD because nobody said what it is here.
    """
    rest: dict[str, str] = {}
    host_names: set[str] = set()
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
            host_names.update(meant)
        elif meant and "*" not in old and not _is_place(file, old):
            raise make_error(InputError, "formats_vdbench.hosts.only_here", old=old, here=HERE)
        else:
            rest[old] = new
    if not host_names:
        return file, rest
    _check_luns(file, host_names, rest)
    hosts = tuple(replace(host, system=HERE) if host.name in host_names else host for host in file.hosts)
    key = "formats_vdbench.hosts.is_here" if len(host_names) == 1 else "formats_vdbench.hosts.are_here"
    text = say(key, hosts=_listed(sorted(host_names)))
    return replace(file, hosts=hosts, notes=(*file.notes, Note(where=None, text=text, kind="changed"))), rest


def are_several(file: ParameterFile) -> bool:
    """Return whether other machines take part."""
    return len(file.hosts) > 1 and any(not host.is_local for host in file.hosts)


def away(file: ParameterFile) -> HostPlace | None:
    """Return the first of several hosts that is another machine."""
    host = next((host for host in file.hosts if not host.is_local), None)
    return HostPlace(names=_names(host), where=host.where) if host is not None and are_several(file) else None


def placed(file: ParameterFile, run: ParameterFileRun, jobs: Sequence[Job], note: Say) -> list[Job]:
    """Return the jobs of a run with the hosts that do them, and say what becomes of hosts that are one."""
    if are_several(file):
        if run.file_works or run.formats is not None:
            return [_on_files(file, run, job) for job in jobs]
        works = {(work.workload.name, work.storage.name): work for work in run.works}
        return [_on_storage(file, job, works[job.own_options["wd"], job.own_options["sd"]]) for job in jobs]
    for work in run.works:
        if work.storage.places:
            raise make_error(
                RefusedError,
                "formats_vdbench.hosts.several_devices",
                where=work.storage.at["lun"],
                storage=work.storage.name,
                places=len(work.storage.places),
            )
    _say_what_is_here(file, run, note)
    return list(jobs)


def _on_storage(file: ParameterFile, job: Job, work: Work) -> Job:
    """Return a job with the hosts of its workload that its SD is on, and its lun on each."""
    workload, storage = work.workload, work.storage
    if storage.joined:
        raise make_error(RefusedError, "formats_vdbench.hosts.joined", where=workload.where)
    host_names = _hosts(file, workload.hosts, workload.at.get("hosts", workload.where))
    host_names &= _hosts(file, storage.hosts, storage.at.get("hosts", storage.where))
    luns = {
        host: lun
        for word, lun in storage.places
        for host in _hosts(file, [word], storage.at.get("hosts", storage.where))
    }
    return _with_hosts(
        file,
        job,
        host_names,
        {host: (TargetName(path=lun, written=lun),) for host, lun in luns.items()},
    )


def _on_files(file: ParameterFile, run: ParameterFileRun, job: Job) -> Job:
    """Return a job on a file system with the hosts that work there, each on files of its own.

    A shared file system is divided among all hosts that use it anywhere in the file, so that each finds
    in one run what it made in another. What removes a tree is done by the first of them: it may be
    another's tree, of another shape.
    """
    name = job.own_options["fsd"]
    system = next(one for one in file.file_systems if one.name == name)
    users = [one for one in file.file_workloads if any(_fits(word, name) for word in one.fsds)]
    works = [work.workload for work in run.file_works if work.system.name == name]
    # A tree is made where it is used.
    workloads = users if run.formats is not None or not works else works
    host_names = _hosts_of(file, workloads)
    if len(host_names) == 1:
        return _with_hosts(file, job, host_names, {})
    if not system.shared:
        raise make_error(
            RefusedError,
            "formats_vdbench.hosts.not_shared",
            where=system.where,
            found=len(host_names),
            name=name,
        )
    _check_shared(job, system)
    everywhere = host_names | _hosts_of(file, users)
    if job.tree is not None and job.tree.clear:
        host_names = {next(host.name for host in file.hosts if host.name in everywhere)}
    return _with_hosts(file, job, host_names, {}, idle=everywhere - host_names)


def _hosts_of(file: ParameterFile, workloads: Sequence[FileWorkload]) -> set[str]:
    """Return the hosts of some workloads; of none the file's default ones."""
    host_names: set[str] = set()
    for one in workloads or [file.default_file_workload]:
        host_names |= _hosts(file, one.hosts, one.at.get("hosts", one.where))
    return host_names


def _check_shared(job: Job, system: FileSystem) -> None:
    """Refuse what has no part for each host."""
    tree = job.tree
    if tree is None or tree.clear or tree.operation not in ("rmdir", "copy", "move"):
        return
    raise make_error(
        RefusedError,
        "formats_vdbench.hosts.operation",
        where=job.at("work.operation"),
        operation=tree.operation,
        system=system.name,
    )


def _with_hosts(
    file: ParameterFile,
    job: Job,
    names: set[str],
    targets: Mapping[str, tuple[TargetName, ...]],
    idle: Collection[str] = (),
) -> Job:
    places = tuple(
        HostPlace(
            names=_names(host),
            where=host.where,
            targets=targets.get(host.name, ()),
            away=not host.is_local,
            idle=host.name in idle,
        )
        for host in file.hosts
        if host.name in names or host.name in idle
    )
    return job.changed({"hosts": places})


def _say_what_is_here(file: ParameterFile, run: ParameterFileRun, note: Say) -> None:
    hosts = file.hosts
    away = [host for host in hosts if not host.is_local]
    if away:
        note(away[0].where, say("formats_vdbench.hosts.taken", host=away[0].name))
    elif len(hosts) > 1:
        kind, names = "FWD" if run.file_works else "SD", _listed([host.name for host in hosts])
        note(hosts[0].where, say("formats_vdbench.hosts.as_one", hosts=names, kind=kind))
    for system in {work.system.name: work.system for work in run.file_works if work.system.shared}.values():
        at = system.at.get("shared", system.where)
        note(at, say("formats_vdbench.hosts.shared"), "harmless")


def meeting(file: ParameterFile, workload: WorkloadDefinition, storages: Sequence[Storage]) -> list[Storage]:
    """Return the SDs that have a host in common with a workload: on the others vdbench does not run it.

    Raises InputError for a host there is not, and for a workload without any SD.
    """
    workload_hosts = _hosts(file, workload.hosts, workload.at.get("hosts", workload.where))
    common = [
        storage
        for storage in storages
        if workload_hosts & _hosts(file, storage.hosts, storage.at.get("hosts", storage.where))
    ]
    if not common:
        raise make_error(
            InputError,
            "formats_vdbench.hosts.no_sd",
            where=workload.at.get("hosts", workload.where),
            workload=workload.name,
            mine=_listed(sorted(workload_hosts)),
        )
    return common


def _hosts(file: ParameterFile, words: Sequence[str], where: Where) -> set[str]:
    host_names: set[str] = set()
    known = [host.name for host in file.hosts]
    for word in words:
        # A host with clients= is meant by its own label, too.
        meant = [name for name in known if _fits(word, name) or _fits(word, re.sub(r"_cl\d+\Z", "", name))]
        if not meant:
            raise make_error(
                InputError, "formats_vdbench.hosts.no_hd", where=where, hint=nearest(word, known), word=word
            )
        host_names.update(meant)
    return host_names


def _check_luns(file: ParameterFile, luns: set[str], mapping: Mapping[str, str]) -> None:
    """Refuse that one path, which was a device of each of several hosts, becomes one device by mistake."""
    first_users: dict[str, tuple[Storage, set[str]]] = {}
    for storage in file.storages:
        its_hosts = _hosts(file, storage.hosts, storage.at.get("hosts", storage.where))
        if storage.lun in mapping or storage.name in mapping or not its_hosts & luns:
            continue
        other, other_hosts = first_users.setdefault(storage.lun, (storage, its_hosts))
        if not its_hosts & other_hosts:
            raise make_error(
                InputError,
                "formats_vdbench.hosts.one_lun",
                where=storage.at.get("lun", storage.where),
                other=other.name,
                storage=storage.name,
                lun=storage.lun,
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
