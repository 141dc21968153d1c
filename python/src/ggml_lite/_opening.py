"""The arguments of Model(), and how those of Training() are checked."""
from __future__ import annotations

import ctypes as c
import functools
import inspect
import os
import re
from typing import Any, Callable, Dict, Iterable, Mapping, Sequence, Tuple, TypeVar, Union, cast

from . import _abi
from ._open_params import FIELDS, ROWS, Opening, Path, Row, ScaledFiles
from ._options import elements, flag, number, refuse_unknown, text_bytes, whole

F = TypeVar("F", bound=Callable[..., None])

# Arguments that other programs have, and what is here instead: the name of an argument, or words.
ELSEWHERE = {
    "model_path": "the path is the first argument",
    "model": "the path is the first argument",
    "repo_id": "call Model.from_repository()",
    "filename": "call Model.from_repository()",
    "hf_token": "token",
    "verbose": "the package prints nothing",
    "embedding": "embeddings",
    "pooling_type": "pooling",
    "lora_path": "write adapters=[path]",
    "lora_scale": "write adapters=[(path, scale)]",
    "lora_base": "an adapter belongs to the model that is opened",
    "lora": "adapters",
    "type_k": "cache_type_k",
    "type_v": "cache_type_v",
    "chat_format": "chat_template",
    "chat_handler": "mmproj= names the file of an eye; for a template of your own there is chat_template",
    "draft_model": "write draft=path, or lookup=True",
    "n_ubatch": "n_batch",
    "n_seq_max": "n_parallel",
    "ngl": "n_gpu_layers",
    "main_gpu": "device",
    "split_mode": "split",
    "seed": "it is an option of generate() and the others",
    "last_n_tokens_size": "it is repeat_last_n, an option of generate() and the others",
    "logits_all": "logits() returns all of them",
    "use_mmap": "mmap",
    "use_mlock": "mlock",
    "flash_attn": "attention never needs the memory that it saves",
    "offload_kqv": "the KV cache is where its layers are",
    "kv_overrides": "overrides",
    "rope_freq_base": 'write overrides={".rope.freq_base": 500000.0}',
    "rope_freq_scale": 'write overrides={".rope.scaling.factor": 4.0}, which is 1 / rope_freq_scale',
    "rope_scaling_type": 'write overrides={".rope.scaling.type": "yarn"}',
    "yarn_ext_factor": 'write overrides={".rope.scaling.yarn_ext_factor": 1.0}',
    "yarn_attn_factor": 'write overrides={".rope.scaling.attn_factor": 1.0}',
    "yarn_beta_fast": 'write overrides={".rope.scaling.yarn_beta_fast": 32.0}',
    "yarn_beta_slow": 'write overrides={".rope.scaling.yarn_beta_slow": 1.0}',
    "yarn_orig_ctx": 'write overrides={".rope.scaling.original_context_length": 4096}',
    "spm_infill": "text is written only after a prompt",
    "vocab_only": "Model.describe() and Model.plan() read the file alone",
    "swa_full": "layers with a window keep what they need of it",
    "op_offload": "place says which operations run on which device",
    "no_perf": "last_run has the times in any case",
    "rpc_servers": "other machines are not used",
    "numa": "the system decides where memory is",
    "tokenizer": "the tokenizer is that of the file",
}


def known_arguments(what: str, elsewhere: Mapping[str, str] = ELSEWHERE) -> Callable[[F], F]:
    """Has the function say what an argument of Model (or `what`) that it does not know could mean, and take None as the default."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        if len(own) < len(signature.parameters):  # **how, which stands for the arguments of open_params.def
            own += [inspect.Parameter(r.argument, inspect.Parameter.KEYWORD_ONLY, default=r.default, annotation=Opening.__annotations__[r.argument]) for r in ROWS]
        known = [p.name for p in own if p.name != "self"]

        @functools.wraps(function)
        def checked(self: Any, *arguments: Any, **given: Any) -> None:
            refuse_unknown(given, known, elsewhere, f"argument of {what}")
            function(self, *arguments, **{name: value for name, value in given.items() if value is not None})

        checked.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return cast(F, checked)

    return decorate


def file_bytes(name: str, path: Path) -> bytes:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is {type(path).__name__}, not a path")
    file = os.fsencode(path)
    if b"\0" in file:
        raise ValueError(f"{name} contains a NUL character")
    return file


def _is_pair(file: Any) -> bool:
    return isinstance(file, tuple) and len(file) == 2 and not isinstance(file[1], (str, bytes, os.PathLike, tuple))


def _scaled(argument: str, file: Any) -> Tuple[Any, Any]:
    if isinstance(file, (str, bytes, os.PathLike)):
        return file, 1.0
    if not _is_pair(file):
        raise TypeError(f"{argument} has {file!r:.100} ({type(file).__name__}), which is neither a file nor a pair of a file and a scale, such as ('style.gguf', 0.5)")
    return file[0], file[1]


def loras(files: ScaledFiles, argument: str = "adapters") -> Tuple[Any, int]:
    if isinstance(files, Mapping):
        given: Iterable[Any] = files.items()
    elif isinstance(files, (str, bytes, os.PathLike)) or _is_pair(files):
        given = [files]
    else:
        given = elements(argument, files, "a file, a pair of a file and a scale, a list of these, or a dict {file: scale}")
    pairs = [_scaled(argument, file) for file in given]
    loras = [_abi.Lora(file_bytes(argument, path), number(f"a scale of {argument}", scale)) for path, scale in pairs]
    return (_abi.Lora * len(loras))(*loras), len(loras)


def override_bytes(key: str, value: Union[bool, int, float, str]) -> bytes:
    """KEY=TYPE:VALUE."""
    types = {bool: "bool", int: "int", float: "float", str: "str"}
    kind = next((name for type_, name in types.items() if isinstance(value, type_)), None)
    if not isinstance(key, str) or not key or "=" in key:
        raise ValueError(f"{key!r} in overrides is not the name of a key")
    if kind is None:
        raise TypeError(f"overrides[{key!r}] is {type(value).__name__}, not bool, int, float or str")
    text = str(value).lower() if kind == "bool" else str(value)
    return text_bytes(f"overrides[{key!r}]", f"{key}={kind}:{text}")


def overridden(overrides: Mapping[str, Union[bool, int, float, str]]) -> Tuple[Any, int]:
    if not isinstance(overrides, Mapping):
        raise TypeError(f"overrides is {type(overrides).__name__}, not a dict: write overrides={{key: value}}")
    texts = [override_bytes(key, value) for key, value in overrides.items()]
    return (c.c_char_p * len(texts))(*texts), len(texts)


def texts(argument: str, value: Sequence[str], what: str) -> Tuple[Any, int]:
    found = [text_bytes(f"a {what} of {argument}", x) for x in elements(argument, value, f"a list of {what}s: write {argument}=[{what}]")]
    return (c.c_char_p * len(found))(*found), len(found)


def _whole(row: Row, value: Any) -> int:
    is_layers = row.argument.endswith("gpu_layers")
    n = whole(row.argument, value, -(1 << 63), 64)
    least = -1 if is_layers else 0
    if not least <= n <= row.most:
        raise ValueError(f"{row.argument} is {n}; it must be {least} to {row.most}")
    return (1 << 31) - 1 if n < 0 else n


def _text(row: Row, value: Any) -> bytes:
    if value == "":
        raise ValueError(f"{row.argument} is empty; leave it out, or give None")
    return text_bytes(row.argument, value)


CONVERSIONS: Dict[str, Callable[[Row, Any], Any]] = {
    "BOOL": lambda row, value: flag(row.argument, value) != row.is_opposite,
    "INT": _whole,
    "FLOAT": lambda row, value: number(row.argument, value),
    "TEXT": _text,
    "WORD": _text,
    "PATH": lambda row, value: file_bytes(row.argument, value),
    "MAYBE": lambda row, value: file_bytes(row.argument, value),
}
LISTS: Dict[str, Callable[[Row, Any], Tuple[Any, int]]] = {
    "LORAS": lambda row, value: loras(value, row.argument),
    "TEXTS": lambda row, value: texts(row.argument, value, "pattern"),
    "place": lambda row, value: texts(row.argument, value, "rule"),
    "override": lambda row, value: overridden(value),
}
_NAMES = [field.split(":")[0] for field in FIELDS.split()]
COUNTS = dict(zip(_NAMES, _NAMES[1:]))  # of a list: the member after it


def in_arguments(message: str) -> str:
    """A message of the library with the arguments' names in place of the members'."""
    for row in ROWS:
        if row.argument != row.member:
            begins = "" if "_" in row.member else "^"  # "an adapter" is no name
            message = re.sub(rf"{begins}\b{row.member}\b", f"{row.argument}=False" if row.is_opposite else row.argument, message)
    return message


def open_params(how: Mapping[str, Any]) -> _abi.OpenParams:
    """The struct of these arguments, without its functions. None is the default."""
    p = _abi.OpenParams(size=c.sizeof(_abi.OpenParams))
    for row in ROWS:
        value = how.get(row.argument)
        value = row.default if value is None else value
        made = LISTS.get(row.member) or LISTS.get(row.kind)
        if made:
            array, n = made(row, value)
            setattr(p, row.member, array)
            setattr(p, COUNTS[row.member], n)
        elif row.kind in CONVERSIONS and value is not None:
            setattr(p, row.member, CONVERSIONS[row.kind](row, value))
    return p
