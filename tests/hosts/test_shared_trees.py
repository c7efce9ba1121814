"""One tree that several hosts make and use, each its own files: hosts that are processes of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.cli.main import main
from tests.hosts.test_run import hosts_file

if TYPE_CHECKING:
    from pathlib import Path


HOSTS = """hd=default,shell=ssh,user=root
hd=h1,system=h1
hd=h2,system=h2
fsd=fsd1,anchor={anchor},depth=2,width=2,files=5,size=8k,shared=yes
"""
MAKE = """fwd=fwd1,fsd=fsd1,threads=3
rd=clean,fwd=fwd1,fwdrate=max,format=(clean,only)
rd=make,fwd=fwd1,fwdrate=max,format=(restart,only)
"""
DELETE = """fwd=fwd1,fsd=fsd1,operation=delete,threads=3
rd=gone,fwd=fwd1,fwdrate=max,format=no,elapsed=2,interval=1
"""


def run(tmp_path: Path, name: str, text: str) -> int:
    job = tmp_path / f"{name}.vdb"
    job.write_text(HOSTS.format(anchor=tmp_path / "tree") + text)
    words = ["run", str(job), "--hosts", str(hosts_file(tmp_path, 2)), "--out", str(tmp_path / name)]
    return main([*words, "--no-report", "--no-calibration"])


@pytest.mark.in_turn
@pytest.mark.slow
def test_hosts_share_a_tree_and_each_has_its_own_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    assert run(tmp_path, "made", MAKE) == 0
    files = sorted(tree.rglob("vdb_f*.file"))
    assert [one.stat().st_size for one in files] == [8192] * 20
    # The mark vouches for what every host wrote: no consent is needed.
    assert run(tmp_path, "gone", DELETE) == 0
    assert not list(tree.rglob("vdb_f*.file"))
    # What somebody put there since is theirs, whichever host's part it is.
    assert run(tmp_path, "again", MAKE) == 0
    files[7].write_text("mine")
    capsys.readouterr()
    assert run(tmp_path, "refused", DELETE) == 2
    assert "vdb_f" in capsys.readouterr().err
    assert files[7].read_text() == "mine"


@pytest.mark.in_turn
def test_a_host_tells_what_is_missing_in_the_words_of_the_job_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: have the tree made first with `clear=yes`, which is no option of vdbench."""
    (tmp_path / "tree").mkdir()
    assert run(tmp_path, "none", DELETE) == 2
    assert "with format=yes" in capsys.readouterr().err
