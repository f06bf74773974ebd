"""Parquet: rows by the pages that hold them, and runs of rows at pyarrow's rate."""
