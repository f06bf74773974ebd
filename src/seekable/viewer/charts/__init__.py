"""Charts as SVG: numbers in, text out, byte for byte the same in a page, a notebook, a file and the docs."""
