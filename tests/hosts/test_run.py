"""Runs on hosts that are processes of this machine: from the job file to one result."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from loadstone.errors import InputError, RunError
from loadstone.hosts import agent_links, coordinator, joint_bundle
from loadstone.hosts.hosts_file import read_hosts
from tests.e2e.program import finish, start, until
from tests.e2e.test_faults import small_tmpfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.hosts.agent_links import Link

JOB = """[global]
ioengine=psync
bs=4k
size=1m
filename={file}
[readers]
rw=randread
numjobs=2
io_size=2m
"""


def hosts_file(tmp_path: Path, count: int = 2, more: str = "") -> Path:
    # No test is about how fast an interpreter starts on a machine that does something else.
    lines = ["[run]", "connect_s = 300", "[defaults]", 'launch = "local"', more]
    for number in range(1, count + 1):
        lines += ["[[host]]", f'name = "h{number}"', f'directory = "{tmp_path}/d{number}"']
    path = tmp_path / "hosts.toml"
    path.write_text("\n".join(lines))
    return path


def job_file(tmp_path: Path, text: str = JOB) -> Path:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 4096)
    path = tmp_path / "job.fio"
    path.write_text(text.format(file=tmp_path / "data"))
    return path


def run(tmp_path: Path, *more: str, count: int = 2, text: str = JOB) -> int:
    words = ["run", str(job_file(tmp_path, text)), "--hosts", str(hosts_file(tmp_path, count))]
    return main([*words, "--out", str(tmp_path / "out"), "--no-report", "--no-calibration", *more])


@pytest.mark.in_turn
def test_totals_are_the_sum_of_the_hosts_to_the_io(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [host["name"] for host in told["hosts"]] == ["h1", "h2"]
    # Two clones on each of two hosts read two MiB each.
    assert told["total"]["operations"] == 2 * 2 * 512 == sum(host["ops"] for host in told["hosts"])
    assert told["total"]["bytes"] == sum(host["bytes"] for host in told["hosts"])
    assert [job["name"] for job in told["jobs"]] == ["readers"]
    assert told["jobs"][0]["operations"] == 2048
    assert min(host["start_skew_ns"] for host in told["hosts"]) == 0
    for host in told["hosts"]:
        assert {"name", "ops", "bytes", "latency", "cpu", "start_skew_ns"} <= host.keys()
        assert host["status"] == "complete"
    whole = Bundle.open(tmp_path / "out")
    assert whole.verified
    made = summarise(whole)
    # Merged, not averaged: the histogram of all is the sum of theirs, bucket by bucket.
    all_of_them = made.total.data
    own = [one.total.data for one in made.by_host.values()]
    assert all_of_them is not None
    counts = sum(one.latencies["lat"].histogram.counts for one in own if one is not None)
    assert (all_of_them.latencies["lat"].histogram.counts == counts).all()
    # Each host had random addresses of its own.
    seeds = [stream.seed for stream in whole.plan.streams]
    assert len(set(seeds)) == 4
    # What was collected is not left behind.
    assert not list((tmp_path / "d1").iterdir())
    # Each host has jobs of its own: for the second host's there was none, and nothing was exported.
    assert main(["export", str(tmp_path / "out"), "fio-json", "-o", str(tmp_path / "fio.json")]) == 0
    lines = json.loads((tmp_path / "fio.json").read_text())["jobs"]
    assert [(line["jobname"], line["read"]["total_ios"]) for line in lines] == [("readers", 1024)] * 2
    assert main(["export", str(tmp_path / "out"), "fio-logs", "-o", str(tmp_path / "logs")]) == 0
    assert len(list((tmp_path / "logs").glob("readers_iops.*.log"))) == 2


@pytest.mark.in_turn
def test_nothing_is_written_where_two_hosts_see_the_same_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = JOB.replace("randread", "randwrite")
    assert run(tmp_path, text=text) == 2
    told = capsys.readouterr().err
    assert "h1:" in told
    assert "are the same" in told
    assert "--divide" in told
    assert (tmp_path / "data").read_bytes() == bytes(range(256)) * 4096
    assert not (tmp_path / "out").exists()


@pytest.mark.in_turn
@pytest.mark.parametrize("stays", [False, True])
def test_hosts_of_one_kernel_that_saw_each_other_look_are_not_taken_for_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    """Once of seven times the refusal was *in use*: each agent had the file open while the other looked."""
    text = JOB.replace("randread", "randwrite")
    look_again = coordinator._HostsRun._to_look_again
    again: list[list[str]] = []
    (tmp_path / "data").touch()
    reader = (tmp_path / "data").open("rb")

    def looked(run: coordinator._HostsRun) -> list[str]:
        if not stays:
            reader.close()
        again.append(look_again(run))
        return again[-1]

    monkeypatch.setattr(coordinator._HostsRun, "_to_look_again", looked)
    with reader:
        assert run(tmp_path, text=text) == 2
    assert again == [["h1", "h2"], []]
    assert ("are the same" in capsys.readouterr().err) is not stays


@pytest.mark.in_turn
def test_divide_without_anything_shared_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--divide") == 2
    assert "--divide has no effect" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "job.fio"), "--divide"]) == 2


WRITTEN = """[writer]
ioengine=psync
rw=randwrite
bs=4k
size=1m
filename={file}
verify=crc32c
do_verify=0
"""


@pytest.mark.in_turn
def test_the_journals_of_hosts_are_read_back_from_their_own_bundles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was said that the run kept no journal."""
    consent = [word for name in ("h1", "h2") for word in ("--i-accept-data-loss", f"{name}:{tmp_path}/data")]
    assert run(tmp_path, "--journal", "--divide", *consent, text=WRITTEN) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    for name in ("h1", "h2"):
        assert f"loadstone verify {tmp_path}/out/hosts/{name}" in error
        read = [
            "verify",
            str(tmp_path / f"out/hosts/{name}"),
            "--out",
            str(tmp_path / f"read-{name}"),
            "--json",
        ]
        assert main([*read, "--no-report"]) == 0
        assert json.loads(capsys.readouterr().out)["total"]["bytes"] == 1 << 19


@pytest.mark.in_turn
def test_consent_is_for_one_device_of_one_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = JOB.replace("randread", "randwrite")
    assert run(tmp_path, "--i-accept-data-loss", str(tmp_path / "data"), text=text) == 2
    told = capsys.readouterr().err
    assert "is not a target that a host writes" in told
    assert "did you mean 'h" in told


@pytest.mark.in_turn
def test_what_hosts_refuse_names_file_line_and_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = JOB.replace("randread", "randwrite")
    assert run(tmp_path, text=text, count=1) == 2
    head, *rest = capsys.readouterr().err.splitlines()
    assert head == f"loadstone: {tmp_path}/job.fio:5: filename: these would be overwritten:"
    assert rest[0].startswith(f"  h1:{tmp_path}/data: it exists")
    with (tmp_path / "data").open("r+b"):
        assert run(tmp_path, text=text, count=1) == 2
        head, *rest = capsys.readouterr().err.splitlines()
    assert head == f"loadstone: {tmp_path}/job.fio:5: filename: refused on every host, because of:"
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert run(tmp_path, text=text.replace("{file}", f"{tmp_path}/link")) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "loadstone: the load was not begun: 2 of 2 hosts cannot:"
    assert told[1] == f"  h1: {tmp_path}/job.fio:5: filename: some targets cannot be used:"
    assert told[2].startswith(f"    {tmp_path}/link: {tmp_path}/link is a symbolic link")


TWO = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'
LUN = '[[shared]]\nname = "l"\ntargets = {a = "/dev/sdb", b = "/dev/sdc"}\n'


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('[[host]]\nname = "a"\nadress = "x"\n', 3, "address"),
        ('[[host]]\nname = "a"\n[[host]]\nname = "a"\n', 4, "called 'a'"),
        ('[run]\non_los = "stop"\n[[host]]\nname = "a"\n', 2, "on_loss"),
        ('[run]\nlost_after_s = -1\n[[host]]\nname = "a"\n', 2, "expected more than 0, found -1"),
        (
            '[run]\nlost_after_s = "10"\n[[host]]\nname = "a"\n',
            2,
            "expected a number, without quotes, found '10'",
        ),
        ('[run]\ntls = "no"\n[[host]]\nname = "a"\n', 2, "true or false, without quotes, found 'no'"),
        ('[[host]]\nname = "a"\nport = "22"\n', 3, "a whole number, without quotes, found '22'"),
        ("[[host]]\nname = 1\n", 2, "expected text, in quotes, found 1"),
        ("[run]\n", None, "names no host"),
        ('[[host]]\nname = "a"\nprogram = []\n', 3, "at least 1 value, found 0"),
        ('[[host]]\nname = "../a"\n', 2, "letters and digits"),
        ('[[host]]\nname = "a"\n[[shared]]\nname = "l"\ntargets = {a = "/dev/sda"}\n', 5, "on one host only"),
        ('[[host]\nname = "a"\n', 1, "TOML"),
        (
            '[run]\ntransport = "dsk"\n[[host]]\nname = "a"\n',
            2,
            "'dask' or 'pipe', found 'dsk'\nhint: did you",
        ),
        ('[run]\nscheduler = "10.0.0.1"\n[[host]]\nname = "a"\n', 2, "expected tls://HOST:PORT"),
        ('[[host]]\nname = "a"\naddress = ""\n', 3, "text without blanks, found ''"),
        ('[defaults]\nuser = "a b"\n[[host]]\nname = "a"\n', 2, "text without blanks, found 'a b'"),
        ('host = ["h1"]\n', 1, "expected a table"),
        (f'{TWO}[[shared]]\nname = "l"\ntargets = {{a = "sdb", b = "/dev/sdc"}}\n', 5, "an absolute path"),
        (f"{TWO}{LUN}{LUN}", 10, "two shared devices are called 'l'"),
        (f"{TWO}{LUN}{LUN.replace('l', 'm', 1)}", 10, "a:/dev/sdb is the shared device 'l' already"),
        ('[[host]]\nname = "a"\n[[shared]]\nname = "l"\ntargets = {b = "/dev/sda"}\n', 5, "'b' is no host"),
    ],
)
def test_mistakes_in_a_hosts_file_are_told_with_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int | None, says: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert main(["run", str(job_file(tmp_path)), "--hosts", str(path)]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert line is None or f"bad.toml:{line}:" in told


@pytest.mark.in_turn
def test_a_bundle_that_breaks_off_on_its_way_is_not_kept_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of it stood where a whole one stands, and did not open."""
    whole = agent_links.fetch

    def broken(link: Link, directory: Path) -> None:
        whole(link, directory)
        if link.name == "h2":
            raise RunError("the link is gone")

    monkeypatch.setattr(joint_bundle, "fetch", broken)
    assert run(tmp_path) == 1
    assert "h2" in capsys.readouterr().err
    out = tmp_path / "out"
    assert [one.name for one in (out / "hosts").iterdir()] == ["h1"]
    assert Bundle.open(out).status == "failed"
    kept = next((tmp_path / "d2").glob("*/*/manifest.json")).parent
    assert Bundle.open(kept).status == "complete"


@contextlib.contextmanager
def immutable(path: Path) -> Iterator[None]:
    subprocess.run(["chattr", "+i", path], check=False, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=False, capture_output=True)


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


WHY = {
    "removed": "removed during the run",
    "immutable": "Operation not permitted",
    "full": "No space left on device",
}


@pytest.mark.in_turn
@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "fault", ["removed", *(pytest.param(one, marks=pytest.mark.root) for one in ("immutable", "full"))]
)
def test_what_the_hosts_measured_is_told_where_their_bundle_cannot_be_written(
    tmp_path: Path, fault: str
) -> None:
    """It ended with `No space left on device` and nothing else: what the hosts had measured was not told."""
    job = job_file(tmp_path, JOB.replace("io_size=2m", "time_based\nruntime=2s\nrate_iops=500"))
    hosts = hosts_file(tmp_path)
    with contextlib.ExitStack() as stack:
        place = tmp_path / "place"
        if fault == "full":
            stack.enter_context(small_tmpfs(place))
        out = place / "out"
        words: list[str | Path] = ["run", job, "--hosts", hosts, "--out", out]
        running = start(*words, cwd=tmp_path)
        until(lambda: (out / "hosts.json").exists() or running.poll() is not None, "its begin")
        if fault == "removed":
            shutil.rmtree(out, ignore_errors=True)
        elif fault == "immutable":
            stack.enter_context(immutable(out))
        else:
            fill(place / "fill")
        done = finish(running)
    if "is used by another run" in done.err:
        pytest.skip("another run has this host")
    assert done.code == 1, done
    assert f"{out}: the bundle" in done.err
    assert WHY[fault] in done.err
    assert "what it measured is kept there" in done.err
    assert re.search(r"read: \d+ I/Os, .* IOPS", done.err)
    for host in ("d1", "d2"):
        kept = next((tmp_path / host).glob("*/*/manifest.json")).parent
        assert Bundle.open(kept).status == "complete"


def test_a_host_may_be_an_ipv6_address_and_a_wrong_port_is_told() -> None:
    host = read_hosts("root@[::1]:2222").host[0]
    assert (host.reached_by, host.user, host.port) == ("::1", "root", 2222)
    for wrong in ("h1:99999", "-oProxyCommand=x", "h1;ls"):
        with pytest.raises(InputError, match=r"is not \[USER@\]HOST\[:PORT\]"):
            read_hosts(wrong)


@pytest.mark.in_turn
def test_a_rate_that_all_hosts_keep_is_no_limit_of_a_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """*A host itself was the limit: use more hosts, or faster ones*, was said of a rate they were given."""
    text = JOB.replace("io_size=2m", "time_based\nruntime=1500ms\nrate_iops=50").replace("numjobs=2\n", "")
    assert run(tmp_path, "--json", text=text) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    causes = {cause["rule"] for cause in told["verdict"]["causes"]}
    assert "own_limit" in causes
    assert "host_is_limit" not in causes


@pytest.mark.in_turn
def test_an_audit_of_the_bundle_judges_the_hosts_as_the_run_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It looked at the sum as at one host: nothing was said of data that hosts share."""
    text = JOB.replace("io_size=2m", "time_based\nruntime=1500ms\nrate_iops=50").replace("numjobs=2\n", "")
    assert run(tmp_path, "--json", text=text) == 0
    of_run: dict[str, Any] = json.loads(capsys.readouterr().out)["verdict"]
    assert main(["audit", str(tmp_path / "out"), "--json"]) == 0
    audited: dict[str, Any] = json.loads(capsys.readouterr().out)["verdict"]
    assert "hosts_overlap" in {cause["rule"] for cause in of_run["causes"]}
    assert (audited["sentences"], audited["confidence"]) == (of_run["sentences"], of_run["confidence"])


@pytest.mark.in_turn
@pytest.mark.slow
def test_runs_on_hosts_are_compared_stage_by_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There were more cases, those of each host, than stages: it ended with a mistake in the program."""
    text = (
        "[global]\nfilename={file}\nioengine=psync\nsize=1m\n[one]\nrw=read\n[two]\nrw=randread\nstonewall\n"
    )
    assert run(tmp_path, text=text) == 0
    bundle = str(tmp_path / "out")
    shutil.copytree(bundle, tmp_path / "copy")
    capsys.readouterr()
    assert main(["compare", bundle, str(tmp_path / "copy"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [sum(side["counts"].values()) for side in told["sides"]] == [2, 2]
    assert {row["pattern"] for row in told["matrix"]} == {"4k sequential read", "4k random read"}
    audited = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {side["verdict"] for side in told["sides"]} == {audited["verdict"]["kind"]}
