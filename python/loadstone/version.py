"""The version of this program, which the engine and every document name, and that of the fio it speaks as."""

from typing import Final

__version__: Final = "0.1.0"
FIO_VERSION: Final = "fio-3.42"
"""The fio whose outputs are written; tools look for `fio-X.Y`."""
