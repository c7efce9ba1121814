"""Parameter files in: sources to everything they define.

Knows the order of the sections, what `default` entries do, and what a name must be. Expands no
run and looks at no device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, RefusedError, Where, raise_all
from loadstone.formats import quote
from loadstone.formats.vdbench import filesystem, general, hosts, rundef, storage, workload
from loadstone.formats.vdbench.filesystem import FileSystem, FileWorkload
from loadstone.formats.vdbench.general import General, LoadHost
from loadstone.formats.vdbench.grammar import parameters
from loadstone.formats.vdbench.keyword import Draft, Table
from loadstone.formats.vdbench.lines import LineReader, ParameterLine, decode, repeated
from loadstone.formats.vdbench.rundef import Loop, MaxData, RunDefinition
from loadstone.formats.vdbench.storage import Storage
from loadstone.formats.vdbench.values import name, names
from loadstone.formats.vdbench.workload import WorkloadDefinition
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from loadstone.errors import LoadstoneError
    from loadstone.formats.vdbench.grammar import Parameter

LOCALHOST: Final = "localhost"
_RD_DEFAULT_REFUSES: Final = ("format",)


@dataclass(frozen=True, slots=True)
class ParameterText:
    """The bytes of a parameter file, e.g. from standard input; includes are relative to `directory`."""

    text: bytes
    name: str = "<text>"
    directory: Path = field(default_factory=Path)


Source = Path | ParameterText


@dataclass(frozen=True, slots=True)
class ParameterFile:
    """Everything parameter files define, in the order it was written."""

    name: str
    general: General
    hosts: tuple[LoadHost, ...]
    storages: tuple[Storage, ...]
    workloads: tuple[WorkloadDefinition, ...]
    default_workload: WorkloadDefinition
    """What a run definition without `wd=` uses: the defaults as they were at the end."""
    file_systems: tuple[FileSystem, ...]
    file_workloads: tuple[FileWorkload, ...]
    default_file_workload: FileWorkload
    runs: tuple[RunDefinition, ...]
    notes: tuple[Note, ...]
    sources: dict[str, bytes]

    @property
    def on_files(self) -> bool:
        """Whether it is about file systems and not SDs."""
        return bool(self.file_systems or self.file_workloads)

    def map_luns(self, mapping: Mapping[str, str]) -> ParameterFile:
        """Replace luns and anchors, by themselves or by the name of their SD or FSD.

        Raises InputError for a name of neither.
        """
        places: list[tuple[str, ...]] = [
            (storage.name, storage.lun, *(lun for _, lun in storage.places)) for storage in self.storages
        ]
        places += [(system.name, system.anchor) for system in self.file_systems]
        names = {name for place in places for name in place}
        for old in mapping:
            if old not in names:
                kind, kinds = ("FSD", "anchors") if self.on_files else ("SD", "luns")
                known = ", ".join(place[1] for place in places[:8])
                raise make_error(
                    InputError,
                    "formats_vdbench.read.not_used",
                    hint=nearest(old, names) or say("formats_vdbench.read.in_use", kinds=kinds, names=known),
                    found=kind,
                    old=f"{old!r}",
                )
        systems = [
            replace(system, anchor=mapping.get(system.anchor, mapping.get(system.name, system.anchor)))
            for system in self.file_systems
        ]
        storages = tuple(
            replace(
                storage,
                lun=mapping.get(storage.lun, mapping.get(storage.name, storage.lun)),
                places=tuple((host, mapping.get(lun, lun)) for host, lun in storage.places),
            )
            for storage in self.storages
        )
        text = ", ".join(f"{old} is {new}" for old, new in mapping.items())
        note = Note(where=None, text=say("workload.change.note", change=text), kind="changed")
        return replace(
            self,
            storages=storages,
            file_systems=tuple(filesystem.apart(systems)),
            notes=(*self.notes, note),
        )

    def with_sizes(self, size_of: Callable[[str], int | None]) -> ParameterFile:
        """Let SDs without `size=` be as large as what stands at their lun, as in vdbench.

        What stands there on another host is not known here.
        """
        if hosts.are_several(self):
            return self
        storages = tuple(
            replace(storage, size=storage.size or size_of(storage.lun)) for storage in self.storages
        )
        return replace(self, storages=storages)


def read(
    sources: Sequence[Source],
    *,
    variables: Mapping[str, str] | None = None,
    variables_where: Where | None = None,
) -> ParameterFile:
    """Read parameter files, one after the other as if they were one.

    `variables`: values of `$name`. Raises InputError for what cannot be read and RefusedError for
    what is understood and not done, each with file, line, keyword and a hint; several mistakes
    together.
    """
    reader = LineReader(variables or {})
    lines: list[ParameterLine] = []
    for source in sources:
        if isinstance(source, Path):
            lines += reader.file(source)
        else:
            reader.sources[source.name] = source.text
            lines += reader.text(decode(source.text), source.name, source.directory)
    reader.refuse_unused(variables_where or Where("command line", option="--set"))
    lines = repeated(lines, _host_labels(lines))
    sections = _Sections()
    raise_all(_mistakes(sections, lines))
    return sections.finish(_name(sources), reader.sources)


def _mistakes(sections: _Sections, lines: Sequence[ParameterLine]) -> Iterator[LoadstoneError]:
    """Put every parameter where it belongs; yield what is wrong with those that have no place."""
    try:
        for parameter in parameters(lines):
            try:
                sections.take(parameter)
            except (InputError, RefusedError) as error:
                yield error
                if parameter.keyword in _OPENING:
                    return  # What follows is of an entity that is not there.
    except InputError as error:
        yield error  # Where a line cannot be taken apart, nobody knows what the next one belongs to.


def _name(sources: Sequence[Source]) -> str:
    first = sources[0]
    return first.stem if isinstance(first, Path) else first.name


def _host_labels(lines: Sequence[ParameterLine]) -> list[str]:
    """Read hosts alone: they must be known before the lines that name them can be read."""
    if not any("host" in line.text for line in lines):
        return [LOCALHOST]
    sections = _Sections()
    before = takewhile(
        lambda line: not line.text.lower().startswith(("sd=", "fsd=", "wd=", "fwd=", "rd=")), lines
    )
    for parameter in parameters(list(before)):
        if parameter.keyword in _SECTION["hd"].ends:
            break
        sections.take(parameter)
    return [host.name for host in sections.all_hosts()]


@dataclass(frozen=True, slots=True)
class _Section:
    """A section of a file: its keywords, which entity it holds, and what ends it."""

    table: Table
    title: str
    opens: tuple[str, ...]
    """Keywords that begin an entity."""
    ends: frozenset[str]
    """Keywords that begin a later section."""


def _section(table: Table, title: str, opens: str, ends: str) -> _Section:
    return _Section(table, title, tuple(opens.split()), frozenset(ends.split()))


_SECTION: Final = {
    "general": _section(general.GENERAL, "general parameters", "", "hd host rg sd fsd wd fwd rd"),
    "hd": _section(general.HOST, "hosts (hd=)", "hd host", "rg sd fsd wd fwd rd"),
    "rg": _section(general.REPLAY, "replay groups (rg=)", "rg", "sd fsd wd fwd rd"),
    "sd": _section(storage.SD, "storage (sd=)", "sd", "wd fwd rd"),
    "fsd": _section(filesystem.FSD, "file systems (fsd=)", "fsd", "sd wd fwd rd"),
    "wd": _section(workload.WD, "workloads (wd=)", "wd", "fwd rd"),
    "fwd": _section(filesystem.FWD, "file system workloads (fwd=)", "fwd", "wd rd"),
    "rd": _section(rundef.RD, "runs (rd=)", "rd", ""),
}
_OPENING: Final = frozenset(word for section in _SECTION.values() for word in section.opens)


class _Sections:
    """Where reading stands: the section, the entity in it, and all those before."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.drafts: dict[str, list[tuple[str, Where, Draft]]] = {key: [] for key in _SECTION}
        self.defaults = {key: Draft() for key in _SECTION}
        self._at = "general"
        self._draft = self.defaults["general"]
        self._is_default = False
        self._paired: set[str] = set()
        """Of the entity that is being read: which of hosts and luns it was given."""

    def take(self, parameter: Parameter) -> None:
        """Put one parameter where it belongs."""
        word = parameter.keyword
        if word in _SECTION[self._at].ends:
            self._at = "hd" if word == "host" else word
            self._begin(parameter)
        elif word in _SECTION[self._at].opens:
            self._begin(parameter)
        else:
            self._set(parameter)

    def _begin(self, parameter: Parameter) -> None:
        # hd=(one,two) are two hosts that are alike.
        several = parameter.keyword == "hd" and parameter.listed
        labels = names(parameter) if several else ()
        label = parameter.pieces[-1] if several or parameter.keyword == "host" else name(parameter)
        self._is_default = label == "default"
        self._paired = set()
        if self._is_default:
            self._draft = self.defaults[self._at]
            return
        self._draft = self.defaults[self._at].copy()
        if parameter.keyword == "host" and len(parameter.pieces) > 1:
            self._draft.values["system"] = parameter.pieces[0]  # The old form: host=(system,label).
        for one in labels or (label,):
            self.drafts[self._at].append((one, parameter.where, self._draft))
        if self._at == "rg":
            raise make_error(RefusedError, "formats_vdbench.read.replay", where=parameter.where)

    def _set(self, parameter: Parameter) -> None:
        section = _SECTION[self._at]
        row = section.table.find(parameter.keyword)
        if row is None:
            raise self._misplaced(parameter)
        if self._at == "rd" and self._is_default and row.name in _RD_DEFAULT_REFUSES:
            raise parameter.error("formats_vdbench.read.not_by_default", name=row.name)
        if self._at == "sd" and self._is_default and row.name == "lun":
            raise parameter.error("formats_vdbench.read.lun_by_default")
        loop = rundef.loop_of(row)
        if loop is not None and row.read is not None:
            loops = dict(self._draft.values.get("loops", {}))
            loops.pop(loop, None)  # The order is that of the last time each was written.
            loops[loop] = Loop(row.read(parameter), parameter.where)  # type: ignore[arg-type] # a loop's reader
            self._draft.values["loops"] = loops
            return
        if self._at == "rd" and row.name == "wd" and "wds" in self._draft.at and not self._is_default:
            raise parameter.error("formats_vdbench.read.wd_twice", order=say("formats_vdbench.read.sections"))
        # host=h1,lun=/a,host=h2,lun=/b: a pair for each host.
        paired = self._at == "sd" and row.target in {"luns", "hosts"}
        before = self._draft.values[row.target] if paired and row.target in self._paired else ()
        section.table.apply(parameter, self._draft, self.notes)
        if paired:
            self._draft.values[row.target] = (*before, *self._draft.values[row.target])
            self._paired.add(row.target)

    def _misplaced(self, parameter: Parameter) -> InputError:
        """Say where a keyword belongs that is none of this section, or what is near it."""
        word, section = parameter.keyword, _SECTION[self._at]
        homes = [one for key, one in _SECTION.items() if key != self._at]
        for one in homes:
            if word in one.opens:
                both_kinds = {word, self._at} <= {"sd", "fsd"}
                return parameter.error(
                    "formats_vdbench.read.order",
                    hint=say(f"formats_vdbench.read.{'sd_or_fsd' if both_kinds else 'sections'}"),
                    title=one.title,
                    after=section.title,
                )
        close = nearest(word, [row.name for row in section.table.rows if not row.refused], limit=0)
        for one in homes:
            keyword = one.table.find(word)
            if close is None and keyword is not None and keyword.name == word:
                close = say("formats_vdbench.read.belongs", word=word, title=one.title)
        shown = quote.UNSHOWN if parameter.where.option is None else repr(word)
        return parameter.error(
            "formats_vdbench.keyword.unknown", hint=close, shown=shown, what=section.table.what
        )

    def all_hosts(self) -> list[LoadHost]:
        """Return the hosts, `clients=` unfolded; this machine when none is given."""
        load_hosts: list[LoadHost] = []
        for label, where, draft in self.drafts["hd"]:
            host = LoadHost(label, where, draft.at, **_fields(draft))
            many = host.clients > 1
            names = [f"{label}_cl{number}" if many else label for number in range(host.clients)]
            load_hosts += [replace(host, name=one, clients=1) for one in names]
        where = Where("the default")
        return load_hosts or [LoadHost(LOCALHOST, where, {})]

    def finish(self, file_name: str, sources: dict[str, bytes]) -> ParameterFile:
        """Make entities of the drafts. Raises InputError for what is missing or given twice."""
        nowhere = Where(next(iter(sources), "<text>"))
        runs = [_run(*draft) for draft in self.drafts["rd"]]
        if not runs:
            raise make_error(InputError, "formats_vdbench.read.no_run", where=nowhere)
        storages = [Storage(n, w, d.at, **_fields(d)) for n, w, d in self.drafts["sd"]]
        workloads = tuple(WorkloadDefinition(n, w, d.at, **_fields(d)) for n, w, d in self.drafts["wd"])
        file_systems = [FileSystem(n, w, d.at, **_fields(d)) for n, w, d in self.drafts["fsd"]]
        file_workloads = tuple(FileWorkload(n, w, d.at, **_fields(d)) for n, w, d in self.drafts["fwd"])
        resolved = [storage.here(one) for one in storages]
        storages = [one for one, _ in resolved]
        self.notes += [note for _, note in resolved if note is not None]
        for storage_ in storages:
            if not storage_.lun:
                raise make_error(
                    InputError, "formats_vdbench.read.no_lun", where=storage_.where, storage=storage_.name
                )
        for kind in ("wd", "fwd", "rd"):
            _once(kind, self.drafts[kind])
        default_wd, default_fwd = self.defaults["wd"], self.defaults["fwd"]
        found_general = self.defaults["general"]
        return ParameterFile(
            name=file_name,
            general=General(at=found_general.at, **_known(General, found_general)),
            hosts=tuple(self.all_hosts()),
            storages=tuple(storage.numbered(storages)),
            workloads=workloads,
            default_workload=WorkloadDefinition("default", nowhere, default_wd.at, **_fields(default_wd)),
            file_systems=tuple(filesystem.numbered(file_systems)),
            file_workloads=file_workloads,
            default_file_workload=FileWorkload("default", nowhere, default_fwd.at, **_fields(default_fwd)),
            runs=tuple(runs),
            notes=tuple(self.notes),
            sources=sources,
        )


def _fields(draft: Draft) -> dict[str, Any]:
    return {key: value for key, value in draft.values.items() if ":" not in key}


def _known(kind: type[General], draft: Draft) -> dict[str, Any]:
    """Return the fields a class has: some keywords are checked and need no place."""
    return {key: value for key, value in draft.values.items() if key in kind.__dataclass_fields__}


def _run(label: str, where: Where, draft: Draft) -> RunDefinition:
    limits = tuple(value for value in draft.values.values() if isinstance(value, MaxData))
    return RunDefinition(label, where, draft.at, maxdata=limits, **_fields(draft))


def _once(kind: str, drafts: Sequence[tuple[str, Where, Draft]]) -> None:
    labels: set[str] = set()
    for label, where, _ in drafts:
        if label in labels:
            raise make_error(InputError, "formats_vdbench.read.twice", where=where, found=kind, label=label)
        labels.add(label)
