"""`loadstone fio`: fio's command line in, what fio writes out.

Knows the order of things and fio's exit codes (the number of clones that failed, and 128 after an
interrupt). What is read is in `formats.fio`, what is written in `report.fio`, what differs from fio in
docs/drop-in.md. Everything heavy is imported when it is needed: a script may call this
hundreds of times, most of them short.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from loadstone import messages
from loadstone.cli.fio import args as fio_args
from loadstone.cli.fio.fio_errors import FAILED, say
from loadstone.errors import InputError, LoadstoneError, RefusedError, Where
from loadstone.messages import make_error
from loadstone.version import FIO_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.cli.fio.args import FioArguments
    from loadstone.formats.fio import Source
    from loadstone.workload.model import Workload

DONE: Final = 0
STDIN: Final = "-"
ALLOW_EXEC: Final = "LOADSTONE_ALLOW_EXEC"
"""Set to 1: `exec_prerun`, `exec_postrun` and the command of `--trigger` run."""


def main(argv: Sequence[str]) -> int:
    """Run fio's command line (without the program's name) and return fio's exit code."""
    try:
        arguments = fio_args.parse(argv)
        if arguments.question is not None:
            return _answer(*arguments.question)
        if not arguments.job_tokens and not arguments.job_files:
            return _nothing_to_do(arguments)
        job_sources = sources(arguments)
        workload = read(arguments, job_sources)
        if "parse" in arguments.debug:
            sys.stdout.writelines(parsed_lines(workload))
        if arguments.dry:
            if arguments.show_command:
                _show_command(arguments, job_sources)
            return DONE
        from loadstone.cli.fio import run_jobs

        return run_jobs.run(arguments, workload, argv)
    except LoadstoneError as error:
        say(error)
        return FAILED


def read(arguments: FioArguments, job_sources: Sequence[Source]) -> Workload:
    """Read the jobs. Raises for what cannot be read, and for a writing job under --readonly."""
    from loadstone.formats.fio import ReadOptions, read_jobfiles

    allow_exec = os.environ.get(ALLOW_EXEC) == "1"
    if arguments.trigger and not allow_exec:
        raise make_error(
            RefusedError,
            "cli.fio.trigger",
            where=Where("command line", option="--trigger"),
            command=repr(arguments.trigger),
            variable=ALLOW_EXEC,
        )
    workload = read_jobfiles(
        job_sources,
        sections=arguments.sections,
        options=ReadOptions(strict_fio_reading=True, allow_exec=allow_exec, may_be_empty=arguments.dry),
    )
    if arguments.read_only:
        for job in workload.jobs:
            if job.blocks is not None and job.blocks.mix.rw not in ("read", "randread"):
                raise job.refusal("cli.fio.read_only_job", "mix.rw", name=job.name)
    traps = [note for note in workload.notes if note.kind == "trap"]
    if arguments.warnings_fatal and traps:
        raise InputError(traps[0].text, where=traps[0].where, hint=messages.say("cli.fio.warnings_fatal"))
    return workload


def sources(arguments: FioArguments) -> list[Source]:
    """List what jobs are read from: the command line, then the files; `-` is standard input."""
    from pathlib import Path

    from loadstone.formats.fio import FileSource, TextSource, TokenSource

    tokens = tuple(arguments.job_tokens)
    if (
        arguments.dry
        and tokens
        and not arguments.job_files
        and not any(t.startswith("--name") for t in tokens)
    ):
        tokens += ("--name=parsed",)  # fio checks options without a job when it is only to parse
    job_sources: list[Source] = [TokenSource(tokens)] if tokens else []
    for name in arguments.job_files:
        if name == STDIN:
            job_sources.append(TextSource(sys.stdin.buffer.read(), "<stdin>"))
        else:
            job_sources.append(FileSource(Path(name)))
    return job_sources


def parsed_lines(workload: Workload) -> list[str]:
    """Say of each rule for a steady state how it was read, as fio does with --debug=parse."""
    rows = []
    for rule in (job.steady.rule for job in workload.jobs):
        if rule is None:
            continue
        if rule.percent:
            threshold = f"threshold to {rule.limit:f}%"
        elif rule.metric == "iops":
            threshold = f"IOPS threshold to {rule.limit:f}"
        else:
            threshold = f"{rule.metric.upper()} threshold to {rule.limit:.0f}"
        rows.append(f"parse    set steady state {threshold}\n")
    return rows


def _show_command(arguments: FioArguments, job_sources: Sequence[Source]) -> None:
    from loadstone.formats.fio import ReadOptions, command_lines

    lines = command_lines(
        job_sources, sections=arguments.sections, options=ReadOptions(strict_fio_reading=True)
    )
    sys.stdout.writelines(f"{line} \n" for line in lines)  # The blank at the end is fio's.


def _nothing_to_do(arguments: FioArguments) -> int:
    if arguments.dry:
        return DONE
    from loadstone.cli.fio.help import USAGE

    sys.stderr.write("No job(s) defined\n\n")
    sys.stderr.flush()
    sys.stdout.write(f"{FIO_VERSION}\n{USAGE}")
    return FAILED


def _answer(question: str, text: str) -> int:
    if question == "version":
        sys.stdout.write(f"{FIO_VERSION}\n")
        return DONE
    if question == "debug":
        sys.stdout.write(f"fio: dumping debug options:{','.join(fio_args.DEBUG_AREAS)},all\n")
        return DONE
    if question == "idle-prof":
        from loadstone.cli.fio.idle import unit_us
        from loadstone.report.fio.normal import unit_work

        sys.stdout.write("CPU idleness:\n" + unit_work(*unit_us()))
        return DONE
    if question == "inflate-log":
        return _inflate(text)
    from loadstone.cli.fio import help as fio_help

    if question == "help":
        sys.stdout.write(f"{FIO_VERSION}\n{fio_help.USAGE}")
        return DONE
    answer, code = (fio_help.option_help if question == "cmdhelp" else fio_help.engine_help)(text)
    (sys.stderr if code else sys.stdout).write(answer)
    return code


def _inflate(name: str) -> int:
    import zlib
    from pathlib import Path

    from loadstone.report.fio.zlib_log import inflate

    try:
        for piece in inflate(Path(name)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except FileNotFoundError:
        raise make_error(InputError, "cli.fio.no_file", path=name) from None
    except (OSError, zlib.error) as error:
        raise make_error(InputError, "cli.fio.no_log", path=name, reason=str(error)) from None
    return DONE
