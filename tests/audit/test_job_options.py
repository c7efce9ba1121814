"""Options that no other fact of a case tells: the same of a job that ran here and of one that fio ran."""

from __future__ import annotations

import pytest

from loadstone.audit import job_options
from loadstone.audit.foreign.fio_options import asked
from loadstone.formats.fio.read import TextSource, read_jobfiles


def of_both(options: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a job as fio records it, and as it is planned here; flags are not compared."""
    lines = "\n".join(f"{name}={value}" for name, value in options.items())
    text = f"[a]\nfilename=/tmp/none\nsize=64m\nioengine=io_uring\niodepth=8\n{lines}\n"
    (job,) = read_jobfiles([TextSource(text.encode(), name="a.fio")]).jobs
    own = {name: text for name, text in job_options.of_job(job).items() if name not in job_options.FLAGS}
    of_fio = asked("a", {"filename": "/tmp/none", "size": "64m", **options}, 1).options
    return {name: text for name, text in of_fio.items() if name in own}, own


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rw": "read"}, {}),
        ({"rw": "randread", "random_distribution": "random", "thinktime": "0", "nrfiles": "1"}, {}),
        ({"rw": "randread", "random_distribution": "zipf:1.2"}, {"random_distribution": "zipf 1.2"}),
        ({"rw": "randread", "random_distribution": "pareto:0.3"}, {"random_distribution": "pareto 0.3"}),
        ({"rw": "randread:8", "ba": "8k"}, {"run_length": "8", "blockalign": "8.00 KiB"}),
        ({"rw": "write:4k", "fdatasync": "4"}, {"stride": "4.00 KiB", "fdatasync_every": "4"}),
        ({"rw": "randrw", "thinktime": "1500us", "thinktime_blocks": "4"},
         {"thinktime": "1.50 ms", "thinktime_blocks": "4"}),
        ({"rw": "randread", "iodepth_batch": "4", "iodepth_low": "2"}, {"batch": "4 1 2"}),
        ({"rw": "randread", "prioclass": "2", "prio": "3"}, {"job_class": "2", "job_level": "3"}),
        ({"rw": "randread", "invalidate": "0", "offset": "1m"}, {"invalidate": "no", "offset": "1.00 MiB"}),
        ({"rw": "randread", "rate_iops": "100", "rate_process": "poisson"}, {"rate_process": "poisson"}),
        ({"rw": "randread", "latency_target": "10ms", "latency_window": "1s"}, {"latency_target": "10.0 ms"}),
    ],
)  # fmt: skip
def test_an_option_has_the_same_words_whoever_ran_it(options: dict[str, str], told: dict[str, str]) -> None:
    """fio's record tells options as they were written; a Plan what became of them."""
    of_fio, own = of_both(options)
    plain = {name: text.replace("\N{NO-BREAK SPACE}", " ") for name, text in own.items()}
    assert {name: text for name, text in plain.items() if text != job_options.NOT_SET} == told
    assert of_fio == own


def test_a_verification_that_is_switched_off_leaves_the_mix_as_it_is() -> None:
    """`verify=0` in a record of fio was read as one, so that nobody knew the mix of reads and writes."""
    assert asked("a", {"rw": "randrw", "verify": "0"}, 1).read_percent == 50
    assert asked("a", {"rw": "randrw", "verify": "crc32c"}, 1).read_percent is None


def test_a_flag_that_fio_does_not_record_is_not_known() -> None:
    assert "norandommap" not in asked("a", {"rw": "randread"}, 1).options
    assert asked("a", {"rw": "randread", "norandommap": "1"}, 1).options["norandommap"] == "yes"
