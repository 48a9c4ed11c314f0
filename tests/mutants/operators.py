"""Small changes to Python code, as a slip of its author might be: every one that these rules know, one at a time."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Mult,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "bisect_left": "bisect_right", "sorted": "list"} | {
    "bisect_right": "bisect_left"
}
_Statement = ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Raise | ast.Delete | ast.Break | ast.Continue


class Mutation(NamedTuple):
    """Code with one change in it."""

    place: str
    """The function that was changed, with its class."""
    line: int
    what: str
    """What stood there, and what stands there now; with a number where the function has the same more than once."""
    code: str


class _Site(NamedTuple):
    place: str
    owner: ast.AST
    field: str
    at: int | None

    @property
    def node(self) -> ast.AST:
        value = getattr(self.owner, self.field)
        found: ast.AST = value if self.at is None else value[self.at]
        return found

    def put(self, node: ast.AST) -> None:
        if self.at is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.at] = node


def mutations(code: str) -> Iterator[Mutation]:
    """Every mutation of a module, one after the other."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    each.raised = True  # type: ignore[attr-defined]  # a note for `_is_words`
    seen = Counter[tuple[str, str]]()
    for site in list(_sites(tree, "", inside=False)):
        node = site.node
        for other in _others(node):
            what = f"{_shown(node)} → {_shown(other)}"
            seen[site.place, what] += 1
            number = seen[site.place, what]
            site.put(other)
            changed = ast.unparse(ast.fix_missing_locations(tree))
            site.put(node)
            yield Mutation(
                site.place, getattr(node, "lineno", 0), f"{what} ({number})" if number > 1 else what, changed
            )


def _sites(node: ast.AST, place: str, *, inside: bool) -> Iterator[_Site]:
    """Where something may stand that can be changed; annotations, decorators and the words of an error are no code."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "bases", "type_params"} or isinstance(value, str):
            continue
        children: Sequence[object] = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
                continue
            if _is_words(child):
                continue
            name = getattr(child, "name", "") if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else ""
            below = ".".join(filter(None, (place, name or (child.name if isinstance(child, ast.ClassDef) else ""))))
            function = inside or bool(name)
            if inside:
                yield _Site(place, node, field, index if isinstance(value, list) else None)
            elif isinstance(child, ast.expr) and isinstance(node, ast.Assign | ast.AnnAssign) and field == "value":
                yield _Site(place or _target(node), node, field, None)
            yield from _sites(child, below, inside=function)


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _is_words(node: ast.AST) -> bool:
    """Whether it is a docstring, or of an error that is raised what it says and not which it is."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.Constant) and getattr(node, "raised", False))


def _others(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[op]):
            for other in _COMPARED[type(op)]:
                yield _with(node, ops=[other()])
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            for index in range(len(node.values)):
                left = [*node.values[:index], *node.values[index + 1 :]]
                yield left[0] if len(left) == 1 else _with(node, values=left)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _COMPUTED:
            yield _with(node, op=_COMPUTED[type(node.op)]())
            if isinstance(node, ast.AugAssign):
                yield ast.Pass()
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            if value > 0:
                yield ast.Constant(value - 1)
        case ast.Constant(value=str(value)):
            yield ast.Constant(f"{value}?")
        case ast.Constant(value=bytes(value)):
            yield ast.Constant(value + b"?")
        case ast.If():
            yield _with(node, test=ast.Constant(value=True))
            yield _with(node, test=ast.Constant(value=False))
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.Call():
            yield from _other_calls(node)
        case ast.Slice():
            if node.lower is not None:
                yield _with(node, lower=None)
            if node.upper is not None:
                yield _with(node, upper=None)
        case ast.comprehension():
            for index in range(len(node.ifs)):
                yield _with(node, ifs=[*node.ifs[:index], *node.ifs[index + 1 :]])
        case ast.ExceptHandler():
            yield _with(node, body=[ast.Raise()])
        case ast.Return() if not _is_nothing(node.value):
            yield ast.Return(None)
        case ast.AnnAssign() if node.value is None:
            return
        case ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.Raise() | ast.Delete() | ast.Break() | ast.Continue():
            yield ast.Pass()


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        other = _CALLED[node.func.id]
        keywords = [] if other == "list" else node.keywords
        yield _with(node, func=ast.Name(other, ast.Load()), keywords=keywords)
    for index in range(len(node.keywords)):
        yield _with(node, keywords=[*node.keywords[:index], *node.keywords[index + 1 :]])


def _is_nothing(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _shown(node: ast.AST) -> str:
    """The code on one line; of a statement with others inside it the first."""
    if isinstance(node, ast.comprehension):
        return " ".join(["for …", *(f"if {ast.unparse(each)}" for each in node.ifs)])
    if isinstance(node, ast.ExceptHandler):
        return f"except: {ast.unparse(node.body[0])}"
    text = ast.unparse(ast.fix_missing_locations(deepcopy(node)))
    return " ".join(text.splitlines()[0].split())
