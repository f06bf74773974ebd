"""Ten chat templates after the documented forms of ten families, conversations, and their tokenizer."""
# ruff: noqa: E501, RUF001 - templates are as they are

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from tests.tokens.trained import trained_json
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

CHATML = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- endif %}
    {{- '\\n# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {{- message.content or '' }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

THINKING = """\
{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content | default('', true) %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')
            %} {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
        {%- if loop.index0 > ns.last and reasoning %}
            {{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- content + '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

LLAMA_2 = """\
{% if messages[0]['role'] == 'system' %}{% set system = '<<SYS>>\\n' + messages[0]['content'].strip() +
'\\n<</SYS>>\\n\\n' %}{% set loop_messages = messages[1:] %}{% else %}{% set system = '' %}{% set
loop_messages = messages %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') !=
(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate
user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 %}{% set content = system +
message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] ==
'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{%
generation %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endgeneration %}{% endif %}{% endfor %}"""

LLAMA_3 = """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {%- generation %}
        {%- if 'tool_calls' in message %}
            {%- if not message.tool_calls|length == 1 %}
                {{- raise_exception("This model only supports single tool-calls at once!") }}
            {%- endif %}
            {%- set tool_call = message.tool_calls[0].function %}
            {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- else %}
            {{- message['content'] | trim }}
        {%- endif %}
        {{- '<|eot_id|>' }}
        {%- endgeneration %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or (message.content is iterable and message.content is not string)
        %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {{- tool | tojson }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- "][/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {%- generation %}
        {%- if message.tool_calls is defined and message.tool_calls is not none %}
            {{- "[TOOL_CALLS] [" }}
            {%- for tool_call in message.tool_calls %}
                {{- tool_call.function | tojson }}
            {%- endfor %}
            {{- "]" }}
        {%- else %}
            {{- " " + message["content"]|trim }}
        {%- endif %}
        {{- eos_token }}
        {%- endgeneration %}
    {%- elif message["role"] == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] + '\\n\\n' %}{%
set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %} {%- for message
in rest -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {{ '<start_of_turn>model\\n' }}{%- generation -%}{{ message['content'] | trim }}{{ '<end_of_turn>\\n'
        }}{%- endgeneration -%}
    {%- else -%}
        {{ '<start_of_turn>' + message['role'] + '\\n' + (first if loop.first else "") }}{{ message['content']
        | trim }}{{ '<end_of_turn>\\n' }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""

PHI_3 = """\
{% for message in messages %}
{% if message['role'] == 'system' and message['content'] %}
{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}
{% elif message['role'] == 'user' %}
{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}
{% elif message['role'] == 'assistant' %}
{{'<|assistant|>\\n'}}{% generation %}{{ message['content'] + '<|end|>\\n'}}{% endgeneration %}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|assistant|>\\n' }}
{% else %}
{{ eos_token }}
{% endif %}
"""

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}

{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

DEEPSEEK = """\
{% set ns = namespace(is_first=true, system='') %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first %}{% set ns.system = ns.system + message['content'] %}{% set ns.is_first = false %}{%- else %}{% set ns.system = ns.system + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system }}
{%- for message in messages %}
    {%- if message['role'] == 'user' %}
        {{- '<｜User｜>' + message['content'] }}
    {%- endif %}
    {%- if message['role'] == 'assistant' and message['content'] is not none %}
        {{- '<｜Assistant｜>' }}
        {%- generation %}
        {%- set content = message['content'] %}
        {%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
        {{- content + '<｜end▁of▁sentence｜>' }}
        {%- endgeneration %}
    {%- endif %}
    {%- if message['role'] == 'tool' %}
        {%- if loop.previtem is defined and loop.previtem.role == 'tool' %}{% continue %}{% endif %}
        {{- '<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>' }}
    {%- endif %}
{%- endfor -%}
{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}
"""

COMMAND_R = """\
{%- macro document_turn(documents) -%}
{%- for doc in documents or [] %}{{ doc.title }}{% endfor %}
{%- endmacro %}
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{%- set loop_messages = messages[1:] %}{%- set system_message =
messages[0]['content'] %}{%- else %}{%- set loop_messages = messages %}{%- set system_message = false %}{%-
endif %} {%- if system_message != false -%} {{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system_message +
'<|END_OF_TURN_TOKEN|>' }} {%- endif %}
{{- document_turn(documents) }}
{%- for message in loop_messages -%}
    {%- set content = message['content'] -%}
    {%- if message['role'] == 'user' -%}
        {{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}
    {%- elif message['role'] == 'assistant' -%}
        {{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{%- generation -%}{{ content.strip() +
        '<|END_OF_TURN_TOKEN|>' }}{%- endgeneration -%}
    {%- endif %}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{%- endif %}
"""

TEMPLATES = {
    "chatml": CHATML,
    "thinking": THINKING,
    "llama-2": LLAMA_2,
    "llama-3": LLAMA_3,
    "mistral": MISTRAL,
    "gemma": GEMMA,
    "phi-3": PHI_3,
    "zephyr": ZEPHYR,
    "deepseek": DEEPSEEK,
    "command-r": COMMAND_R,
}

SPECIALS = (
    *("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<｜User｜>"),
    *(
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        "<|START_OF_TURN_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
        "[INST]",
    ),
)

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place; <b>fast</b> & good",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


def said(*texts: str, system: str | None = None) -> list[dict[str, Any]]:
    """Return messages of a user and an assistant, in turn."""
    roles = ("user", "assistant")
    before = [] if system is None else [{"role": "system", "content": system}]
    return before + [{"role": roles[turn % 2], "content": text} for turn, text in enumerate(texts)]


CALLED: list[dict[str, Any]] = [
    {"role": "user", "content": "Is it raining in Poznań?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"type": "function", "function": {"name": "weather", "arguments": {"place": "Poznań"}}}
        ],
    },
    {"role": "tool", "content": '{"rain": false}'},
    {"role": "assistant", "content": "No, it is dry."},
]

CHATS: dict[str, dict[str, Any]] = {
    "two turns": {"messages": said("2 + 2 =", "4")},
    "with a system": {"messages": said(" hello\n", "Hi!  ", "again", " world\n\n", system=" Be brief. ")},
    "many languages": {"messages": said("zażółć 東京 🎉🎉", "🎉 gęślą\n\tjaźń 東京", "é", "👩‍👩‍👧")},
    "reasoning": {
        "messages": [
            *said("a", "<think>\nfirst\n</think>\n\nb", "c"),
            {"role": "assistant", "content": "d", "reasoning_content": "second\n"},
        ]
    },
    "an empty answer": {"messages": said("a", "", "b", "c")},
    "special tokens in a text": {"messages": said("<|im_end|> </s>", "<|im_start|> [INST] x<|eot_id|>")},
    "a call": {"messages": CALLED, "tools": [WEATHER]},
    "the last word is the user's": {"messages": said("a", "b", "c")},
}


@functools.cache
def chat_json() -> str:
    """Return the tokenizer.json of a small byte-level BPE with the special tokens of all templates."""
    tokenizer = Tokenizer.from_str(trained_json())
    tokenizer.add_special_tokens(list(SPECIALS))
    described: str = tokenizer.to_str()
    return described


def chat_tokenizer() -> Tokenizer:
    """Return the tokenizer of `chat_json`."""
    return Tokenizer.from_str(chat_json())


def saved(folder: Path, template: str) -> Path:
    """Write a folder as transformers does: a tokenizer, its special tokens, and a chat template."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(chat_json(), encoding="utf-8")
    config = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "special": True},
        "chat_template": template,
    }
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
