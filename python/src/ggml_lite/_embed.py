"""Vectors of texts, and the scores of rerankers."""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterable, List, Optional, Sequence, Tuple, Union

from . import _abi
from ._errors import Error, Status
from ._handle import Handle
from ._options import elements, flag, text_bytes, whole
from ._results import Ranked

if TYPE_CHECKING:
    from types import ModuleType

    import numpy
    import numpy.typing

    Array = numpy.typing.NDArray[numpy.float32]
    Vectors = Union[Array, List[Array]]


def numpy_for(what: str) -> ModuleType:
    try:
        import numpy
    except ImportError as error:
        raise ImportError(f"{what} returns a numpy array, and numpy is not installed: pip install numpy") from error
    return numpy


def _given(name: str, texts: Iterable[str]) -> Tuple[Any, Any, int]:
    """Texts for the library, their bytes, and how many they are."""
    data = []
    for k, one in enumerate(texts):
        if not isinstance(one, str):
            raise TypeError(f"{name}[{k}] is {type(one).__name__}, not a str")
        data.append(one.encode("utf-8"))
    return (c.c_char_p * len(data))(*data), (c.c_size_t * len(data))(*map(len, data)), len(data)


class Embeds(Handle):
    """The calls of a Model that make vectors and scores of texts."""

    if TYPE_CHECKING:
        _n_embd: int
        _own_turn: Callable[[], ContextManager[None]]

    @property
    def pooling(self) -> str:
        """How embed() makes one vector of a text: "mean", "last", "cls", "none" (a vector for each token) or "rank" (scores)."""
        with self._call() as handle:
            name: bytes = self._lib.llm_context_facts(handle).contents.pooling
            return name.decode()

    def embed(
        self,
        text: Union[str, Sequence[str]],
        *,
        normalize: bool = True,  # False: vectors as the model computes them
        dimensions: Optional[int] = None,  # only the first numbers of each vector, which then gets length 1
        prompt_name: Optional[str] = None,  # which of the model's prompts comes before the texts: "query", "document"; None: the default one
        task: Optional[str] = None,  # the adapter for this task (adapters=), such as "retrieval.query", with its prompt; None: that of prompt_name
        truncate: bool = False,  # cut texts of more than n_ctx tokens; else they are an error that says which text it is, before any is computed
        parse_special: bool = True,  # what looks like a special token in a text, such as "[SEP]", is that token, as for sentence-transformers
    ) -> Vectors:
        """The vector [n_embd], of length 1, that stands for a text; of a list of texts: [n_texts, n_embd]. With the pooling "none" it is
        [n_tokens, n_embd], and a list of such arrays; with "rank" it has the scores of a classifier's labels. The model must be opened with
        embeddings=True. numpy is needed."""
        np = numpy_for("embed()")
        pooling = self.pooling
        if self._n_embd == 0 and pooling != "rank":
            raise Error(Status.UNSUPPORTED, "the model was opened without embeddings: Model(.., embeddings=True)")
        try:
            before = self._prompt(prompt_name if task is None else task)
        except Error as error:
            if task is None or error.status != Status.NOT_FOUND:
                raise
            before = b""  # llm_embed_texts says which tasks there are
        data, sizes, n = _given("texts", [text] if isinstance(text, (str, bytes)) else elements("text", text, "a str or a list of str"))
        rows: List[Any] = []
        raised: List[BaseException] = []

        def take(_user: Optional[int], _k: int, n_rows: int, row: Any, n: int) -> bool:
            try:
                rows.append(np.empty((n_rows, n), np.float32))
                c.memmove(rows[-1].ctypes.data, row, rows[-1].nbytes)
            except BaseException as error:
                raised.append(error)
            return not raised

        p = _abi.EmbedParams(
            size=c.sizeof(_abi.EmbedParams),
            no_normalize=not flag("normalize", normalize),
            n_dims=0 if dimensions is None else whole("dimensions", dimensions, 1, 32),
            each=_abi.RowsFn(take),
            task=self._task(prompt_name, task),
            query=prompt_name == "query",
            truncate=flag("truncate", truncate),
            no_parse_special=not flag("parse_special", parse_special),
            prompt=before,
            n_prompt=len(before),
        )
        try:
            with self._own_turn():
                self._wait(lambda handle: self._lib.llm_embed_texts(handle, data, sizes, n, c.byref(p)))
        except Error:
            if raised:
                raise raised[0] from None
            raise
        if pooling == "none":
            return rows[0] if isinstance(text, str) else rows
        vectors: Array = np.concatenate(rows) if rows else np.empty((0, p.n_dims or self._n_embd), np.float32)
        first: Array = vectors[:1].reshape(-1)
        return first if isinstance(text, str) else vectors

    def rerank(self, query: str, documents: Sequence[str], *, top_n: Optional[int] = None, truncate: bool = False) -> List[Ranked]:
        """How well each document answers a query, by a reranker: pairs of the document's index and its score, the best first; top_n: only so
        many; truncate: cut the end of documents that do not fit into n_ctx tokens with the query, else they are an error. Scores are as the model computes them, so that only their order says something. Documents with the same score stay in their order."""
        most = None if top_n is None else whole("top_n", top_n, 1, 32)
        cuts = flag("truncate", truncate)
        data, sizes, n = _given("documents", elements("documents", documents, "a list of str"))
        asked = text_bytes("query", query)
        score = (c.c_float * max(n, 1))()
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_rerank(handle, asked, len(asked), data, sizes, n, cuts, score))
        best = sorted(range(n), key=lambda k: -score[k])
        return [Ranked(k, score[k]) for k in best[:most]]

    def _task(self, prompt_name: Optional[str], task: Optional[str]) -> Optional[bytes]:
        """Of which task the adapter counts: a prompt's name need not be that of one."""
        if task is not None:
            return text_bytes("task", task)
        name = None if prompt_name is None else text_bytes("prompt_name", prompt_name)
        with self._call() as handle:
            return name if name and self._lib.llm_find_task(handle, name) > 0 else None

    def _prompt(self, name: Optional[str]) -> bytes:
        """What the model expects before a text."""
        asked = None if name is None else text_bytes("prompt_name", name)
        text, n = c.c_void_p(), c.c_size_t()
        with self._call() as handle:
            self._lib.llm_embed_prompt(handle, asked, c.byref(text), c.byref(n))
        return _abi.taken_bytes(self._lib, text, n)
