"""What is written of the verbs from themselves: `docs/cli.md`, and `help.json`, which `--help` shows.

Knows only how both are put together. Tests keep the files fresh.
"""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, cast

from loadstone.cli.app import EPILOGUE, VERBS, build, usage

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_HEAD = """# The command line

Written by `make docs` from the program; a test keeps it fresh.

Standard output is data, standard error is talk. `NO_COLOR` is honoured, and off a terminal
there is neither colour nor live progress. Exit codes are in [exit-codes.md](exit-codes.md).

"""


def page() -> str:
    """Return the page."""
    app = build(VERBS)
    for verb in VERBS:
        app[verb].usage = f"Usage: loadstone {usage(app, verb)}"
    body = app.generate_docs(output_format="markdown", heading_level=2)
    return _HEAD + "\n".join(line.rstrip() for line in body.splitlines()).strip() + "\n"


def helps() -> str:
    """Return what `--help` shows of each verb, and of all of them under an empty name."""
    pages = {verb: _Collector().collected(verb) for verb in ("", *VERBS)}
    return json.dumps(pages, indent=1, ensure_ascii=False) + "\n"


class _Collector:
    """Takes the place of what prints a help, and keeps what was to be printed."""

    def __init__(self) -> None:
        self._content: dict[str, Any] = {"panels": [], "epilogue": EPILOGUE}

    def collected(self, verb: str) -> dict[str, Any]:
        app = build([verb])
        app.help_formatter = self
        if verb:
            app[verb].usage = f"Usage: loadstone {verb} {usage(app, verb)}"
        with redirect_stdout(io.StringIO()):
            app.help_print([verb] if verb else [])
        return self._content

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        del console, options  # named by the protocol
        if panel.entries:
            rows = [_row(entry, panel.format) for entry in panel.entries]
            self._content["panels"].append({"title": panel.title, "rows": rows})

    def render_usage(self, _console: Console, _options: ConsoleOptions, text: object) -> None:
        self._content["usage"] = "Usage: " + str(text).strip().removeprefix("Usage: ")

    def render_description(self, _console: Console, _options: ConsoleOptions, text: object) -> None:
        self._content["description"] = _plain(text)


def _row(entry: HelpEntry, kind: str) -> dict[str, Any]:
    more = [
        ("choices", f"[choices: {', '.join(entry.choices)}]" if entry.choices else ""),
        ("default", "" if entry.default is None else f"[default: {entry.default}]"),
        ("required", "[required]" if entry.required else ""),
    ]
    first, *others = entry.all_options or ("",)
    command = f"{first} ({', '.join(others)})" if others else first
    return {
        "name": command if kind == "command" else " ".join(entry.display_labels_with_metavar),
        "required": entry.required,
        "text": _plain(entry.description),
        "more": [one for one in more if one[1]],
    }


def _plain(text: Any) -> str:
    """Return paragraphs without their lines: where a docstring breaks one is not where a terminal does."""
    plain = cast("str", text.primary_renderable.plain).strip()
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", plain))
