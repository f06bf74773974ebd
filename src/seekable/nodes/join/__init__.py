"""Records of two datasets that have the same key, as one."""
