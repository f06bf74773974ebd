"""Nodes that change the columns of records that are dicts."""
