"""JSON lines: one JSON value a line; blank lines are no records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import UnsupportedFormat
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK, scan_lines
from seekable.index.digest import END_BYTES
from seekable.storage.far import far
from seekable.storage.files import shell_path
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset import pipeline
    from seekable.formats.lines import forager
    from seekable.formats.shar import idxpack, lhotse_index
    from seekable.index.scanner import ByteSource, OtherIndex
else:
    forager = lazy("seekable.formats.lines.forager")
    idxpack = lazy("seekable.formats.shar.idxpack")
    pipeline = lazy("seekable.dataset.pipeline")
    lhotse_index = lazy("seekable.formats.shar.lhotse_index")

_WIDS = b'"wids-shard-index-v'
_EARLY = 1024

_FEW = 8
"""The files of a folder of a store beside which indexes are looked for."""


@dataclass(frozen=True, slots=True)
class JsonlScanner:
    """Finds the records of a file of JSON lines."""

    name: str = "jsonl"
    splittable: bool = True

    pack: str = ""
    """The path of a pack of Lhotse's indexes that may have the lines of some files; empty for none."""

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are not text in UTF-8, or one JSON document over several lines.
        """
        check_is_text(head, path)
        text = head.removeprefix(BYTE_ORDER_MARK)
        if text.startswith(b"{") and _WIDS in text[:_EARLY]:
            raise UnsupportedFormat(f"{path!r} is a list of shards of wids: open them as {f'wids:{path}'!r}")
        is_array = text.lstrip().startswith(b"[")
        # A line of JSON lines may well be an array, but a file called .json that begins so is one.
        if _is_one_document(text) or (is_array and path.lower().endswith(".json")):
            if text.lstrip(b"{ \t\r\n").startswith(f'"{pipeline.PIPELINE_KEY}"'.encode()):
                raise UnsupportedFormat(
                    f"{path!r} is a pipeline that ds.save wrote, and no data: sk.load_dataset({path!r})"
                )
            kind, program = ("array", "'.[]'") if is_array else ("document", ".")
            raise UnsupportedFormat(
                f"{path!r} is one JSON {kind}, not one object a line; "
                f"convert it once: jq -c {program} {shell_path(path)} > NEW.jsonl"
            )

    def other_indexes(self, folder: str, names: Sequence[str]) -> Sequence[OtherIndex]:
        """Return the indexes of other tools over files below a folder: the pack, Forager's, Lhotse's."""
        found: list[OtherIndex] = [idxpack.offsets_in(self.pack, folder)] if self.pack else []
        has_forager, has_lhotse = _has_others(folder, names) if "://" in folder else (True, True)
        if has_forager and (read := forager.read_index(folder)):
            found.append(read)
        if has_lhotse:
            found.append(lhotse_index.LhotseIndexes(folder))
        return found

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return where lines start that are not blank."""
        return scan_lines(source, keep_blank=False)


def _has_others(folder: str, names: Sequence[str]) -> tuple[bool, bool]:
    """Return True for an index of Forager in a folder of a store, and True for indexes of Lhotse there.

    Those of Lhotse are looked for beside a few files alone, since each is a request: it makes them of all.
    """
    few = names[:: -(-len(names) // _FEW) or 1]
    of_forager, *of_lhotse = far().sizes(folder, [forager.SAMPLES_PATH, *map(lhotse_index.index_path, few)])
    return of_forager is not None, any(size is not None for size in of_lhotse)


def _is_one_document(head: bytes) -> bool:
    """Return whether the first line is no JSON value but the lines together are one, or its start."""
    whole = head if len(head) < END_BYTES else head[: head.rfind(b"\n") + 1]
    first, _, rest = whole.strip().partition(b"\n")
    return bool(rest) and not _is_json(first, or_its_start=False) and _is_json(whole, or_its_start=True)


def _is_json(data: bytes, *, or_its_start: bool) -> bool:
    try:
        text = str(data, "utf-8").strip()
        json.loads(text)
    except UnicodeDecodeError:
        return False
    except json.JSONDecodeError as error:
        return or_its_start and error.pos >= len(text)
    except (ValueError, RecursionError):
        return not or_its_start  # A number too long, or levels too many: whoever reads the record says so.
    return True
