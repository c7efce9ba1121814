"""Damage to bundles and studies, drawn from a seed: what disks, copies, people and attackers leave.

Each draw changes one to three things below a directory that is a copy of a whole bundle. Knows files,
JSON, Arrow, Parquet and seals; no meaning of any field.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from loadstone.bundle import experiment, layout, seal, study
from loadstone.errors import BundleError
from tests.support import runs
from tests.support.json_places import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Damage = Callable[[Path, random.Random, list[Path]], str]

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400, 0.5,
    -0.5, 1e-308, 1e308, float("nan"), float("inf"), "", "x", "x" * 100_000, "\u0000", "\x1b[2J", "=1+1",
    "../../etc/passwd", "/etc/passwd", "/dev/zero", "é\u202e", [], {}, [[]], [None], {"a": None}, [1, "x"],
    "read", "4k", "complete", "partial", "2026-01-01T00:00:00Z",
]  # fmt: skip


def deep(levels: int = 50_000) -> str:
    return "[" * levels + "]" * levels


def members(path: Path, *endings: str) -> list[Path]:
    """Files below a directory that a report does not write."""
    return sorted(
        one
        for one in path.rglob("*")
        if one.is_file()
        and not one.is_symlink()
        and not one.name.startswith("report.")
        and (not endings or one.name.endswith(endings))
    )


def _pick(path: Path, rng: random.Random, *endings: str) -> Path | None:
    found = members(path, *endings)
    return rng.choice(found) if found else None


def _description(path: Path, file: Path, what: str) -> str:
    return f"{file.relative_to(path)}: {what}"


def bits(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None or not file.stat().st_size:
        return "nothing"
    data = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    file.write_bytes(data)
    return _description(path, file, "bits flipped")


def cut(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None:
        return "nothing"
    size = file.stat().st_size
    end = rng.choice([0, 1, 4, 8, 12, size // 2, max(0, size - 1), max(0, size - 9), rng.randint(0, size)])
    with file.open("r+b") as opened:
        opened.truncate(end)
    return _description(path, file, f"cut to {end} of {size} bytes")


def overwritten(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None or not file.stat().st_size:
        return "nothing"
    data = bytearray(file.read_bytes())
    begin = rng.randrange(len(data))
    length = rng.choice([1, 8, 512, 4096])
    filler = rng.choice([bytes(length), b"\xff" * length, rng.randbytes(length)])
    data[begin : begin + length] = filler
    file.write_bytes(data)
    return _description(path, file, f"{length} bytes from {begin} overwritten")


def longer(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None:
        return "nothing"
    with file.open("ab") as opened:
        opened.write(rng.choice([b"\0" * 4096, rng.randbytes(100), b"{}\n", b"[[[[\n", b"\n" * 100]))
    return _description(path, file, "something added at its end")


def removed(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None:
        return "nothing"
    file.unlink()
    return _description(path, file, "removed")


def of_another(path: Path, rng: random.Random, others: list[Path]) -> str:
    file = _pick(path, rng)
    other = rng.choice(others)
    if file is None:
        return "nothing"
    alike = [one for one in members(other) if one.name == file.name] or members(other)
    shutil.copy(rng.choice(alike), file)
    return _description(path, file, f"that of {other.name}")


def of_its_own(path: Path, rng: random.Random, _others: list[Path]) -> str:
    one, two = _pick(path, rng), _pick(path, rng)
    if one is None or two is None or one == two:
        return "nothing"
    shutil.copy(two, one)
    return _description(path, one, f"holds {two.relative_to(path)}")


def other_kind(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng)
    if file is None:
        return "nothing"
    file.unlink()
    what = rng.choice(["directory", "pipe", "link", "broken link", "link to itself", "device link", "full"])
    if what == "directory":
        file.mkdir()
    elif what == "full":
        file.mkdir()
        (file / "x").write_text("x")
    elif what == "pipe":
        os.mkfifo(file)
    else:
        to = {"link": "/etc/passwd", "broken link": "nowhere", "link to itself": file.name}
        file.symlink_to(to.get(what, "/dev/zero"))
    return _description(path, file, f"is now a {what}")


def added(path: Path, rng: random.Random, _others: list[Path]) -> str:
    name = rng.choice(["samples.arrows", "samples.parquet", "ios.parquet", "host.jsonl", "x", "input/y"])
    file = path / name
    if file.exists() or not file.parent.is_dir():
        return "nothing"
    file.write_bytes(rng.choice([b"", b"PAR1PAR1", b"\xff\xff\xff\xff\x10\0\0\0" + bytes(16), b"{}"]))
    return _description(path, file, "added")


def _change(document: Any, rng: random.Random) -> tuple[Any, str]:
    document = copy.deepcopy(document)
    paths = places(document)
    if not paths or rng.random() < 0.05:
        value = rng.choice(VALUES)
        return value, f"all of it {str(value)[:20]!r}"
    place = rng.choice(paths)
    at = document
    for step in place[:-1]:
        at = at[step]
    what = rng.random()
    name = ".".join(map(str, place))
    if what < 0.2:
        del at[place[-1]]
        return document, f"{name} removed"
    if what < 0.3 and isinstance(at[place[-1]], int | float):
        at[place[-1]] = rng.choice([-1, 10**6, 10**12, 2**40]) * at[place[-1]] + rng.choice([0, 1, -1])
    elif what < 0.4 and isinstance(at, list):
        at += [copy.deepcopy(one) for one in at for _ in range(rng.choice([1, 3, 200]))][:100_000]
    else:
        at[place[-1]] = copy.deepcopy(rng.choice(VALUES))
    return document, f"{name} is {str(at[place[-1]])[:20]!r}"


def _json(value: Any, rng: random.Random) -> bytes:
    text = json.dumps(value)
    if rng.random() < 0.1:
        text = text.replace("null", rng.choice(["1e999", deep(), "-0", "NaN", '"\\ud800"']), 1)
    return text.encode()


def document(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng, ".json")
    if file is None:
        return "nothing"
    try:
        changed, told = json.loads(file.read_bytes()), ""
    except ValueError:
        return "nothing"
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        changed, told = _change(changed, rng)
    file.write_bytes(_json(changed, rng))
    return _description(path, file, told)


def line(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng, ".jsonl")
    if file is None:
        return "nothing"
    lines = file.read_bytes().splitlines(keepends=True)
    if not lines:
        return "nothing"
    told = ""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(lines))
        try:
            changed, told = _change(json.loads(lines[at]), rng)
        except ValueError:
            continue
        lines[at] = _json(changed, rng) + b"\n"
        if rng.random() < 0.1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        if rng.random() < 0.05:
            lines[at] = b"\xff\xfe" + lines[at]
    file.write_bytes(b"".join(lines))
    return _description(path, file, told)


INTEGERS = [0, 1, -1, 2**8 - 1, 2**16 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1]
FLOATS = [0.0, -1.0, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), 1e-300]


def _cells(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, str]:
    """Set some values of a column."""
    name = rng.choice(frame.columns)
    kind = frame.schema[name]
    values = frame[name].to_list()
    for _ in range(rng.choice([1, 1, 5, len(values)])):
        at = rng.randrange(len(values))
        if kind.is_integer():
            values[at] = rng.choice(INTEGERS)
        elif kind.is_float():
            values[at] = rng.choice(FLOATS)
        elif isinstance(kind, pl.List):
            values[at] = rng.choice([[], None, [0], [2**16 - 1], [2496], [1] * 5000, [None], [3, 2, 1]])
        else:
            values[at] = rng.choice([True, False, None])
        if rng.random() < 0.2:
            values[at] = None
    made = pl.Series(name, values, dtype=kind, strict=False)
    return frame.with_columns(made), f"values of {name} changed"


def _columns(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, str]:
    """Change which columns there are, or their types."""
    name = rng.choice(frame.columns)
    what = rng.choice(["drop", "text", "float", "wider", "rename", "more", "list", "none", "reverse"])
    if what == "drop":
        return frame.drop(name), f"{name} dropped"
    if what == "rename":
        return frame.rename({name: f"{name}é"}), f"{name} renamed"
    if what == "more":
        return frame.with_columns(pl.lit("x").alias("x")), "a column more"
    if what == "reverse":
        return frame.select(reversed(frame.columns)), "columns in another order"
    if what == "none":
        return frame.select(pl.lit(None).alias(name)), "a column of nothing"
    if isinstance(frame.schema[name], pl.List):
        return frame.with_columns(pl.lit(1).alias(name)), f"{name} no list"
    kinds: dict[str, Any] = {"text": pl.String, "float": pl.Float32, "wider": pl.Int64}
    if what == "list":
        return frame.with_columns(pl.concat_list(pl.col(name)).alias(name)), f"{name} a list"
    return frame.with_columns(pl.col(name).cast(kinds[what], strict=False)), f"{name} as {what}"


def _rows(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, str]:
    """Change which rows there are."""
    what = rng.choice(["none", "one", "twice", "shuffled", "many"])
    if what == "none":
        return frame.clear(), "no rows"
    if what == "one":
        return frame[rng.randrange(frame.height)], "one row"
    if what == "twice":
        return pl.concat([frame, frame]), "each row twice"
    if what == "shuffled":
        return frame.sample(fraction=1.0, shuffle=True, seed=rng.randrange(1000)), "rows shuffled"
    return frame[[0] * 200_000], "200,000 equal rows"


def _times(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, str]:
    """Let time run otherwise: backwards, not at all, in leaps, past the end of a run."""
    names = [name for name in frame.columns if name.endswith("_ns") or name in ("interval", "unix_ns")]
    if not names:
        return _cells(frame, rng)
    what = rng.choice(["backwards", "still", "leaps", "swapped", "late"])
    chosen = names if rng.random() < 0.5 else [rng.choice(names)]
    changes: dict[str, pl.Expr] = {}
    for name in chosen:
        column = pl.col(name)
        changes[name] = {
            "backwards": column.reverse(),
            "still": column.first(),
            "leaps": column * 1000,
            "swapped": pl.col(rng.choice(names)),
            "late": column + 10**15,
        }[what]
    cast = {name: one.cast(frame.schema[name], strict=False) for name, one in changes.items()}
    return frame.with_columns(**cast), f"time {what} in {', '.join(chosen)}"


def _histograms(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, str]:
    """Give the histograms another width, order or count than their rows have."""
    names = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    if not names:
        return _cells(frame, rng)
    what = rng.choice(["shorter", "longer", "reversed", "many", "beyond", "negative"])
    name = rng.choice(names)
    column = pl.col(name)
    changed = {
        "shorter": column.list.head(1),
        "longer": pl.concat_list(column, column),
        "reversed": column.list.reverse(),
        "many": column.list.eval(pl.element() * 0 + 2**31),
        "beyond": column.list.eval(pl.element() * 0 + 60_000),
        "negative": column.list.eval(pl.element().cast(pl.Int64) * -1),
    }[what]
    return frame.with_columns(changed.cast(frame.schema[name], strict=False)), f"{name} {what}"


def table(path: Path, rng: random.Random, _others: list[Path]) -> str:
    file = _pick(path, rng, ".parquet", ".arrows")
    if file is None:
        return "nothing"
    try:
        frame = _read(file)
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError):
        return "nothing"
    if not frame.width or not frame.height:
        return "nothing"
    frame, told = rng.choice([_cells, _cells, _times, _histograms, _columns, _rows])(frame, rng)
    if file.suffix == ".parquet":
        _write_parquet(frame, file, rng)
    else:
        _write_arrows(frame, file, rng)
    return _description(path, file, told)


def _read(file: Path) -> pl.DataFrame:
    if file.suffix == ".parquet":
        return pl.read_parquet(file)
    with pa.ipc.open_stream(file.read_bytes()) as reader:
        found = pl.from_arrow(reader.read_all())
    assert isinstance(found, pl.DataFrame)
    return found


def _write_parquet(frame: pl.DataFrame, file: Path, rng: random.Random) -> None:
    if rng.random() < 0.5:
        frame.write_parquet(file, compression=rng.choice(["zstd", "snappy", "uncompressed", "gzip"]))
    else:
        pq.write_table(frame.to_arrow(), file, row_group_size=max(1, frame.height // rng.choice([1, 3, 20])))


def _write_arrows(frame: pl.DataFrame, file: Path, rng: random.Random) -> None:
    whole = frame.to_arrow()
    fields = [
        pa.field(one.name, pa.list_(one.type.value_type)) if pa.types.is_large_list(one.type) else one
        for one in whole.schema
    ]
    whole = whole.cast(pa.schema(fields))
    squeezed = pa.ipc.IpcWriteOptions(compression=rng.choice([None, None, "zstd", "lz4"]))
    with file.open("wb") as out, pa.ipc.new_stream(out, whole.schema, options=squeezed) as stream:
        stream.write_table(whole, max_chunksize=max(1, frame.height // rng.choice([1, 3, 20])))


KINDS: dict[str, Damage] = {
    one.__name__: one
    for one in (
        bits,
        cut,
        overwritten,
        longer,
        removed,
        of_another,
        of_its_own,
        other_kind,
        added,
        document,
        line,
        table,
    )
}
ABSURD = ("document", "line", "table")
"""Damage to what files say and not to the files, so that a seal made anew holds."""
WEIGHTS = {"document": 6, "line": 4, "table": 6, "bits": 3, "cut": 3}


def seal_again(path: Path) -> None:
    """Compute all hashes anew, from the inside out: what is read then is what was changed."""
    manifests = sorted(path.rglob(layout.MANIFEST), key=lambda one: -len(one.parts))
    for one in manifests:
        with contextlib.suppress(BundleError, ValueError, TypeError, AttributeError, OSError):
            runs.reseal(one.parent)
    for name in (study.STUDY, experiment.FILE):
        for file in sorted(path.rglob(name)):
            with contextlib.suppress(BundleError, ValueError, TypeError, AttributeError, OSError):
                found = json.loads(file.read_text())
                for point in found.get("points", ()):
                    if point.get("seal") is not None:
                        point["seal"] = study.seal_of(file.parent / point["bundle"])
                file.write_text(json.dumps(seal.with_digest(found)))


def damaged(source: Path, to: Path, seed: int, others: list[Path], *, sealed: bool = False) -> str:
    """Make a damaged copy of a bundle or a study; return in words what was done to it.

    `sealed`: whoever did it computed all hashes anew.
    """
    shutil.copytree(source, to, symlinks=True)
    rng = random.Random(seed)
    names = list(ABSURD if sealed else KINDS)
    told: list[str] = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        for _attempt in range(20):
            (name,) = rng.choices(names, [WEIGHTS.get(one, 1) for one in names])
            said = KINDS[name](to, rng, others)
            if said != "nothing":
                told.append(f"{name}: {said}")
                break
    if sealed:
        seal_again(to)
        told.append("sealed again")
    return "; ".join(told)
