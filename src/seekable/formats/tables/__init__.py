"""Tables: Parquet and Arrow files, read by groups of rows, by columns and by single rows."""
