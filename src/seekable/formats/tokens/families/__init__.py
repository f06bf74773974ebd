"""The kinds of token files: one module for each, which surveys where documents lie."""
