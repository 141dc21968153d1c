"""The options of all calls that generate, and the C struct that is made from them."""
from __future__ import annotations

import ctypes as c
import difflib
import json
import math
import os
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, SupportsIndex, Tuple, TypedDict, Union

from ._abi import DiffuseParams, GenerateParams, Library, Note, Number, TokenBias


class Options(TypedDict, total=False):
    """Options of a generation. None has the same effect as an option that is absent: the default, which is the model's file's for
    temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, xtc_probability, xtc_threshold, mirostat with its numbers and samplers, if
    it has one (Model(.., file_sampling=False): those below).

    max_tokens             0: none; -1: until the text ends, or the context is full, the default
    temperature            randomness; 0: always the likeliest token; default 0.8
    top_k                  choose from the k likeliest tokens; 0: from all; default 40
    top_p                  choose from the likeliest tokens that add up to p; 1: from all; default 0.95
    min_p                  drop tokens below p times the likeliest one; 0: none; default 0.05
    typical_p              keep the most typical tokens that add up to p; 1: all, the default
    top_n_sigma            drop what is n standard deviations below the best; 0: nothing, the default
    repeat_penalty         for recent tokens; 1: none, the default
    repeat_last_n          how many tokens are recent, for the three penalties; -1: all; default 64
    frequency_penalty      subtracted for each occurrence of a recent token; default 0
    presence_penalty       subtracted once for a recent token; default 0
    dynatemp_range         the temperature varies by as much; default 0
    dynatemp_exponent      how it varies; default 1
    xtc_probability        how often the likeliest tokens are left out; default 0
    xtc_threshold          they are those at least as probable as this; default 0.1
    dry_multiplier         makes long repetitions less likely; default 0
    dry_base               how the length of a repetition counts; default 1.75
    dry_allowed_length     repetitions below this length are not touched; default 2
    dry_penalty_last_n     how many tokens are looked through; -1: all, the default
    dry_sequence_breakers  texts at which a repetition ends; default "\\n", ":", "\"", "*"
    mirostat               2: in place of the stages that leave tokens out; default 0
    mirostat_tau           its target surprise; default 5
    mirostat_eta           its learning rate; default 0.1
    logit_bias             additions to the logits of tokens, {token: number}; minus infinity, or False: never this token
    samplers               the stages in another order, "top_k;temperature" or a list of names
    seed                   the same seed gives the same text; -1: another one each time, the default
    stop                   a text, or several: the generated text ends before one of them
    ignore_end             go on after the model ended its text
    shift                  when the context is full, drop the older half of its tokens, and go on
    n_keep                 how many tokens of the prompt stay then; -1: all; default 0
    read                   of a model that reads a text before it writes (T5, BART): the tokens of that text; the prompt is then the
                           beginning of what it writes
    n_beams                the likeliest text that a search of so many beams finds, instead of a drawn one; n_parallel of Model is as many
    length_penalty         with n_beams: a text's score is the sum of its log-probabilities / length ^ this; default 1
    early_stopping         with n_beams: end as soon as so many texts have ended
    show_special           the text has special tokens, too
    grammar                the text follows this grammar, in GBNF
    json_schema            the text is JSON of this schema, a dict or its text; True: any JSON
    json_spaces            JSON may have white space between values
    diffusion_steps        of a model that writes by diffusion: steps in which the answer's tokens are unmasked; 0: one for each, the default
    diffusion_block_length one block of so many tokens is unmasked after the other; 0: all at once, the default
    diffusion_eps          without blocks: the share of masks for the last step; default 0.001
    diffusion_algorithm    which masks come first: "confidence", the default, "entropy", "margin", "random" or "origin"
    diffusion_alg_temp     randomness of that order; default 0
    diffusion_cfg_scale    how far to go away from what is written without the prompt; default 0"""

    max_tokens: Optional[SupportsIndex]
    temperature: Optional[float]
    top_k: Optional[int]
    top_p: Optional[float]
    min_p: Optional[float]
    typical_p: Optional[float]
    top_n_sigma: Optional[float]
    repeat_penalty: Optional[float]
    repeat_last_n: Optional[int]
    frequency_penalty: Optional[float]
    presence_penalty: Optional[float]
    dynatemp_range: Optional[float]
    dynatemp_exponent: Optional[float]
    xtc_probability: Optional[float]
    xtc_threshold: Optional[float]
    dry_multiplier: Optional[float]
    dry_base: Optional[float]
    dry_allowed_length: Optional[int]
    dry_penalty_last_n: Optional[int]
    dry_sequence_breakers: Optional[Sequence[str]]
    mirostat: Optional[int]
    mirostat_tau: Optional[float]
    mirostat_eta: Optional[float]
    logit_bias: Optional[Mapping[int, Union[float, bool]]]
    samplers: Union[str, Sequence[str], None]
    seed: Optional[SupportsIndex]
    stop: Union[str, Sequence[str], None]
    ignore_end: Optional[bool]
    shift: Optional[bool]
    n_keep: Optional[SupportsIndex]
    read: Optional[Sequence[int]]
    n_beams: Optional[SupportsIndex]
    length_penalty: Optional[float]
    early_stopping: Optional[bool]
    show_special: Optional[bool]
    grammar: Optional[str]
    json_schema: Union[str, Mapping[str, Any], bool, None]
    json_spaces: Optional[bool]
    diffusion_steps: Optional[SupportsIndex]
    diffusion_block_length: Optional[SupportsIndex]
    diffusion_eps: Optional[float]
    diffusion_algorithm: Optional[str]
    diffusion_alg_temp: Optional[float]
    diffusion_cfg_scale: Optional[float]


# Options that other programs have, and what is here instead: the name of an option, or words.
ELSEWHERE = {
    "temp": "temperature",
    "n_predict": "max_tokens",
    "num_predict": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "repetition_penalty": "repeat_penalty",
    "last_n_tokens_size": "repeat_last_n",
    "typ_p": "typical_p",
    "mirostat_mode": "mirostat",
    "ignore_eos": "ignore_end",
    "response_format": "json_schema",
    "stream": "call stream(), stream_chat() or stream_answer()",
    "tools": "chat() and answer() take tools",
    "tool_choice": "answer() takes it",
    "functions": "chat() and answer() take tools",
    "function_call": "answer() takes tool_choice",
    "logprobs": "call logprobs()",
    "top_logprobs": "call logits()",
    "n": "give batch() the same prompt several times",
    "best_of": "give batch() the same prompt several times, and choose",
    "echo": "the text that comes back begins after the prompt",
    "model": "each Model is one",
    "user": "it names the caller of a server; leave it out",
    "tfs_z": "the sampler has no such stage; typical_p and top_n_sigma cut the unlikely tokens, too",
    "stream_options": "last_run, and the run of a stream, have the counts in any case",
    "suffix": "text is written only after a prompt",
    "logits_processor": "give logit_bias or a grammar, or choose tokens yourself from logits(last=True)",
    "stopping_criteria": "leave the loop over stream()",
}


def refuse_unknown(given: Iterable[str], known: Collection[str], elsewhere: Mapping[str, str], what: str) -> None:
    """Raises TypeError, which says what could have been meant, if a given name is not known."""
    for name in given:
        if name in known:
            continue
        hint = elsewhere.get(name)
        if hint and hint not in known:
            raise TypeError(f"unknown {what} '{name}': {hint}")
        near = [hint] if hint else difflib.get_close_matches(name, known, 1)
        raise TypeError(f"unknown {what} '{name}'" + (f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(known)}"))


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


def elements(name: str, value: Any, of: str, *refused: type) -> Iterable[Any]:
    """A sequence, or what else one can go through. Texts, bytes and what is `refused` are none."""
    if isinstance(value, (str, bytes, bytearray, *refused)) or not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
        raise TypeError(f"{name} is {type(value).__name__}, not {of}")
    given: Iterable[Any] = value
    return given


def above_0(name: str, value: Any) -> float:
    """A number for which the library takes 0 as "the default"."""
    given = number(name, value)
    if not given > 0:
        raise ValueError(f"{name} is {value}; it is above 0")
    return given


def whole_or_all(name: str, value: Any) -> int:
    """A number of tokens from 1 on; -1: all of them. For 0 the library takes the default."""
    given = whole(name, value, -1, 32)
    if given == 0:
        raise ValueError(f"{name} is 0; it is at least 1, or -1 for all tokens")
    return given


def texts(name: str, value: Any) -> Tuple[Any, int]:
    given = [text_bytes(name, text) for text in ([value] if isinstance(value, str) else elements(name, value, "a str or a sequence of str"))]
    return (c.c_char_p * len(given))(*given), len(given)


def set_stop(p: GenerateParams, value: Any) -> None:
    p.stop, p.n_stop = texts("stop", value)


def set_breakers(p: GenerateParams, value: Any) -> None:
    p.dry_breakers, p.n_dry_breakers = texts("dry_sequence_breakers", value)


def set_seed(p: GenerateParams, value: Any) -> None:
    p.seed = whole("seed", value, -1, 65) % (1 << 64)
    if value == -1:
        set_random_seed(p)


def set_random_seed(p: GenerateParams) -> None:
    p.seed = int.from_bytes(os.urandom(8), "little")


def collect_notes(p: GenerateParams) -> None:
    notes: List[str] = []
    p.notes = (notes,)
    p.note = Note(lambda _user, text: notes.append(text.decode("utf-8", "replace")))


def set_max_tokens(p: GenerateParams, value: Any) -> None:
    given = whole("max_tokens", value, -1, 64)
    p.n_max, p.is_empty = max(given, 0), given == 0


def set_bias(p: GenerateParams, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"logit_bias is {type(value).__name__}, not a mapping of tokens to numbers")
    biases = []
    for token, bias in value.items():  # JSON has its keys as texts
        id = whole("a token of logit_bias", int(token) if isinstance(token, str) and token.isdigit() else token, 0, 32)
        biases.append(TokenBias(id, -math.inf if bias is False else number(f"logit_bias[{id}]", bias)))
    p.bias, p.n_bias = (TokenBias * len(biases))(*biases), len(biases)


def set_read(p: GenerateParams, value: Any) -> None:
    ids = [whole("a token of read", id, 0, 31) for id in elements("read", value, "a sequence of tokens")]
    if not ids:
        raise ValueError("read has no tokens")
    p.read, p.n_read = (c.c_int32 * len(ids))(*ids), len(ids)


def set_diffusion(p: GenerateParams, given: Mapping[str, Any]) -> None:
    schedule = DiffuseParams(size=c.sizeof(DiffuseParams), **given)
    p.diffuse = c.pointer(schedule)


def stages(name: str, value: Any) -> bytes:
    return text_bytes(name, value if isinstance(value, str) else ";".join(elements(name, value, "a str or a list of names")))


def schema_bytes(name: str, value: Any) -> bytes:
    if value is False:
        raise ValueError("json_schema is False, which no text follows; for any text, leave it out or give None")
    if value is True:
        value = {}
    return text_bytes(name, value if isinstance(value, str) else json.dumps(value))


# How each option gets into the struct: a function, or the member's name and how its value is made.
SETTERS: Dict[str, Any] = {
    "max_tokens": set_max_tokens,
    "temperature": ("temp", number),
    "top_k": ("top_k", whole, 0, 32),
    "top_p": ("top_p", number),
    "min_p": ("min_p", number),
    "typical_p": ("typical_p", number),
    "top_n_sigma": ("top_n_sigma", number),
    "repeat_penalty": ("repeat_penalty", number),
    "repeat_last_n": ("repeat_last_n", whole_or_all),
    "frequency_penalty": ("frequency_penalty", number),
    "presence_penalty": ("presence_penalty", number),
    "dynatemp_range": ("dynatemp_range", number),
    "dynatemp_exponent": ("dynatemp_exponent", above_0),
    "xtc_probability": ("xtc_probability", number),
    "xtc_threshold": ("xtc_threshold", above_0),
    "dry_multiplier": ("dry_multiplier", number),
    "dry_base": ("dry_base", above_0),
    "dry_allowed_length": ("dry_allowed_length", whole, 1, 32),
    "dry_penalty_last_n": ("dry_last_n", whole_or_all),
    "dry_sequence_breakers": set_breakers,
    "mirostat": ("mirostat", whole, 0, 32),
    "mirostat_tau": ("mirostat_tau", above_0),
    "mirostat_eta": ("mirostat_eta", above_0),
    "logit_bias": set_bias,
    "samplers": ("samplers", stages),
    "seed": set_seed,
    "stop": set_stop,
    "ignore_end": ("ignore_end", flag),
    "shift": ("shift", flag),
    "n_keep": ("n_keep", whole, -1, 64),
    "read": set_read,
    "n_beams": ("n_beams", whole, 0, 32),
    "length_penalty": ("length_penalty", number),
    "early_stopping": ("early_stopping", flag),
    "show_special": ("show_special", flag),
    "grammar": ("grammar", text_bytes),
    "json_schema": ("json_schema", schema_bytes),
    "json_spaces": ("json_spaces", flag),
}

# Options whose members are those of DiffuseParams.
SCHEDULE: Dict[str, Any] = {
    "diffusion_steps": ("n_steps", whole, 0, 32),
    "diffusion_block_length": ("n_block", whole, 0, 32),
    "diffusion_eps": ("eps", above_0),
    "diffusion_algorithm": ("order", text_bytes),
    "diffusion_alg_temp": ("order_temp", number),
    "diffusion_cfg_scale": ("cfg_scale", number),
}


def other_numbers(lib: Library) -> Dict[str, Any]:
    """Numbers of the sampler that are no members of the struct, as SETTERS has options."""
    names: List[str] = []
    while name := lib.llm_number_name(len(names)):
        names.append(name.decode())
    return {name: (None, number) for name in names if name not in SETTERS}


def set_numbers(p: GenerateParams, given: Mapping[str, float]) -> None:
    numbers = [Number(name.encode(), value) for name, value in given.items()]
    p.number, p.n_numbers = (Number * len(numbers))(*numbers), len(numbers)


def generate_defaults(lib: Library, handle: c.c_void_p) -> GenerateParams:
    """What counts where nothing is said: the defaults with what the file of an open model says about sampling."""
    p = GenerateParams()
    lib.llm_generate_fill_default_of(handle, c.byref(p), c.sizeof(p))
    return p


def generate_params(lib: Library, defaults: GenerateParams, options: Mapping[str, Any]) -> GenerateParams:
    p = GenerateParams.from_buffer_copy(defaults)
    set_random_seed(p)
    setters, numbers, schedule = {**SETTERS, **SCHEDULE, **other_numbers(lib)}, {}, {}
    refuse_unknown(options, setters, ELSEWHERE, "option")
    for name, value in options.items():
        setter = setters[name]
        if value is None:
            continue
        if callable(setter):
            setter(p, value)
        else:
            member, convert, *limits = setter
            given = convert(name, value, *limits)
            if name in SCHEDULE:
                schedule[member] = given
            elif member:
                setattr(p, member, given)
            else:
                numbers[name] = given
    set_numbers(p, numbers)
    if schedule:
        set_diffusion(p, schedule)
    collect_notes(p)
    return p
