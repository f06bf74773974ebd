"""Formats as values, for ``sk.open(format=)``; their code lies in the folders of the subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import public_names

if TYPE_CHECKING:
    from seekable.formats.contract import Format
    from seekable.formats.kaldi.options import Kaldi
    from seekable.formats.lines.options import Csv, Jsonl, Text
    from seekable.formats.tables.options import Tables
    from seekable.formats.tar.options import Tar
    from seekable.formats.tokens.tokens import Tokens

__all__ = ["Csv", "Format", "Jsonl", "Kaldi", "Tables", "Tar", "Text", "Tokens"]

_HOMES = {
    "Csv": "lines.options",
    "Format": "contract",
    "Jsonl": "lines.options",
    "Kaldi": "kaldi.options",
    "Tables": "tables.options",
    "Tar": "tar.options",
    "Text": "lines.options",
    "Tokens": "tokens.tokens",
}
"""The module of each public name, below ``seekable.formats``."""

__getattr__ = public_names(__name__, _HOMES, below=__name__)
