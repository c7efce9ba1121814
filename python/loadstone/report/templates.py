"""Templates of pages: found by their path in this room, with the styles they need.

Their words are messages of the catalogue, which they `say`. A page carries its styles itself, so that it
works offline and can be sent alone.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import pickle
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from loadstone.messages import say
from loadstone.report.table_heads import table_heads
from loadstone.version import __version__

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from jinja2.bccache import Bucket

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
        bytecode_cache=_CompiledTemplates(),
    )
    environment.globals |= {"say": say, "table_heads": table_heads}
    return environment


class _CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Templates compiled once, beside Python's own compiled modules and by the same rules (PEP 3147).

    Every run with a report compiled them anew.
    """

    def __init__(self) -> None:
        modules = Path(importlib.util.cache_from_source(__file__)).parent
        super().__init__(str(modules), f"jinja-{jinja2.__version__}-%s.cache")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take a template that was compiled of this source; what is damaged is compiled anew."""
        with contextlib.suppress(OSError, pickle.UnpicklingError, EOFError, ValueError, TypeError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template for everybody, where Python may keep its modules."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)
                Path(self._get_cache_filename(bucket)).chmod(0o644)


def _source(template: str) -> str | None:
    file = _files() / template
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _files() -> Traversable:
    return resources.files("loadstone.report")
