"""Rules about the storage's own side: what a watched host tells, and what they make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from loadstone.analysis import watched
from loadstone.analysis.summary import summarise
from loadstone.audit.from_bundle import client_disks
from loadstone.audit.judge import judge_case
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine
from loadstone.audit.rules import (
    background_work,
    storage_cpu,
    storage_disk,
    storage_link,
    storage_memory_cache,
    throttled,
    write_amplification,
)
from loadstone.audit.run import cases_of_run
from loadstone.audit.watched_hosts import Watched
from loadstone.bundle.read import Bundle
from loadstone.path.layers import DataPath, Layer
from tests.audit.cases import disk, file, run
from tests.audit.test_course_rules import loop, on_time
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case

S = 1_000_000_000
RULES = (storage_cpu, storage_link, storage_memory_cache, write_amplification, background_work, storage_disk)
PLAIN = {"host": "nas", "memory_bytes": 1 << 34, "boot_id": "x", "system": "Linux"}


def cpu(busy: float, core: str = "all") -> dict[str, float]:
    return {f"cpu.{core}.user_ns": busy * S, f"cpu.{core}.idle_ns": (1 - busy) * S}


def host(
    per_second: dict[str, float],
    *,
    kind: str = "ssh",
    seconds: int = 10,
    name: str = "nas",
    same: bool = False,
    facts: dict[str, Any] | None = None,
) -> Watched:
    """A host whose rows all say the same."""
    rows = pl.DataFrame(
        {
            "t_ns": [S * (at + 1) for at in range(seconds)],
            "dt_ns": [S] * seconds,
            **{key: [round(value)] * seconds for key, value in per_second.items()},
        }
    )
    known = PLAIN | (facts or {})
    tracks = {one.key: one for one in watched.tracks(rows, known)}
    return Watched(name, kind, known, rows, same, tracks)


def asks(rule: Any, case: Case, *hosts: Watched) -> Answer:
    answer: Answer = rule.RULE.judge(replace(case, watched=hosts))
    return answer


def one(answer: Answer) -> Finding:
    assert isinstance(answer, tuple), answer
    assert len(answer) == 1
    return answer[0]


def test_a_local_disk_is_the_storage_and_a_device_over_a_served_file_the_way_to_it() -> None:
    """Seen with --watch me=local: the disk that did all I/O was left out, and memory had answered."""
    disk_here = (
        Layer(name="/data/f", kind="file", below=("ext4 on /data",)),
        Layer(name="ext4 on /data", kind="file_system", below=("vda",)),
        Layer(name="vda", kind="disk", counters="block.vda"),
    )
    served = (
        Layer(name="loop1", kind="loop", below=("/run/x",), counters="block.loop1"),
        Layer(name="/run/x", kind="file", below=("fuse on /run/x",)),
        Layer(name="fuse on /run/x", kind="fuse"),
    )
    local, remote = (
        file(path_layers=DataPath(target=layers[0].name, layers=layers)) for layers in (disk_here, served)
    )
    assert client_disks([local]) == set()
    assert "loop1" in client_disks([local, remote])
    assert "vda" not in client_disks([local, remote])
    assert client_disks([disk(carriers=("block.sda",), path_layers=None)]) == {"sda"}


@pytest.mark.parametrize("rule", RULES)
def test_without_watched_hosts_no_rule_says_anything(rule: Any) -> None:
    assert isinstance(asks(rule, run(1000.0)), NotMine)


@pytest.mark.parametrize("rule", [storage_cpu, storage_link, storage_disk])
def test_what_was_not_told_is_missing_and_not_zero(rule: Any) -> None:
    assert isinstance(asks(rule, run(1000.0), host({"memory.free_bytes": 5})), CannotTell)
    assert isinstance(asks(rule, run(1000.0), host(cpu(0.5), seconds=1)), CannotTell)
    # A host that was lost for most of the time may have done anything in it.
    missing = asks(rule, run(1000.0, seconds=60), host(cpu(0.99), seconds=10))
    assert isinstance(missing, CannotTell)
    assert "60" in missing.missing


def test_full_cpus_limit_and_busy_ones_do_not() -> None:
    found = one(asks(storage_cpu, run(1000.0), host(cpu(0.95))))
    assert (found.effect, found.layer, round(float(found.evidence["busy_percent"]))) == (
        "limited",
        "CPU of nas",
        95,
    )
    assert isinstance(asks(storage_cpu, run(1000.0), host(cpu(0.85))), Clear)


def test_one_full_core_is_suspect() -> None:
    found = one(asks(storage_cpu, run(1000.0), host(cpu(0.3) | cpu(0.99, "3") | cpu(0.1, "2"))))
    assert (found.effect, "core 3" in found.text) == ("suspect", True)


def test_a_containers_limit_is_told_also_on_our_own_machine() -> None:
    limited = cpu(0.5) | {"group.used_ns": 0.19 * S, "group.periods_count": 10, "group.throttled_count": 9}
    for same in (False, True):
        found = one(asks(storage_cpu, run(1000.0), host(limited, same=same, facts={"cpu_limit": 0.2})))
        assert (found.effect, found.evidence["limit_cpus"]) == ("limited", 0.2)
    free = limited | {"group.used_ns": 0.05 * S, "group.throttled_count": 0}
    assert isinstance(asks(storage_cpu, run(1000.0), host(free, same=True, facts={"cpu_limit": 0.2})), Clear)
    # Without a limit the machine's CPUs are the load generator's, too.
    assert isinstance(asks(storage_cpu, run(1000.0), host(cpu(1.0), same=True)), CannotTell)


def links(**speeds: int) -> dict[str, Any]:
    return {"links": {name: {"bits_per_s": value} for name, value in speeds.items()}}


def test_a_full_link_by_its_own_rate() -> None:
    net = {
        "net.eth0.rx_bytes": 3e6,
        "net.eth0.tx_bytes": 122e6,
        "net.lo.rx_bytes": 1e9,
        "net.lo.tx_bytes": 1e9,
    }
    found = one(asks(storage_link, run(1000.0), host(net, facts=links(eth0=10**9))))
    assert (found.effect, found.evidence["interface"], found.layer) == ("limited", "eth0", "link eth0 of nas")
    assert isinstance(
        asks(storage_link, run(1000.0), host(net, facts=links(eth0=10**10))), tuple
    )  # steady 1 Gbit/s
    slower = net | {"net.eth0.tx_bytes": 90e6}
    assert isinstance(asks(storage_link, run(1000.0), host(slower, facts=links(eth0=10**9))), Clear)
    shaped = {"links": {"eth0": {"bits_per_s": 10**10, "shaped_bits_per_s": 200_000_000}}}
    assert (
        one(asks(storage_link, run(1000.0), host({"net.eth0.tx_bytes": 24e6}, facts=shaped))).confidence > 0.9
    )


def test_a_link_is_full_by_what_its_counters_can_show() -> None:
    def asked(rate: float, frame: float, **told: int) -> Answer:
        net = {"net.eth0.tx_bytes": rate, "net.eth0.tx_packets": rate / frame}
        return asks(
            storage_link, run(1000.0), host(net, facts={"links": {"eth0": {"mtu_bytes": 1500, **told}}})
        )

    gigabit = {"bits_per_s": 10**9}
    shaped = {"bits_per_s": 10**10, "shaped_bits_per_s": 10**9}
    # Whole frames without gaps: 98.4 % of the rate, of which 95 % is full.
    assert isinstance(asked(0.94 * 125e6, 1514, **gigabit), tuple)
    assert isinstance(asked(0.93 * 125e6, 1514, **gigabit), Clear)
    # A virtual interface counts frames without most of their headers.
    assert isinstance(asked(0.90 * 125e6, 30_000, **gigabit), tuple)
    assert isinstance(asked(0.92 * 125e6, 30_000, **shaped), tuple)
    assert isinstance(asked(0.90 * 125e6, 30_000, **shaped), Clear)
    # A queue's limit has no gaps.
    assert isinstance(asked(0.93 * 125e6, 1514, **shaped), Clear)


def test_a_link_that_was_full_for_most_of_the_time_is_named_whatever_came_between() -> None:
    def asked(*shares: float) -> Answer:
        rows = pl.DataFrame(
            {
                "t_ns": [S * (at + 1) for at in range(len(shares))],
                "dt_ns": [S] * len(shares),
                "net.eth0.tx_bytes": [round(share * 125e6) for share in shares],
            }
        )
        known = PLAIN | links(eth0=10**9)
        tracks = {one.key: one for one in watched.tracks(rows, known)}
        return asks(
            storage_link, run(1000.0, seconds=len(shares)), Watched("nas", "ssh", known, rows, False, tracks)
        )

    found = one(asked(0.97, 0.98, 0.6, 0.98, 0.97, 0.0, 0.97))
    assert round(float(found.evidence["full_for_percent_of_the_time"])) == 71
    assert found.effect == "limited"
    assert isinstance(asked(0.97, 0.7, 0.6, 0.98, 0.6, 0.5, 0.97), Clear)
    # The same mean, and never full.
    assert isinstance(asked(*[0.78] * 7), Clear)


def test_a_rate_nobody_told_is_guessed_only_when_nothing_else_is_full() -> None:
    net = {"net.eth0.rx_bytes": 3e6, "net.eth0.tx_bytes": 122e6}
    found = one(asks(storage_link, run(1000.0), host(net | cpu(0.2))))
    assert (found.effect, found.confidence) == ("limited", 0.75)
    assert not isinstance(asks(storage_link, run(1000.0), host(net | cpu(0.95))), tuple)
    odd = {"net.eth0.tx_bytes": 70e6}
    assert isinstance(asks(storage_link, run(1000.0), host(odd)), CannotTell)


def disks(**values: float) -> dict[str, float]:
    return {f"disk.sda.{key}": value for key, value in values.items()}


def test_reads_answered_by_memory() -> None:
    case = run(10_000.0)  # 39 MiB/s of reads
    found = one(
        asks(
            storage_memory_cache,
            case,
            host(disks(read_bytes=1e6, write_bytes=0) | {"memory.cached_bytes": 5e9}),
        )
    )
    assert (found.effect, found.layer) == ("limited", "memory of nas")
    assert found.evidence["memory_cache_bytes"] == 5e9
    assert one(asks(storage_memory_cache, case, host(disks(read_bytes=0.7 * 40.96e6)))).effect == "suspect"
    assert isinstance(asks(storage_memory_cache, case, host(disks(read_bytes=40.96e6))), Clear)
    assert isinstance(asks(storage_memory_cache, case, host(cpu(0.5))), CannotTell)


def test_loops_of_unknown_place_are_no_ground_for_a_verdict() -> None:
    case = run(10_000.0)
    unclear = {"disk.loop0.read_bytes": 40.96e6, "disk.sda.read_bytes": 1e5}
    by_snmp = host(unclear, kind="snmp")
    by_snmp = replace(by_snmp, facts={key: value for key, value in by_snmp.facts.items() if key != "boot_id"})
    assert isinstance(asks(storage_memory_cache, case, by_snmp), CannotTell)


def test_copies_amplify_writes_and_devices_above_others_do_not() -> None:
    case = run(10_000.0, op="write")
    twice = {"disk.sda.write_bytes": 41e6, "disk.sdb.write_bytes": 41e6, "disk.md0.write_bytes": 41e6}
    over = {"disks": {"md0": {"over": ["sda", "sdb"]}}}
    found = one(asks(write_amplification, case, host(twice, facts=over)))
    assert (found.effect, found.evidence["factor"], found.evidence["disks"]) == ("note", 2.0, "sda, sdb")
    assert isinstance(asks(write_amplification, case, host(disks(write_bytes=41e6))), Clear)
    assert isinstance(asks(write_amplification, run(10_000.0), host(twice, facts=over)), NotMine)
    assert isinstance(
        asks(write_amplification, case, host(twice, seconds=5, facts=over)), CannotTell | NotMine
    )


def now_and_then(made: Watched, per_burst: dict[str, float]) -> Watched:
    """Columns that grow in every third second only, three times as much: another load's."""
    when = pl.when(pl.int_range(pl.len()) % 3 == 0)
    more = [when.then(round(3 * value)).otherwise(0).alias(key) for key, value in per_burst.items()]
    return replace(made, rows=made.rows.with_columns(more))


def test_what_others_do_on_the_storages_disks_is_not_its_own_work() -> None:
    """On 31 honest watched runs beside other loads 10 were told of amplified writes, and 5 of trims."""
    case = run(10_000.0, op="write")
    beside = {"disk.sdb.write_bytes": 41e6, "disk.sdb.trim_bytes": 41e6}
    made = now_and_then(host(disks(write_bytes=41e6, trim_bytes=0)), beside)
    unclear = asks(write_amplification, case, made)
    assert isinstance(unclear, CannotTell)
    assert "not in the seconds of the load" in unclear.missing
    assert isinstance(asks(background_work, case, made), Clear)
    # Where no disk is in step with the load, it may be a cache that writes later.
    late = now_and_then(host({"cpu.all.idle_ns": S}), {"disk.sda.write_bytes": 90e6})
    assert isinstance(asks(write_amplification, case, late), CannotTell)


def test_work_of_the_storages_own() -> None:
    case = run(10_000.0)
    calm = disks(read_bytes=41e6, write_bytes=0, trim_bytes=0)
    assert isinstance(asks(background_work, case, host(calm | {"work.md0.running": 0})), Clear)
    found = one(asks(background_work, case, host(calm | {"work.md0.running": 1, "work.md0.resync": 1})))
    assert (found.effect, "resync" in found.text) == ("suspect", True)
    assert "degraded" in one(asks(background_work, case, host(calm | {"work.md0.degraded": 1}))).text
    trimmed = one(asks(background_work, case, host(calm | {"disk.sda.trim_bytes": 20e6})))
    assert trimmed.evidence["trimmed_bytes"] == 200e6
    elsewhere = calm | {"disk.sdb.trim_bytes": 20e6, "disk.sdb.read_bytes": 1e5}
    assert isinstance(asks(background_work, case, host(elsewhere)), Clear)
    # Somebody works on another disk: in one second it moves a good part of what the load does in all.
    made = host(calm | {"disk.sdb.trim_bytes": 0, "disk.sdb.read_bytes": 0})
    once = pl.when(pl.int_range(pl.len()) == 3)
    burst = made.rows.with_columns(
        once.then(90_000_000).otherwise(0).alias(f"disk.sdb.{what}_bytes") for what in ("trim", "read")
    )
    assert isinstance(asks(background_work, case, replace(made, rows=burst)), Clear)
    written = one(asks(background_work, case, host(calm | {"disk.sda.write_bytes": 30e6})))
    assert "only read" in written.text
    assert isinstance(asks(background_work, case, host(calm, kind="snmp")), CannotTell)


def test_the_disk_that_is_busy_is_a_note() -> None:
    found = one(
        asks(storage_disk, run(1000.0), host(disks(busy_ns=0.98 * S, queue_time_ns=3 * S, read_bytes=1e6)))
    )
    assert (found.effect, found.evidence["disk"], found.evidence["mean_queue"]) == ("note", "sda", 3.0)
    assert isinstance(asks(storage_disk, run(1000.0), host(disks(busy_ns=0.5 * S, read_bytes=1e6))), Clear)


def test_what_is_said_begins_with_the_disk_that_is_busy(tmp_path: Path) -> None:
    """Nothing was tried, and the storage's own disk was at its end: that is the answer."""
    made = runs.make(tmp_path / "run", MadeJob("a", {"read": 1000.0}, median_ns=30e6), seconds=10.0)
    case = cases_of_run(summarise(Bundle.open(made.path)))[0]
    seen = host(disks(busy_ns=0.99 * S, queue_time_ns=3 * S, read_bytes=4e6))
    said = judge_case(replace(case, watched=(seen,)))
    assert said.kind == "measures_storage"
    assert said.sentences.startswith("Disk sda of nas")
    assert "No probes were run" in said.sentences


def test_the_limit_of_a_busy_disk_is_named_for_the_disk() -> None:
    """`make watch` said "a limiter" of a server's disk that does one I/O after the other."""
    found = []
    for busy in (0.5, 0.98):
        seen = host(disks(busy_ns=busy * S, read_bytes=1e6))
        found += [one(throttled.RULE.judge(replace(loop(on_time(2e6, 200e3)), watched=(seen,))))]
    assert [each.layer for each in found] == ["a limiter", "disk sda of nas"]


def test_a_machine_watched_in_several_ways_is_one() -> None:
    by_ssh, by_snmp = host(cpu(0.95)), host(cpu(0.97), kind="snmp", name="nas-snmp")
    assert "nas " in one(asks(storage_cpu, run(1000.0), by_snmp, by_ssh)).text
    other = host(cpu(0.95), name="b", facts={"host": "b"})
    answer = asks(storage_cpu, run(1000.0), by_ssh, other)
    assert isinstance(answer, tuple)
    assert len(answer) == 2
    # The way that cannot tell leaves it to the one that can.
    assert isinstance(asks(storage_cpu, run(1000.0), host({"memory.free_bytes": 1}), by_snmp), tuple)


def test_quantities_of_a_group_have_its_own_time() -> None:
    rows = pl.DataFrame(
        {
            "t_ns": [S, 2 * S, 3 * S],
            "dt_ns": [S] * 3,
            "net.e.tx_bytes": [None, None, 300],
            "net.dt_ns": [None, None, 3 * S],
        }
    )
    tracks = {one.key: one for one in watched.tracks(rows, {})}
    assert tracks["net_tx_bytes_per_s"].mean.value == 100
    assert "cpu_percent" not in tracks


def test_a_look_right_after_another_is_no_largest_value() -> None:
    rows = pl.DataFrame(
        {
            "t_ns": [S, 2 * S, 2 * S + S // 100],
            "dt_ns": [S, S, S // 100],
            "net.e.tx_bytes": [100, 100, 100],
        }
    )
    tracks = {one.key: one for one in watched.tracks(rows, {})}
    assert tracks["net_tx_bytes_per_s"].most == 100
