"""A chat template in a sandbox: text, and the spans of what a model writes.

A template is a program in the language of jinja2, and comes from whoever made the tokenizer. It runs in
jinja2's immutable sandbox, in which it reaches neither files nor modules, and it is bounded in three ways:

- time: each turn of a loop, each call and each filter looks at the processor time of the thread. A busy
  machine does not change the answer, as a clock on the wall would.
- memory: no value is longer than `MOST_CHARACTERS`, and all that are made together not than `_MOST_MADE`.
  What could make a larger one in a single step is looked at before.
- output: it is counted piece by piece, while the template goes on.

The environment is as transformers documents it: blocks trimmed, ``break`` and ``continue``,
``raise_exception``, ``strftime_now``, ``tojson`` without escapes of HTML, and ``{% generation %}`` around
what the model writes. Nothing in it is random, and the date is one that the caller gave, so a conversation
has the same text every day.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, final

from jinja2 import TemplateError, TemplateSyntaxError, nodes, pass_context, pass_environment
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.lexer import Token
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from seekable.errors import InvalidArgument
from seekable.formats.tokens.chats.conversations import Rendered, UnfitChat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import date

    from jinja2 import Template
    from jinja2.compiler import Frame
    from jinja2.lexer import TokenStream
    from jinja2.parser import Parser
    from jinja2.runtime import Context, Macro

__all__ = ["MOST_CHARACTERS", "SandboxedTemplate"]

MOST_CHARACTERS = 1 << 24
"""The most characters of a rendered conversation, and of any text inside a template; of lists, the items."""

_MOST_MADE = 1 << 28
"""The most characters that all steps of a template make together, those that are thrown away again
included."""

_MOST_BITS = 1 << 14
"""The most bits of an integer inside a template: powers of large numbers take time without a turn of a
loop."""

_ITEM = 64
"""The characters that an item of a list counts as: a step for each takes longer than one for each
character."""

_TICKS = 16
"""The steps between two looks at the processor time, which take 0.3 us."""

_LOOP_TURN = "turn of a loop"
"""The name of the tag that is put into each loop; a template cannot write it, as it has spaces."""

_RANDOM = ("random", "urlize", "pprint")
"""Filters that draw at random, take time that grows with the square of a text, or show places in memory."""

_PADDING = frozenset({"batch", "center", "format", "indent", "slice", "wordwrap"})
"""Filters whose numbers say how long their result is."""

_WIDE = re.compile(r"\d{7}|%[^a-zA-Z%]*\*|:[^}]*\{")
"""A width of ten million characters in a format, or one that only its arguments have."""


@final
class _Watch:
    """Counts the work of one rendering, and keeps the spans that it marks."""

    __slots__ = ("_begun", "_made", "_seconds", "_ticks", "length", "now", "spans")

    def __init__(self, seconds: float, now: date | None) -> None:
        self._seconds, self._begun = seconds, time.thread_time()
        self._ticks = self._made = 0
        self.now = now
        self.length = 0
        """The characters that have come out."""
        self.spans: list[tuple[int, str]] = []
        """The start of each block of what the model writes, and its text."""

    def tick(self) -> None:
        """Count a step, and look at the time now and then.

        Raises:
            UnfitChat: the time is over.
        """
        self._ticks += 1
        if self._ticks % _TICKS == 0 and time.thread_time() - self._begun > self._seconds:
            message = (
                f"the template did not end within {self._seconds:g} seconds of processor time: it may loop "
                f"for ever; seconds= allows more"
            )
            raise UnfitChat(message)

    def made(self, value: Any) -> Any:
        """Return a value that a step has made, which is counted.

        Raises:
            UnfitChat: it is too large.
        """
        if isinstance(value, str | list | tuple | dict):
            self.fits(_size(value))
            self._made += len(value)
            if self._made > _MOST_MADE:
                message = f"the template makes texts of more than {_MOST_MADE:,} characters in all"
                raise UnfitChat(message)
        elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
            message = f"the template makes an integer of more than {_MOST_BITS:,} bits"
            raise UnfitChat(message)
        return value

    def fits(self, size: int) -> None:
        """Raise UnfitChat if a value of this size is too large."""
        if size > MOST_CHARACTERS:
            message = (
                f"the template makes a text or a list of more than {MOST_CHARACTERS:,} characters or items"
            )
            raise UnfitChat(message)


def _size(value: Any, most: int = MOST_CHARACTERS) -> int:
    """Return the size of a value that is written out, in characters; no more is counted than ``most``.

    A list that holds another one many times is as large as what it would print.
    """
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    elif not isinstance(value, list | tuple):
        return 0
    size = _ITEM * len(value)
    for each in value:
        if size > most:
            break
        size += _size(each, most - size)
    return size


_LOCAL = threading.local()


def _watch() -> _Watch:
    """Return the watch of the rendering in this thread."""
    watch: _Watch = _LOCAL.watch
    return watch


@final
class SandboxedTemplate:
    """A compiled template. Threads may share it."""

    def __init__(self, source: str, name: str) -> None:
        """Compile a template.

        Args:
            source: the text of the template.
            name: what messages call it.

        Raises:
            InvalidArgument: it is no template.
        """
        self._template, self.marks = _compiled(source, name)
        """`marks` is True if the template has blocks of what the model writes."""

    def render(self, values: Mapping[str, Any], *, seconds: float, now: date | None) -> Rendered:
        """Return the text of a conversation, and the spans that the template marks.

        Args:
            values: the messages and all else that the template may read: plain values as JSON has them.
            seconds: the most processor time that it may take.
            now: the date for templates that ask for today's; None if the caller gave none.

        Raises:
            UnfitChat: the template fails, refuses the conversation, or does not end.
        """
        watch = _LOCAL.watch = _Watch(seconds, now)
        pieces: list[str] = []
        try:
            for piece in self._template.generate(values):
                pieces.append(piece)
                watch.length += len(piece)
                watch.fits(watch.length)
                watch.tick()
        except UnfitChat:
            raise
        except Exception as error:
            raise UnfitChat(_failure(error)) from error
        finally:
            _LOCAL.watch = None
        text = "".join(pieces)
        return Rendered(text, _checked_spans(text, watch.spans))


def _failure(error: Exception) -> str:
    if isinstance(error, TemplateError):
        return f"the template refuses it: {error.message or type(error).__name__}"
    return f"the template fails with {type(error).__name__}: {error}"


def _checked_spans(text: str, spans: list[tuple[int, str]]) -> tuple[tuple[int, int], ...]:
    """Return the start and end of each span.

    Raises:
        UnfitChat: a span is not where its text is.
    """
    for start, marked in spans:
        if not text.startswith(marked, start):
            message = (
                "the template marks {% generation %} inside a macro or a set block, where it has no place in "
                "the text: put the block where its text comes out"
            )
            raise UnfitChat(message)
    return tuple((start, start + len(marked)) for start, marked in spans)


@functools.lru_cache(maxsize=32)
def _compiled(source: str, name: str) -> tuple[Template, bool]:
    environment = _environment()
    try:
        return environment.from_string(source), _marks(environment.parse(source))
    except TemplateSyntaxError as error:
        message = f"{name} is no template that jinja2 can read: line {error.lineno}: {error.message}"
        raise InvalidArgument(message) from error
    except (TemplateError, RecursionError, MemoryError, SyntaxError) as error:
        message = f"{name} is no template that jinja2 can read: {type(error).__name__}: {error}"
        raise InvalidArgument(message) from error


def _marks(parsed: nodes.Template) -> bool:
    return any(
        isinstance(call := block.call.node, nodes.ExtensionAttribute) and call.name == "marked"
        for block in parsed.find_all(nodes.CallBlock)
        if isinstance(block.call, nodes.Call)
    )


@functools.cache
def _environment() -> _Environment:
    """Return the environment, in which threads render at once."""
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[_Marks, loopcontrols]
    )
    for name in _RANDOM:
        environment.filters.pop(name, None)
    environment.globals.pop("lipsum", None)
    environment.filters |= {"tojson": _tojson, "join": _join}
    environment.filters = {name: _watched(name, each) for name, each in environment.filters.items()}
    environment.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
        "dict": _Dict(),
        "namespace": _Namespace,
    }
    return environment


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that counts as a step."""

    @functools.wraps(function)
    def filtered(*arguments: Any, **named: Any) -> Any:
        watch = _watch()
        watch.tick()
        if name in _PADDING:
            _check_widths([*arguments, *named.values()])
        if name == "replace":
            _check_replaced(*[each for each in (*arguments, *named.values()) if isinstance(each, str)][:3])
        return watch.made(function(*arguments, **named))

    return filtered


def _check_widths(arguments: Iterable[Any]) -> None:
    for each in arguments:
        if isinstance(each, int):
            _watch().fits(each)
        elif isinstance(each, str):
            _check_format(each)


def _check_format(text: str) -> None:
    if len(text) < 1 << 12 and _WIDE.search(text):
        message = (
            "the template formats a text with a width of more than 999,999, or one that is not written out"
        )
        raise UnfitChat(message)


def _check_replaced(text: str = "", old: str = "", new: str = "") -> None:
    _watch().fits(len(text) + (text.count(old) * len(new)))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - as templates call it
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Return JSON as it is, without the escapes for HTML that jinja2 puts."""
    if isinstance(indent, int) and indent > 1 << 10:
        message = f"the template indents JSON by {indent:,}"
        raise UnfitChat(message)
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


@pass_environment
def _join(environment: _Environment, value: Iterable[Any], d: Any = "", attribute: Any = None) -> str:
    """Join values as jinja2 does, after a look at their sizes."""
    items = value if attribute is None else map(make_attrgetter(environment, attribute), value)
    return _separated(str(d), list(map(str, items)))


def _separated(separator: str, texts: list[str]) -> str:
    _watch().fits(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _raise_exception(message: str) -> str:
    raise TemplateError(message)


def _strftime_now(form: str) -> str:
    now = _watch().now
    if now is None:
        message = (
            "the template asks for today's date, so the text would be another one tomorrow: give now=, the "
            "date that it shall have"
        )
        raise UnfitChat(message)
    return now.strftime(form)


@final
class _Dict:
    """The function ``dict``, without the attributes of the class."""

    def __call__(self, *arguments: Any, **named: Any) -> dict[Any, Any]:
        return dict(*arguments, **named)

    def fromkeys(self, *arguments: Any) -> dict[Any, Any]:
        return dict.fromkeys(*arguments)


class _Namespace(Namespace):
    """Values that a template can set, but for names with an underscore before them."""

    def __init__(*arguments: Any, **named: Any) -> None:  # A value may be named self.
        self, *given = arguments
        values = dict(*given, **named)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # One that holds itself, or another many times, could be printed without an end.


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        message = f"a namespace has no names that begin with an underscore (got {name!r})"
        raise SecurityError(message)


class _Generator(CodeGenerator):
    """Makes texts and lists by functions that count them."""

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802 - names of jinja2
        self.write("environment.built(")
        super().visit_List(node, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self.write("environment.built(")
        super().visit_Dict(node, frame)
        self.write(")")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx != "load":
            super().visit_Tuple(node, frame)
            return
        self.write("environment.built(")
        super().visit_Tuple(node, frame)
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


def _joined(pieces: Iterable[str]) -> str:
    """Join the pieces of a block, a macro or a text."""
    watch = _watch()
    watch.tick()
    parts = list(pieces)
    watch.fits(sum(map(len, parts)))
    joined: str = watch.made("".join(parts))
    return joined


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, in which each step is counted."""

    intercepted_binops: ClassVar[frozenset[str]] = frozenset({"+", "*", "**", "%"})  # type: ignore[misc]
    code_generator_class = _Generator
    concat = staticmethod(_joined)

    def built(self, value: Any) -> Any:
        """Return a list, a tuple or a dict that was written out."""
        return _watch().made(value)

    def joined(self, values: Iterable[Any]) -> str:
        """Return values as one text."""
        return _joined(map(str, values))

    def call(self, context: Context, obj: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call a function in the sandbox."""
        watch = _watch()
        watch.tick()
        # A format is wrapped by the sandbox, in a function that leads to the method.
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if isinstance(owner, str):
            if obj.__name__ == "join" and len(arguments) == 1:
                return watch.made(_separated(owner, _texts(arguments[0])))
            _check_method(obj.__name__, owner, [*arguments, *named.values()])
        return watch.made(super().call(context, obj, *arguments, **named))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return the result of an operator, if it is not too large."""
        watch = _watch()
        watch.tick()
        if operator == "*":
            for text, count in ((left, right), (right, left)):
                if isinstance(text, str | list | tuple) and isinstance(count, int):
                    watch.fits(len(text) * count)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            watch.made(1 << min(max(left.bit_length() * right, 0), _MOST_BITS + 1))
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
        return watch.made(super().call_binop(context, operator, left, right))


def _texts(values: Iterable[Any]) -> list[str]:
    texts = list(values)
    for each in texts:
        if not isinstance(each, str):
            message = f"join() of a text takes texts (got one of type {type(each).__name__})"
            raise TypeError(message)
    return texts


def _check_method(name: str, owner: str, arguments: list[Any]) -> None:
    """Check a method of a text before it makes another one.

    Raises:
        UnfitChat: its result would be too large.
    """
    if name in ("format", "format_map"):
        _check_format(owner)
    elif name == "replace" and len(arguments) > 1 and isinstance(arguments[0], str):
        _check_replaced(owner, arguments[0], str(arguments[1]))
    elif name == "translate" and arguments and isinstance(arguments[0], dict):
        longest = max((len(each) for each in arguments[0].values() if isinstance(each, str)), default=1)
        _watch().fits(len(owner) * longest)
    for each in arguments:
        if isinstance(each, int):
            _watch().fits(each)


class _Marks(Extension):
    """The tag ``{% generation %}``, and a step in each turn of a loop."""

    tags = {"generation", _LOOP_TURN}  # noqa: RUF012 - as jinja2 declares it

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Put a tag behind the head of each loop."""
        begins = in_head = False
        for token in stream:
            yield token
            if token.type == "block_end" and in_head:
                in_head = False
                yield Token(token.lineno, "block_begin", "{%")
                yield Token(token.lineno, "name", _LOOP_TURN)
                yield Token(token.lineno, "block_end", "%}")
            if begins and token.type == "name" and token.value == "for":
                in_head = True
            begins = token.type == "block_begin"

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the node of a tag."""
        tag = next(parser.stream)
        if tag.value == _LOOP_TURN:
            return nodes.ExprStmt(self.call_method("turn")).set_lineno(tag.lineno)
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("marked"), [], [], body).set_lineno(tag.lineno)

    @pass_context
    def turn(self, context: Context) -> None:
        """Do nothing: the call is the step."""

    @pass_context
    def marked(self, context: Context, caller: Macro) -> str:
        """Return the text of a block, whose place is noted."""
        watch = _watch()
        start = watch.length
        text: str = caller()
        watch.spans.append((start, text))
        return text
