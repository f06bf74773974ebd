"""The command line: one file for each command, which parses, asks the library, and prints.

Data goes to stdout and everything else to stderr. What a command needs beyond its own options is
imported when it runs, so that ``seekable --help`` waits for neither numpy nor rich.
"""
