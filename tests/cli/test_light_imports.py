"""What is said before anything is done needs no library of numbers, tables or charts."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from loadstone.cli.app import VERBS

ROOT = Path(__file__).parents[2]
BROUGHT: dict[str, str] = {
    "dask": "distributed",
    "pydantic_core": "pydantic",
    "typing_extensions": "pydantic",
    "yaml": "distributed",
}
"""Packages, and what brings them."""

HEAVY = {
    "blake3",
    "jinja2",
    "numpy",
    "polars",
    "prometheus_client",
    "pyarrow",
    "pydantic",
    "scipy",
    "vl_convert",
}
OF_WORK = HEAVY | {"_hashlib", "attr", "attrs", "cyclopts", "rich", "tomllib"}
"""What a help does without, too: the parser of arguments, tables, ciphers, and what a shell's Tab needs."""
ROOMS = {
    "api",
    "cli",
    "crash_note",
    "errors",
    "exitcodes",
    "file_name",
    "garbage",
    "messages",
    "notes",
    "printable",
    "screen",
    "uncaught",
    "units",
    "version",
}
"""Of loadstone, what may be loaded before a verb does anything."""
PROGRAM = """
import sys
from loadstone.cli.main import main
code = max(main(words.split()) for words in sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
raise SystemExit(code)
"""

IMPORTED = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)


def _modules(*lines: str) -> set[str]:
    """Return what a process has loaded after these command lines."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *lines], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    return set(done.stderr.split())


def _heavy(modules: set[str], unwanted: set[str] = HEAVY) -> set[str]:
    """Libraries, and rooms of our own, that only work needs."""
    rooms = {name for name in modules if name.startswith("loadstone.") and name.split(".")[1] not in ROOMS}
    return {name.partition(".")[0] for name in modules} & unwanted | rooms


def test_help_loads_nothing_heavy() -> None:
    """Whichever verb's: cyclopts, attrs and rich took three quarters of its time."""
    assert (
        _heavy(_modules("--help", *(f"{verb} --help" for verb in VERBS if verb != "fio")), OF_WORK) == set()
    )


@pytest.mark.parametrize(("words", "collects"), [(["run", "--help"], False), (["workloads"], True)])
@pytest.mark.in_turn
def test_garbage_is_looked_for_once_work_is_done(words: list[str], collects: bool) -> None:
    """To look for it while the parser of arguments was read took a seventh of the time of a help."""
    program = (
        f"import gc; gc.disable(); from loadstone.cli.main import main; main({words}); print(gc.isenabled())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(collects)


@pytest.mark.parametrize("line", ["--version", "completion bash", "__complete run four"])
def test_what_a_shell_asks_for_loads_nothing_heavy(line: str) -> None:
    assert _heavy(_modules(line)) == set()


def test_the_package_alone_loads_nothing_heavy() -> None:
    program = "import sys, loadstone; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & (HEAVY | {"cyclopts", "rich"})


@pytest.mark.in_turn
def test_what_is_imported_anywhere_is_installed_with_the_program() -> None:
    """Also inside functions: what only a certain run imports fails where it matters."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [
        line
        for name, lines in project["optional-dependencies"].items()
        if name not in ("dev", "fuzz")
        for line in lines
    ]
    installed = {Requirement(line).name for line in (*project["dependencies"], *extras)}
    installed.add("loadstone")
    owners = metadata.packages_distributions()
    for path in (ROOT / "python" / "loadstone").rglob("*.py"):
        # Parsing all of them takes seven seconds of CPU time.
        written = set(IMPORTED.findall(path.read_text())) - sys.stdlib_module_names - {"loadstone"}
        for name in _imported(path) - sys.stdlib_module_names if written else ():
            ours = {*owners.get(name, ()), name.replace("_", "-"), BROUGHT.get(name)}
            assert installed & ours, f"{path} imports {name}"


def _imported(path: Path) -> set[str]:
    """Return the packages that a file imports; not those that only a type checker looks at."""
    tree = ast.parse(path.read_text())
    checked = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if node in checked:
            continue
        if isinstance(node, ast.Import):
            names |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.in_turn
def test_nothing_that_runs_needs_what_only_tests_use() -> None:
    program = (
        "import importlib, pkgutil, sys, loadstone\n"
        "absent = ('pyarrow', 'scipy', 'psutil', 'pandas', 'duckdb')\n"
        "extras = ('distributed', 'dask', 'cryptography', 'pysnmp', 'typst')\n"
        "for name in (*absent, *extras): sys.modules[name] = None\n"
        "for one in pkgutil.walk_packages(loadstone.__path__, 'loadstone.'):\n"
        "    if one.name != 'loadstone.hosts.dask_worker':  # what it is for is the extra's\n"
        "        importlib.import_module(one.name)\n"
        "print('all')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "all\n", done.stderr[-2000:]
