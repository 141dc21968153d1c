"""Measuring: perplexity, importance matrices, and whether a device computes a model right."""
from __future__ import annotations

import ctypes as c
import operator
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterable, List, Optional, Sequence, SupportsIndex

from . import _abi
from ._open_params import Path
from ._opening import file_bytes
from ._options import flag, text_bytes, whole
from ._results import Imatrix, Node, Perplexity, Verified


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, c.Array) else value


def _text(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "replace")


class Measures:
    """The calls of a Model that measure it."""

    if TYPE_CHECKING:
        _lib: _abi.Library
        _own_turn: Callable[[], ContextManager[None]]
        _wait: Callable[[Callable[[int], object]], None]

    def perplexity(
        self,
        text: Optional[str] = None,
        *,
        n_window: int = 0,  # tokens that the model sees at once; 0: 512, or the context if that is smaller
        n_chunks: int = 0,  # most windows; 0: all
        save: Optional[Path] = None,  # a file for the log-probabilities
        base: Optional[Path] = None,  # such a file, of another model, with which this one is compared on its text
    ) -> Perplexity:
        """How well the model predicts a text, of which the second half of each window is scored. Empties the context."""
        data = None if text is None else text.encode("utf-8")
        p = _abi.PerplexityParams(
            size=c.sizeof(_abi.PerplexityParams),
            n_window=whole("n_window", n_window, 0, 64),
            n_chunks=whole("n_chunks", n_chunks, 0, 64),
            save=None if save is None else file_bytes("save", save),
            base=None if base is None else file_bytes("base", base),
        )
        r = _abi.PerplexityResult(size=c.sizeof(_abi.PerplexityResult))
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_perplexity(handle, data, len(data or b""), c.byref(p), c.byref(r)))
        return Perplexity(*(_plain(getattr(r, name)) for name in Perplexity._fields))

    def imatrix(
        self,
        path: Path,
        text: Optional[str] = None,
        *,
        n_window: int = 0,  # tokens that the model sees at once; 0: 512, or what the model was trained on if that is less
        first_chunk: int = 0,  # leave out the first windows
        n_chunks: int = 0,  # most windows; 0: all, or 16384 tokens of the model's own text
        add: Sequence[Path] = (),  # files that were made before, whose sums are added
        name: Optional[str] = None,  # of the text, for the file
        output: bool = False,  # also for the product that makes the logits
        n_directions: Optional[int] = None,  # numbers for each column that tell which columns vary together; None: 32
        perplexity: bool = True,  # also of the text
        read_special: bool = False,  # names of special tokens in the text stand for these
    ) -> Imatrix:
        """Collects over a text how large the inputs of each weight's columns are, and writes that to a file, for llm-quantize. text None: the model
        writes one by itself. The context stays."""
        data = None if text is None else text.encode("utf-8")
        directions = 0 if n_directions is None else whole("n_directions", n_directions, 0, 32) or -1
        p = _abi.ImatrixParams(
            size=c.sizeof(_abi.ImatrixParams),
            n_window=whole("n_window", n_window, 0, 64),
            first_chunk=whole("first_chunk", first_chunk, 0, 64),
            n_chunks=whole("n_chunks", n_chunks, 0, 64),
            read_special=flag("read_special", read_special),
            output=flag("output", output),
            n_directions=directions,
            no_perplexity=not flag("perplexity", perplexity),
            name=None if name is None else text_bytes("name", name),
        )
        out, others = file_bytes("path", path), [file_bytes("a file of add", file) for file in add]
        r, matrix = _abi.ImatrixResult(size=c.sizeof(_abi.ImatrixResult)), c.c_void_p()
        self._lib.llm_imatrix_begin(c.byref(matrix))
        try:
            for file in others:
                self._lib.llm_imatrix_read(matrix, file, 0, None)
            with self._own_turn():
                self._wait(lambda handle: self._lib.llm_imatrix_run(matrix, handle, data, len(data or b""), c.byref(p), c.byref(r)))
            self._lib.llm_imatrix_save(matrix, out)
            n_all = self._lib.llm_imatrix_windows(matrix)
        finally:
            self._lib.llm_imatrix_end(matrix)
        return Imatrix(r.n_window, r.n_chunks, n_all, r.n_scored, r.ppl, r.ppl_error, r.n_missed)

    def verify(self, device: Optional[str] = None, tokens: Optional[Iterable[SupportsIndex]] = None, *, n_threads: int = 0) -> Verified:
        """Compares a device (None: the CPU) with double precision, node by node, for these tokens (None: 8 fixed ones). It is slow."""
        ids = _abi.array([operator.index(t) for t in tokens]) if tokens is not None else None
        nodes: List[Node] = []

        def on_node(_user: Optional[int], at: int) -> None:
            n = _abi.VerifyNode.from_address(at)
            nodes.append(Node(_text(n.text), _text(n.origin), _text(n.what), n.departure, n.token, n.element, n.got, n.want))

        p = _abi.VerifyParams(
            size=c.sizeof(_abi.VerifyParams),
            device=None if device is None else text_bytes("device", device),
            n_threads=whole("n_threads", n_threads, 0, 32),
            id=ids,
            n=len(ids) if ids is not None else 0,
            each=_abi.NodeFn(on_node),
        )
        r = _abi.VerifyResult(size=c.sizeof(_abi.VerifyResult))
        self._wait(lambda handle: self._lib.llm_verify(handle, c.byref(p), c.byref(r)))
        return Verified(nodes, *(getattr(r, name) for name in Verified._fields[1:]))
