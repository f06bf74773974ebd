"""Formats as values, for ``sk.open(format=)``, and what a format of one's own is made of.

The code of the formats lies in the folders of the subjects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import public_names

if TYPE_CHECKING:
    from seekable.formats.contract import Card, Checking, Claim, Format, Opening, Reading
    from seekable.formats.kaldi.kaldi import Kaldi
    from seekable.formats.lines.csv_format import Csv
    from seekable.formats.lines.jsonl import Jsonl
    from seekable.formats.lines.line_source import Lines
    from seekable.formats.lines.text import Text
    from seekable.formats.look import Folder, Look, OtherTool
    from seekable.formats.shar.shar import Shar
    from seekable.formats.tables.tables import Tables
    from seekable.formats.tar.tar import Tar
    from seekable.formats.tokens.tokens import Tokens
    from seekable.index.scanner import Scanner
    from seekable.index.surveyor import Surveyor, TableIndexer, TableLayout
    from seekable.nodes.files.leaf import FilesLeaf, RunsLeaf
    from seekable.nodes.files.row_source import RowFormat
    from seekable.storage.listing import FoundFiles

__all__ = [
    "Card",
    "Checking",
    "Claim",
    "Csv",
    "FilesLeaf",
    "Folder",
    "Format",
    "FoundFiles",
    "Jsonl",
    "Kaldi",
    "Lines",
    "Look",
    "Opening",
    "OtherTool",
    "Reading",
    "RowFormat",
    "RunsLeaf",
    "Scanner",
    "Shar",
    "Surveyor",
    "TableIndexer",
    "TableLayout",
    "Tables",
    "Tar",
    "Text",
    "Tokens",
]

_HOMES = {
    **dict.fromkeys(("Card", "Checking", "Claim", "Format", "Opening", "Reading"), "formats.contract"),
    **dict.fromkeys(("Folder", "Look", "OtherTool"), "formats.look"),
    **dict.fromkeys(("FilesLeaf", "RunsLeaf"), "nodes.files.leaf"),
    **dict.fromkeys(("TableIndexer", "TableLayout"), "index.surveyor"),
    "FoundFiles": "storage.listing",
    "RowFormat": "nodes.files.row_source",
    "Scanner": "index.scanner",
    "Surveyor": "index.surveyor",
    "Csv": "formats.lines.csv_format",
    "Jsonl": "formats.lines.jsonl",
    "Kaldi": "formats.kaldi.kaldi",
    "Lines": "formats.lines.line_source",
    "Shar": "formats.shar.shar",
    "Tables": "formats.tables.tables",
    "Tar": "formats.tar.tar",
    "Text": "formats.lines.text",
    "Tokens": "formats.tokens.tokens",
}
"""The module of each public name, below ``seekable``."""

__getattr__ = public_names(__name__, _HOMES, below="seekable")
