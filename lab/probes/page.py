"""The page of what probes were worth on drawn storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write(page: Path, rows: list[dict[str, object]], tables: str, seeds: str) -> None:
    """Write it."""
    page.write_text(
        "# Probes on storage drawn from seeds\n\n"
        "How often probes name what lies behind a number.\n\n"
        f"Written by `python -m lab.probes --seeds {seeds} --write`: {len(rows)} situations on simulated "
        "devices, parameters log-uniform, 20 s of virtual time for probes, no rules of the audit but the "
        "generator's. The weights were chosen on seeds 1 to 187, never on these. *Named first*: the truth is "
        "the most probable explanation (of honest devices, the storage or the job's own depth). *Named*: it "
        "has at least 10 %. *Believed*: 'measures the storage' has at least 80 %; *doubted* is the rest. The "
        "last two columns weigh the same readings with the true explanation taken out of the list; no "
        "prediction was fitted, so there is no other figure for a kind that is left out.\n\n"
        f"{tables}"
    )
