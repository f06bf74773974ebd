"""The input and output of Kaldi: tables, the extended filenames and specifiers that name them, and holders.

An *rxfilename* names bytes to read, and a *wxfilename* names where bytes go: a file, an offset into a file, a
command with a pipe, a standard stream. A *rspecifier* and a *wspecifier* name a whole table: ``ark:`` or
``scp:``, options, and extended filenames. A *holder* reads and writes the objects of one type. No command is
run unless the caller says ``pipes="allow"``.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import public_names

if TYPE_CHECKING:
    from seekable.formats.kaldi.basic_types import (
        expect_pretty,
        expect_token,
        is_token,
        peek_token,
        read_basic_type,
        read_header,
        read_integer_pairs,
        read_integer_vector,
        read_token,
        write_basic_type,
        write_header,
        write_integer_pairs,
        write_integer_vector,
        write_pretty,
        write_token,
    )
    from seekable.formats.kaldi.cursor import Cursor, FileCursor, MemoryCursor, Output
    from seekable.formats.kaldi.directory.text_tables import Problem
    from seekable.formats.kaldi.directory.validation import validate_directory
    from seekable.formats.kaldi.files.open_named import open_rx, open_wx
    from seekable.formats.kaldi.files.specifiers import (
        Rspecifier,
        Wspecifier,
        classify_rxfilename,
        classify_wxfilename,
        parse_rspecifier,
        parse_wspecifier,
        split_offset,
        split_range,
    )
    from seekable.formats.kaldi.files.streams import RxFile, WxFile
    from seekable.formats.kaldi.holders.compressed_matrix import CompressedMatrix, compress
    from seekable.formats.kaldi.holders.other_formats import HtkMatrix
    from seekable.formats.kaldi.holders.registry import (
        Holder,
        SupportsRange,
        find_holder,
        holder_names,
        register_holder,
    )
    from seekable.formats.kaldi.holders.script_ranges import Range, parse_range
    from seekable.formats.kaldi.holders.sparse import SparseMatrix, SparseVector
    from seekable.formats.kaldi.holders.wave import Wave, WaveInfo
    from seekable.formats.kaldi.script_lines import ScriptEntry, iter_script, read_script
    from seekable.formats.kaldi.table_entries import shapes
    from seekable.formats.kaldi.tables.random_access import MappedReader, RandomAccessReader
    from seekable.formats.kaldi.tables.repair import Repair, repair
    from seekable.formats.kaldi.tables.sequential import SequentialReader
    from seekable.formats.kaldi.tables.single import read, write
    from seekable.formats.kaldi.tables.writer import Writer

__all__ = [
    "CompressedMatrix",
    "Cursor",
    "FileCursor",
    "Holder",
    "HtkMatrix",
    "MappedReader",
    "MemoryCursor",
    "Output",
    "Problem",
    "RandomAccessReader",
    "Range",
    "Repair",
    "Rspecifier",
    "RxFile",
    "ScriptEntry",
    "SequentialReader",
    "SparseMatrix",
    "SparseVector",
    "SupportsRange",
    "Wave",
    "WaveInfo",
    "Writer",
    "Wspecifier",
    "WxFile",
    "classify_rxfilename",
    "classify_wxfilename",
    "compress",
    "expect_pretty",
    "expect_token",
    "find_holder",
    "holder_names",
    "is_token",
    "iter_script",
    "open_rx",
    "open_wx",
    "parse_range",
    "parse_rspecifier",
    "parse_wspecifier",
    "peek_token",
    "read",
    "read_basic_type",
    "read_header",
    "read_integer_pairs",
    "read_integer_vector",
    "read_script",
    "read_token",
    "register_holder",
    "repair",
    "shapes",
    "split_offset",
    "split_range",
    "validate_directory",
    "write",
    "write_basic_type",
    "write_header",
    "write_integer_pairs",
    "write_integer_vector",
    "write_pretty",
    "write_token",
]

_HOMES = {
    "CompressedMatrix": "holders.compressed_matrix",
    "Cursor": "cursor",
    "FileCursor": "cursor",
    "Holder": "holders.registry",
    "HtkMatrix": "holders.other_formats",
    "MappedReader": "tables.random_access",
    "MemoryCursor": "cursor",
    "Output": "cursor",
    "Problem": "directory.text_tables",
    "RandomAccessReader": "tables.random_access",
    "Range": "holders.script_ranges",
    "Repair": "tables.repair",
    "Rspecifier": "files.specifiers",
    "RxFile": "files.streams",
    "ScriptEntry": "script_lines",
    "SequentialReader": "tables.sequential",
    "SparseMatrix": "holders.sparse",
    "SparseVector": "holders.sparse",
    "SupportsRange": "holders.registry",
    "Wave": "holders.wave",
    "WaveInfo": "holders.wave",
    "Writer": "tables.writer",
    "Wspecifier": "files.specifiers",
    "WxFile": "files.streams",
    "classify_rxfilename": "files.specifiers",
    "classify_wxfilename": "files.specifiers",
    "compress": "holders.compressed_matrix",
    "expect_pretty": "basic_types",
    "expect_token": "basic_types",
    "find_holder": "holders.registry",
    "holder_names": "holders.registry",
    "is_token": "basic_types",
    "iter_script": "script_lines",
    "open_rx": "files.open_named",
    "open_wx": "files.open_named",
    "parse_range": "holders.script_ranges",
    "parse_rspecifier": "files.specifiers",
    "parse_wspecifier": "files.specifiers",
    "peek_token": "basic_types",
    "read": "tables.single",
    "read_basic_type": "basic_types",
    "read_header": "basic_types",
    "read_integer_pairs": "basic_types",
    "read_integer_vector": "basic_types",
    "read_script": "script_lines",
    "read_token": "basic_types",
    "register_holder": "holders.registry",
    "repair": "tables.repair",
    "shapes": "table_entries",
    "split_offset": "files.specifiers",
    "split_range": "files.specifiers",
    "validate_directory": "directory.validation",
    "write": "tables.single",
    "write_basic_type": "basic_types",
    "write_header": "basic_types",
    "write_integer_pairs": "basic_types",
    "write_integer_vector": "basic_types",
    "write_pretty": "basic_types",
    "write_token": "basic_types",
}
"""The module of each public name, below ``seekable.formats.kaldi``."""

__getattr__ = public_names(__name__, _HOMES, below="seekable.formats.kaldi")


def __dir__() -> list[str]:
    """Return the list of the public names."""
    return __all__
