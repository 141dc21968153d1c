"""A model for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, TypeVar, Union

from ._errors import Error, Status
from ._model import Messages, Model, Prompt, Tools
from ._options import Options
from ._results import Message, Part, Result, Score

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._model import Array

T = TypeVar("T")
END: Any = object()


class AsyncModel:
    """The calls of a Model that take long, for asyncio: they run in a thread. Tasks take turns. To cancel a task cancels what it generates.
    `model` is the Model, whose other members are quick, unless answer(), stream_answer() or batch() runs: they then wait, and so does the
    loop."""

    def __init__(self, model: Model):
        self.model = model
        self._thread = ThreadPoolExecutor(1, "ggml_lite")
        self._turn: Optional[asyncio.Lock] = None
        self._is_closed = False

    @classmethod
    async def open(cls, *arguments: Any, **more: Any) -> AsyncModel:
        """Opens a model without blocking the loop: the arguments are those of Model()."""
        return cls(await asyncio.get_running_loop().run_in_executor(None, lambda: Model(*arguments, **more)))

    async def generate(self, prompt: Prompt, **options: Unpack[Options]) -> str:
        return await self._call(lambda: self.model.generate(prompt, **options))

    async def chat(self, messages: Messages, **options: Any) -> str:
        return await self._call(lambda: self.model.chat(messages, **options))

    async def answer(
        self, messages: Messages, *, tools: Optional[Tools] = None, tool_choice: Union[str, Mapping[str, Any], None] = None, **options: Any
    ) -> Message:
        return await self._call(lambda: self.model.answer(messages, tools=tools, tool_choice=tool_choice, **options))

    async def batch(self, prompts: Iterable[Union[Prompt, Mapping[str, Any]]], **options: Unpack[Options]) -> List[Result]:
        return await self._call(lambda: self.model.batch(prompts, **options))

    async def logprobs(self, prompt: Prompt, continuation: Prompt) -> Score:
        return await self._call(lambda: self.model.logprobs(prompt, continuation))

    async def embed(self, text: Union[str, Sequence[str]]) -> Array:
        return await self._call(lambda: self.model.embed(text))

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncIterator[str]:
        return self._pieces(lambda: self.model.stream(prompt, **options))

    def stream_chat(self, messages: Messages, **options: Any) -> AsyncIterator[str]:
        return self._pieces(lambda: self.model.stream_chat(messages, **options))

    def stream_answer(self, messages: Messages, **options: Any) -> AsyncIterator[Part]:
        return self._pieces(lambda: self.model.stream_answer(messages, **options))

    async def close(self) -> None:
        """Frees the model, when the calls before this one have ended. Any number of calls is fine; others then raise Error."""
        async with self._lock():
            if self._is_closed:
                return
            try:
                await self._in_thread(self.model.close)
            finally:
                self._is_closed = True
                self._thread.shutdown()

    async def __aenter__(self) -> AsyncModel:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _lock(self) -> asyncio.Lock:  # made here, as before Python 3.10 it belongs to the loop that runs when it is made
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    async def _call(self, function: Callable[[], T]) -> T:
        async with self._lock():
            return await self._in_thread(function)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        """Whoever calls this has the turn, so what is cancelled is this function's call. A task may be cancelled again while it waits for
        that: it keeps the turn until the call has ended."""
        if self._is_closed:
            raise Error(Status.USAGE, "the model is closed")
        future = asyncio.get_running_loop().run_in_executor(self._thread, function)
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            while not future.done():
                self.model.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([future], timeout=0.02)
            future.exception()  # that it was cancelled; asyncio reports exceptions that nobody has read
            raise
        return future.result()

    async def _pieces(self, begin: Callable[[], Any]) -> AsyncIterator[T]:
        async with self._lock():
            stream: Iterator[T] = await self._in_thread(begin)
            try:
                while True:
                    piece = await self._in_thread(lambda: next(stream, END))
                    if piece is END:
                        return
                    yield piece
            finally:
                await self._in_thread(stream.close)  # type: ignore[attr-defined]
