"""What hosts may do, from what they saw: consent for one device of one host, and shared devices."""

from __future__ import annotations

import pytest

from loadstone.errors import InputError, RefusedError, Where
from loadstone.hosts.agreement import agree, used_by_each_other
from loadstone.hosts.assignment import SeenTarget
from loadstone.hosts.hosts_file import SharedTarget
from loadstone.plan.safety.guard import Consent


def seen(path: str = "/dev/sdb", identity: str | None = None, **changes: object) -> SeenTarget:
    fields = {"path": path, "identity": identity, "written": True, "size_bytes": 1 << 30, "kind": "block"}
    return SeenTarget.model_validate(fields | changes)


def given(*paths: str) -> Consent:
    return Consent(frozenset(paths))


def test_consent_for_one_host_is_none_for_another() -> None:
    two = {"a": [seen(needs_consent=["it holds ext4"])], "b": [seen(needs_consent=["it holds xfs"])]}
    with pytest.raises(RefusedError) as refused:
        agree(two, given("a:/dev/sdb"), divide=False)
    assert "b:/dev/sdb: it holds xfs" in str(refused.value)
    assert "a:/dev/sdb" not in str(refused.value)
    assert refused.value.hint is not None
    assert "--i-accept-data-loss b:/dev/sdb" in refused.value.hint
    found = agree(two, given("a:/dev/sdb", "b:/dev/sdb"), divide=False)
    assert found.consent == {"a": ["/dev/sdb"], "b": ["/dev/sdb"]}


def test_what_is_in_use_on_any_host_is_refused_whatever_was_agreed() -> None:
    two = {"a": [seen()], "b": [seen(in_use=["it is mounted on /"])]}
    with pytest.raises(RefusedError, match="b: /dev/sdb: it is mounted"):
        agree(two, given("a:/dev/sdb", "b:/dev/sdb"), divide=True)


def test_a_refusal_names_where_the_targets_were_named() -> None:
    """A local run did, and one on hosts said nothing of file, line and option."""
    first, second = Where("t.fio", 6, "filename"), Where("t.fio", 8, "filename")
    used = {"a": [seen(in_use=["it is swap"], named_at=first)], "b": [seen("/dev/sdc", named_at=second)]}
    with pytest.raises(RefusedError) as refused:
        agree(used, given(), divide=False)
    assert refused.value.where == first
    text = "refused on every host, because of:\n  a: /dev/sdb: it is swap"
    assert refused.value.message == text
    lost = {
        "a": [seen(needs_consent=["it holds ext4"], named_at=first)],
        "b": [seen("/dev/sdc", needs_consent=["it holds text"], named_at=second)],
    }
    with pytest.raises(RefusedError) as refused:
        agree(lost, given(), divide=False)
    assert refused.value.message == (
        "these would be overwritten:\n  a:/dev/sdb (t.fio:6: filename): it holds ext4"
        "\n  b:/dev/sdc (t.fio:8: filename): it holds text"
    )
    shared = {host: [seen(identity="naa.1", named_at=first)] for host in ("a", "b")}
    with pytest.raises(RefusedError) as refused:
        agree(shared, given(), divide=False)
    assert refused.value.where == first
    laid_out = {host: [seen(identity="naa.1", named_at=first, laid_out_by_run=True)] for host in ("a", "b")}
    with pytest.raises(RefusedError, match="every host would lay it out") as refused:
        agree(laid_out, given(), divide=False)
    assert refused.value.where == first


def test_only_hosts_that_see_one_target_of_one_kernel_may_have_seen_each_other() -> None:
    used = ["python3 (process 7) has it open"]
    seen_targets = {
        "a": [seen("/a", "file 1", in_use=used)],
        "b": [seen("/b", "file 1")],
        "c": [seen("/c", "file 1", in_use=used)],
        "d": [seen("/d", "file 2", in_use=used)],
    }
    kernels = {"a": "1", "b": "1", "c": "2", "d": "1"}
    assert used_by_each_other(seen_targets, kernels) == ["a"]


def test_one_lun_under_two_names_is_recognised_and_refused() -> None:
    two = {"a": [seen("/dev/sdb", "naa.1")], "b": [seen("/dev/sdc", "naa.1")]}
    with pytest.raises(RefusedError, match="a:/dev/sdb, b:/dev/sdc are the same"):
        agree(two, given(), divide=False)
    found = agree(two, given(), divide=True)
    assert [(one.index, one.count, one.paths) for one in found.divisions.values()] == [
        (0, 2, ("/dev/sdb",)),
        (1, 2, ("/dev/sdc",)),
    ]
    assert agree(two, given("shared:/dev/sdb"), divide=False).divisions == {}


def test_parts_are_not_advised_for_a_tree_that_has_none() -> None:
    """The hint was --divide, which is refused for a tree."""
    two = {host: [seen("/mnt/tree", "fs1:5", kind="tree")] for host in ("a", "b")}
    with pytest.raises(RefusedError) as refused:
        agree(two, given(), divide=False)
    assert "--divide" not in str(refused.value.hint)
    assert "anchor of its own" in str(refused.value.hint)
    assert "shared:/mnt/tree" in str(refused.value.hint)


def test_what_a_host_uses_in_two_ways_is_written_where_one_of_them_writes() -> None:
    """The way that was planned last stood for both: a job that only read hid one that wrote."""
    ways = [seen(identity="naa.1"), seen(identity="naa.1", written=False)]
    for order in (ways, ways[::-1]):
        with pytest.raises(RefusedError, match="a:/dev/sdb, b:/dev/sdb are the same"):
            agree({"a": order, "b": order}, given(), divide=False)
    laid_out = [seen(identity="x", laid_out_by_run=True), seen(identity="x", written=False)]
    with pytest.raises(RefusedError, match="lay it out"):
        agree({"a": laid_out, "b": laid_out}, given(), divide=True)


def test_all_paths_of_one_host_to_one_device_are_divided() -> None:
    paths = [seen("/dev/sdb", "naa.1", written=False), seen("/dev/sdc", "naa.1")]
    two = {"a": paths, "b": [seen("/dev/sdd", "naa.1")]}
    with pytest.raises(RefusedError, match="a:/dev/sdb, a:/dev/sdc, b:/dev/sdd are the same"):
        agree(two, given(), divide=False)
    found = agree(two, given(), divide=True)
    assert {host: one.paths for host, one in found.divisions.items()} == {
        "a": ("/dev/sdb", "/dev/sdc"),
        "b": ("/dev/sdd",),
    }
    assert found.changed_elsewhere == {"a": ["/dev/sdb", "/dev/sdc"], "b": ["/dev/sdd"]}
    assert [one.paths for one in found.shared] == [{"a": "/dev/sdc", "b": "/dev/sdd"}]
    assert agree(two, given("shared:/dev/sdc"), divide=False).divisions == {}


def test_a_device_and_its_partition_on_another_host_are_one() -> None:
    two = {"a": [seen("/dev/sdb", "naa.1")], "b": [seen("/dev/sdc1", "naa.1 from sector 2048")]}
    with pytest.raises(RefusedError, match=r"a:/dev/sdb, b:/dev/sdc1 are the same \(naa.1\)"):
        agree(two, given(), divide=False)
    with pytest.raises(RefusedError, match="a device and a partition of it"):
        agree(two, given(), divide=True)
    apart = {"a": [seen("/dev/sdb2", "naa.1 from sector 4096")], "b": two["b"]}
    assert agree(apart, given(), divide=False).shared == ()
    # Who writes the device writes what both of the others use.
    with pytest.raises(RefusedError, match="a:/dev/sdb2, b:/dev/sdc1, c:/dev/sdb are the same"):
        agree({**apart, "c": two["a"]}, given(), divide=False)


def test_one_file_that_hosts_mounted_by_other_addresses_is_known_by_its_handle() -> None:
    two = {
        "a": [seen("/mnt/f", "10.0.0.5:/exp file 7", also=("NFS file handle 12",))],
        "b": [seen("/mnt/f", "10.1.0.5:/exp file 7", also=("NFS file handle 12",))],
    }
    with pytest.raises(RefusedError, match=r"a:/mnt/f, b:/mnt/f are the same"):
        agree(two, given(), divide=False)
    # One whose kernel tells no handle is known by address and number.
    two["c"] = [seen("/mnt/f", "10.1.0.5:/exp file 7")]
    with pytest.raises(RefusedError, match=r"a:/mnt/f, b:/mnt/f, c:/mnt/f are the same"):
        agree(two, given(), divide=False)


def test_a_device_without_a_name_may_be_declared_as_shared() -> None:
    two = {"a": [seen("/dev/vdb")], "b": [seen("/dev/vdc")]}
    assert agree(two, given(), divide=False).shared == ()
    declared = [SharedTarget(name="lun1", targets={"a": "/dev/vdb", "b": "/dev/vdc"})]
    with pytest.raises(RefusedError, match="lun1"):
        agree(two, given(), divide=False, declared=declared)


def test_reading_what_others_read_needs_no_consent() -> None:
    two = {"a": [seen(identity="x", written=False)], "b": [seen(identity="x", written=False)]}
    assert [one.written for one in agree(two, given(), divide=False).shared] == [False]


@pytest.mark.parametrize("divide", [False, True])
def test_files_that_several_hosts_write_are_changed_by_the_others_too(divide: bool) -> None:
    """A host that marked a shared file a moment before was taken by the next one for a stranger."""
    two = {name: [seen("/mnt/f", "nfs file 7"), seen("/dev/sdb")] for name in ("a", "b")}
    found = agree(two, given() if divide else given("shared:/mnt/f"), divide=divide)
    assert found.changed_elsewhere == {"a": ["/mnt/f"], "b": ["/mnt/f"]}


def test_a_shared_file_that_the_run_would_lay_out_is_refused_even_divided() -> None:
    two = {name: [seen("/mnt/f", "nfs file 7", laid_out_by_run=True)] for name in ("a", "b")}
    with pytest.raises(RefusedError, match="lay it out"):
        agree(two, given(), divide=True)


def test_hosts_with_files_of_their_own_share_a_tree_and_one_of_them_marks_it() -> None:
    three = {name: [seen("/data", "nfs file 7", is_part=True)] for name in ("a", "b", "c")}
    found = agree(three, given(), divide=False)
    assert [(one.written, one.divided) for one in found.shared] == [(True, True)]
    assert found.marked_for_all == {"a": ["/data"]}
    assert found.marked_elsewhere == {"b": ["/data"], "c": ["/data"]}
    assert agree(three, given(), divide=True).divisions == {}
    # Who only reads it marks nothing: the first that writes does.
    mixed = {**three, "a": [seen("/data", "nfs file 7", is_part=True, written=False)]}
    found = agree(mixed, given(), divide=False)
    assert (found.marked_for_all, found.marked_elsewhere) == ({"b": ["/data"]}, {"c": ["/data"]})
    # Nobody vouches for what nobody writes.
    read = {name: [one[0].model_copy(update={"written": False})] for name, one in three.items()}
    assert agree(read, given(), divide=False).marked_for_all == {}
    # One whose job is about the whole tree would write over the others' files.
    three["c"] = [seen("/data", "nfs file 7")]
    with pytest.raises(RefusedError, match="would write what the others use"):
        agree(three, given(), divide=False)


def test_parts_of_trees_that_only_have_the_same_name_are_refused() -> None:
    two = {name: [seen("/data", f"file {name}", is_part=True)] for name in ("a", "b")}
    with pytest.raises(RefusedError, match=r"a:/data, b:/data are not one tree"):
        agree(two, given(), divide=False)
    # In this run one host alone works in each of two trees.
    apart = {name: [seen(f"/data/{name}", None, is_part=True)] for name in ("a", "b")}
    assert agree(apart, given(), divide=False).shared == ()


def test_consent_for_what_no_host_writes_is_a_slip() -> None:
    with pytest.raises(InputError) as slip:
        agree({"a": [seen()]}, given("/dev/sdb"), divide=False)
    assert slip.value.hint == "did you mean 'a:/dev/sdb'?"
