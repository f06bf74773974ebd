"""``sk.Chat``: conversations to tokens by a chat template, with a mask of what the loss is taken of."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, final

import msgspec
import numpy as np
import xxhash

from seekable._arguments import checked_count, checked_path, checked_seconds, explains_keywords
from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import BadValue, InvalidArgument, WrongType
from seekable.formats.tokens.chats.conversations import Conversation, UnfitChat, conversation_of, plain
from seekable.formats.tokens.chats.turn_masks import mask_of_spans, turn_mask
from seekable.formats.tokens.tokenizing.engine import UnfitDocument, default_dtype, fail_at_culprit
from seekable.formats.tokens.tokenizing.engines import engine_of, unread_text_named
from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, offsets_of, without_threads
from seekable.state.canonical import fingerprint_of
from seekable.state.functions import DescribedFunction, describe_function
from seekable.storage.paths import is_file, is_folder, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jinja2
    import tokenizers
    from numpy.typing import NDArray

    from seekable.formats.tokens.chats import sandbox
    from seekable.formats.tokens.chats.conversations import Rendered
    from seekable.formats.tokens.chats.turn_masks import TurnMask
    from seekable.formats.tokens.tokenizing.huggingface_engine import TokenizerKey
else:
    jinja2 = optional("jinja2", extra="chat")
    tokenizers = optional("tokenizers", extra="tokens")
    sandbox = lazy("seekable.formats.tokens.chats.sandbox")

__all__ = ["Chat", "EncodedChat"]


_RESERVED = frozenset({"messages", "tools", "documents", "add_generation_prompt"})
"""The names that a template has for what a conversation is."""

_SECONDS = 10.0

_ELSEWHERE = {
    "chat_template": "template=",
    "max_length": "most_tokens=",
    "max_seq_length": "most_tokens=",
    "truncation": "most_tokens=, which cuts at turns",
    "assistant_only_loss": 'mask="assistant", which holds if left out',
    "return_assistant_tokens_mask": 'mask="assistant", which holds if left out',
    "add_generation_prompt": "nothing: the conversations of a training have their answers",
    "chat_template_kwargs": "variables=",
}


@dataclass(frozen=True, slots=True)
class EncodedChat:
    """The tokens of one sequence."""

    ids: NDArray[np.integer[Any]]

    mask: NDArray[np.uint8]
    """1 for each token in the loss, else 0."""


@final
class Chat(DescribedFunction):
    """Makes tokens and a loss mask of conversations, by the chat template of a tokenizer.

    It is a function of a record, for ``map`` of datasets and streams; and the ``tokenizer=`` of
    ``sk.tokenize``, for a store. A record becomes ``{"tokens": ..., "loss_mask": ...}``, two arrays of one
    length: ids as uint16 if none above 65,535 can occur, else as uint32; and uint8, 1 = in the loss. Both are
    those of transformers' ``apply_chat_template(..., return_assistant_tokens_mask=True)``.

    A template is a program. It runs in a sandbox of jinja2 without files and modules, with bounds on time and
    output, and only because this object was made.

    Conversations are lists of messages with ``role`` and ``content``, turns of ShareGPT with ``from`` and
    ``value``, or records of Alpaca. Tools come from the record's column "tools", and reasoning from a
    message's ``reasoning_content``.

    Args:
        tokenizer: the path of a folder with a ``tokenizer.json`` and a chat template, or a fast tokenizer of
            transformers; with ``template``, a ``tokenizer.json`` or a ``tokenizers.Tokenizer`` will do.
        mask: what the loss is taken of. A role, ``"assistant"`` if left out, or a list of roles; ``"weight"``
            for turns of the assistant whose ``weight`` is not 0; ``"all"``; or a function of a message and
            the number of its turn, which returns True or False.
        template: the text of a template, or the path of its file, in place of the tokenizer's.
        column: the column of the messages; "messages", "conversations" or those of Alpaca if left out. A pair
            of columns, ``("chosen", "rejected")``, makes two sequences of a record, "chosen_tokens" and so
            on.
        tools: the tools of all conversations, as dicts; the column "tools" if left out.
        variables: further variables for the template, such as ``{"enable_thinking": False}``.
        most_tokens: the most tokens of a sequence. Of a longer conversation whole turns are left out at its
            end, so that it ends in a turn of the loss; one that does not fit at all has no token.
        now: the date for templates that ask for today's.
        seconds: the most processor time of a template for one conversation.

    Raises:
        InvalidArgument: the tokenizer has no template, or it is none; or an argument breaks a rule.
        WrongType: an argument has a wrong type.
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
        MissingDependency: jinja2 or tokenizers is not installed.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> words = Tokenizer(models.WordLevel({"<?>": 0, "2": 1, "+": 2, "4": 3, ".": 4}, unk_token="<?>"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> template = "{% for m in messages %}{{ m.content }} . {% endfor %}"
        >>> chat = Chat(words, template=template)
        >>> turns = [{"role": "user", "content": "2 + 2"}, {"role": "assistant", "content": "4"}]
        >>> made = chat({"messages": turns})
        >>> made["tokens"].tolist(), made["loss_mask"].tolist()
        ([1, 2, 1, 4, 3, 4], [0, 0, 0, 0, 1, 1])
    """

    __slots__ = (
        "_column",
        "_engine",
        "_mask",
        "_most",
        "_named",
        "_now",
        "_seconds",
        "_source",
        "_tools",
        "_variables",
    )

    @explains_keywords(_ELSEWHERE)
    def __init__(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        tokenizer: Any,
        *,
        mask: str | Sequence[str] | Callable[[Mapping[str, Any], int], Any] = "assistant",
        template: Any = None,
        column: str | tuple[str, str] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
        most_tokens: int | None = None,
        now: date | None = None,
        seconds: float = _SECONDS,
    ) -> None:
        self._mask: TurnMask = turn_mask(mask)
        self._named = mask
        self._column = _checked_column(column)
        self._tools = None if tools is None else _checked_tools(tools)
        self._variables = _checked_variables(variables)
        self._most = None if most_tokens is None else checked_count("most_tokens", most_tokens, least=1)
        if now is not None and not isinstance(now, date):
            message = f"now must be a datetime or a date (got {now!r} of type {type(now).__name__})"
            raise WrongType(message)
        self._now = now
        self._seconds = checked_seconds("seconds", seconds) or _SECONDS
        _ = jinja2.Environment  # raises where the package is missing
        self._source = _template_of(tokenizer, template)
        self._engine = _engine_of(tokenizer)
        for text in (self._source.usual, self._source.with_tools):
            sandbox.SandboxedTemplate(text, self._source.name)
        _ = self.description

    @property
    def description(self) -> dict[str, Any]:
        """The facts that decide tokens and mask, JSON-safe: digests of tokenizer and template, options."""
        source, mask = self._source, self._named
        templates = dict.fromkeys((source.usual, source.with_tools))
        shown = {
            "tokenizer": self._engine.digest,
            "template": [f"xxh3:{xxhash.xxh3_128_hexdigest(text.encode())}" for text in templates],
            "special": dict(source.tokens) or None,
            "mask": describe_function(mask, None) if callable(mask) else plain(mask),
            "column": plain(self._column),
            "tools": None if self._tools is None else fingerprint_of(self._tools),
            "variables": self._variables or None,
            "most_tokens": self._most,
            "now": None if self._now is None else self._now.isoformat(),
        }
        return {
            "name": "seekable.Chat",
            **{name: value for name, value in shown.items() if value is not None},
        }

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The function of the user that decides the mask, if there is one."""
        return () if self._mask.function is None else (self._mask.function,)

    @property
    def engine(self) -> HuggingFace:
        """The tokenizer that makes the ids."""
        return self._engine

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the conversations; none where each record decides."""
        if self._column is None:
            return ()
        return (self._column,) if isinstance(self._column, str) else self._column

    def of_column(self, column: str) -> Chat:
        """Return the same for conversations of another column."""
        made = object.__new__(Chat)
        for name in Chat.__slots__:
            object.__setattr__(made, name, getattr(self, name))
        made._column = _checked_column(column)
        return made

    def __call__(self, record: Any) -> dict[str, Any]:
        """Return the tokens of a record.

        Raises:
            BadValue: the record has no conversation, or the template refuses it; the turn is named.
        """
        try:
            (made,) = self.encoded([record])
        except UnfitDocument as error:
            message = f"sk.Chat: {error.why}"
            raise BadValue(message) from error.__cause__
        names = [""] if len(made) == 1 else [f"{name}_" for name in self.columns]
        return {
            f"{name}{array}": values
            for name, each in zip(names, made, strict=True)
            for array, values in (("tokens", each.ids), ("loss_mask", each.mask))
        }

    def __repr__(self) -> str:
        """Return how it was made, in short."""
        return f"sk.Chat({self._source.name}, mask={self._named!r})"

    def encoded(self, records: Sequence[Any]) -> list[list[EncodedChat]]:
        """Return for each record its sequence, or the two that a pair of columns gives.

        Raises:
            UnfitDocument: a record has no conversation, or cannot be rendered; its place is named.
        """
        chats: list[Conversation] = []
        of: list[int] = []
        for index, record in enumerate(records):
            for column in self.columns or (None,):
                with _named(index):
                    chats.append(conversation_of(record, column, self._tools))
                    of.append(index)
        made: list[list[EncodedChat]] = [[] for _ in records]
        for index, each in zip(of, self._all(chats, of), strict=True):
            made[index].append(each)
        return made

    def _all(self, chats: Sequence[Conversation], of: Sequence[int]) -> list[EncodedChat]:
        """Return the tokens of conversations, those of ``of`` named in errors."""
        texts, spans = [], []
        for chat, index in zip(chats, of, strict=True):
            with _named(index):
                text, trained = self._rendered(chat)
                texts.append(text)
                spans.append(trained)
        try:
            found = self._tokens(texts)
        except UnfitDocument as error:
            raise UnfitDocument(of[error.index], error.why) from error.__cause__
        made = []
        for chat, index, (ids, offsets), trained in zip(chats, of, found, spans, strict=True):
            whole = EncodedChat(ids, mask_of_spans(offsets, trained))
            if self._most is not None and len(ids) > self._most:
                with _named(index):
                    whole = self._cut(chat, self._most)
            made.append(whole)
        return made

    def _cut(self, chat: Conversation, most: int) -> EncodedChat:
        """Return the most first turns that fit and end in one of the loss; no tokens if there are none."""
        takes = self._mask.turns(chat)
        for last in range(len(takes) - 1, chat.given, -1):
            if not takes[last - 1]:
                continue
            shorter = Conversation(chat.messages[:last], chat.tools, chat.given)
            text, trained = self._rendered(shorter)
            ((ids, offsets),) = self._tokens([text])
            if len(ids) <= most:
                return EncodedChat(ids, mask_of_spans(offsets, trained))
        return EncodedChat(np.empty(0, self._dtype), np.empty(0, np.uint8))

    def _rendered(self, chat: Conversation) -> tuple[str, list[tuple[int, int]]]:
        """Return the text of a conversation, and the spans that the loss is taken of."""
        source = self._source
        template = sandbox.SandboxedTemplate(
            source.usual if chat.tools is None else source.with_tools, source.name
        )
        given = {
            **dict(source.tokens),
            **self._variables,
            "tools": chat.tools,
            "documents": None,
        }

        def render(messages: Sequence[Mapping[str, Any]], *, asks: bool) -> Rendered:
            values = {**given, "messages": list(messages), "add_generation_prompt": asks}
            made: Rendered = template.render(values, seconds=self._seconds, now=self._now)
            return made

        whole = render(chat.messages, asks=False)
        return whole.text, self._mask.spans(chat, whole, render, marks=template.marks)

    def _tokens(self, texts: Sequence[str]) -> list[tuple[NDArray[np.integer[Any]], NDArray[np.int64]]]:
        """Return the ids of texts, and for each id its first character and the one after its last."""
        tokenizer = _loaded(self._engine.key)
        encode = functools.partial(tokenizer.encode, add_special_tokens=False)
        try:
            with without_threads():
                found = (
                    [encode(texts[0])]
                    if len(texts) == 1
                    else tokenizer.encode_batch(list(texts), add_special_tokens=False)
                )
        except Exception as error:  # noqa: BLE001 - the package raises whatever its Rust code does
            fail_at_culprit(encode, texts, error)
        return [(np.array(each.ids, self._dtype), offsets_of(each.offsets)) for each in found]

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(default_dtype(self._engine.vocabulary, megatron=False))


@functools.lru_cache(maxsize=8)
def _loaded(key: TokenizerKey) -> tokenizers.Tokenizer:
    """Return a tokenizer that neither cuts nor pads; the special tokens of templates are read as such."""
    tokenizer = tokenizers.Tokenizer.from_str(key.json)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _engine_of(tokenizer: Any) -> HuggingFace:
    engine = engine_of(tokenizer)
    if not isinstance(engine, HuggingFace):
        message = (
            f"sk.Chat needs a tokenizer that says which characters a token has, which a tokenizer.json "
            f"does (got "
            f"{tokenizer!r}): give a folder with one, a tokenizers.Tokenizer, or a fast tokenizer of "
            f"transformers"
        )
        raise InvalidArgument(message)
    return engine


@final
class _named:  # noqa: N801 - used as a statement
    """Puts the place of a record on the error of its conversation."""

    __slots__ = ("_index",)

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        """Do nothing: only errors are changed."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise the error that names the record, if its conversation is unfit."""
        if isinstance(error, UnfitChat):
            raise UnfitDocument(self._index, str(error)) from error.__cause__


def _checked_column(column: Any) -> str | tuple[str, str] | None:
    if column is None or isinstance(column, str):
        return column
    is_pair = isinstance(column, list | tuple) and len(column) == 2  # noqa: PLR2004 - of a preference
    if is_pair and all(isinstance(name, str) for name in column) and column[0] != column[1]:
        return column[0], column[1]
    message = (
        f"column must be the name of a column, or a pair such as ('chosen', 'rejected') (got {column!r})"
    )
    raise WrongType(message)


def _checked_tools(tools: Any) -> list[Any]:
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        message = f"tools must be a list of dicts, the JSON schemas of functions (got {tools!r})"
        raise WrongType(message)
    return [plain(tool) for tool in tools]


def _checked_variables(variables: Any) -> dict[str, Any]:
    if variables is None:
        return {}
    if not isinstance(variables, Mapping) or not all(isinstance(name, str) for name in variables):
        message = f"variables must be a dict of names and values (got {variables!r})"
        raise WrongType(message)
    if taken := _RESERVED & set(variables):
        message = f"variables cannot have {min(taken)!r}: a template has the conversation under that name"
        raise InvalidArgument(message)
    made: dict[str, Any] = plain(variables)
    return made


_FILE, _FOLDER, _JSON = "chat_template.jinja", "additional_chat_templates", "chat_template.json"
_CONFIG, _MAP = "tokenizer_config.json", "special_tokens_map.json"
_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_USUAL, _WITH_TOOLS = "default", "tool_use"


@dataclass(frozen=True, slots=True)
class _TemplateSource:
    """A chat template that the caller asked for."""

    name: str
    """What messages call it: its file, or the argument."""

    usual: str
    """The text of the template."""

    with_tools: str
    """The text of the template for conversations with tools; most tokenizers have one for both."""

    tokens: tuple[tuple[str, str], ...]
    """The special tokens by the names that templates have for them, such as "bos_token"."""


def _template_of(tokenizer: Any, template: Any) -> _TemplateSource:
    """Return the template of a tokenizer, or the one that is given in its place.

    Args:
        tokenizer: the path of a folder or a file, or a tokenizer of transformers.
        template: the template's text, or the path of its file or of a folder with one; None for the
            tokenizer's.

    Raises:
        WrongType: ``template`` is neither a text nor a path.
        InvalidArgument: the tokenizer has no template, or has several without a usual one.
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
    """
    tokens = _tokens_of(tokenizer)
    if template is not None:
        if not isinstance(template, str | os.PathLike):
            message = f"template must be the text of a template, or the path of its file (got {template!r})"
            raise WrongType(message)
        if isinstance(template, str) and ("{%" in template or "{{" in template):
            return _TemplateSource("template=", template, template, tokens)
        found, name = _of_path(checked_path(template)), repr(os.fspath(template))
    elif isinstance(tokenizer, str | os.PathLike):
        found, name = _of_path(checked_path(tokenizer)), f"the chat template of {os.fspath(tokenizer)!r}"
    else:
        own = getattr(tokenizer, "chat_template", None)
        found = {_USUAL: own} if isinstance(own, str) else dict(own or {})
        name = f"the chat template of {type(tokenizer).__name__}"
    usual = found.get(_USUAL)
    if usual is None:
        which = f"has templates named {', '.join(map(repr, found))} and none named {_USUAL!r}"
        of = "the tokenizer" if not isinstance(tokenizer, str | os.PathLike) else repr(os.fspath(tokenizer))
        message = (
            f"{of} {which if found else 'has no chat template'}: give template=, the text of one or the path "
            f"of its file"
        )
        raise InvalidArgument(message)
    return _TemplateSource(name, usual, found.get(_WITH_TOOLS, usual), tokens)


def _of_path(path: str) -> dict[str, str]:
    """Return the templates of a folder, or of a file, by name."""
    if not is_folder(path):
        if os.path.basename(path) in (_CONFIG, _JSON):
            return _named_templates(_object(path).get("chat_template"), path)
        if os.path.basename(path) == "tokenizer.json":
            return _of_path(os.path.dirname(path) or ".")
        return {_USUAL: _text(path)}
    found: dict[str, str] = {}
    for file in (_CONFIG, _JSON):
        below = os.path.join(path, file)
        if is_file(below):
            found |= _named_templates(_object(below).get("chat_template"), below)
    if is_file(below := os.path.join(path, _FILE)):
        found[_USUAL] = _text(below)
    if is_file(below := os.path.join(path, _FOLDER, f"{_WITH_TOOLS}.jinja")):
        found[_WITH_TOOLS] = _text(below)
    return found


def _named_templates(templates: Any, path: str) -> dict[str, str]:
    """Return the templates of a configuration: a text, or a list of names and texts.

    Raises:
        InvalidArgument: they are something else.
    """
    if templates is None:
        return {}
    if isinstance(templates, str):
        return {_USUAL: templates}
    try:
        return {str(each["name"]): str(each["template"]) for each in templates}
    except (TypeError, KeyError) as error:
        message = (
            f"'chat_template' in {path!r} must be a text, or a list of names and templates (got "
            f"{templates!r})"
        )
        raise InvalidArgument(message) from error


def _tokens_of(tokenizer: Any) -> tuple[tuple[str, str], ...]:
    """Return the special tokens of a folder or of an object, by name."""
    if not isinstance(tokenizer, str | os.PathLike):
        known = getattr(tokenizer, "special_tokens_map", None) or {}
        return _texts(known)
    path = checked_path(tokenizer)
    folder = path if is_folder(path) else os.path.dirname(path) or "."
    known = {}
    for file in (_MAP, _CONFIG):
        if is_file(below := os.path.join(folder, file)):
            known |= {name: value for name, value in _object(below).items() if value is not None}
    return _texts(known)


def _texts(known: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = {}
    for name in _NAMES:
        token = known.get(name)
        text = token.get("content") if isinstance(token, dict) else token
        if text is not None:
            found[name] = str(text)
    return tuple(found.items())


def _object(path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_text(path), type=dict[str, Any])
    except msgspec.DecodeError as error:
        message = f"{path!r} must be an object of JSON: {error}"
        raise InvalidArgument(message) from error


def _text(path: str) -> str:
    way_out = "give template=, the text of one or the path of its file"
    with unread_text_named("chat template", path, form="template", way_out=way_out):
        return read_bytes(path).decode()
