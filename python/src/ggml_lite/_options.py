"""The options of generate, stream, chat and stream_chat, and the C struct that is made from them."""
from __future__ import annotations

import ctypes as c
import difflib
import json
import os
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, SupportsIndex, TypedDict, Union

from ._abi import GenerateParams, Library


class Options(TypedDict, total=False):
    """Options of a generation. None has the same effect as an option that is absent.

    max_tokens      at least 1; default: until the text ends, or the context is full
    temperature     randomness; 0: always the likeliest token; default 0.8
    top_k           choose from the k likeliest tokens; 0: from all; default 40
    top_p           choose from the likeliest tokens that add up to p; 1: from all; default 0.95
    min_p           drop tokens below p times the likeliest one; 0: none; default 0.05
    repeat_penalty  for the last 64 tokens; 1: none, the default
    seed            the same seed gives the same text; default: another one each time
    stop            a text, or several: the generated text ends before one of them
    ignore_end      go on after the model ended its text
    grammar         the text follows this grammar, in GBNF
    json_schema     the text is JSON of this schema, a dict or its text; True: any JSON"""

    max_tokens: Optional[SupportsIndex]
    temperature: Optional[float]
    top_k: Optional[int]
    top_p: Optional[float]
    min_p: Optional[float]
    repeat_penalty: Optional[float]
    seed: Optional[SupportsIndex]
    stop: Union[str, Sequence[str], None]
    ignore_end: Optional[bool]
    grammar: Optional[str]
    json_schema: Union[str, Mapping[str, Any], bool, None]


def text_bytes(name: str, text: Any) -> bytes:
    """A C string. Raises TypeError or ValueError, which name the option."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is {type(text).__name__}, not a str")
    if "\0" in text:
        raise ValueError(f"{name} contains a NUL character")
    return text.encode("utf-8")


def whole(name: str, value: Any, least: int, bits: int) -> int:
    """An integer from `least` on that fits a signed integer of so many bits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {type(value).__name__}, not an int")
    number: int = value.__index__()
    if not least <= number < 1 << (bits - 1):
        raise ValueError(f"{name} is {number}; it is at least {least} and below 2^{bits - 1}")
    return number


def number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name} is {type(value).__name__}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large") from None


def flag(name: str, value: Any) -> bool:
    """True or False, which may be numpy's; a text such as "no" would count as true."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        raise TypeError(f"{name} is {type(value).__name__}, not a bool")
    return bool(value)


def set_stop(p: GenerateParams, value: Any) -> None:
    texts = [value] if isinstance(value, str) else list(value)
    p.stop = (c.c_char_p * len(texts))(*(text_bytes("stop", text) for text in texts))
    p.n_stop = len(texts)


def set_seed(p: GenerateParams, value: Any) -> None:
    p.seed = whole("seed", value, 0, 65)


def schema_bytes(value: Any) -> bytes:
    if value is False:
        raise ValueError("json_schema is False, which no text follows; for any text, leave it out or give None")
    if value is True:
        value = {}
    return text_bytes("json_schema", value if isinstance(value, str) else json.dumps(value))


def field(name: str, convert: Callable[[Any], Any]) -> Callable[[GenerateParams, Any], None]:
    return lambda p, value: setattr(p, name, convert(value))


# How each option gets into the struct.
SETTERS: Dict[str, Callable[[GenerateParams, Any], None]] = {
    "max_tokens": field("n_max", lambda x: whole("max_tokens", x, 1, 64)),
    "temperature": field("temp", lambda x: number("temperature", x)),
    "top_k": field("top_k", lambda x: whole("top_k", x, 0, 32)),
    "top_p": field("top_p", lambda x: number("top_p", x)),
    "min_p": field("min_p", lambda x: number("min_p", x)),
    "repeat_penalty": field("repeat_penalty", lambda x: number("repeat_penalty", x)),
    "seed": set_seed,
    "stop": set_stop,
    "ignore_end": field("ignore_end", lambda x: flag("ignore_end", x)),
    "grammar": field("grammar", lambda x: text_bytes("grammar", x)),
    "json_schema": field("json_schema", schema_bytes),
}


def generate_params(lib: Library, options: Mapping[str, Any]) -> GenerateParams:
    p = GenerateParams()
    lib.llm_generate_fill_default(c.byref(p), c.sizeof(p))
    if options.get("seed") is None:
        p.seed = int.from_bytes(os.urandom(8), "little")
    for name, value in options.items():
        if name not in SETTERS:
            near = difflib.get_close_matches(name, SETTERS, 1)
            raise TypeError(f"unknown option '{name}'" + (f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(SETTERS)}"))
        if value is not None:
            SETTERS[name](p, value)
    return p
