"""A machine of our own in QEMU, for hardware that is not here: boots, runs a script, and ends.

Knows how to get a kernel (Debian's package for clouds, by apt, into a cache), how to make a small
system in memory of what the script needs, and what the script printed. It is emulated and slow:
for what things do, never for how fast. Knows no test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from lab.parts import MissingPartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PROGRAMS = ("qemu-system-x86_64", "apt-get", "apt-cache", "dpkg-deb", "ldd")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loadstone-lab"
KERNEL = "linux-image-cloud-amd64"
SHELL = "busybox-static"
PATIENCE_S = 120
MEMORY_MIB = 1024
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
stty -F /dev/ttyS1 -opost
sh /script > /dev/ttyS1 2>&1
poweroff -f
"""


def missing() -> str | None:
    """Why no machine can be had here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def run(
    script: str,
    *,
    folder: Path,
    programs: Mapping[str, Path],
    files: Mapping[str, str],
    devices: Sequence[str],
    kernel_options: str = "",
    modules: Sequence[str] = (),
    trees: Mapping[str, Path] | None = None,
    memory_mib: int = MEMORY_MIB,
    cpus: str = "2",
    patience_s: float = PATIENCE_S,
) -> str:
    """Boot a machine, run a shell script in it and return what that printed.

    `programs` are put at their names with the libraries they need, `files` and `trees` at theirs, and the
    kernel's `modules` with those they need in /mods, in their order. All is in memory and gone with it.
    """
    image = folder / "initrd"
    kernel = _kernel()
    placed = {**_loaded(programs), "bin/busybox": _shell(), **_modules(kernel, modules)}
    for name, source in (trees or {}).items():
        _copy(source, folder / "root" / name)
    _pack(image, folder / "root", placed, {**files, "script": script})
    console = folder / "said"
    command = [
        "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", cpus,
        "-m", str(memory_mib), "-display", "none", "-no-reboot", "-net", "none",
        "-serial", f"file:{folder / 'console'}", "-serial", f"file:{console}",
        "-kernel", str(kernel), "-initrd", str(image),
        "-append", f"console=ttyS0 panic=-1 quiet mitigations=off {kernel_options}", *devices,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience_s)
    except subprocess.TimeoutExpired:
        # What was done until then is not lost with the folder.
        sys.stdout.write(console.read_text(errors="replace"))
        raise RuntimeError(f"the machine did not end in {patience_s} s: {_tail(folder)}") from None
    if done.returncode:
        raise RuntimeError(f"qemu: {done.stderr.strip()}")
    return console.read_text(errors="replace")


def unpacked(packages: Sequence[str]) -> dict[str, Path]:
    """Return the programs and libraries of packages by their file names; they are not installed."""
    places = [_unpacked(package) for package in packages]
    return {
        path.name: path
        for place in places
        for path in place.rglob("*")
        if path.is_file() and (path.parent.name in ("bin", "sbin") or ".so" in path.name)
    }


def unpacked_tools(packages: Sequence[str], tools: Iterable[str], libraries_in: str) -> dict[str, Path]:
    """Return tools of packages and their libraries, which are used here too, at their places in a machine."""
    files = unpacked(packages)
    shared = {name: path for name, path in files.items() if ".so" in name}
    os.environ["LD_LIBRARY_PATH"] = ":".join(sorted({str(path.parent) for path in shared.values()}))
    placed = {f"usr/sbin/{name}": files[name] for name in tools}
    return placed | {f"{libraries_in}/{name}": path for name, path in shared.items()}


def python_trees(is_needed: Callable[[str], bool], own: Iterable[str]) -> dict[str, Path]:
    """Return Python, its needed packages and folders of this project at their places in a machine."""
    library, packages = (Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib"))
    trees = {
        f"python/lib/{library.name}/{one.name}": one
        for one in library.iterdir()
        if one.name not in ("test", "site-packages", "idlelib") and not one.name.startswith("config-")
    }
    trees |= {f"site/{one.name}": one for one in packages.iterdir() if is_needed(one.name)}
    return trees | {f"lab/{name}": Path(__file__).parents[1] / name for name in own}


def python_programs(trees: Mapping[str, Path]) -> dict[str, Path]:
    """Return Python and the libraries that extensions in the trees load, at their places in a machine."""
    needed = libraries(one for tree in trees.values() for one in tree.rglob("*.so"))
    shared = {name: path for name, path in needed.items() if "site-packages" not in name}
    return {"usr/bin/python3": Path(sys.executable).resolve(), **shared}


def _modules(kernel: Path, names: Sequence[str]) -> dict[str, Path]:
    """Return modules, each behind those it needs."""
    place = kernel.parents[1] / "lib" / "modules"
    every = {path.name.partition(".")[0].replace("-", "_"): path for path in place.rglob("*.ko")}
    modules: list[Path] = []

    def need(name: str) -> None:
        path = every[name.replace("-", "_")]
        depends = path.read_bytes().partition(b"depends=")[2].partition(b"\0")[0].decode()
        for other in filter(None, depends.split(",")):
            need(other)
        if path not in modules:
            modules.append(path)

    for name in names:
        need(name)
    return {f"mods/{number:03}.ko": path for number, path in enumerate(modules)}


def _tail(folder: Path) -> str:
    return "".join(
        path.read_text(errors="replace")[-1000:]
        for path in (folder / "console", folder / "said")
        if path.exists()
    )


def _kernel() -> Path:
    """Return the newest kernel that apt knows; downloaded once."""
    packages = re.findall(r"Depends: (linux-image-\S+)", _output("apt-cache", "depends", KERNEL))
    if not packages:
        raise MissingPartError(f"apt knows no {KERNEL}: run apt-get update")
    return next((_unpacked(packages[0]) / "boot").glob("vmlinuz-*"))


def _shell() -> Path:
    return _unpacked(SHELL) / "bin" / "busybox"


def _unpacked(package: str) -> Path:
    """Return the directory a package is unpacked in."""
    place = CACHE / package
    if not place.exists():
        sys.stderr.write(f"downloading {package} into {CACHE}\n")
        begun = CACHE / f"{package}.begun"
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir(parents=True)
        try:
            _output("apt-get", "-o", "APT::Sandbox::User=root", "download", package, cwd=begun)
        except subprocess.CalledProcessError as error:
            shutil.rmtree(begun)
            raise MissingPartError(f"{package} cannot be had by apt: {error.stderr.strip()}") from None
        archive = next(begun.glob("*.deb"))
        _output("dpkg-deb", "-x", str(archive), str(begun))
        archive.unlink()
        begun.rename(place)
    return place


def _loaded(programs: Mapping[str, Path]) -> dict[str, Path]:
    """Return programs with the libraries they load."""
    return {**programs, **libraries(programs.values())}


def libraries(programs: Iterable[Path]) -> dict[str, Path]:
    """Return the libraries that programs load, by their places."""
    by_place: dict[str, Path] = {}
    for program in programs:
        for library in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", _output("ldd", str(program)), re.MULTILINE):
            by_place[library.lstrip("/")] = Path(library)
    return by_place


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, place, symlinks=True)
    else:
        shutil.copy(source, place)


def _pack(image: Path, root: Path, programs: Mapping[str, Path], files: Mapping[str, str]) -> None:
    """Write what the machine begins with."""
    for name in ("dev", "proc", "sys", "bin", "tmp", "run", "root"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, source in programs.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / name)
    for name, content in {**files, "init": INIT}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with image.open("wb") as out:
        subprocess.run(
            [_shell(), "cpio", "-o", "-H", "newc"], input=names.encode(), stdout=out, cwd=root, check=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _output(*words: str, cwd: Path | None = None) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=cwd).stdout
