"""Files of one JSON object per line, and lists at the ends of lines that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.bundle.json_lines import read_lines

if TYPE_CHECKING:
    from pathlib import Path

TICK = '{"type":"tick","t_ns":1000,"rows":[{"cell":0,"ops":5},{"cell":1,"ops":6}]}'
SPACED = '{"type": "tick", "t_ns": 2000, "rows": [{"cell": 0, "ops": 5}]}'
EMPTY = '{"type":"tick","t_ns":3000,"rows":[]}'
OTHERS = (
    '{"type":"monitor_cost","rows":12,"by_collector":{"cpu":1}}',
    '{"type":"note","text":"it says \\"rows\\":[1]"}',
    '{"type":"note","of":{"a":1},"rows":[{"cell":0}]}',
    '{"rows":[1,2]}',
    '{"type":"tick","rows":[1],"t_ns":4}',
)


def test_a_list_cut_off_unread_leaves_what_reading_it_leaves(tmp_path: Path) -> None:
    """A report of an hour of 128 jobs spent a seventh of its time on rows that it threw away."""
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join([TICK, SPACED, EMPTY, *OTHERS]) + "\n")
    whole = read_lines(file, without=("rows",))
    assert read_lines(file, without=("rows",), last="rows") == whole
    assert whole[:3] == [{"type": "tick", "t_ns": at} for at in (1000, 2000, 3000)]
    assert [len(one) for one in whole[3:]] == [2, 2, 2, 0, 2]


def test_only_what_is_cut_off_is_not_read(tmp_path: Path) -> None:
    """A damaged list is a wrong line to who reads all, and nothing to who knows the file is as sealed."""
    file = tmp_path / "events.jsonl"
    file.write_text(TICK.replace('"ops":5', '"ops":') + "\n" + TICK.replace("1000", "") + "\n")
    said: list[str] = []
    assert read_lines(file, without=("rows",), say=said.append) == []
    assert "2 lines" in said[0]
    assert read_lines(file, without=("rows",), last="rows") == [{"type": "tick", "t_ns": 1000}]
