"""The one table of fio's options: nothing outside it is accepted.

Knows every option by its name and aliases. `docs/fio-options.md` is written from it
(`python -m loadstone.formats.fio.option_page`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.formats.fio import priorities, supported_options, unsupported_options

if TYPE_CHECKING:
    from loadstone.formats.fio.option import Option

GROUPS: Final[dict[str, tuple[Option, ...]]] = {
    "Which I/O": supported_options.WHICH,
    "Where and how much": supported_options.WHERE,
    "How": supported_options.HOW,
    "When": supported_options.WHEN,
    "Bytes written": supported_options.PAYLOAD,
    "Verification": supported_options.VERIFICATION,
    "Priorities": priorities.PRIORITIES,
    "Process and errors": supported_options.PROCESS,
    "Results": supported_options.RESULTS,
    "Harmless": unsupported_options.HARMLESS,
    "Refused": unsupported_options.REFUSED,
}

OPTIONS: Final[tuple[Option, ...]] = tuple(option for group in GROUPS.values() for option in group)


def _by_name() -> dict[str, Option]:
    names: dict[str, Option] = {}
    for option in OPTIONS:
        for name in (option.name, *option.aliases):
            if name in names:
                raise AssertionError(f"two rows for the option {name}")
            names[name] = option
    return names


BY_NAME: Final[dict[str, Option]] = _by_name()
"""Names and aliases to rows."""
