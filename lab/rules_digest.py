"""Which rules judged a line, and which weights chose its probes: digests of what a verdict rests on.

Knows the source of the audit, of the analysis it reads, and of the predictions, and the fitted numbers.
Judges nothing.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from blake3 import blake3

import loadstone
from loadstone.explanations.weights import FILE, FITTED

ROOMS: Final = ("analysis", "audit", "explanations")
OF_PATH: Final = ("ceilings", "layers", "quantity", "spec")
"""What the rules know of the data path; how it is looked at is nothing to them."""
DIGITS: Final = 12
ROOT: Final = Path(loadstone.__file__).parent
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *COMPREHENSIONS)


@cache
def rules_digest(root: Path = ROOT) -> str:
    """Return the digest of the present rules, fitted numbers apart.

    Comments, docstrings, line breaks and the names of local variables are no part of it.
    """
    digest = blake3()
    rooms = [file for room in ROOMS for file in (root / room).rglob("*.py")]
    for file in sorted([*rooms, *(root / "path" / f"{name}.py" for name in OF_PATH)]):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + program(file.read_text()).encode())
    return digest.hexdigest()[:DIGITS]


def program(text: str) -> str:
    """Return what a module does, as text: two that differ in the names of local variables are alike."""
    return ast.dump(_Nameless().visit(ast.parse(text)))


class _Nameless(ast.NodeTransformer):
    """Numbers local variables in the order in which they come, scope by scope; no parameters."""

    def __init__(self) -> None:
        self._scopes: list[dict[str, str]] = []

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Leave out what is said of the name above it: it does nothing."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        return self.generic_visit(node)

    def visit(self, node: ast.AST) -> ast.AST:
        """Leave the docstring out, and enter the scope that a function or a comprehension is."""
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        if not isinstance(node, SCOPES):
            visited: ast.AST = super().visit(node)
            return visited
        self._scopes.append(dict.fromkeys(_stored(node), ""))
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Number it."""
        node.id = self._number(node.id)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Number what an exception is called."""
        node.name = self._number(node.name) if node.name else None
        return self.generic_visit(node)

    def _number(self, name: str) -> str:
        for depth, scope in reversed(list(enumerate(self._scopes))):
            if name in scope:
                scope[name] = scope[name] or f"{depth}.{sum(map(bool, scope.values()))}"
                return scope[name]
        return name


def _stored(scope: ast.AST) -> set[str]:
    """Return the variables of a function or comprehension that are no parameters of it."""
    names: set[str] = set()
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        if not isinstance(node, (*SCOPES, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    arguments = getattr(scope, "args", None)
    return (
        names - {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}
        if arguments
        else names
    )


@cache
def weights_digest() -> str:
    """Return the digest of all that was fitted."""
    return blake3((ROOT / "explanations" / FILE).read_bytes()).hexdigest()[:DIGITS]


@cache
def choice_digest() -> str:
    """Return the digest of what chooses probes: how readings are weighed, and no regression on that."""
    return blake3(FITTED.weights.model_dump_json().encode()).hexdigest()[:DIGITS]
