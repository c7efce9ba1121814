"""Draw messages at random from all that can be printed.

`bench/messages.py [--seed 12] [--count 20] [--before REF]`

With `--before` each stands beside the most similar text in the code of another commit.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import re
import subprocess

from loadstone import messages

FRAGMENTS = re.compile(r"\.(title|value|layer|remedy)$|^verdict\.(kind|effect|terminal)\.")
SAME = 0.4
LEAST_WORDS = 5
PACKAGE = "python/loadstone/"
PLACES = {
    "audit": "audit/rules/",
    "doctor": "doctor.py",
    "output": "output.py",
    "refusals": "plan/",
    "toml": "toml_text.py",
    "verdict": "",
    "program": "",
}
"""Where a room's messages were, where that is not the room."""


def place(room: str) -> str:
    """Return the folder or file whose code says the messages of a room."""
    return PACKAGE + PLACES.get(room, f"{room.replace('_', '/')}/")


def whole(key: str) -> bool:
    """Whether a message stands by itself."""
    return not FRAGMENTS.search(key) and len(messages.template(key).split()) >= LEAST_WORDS


def texts(reference: str, folder: str) -> list[str]:
    """Every text in the code under a folder as it was, with its values as {expressions}."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", reference, folder], capture_output=True, text=True, check=True
    )
    shown_texts = []
    for name in (one for one in listed.stdout.split() if one.endswith((".py", ".html"))):
        code = subprocess.run(
            ["git", "show", f"{reference}:{name}"], capture_output=True, text=True, check=True
        )
        if name.endswith(".py"):
            shown_texts += [
                (name, text) for node in ast.walk(ast.parse(code.stdout)) if (text := shown(node))
            ]
    return [text for _, text in shown_texts]


def catalogue(reference: str, room: str) -> list[str]:
    """Every message of a room as it was; none where there was no catalogue."""
    name = f"{reference}:{PACKAGE}messages/{room}.toml"
    content = subprocess.run(["git", "show", name], capture_output=True, text=True, check=False).stdout
    return re.findall(r'^\w+ = "(.*)"$', content, re.MULTILINE)


def shown(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
        return node.value if "\n" not in node.value else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    return None


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\{", re.sub(r"\{[^}]*\}", "{", text.casefold()))


def nearest(text: str, every: list[str]) -> str:
    def alike(one: str) -> float:
        return difflib.SequenceMatcher(None, words(text), words(one)).ratio()

    best = max(every, key=alike)
    return best if alike(best) >= SAME else "(nothing like it)"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--before")
    options = parser.parse_args()
    every = sorted(key for key in messages.templates() if whole(key))
    for key in random.Random(options.seed).sample(every, options.count):
        text = messages.template(key)
        room, _, rest = key.partition(".")
        if options.before:
            rule = f"{place(room)}{rest.partition('.')[0]}.py" if room == "audit" else place(room)
            old = texts(options.before, rule) or texts(options.before, place(room))
            old += catalogue(options.before, room)
            print(f"- {key}\n  before: {nearest(text, old)}\n  after:  {text}")
        else:
            print(f"- {key}: {text}")


if __name__ == "__main__":
    main()
