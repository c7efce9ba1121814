"""The seal of a bundle: what it must hold, byte for byte, and what does not.

Knows sizes and BLAKE3 hashes. The seal finds what was damaged or altered after the run; who
alters a file and computes all hashes anew is not found: nothing is signed.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Annotated, Any, Final

from blake3 import blake3
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loadstone.bundle import layout, members
from loadstone.errors import BundleError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

DIGEST: Final = "blake3"
"""Where a manifest or a `study.json` has the hash of the rest of itself."""
PIECE_BYTES: Final = 16 << 20
"""Read, not mapped: a page that a bad disk does not give would end the whole program."""
REPORTS: Final = tuple(f"report.{ending}" for ending in ("html", "md", "svg", "png", "pdf"))
"""Written into a bundle after it is sealed, and read by nothing."""
MARKS: Final = (".loadstone-output-",)
"""Beside a report, where the file system keeps no attributes (`output`)."""
MOST_ADDED: Final = 100_000


def _inside(name: str) -> str:
    if not members.is_inside(name):
        raise make_error(ValueError, "bundle.file.name_outside")
    return name


Name = Annotated[str, AfterValidator(_inside)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Sealed(BaseModel):
    """What is known of one file."""

    model_config = ConfigDict(strict=True)

    size_bytes: Annotated[int, Field(ge=0, lt=2**63)]
    blake3: Hash


class Manifest(BaseModel):
    """`manifest.json`, as far as anything is read from it."""

    model_config = ConfigDict(strict=True)

    format: Annotated[int, Field(ge=1)]
    status: str = ""
    loadstone_version: str = ""
    inputs: dict[str, Name] = {}
    files: dict[Name, Sealed] | None = None
    begun: dict[Name, Sealed] = {}
    """Of a run that is not sealed: what was whole before it began."""
    growth: bool = False
    """Of such a run: `growth.json` tells what its growing files held."""
    exit_code: int | None = None
    created_unix_ns: Annotated[int, Field(ge=0, lt=2**62)] = 0
    blake3: Hash | None = None


def with_digest(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the hash of the rest of itself."""
    return {**document, DIGEST: digest(document)}


def digest(document: Mapping[str, Any]) -> str:
    """Return the hash of a document without the hash it may have: of what it says, not how it is laid out."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    return str(blake3(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest())


def hash_of(directory: Path, name: str) -> tuple[int, str]:
    """Return size and hash of a member; large ones are hashed by all CPUs. Raises `BundleError`."""
    with members.open_member(directory, name) as file:
        try:
            left = os.fstat(file.fileno()).st_size
            if left <= 1 << 20:
                data = file.read()
                return len(data), str(blake3(data).hexdigest())
            hasher, size, piece = blake3(max_threads=blake3.AUTO), 0, bytearray(min(left, PIECE_BYTES))
            while read := file.readinto(piece):
                hasher.update(memoryview(piece)[:read])
                size += read
            return size, str(hasher.hexdigest())
        except OSError as error:
            if members.is_shortage(error):
                raise
            raise make_error(
                BundleError, "bundle.file.unreadable", path=directory / name, reason=error.strerror
            ) from error


def differences(directory: Path, document: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """Return in words what is not as it was when the bundle was sealed, the manifest first."""
    changes = own_difference(document, layout.MANIFEST, required=True)
    sealed_files = manifest.files or {}
    for name, member_seal in sealed_files.items():
        changes += _of_file(directory, name, member_seal)
    return changes + [f"{name} was added" for name in _added(directory, sealed_files)]


def begun_differences(directory: Path, document: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """Return in words what of a run that was never sealed is not as it was when it began.

    What is missing may never have been written: its readers tell.
    """
    changes = own_difference(document, layout.MANIFEST, required=False)
    for name, member_seal in manifest.begun.items():
        if members.exists(directory, name):
            changes += _of_file(directory, name, member_seal)
    return changes


def sealed(data: bytes) -> dict[str, Any]:
    """Return what a manifest says of a file with this content."""
    return {"size_bytes": len(data), "blake3": str(blake3(data).hexdigest())}


def differs(directory: Path, document: Mapping[str, Any], manifest: Manifest, name: str) -> bool:
    """Tell whether the manifest or one member is not as it was when the bundle was sealed."""
    member_seal = (manifest.files or {}).get(name)
    altered = own_difference(document, layout.MANIFEST, required=True)
    return bool(altered) or member_seal is None or any(_of_file(directory, name, member_seal))


def own_difference(document: Mapping[str, Any], name: str, *, required: bool) -> list[str]:
    """Return how a document differs from what it was hashed as; an old one need not have a hash."""
    own_digest = document.get(DIGEST)
    if own_digest is None:
        return [say("bundle.seal.own_hash", name=name)] if required else []
    return [] if own_digest == digest(document) else [f"{name} was altered"]


def _of_file(directory: Path, name: str, said: Sealed) -> Iterator[str]:
    if not members.exists(directory, name):
        yield f"{name} is missing"
        return
    try:
        status = (directory / name).lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size != said.size_bytes:
            yield say("bundle.seal.other_size", name=name, size=status.st_size, sealed=said.size_bytes)
        elif hash_of(directory, name)[1] != said.blake3:
            yield f"{name} was altered"
    except BundleError as error:
        yield error.message.removeprefix(f"{directory}{os.sep}").replace(": ", " ", 1)
    except OSError as error:
        if members.is_shortage(error):
            raise
        yield say("bundle.seal.unreadable", name=name, reason=error.strerror)


def _added(directory: Path, listed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the manifest does not name; directories on the way to what it names belong to it."""
    folders = {layout.INPUT} | {parent for name in listed for parent in _parents(name)}
    # A bundle within the bundle has a directory for inputs, too, and nothing in it.
    folders |= {
        f"{name.removesuffix(layout.MANIFEST)}{layout.INPUT}"
        for name in listed
        if name.endswith(f"/{layout.MANIFEST}")
    }
    known = {layout.MANIFEST, *REPORTS, *listed}
    for name, mode in members.below(directory, MOST_ADDED):
        if name not in known and not name.startswith(MARKS) and not (stat.S_ISDIR(mode) and name in folders):
            yield name


def _parents(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]
