"""What is true of data, pipelines and states: facts that the command line, the viewer and notebooks share.

A fact is a frozen dataclass with ``document()``, its JSON form. Long work is a generator of partial facts;
closing the generator ends the work.
"""
