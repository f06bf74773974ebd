"""The source of token files: documents as slices of arrays in memory maps."""
