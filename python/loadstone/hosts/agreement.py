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
from loadstone.path.identity import first_sector, whole_device
from loadstone.plan.model import TargetKind
from loadstone.plan.safety.guard import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from loadstone.errors import Where
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
    own_parts: Set[tuple[str, str]] = frozenset(),
) -> Agreement:
    """Return what hosts may do. Raises `RefusedError` naming every target that may not be written.

    `consent_is_checked`: it may be for what other runs of a study write. `own_parts`: host and path of
    targets that were divided when the Plans were made.
    """
    _refuse_used(seen)
    agreement = Agreement()
    parts = {(host, one.path) for host, targets in seen.items() for one in targets if one.is_part}
    groups = shared_targets(seen, declared)
    for group in groups:
        has_own = divide or _is_of_parts(group, own_parts)
        group.divided = group.written and (has_own or _is_of_parts(group, parts))
    agreement.shared = tuple(group.record() for group in groups)
    _check_parts(parts, groups)
    if not consent_is_checked:
        _check_given(seen, consent, groups)
    for group in groups:
        if _is_of_parts(group, parts):
            # A host that only reads a tree vouches for nothing there.
            for at, host in enumerate(group.writers):
                marked = agreement.marked_elsewhere if at else agreement.marked_for_all
                marked.setdefault(host, []).append(group.path(host))
        elif group.written:
            _agree_on_shared(group, consent, divide=group.divided)
            for host, path in group.places:
                agreement.changed_elsewhere.setdefault(host, []).append(path)
    if divide:
        agreement.divisions = _divisions([one for one in groups if not _is_of_parts(one, parts)])
    _agree_on_content(seen, consent, groups, agreement)
    return agreement


@dataclass(slots=True)
class SharedGroup:
    """What several hosts see of one target; a host may use it in several ways and by several paths."""

    names: set[str] = field(default_factory=set)
    """All words by which it is known."""
    targets: dict[str, list[SeenTarget]] = field(default_factory=dict)
    """By host."""
    declared: str | None = None
    divided: bool = False

    @property
    def every(self) -> list[SeenTarget]:
        """All ways in which all hosts use it."""
        return [target for targets in self.targets.values() for target in targets]

    @property
    def places(self) -> list[tuple[str, str]]:
        """Each host with each of its paths."""
        return list(dict.fromkeys((host, one.path) for host, each in self.targets.items() for one in each))

    @property
    def written(self) -> bool:
        """Whether a host writes it."""
        return any(target.written for target in self.every)

    @property
    def writers(self) -> list[str]:
        """The hosts that write it."""
        return [host for host, each in self.targets.items() if any(one.written for one in each)]

    @property
    def identity(self) -> str:
        """What people are told it is: as the hosts file calls it, or what all of it lies on."""
        identities = [one.identity for one in self.every if one.identity is not None]
        return self.declared or min(identities, key=len, default="")

    def path(self, host: str) -> str:
        """Return the path that stands for a host's: the first that it writes, or else its first."""
        targets = self.targets[host]
        return next((one.path for one in targets if one.written), targets[0].path)

    @property
    def first_path(self) -> str:
        """The path by which consent for all hosts is given."""
        return self.path(next(iter(self.targets)))

    @property
    def named_at(self) -> Where | None:
        """Where a job names it: the first place that is known."""
        return next((target.named_at for target in self.every if target.named_at is not None), None)

    @property
    def begins_at_one_place(self) -> bool:
        """Whether equal ranges are one place for all: not where some use a partition of a device."""
        return len({first_sector(target.identity) for target in self.every}) < 2

    def take(self, other: SharedGroup) -> None:
        """Add what is the same after all."""
        self.names |= other.names
        self.declared = self.declared or other.declared
        for host, targets in other.targets.items():
            self.targets.setdefault(host, []).extend(targets)

    def record(self) -> SharedSeen:
        """Return it as the bundle keeps it."""
        return SharedSeen(
            identity=self.identity,
            paths={host: self.path(host) for host in self.targets},
            written=self.written,
            divided=self.divided,
        )


def used_by_each_other(
    seen: Mapping[str, Sequence[SeenTarget]],
    kernels: Mapping[str, str],
    declared: Sequence[SharedTarget] = (),
) -> list[str]:
    """Return the hosts that found a target in use which another host of their kernel sees, too.

    Two that look at one file at the same time have it open both, and each sees that of the other.
    """
    again = set()
    for group in shared_targets(seen, declared):
        members = Counter(kernels[host] for host in group.targets)
        for host, targets in group.targets.items():
            if members[kernels[host]] > 1 and any(target.in_use for target in targets):
                again.add(host)
    return [host for host in seen if host in again]


def shared_targets(
    seen: Mapping[str, Sequence[SeenTarget]], declared: Sequence[SharedTarget] = ()
) -> list[SharedGroup]:
    """Return the targets that several hosts see, by what they are or as the hosts file says."""
    declared_names = {(host, path): one.name for one in declared for host, path in one.targets.items()}
    groups: dict[str, SharedGroup] = {}
    for host, targets in seen.items():
        for target in targets:
            name = declared_names.get((host, target.path))
            words = {word for word in (target.identity, *target.also) if word is not None}
            if name is not None:
                words.add(f"declared {name}")
            if words:
                group = _one_of(groups, words)
                group.declared = group.declared or name
                group.targets.setdefault(host, []).append(target)
    for word in list(groups):
        # Whoever writes a device writes its partitions.
        if (device := whole_device(word)) in groups:
            _one_of(groups, {word, device})
    apart = {id(group): group for group in groups.values()}
    for group in apart.values():
        group.targets = {host: group.targets[host] for host in seen if host in group.targets}
    return [group for group in apart.values() if len(group.targets) > 1]


def _one_of(groups: dict[str, SharedGroup], words: set[str]) -> SharedGroup:
    """Return the group of all of these words; what was apart until now is put together."""
    apart = {id(group): group for word in words if (group := groups.get(word)) is not None}
    first, *others = apart.values() or [SharedGroup()]
    for other in others:
        first.take(other)
    first.names |= words
    for word in first.names:
        groups[word] = first
    return first


def _is_of_parts(group: SharedGroup, parts: Set[tuple[str, str]]) -> bool:
    """Whether each host uses files of its own there, as its job says."""
    return parts >= set(group.places)


def _check_parts(parts: Set[tuple[str, str]], groups: Sequence[SharedGroup]) -> None:
    """Refuse parts of what is not one tree: each host would have but some of its files."""
    together = {place for group in groups for place in group.places}
    users = Counter(path for _, path in parts)
    alone = sorted((host, path) for host, path in parts - together if users[path] > 1)
    if alone:
        raise RefusedError(
            say("hosts.targets.parts", places=_named(alone)), hint=say("hosts.targets.parts_hint")
        )


def _agree_on_shared(group: SharedGroup, consent: Consent, *, divide: bool) -> None:
    where = _named(group.places)
    if any(target.laid_out_by_run for target in group.every):
        raise RefusedError(
            say("hosts.targets.layout", places=where, identity=group.identity),
            where=group.named_at,
            hint=say("hosts.targets.layout_hint"),
        )
    if divide:
        if not group.begins_at_one_place:
            raise RefusedError(
                say("hosts.divide.partition", places=where),
                where=group.named_at,
                hint=say("hosts.divide.partition_hint"),
            )
        return
    evidence = [say("hosts.targets.same", hosts=len(group.targets), places=where, identity=group.identity)]
    names = ", ".join(group.writers)
    if len(group.writers) > 1:
        evidence.append(say("hosts.targets.over_each_other", names=names))
    key = f"{SHARED}:{group.first_path}"
    if not consent.given(key, evidence):
        raise RefusedError(
            say("hosts.targets.shared", places=where, identity=group.identity, names=names),
            where=group.named_at,
            # A tree has no ranges: to advise parts of it would be to advise what is refused.
            hint=say(
                "hosts.targets.shared_tree_hint"
                if any(target.kind == TargetKind.TREE for target in group.every)
                else "hosts.targets.shared_hint",
                name=key,
            ),
        )


def _refuse_used(seen: Mapping[str, Sequence[SeenTarget]]) -> None:
    """Refuse what no host may write, whatever was consented to."""
    refused: dict[str, list[str]] = {}
    for host, targets in seen.items():
        for target in targets:
            reasons = refused.setdefault(f"{host}: {target.path}", [])
            reasons += [why for why in (*target.forbidden, *target.in_use) if why not in reasons]
    refused = {name: reasons for name, reasons in refused.items() if reasons}
    places = _places(seen, "{host}: {path}")
    refuse(say("hosts.targets.in_use"), refused, say("hosts.targets.in_use_hint"), places)


def _places(seen: Mapping[str, Sequence[SeenTarget]], name: str) -> dict[str, Where]:
    """Return where each target was named, by what it is called here."""
    return {
        name.format(host=host, path=target.path): target.named_at
        for host, targets in seen.items()
        for target in targets
        if target.named_at is not None
    }


def _named(places: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{host}:{path}" for host, path in places)


def _agree_on_content(
    seen: Mapping[str, Sequence[SeenTarget]],
    consent: Consent,
    groups: Sequence[SharedGroup],
    agreement: Agreement,
) -> None:
    shared = {place: group for group in groups for place in group.places}
    without: dict[str, list[str]] = {}
    for host, targets in seen.items():
        for target in targets:
            if not target.needs_consent:
                continue
            key = f"{host}:{target.path}"
            group = shared.get((host, target.path))
            names = [key]
            if group is not None:
                names.append(f"{SHARED}:{group.first_path}")
            if any(name in consent.paths for name in names) or consent.given(key, list(target.needs_consent)):
                agreement.consent.setdefault(host, []).append(target.path)
                continue
            without.setdefault(key, []).extend(target.needs_consent)
    hint = say("hosts.targets.lost_hint", options=" ".join(f"--i-accept-data-loss {key}" for key in without))
    refuse(say("hosts.targets.lost"), without, hint, _places(seen, "{host}:{path}"))


def _check_given(
    seen: Mapping[str, Sequence[SeenTarget]], consent: Consent, groups: Sequence[SharedGroup]
) -> None:
    """Refuse consent for what no host writes: it is a slip."""
    valid = {
        f"{host}:{target.path}" for host, targets in seen.items() for target in targets if target.written
    }
    valid |= {f"{SHARED}:{path}" for group in groups for _, path in group.places}
    for name in sorted(consent.paths - valid):
        raise InputError(
            say("hosts.targets.unknown", path=repr(name)),
            where=consent.where,
            hint=nearest(name, valid) or say("hosts.targets.unknown_hint"),
        )


def _divisions(groups: Sequence[SharedGroup]) -> dict[str, Division]:
    """Give every host its part; all groups are divided among the same hosts, in their order."""
    paths: dict[str, list[str]] = defaultdict(list)
    members: set[frozenset[str]] = set()
    for group in groups:
        if group.written:
            members.add(frozenset(group.targets))
            for host, path in group.places:
                paths[host].append(path)
    if len(members) > 1:
        raise RefusedError(say("hosts.divide.members"), hint=say("hosts.divide.members_hint"))
    hosts = list(paths)
    return {
        host: Division(paths=tuple(paths[host]), index=at, count=len(hosts)) for at, host in enumerate(hosts)
    }
