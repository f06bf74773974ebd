"""The leaves of a graph: nodes that read records from files, tables and sequences."""
