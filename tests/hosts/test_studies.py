"""Studies whose runs go to hosts: one sweep on two of them, watched, and one of its runs again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import loadstone
from loadstone.cli.main import main
from loadstone.errors import InputError, RefusedError
from loadstone.hosts import occupancy
from loadstone.hosts.hosts_file import read_hosts
from loadstone.hosts.kept_agents import KeptAgents, KeptLink
from tests.hosts.test_run import JOB, hosts_file, job_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.mark.in_turn
@pytest.mark.slow
def test_each_run_of_a_sweep_is_a_run_on_all_hosts_and_can_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptAgents, "renew", lambda _: {"h2": "killed"})
    words = ["--hosts", str(hosts_file(tmp_path)), "--no-report", "--no-calibration"]
    sweep = ["sweep", str(job_file(tmp_path)), "--bs", "4k,8k", "--watch", "me=local"]
    assert main([*sweep, *words, "--out", str(tmp_path / "s"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # Two clones on each of two hosts read two MiB each, in blocks of 4 and of 8 KiB.
    assert [run["total"]["operations"] for run in told["runs"]] == [2048, 1024]
    for run in told["runs"]:
        one = json.loads((tmp_path / "s" / run["bundle"] / "result.json").read_text())
        assert [host["ops"] for host in one["hosts"]] == [run["total"]["operations"] // 2] * 2
        assert run["hosts"] == one["hosts"]
        assert one["watched"].keys() == {"me"}
        record = json.loads((tmp_path / "s" / run["bundle"] / "hosts.json").read_text())
        assert [(event["host"], "killed" in event["text"]) for event in record["events"]] == [("h2", True)]
    assert not list((tmp_path / "d1").iterdir())
    first = str(tmp_path / "s" / told["runs"][0]["bundle"])
    assert main(["rerun", first, "--out", str(tmp_path / "r")]) == 2
    assert "running it again needs --hosts" in capsys.readouterr().err
    assert main(["rerun", first, *words, "--out", str(tmp_path / "r"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [host["ops"] for host in again["hosts"]] == [1024, 1024]


@pytest.mark.in_turn
@pytest.mark.slow
def test_runs_on_hosts_are_asked_for_from_python(tmp_path: Path) -> None:
    given: dict[str, Any] = {"hosts": str(hosts_file(tmp_path)), "calibration": False}
    job = job_file(tmp_path)
    study = loadstone.repeat(job, 1, **given, out=tmp_path / "s")
    (one,) = study.runs.values()
    assert [host["ops"] for host in one.document()["hosts"]] == [1024, 1024]
    assert one.bundle.request["options"]["hosts"] == given["hosts"]
    with pytest.raises(RefusedError, match="running it again needs --hosts"):
        loadstone.rerun(one, out=tmp_path / "h")
    with pytest.raises(RefusedError, match="running it again needs --hosts"):
        loadstone.rerun_study(study, out=tmp_path / "rh")
    again = loadstone.rerun_study(study, **given, out=tmp_path / "rs")
    (one,) = again.runs.values()
    assert [host["ops"] for host in one.document()["hosts"]] == [1024, 1024]
    with pytest.raises(InputError, match="loadstone: divide: has no effect without hosts"):
        loadstone.run(job, divide=True)


@pytest.mark.in_turn
def test_a_tree_that_only_a_later_run_changes_is_asked_for_before_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the run would copy is made by the first one."""
    goal, shape = tmp_path / "goal", "depth=1,width=1,files=2,size=4k"
    (goal / "vdb.1_1.dir").mkdir(parents=True)
    (goal / "vdb.1_1.dir" / "vdb_f0001.file").write_text("precious")
    file = tmp_path / "list.parm"
    file.write_text(
        f"fsd=a,anchor={tmp_path / 'source'},{shape}\nfsd=b,anchor={goal},{shape}\n"
        "fwd=r,fsd=a,operation=read\nfwd=w,fsd=a,target=b,operation=copy\n"
        "rd=first,fwd=r,fwdrate=50,elapsed=2,format=yes\nrd=later,fwd=w,fwdrate=50,elapsed=2,format=no\n"
    )
    hosts = tmp_path / "one.toml"
    hosts.write_text(f'[[host]]\nname = "h"\nlaunch = "local"\ndirectory = "{tmp_path / "h"}"\n')
    assert main(["run", str(file), "--hosts", str(hosts), "--out", str(tmp_path / "s")]) == 2
    assert f"--i-accept-data-loss h:{goal}" in capsys.readouterr().err
    assert not (tmp_path / "source").exists()


def test_what_would_be_set_on_this_machine_is_refused_with_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        f'title = "t"\ntargets = ["{tmp_path}/data"]\n'
        '[[patterns]]\nname = "r"\noptions = { rw = "randread", ioengine = "psync", runtime = 1 }\n'
        '[[factors]]\nname = "cache"\nkind = "page_cache"\nlevels = ["kept", "dropped"]\n'
    )
    job_file(tmp_path)
    assert main(["experiment", "run", str(file), "--hosts", str(hosts_file(tmp_path))]) == 2
    assert "would be set on this machine" in capsys.readouterr().err


@pytest.mark.in_turn
def test_a_host_is_free_for_nobody_else_between_the_runs_of_a_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def look(path: Path, study: Any, done: Any) -> dict[str, Any]:
        """At the end of a study: its last run is over, and nothing runs."""
        _ = path, study, done
        with pytest.raises(RefusedError) as refused:
            occupancy.occupy("another", "me").release()
        found.append(str(refused.value))
        return {}

    monkeypatch.setattr("loadstone.api.studies.prepared_study.result_document", look)
    words = ["--hosts", str(hosts_file(tmp_path)), "--no-report", "--no-calibration"]
    assert main(["sweep", str(job_file(tmp_path)), "--bs", "4k", *words, "--out", str(tmp_path / "s")]) == 0
    assert "is used by another run" in found[0]
    occupancy.occupy("another", "me").release()


@dataclass
class _Reached:
    """Links to agents that tell what they were told."""

    told: list[dict[str, Any]] = field(default_factory=list)
    opened: int = 0
    heard: Callable[[str, dict[str, Any]], None] = lambda _, __: None

    def link(self, name: str, heard: Callable[[str, dict[str, Any]], None]) -> _Reached:
        self.heard = lambda _, message: heard(name, message)
        return self

    def open(self) -> None:
        self.opened += 1

    def tell(self, order: dict[str, Any]) -> None:
        self.told.append(order)

    def close(self) -> None:
        self.told.append({"do": "close"})

    def __enter__(self) -> _Reached:
        return self

    def __exit__(self, *_: object) -> None:
        return


def test_a_kept_agent_is_heard_by_the_run_it_is_in_and_by_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = _Reached()
    monkeypatch.setattr("loadstone.hosts.kept_agents.Reached", lambda _: reached)
    first: list[str] = []
    second: list[str] = []
    with KeptAgents(read_hosts(str(hosts_file(tmp_path)))) as agents:
        link = agents.link("h1", lambda _, message: first.append(message["type"]))
        link.open()
        # Behind a worker that has not connected yet there is nobody who could hear it.
        link.say_we_are_here()
        assert not reached.told
        reached.heard("h1", {"type": "up"})
        link.say_we_are_here()
        assert reached.told == [{"do": "alive"}]
        link.tell({"do": "leave", "forget": True})
        link.close()
        reached.heard("h1", {"type": "ended"})
        link = agents.link("h1", lambda _, message: second.append(message["type"]))
        link.open()
        # Of the run before: the new one must not take it for its own.
        reached.heard("h1", {"type": "event"})
        reached.heard("h1", {"type": "free"})
        reached.heard("h1", {"type": "hello"})
        assert (first, second, reached.opened) == (["up"], ["up", "hello"], 1)
        link.close()
        agents.renew()
        agents.link("h1", lambda _, message: second.append(message["type"])).open()
        assert reached.opened == 2
    orders = [one["do"] for one in reached.told if one["do"] != "alive"]
    assert orders == ["next", "close", "leave", "close", "leave", "close"]


def _left_one_run(agents: KeptAgents, reached: _Reached) -> KeptLink:
    """Return the link to an agent that was told to leave its first run."""
    link = agents.link("h1", lambda _, __: None)
    link.open()
    reached.heard("h1", {"type": "up"})
    link.tell({"do": "leave", "forget": True})
    link.close()
    return link


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[KeptAgents, _Reached]]:
    reached = _Reached()
    monkeypatch.setattr("loadstone.hosts.kept_agents.Reached", lambda _: reached)
    with KeptAgents(read_hosts(str(hosts_file(tmp_path)))) as agents:
        yield agents, reached


def test_an_agent_that_is_lost_between_two_runs_is_told_and_started_again(
    kept: tuple[KeptAgents, _Reached],
) -> None:
    agents, reached = kept
    _left_one_run(agents, reached)
    reached.heard("h1", {"type": "free"})
    reached.heard("h1", {"type": "lost", "why": "killed"})
    assert agents.renew() == {"h1": "killed"}
    agents.link("h1", lambda _, __: None).open()
    assert reached.opened == 2
    assert agents.renew() == {}


def test_a_run_hears_of_an_agent_that_was_lost_before_it_took_it_over(
    kept: tuple[KeptAgents, _Reached],
) -> None:
    agents, reached = kept
    heard: list[dict[str, Any]] = []
    _left_one_run(agents, reached)
    reached.heard("h1", {"type": "free"})
    link = agents.link("h1", lambda _, message: heard.append(message))
    reached.heard("h1", {"type": "lost", "why": "killed"})
    link.open()
    assert heard == [{"type": "lost", "why": "killed"}]


def test_an_agent_that_does_not_leave_its_run_keeps_only_the_next_one_waiting(
    kept: tuple[KeptAgents, _Reached],
) -> None:
    agents, reached = kept
    link = _left_one_run(agents, reached)
    assert not link.is_broken
    link.open()
    # The run waited as long as it may for this host.
    link.close()
    assert reached.told[-1] == {"do": "close"}
    assert agents.renew() == {}
    agents.link("h1", lambda _, __: None).open()
    assert reached.opened == 2


def _study_of_hosts(tmp_path: Path, *more: str) -> Path:
    words = ["--hosts", str(hosts_file(tmp_path)), "--no-report", "--no-calibration", *more]
    sweep = ["sweep", str(job_file(tmp_path)), "--bs", "4k,8k", "--out", str(tmp_path / "s")]
    assert main([*sweep, *words]) == 0
    return tmp_path / "s"


@pytest.mark.in_turn
@pytest.mark.slow
def test_a_study_on_hosts_runs_again_on_them_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = _study_of_hosts(tmp_path)
    words = ["rerun", str(study), "--no-report", "--no-calibration", "--json", "--out", str(tmp_path / "r")]
    capsys.readouterr()
    assert main(words) == 2
    assert "was run on several hosts (h1, h2): running it again needs --hosts" in capsys.readouterr().err
    three = str(hosts_file(tmp_path, 3))
    assert main([*words, "--hosts", three]) == 2
    assert "the run was on h1, h2, and the hosts named now are h1, h2, h3" in capsys.readouterr().err
    two = str(hosts_file(tmp_path))
    assert main([*words, "--hosts", two, "--divide"]) == 2
    assert "each host runs the Plan of the earlier run" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
    assert main([*words, "--hosts", two]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(run["name"], run["total"]["operations"]) for run in told["runs"]] == [
        ("bs=4k", 2048),
        ("bs=8k", 1024),
    ]
    for run in told["runs"]:
        for host in ("h1", "h2"):
            plans = [
                json.loads((path / run["bundle"] / "hosts" / host / "plan.json").read_text())["streams"]
                for path in (study, tmp_path / "r")
            ]
            assert plans[0] == plans[1]


@pytest.mark.in_turn
def test_a_run_whose_host_has_no_plan_is_left_out_of_a_study_that_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = _study_of_hosts(tmp_path)
    (lost, _) = sorted((study / "runs").iterdir())
    record = json.loads((lost / "hosts.json").read_text())
    record["hosts"][1]["bundle"] = None
    (lost / "hosts.json").write_text(json.dumps(record))
    words = ["rerun", str(study), "--no-report", "--no-calibration", "--json", "--out", str(tmp_path / "r")]
    capsys.readouterr()
    assert main([*words, "--unverified", "--hosts", str(hosts_file(tmp_path))]) == 0
    printed = capsys.readouterr()
    assert [run["name"] for run in json.loads(printed.out)["runs"]] == ["bs=8k"]
    text = "run bs=4k is left out: the bundle of h2 was not collected, so its Plan is not known"
    assert f"changed: {text}" in printed.err
    assert text in [note["text"] for note in json.loads((tmp_path / "r" / "study.json").read_text())["notes"]]


@pytest.mark.in_turn
@pytest.mark.slow
def test_what_was_divided_among_hosts_is_so_when_it_runs_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = JOB.replace("rw=randread", "rw=write").replace("io_size=2m", "").replace("numjobs=2", "")
    words = ["--hosts", str(hosts_file(tmp_path)), "--no-report", "--no-calibration"]
    job = job_file(tmp_path, text)
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    run = ["run", str(job), *words, "--divide", "--repeat", "2", "--out", str(tmp_path / "s")]
    assert main(run) == 0, capsys.readouterr().err
    for number, source in enumerate((tmp_path / "s", tmp_path / "s" / "runs" / "001-repeat-1")):
        capsys.readouterr()
        again = tmp_path / f"again{number}"
        assert main(["rerun", str(source), *words, "--out", str(again), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [host["bytes"] for host in told["hosts"]] == [1 << 19, 1 << 19]
    (shared,) = json.loads((again / "hosts.json").read_text())["shared"]
    assert (shared["written"], shared["divided"]) == (True, True)
