"""A file's name made of a name somebody gave to a job, a run or a file.

Knows that it must stay in its directory, be seen, be no option of a command, and fit in 255 bytes,
and that two names must not become the same.
"""

from __future__ import annotations

from typing import Final

MOST_BYTES: Final = 255
"""Of a name on every file system of Linux (NAME_MAX)."""
_HASH_LETTERS: Final = 8
_KEPT: Final = "-_.=%"


def safe(name: str, *, most_bytes: int = 120, keep: str = _KEPT) -> str:
    """Return a name of letters, digits and `keep`; what had to be cut says so by a hash of all of it."""
    text = "".join(letter if letter.isalnum() or letter in keep else "-" for letter in name)
    text = "_" + text[1:] if text[:1] in (".", "-") else text or "_"
    encoded = text.encode("utf-8", "surrogateescape")
    if len(encoded) <= most_bytes:
        return text
    return _fitted(name, text, most_bytes)


def short(name: str, ending: str = "") -> str:
    """Return a name with an ending, cut where both do not fit; it leads to no other directory."""
    name = name.replace("/", "_").replace("\0", "_")
    most_bytes = MOST_BYTES - len(ending.encode())
    long = len(name.encode("utf-8", "surrogateescape")) > most_bytes
    return (_fitted(name, name, most_bytes) if long else name) + ending


def _fitted(name: str, text: str, most_bytes: int) -> str:
    """Cut between letters, not between their bytes, and add a hash of the name."""
    import hashlib  # noqa: PLC0415 - it loads a library of ciphers

    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_HASH_LETTERS]
    room = most_bytes - _HASH_LETTERS - 1
    cut = text.encode("utf-8", "surrogateescape")[:room].decode("utf-8", "ignore")
    return f"{cut}-{digest}"
