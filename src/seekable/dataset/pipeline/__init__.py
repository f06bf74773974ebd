"""Pipelines as files: what ``ds.save`` writes, and ``sk.load_dataset`` reads.

    fields        the arguments of nodes, as JSON has them: a way for each type of argument
    functions     the functions of the user, by name
    row_files     rows that were chosen by content, in files beside the pipeline file
    sources       the data files: their folders, their names and their digests
    kinds         the classes of nodes that a file can have
    write_nodes   nodes to JSON, one after another, each with its arguments
    read_nodes    JSON to nodes
    pipeline_file the document: its version, its keys, its layout for people, and the errors that name it

A pipeline file is data: nothing of it is run, and no name in it is imported.
"""
