"""Modules that few tests need and that take long to import: read when a test first uses them.

Every process of a run collects all tests, and would import them as well.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pytest

WITHOUT_DISTRIBUTED: Final = pytest.mark.skipif(
    find_spec("distributed") is None, reason="the extra `hosts` is not installed"
)


class LazyModule:
    """Stands for a module whose public names are looked up in it.

    `importlib.util.LazyLoader` does not help: pytest looks at each global of a test's module, and asks it for
    its class.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
