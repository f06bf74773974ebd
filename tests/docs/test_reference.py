"""The reference has each public name, method and command, in one place each."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from docs.extensions.commands import help_in_markdown, names

import seekable as sk
from seekable import errors, formats, kaldi, testing

DOCS = Path(__file__).parents[2] / "docs"
DIRECTIVE = re.compile(r"^\.\. (?:auto\w+|py:class):: (seekable[\w.]+)", re.MULTILINE)
COMMAND = re.compile(r"^```\{command\} (.+)$", re.MULTILINE)
PUBLIC = {
    "seekable": set(sk.__all__) - set(errors.__all__) - {"__version__"},
    "seekable.formats": set(formats.__all__),
    "seekable.kaldi": set(kaldi.__all__),
    "seekable.testing": set(testing.__all__),
}


def shown() -> Counter[str]:
    """Return how often each name stands in a directive of the pages of the API."""
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md"))]
    return Counter(name for page in pages for name in DIRECTIVE.findall(page))


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_stands_on_one_page(module: str) -> None:
    counts = shown()
    assert {name: counts[f"{module}.{name}"] for name in PUBLIC[module]} == dict.fromkeys(PUBLIC[module], 1)


def test_the_page_of_errors_takes_all_of_its_module() -> None:
    page = (DOCS / "api" / "errors.md").read_text(encoding="utf-8")
    assert ".. automodule:: seekable.errors\n   :members:\n" in page


@pytest.mark.parametrize("kind", [sk.Dataset, sk.Stream, sk.Loader])
def test_each_method_of_a_class_stands_on_its_page(kind: type[Any]) -> None:
    page = (DOCS / "api" / f"{kind.__name__.lower()}.md").read_text(encoding="utf-8")
    counts, prefix = Counter(DIRECTIVE.findall(page)), f"seekable.{kind.__name__}."
    public = {name for name in dir(kind) if not name.startswith("_")}
    assert {name: counts[prefix + name] for name in public} == dict.fromkeys(public, 1)


def test_what_the_pages_of_the_api_name_exists() -> None:
    for name in shown():
        if not name.startswith("seekable.integrations."):
            pkgutil.resolve_name(name)


def test_each_command_stands_on_one_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "cli").glob("*.md"))]
    assert sorted(name for page in pages for name in COMMAND.findall(page)) == sorted(names())


def test_a_command_is_told_by_its_own_help() -> None:
    text = help_in_markdown("state diff")
    assert text.startswith("```text\nseekable state diff [OPTIONS] A B\n```\n\nShow the differences")
    assert "| `A` | A folder, a state or a description. |" in text
    assert "--quiet" not in text


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(LookupError, match="there is no command 'state dif'"):
        help_in_markdown("state dif")
