"""The house rules of src/seekable, read off the syntax trees, without importing anything.

Data flows one way and imports point back along it. Each rule is a function from a module to the complaints
about it; the second half of this file feeds each of them sources that break it.
"""

from __future__ import annotations

import ast
import functools
import gc
import graphlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.rooms import MAY_IMPORT, SHARED, room_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "seekable"
MAX_LINES = 800
EMPTY_NAMES = frozenset({"helper", "helpers", "misc", "util", "utils"})

# Modules that are lists of public names, each loaded when it is used: they name every room, and use none.
LISTS_OF_NAMES = frozenset({PACKAGE, f"{PACKAGE}.formats"})

# Functions whose first argument is the name of a module to import, or ``module:name``.
IMPORTERS = frozenset({"__import__", "import_module", "imported", "imported_module", "lazy"})

# What `pip install seekable` does not bring: may be imported inside any function.
OPTIONAL = frozenset(
    {
        *(
            "accelerate",
            "dask",
            "datasets",
            "distributed",
            "grain",
            "huggingface_hub",
            "indexed_gzip",
            "jax",
            "lhotse",
        ),
        *("jinja2", "lightning", "obstore"),
        *(
            "gigatoken",
            "pyarrow",
            "ray",
            "sentencepiece",
            "soundfile",
            "starlette",
            "tiktoken",
            "tokenizers",
            "torch",
        ),
        *("uvicorn", "zstandard"),
    }
)

# What is imported inside a function because most runs never need it: the module, the package and the reason.
ON_DEMAND: dict[tuple[str, str], str] = {
    ("seekable.parallel.progress", "rich"): "only an index build of more than a second draws a bar",
}

# What can run code that it reads. Everything listed is forbidden, but for ALLOWED_UNSAFE.
UNSAFE_MODULES = frozenset({"cloudpickle", "dill", "marshal", "pickle", "shelve"})
UNSAFE_CALLS = frozenset({"__import__", "eval", "exec", "os.popen", "os.system"})
UNSAFE_WORDS = frozenset({"__import__", "eval", "exec", "popen", "system", "shell", "allow_pickle"})
"""Texts of which a module with an unsafe call has one."""
ALLOWED_UNSAFE: dict[tuple[str, str], str] = {
    ("seekable.parallel.pickling", "cloudpickle"): "pipes and sockets between a process and its children",
    ("seekable.parallel.pickling", "pickle"): "a copy of an error, in memory",
    ("seekable.loader.worker_messages", "pickle"): "a socket between a process and its own children",
    ("seekable.parallel.processes", "pickle"): "pipes to and from its own child processes, never a file",
    ("seekable.remote.fetching.forks", "pickle"): "a socket between a process and its own child",
    ("seekable.testing.formats", "cloudpickle"): "a pipe to its own child process, never a file",
    ("seekable.testing.holders", "cloudpickle"): "a copy of what it was given, in memory",
    ("seekable.testing.resume", "cloudpickle"): "a pipe to its own child process, never a file",
    ("seekable.testing.stages", "cloudpickle"): "a copy of what it was given, in memory",
}

# Asserts that compare an argument, which `python -O` strips: what they state, the callers guarantee.
ALLOWED_ASSERTS: dict[tuple[str, str], str] = {
    ("seekable.formats.tables.parquet.point_read", "_values"): "the caller has read a page of this kind",
    ("seekable.formats.tokens.words", "token_survey"): "the indexer makes all three together",
    (
        "seekable.formats.tokens.stored_arrays",
        "copy_elements",
    ): "the batch's own array, made a line before",
    (
        "seekable.formats.tokens.token_reading",
        "copy_into",
    ): "positions that the plan itself has laid out",
    ("seekable.storage.file_names", "expanded"): "the parser's place in its own text",
    ("seekable.testing.stores", "_written"): "the suite's own test of a store",
}


@dataclass(frozen=True, slots=True)
class Module:
    """One module of the package, parsed."""

    name: str
    source: str
    tree: ast.Module
    is_package: bool
    has_importers: bool
    """False where no call can import: expressions need not be looked into."""

    @property
    def room(self) -> str:
        """The room in tests/rooms.py; empty for the package itself."""
        return room_of(self.name)


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import statement, or `import_module` or `lazy` of a literal, asks for."""

    target: str
    line: int
    functions: tuple[str, ...]
    """The classes and functions around it, outermost first, if one of them is a function."""
    typing_only: bool


def parse(name: str, source: str, *, is_package: bool = False) -> Module:
    return Module(name, source, ast.parse(source), is_package, any(word in source for word in IMPORTERS))


@functools.cache
def modules() -> tuple[Module, ...]:
    gc.disable()  # it would go through the growing trees again and again, for most of the time
    try:
        return tuple(map(module_at, sorted((ROOT / "src" / PACKAGE).rglob("*.py"))))
    finally:
        gc.freeze()
        gc.enable()


def module_at(path: Path) -> Module:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return parse(name, path.read_text(encoding="utf-8"), is_package=is_package)


def dotted(node: ast.expr) -> str:
    """`a.b.c` of an expression that is only names and dots, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


@functools.cache
def imports(module: Module) -> tuple[Import, ...]:
    return tuple(_imports(module, module.tree, scope=(), in_function=False, typing_only=False))


def _imports(
    module: Module, node: ast.AST, *, scope: tuple[str, ...], in_function: bool, typing_only: bool
) -> Iterator[Import]:
    for target in _targets(module, node):
        line = getattr(node, "lineno", 0)
        yield Import(target, line, scope if in_function else (), typing_only)
    children: list[ast.AST] = list(ast.iter_child_nodes(node))
    if not module.has_importers:
        children = [child for child in children if not isinstance(child, ast.expr)]
    if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING"):
        children = list(node.orelse)
        for guarded in node.body:
            yield from _imports(module, guarded, scope=scope, in_function=in_function, typing_only=True)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = (*scope, node.name)
        in_function = in_function or not isinstance(node, ast.ClassDef)
    for child in children:
        yield from _imports(module, child, scope=scope, in_function=in_function, typing_only=typing_only)


def _targets(module: Module, node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = _absolute(module, node)
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in IMPORTERS:
        return [
            arg.value.replace(":", ".")
            for arg in node.args[:1]
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]
    return []


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def is_within(target: str, package: str) -> bool:
    return target == package or target.startswith(package + ".")


def complain_of_flow(module: Module) -> list[str]:
    """Imports point back along the rooms, for types too; only a list of public names sees every room."""
    if module.name in LISTS_OF_NAMES:
        return []
    if module.room not in MAY_IMPORT:
        return [f"{module.name}: the room {module.room!r} is not in MAY_IMPORT"]
    return [
        f"{module.name}:{found.line} imports {found.target}; "
        f"{module.room} may import {sorted(MAY_IMPORT[module.room] | SHARED)}"
        for found in against_the_flow(module)
    ]


def against_the_flow(module: Module) -> Iterator[Import]:
    """The imports of rooms that the room of the module may not import."""
    allowed = MAY_IMPORT.get(module.room, frozenset()) | SHARED | {module.room}
    if module.name in LISTS_OF_NAMES:
        return
    for found in imports(module):
        if is_within(found.target, PACKAGE) and room_of(found.target) not in allowed:
            yield found


@functools.cache
def module_names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def module_of(target: str) -> str:
    """The module of what is imported, which is a module or a name in one."""
    return target if target in module_names() else target.rpartition(".")[0]


def complain_of_hidden_imports(module: Module) -> list[str]:
    """An import stands inside a function only for one of four reasons, each checked here."""
    return [
        f"{module.name}:{found.line} imports {found.target} inside {'.'.join(found.functions)}"
        for found in imports(module)
        if found.functions
        and found.target.split(".")[0] not in OPTIONAL
        and (module.name, found.target.split(".")[0]) not in ON_DEMAND
        and module.room != "cli"  # `seekable --help` imports no command
        and not (module.name == PACKAGE and found.functions == ("__getattr__",))
    ]


def complain_of_unsafe(module: Module) -> list[str]:
    """Nothing that runs what it reads, but for the listed exceptions."""
    return [
        f"{module.name}:{line} uses {what}"
        for line, what in unsafe(module)
        if (module.name, what) not in ALLOWED_UNSAFE
    ]


def unsafe(module: Module) -> Iterator[tuple[int, str]]:
    for found in imports(module):
        if found.target.split(".")[0] in UNSAFE_MODULES:
            yield found.line, found.target.split(".")[0]
        elif found.target in UNSAFE_CALLS:
            yield found.line, found.target
    if not any(word in module.source for word in UNSAFE_WORDS):
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        if (called := dotted(node.func).removeprefix("builtins.")) in UNSAFE_CALLS:
            yield node.lineno, called
        for keyword in node.keywords:
            is_false = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            if keyword.arg in {"shell", "allow_pickle"} and not is_false:
                yield node.lineno, f"{keyword.arg}="


def complain_of_print(module: Module) -> list[str]:
    """Only the command line prints."""
    if "print" not in module.source:
        return []
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    return [
        f"{module.name}:{call.lineno} prints"
        for call in calls
        if dotted(call.func) == "print" and module.room != "cli"
    ]


def complain_of_asserts(module: Module) -> list[str]:
    """No assert checks an argument: `python -O` strips it. One that only narrows its type is for mypy."""
    return [
        f"{module.name}:{line} {function} asserts something of its argument {name}"
        for line, function, name in asserted_arguments(module)
        if (module.name, function) not in ALLOWED_ASSERTS
    ]


def asserted_arguments(module: Module) -> Iterator[tuple[int, str, str]]:
    """The line, the function and the argument of each assert that compares an argument."""
    if "assert " not in module.source:
        return
    for function in ast.walk(module.tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = function.args
        names = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]} - {"self", "cls"}
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and not is_narrowing(node.test):
                used = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
                for name in sorted(used & names)[:1]:
                    yield node.lineno, function.name, name


def is_narrowing(test: ast.expr) -> bool:
    """`isinstance(x, Y)`, `issubclass(x, Y)` or `x is not None`."""
    if isinstance(test, ast.Call):
        return dotted(test.func) in {"isinstance", "issubclass"}
    return isinstance(test, ast.Compare) and all(
        isinstance(operator, ast.IsNot) and isinstance(right, ast.Constant) and right.value is None
        for operator, right in zip(test.ops, test.comparators, strict=True)
    )


def complain_of_lazy_names(module: Module) -> list[str]:
    """What is imported on first use is used, and type checkers read the same names in the other branch."""
    if "lazy(" not in module.source and "optional(" not in module.source:
        return []
    nodes = list(ast.walk(module.tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    guarded = {
        id(statement)
        for node in nodes
        if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING")
        for statement in node.orelse
    }
    complaints = []
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name, maker = dotted(node.targets[0]), dotted(node.value.func)
            if maker in {"lazy", "optional"} and name not in used:
                complaints.append(f"{module.name}:{node.lineno} never uses {name}")
            if maker == "lazy" and id(node) not in guarded:
                complaints.append(f"{module.name}:{node.lineno} has {name} outside an else: of TYPE_CHECKING")
    return complaints


def complain_of_shape(module: Module) -> list[str]:
    """A module says what it is, in its name and its docstring, and is short enough to be read."""
    lines = module.source.count("\n")
    complaints = {
        f"is {lines} lines long; {MAX_LINES} is too long": lines >= MAX_LINES,
        "has no docstring": not ast.get_docstring(module.tree),
        "has a name that says nothing": not EMPTY_NAMES.isdisjoint(module.name.split(".")),
    }
    return [f"{module.name} {complaint}" for complaint, holds in complaints.items() if holds]


def find_cycle(house: Sequence[Module], *, types: bool) -> list[str]:
    """The modules of one circle of imports, if there is one; `types` adds the imports for type checkers."""
    names = {module.name for module in house}
    graph: dict[str, set[str]] = {module.name: set() for module in house}
    for module in house:
        for found in imports(module):
            if found.functions or (found.typing_only and not types):
                continue
            target = found.target if found.target in names else found.target.rpartition(".")[0]
            if target in names and target != module.name:
                graph[module.name].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


Rule = Callable[[Module], list[str]]
RULES: list[Rule] = [
    complain_of_flow,
    complain_of_hidden_imports,
    complain_of_unsafe,
    complain_of_print,
    complain_of_asserts,
    complain_of_lazy_names,
    complain_of_shape,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule: Rule) -> None:
    assert [complaint for module in modules() for complaint in rule(module)] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_cycle(modules(), types=False) == []


def test_no_modules_name_each_other_in_a_circle_of_types() -> None:
    assert find_cycle(modules(), types=True) == []


def test_every_exception_is_still_needed() -> None:
    house = {module.name: module for module in modules()}
    idle = [
        (name, what)
        for name, what in ALLOWED_UNSAFE
        if name in house and what not in {used for _, used in unsafe(house[name])}
    ]
    idle += [
        (name, function)
        for name, function in ALLOWED_ASSERTS
        if function not in {found for _, found, _ in asserted_arguments(house[name])}
    ]
    idle += [
        (name, what)
        for name, what in ON_DEMAND
        if not any(found.functions and is_within(found.target, what) for found in imports(house[name]))
    ]
    assert idle == []


BAD: list[tuple[str, Rule, str, str]] = [
    ("order imports errors", complain_of_flow, "order.window", "from seekable.errors import WrongType"),
    ("errors imports state", complain_of_flow, "errors", "import seekable.state"),
    ("state imports storage", complain_of_flow, "state.save", "from seekable import storage"),
    (
        "index imports formats",
        complain_of_flow,
        "index.build",
        "from seekable.formats.lines.jsonl import Jsonl",
    ),
    (
        "audio imports kaldi",
        complain_of_flow,
        "formats.audio.audio_mix",
        "from seekable.formats.kaldi.holders import wave",
    ),
    ("kaldi imports tokens", complain_of_flow, "formats.kaldi.new", "import seekable.formats.tokens"),
    ("dataset imports loader", complain_of_flow, "dataset.node", "from ..loader import Loader"),
    ("testing imports cli", complain_of_flow, "testing.suites", "import seekable.cli.main"),
    ("the public face from within", complain_of_flow, "loader.loader", "import seekable as sk"),
    ("an unknown room", complain_of_flow, "tools.thing", "x = 1"),
    ("a room of almost that name", complain_of_flow, "index.build", "import seekable.storage_two"),
    (
        "upwards, for types only",
        complain_of_flow,
        "index.build",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from seekable.loader import Loader",
    ),
    (
        "upwards, on first use",
        complain_of_flow,
        "index.build",
        "from seekable._lazy import lazy\nloader = lazy('seekable.loader.loader')",
    ),
    (
        "hidden behind lazy",
        complain_of_hidden_imports,
        "dataset.node",
        "from seekable._lazy import lazy\ndef f():\n    return lazy('seekable.loader')",
    ),
    ("hidden in a function", complain_of_hidden_imports, "index.build", "def f():\n    import json"),
    (
        "hidden deeper",
        complain_of_hidden_imports,
        "state.save",
        "class A:\n def f(s):\n  if s:\n   import json",
    ),
    (
        "hidden behind import_module",
        complain_of_hidden_imports,
        "dataset.node",
        "import importlib\ndef f():\n    return importlib.import_module('seekable.loader')",
    ),
    (
        "hidden behind a home",
        complain_of_hidden_imports,
        "dataset.node",
        "from seekable._lazy import imported\ndef f():\n    return imported('seekable.loader.loader:Loader')",
    ),
    (
        "upwards, by a home outside the tables",
        complain_of_flow,
        "index.build",
        "from seekable._lazy import imported\nTar = imported('seekable.formats.tar.options:Tar')",
    ),
    (
        "on demand, but in another module",
        complain_of_hidden_imports,
        "index.build",
        "def f():\n    from rich import progress",
    ),
    ("pickle", complain_of_unsafe, "state.save", "import pickle"),
    ("pickle by name", complain_of_unsafe, "index.table", "from pickle import loads"),
    ("cloudpickle", complain_of_unsafe, "state.save", "import cloudpickle"),
    ("eval", complain_of_unsafe, "formats.text", "eval('1')"),
    ("exec", complain_of_unsafe, "formats.text", "import builtins\nbuiltins.exec('1')"),
    ("os.system", complain_of_unsafe, "kaldi.pipes", "import os\nos.system('ls')"),
    ("os.system by name", complain_of_unsafe, "kaldi.pipes", "from os import system"),
    ("a shell", complain_of_unsafe, "kaldi.pipes", "import subprocess\nsubprocess.run('ls', shell=True)"),
    ("a shell by variable", complain_of_unsafe, "kaldi.pipes", "run('ls', shell=wanted)"),
    ("numpy's pickles", complain_of_unsafe, "formats.npy", "np.load(path, allow_pickle=True)"),
    ("print", complain_of_print, "loader.report", "print('hello')"),
    ("an argument asserted", complain_of_asserts, "dataset.node", "def f(n):\n    assert n > 0"),
    (
        "an argument asserted in a method",
        complain_of_asserts,
        "dataset.node",
        "class A:\n def f(s, *, k):\n  if s:\n   assert len(k) == 2",
    ),
    (
        "a lazy name without a use",
        complain_of_lazy_names,
        "loader.loader",
        "from seekable._lazy import lazy\nif TYPE_CHECKING:\n    import a\nelse:\n    a = lazy('a')",
    ),
    (
        "a lazy name that type checkers read",
        complain_of_lazy_names,
        "loader.loader",
        "from seekable._lazy import lazy\na = lazy('a')\na.run()",
    ),
    ("no docstring", complain_of_shape, "index.build", "x = 1\n"),
    ("utils", complain_of_shape, "index.utils", '"""Things."""\n'),
    ("helpers, a folder", complain_of_shape, "helpers.paths", '"""Things."""\n'),
    ("a long file", complain_of_shape, "index.build", '"""Things."""\n' + "x = 1\n" * (MAX_LINES - 1)),
]


@pytest.mark.parametrize(("rule", "name", "source"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_broken_rule_is_found(rule: Rule, name: str, source: str) -> None:
    assert rule(parse(f"{PACKAGE}.{name}", source))


LAZY = "from seekable._lazy import lazy\nif TYPE_CHECKING:\n    {0}\nelse:\n    x = lazy('{1}')\nx.run()"

GOOD: list[tuple[str, str, str]] = [
    ("back along the flow", "loader.loader", "from seekable.dataset import Dataset\nimport seekable.order"),
    ("its own room", "storage.mapped", "from seekable.storage.files import write\nfrom . import atomic"),
    ("every subject reads lines", "formats.kaldi", "from seekable.formats.lines import text"),
    (
        "commands read kaldi",
        "cli.kaldi",
        "def copy():\n    from seekable.formats.kaldi.files import specifiers",
    ),
    ("cli sees all", "cli.view", "def view():\n    from seekable.viewer import server\n    print(server)"),
    (
        "on first use",
        "loader.loader",
        LAZY.format("from seekable.stream import stream", "seekable.stream.stream"),
    ),
    ("optional", "formats.parquet", "def f():\n    import pyarrow.parquet as pq"),
    ("pickle in pipes", "parallel.processes", "import pickle"),
    ("a narrowing", "nodes.zip", "def f(a, b):\n    assert isinstance(a, int)\n    assert b.c is not None"),
    ("a fact of its own", "nodes.zip", "def f(a):\n    c = len(a)\n    assert c >= 0"),
    ("no shell", "index.executor", "import subprocess\nsubprocess.Popen(['ls'], shell=False)"),
]


@pytest.mark.parametrize(("name", "source"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_what_keeps_the_rules_passes(name: str, source: str) -> None:
    module = parse(f"{PACKAGE}.{name}", f'"""Things."""\n{source}\n')
    assert [complaint for rule in RULES for complaint in rule(module)] == []


def test_the_package_imports_lazily_in_getattr_only() -> None:
    source = "def {}(name):\n    from seekable.dataset import Dataset"
    assert not complain_of_hidden_imports(parse(PACKAGE, source.format("__getattr__"), is_package=True))
    assert complain_of_hidden_imports(parse(PACKAGE, source.format("load"), is_package=True))


@pytest.mark.parametrize("types", [False, True])
def test_a_circle_is_found(*, types: bool) -> None:
    one = parse("seekable.order.one", "from seekable.order import two")
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from seekable.order.one import x"
    lazily = LAZY.format("pass", one.name)
    circle = {one.name, "seekable.order.two"}
    for source in ["from seekable.order.one import x", lazily, *([guarded] if types else [])]:
        assert set(find_cycle([one, parse("seekable.order.two", source)], types=types)) == circle
    for source in ["from seekable.order import three", *([] if types else [guarded])]:
        assert find_cycle([one, parse("seekable.order.two", source)], types=types) == []


@pytest.mark.parametrize(
    "page",
    [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/design/extending.md",
        "docs/design/inside.md",
        "docs/design/inside-stores.md",
    ],
)
def test_files_that_pages_name_exist(page: str) -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_0-9/]+(?:\.py)?)`", (ROOT / page).read_text(encoding="utf-8")))
    assert named
    for name in named:
        places = [folder / name for folder in (ROOT, ROOT / "src/seekable", ROOT / "tests")]
        assert any(each.exists() or each.with_suffix(".py").exists() for each in places), name
