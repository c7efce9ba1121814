"""`loadstone completion`: the completion script of a shell.

Knows nothing but which shells there are; the script comes from the argument parser.
"""

from __future__ import annotations

import sys
from typing import Literal

from loadstone import exitcodes


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the completion script of a shell.

    Parameters
    ----------
    shell
        For which shell; `loadstone completion bash > ~/.local/share/bash-completion/completions/loadstone`.
    """
    from loadstone.cli.app import build

    sys.stdout.write(build().generate_completion(shell=shell))
    return exitcodes.DONE
