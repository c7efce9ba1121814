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
from loadstone.analysis.study.run_figures import are_large
from loadstone.analysis.watched import document as documents
from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.report import templates
from loadstone.report.article.elements import FEW_ROWS
from loadstone.report.pictures import chart_images, charts, host_charts, watched
from loadstone.report.pictures.drawer import Drawer
from loadstone.report.run import answer, data_sheet, hosts, path_chart, path_diagram, summary_text
from loadstone.report.run.sections import SECTIONS
from loadstone.report.run.summary_text import cost, monitors, of_verified, per_second
from loadstone.report.run.terminal import cells
from loadstone.report.runs_to_export import why_nothing
from loadstone.report.verdict import words as verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    "complete": say("report.status.run_complete"),
    "interrupted": say("report.status.run_interrupted"),
    "failed": say("report.status.run_failed"),
    "partial": say("report.status.run_partial"),
}
KINDS: Final = {
    "trap": say("report.note.trap"),
    "changed": say("report.note.changed"),
    "harmless": say("report.note.harmless"),
    "engine": say("report.note.engine"),
    "info": say("report.note.info"),
}
NOTHING: Final = say("report.page.nothing")


def render(summary: Summary, audit: Callable[[], Audited] | None = None) -> str:
    """Return the page as HTML, the verdict at its top when there is one.

    The charts are drawn while `audit` looks for the verdict.
    """
    with Drawer() as drawer:
        drawn = _charts(summary, drawer)
        return _rendered(summary, audit() if audit is not None else None, drawer, drawn)


def _charts(summary: Summary, drawer: Drawer) -> dict[str, Any]:
    """Have the charts drawn that need no verdict, under the names that the page gives them.

    Those of the host come first: they are drawn while the samples are added up.
    """
    of_host = {
        "host": _drawn(drawer, host_charts.host_cpu(summary), host_charts.host_memory(summary)),
        "lanes": [(name, drawer.svg(spec)) for name, spec in watched.lanes(summary)],
    }
    other = charts.iops(summary) if large(summary) else charts.bandwidth(summary)
    return {
        "picture": _picture_of_answer(summary, drawer),
        "overview": _drawn(drawer, other, charts.spread(summary), charts.distribution(summary)),
        "sections": [
            {
                "name": say("report.heading.all_jobs") if by == "all" else total.line.name,
                "about": about(summary, total),
                "charts": _drawn(drawer, *of_line(summary, by, total)),
            }
            for by, total in sections(summary)
        ],
        "hosts": hosts.page(summary, _drawn(drawer, charts.iops_by_host(summary)))
        if summary.bundle.hosts is not None
        else None,
        **of_host,
    }


def _rendered(summary: Summary, audited: Audited | None, drawer: Drawer, drawn: dict[str, Any]) -> str:
    bundle = summary.bundle
    return templates.render(
        "run/page.html",
        ("page.css", "run/path_diagram.css"),
        few_rows=FEW_ROWS,
        status=bundle.status,
        doubt=bundle.doubt,
        status_text=STATUS[bundle.status],
        title=title(summary),
        verdict=verdict.page(audited, drawer.svg) if audited is not None else None,
        facts=facts(summary),
        answer=answer.answer(summary, audited),
        headline=headline(summary),
        jobs=table(summary.totals("job"), summary) if len(summary.totals("job")) > MAX_HEADLINE else [],
        targets=result_rows(answer.by_phase(summary, "target")) if len(summary.totals("target")) > 1 else [],
        host_rows=result_rows(answer.by_phase(summary, "host")),
        rates=rates(summary),
        paths=_paths(summary, audited),
        paths_left_out=hosts.paths_left_out(summary),
        sheet=[data_sheet.cells(row) for row in summary.spec],
        table_sections=[blocks for section in SECTIONS if (blocks := section(summary))],
        monitors=monitors(summary.tool),
        watched=[_watched(name, one) for name, one in documents(summary.measurement).items()],
        notes=[
            (KINDS.get(note.kind, note.kind), note.text, note.where, more)
            for note, more in notes.once(summary.notes)
        ],
        problems=summary.problems,
        inputs=[(name, content.decode(errors="replace")) for name, content in bundle.inputs.items()],
        request=" ".join(str(word) for word in bundle.request.get("argv", [])),
        environment=_flat({name: value for name, value in bundle.environment.items() if name != "paths"}),
        **drawn,
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


def _picture_of_answer(summary: Summary, drawer: Drawer) -> tuple[str, Svg] | None:
    """Return the rate that matters over time; the charts below do not show it again."""
    drawn = _drawn(drawer, rate_over_time(summary))
    return drawn[0] if drawn else None


def rate_over_time(summary: Summary) -> Spec | None:
    """Return the rate that matters over time, of every job and of all together."""
    return (charts.bandwidth if large(summary) else charts.iops)(summary, total=True)


def large(summary: Summary) -> bool:
    """Tell whether bandwidth says more of a run than IOPS."""
    data = summary.total.data
    return data is not None and data.operations > 0 and are_large(data.bytes / data.operations)


def _paths(summary: Summary, audited: Audited | None) -> list[tuple[str, str]]:
    """Return a diagram of each host's data path under its name; one without a name, of a run on one host."""
    limited_by = audited.verdict.limited_by if audited else None
    drawn: dict[str, str] = {}
    for host, one in hosts.paths(summary):
        drawn[host] = drawn.get(host, "") + path_diagram.render(one, limited_by)
    return list(drawn.items())


def sections(summary: Summary) -> list[tuple[By, Total]]:
    """Return the lines that get charts of their own: the jobs, or everything when they are many."""
    jobs = [total for total in summary.totals("job") if total.ops]
    if len(jobs) <= MAX_SECTIONS:
        return [("job", total) for total in jobs]
    return [("all", summary.total)]


def pictures(summary: Summary, audited: Audited | None = None) -> list[Spec]:
    """Return every chart of the report; those of one job stand side by side."""
    specs = [charts.iops(summary), charts.bandwidth(summary)]
    for by, total in sections(summary):
        for spec in of_line(summary, by, total):
            if spec is not None and summary.totals("job")[1:]:
                spec["title"] = f"{total.line.name}: {spec['title']}"
            specs.append(spec)
    specs += [charts.spread(summary), charts.distribution(summary)]
    limited_by = audited.verdict.limited_by if audited else None
    specs += path_chart.of_hosts(hosts.paths(summary), limited_by)
    specs += [host_charts.host_cpu(summary), host_charts.host_memory(summary)]
    return [spec for spec in specs if spec is not None]


def picture(summary: Summary, audited: Audited | None, kind: str, path: Path) -> bytes:
    """Return all charts as one picture; raises `InputError` when there is nothing to draw."""
    specs = pictures(summary, audited)
    if not any(total.ops for total in summary.totals("job")):
        raise make_error(InputError, "report.files.run_empty", hint=why_nothing(summary.bundle), path=path)
    spec = charts.together(specs, summary.bundle.doubt)
    if kind == ".svg":
        return chart_images.svg(spec).encode()
    return chart_images.png(spec)


def of_line(summary: Summary, by: By, total: Total) -> tuple[Spec | None, Spec | None]:
    """Return the charts of one line: its latency over time, as lines and as a heat map."""
    key = total.line.key
    return charts.latency(summary, by, key), charts.latency_heatmap(summary, by, key)


def _drawn(drawer: Drawer, *specs: Spec | None) -> list[tuple[str, Svg]]:
    """Return what each chart shows, and its SVG."""
    return [(str(spec["title"]), drawer.svg(spec)) for spec in specs if spec is not None]


def title(summary: Summary) -> str:
    """Return what a report is called: its job file, or its jobs."""
    names = [total.line.name for total in summary.totals("job")]
    job_file = summary.bundle.request.get("options", {}).get("job")
    if len(names) > 1 and job_file and job_file != "-":
        return Path(str(job_file)).name
    every = ", ".join(names)
    return (
        every
        if len(every) <= MAX_TITLE or len(names) == 1
        else say("report.page.jobs_from_to", jobs=len(names), first=names[0], last=names[-1])
    )


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return what a reader wants to know before any number."""
    plan, host = summary.measurement.plan, summary.bundle.environment.get("host", {})
    targets = list(dict.fromkeys(target.path for target in plan.targets))
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    facts = [(say("report.fact.on"), ", ".join(targets[:3]) + more)]
    if summary.started is not None:
        facts.append((say("report.fact.started"), summary.started.strftime("%Y-%m-%d %H:%M:%S UTC")))
    if summary.duration_s:
        facts.append((say("report.fact.length"), units.seconds(summary.duration_s)))
    known = (host.get("host_name"), host.get("cpu", {}).get("model"), host.get("kernel"))
    if any(known):
        facts.append((say("report.fact.host"), " · ".join(str(part) for part in known if part)))
    read_back = verified(summary.bundle)
    if read_back is not None:
        facts.append((say("report.fact.verified"), of_verified(read_back)))
    used = summary.cpu_of(summary.total)
    if used is not None and used[0].ios:
        user, system = used[0].user_ns_per_io, used[0].system_ns_per_io
        facts.append(
            (
                say("report.fact.cpu_per_io"),
                say("report.fact.user_and_system", user=units.duration(user), system=units.duration(system)),
            )
        )
    facts += [(say("report.fact.load_generator"), line.partition(": ")[2]) for line in cost(summary.tool)]
    facts.append((say("report.fact.backend"), ", ".join(summary.backends_of(summary.total))))
    return facts


def about(summary: Summary, total: Total) -> str:
    """Say how many streams a line has, how deep and for how long."""
    streams = [summary.measurement.plan.streams[index] for index in total.line.streams]
    depths = sorted({stream.iodepth for stream in streams})
    depth = str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
    length = units.seconds(total.measured_ns / 1e9)
    return say("report.run.line", streams=len(streams), depth=depth, length=length)


def headline(summary: Summary) -> list[tuple[str, str, list[str], str]]:
    """Return the table that comes first: all jobs, or when they are many the total of each phase."""
    jobs = summary.totals("job")
    if len(jobs) <= MAX_HEADLINE:
        return table(jobs, summary)
    return result_rows(answer.phases(summary) or [(say("report.mark.all_jobs"), summary.total)])


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


def rates(summary: Summary) -> list[tuple[str, str, list[str], bool]]:
    """Return what paced jobs were asked for and did: job, operation, cells, whether it was held."""
    rows: list[tuple[str, str, list[str], bool]] = []
    for row in summary.pacing:
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
