"""Pipelines as files: what ``ds.save`` writes, and ``sk.load_pipeline`` reads.

    fields        the fields of nodes and their types; values and functions of users; chosen rows, in files
    data_files    the data files: their folders, their names and their digests
    node_json     nodes to JSON, one after another, each with its arguments; and JSON to nodes
    pipeline_file the document: its version, its keys, its layout for people, and the errors that name it

A pipeline file is data: nothing of it is run, and no name in it is imported.
"""

from __future__ import annotations

__all__ = ["PIPELINE_KEY"]

PIPELINE_KEY = "seekable_pipeline"
"""The first key of a pipeline file."""
