from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.formats.recognise import Language, recognise

EQUIVALENCE = Path(__file__).parents[1] / "equivalence" / "jobs"

CASES = [
    (b"[global]\nrw=read\n[a]\nsize=1m\n", "x.parm", Language.FIO),
    (b"; a comment\n[a]\nfilename=/sd=1\n", "x", Language.FIO),
    (b"* general\nsd=sd1,lun=/dev/sdx\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n", "x.fio", Language.VDBENCH),
    (b"compratio=2\n\thd=localhost\nfsd=default\n", "x.txt", Language.VDBENCH),
    (b"SD=sd1,lun=/x\r\nRD=rd1\r\n", "-", Language.VDBENCH),
    (b"Version 1.1.0 \n'TEST SETUP =====\n", "x", Language.IOMETER),
    (b"Version 2004.07.30\n", "x", Language.IOMETER),
    (b"\xef\xbb\xbf'Access specification name,default assignment\n", "x.txt", Language.IOMETER),
    (b"", "a.icf", Language.IOMETER),
    (b"", "a.VDB", Language.VDBENCH),
    (b"include=all.inc\n", "common", Language.VDBENCH),
    (b"include all.inc\n", "common", Language.FIO),
    (b"", "empty", Language.FIO),
    (b"\x00\xff\xfe", "noise", Language.FIO),
]


@pytest.mark.parametrize(("text", "name", "expected"), CASES)
def test_content_tells_the_language_before_the_name_does(text: bytes, name: str, expected: Language) -> None:
    assert recognise(text, name) is expected


def test_every_fio_job_file_of_the_tests_is_recognised() -> None:
    files = sorted(EQUIVALENCE.glob("*.fio"))
    assert len(files) > 20
    for file in files:
        assert recognise(file.read_bytes(), "unnamed") is Language.FIO, file
