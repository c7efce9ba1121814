"""Files of every age, read."""

from __future__ import annotations

import pytest

from loadstone.errors import InputError, LoadstoneError, RefusedError
from loadstone.formats.iometer import read_icf
from loadstone.formats.iometer.managers import Settings
from loadstone.formats.recognise import Language, recognise
from tests.formats.iometer.files import DATA, HEAD, NAMES, SETUP, TAIL, text


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_recognised_and_read(name: str) -> None:
    source = (DATA / name).read_bytes()
    assert recognise(source, "whatever.txt") is Language.IOMETER
    configuration = read_icf(source, name)
    assert configuration.specs
    assert all(sum(row.percent for row in spec.rows) == 100 for spec in configuration.specs)


def test_there_are_enough_files() -> None:
    assert len(NAMES) >= 20


def test_the_setup() -> None:
    setup = read_icf((DATA / "03-depth-exponential.icf").read_bytes(), "x").setup
    assert (setup.run_ns, setup.ramp_ns) == (60 * 10**9, 5 * 10**9)
    assert (setup.depth.start, setup.depth.end, setup.depth.step) == (1, 256, 2)
    assert setup.depth.exponential
    assert setup.test_type == "CYCLE_OUTSTANDING_IOS"


def test_numbers_stood_where_words_are_now() -> None:
    configuration = read_icf((DATA / "19-1999-numbers.icf").read_bytes(), "x")
    assert configuration.setup.test_type == "CYCLE_OUTSTANDING_IOS"
    assert configuration.setup.recorded == "ALL"
    assert configuration.setup.depth.exponential
    assert configuration.specs[0].assigned == "DISK"


def test_no_cpus_were_meant_by_0_in_the_oldest_files() -> None:
    configuration = read_icf((DATA / "20-1998.icf").read_bytes(), "x")
    assert configuration.setup.disk_workers is None


def test_the_oldest_specifications_have_no_names() -> None:
    specs = read_icf((DATA / "20-1998.icf").read_bytes(), "x").specs
    assert [(spec.name, len(spec.rows)) for spec in specs] == [
        ("2 KiB random 67% reads", 1),
        ("Untitled 1", 2),
        ("64 KiB sequential reads", 1),
    ]
    assert {row.align_bytes for spec in specs for row in spec.rows} == {2048}
    assert len(read_icf((DATA / "21-oltp-3.26.97.icf").read_bytes(), "x").specs) == 3


def test_a_newer_file_may_carry_the_oldest_mark() -> None:
    source = text("4096,100,100,100,0,1,0,0").replace(b"Version 1.1.0", b"Version 3.26.97")
    assert [spec.name for spec in read_icf(source, "x").specs] == ["mix"]


def test_a_manager_without_a_name_is_called_by_its_number() -> None:
    source = (DATA / "13-all-in-one.icf").read_bytes()
    assert b"\t1,HOST" in source
    (manager,) = read_icf(source.replace(b"\t1,HOST", b"\t1,"), "x").managers
    assert manager.name == "1"


def test_a_worker() -> None:
    (manager,) = read_icf((DATA / "13-all-in-one.icf").read_bytes(), "x").managers
    (worker,) = manager.workers
    assert (manager.name, worker.name) == ("HOST", "Worker 1")
    assert worker.settings == Settings(4, seed=4711, max_sectors=409600, start_sector=0, data_pattern=2)
    assert worker.specs[0][0] == "All in one"
    assert worker.targets[0].name == "/data/iometer.dat"


def test_letters_of_the_code_page_of_that_time() -> None:
    configuration = read_icf((DATA / "18-2008-random-data.icf").read_bytes(), "x")
    assert configuration.specs[0].name == "Geschäftsdaten"
    worker = configuration.managers[0].workers[0]
    assert worker.targets[0].name == 'D: "Büro"'
    assert worker.settings.data_pattern == 2


def test_a_target_with_settings_of_its_own_and_a_key_without_value() -> None:
    (manager,) = read_icf((DATA / "23-by-a-script.icf").read_bytes(), "x").managers
    (worker,) = manager.workers
    assert manager.address == ""
    assert worker.settings.outstanding_ios == 4
    assert [t.settings.outstanding_ios if t.settings else None for t in worker.targets] == [32, None]


def test_a_specification_again_replaces_the_first() -> None:
    one = text("4096,100,100,100,0,1,0,0")
    spec = one[one.index(b"'Access spec") : one.index(b"'END access")]
    twice = one.replace(b"'END access", spec.replace(b"4096", b"8192") + b"'END access")
    configuration = read_icf(twice, "x")
    assert [spec.rows[0].size_bytes for spec in configuration.specs] == [8192]
    assert "replaces the first" in configuration.notes[0].text


def refused(source: bytes, kind: type[LoadstoneError] = InputError) -> LoadstoneError:
    with pytest.raises(kind) as caught:
        read_icf(source, "test.icf")
    assert type(caught.value) is kind
    assert caught.value.where is not None
    assert caught.value.where.file == "test.icf"
    return caught.value


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        (["4096,100,100,100,0,1,0"], 11, "expected 8 whole numbers"),
        (["4096,100,100,100,0,1,0,zero"], 11, "expected 8 whole numbers"),
        (["4096,99,100,100,0,1,0,0"], 9, "add up to 99 %"),
        (["4096,50,100,100,0,1,0,0", "512,51,100,100,0,1,0,0"], 9, "add up to 101 %"),
        (["4096,100,101,100,0,1,0,0"], 11, "% reads is 101"),
        (["4096,100,-1,100,0,1,0,0"], 11, "expected 8 whole numbers"),
        (["1000,100,100,100,0,1,0,0"], 11, "size is 1000, expected a multiple of 512"),
        (["0,100,100,100,0,1,0,0"], 11, "size is 0"),
        (["4294967296,100,100,100,0,1,0,0"], 11, "below 2 GiB"),
        (["4096,100,100,100,0,1,100,0"], 11, "align is 100"),
        (["4096,100,100,100,0,4294967296,0,0"], 11, "burst is 4294967296"),
        ([], 9, "add up to 0 %"),
    ],
)
def test_wrong_rows_are_told_by_line(rows: list[str], line: int, words: str) -> None:
    error = refused(text(*rows))
    assert words in error.message
    assert error.where is not None
    assert error.where.line == line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"Version 1.1.0\n'TEST", b"[global]\n'TEST", "expected a version"),
        (b"\t0 0 30", b"\t0 30", "expected 3 whole numbers (hours, minutes, seconds)"),
        (b"\t0 0 30", b"\t0 0 99999999999999999", "below 292 years"),
        (b"'Run Time", b"'Run Tim", "no key 'run tim'"),
        (b"'END test setup\n", b"'Test Type\n\tCYCLE\n'END test setup\n", "found 'CYCLE'"),
        (b"'END test setup\n", b"'Test Type\n\t9\n'END test setup\n", "a number up to 7"),
        (b"'END test setup\n", b"'Disk Cycling\n\t1 LINEAR\n'END test setup\n", "start, step and LINEAR"),
        (b"'END test setup\n", b"'Record Results\n'END test setup\n", "there is no value"),
        (b"mix,ALL", b"mix,SOME", "one of NONE, ALL, DISK, NET"),
        (b"'size,% of", b"'sise,% of", "no line of column names"),
        (b"'ACCESS SPEC", b"'ACCES SPEC", "expected a section"),
        (b"'END access specifications\nVersion 1.1.0\n", b"", "the file ends inside"),
        (
            b"'END access specifications\nVersion 1.1.0\n",
            b"'END access specifications\nVersion 1.1.0\nmore",
            "after the version",
        ),
    ],
)
def test_what_is_wrong_is_told(old: bytes, new: bytes, words: str) -> None:
    source = text("4096,100,100,100,0,1,0,0")
    assert old in source
    assert words in refused(source.replace(old, new, 1)).message


def test_the_nearest_name_is_told() -> None:
    source = text("4096,100,100,100,0,1,0,0", more="'Test Type\n\tCYCLE_TARGET\n")
    assert refused(source).hint == "did you mean 'CYCLE_TARGETS'?"
    source = text("4096,100,100,100,0,1,0,0").replace(b"'Run Time", b"'Run Tme")
    assert refused(source).hint == "did you mean 'run time'?"


def test_a_network_worker_is_refused() -> None:
    source = (DATA / "01-normal.icf").read_bytes().replace(b"\tDISK", b"\tNETWORK,TCP", 1)
    error = refused(source, RefusedError)
    assert "loads a network" in error.message


def with_rate(settings: bytes) -> bytes:
    """A configuration with other settings in the place of `depth,test,transactions`."""
    return (DATA / "01-normal.icf").read_bytes().replace(b"16,DISABLED,1", settings, 1)


@pytest.mark.parametrize(
    ("written", "transactions"),
    [(b"16,DISABLED,1", None), (b"16,DISABLED,0", None), (b"16,ENABLED,1", 1), (b"16,enabled, 5000", 5000)],
)
def test_the_transactions_of_a_connection_count_where_its_rate_is_tested(
    written: bytes, transactions: int | None
) -> None:
    (manager,) = read_icf(with_rate(written), "x").managers
    settings = manager.workers[0].settings
    assert (settings.outstanding_ios, settings.transactions_per_connection) == (16, transactions)


@pytest.mark.parametrize(
    ("written", "kind", "words"),
    [
        (b"16,ENABLED,0", RefusedError, "does no I/O"),
        (b"16,ENABLED,-1", InputError, "transactions per connection"),
        (b"16,ENABLED,2147483648", InputError, "0 to 2147483647"),
        (b"16,ENABLED,", InputError, "transactions per connection"),
        (b"16,ENABLE,1", InputError, "ENABLED or DISABLED"),
    ],
)
def test_a_connection_without_a_number_of_transactions_is_refused(
    written: bytes, kind: type[LoadstoneError], words: str
) -> None:
    assert words in refused(with_rate(written), kind).message


@pytest.mark.parametrize(
    "source", [b"", b"\n\n", b"Version 1.1.0", (HEAD + SETUP.format(more="") + TAIL).encode()]
)
def test_files_with_little_in_them(source: bytes) -> None:
    if source.strip():
        assert read_icf(source, "x").specs == []
    else:
        refused(source)
