"""Texts and answers as they are generated."""
from __future__ import annotations

import _thread
import codecs
import contextlib
import ctypes as c
import json
import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator, List, Optional, Tuple, TypeVar

from . import _abi
from ._errors import Error, error_of
from ._results import Message, Part, Result, Run, run_of

if TYPE_CHECKING:
    from ._model import Model

T = TypeVar("T")
Self = TypeVar("Self", bound="Pieces[Any]")
KINDS = ("content", "reasoning")  # as llm_part


def decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


class Known:
    """What is known of a stream."""

    run: Optional[Run] = None
    message: Optional[Message] = None
    results: Optional[List[Result]] = None


class Pieces(Iterator[T]):
    """What a model generates, piece by piece. The model is occupied from the first piece on until the stream ends or is closed: by close(),
    at the end of a `with` block, or when nothing refers to it any more."""

    def __init__(self, pieces: Generator[T, None, None], known: Known):
        self._pieces = pieces  # which does not refer to this object, so that this one is freed, and so closed, when it is not used any more
        self._known = known

    @property
    def run(self) -> Optional[Run]:
        """What it did, once it has ended or was closed."""
        return self._known.run

    def __iter__(self: Self) -> Self:
        return self

    def __next__(self) -> T:
        return next(self._pieces)

    def close(self) -> None:
        """Ends the generation; what the model has read and written stays in its context. Any number of calls is fine."""
        self._pieces.close()

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Stream(Pieces[str]):
    """Pieces of a text, each of whole characters, as the model writes them."""

    def __init__(self, model: Model, prompt: List[int], params: _abi.GenerateParams, is_answer: bool = False):
        known = Known()
        super().__init__(self._read(known, model, prompt, params, is_answer), known)

    @staticmethod
    def _read(known: Known, model: Model, prompt: List[int], params: _abi.GenerateParams, at_beginning: bool) -> Generator[str, None, None]:
        text_of = decoder()
        with model._own_turn():
            try:
                model._begin(prompt, params)
                piece: Optional[bytes] = None if params.is_empty else b""
                while piece is not None:
                    piece = model._next()
                    text = text_of.decode(piece or b"", piece is None)
                    if at_beginning:  # of an answer, whose first word may be a token with a space
                        text = text.lstrip(" \n\r\t")
                    if text:
                        at_beginning = False
                        yield text
                        model._turn_thread = threading.get_ident()  # a stream moves with its reader
            finally:
                with contextlib.suppress(Error):  # the model may be closed
                    known.run = model._note_run("length" if params.is_empty else None)


def in_another_thread(model: Model, function: Callable[[int, Callable[[T], bool]], None]) -> Generator[T, None, None]:
    """Yields what function(handle, give) passes to give() while it runs. give() returns False when nobody wants more."""
    given: queue.SimpleQueue[Optional[T]] = queue.SimpleQueue()  # None: the function has ended
    unwanted: List[bool] = []
    failed: List[BaseException] = []

    def give(item: T) -> bool:
        given.put(item)
        return not unwanted

    def run() -> None:
        try:
            with model._call() as handle:
                function(handle, give)
        except BaseException as error:
            failed.append(error)
        finally:
            given.put(None)

    with model._own_turn():
        worker = _thread.start_new_thread(run, ())
        has_ended = False
        try:
            while True:
                item = given.get()
                if item is None:
                    has_ended = True
                    break
                yield item
                model._turn_thread = threading.get_ident()
        finally:
            unwanted.append(True)
            while not has_ended and threading.get_ident() != worker:  # garbage may be collected in that thread, too
                model.cancel()
                with contextlib.suppress(queue.Empty):
                    has_ended = given.get(timeout=0.02) is None
        if failed:
            raise failed[0]


class Answer(Pieces[Part]):
    """Parts of an answer, as the model writes them."""

    def __init__(self, model: Model, conversation: bytes, params: _abi.GenerateParams):
        known = Known()
        super().__init__(self._read(known, model, conversation, params), known)

    @property
    def message(self) -> Optional[Message]:
        """The whole answer, once it has ended."""
        return self._known.message

    @staticmethod
    def _read(known: Known, model: Model, conversation: bytes, params: _abi.GenerateParams) -> Generator[Part, None, None]:
        text_of = [decoder() for _ in KINDS]

        def answer(handle: int, give: Callable[[Part], bool]) -> None:
            def each(_user: object, kind: int, piece: int, n: int) -> bool:
                text = text_of[kind].decode(c.string_at(piece, n))
                return give(Part(KINDS[kind], text))

            text, n = c.c_void_p(), c.c_size_t()
            model._lib.llm_chat_answer(handle, conversation, c.byref(params), _abi.PartFn(each), None, c.byref(text), c.byref(n))
            whole.append(json.loads(_abi.taken_bytes(model._lib, text, n).decode("utf-8", "replace")))

        whole: List[Any] = []
        try:
            yield from in_another_thread(model, answer)
        finally:
            with contextlib.suppress(Error):
                known.run = model._note_run()
        known.message = Message(whole[0])
        known.message.run = known.run


class Batch(Pieces[Tuple[int, str]]):
    """Pieces of many texts, as the model writes them: the number of a prompt, and a piece of its text."""

    def __init__(self, model: Model, prompts: List[List[int]], params: List[_abi.GenerateParams]):
        known = Known()
        super().__init__(self._read(known, model, prompts, params), known)

    @property
    def results(self) -> Optional[List[Result]]:
        """The texts, once all have ended. What each did is in its `run`; that of the stream is None."""
        return self._known.results

    @staticmethod
    def _read(
        known: Known, model: Model, prompts: List[List[int]], params: List[_abi.GenerateParams]
    ) -> Generator[Tuple[int, str], None, None]:
        jobs = (_abi.Job * len(prompts))()
        texts: List[List[str]] = [[] for _ in prompts]
        text_of = [decoder() for _ in prompts]

        def generate(handle: int, give: Callable[[Tuple[int, str]], bool]) -> None:
            def take(k: int, text: str) -> bool:
                texts[k].append(text)
                return give((k, text)) if text else True

            def each_of(k: int) -> Any:
                return _abi.PieceFn(lambda _user, piece, n: take(k, text_of[k].decode(c.string_at(piece, n))))

            given = []  # what the jobs point to
            for k, (job, ids) in enumerate(zip(jobs, prompts)):
                given.append(((c.c_int32 * len(ids))(*ids), c.pointer(params[k]), each_of(k)))
                job.n = len(ids)
                job.id, job.params, job.each = given[k]
            model._lib.llm_generate_jobs(handle, jobs, len(jobs))
            for k in range(len(prompts)):
                take(k, text_of[k].decode(b"", True))

        yield from in_another_thread(model, generate)
        known.results = [
            Result("".join(text), run_of(job), error_of(job.err.status, job.err.msg.decode("utf-8", "replace")) if job.err.status else None)
            for text, job in zip(texts, jobs)
        ]
