"""Texts and answers as they are generated."""
from __future__ import annotations

import _thread
import codecs
import contextlib
import ctypes as c
import json
import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator, List, Optional, TypeVar

from . import _abi
from ._errors import Error
from ._notes import warn_of_notes
from ._results import Message, Part, Result, Run
from ._threads import this_thread

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
    results: Optional[List[Result]] = None  # of a Batch


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

    def __init__(self, model: Model, prompt: List[int], params: _abi.GenerateParams):
        known = Known()
        super().__init__(self._read(known, model, prompt, params), known)

    @staticmethod
    def _read(known: Known, model: Model, prompt: List[int], params: _abi.GenerateParams) -> Generator[str, None, None]:
        text_of = decoder()
        with model._own_turn():
            try:
                model._begin(prompt, params)
                piece: Optional[bytes] = None if params.is_empty else b""
                while piece is not None:
                    piece = model._next()
                    text = text_of.decode(piece or b"", piece is None)
                    if text:
                        yield text
                        model._turn_thread = this_thread()  # a stream moves with its reader
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
                model._turn_thread = this_thread()
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
        warn_of_notes(params)
        known.message = Message(whole[0])
        known.message.run = known.run
