"""Job files as command lines: fio's order, one line per file, the same jobs when read again."""

from __future__ import annotations

import shlex

import pytest

from loadstone.formats.fio import TextSource, TokenSource, command_lines, read_jobfiles


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[a]\nfilename=x\nbs=4k\nkb_base=1000\n", "--name=a --kb_base=1000 --bs=4k --filename=x"),
        ("[global]\nfilename=x\nss_dur=5s\n[a]\nblocksize=4k\n",
         "--steadystate_duration=5s --filename=x --name=a --bs=4k"),
        ("[a]\ndescription=two words\nstonewall\n", '--name=a --description="two words" --stonewall'),
        ("[a]\nname=b\n[c]\ndescription=a$b\n", "--name=b --name=c '--description=a$b'"),
        ("[a]\nbs=1k\n[global]\nbs=2k\n[b]\n[c]\nbs=3k\n",
         "--name=a --bs=1k --name=b --bs=2k --name=c --bs=2k --bs=3k"),
        ("[global]\nname=x\nbs=1k\n[a b]\n", "--bs=1k '--name=a b'"),
    ],
)  # fmt: skip
def test_a_file_as_fio_writes_it(text: str, line: str) -> None:
    assert command_lines([TextSource(text)]) == ["fio " + line]


def test_every_file_has_a_line_since_it_waits_for_the_one_before() -> None:
    given: list[TextSource | TokenSource] = [
        TokenSource(("--direct=1",)),
        TextSource("[a]\nrw=read\n"),
        TextSource("[b]\nrw=write\n"),
    ]
    assert command_lines(given) == ["fio --direct=1 --name=a --rw=read", "fio --name=b --rw=write"]


def test_only_the_sections_asked_for() -> None:
    text = "[a]\nbs=1k\n[global]\nbs=2k\n[b]\nrw=read\n[c]\n"
    assert command_lines([TextSource(text)], sections=["b"]) == ["fio --name=b --bs=2k --rw=read"]


def test_the_line_means_what_the_file_means() -> None:
    text = (
        "[global]\nsize=1m\nname=void\n[a]\ndescription=it's $5\nfilename=/tmp/one:/tmp/two\n"
        "[global]\nrw=randwrite\nbssplit=4k/60:64k/\n[b]\nname=bee\nstonewall\n"
    )
    (line,) = command_lines([TextSource(text)])
    again = read_jobfiles([TokenSource(tuple(shlex.split(line)[1:]))])
    told = {"where", "set_at", "own_options", "section"}
    assert [job.model_dump(exclude=told) for job in again.jobs] == [
        job.model_dump(exclude=told) for job in read_jobfiles([TextSource(text)]).jobs
    ]
