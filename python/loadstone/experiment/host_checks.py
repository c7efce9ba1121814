"""What of an experiment's file cannot be set on this host, or sets one thing twice: all of it together.

Knows this host's controls, commands and layouts. Changes nothing, and reads no job file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loadstone.bundle.experiment import UnsetLevel
from loadstone.control import remote
from loadstone.control.all_controls import Controls
from loadstone.control.fill import FillLevel
from loadstone.control.layout import build
from loadstone.control.own_group import OwnGroup
from loadstone.control.page_cache import FILE as DROP_FILE
from loadstone.errors import InputError, LoadstoneError, RefusedError, Where
from loadstone.experiment.file import AS_IS, VOLUME, layout_of, level_name
from loadstone.experiment.machine_state import order_of
from loadstone.experiment.read_file import line_of
from loadstone.messages import make_error, say
from loadstone.messages.suggest import meant_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadstone.control.control_kind import Control, Setting
    from loadstone.experiment.file import ExperimentFactor, ExperimentFile, ExperimentSetting
    from loadstone.toml_repair import Keys


class ExperimentPlaces:
    """Where keys stand in an experiment's file."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._text = path, content.decode()

    def at(self, *loc: str | int) -> Where:
        """Return file, line and key of a value."""
        key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in loc)
        return Where(str(self._path), line_of(self._text, loc), key.lstrip(".") or None)


class HostChecks:
    """One look at what a file sets on this host."""

    def __init__(self, whole: ExperimentFile, where: ExperimentPlaces, left_out: frozenset[Keys]) -> None:
        self._whole, self._where, self._left_out = whole, where, left_out
        self._controls = Controls()

    def wrong(self, unset: list[UnsetLevel], *, allow_exec: bool) -> Iterator[tuple[Keys, LoadstoneError]]:
        """Return what is refused, each with the factor or setting it is of.

        Levels that cannot be set here are added to `unset`: they may be left out.
        """
        for at, setting in enumerate(self._whole.settings):
            if ("settings", at) not in self._left_out and (error := self._wrong_setting(at, setting)):
                yield ("settings", at), error
        yield from self._two_names()
        for at, factor in enumerate(self._whole.factors):
            if ("factors", at) in self._left_out:
                continue
            if factor.what == "command" and not allow_exec:
                place = self._where.at("factors", at, "levels")
                command = repr(factor.level(factor.level_names[-1]).do)
                yield (
                    ("factors", at),
                    make_error(RefusedError, "experiment.factor.would_run", where=place, command=command),
                )
                continue
            try:
                control = self._control(factor.control, "factors", at)
            except InputError as error:
                yield ("factors", at), error
                # What its levels would be of: their mistakes are told in the same round.
                control = self._meant(factor.control)
                if control is None:
                    continue
            if not self._is_known(factor):
                continue
            reasons = ((name, _why_not(self._whole, factor, name, control)) for name in factor.level_names)
            unset += [
                UnsetLevel(factor=factor.name, level=name, why=why)
                for name, why in reasons
                if why is not None
            ]

    def _is_known(self, factor: ExperimentFactor) -> bool:
        """Return whether all that the factor is about is right: layouts are of devices."""
        return factor.what != "layout" or not any(
            one[:1] in (("devices",), ("layouts",)) for one in self._left_out
        )

    def _control(self, name: str | None, table: str, at: int) -> Control | None:
        """Return a control. Raises InputError: a name that is none is a mistake of the file."""
        if name is None:
            return None
        try:
            return self._controls.named(name)
        except InputError as error:
            where = self._where.at(table, at, "control")
            raise InputError(error.message, where=where, hint=error.hint) from None

    def _meant(self, name: str | None) -> Control | None:
        """Return the control that a misspelt name is nearest to."""
        best = meant_by(name or "", (one.name for one in self._controls.every()))
        return None if best is None else self._controls.named(best)

    def _wrong_setting(self, at: int, setting: ExperimentSetting) -> LoadstoneError | None:
        """Return why what is for all runs cannot be set on this host."""
        try:
            control = self._control(setting.control, "settings", at)
        except InputError as error:
            return error
        why = (
            None if control is None else _why_not_control(control, setting.subject, level_name(setting.value))
        )
        if why is None:
            return None
        place = self._where.at("settings", at, "value")
        return make_error(RefusedError, "experiment.setting.cannot", where=place, reason=why)

    def _two_names(self) -> Iterator[tuple[Keys, LoadstoneError]]:
        """Refuse a second factor or setting of one thing under another name, as sdb and /dev/sdb."""
        controls = self._controls
        refusals = {
            item: say("experiment.factor.set_for_all", control=one.control)
            for at, one in enumerate(self._whole.settings)
            if ("settings", at) not in self._left_out and one.control in controls
            for item in controls.meant(one.control, one.subject)
        }
        varied: list[tuple[ExperimentFactor, set[Setting]]] = []
        for at, factor in enumerate(self._whole.factors):
            if factor.control is None or factor.control not in controls:
                continue
            settings = set(controls.meant(factor.control, factor.subject))
            text = next((refusals[item] for item in settings if item in refusals), None)
            for other, other_settings in varied:
                apart = factor.patterns and other.patterns and not set(factor.patterns) & set(other.patterns)
                if settings & other_settings and not apart:
                    text = say("experiment.factor.varied_twice", name=repr(other.name))
            if text is not None:
                yield ("factors", at), InputError(text, where=self._where.at("factors", at, "subject"))
            varied.append((factor, settings))


def _why_not(
    whole: ExperimentFile, factor: ExperimentFactor, name: str, control: Control | None
) -> str | None:
    level, why = factor.level(name), None
    match "" if level.value == AS_IS else factor.what:
        case "control" if control is not None:
            why = _why_not_control(control, factor.subject, level.text)
        case "layout":
            why = build.why_not(order_of(whole, layout_of(level), "ls00000000"))
        case "cgroup":
            why = OwnGroup().why_not(level.limits)
        case "page_cache" if level.value != "kept":
            why = _why_no_drop(level.host)
        case "fill_level":
            why = _why_not_control(FillLevel(), str(factor.of), str(level.value))
        case _:
            pass
    return why


def _why_no_drop(host: str | None) -> str | None:
    if host is not None:
        why = remote.why_no_drop(host)
        return None if why is None else say("control.page_cache.cannot_of", host=host, reason=why)
    return None if os.access(DROP_FILE, os.W_OK) else say("control.page_cache.cannot", file=DROP_FILE)


def _why_not_control(kind: Control, subject: str, value: str) -> str | None:
    if VOLUME in subject:
        return None  # It is not there before the layout stands.
    try:
        subjects = kind.resolve(subject)
    except LoadstoneError as error:
        text = error.message if error.hint is None else f"{error.message} ({error.hint})"
        # A value that the one that is meant does not take is told in the same round.
        best = kind.nearest_subject(subject)
        refusal = None if best is None else _why_not_value(kind, [best], value)
        return text if refusal is None else f"{text}; {refusal}"
    return _why_not_value(kind, subjects, value)


def _why_not_value(kind: Control, subjects: Sequence[str], value: str) -> str | None:
    for one in subjects:
        if refusal := kind.refuses(one, value):
            return f"{kind.name} of {one or 'this host'} {refusal}, found {value!r}"
    return None
