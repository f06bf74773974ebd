"""Parquet: rows by the pages that hold them, and runs of rows at pyarrow's rate."""

from __future__ import annotations

from seekable.formats.parquet.format import ParquetFormat, page_tables

__all__ = ["ParquetFormat", "page_tables"]
