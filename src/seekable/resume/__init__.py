"""``resume="rows"``: a changed pipeline continues an old run, and no row comes twice in the begun epoch.

A state resumes exactly only in the pipeline that it was taken of. By rows, another pipeline over the same
sources resumes: each source delivers the rows that were in flight, then the rest of the epoch that it had
begun in its old order, then its next epochs in the new order. The way from a state to that pipeline:

    from_description  the description in the state   ->  the old order, over placeholders for its sources
    consumed        the old order and the state      ->  for each dataset read: the positions not yet drawn
                    these positions, by source       ->  the rows that are left of each begun epoch
                    the rows that are left           ->  the position at which the new pipeline begins
    match           old sources and present ones     ->  which present source continues which old one
                    an old order, a present source   ->  the old order over the present files and functions
    continued       the rows that are left           ->  a node: first these rows, then the new order
    by_rows         all of this                      ->  the new pipeline, and its state there

A run over a dataset reads one dataset; a run over a stream has several readers, lanes, and rows that wait in
stages. After ``consumed`` they are the same. ``serialize`` writes into the states of a pipeline what it
resumed by rows.

``report`` says for people how far each source is, after any resume. ``row_offsets`` resumes without a state,
after a shard and a row of each source.
"""
