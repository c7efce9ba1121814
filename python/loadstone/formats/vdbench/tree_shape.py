"""The shape of an FSD's tree once the loops of a run have had their say.

Knows how large a tree may be. Does not know what is done in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench import filesystem
from loadstone.formats.vdbench.values import Number, shown
from loadstone.messages import make_error
from loadstone.workload.trees import TreeShape

if TYPE_CHECKING:
    from loadstone.formats.vdbench.filesystem import FileSystem
    from loadstone.formats.vdbench.loops import Turn


def shape(system: FileSystem, turn: Turn) -> TreeShape:
    """Return the tree of a file system once the loops have had their say."""
    depth, width, files = (
        getattr(system, word) if (looped := turn.number(word)) is None else int(looped)
        for word in ("depth", "width", "files")
    )
    size = turn.number("sizes")
    sizes, around = (((int(size), 100.0),), False) if size is not None else (system.sizes, system.average)
    if around:
        sizes = ((sizes[0][0], 100.0),)
    _check_extent(replace(system, depth=depth, width=width, files=files))
    tree_shape = TreeShape(
        depth=depth,
        width=width,
        files=files,
        everywhere=system.distribution == "all",
        sizes=sizes,
        around=around,
    )
    total = _total(system, turn)
    if total and total > tree_shape.expected_bytes and not around and len(sizes) == 1:
        raise make_error(
            InputError,
            "formats_vdbench.tree_shape.totalsize",
            where=system.at.get("totalsize", system.where),
            total=shown(total),
            expected=shown(tree_shape.expected_bytes),
            system=system.name,
        )
    return tree_shape.model_copy(update={"total_bytes": total})


def _check_extent(system: FileSystem) -> None:
    """Refuse a tree without a level, and one with too many levels, directories or files."""
    most = filesystem.MAX_LEVELS
    for word, value in (("depth", system.depth), ("width", system.width), ("files", system.files)):
        if value < 1 or (word == "depth" and value > most):
            raise make_error(
                InputError,
                "formats_vdbench.tree_shape.levels",
                where=system.where,
                word=word,
                value=value,
                most=most,
            )
    if system.directories > filesystem.MAX_DIRECTORIES or system.total_files > filesystem.MAX_TOTAL_FILES:
        raise make_error(
            RefusedError,
            "formats_vdbench.tree_shape.too_large",
            where=system.where,
            system=system.name,
            directories=system.directories,
            files=system.total_files,
            max_directories=filesystem.MAX_DIRECTORIES,
            max_total_files=filesystem.MAX_TOTAL_FILES,
        )


def _total(system: FileSystem, turn: Turn) -> int:
    """Return `totalsize=`, of which a loop may say a percentage; 0: all."""
    looped = turn.values.get("totalsize")
    if not isinstance(looped, Number) or not looped.value:
        return system.totalsize or 0
    if not looped.percent:
        return int(looped.value)
    if system.totalsize is None:
        raise make_error(
            InputError,
            "formats_vdbench.tree_shape.percent_of_unknown",
            where=system.where,
            percent=f"{looped.value:g}",
            system=system.name,
        )
    return int(system.totalsize * looped.value / 100)
