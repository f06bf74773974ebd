"""Records of tables: files whose rows lie in groups, column by column."""
