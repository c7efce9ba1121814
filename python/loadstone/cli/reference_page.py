"""The text of `docs/cli.md`, from the verbs themselves.

Knows only how the page is put together. A test keeps the file fresh.
"""

from __future__ import annotations

from loadstone.cli.app import VERBS, build, usage

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
