"""vdbench's file systems on a real directory: what is on the disk afterwards, and what is told of it."""

from __future__ import annotations

import json
import re
import subprocess
import time
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import program
from tests.support.started import StartedProgram

if TYPE_CHECKING:
    from pathlib import Path

TREE = "fsd=fsd1,anchor={anchor},depth=2,width=2,files=6,size=(4k,50,20k,50)\n"


def parameter_file(directory: Path, text: str) -> Path:
    file = directory / "files.parm"
    file.write_text(TREE.format(anchor=directory / "tree") + text)
    return file


def study(directory: Path, text: str, *words: str, code: int = 0) -> Path:
    """Run a parameter file and return its study's directory."""
    out = directory / f"study{sum(1 for _ in directory.glob('study*'))}"
    done = program.run("run", parameter_file(directory, text), "--out", out, *words, cwd=directory)
    assert done.code == code, done.err
    return out


def files(directory: Path) -> list[Path]:
    return sorted((directory / "tree").rglob("vdb_f*.file"))


def bundles(out: Path) -> list[Path]:
    return sorted((out / "runs").iterdir())


def document(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle / "result.json").read_text())
    return found


def plan(bundle: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundle / "plan.json").read_text())
    return found


def events(bundle: Path, kind: str) -> list[dict[str, Any]]:
    every = [json.loads(line) for line in (bundle / "events.jsonl").read_text().splitlines()]
    return [one for one in every if one["type"] == kind]


def reasons(bundle: Path) -> Counter[str]:
    return Counter(one["reason"] for one in events(bundle, "stream_end"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree, and a study of it: a format and a mix at a rate."""
    directory = tmp_path_factory.mktemp("files")
    text = (
        "fwd=default,fsd=fsd1,xfersize=4k,threads=2,fileselect=random\n"
        "fwd=look,operation=getattr,skew=60\nfwd=work,rdpct=70,fileio=random,skew=40\n"
        "rd=rd1,fwd=(look,work),fwdrate=500,format=yes,elapsed=4,interval=1\n"
    )
    study(directory, text)
    return directory


@pytest.mark.in_turn
def test_a_format_makes_exactly_the_tree(made: Path) -> None:
    found = files(made)
    assert len(found) == 4 * 6
    assert {path.relative_to(made / "tree").as_posix() for path in found} == {
        f"vdb.1_{one}.dir/vdb.2_{two}.dir/vdb_f{number:04d}.file"
        for one in (1, 2)
        for two in (1, 2)
        for number in range(6)
    }
    sizes = Counter(path.stat().st_size for path in found)
    assert set(sizes) == {4096, 20480}
    others = [path for path in (made / "tree").rglob("*") if path.is_file() and path not in found]
    assert [path.name for path in others] == [".loadstone-tree.json"]


@pytest.mark.in_turn
def test_the_format_is_a_run_that_ends_when_nothing_is_left(made: Path) -> None:
    first, second = bundles(made / "study0")
    assert first.name.endswith("format_for_rd1")
    assert second.name.endswith("rd1")
    assert set(reasons(first)) == {"exhausted"}
    assert set(reasons(second)) == {"runtime"}
    lines = {job["name"]: job for job in document(first)["jobs"]}
    assert lines["format.fsd1.mkdir"]["mkdir"]["operations"] == 2 + 4
    assert lines["format.fsd1.create"]["create"]["operations"] == 24
    written = lines["format.fsd1.create"]["write"]["bytes"]
    assert written == sum(path.stat().st_size for path in files(made))


@pytest.mark.in_turn
def test_rates_are_held_and_only_what_was_asked_for_counts(made: Path) -> None:
    jobs = {job["name"]: job for job in document(bundles(made / "study0")[1])["jobs"]}
    look, work = jobs["look.fsd1"], jobs["work.fsd1"]
    asked = {row["op"]: row for job in (look, work) for row in job["pacing"]}
    assert set(asked) == {"getattr", "read", "write"}
    assert all(row["held"] for row in asked.values()), asked
    assert asked["getattr"]["asked_per_s"] == pytest.approx(300, rel=0.01)
    assert look["operations"] == look["getattr"]["operations"]
    assert work["operations"] == work["read"]["operations"] + work["write"]["operations"]
    assert work["open"]["operations"] > 0
    assert look["getattr"]["latency_ns"]["max"] >= look["getattr"]["latency_ns"]["percentiles"]["50"]


@pytest.mark.in_turn
def test_the_export_agrees_with_the_result(made: Path) -> None:
    done = program.run("export", made / "study0", "vdbench", made / "out", cwd=made)
    assert done.code == 0, done.err
    text = (made / "out" / "flatfile.html").read_text().splitlines()
    at, names = next(
        (at, line.split()) for at, line in enumerate(text) if line.startswith(" ") and "tod" in line
    )
    rows = [dict(zip(names, line.split(), strict=False)) for line in text[at + 1 :] if line.strip()]
    average = next(row for row in rows if row["Run"] == "rd1" and row["Interval"].startswith("avg"))
    assert float(average["Reqrate"]) == 500
    assert float(average["Rate"]) == pytest.approx(500, rel=0.15)
    sum_of = sum(float(average[f"{op}_rate"]) for op in ("Getattr", "Read", "Write"))
    assert float(average["Rate"]) == pytest.approx(sum_of, rel=1e-3)
    first = next(row for row in rows if row["Run"] == "format_for_rd1")
    assert float(first["Write_rate"]) > 0
    summary = (made / "out" / "summary.html").read_text()
    assert "Starting RD=format_for_rd1</b>" in summary
    assert re.search(r"Starting RD=rd1; elapsed=4; fwdrate=500; For loops: None", summary)
    assert "..getattr..." in summary
    for name in ("fsd1", "look", "work", "format", "fsd1.histogram", "totals", "skew"):
        assert (made / "out" / f"{name}.html").exists()


@pytest.mark.in_turn
def test_the_page_and_the_audit_take_it(made: Path) -> None:
    for bundle in bundles(made / "study0"):
        for verb in ("report", "audit"):
            done = program.run(verb, bundle, cwd=made)
            assert done.code == 0, done.err
        page = (bundle / "report.html").read_text()
        assert "getattr" in page or "mkdir" in page
    first, second = bundles(made / "study0")
    done = program.run("compare", first, second, cwd=made)
    assert "Traceback" not in done.err
    done = program.run("export", second, "fio-json", cwd=made)
    assert done.code == 2
    assert "no place for that" in done.err


@pytest.mark.in_turn
def test_a_life_of_files_ends_with_an_empty_anchor(tmp_path: Path) -> None:
    text = (
        "fwd=default,fsd=fsd1,xfersize=4k,threads=3,fileselect=(sequential,once)\n"
        "fwd=dirs,operation=mkdir\nfwd=make,operation=create\nfwd=fill,operation=write\nfwd=fetch,operation=read\n"
        "fwd=drop,operation=delete\nfwd=away,operation=rmdir\nrd=default,fwdrate=max,elapsed=60,warmup=0\n"
        "rd=r1,fwd=dirs\nrd=r2,fwd=make\nrd=r3,fwd=fill\nrd=r4,fwd=fetch\nrd=r5,fwd=drop\nrd=r6,fwd=away\n"
    )
    found = bundles(study(tmp_path, text))
    assert [bundle.name[4:] for bundle in found] == ["r1", "r2", "r3", "r4", "r5", "r6"]
    assert [set(reasons(bundle)) for bundle in found] == [{"exhausted"}] * 6
    done = {
        name: sum(end["file_ops"][name]["completed"] for end in events(bundle, "stream_end"))
        for bundle, name in zip(found, ("mkdir", "create", "close", "open", "delete", "rmdir"), strict=True)
    }
    assert done == {"mkdir": 6, "create": 24, "close": 24, "open": 24, "delete": 24, "rmdir": 6}
    # A create leaves an empty file, as in vdbench: it is the write that fills it.
    assert "write" not in document(found[1])["jobs"][0]
    assert [path.name for path in (tmp_path / "tree").iterdir()] == [".loadstone-tree.json"]


@pytest.mark.in_turn
def test_what_a_format_deletes_is_measured_where_the_tree_is_ours_and_the_same(tmp_path: Path) -> None:
    text = "fwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format=only\n"
    study(tmp_path, text)
    count = len(files(tmp_path))
    again = bundles(study(tmp_path, text))[0]
    jobs = {job["name"]: job for job in document(again)["jobs"]}
    assert list(jobs) == [f"format.fsd1.{op}" for op in ("delete", "rmdir", "mkdir", "create")]
    assert jobs["format.fsd1.delete"]["delete"]["operations"] == count
    assert jobs["format.fsd1.rmdir"]["rmdir"]["operations"] == 6
    assert not plan(again)["trees"][0]["clear"]
    assert len(files(tmp_path)) == count
    # What somebody else put there goes before anything is timed, and only with consent.
    files(tmp_path)[0].write_bytes(b"mine")
    agreed = ("--i-accept-data-loss", str(tmp_path / "tree"))
    other = bundles(study(tmp_path, text, *agreed))[0]
    assert [job["name"] for job in document(other)["jobs"]] == ["format.fsd1.mkdir", "format.fsd1.create"]
    assert plan(other)["trees"][0]["clear"]
    assert len(files(tmp_path)) == count


@pytest.mark.in_turn
def test_clean_leaves_what_is_not_of_a_tree(tmp_path: Path) -> None:
    text = "fwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format={}\n"
    study(tmp_path, text.format("only"))
    (tmp_path / "tree" / "vdb.1_1.dir.txt").write_text("mine")
    (tmp_path / "tree" / "notes").mkdir()
    study(tmp_path, text.format("clean"))
    names = {path.name for path in (tmp_path / "tree").iterdir()}
    assert names == {".loadstone-tree.json", "vdb.1_1.dir.txt", "notes"}


@pytest.mark.in_turn
def test_a_restart_makes_what_is_missing(tmp_path: Path) -> None:
    text = "fwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format={}\n"
    study(tmp_path, text.format("only"))
    whole = {path: path.stat().st_size for path in files(tmp_path)}
    gone, short, *_ = whole
    gone.unlink()
    with short.open("r+b") as opened:
        opened.truncate(512)
    # Nobody but the user knows what was cut.
    agreed = ("--i-accept-data-loss", str(tmp_path / "tree"))
    out = study(tmp_path, text.format("(restart,only)"), *agreed)
    assert {path: path.stat().st_size for path in files(tmp_path)} == whole
    creates = document(bundles(out)[0])["jobs"][1]
    assert creates["create"]["operations"] <= 2


@pytest.mark.in_turn
def test_a_tree_that_nobody_marked_is_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / "tree" / "vdb.1_1.dir"
    folder.mkdir(parents=True)
    (folder / "vdb_f0001.file").write_text("precious")
    file = parameter_file(tmp_path, "fwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format=yes\n")
    done = program.run("run", file, "--out", "study", cwd=tmp_path)
    assert done.code == 2
    assert "Loadstone left no mark there" in done.err
    assert f"--i-accept-data-loss {tmp_path / 'tree'}" in done.err
    assert (folder / "vdb_f0001.file").read_text() == "precious"
    assert not (tmp_path / "study").exists()


@pytest.mark.in_turn
@pytest.mark.parametrize("operation", ["copy", "move", "write"])
@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_tree_that_only_a_later_run_changes_is_asked_for_before_the_first(
    tmp_path: Path, verb: str, operation: str
) -> None:
    """What the run would copy is made by the first one, so it cannot be resolved before."""
    folder = tmp_path / "tree" / "vdb.1_1.dir"
    folder.mkdir(parents=True)
    (folder / "vdb_f0001.file").write_text("precious")
    shape = "depth=1,width=1,files=2,size=4k"
    source, goal = ("a", "target=b,") if operation != "write" else ("b", "")
    file = tmp_path / "list.parm"
    file.write_text(
        f"fsd=a,anchor={tmp_path / 'source'},{shape}\nfsd=b,anchor={tmp_path / 'tree'},{shape}\n"
        "fwd=r,fsd=a,operation=read\n"
        f"fwd=w,fsd={source},{goal}operation={operation}\n"
        "rd=first,fwd=r,fwdrate=50,elapsed=2,format=yes\nrd=later,fwd=w,fwdrate=50,elapsed=2,format=no\n"
    )
    done = program.run(verb, file, *(("--out", "study") if verb == "run" else ()), cwd=tmp_path)
    assert done.code == 2
    assert f"--i-accept-data-loss {tmp_path / 'tree'}" in done.err
    assert not (tmp_path / "source").exists()
    assert not (tmp_path / "study").exists()
    assert (folder / "vdb_f0001.file").read_text() == "precious"


@pytest.mark.in_turn
def test_files_are_copied_and_moved_between_trees_that_were_formatted_before(tmp_path: Path) -> None:
    """The mark of the tree they go to vouches for it: that was called a difference between the two."""
    file = tmp_path / "list.parm"
    shape = "depth=1,width=2,files=4,size=8k"
    trees = f"fsd=a,anchor={tmp_path / 'source'},{shape}\nfsd=b,anchor={tmp_path / 'tree'},{shape}\n"
    file.write_text(
        f"{trees}fwd=w,fsd=(a,b),operation=read\nrd=r,fwd=w,fwdrate=50,elapsed=2,format=(yes,only)\n"
    )
    assert program.run("run", file, "--out", "formatted", "--no-report", cwd=tmp_path).code == 0
    source, tree = tmp_path / "source", tmp_path / "tree"
    names = [path.relative_to(source) for path in source.rglob("*.file")]
    for number, name in enumerate(names):
        (source / name).write_bytes(bytes([number]) * 8192)  # That it is read needs no consent.
    for operation in ("copy", "move"):
        file.write_text(
            f"{trees}fwd=w,fsd=a,target=b,operation={operation},fileselect=(sequential,once)\n"
            "rd=r,fwd=w,fwdrate=50,elapsed=4,format=no\n"
        )
        agreed = ("--i-accept-data-loss", source) if operation == "move" else ()
        done = program.run("run", file, "--out", operation, "--no-report", *agreed, cwd=tmp_path)
        assert done.code == 0, done.err
        content = {name: set((tree / name).read_bytes()) for name in names}
        assert content == {name: {number} for number, name in enumerate(names)}, operation
    assert not list(source.rglob("*.file"))


def test_a_format_is_of_the_tree_that_files_come_from(tmp_path: Path) -> None:
    """So it is in vdbench; the hint was to run with format=yes, which was there."""
    shape = "depth=1,width=1,files=2,size=4k"
    file = tmp_path / "list.parm"
    file.write_text(
        f"fsd=a,anchor={tmp_path / 'source'},{shape}\nfsd=b,anchor={tmp_path / 'tree'},{shape}\n"
        "fwd=w,fsd=a,target=b,operation=copy\nrd=r,fwd=w,fwdrate=50,elapsed=2,format=yes\n"
    )
    done = program.run("run", file, "--out", "study", "--no-report", cwd=tmp_path)
    assert done.code == 1
    assert f"there are no directories of a tree in {tmp_path / 'tree'}, to which files are to go" in done.err
    assert "a format makes the tree that a copy takes files from" in done.err
    assert len(list((tmp_path / "source").rglob("*.file"))) == 2


@pytest.mark.in_turn
def test_trees_whose_files_are_numbered_otherwise_are_no_places_to_copy_between(tmp_path: Path) -> None:
    """As older vdbenches number them from 1: what was wrong was told of the Plan, not of the file."""
    for anchor, first in (("source", 0), ("tree", 1)):
        folder = tmp_path / anchor / "vdb.1_1.dir"
        folder.mkdir(parents=True)
        for number in (first, first + 1):
            (folder / f"vdb_f{number:04d}.file").write_bytes(bytes(4096))
    shape = "depth=1,width=1,files=2,size=4k"
    file = tmp_path / "list.parm"
    file.write_text(
        f"fsd=a,anchor={tmp_path / 'source'},{shape}\nfsd=b,anchor={tmp_path / 'tree'},{shape}\n"
        "fwd=w,fsd=a,target=b,operation=copy\nrd=later,fwd=w,fwdrate=50,elapsed=2,format=no\n"
    )
    done = program.run("run", file, "--out", "study", cwd=tmp_path)
    assert done.code == 2
    place = tmp_path / "tree"
    assert f"list.parm:1: anchor: files are numbered from 1 in {place} and from 0 in" in done.err
    assert "format=yes" in done.err


@pytest.mark.in_turn
def test_another_structure_is_an_error_with_its_place(tmp_path: Path) -> None:
    study(tmp_path, "fwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format=only\n")
    file = tmp_path / "files.parm"
    file.write_text(file.read_text().replace("width=2", "width=3").replace("format=only", "format=no"))
    done = program.run("run", file, "--out", "other", cwd=tmp_path)
    assert done.code == 2
    assert "files.parm:1: anchor" in done.err
    assert "width was 2, is 3" in done.err


@pytest.mark.in_turn
def test_files_hold_as_many_different_blocks_as_dedupratio_says(tmp_path: Path) -> None:
    file = tmp_path / "files.parm"
    file.write_text(
        "dedupratio=2\ndedupunit=4k\ncompratio=2\n"
        f"fsd=fsd1,anchor={tmp_path / 'tree'},depth=1,width=2,files=20,sizes=(8k,50,256k,50)\n"
        "fwd=format,threads=2,openflags=fsync\nfwd=w,fsd=fsd1\nrd=r,fwd=w,fwdrate=max,elapsed=4,format=only\n"
    )
    done = program.run("run", file, "--out", tmp_path / "study", cwd=tmp_path)
    assert done.code == 0, done.err
    (made,) = bundles(tmp_path / "study")
    assert "wherever it goes; vdbench repeats by address" in (made / "notes.json").read_text()
    whole = b"".join(path.read_bytes() for path in files(tmp_path))
    blocks = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]
    assert len(blocks) > 1000
    assert len(set(blocks)) / len(blocks) == pytest.approx(0.5, abs=0.06)
    assert len(whole) / len(b"".join(zlib.compress(block, 1) for block in blocks)) == pytest.approx(
        2, abs=0.2
    )
    creates = document(made)["jobs"][1]
    counts = {op: creates[op]["operations"] for op in ("create", "open", "close", "sync")}
    assert counts == dict.fromkeys(counts, 40)
    assert creates["sync"]["latency_ns"]["mean"] < creates["close"]["latency_ns"]["mean"]


@pytest.mark.in_turn
def test_a_run_ends_by_its_data(tmp_path: Path) -> None:
    text = (
        "fwd=default,fsd=fsd1,xfersize=4k,threads=2,openflags=clear_cache\n"
        "fwd=put,operation=write,skew=75\nfwd=get,operation=read,skew=25\n"
        "rd=r,fwd=(put,get),fwdrate=max,format=yes,elapsed=60,maxdata=4m\n"
    )
    out = study(tmp_path, text)
    last = bundles(out)[-1]
    assert reasons(last) == {"bytes": 4}
    done = [end["completed"] for end in sorted(events(last, "stream_end"), key=lambda end: end["stream"])]
    # A last transfer that is shorter, at the end of a file, may leave less than one undone.
    assert [write for _, write, _, _ in done[:2]] == pytest.approx([384, 384], abs=1)
    assert [read for read, _, _, _ in done[2:]] == pytest.approx([128, 128], abs=1)
    assert plan(last)["targets"][0]["invalidate"]


@pytest.mark.in_turn
def test_a_close_counts_and_leaves_the_files_as_they_were(tmp_path: Path) -> None:
    text = "fwd=fwd1,fsd=fsd1,operation=close,threads=2\nrd=rd1,fwd=fwd1,fwdrate=200,format=yes,elapsed=3\n"
    run = bundles(study(tmp_path, text))[-1]
    ended = events(run, "stream_end")
    done = Counter[str]()
    for one in ended:
        done.update({op: int(counts["completed"]) for op, counts in one["file_ops"].items()})
    assert set(done) == {"open", "close"}
    assert done["close"] == done["open"]
    assert document(run)["total"]["operations"] > 100, "without the first interval"
    assert sorted({path.stat().st_size for path in files(tmp_path)}) == [4096, 20480]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["vdb_f0002.file", "vdb_f0077.file"])
def test_a_file_that_is_moved_into_a_tree_during_a_run_is_kept_then_and_later(
    tmp_path: Path, name: str
) -> None:
    """One has the name of a file of the tree, the other a number that the tree does not have."""
    text = "fwd=w,fsd=fsd1,operation=write,xfersize=4k,threads=2\nrd=r,fwd=w,fwdrate=50,format=yes,elapsed=5"
    job, mine = parameter_file(tmp_path, text), tmp_path / "mine"
    mine.write_text("two years of work")
    placed = tmp_path / "tree" / "vdb.1_1.dir" / "vdb.2_1.dir" / name
    words = ["run", str(job), "--out", str(tmp_path / "study")]
    with StartedProgram(
        words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as run:
        until_s = time.monotonic() + 60
        while not any('"start"' in one.read_text() for one in tmp_path.glob("study/runs/002*/events.jsonl")):
            assert run.poll() is None, "the run ended before it began"
            assert time.monotonic() < until_s
            time.sleep(0.05)
        mine.rename(placed)
        _, said = run.communicate(timeout=120)
    assert placed.read_text() == "two years of work"
    if name == "vdb_f0002.file":
        assert run.returncode == 1
        assert f"{placed}: Stale file handle; another file took its place" in said
    told = [one["text"] for one in events(bundles(tmp_path / "study")[-1], "note")]
    assert any(f"{placed} came into a tree" in text for text in told), told
    for rd in ("format=yes", "format=no"):
        again = parameter_file(tmp_path, text.replace("format=yes", rd))
        done = program.run("run", again, "--out", tmp_path / rd, cwd=tmp_path)
        assert done.code == 2
        assert f"{placed} came during the run that changed it last" in done.err
        assert placed.read_text() == "two years of work"


@pytest.mark.in_turn
def test_what_somebody_appends_to_a_file_of_a_tree_needs_consent_afterwards(tmp_path: Path) -> None:
    """The tree was sealed with it, and the next format removed it without a question."""
    text = "fwd=fwd1,fsd=fsd1,operation=write,xfersize=4k\nrd=rd1,fwd=fwd1,fwdrate=20,{}\n"
    study(tmp_path, text.format("format=yes,elapsed=2,interval=1"))
    job = parameter_file(tmp_path, text.format("format=no,elapsed=4,interval=1"))
    process = program.start("run", job, "--out", tmp_path / "out", cwd=tmp_path)
    program.until(lambda: list((tmp_path / "out").glob("runs/*/events.jsonl")), "the run of the study")
    program.ticks(bundles(tmp_path / "out")[0], 1)
    longer = files(tmp_path)[3]
    with longer.open("ab") as file:
        file.write(b"mine" * 10_000)
    assert program.finish(process).code == 0
    content = longer.read_bytes()
    refused = program.run("run", job, "--out", tmp_path / "again", cwd=tmp_path)
    assert refused.code == 2
    assert longer.name in refused.err
    assert longer.read_bytes() == content
