"""What a seal finds: everything that was altered, added or lost since; and what may be read all the same."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from blake3 import blake3

from loadstone.analysis.summary import summarise
from loadstone.bundle import layout, schemas, seal, sealed_tables
from loadstone.bundle.read import Bundle
from loadstone.cli.main import main
from loadstone.errors import BundleError
from loadstone.formats.fio import TextSource, read_jobfiles
from loadstone.report import exports
from loadstone.report.run import page
from tests.support import runs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return runs.make(tmp_path / "b", seconds=1.0).path


def times_seven(path: Path) -> None:
    samples = pl.read_parquet(path / "samples.parquet")
    samples.with_columns(pl.col("ops") * 7, pl.col("bytes") * 7).write_parquet(path / "samples.parquet")


@pytest.mark.in_turn
def test_numbers_that_were_changed_are_not_reported(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(path)]) == 0
    times_seven(path)
    for words in (["report"], ["export", "csv"], ["audit"], ["verify"], ["rerun"]):
        assert main([words[0], str(path), *words[1:]]) == 2
        told = capsys.readouterr().err
        assert "samples.parquet was altered" in told
        assert "--unverified" in told
    other = runs.make(path.parent / "other", seconds=1.0, seed=2).path
    assert main(["compare", str(other), str(path)]) == 2


@pytest.mark.parametrize(
    "name", ["manifest.json", "plan.json", "input/job.fio", "host.parquet", "events.jsonl"]
)
def test_every_single_bit_counts(path: Path, name: str) -> None:
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)
    with pytest.raises(BundleError, match=name.replace(".", r"\.")):
        Bundle.open(path)


def test_a_manifest_is_held_against_its_own_hash(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert Bundle.open(path).verified is True  # laid out another way, and says the same
    for changed, told in (
        (manifest | {"status": "failed"}, "manifest.json was altered"),
        (manifest | {"ended_unix_ns": 1}, "manifest.json was altered"),
        ({k: v for k, v in manifest.items() if k != "blake3"}, "manifest.json lost its own hash"),
        ({k: v for k, v in manifest.items() if k != "files"}, "it names no files"),
    ):
        (path / "manifest.json").write_text(json.dumps(changed))
        with pytest.raises(BundleError, match=told):
            Bundle.open(path)


def test_what_was_added_is_named_and_a_report_is_not(path: Path) -> None:
    for ending in ("html", "md", "pdf", "png", "svg"):
        (path / f"report.{ending}").write_text("mine")
    assert Bundle.open(path).verified is True
    (path / "samples.arrows").write_bytes(b"")
    (path / "input" / "more").mkdir()
    with pytest.raises(BundleError) as caught:
        Bundle.open(path)
    assert "samples.arrows was added" in str(caught.value)
    assert "input/more was added" in str(caught.value)


@pytest.mark.in_turn
def test_what_is_no_file_of_the_bundle_is_never_opened(path: Path) -> None:
    sound = runs.make(path.parent / "sound", seconds=1.0).path
    for make in (
        lambda at: at.symlink_to("/etc/passwd"),
        os.mkfifo,
        lambda at: at.mkdir(),
        lambda at: os.mknod(at, 0o600 | 0o020000, os.makedev(1, 5)) if os.geteuid() == 0 else at.mkdir(),
    ):
        for name in ("samples.parquet", "events.jsonl", "environment.json"):
            copy = Path(shutil.copytree(sound, path.parent / "copy"))
            (copy / name).unlink()
            make(copy / name)
            with pytest.raises(BundleError, match=f"{name.replace('.', '[.]')} is"):
                Bundle.open(copy)
            opened = Bundle.open(copy, unverified=True)
            made = summarise(opened)
            assert any(name in fault for fault in [*opened.altered]), (name, opened.faults)
            if copy.joinpath(name).is_symlink():  # Nothing else here has a content that a page could tell.
                assert "root:" not in page.render(made)
            for one in sorted(copy.rglob("*"), reverse=True):
                one.rmdir() if one.is_dir() and not one.is_symlink() else one.unlink()
            copy.rmdir()


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "input/../../x", ""])
def test_names_that_lead_out_of_a_bundle_are_refused(path: Path, name: str) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["inputs"] = {"job.fio": name}
    (path / "manifest.json").write_text(json.dumps(seal.with_digest(manifest)))
    for unverified in (False, True):
        with pytest.raises(BundleError, match="leads out of the bundle"):
            Bundle.open(path, unverified=unverified)


@pytest.mark.in_turn
@pytest.mark.slow
def test_everything_made_of_an_unverified_bundle_says_so(
    path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    times_seven(path)
    other = runs.make(tmp_path / "other", seconds=1.0, seed=2).path
    out = tmp_path / "out"
    out.mkdir()
    assert main(["report", str(path), "-o", str(out / "r.html"), "--unverified"]) == 0
    assert "samples.parquet was altered" in capsys.readouterr().err
    for kind in ("html", "svg"):
        assert main(["report", str(path), "-o", str(out / f"r.{kind}"), "--unverified"]) == 0
        assert "NOT VERIFIED" in (out / f"r.{kind}").read_text()
    for kind, mark in (
        ("fio-json", '"loadstone verified" : false'),
        ("csv", ",verified\n"),
        ("prometheus", "loadstone_verified 0.0"),
        ("markdown", "**NOT VERIFIED"),
        ("iometer-csv", "NOT VERIFIED"),
    ):
        if kind in ("fio-json", "iometer-csv"):
            asked = read_jobfiles([TextSource(b"[job]\nrw=randread\nfilename=/mnt/test/data0\n", name="j")])
            (path / "workload.json").write_text(asked.model_dump_json())
        capsys.readouterr()
        assert main(["export", str(path), kind, "--unverified"]) == 0
        assert mark in capsys.readouterr().out
    assert main(["export", str(path), "parquet", str(out / "x.parquet"), "--unverified"]) == 0
    assert pl.read_parquet(out / "x.parquet")["verified"].to_list() == [False, False]
    assert main(["export", str(path), "vdbench", str(out / "v"), "--unverified"]) == 0
    assert all("NOT VERIFIED" in one.read_text() for one in (out / "v").glob("*.html"))
    capsys.readouterr()
    assert main(["audit", str(path), "--json", "--unverified"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["verified"] is False
    assert main(["audit", str(path), "--unverified"]) == 0
    assert "NOT VERIFIED" in capsys.readouterr().out
    assert main(["compare", str(other), str(path), "--json", "--unverified"]) == 0
    sides = json.loads(capsys.readouterr().out)["sides"]
    assert [side["verified"] for side in sides] == [False, False]
    assert main(["compare", str(other), str(path), "--html", str(out / "c.html"), "--unverified"]) == 0
    assert "NOT VERIFIED" in capsys.readouterr().out
    assert "NOT VERIFIED" in (out / "c.html").read_text()
    assert summarise(Bundle.open(path, unverified=True)).document()["verified"] is False


@pytest.mark.in_turn
def test_a_sealed_bundle_says_that_it_is_verified(path: Path) -> None:
    bundle = Bundle.open(path)
    assert bundle.verified is True
    assert summarise(bundle).document()["verified"] is True
    assert "verified" not in exports.csv(bundle).splitlines()[0]
    assert "NOT VERIFIED" not in page.render(summarise(bundle))


def test_a_killed_run_has_nothing_to_be_held_against(tmp_path: Path) -> None:
    bundle = Bundle.open(runs.make(tmp_path / "b", seconds=1.0, seal=None).path)
    assert bundle.verified is None
    assert bundle.doubt is None
    assert summarise(bundle).document()["verified"] is None


def test_large_files_are_hashed_as_small_ones(tmp_path: Path) -> None:
    data = os.urandom(1 << 10) * (1 << 15)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "small").write_bytes(data[:1000])
    assert seal.hash_of(tmp_path, "large") == (len(data), blake3(data).hexdigest())
    assert seal.hash_of(tmp_path, "small") == (1000, blake3(data[:1000]).hexdigest())


def test_of_many_notes_that_are_none_each_is_left_out() -> None:
    """Found by guided fuzzing: from ten on, the places were left out in the order of their digits."""
    left, places = schemas.pruned([*range(12), "a note"], schemas.NOTES)
    assert left == ["a note"]
    assert len(places) == 12


@pytest.mark.parametrize("name", ["size_bytes", "allocated_bytes"])
def test_a_state_of_a_target_without_its_size_is_no_event(name: str) -> None:
    """Found by damaging bundles (seed 1347): the audit of it ended in a KeyError."""
    state = {"t_ns": 1, "type": "target_state", "when": "end", "target": 0}
    state |= {"size_bytes": 4096, "allocated_bytes": 0, "hole_bytes": 4096, "looked_at_bytes": 4096}
    assert schemas.is_event(state, None)
    del state[name]
    assert not schemas.is_event(state, None)


def test_short_samples_without_their_lengths_are_no_event() -> None:
    """Found by damaging bundles (seed 760011): the audit of it ended in an IndexError."""
    samples = {"t_ns": 9, "type": "fine_samples", "stage": 0, "start_ns": 1, "ops": [5, 6]}
    assert schemas.is_event(samples | {"lengths_us": [10_000, 10_000]}, None)
    assert not schemas.is_event(samples | {"lengths_us": [10_000]}, None)


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
def test_a_table_that_cannot_be_read_for_want_of_files_or_memory_is_not_called_damaged(
    path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by failing every open: a run ended with exit code 0 and 'nothing was measured'."""
    opened = Bundle.open(path)
    monkeypatch.setattr(sealed_tables, "_footer", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)):
        opened.samples()
    assert opened.faults == []


def test_a_member_that_cannot_be_opened_for_want_of_files_is_not_called_altered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortage = OSError(errno.EMFILE, "Too many open files")
    monkeypatch.setattr(seal, "hash_of", lambda *_: (_ for _ in ()).throw(shortage))
    with pytest.raises(OSError, match="Too many open files"):
        Bundle.open(path)


def test_the_page_names_the_format_that_is_written() -> None:
    """It named the one before."""
    page_text = (Path(__file__).resolve().parents[2] / "docs" / "bundles.md").read_text()
    assert f"- `format`, now {layout.FORMAT}:" in page_text
