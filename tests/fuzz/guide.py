"""Fuzz one reader, guided by coverage: `python -m tests.fuzz.guide NAME --minutes 10`.

Needs atheris, which `make fuzz` installs. Knows libFuzzer's options; what is tried is in `guided`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["loadstone"]):
    from tests.fuzz import guided

MAX_BYTES: Final = 1 << 16
SECONDS_PER_INPUT: Final = 20
MEMORY_MIB: Final = 3000


def main() -> None:
    """Fuzz one target with libFuzzer; its options go after `--`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=guided.TARGETS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--corpus", type=Path, default=None, help="directory for what reaches new code")
    told, rest = parser.parse_known_args()
    kept = told.corpus or Path(tempfile.mkdtemp(prefix=f"loadstone-corpus-{told.name}-"))
    maker = guided.makers().get(told.name)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if maker is not None and rng.random() < 0.5:
            return maker(rng)[:most]
        found: Any = atheris.Mutate(data, most)
        return bytes(found)

    options = [
        f"-max_total_time={int(told.minutes * 60)}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={MAX_BYTES}",
        "-print_final_stats=1",
        *[word for word in rest if word != "--"],
    ]
    seeds = [str(guided.CORPUS / told.name)] if (guided.CORPUS / told.name).is_dir() else []
    mutator = {"custom_mutator": mutated} if maker is not None else {}
    atheris.Setup(
        [sys.argv[0], *options, str(kept), *seeds], lambda data: guided.tried(told.name, data), **mutator
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
