"""Methods that the models of llama-cpp-python and sentence-transformers have, and what is here instead."""
from typing import TYPE_CHECKING, Any

METHODS = {
    "from_pretrained": "call Model.from_repository(repository, quant)",
    "create_completion": "call generate(), or stream()",
    "create_chat_completion": "call chat(), or answer() for a message with reasoning and calls of tools; stream_chat(), stream_answer()",
    "create_chat_completion_openai_v1": "call answer()",
    "create_embedding": "call embed()",
    "rank": "call rerank(query, documents)",
    "encode": "call embed(), or tokenize() for tokens",
    "encode_query": 'call embed(text, prompt_name="query")',
    "encode_document": 'call embed(text, prompt_name="document")',
    "eval": "call logits(prompt)",
    "scores": "call logits(prompt)",
    "eval_logits": "call logits(prompt)",
    "logits_to_logprobs": "call logprobs(prompt, continuation)",
    "eval_tokens": "it is context",
    "input_ids": "it is context",
    "n_tokens": "it is len(context)",
    "sample": "call generate(), or choose a token yourself from logits(ids, last=True)",
    "save_state": "call save(path)",
    "load_state": "call restore(path)",
    "set_cache": "the beginning that a prompt has in common with the last one is never run again; save(path) and restore(path) use files",
    "set_seed": "it is the option seed of generate() and the others",
    "tokenizer": "call tokenize() and detokenize()",
    "token_bos": "it is bos",
    "token_eos": "it is eos",
    "token_nl": 'call tokenize("\\n", add_special=False)',
    "chat_format": "it is chat_template, an argument of Model()",
    "chat_handler": "chat() and answer() use the chat template, and mmproj= of Model names an eye",
}


def no_attribute(name: str) -> AttributeError:
    hint = METHODS.get(name)
    return AttributeError(f"a Model has no '{name}'" + (f": {hint}" if hint else ""))


class Hinting(type):
    """The type of a class whose missing attributes are answered with what is here instead."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise no_attribute(name)


class Hints(metaclass=Hinting):
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(name)

        def __call__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("a Model cannot be called: call generate(prompt), or chat(messages)")
