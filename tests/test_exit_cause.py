"""Who ended a process: codes, limits, the OOM killer, and senders of signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone import exit_cause
from loadstone.exit_cause import Deaths

if TYPE_CHECKING:
    from pathlib import Path


USED = "it used the 5 s of CPU time that ulimit -t allows"


@pytest.mark.parametrize(
    ("code", "known", "said"),
    [
        (-9, {}, "was killed by SIGKILL"),
        (3, {}, "ended with exit code 3"),
        (-63, {}, "was killed by signal 63"),
        (-9, {"oom": "host"}, "was killed by the kernel's OOM killer (SIGKILL): the host has no memory left"),
        (-9, {"oom": "/a/b"}, "was killed by the kernel's OOM killer (SIGKILL): control group /a/b is at its "
         "memory limit"),
        (-9, {"cpu_s": 5.1, "cpu_limit_s": 5.0}, f"was killed by SIGKILL: {USED}"),
        (-24, {"cpu_s": 4.0, "cpu_limit_s": 5.0}, f"was killed by SIGXCPU: {USED}"),
        (-9, {"cpu_s": 1.0, "cpu_limit_s": 5.0}, "was killed by SIGKILL"),
        (-25, {}, "was killed by SIGXFSZ: a file grew beyond the limit on file sizes (ulimit -f)"),
        (-15, {"oom": "host"}, "was killed by SIGTERM"),
    ],
)  # fmt: skip
def test_an_exit_code_with_what_else_is_known(code: int, known: dict[str, Any], said: str) -> None:
    assert exit_cause.of_exit(code, **({"oom": None, "cpu_s": 0.0, "cpu_limit_s": None} | known)) == said


def test_the_sender_of_a_signal_is_named() -> None:
    event = {"signal": "SIGTERM", "sender_pid": 123, "sender_uid": 0, "sender": "systemd"}
    assert exit_cause.of_signal(event) == "was ended by SIGTERM from process 123 (systemd), uid 0"
    assert exit_cause.of_signal({**event, "sender": ""}) == "was ended by SIGTERM from process 123, uid 0"
    assert exit_cause.of_signal({"signal": "SIGPWR"}) == "was ended by SIGPWR from the kernel"
    assert "ulimit -t" in exit_cause.of_signal({"signal": "SIGXCPU"})


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_death_for_want_of_memory_is_found_where_it_is_counted(tmp_path: Path, version: str) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    line = "0::/job" if version == "v2" else "7:memory:/job"
    (proc / "self" / "cgroup").write_text(f"{line}\n")
    place = (
        groups / "job" / "memory.events"
        if version == "v2"
        else groups / "memory" / "job" / "memory.oom_control"
    )
    place.parent.mkdir(parents=True)
    text = (
        "low 0\noom 1\noom_kill {}\n" if version == "v2" else "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
    )

    def at(own: int, host: int) -> Deaths:
        place.write_text(text.format(own))
        (proc / "vmstat").write_text(f"nr_free_pages 1\noom_kill {host}\n")
        return Deaths.now(proc, groups)

    before = at(2, 5)
    assert before.counts == {"/job": 2, "host": 5}
    assert at(2, 5).since(before) is None
    assert at(3, 6).since(before) == "/job"
    assert at(2, 6).since(before) is None, "another group's, or another process of the host"
    place.unlink()
    (proc / "vmstat").write_text("oom_kill 5\n")
    before = Deaths.now(proc, groups)
    (proc / "vmstat").write_text("oom_kill 6\n")
    assert Deaths.now(proc, groups).since(before) == "host"


def test_a_group_that_lost_a_process_is_not_at_its_limit_when_the_host_has_no_memory(tmp_path: Path) -> None:
    """`oom_kill` of a group grows in both cases, `oom` of `memory.events.local` where its limit is met."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/slice/job\n")
    (groups / "slice" / "job").mkdir(parents=True)

    def at(lost: int, own: int, upper: int) -> Deaths:
        (groups / "slice" / "job" / "memory.events").write_text(f"oom {own}\noom_kill {lost}\n")
        (groups / "slice" / "job" / "memory.events.local").write_text(f"oom {own}\noom_kill {lost}\n")
        (groups / "slice" / "memory.events.local").write_text(f"oom {upper}\noom_kill 0\n")
        return Deaths.now(proc, groups)

    before = at(2, 7, 4)
    assert at(3, 8, 4).since(before) == "/slice/job"
    assert at(3, 7, 5).since(before) == "/slice"
    assert at(3, 7, 4).since(before) == "host"
    assert at(2, 8, 4).since(before) is None, "at its limit, and nothing was killed"


def test_a_host_that_counts_nothing_knows_nothing(tmp_path: Path) -> None:
    assert Deaths.now(tmp_path, tmp_path).since(Deaths.now(tmp_path, tmp_path)) is None
