"""State documents, and the descriptions and digests of the pipelines that states are of.

The functions of this package are pure: `seekable.loader.checkpoints` reads and writes the files of states.
"""
