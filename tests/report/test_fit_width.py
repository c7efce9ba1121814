from __future__ import annotations

from loadstone.report.fit_width import fitted

HEADINGS = ("run", "IOPS", "mean", "max")
ROWS = [["first", "12.34k ± 0.12k", "80 µs", "1.00 ms"], ["a longer name", "5 ± 1", "7 µs"]]


def test_columns_go_in_the_order_they_can_be_spared_and_numbers_stay_whole() -> None:
    wide = fitted(HEADINGS, ROWS, 80, spare=("max", "mean")).plain.splitlines()
    assert wide[0] == "run                      IOPS   mean      max"
    assert wide[2] == "a longer name           5 ± 1   7 µs"
    narrow = fitted(HEADINGS, ROWS, 40, spare=("max", "mean")).plain
    assert "max" not in narrow
    assert "mean" in narrow
    narrower = fitted(HEADINGS, ROWS, 10, spare=("max", "mean")).plain.splitlines()
    assert narrower[1] == "first          12.34k ± 0.12k"


def test_chosen_rows_are_bold() -> None:
    text = fitted(HEADINGS, ROWS, 80, bold=[1])
    assert [text.plain[span.start : span.end].split()[0] for span in text.spans if span.style == "bold"] == [
        "run",
        "a",
    ]


def test_columns_are_as_wide_as_names_are_when_they_go_out() -> None:
    """An escape sequence in a job's name is written as four characters and more."""
    name = "\x1b[31mred\x07"
    lines = fitted(HEADINGS, [[name, "1.00k", "80 µs", "1.00 ms"], *ROWS], 80).plain.splitlines()
    assert "\\x1b[31mred\\x07" in lines[1]
    assert len({len(line.rstrip()) for line in lines[:3]}) == 1
