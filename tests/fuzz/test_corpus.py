"""What guided fuzzing kept: every input is read, or refused with a message, by its reader."""

from __future__ import annotations

import pytest

from tests.fuzz import guided


@pytest.mark.in_turn
@pytest.mark.parametrize("name", sorted(guided.TARGETS))
def test_the_corpus_is_read_or_refused(name: str) -> None:
    kept = sorted((guided.CORPUS / name).iterdir())
    assert kept
    for path in kept:
        guided.tried(name, path.read_bytes())


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in guided.CORPUS.rglob("*") if path.is_file()) < 400_000
