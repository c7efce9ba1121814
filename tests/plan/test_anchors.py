from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone.plan import anchors
from loadstone.plan.anchors import CONTROL_FILE, MARK, Structure, forbidden, look
from loadstone.plan.safety import tree_mark
from loadstone.plan.safety.tree_mark import begin

if TYPE_CHECKING:
    from pathlib import Path

STRUCTURE = Structure(2, 3, 10, everywhere=False, sizes=((4096, 50.0), (65536, 50.0)), around=False)
CONTROL = """when  end Sat Nov 21 10:00:00 UTC 2026
depth 2
width 3
files 10
dist  bottom
size  4096
size  50
size  65536
size  50
directory status 12
y
"""


def made(anchor: Path, *names: str) -> Path:
    for name in names:
        place = anchor / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".dir"):
            place.mkdir(exist_ok=True)
        else:
            place.touch()
    return anchor


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    assert look(tmp_path / "missing") == anchors.Found()
    assert look(tmp_path).exists
    assert look(tmp_path).is_empty


def test_other_names_are_no_tree(tmp_path: Path) -> None:
    made(tmp_path, "notes.txt", "vdb_fold.file", "vdb.dir", "vdb1_1.dir/vdb_f0001.file", "vdb_f001.file")
    assert look(tmp_path).is_empty


@pytest.mark.parametrize(("first", "other"), [("vdb_f0000.file", "vdb_f0001.file"), ("vdb_f0001.file",) * 2])
def test_files_say_which_number_comes_first(tmp_path: Path, first: str, other: str) -> None:
    made(tmp_path, "vdb.1_1.dir/vdb.2_1.dir", f"vdb.1_2.dir/vdb.2_1.dir/{first}")
    made(tmp_path, f"vdb.1_2.dir/vdb.2_1.dir/{other}")
    found = look(tmp_path)
    assert (found.has_directories, found.has_files) == (True, True)
    assert found.first_file == int(first[5:9])
    assert (found.maker, found.structure) == (None, None)


def test_a_first_file_that_is_gone_misleads_nobody(tmp_path: Path) -> None:
    made(tmp_path, "vdb.1_1.dir/vdb_f0001.file", "vdb.1_2.dir/vdb_f0000.file")
    assert look(tmp_path).first_file == 0


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    made(tmp_path / "elsewhere", "vdb.2_1.dir/vdb_f0001.file")
    (tmp_path / "anchor").mkdir()
    (tmp_path / "anchor" / "vdb.1_1.dir").symlink_to(tmp_path / "elsewhere")
    assert not look(tmp_path / "anchor").has_files


def test_vdbench_says_what_it_made(tmp_path: Path) -> None:
    (made(tmp_path, "vdb.1_1.dir") / CONTROL_FILE).write_text(CONTROL)
    found = look(tmp_path)
    assert (found.maker, found.structure) == ("vdbench", STRUCTURE)


@pytest.mark.parametrize("text", ["", "when  start\n", CONTROL.replace("width 3", "width x"), "\0" * 100])
def test_a_control_file_that_cannot_be_read_says_only_who(tmp_path: Path, text: str) -> None:
    (tmp_path / CONTROL_FILE).write_text(text)
    found = look(tmp_path)
    assert (found.maker, found.structure) == ("vdbench", None)


def test_sizes_around_a_mean_are_told_from_pairs(tmp_path: Path) -> None:
    head = CONTROL.replace("size  50\nsize  65536\nsize  50\n", "size  0\n")
    (tmp_path / CONTROL_FILE).write_text(head)
    structure = look(tmp_path).structure
    assert structure is not None
    assert (structure.sizes, structure.around) == (((4096, 100.0),), True)


def test_our_mark_replaces_the_control_file(tmp_path: Path) -> None:
    (tmp_path / CONTROL_FILE).write_text(CONTROL)
    made(tmp_path, "vdb.1_1.dir/vdb_f0003.file")
    begin(tmp_path, STRUCTURE, 0)
    assert not (tmp_path / CONTROL_FILE).exists()
    found = look(tmp_path)
    assert (found.maker, found.structure, found.first_file) == ("Loadstone", STRUCTURE, 0)
    assert json.loads((tmp_path / MARK).read_text())["format"] == tree_mark.FORMAT


def test_differences_are_said_in_words() -> None:
    other = Structure(2, 4, 10, everywhere=True, sizes=((4096, 100.0),), around=False)
    told = ["width was 3, is 4", "distribution was bottom, is all", "the sizes differ"]
    assert STRUCTURE.differences(other) == told
    assert STRUCTURE.differences(STRUCTURE) == []


def test_expected_bytes_are_those_of_all_files() -> None:
    assert STRUCTURE.expected_bytes == 3**2 * 10 * (4096 + 65536) // 2


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/share/x", "/proc/1", "/dev/x", "/sys", "/boot/y", "//"])
def test_no_tree_is_made_in_the_systems_places(place: str) -> None:
    assert forbidden(place) is not None


@pytest.mark.parametrize(
    "place", ["/mnt", "/mnt/x", "/home/me/t", "/dev/shm/x", "/var/tmp/x", "/srv", "/users"]
)
def test_trees_may_be_made_elsewhere(place: str) -> None:
    assert forbidden(place) is None


def test_a_link_into_the_system_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert forbidden(str(tmp_path / "link")) is not None
