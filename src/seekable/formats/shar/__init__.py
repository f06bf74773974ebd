"""Shar, the format of Lhotse: cuts as JSON lines, and beside them a file of each field for each shard."""
