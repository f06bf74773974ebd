"""Files of lines: JSON lines, text and CSV; the source, the writer, and streams of them."""
