"""What a process waits for, read from its memory."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from loadstone import process_state

NAME = b"/mnt/a/directory/of/some/length/result.json"


@pytest.mark.parametrize("before_the_end", [len(NAME) + 1, 20, 1])
def test_a_name_that_goes_over_the_end_of_a_page_is_whole(before_the_end: int) -> None:
    """Seen: `/tmp/…/test_wh has not answered for 2 s`, cut where a page of the other process ended."""
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        at = mmap.PAGESIZE - before_the_end
        memory[at : at + len(NAME) + 1] = NAME + b"\0"
        begin = ctypes.c_char.from_buffer(memory)
        assert process_state._text_at(os.getpid(), ctypes.addressof(begin) + at) == NAME.decode()
        del begin
