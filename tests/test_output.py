"""Where an output may be written: over nothing, and over what Loadstone wrote and nobody changed."""

from __future__ import annotations

import ast
import contextlib
import errno
import itertools
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone import output
from loadstone.errors import InputError, LoadstoneError, RefusedError
from tests.support.devices import attached, empty

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(output.__file__).parent


def refusal(path: Path) -> str:
    with pytest.raises(RefusedError) as caught:
        output.write(path, "new")
    assert caught.value.hint
    with pytest.raises(RefusedError):
        output.check(path)
    return str(caught.value)


def test_a_second_run_of_the_same_script_writes_over_the_first(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    for text in ("first", "second, and longer", ""):
        output.check(out)
        output.write(out, text)
        assert out.read_text() == text
    assert [one.name for one in tmp_path.iterdir()] == ["r.json"]


def test_an_edited_output_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    output.write(out, "{}")
    with out.open("a") as file:
        file.write("my own notes")
    assert refusal(out) == f"{out} was changed since Loadstone wrote it"
    assert out.read_text() == "{}my own notes"


def test_an_edit_of_the_same_length_and_time_is_seen(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    output.write(out, "12345")
    before = out.stat()
    with out.open("r+") as file:
        file.write("54321")
    os.utime(out, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "was changed" in refusal(out)


def test_a_copy_with_all_its_attributes_is_somebody_elses(tmp_path: Path) -> None:
    out, kept = tmp_path / "r.json", tmp_path / "kept.json"
    output.write(out, "{}")
    subprocess.run(["cp", "--preserve=all", out, kept], check=True)
    assert os.getxattr(kept, output.MARK)
    assert "was changed" in refusal(kept)


def test_an_existing_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "thesis.txt"
    out.write_text("two years")
    assert refusal(out) == f"{out} exists, and Loadstone did not make it"
    assert out.read_text() == "two years"


def test_an_empty_file_such_as_mktemp_makes_is_filled_and_keeps_its_mode(tmp_path: Path) -> None:
    out = tmp_path / "r"
    out.touch(mode=0o600)
    output.write(out, "new")
    assert out.read_text() == "new"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_link_to_our_own_output_is_followed_and_one_to_nothing_is_not(tmp_path: Path) -> None:
    out, link, lost = tmp_path / "r", tmp_path / "link", tmp_path / "lost"
    output.write(out, "first")
    link.symlink_to(out)
    output.write(link, "second")
    assert link.is_symlink()
    assert out.read_text() == "second"
    lost.symlink_to(tmp_path / "not-there")
    assert "is not there" in refusal(lost)
    assert not (tmp_path / "not-there").exists()


def test_a_hard_link_is_not_written_through(tmp_path: Path) -> None:
    out, other = tmp_path / "r", tmp_path / "other"
    output.write(out, "first")
    other.hardlink_to(out)
    assert "2 names" in refusal(out)
    assert other.read_text() == "first"


def test_a_name_that_a_killed_program_set_it_aside_by_is_no_other_name(tmp_path: Path) -> None:
    out, aside, other = tmp_path / "r", tmp_path / f".loadstone-output-{'0a' * 8}", tmp_path / "other"
    output.write(out, "first")
    aside.hardlink_to(out)
    output.write(out, "second")
    assert out.read_text() == "second"
    assert aside.read_text() == "first"
    aside.unlink()
    aside.hardlink_to(out)
    other.hardlink_to(out)
    assert "2 names" in refusal(out)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/tty")
    assert "a named pipe" in refusal(pipe)
    assert "a character device" in refusal(link)
    assert "a directory" in refusal(tmp_path)
    assert "(proc)" in refusal(Path("/proc/self/comm"))
    assert "(sysfs)" in refusal(Path("/sys/loadstone"))
    assert "among the devices" in refusal(Path("/dev/loadstone-no-such-disk"))
    assert not Path("/dev/loadstone-no-such-disk").exists()


def test_what_another_process_is_writing_is_in_use(tmp_path: Path) -> None:
    out = tmp_path / "r"
    output.write(out, "first")
    with out.open("a") as file, subprocess.Popen(["sleep", "60"], stdout=file) as other:
        file.close()
        try:
            assert f"process {other.pid} (sleep) has it open for writing" in refusal(out)
        finally:
            other.kill()


def test_a_stream_is_there_from_the_start_and_ours_at_every_moment(tmp_path: Path) -> None:
    out = tmp_path / "r"
    with output.stream(out) as file:
        assert out.read_text() == ""
        for part in ("one\n", "two\n"):
            file.write(part)
            file.flush()
            assert output._Place(out).is_ours()
    assert out.read_text() == "one\ntwo\n"
    with output.stream(out) as file:
        file.write("again\n")
    assert out.read_text() == "again\n"


def test_nothing_is_left_half_written_after_an_error(tmp_path: Path) -> None:
    out = tmp_path / "r"
    output.write(out, "first")

    def half() -> None:
        with output.opened(out) as file:
            file.write(b"half")
            file.flush()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert out.read_text() == "first"
    assert output._Place(out).is_ours()
    assert [one.name for one in tmp_path.iterdir()] == ["r"]


def _together(files: dict[Path, str]) -> None:
    with output.together():
        for path, content in files.items():
            output.directory(path.parent)
            output.write(path, content)
            assert not path.exists() or path.read_text() != content


def _three(place: Path, fails: str | None) -> None:
    with output.together():
        output.directory(place / "a" / "b")
        for name in ("one", "two", "three"):
            if name == fails:
                (place / "a" / "b" / "three").write_text("mine\n")
            output.write(place / "a" / "b" / name, name)


def test_files_that_belong_together_appear_all_or_none_and_so_do_their_directories(tmp_path: Path) -> None:
    """An export into a directory that failed left it there, empty or with some of its files."""
    _three(tmp_path, None)
    assert _contents(tmp_path) == {"a/b/one": "one", "a/b/two": "two", "a/b/three": "three"}
    assert all(output._Place(tmp_path / "a" / "b" / name).is_ours() for name in ("one", "two", "three"))
    again = tmp_path / "again"
    again.mkdir()
    with pytest.raises(RefusedError, match="three exists, and Loadstone did not make it"):
        _three(again, "three")
    # What somebody put there stays, and so the directory.
    assert _contents(again) == {"a/b/three": "mine\n"}
    refused, last = tmp_path / "other", tmp_path / "last"
    refused.write_text("mine\n")
    with pytest.raises(RefusedError):
        _together({last / "a" / "one": "one", last / "b" / "two": "two", refused: "three"})
    assert not last.exists()


@pytest.mark.parametrize("most_open", [0, 200])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_name_that_cannot_be_given_takes_back_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, most_open: int
) -> None:
    """Where the directory has no room for one more name, say."""
    monkeypatch.setattr(output, "MOST_OPEN", most_open)
    output.write(tmp_path / "old", "earlier")
    calls = 0
    real = output._New.appear

    def appear(new: output._New) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(new)

    monkeypatch.setattr(output._New, "appear", appear)
    files = {tmp_path / name: "now" for name in ("old", "one", "two")}
    with pytest.raises(InputError, match="No space left"):
        _together(files)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "earlier"}
    monkeypatch.setattr(output._New, "appear", real)
    _together(files)
    assert {path: path.read_text() for path in tmp_path.iterdir()} == files


class _Failing:
    """Lets the Nth call that gives or takes a name fail, as a device with an error would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
        self.calls, self._fails = 0, fails
        for name in ("link", "rename", "replace"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, real: Callable[..., None]) -> Callable[..., None]:
        def call(*words: object, **named: object) -> None:
            self.calls += 1
            if self.calls == self._fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(*words, **named)

        return call


def _older_and_new(place: Path) -> dict[Path, str]:
    for name in ("a", "b", "c"):
        output.write(place / name, f"earlier {name}")
    return {place / name: f"now {name}" for name in ("a", "new", "b", "c")}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("most_open", [0, 200])
@pytest.mark.parametrize("lacks", ["nothing", "no O_TMPFILE", "no attributes", "no links"])
def test_whichever_name_cannot_be_given_what_was_replaced_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str, most_open: int
) -> None:
    """What replaced an older file of ours could not be taken back after an error at a later one."""
    monkeypatch.setattr(output, "MOST_OPEN", most_open)
    if lacks != "nothing":
        poorer(lacks, monkeypatch)
    for tried in itertools.count(1):
        place = tmp_path / str(tried)
        place.mkdir()
        files = _older_and_new(place)
        before = _contents(place)
        with monkeypatch.context() as patch:
            failing = _Failing(patch, tried)
            with contextlib.suppress(InputError):
                _together(files)
        if failing.calls < tried:
            break
        assert _contents(place) == before, f"the {tried}th of {failing.calls} failed"
        assert all(output._Place(place / name).is_ours() for name in ("a", "b", "c"))
        _together(files)
        own = {name: text for name, text in _contents(place).items() if not name.startswith(".")}
        assert own == {path.name: text for path, text in files.items()}
        assert all(output._Place(path).is_ours() for path in files)
    assert tried > 5


def test_what_somebody_puts_in_the_place_of_an_older_output_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _older_and_new(tmp_path)
    real = output._New.appear

    def appear(new: output._New) -> None:
        if new.path.name == "c":
            (tmp_path / "a").unlink()
            (tmp_path / "a").write_text("theirs")
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(new)

    monkeypatch.setattr(output._New, "appear", appear)
    with pytest.raises(InputError, match="Input/output error"):
        _together(files)
    shown = {name: text for name, text in _contents(tmp_path).items() if not name.startswith(".")}
    assert shown == {"a": "theirs", "b": "earlier b", "c": "earlier c"}
    aside = [text for name, text in _contents(tmp_path).items() if name.startswith(".")]
    assert aside == ["earlier a"], "nobody knows whether it may go"


def _contents(place: Path) -> dict[str, str]:
    return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}


def test_what_appeared_meanwhile_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "r"

    def meanwhile() -> None:
        with output.opened(out) as file:
            file.write(b"ours")
            out.write_text("theirs")

    with pytest.raises(RefusedError, match="meanwhile"):
        meanwhile()
    assert out.read_text() == "theirs"


def test_a_full_disk_is_told_with_the_file_and_the_remedy() -> None:
    with pytest.raises(InputError) as caught:
        output.write(Path("/dev/full"), "x" * 100_000)
    assert str(caught.value) == "/dev/full: cannot be written: No space left on device"
    assert caught.value.hint == "free space there, or name a file elsewhere"


def test_a_file_beyond_the_limit_names_the_limit(tmp_path: Path) -> None:
    """With `ulimit -f` a report was told to *choose a place that can be written*."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot be written: File too large") as caught:
            output.write(tmp_path / "out", "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.hint == "raise the limit on file sizes (ulimit -f unlimited)"


def test_a_full_disk_is_told_in_the_same_words_where_a_library_writes_the_file() -> None:
    """Damaged bundles 760092: the export as Parquet onto a full disk ended in a ComputeError."""
    rows = pl.DataFrame({"ios": range(100_000)})
    with pytest.raises(InputError) as caught, output.opened(Path("/dev/full")) as file:
        rows.write_parquet(file)
    assert str(caught.value) == "/dev/full: cannot be written: No space left on device"
    with pytest.raises(pl.exceptions.PolarsError), output.opened(Path("/dev/null")) as file:
        rows.select("nobody").write_parquet(file)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero"])
def test_what_swallows_everything_may_be_written(name: str) -> None:
    output.write(Path(name), "gone")
    assert stat.S_ISCHR(Path(name).stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_our_own_descriptors_may_be_written_whatever_the_shell_made_of_them(
    name: str, tmp_path: Path
) -> None:
    code = f"from pathlib import Path; from loadstone import output; output.write(Path({name!r}), 'told')"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert piped.stdout == "told"
    log = tmp_path / "log"
    log.write_text("before ")
    with log.open("a") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert log.read_text() == "before told"


@pytest.fixture(params=["no O_TMPFILE", "no attributes", "no links"])
def poor_file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What NFS, vfat and old kernels' tmpfs lack."""
    poorer(str(request.param), monkeypatch)
    return str(request.param)


def poorer(lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[tuple[str, Callable[..., object]]] = []
    real_open = os.open

    def without_tmpfile(path: str, flags: int, *words: int, **named: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real_open(path, flags, *words, **named)

    def unsupported(*_: object, **__: object) -> object:
        raise OSError(95, "Operation not supported")

    wanted.append(("open", without_tmpfile))
    if lacks == "no attributes":
        wanted += [("setxattr", unsupported), ("getxattr", unsupported)]
    if lacks == "no links":
        wanted.append(("link", unsupported))
    for name, replacement in wanted:
        monkeypatch.setattr(os, name, replacement)


def test_file_systems_that_can_do_less_keep_the_rules(poor_file_system: str, tmp_path: Path) -> None:
    out = tmp_path / "r"
    output.write(out, "first")
    output.write(out, "second")
    with output.stream(out) as file:
        file.write("third")
    assert out.read_text() == "third"
    output.write(out, "fourth")
    out.write_text("edited")
    assert "was changed" in refusal(out)
    assert out.read_text() == "edited"
    left = sorted(one.name for one in tmp_path.iterdir())
    assert len(left) == (2 if poor_file_system == "no attributes" else 1)


@pytest.mark.root
def test_a_file_behind_a_loop_device_is_no_place_for_an_output(tmp_path: Path) -> None:
    image = empty(tmp_path / "image", 1 << 20)
    with attached(image) as name:
        device = Path(name)
        assert f"backs {device.name}" in refusal(image)
        assert "a block device" in refusal(device)
        link = tmp_path / "link"
        link.symlink_to(device)
        assert "a block device" in refusal(link)
        assert not any(device.read_bytes())


ALLOWED = {
    "output.py": "the one place",
    "temporary.py": "a lock in a directory it made itself",
    "bundle/disk.py": "the file operations of a bundle that is written",
    "bundle/arrows.py": "tables of the bundle while it is sealed",
    "bundle/host.py": "tables of the bundle while it is sealed",
    "engine/calibrate.py": "a directory of its own under the temporary directory",
    "path/child.py": "/dev/null in place of the standard streams",
    "plan/safety/in_use.py": "a write of no bytes, to ask whether a file is swapped to",
    "plan/safety/direct_io.py": "a new file without a name, or with one that nobody has, for a moment",
    "plan/safety/run_targets.py": "the files under test, which the guard has judged",
    "plan/safety/tree_mark.py": "the mark in the anchor of a tree, which the guard has judged",
    "control/file_controls.py": "settings of this machine, written down before and put back",
    "control/change_journal.py": "what was changed on this machine, in a directory of its own",
    "control/orphans.py": "a lock in the directory of the journal",
    "control/fill.py": "a new file that fills a file system, taken down with it",
    "control/layout/superblocks.py": "superblocks with the label of our own layout, which goes",
    "experiment/allocation.py": "targets of an experiment, which the guard has judged",
    "hosts/certificates.py": "keys in a new directory",
    "hosts/agent_links.py": "the bundle of a host, in a directory that the run made",
    "hosts/occupancy.py": "a lock in a directory of its own",
    "cli/display/live_progress.py": "the terminal, past the stream, when the run is stopped with Ctrl-Z",
    "cli/process/standard_output.py": "/dev/null in place of a standard output that fails",
    "cli/process/supervisor.py": "/dev/null in place of the standard streams",
    "cli/main.py": "/dev/null in place of a missing standard stream",
}
"""Who else opens files to write, and why it may."""
WRITERS = {"write_text", "write_bytes", "write_parquet", "write_csv", "sink_parquet", "sink_csv", "mkstemp"}
WRITERS |= {"NamedTemporaryFile", "copy", "copyfile", "copy2", "move"}
CALLED = re.compile(rf"\b(?:open|{'|'.join(WRITERS)})\s*\(")


def writes_files(tree: ast.AST) -> list[int]:
    """Lines that open a file to write it, as far as names and constants tell."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name == "open":
            modes = [word.value for word in words if isinstance(word, ast.Constant)]
            flags = {one.attr for word in words for one in ast.walk(word) if isinstance(one, ast.Attribute)}
            written = any(isinstance(one, str) and set(one) & set("wax+") and len(one) < 4 for one in modes)
            if written or flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"}:
                found.append(node.lineno)
        elif name == "write_csv" and not node.args:
            continue  # Returns text.
        elif name == "write_parquet" and words and isinstance(words[0], ast.Name) and words[0].id == "memory":
            continue  # What `output` writes then.
        elif name in WRITERS and not (name in {"copy", "move"} and not _of_shutil(node.func)):
            found.append(node.lineno)
    return found


def _of_shutil(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "shutil"
    )


def test_no_other_module_opens_files_to_write_them() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        text = path.read_text()
        lines = writes_files(ast.parse(text)) if CALLED.search(text) else []
        if lines:
            found[name] = lines
    assert set(found) == set(ALLOWED), found


@pytest.mark.parametrize(
    "line",
    ["p.open('w')", "open(p, 'ab')", "p.open(mode='x')", "os.open(p, os.O_RDWR)", "p.write_text('')",
     "frame.write_parquet(path)", "frame.write_csv(path)", "shutil.copy(a, b)", "p.open('r+b')"],
)  # fmt: skip
def test_the_search_for_writers_finds_them(line: str) -> None:
    assert writes_files(ast.parse(line)) == [1]


@pytest.mark.parametrize("line", ["p.open('rb')", "open(p)", "os.open(p, os.O_RDONLY)", "frame.write_csv()"])
def test_the_search_for_writers_passes_over_readers(line: str) -> None:
    assert writes_files(ast.parse(line)) == []


def test_the_errors_are_of_the_tree(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "such" / "r", tmp_path / ("n" * 300), tmp_path / "a" / ".."):
        with pytest.raises(LoadstoneError):
            output.write(path, "x")


@pytest.mark.parametrize(
    ("grown", "wanted", "stays"),
    [
        (b"one\n", b"one\ntwo\n", True),
        (b"one\n", b"one\n", True),
        (b"", b"one\n", True),
        (b"one\ntwo\n", b"one\n", False),
        (b"one\ntwo\n", b"one\n2\nthree\n", False),
    ],
)
def test_a_file_that_grew_becomes_what_is_wanted_and_is_kept_where_it_can(
    tmp_path: Path, grown: bytes, wanted: bytes, *, stays: bool
) -> None:
    path = tmp_path / "log"
    file = output.GrowingFile(path)
    file.append(grown)
    inode = path.stat().st_ino
    with output.settled(file) as out:
        for at in range(len(wanted)):
            out.write(wanted[at : at + 1])
    assert path.read_bytes() == wanted
    assert (path.stat().st_ino == inode) is stays
    assert output._Place(path).is_ours()


def test_a_grown_file_that_somebody_else_wrote_is_left_to_them(tmp_path: Path) -> None:
    file = output.GrowingFile(tmp_path / "log")
    file.append(b"one\n")
    with (tmp_path / "log").open("a") as other:
        other.write("mine\n")
    with pytest.raises(RefusedError, match="another program wrote it"), output.settled(file) as out:
        out.write(b"one\ntwo\n")
    assert (tmp_path / "log").read_text() == "one\nmine\n"


def test_a_directory_in_which_nothing_can_be_made_is_found_before_there_is_anything_to_write(
    tmp_path: Path,
) -> None:
    place = tmp_path / "sealed"
    place.mkdir(mode=0o555)
    asked = "import pathlib, sys; from loadstone import output; output.check(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", asked, str(place / "r.json")]
    if os.geteuid() == 0:  # Root may write anywhere, unless it gives that up.
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("needs setpriv (util-linux)")
        command = [setpriv, "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cannot be written: Permission denied" in done.stderr
    assert list(place.iterdir()) == []
