"""The program's edges: standard streams that are not there."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_without_standard_output_nothing_is_printed_into_a_file_of_ours(tmp_path: Path) -> None:
    """As after `>&-`: the next file opened would be descriptor 1, and take what is printed."""
    opened = tmp_path / "opened"
    code = (
        "import os, sys\n"
        "from loadstone.cli.main import main\n"
        "code = main(['--version'])\n"
        f"number = os.open({str(opened)!r}, os.O_CREAT | os.O_WRONLY)\n"
        "print('lost', flush=True)\n"
        "sys.exit(code if number > 2 else 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=functools.partial(os.close, 1),
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert opened.read_text() == ""
