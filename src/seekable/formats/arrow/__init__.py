"""Arrow's own files, Feather V2 too, and the streams that Hugging Face ``datasets`` keeps its data in."""

from __future__ import annotations

from seekable.formats.arrow.format import ArrowFormat

__all__ = ["ArrowFormat"]
