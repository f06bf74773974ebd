"""Facts of data, pipelines and states, which the command line, the viewer and notebooks share.

A fact is a frozen dataclass with ``document()``, its JSON form. Long work is a generator of partial facts;
closing the generator ends the work.
"""
