"""``seekable kaldi shapes``: the sizes of the objects of a table."""

from __future__ import annotations

from seekable.cli.kaldi.table_options import HolderOption, PipesChoice, PipesOption, RspecifierArgument
from seekable.cli.options import JsonOption, examples

EPILOG = examples(
    "kaldi shapes scp:feats.scp > utt2shape",
    "kaldi shapes scp:feats.scp | cut -d ' ' -f 1,2 > utt2num_frames",
    "kaldi shapes scp:wav.scp | cut -d ' ' -f 1,4 > utt2dur",
    "kaldi shapes ark:ali.ark --holder int32-vector --json | jq -c .shape",
)


def shapes(
    rspecifier: RspecifierArgument,
    *,
    holder: HolderOption = None,
    pipes: PipesOption = PipesChoice.SPECIFIER,
    as_json: JsonOption = False,
) -> None:
    """Print the key and the shape of each object of a table.

    Shapes come from headers where objects have them, and no values are decoded then. A matrix has rows and
    columns; a wave has channels and samples, followed by its seconds.
    """
    from seekable.cli.kaldi.holder_choice import chosen_holder
    from seekable.cli.kaldi.shape_holder import ShapeHolder
    from seekable.cli.kaldi.targets import as_rspecifier
    from seekable.cli.output import write_document, write_line
    from seekable.kaldi import SequentialReader, find_holder
    from seekable.viewer.facts.documents import json_safe

    rspecifier = as_rspecifier(rspecifier)
    shape = ShapeHolder(find_holder(chosen_holder(holder, rspecifier, pipes.value)))
    with SequentialReader(rspecifier, shape, pipes=pipes.value) as reader:
        for key, found in reader:
            if as_json:
                write_document({"key": json_safe(key), **found.fields()})
            else:
                write_line(" ".join([key, *map(str, found.numbers())]))
