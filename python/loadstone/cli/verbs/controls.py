"""`loadstone controls`: what an experiment may set on this machine, and what it is now.

Knows how it is shown; `loadstone.list_controls` looks.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated

import loadstone
from loadstone import exitcodes
from loadstone.cli.options.arguments import Flag


def controls(*, json: Annotated[bool, Flag] = False) -> int:
    """List what can be set on this machine for a measurement, its value now, and what it takes.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    documents = loadstone.list_controls()
    if json:
        sys.stdout.write(json_format.dumps({"controls": documents}, indent=2) + "\n")
        return exitcodes.DONE
    for document in documents:
        sys.stdout.write(f"{document['name']}: {document['title']} ({document['source']})\n")
        for row in document["subjects"]:
            takes = f"   takes {', '.join(row['takes'])}" if row["takes"] else ""
            sys.stdout.write(f"  {row['subject'] or 'this host'}: {row['value']}{takes}\n")
        if not document["subjects"]:
            availability = "you name it" if document["named_by_user"] else "not on this host"
            sys.stdout.write(f"  {availability}\n")
    return exitcodes.DONE
