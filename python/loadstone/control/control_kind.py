"""What a control is: one kind of setting of this machine that can be read, set and put back.

Knows names, values as text, and how a value is asked for. Does not know the kernel's files, nor
what was changed and by whom: that is the journal's.
"""

from __future__ import annotations

import abc
import re
from dataclasses import dataclass
from typing import ClassVar, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error
from loadstone.messages.suggest import meant_by, nearest


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One thing that can be set: a control's name, and of what (`sda`, `policy0`; empty: the host's).

    Without a control it is the thing itself, as somebody claims it.
    """

    control: str
    subject: str

    def __str__(self) -> str:
        return " of ".join(filter(None, (self.control, self.subject)))


class Control(abc.ABC):
    """A kind of setting. All values are text, as `read` returns them."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    """Where the kernel documents it."""
    volatile: ClassVar[bool] = True
    """A reboot undoes it."""
    readable: ClassVar[bool] = True
    """It has a value; else what puts it back is written, whatever is there."""
    moves: ClassVar[bool] = False
    """Its value changes with what the run does: a third value is nobody else's setting."""
    forgettable: ClassVar[bool] = False
    """`loadstone restore --force` forgets it where what undoes it fails: only its user knows what is left."""
    by_program: ClassVar[bool] = False
    """A program sets it, which may go on where who started it was killed: it is waited for (`orphans`)."""
    by_name: ClassVar[bool] = False
    """Its subjects are not listed: the user names one."""
    takes: ClassVar[tuple[str, str]] = (".*", "any value")
    """What its values look like where the kernel has no list: a pattern, and the same in words."""

    values: ClassVar[tuple[str, ...]] = ()
    """All it takes, where that is the same everywhere."""

    def subjects(self) -> list[str]:
        """Return what it can be set of on this host; empty: it cannot be set here, or its user names one."""
        return []

    @abc.abstractmethod
    def read(self, subject: str) -> str | None:
        """Return the value now; None: it is not there."""

    @abc.abstractmethod
    def write(self, subject: str, value: str) -> None:
        """Set it. Raises OSError as the kernel does; the value is `read` again to see what came of it."""

    def resolve(self, subject: str) -> list[str]:
        """Return the subjects a user means; nothing asked means all of them.

        Raises RefusedError where there is none.
        """
        known = self.subjects()
        if not known:
            raise make_error(RefusedError, "control.subject.none", control=self.name, source=self.source)
        if not subject:
            return known
        if known == [""]:
            raise make_error(RefusedError, "control.subject.of_host", control=self.name, asked=subject)
        if subject not in known:
            hint = nearest(subject, known, limit=len(known))
            raise make_error(
                RefusedError, "control.subject.unknown", hint=hint, control=self.name, asked=subject
            )
        return [subject]

    def nearest_subject(self, subject: str) -> str | None:
        """Return the subject of this host that a misspelt one is nearest to; None where none is near."""
        return meant_by(subject, self.subjects())

    def choices(self, subject: str) -> tuple[str, ...]:  # noqa: ARG002 - the kernel has some for each
        """Return the values it takes; empty: the kernel says no list."""
        return self.values

    def refuses(self, subject: str, value: str) -> str:
        """Return why it cannot be set to a value, as far as is known before; empty: nothing is."""
        choices = self.choices(subject)
        if choices:
            return "" if value in choices else f"takes {', '.join(choices)}"
        pattern, words = self.takes
        return "" if re.fullmatch(pattern, value, re.DOTALL) else f"takes {words}"

    def identity(self, subject: str) -> str:  # noqa: ARG002 - most things keep their name until a reboot
        """Return what tells this subject from another that gets its name later; empty: nothing is needed."""
        return ""

    def out_of_reach(self, subject: str, identity: str) -> str:  # noqa: ARG002 - most changes go with it
        """Return why a change may still be there although its subject is not; empty: it went with it."""
        return ""

    def companions(self, subject: str) -> list[Setting]:  # noqa: ARG002 - most change nothing else
        """Return the settings that the kernel resets when this one is set."""
        return []

    def shown(self, value: str) -> str:
        """Return a value as people read it."""
        return value

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether a value read is what was asked for."""
        return requested == value


NUMBER: Final = (r"\d+", "a whole number")
BEFORE_LIMIT: Final = 64 * 1024
"""Bytes of a value: none is longer."""
