"""The catalogue of messages: every template is used, gets its values, and keeps to docs/style.md."""

from __future__ import annotations

import ast
import functools
import re
import string
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from loadstone import messages
from loadstone.audit.rules import RULES
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages.suggest import nearest
from loadstone.report.table_heads import TERM
from loadstone.verdict import RULE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE: Final = Path(__file__).parents[1] / "python" / "loadstone"
MOST_WORDS: Final = 25
METHODS: Final = frozenset(("error", "refusal", "wrong"))
"""Of jobs and of values of job files: each makes an error of its own place."""
SPEAKERS: Final = {"say": 0, "template": 0, "cannot_tell": 0, "make_error": 1} | dict.fromkeys(METHODS, 0)
"""What takes a key, and as which of its arguments."""
PRINTERS: Final = dict.fromkeys(
    (
        *("tell", "print", "say", "_say", "write", "writelines", "Text", "append", "run_in_child", "doubts"),
        *("Use", "placed", "ContentFound", "_note_evidence", "lost", "_give_up", "_with", "setdefault"),
    ),
    0,
)
"""What shows a text to a person, or collects texts that are shown."""
OWN_VALUES: Final = {
    "cannot_tell": {"essential"},
    "make_error": {"where", "hint"},
    **{method: {"hint"} for method in METHODS},
}
"""What of a speaker's arguments is no value of its message."""
SAMPLES: Final = {
    suffix: "_".join(write(0.66 if suffix == "_share" else 12.3).split())
    for suffix, write in messages.WRITERS
}
"""A value and its unit are one word."""
LONG: Final = frozenset(("sentences", "reasons", "rules", "titles", "layouts"))
"""Values that are sentences or lists themselves, which are held to the same rules."""

DIALECT: Final = (
    "processor", "wanted", "wants", "nobody", "somebody", "told", "gone over", "went over", "lies apart",
    "lie apart", "could not look", "anything to look at", "dearest", "by nothing", "stands on", "whatever",
    "other than it", "such as it", "the like", "swallow", "forgets", "asked for", "at work", "timetable",
    "counts for nothing", "mend", "so manieth", "one's own", "as was", "has it that", "is not to be seen",
    "has behind it", "fell silent", "in step", "of the future", "no room for", "it goes on",
)  # fmt: skip
NOT_IN_GLOSSARY: Final = {
    "throughput": "bandwidth", "queue length": "iodepth", "unmap": "trim", "response time": "latency",
    "usage": "utilisation", "read-ahead": "readahead", "processors": "CPUs", "hard disk": "rotating drive",
}  # fmt: skip
COMPARED: Final = re.compile(
    r"\b(limit|of|than|but|not|instead|only|allows?|at most|while|against|to|below|above|differ|between|ratio"
    r"|same|each)\b"
)
VERBS: Final = frozenset(
    (
        "agree", "agrees", "allocated", "allow", "allows", "answer", "answered", "are", "ask", "asks",
        "be", "began", "came", "can", "cannot", "carry", "change", "changed", "checked", "come",
        "complete", "completed", "damaged", "did", "differ", "differs", "do", "does", "drifted", "ended",
        "explain", "explains", "failed", "fell", "find", "found", "grows", "had", "has", "have",
        "helped", "hold", "holds", "instead", "is", "jumped", "kept", "known", "lengthens", "lie",
        "lies", "limited", "look", "lost", "match", "may", "measured", "measures", "merge", "missing",
        "monitored", "move", "moved", "moves", "need", "needs", "performs", "printed", "ran", "range",
        "ranged", "rate", "reach", "reached", "read", "reads", "repeated", "retransmitted", "return",
        "run", "saw", "serve", "served", "serves", "set", "sets", "settled", "share", "stand", "stands",
        "stayed", "stores", "suspended", "stopped", "include", "spent",
        "take", "tell", "took", "used", "vary", "wait", "waited", "was",
        "went", "were", "write", "writes", "wrote",
    )
)  # fmt: skip
REMEDIES: Final = frozenset(
    (
        "add", "allow", "ask", "bring", "bypass", "change", "check", "compare", "count", "create",
        "drop", "ensure", "fill", "find", "fix", "flush", "free", "give", "grant", "keep", "lay",
        "leave", "let", "load", "look", "lower", "measure", "mount", "move", "name", "open", "pass",
        "raise", "read", "remove", "repeat", "report", "run", "say", "set", "show", "split", "start",
        "stop", "supply", "take", "unmount", "use", "wait", "watch", "write",
    )
)  # fmt: skip


def keys_of(node: ast.expr) -> list[str]:
    """The keys that an argument may be: a literal, or one of two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return keys_of(node.body) + keys_of(node.orelse)
    return []


SHOWN_WITH: Final = "table_heads"
"""What takes names of columns, which are keys of the catalogue."""
CALLS: Final = frozenset((*SPEAKERS, *PRINTERS, SHOWN_WITH))


@functools.cache
def code() -> list[tuple[str, ast.expr | ast.Return]]:
    """The texts of the package's code, the calls that speak and what functions return, with their file.

    The 700,000 other nodes go with their file: Python's garbage collector takes long to look through them.
    """
    return [
        (str(file.relative_to(PACKAGE)), node)
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in walked(ast.parse(file.read_text()))
        if isinstance(node, (ast.JoinedStr, ast.Return, ast.Yield))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        or (isinstance(node, ast.Call) and (called(node) in CALLS or any(said_by(node))))
    ]


VALUES: Final[dict[ast.AST, dict[str, list[ast.expr]]]] = {}
"""For each call and each end of a function what its local variables may be."""
Scopes = tuple[dict[str, list[ast.expr]], ...]


def walked(tree: ast.Module) -> list[ast.AST]:
    """Walk a file, all but what documents it; of calls that people read from, remember what stands before.

    Breadth first, as `ast.walk`, and once: names of variables, operators and the like are passed over.
    """
    scopes: Scopes = ()
    waiting: deque[tuple[ast.AST, Scopes]] = deque([(tree, scopes)])
    nodes: list[ast.AST] = []
    ends: list[tuple[ast.AST, Scopes]] = []
    while waiting:
        node, scopes = waiting.popleft()
        nodes.append(node)
        if isinstance(node, ast.FunctionDef):
            scopes = (*scopes, {})
        elif scopes and isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            remember(node, scopes)
        elif scopes and isinstance(node, (ast.Return, ast.Yield, ast.Call)):
            ends.append((node, scopes))
        waiting.extend((child, scopes) for child in parts_to_look_at(node))
    for node, scopes in ends:
        assigned = next((one for one in reversed(scopes) if one), None)
        if assigned is not None and (not isinstance(node, ast.Call) or any(said_by(node))):
            VALUES[node] = assigned
    return nodes


def parts_to_look_at(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that have texts in them, or may have: no comment, and no piece of an f-string."""
    for name in node._fields:
        part = getattr(node, name)
        for one in part if isinstance(part, list) else (part,):
            if not isinstance(one, ast.AST) or isinstance(one, (ast.Name, ast.expr_context, ast.operator)):
                continue
            if isinstance(one, ast.Constant) and isinstance(node, (ast.Expr, ast.JoinedStr)):
                continue
            yield one


def remember(node: ast.Assign | ast.AnnAssign | ast.AugAssign, scopes: Scopes) -> None:
    """Remember what is assigned to a variable, for each of the functions around it."""
    if node.value is None or not any(texts_in(node.value)):
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            for scope in scopes:
                scope.setdefault(target.id, []).append(node.value)


def called(node: ast.Call) -> str:
    """The name of the function or the class that is called."""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def keys_of_heads(names: Iterable[str]) -> list[str]:
    """The keys of heads of columns; a term has none."""
    return [f"report.column.{one}" for one in names if not TERM.fullmatch(one)]


def keys_of_call(node: ast.Call) -> list[str]:
    """The keys that a call takes without their being written: those of hints, and of heads of columns."""
    if called(node) == SHOWN_WITH:
        return keys_of_heads(one for part in node.args for one in keys_of(part))
    if called(node) not in {"make_error", "error", "refusal"} or not node.args:
        return []
    hints = (f"{key}_hint" for key in keys_of(node.args[SPEAKERS[called(node)]]))
    return [one for one in hints if one in messages.templates()]


def keys_in_templates() -> list[tuple[str, str]]:
    """Every key that stands in a page's template, and where."""
    keys = []
    for file in sorted(PACKAGE.rglob("*.html")):
        text = file.read_text()
        every = re.findall(r"\bsay\(\"([\w.]+)\"", text)
        for heads in re.findall(r"\btable_heads\(([^)]*)\)", text):
            every += keys_of_heads(re.findall(r"\"([^\"]*)\"", heads))
        keys += [(file.name, key) for key in every]
    return keys


def keys_alike(node: ast.JoinedStr) -> list[str]:
    """The keys of the catalogue that an f-string may be."""
    parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
    if not (parts[0] or "").startswith(tuple(f"{room}." for room in messages.ROOMS)):
        return []
    pattern = re.compile("".join(r"\w+" if part is None else re.escape(part) for part in parts))
    return [key for key in messages.templates() if pattern.fullmatch(key)]


@functools.cache
def spoken() -> dict[str, list[str]]:
    """Every key that stands in the code, and where."""
    found: dict[str, list[str]] = {}
    rooms = "|".join(messages.ROOMS)
    # Fields of a job and of a host's row are named as `engine.direct`.
    key_like = re.compile(
        rf"(?!engine\.\w+$)(?:{rooms})(?:\.\w+)+(?<!\.fio)(?<!\.html)(?<!\.json)(?<!\.toml)"
    )
    for place, key in keys_in_templates():
        found.setdefault(key, []).append(place)
    for name, node in code():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and key_like.fullmatch(node.value):
            found.setdefault(node.value, []).append(f"{name}:{node.lineno}")
        for key in keys_of_call(node) if isinstance(node, ast.Call) else ():
            found.setdefault(key, []).append(f"{name}:{node.lineno}")
        for key in keys_alike(node) if isinstance(node, ast.JoinedStr) else ():
            found.setdefault(key, []).append(f"{name}:{node.lineno}")
    return found


SPOKEN_BY: Final = ("Error", "Note", "Refusal", "Warning")
NOT_SPOKEN: Final = frozenset(("AssertionError", "AttributeError", "PydanticCustomError", "TypeError"))
"""Of these a person sees none: a mistake in the program, or a key."""
SPOKEN_AS: Final = frozenset(("hint", "text", "why", "reason", "remedy", "advice", "help"))
"""Exceptions, notes and arguments of these names are read by people, wherever their texts stand."""
NOTES: Final = frozenset(("note", "info", "trap", "changed", "general"))
"""Methods and functions that keep a note."""
INLINE_DIALECT: Final = frozenset(DIALECT) - {"told", "wants", "wanted", "mend", "asked for"} | {"somebody"}
BESIDE_THE_CODE: Final = {
    "formats/fio/priorities.py": "what docs/fio-options.md says of an option, in its row",
    "formats/fio/supported_options.py": "what docs/fio-options.md says of an option, in its row",
    "cli/main.py": "said where a part of the program cannot be loaded, or there is no memory",
    "cli/options/arguments.py": "the help of options, which stands in the docstrings of the verbs, too",
    "errors.py": "every room stands on it, the catalogue as well",
    **dict.fromkeys(
        ("analysis/study/slo.py", "audit/foreign/diskspd.py", "explanations/names.py"),
        "its digest names the rules that a measurement was made with (lab.rules_digest): with the next one",
    ),
}


FINDINGS: Final = {"Check": 2, "HostLimit": 1, "gap": 0}
"""What is found on a host or missing from a path, and from which argument on people read sentences."""


def said_by(node: ast.AST) -> Iterator[ast.expr]:
    """What a call of an error, a note or a help gives a person to read."""
    if not isinstance(node, ast.Call):
        return
    yield from (one.value for one in node.keywords if one.arg in SPOKEN_AS)
    if called(node).endswith(SPOKEN_BY) and called(node) not in NOT_SPOKEN:
        yield from node.args
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        yield from () if getattr(node.func.value, "id", "") == "zlib" else node.args
    if called(node).lstrip("_") in NOTES:
        yield from node.args
    yield from node.args[FINDINGS.get(called(node), len(node.args)) :]


def texts_in(
    expression: ast.expr, variables: dict[str, list[ast.expr]] | None = None
) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The texts that may come of an expression, and of the variables in it."""
    match expression:
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield expression
        case ast.Name(id=name):
            for one in (variables or {}).get(name, ()):
                yield from texts_in(one)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from texts_in(one, variables)
            yield from texts_in(other, variables)
        case ast.BoolOp(values=every) | ast.Tuple(elts=every) | ast.List(elts=every):
            for one in every:
                yield from texts_in(one, variables)


def plain(text: ast.Constant | ast.JoinedStr, value: str) -> str:
    """A text with `value` in the place of each of its values."""
    parts = [text] if isinstance(text, ast.Constant) else text.values
    return "".join(str(part.value) if isinstance(part, ast.Constant) else value for part in parts)


@functools.cache
def inline() -> list[tuple[str, str]]:
    """Every text that an error, a note or a help carries itself, with its place and X for each value.

    What has no word of its own ("{path}: {reason}") is no text to translate, and one word is a name.
    """
    texts = [
        (f"{name}:{text.lineno}", plain(text, "X"))
        for name, node in code()
        for expression in said_by(node)
        for text in texts_in(expression, VALUES.get(node) if isinstance(node, ast.Call) else None)
        if re.search(r"[a-zA-Z]{2}", plain(text, "")) and " " in plain(text, "X")
    ]
    return [*dict.fromkeys(texts)]


RETURNED_BESIDE: Final = {
    **dict.fromkeys(("analysis/", "audit/", "path/ceilings.py"), "a digest names their code"),
    **dict.fromkeys(("cli/fio/", "report/fio/", "report/vdbench/"), "texts of the programs they stand for"),
    **dict.fromkeys(
        ("exit_cause.py", "uncaught.py", "slow_answer.py", "cli/process/supervisor.py"),
        "said where a part of the program cannot be loaded, or there is no memory",
    ),
    "comparison/settings.py": "names of settings, which are keys of documents",
    "experiment/claims.py": "names of locks, which two processes must write alike",
    "experiment/target_record.py": "names of targets, which two sessions compare",
    "path/identity.py": "what two hosts compare, and no person reads",
    "watch/shell.py": "programs of a shell",
}
"""Files and rooms whose functions return texts of their own, and why."""
LEAST_WORDS: Final = 3
"""So many words are a text; two are a name."""


@functools.cache
def returned() -> list[tuple[str, str]]:
    """Every text that a function returns or yields itself, with its place and X for each value.

    Commands are no texts, nor what an object is called in Python.
    """
    texts = [
        (f"{name}:{text.lineno}", plain(text, "X"))
        for name, node in code()
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None
        for text in texts_in(node.value, VALUES.get(node))
    ]
    return [
        (at, text)
        for at, text in dict.fromkeys(texts)
        if is_text(text) and not text.startswith("<") and "\n" not in text
    ]


PRINTED_BESIDE: Final = {
    **dict.fromkeys(("analysis/", "audit/"), "a digest names their code"),
    **dict.fromkeys(
        ("cli/fio/", "report/fio/", "report/vdbench/", "report/iometer.py"),
        "texts of the programs they stand for",
    ),
    **dict.fromkeys(
        ("cli/process/", "cli/main.py", "uncaught.py"),
        "said where a part of the program cannot be loaded, or there is no memory",
    ),
    **dict.fromkeys(
        ("formats/fio/option_page.py", "formats/vdbench/keyword_page.py", "workload/catalogue/docs_page.py"),
        "heads of tables of generated pages",
    ),
}
"""Files and rooms that show texts of their own, and why."""


def parts_of(expression: ast.expr) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The texts of an expression, those that are joined or repeated in it among them."""
    match expression:
        case ast.Call(func=ast.Attribute(value=between, attr="join" | "format"), args=args):
            for one in (between, *args):
                yield from parts_of(one)
        case ast.GeneratorExp(elt=one) | ast.ListComp(elt=one) | ast.Starred(value=one):
            yield from parts_of(one)
        case ast.Tuple(elts=every) | ast.List(elts=every):
            for one in every:
                yield from parts_of(one)
        case _:
            yield from texts_in(expression)


def is_text(text: str) -> bool:
    """Whether so many words stand in it as make a sentence; names of files and options are none."""
    return len(re.findall(r"(?<![\w/.-])[a-z]{2,}(?![\w/.-])", text)) >= LEAST_WORDS


@functools.cache
def printed() -> list[tuple[str, str]]:
    """Every text that is shown as it stands in the code, with its place and X for each value."""
    texts = [
        (f"{name}:{text.lineno}", plain(text, "X"))
        for name, node in code()
        if isinstance(node, ast.Call) and called(node) in PRINTERS
        for argument in (*node.args, *(one.value for one in node.keywords))
        for text in parts_of(argument)
    ]
    return [(at, text) for at, text in dict.fromkeys(texts) if is_text(text)]


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def filled(template: str) -> str:
    """The message with a value of every kind in it."""
    values = {
        name: messages.Written(
            next(
                (text for suffix, text in SAMPLES.items() if name.endswith(suffix)),
                "" if name in LONG else "X",
            )
        )
        for name in fields(template)
    }
    return template.format(**values)


def sentences(text: str) -> list[str]:
    return [one for one in re.split(r"(?<=[.!?])\s+", text) if re.search(r"[a-zA-Z]{2}", one)]


EVERY: Final = sorted(messages.templates().items())
KIND: Final = {key: key.rpartition(".")[2] for key, _ in EVERY}


EVENTS: Final = frozenset(("audit.clock_jump.slept.text",))
"""Findings that rest on something that happened at all: there is nothing to compare it with."""


def is_key_or_prefix(key: str, known: set[str]) -> bool:
    return key in known or (f"{key}.missing" in known and f"{key}.remedy" in known)


def test_every_key_in_the_code_is_in_the_catalogue() -> None:
    known = set(messages.templates())
    unknown = {key: at for key, at in spoken().items() if not is_key_or_prefix(key, known)}
    assert unknown == {}


def test_every_message_is_used() -> None:
    used = spoken()
    idle = [
        key
        for key, _ in EVERY
        if key not in used and key.removesuffix(".missing").removesuffix(".remedy") not in used
    ]
    assert [key for key in idle if not key.startswith("evidence.")] == []


def test_every_call_gives_the_values_its_template_names() -> None:
    wrong = []
    for place, node in code():
        if not (isinstance(node, ast.Call) and (speaker := called(node)) in SPEAKERS and node.args):
            continue
        of = getattr(node.func.value, "id", "") if isinstance(node.func, ast.Attribute) else "messages"
        if of != "messages" and (speaker not in {"error", "wrong"} or not list(said_by(node))):
            continue
        if speaker == "template" or any(one.arg is None for one in node.keywords):
            continue
        given = {one.arg for one in node.keywords} - OWN_VALUES.get(speaker, set())
        for key in keys_of(node.args[SPEAKERS[speaker]]):
            parts = [f"{key}.missing", f"{key}.remedy"] if speaker == "cannot_tell" else [key]
            if speaker in OWN_VALUES and f"{key}_hint" in messages.templates():
                parts.append(f"{key}_hint")
            named = {name for part in parts for name in fields(messages.template(part))}
            if named != given:
                wrong.append(f"{place}:{node.lineno}: {key}: {sorted(named ^ {str(one) for one in given})}")
    assert wrong == []


@pytest.mark.parametrize("room", messages.ROOMS)
def test_no_sentence_is_longer_than_25_words(room: str) -> None:
    long = [
        (key, len(sentence.split()), sentence)
        for key, text in EVERY
        if key.startswith(f"{room}.")
        for sentence in sentences(filled(text))
        if len(sentence.split()) > MOST_WORDS
    ]
    assert long == []


def test_findings_are_sentences_with_a_verb() -> None:
    wrong = [
        (key, sentence)
        for key, text in EVERY
        if KIND[key] in {"text", "reason"}
        for sentence in sentences(text)
        if not (re.match(r"[A-Z{]", sentence) and sentence.endswith((".", "?")) and VERBS & words(sentence))
    ]
    assert wrong == []


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.casefold()))


def test_a_measured_number_stands_beside_what_it_is_compared_with() -> None:
    suffixes = tuple(SAMPLES)
    alone = [
        (key, text)
        for key, text in EVERY
        if key.startswith("audit.") and KIND[key] == "text" and key not in EVENTS
        if [name for name in fields(text) if name.endswith(suffixes)] and not COMPARED.search(text)
    ]
    assert alone == []


def test_remedies_begin_with_what_to_do() -> None:
    wrong = [
        (key, text)
        for key, text in EVERY
        if KIND[key].startswith(("advice", "remedy", "hint")) and key.startswith(("audit.", "refusals."))
        if text.split()[0].rstrip(",:") not in REMEDIES | {"choose", "if", "did"} or text.endswith(".")
    ]
    assert wrong == []


def test_reasons_are_clauses_without_a_full_stop() -> None:
    wrong = [
        (key, text)
        for key, text in EVERY
        if KIND[key] == "missing"
        and (
            (text[0].isupper() and text.split()[0] not in {"IOPS", "TCP"})
            or text.endswith(".")
            or not VERBS & words(text)
        )
    ]
    assert wrong == []


def test_a_number_in_a_template_has_its_unit() -> None:
    bare = [
        (key, text)
        for key, text in EVERY
        if key.startswith("audit.")
        if re.search(
            r"(?<![\w./=^{-])\d[\d,.]*+(?! ?(?:%|[a-zA-Zµ/]|in 1|\)| bytes))",
            re.sub(r"10\^6|2\^20|powers of 10|echo 2|1 in 10,000|limit 0\.5", "", text),
        )
    ]
    assert bare == []


@pytest.mark.parametrize("word", DIALECT)
def test_no_message_speaks_dialect(word: str) -> None:
    assert [key for key, text in EVERY if re.search(rf"\b{word}", text, re.IGNORECASE)] == []


def test_texts_beside_the_code_keep_to_the_style_too() -> None:
    long = [
        (at, one)
        for at, text in inline()
        for one in re.split(r"(?<=[.!?;])\s+", text)
        if len(one.split()) > MOST_WORDS
    ]
    assert long == []
    dialect = "|".join(sorted(INLINE_DIALECT))
    assert [(at, text) for at, text in inline() if re.search(rf"\b({dialect})", text, re.IGNORECASE)] == []


def test_texts_are_in_the_catalogue_or_their_file_has_a_reason() -> None:
    beside = [(at, text) for at, text in inline() if at.partition(":")[0] not in BESIDE_THE_CODE]
    assert beside == []
    assert BESIDE_THE_CODE.keys() == {at.partition(":")[0] for at, _ in inline()}


def test_texts_that_a_function_returns_are_in_the_catalogue_or_its_file_has_a_reason() -> None:
    beside = [(at, text) for at, text in returned() if not at.startswith(tuple(RETURNED_BESIDE))]
    assert beside == []
    places = [at for at, _ in returned()]
    assert [one for one in RETURNED_BESIDE if not any(at.startswith(one) for at in places)] == []


def test_texts_that_are_shown_are_in_the_catalogue_or_their_file_has_a_reason() -> None:
    assert [(at, text) for at, text in printed() if not at.startswith(tuple(PRINTED_BESIDE))] == []
    places = [at for at, _ in printed()]
    assert [one for one in PRINTED_BESIDE if not any(at.startswith(one) for at in places)] == []


def test_a_text_is_found_in_whatever_is_joined_and_shown() -> None:
    source = 'say("; ".join([f"one of {x} is gone", *(f"{y} is not here any more" for y in z)]))'
    (call,) = ast.parse(source, mode="eval").body.args  # type: ignore[attr-defined]
    assert [text for one in parts_of(call) if is_text(text := plain(one, "X"))] == [
        "one of X is gone",
        "X is not here any more",
    ]


def test_a_text_is_found_wherever_a_function_may_return_it_from() -> None:
    source = (
        'def why():\n if x: return f"it has {x} devices", "remove some of them"\n text = "no device is there"'
    )
    source += '\n yield text if y else z or "all of them are in use"\n return "no"'
    ends = [one for one in walked(ast.parse(source)) if isinstance(one, ast.Return | ast.Yield)]
    texts = {plain(text, "X") for one in ends if one.value for text in texts_in(one.value, VALUES.get(one))}
    assert texts == {
        "it has X devices", "remove some of them", "no device is there", "all of them are in use", "no"
    }  # fmt: skip


def texts_of(source: str) -> list[str]:
    return [
        plain(text, "X")
        for node in walked(ast.parse(source))
        for one in said_by(node)
        for text in texts_in(one, VALUES.get(node) if isinstance(node, ast.Call) else None)
    ]


def test_a_text_is_found_wherever_an_error_may_take_it_from() -> None:
    source = 'raise InputError(f"no {x}" if y else "none", hint=z or "add " + w, where=f"{x}: {y}")'
    source += '; raise reading.error(f"found {x}") from None; raise pair.wrong("a number")'
    assert texts_of(source) == ["add ", "no X", "none", "found X", "a number"]


def test_a_text_is_found_wherever_a_note_may_take_it_from() -> None:
    source = 'def say():\n text = f"{x} bytes"\n text += " only"\n self._note(where, text, kind)'
    source += '\nnotes.trap(job, field, "none"); note(where, say("plan.notes.no_map"))'
    assert texts_of(source) == ["none", "X bytes", " only"]


@pytest.mark.parametrize("word", NOT_IN_GLOSSARY)
def test_terms_are_those_of_the_glossary(word: str) -> None:
    assert [key for key, text in EVERY if re.search(rf"\b{word}\b", text, re.IGNORECASE)] == []


def test_every_rule_has_a_short_title() -> None:
    titles = [rule.title for rule in RULES]
    assert len(titles) == len(set(titles)) == len(RULE_NAMES)
    assert [one for one in titles if len(one) > 48 or not one[0].isupper() or one.endswith(".")] == []


def test_values_are_written_in_the_unit_of_their_name() -> None:
    thin = "\N{NO-BREAK SPACE}"
    cases: dict[str, tuple[float | str, str]] = {
        "moved_bytes": (3 << 20, "3.00 MiB"),
        "link_si_bytes_per_s": (125e6, "125 MB/s"),
        "link_bytes_per_s": (1 << 20, "1.00 MiB/s"),
        "wait_ns": (1500.0, "1.50 µs"),
        "busy_share": (0.663, "66 %"),
        "off_percent": (2.14, "2.1 %"),
        "limit_percent": (5.0, "5 %"),
        "little_percent": (0.0456, "less than 0.1 %"),
        "total_iops": (12_300.0, "12.3k IOPS"),
        "done_ios": (1, "1 I/O"),
        "clones": (4, "4"),
        "name": ("sda", "sda"),
    }
    found = {name: messages.written(name, value).replace(thin, " ") for name, (value, _) in cases.items()}
    assert found == {name: text for name, (_, text) in cases.items()}
    assert messages.written("rate_iops", None) == "–"
    with pytest.raises(TypeError, match="needs a unit"):
        messages.written("depth", 1.5)


@pytest.mark.parametrize(
    ("probes", "heading"), [(1, "after 1 probe:"), (2, "after 2 probes:"), (0, "after 0 probes:")]
)
def test_a_message_counts_one_as_one(probes: int, heading: str) -> None:
    assert messages.say("verdict.explained.heading", probes=probes).endswith(heading)


COUNTED: Final = (
    "array members|checks|explanations|fields|links|loads|other results|phases|probes|results|rounds|rows"
    "|verdicts|whole numbers"
)
"""What is counted and may be one."""


def test_what_may_be_one_has_a_form_for_one() -> None:
    """'1 probes agree' stood in verdicts."""
    verbs = {"formats_iometer.managers.network"}
    wrong = [
        key for key, text in EVERY if key not in verbs and re.search(rf"\{{[a-z_]+\}} (?:{COUNTED})\b", text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bss", "did you mean 'bs' or 'bssplit'?"),
        ("iodept", "did you mean 'iodepth'?"),
        ("rwmixreed", "did you mean 'rwmixread'?"),
    ],
)
def test_a_hint_names_what_is_near_and_what_goes_on_as_it_was_typed(name: str, hint: str) -> None:
    assert nearest(name, BY_NAME) == hint
