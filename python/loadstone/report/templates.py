"""Templates of pages: found by their path in this room, with the styles they need.

Their words are messages of the catalogue, which they `say`. A page carries its styles itself, so that it
works offline and can be sent alone.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2

from loadstone.messages import say
from loadstone.report.table_heads import table_heads
from loadstone.version import __version__

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

STYLES = ("page.css",)


def render(name: str, styles: tuple[str, ...] = STYLES, **values: Any) -> str:
    """Return the template `name` filled with `values`; one that is missing is an error."""
    style = "".join((_files() / one).read_text(encoding="utf-8") for one in styles)
    return _environment().get_template(name).render(style=style, version=__version__, **values)


@functools.cache
def _environment() -> jinja2.Environment:
    """Compile each template once, not once for each page: that is most of what a page costs."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {"say": say, "table_heads": table_heads}
    return environment


def _source(template: str) -> str | None:
    file = _files() / template
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _files() -> Traversable:
    return resources.files("loadstone.report")
