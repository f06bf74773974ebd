"""Worker processes, executors, and the progress and the errors that cross them.

Work is a function of a range of numbers, or of one request. Nothing here depends on files, formats or
datasets.
"""
