"""Writing the records of any dataset to files."""
