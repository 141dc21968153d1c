"""The calls of llm/llm.h, as ctypes has them: the structs, and a table of the functions."""
import ctypes as c
from typing import Any, Dict, Optional, Tuple

from . import _find
from ._errors import Status, error_of
from ._version import __version__

Context = c.c_void_p
Ids = c.POINTER(c.c_int32)
Floats = c.POINTER(c.c_float)
SizeOut = c.POINTER(c.c_size_t)
Progress = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_size_t, c.c_size_t)

ADD_SPECIAL, READ_SPECIAL, SHOW_SPECIAL = 1, 2, 4


class ErrorOut(c.Structure):
    _fields_ = [("status", c.c_int), ("msg", c.c_char * 2048)]


class OpenParams(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("n_ctx", c.c_int64),
        ("n_ubatch", c.c_int64),
        ("n_threads", c.c_int32),
        ("n_gpu_layers", c.c_int32),
        ("device", c.c_char_p),
        ("split", c.c_char_p),
        ("arch", c.c_char_p),
        ("chat_template", c.c_char_p),
        ("embeddings", c.c_bool),
        ("no_repack", c.c_bool),
        ("progress", Progress),
        ("user", c.c_void_p),
        ("no_chat_bos", c.c_bool),
        ("pooling", c.c_char_p),
    ]


class GenerateParams(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("n_max", c.c_int64),
        ("temp", c.c_float),
        ("top_k", c.c_int32),
        ("top_p", c.c_float),
        ("min_p", c.c_float),
        ("repeat_penalty", c.c_float),
        ("ignore_end", c.c_bool),
        ("seed", c.c_uint64),
        ("stop", c.POINTER(c.c_char_p)),
        ("n_stop", c.c_size_t),
        ("grammar", c.c_char_p),
        ("json_schema", c.c_char_p),
    ]


class RunInfo(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("finish", c.c_int),
        ("stop", c.c_int32),
        ("n_reused", c.c_int64),
        ("n_prompt", c.c_int64),
        ("n_generated", c.c_int64),
    ]


# What a function returns, and its arguments; one that returns STATUS has a pointer to an ErrorOut as its last argument, besides.
STATUS = object()
FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    "ggl_version": (c.c_char_p,),
    "ggl_free": (None, c.c_void_p),
    "llm_open": (STATUS, c.POINTER(Context), c.c_char_p, c.POINTER(OpenParams)),
    "llm_close": (None, Context),
    "llm_context_placement": (c.c_char_p, Context),
    "llm_context_n_ctx": (c.c_int64, Context),
    "llm_context_n_vocab": (c.c_int32, Context),
    "llm_context_n_embd": (c.c_int32, Context),
    "llm_context_text": (STATUS, Context, c.c_char_p, c.POINTER(c.c_void_p), SizeOut),
    "llm_context_has_chat": (c.c_bool, Context),
    "llm_generate_fill_default": (None, c.POINTER(GenerateParams), c.c_size_t),
    "llm_begin": (STATUS, Context, Ids, c.c_size_t, c.POINTER(GenerateParams)),
    "llm_next": (STATUS, Context, c.POINTER(c.c_void_p), SizeOut),
    "llm_chat_format": (STATUS, Context, c.c_char_p, c.c_bool, c.POINTER(c.c_void_p), SizeOut),
    "llm_last_run": (STATUS, Context, c.POINTER(RunInfo)),
    "llm_cancel": (None, Context),
    "llm_encode": (STATUS, Context, c.c_char_p, c.c_size_t, c.c_uint, c.POINTER(Ids), SizeOut),
    "llm_decode": (STATUS, Context, Ids, c.c_size_t, c.c_uint, c.POINTER(c.c_void_p), SizeOut),
    "llm_token_bytes": (c.c_void_p, Context, c.c_int32, SizeOut),
    "llm_token_is_end": (c.c_bool, Context, c.c_int32),
    "llm_token_bos": (c.c_int32, Context),
    "llm_token_eos": (c.c_int32, Context),
    "llm_eval": (STATUS, Context, Ids, c.c_size_t, c.c_bool, c.POINTER(Floats)),
    "llm_embed": (STATUS, Context, c.c_char_p, c.c_size_t, Floats),
    "llm_sequence": (Ids, Context, SizeOut),
    "llm_truncate": (STATUS, Context, c.c_size_t),
}


class Library:
    """The loaded library. A function that returns a status raises Error instead."""

    def __init__(self, dll: c.CDLL):
        version = self.version_of(dll)
        if version != __version__:
            raise ImportError(
                f"ggml_lite {__version__} does not fit the library {dll._name}, which is "
                f"{'another program' if version is None else 'version ' + version}; install the package of the same version"
            )
        self.path: str = dll._name
        for name, (result, *arguments) in FUNCTIONS.items():
            function = dll[name]  # dll[name] is a new object each time, so nothing is changed for others
            function.argtypes = arguments + ([c.POINTER(ErrorOut)] if result is STATUS else [])
            function.restype = c.c_int if result is STATUS else result
            setattr(self, name, self.checked(function) if result is STATUS else function)

    def __getattr__(self, name: str) -> Any:  # for type checkers; the functions are set above
        raise AttributeError(name)

    @staticmethod
    def version_of(dll: c.CDLL) -> Optional[str]:
        try:
            function, _ = dll["ggl_version"], dll["llm_open"]
        except AttributeError:
            return None
        function.restype = c.c_char_p
        version: bytes = function()
        return version.decode()

    @staticmethod
    def checked(function: Any) -> Any:
        def call(*arguments: Any) -> None:
            error = ErrorOut()
            status = function(*arguments, c.byref(error))
            if status != Status.OK:
                raise error_of(status, error.msg.decode("utf-8", "replace"))

        return call


_library: Optional[Library] = None


def library() -> Library:
    """The library, which is loaded at the first call."""
    global _library
    if _library is None:
        _library = Library(_find.load())
    return _library


def taken_bytes(lib: Library, text: c.c_void_p, n: c.c_size_t) -> bytes:
    """Copies n bytes that the library allocated, and frees them."""
    try:
        return c.string_at(text.value, n.value) if text.value else b""
    finally:
        lib.ggl_free(text)


