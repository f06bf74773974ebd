# What type checkers see of the package; at run time names are loaded when they are used.

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
from seekable.formats.tokens.token_format import Tokens
from seekable.formats.tokens.token_store_options import TokenStore
from seekable.formats.tokens.tokenizing.parts import Spans
from seekable.index.finder import Scanner, Surveyor, TableIndexer, TableLayout
from seekable.nodes.files.leaf import FilesLeaf, RunsLeaf
from seekable.nodes.files.row_source import RowFormat
from seekable.packing.document_lengths import token_lengths
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
