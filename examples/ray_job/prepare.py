"""Index and tokenise a corpus on the nodes of a Ray cluster; the driver only hands out the work.

    python prepare.py DATA TOKENS --address HOST:PORT

DATA has files of JSON lines with a column "text", and tokenizer.json. TOKENS is the folder of the store. All
nodes see both.
"""

from __future__ import annotations

import argparse
import os

import seekable as sk
from seekable.integrations.ray import RayExecutor

ROWS = 50
"""Documents of a part of the store, which is one request to the cluster."""


def main() -> None:
    """Read the command line, and do both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="the folder of the texts")
    parser.add_argument("tokens", help="the folder of the store, which is made")
    parser.add_argument("--address", help="the address of the cluster")
    args = parser.parse_args()
    data, tokens = os.path.abspath(args.data), os.path.abspath(args.tokens)
    with RayExecutor(args.address, num_cpus=2) as executor:
        texts = sk.open(os.path.join(data, "*.jsonl"), index=sk.Index(executor=executor))
        documents = sk.tokenize(
            texts,
            to=tokens,
            tokenizer=os.path.join(data, "tokenizer.json"),
            eos="<|endoftext|>",
            executor=executor,
            store=sk.formats.TokenStore(rows_per_file=ROWS),
        )
    print(f"{len(documents):,} documents, {sk.formats.token_lengths(documents).sum():,} tokens")


if __name__ == "__main__":
    main()
