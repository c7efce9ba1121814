"""What a host says that is no agent's word: it is lost with a reason, and the run ends in order."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.hosts import heard, reach
from loadstone.hosts.agent_links import PipeLink
from tests.hosts import test_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hello"},
        {"type": "hello", "version": 3},
        {"type": "checked", "targets": [{}], "plan": "{}", "notes": [], "doctor": []},
        {"type": "checked", "targets": [], "plan": "{}", "notes": [{"text": None}], "doctor": []},
        {"type": "armed", "plan": None},
        {"type": "started", "event": {"monotonic_ns": 2**70}},
        {"type": "event", "event": {"type": "tick"}},
        {"type": "event", "event": 7},
        {"type": "alive", "cpu_s": float("nan")},
        {"type": "ended", "status": None},
        {"type": "refused"},
    ],
)
def test_a_message_that_says_too_little_is_told_by_its_field(message: dict[str, Any]) -> None:
    assert heard.flaw(message) is not None


def test_what_a_shell_prints_is_no_message() -> None:
    lines = [b"42", b"[]", b"null", b'"x"', b'{"a": 1}', b'{"type": 3}', b'{"type": "lost"}', b"[" * 20_000]
    lines += [b'{"type": "up"}']
    code = "import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))"
    came: list[dict[str, Any]] = []
    link = PipeLink(
        "h", [sys.executable, "-c", code, b"\n".join(lines).hex()], lambda _, one: came.append(one)
    )
    link.open()
    end_s = time.monotonic() + 20
    while len(came) < 2 and time.monotonic() < end_s:
        time.sleep(0.02)
    link.close()
    assert [one["type"] for one in came] == ["up", "lost"]


@pytest.mark.parametrize(
    "said", [{"type": "hello"}, {"type": "checked", "targets": 1}, {"type": "armed", "plan": "{}"}]
)
def test_a_host_that_says_nonsense_is_lost_and_the_run_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: dict[str, Any],
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(f"import sys\nprint('{{\"type\": \"up\"}}', flush=True)\n"
                    f"print({json.dumps(said)!r}, flush=True)\nsys.stdin.read()\n")  # fmt: skip
    monkeypatch.setattr(reach, "agent_argv", lambda *_: [sys.executable, str(fake)])
    assert test_run.run(tmp_path, count=1) == 1
    told = capsys.readouterr().err
    assert "cannot be read" in told
    assert f"'{said['type']}'" in told
