"""Charts as SVG: numbers in, text out."""
