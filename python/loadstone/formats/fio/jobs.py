"""Sections of a job file into jobs of a Workload.

Knows how jobs inherit from the defaults before them, which options conflict, and what
the table says about each. Knows neither the file's grammar nor the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError, LoadstoneError, RefusedError, Where, raise_all
from loadstone.formats.fio.lower import lowered
from loadstone.formats.fio.numbers import Reading
from loadstone.formats.fio.table import BY_NAME
from loadstone.formats.quote import UNSHOWN
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.workload.model import Job, Note

if TYPE_CHECKING:
    from loadstone.formats.fio.grammar import Entry, Section
    from loadstone.formats.fio.option import Option

MEANT: Final = {
    "cpus": "cpus_allowed",
    "device": "filename",
    "duration": "runtime",
    "file": "filename",
    "qd": "iodepth",
    "queue_depth": "iodepth",
    "read_percent": "rwmixread",
    "write_percent": "rwmixwrite",
}
"""Names that other programs have, and what they are here."""


@dataclass(slots=True)
class JobReader:
    """Reads sections in order, carrying the defaults along."""

    strict: bool
    allow_exec: bool
    wanted: frozenset[str] = frozenset()
    """Names of the sections to keep; empty: all."""
    defaults: list[list[Entry]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    global_options: dict[str, str] = field(default_factory=dict)
    wrong: list[LoadstoneError] = field(default_factory=list)
    """What is wrong with sections that `read` took: their jobs are left out."""
    _noted: set[tuple[str, str]] = field(default_factory=set)

    def read(self, sections: list[Section], *, wall_before: bool = False) -> None:
        """Add the jobs of one source; `wall_before` puts a stonewall before the first."""
        for section in sections:
            self.seen.add(section.name)
            try:
                if section.is_default:
                    self.defaults.append(section.entries)
                    self.global_options |= _as_text(section.entries)
                    self.fields_of(section.entries)  # For their errors, even when no job follows.
                elif not self.wanted or section.name in self.wanted:
                    self.jobs.append(self._job(section, wall_before=wall_before))
                    wall_before = False
            except (InputError, RefusedError) as error:
                self.wrong.append(error)

    def _job(self, section: Section, *, wall_before: bool) -> Job:
        fields, set_at = self.fields_of(*self.defaults, section.entries)
        reported_name = fields.pop("reported_name", None)
        if reported_name and not any(entry.name == "name" for entry in section.entries):
            reported_name = None
            note = say("formats_fio.jobs.default_name")
            self.keep([Note(where=set_at["reported_name"], text=note, kind="trap")])
        if wall_before:
            fields["schedule.stonewall"] = True
        if not self.allow_exec:
            for name in ("process.exec_prerun", "process.exec_postrun"):
                if fields.get(name):
                    raise make_error(
                        RefusedError,
                        "formats_fio.jobs.command",
                        where=set_at[name],
                        command=f"{fields[name]!r}",
                    )
        if fields.get("logs.issue_time") and (
            fields.get("logs.lat") is None or not fields.get("logs.offset")
        ):
            raise make_error(
                RefusedError, "formats_fio.jobs.no_effect_without_log", where=set_at["logs.issue_time"]
            )
        lowering = lowered(fields, set_at, where=section.where, strict=self.strict)
        self.keep(lowering.notes)
        return Job.of(
            {
                **lowering.fields,
                "name": reported_name or section.name,
                "section": section.name,
                "where": section.where,
                "set_at": lowering.set_at,
                "own_options": _as_text(section.entries),
            }
        )

    def fields_of(self, *sections: list[Entry]) -> tuple[dict[str, Any], dict[str, Where]]:
        """Read entries in order (a later one replaces an earlier one); each section has its own units.

        Raises what is wrong with any of them, together.
        """
        fields: dict[str, Any] = {}
        set_at: dict[str, Where] = {}
        wrong: list[LoadstoneError] = []
        kb_base = 1024
        for entries in sections:
            kb_base = self._kb_base(entries, kb_base)
            for entry in entries:
                reading = Reading(entry.where, kb_base, strict=self.strict, blank_before=entry.blank_before)
                try:
                    values = self._values(self._option(entry), entry, reading, fields)
                except (InputError, RefusedError) as error:
                    wrong.append(error)
                    continue
                for name, value in values.items():
                    fields[name] = value
                    set_at[name] = entry.where
                self.keep(reading.notes)
        raise_all(wrong)
        return fields, set_at

    def _values(
        self, option: Option, entry: Entry, reading: Reading, fields: dict[str, Any]
    ) -> dict[str, Any]:
        if option.verdict == "honoured" and option.read is not None:
            if entry.value is None and not option.flag:
                raise make_error(
                    InputError, "formats_fio.jobs.needs_value", where=entry.where, option=option.name
                )
            try:
                return option.read(entry.value, reading, fields)
            except InputError as error:
                error.hint = _right_option(option, entry, fields) or error.hint
                raise
        if option.verdict == "harmless":
            if option.name != "kb_base":
                text = say("formats_fio.jobs.changes_nothing", option=entry.name, why=option.why)
                reading.note("harmless", text)
            return {}
        if (entry.value or "1").strip() in option.off:
            return {}
        written = entry.name if entry.value is None else f"{entry.name}={entry.value}"
        raise make_error(
            RefusedError,
            "formats_fio.jobs.not_supported",
            where=entry.where,
            hint=option.why,
            written=written[:80],
        )

    def _option(self, entry: Entry) -> Option:
        option = BY_NAME.get(entry.name)
        if option is not None:
            return option
        if entry.name.lower() in BY_NAME:
            hint: str | None = say("formats_fio.jobs.lower_case", name=repr(entry.name.lower()))
        else:
            hint = nearest(MEANT.get(entry.name, entry.name), BY_NAME)
        shown = UNSHOWN if entry.where.option is None else repr(entry.name[:64])
        raise make_error(InputError, "formats_fio.jobs.unknown", where=entry.where, hint=hint, shown=shown)

    def _kb_base(self, entries: list[Entry], before: int) -> int:
        base = before
        for entry in entries:
            if entry.name == "kb_base":
                if (entry.value or "").strip() not in ("1000", "1024"):
                    raise make_error(
                        InputError, "formats_fio.jobs.kb_base", where=entry.where, given=f"{entry.value!r}"
                    )
                base = int(entry.value or "0")
        return base

    def keep(self, notes: list[Note]) -> None:
        """Keep notes, each place and text once however many jobs inherit it."""
        for note in notes:
            key = (str(note.where), note.text)
            if key not in self._noted:
                self._noted.add(key)
                self.notes.append(note)


_ALIKE: Final = (
    ("bs", "bsrange", "bssplit"),
    ("size", "filesize", "io_size"),
    ("cpus_allowed", "cpumask"),
    ("random_distribution", "file_service_type"),
    ("percentile_list", "latency_percentile"),
    ("filename", "directory"),
)
"""Options whose values are mistaken for each other's."""


def _right_option(option: Option, entry: Entry, fields: dict[str, Any]) -> str | None:
    """Say which option takes the value that this one does not."""
    for alike in _ALIKE:
        for name in alike if option.name in alike else ():
            other = BY_NAME.get(name)
            if other is None or other is option or other.read is None:
                continue
            try:
                other.read(entry.value, Reading(entry.where), fields)
            except LoadstoneError:
                continue
            return say("formats_fio.options.right_option", name=name, value=entry.value)
    return None


def _as_text(entries: list[Entry]) -> dict[str, str]:
    """Return options by their canonical names, flags with an empty text."""
    result: dict[str, str] = {}
    for entry in entries:
        option = BY_NAME.get(entry.name)
        result[option.name if option else entry.name] = entry.value or ""
    return result
