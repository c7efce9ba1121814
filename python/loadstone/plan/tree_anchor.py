"""The anchor of a tree while jobs still add to it, and its parts of the Plan.

Knows what is there, what jobs up to now make of it, and what speaks against working there. Knows no
clone and no stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone import units
from loadstone.plan import anchors
from loadstone.plan import model as plan
from loadstone.plan.safety import tree_mark

if TYPE_CHECKING:
    from loadstone.plan.host_facts import AnchorFacts
    from loadstone.workload.model import Job
    from loadstone.workload.trees import HostFiles, TreeShape

SIZES_SEED: Final = 0x7472_6565
"""Sizes are drawn with it: the same tree has the same files in every run."""


class Opening(NamedTuple):
    """How files are opened."""

    direct: bool
    sync: plan.OpenSync
    invalidate: bool

    @classmethod
    def of(cls, job: Job) -> Opening:
        """Return how a job opens files."""
        sync = plan.OpenSync(job.durability.sync or "none")
        return cls(bool(job.engine.direct), sync, bool(job.files.invalidate))


@dataclass(slots=True)
class Anchor:
    """What is below an anchor, and what jobs up to now make of it."""

    path: str
    job: Job
    """The first that works there."""
    shape: TreeShape
    facts: AnchorFacts
    opening: Opening
    clear: bool
    part: HostFiles
    removed_by_jobs: bool = False
    """Jobs do that, measured: what is there is the tree they work in, and nothing else."""
    written: bool = False
    made_files: bool = False
    """A job up to now makes files, or directories."""
    made_directories: bool = False

    @property
    def has_files(self) -> bool:
        """Whether there are files, or will be."""
        return self.made_files or (self.facts.found.has_files and not self.clear)

    @property
    def has_directories(self) -> bool:
        """Whether there are directories, or will be."""
        return self.made_directories or (self.facts.found.has_directories and not self.clear)

    @property
    def first_file(self) -> int:
        """Number in the name of the first file: 1 in trees of older vdbenches."""
        first_file = None if self._is_cleared else self.facts.found.first_file
        return anchors.NEW_FIRST_FILE if first_file is None else first_file

    @property
    def _is_cleared(self) -> bool:
        return self.clear and not self.removed_by_jobs

    def is_whole(self) -> bool:
        """Whether nothing but the tree that is asked for is there, as Loadstone left it."""
        tree = self.facts.found
        if tree.maker != "Loadstone" or tree.structure is None or tree.is_empty:
            return False
        if tree.first_file != anchors.NEW_FIRST_FILE or self._differences(tree.structure):
            return False
        try:
            return tree_mark.look(Path(self.path)).changed is None
        except OSError:
            return False

    def check_structure(self) -> None:
        """Refuse a tree that was made with another structure than is asked for."""
        tree = self.facts.found
        if tree.structure is None or tree.is_empty:
            return
        differences = self._differences(tree.structure)
        if differences:
            raise self.job.error(
                "plan.tree.structure",
                "placement.targets",
                maker=tree.maker,
                path=self.path,
                differences=", ".join(differences),
                clear=self.job.setting("work.clear", "yes"),
            )

    def _differences(self, there: anchors.Structure) -> list[str]:
        return there.differences(anchors.Structure.of_shape(self.shape))

    def check_room(self, job: Job) -> None:
        """Refuse to make a tree that does not fit; what is cleared before gives its room back."""
        tree, shape = self.facts.found, self.shape
        if not tree.is_empty and (not self.clear or tree.structure is None):
            return  # Nobody knows what of it is there.
        freed_bytes = tree.structure.expected_bytes if tree.structure and not tree.is_empty else 0
        free_bytes, free_files = self.facts.free_bytes, self.facts.free_files
        if free_bytes is not None and shape.expected_bytes > free_bytes + freed_bytes:
            raise job.error(
                "plan.tree.no_room",
                "placement.targets",
                path=self.path,
                expected=units.size(shape.expected_bytes),
                free=units.size(free_bytes + freed_bytes),
                option=job.option("work.shape.total_bytes"),
            )
        entries = shape.total_files + shape.directories
        if free_files is not None and tree.is_empty and entries > free_files:
            raise job.error(
                "plan.tree.no_inodes", "placement.targets", path=self.path, entries=entries, free=free_files
            )

    def target(self) -> plan.Target:
        """Return the anchor as a target of the Plan."""
        return plan.Target(
            path=self.path,
            kind=plan.TargetKind.TREE,
            size_bytes=self.shape.expected_bytes,
            direct=self.opening.direct,
            read_only=not self.written,
            create=not self.facts.found.exists,
            sync=self.opening.sync,
            exclusive=False,
            identity=self.facts.identity,
            layout=None,
            invalidate=self.opening.invalidate,
            advice=None,
            unlink=False,
            namesake=None,
            named=None,
        )

    def tree(self, target: int) -> plan.Tree:
        """Return its tree; `target` is its place among the targets of the Plan."""
        shape = self.shape
        sizes: plan.FileSizes
        if shape.around:
            sizes = plan.FileSizesAround(mean_bytes=shape.sizes[0][0])
        else:
            sizes = plan.FileSizesTable(
                table=tuple(plan.FileSize(bytes=size, weight=float(part)) for size, part in shape.sizes)
            )
        return plan.Tree(
            target=target,
            depth=shape.depth,
            width=shape.width,
            files=shape.files,
            first_file=self.first_file,
            everywhere=shape.everywhere,
            sizes=sizes,
            seed=SIZES_SEED,
            total_bytes=shape.total_bytes,
            clear=self._is_cleared,
            part=plan.FilePart(index=self.part.index, count=self.part.count),
            vouched_ns=None,
        )
