"""Worker processes, executors, and the progress and the errors that cross them.

A job is a function of a range of numbers, or of one request; nothing here knows files, formats or datasets.
"""
