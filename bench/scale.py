"""What many targets and many outstanding I/Os cost: memory, start, CPU time per I/O.

Runs the bare engine beside fio (as processes and as threads) on the same job file, on 1 to
4,096 targets with 16,384 and 65,536 I/Os outstanding in all, and on a shape that people
publish: 8 targets, 16 clones each, 128 deep. The targets are links to `/dev/zero`, which
completes at once, so that what is seen is the program's own. fio is left out above
`--fio-most` jobs.

    python bench/scale.py [--seconds 2] [--chart docs/img/scale] [--shape-only] [--json FILE]

"First I/O" is the engine's own word (`startup_ns`); "outside the load" is the wall time of
the program less that of its load, which can be had of both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cases
import footprint
import measure
import programs
from cases import SHM
from compare import markdown, nanoseconds
from loops import loop_devices, unavailable

from loadstone.engine.binary import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT_S = 1.0
OUTSTANDING = (16_384, 65_536)
TARGETS = (1, 8, 64, 512, 4096)
MOST_DEPTH = 32_768
"""fio refuses more."""
FILE_BYTES = 32 << 20
ENGINE, PROCESSES, THREADS = "engine", "fio, processes", "fio, threads"


@dataclass(frozen=True)
class Shape:
    """Jobs: each target has `clones` of `iodepth`."""

    kind: str
    targets: int
    clones: int
    iodepth: int

    @property
    def outstanding(self) -> int:
        """I/Os in flight in all."""
        return self.targets * self.clones * self.iodepth


@dataclass(frozen=True)
class ScaleRow:
    """One program on one shape; memory and times of the long run."""

    shape: Shape
    program: str
    iops: float
    cpu_ns: float
    kernel_ns: float
    resident_bytes: int
    proportional_bytes: int
    first_io_ms: float | None
    outside_ms: float
    others_cores: float


def job_file(shape: Shape, paths: list[str], seconds: float, *, threads: bool) -> str:
    """The job file of a shape."""
    options = {"bs": "4k", "rw": "randread", "ioengine": "io_uring", "iodepth": str(shape.iodepth)}
    options |= {"numjobs": str(shape.clones), "group_reporting": "1", "norandommap": "1"}
    options |= {"size": "1g"} if shape.kind == "zero" else {"direct": "1"}
    options |= {"time_based": "1", "runtime": f"{round(seconds * 1000)}ms"} | (
        {"thread": "1"} if threads else {}
    )
    lines = ["[global]", *(f"{key}={value}" for key, value in options.items())]
    for number, path in enumerate(paths):
        lines += [f"[t{number}]", f"filename={path}"]
    return "\n".join([*lines, ""])


def measured(shape: Shape, paths: list[str], program: str, seconds: float) -> ScaleRow:
    """Short and long run of one program."""
    runs: list[measure.MeasuredRun] = []
    texts: list[str] = []
    memory = footprint.Footprint()
    with measure.scratch() as name:
        folder = Path(name)
        for length in (SHORT_S, seconds):
            file = folder / "scale.fio"
            file.write_text(job_file(shape, paths, length, threads=program == THREADS))
            command = (
                _engine(file, folder, shape.kind)
                if program == ENGINE
                else ["fio", str(file), "--output-format=json"]
            )
            read = partial(_read, program == ENGINE, folder, texts)
            runs.append(measure.run(command, read, lambda pid: footprint.FootprintWatch(pid, memory)))
    cost = measure.slope(runs[:1], runs[1:])
    first = programs.events(texts[-1], "start")[0]["startup_ns"] / 1e6 if program == ENGINE else None
    return ScaleRow(
        shape,
        program,
        cost.iops,
        cost.user_ns + cost.system_ns,
        cost.kernel_ns,
        memory.resident_bytes,
        memory.proportional_bytes,
        first,
        (runs[-1].wall_s - seconds) * 1e3,
        cost.others_cores,
    )


def _read(is_engine: bool, folder: Path, texts: list[str], text: str) -> measure.ProgramResult:
    texts.append(text)
    return programs.from_engine(text, folder / "scale.out") if is_engine else programs.from_fio(text)


def _engine(file: Path, folder: Path, kind: str) -> list[str]:
    plan = folder / "plan.json"
    # As a session writes it; `loadstone plan` prints it for people, twice as long. On /dev/zero
    # it is kept on the ring: otherwise there would be no depth to see.
    document = programs.plan(file, *(["--keep-ioengine"] if kind == "zero" else []))
    plan.write_text(json.dumps(json.loads(document), separators=(",", ":")))
    return [str(find()), "run", str(plan), "--out", str(folder / "scale.out")]


@contextlib.contextmanager
def places(kind: str, count: int) -> Iterator[list[str]]:
    """Paths of so many targets of a kind."""
    with contextlib.ExitStack() as stack:
        memory = str(SHM) if kind != "zero" else None
        folder = Path(stack.enter_context(measure.scratch(folder=memory)))
        if kind == "loop":
            yield stack.enter_context(loop_devices(folder, count, FILE_BYTES))
            return
        paths = [folder / f"d{number}" for number in range(count)]
        for path in paths:
            if kind == "zero":
                path.symlink_to("/dev/zero")
            else:
                cases.write(path, FILE_BYTES)
        yield [str(path) for path in paths]


def shapes() -> list[Shape]:
    """The sweep."""
    candidates = [Shape("zero", n, 1, total // n) for total in OUTSTANDING for n in TARGETS]
    return [shape for shape in candidates if shape.iodepth <= MOST_DEPTH]


def published() -> list[Shape]:
    """The shape people publish, on three kinds of target."""
    kinds = ["zero", "tmpfs"] + ([] if unavailable() else ["loop"])
    return [Shape(kind, 8, 16, 128) for kind in kinds]


def table(rows: list[ScaleRow]) -> str:
    """All rows as Markdown."""
    head = ["target", "targets x clones x depth", "outstanding", "program", "RSS", "PSS", "first I/O"]
    head += ["outside the load", "CPU ns per I/O", "kernel threads ns", "IOPS", "others"]
    return markdown(head, [_cells(row) for row in rows])


def _cells(row: ScaleRow) -> list[str]:
    shape = row.shape
    return [
        shape.kind,
        f"{shape.targets} x {shape.clones} x {shape.iodepth}",
        f"{shape.outstanding:,}",
        row.program,
        f"{row.resident_bytes / 1e6:.0f} MB",
        f"{row.proportional_bytes / 1e6:.0f} MB",
        "" if row.first_io_ms is None else f"{row.first_io_ms:.1f} ms",
        f"{row.outside_ms:.0f} ms",
        nanoseconds(row.cpu_ns),
        nanoseconds(row.kernel_ns),
        f"{row.iops / 1e6:.2f} M",
        f"{row.others_cores:.2f}",
    ]


def chart(rows: list[ScaleRow]) -> dict[str, Any]:
    """Memory, time outside the load and cost per I/O over targets, as a Vega-Lite chart."""
    values = [
        {
            "program": row.program,
            "targets": row.shape.targets,
            "outstanding": row.shape.outstanding,
            "memory": row.proportional_bytes / 1e6,
            "outside": row.outside_ms,
            "cpu": None if math.isnan(row.cpu_ns) else row.cpu_ns,
        }
        for row in rows
    ]
    fields = {
        "memory": "Memory (PSS), MB",
        "outside": "Time outside the load, ms",
        "cpu": "Processor time per I/O, ns",
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "title": {
            "text": "{:,} (solid) and {:,} (dashed) I/Os outstanding".format(*OUTSTANDING),
            "fontSize": 14,
        },
        "data": {"values": values},
        "hconcat": [_panel(field, title) for field, title in fields.items()],
    }


def _panel(field: str, title: str) -> dict[str, Any]:
    axis = {
        "field": "targets",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2},
        "title": "targets",
    }
    return {
        "width": 280,
        "height": 240,
        "title": {"text": title, "anchor": "start", "fontSize": 13},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": axis | {"axis": {"values": list(TARGETS), "format": ",d"}},
            "y": {"field": field, "type": "quantitative", "scale": {"type": "log"}, "title": None},
            "color": {"field": "program", "type": "nominal", "title": None, "legend": {"orient": "bottom"}},
            # The title says which is which: a legend of dashes comes out without them.
            "strokeDash": {
                "field": "outstanding",
                "type": "nominal",
                "scale": {"domain": list(OUTSTANDING), "range": [[1, 0], [6, 4]]},
                "legend": None,
            },
        },
    }


def draw(rows: list[ScaleRow], stem: Path) -> None:
    """Write the chart as SVG and PNG."""
    import vl_convert  # noqa: PLC0415 - the tables need no charts

    stem.parent.mkdir(parents=True, exist_ok=True)
    spec = chart(rows)
    stem.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(spec))
    stem.with_suffix(".png").write_bytes(vl_convert.vegalite_to_png(spec, scale=2))


def series(wanted: list[Shape], seconds: float, fio_most: int, tell: Callable[[str], None]) -> list[ScaleRow]:
    """Every shape with every program that goes so far."""
    rows = []
    for shape in wanted:
        with places(shape.kind, shape.targets) as paths:
            for program in (ENGINE, PROCESSES, THREADS):
                if program != ENGINE and shape.targets * shape.clones > fio_most:
                    continue
                tell(f"{shape.kind}: {shape.targets} x {shape.clones} x {shape.iodepth}, {program}")
                try:
                    rows.append(measured(shape, paths, program, seconds))
                except RuntimeError as problem:
                    tell(f"left out: {problem}")
    return rows


def main() -> None:
    """Run the shapes; print the table, write the chart."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="length of the long runs")
    parser.add_argument("--fio-most", type=int, default=512, help="most jobs fio is asked for")
    parser.add_argument("--shape-only", action="store_true", help="only 8 targets x 16 clones x 128 deep")
    parser.add_argument("--chart", type=Path, help="write FILE.svg and FILE.png")
    parser.add_argument("--json", type=Path, help="write all numbers there, too")
    options = parser.parse_args()
    if options.seconds <= SHORT_S:
        parser.error(f"--seconds must be above {SHORT_S:g}, the short run")

    measure.tidy_when_stopped()

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    rows = series(published(), options.seconds, options.fio_most, tell)
    sweep = [] if options.shape_only else series(shapes(), options.seconds, options.fio_most, tell)
    print(table(rows + sweep))
    if options.chart and sweep:
        draw(sweep, options.chart)
    if options.json:
        options.json.write_text(json.dumps([measure.known(row) for row in rows + sweep], indent=1))


if __name__ == "__main__":
    main()
