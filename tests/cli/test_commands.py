"""Commands of a job file that could not run where they belong are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.api.jobs import exec_commands
from loadstone.errors import RefusedError
from loadstone.formats.fio.read import ReadOptions, TextSource, read_jobfiles

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

GLOBAL = "[global]\nfilename=/dev/zero\nsize=1m\nrw=read\n"


def read(text: str) -> Workload:
    return read_jobfiles([TextSource(GLOBAL + text, name="x.fio")], options=ReadOptions(allow_exec=True))


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("[a]\n[b]\nstonewall\nexec_prerun=true\n", "x.fio:8: exec_prerun"),
        ("[a]\nexec_postrun=true\n[b]\nstonewall\n", "x.fio:6: exec_postrun"),
    ],
)
def test_a_command_between_stages_is_refused(text: str, option: str) -> None:
    with pytest.raises(RefusedError) as caught:
        exec_commands.check(read(text))
    assert str(caught.value.where) == option
    assert "--section" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    ["[a]\nexec_prerun=true\n[b]\nstonewall\nexec_postrun=true\n", "[a]\nstonewall\nexec_prerun=true\n"],
)
def test_a_command_around_all_stages_is_not(text: str) -> None:
    exec_commands.check(read(text))
