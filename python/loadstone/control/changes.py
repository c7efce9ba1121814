"""Settings of this machine changed for a while, and put back: at the end, at an error, after a crash.

Knows the order: written down, set, read again; and back the other way round. Does not know what a
control is good for. The kernel's own answer is what counts: a value that it did not take is an error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from loadstone.control import change_journal, orphans
from loadstone.control.all_controls import Controls
from loadstone.control.change_journal import Change, ChangeJournal
from loadstone.control.commands import CommandPair
from loadstone.control.control_kind import Setting
from loadstone.errors import LoadstoneError, RefusedError, RunError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from loadstone.control.change_journal import Record
    from loadstone.control.control_kind import Control


DAMAGE_REMEDY: Final = "put back by hand what it names, then remove the file"


class ChangeOutcome(StrEnum):
    """What became of a change when it was to be put back."""

    RESTORED = "restored"
    UNCHANGED = "unchanged"
    """It had the value before already."""
    REBOOTED = "rebooted"
    """A reboot has undone it."""
    GONE = "gone"
    """The device, mount or group is gone, or somebody said to forget it."""
    CHANGED_BY_OTHERS = "changed_by_others"
    """It has a value that is neither the one before nor the one that was set."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Restored:
    """One change that was to be put back."""

    setting: Setting
    before: str
    asked: str
    outcome: ChangeOutcome
    why: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing of it is left on the machine."""
        return self.outcome not in (ChangeOutcome.CHANGED_BY_OTHERS, ChangeOutcome.FAILED)

    def __str__(self) -> str:
        setting = str(self.setting)
        match self.outcome:
            case ChangeOutcome.RESTORED:
                key = "undone" if self.setting.control == CommandPair.name else "done"
                return say(f"control.restore.{key}", setting=setting, before=self.before)
            case ChangeOutcome.UNCHANGED:
                return say("control.restore.unchanged", setting=setting, before=self.before)
            case ChangeOutcome.REBOOTED:
                return say("control.restore.rebooted", setting=setting)
            case ChangeOutcome.GONE:
                return f"{setting}: {self.why}" if self.why else say("control.restore.gone", setting=setting)
        if self.setting.control == CommandPair.name:
            # What it was before is the command that failed, which the reason names.
            return say("control.restore.not_undone", setting=setting, reason=self.why)
        return say("control.restore.failed", setting=setting, before=self.before, reason=self.why)


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line of the journal that cannot be read: what it changed is not known."""

    path: str
    line: int
    outcome: Literal["damaged"] = "damaged"
    is_well: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.what}; {DAMAGE_REMEDY}"

    @property
    def what(self) -> str:
        """Which line it is."""
        return say("control.journal.damaged", path=self.path, line=self.line)


class Changes:
    """What this process changes, put back when the block is left.

    `with Changes() as changes: changes.set("io_scheduler", "/dev/sda", "none")`. Raises RunError at
    the end where something could not be put back; it then stays in the journal for `restore`.
    """

    def __init__(
        self,
        controls: Controls | None = None,
        where: Path | None = None,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._controls = controls or Controls()
        self._where = where or change_journal.folder()
        self._step = step
        self._journal: ChangeJournal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = [one for one in self.put_back() if not one.is_well]
        if failed:
            raise not_put_back(failed) from error

    @property
    def made(self) -> Sequence[Change]:
        """What was changed, in order."""
        return self._journal.changes if self._journal else ()

    def claim(self, settings: Collection[Setting]) -> None:
        """Keep these from other processes until all is put back, also while they are as they were.

        Raises RefusedError where another process has claimed or changed one of them.
        """
        change_journal.make(self._where)
        with change_journal.exclusive(self._where):
            self._refuse_held(settings)
            self._opened().claim(settings)

    def set(self, control: str, subject: str, value: str) -> list[Change]:
        """Set a control of a subject (or of all, where none is named), and return what that changed.

        Raises InputError for an unknown control, RefusedError for what cannot be set here, RunError
        where the kernel takes another value than the one asked for.
        """
        kind = self._controls.named(control)
        return [
            change
            for name in kind.resolve(subject)
            if (change := self._set(kind, Setting(control, name), value)) is not None
        ]

    def check(self, control: str, subject: str, value: str) -> None:
        """Raise as `set` does for what cannot be set here; set nothing."""
        kind = self._controls.named(control)
        for name in kind.resolve(subject):
            _value_before(kind, Setting(control, name), value)

    def run(self, name: str, command: str, undo: str) -> Change:
        """Run a command, and at the end the one that undoes it. The caller asked whether it may run."""
        return self.make("command", name, command, undo)

    def make(self, control: str, name: str, value: str, undo: str) -> Change:
        """Do what has no value to read, and at the end what undoes it: also where it was done in part."""
        kind = self._controls.named(control)
        change = self._intend(kind, Setting(control, name), undo, value)
        self._step("set")
        kind.write(name, value)
        self._written.made(change, None)
        return change

    @property
    def _written(self) -> ChangeJournal:
        if self._journal is None:
            raise AssertionError("a change is written down before it is made")
        return self._journal

    def put_back(self) -> list[Restored]:
        """Put everything back, the last first, with interrupts kept for later."""
        if self._journal is None:
            return []
        with _undisturbed():
            results = [
                _put_back(self._controls, self._journal, change, same_boot=True)
                for change in reversed(self._journal.changes)
                if not change.over
            ]
            self._journal.close()
        self._journal = None
        return results

    def _set(self, kind: Control, setting: Setting, value: str) -> Change | None:
        before = _value_before(kind, setting, value)
        if before is None:
            return None
        change = self._intend(kind, setting, before, value)
        self._step("set")
        try:
            kind.write(setting.subject, value)
        except OSError as error:
            raise make_error(
                RefusedError,
                "control.change.not_taken",
                setting=str(setting),
                value=repr(value),
                reason=error.strerror,
            ) from None
        self._step("read")
        after = kind.read(setting.subject)
        self._written.made(change, after)
        if after is None or not kind.agrees(value, after):
            raise make_error(
                RunError,
                "control.change.not_kept",
                setting=str(setting),
                value=repr(value),
                found=repr(after),
            )
        return change

    def _intend(self, kind: Control, setting: Setting, before: str, value: str) -> Change:
        beside = [
            (item, read)
            for item in kind.companions(setting.subject)
            if (read := self._controls.named(item.control).read(item.subject)) is not None
        ]
        change_journal.make(self._where)
        with change_journal.exclusive(self._where):
            self._refuse_held([setting, *(item for item, _ in beside)])
            written = self._opened()
            change = Change(
                len(written.changes), setting, kind.identity(setting.subject), before, value, beside
            )
            written.intend(change)
        return change

    def _opened(self) -> ChangeJournal:
        if self._journal is None:
            self._journal = ChangeJournal(self._where, self._step)
        return self._journal

    def _refuse_held(self, settings: Collection[Setting]) -> None:
        """Refuse what another process keeps to itself or has changed, or what one left changed."""
        own = self._journal.path if self._journal else None
        for record in change_journal.held(self._where):
            if record.path == own:
                continue
            # This process knows what it resets: it sets one of them for all runs, and another for each.
            own_settings = {change.setting for change in record.open_changes()}
            refused_settings = own_settings if record.pid == os.getpid() else record.changed() | record.claims
            for setting in settings:
                if setting in refused_settings:
                    raise make_error(
                        RefusedError,
                        "refusals.held.refusal",
                        hint=say("refusals.held.hint", command=" ".join(record.command)),
                        what=str(setting),
                        pid=record.pid,
                    )
        for record in change_journal.waiting(self._where):
            if damaged := damage_of(record):
                raise RefusedError(damaged[0].what, hint=DAMAGE_REMEDY)
            changed = record.changed()
            for setting in settings:
                if setting in changed:
                    raise make_error(RefusedError, "control.change.left_by_killed", setting=str(setting))


def _value_before(kind: Control, setting: Setting, value: str) -> str | None:
    """Return the value that a setting has; None where it is the one asked for. Raises RefusedError."""
    before = kind.read(setting.subject)
    if before is None:
        raise make_error(RefusedError, "control.change.unreadable", setting=str(setting))
    if kind.agrees(value, before):
        return None
    if why := kind.refuses(setting.subject, value):
        raise make_error(
            RefusedError, "control.change.found", setting=str(setting), found=repr(value), reason=why
        )
    return before


def restore(
    controls: Controls | None = None,
    where: Path | None = None,
    *,
    force: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> list[Restored | DamagedLine]:
    """Put back what processes that are gone have left changed. `force`: also what others changed since."""
    controls = controls or Controls()
    results: list[Restored | DamagedLine] = []
    boot = change_journal.boot_id()
    with change_journal.left_behind(where or change_journal.folder(), step) as records, _undisturbed():
        for left in records:
            same_boot = left.record.boot_id == boot
            results += [
                _put_back(controls, left, change, same_boot=same_boot, force=force)
                for change in left.record.open_changes()
            ]
            results += damage_of(left.record)
    return results


def damage_of(record: Record) -> list[DamagedLine]:
    """Return the lines of a journal that cannot be read."""
    return [DamagedLine(str(record.path), number) for number in record.damaged]


def not_put_back(failed: Sequence[Restored]) -> RunError:
    """Return the error that says what is still changed on this machine."""
    return make_error(RunError, "control.restore.still_changed", settings="; ".join(map(str, failed)))


def _put_back(
    controls: Controls, record: ChangeJournal, change: Change, *, same_boot: bool, force: bool = False
) -> Restored:
    """Put one change back and write that down; what fails stays in the record."""
    shown: Callable[[str], str] = str
    try:
        kind = controls.named(change.setting.control)
        shown = kind.shown
        if kind.by_program:
            orphans.settle(orphans.lock_of(kind.name, change.setting.subject), str(change.setting))
        if kind.volatile and not same_boot:
            outcome, why = ChangeOutcome.REBOOTED, ""
        elif not kind.readable:
            outcome, why = _undo(kind, change, force=force)
        else:
            outcome, why = _put_back_value(kind, change, force=force)
        if outcome in (ChangeOutcome.RESTORED, ChangeOutcome.UNCHANGED):
            why = _put_back_beside(controls, change)
            outcome = ChangeOutcome.FAILED if why else outcome
    except (OSError, LoadstoneError, ValueError, LookupError, TypeError) as error:
        # What was written down may be damaged; the others are put back all the same.
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        outcome, why = ChangeOutcome.FAILED, words
    before, requested = in_words(shown, change.before), in_words(shown, change.asked)
    done = Restored(change.setting, before, requested, outcome, why)
    if done.is_well:
        record.over(change)
    return done


def _undo(kind: Control, change: Change, *, force: bool) -> tuple[ChangeOutcome, str]:
    try:
        kind.write(change.setting.subject, change.before)
    except LoadstoneError as error:
        if not (force and kind.forgettable):
            raise
        return ChangeOutcome.GONE, say("control.restore.dropped", reason=str(error))
    return ChangeOutcome.RESTORED, ""


def in_words(shown: Callable[[str], str], value: str) -> str:
    """Return a value as people are told it; as it was written down where it cannot be read."""
    try:
        return shown(value)
    except (LoadstoneError, ValueError, LookupError, TypeError):
        return value


def _put_back_value(kind: Control, change: Change, *, force: bool) -> tuple[ChangeOutcome, str]:
    subject = change.setting.subject
    now = kind.read(subject) if kind.identity(subject) == change.identity else None
    if now is None:
        why = "" if force else kind.out_of_reach(subject, change.identity)
        if why:
            return ChangeOutcome.FAILED, why
        # A loop device that was detached keeps its settings: they are not gone with what it was.
        another = kind.read(subject) is not None
        return ChangeOutcome.GONE, say("control.restore.another") if another else ""
    if kind.agrees(change.before, now):
        return ChangeOutcome.UNCHANGED, ""
    others = change.after is not None and now != change.after and not kind.agrees(change.asked, now)
    if others and not force and not kind.moves:
        return ChangeOutcome.CHANGED_BY_OTHERS, say("control.restore.by_others", found=now)
    kind.write(subject, change.before)
    read = kind.read(subject)
    if read is not None and kind.agrees(change.before, read):
        return ChangeOutcome.RESTORED, ""
    return ChangeOutcome.FAILED, say("control.restore.not_kept", found=read)


def _put_back_beside(controls: Controls, change: Change) -> str:
    """Put back what the kernel had reset with it; return what could not be."""
    for setting, before in change.beside:
        kind = controls.named(setting.control)
        now = kind.read(setting.subject)
        if now is not None and now != before:
            kind.write(setting.subject, before)
            if (read := kind.read(setting.subject)) != before:
                return say("control.restore.beside", setting=str(setting), before=before, found=read)
    return ""


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM for later: what is put back half is worse than a wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signal_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
