"""Text as it is generated."""
from __future__ import annotations

import codecs
import contextlib
import ctypes as c
import threading
from typing import TYPE_CHECKING, Any, Generator, Iterator, List, NamedTuple, Optional

from ._abi import GenerateParams, RunInfo
from ._errors import Error

if TYPE_CHECKING:
    from ._model import Model

FINISH = ("none", "end", "stop", "length", "context", "cancelled", "error")  # as llm_finish


class Run(NamedTuple):
    """What a generation did."""

    finish: str  # "end", "stop", "length", "context" (it is full), "cancelled", "error"; "none": the stream was closed before its end
    stop: Optional[int]  # the index of the stop string that ended the text
    n_reused: int  # tokens of the prompt that the model had read already
    n_prompt: int  # tokens of the prompt that it has read now
    n_generated: int  # the token that ends a text is not counted


def empty_info() -> RunInfo:
    return RunInfo(size=c.sizeof(RunInfo), stop=-1)


def run_of(info: RunInfo) -> Run:
    finish = FINISH[info.finish] if 0 <= info.finish < len(FINISH) else "error"
    return Run(finish, info.stop if info.stop >= 0 else None, info.n_reused, info.n_prompt, info.n_generated)


class Stream(Iterator[str]):
    """Pieces of a text, each of whole characters, as the model writes them. The model is occupied from the first piece on until the stream
    ends or is closed: by close(), at the end of a `with` block, or when nothing refers to it any more."""

    def __init__(self, model: Model, prompt: List[int], params: GenerateParams, is_answer: bool = False):
        self.run: Optional[Run] = None  # what it did, once it has ended or was closed
        self._pieces = self._read(model, prompt, params, is_answer)

    def _read(self, model: Model, prompt: List[int], params: GenerateParams, at_beginning: bool) -> Generator[str, None, None]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with model._own_turn():
            try:
                model._begin(prompt, params)
                piece: Optional[bytes] = b""
                while piece is not None:
                    piece = model._next()
                    text = decoder.decode(piece or b"", piece is None)
                    if at_beginning:  # of an answer, whose first word may be a token with a space
                        text = text.lstrip(" \n\r\t")
                    if text:
                        at_beginning = False
                        yield text
                        model._turn_thread = threading.get_ident()  # a stream moves with its reader
            finally:
                with contextlib.suppress(Error):  # the model may be closed
                    self.run = model._note_run()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Ends the generation; what the model has read and written stays in its context. Any number of calls is fine."""
        self._pieces.close()

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("a Stream cannot be copied or pickled")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
