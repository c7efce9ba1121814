"""`loadstone sweep`: a load at every combination of depths, block sizes, read shares or threads.

Knows how its options are read. Which operating point is recommended is the analysis' business.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from loadstone.cli.options.arguments import LoadOptions, OneJob, Sheet
from loadstone.cli.options.run_options import RunOptions

if TYPE_CHECKING:
    from loadstone.api.studies.sweeps import FactorName


def sweep(
    job: OneJob,
    /,
    *,
    iodepth: str | None = None,
    bs: str | None = None,
    read: str | None = None,
    numjobs: str | None = None,
    gain: str | None = None,
    repeat: int | None = None,
    spec: Sheet = None,
    load: LoadOptions = LoadOptions(),
    run_options: RunOptions = RunOptions(),
) -> int:
    """Run a load at every combination of one to three factors, and recommend an operating point.

    Values are a list, as 1,2,4, or a range, as 1..256 (doubling), 1..256:x4 or 0..100:+10.
    Jobs behind a stonewall are swept apart.

    Parameters
    ----------
    iodepth
        I/Os in flight of each clone, as 1..256.
    bs
        Block sizes, as 4k..1m.
    read
        Percents of reads, as 0,50,100 or 0..100:+10.
    numjobs
        Clones of each job, as 1..16.
    gain
        The depth beyond which throughput gains less than this per doubling is recommended [default: 10%].
    repeat
        Passes over all combinations [default: 1].
    """
    from loadstone.api.studies.sweeps import GAIN, prepare_sweep
    from loadstone.cli.running import several_runs

    factors: dict[FactorName, str | None] = {"bs": bs, "read": read, "numjobs": numjobs, "iodepth": iodepth}
    factor_texts = {str(name): text for name, text in factors.items()}
    options = {"job": job, **asdict(load), **factor_texts, "gain": gain or GAIN, "repeat": repeat}
    swept = several_runs.of_job("sweep", job, load, spec=spec, options=options, run_options=run_options)
    return several_runs.execute(prepare_sweep(swept, factors, gain=gain, repeat=repeat), run_options)
