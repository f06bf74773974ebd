"""Descriptions of pipelines: the text that a state carries, the differences between two, and an outline.

The text is canonical JSON in which each part stands once::

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

from seekable.errors import CorruptState, StateMismatch
from seekable.state.canonical import canonical_json, parsed_json, plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_TEXTS: WeakKeyDictionary[object, str] = WeakKeyDictionary()
"""The text of each pipeline that is in use: pipelines do not change, so it is made once."""


@dataclass(frozen=True, slots=True)
class PipelineDescription:
    """All that decides the records of a pipeline and their order, and the paths of its row files.

    Example:
        >>> source = {"kind": "sequence", "length": 3}
        >>> text = PipelineDescription({"kind": "concat", "of": [source, source]}).text()
        >>> text
        '{"files":[],"nodes":[{"kind":"sequence","length":3},{"kind":"concat","of":[0,0]}]}'
        >>> PipelineDescription.parse(text).tree == {"kind": "concat", "of": [source, source]}
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
    def parse(cls, text: str) -> PipelineDescription:
        """Return the description that a text holds; parts of its tree that are equal are the same object.

        Raises:
            CorruptState: ``text()`` did not return such a text.
        """
        try:
            document = parsed_json(text)
            made: list[dict[str, Any]] = []
            for node in document["nodes"]:
                whole = dict(node)
                if "files" in node:
                    whole["files"] = document["files"][node["files"]]
                if "of" in node:
                    # Nodes stand after those below them.
                    whole["of"] = [made[number] for number in node["of"]]
                made.append(whole)
            return cls(made[-1], dict(document.get("row_files", {})))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            message = (
                f"the state's 'pipeline' is not a description as state_dict() writes it "
                f"({type(error).__name__}: {error}): it was changed, or a part of it was lost; load an "
                f"earlier state"
            )
            raise CorruptState(message) from error


def text_of(pipeline: object, describe: Callable[[], PipelineDescription]) -> str:
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


_MOST = 8
"""The most lines of difference that an error message shows."""


def difference(old: Mapping[str, Any], new: Mapping[str, Any], *, most: int | None = _MOST) -> str:
    """Return the differences between two descriptions, one a line, and "" for equal ones.

    A line names the node, the argument, the old value and the new one; or the file.

    Args:
        old: the description that was saved.
        new: the present one.
        most: the most lines; None for all.

    Example:
        >>> source = {"kind": "sequence", "length": 3}
        >>> shuffles = [{"kind": "shuffle", "seed": seed, "of": [source]} for seed in (1, 2)]
        >>> print(difference(*shuffles))
        shuffle: seed was 1, is 2
    """
    lines = _node(old, new, path="")
    if most is not None and len(lines) > most:
        lines = [*lines[:most], f"and {len(lines) - most} more"]
    return "\n".join(lines)


def mismatch(
    saved: str, present: str, *, old: Mapping[str, Any] | None, new: Mapping[str, Any], advice: str = ""
) -> StateMismatch:
    """Return the error for a state of another pipeline than the present one.

    Args:
        saved: the fingerprint in the state.
        present: the fingerprint of the present pipeline.
        old: the description of the saved pipeline, None if the state carries none.
        new: the description of the present pipeline.
        advice: what follows the differences if a schedule of weights is among them.
    """
    changes = "a state that carries its description (rows=True) makes this message say what changed"
    if old is not None:
        changes = difference(old, new)
        changes += advice if ": schedule was " in changes else ""
    return StateMismatch(
        f"the state is of another pipeline: its fingerprint is {saved}, this one's is {present}\n{changes}"
    )


def _node(old: Mapping[str, Any], new: Mapping[str, Any], *, path: str) -> list[str]:
    kind = str(new.get("kind"))
    here = f"{path}{kind}"
    if old.get("kind") != new.get("kind"):
        return [f"{path or 'the pipeline: '}was {old.get('kind')}, is {kind}"]
    keys = sorted((old.keys() | new.keys()) - {"kind", "of", "files"})
    lines = [
        f"{here}: {key} was {_shown(old, key)}, is {_shown(new, key)}"
        for key in keys
        if old.get(key) != new.get(key)
    ]
    lines += _files(old.get("files", []), new.get("files", []), here=here)
    was, now = old.get("of", []), new.get("of", [])
    if len(was) != len(now):
        return [*lines, f"{here}: had {len(was)} sources, has {len(now)}"]
    for i, (a, b) in enumerate(zip(was, now, strict=True)):
        step = f"{here}[{i}] > " if len(now) > 1 else f"{here} > "
        lines += _node(a, b, path=step)
    return lines


def _shown(node: Mapping[str, Any], key: str) -> str:
    return repr(node[key]) if key in node else "not given"


def _files(old: list[dict[str, Any]], new: list[dict[str, Any]], *, here: str) -> list[str]:
    if old == new:
        return []
    was, now = {f["name"]: f for f in old}, {f["name"]: f for f in new}
    lines = [f"{here}: file {name!r} is gone" for name in was if name not in now]
    lines += [f"{here}: file {name!r} is new" for name in now if name not in was]
    for name in (name for name in now if name in was):
        changed = [key for key in sorted(now[name]) if was[name].get(key) != now[name][key]]
        if changed:
            what = ", ".join(f"{key} was {was[name].get(key)!r}, is {now[name][key]!r}" for key in changed)
            lines.append(f"{here}: file {name!r}: {what}")
    return lines or [f"{here}: the same files in another order"]


_MOST_CHILDREN = 10

_MOST_CHARACTERS = 60


def outline(description: Mapping[str, Any], *, indent: str = "") -> list[str]:
    r"""Return the lines of the tree: each node with its arguments, each source with its files and records.

    Example:
        >>> file = {"name": "a.jsonl", "records": 3, "size": 40}
        >>> source = {"kind": "files", "format": "jsonl", "decode": "json", "files": [file]}
        >>> print("\n".join(outline({"kind": "shuffle", "seed": 1, "of": [source]})))
        shuffle(seed=1)
          files(format='jsonl', decode='json'): 3 records in 1 file, 40 bytes
    """
    arguments = {key: value for key, value in description.items() if key not in ("kind", "of", "files")}
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    lines = [f"{indent}{description['kind']}({given}){_contents(description)}"]
    below = description.get("of", [])
    for child in below[:_MOST_CHILDREN]:
        lines += outline(child, indent=f"{indent}  ")
    if len(below) > _MOST_CHILDREN:
        lines.append(f"{indent}  and {len(below) - _MOST_CHILDREN:,} more sources")
    return lines


def _contents(description: Mapping[str, Any]) -> str:
    files = description.get("files")
    if files is None:
        return ""
    records, size = (sum(file[key] for file in files) for key in ("records", "size"))
    return f": {records:,} records in {len(files):,} file{'s' * (len(files) != 1)}, {size:,} bytes"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
