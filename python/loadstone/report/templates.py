"""Templates of pages: found by their path in this room, with the styles they need.

A page carries its styles itself, so that it works offline and can be sent alone.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2

from loadstone.version import __version__

STYLES = ("page.css",)


def render(name: str, styles: tuple[str, ...] = STYLES, **values: Any) -> str:
    """Return the template `name` filled with `values`; one that is missing is an error."""
    files = resources.files("loadstone.report")

    def source(template: str) -> str | None:
        file = files / template
        return file.read_text() if file.is_file() else None

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    style = "".join((files / one).read_text() for one in styles)
    return environment.get_template(name).render(style=style, version=__version__, **values)
