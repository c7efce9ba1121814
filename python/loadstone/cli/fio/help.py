"""What `loadstone fio` says about itself: usage, options and engines.

Knows the texts; what an option does here comes from the one table of options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.formats.fio.option import Option

USAGE: Final = """\
fio [options] [job options] <job file(s)>
  --debug=areas         Print more; 'random' shows the seeds (--debug=help lists all)
  --parse-only          Read and resolve the jobs, run nothing
  --output=file         Write the output there
  --bandwidth-log       Write bandwidth logs of all jobs together
  --minimal             Terse output
  --output-format=type  normal, json, json+ or terse; several with commas
  --append-terse        Terse output as well
  --terse-version=n     2, 3 (default), 4 or 5
  --version             Print the version
  --help                Print this
  --cmdhelp[=option]    Say what is done about an option ('all' for every one)
  --enghelp[=engine]    List the engines, or the options of one
  --showcmd             Turn job files into command lines
  --eta=when            always, never or auto
  --eta-newline=t       Start a new line every t
  --eta-interval=t      Show the state every t
  --status-interval=t   Print a full result every t
  --readonly            Refuse to write
  --section=name        Only this section (repeat for more)
  --warnings-fatal      Notes about how jobs were read are errors
  --inflate-log=file    Unpack a compressed log
  --alloc-size, --max-jobs are accepted and not needed

What is written, and where it differs from fio, is in docs/drop-in.md.
"""


def option_help(name: str) -> tuple[str, int]:
    """Answer `--cmdhelp`: the text and the exit code."""
    from loadstone.formats.fio.table import BY_NAME, OPTIONS

    if name in {"", "all"}:
        return "".join(_row(option) for option in OPTIONS), 0
    option = BY_NAME.get(name)
    if option is None:
        return f"No such command: {name}\n", 0
    rows = [f"{option.name:>20}: {option.verdict}"]
    if option.aliases:
        rows.append(f"{'alias':>20}: {', '.join(option.aliases)}")
    if option.engine:
        rows.append(f"{'ioengine':>20}: {option.engine}")
    if option.why:
        rows.append(f"{'here':>20}: {option.why}")
    return "\n".join(rows) + "\n", 0


def _row(option: Option) -> str:
    return f"{option.name:<24}: {option.verdict}{f' ({option.why})' if option.why else ''}\n"


def engine_help(text: str) -> tuple[str, int]:
    """Answer `--enghelp[=engine[,option]]`: the text and the exit code."""
    from loadstone.formats.fio.supported_options import ENGINES
    from loadstone.formats.fio.table import OPTIONS

    engine, _, name = text.partition(",")
    if not engine:
        return "Available IO engines:\n" + "".join(f"\t{name}\n" for name in ENGINES), 0
    if engine not in ENGINES:
        return f"fio: engine {engine} not loadable\n", 1
    if name:
        return option_help(name)
    return "".join(_row(option) for option in OPTIONS if engine in option.engine.split(", ")), 0
