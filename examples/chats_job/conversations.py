"""Make conversations about sums, a tokenizer, and a chat template, into a folder.

    python -m examples.chats_job.conversations FOLDER

The folder gets ``chats.jsonl``, and ``model`` with a tokenizer.json and a chat_template.jinja.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 1_200
SPECIAL = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = """\
{% for message in messages %}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' %}
{% generation %}
{{ message.content }}<|im_end|>
{% endgeneration %}
{% else %}
{{ message.content }}<|im_end|>
{% endif %}
{% endfor %}
"""
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def conversation(rng: random.Random) -> list[dict[str, Any]]:
    """Return messages of one to eight questions; an answer that is wrong has the weight 0."""
    turns: list[dict[str, Any]] = [{"role": "system", "content": "Answer with a number in words."}]
    for _ in range(rng.randrange(1, 9)):
        first, second = rng.randrange(5), rng.randrange(5)
        is_right = rng.random() < 0.9
        answer = WORDS[first + second if is_right else rng.randrange(10)]
        turns.append({"role": "user", "content": f"What is {WORDS[first]} and {WORDS[second]}?"})
        turns.append({"role": "assistant", "content": f"That is {answer}.", "weight": int(is_right)})
    return turns


def conversations() -> Iterator[dict[str, Any]]:
    """Yield all records: the same ones each time."""
    rng = random.Random(0)
    for number in range(COUNT):
        yield {"id": number, "messages": conversation(rng)}


def tokenizer(texts: list[str]) -> Tokenizer:
    """Return a byte-level BPE of 512 tokens, trained on texts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return made


def main() -> None:
    """Write the folder that the command line names."""
    (folder,) = sys.argv[1:]
    model = os.path.join(folder, "model")
    os.makedirs(model, exist_ok=True)
    records = list(conversations())
    with open(os.path.join(folder, "chats.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    texts = [turn["content"] for record in records[:100] for turn in record["messages"]]
    tokenizer(texts).save(os.path.join(model, "tokenizer.json"))
    with open(os.path.join(model, "chat_template.jinja"), "w", encoding="utf-8") as file:
        file.write(TEMPLATE)
    print(f"{len(records):,} conversations, {sum(len(each['messages']) for each in records):,} turns")


if __name__ == "__main__":
    main()
