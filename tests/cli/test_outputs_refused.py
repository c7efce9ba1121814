"""Every verb and every option that takes a path or a word, pointed at what must not be written.

The options come from the command line's own table, so that a new one is tried without a line
here. What is no output is tried as well: it must not be written either.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import os
import stat
import subprocess
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import pytest

from loadstone.cli import app
from loadstone.cli.fio.args import OWN_OPTIONS, REQUIRED
from loadstone.cli.main import main
from loadstone.formats.fio.table import BY_NAME
from tests.support.devices import attached, call, empty
from tests.support.runs import make

if TYPE_CHECKING:
    from collections.abc import Iterator

HAZARDS = (
    "user file", "hard link", "link to a user file", "dangling link", "fifo", "character device",
    "link to a character device", "directory", "file of a pseudo file system", "name in a pseudo file system",
    "loop device", "link to a loop device", "mounted loop device", "file behind a loop device",
)  # fmt: skip
RESULT = b'{"mine": "two years of work"}\n'


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("bundle") / "b", seconds=2.0).path


@contextlib.contextmanager
def looped(image: Path) -> Iterator[Path]:
    call("mkfs.ext4", "-q", str(empty(image, 8 << 20)))
    with attached(image) as device:
        yield Path(device)


@contextlib.contextmanager
def hazard(kind: str, place: Path, name: str = "r.html") -> Iterator[tuple[Path, Path]]:
    """What must not be written, by the name to give, and the file that holds its content."""
    given, mine = place / name, place / "mine"
    mine.write_bytes(RESULT)
    if "loop device" in kind:
        with on_a_loop_device(kind, place, given) as made:
            yield made
        return
    links: dict[str, Path | str] = {
        "link to a user file": mine,
        "dangling link": "/etc/loadstone-must-not-make-this",
        "link to a character device": "/dev/kmsg",
        "file of a pseudo file system": "/proc/self/oom_score_adj",
        "name in a pseudo file system": "/sys/kernel",
    }
    if kind in links:
        given.symlink_to(links[kind])
    elif kind == "user file":
        given.write_bytes(RESULT)
    elif kind == "hard link":
        given.hardlink_to(mine)
    elif kind == "fifo":
        os.mkfifo(given)
    elif kind == "directory":
        given.mkdir()
    elif os.geteuid() == 0:
        os.mknod(given, stat.S_IFCHR | 0o666, os.makedev(1, 11))
    else:
        pytest.skip("making a device needs root")
    yield (given / "r.html" if kind.startswith("name in") else given), mine


@contextlib.contextmanager
def on_a_loop_device(kind: str, place: Path, given: Path) -> Iterator[tuple[Path, Path]]:
    image = place / "image"
    with looped(image) as device, contextlib.ExitStack() as stack:
        if kind == "mounted loop device":
            point = place / "point"
            point.mkdir()
            mount = subprocess.run(["mount", device, point], capture_output=True, text=True, check=False)
            if mount.returncode:
                pytest.skip(f"mounting is not possible here: {mount.stderr}")
            stack.callback(lambda: subprocess.run(["umount", point], check=True))
        if kind == "file behind a loop device":
            image.rename(given)
            yield given, given
        else:
            given.symlink_to(device)
            yield (device if kind == "loop device" and given.name == "r.html" else given), device


def state(path: Path) -> tuple[object, ...]:
    status = path.stat()
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return status.st_dev, status.st_ino, status.st_nlink, content


def is_path(annotation: Any) -> bool:
    if get_origin(annotation) is typing.Annotated:
        return is_path(get_args(annotation)[0])
    return annotation is Path or any(is_path(one) for one in get_args(annotation))


def options() -> list[tuple[str, str]]:
    """Every verb with each of its options and further arguments that is a path."""
    found = []
    for verb in app.VERBS:
        function = getattr(importlib.import_module(f"loadstone.cli.verbs.{verb}"), verb)
        found += [(verb, option) for option in _of(function)]
    return found


def _of(function: Any) -> list[str]:
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = hints[name]
        if hasattr(annotation, "__dataclass_fields__"):
            inner = get_type_hints(annotation, include_extras=True)
            found += [f"--{one.replace('_', '-')}" for one, kind in inner.items() if is_path(kind)]
        elif parameter.kind is parameter.KEYWORD_ONLY and is_path(annotation):
            found.append(f"--{name.replace('_', '-')}")
    return found


OPTIONS = options()
OUTPUTS = {("report", "--output"), ("export", "--output"), ("compare", "--html")}
"""Those that must be refused; of the others nothing is asked but that nothing is written."""


def test_the_table_of_options_is_found() -> None:
    assert set(OPTIONS) >= OUTPUTS
    assert {("run", "--out"), ("curve", "--out"), ("verify", "--out"), ("run", "--spec")} <= set(OPTIONS)


def words(verb: str, bundle: Path) -> list[str]:
    job = bundle / "input" / "job.fio"
    given: dict[str, list[Path | str]] = {
        "report": [bundle], "export": [bundle, "csv"], "compare": [bundle, bundle], "audit": [bundle],
        "rerun": [bundle], "verify": [bundle],
    }  # fmt: skip
    return [str(one) for one in given.get(verb, [job])]


@pytest.mark.in_turn
@pytest.mark.drawn(30)
@pytest.mark.parametrize("kind", HAZARDS)
@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_nothing_is_written_over(
    verb: str, option: str, kind: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "fifo" and (verb, option) not in OUTPUTS and option != "--out":
        pytest.skip("reading a pipe waits for who writes it")
    monkeypatch.chdir(tmp_path)
    with hazard(kind, tmp_path) as (given, content):
        before = state(content)
        code = main([verb, *words(verb, bundle), option, str(given)])
        if (verb, option) in OUTPUTS or option == "--out":
            assert code in (1, 2)
        assert state(content) == before
        if kind not in ("mounted loop device", "directory"):
            assert not [one for one in tmp_path.iterdir() if one.name.startswith(".loadstone")]
    assert not Path("/etc/loadstone-must-not-make-this").exists()


KINDS = ("fio-json", "csv", "parquet", "prometheus", "markdown", "iometer-csv")


@pytest.mark.drawn(14)
@pytest.mark.parametrize("kind", HAZARDS)
@pytest.mark.parametrize("export", KINDS)
def test_no_export_is_written_over(export: str, kind: str, bundle: Path, tmp_path: Path) -> None:
    with hazard(kind, tmp_path) as (given, content):
        before = state(content)
        assert main(["export", str(bundle), export, str(given)]) == 2
        assert state(content) == before


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", [one for one in HAZARDS if "name in" not in one])
@pytest.mark.parametrize(
    ("export", "name"),
    [("fio-logs", "job_bw.1.log"), ("vdbench", "flatfile.html"), ("vdbench", "summary.html")],
)
def test_no_file_of_a_directory_is_written_over(
    export: str, name: str, kind: str, bundle: Path, tmp_path: Path
) -> None:
    with hazard(kind, tmp_path, name) as (given, content):
        assert given.parent == tmp_path
        before = state(content)
        assert main(["export", str(bundle), export, str(tmp_path)]) == 2
        assert state(content) == before


LOGS = sorted(name for name in BY_NAME if name.startswith("write_") and name.endswith("log"))
SUFFIX = {
    "write_bw_log": "_bw.1.log", "write_iops_log": "_iops.1.log", "write_hist_log": "_clat_hist.1.log",
    "write_lat_log": "_clat.1.log", "write_iolog": "",
}  # fmt: skip


def fio(*given: str) -> int:
    return main(["fio", "--name=a", "--ioengine=null", "--size=64k", "--rw=read", *given])


def test_every_log_of_fio_is_tried() -> None:
    assert set(LOGS) == set(SUFFIX)


@pytest.mark.parametrize("option", LOGS)
def test_a_log_that_may_not_be_written_is_named_with_job_line_and_option(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file alone does not tell which of many jobs asks for it."""
    monkeypatch.chdir(tmp_path)
    name = f"h{SUFFIX[option].replace('.1.', '.2.')}"
    Path(name).write_bytes(RESULT)
    lines = ["[global]", "ioengine=null", "size=64k", "rw=read", "log_hist_msec=100", "[a]", "[b]"]
    Path("j.fio").write_text("\n".join([*lines, "bs=8k", f"{option}=h", ""]))
    assert main(["fio", "j.fio"]) == 1
    first = capfd.readouterr().err.splitlines()[0]
    assert first == f"fio: j.fio:9: {option}: job b: {name} exists, and Loadstone did not make it"
    assert Path(name).read_bytes() == RESULT


@pytest.mark.drawn(14)
@pytest.mark.parametrize("kind", [one for one in HAZARDS if "name in" not in one])
@pytest.mark.parametrize("option", LOGS)
def test_no_log_of_fio_is_written_over_and_nothing_runs(
    option: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with hazard(kind, tmp_path, f"h{SUFFIX[option]}") as (_, content):
        before = state(content)
        interval = ["--log_hist_msec=100"] if "hist" in option else []
        assert fio(f"--{option}={tmp_path / 'h'}", *interval) == 1
        assert state(content) == before
    assert "Starting" not in capfd.readouterr().out


@pytest.mark.drawn(30)
@pytest.mark.parametrize("kind", HAZARDS)
@pytest.mark.parametrize("option", sorted(name for name, takes in OWN_OPTIONS.items() if takes == REQUIRED))
def test_no_own_option_of_fio_writes_over(
    option: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "fifo" and option != "output":
        pytest.skip("reading a pipe waits for who writes it")
    with hazard(kind, tmp_path) as (given, content):
        before = state(content)
        code = fio("--parse-only", f"--{option}={given}") if option != "output" else fio(f"--output={given}")
        assert code == 1 or option != "output"
        assert state(content) == before


@pytest.mark.parametrize("verb", ["report", "export", "compare"])
@pytest.mark.in_turn
def test_a_second_time_is_no_trouble(verb: str, bundle: Path, tmp_path: Path) -> None:
    option = {"compare": "--html"}.get(verb, "--output")
    results = words(verb, bundle)
    if verb == "compare":
        results[1] = str(make(tmp_path / "b", seconds=2.0, seed=7).path)
    out = tmp_path / "r.html"
    for _ in range(2):
        assert main([verb, *results, option, str(out)]) == 0


@pytest.mark.in_turn
def test_a_second_time_of_fio_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        code = fio(
            "--output=r.json", "--output-format=json", "--write_bw_log=h", "--write_lat_log=h",
            "--write_iolog=t", "--write_hist_log=h", "--log_hist_msec=100", "--bandwidth-log",
        )  # fmt: skip
        assert code == 0
    assert len(list(tmp_path.iterdir())) == 10
