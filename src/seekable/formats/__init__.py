"""Formats as values, for ``sk.open(format=)``, and what a format of one's own is made of.

The code of the formats lies in the folders of the subjects.
"""

from __future__ import annotations

from seekable._lazy import public_names

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
    "Spans",
    "Surveyor",
    "TableIndexer",
    "TableLayout",
    "Tables",
    "Tar",
    "Text",
    "TokenStore",
    "Tokens",
    "token_lengths",
]

_HOMES = {
    **dict.fromkeys(("Card", "Checking", "Claim", "Format", "Opening", "Reading"), "formats.contract"),
    **dict.fromkeys(("Folder", "Look", "OtherTool"), "formats.look"),
    **dict.fromkeys(("FilesLeaf", "RunsLeaf"), "nodes.files.leaf"),
    **dict.fromkeys(("TableIndexer", "TableLayout"), "index.finder"),
    "FoundFiles": "storage.listing",
    "RowFormat": "nodes.files.row_source",
    "Scanner": "index.finder",
    "Surveyor": "index.finder",
    "Csv": "formats.lines.csv_format",
    "Jsonl": "formats.lines.jsonl",
    "Kaldi": "formats.kaldi.kaldi",
    "Lines": "formats.lines.line_source",
    "Shar": "formats.shar.shar",
    "Spans": "formats.tokens.tokenizing.parts",
    "Tables": "formats.tables.tables",
    "Tar": "formats.tar.tar",
    "Text": "formats.lines.text",
    "TokenStore": "formats.tokens.token_store_options",
    "Tokens": "formats.tokens.token_format",
    "token_lengths": "packing.document_lengths",
}
"""The module of each public name, below ``seekable``."""

__getattr__ = public_names(__name__, _HOMES, below="seekable")
