"""Key indexes: the hashes of the keys of records, in files beside the index."""
