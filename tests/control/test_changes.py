"""Settings are written down before they are changed, read after, and put back in the other order."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.control import change_journal, commands, orphans
from loadstone.control.block import NrRequests
from loadstone.control.cgroup import CgroupLimit
from loadstone.control.change_journal import Change
from loadstone.control.changes import ChangeOutcome, Changes, DamagedLine, Restored, restore
from loadstone.control.control_kind import Setting
from loadstone.errors import InputError, RefusedError, RunError
from tests.control import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Places = tuple[Path, Path]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return a machine of files and a directory for journals."""
    machine.make(tmp_path / "host")
    return tmp_path / "host", tmp_path / "state"


def changing(places: Places) -> Changes:
    """Return what changes that machine."""
    return Changes(machine.controls(places[0]), places[1])


def abandon(changes: Changes) -> None:
    """Leave everything as a process does that is killed: the record is another process's now."""
    record = changes._journal
    assert record is not None
    lines = record.path.read_text().splitlines()
    begin = json.loads(lines[0])
    begin["begin"]["start_ticks"] = 0
    record.path.write_text("\n".join([json.dumps(begin), *lines[1:]]) + "\n")


def test_what_was_set_is_put_back_with_what_the_kernel_reset(places: Places) -> None:
    before = machine.snapshot(places[0])
    with changing(places) as changes:
        changes.set("io_scheduler", "sda", "none")
        changes.set("nr_requests", "sda", "32")
        changes.set("io_scheduler", "sda", "bfq")
        changes.set("scheduler_tunable", "sda/low_latency", "0")
        changes.set("governor", "", "performance")
        changes.set("idle_states", "cpu1", "POLL,C1")
        changes.set("sysctl", "vm.swappiness", "1")
        changed = machine.snapshot(places[0])
        assert changed["sys/block/sda/queue/nr_requests"] == "64\n"
        assert changed["sys/devices/system/cpu/cpufreq/policy1/scaling_governor"] == "performance"
        assert changed["sys/devices/system/cpu/cpu1/cpuidle/state2/disable"] == "1"
        assert changed["sys/devices/system/cpu/cpu0/cpuidle/state2/disable"] == "0\n"
    after = {name: text.strip() for name, text in machine.snapshot(places[0]).items()}
    assert after == {name: text.strip() for name, text in before.items()}
    assert list(places[1].iterdir()) == []


def test_what_has_the_value_already_is_not_touched(places: Places) -> None:
    with changing(places) as changes:
        assert changes.set("governor", "policy0", "powersave") == []
        assert not places[1].exists()


def test_a_value_that_the_kernel_changes_is_an_error_and_put_back(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls = machine.controls(places[0])
    kind = controls.named("nr_requests")
    assert isinstance(kind, NrRequests)
    file = kind.path("sda")
    monkeypatch.setattr(kind, "write", lambda _, value: file.write_text(str(max(int(value), 4))))
    with (
        pytest.raises(RunError, match="nr_requests of sda: set to '1', but it reads '4'"),
        Changes(controls, places[1]) as changes,
    ):
        changes.set("nr_requests", "sda", "1")
    assert kind.read("sda") == "200"


@pytest.mark.parametrize(
    ("control", "subject", "value", "error", "words"),
    [
        ("governer", "", "performance", InputError, "there is no control 'governer'"),
        ("governor", "policy7", "performance", RefusedError, "there is no policy7"),
        ("governor", "", "turbo", RefusedError, "governor of policy0: found 'turbo'"),
        ("smt", "", "off", RefusedError, "smt: this host has none"),
        ("io_scheduler", "", "none", RefusedError, "say of which device"),
        ("io_scheduler", "sdz", "none", RefusedError, "no block device under sdz"),
        ("sysctl", "kernel.core_pattern", "|/bin/sh", RefusedError, "may not be set here"),
        ("sysctl", "fs.binfmt_misc.register", "x", RefusedError, "run programs"),
        ("sysctl", "vm.drop_caches", "1", RefusedError, "use page_cache"),
        ("sysctl", "vm.dirty_ratio", "1", RefusedError, "use dirty_limit"),
        ("sysctl", "vm/../../x", "1", RefusedError, "may not be set here"),
        ("cgroup_limit", "/etc/passwd", "1", RefusedError, "is not a limit of a control group"),
        (
            "cgroup_limit",
            "/sys/fs/cgroup/../../etc/cpu.max",
            "1",
            RefusedError,
            "is not a limit of a control group",
        ),
        ("dirty_limit", "", "much", RefusedError, "found 'much'"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changed(
    places: Places, control: str, subject: str, value: str, error: type[Exception], words: str
) -> None:
    before = machine.snapshot(places[0])
    with pytest.raises(error, match=words), changing(places) as changes:
        changes.set(control, subject, value)
    assert machine.snapshot(places[0]) == before


def test_a_size_is_what_the_kernel_makes_of_it() -> None:
    limit = CgroupLimit()
    assert limit.agrees("64M", "67108864")
    assert limit.agrees("67108864", "67108864")
    assert not limit.agrees("64M", "64")
    assert limit.agrees("max", "max")


def test_both_forms_of_a_dirty_limit_are_one_setting(places: Places) -> None:
    memory = places[0] / "proc/sys/vm"
    with changing(places) as changes:
        changes.set("dirty_limit", "", "1000000")
        assert (memory / "dirty_ratio").read_text() == "0"
        assert machine.controls(places[0]).named("dirty_limit").read("") == "1000000"
    assert (memory / "dirty_ratio").read_text() == "20"
    assert (memory / "dirty_bytes").read_text() == "0"


def test_restore_puts_back_what_a_killed_process_left(places: Places) -> None:
    changes = changing(places)
    changes.set("io_scheduler", "sda", "none")
    changes.set("governor", "policy0", "performance")
    abandon(changes)
    with pytest.raises(RefusedError, match="an earlier run, killed or unable to put it back"):
        changing(places).set("governor", "policy0", "powersave")
    done = restore(machine.controls(places[0]), places[1])
    assert [(str(one), one.outcome) for one in done] == [
        ("governor of policy0: put back to powersave", ChangeOutcome.RESTORED),
        ("io_scheduler of sda: put back to mq-deadline", ChangeOutcome.RESTORED),
    ]
    text = machine.snapshot(places[0])
    assert text["sys/block/sda/queue/nr_requests"] == "200"
    assert text["sys/block/sda/queue/iosched/read_expire"] == "123"
    assert restore(machine.controls(places[0]), places[1]) == []
    assert list(places[1].iterdir()) == []


def test_what_others_changed_since_is_left_and_said(places: Places) -> None:
    changes = changing(places)
    changes.set("io_scheduler", "sda", "none")
    abandon(changes)
    machine.choose(places[0] / "sys/block/sda/queue", "bfq")
    controls = machine.controls(places[0])
    [done] = restore(controls, places[1])
    assert done.outcome is ChangeOutcome.CHANGED_BY_OTHERS
    assert str(done) == (
        "io_scheduler of sda: NOT put back to mq-deadline: something else set it to bfq since"
    )
    [forced] = restore(controls, places[1], force=True)
    assert forced.outcome is ChangeOutcome.RESTORED
    assert controls.named("io_scheduler").read("sda") == "mq-deadline"


def test_another_device_of_the_same_name_is_not_touched(places: Places) -> None:
    changes = changing(places)
    changes.set("read_ahead_kb", "sdb", "4")
    abandon(changes)
    (places[0] / "sys/block/sdb/diskseq").write_text("77\n")
    [done] = restore(machine.controls(places[0]), places[1])
    assert done.outcome is ChangeOutcome.GONE
    assert (places[0] / "sys/block/sdb/queue/read_ahead_kb").read_text() == "4"


def test_a_reboot_undoes_settings_and_not_commands(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = places[0] / "mark"
    changes = changing(places)
    changes.set("governor", "policy0", "performance")
    changes.run("mark", f"touch {mark}", f"rm {mark}")
    assert mark.exists()
    abandon(changes)
    monkeypatch.setattr(change_journal, "boot_id", lambda: "another")
    done = restore(machine.controls(places[0]), places[1])
    assert [one.outcome for one in done] == [ChangeOutcome.RESTORED, ChangeOutcome.REBOOTED]
    assert not mark.exists()


@contextlib.contextmanager
def another_process(does: Callable[[], object]) -> Iterator[int]:
    """Have a process that did this and is alive while the block lasts; it is killed then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the other process
        try:
            does()
            os.write(writer, b"x")
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(writer)
        assert os.read(reader, 1) == b"x"
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)


def test_two_processes_do_not_change_the_same_setting(places: Places) -> None:
    other = changing(places)
    with another_process(lambda: other.set("governor", "policy0", "performance")) as pid:
        with pytest.raises(RefusedError, match=f"process {pid} uses it and will put it back"):
            changing(places).set("governor", "policy0", "powersave")
        assert restore(machine.controls(places[0]), places[1]) == []
    [done] = restore(machine.controls(places[0]), places[1])
    assert str(done) == "governor of policy0: put back to powersave"
    assert done.outcome is ChangeOutcome.RESTORED


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("io_scheduler", "sda", "bfq"), ("nr_requests", "sda", "32")),
        (("nr_requests", "sda", "32"), ("io_scheduler", "sda", "bfq")),
    ],
)
def test_what_the_kernel_resets_with_a_setting_is_kept_from_others_too(
    places: Places, first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    """Who ended first put back what the other had set, or the scheduler reset it during its runs."""
    before = machine.snapshot(places[0])
    other = changing(places)
    with another_process(lambda: other.set(*first)) as pid:
        with pytest.raises(RefusedError, match=f"process {pid} uses it and will put it back"):
            changing(places).set(*second)
        assert machine.snapshot(places[0]) != before
    with pytest.raises(RefusedError, match="an earlier run, killed or unable to put it back"):
        changing(places).set(*second)
    (done,) = restore(machine.controls(places[0]), places[1])
    assert done.outcome is ChangeOutcome.RESTORED
    with changing(places) as changes:
        changes.set(*second)


def test_a_directory_others_may_write_to_is_refused(places: Places) -> None:
    places[1].mkdir()
    places[1].chmod(0o777)
    with pytest.raises(RefusedError, match=r"others may write to \(mode 0777\)"), changing(places) as changes:
        changes.set("governor", "policy0", "performance")


def test_nothing_is_changed_where_it_cannot_be_written_down(places: Places) -> None:
    places[1].write_text("a file in the place of the directory")
    before = machine.snapshot(places[0])
    with pytest.raises(RefusedError, match="found a file; expected a dir"), changing(places) as changes:
        changes.set("governor", "policy0", "performance")
    assert machine.snapshot(places[0]) == before


@pytest.mark.parametrize("lines", range(12))
def test_a_journal_that_is_full_after_some_lines_keeps_nothing_from_being_put_back(
    places: Places, lines: int
) -> None:
    written = 0

    def step(name: str) -> None:
        nonlocal written
        if name == "fsync":
            written += 1
            if written > lines:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = machine.snapshot(places[0])
    undone = places[0] / "undone"
    full = pytest.raises(RefusedError, match="No space left") if lines < 7 else contextlib.nullcontext()
    with full, Changes(machine.controls(places[0]), places[1], step) as changes:
        changes.set("governor", "policy0", "performance")
        changes.run("mark", "true", f"touch {undone}")
        changes.set("governor", "policy1", "performance")
    # What was not written down was not done: nothing undoes it.
    assert undone.exists() is (lines >= 4)
    undone.unlink(missing_ok=True)
    after = {name: text.strip() for name, text in machine.snapshot(places[0]).items()}
    assert after == {name: text.strip() for name, text in before.items()}
    assert list(places[1].glob("*.jsonl")) == []


def test_a_line_that_was_not_written_whole_damages_no_other(places: Places) -> None:
    fails = iter([False, False, False, True, False, False])

    def step(name: str) -> None:
        if name == "fsync" and next(fails):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    changes = Changes(machine.controls(places[0]), places[1], step)
    changes.set("governor", "policy0", "performance")
    with pytest.raises(RefusedError, match="changes cannot be recorded"):
        changes.set("governor", "policy1", "performance")
    changes.set("sysctl", "vm.swappiness", "1")
    abandon(changes)
    done = restore(machine.controls(places[0]), places[1])
    assert [str(one) for one in done] == [
        "sysctl of vm.swappiness: put back to 60",
        "governor of policy0: put back to powersave",
    ]


def test_a_command_may_leave_a_program_in_the_background(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "PATIENCE_S", 20)
    number, over = tmp_path / "pid", tmp_path / "over"
    with changing(places) as changes:
        changes.run(
            "server", f"(sleep 600; touch {over}) & echo $! > {number}; echo begun", f"kill $(cat {number})"
        )
        assert Path("/proc", number.read_text().strip()).exists()
    assert not over.exists()


def test_what_a_killed_process_had_a_command_start_is_waited_for(places: Places, tmp_path: Path) -> None:
    begun, mark = tmp_path / "begun", tmp_path / "mark"
    child = os.fork()
    if not child:
        changing(places).run("slow", f"(touch {begun}; sleep 3; touch {mark}) & wait", f"rm -f {mark}")
        os._exit(0)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not mark.exists()
    began_s = time.monotonic()
    assert [one.outcome for one in restore(machine.controls(places[0]), places[1])] == [
        ChangeOutcome.RESTORED
    ]
    time.sleep(max(0.0, 4 + began_s - time.monotonic()))
    assert not mark.exists()


def test_a_damaged_record_is_named_and_kept(places: Places) -> None:
    changes = changing(places)
    changes.set("governor", "policy0", "performance")
    changes.set("governor", "policy1", "performance")
    abandon(changes)
    [path] = places[1].iterdir()
    lines = path.read_text().splitlines()
    assert json.loads(lines[1])["before"] == "powersave"
    path.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]) + "\n")
    done = restore(machine.controls(places[0]), places[1])
    outcomes = {str(one): one.outcome for one in done}
    told = f"{path}: line 2 is damaged; put back by hand what it names, then remove the file"
    assert outcomes["governor of policy1: put back to powersave"] is ChangeOutcome.RESTORED
    assert outcomes[told] == "damaged"
    assert not all(one.is_well for one in done)
    assert path.exists()


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        (1, "[]"),
        (1, '{"begin": {"pid": 1}}'),
        (1, '{"begin": {"boot_id": 1, "pid": 1, "start_ticks": 1, "pid_namespace": "", "command": []}}'),
        (2, "null"),
        (2, '{"change": 0}'),
        (2, '{"over": "0"}'),
        (3, '{"made": 7, "after": "performance"}'),
        (3, '{"over": 7}'),
        (3, "[" * 100_000),
    ],
    ids=["no object", "no process", "boot", "null", "no setting", "text", "made what", "over what", "deep"],
)
def test_a_line_of_a_record_that_says_nothing_of_ours_is_named(
    places: Places, line: int, damaged: str
) -> None:
    changes = changing(places)
    changes.set("governor", "policy0", "performance")
    abandon(changes)
    [path] = places[1].iterdir()
    lines = path.read_text().splitlines()
    lines[line - 1] = damaged
    path.write_text("\n".join(lines) + "\n")
    done = restore(machine.controls(places[0]), places[1])
    assert DamagedLine(str(path), line) in done
    assert path.exists()


def test_a_record_without_a_line_is_named(places: Places) -> None:
    changes = changing(places)
    changes.set("governor", "policy0", "performance")
    abandon(changes)
    [path] = places[1].iterdir()
    path.write_text("")
    [done] = restore(machine.controls(places[0]), places[1])
    assert done == DamagedLine(str(path), 1)


def test_nothing_is_changed_beside_a_record_that_cannot_be_read(places: Places) -> None:
    places[1].mkdir(parents=True, exist_ok=True, mode=0o700)
    (places[1] / "1-1.jsonl").write_text("\n")
    with pytest.raises(RefusedError, match="line 1 is damaged"):
        changing(places).set("governor", "policy0", "performance")


def test_what_somebody_put_beside_the_journals_stays(places: Places) -> None:
    """Lines without an end were cut off, and files that end in .part removed."""
    changing(places).set("governor", "policy0", "performance")
    texts = {
        "log.jsonl": '{"user": 1}\n{"user": 2}',
        "1-2.jsonl": "a letter",
        "film.part": "a film",
        "3-4.part": "another film",
        "5-6.part": '{"begin": {"boot',
    }
    for name, text in texts.items():
        (places[1] / name).write_text(text)
    os.mkfifo(places[1] / "7-8.jsonl")
    told = restore(machine.controls(places[0]), places[1])
    assert told == [DamagedLine(str(places[1] / "1-2.jsonl"), 1)]
    left = {path.name: path.read_text() for path in places[1].iterdir() if path.name in texts}
    assert left == {name: text for name, text in texts.items() if name != "5-6.part"}


def test_an_order_that_cannot_be_read_keeps_nothing_else_from_being_put_back(places: Places) -> None:
    changes = changing(places)
    changes.set("governor", "policy0", "performance")
    setting = Setting("layout", "x (ls0badcafe)")
    assert changes._journal is not None
    changes._journal.intend(Change(7, setting, "", '{"action": "build", "order": 3}', "?"))
    abandon(changes)
    before = machine.snapshot(places[0])["sys/devices/system/cpu/cpufreq/policy0/scaling_governor"]
    told = restore(machine.controls(places[0]), places[1])
    done = {one.setting.control: one for one in told if isinstance(one, Restored)}
    after = machine.snapshot(places[0])["sys/devices/system/cpu/cpufreq/policy0/scaling_governor"]
    assert (before, after) == ("performance", "powersave")
    assert done["governor"].is_well
    assert done["layout"].outcome is ChangeOutcome.FAILED
    assert "the record of what was built there is damaged" in done["layout"].why
    [record] = change_journal.waiting(places[1])
    assert [change.setting.control for change in record.open_changes()] == ["layout"]


def test_what_a_process_claimed_is_its_own_while_it_lives(places: Places) -> None:
    governor, data = Setting("governor", "policy0"), Setting("", "/data")
    other = changing(places)
    with another_process(lambda: other.claim([governor, data])) as pid:
        for refused in ([governor], [Setting("governor", "policy1"), data]):
            with pytest.raises(RefusedError, match=f"^({governor}|/data): process {pid} uses it"):
                changing(places).claim(refused)
        with pytest.raises(RefusedError, match=f"process {pid} uses it"):
            changing(places).set("governor", "policy0", "performance")
        with changing(places) as changes:
            changes.claim([Setting("", "/other")])
    # Killed, it had changed nothing: nothing is left to put back, and its claim ended with it.
    own = changing(places)
    own.claim([governor, data])
    with changing(places) as changes:
        changes.set("governor", "policy0", "performance")
    own.put_back()
    assert restore(machine.controls(places[0]), places[1]) == []
    assert not list(places[1].glob("*"))


def test_a_claim_that_cannot_be_written_down_is_refused(places: Places) -> None:
    def full(step: str) -> None:
        if step == "fsync":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(RefusedError, match="changes cannot be recorded: No space left on device"):
        Changes(machine.controls(places[0]), places[1], full).claim([Setting("", "/data")])


def test_a_command_that_cannot_be_undone_is_kept_until_somebody_says_to_forget_it(places: Places) -> None:
    changes = changing(places)
    changes.run("mark", "true", "echo no way >&2; exit 3")
    abandon(changes)
    for _ in range(2):
        [done] = restore(machine.controls(places[0]), places[1])
        assert done.outcome is ChangeOutcome.FAILED
        command = "`echo no way >&2; exit 3`"
        assert str(done) == f"command of mark: NOT undone: mark: {command} ended with 3: no way"
    [done] = restore(machine.controls(places[0]), places[1], force=True)
    assert done.is_well
    assert str(done).endswith(
        "dropped from the journal, not put back: mark: `echo no way >&2; exit 3` ended with 3: no way"
    )
    assert restore(machine.controls(places[0]), places[1]) == []


def test_a_command_that_was_undone_is_told_with_what_undid_it(places: Places) -> None:
    """It was *put back to rm x*."""
    changes = changing(places)
    changes.run("mark", "true", "true; exit 0")
    abandon(changes)
    [done] = restore(machine.controls(places[0]), places[1])
    assert str(done) == "command of mark: undone by `true; exit 0`"


def test_a_command_that_is_given_up_takes_what_it_started_with_it() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        orphans.run(["/bin/sh", "-c", "(sleep 300); true"], "test-given-up", timeout=0.5)
    assert orphans.wait_until_gone("test-given-up", 5.0)
    orphans.forget("test-given-up")
