"""What the shells and exporters of each system print, as counters.

FreeBSD's and illumos' texts are written after their manuals: no such system was at hand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis import watched
from loadstone.watch import freebsd, illumos, linux, prometheus, shell, snmp

if TYPE_CHECKING:
    from types import ModuleType

LINUX = """@@begin
/proc/uptime:12345.67 4000.00
/proc/stat:cpu  100 5 50 800 20 1 2 3 7 0
/proc/stat:cpu0 60 5 20 400 10 1 1 1 7 0
/proc/stat:intr 5 0 0
/proc/loadavg:0.52 1.00 2.25 1/200 300
/proc/meminfo:MemTotal:       16000 kB
/proc/meminfo:MemAvailable:   12000 kB
/proc/meminfo:Cached:          4000 kB
/proc/meminfo:Dirty:             12 kB
/proc/net/dev:Inter-|   Receive                                                |  Transmit
/proc/net/dev: face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
/proc/net/dev:  eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0
/sys/block/sda/stat:   100 1 2048 30 200 2 4096 60 3 70 90 5 0 800 8 9 10
/sys/block/loop7/stat:   0 0 0 0 0 0 0 0 0 0 0
/proc/net/rpc/nfsd:rc 0 0 0
/proc/net/rpc/nfsd:io 4096 8192
/proc/net/rpc/nfsd:th 8 0 0.000 0.000
/proc/net/rpc/nfsd:rpc 44 0 0 0 0
/proc/net/rpc/nfsd:proc3 22 0 1 0 0 0 0 7 9 0 0 0 0 0 0 0 0 0 0 0 0 0 2
/proc/net/rpc/nfsd:proc4ops 72 0 0 0 1 0 3 0 0 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0 0 0 0 0 0 6
/proc/spl/kstat/zfs/arcstats:hits                            4    900
/proc/spl/kstat/zfs/arcstats:misses                          4    100
/proc/spl/kstat/zfs/arcstats:size                            4    4096
/proc/spl/kstat/zfs/zil:zil_commit_count                4    12
/proc/spl/kstat/zfs/zil:zil_itx_metaslab_slog_bytes     4    777
/proc/spl/kstat/zfs/tank/objset-0x36:writes                          4    3
/proc/spl/kstat/zfs/tank/objset-0x36:nwritten                        4    3000
/proc/spl/kstat/zfs/tank/objset-0x40:nwritten                        4    500
/proc/spl/kstat/zfs/tank/state:ONLINE
/sys/block/md0/md/sync_action:resync
/sys/block/md0/md/degraded:1
/sys/block/bcache0/bcache/stats_total/cache_hits:5
/sys/block/bcache0/bcache/dirty_data:1.5k
/sys/fs/btrfs/01234567-89ab/exclusive_operation:balance
/sys/fs/cgroup/system.slice/cpu.stat:usage_usec 500
/sys/fs/cgroup/system.slice/cpu.stat:nr_throttled 4
/sys/fs/cgroup/system.slice/cpu.stat:throttled_usec 2500
/sys/class/hwmon/hwmon0/temp1_input:41000
@@dmcache:vg-lv: 0 2097152 cache 8 72/1024 128 15/512 11 12 13 14 1 2 3 1 writethrough 2 migration_threshold 2048 smq 0 rw -
@@zpool:tank
@@scan:scrub in progress since Sun Nov 1 00:00:00 2026
@@times
0m0.10s 0m0.20s
0m1.00s 0m2.50s
@@end"""  # noqa: E501 - as the kernel writes it


def test_linux() -> None:
    made, uptime_ns = linux.counters(LINUX.splitlines())
    assert uptime_ns == 12_345_670_000_000
    grown, levels = made.growing, made.levels
    assert grown["cpu.all.user_ns"] == 1_050_000_000
    assert grown["cpu.all.irq_ns"] == 30_000_000
    assert grown["cpu.0.idle_ns"] == 4_000_000_000
    assert levels["load.one_milli"] == 520
    assert levels["memory.dirty_bytes"] == 12288
    assert (grown["net.eth0.rx_bytes"], grown["net.eth0.tx_drops"]) == (1000, 4)
    assert grown["disk.sda.read_bytes"] == 2048 * 512
    assert grown["disk.sda.busy_ns"] == 70_000_000
    assert grown["disk.sda.trim_bytes"] == 800 * 512
    assert levels["disk.sda.inflight"] == 3
    assert not any("loop7" in key for key in (*grown, *levels))
    assert (grown["nfsd.read_bytes"], grown["nfsd.calls"], levels["nfsd.threads"]) == (4096, 44, 8)
    assert (grown["nfsd.reads"], grown["nfsd.writes"], grown["nfsd.commits"]) == (12, 15, 5)
    assert (grown["zfs.arc.hits"], levels["zfs.arc.size_bytes"], grown["zfs.zil.commits"]) == (900, 4096, 12)
    assert (grown["zfs.zil.slog_bytes"], grown["zfs.pool-tank.write_bytes"]) == (777, 3500)
    assert (levels["work.md0.running"], levels["work.md0.resync"], levels["work.md0.degraded"]) == (1, 1, 1)
    assert levels["work.btrfs-01234567.balance"] == 1
    assert (levels["work.tank.scrub"], levels["work.tank.degraded"]) == (1, 0)
    assert (grown["cache.bcache0.read_hits"], levels["cache.bcache0.dirty_bytes"]) == (5, 1536)
    assert (grown["cache.vg-lv.read_hits"], grown["cache.vg-lv.write_misses"]) == (11, 14)
    assert levels["cache.vg-lv.dirty_bytes"] == 3 * 128 * 512
    assert (grown["group.throttled_ns"], grown["group.throttled_count"]) == (2_500_000, 4)
    assert levels["temperature.hwmon-hwmon0-temp1.millicelsius"] == 41000


def test_linux_facts() -> None:
    facts = linux.facts(
        """@@host nas
@@kernel 6.1.0
/sys/class/net/eth0/speed:1000
/sys/class/net/eth0/mtu:9000
/sys/class/net/veth0/speed:10000
/sys/class/net/wlan0/speed:-1
/sys/block/sda/size:2097152
/sys/block/sda/dev:8:0
/sys/block/sda/sda1/dev:8:1
/sys/block/sda/queue/rotational:1
/sys/block/loop0/size:0
/sys/block/md0/size:2097152
/proc/meminfo:MemTotal:       16000 kB
/sys/fs/cgroup/x/cpu.max:20000 100000
@@slave /sys/block/md0/slaves/sda
@@backing /sys/block/loop3/loop/backing_file 2049
@@backing /sys/block/loop4/loop/backing_file 26
@@cores 4
@@qdisc qdisc tbf 8001: dev veth0 root refcnt 2 rate 1Gbit burst 128Kb lat 20ms
@@class eth0 class htb 1:1 root prio 0 rate 500Mbit ceil 800Mbit burst 1600b""".splitlines()
    )
    assert (facts["host"], facts["cores"], facts["memory_bytes"], facts["cpu_limit"]) == (
        "nas",
        4,
        16384000,
        0.2,
    )
    assert facts["links"]["eth0"] == {
        "bits_per_s": 10**9,
        "mtu_bytes": 9000,
        "shaped_bits_per_s": 800_000_000,
    }
    assert facts["links"]["veth0"]["shaped_bits_per_s"] == 10**9
    assert "wlan0" not in facts["links"]
    assert facts["disks"]["sda"] == {"size_bytes": 2**30, "rotational": True}
    assert facts["disks"]["md0"]["over"] == ["sda"]
    assert facts["disks"]["loop3"]["over"] == ["sda"]
    assert "loop4" not in facts["disks"]


def test_a_kernel_that_writes_something_else_costs_its_own_columns() -> None:
    made, uptime_ns = linux.counters(
        [
            "/proc/uptime:soon",
            "/proc/stat:cpu x y",
            "/sys/block/sda/stat:1 2",
            "/proc/loadavg:",
            "/proc/net/dev:eth0: 1",
        ]
    )
    assert (made.growing, made.levels, uptime_ns) == ({}, {}, None)


FREEBSD = """kern.clockrate: { hz = 1000, tick = 1000, profhz = 8128, stathz = 128 }
kern.cp_time: 128 0 256 64 1280
kern.cp_times: 64 0 128 32 640 64 0 128 32 640
vm.loadavg: { 0.26 0.22 0.20 }
hw.physmem: 8589934592
vm.stats.vm.v_page_size: 4096
vm.stats.vm.v_free_count: 100
vm.stats.vm.v_inactive_count: 50
vm.stats.vm.v_laundry_count: 5
kstat.zfs.misc.arcstats.hits: 70
kstat.zfs.misc.arcstats.misses: 30
@@iostat                         extended device statistics
@@iostat device           r/i         w/i         kr/i         kw/i qlen   tsvc_t/i      sb/i
@@iostat ada0           100.0       200.0       1000.0       2000.0    3       12.5       7.5
@@iostat cd0              0.0         0.0          0.0          0.0    0        0.0       0.0
@@netstat Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll
@@netstat em0    1500 <Link#1>      08:00:27:00:00:01      100     1     2       5000      200     3       9000     0
@@netstat em0       - 10.0.0.0/24   10.0.0.5                90     -     -       4000      190     -       8000     -
@@netstat lo0   16384 <Link#2>                               7     0     0        700        7     0        700     0
@@nfsstat
@@nfsstat Server Info:
@@nfsstat   Getattr   Setattr    Lookup  Readlink      Read     Write    Create    Remove
@@nfsstat        11         0         5         0        21        31         0         0
@@nfsstat     Mknod    Fsstat    Fsinfo  PathConf    Commit   LookupP   SetClId SetClIdCf
@@nfsstat         0         0         3         0        41         0         0         0
@@nfsstat Server:
@@nfsstat Retfailed    Faults   Clients
@@nfsstat         0         0         2
vfs.nfsd.threads: 16
dev.cpu.0.temperature: 45.5C
@@zpool tank
@@scan resilver in progress since Sun Nov  1 00:00:00 2026"""  # noqa: E501 - as netstat writes it


def test_freebsd() -> None:
    made, _ = freebsd.counters(FREEBSD.splitlines())
    grown, levels = made.growing, made.levels
    assert (grown["cpu.all.user_ns"], grown["cpu.all.idle_ns"]) == (10**9, 10**10)
    assert grown["cpu.1.system_ns"] == 10**9
    assert (grown["disk.ada0.reads"], grown["disk.ada0.write_bytes"]) == (100, 2000 * 1024)
    assert (grown["disk.ada0.busy_ns"], levels["disk.ada0.inflight"]) == (7_500_000_000, 3)
    assert not any("cd0" in key for key in grown)
    assert (grown["net.em0.rx_bytes"], grown["net.em0.tx_errors"], grown["net.lo0.rx_bytes"]) == (
        5000,
        3,
        700,
    )
    assert (levels["load.one_milli"], levels["memory.total_bytes"]) == (260, 2**33)
    assert (levels["memory.free_bytes"], levels["memory.cached_bytes"]) == (409600, 55 * 4096)
    assert (grown["zfs.arc.hits"], levels["work.tank.resilver"]) == (70, 1)
    served = {key: value for key, value in {**grown, **levels}.items() if key.startswith("nfsd.")}
    assert served == {
        "nfsd.getattrs": 11,
        "nfsd.reads": 21,
        "nfsd.writes": 31,
        "nfsd.commits": 41,
        "nfsd.threads": 16,
    }
    assert levels["temperature.cpu0.millicelsius"] == 45500
    facts = freebsd.facts(
        ["@@host nas", "hw.ncpu: 4", "hw.physmem: 1024", "@@ifconfig em0: flags=8843<UP> metric 0 mtu 1500",
         "@@ifconfig \tmedia: Ethernet autoselect (1000baseT <full-duplex>)",
         "@@ifconfig ix0: flags=8843<UP>", "@@ifconfig \tmedia: Ethernet autoselect (10Gbase-T <full-duplex>)"]  # noqa: E501 - as recorded
    )  # fmt: skip
    assert facts["links"] == {"em0": {"bits_per_s": 10**9}, "ix0": {"bits_per_s": 10**10}}


def test_disks_whose_names_iostat_cuts_short_keep_their_own_counts() -> None:
    """FreeBSD prints eight letters of a name: `mfisyspd10` and `mfisyspd11` are both `mfisyspd`."""
    made, _ = freebsd.counters(
        [
            "@@iostat device           r/i         w/i         kr/i         kw/i qlen   tsvc_t/i      sb/i",
            "@@iostat mfisyspd  7919671.0   2973428.0 5905908945.5  119214504.0    0   118260.3   48234.8",
            "@@iostat mfisyspd        5.0         7.0         20.0         28.0    2        0.5       0.2",
            "@@iostat pass0         453.0         0.0        226.5          0.0    0        8.0       8.0",
        ]
    )
    assert made.growing["disk.mfisyspd.read_bytes"] == round(5905908945.5 * 1024)
    assert made.growing["disk.mfisyspd.busy_ns"] == 48_234_800_000_000
    assert (made.growing["disk.mfisyspd~2.reads"], made.growing["disk.mfisyspd~2.write_bytes"]) == (5, 28672)
    assert (made.levels["disk.mfisyspd.inflight"], made.levels["disk.mfisyspd~2.inflight"]) == (0, 2)
    assert not any("pass0" in key for key in (*made.growing, *made.levels))


ILLUMOS = """@@pagesize 4096
cpu:0:sys:cpu_nsec_idle\t1000
cpu:0:sys:cpu_nsec_user\t10
cpu:1:sys:cpu_nsec_idle\t2000
cpu:1:sys:cpu_nsec_kernel\t20
unix:0:system_misc:avenrun_1min\t128
unix:0:system_misc:snaptime\t5000.25
unix:0:system_pages:physmem\t100
unix:0:system_pages:freemem\t40
zfs:0:arcstats:hits\t9
zfs:0:arcstats:size\t4096
sd:1:sd1:nread\t5000
sd:1:sd1:reads\t5
sd:1:sd1:rtime\t1.5
sd:1:sd1:class\tdisk
link:0:net0:rbytes64\t700
link:0:net0:ierrors\t2
nfs:0:rfsproccnt_v3:read\t3
nfs:0:rfsproccnt_v4:read\t4
@@zpool tank
@@scan scrub repaired 0 in 0 days 00:00:01"""


def test_illumos() -> None:
    made, uptime_ns = illumos.counters(ILLUMOS.splitlines())
    grown, levels = made.growing, made.levels
    assert uptime_ns == 5_000_250_000_000
    assert (grown["cpu.all.idle_ns"], grown["cpu.all.system_ns"], grown["cpu.1.system_ns"]) == (3000, 20, 20)
    assert (levels["load.one_milli"], levels["memory.total_bytes"]) == (500, 409600)
    assert (grown["disk.sd1.read_bytes"], grown["disk.sd1.busy_ns"]) == (5000, 1_500_000_000)
    assert (grown["net.net0.rx_bytes"], grown["net.net0.rx_errors"]) == (700, 2)
    assert (grown["nfsd.reads"], grown["zfs.arc.hits"], levels["work.tank.running"]) == (7, 9, 0)
    facts = illumos.facts(
        ["@@host nas", "cpu_info:0:cpu_info0:state\ton-line", "link:0:net0:ifspeed\t10000000000"]
    )
    assert (facts["cores"], facts["links"]["net0"]["bits_per_s"]) == (1, 10**10)


EXPORTER = """# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 100.5
node_cpu_seconds_total{cpu="0",mode="user"} 1.25
node_cpu_seconds_total{cpu="0",mode="nice"} 0.25
node_cpu_seconds_total{cpu="1",mode="user"} 2
# TYPE node_load1 gauge
node_load1 0.5
# TYPE node_memory_Cached_bytes gauge
node_memory_Cached_bytes 4.096e+03
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="sda"} 8192
# TYPE node_disk_io_time_seconds_total counter
node_disk_io_time_seconds_total{device="sda"} 1.5
# TYPE node_network_receive_bytes_total counter
node_network_receive_bytes_total{device="eth0"} 100
# TYPE node_network_speed_bytes gauge
node_network_speed_bytes{device="eth0"} 1.25e+08
node_network_speed_bytes{device="veth0"} -125000
# TYPE node_nfsd_requests_total counter
node_nfsd_requests_total{method="Read",proto="3"} 3
node_nfsd_requests_total{method="Read",proto="4"} 4
# TYPE node_md_state gauge
node_md_state{device="md0",state="resync"} 1
node_md_state{device="md0",state="active"} 0
# TYPE node_hwmon_temp_celsius gauge
node_hwmon_temp_celsius{chip="nvme_nvme0",sensor="temp1"} NaN
# TYPE node_uname_info gauge
node_uname_info{nodename="nas",release="6.1",sysname="Linux"} 1
# TYPE node_time_seconds gauge
node_time_seconds 1.7e+09
# TYPE go_goroutines gauge
go_goroutines 8
"""


def test_node_exporter() -> None:
    rows = prometheus._rows(EXPORTER)
    made = prometheus.counters(rows)
    grown, levels = made.growing, made.levels
    assert (grown["cpu.0.user_ns"], grown["cpu.all.user_ns"]) == (1_500_000_000, 3_500_000_000)
    assert (grown["disk.sda.write_bytes"], grown["disk.sda.busy_ns"]) == (8192, 1_500_000_000)
    assert (levels["load.one_milli"], levels["memory.cached_bytes"], grown["nfsd.reads"]) == (500, 4096, 7)
    assert (levels["work.md0.running"], levels["work.md0.resync"]) == (1, 1)
    assert not any(key.startswith("temperature") for key in levels)
    facts = prometheus.facts(rows)
    assert (facts["host"], facts["cores"]) == ("nas", 2)
    assert facts["links"] == {"eth0": {"bits_per_s": 10**9}}
    clock = prometheus._clock(rows, None)
    assert clock is not None
    assert (clock.unix_ns, clock.step_ns) == (1_700_000_000 * 10**9, 0)
    clock = prometheus._clock([], "Sun, 01 Nov 2026 00:00:00 GMT")
    assert clock is not None
    assert clock.step_ns == 10**9


def test_an_exporter_that_tells_nonsense_costs_its_own_columns() -> None:
    rows = prometheus._rows(
        "node_time_seconds NaN\nnode_memory_MemTotal_bytes +Inf\nnode_load1 1e300\nnode_load5 0.5\n"
        'node_network_mtu_bytes{device="x"} -Inf\n'
    )
    assert prometheus._clock(rows, None) is None
    assert prometheus.facts(rows)["links"] == {}
    assert set(prometheus.counters(rows).levels) <= {"load.five_milli"}


def test_a_date_beyond_all_calendars_says_nothing() -> None:
    for data in (
        bytes([0, 1, 1, 1, 0, 0, 0, 0, 43, 255, 255]),
        bytes([39, 15, 12, 31, 23, 59, 59, 0, 45, 99, 99]),
    ):
        assert snmp._date(data) is None


NONSENSE = ("9" * 5000, "inf", "nan", "-1", "1e999", "²", "", "\x04", "1.2.3")


@pytest.mark.in_turn
@pytest.mark.parametrize("wrong", NONSENSE)
@pytest.mark.parametrize(
    ("system", "text"),
    [(linux, LINUX), (freebsd, FREEBSD), (illumos, ILLUMOS)],
    ids=["linux", "freebsd", "illumos"],
)
def test_a_word_that_is_another_costs_its_own_columns(system: ModuleType, text: str, wrong: str) -> None:
    """Each word of the answer in its turn."""
    whole = system.counters(text.splitlines())[0]
    lost = []
    for found in re.finditer(r"[\w.]+", text):
        lines = f"{text[: found.start()]}{wrong}{text[found.end() :]}".splitlines()
        system.facts(lines)
        shell._clock(lines)
        shell._times(lines)
        made = system.counters(lines)[0]
        lost.append(len({*whole.growing, *whole.levels} - {*made.growing, *made.levels}))
    # Most words are one value or one line; no more than a handful are what all others hang on.
    assert sorted(lost)[len(lost) // 2] <= 12


def test_interfaces_whose_names_netstat_cuts_short_are_told_apart() -> None:
    """Before 14 `netstat` wrote vtnet0 and vtnet1 as vtnet: the second's counters stood for both."""
    lines = """vtnet  1500 <Link#1>      58:9c:fc:00:00:01 2000 0 0 150000 1200 0 130000 0
vtnet     - 10.0.0.0/24   10.0.0.5          1900 - - 120000 1100 - 110000 -
vtnet  1500 <Link#2>      58:9c:fc:00:00:02 1000 0 0 230000  900 0 160000 0
em1*   1500 <Link#3>      58:9c:fc:00:00:03    7 0 0    700    1 0     40 0"""
    made, _ = freebsd.counters(f"@@netstat {line}" for line in lines.splitlines())
    received = {key: value for key, value in made.growing.items() if key.endswith(".rx_bytes")}
    assert received == {
        "net.vtnet.rx_bytes": 150_000,
        "net.vtnet#2.rx_bytes": 230_000,
        "net.em1.rx_bytes": 700,
    }
    assert "netstat -ibnW" in freebsd.SCRIPT


def test_an_exporter_counts_the_bytes_of_a_pool_once() -> None:
    """It tells them of the pool and of each of its data sets."""
    sets = "".join(
        f'node_zfs_zpool_dataset_n{verb}{{dataset="tank/{name}",zpool="tank"}} {value}\n'
        for verb in ("read", "written")
        for name, value in (("a", 1000), ("b", 20))
    )
    pool = 'node_zfs_zpool_nread{zpool="tank"} 1100\nnode_zfs_zpool_nwritten{zpool="tank"} 1100\n'
    for text in (sets + pool, pool + sets):
        grown = prometheus.counters(prometheus._rows(text)).growing
        assert grown == {"zfs.pool-tank.read_bytes": 1020, "zfs.pool-tank.write_bytes": 1020}
    assert prometheus.counters(prometheus._rows(pool)).growing["zfs.pool-tank.read_bytes"] == 1100


def test_an_exporter_on_freebsd_and_illumos() -> None:
    """Kernel, interrupt and wait are processor time, too: without them a busy system looked idle."""
    made = prometheus.counters(
        prometheus._rows(
            """node_cpu_seconds_total{cpu="0",mode="kernel"} 3
node_cpu_seconds_total{cpu="0",mode="interrupt"} 2
node_cpu_seconds_total{cpu="0",mode="wait"} 1
node_memory_size_bytes 8192
node_devstat_bytes_total{device="da10",type="write"} 4096
node_devstat_transfers_total{device="da10",type="read"} 5
node_devstat_transfers_total{device="da10",type="other"} 6
node_devstat_busy_time_seconds_total{device="da10"} 1.5
node_zfs_arcstats_hits_total 9
node_md_state{device="md0",state="recovering"} 1
"""
        )
    )
    grown, levels = made.growing, made.levels
    assert (grown["cpu.all.system_ns"], grown["cpu.0.irq_ns"], grown["cpu.0.iowait_ns"]) == (
        3 * 10**9,
        2 * 10**9,
        10**9,
    )
    assert {key: value for key, value in grown.items() if key.startswith("disk.")} == {
        "disk.da10.write_bytes": 4096,
        "disk.da10.reads": 5,
        "disk.da10.busy_ns": 1_500_000_000,
    }
    assert (levels["memory.total_bytes"], grown["zfs.arc.hits"]) == (8192, 9)
    assert levels["work.md0.recover"] == 1


def test_a_disk_whose_name_begins_as_anothers_is_no_part_of_it() -> None:
    """With twelve disks da10 and da11 were taken for partitions of da1, and their bytes were missing."""
    every = [f"da{number}" for number in range(12)]
    assert watched.lowest_disks(every, {}) == every
    linux_names = [
        "sda",
        "sda1",
        "sda10",
        "nvme0n1",
        "nvme0n1p1",
        "nvme0n10",
        "nvme0c1n1",
        "mmcblk0",
        "mmcblk0p2",
    ]
    assert watched.lowest_disks(linux_names, {}) == ["sda", "nvme0n1", "nvme0n10", "mmcblk0"]
    assert watched.lowest_disks(["nvme0c0n1", "sda1"], {}) == ["nvme0c0n1", "sda1"]
