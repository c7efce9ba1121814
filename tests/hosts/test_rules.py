"""The rules about hosts, each with a case that it finds and one that it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadstone.audit.case import Case, Figure, HostFigures, OpMeasurement, SharedByHosts
from loadstone.audit.rule import CannotTell, Clear, Finding, NotMine
from loadstone.audit.rules import clock_skew, host_is_limit, hosts_overlap, hosts_unequal


def host(name: str, iops: float = 1000.0, **changes: Any) -> HostFigures:
    made = HostFigures(
        name=name,
        operations=int(iops * 10),
        iops=Figure(iops, iops / 100),
        start_skew_ns=0,
        clock_error_ns=1000,
        limited_by=None,
        confidence=0.0,
        jobs=("a",),
        paced=False,
    )
    return replace(made, **changes)


def case(*hosts: HostFigures, **changes: Any) -> Case:
    fields: dict[str, Any] = {"seconds": 10.0, "shared": ()} | changes
    return Case(
        name="all hosts",
        source="hosts",
        jobs=(),
        total=OpMeasurement(operations=1),
        ops={},
        hosts=hosts,
        **fields,
    )


def found(answer: object) -> Finding:
    assert isinstance(answer, tuple)
    return answer[0]  # type: ignore[no-any-return]


def test_a_start_that_is_spread_over_the_run_is_found_by_its_share() -> None:
    judge = clock_skew.RULE.judge
    assert judge(case(host("a"), host("b", start_skew_ns=50_000_000))) == Clear()
    assert found(judge(case(host("a"), host("b", start_skew_ns=300_000_000)))).effect == "suspect"
    late = found(judge(case(host("a"), host("b", start_skew_ns=2_000_000_000))))
    assert (late.effect, late.evidence["start_skew_ms"]) == ("not_valid", 2000.0)
    # Clocks that are not known well are no proof that hosts started together.
    assert found(judge(case(host("a"), host("b", clock_error_ns=200_000_000)))).effect == "suspect"
    assert isinstance(judge(case(host("a"), host("b", start_skew_ns=None))), CannotTell)
    assert judge(case(host("a"))) == NotMine()


def test_a_host_that_limited_itself_limits_the_whole() -> None:
    judge = host_is_limit.RULE.judge
    assert judge(case(host("a"), host("b"))) == Clear()
    one = found(
        judge(case(host("a", 3000), host("b", limited_by="the load generator's CPU", confidence=0.9)))
    )
    assert one.effect == "limited"
    assert one.layer == "host b"
    assert one.evidence["operations_share"] == 0.25


def test_hosts_that_did_not_do_the_same_are_found_beyond_their_noise() -> None:
    judge = hosts_unequal.RULE.judge
    assert judge(case(host("a"), host("b", 1100), host("c"))) == Clear()
    assert found(judge(case(host("a"), host("b", 500), host("c")))).evidence["slowest_iops"] == 500.0
    noisy = replace(host("b"), iops=Figure(700, 200))
    assert judge(case(host("a"), noisy, host("c"))) == Clear()
    assert judge(case(host("a"), host("b", 500, jobs=("other",)))) == NotMine()
    assert judge(case(host("a"), host("b", 500, paced=True))) == NotMine()


def test_shared_data_is_found_unless_it_is_divided() -> None:
    judge = hosts_overlap.RULE.judge
    shared = SharedByHosts("/dev/sdb", ("a", "b"), written=True, divided=False, same_addresses=False)
    both = (host("a"), host("b"))
    assert judge(case(*both)) == Clear()
    assert judge(case(*both, shared=(replace(shared, divided=True),))) == Clear()
    assert found(judge(case(*both, shared=(shared,)))).confidence == 0.65
    assert found(judge(case(*both, shared=(replace(shared, same_addresses=True),)))).confidence == 0.8
    assert isinstance(judge(case(*both, shared=None)), CannotTell)


def test_to_divide_is_no_advice_for_hosts_that_only_read() -> None:
    """It is refused there: it would have no effect."""
    written = SharedByHosts("/dev/sdb", ("a", "b"), written=True, divided=False, same_addresses=False)
    advice = [
        found(hosts_overlap.RULE.judge(case(host("a"), host("b"), shared=(one,)))).advice
        for one in (written, replace(written, written=False))
    ]
    assert ["--divide" in one for one in advice] == [True, False]
