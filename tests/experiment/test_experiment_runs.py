"""Experiments on a simulated device and a machine of files: what is set, put back, kept and gone on with."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadstone import exitcodes
from loadstone.bundle import experiment as on_disk
from loadstone.errors import InputError, RefusedError, Where, each
from loadstone.experiment import host_checks
from loadstone.experiment.announce import announce
from loadstone.experiment.announcement_lines import lines, seen
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.observe import observations
from loadstone.experiment.prepared import ReadOptionsOfExperiment, prepare, why_refused
from loadstone.experiment.run import (
    ExperimentMeans,
    ExperimentOutcome,
    open_stopped,
    prepared_again,
    run_experiment,
)
from loadstone.plan.safety.guard import Consent
from tests.control import machine as files
from tests.study import simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.study.controller import Next

FILE = """title = "Read-ahead and depth"
repeats = 2
runtime = "2s"
size = "1g"

[[patterns]]
name = "read"
options = { ioengine = "null", rw = "randread", bs = "4k" }

[[factors]]
name = "depth"
option = "iodepth"
levels = [1, 4]

[[factors]]
name = "swappiness"
control = "sysctl"
subject = "vm.swappiness"
levels = [60, 10]
"""
SLOW_NS = 200_000
OF_CPUS = 'option = "cpus_allowed"\nlevels = ["0", "4000"]'
ABSENT = 'control = "nr_requests"\nsubject = "no_such_disk"\nlevels = ["a", "b"]'


def written(folder: Path, text: str = FILE) -> Path:
    path = folder / "x.toml"
    path.write_text(text)
    return path


class MachineOfFiles:
    """A machine of files, on which a run takes twice as long where swappiness is 10."""

    def __init__(self, folder: Path) -> None:
        self.host, self.state = folder / "host", folder / "state"
        self.controls = files.make(self.host)
        self.seen: list[str] = []
        self.step: Callable[[str], None] = lambda _: None

    @property
    def swappiness(self) -> str:
        return (self.host / "proc/sys/vm/swappiness").read_text().strip()

    def machine(self, prepared: PreparedExperiment, tell: Callable[[str], None]) -> Machine:
        return Machine(
            prepared.varied,
            prepared.label,
            tell=tell,
            controls=self.controls,
            where=self.state,
            step=self.step,
        )

    @contextlib.contextmanager
    def look(self, wanted: Next) -> Iterator[None]:
        self.seen.append(self.swappiness)
        yield
        assert wanted.factors["swappiness"] == self.swappiness

    def means(self, **changes: Any) -> ExperimentMeans:
        resolve = simulated.on(
            lambda _: simulated.device(SLOW_NS if self.swappiness == "10" else SLOW_NS // 2, servers=8)
        )
        return dataclasses.replace(
            ExperimentMeans(resolve=resolve, machine=self.machine, around=self.look), **changes
        )

    def run(self, prepared: PreparedExperiment, out: Path, **changes: Any) -> ExperimentOutcome:
        stopped = changes.pop("stopped", None)
        return run_experiment(
            prepared,
            out_dir=out,
            request={},
            consent=Consent(),
            means=self.means(**changes),
            calibration=False,
            stopped=stopped,
        )


@pytest.mark.in_turn
def test_what_is_set_is_seen_recorded_and_put_back(tmp_path: Path) -> None:
    host, prepared = MachineOfFiles(tmp_path), prepare(written(tmp_path))
    outcome = host.run(prepared, tmp_path / "out")
    assert (outcome.exit_code, outcome.study.study.status) == (exitcodes.DONE, "complete")
    assert sorted(host.seen) == ["10"] * 4 + ["60"] * 4
    assert host.swappiness == "60"
    assert not list(host.state.glob("*"))
    document = on_disk.read(tmp_path / "out")
    for run in document.runs:
        (setting,) = run.settings
        assert run.started is not None
        assert (setting.control, setting.subject, setting.before) == ("sysctl", "vm.swappiness", "60")
        expected = ("10", "restored") if run.levels["swappiness"] == "10" else ("60", "unchanged")
        assert (setting.after, setting.outcome) == expected
    table = observations(tmp_path / "out")
    assert [row.order for row in table.rows] == list(range(8))
    assert [row.run for row in table.rows] == [run.name for run in document.runs]
    means = {
        depth: [
            row.metrics["iops"]
            for row in table.rows
            if (row.levels["depth"], row.levels["swappiness"]) == (depth, "10")
        ]
        for depth in ("1", "4")
    }
    assert means["1"] == pytest.approx([5000, 5000], rel=0.02)
    assert means["4"] == pytest.approx([20000, 20000], rel=0.02)


@pytest.mark.in_turn
@pytest.mark.parametrize("back", [False, True])
def test_no_number_rests_on_a_run_in_which_somebody_changed_what_is_for_all(
    tmp_path: Path, back: bool
) -> None:
    """Nobody looked at it until the end: all later runs had another value than the experiment says."""
    host, out = MachineOfFiles(tmp_path), tmp_path / "out"
    constant = '\n[[settings]]\ncontrol = "sysctl"\nsubject = "vm.page-cluster"\nvalue = 5\n'
    path = written(tmp_path, FILE + constant)
    file = host.host / "proc/sys/vm/page-cluster"
    before = "3\n"
    file.write_text(before)

    @contextlib.contextmanager
    def interfering(_: Next) -> Iterator[None]:
        yield
        if len(list(out.glob("runs/*"))) == 3:
            file.write_text("2\n")

    outcome = host.run(prepare(path), out, around=interfering)
    document = outcome.document
    assert document.ended_because is not None
    assert "vm.page-cluster: something else set it to '2' meanwhile" in document.ended_because
    assert sum(run.started is not None for run in document.runs) == 4
    rows = observations(out).rows
    assert [row.invalid is None for row in rows] == [True, True, False]
    assert "something else set it to '2'" in (rows[2].invalid or "")
    assert outcome.exit_code == exitcodes.FAILED
    assert file.read_text().strip() == "2"
    file.write_text(before)
    for journal in host.state.glob("*"):
        journal.unlink()  # As `loadstone restore` leaves it in another process.
    if back:
        again = open_stopped(out, prepare(path))
        assert host.run(prepare(path), out, stopped=again).study.study.status == "complete"
        assert file.read_text().strip() == before.strip()
        assert len(observations(out).rows) == 8


@pytest.mark.in_turn
def test_what_cannot_be_put_back_ends_it_with_1(tmp_path: Path) -> None:
    host, prepared = MachineOfFiles(tmp_path), prepare(written(tmp_path))

    @contextlib.contextmanager
    def meddling(wanted: Next) -> Iterator[None]:
        yield
        if wanted.factors["swappiness"] == "10":
            (host.host / "proc/sys/vm/swappiness").write_text("33\n")

    outcome = host.run(prepared, tmp_path / "out", around=meddling)
    assert outcome.exit_code == exitcodes.FAILED
    (left,) = outcome.still_changed
    assert (left.before, left.outcome) == ("60", "changed_by_others")
    assert "33" in left.why
    assert "could not be put back" in (outcome.document.ended_because or "")
    assert [one.subject for one in on_disk.read(tmp_path / "out").still_changed] == ["vm.swappiness"]
    done = [run for run in outcome.document.runs if run.started is not None]
    assert len(done) < 8


@pytest.mark.in_turn
def test_the_budget_ends_it_before_it_is_exceeded(tmp_path: Path) -> None:
    path = written(tmp_path, FILE.replace("repeats = 2", 'repeats = 2\n[budget]\nwritten = "100m"\n'))
    text = path.read_text().replace("randread", "randwrite").replace('runtime = "2s"\nsize = "1g"\n', "")
    path.write_text(text.replace("repeats = 2", 'repeats = 2\nruntime = "2s"\nsize = "1g"'))
    host = MachineOfFiles(tmp_path)
    outcome = host.run(prepare(path), tmp_path / "out")
    assert "could write more than the budget" in (outcome.document.ended_because or "")
    assert 0 < len(outcome.study.done) < 8


def test_a_level_that_cannot_be_set_is_said_before(tmp_path: Path) -> None:
    path = written(tmp_path, FILE.replace("vm.swappiness", "vm.no_such_thing"))
    prepared = prepare(path)
    assert [(one.factor, one.level) for one in prepared.document.unset_levels] == [
        ("swappiness", "60"),
        ("swappiness", "10"),
    ]
    refusal = why_refused(prepared)
    assert refusal is not None
    assert "this kernel has no vm.no_such_thing" in refusal.message
    left_out = prepare(path, ReadOptionsOfExperiment(leave_out_unset=True))
    assert why_refused(left_out) is None
    assert {tuple(run.levels) for run in left_out.document.runs} == {("depth",)}


SETTING = '\n[[settings]]\ncontrol = "sysctl"\nsubject = "vm.swappiness"\nvalue = 777\n'


@pytest.mark.parametrize(
    ("right", "wrong", "line", "words"),
    [
        ('[settings]]\ncontrol = "sysctl"', '[settings]]\ncontrol = "sysctrl"', 16, "no control 'sysctrl'"),
        ("vm.swappiness", "vm.no_such_thing", 18, "cannot be set here: sysctl: this kernel has no"),
        ("value = 777", 'value = "sixty"', 18, "sysctl of vm.swappiness takes a whole number, found 'sixty'"),
        ('option = "iodepth"', 'control = "governer"', 12, "no control 'governer'"),
    ],
)  # fmt: skip
def test_what_is_for_all_runs_and_a_control_that_is_none_are_told_with_their_line(
    tmp_path: Path, right: str, wrong: str, line: int, words: str
) -> None:
    text = FILE[: FILE.index('\n[[factors]]\nname = "swap')] + SETTING
    with pytest.raises((InputError, RefusedError), match=words) as told:
        prepare(written(tmp_path, text.replace(right, wrong)))
    # What a misspelt control sets may be amiss, too: this host has no governor.
    where = each(told.value)[0].where
    assert where is not None
    assert where.line == line


@pytest.mark.in_turn
def test_no_run_is_begun_without_what_is_for_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = MachineOfFiles(tmp_path)
    kind = host.controls.named("sysctl")

    def refuse(_: str, __: str) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(kind, "write", refuse)
    text = FILE[: FILE.index('\n[[factors]]\nname = "swap')] + SETTING
    with pytest.raises(RefusedError, match="'777' was not accepted") as told:
        host.run(prepare(written(tmp_path, text)), tmp_path / "out")
    assert told.value.where == Where(str(tmp_path / "x.toml"), 18, "settings[1].value")
    assert host.seen == []
    assert not (tmp_path / "out").exists()
    assert not list(host.state.glob("*"))


@pytest.mark.in_turn
def test_a_level_that_only_the_kernel_refuses_is_said_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A dirty limit of 120 %: half of the runs failed, each in its turn, and the study ended with 1.
    host = MachineOfFiles(tmp_path)
    kind = host.controls.named("sysctl")
    write = kind.write

    def refuse_10(subject: str, value: str) -> None:
        if value == "10":
            raise OSError(22, "Invalid argument")
        write(subject, value)

    monkeypatch.setattr(kind, "write", refuse_10)
    path, out = written(tmp_path), tmp_path / "out"
    with pytest.raises(RefusedError, match="'10' was not accepted: Invalid argument") as told:
        host.run(prepare(path), out)
    assert told.value.where is not None
    assert (told.value.where.line, told.value.where.option) == (19, "factors.swappiness.levels")
    assert not out.exists()
    assert (host.seen, host.swappiness, list(host.state.glob("*"))) == ([], "60", [])

    @contextlib.contextmanager
    def interrupted(wanted: Next) -> Iterator[None]:
        host.seen.append(wanted.name)
        if len(host.seen) == 2:
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        host.run(prepare(path, ReadOptionsOfExperiment(leave_out_unset=True)), out, around=interrupted)
    again = prepared_again(out, path, allow_exec=False)
    stopped = open_stopped(out, again)
    outcome = host.run(again, out, stopped=stopped, around=lambda _: contextlib.nullcontext())
    assert outcome.exit_code == exitcodes.DONE
    assert [(one.factor, one.level) for one in outcome.document.unset_levels] == [("swappiness", "10")]
    done = [run for run in outcome.document.runs if run.started is not None]
    assert sorted(run.levels["depth"] for run in done) == ["1", "1", "4", "4"]
    assert {run.levels["swappiness"] for run in done} == {"60"}


def test_the_names_of_a_vdbench_file_are_parameters(tmp_path: Path) -> None:
    (tmp_path / "x.vdb").write_text(
        "sd=sd1,lun=/dev/zero,size=8m\nwd=wd1,sd=sd1,xfersize=$size,rdpct=$read\n"
        "rd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n"
    )
    text = (
        'title = "x"\nrepeats = 1\n[[patterns]]\nname = "p"\njob = "x.vdb"\nset = { read = 100 }\n'
        '[[factors]]\nname = "size"\nparameter = "size"\nlevels = ["4k", "64k"]\n'
    )
    prepared = prepare(written(tmp_path, text))
    found = {one.factors["size"]: one.workload.jobs[0].model_dump_json() for one in prepared.nexts}
    assert '"bs":[{"type":"fixed","bytes":4096}' in found["4k"]
    assert '"bs":[{"type":"fixed","bytes":65536}' in found["64k"]
    wrong = text.replace('parameter = "size"', 'parameter = "read"')
    with pytest.raises(InputError, match="there is no value for the variable 'size'"):
        prepare(written(tmp_path, wrong))
    unused = text.replace("read = 100", "read = 100, deep = 1")
    with pytest.raises(InputError, match=r"deep has no effect: no line has \$deep"):
        prepare(written(tmp_path, unused))


def test_a_parameter_of_what_has_none_is_refused(tmp_path: Path) -> None:
    text = FILE.replace('option = "iodepth"', 'parameter = "depth"')
    with pytest.raises(InputError, match="'depth' has no effect: only named workloads and vdbench's files"):
        prepare(written(tmp_path, text))


@pytest.mark.in_turn
def test_a_budget_smaller_than_a_block_is_told(tmp_path: Path) -> None:
    text = FILE.replace("repeats = 2", 'repeats = 2\nbudget = { time = "9s" }')
    told = announce(prepare(written(tmp_path, text))).over_budget
    assert told == (
        "it takes about 32 s, and the budget is 9 s: about 2 of 8 runs fit, "
        "and a block is 4: some combinations have no data"
    )


@pytest.mark.in_turn
def test_commands_need_a_permission(tmp_path: Path) -> None:
    text = FILE.replace("repeats = 2", "repeats = 1").replace("levels = [1, 4]", "levels = [1, 2]")
    text = text.replace('control = "sysctl"\nsubject = "vm.swappiness"\nlevels = [60, 10]', "COMMAND")
    done = tmp_path / "done"
    levels = f'["as is", {{ name = "on", do = "touch {done}", undo = "rm {done}" }}]'
    path = written(tmp_path, text.replace("COMMAND", f'kind = "command"\nlevels = {levels}'))
    with pytest.raises(RefusedError, match="would run 'touch"):
        prepare(path)
    prepared = prepare(path, ReadOptionsOfExperiment(allow_exec=True))
    host, seen = MachineOfFiles(tmp_path), []

    @contextlib.contextmanager
    def look(wanted: Next) -> Iterator[None]:
        seen.append((wanted.factors["swappiness"], done.exists()))
        yield

    host.run(prepared, tmp_path / "out", around=look)
    assert set(seen) == {("as is", False), ("on", True)}
    assert not done.exists()


@pytest.mark.in_turn
def test_a_factor_without_effect_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path, FILE.replace('"null", rw = "randread"', '"psync", filename = "/dev/zero", rw = "randread"')
    )
    with pytest.raises(InputError, match="iodepth = 1, 4 makes no difference"):
        announce(prepare(path))


@pytest.mark.in_turn
def test_why_a_factor_has_no_effect_is_told(tmp_path: Path) -> None:
    memory = tempfile.mkdtemp(dir="/dev/shm")
    text = FILE.replace('"null", rw', f'"io_uring", direct = 1, filename = "{memory}/x", rw')
    with pytest.raises(InputError, match="iodepth = 1, 4 makes no difference") as told:
        announce(prepare(written(tmp_path, text)))
    Path(memory).rmdir()
    assert "the target is in memory" in str(told.value.hint)
    assert told.value.where is not None
    assert told.value.where.line == 13


@pytest.mark.parametrize(
    ("right", "wrong", "line", "place"),
    [
        ("levels = [1, 4]", 'levels = ["one", 4]', 13, "factors.depth.levels"),
        ('option = "iodepth"', 'option = "iodeep"', 12, "factors.depth.option"),
        ('option = "iodepth"\nlevels = [1, 4]', OF_CPUS, 13, "factors.depth.levels"),
        ('rw = "randread"', 'rw = "randred"', 8, "patterns.read.options.rw"),
    ],
)
def test_what_is_wrong_for_a_job_is_told_in_the_file_of_the_experiment(
    tmp_path: Path, right: str, wrong: str, line: int, place: str
) -> None:
    path = written(tmp_path, FILE.replace(right, wrong))
    with pytest.raises((InputError, RefusedError)) as told:
        announce(prepare(path))
    assert told.value.where == Where(str(path), line, place)


@pytest.mark.parametrize("first", ["factors", "settings"])
def test_a_second_name_of_one_disk_varies_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    controls = files.make(tmp_path / "host")
    monkeypatch.setattr(host_checks, "Controls", lambda: controls)
    other = {
        "factors": '[[factors]]\nname = "a"\ncontrol = "nr_requests"\nsubject = "sda"\nlevels = [32, 64]\n',
        "settings": '[[settings]]\ncontrol = "nr_requests"\nsubject = "sda"\nvalue = 32\n',
    }[first]
    text = FILE[: FILE.index('\n[[factors]]\nname = "swap')] + "\n" + other
    text += '[[factors]]\nname = "b"\ncontrol = "nr_requests"\nsubject = "/dev/sda"\nlevels = [32, 64]\n'
    with pytest.raises(InputError, match="varies"):
        prepare(written(tmp_path, text))


def test_levels_that_cannot_be_set_are_told_together(tmp_path: Path) -> None:
    text = FILE.replace('control = "sysctl"\nsubject = "vm.swappiness"\nlevels = [60, 10]', ABSENT)
    refused = why_refused(prepare(written(tmp_path, text)))
    assert refused is not None
    assert "swappiness = a | b: nr_requests: there is no block device under no_such_disk" in str(refused)


def test_a_server_that_does_not_answer_is_said_before_the_study(tmp_path: Path) -> None:
    level = '["kept", { name = "there", host = "nobody@127.0.0.1" }]'
    what = f'kind = "page_cache"\nlevels = {level}'
    text = FILE.replace('control = "sysctl"\nsubject = "vm.swappiness"\nlevels = [60, 10]', what)
    refused = why_refused(prepare(written(tmp_path, text)))
    assert refused is not None
    assert "swappiness = there: the page cache of nobody@127.0.0.1 cannot be dropped: " in str(refused)


@pytest.mark.in_turn
def test_a_plan_tells_what_its_repeats_will_show(tmp_path: Path) -> None:
    def least(repeats: int) -> list[float | None]:
        text = FILE.replace("repeats = 2", f"repeats = {repeats}")
        assert f"repeats = {repeats}" in text
        told = announce(prepare(written(tmp_path, text))).document()["smallest_seen"]
        assert [one["scatter"] for one in told] == [0.02, 0.1]
        return [one["difference"] for one in told]

    few, many = least(2), least(8)
    assert all(a is None or (b is not None and a > b) for a, b in zip(few, many, strict=True))
    assert many[0] is not None
    assert 0.01 < many[0] < 0.1


def test_few_repeats_are_said_to_show_little() -> None:
    said = seen(0.1, None, 2).replace("\N{NO-BREAK SPACE}", " ")
    assert said.endswith("hardly any difference will be significant: use more repeats than 2")
    said = seen(0.02, 0.12, 4).replace("\N{NO-BREAK SPACE}", " ")
    assert said == "where repeats scatter by 2 %, differences from 12 % on will be significant"


@pytest.mark.in_turn
def test_a_plan_tells_everything_and_touches_nothing(tmp_path: Path) -> None:
    told = announce(prepare(written(tmp_path))).document()
    assert (told["combinations"], told["blocks"], len(told["runs"])) == (4, 2, 8)
    assert told["rehearsal"] == {"time_s": pytest.approx(0.2), "levels": 2, "layouts": 0, "commands": 0}
    assert told["time_s"] == pytest.approx(8 * 4.0 + 0.2)
    assert {(one["control"], one["value"]) for one in told["machine"]} == {("sysctl", "60"), ("sysctl", "10")}
    assert told["most_written_bytes"] == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "x.toml"]


@pytest.mark.in_turn
def test_a_run_of_one_factor_at_a_time_is_told_by_what_differs(tmp_path: Path) -> None:
    text = FILE.replace("repeats = 2", 'repeats = 1\ndesign = "one_at_a_time"\norder = "given"')
    told = "\n".join(lines(announce(prepare(written(tmp_path, text)))))
    assert (
        "3 runs: 1 pattern x 3 of 4 combinations (one factor at a time) x 1 block, in the order given" in told
    )
    assert "sysctl of vm.swappiness: 60 | 10 (some runs)" in told
    assert told.splitlines()[-3:] == [
        "  1. read, all at their first level (block 1)",
        "  2. read, depth=4 (block 1)",
        "  3. read, swappiness=10 (block 1)",
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("target", "factor", "place"),
    [
        ('targets = ["/proc/cpuinfo/x"]\n', "", (5, "targets")),
        ("", '[[factors]]\nname = "where"\nkind = "target"\nlevels = ["/dev/null", "/proc/cpuinfo/x"]\n',
         (24, "factors.where.levels")),
        ('targets = ["/dev/null", "/dev/null"]\n', "", (5, "targets")),
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_had_is_told_where_it_is_named(
    tmp_path: Path, target: str, factor: str, place: tuple[int, str]
) -> None:
    """The line was that of the pattern's options."""
    text = FILE.replace('ioengine = "null"', 'ioengine = "psync"') + "\n" + factor
    path = written(tmp_path, text.replace('size = "1g"\n', f'size = "1g"\n{target}'))
    with pytest.raises(InputError) as told:
        announce(prepare(path))
    assert told.value.where == Where(str(path), *place)


ON_A_FILE = FILE.replace('"null", rw = "randread"', '"psync", rw = "randwrite"').replace(
    '"iodepth"\nlevels = [1, 4]', '"bs"\nlevels = ["4k", "8k"]'
)
STATES = '\n[[factors]]\nname = "state"\nkind = "allocation"\nlevels = ["new", "preallocated"]\n'


@pytest.mark.in_turn
def test_a_new_file_has_no_room_before_the_load(tmp_path: Path) -> None:
    """fio's default allocates it: `new` was what `preallocated` is, all 8 MiB of it after 20 writes."""
    text = ON_A_FILE.replace('size = "1g"', f'size = "1m"\ntargets = ["{tmp_path}/data"]') + STATES
    prepared = prepare(written(tmp_path, text))
    plans = announce(prepared).plans
    ways = {
        (run.levels["state"], layout.fallocate.value)
        for run in prepared.document.runs
        if (layout := plans[run.name].targets[0].layout) is not None
    }
    assert ways == {("new", "none"), ("preallocated", "native")}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("overwrite = 1", "lays a new file out"),
        ('fallocate = "native"', "fallocate=native allocates the file before the load"),
    ],
)
def test_what_makes_a_new_file_another_state_is_refused(tmp_path: Path, option: str, words: str) -> None:
    text = ON_A_FILE.replace('size = "1g"', f'size = "1m"\ntargets = ["{tmp_path}/data"]') + STATES
    path = written(tmp_path, text.replace('bs = "4k" }', f'bs = "4k", {option} }}'))
    with pytest.raises((InputError, RefusedError), match=words) as told:
        announce(prepare(path))
    assert told.value.where is not None
    assert told.value.where.option == "factors.state.levels"


@pytest.mark.in_turn
def test_what_was_taken_is_not_rehearsed_again_where_a_level_is_left_out(tmp_path: Path) -> None:
    """All of it was set once more, layouts built once more."""
    host, done = MachineOfFiles(tmp_path), tmp_path / "done"
    good = f'{{ name = "good", do = "echo do >> {done}", undo = "echo undo >> {done}" }}'
    bad = '{ name = "bad", do = "exit 3", undo = "true" }'
    pattern, _, swappiness = FILE.split("[[factors]]")
    mode = f'\nname = "mode"\nkind = "command"\nlevels = ["as is", {good}, {bad}]\n'
    text = "[[factors]]".join((pattern, swappiness, mode))
    options = ReadOptionsOfExperiment(allow_exec=True, leave_out_unset=True)
    outcome = host.run(prepare(written(tmp_path, text), options), tmp_path / "out")
    runs = [run for run in outcome.document.runs if run.levels["mode"] == "good"]
    assert [one.level for one in outcome.document.unset_levels] == ["bad"]
    assert len(runs) == 4
    assert done.read_text() == "do\nundo\n" * (1 + len(runs))


def test_a_fraction_fits_its_budget(tmp_path: Path) -> None:
    more = '[[factors]]\nname = "NAME"\noption = "OPTION"\nlevels = [LEVELS]\n'
    text = FILE.replace('runtime = "2s"', 'runtime = "2s"\ndesign = "fraction"\nbudget = { time = "34s" }')
    text += more.replace("NAME", "size").replace("OPTION", "bs").replace("LEVELS", '"4k", "8k"')
    prepared = prepare(written(tmp_path, text))
    assert (prepared.document.combinations, prepared.document.full_combinations) == (4, 8)
    assert prepared.document.aliased
    assert not prepared.document.mixed
    assert prepared.length_s is not None
    assert prepared.length_s <= 34


@pytest.mark.in_turn
def test_a_fraction_tells_parts_of_interactions_in_main_effects(tmp_path: Path) -> None:
    more = '[[factors]]\nname = "NAME"\noption = "OPTION"\nlevels = [LEVELS]\n'
    text = FILE.replace('runtime = "2s"', 'runtime = "2s"\ndesign = "fraction"\nbudget = { time = "45s" }')
    text += more.replace("NAME", "size").replace("OPTION", "bs").replace("LEVELS", '"4k", "8k"')
    text = text.replace("repeats = 2", "repeats = 2\nseed = 4")
    announcement = announce(prepare(written(tmp_path, text)))
    mixed = announcement.prepared.document.mixed
    assert ("depth", "swappiness:size") in {(one, two) for one, two, _ in mixed}
    (told,) = [one for one in lines(announcement) if one.startswith("  depth is mixed")]
    assert told.startswith("  depth is mixed in part with swappiness × size (67")
    assert told.endswith("such a part of an interaction counts as its own.")
    assert announcement.document()["mixed"] == [list(one) for one in mixed]


@pytest.mark.in_turn
def test_a_budget_that_no_run_fits_into_is_refused_with_its_line(tmp_path: Path) -> None:
    # It ran one of four runs, and ended with 0 and without an effect.
    text = FILE.replace("repeats = 2", 'repeats = 2\n[budget]\ntime = "3s"\n').replace(
        'runtime = "2s"\nsize = "1g"\n', ""
    )
    path = written(tmp_path, text.replace('title = "R', 'runtime = "2s"\nsize = "1g"\ntitle = "R'))
    with pytest.raises(InputError, match=r"the first takes about 4\ss, and the budget is 3\ss") as told:
        announce(prepare(path))
    assert told.value.where == Where(str(path), 6, "budget.time")


@pytest.mark.parametrize(
    ("control", "subject", "words"),
    [
        ("dirty_limit", "/dev/vda", "dirty_limit is of the whole host, found /dev/vda (leave it out)"),
        ("sysctl", "vm.swapiness", "no vm.swapiness, or does not show it (did you mean 'vm.swappiness'?)"),
        ("governor", "policy9", "governor: there is no policy9 (did you mean 'policy"),
        ("io_scheduler", "", "say of which device (io_scheduler of /dev/NAME)"),
    ],
)  # fmt: skip
def test_what_a_control_can_be_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: str, subject: str, words: str
) -> None:
    controls = files.make(tmp_path / "host")
    monkeypatch.setattr(host_checks, "Controls", lambda: controls)
    factor = f'[[factors]]\nname = "s"\ncontrol = "{control}"\nsubject = "{subject}"\nlevels = ["1", "0"]\n'
    reasons = {one.why for one in prepare(written(tmp_path, f"{FILE}{factor}")).unset if one.factor == "s"}
    assert reasons
    # A level that the subject that is meant does not take is told with it.
    assert all(words in reason for reason in reasons)


@pytest.mark.in_turn
def test_a_second_metric_of_one_name_and_targets_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 'iops' twice"):
        prepare(written(tmp_path, f'metrics = ["iops", "iops"]\n{FILE}'))
    text = FILE.replace('ioengine = "null"', 'ioengine = "psync"').replace('"1g"', '"1m"')
    text = text.replace(
        'option = "iodepth"\nlevels = [1, 4]',
        f'option = "filename"\nlevels = ["{tmp_path}/a", "{tmp_path}/b"]',
    )
    text += f'[[factors]]\nname = "target"\nkind = "target"\nlevels = ["{tmp_path}/c", "{tmp_path}/d"]\n'
    with pytest.raises(InputError, match=r"target = .* makes no difference") as told:
        announce(prepare(written(tmp_path, text)))
    assert told.value.where is not None
    assert told.value.where.option == "factors.target.levels"
