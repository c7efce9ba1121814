"""The version of this program, and nothing else: the engine and every document name it."""

from typing import Final

__version__: Final = "0.1.0"
