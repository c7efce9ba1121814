"""What may not be written is found before the load: every way the kernel has of refusing a write."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.errors import RefusedError, Where
from loadstone.plan.safety import direct_io, guard, obstacles
from tests.e2e.program import job, run
from tests.guard.plans import plan, target
from tests.support.devices import attached, call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

root = pytest.mark.root
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def refusal(path: object, **changes: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        obstacles.check(plan(target(str(path), **changes)))
    assert str(path) in str(caught.value)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))
    return path


@contextlib.contextmanager
def flagged(path: Path, flag: str) -> Iterator[None]:
    if subprocess.run(["chattr", f"+{flag}", path], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no such flags")
    try:
        yield
    finally:
        subprocess.run(["chattr", f"-{flag}", path], check=True)


@contextlib.contextmanager
def as_nobody(place: Path) -> Iterator[None]:
    for directory in [place, *place.parents]:
        if not directory.stat().st_mode & stat.S_IXOTH:
            directory.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def mounted(point: Path, *words: str) -> Iterator[Path]:
    point.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *words, str(point)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not possible here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_a_file_that_may_be_written(file: Path, tmp_path: Path) -> None:
    obstacles.check(plan(target(str(file))))
    obstacles.check(plan(target(str(tmp_path / "new"), create=True)))
    obstacles.check(plan(target(str(tmp_path / "a" / "b" / "new"), create=True)))
    obstacles.check(plan(target("/dev/null", "char")))


@pytest.mark.parametrize("name", ["null", "zero", "full"])
def test_a_device_without_direct_io(name: str) -> None:
    """An .icf wants direct I/O, and with /dev/null as its target it failed only when the run began."""
    error = refusal(f"/dev/{name}", kind="char", direct=True)
    assert str(error) == f"some targets cannot be used:\n  /dev/{name}: it takes no direct I/O (O_DIRECT)"
    with pytest.raises(RefusedError, match="it takes no direct I/O"):
        obstacles.check(plan(target(f"/dev/{name}", "char", direct=True), read=100, write=0))


@root
@needs_root
def test_a_file_system_without_direct_io(tmp_path: Path) -> None:
    with mounted(tmp_path / "m", "-t", "ramfs", "none") as point:
        (point / "data").write_bytes(bytes(1 << 16))
        try:
            os.close(os.open(point / "data", os.O_RDONLY | os.O_DIRECT))
        except OSError:
            assert "it takes no direct I/O" in str(refusal(point / "data", direct=True))
        obstacles.check(plan(target(str(point / "data"))))


@contextlib.contextmanager
def without_direct_io(tmp_path: Path, kind: str) -> Iterator[Path]:
    """Mount a file system whose files take no direct I/O; those of bindfs always have a name."""
    with mounted(tmp_path / "m", "-t", "ramfs", "none") as point:
        (point / "old").write_bytes(bytes(1 << 16))
        with contextlib.suppress(OSError):
            os.close(os.open(point / "old", os.O_RDONLY | os.O_DIRECT))
            pytest.skip("ramfs takes direct I/O on this kernel")
        if kind == "ramfs":
            yield point
            return
        if shutil.which("bindfs") is None:
            pytest.skip("not installed: bindfs")
        shown = tmp_path / "shown"
        shown.mkdir()
        subprocess.run(["bindfs", "--forward-odirect=512", point, shown], check=True)
        try:
            yield shown
        finally:
            subprocess.run(["umount", str(shown)], check=True)


@root
@needs_root
@pytest.mark.parametrize("kind", ["ramfs", "bindfs"])
def test_a_new_file_without_direct_io(tmp_path: Path, kind: str) -> None:
    """It was made, and refused by the kernel when the engine opened it: the run had begun."""
    with without_direct_io(tmp_path, kind) as point:
        before = sorted(point.iterdir()), point.stat().st_mtime_ns
        new = target(str(point / "a" / "new"), create=True, direct=True)
        with pytest.raises(RefusedError, match=f"{point}/a/new: it takes no direct I/O"):
            obstacles.check(plan(new), naming=True)
        obstacles.check(plan({**new, "direct": False}), naming=True)
        assert sorted(point.iterdir()) == before[0]
        if kind == "ramfs":  # A file without a name tells, and changes nothing.
            with pytest.raises(RefusedError, match="it takes no direct I/O"):
                obstacles.check(plan(new))
            assert point.stat().st_mtime_ns == before[1]


def test_a_new_file_with_direct_io_leaves_no_trace(tmp_path: Path) -> None:
    before = tmp_path.stat().st_mtime_ns
    obstacles.check(plan(target(str(tmp_path / "a" / "new"), create=True, direct=True)), naming=True)
    assert (list(tmp_path.iterdir()), tmp_path.stat().st_mtime_ns) == ([], before)


@pytest.mark.parametrize("name", ["/proc/self/oom_score_adj", "/sys/kernel/mm/new", "/dev/stdout"])
def test_what_is_never_written_is_not_opened_to_ask(tmp_path: Path, name: str) -> None:
    """It was said to take no direct I/O, with the hint to leave that out of the job."""
    wanted = plan(target(name, create="new" in name, direct=True))
    obstacles.check(wanted, naming=True)
    with pytest.raises(RefusedError, match="only files and block devices are written"):
        guard.secure(wanted, guard.Consent(frozenset({name})))


def test_one_file_tells_of_all_in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def refused_in(directory: Path, *, naming: bool) -> bool:
        asked.append(directory)
        return naming

    monkeypatch.setattr(direct_io, "refused_in", refused_in)
    many = [target(str(tmp_path / f"new{number}"), create=True, direct=True) for number in range(50)]
    with pytest.raises(RefusedError, match="42 more"):
        obstacles.check(plan(*many), naming=True)
    assert asked == [tmp_path]


OF_FRONTS = {
    "run": ("a.fio", "[a]\nrw=write\nbs=4k\nsize=64k\ndirect=1\nfilename={}/new\n"),
    "vdbench": (
        "a.parm",
        "sd=s,lun={}/new,size=1m,openflags=o_direct\nwd=w,sd=s,rdpct=0,xfersize=4k\n"
        "rd=r,wd=w,iorate=max,elapsed=2\n",
    ),
    "a tree of vdbench's": (
        "b.parm",
        "fsd=f,anchor={}/tree,depth=1,width=1,files=2,size=8k,openflags=o_direct\n"
        "fwd=w,fsd=f,operation=read\nrd=a,fwd=w,fwdrate=max,format=yes,elapsed=2\n",
    ),
    "fio": ("c.fio", "[a]\nrw=write\nbs=4k\nsize=64k\ndirect=1\nfilename={}/new\n"),
}


@root
@needs_root
@pytest.mark.parametrize("front", OF_FRONTS)
@pytest.mark.parametrize("kind", ["ramfs", "bindfs"])
def test_every_front_finds_it_before_the_run(tmp_path: Path, kind: str, front: str) -> None:
    with without_direct_io(tmp_path, kind) as point:
        name, text = OF_FRONTS[front]
        (tmp_path / name).write_text(text.format(point))
        words = ("fio", name) if front == "fio" else ("run", name, "--out", "out", "--no-report")
        done = run(*words, cwd=tmp_path)
        assert done.code == (1 if front == "fio" else 2), done.err
        assert "it takes no direct I/O (O_DIRECT)" in done.err
        assert [path.name for path in point.iterdir()] == ["old"]
        assert not (tmp_path / "out").exists()


@root
@needs_root
@pytest.mark.parametrize("kind", ["file", "tree"])
def test_what_may_not_even_be_read(tmp_path: Path, kind: str) -> None:
    """A run that only read such a file failed when it began."""
    path = tmp_path / "x"
    if kind == "tree":
        path.mkdir()
    else:
        path.write_bytes(bytes(4096))
    path.chmod(0)
    with as_nobody(tmp_path), pytest.raises(RefusedError) as caught:
        obstacles.check(plan(target(str(path), kind, read_only=True), read=100, write=0))
    mode = "d---------" if kind == "tree" else "----------"
    assert f"{path}: you may not read it ({mode}, owner 0)" in str(caught.value)
    assert caught.value.hint == "run as its owner or as root"


def test_a_refusal_names_the_place_of_the_target(tmp_path: Path) -> None:
    file = tmp_path / "link"
    file.symlink_to(tmp_path / "nothing")
    other = tmp_path / "link2"
    other.symlink_to(tmp_path / "nothing")
    places = {str(file): Where("a.fio", 3, "filename"), str(other): Where("a.fio", 7, "filename")}
    one = target(str(file), create=True)
    with pytest.raises(RefusedError) as caught:
        obstacles.check(plan(one), places)
    assert caught.value.where == Where("a.fio", 3, "filename")
    with pytest.raises(RefusedError) as caught:
        obstacles.check(plan(one, target(str(other), create=True)), places)
    assert caught.value.where is None
    first, second = str(caught.value).splitlines()[1:]
    assert first.startswith(f"  {file} (a.fio:3: filename): {file} is a symbolic link")
    assert second.startswith(f"  {other} (a.fio:7: filename): {other} is a symbolic link")


@pytest.mark.parametrize("name", ["link", "link/new"])
@pytest.mark.parametrize("kind", ["file", "tree"])
def test_a_link_to_nothing(tmp_path: Path, name: str, kind: str) -> None:
    """`plan` took it, and the run failed when it began."""
    link, real = tmp_path / "link", tmp_path / "nothing"
    link.symlink_to(real)
    error = refusal(tmp_path / name, kind=kind, create=kind == "file")
    assert f"{link} is a symbolic link to {real}, and there is nothing there" in str(error)
    assert error.hint == f"create {real}, or remove the link {link}"
    assert not real.exists()


@root
@needs_root
def test_an_immutable_file(file: Path) -> None:
    with flagged(file, "i"):
        error = refusal(file)
        obstacles.check(plan(target(str(file), read_only=True), read=100, write=0))
    assert "it is immutable" in str(error)
    assert error.hint == f"chattr -i {file}"


@root
@needs_root
def test_a_file_that_takes_appends_only(file: Path) -> None:
    with flagged(file, "a"):
        assert "appended data only" in str(refusal(file))


@root
@needs_root
def test_an_immutable_directory_takes_no_new_file(tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    with flagged(place, "i"):
        assert f"it cannot be created in {place}: it is immutable" in str(refusal(place / "new", create=True))


@root
@needs_root
@pytest.mark.parametrize("bind", [False, True])
def test_a_read_only_mount(tmp_path: Path, bind: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "data").write_bytes(bytes(1 << 20))
    with contextlib.ExitStack() as stack:
        if bind:
            there = stack.enter_context(mounted(tmp_path / "m", "--bind", str(source)))
            call("mount", "-o", "remount,ro,bind", str(there))
        else:
            there = stack.enter_context(mounted(tmp_path / "m", "-t", "tmpfs", "none"))
            (there / "data").write_bytes(bytes(1 << 20))
            call("mount", "-o", "remount,ro", str(there))
        for path, create in ((there / "data", False), (there / "new", True)):
            error = refusal(path, create=create)
            assert "mounted read-only" in str(error)
            assert "remount,rw" in str(error.hint)


@root
@needs_root
def test_a_read_only_device(tmp_path: Path) -> None:
    backing = tmp_path / "backing"
    backing.write_bytes(bytes(16 << 20))
    with attached(backing) as device:
        call("blockdev", "--setro", device)
        try:
            error = refusal(device, kind="block")
        finally:
            call("blockdev", "--setrw", device)
        obstacles.check(plan(target(device, kind="block")))
    assert "the device is read-only" in str(error)
    assert error.hint == f"blockdev --setrw {device}"


@root
@needs_root
def test_somebody_elses_file(file: Path, tmp_path: Path) -> None:
    file.chmod(0o644)
    with as_nobody(tmp_path):
        error = refusal(file)
        made = refusal(tmp_path / "new", create=True)
    assert "you may not write there (-rw-r--r--, owner 0)" in str(error)
    assert "it cannot be created" in str(made)


def test_a_sealed_file() -> None:
    memory = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    try:
        os.write(memory, bytes(1 << 20))
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        assert "sealed against writing" in str(refusal(f"/proc/self/fd/{memory}"))
    finally:
        os.close(memory)


def test_a_limit_on_file_sizes(file: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, hard))
    try:
        error = refusal(file)
        obstacles.check(plan(target(str(file), size_bytes=256 << 10)))
        new = refusal(file.with_name("new"), create=True)
        obstacles.check(plan(target(str(file.with_name("new")), size_bytes=256 << 10, create=True)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "1.00\xa0MiB of it are used, and files may have 512\xa0KiB" in str(error).replace("512.0", "512")
    assert "ulimit -f" in str(error.hint)
    assert "files may have" in str(new), "a new one failed in the load"


@pytest.mark.in_turn
@root
@needs_root
def test_every_verb_finds_it_before_the_load(file: Path, tmp_path: Path) -> None:
    text = f"[w]\nrw=randwrite\nbs=4k\nsize=1m\nfilename={file}\n"
    one = job(tmp_path / "w.fio", text)
    assert run("run", one, "--out", "a", "--no-report", cwd=tmp_path).code == 0
    with flagged(file, "i"):
        for words in (
            ("run", one, "--out", "b"),
            ("plan", one),
            ("fio", one),
            ("sweep", one, "--iodepth", "1,2", "--out", "b"),
            ("curve", one, "--out", "b"),
            ("run", one, "--repeat", "2", "--out", "b"),
            ("rerun", "a", "--out", "b"),
        ):
            done = run(*words, cwd=tmp_path)
            assert done.code in ((1,) if words[0] == "fio" else (2,)), (words, done)
            assert f"{file}: it is immutable" in done.err, words
            assert f"{one}:5: filename: some targets cannot be used:" in done.err.splitlines()[0], words
            assert f"chattr -i {file}" in done.err
            assert not (tmp_path / "b").exists(), words
    assert json.loads((tmp_path / "a" / "manifest.json").read_text())["status"] == "complete"
