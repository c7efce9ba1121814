"""What is said before anything is done needs no library of numbers, tables or charts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loadstone.cli.app import VERBS

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
ROOMS = {
    "api",
    "cli",
    "crash_note",
    "errors",
    "exitcodes",
    "file_name",
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
code = main(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
raise SystemExit(code)
"""


def _modules(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    return set(done.stderr.split())


def _heavy(modules: set[str]) -> set[str]:
    """Libraries, and rooms of our own, that only work needs."""
    rooms = {name for name in modules if name.startswith("loadstone.") and name.split(".")[1] not in ROOMS}
    return {name.partition(".")[0] for name in modules} & HEAVY | rooms


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_loads_nothing_heavy(verb: str) -> None:
    assert _heavy(_modules(*([verb] if verb else []), "--help")) == set()


@pytest.mark.parametrize("words", [["--version"], ["completion", "bash"], ["__complete", "run", "four"]])
def test_what_a_shell_asks_for_loads_nothing_heavy(words: list[str]) -> None:
    assert _heavy(_modules(*words)) == set()


def test_the_package_alone_loads_nothing_heavy() -> None:
    program = "import sys, loadstone; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & (HEAVY | {"cyclopts", "rich"})


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
