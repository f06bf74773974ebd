"""The directive ``{command} NAME``: what ``seekable NAME --help`` says, as a part of a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from seekable.cli.main import app
from seekable.cli.shared_options import EVERYWHERE

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SHARED = "Options of every command are in the [overview](../cli.md#options-that-commands-share)."


def names() -> list[str]:
    """Return the names of all commands, as ``seekable`` takes them: ``plan``, ``state show``."""
    return [" ".join(path) for path in _paths(get_command(app), ())]


def help_in_markdown(name: str) -> str:
    """Return the help of a command: how it is called, what it does, its arguments, options and examples."""
    command = _command(name)
    context = command.make_context(name, [], resilient_parsing=True)
    own = [each for each in command.get_params(context) if each.name not in EVERYWHERE]
    words = " ".join(re.sub("[{}]", "", word) for word in command.collect_usage_pieces(context))
    parts = [f"```text\nseekable {name} {words}\n```", *_paragraphs(command.help or "")]
    records = [each.get_help_record(context) for each in own]
    rows = [f"| `{_name(left)}` | {_cell(right)} |" for left, right in filter(None, records)]
    parts.append("\n".join(["| argument, option | |", "|---|---|", *rows]))
    parts.append(SHARED)
    if command.epilog:
        lines = command.epilog.replace("\b", "").strip().splitlines()[1:]
        parts.append("```text\n" + "\n".join(line.strip() for line in lines) + "\n```")
    return "\n\n".join(parts) + "\n"


class CommandDirective(SphinxDirective):
    """Puts the help of a command into a page."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        text = help_in_markdown(self.arguments[0])
        return [nodes.container("", *self.parse_text_to_nodes(text), classes=["command"])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known to Sphinx."""
    app.add_directive("command", CommandDirective)
    return {"parallel_read_safe": True}


def _paths(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    below = getattr(command, "list_commands", None)
    if below is None:
        return [path]
    context = command.make_context("seekable", [], resilient_parsing=True)
    found: list[tuple[str, ...]] = []
    for name in below(context):
        found += _paths(command.get_command(context, name), (*path, name))
    return found


def _command(name: str) -> Any:
    command = get_command(app)
    for word in name.split():
        context = command.make_context("seekable", [], resilient_parsing=True)
        command = command.get_command(context, word)  # type: ignore[attr-defined]  # a group has it
        if command is None:
            raise LookupError(f"there is no command {name!r}: {', '.join(names())}")
    return command


def _paragraphs(text: str) -> list[str]:
    return [_plain(each) for each in text.split("\n\n")]


def _name(text: str) -> str:
    """Return an argument or an option without the type that typer puts behind an argument."""
    return re.sub(r" <(str|list\[str\])>", "", text).replace("|", "\\|")


def _cell(text: str) -> str:
    return _plain(text.replace("[required]", "")).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a paragraph in one line, in which no character is Markdown's."""
    return re.sub(r"([*_<\[`])", r"\\\1", " ".join(text.split()))
