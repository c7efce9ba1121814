"""`loadstone controls`: what an experiment may set on this machine, and what it is now.

Knows how it is shown; the controls are in `control.table`.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated, Any

from loadstone import exitcodes
from loadstone.cli.options.arguments import Flag


def controls(*, json: Annotated[bool, Flag] = False) -> int:
    """List what can be set on this machine for a measurement, its value now, and what it takes.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    from loadstone.control.table import Controls

    documents: list[dict[str, Any]] = []
    for control in Controls().every():
        subjects = [
            {"subject": subject, "value": control.read(subject), "takes": list(control.choices(subject))}
            for subject in control.subjects()
        ]
        documents.append(
            {
                "name": control.name,
                "title": control.title,
                "source": control.source,
                "named_by_user": control.by_name,
                "subjects": subjects,
            }
        )
    if json:
        sys.stdout.write(json_format.dumps({"controls": documents}, indent=2) + "\n")
        return exitcodes.DONE
    for document in documents:
        sys.stdout.write(f"{document['name']}: {document['title']} ({document['source']})\n")
        for row in document["subjects"]:
            takes = f"   takes {', '.join(row['takes'])}" if row["takes"] else ""
            sys.stdout.write(f"  {row['subject'] or 'this host'}: {row['value']}{takes}\n")
        if not document["subjects"]:
            here = "you name it" if document["named_by_user"] else "not on this host"
            sys.stdout.write(f"  {here}\n")
    return exitcodes.DONE
