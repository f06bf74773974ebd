"""The state document: what a run is resumed from, and what it must match.

Everything here is pure: descriptions and documents in, text and differences out. The loader reads and writes
the files.
"""
