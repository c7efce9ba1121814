"""The program's edges: standard streams that are not there, and options without effect."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from loadstone.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def test_a_gain_without_depths_to_recommend_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[j]\nrw=read\nsize=1m\nfilename=/dev/zero\n")
    assert main(["sweep", str(job), "--bs", "4k,8k", "--gain", "5%"]) == 2
    assert "--gain: has no effect without --iodepth or --numjobs" in capsys.readouterr().err
