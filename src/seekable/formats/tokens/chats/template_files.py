"""The chat template of a tokenizer, and the special tokens that templates name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._arguments import checked_path
from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, WrongType
from seekable.storage.paths import is_file, is_folder, read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TemplateSource", "template_of"]

_FILE, _FOLDER, _JSON = "chat_template.jinja", "additional_chat_templates", "chat_template.json"
_CONFIG, _MAP = "tokenizer_config.json", "special_tokens_map.json"
_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_USUAL, _WITH_TOOLS = "default", "tool_use"


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A chat template that the caller asked for."""

    name: str
    """What messages call it: its file, or the argument."""

    usual: str
    """The text of the template."""

    with_tools: str
    """The text of the template for conversations with tools; most tokenizers have one for both."""

    tokens: tuple[tuple[str, str], ...]
    """The special tokens by the names that templates have for them, such as "bos_token"."""


def template_of(tokenizer: Any, template: Any) -> TemplateSource:
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
            return TemplateSource("template=", template, template, tokens)
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
    return TemplateSource(name, usual, found.get(_WITH_TOOLS, usual), tokens)


def _of_path(path: str) -> dict[str, str]:
    """Return the templates of a folder, or of a file, by name."""
    if not is_folder(path):
        if os.path.basename(path) in (_CONFIG, _JSON):
            return _named(_object(path).get("chat_template"), path)
        if os.path.basename(path) == "tokenizer.json":
            return _of_path(os.path.dirname(path) or ".")
        return {_USUAL: _text(path)}
    found: dict[str, str] = {}
    for file in (_CONFIG, _JSON):
        below = os.path.join(path, file)
        if is_file(below):
            found |= _named(_object(below).get("chat_template"), below)
    if is_file(below := os.path.join(path, _FILE)):
        found[_USUAL] = _text(below)
    if is_file(below := os.path.join(path, _FOLDER, f"{_WITH_TOOLS}.jinja")):
        found[_WITH_TOOLS] = _text(below)
    return found


def _named(templates: Any, path: str) -> dict[str, str]:
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
    try:
        return read_bytes(path).decode()
    except FileNotFoundError:
        message = (
            f"there is no chat template at {path!r}: give template=, the text of one or the path of its file"
        )
        raise DataNotFound(message) from None
    except PermissionError as error:
        message = f"no permission to read the chat template {path!r}"
        raise AccessDenied(message) from error
    except UnicodeDecodeError as error:
        message = f"{path!r} is no template: it is not UTF-8 at byte {error.start}"
        raise InvalidArgument(message) from error
