"""The pages: a function of what is open and what is asked for, one page a file."""
