"""The object layer: cursors over bytes, the binary header, basic types and tokens."""
