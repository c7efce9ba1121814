"""`loadstone verify`: read back what a run with a journal wrote, and name what is damaged.

Knows what is asked and told; `loadstone.verify` does it.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.cli.options.arguments import Unverified  # noqa: TC001 - the argument parser reads it
from loadstone.cli.options.run_options import OutputOptions


def verify(
    bundle: Path,
    /,
    *,
    unverified: Unverified = False,
    output_options: OutputOptions = OutputOptions(),
) -> int:
    """Verify what a run with --journal wrote, also after a crash in the middle of it.

    Ends with exit code 1 when anything is damaged.

    Parameters
    ----------
    bundle
        Directory of the run that wrote; one that was killed will do.
    """
    import loadstone
    from loadstone.cli.display import run_summary

    result = loadstone.verify(
        bundle,
        out=output_options.out,
        progress=run_summary.live(wanted=output_options.progress),
        check=False,
        unverified=unverified,
    )
    return run_summary.tell(result, output_options, judged=False)
