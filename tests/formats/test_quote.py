"""Nothing of a file that is no job file is told, by any of the languages, included or given by name."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import pytest

from loadstone.cli.main import main
from loadstone.formats import quote

if TYPE_CHECKING:
    from pathlib import Path

SECRETS = {
    "shadow": "root:$6$SECRETHASH$abcdefgh/SECRET:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n",
    "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktSECRET\n-----END OPENSSH PRIVATE KEY-----\n",
    "base64": "b3BlbnNzaC1rZXktSECRETBASE64AAAA=\n",
    "padded": "b3BlbnNzaC1rZXktSECRETBASE64AAA==\n",
    "environment": "PASSWORD=SECRET\nexport TOKEN=SECRET\n",
    "ini": "[client]\nSECRETwithoutavalue\npassword=SECRET\n",
    "netrc": "machine example.org login me password SECRET\n",
    "json": '{"password": "SECRET"}\n',
    "word": "secretword\n",
    "bracket": "[SECRET\n",
    "after a section": "[a] SECRET\n",
    "equals": "=SECRET\n",
    "quoted": "'SECRET'\n",
}
LANGUAGES = ("fio", "vdbench", "iometer")


def told(capfd: pytest.CaptureFixture[str]) -> str:
    said = capfd.readouterr()
    return (said.out + said.err).lower()


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("language", ["", *LANGUAGES])
def test_a_file_that_is_no_job_file_is_not_told(
    kind: str, language: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given"
    file.write_text(SECRETS[kind])
    for verb in ("plan", "run"):
        assert main([verb, str(file), *(["--language", language] if language else [])]) == 2
        assert "secret" not in told(capfd)
    assert main(["fio", str(file)]) == 1
    assert "secret" not in told(capfd)


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", SECRETS)
def test_an_included_file_that_is_no_job_file_is_not_told(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given").write_text(SECRETS[kind])
    jobs = {
        "a.fio": "[a]\ninclude given\nrw=read\n",
        "b.fio": "[a]\nrw=read\ninclude given\n",
        "a.vdb": "include=given\nsd=s,lun=/tmp/x\nwd=w,sd=s\nrd=r,wd=w,elapsed=2\n",
        "b.vdb": "sd=s,lun=/tmp/x\ninclude=given\nwd=w,sd=s\nrd=r,wd=w,elapsed=2\n",
    }
    for name, text in jobs.items():
        (tmp_path / name).write_text(text)
        assert main(["plan", str(tmp_path / name)]) == 2
        assert "secret" not in told(capfd), name


@pytest.mark.parametrize("kind", SECRETS)
def test_no_other_file_is_told_either(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, job = tmp_path / "given", tmp_path / "a.fio"
    file.write_text(SECRETS[kind])
    job.write_text("[a]\nioengine=null\nsize=1m\n")
    assert main(["run", str(job), "--spec", str(file), "--out", str(tmp_path / "b")]) == 2
    for words in (["audit", str(file)], ["report", str(file)], ["compare", str(file), str(file)]):
        assert main(words) == 2
    assert "secret" not in told(capfd)


def test_of_a_thousand_passwords_none_is_quoted() -> None:
    draw = random.Random(13)
    for _ in range(1000):
        length = draw.randint(8, 44)
        password = "".join(draw.choices(string.ascii_letters + string.digits + "+/", k=length))
        assert quote.line(password, ("rw", "bs", "runtime")) == quote.UNSHOWN


@pytest.mark.parametrize(
    ("text", "shown"),
    [("rw=read", "'rw'"), ("runtim=3", "'runtim'"), ("runtim", "'runtim'"), ("secret", quote.UNSHOWN)],
)
def test_what_looks_like_an_option_is_quoted(text: str, shown: str) -> None:
    assert quote.line(text, ("rw", "runtime")) == shown
