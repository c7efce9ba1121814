"""Sections, inheritance, includes, environment, traps and the command line."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, LoadstoneError, RefusedError, SeveralMistakesError
from loadstone.formats.fio import FileSource, ReadOptions, TextSource, TokenSource, read_jobfiles
from loadstone.formats.fio.table import BY_NAME
from loadstone.plan.pattern import blocks_of
from loadstone.workload.block_sizes import FixedSize, SizeRange, fixed
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

EMPTY: dict[str, str] = {}


def read(text: str, *, strict: bool = False, environment: dict[str, str] | None = None) -> Workload:
    options = ReadOptions(
        strict_fio_reading=strict,
        environment=EMPTY if environment is None else environment,
        cpus=4,
        page_size_bytes=4096,
        memory_bytes=8 << 30,
    )
    return read_jobfiles([TextSource(text, "job.fio")], options=options)


def error(text: str, *, strict: bool = False) -> LoadstoneError:
    with pytest.raises(LoadstoneError) as caught:
        read(text, strict=strict)
    return caught.value


def test_every_mistake_of_a_file_is_told_once_each_with_its_place_and_hint() -> None:
    """Only the first one was: a file with five took six attempts."""
    text = "[global]\nruntim=9\n[one]\nrw=randred\nsize=1q\n[two]\nrw=read\nnumjob=2\niodepth=-3\n"
    found = error(text)
    assert isinstance(found, SeveralMistakesError)
    assert [(str(one.where), one.hint) for one in found.errors] == [
        ("job.fio:2: runtim", "did you mean 'runtime'?"),
        ("job.fio:4: rw", "did you mean 'randread'?"),
        ("job.fio:5: size", "use k, m, g, t or p"),
        ("job.fio:8: numjob", "did you mean 'numjobs'?"),
        ("job.fio:9: iodepth", None),
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("blocksz", "blocksize"),
        ("ramptime", "ramp_time"),
        ("file", "filename"),
        ("qd", "iodepth"),
        ("read_percent", "rwmixread"),
        ("cpus", "cpus_allowed"),
    ],
)
def test_a_hint_begins_as_what_was_typed_or_is_the_word_of_another_program(given: str, meant: str) -> None:
    """Of `file` it was `profile`, of `read_percent` `trim_percentage`."""
    assert error(f"[one]\n{given}=4\n").hint == f"did you mean {meant!r}?"


def test_what_options_come_to_together_is_told_of_jobs_without_mistakes_of_their_own() -> None:
    """A job with a mistake is not put together: what is said of the rest of it may not be so."""
    together = "[{}]\nlog_issue_time=1\n{}"
    found = error(together.format("a", "") + together.format("b", "rw=raed\n"))
    assert isinstance(found, SeveralMistakesError)
    assert [str(one.where) for one in found.errors] == ["job.fio:2: log_issue_time", "job.fio:5: rw"]
    assert isinstance(found.errors[0], RefusedError)


def test_defaults_change_later_jobs_only() -> None:
    found = read("[global]\nbs=4k\n[a]\n[global]\nbs=8k\nrw=write\n[b]\n[c]\nbs=16k\n")
    assert [job.name for job in found.jobs] == ["a", "b", "c"]
    assert [blocks_of(job).sizes.bs[0] for job in found.jobs] == [
        FixedSize(bytes=n) for n in (4096, 8192, 16384)
    ]
    assert [blocks_of(job).mix.rw for job in found.jobs] == ["read", "write", "write"]
    assert found.global_options == {"bs": "8k", "rw": "write"}
    assert found.jobs[2].own_options == {"bs": "16k"}


def test_units_are_those_of_the_section_and_of_the_jobs_after_a_global_one() -> None:
    found = read(
        "[global]\nsize=10k\n[a]\nkb_base=1000\nio_size=4k\n[b]\nio_size=4k\n"
        "[global]\nkb_base=1000\n[c]\nio_size=4k\n",
        strict=True,
    )
    assert [job.placement.size for job in found.jobs] == [Amount(bytes=10240)] * 3
    assert [job.limits.io_size for job in found.jobs] == [Amount(bytes=n) for n in (4000, 4096, 4000)]


def test_any_section_that_begins_with_global_is_defaults() -> None:
    found = read("[global-read]\nrw=randread\n[a]\n")
    assert [job.name for job in found.jobs] == ["a"]
    assert blocks_of(found.jobs[0]).mix.rw == "randread"


def test_the_last_of_two_values_wins() -> None:
    assert read("[a]\niodepth=2\niodepth=8\n").jobs[0].engine.iodepth == 8


def test_a_name_renames_its_own_job_only() -> None:
    found = read("[global]\nname=all\n[a]\n[b]\nname=other\n")
    assert [(job.name, job.stem) for job in found.jobs] == [("a", "a"), ("other", "b")]
    assert [note.kind for note in found.notes] == ["trap"]


def test_comments_end_a_line_anywhere() -> None:
    found = read("; first\n# second\n[a] ; third\nbs=8k # fourth\nrw=write;fifth\n   \n")
    assert blocks_of(found.jobs[0]).sizes.bs[0] == FixedSize(bytes=8192)
    assert blocks_of(found.jobs[0]).mix.rw == "write"
    assert [note.where.line for note in found.notes if note.where] == [5]


def test_every_value_knows_where_it_was_written() -> None:
    found = read("[global]\nbs=4k\n[a]\nrw=write\n")
    where = found.jobs[0].at("mix.rw")
    assert (where.file, where.line, where.option) == ("job.fio", 4, "rw")
    assert found.jobs[0].at("sizes.bs").line == 2
    assert found.jobs[0].at("placement.size").line == 3


def test_triplets_leave_out_what_is_empty() -> None:
    def blocks(value: str) -> list[int | None]:
        return [
            block.bytes if isinstance(block, FixedSize) else None
            for block in blocks_of(read(f"[a]\nbs={value}\n").jobs[0]).sizes.bs
        ]

    assert blocks("4k") == [4096, 4096, 4096]
    assert blocks("4k,8k") == [4096, 8192, 8192]
    assert blocks(",8k") == [4096, 8192, 8192]
    assert blocks("4k,,16k") == [4096, 4096, 16384]
    assert blocks("4k,") == [4096, 4096, 4096]  # What is left out is fio's default.
    inherited = blocks_of(read("[global]\nbs=1k\n[a]\nbs=,8k\n").jobs[0]).sizes.bs
    assert [b.bytes for b in inherited if isinstance(b, FixedSize)] == [1024, 8192, 8192]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("iops:10", ("iops", False, 10.0, False)),
        ("iops_slope:.1%", ("iops", True, 0.1, True)),
        ("bw:12k", ("bw", False, 12288.0, False)),
        ("bw_slope:3%", ("bw", True, 3.0, True)),
        ("lat:50", ("lat", False, 50_000.0, False)),
        ("lat_slope:1ms", ("lat", True, 1_000_000.0, False)),
    ],
)
def test_rules_for_a_steady_state(value: str, expected: tuple[object, ...]) -> None:
    job = read(f"[a]\nss={value}\nss_dur=10\nss_ramp=1m\n").jobs[0]
    rule = job.steady.rule
    assert rule is not None
    assert (rule.metric, rule.slope, rule.limit, rule.percent) == expected
    assert (job.steady.duration_ns, job.steady.ramp_ns) == (10 * 10**9, 60 * 10**9)


def test_a_pattern_from_a_file_ends_with_the_longest_there_may_be(tmp_path: Path) -> None:
    content = bytes(range(1, 256)) * 300
    (tmp_path / "some").write_bytes(content)
    for length, notes in ((65_536, 0), (65_537, 1)):
        (tmp_path / "some").write_bytes(content[:length])
        found = read(f"[a]\nbuffer_pattern='{tmp_path}/some'\n")
        assert bytes(found.jobs[0].payload.buffer_pattern or ()) == content[:65_536]
        assert len(found.notes) == notes
        assert all("only 65,536 bytes of it are used" in note.text for note in found.notes)


def test_patterns_are_parts_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "some").write_bytes(b"xyz")
    text = f"[a]\nbuffer_pattern=\"abcd\"-120xdeadface'{tmp_path}/some'\n"
    found = bytes(read(text).jobs[0].payload.buffer_pattern or ())
    assert found[:12] == b"abcd" + b"\xf4\xff\xff\xff" + bytes.fromhex("deadface")
    assert found[12:] == b"xyz"


def test_includes_are_relative_to_the_file_and_kept(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "job.fio").write_text("[a]\ninclude sub/one.inc\n")
    (tmp_path / "sub" / "one.inc").write_text("rw=write\ninclude=two.inc\n")
    (tmp_path / "sub" / "two.inc").write_text("bs=8k\n")
    found = read_jobfiles([FileSource(tmp_path / "job.fio")])
    assert blocks_of(found.jobs[0]).mix.rw == "write"
    assert blocks_of(found.jobs[0]).sizes.bs[0] == FixedSize(bytes=8192)
    assert found.jobs[0].at("sizes.bs").file == str(tmp_path / "sub" / "two.inc")
    assert sorted(Path(name).name for name in found.sources) == ["job.fio", "one.inc", "two.inc"]
    assert found.sources[str(tmp_path / "job.fio")] == b"[a]\ninclude sub/one.inc\n"
    assert found.name == "job"


def test_an_include_must_not_have_sections_nor_include_itself(tmp_path: Path) -> None:
    (tmp_path / "s.inc").write_text("[b]\n")
    (tmp_path / "r.inc").write_text("include r.inc\n")
    for name, message in (("s.inc", "sections"), ("r.inc", "nested")):
        (tmp_path / "job.fio").write_text(f"[a]\ninclude {name}\n")
        with pytest.raises(InputError, match=message):
            read_jobfiles([FileSource(tmp_path / "job.fio")])


def test_environment() -> None:
    found = read("[a]\nfilename=/tmp/${X}.${Y}\n", environment={"X": "one", "Y": "two"})
    assert found.jobs[0].placement.targets[0].path == "/tmp/one.two"
    refusal = error("[a]\nfilename=/tmp/${X}\n")
    assert "no 'X'" in str(refusal)
    assert str(refusal).startswith("job.fio:2: filename")
    strict = read("[a]\nfilename=/tmp/${X}\n", strict=True)
    assert strict.jobs[0].placement.targets[0].path == "/tmp/"
    assert strict.notes[0].kind == "trap"


def test_keywords_and_their_arithmetic() -> None:
    job = read(
        "[a]\niodepth=2*$ncpus\nbs=$pagesize\nsize=$mb_memory/2m\nnumjobs=$ncpus\n".replace("/2m", "/2")
    ).jobs[0]
    assert job.engine.iodepth == 8
    assert blocks_of(job).sizes.bs[0] == FixedSize(bytes=4096)
    assert job.placement.size == Amount(bytes=4096)
    assert job.schedule.numjobs == 4


def test_blanks_around_the_equals_sign() -> None:
    meant = read("[a]\nbs = 8k\nrw = write\n")
    assert blocks_of(meant.jobs[0]).sizes.bs[0] == FixedSize(bytes=8192)
    assert blocks_of(meant.jobs[0]).mix.rw == "write"
    assert "uses 8;" in meant.notes[0].text
    assert blocks_of(read("[a]\nbs = 8k\n", strict=True).jobs[0]).sizes.bs[0] == FixedSize(bytes=8)


def test_unknown_names_get_the_nearest_one() -> None:
    refusal = error("[a]\nrw=read\niodpeth=4\n")
    assert (refusal.where and refusal.where.line) == 3
    assert refusal.hint == "did you mean 'iodepth'?"
    assert "lower case" in (error("[a]\nBS=8k\n").hint or "")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("bs=4k\n", 1, "before any section"),
        ("[a\n", 1, "expected a section"),
        ("[]\n", 1, "no name"),
        ("[a]\ndirect\n", 2, "needs a value"),
        ("[a]\nbs=\n", 2, "no value"),
        ("[a]\nbs=0\n", 2, "out of range"),
        ("[a]\nbs=4k-8k\n", 2, "expected one size"),
        ("[a]\nbsrange=4k\n", 2, "range such as"),
        ("[a]\nbssplit=4k/60:8k/50\n", 2, "110%"),
        ("[a]\nrw=reed\n", 2, "'reed'"),
        ("[a]\nrw=randread:0\n", 2, "number of I/Os"),
        ("[a]\niodepth=0\n", 2, "out of range"),
        ("[a]\nrwmixread=101\n", 2, "out of range"),
        ("[a]\ntime_based=yep\n", 2, "0 or 1"),
        ("[a]\nioengine=libai0\n", 2, "unknown engine"),
        ("[a]\nioengine=rbd\n", 2, "not supported"),
        ("[a]\nrandom_distribution=zipf:1\n", 2, "theta"),
        ("[a]\nrandom_distribution=zipff\n", 2, "unknown distribution"),
        ("[a]\nrandom_distribution=zoned:60/10:30/20\n", 2, "expected 100%"),
        ("[a]\nfile_service_type=zipf:1.2\n", 2, "not supported"),
        ("[a]\nbuffer_pattern='/no/file'\n", 2, "No such file"),
        ("[a]\nbuffer_pattern=%o\n", 2, "only a verify_pattern has one"),
        ("[a]\nss=iop:1%\n", 2, "found 'iop'"),
        ("[a]\nss=iops:0\n", 2, "above 0"),
        ("[a]\nss=iops:x\n", 2, "expected a number"),
        ("[a]\nlatency_percentile=101\n", 2, "above 0, at most 100"),
        ("[a]\nignore_error=EWHAT\n", 2, "unknown error"),
        ("[a]\ncpus_allowed=a\n", 2, "CPUs"),
        ("[a]\nfilename=-\n", 2, "standard input"),
        ("[a]\nkb_base=1023\n", 2, "1000 or 1024"),
        ("[a]\nfilename=\n", 2, "names no file"),
        ("", None, "no job"),
        ("[global]\nbs=4k\n", None, "no job"),
    ],
)
def test_errors_say_what_and_where(text: str, line: int | None, words: str) -> None:
    refusal = error(text)
    assert isinstance(refusal, InputError)
    assert words in str(refusal)
    assert (refusal.where.line if refusal.where else None) == line


@pytest.mark.parametrize("given", ["log_offset=1", "write_lat_log=x", "write_lat_log=x\nlog_offset=0"])
def test_an_issue_time_without_the_log_it_belongs_to_is_refused(given: str) -> None:
    refusal = error(f"[a]\nlog_issue_time=1\n{given}\n")
    assert isinstance(refusal, RefusedError)
    assert "no effect without write_lat_log and log_offset" in str(refusal)
    assert refusal.where is not None
    assert refusal.where.line == 2


@pytest.mark.parametrize(
    "option",
    [
        "zonemode=zbd",
        "read_iolog=x",
        "atomic=1",
        "cgroup=x",
        "uid=1",
        "profile=tiobench",
        "pre_read=1",
        "uncached=1",
        "cpuload=50",
    ],
)
def test_options_that_are_not_done_are_refused_by_name(option: str) -> None:
    refusal = error(f"[a]\nrw=read\n{option}\n")
    assert isinstance(refusal, RefusedError)
    assert option in str(refusal)
    assert str(refusal.where) == f"job.fio:3: {option.partition('=')[0]}"
    assert refusal.hint
    assert refusal.exit_code == 2


@pytest.mark.parametrize(
    "option",
    ["verify=0", "verify=none", "do_verify=0", "zonemode=none", "atomic=0", "create_only=0", "prio=0"],
)
def test_values_that_ask_for_nothing_are_accepted(option: str) -> None:
    assert read(f"[a]\n{option}\n").notes == ()


def test_harmless_options_are_noted_once_however_many_jobs_inherit_them() -> None:
    found = read("[global]\nclocksource=cpu\n[a]\n[b]\n[c]\n")
    assert [note.kind for note in found.notes] == ["harmless"]
    assert "clocksource" in found.notes[0].text


def test_commands_run_only_with_permission() -> None:
    text = "[a]\nexec_prerun=echo 3 > /proc/sys/vm/drop_caches\n"
    refusal = error(text)
    assert isinstance(refusal, RefusedError)
    assert "--allow-exec" in (refusal.hint or "")
    allowed = read_jobfiles([TextSource(text)], options=ReadOptions(allow_exec=True))
    assert allowed.jobs[0].process.exec_prerun == "echo 3 > /proc/sys/vm/drop_caches"


def test_several_files_are_separated_by_a_stonewall_and_forget_defaults() -> None:
    found = read_jobfiles([TextSource("[global]\nbs=8k\n[a]\n", "1"), TextSource("[b]\n[c]\n", "2")])
    assert [job.schedule.stonewall for job in found.jobs] == [None, True, None]
    assert blocks_of(found.jobs[1]).sizes.bs == fixed(4096)


def test_command_line_jobs() -> None:
    words = (
        "--bs=8k",
        "--name=a",
        "--rw",
        "write",
        "--time_based",
        "--runtime=5",
        "--name",
        "b",
        "--size=1m",
    )
    found = read_jobfiles([TokenSource(words)])
    assert [job.name for job in found.jobs] == ["a", "b"]
    assert blocks_of(found.jobs[0]).mix.rw == "write"
    assert found.jobs[0].limits.time_based is True
    assert found.jobs[0].limits.runtime_ns == 5 * 10**9
    assert blocks_of(found.jobs[1]).sizes.bs[0] == FixedSize(bytes=8192)
    assert found.jobs[1].placement.size == Amount(bytes=1 << 20)
    assert found.global_options == {"bs": "8k"}


def test_command_line_defaults_reach_the_job_file() -> None:
    found = read_jobfiles([TokenSource(("--runtime=5",)), TextSource("[a]\nrw=write\n")])
    assert found.jobs[0].limits.runtime_ns == 5 * 10**9


def test_sections_are_chosen_by_name() -> None:
    text = TextSource("[global]\nbs=8k\n[a]\n[b]\n")
    found = read_jobfiles([text], sections=["b"])
    assert [job.name for job in found.jobs] == ["b"]
    with pytest.raises(InputError, match="no section"):
        read_jobfiles([text], sections=["bb"])


def test_a_comment_may_be_of_any_bytes() -> None:
    found = read_jobfiles([TextSource(b"# Copyright \xa9 2021\n[a]\n; \xe9t\xe9\nbs=8k\n")])
    assert found.jobs[0].own_options == {"bs": "8k"}


@pytest.mark.parametrize("given", ["8", "1", "30"])
def test_a_switch_with_a_number_is_on(given: str) -> None:
    found = read_jobfiles([TextSource(f"[a]\nthread={given}\ntime_based=0\n")])
    assert (found.jobs[0].outputs.thread, found.jobs[0].limits.time_based) == (True, False)
    assert len([note for note in found.notes if "means 1" in note.text]) == (given != "1")
    with pytest.raises(InputError, match="expected 0 or 1"):
        read_jobfiles([TextSource("[a]\nrandrepeat=30\n")])


@pytest.mark.parametrize("name", ["aio", "linuxaio", "aio-old"])
def test_libaio_has_fios_other_names(name: str) -> None:
    assert read_jobfiles([TextSource(f"[a]\nioengine={name}\n")]).jobs[0].engine.ioengine == "libaio"


def test_what_is_no_text_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "x.fio").write_bytes(b"[a]\nbs=\xff\xfe\n")
    with pytest.raises(InputError, match=r"x\.fio:2: is not UTF-8"):
        read_jobfiles([FileSource(tmp_path / "x.fio")])
    (tmp_path / "y.fio").write_bytes(b"# caf\xe9\n ; \xa9\xa9\xa9\n[a]\nbs=8k\nsize=\xff\n")
    with pytest.raises(InputError, match=r"y\.fio:5: is not UTF-8"):
        read_jobfiles([FileSource(tmp_path / "y.fio")])
    with pytest.raises(InputError, match="cannot read the job file"):
        read_jobfiles([FileSource(tmp_path / "none.fio")])
    with pytest.raises(InputError, match="is a directory, not a job file"):
        read_jobfiles([FileSource(tmp_path)])


def fio_names() -> set[str]:
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")

    def words(*arguments: str) -> str:
        return subprocess.run([fio, *arguments], capture_output=True, text=True, check=False).stdout

    names = set(re.findall(r"^\s*([a-z][\w-]*)\s*:", words("--cmdhelp=all"), re.MULTILINE))
    for engine in words("--enghelp").split()[3:]:
        names |= set(re.findall(r"^\s*([a-z][\w-]*)\s*: ", words(f"--enghelp={engine}"), re.MULTILINE))
    for name in list(names):
        found = re.search(r"^\s*alias: (\S+)", words(f"--cmdhelp={name}"), re.MULTILINE)
        names |= {found[1]} if found else set()
    return names


@pytest.mark.nightly  # It starts fio 300 times, and changes only with fio's version.
def test_the_table_has_every_option_of_the_installed_fio() -> None:
    names = fio_names()
    assert len(names) > 250
    assert sorted(names - set(BY_NAME)) == []


def test_every_declined_option_says_why() -> None:
    assert [
        option.name for option in BY_NAME.values() if option.verdict != "honoured" and not option.why
    ] == []


def test_fios_reading_of_a_range_with_shares_stops_at_the_slash() -> None:
    text = "[a]\nbsrange=512/25:1k:25:2k/25\n"
    found = read(text, strict=True)
    assert blocks_of(found.jobs[0]).sizes.bs[0] == SizeRange(min_bytes=512, max_bytes=1024)
    assert {note.kind for note in found.notes} == {"trap"}
    assert "512/25" in error(text).message


@pytest.mark.parametrize(("word", "means"), [("verify", "verify"), ("io", "io"), ("1", "all")])
def test_continue_on_error_takes_fios_words(word: str, means: str) -> None:
    found = read(f"[a]\nfilename=/tmp/x\nrw=write\nsize=1m\ncontinue_on_error={word}\n")
    assert found.jobs[0].errors.continue_on_error == means


@pytest.mark.parametrize(
    "text",
    ["[global]\nfilename=/a:/b\n[job]\nfilename=/c\n", "[job]\nfilename=/a\nfilename=/b:/c\n"],
)
def test_names_of_files_add_up_in_fio(text: str) -> None:
    strict, found = read(text + "size=1m\n", strict=True), read(text + "size=1m\n")
    assert [target.path for target in strict.jobs[0].placement.targets] == ["/a", "/b", "/c"]
    assert [target.path for target in found.jobs[0].placement.targets] == text.strip().rpartition("=")[
        2
    ].split(":")
    for taken, said in ((strict, "all are used"), (found, "only")):
        assert [said in note.text for note in taken.notes if "fio would use its files" in note.text] == [True]
