"""The keys of records, kept beside the index."""
