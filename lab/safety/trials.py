"""Every trial of the table: what stands somewhere, and each verb that could write there.

Knows the groups and what should happen. `listed` names them without doing anything; `tried` does them.
Everything is made in a folder in memory and removed, loop devices and mounts too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from lab.parts import Stage
from lab.safety import meanwhile, stacks, trial, verbs
from lab.safety.contents import KINDS, SIZE_BYTES, absent, call, put
from lab.safety.trial import ASKED, REFUSED, WRITTEN, TrialRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.safety.contents import ContentKind
    from lab.safety.verbs import Verb

FILE, DEVICE, TREE = "file", "block device", "tree"
NAMED = {kind.name: kind for kind in KINDS}
OTHERS = ("a random key", "a tar archive", "ext4", "text every 16 MiB of a sparse image")
"""Kinds that are tried with every verb."""
RUNS = (verbs.RUN, verbs.DROP_IN)
SERIES = tuple(
    one
    for one in verbs.VERBS
    if one.name in ("run --repeat 2", "curve", "sweep", "experiment run", "run (vdbench)")
)


@dataclass(frozen=True, slots=True)
class SafetyCase:
    """Something at a place, the verbs that are tried on it and what should become of each."""

    target: str
    holds: str
    verbs: tuple[Verb, ...]
    expected: str
    place: Callable[[Stage, contextlib.ExitStack], Path]
    """Makes it and returns the target's path."""
    watched: Callable[[Path], Path] | None = lambda target: target
    """Where the content is that must stay; None: nothing is there to be lost."""
    needs: str | None = None
    """The program that makes it."""

    @property
    def missing(self) -> str | None:
        """The program that is not here, None when all is."""
        return absent(self.needs)

    def named(self) -> Iterator[tuple[str, str, str]]:
        """What will be tried."""
        for verb in self.verbs:
            yield self.target, self.holds, verb.name


def image(stage: Stage, kind: ContentKind) -> Path:
    path = stage.folder / "image"
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
    kind.make(path, Random(kind.name))
    return path


def attached(stack: contextlib.ExitStack, path: Path) -> Path:
    done = subprocess.run(
        ["losetup", "--find", "--show", str(path)], check=True, capture_output=True, text=True
    )
    device = Path(done.stdout.strip())
    stack.callback(call, "losetup", "--detach", device)
    return device


def layouts() -> Iterator[SafetyCase]:
    """Devices that an experiment would make a file system on."""
    for name in OTHERS:
        yield SafetyCase(DEVICE, name, (verbs.LAYOUTS,), ASKED, _content(NAMED[name], DEVICE))
    mounted = (verbs.LAYOUTS, verbs.agreed(verbs.LAYOUTS))
    yield SafetyCase(DEVICE, "a mounted ext4", mounted, REFUSED, _mounted_device)
    member = "the second device of a mounted btrfs"
    yield SafetyCase(DEVICE, member, mounted, REFUSED, _btrfs_member)
    agreed = verbs.agreed(verbs.LAYOUTS)
    yield SafetyCase(DEVICE, "ext4", (agreed,), WRITTEN, _content(NAMED["ext4"], DEVICE))


def _content(kind: ContentKind, target: str) -> Callable[[Stage, contextlib.ExitStack], Path]:
    def place(stage: Stage, stack: contextlib.ExitStack) -> Path:
        path = image(stage, kind)
        return path if target == FILE else attached(stack, path)

    return place


def contents() -> Iterator[SafetyCase]:
    """Every kind of content, as a file and on a device."""
    for kind in KINDS:
        for target in (FILE, DEVICE):
            tried = (*RUNS, *(verbs.VERBS if kind.name in OTHERS else ()))
            place = _content(kind, target)
            if kind.precious:
                yield SafetyCase(target, kind.name, tried, ASKED, place, needs=kind.needs)
            else:
                yield SafetyCase(target, kind.name, (*RUNS, *SERIES), WRITTEN, place, None)
    for target in (FILE, DEVICE):
        place = _content(NAMED["a tar archive"], target)
        consent = verbs.OVERWRITE
        yield SafetyCase(target, "a tar archive", (consent,), WRITTEN if target == FILE else ASKED, place)
    for verb in RUNS:
        for target in (FILE, DEVICE):
            yield SafetyCase(
                target,
                "a tar archive",
                (verbs.agreed(verb),),
                WRITTEN,
                _content(NAMED["a tar archive"], target),
            )


AGREED: Final = (verbs.agreed(verbs.RUN), verbs.DROP_IN, verbs.OVERWRITE)


def uses() -> Iterator[SafetyCase]:
    """What is in use is refused, with consent too."""
    for target, holds, place in (
        (DEVICE, "a mounted ext4", _mounted_device),
        (FILE, "the file behind a mounted loop device", _mounted_file),
        (FILE, "the same by a hard link, its name removed", _mounted_link),
        (DEVICE, "behind another loop device", _behind),
        (FILE, "a swap file in use", _swap_file),
        (DEVICE, "swap in use", _swap_device),
        (DEVICE, "the second device of a mounted btrfs", _btrfs_member),
        (FILE, "a database that a process has open", _open_database),
    ):
        # What is swapped to changes by itself.
        swap = "swap" in holds
        yield SafetyCase(target, holds, AGREED, REFUSED, place, *((None,) if swap else ()))
    yield from stacked_uses()
    yield from mounts_of_files()
    # The kernel adds to it with every process that ends.
    accounts = _made_in_folder(stacks.accounting)
    yield SafetyCase(FILE, "a file to which the kernel accounts processes", AGREED, REFUSED, accounts, None)
    for target, holds, make in (
        (FILE, "an empty file over whose name another is mounted", stacks.mounted_over),
        (DEVICE, "text that is still in the page cache", stacks.unsynced),
    ):
        yield SafetyCase(target, holds, RUNS, ASKED, _made_in_folder(make))


def stacked_uses() -> Iterator[SafetyCase]:
    """What is used through something else: another device, another namespace, another process."""
    for target, holds, make in (
        (DEVICE, "a loop device over a mounted one", stacks.over_a_mounted_loop),
        (DEVICE, "an ext2 mounted in another mount namespace", stacks.mounted_elsewhere),
        (
            DEVICE,
            "a loop device beside one mounted in another namespace",
            stacks.beside_one_mounted_elsewhere,
        ),
        (DEVICE, "another node of a mounted device", stacks.node_of_a_mounted_device),
        (DEVICE, "a disk on a partition of which a process writes", stacks.disk_of_a_written_partition),
        (FILE, "a file open for writing that no process shows", stacks.sent_descriptor),
        (FILE, "a file with a lease on it", stacks.lease),
        (FILE, "the upper file of an overlay, open by the overlay's name", stacks.overlay),
        (FILE, "an empty file that another program begins to write", stacks.growing),
        (FILE, "a file with content that a process reads", stacks.read_by_a_process),
    ):
        yield SafetyCase(target, holds, AGREED, REFUSED, _made_in_folder(make))
    below = _made_in_folder(stacks.below_mounts)
    needed = absent("bindfs") or "mergerfs"
    yield SafetyCase(FILE, "a file open below bindfs and mergerfs", AGREED, REFUSED, below, needs=needed)


def mounts_of_files() -> Iterator[SafetyCase]:
    """Files that are mounted as they are, without a loop device."""
    for holds, mount in (
        ("a file that is mounted without a loop device", stacks.mounted_without_a_loop),
        ("the same in another mount namespace", stacks.mounted_without_a_loop_elsewhere),
        ("the same, renamed since it was mounted", stacks.mounted_and_renamed),
        ("the same, unmounted lazily while a process reads from it", stacks.unmounted_lazily),
        ("the data file of a mounted erofs", stacks.data_of_a_mounted_image),
    ):
        yield SafetyCase(FILE, holds, AGREED, REFUSED, _made_in_folder(mount), needs="mkfs.erofs")


def _made_in_folder(
    make: Callable[[Path, contextlib.ExitStack], Path],
) -> Callable[[Stage, contextlib.ExitStack], Path]:
    return lambda stage, stack: make(stage.folder, stack)


def _mount(stage: Stage, stack: contextlib.ExitStack, device: Path) -> None:
    point = stage.folder / "mounted"
    point.mkdir()
    call("mount", "-o", "noatime", device, point)
    stack.callback(point.rmdir)
    stack.callback(call, "umount", point)
    (point / "notes").write_text("mine")
    # What a file system does by itself would look like damage; mounted is mounted.
    call("mount", "-o", "remount,ro", point)


def _mounted_device(stage: Stage, stack: contextlib.ExitStack) -> Path:
    device = attached(stack, image(stage, NAMED["ext4"]))
    _mount(stage, stack, device)
    return device


def _mounted_file(stage: Stage, stack: contextlib.ExitStack) -> Path:
    _mounted_device(stage, stack)
    return stage.folder / "image"


def _mounted_link(stage: Stage, stack: contextlib.ExitStack) -> Path:
    path = _mounted_file(stage, stack)
    link = path.with_name("link")
    link.hardlink_to(path)
    path.unlink()
    return link


def _behind(stage: Stage, stack: contextlib.ExitStack) -> Path:
    device = attached(stack, image(stage, NAMED["ext4"]))
    attached(stack, device)
    return device


def _swap_file(_: Stage, stack: contextlib.ExitStack) -> Path:
    # Not on tmpfs: the kernel takes no swap file there.
    path = Path(f"/var/tmp/loadstone-safety-{os.getpid()}.swap")
    stack.callback(path.unlink, missing_ok=True)
    path.write_bytes(bytes(8 << 20))
    path.chmod(0o600)
    call("mkswap", path)
    call("swapon", path)
    stack.callback(call, "swapoff", path)
    return path


def _swap_device(stage: Stage, stack: contextlib.ExitStack) -> Path:
    device = attached(stack, image(stage, NAMED["swap"]))
    call("swapon", device)
    stack.callback(call, "swapoff", device)
    return device


def _btrfs_member(stage: Stage, stack: contextlib.ExitStack) -> Path:
    devices = []
    for name in ("first", "second"):
        path = stage.folder / name
        with path.open("wb") as file:
            file.truncate(SIZE_BYTES)
        devices.append(attached(stack, path))
    call("mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid0", *devices)
    _mount(stage, stack, devices[0])
    return devices[1]


def _open_database(stage: Stage, stack: contextlib.ExitStack) -> Path:
    path = image(stage, NAMED["an SQLite database"])
    program = f"import sys; f = open({str(path)!r}, 'r+b'); print(flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    stack.callback(process.wait)
    stack.callback(process.stdin.close)
    stack.callback(process.stdout.close)
    return path


KERNELS = (
    "/proc/sys/vm/swappiness",
    "/proc/sys/kernel/core_pattern",
    "/proc/self/oom_score_adj",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/block/loop0/queue/scheduler",
    "/sys/block/loop0/queue/read_ahead_kb",
    "/sys/fs/cgroup/blkio/blkio.weight",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/dev/kmsg",
    "/dev/tty",
    "/dev/random",
    "/dev/loop-control",
    "/dev/stdout",
)


def kernels() -> Iterator[SafetyCase]:
    """What is no place for data."""
    tried = (verbs.agreed(verbs.RUN), verbs.OVERWRITE)
    for path in KERNELS:
        yield SafetyCase("file of the kernel's", path, tried, REFUSED, lambda *_, path=path: Path(path), None)


def marks() -> Iterator[SafetyCase]:
    """A file that a run made, and what somebody did to it afterwards."""
    tried = (verbs.RUN, verbs.DROP_IN)
    yield SafetyCase(FILE, "what a run of Loadstone left", tried, WRITTEN, _own_file, None)
    yield SafetyCase(FILE, "the same, renamed", (verbs.RUN,), WRITTEN, _changed(_renamed), None)
    for holds, change in (
        ("the same, filled by another program", lambda path: put(path, (0, b"mine" * 1000))),
        ("the same, 4 bytes changed, times set back", _set_back),
        ("the same, longer by a line", lambda path: _append(path, b"mine\n")),
        ("a copy of it by cp --preserve=all", lambda path: _copied(path, "cp", "--preserve=all")),
        ("the same, with a hard link", lambda path: path.with_name("second").hardlink_to(path)),
        ("another file moved over it", _moved_over),
        ("the same, after a run that was killed", _killed),
    ):
        yield SafetyCase(FILE, holds, tried, ASKED, _changed(change))


def _own_file(stage: Stage, _: contextlib.ExitStack) -> Path:
    path = stage.folder / "made"
    words = verbs.RUN.words(path, stage.folder, "first")
    code, output = trial.loadstone(words, stage.folder, {})
    if code not in (0, 98):
        raise RuntimeError(output)
    return path


def _changed(change: Callable[[Path], object]) -> Callable[[Stage, contextlib.ExitStack], Path]:
    def place(stage: Stage, stack: contextlib.ExitStack) -> Path:
        path = _own_file(stage, stack)
        changed_path = change(path)
        return (
            changed_path
            if isinstance(changed_path, Path) and changed_path.exists() and change is _renamed
            else path
        )

    return place


def _renamed(path: Path) -> Path:
    return path.rename(path.with_name("renamed"))


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _set_back(path: Path) -> None:
    before = path.stat()
    put(path, (before.st_size // 2, b"mine"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _copied(path: Path, *command: str) -> None:
    first = path.rename(path.with_name("first-made"))
    call(*command, first, path)


def _moved_over(path: Path) -> None:
    other = path.with_name("mine")
    other.write_bytes(Random(1).randbytes(1 << 20))
    other.rename(path)


def _killed(path: Path) -> None:
    from loadstone.plan.safety import marker  # noqa: PLC0415 - the mark as such a run leaves it

    marker.write(path, marker.Mark("writing"))


def trees() -> Iterator[SafetyCase]:
    """Trees of files."""
    write, anew = verbs.tree("no"), verbs.tree("yes")
    yield SafetyCase(TREE, "what a run of Loadstone left", (write, anew), WRITTEN, _tree, None)
    yield SafetyCase(TREE, "files without a mark", (write, anew), ASKED, _unmarked, _first)
    yield SafetyCase(TREE, "files and vdbench's control file", (write, anew), ASKED, _control_file, _first)
    for holds, change, expected in (
        ("one with a foreign file in it", _put_in, ASKED),
        ("one with a file changed, times set back", lambda tree: _set_back(_first(tree)), ASKED),
        ("a copy of one by cp -a", lambda tree: _copied(tree, "cp", "-a"), ASKED),
        ("one with a hard link to a file elsewhere", _linked, REFUSED),
        ("one with a symbolic link to a file elsewhere", _symlinked, REFUSED),
        ("one with another directory mounted in it", None, REFUSED),
    ):
        place = _mounted_below if change is None else _changed_tree(change)
        tried = (write, anew, verbs.agreed(write)) if expected == REFUSED else (write, anew)
        yield SafetyCase(TREE, holds, tried, expected, place, _first)
    yield SafetyCase(TREE, "one with a directory moved into it", (write, anew), ASKED, _moved_in, _first)
    for holds, change in (
        ("one with a foreign file in it", _put_in),
        ("one with a file changed, times set back", lambda tree: _set_back(_first(tree))),
    ):
        yield SafetyCase(
            f"{TREE} on exFAT", holds, (write, anew), ASKED, _on_exfat(change), _first, "mount.exfat-fuse"
        )


def during_a_run() -> Iterator[SafetyCase]:
    """Trees into which something came while a run worked there."""
    write, anew = verbs.tree("no"), verbs.tree("yes")
    for one in meanwhile.FILE_SYSTEMS:
        for holds, change, size_bytes, expected in meanwhile.changes(one):
            put_in = meanwhile.put_in(one, change, size_bytes)
            yield SafetyCase(
                f"{TREE} on {one.name}",
                f"{holds}, during a run",
                (write, anew),
                expected,
                _made_in_folder(put_in),
                meanwhile.came,
                one.needs,
            )


def _first(tree: Path) -> Path:
    return tree / "vdb.1_1.dir" / "vdb_f0001.file"


def _tree(stage: Stage, _: contextlib.ExitStack, place: Path | None = None) -> Path:
    tree = (place or stage.folder) / "tree"
    words = verbs.tree("yes").words(tree, stage.folder, "first")
    code, output = trial.loadstone(words, stage.folder, {})
    if code not in (0, 98):
        raise RuntimeError(output)
    if not _first(tree).exists():  # Numbers begin at 0 in a new tree.
        (tree / "vdb.1_1.dir" / "vdb_f0000.file").rename(_first(tree))
    return tree


def _changed_tree(change: Callable[[Path], object]) -> Callable[[Stage, contextlib.ExitStack], Path]:
    def place(stage: Stage, stack: contextlib.ExitStack) -> Path:
        tree = _tree(stage, stack)
        change(tree)
        return tree

    return place


def _unmarked(stage: Stage, _: contextlib.ExitStack) -> Path:
    tree = stage.folder / "tree"
    _first(tree).parent.mkdir(parents=True)
    for number in range(4):
        (_first(tree).parent / f"vdb_f000{number}.file").write_bytes(b"mine" * 2048)
    return tree


def _control_file(stage: Stage, stack: contextlib.ExitStack) -> Path:
    tree = _unmarked(stage, stack)
    head = "when  end x\ndepth 1\nwidth 1\nfiles 4\ndist  bottom\nsize  8192\ndirectory status 1\n"
    (tree / "vdb_control.file").write_text(head)
    return tree


def _put_in(tree: Path) -> None:
    _first(tree).unlink()
    _first(tree).write_bytes(b"mine" * 2048)


def _moved_in(stage: Stage, stack: contextlib.ExitStack) -> Path:
    """Its files are older than the tree's, and a move leaves them their ctime."""
    (directory := stage.folder / "mine").mkdir()
    (directory / "vdb_f0001.file").write_bytes(b"mine" * 2048)
    tree = _tree(stage, stack)
    _first(tree).parent.rename(stage.folder / "aside")
    directory.rename(_first(tree).parent)
    return tree


def _on_exfat(change: Callable[[Path], object]) -> Callable[[Stage, contextlib.ExitStack], Path]:
    """On a file system in user space that tells mtime as ctime."""

    def place(stage: Stage, stack: contextlib.ExitStack) -> Path:
        with (backing := stage.folder / "image").open("wb") as file:
            file.truncate(32 << 20)
        device = attached(stack, backing)
        call("mkfs.exfat", device)
        (point := stage.folder / "exfat").mkdir()
        call("mount.exfat-fuse", device, point)
        stack.callback(call, "umount", point)
        tree = _tree(stage, stack, point)
        change(tree)
        return tree

    return place


def _linked(tree: Path) -> None:
    directory = tree.with_name("mine")
    directory.write_bytes(b"mine" * 2048)
    _first(tree).unlink()
    _first(tree).hardlink_to(directory)


def _symlinked(tree: Path) -> None:
    directory = tree.with_name("mine")
    directory.write_bytes(b"mine" * 2048)
    _first(tree).unlink()
    _first(tree).symlink_to(directory)


def _mounted_below(stage: Stage, stack: contextlib.ExitStack) -> Path:
    tree = _tree(stage, stack)
    other = stage.folder / "other" / "vdb.1_1.dir"
    other.mkdir(parents=True)
    (other / "vdb_f0001.file").write_bytes(b"mine" * 2048)
    call("mount", "--bind", other, tree / "vdb.1_1.dir")
    stack.callback(call, "umount", tree / "vdb.1_1.dir")
    return tree


def outputs() -> Iterator[SafetyCase]:
    """Where results are written to."""
    for target, holds, place in (
        (DEVICE, "a mounted ext4", _mounted_device),
        (DEVICE, "ext4", _content(NAMED["ext4"], DEVICE)),
        (DEVICE, "nothing but a hole", _content(NAMED["nothing but a hole"], DEVICE)),
        (FILE, "text", _content(NAMED["text"], FILE)),
        (FILE, "the file behind a mounted loop device", _mounted_file),
    ):
        yield SafetyCase(f"output: {target}", holds, verbs.OUTPUTS, REFUSED, _with_bundles(place))


def _with_bundles(
    place: Callable[[Stage, contextlib.ExitStack], Path],
) -> Callable[[Stage, contextlib.ExitStack], Path]:
    def all_of_them(stage: Stage, stack: contextlib.ExitStack) -> Path:
        for name in ("bundle", "second"):
            _must(stage, "run", verbs.own_job(stage.folder), "--journal", "--out", name, *verbs.QUIET)
        own = verbs.own_experiment(stage.folder)
        _must(stage, "experiment", "run", own, "--out", "experiment", *verbs.QUIET)
        return place(stage, stack)

    return all_of_them


def _must(stage: Stage, *words: str) -> None:
    code, output = trial.loadstone(words, stage.folder, {})
    if code not in (0, 98):
        raise RuntimeError(f"{words[0]} ended with {code}: {output}")


def reruns() -> Iterator[SafetyCase]:
    """A bundle's Plan again, where something else stands now than when it ran.

    The target's name is a link, so that it can be led elsewhere.
    """
    for target in (FILE, DEVICE):
        for name in OTHERS:
            tried = (verbs.RERUN, verbs.VERIFY)
            yield SafetyCase(
                target,
                f"{name}, since a run",
                tried,
                ASKED,
                _since_a_run(target, _content(NAMED[name], target)),
            )
        unchanged = _since_a_run(target, _content(NAMED["nothing but a hole"], target))
        yield SafetyCase(target, "nothing but a hole, since a run", (verbs.RERUN,), WRITTEN, unchanged, None)
        replaced = _since_a_run(target, _content(NAMED["a tar archive"], target))
        yield SafetyCase(
            target, "a tar archive, since a run", (verbs.agreed(verbs.RERUN),), WRITTEN, replaced
        )
    other = _since_a_run(FILE, _content(NAMED["ext4"], DEVICE))
    yield SafetyCase(DEVICE, "ext4, where the run had a file", (verbs.RERUN,), ASKED, other)
    for target, holds, place in (
        (DEVICE, "a mounted ext4", _mounted_device),
        (FILE, "the file behind a mounted loop device", _mounted_file),
        (FILE, "a database that a process has open", _open_database),
    ):
        used = _since_a_run(target, place)
        yield SafetyCase(target, f"{holds}, since a run", (verbs.agreed(verbs.RERUN),), REFUSED, used)


def _since_a_run(
    target: str, place: Callable[[Stage, contextlib.ExitStack], Path]
) -> Callable[[Stage, contextlib.ExitStack], Path]:
    def led_elsewhere(stage: Stage, stack: contextlib.ExitStack) -> Path:
        first, link = stage.folder / "first", stage.folder / "target"
        with first.open("wb") as file:
            file.truncate(SIZE_BYTES)
        link.symlink_to(first if target == FILE else attached(stack, first))
        job = stage.folder / "earlier.fio"
        job.write_text(verbs.JOURNAL.format(target=link))
        _must(stage, "run", str(job), "--journal", "--out", "earlier", *verbs.QUIET)
        now = place(stage, stack)
        link.unlink()
        link.symlink_to(now)
        return link

    return led_elsewhere


def cases() -> list[SafetyCase]:
    """Return all of them."""
    return [
        *contents(),
        *layouts(),
        *uses(),
        *kernels(),
        *marks(),
        *trees(),
        *during_a_run(),
        *reruns(),
        *outputs(),
    ]


def listed() -> list[tuple[str, str, str]]:
    """Return what the table has a line for."""
    return [key for case in cases() for key in case.named()]


def rows(number: int) -> list[TrialRow]:
    """Try one of the cases, and tell of each line when it is there."""
    trial_rows = []
    for row in tried(cases()[number]):
        sys.stderr.write(row.line())
        trial_rows.append(row)
    return trial_rows


def tried(case: SafetyCase) -> Iterator[TrialRow]:
    """Do the trials of a case. What is written makes it new for the next verb."""
    left = list(case.verbs)
    while left:
        with Stage() as stage, contextlib.ExitStack() as stack:
            try:
                target = case.place(stage, stack)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                # Where the programs are there, what fails is ours, and nothing was shown.
                excused = case.missing is not None
                why = f"not installed: {case.missing}" if excused else trial.shortened(str(error))
                for verb in left:
                    yield TrialRow(case.target, case.holds, verb.name, trial.NOT_TRIED, None, why, excused)
                return
            while left:
                verb = left.pop(0)
                row = _try(case, verb, target, stage, len(left))
                yield row
                if row.happened == WRITTEN or row.intact is False:
                    break


def _try(case: SafetyCase, verb: Verb, target: Path, stage: Stage, number: int) -> TrialRow:
    watched = None if case.watched is None else case.watched(target)
    before = None if watched is None else trial.fingerprint(watched)
    words = verb.words(target, stage.folder, f"out{number}")
    code, output = trial.loadstone(words, stage.folder, verb.environment(target))
    happened = trial.happened(code, output) if verb.writes else trial.READ
    intact = None if watched is None else watched.exists() and trial.fingerprint(watched) == before
    expected = case.expected if verb.writes else trial.READ
    right = happened == expected and (intact is not False or expected == WRITTEN)
    why = trial.evidence(output, str(target)) if happened in (REFUSED, ASKED) or not right else ""
    if not right and not why:
        why = trial.shortened(f"exit code {code}: {output}")
    return TrialRow(case.target, case.holds, verb.name, happened, intact, why, right)
