"""May the hosts go on: what each saw of its targets, held against consent and against each other.

Pure: what was seen comes in, what each host may do comes out, or a refusal that names everything.
Knows that consent is for one device of one host (`HOST:PATH`), and for a device that several hosts
see `shared:PATH`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.bundle.hosts import SharedSeen
from loadstone.errors import InputError, RefusedError
from loadstone.hosts.assignment import Division
from loadstone.messages import say
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from loadstone.hosts.assignment import SeenTarget
    from loadstone.hosts.hosts_file import SharedTarget
    from loadstone.plan.safety.guard import Consent

SHARED: Final = "shared"


@dataclass(slots=True)
class Agreement:
    """What each host may do, by its name."""

    consent: dict[str, list[str]] = field(default_factory=dict)
    divisions: dict[str, Division] = field(default_factory=dict)
    marked_for_all: dict[str, list[str]] = field(default_factory=dict)
    """Trees of several hosts that this one marks and vouches for."""
    marked_elsewhere: dict[str, list[str]] = field(default_factory=dict)
    """Trees that another host vouches for."""
    changed_elsewhere: dict[str, list[str]] = field(default_factory=dict)
    """Files that other hosts write, too."""
    shared: tuple[SharedSeen, ...] = ()


def agree(
    seen: Mapping[str, Sequence[SeenTarget]],
    consent: Consent,
    *,
    divide: bool,
    declared: Sequence[SharedTarget] = (),
    consent_is_checked: bool = False,
) -> Agreement:
    """Return what hosts may do. Raises `RefusedError` naming every target that may not be written.

    `consent_is_checked`: it may be for what other runs of a study write.
    """
    refused = [
        f"{host}: {target.path}: {why}"
        for host, targets in seen.items()
        for target in targets
        for why in (*target.forbidden, *target.in_use)
    ]
    if refused:
        raise RefusedError(
            "\n  ".join([say("hosts.targets.in_use"), *refused]), hint=say("hosts.targets.in_use_hint")
        )
    agreement = Agreement()
    groups = shared_targets(seen, declared)
    parts = {(host, one.path) for host, targets in seen.items() for one in targets if one.is_part}
    agreement.shared = tuple(
        one.model_copy(update={"divided": one.written and (divide or _is_of_parts(one, parts))})
        for one in groups
    )
    _check_parts(parts, agreement.shared)
    if not consent_is_checked:
        _check_given(seen, consent, groups)
    for group in agreement.shared:
        if _is_of_parts(group, parts):
            # A host that only reads a tree vouches for nothing there.
            for at, host in enumerate(_writers(group, seen)):
                marked = agreement.marked_elsewhere if at else agreement.marked_for_all
                marked.setdefault(host, []).append(group.paths[host])
        elif group.written:
            _agree_on_shared(group, seen, consent, divide=divide)
            for host, path in group.paths.items():
                agreement.changed_elsewhere.setdefault(host, []).append(path)
    if divide:
        agreement.divisions = _divisions([one for one in agreement.shared if not _is_of_parts(one, parts)])
    _agree_on_content(seen, consent, agreement)
    return agreement


def shared_targets(
    seen: Mapping[str, Sequence[SeenTarget]], declared: Sequence[SharedTarget] = ()
) -> list[SharedSeen]:
    """Return the targets that several hosts see, by what they are or as the hosts file says."""
    declared_names = {(host, path): one.name for one in declared for host, path in one.targets.items()}
    groups: dict[str, dict[str, SeenTarget]] = defaultdict(dict)
    for host, targets in seen.items():
        for target in targets:
            name = declared_names.get((host, target.path)) or target.identity
            if name is not None:
                groups[name][host] = target
    return [
        SharedSeen(
            identity=identity,
            paths={host: target.path for host, target in hosts.items()},
            written=any(target.written for target in hosts.values()),
            divided=False,
        )
        for identity, hosts in groups.items()
        if len(hosts) > 1
    ]


def _writers(group: SharedSeen, seen: Mapping[str, Sequence[SeenTarget]]) -> list[str]:
    return [
        host
        for host, path in group.paths.items()
        if any(target.path == path and target.written for target in seen[host])
    ]


def _is_of_parts(group: SharedSeen, parts: Set[tuple[str, str]]) -> bool:
    """Whether each host uses files of its own there, as its job says."""
    return parts >= set(group.paths.items())


def _check_parts(parts: Set[tuple[str, str]], groups: Sequence[SharedSeen]) -> None:
    """Refuse parts of what is not one tree: each host would have but some of its files."""
    together = {place for group in groups for place in group.paths.items()}
    users = Counter(path for _, path in parts)
    alone = sorted((host, path) for host, path in parts - together if users[path] > 1)
    if alone:
        raise RefusedError(
            say("hosts.targets.parts", places=", ".join(f"{host}:{path}" for host, path in alone)),
            hint=say("hosts.targets.parts_hint"),
        )


def _agree_on_shared(
    group: SharedSeen, seen: Mapping[str, Sequence[SeenTarget]], consent: Consent, *, divide: bool
) -> None:
    writers = _writers(group, seen)
    laid_out = [
        host
        for host, path in group.paths.items()
        if any(target.path == path and target.laid_out_by_run for target in seen[host])
    ]
    where = ", ".join(f"{host}:{path}" for host, path in group.paths.items())
    if laid_out:
        raise RefusedError(
            say("hosts.targets.layout", places=where, identity=group.identity),
            hint=say("hosts.targets.layout_hint"),
        )
    if divide:
        return
    path = next(iter(group.paths.values()))
    evidence = [say("hosts.targets.same", hosts=len(group.paths), places=where, identity=group.identity)]
    names = ", ".join(writers)
    if len(writers) > 1:
        evidence.append(say("hosts.targets.over_each_other", names=names))
    if not consent.given(f"{SHARED}:{path}", evidence):
        raise RefusedError(
            say("hosts.targets.shared", places=where, identity=group.identity, names=names),
            hint=say("hosts.targets.shared_hint", name=f"{SHARED}:{path}"),
        )


def _agree_on_content(
    seen: Mapping[str, Sequence[SeenTarget]], consent: Consent, agreement: Agreement
) -> None:
    shared = {(host, path): one for one in agreement.shared for host, path in one.paths.items()}
    without: list[str] = []
    options: list[str] = []
    for host, targets in seen.items():
        for target in targets:
            if not target.needs_consent:
                continue
            key = f"{host}:{target.path}"
            group = shared.get((host, target.path))
            names = [key]
            if group is not None:
                names.append(f"{SHARED}:{next(iter(group.paths.values()))}")
            if any(name in consent.paths for name in names) or consent.given(key, list(target.needs_consent)):
                agreement.consent.setdefault(host, []).append(target.path)
                continue
            without += [f"{key}: {why}" for why in target.needs_consent]
            options.append(f"--i-accept-data-loss {key}")
    if without:
        raise RefusedError(
            "\n  ".join([say("hosts.targets.lost"), *without]),
            hint=say("hosts.targets.lost_hint", options=" ".join(options)),
        )


def _check_given(
    seen: Mapping[str, Sequence[SeenTarget]], consent: Consent, groups: Sequence[SharedSeen]
) -> None:
    """Refuse consent for what no host writes: it is a slip."""
    valid = {
        f"{host}:{target.path}" for host, targets in seen.items() for target in targets if target.written
    }
    valid |= {f"{SHARED}:{path}" for one in groups for path in one.paths.values()}
    for name in sorted(consent.paths - valid):
        raise InputError(
            say("hosts.targets.unknown", path=repr(name)),
            where=consent.where,
            hint=nearest(name, valid) or say("hosts.targets.unknown_hint"),
        )


def _divisions(groups: Sequence[SharedSeen]) -> dict[str, Division]:
    """Give every host its part; all groups are divided among the same hosts, in their order."""
    paths: dict[str, list[str]] = defaultdict(list)
    members: set[frozenset[str]] = set()
    for group in groups:
        if group.written:
            members.add(frozenset(group.paths))
            for host, path in group.paths.items():
                paths[host].append(path)
    if len(members) > 1:
        raise RefusedError(say("hosts.divide.members"), hint=say("hosts.divide.members_hint"))
    hosts = list(paths)
    return {
        host: Division(paths=tuple(paths[host]), index=at, count=len(hosts)) for at, host in enumerate(hosts)
    }
