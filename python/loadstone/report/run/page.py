"""The report of one run: a page that needs nothing but itself, or its charts alone.

Knows which parts a report has and in which order. Charts are drawn as SVG before the page is
written, so that it works offline, on paper and without scripts. Computes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import notes, units
from loadstone.analysis.read_back import verified
from loadstone.analysis.study.run_figures import LARGE_BLOCK_BYTES
from loadstone.analysis.watched import document as documents
from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.report import templates
from loadstone.report.article.blocks import FEW_ROWS
from loadstone.report.pictures import chart_images, charts, watched
from loadstone.report.pictures.drawer import Drawer
from loadstone.report.run import answer, data_sheet, hosts, path_chart, path_diagram, summary_text
from loadstone.report.run.sections import SECTIONS
from loadstone.report.run.summary_text import cost, monitors, of_verified, per_second
from loadstone.report.run.terminal import cells
from loadstone.report.runs_to_export import why_nothing
from loadstone.report.verdict import words as verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.document import ResultWatched
    from loadstone.analysis.measurement import By
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Total
    from loadstone.report.pictures.charts import Spec
    from loadstone.report.pictures.drawer import Svg
    from loadstone.verdict import Audited

MAX_SECTIONS: Final = 6
"""With more jobs than this the charts are of all jobs together."""
MAX_HEADLINE: Final = 16
"""With more jobs than this the first table is their total, and theirs comes later."""
MAX_TITLE: Final = 70
STATUS: Final = {
    "complete": "The run did all that was asked.",
    "interrupted": "The run was stopped by the user; this is what had been measured.",
    "failed": "The run failed; this is what had been measured.",
    "partial": "The run was killed and its bundle never sealed; this is what had been written.",
}
KINDS: Final = {
    "trap": "read differently by fio",
    "changed": "done another way",
    "harmless": "without effect here",
    "engine": "said by the engine",
    "info": "note",
}
NOTHING: Final = "Nothing was measured: the run ended before the first sample that counts."


def render(made: Summary, audited: Audited | None = None) -> str:
    """Return the page as HTML, the verdict at its top when there is one."""
    with Drawer() as drawer:
        return _rendered(made, audited, drawer)


def _rendered(made: Summary, audited: Audited | None, drawer: Drawer) -> str:
    bundle = made.bundle
    other = charts.iops(made) if large(made) else charts.bandwidth(made)
    whole = (other, charts.spread(made), charts.distribution(made))
    return templates.render(
        "run/page.html",
        ("page.css", "run/path_diagram.css"),
        few_rows=FEW_ROWS,
        status=bundle.status,
        doubt=bundle.doubt,
        status_text=STATUS[bundle.status],
        title=title(made),
        verdict=verdict.page(audited, drawer.svg) if audited is not None else None,
        facts=facts(made),
        answer=answer.answer(made, audited),
        picture=_picture_of_answer(made, drawer),
        headline=headline(made),
        jobs=table(made.totals("job"), made) if len(made.totals("job")) > MAX_HEADLINE else [],
        targets=result_rows(answer.by_phase(made, "target")) if len(made.totals("target")) > 1 else [],
        hosts=hosts.page(made, _drawn(drawer, charts.iops_by_host(made)))
        if made.bundle.hosts is not None
        else None,
        host_rows=result_rows(answer.by_phase(made, "host")),
        rates=rates(made),
        paths=_paths(made, audited),
        paths_left_out=hosts.paths_left_out(made),
        sheet=[data_sheet.cells(row) for row in made.spec],
        table_sections=[blocks for section in SECTIONS if (blocks := section(made))],
        overview=_drawn(drawer, *whole),
        sections=[
            {
                "name": "All jobs" if by == "all" else total.line.name,
                "about": about(made, total),
                "charts": _drawn(drawer, *of_line(made, by, total)),
            }
            for by, total in sections(made)
        ],
        monitors=monitors(made.tool),
        host=_drawn(drawer, charts.host_cpu(made), charts.host_memory(made)),
        lanes=[(name, drawer.svg(spec)) for name, spec in watched.lanes(made)],
        watched=[_watched(name, one) for name, one in documents(made.measurement).items()],
        notes=[
            (KINDS.get(note.kind, note.kind), note.text, note.where, more)
            for note, more in notes.once(made.notes)
        ],
        problems=made.problems,
        inputs=[(name, content.decode(errors="replace")) for name, content in bundle.inputs.items()],
        request=" ".join(str(word) for word in bundle.request.get("argv", [])),
        environment=_flat({name: value for name, value in bundle.environment.items() if name != "paths"}),
    )


def _watched(name: str, one: ResultWatched) -> dict[str, Any]:
    """Return a watched host for the page: how it was watched, and its quantities over the load."""
    return {
        "name": name,
        "about": summary_text.of_watched(one),
        "gaps": [gap.why for gap in one.gaps],
        "rows": [
            (
                quantity.name,
                *(summary_text.in_unit(value, quantity.unit) for value in (quantity.mean, quantity.max)),
            )
            for quantity in one.quantities.values()
        ],
    }


def _picture_of_answer(made: Summary, drawer: Drawer) -> tuple[str, Svg] | None:
    """Return the rate that matters over time; the charts below do not show it again."""
    drawn = _drawn(drawer, rate_over_time(made))
    return drawn[0] if drawn else None


def rate_over_time(made: Summary) -> Spec | None:
    """Return the rate that matters over time, of every job and of all together."""
    return (charts.bandwidth if large(made) else charts.iops)(made, total=True)


def large(made: Summary) -> bool:
    """Tell whether bandwidth says more of a run than IOPS."""
    data = made.total.data
    return data is not None and data.operations > 0 and data.bytes / data.operations >= LARGE_BLOCK_BYTES


def _paths(made: Summary, audited: Audited | None) -> list[tuple[str, str]]:
    """Return a diagram of each host's data path under its name; one without a name, of a run on one host."""
    limited_by = audited.verdict.limited_by if audited else None
    drawn: dict[str, str] = {}
    for host, one in hosts.paths(made):
        drawn[host] = drawn.get(host, "") + path_diagram.render(one, limited_by)
    return list(drawn.items())


def sections(made: Summary) -> list[tuple[By, Total]]:
    """Return the lines that get charts of their own: the jobs, or everything when they are many."""
    jobs = [total for total in made.totals("job") if total.ops]
    if len(jobs) <= MAX_SECTIONS:
        return [("job", total) for total in jobs]
    return [("all", made.total)]


def pictures(made: Summary, audited: Audited | None = None) -> list[Spec]:
    """Return every chart of the report; those of one job stand side by side."""
    found = [charts.iops(made), charts.bandwidth(made)]
    for by, total in sections(made):
        for spec in of_line(made, by, total):
            if spec is not None and made.totals("job")[1:]:
                spec["title"] = f"{total.line.name}: {spec['title']}"
            found.append(spec)
    found += [charts.spread(made), charts.distribution(made)]
    limited_by = audited.verdict.limited_by if audited else None
    found += path_chart.of_hosts(hosts.paths(made), limited_by)
    found += [charts.host_cpu(made), charts.host_memory(made)]
    return [spec for spec in found if spec is not None]


def picture(made: Summary, audited: Audited | None, kind: str, path: Path) -> bytes:
    """Return all charts as one picture; raises `InputError` when there is nothing to draw."""
    specs = pictures(made, audited)
    if not any(total.ops for total in made.totals("job")):
        raise make_error(InputError, "report.files.run_empty", hint=why_nothing(made.bundle), path=path)
    spec = charts.together(specs, made.bundle.doubt)
    if kind == ".svg":
        return chart_images.svg(spec).encode()
    return chart_images.png(spec)


def of_line(made: Summary, by: By, total: Total) -> tuple[Spec | None, Spec | None]:
    """Return the charts of one line: its latency over time, as lines and as a heat map."""
    key = total.line.key
    return charts.latency(made, by, key), charts.latency_heatmap(made, by, key)


def _drawn(drawer: Drawer, *specs: Spec | None) -> list[tuple[str, Svg]]:
    """Return what each chart shows, and its SVG."""
    return [(str(spec["title"]), drawer.svg(spec)) for spec in specs if spec is not None]


def title(made: Summary) -> str:
    """Return what a report is called: its job file, or its jobs."""
    names = [total.line.name for total in made.totals("job")]
    asked = made.bundle.request.get("options", {}).get("job")
    if len(names) > 1 and asked and asked != "-":
        return Path(str(asked)).name
    every = ", ".join(names)
    return (
        every
        if len(every) <= MAX_TITLE or len(names) == 1
        else f"{len(names)} jobs, {names[0]} to {names[-1]}"
    )


def facts(made: Summary) -> list[tuple[str, str]]:
    """Return what a reader wants to know before any number."""
    plan, host = made.measurement.plan, made.bundle.environment.get("host", {})
    targets = list(dict.fromkeys(target.path for target in plan.targets))
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    facts = [("On", ", ".join(targets[:3]) + more)]
    if made.started is not None:
        facts.append(("Started", made.started.strftime("%Y-%m-%d %H:%M:%S UTC")))
    if made.duration_s:
        facts.append(("Length", units.seconds(made.duration_s)))
    known = (host.get("host_name"), host.get("cpu", {}).get("model"), host.get("kernel"))
    if any(known):
        facts.append(("Host", " · ".join(str(part) for part in known if part)))
    read_back = verified(made.bundle)
    if read_back is not None:
        facts.append(("Verified", of_verified(read_back)))
    used = made.cpu_of(made.total)
    if used is not None and used[0].ios:
        user, system = used[0].user_ns_per_io, used[0].system_ns_per_io
        facts.append(("CPU per I/O", f"{units.duration(user)} user + {units.duration(system)} system"))
    facts += [("Load generator", line.partition(": ")[2]) for line in cost(made.tool)]
    facts.append(("Backend", ", ".join(made.backends_of(made.total))))
    return facts


def about(made: Summary, total: Total) -> str:
    """Say how many streams a line has, how deep and for how long."""
    streams = [made.measurement.plan.streams[index] for index in total.line.streams]
    depths = sorted({stream.iodepth for stream in streams})
    depth = str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
    many = f"{len(streams)} streams" if len(streams) != 1 else "1 stream"
    return f"{many}, iodepth {depth}, measured for {units.seconds(total.measured_ns / 1e9)}"


def headline(made: Summary) -> list[tuple[str, str, list[str], str]]:
    """Return the table that comes first: all jobs, or when they are many the total of each phase."""
    jobs = made.totals("job")
    if len(jobs) <= MAX_HEADLINE:
        return table(jobs, made)
    return result_rows(answer.phases(made) or [("all jobs", made.total)])


def table(totals: list[Total], whole: Summary) -> list[tuple[str, str, list[str], str]]:
    """Return name, operation, cells and decimal bandwidth, one row per operation; names only once."""
    lines = [(total.line.name, total) for total in totals]
    if whole.has_total:
        lines.append(("total", whole.total))
    return result_rows(lines)


def result_rows(lines: Sequence[tuple[str, Total]]) -> list[tuple[str, str, list[str], str]]:
    """Return what `table` does, of totals under names of their own."""
    rows: list[tuple[str, str, list[str], str]] = []
    for name, total in lines:
        for index, (op, stats) in enumerate(total.ops.items()):
            rate = stats.bandwidth.value if stats.bandwidth and stats.bytes else None
            rows.append(("" if index else name, op, cells(stats), units.bandwidth_decimal(rate)))
    return rows


def rates(made: Summary) -> list[tuple[str, str, list[str], bool]]:
    """Return what paced jobs were asked for and did: job, operation, cells, whether it was held."""
    rows: list[tuple[str, str, list[str], bool]] = []
    for row in made.pacing:
        late: list[float | None] = [None] * 4
        if row.wait is not None:
            late = [*(row.wait.percentile(p) for p in (50.0, 99.0, 99.9)), row.wait.max_ns]
        texts = [row.process, per_second(row.asked_per_s, row), per_second(row.achieved_per_s, row)]
        rows.append((row.job, row.op, texts + [units.duration(value) for value in late], row.held))
    return rows


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as lines of a path and a text."""
    if isinstance(value, dict):
        return [line for key, one in value.items() for line in _flat(one, f"{prefix}{key} ")]
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return [line for index, one in enumerate(value) for line in _flat(one, f"{prefix}{index} ")]
    name = prefix.strip()
    if name.endswith("_bytes") and isinstance(value, int):
        return [(name.removesuffix("_bytes"), units.size(value))]
    return [(name, value if isinstance(value, str) else json.dumps(value))]
