"""The description of a pipeline that a state carries, as text: canonical JSON in which each part stands once.

    {"files": [[{"name": "a.jsonl", ...}, ...]],
     "nodes": [{"files": 0, "format": "jsonl", "kind": "files"}, {"kind": "shuffle", "of": [0], "seed": 7}],
     "row_files": {"xxh3:...": "/data/kept.u64"}}

A description is a tree: a node is an object with its ``kind``, its arguments, its ``files`` if it reads any,
and in ``of`` the nodes below it. Where a pipeline uses a dataset several times, the tree repeats it. In the
text ``nodes`` lists each different node once, those below before those above, and the pipeline itself last;
``of`` holds numbers of nodes, and ``files`` the number of a list of files.

A string is immutable, so all states of a pipeline share one text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from seekable.errors import CorruptState
from seekable.state.canonical import canonical_json, plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Description", "text_of"]

_TEXTS: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""The text of each pipeline that is in use: pipelines do not change, so it is made once."""


@dataclass(frozen=True, slots=True)
class Description:
    """All that decides the records of a pipeline and their order, and the paths of its row files.

    Example:
        >>> source = {"kind": "sequence", "length": 3}
        >>> text = Description({"kind": "concat", "of": [source, source]}).text()
        >>> text
        '{"files":[],"nodes":[{"kind":"sequence","length":3},{"kind":"concat","of":[0,0]}]}'
        >>> Description.parse(text).tree == {"kind": "concat", "of": [source, source]}
        True
    """

    tree: Mapping[str, Any]
    row_files: Mapping[str, str] = field(default_factory=dict)
    """The paths of files that ``filter(save=)`` wrote, by the digest of their rows; they decide nothing."""

    def text(self) -> str:
        """Return the description as canonical JSON in which each node and each list of files stands once."""
        parts = _Parts()
        # As JSON has it, so that equal parts are found to be equal.
        parts.number_of_node(plain_json(self.tree))
        document: dict[str, Any] = {"files": parts.files, "nodes": parts.nodes}
        if self.row_files:
            document["row_files"] = self.row_files
        return canonical_json(document).decode()

    @classmethod
    def parse(cls, text: str) -> Description:
        """Return the description that a text holds; parts of its tree that are equal are the same object.

        Raises:
            CorruptState: ``text()`` did not return such a text.
        """
        try:
            document = msgspec.json.decode(text)
            made: list[dict[str, Any]] = []
            for node in document["nodes"]:
                whole = dict(node)
                if "files" in node:
                    whole["files"] = document["files"][node["files"]]
                if "of" in node:
                    # Nodes stand behind those below them.
                    whole["of"] = [made[number] for number in node["of"]]
                made.append(whole)
            return cls(made[-1], dict(document.get("row_files", {})))
        except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
            message = (
                f"the state's 'pipeline' is not a description as state_dict() writes it "
                f"({type(error).__name__}: {error}): it was changed, or a part of it was lost; load an "
                f"earlier state"
            )
            raise CorruptState(message) from error


def text_of(pipeline: object, describe: Callable[[], Description]) -> str:
    """Return the text of a pipeline's description, which is made once for each pipeline object.

    Args:
        pipeline: an immutable object.
        describe: returns its description.
    """
    text = _TEXTS.get(pipeline)
    if text is None:
        text = _TEXTS[pipeline] = describe().text()
    return text


class _Parts:
    """The different nodes and lists of files of a description, each with its number."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.files: list[Any] = []
        self._numbers: dict[tuple[str, bytes], int] = {}

    def number_of_node(self, node: Mapping[str, Any]) -> int:
        flat = dict(node)
        if "of" in node:
            flat["of"] = [self.number_of_node(below) for below in node["of"]]
        if "files" in node:
            flat["files"] = self._number("files", self.files, node["files"])
        return self._number("nodes", self.nodes, flat)

    def _number(self, kind: str, parts: list[Any], part: Any) -> int:
        number = self._numbers.setdefault((kind, canonical_json(part)), len(parts))
        if number == len(parts):
            parts.append(part)
        return number
