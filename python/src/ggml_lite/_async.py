"""A model for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, SupportsIndex, Tuple, TypeVar, Union

from ._errors import Cancelled, Error, Status
from ._jobs import Job, Jobs
from ._model import Messages, Model, Prompt, Tools
from ._open_params import Path
from ._options import Options
from ._results import Choice, Imatrix, Message, Part, Perplexity, Piece, Ranked, Result, Score, Verified
from ._stream import Pieces

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._embed import Vectors

T = TypeVar("T")
END: Any = object()


class Text:
    """A text that runs beside others."""

    def __init__(self, begin: Callable[[Jobs], Job], is_stream: bool):
        self.begin = begin
        self.is_stream = is_stream  # close() ends it
        self.given: asyncio.Queue[Union[str, BaseException]] = asyncio.Queue()  # pieces, at last END or why it failed
        self.has_ended = asyncio.Event()
        self.is_unwanted = False

    def end(self, why: Union[str, BaseException]) -> None:
        self.given.put_nowait(why)
        self.has_ended.set()


class Turn:
    """That of a stream, from its begin to its end."""

    stream: Optional[Pieces[Any]] = None
    reader: Optional[asyncio.Task[Any]] = None  # the task that has read it last
    is_over = False


Given = Tuple[Text, Union[str, BaseException]]  # a piece of a text; at last END, or why it failed


class AsyncModel:
    """The calls of a Model that take long, for asyncio: they run in a thread. Tasks take turns; but if the model was opened with n_parallel,
    generate(), chat(), stream() and stream_chat() of several tasks run at the same time. To cancel a task cancels what it generates. `model` is
    the Model, whose other members are quick, unless answer() or stream_answer() runs: they then wait, and so does the loop."""

    def __init__(self, model: Model):
        self.model = model
        self._thread = ThreadPoolExecutor(1, "ggml_lite")
        self._turn: Optional[asyncio.Lock] = None
        self._n_waiting = 0  # calls that wait for the turn
        self._texts: List[Text] = []  # that wait to be begun beside others
        self._runner: Optional[asyncio.Future[None]] = None  # of texts that run beside others
        self._streaming: Optional[Turn] = None  # of a stream that runs alone
        self._is_closing = False
        self._is_closed = False

    @classmethod
    async def open(cls, *arguments: Any, **more: Any) -> AsyncModel:
        """Opens a model without blocking the loop: the arguments are those of Model()."""
        return cls(await asyncio.get_running_loop().run_in_executor(None, lambda: Model(*arguments, **more)))

    async def generate(self, prompt: Prompt, **options: Unpack[Options]) -> str:
        if self._runs_alone(options):
            return await self._call(lambda: self.model.generate(prompt, **options))
        return "".join([piece async for piece in self._text(lambda jobs: jobs.add(prompt, **options), is_stream=False)])

    async def chat(
        self, messages: Messages, *, tools: Optional[Tools] = None, variables: Optional[Mapping[str, Any]] = None, **options: Unpack[Options]
    ) -> str:
        if self._runs_alone(options):
            return await self._call(lambda: self.model.chat(messages, tools=tools, variables=variables, **options))
        begin = self._begin_chat(messages, tools, variables, options)
        return "".join([piece async for piece in self._text(begin, is_stream=False)])

    async def answer(
        self, messages: Messages, *, tools: Optional[Tools] = None, tool_choice: Union[str, Mapping[str, Any], None] = None, **options: Any
    ) -> Message:
        return await self._call(lambda: self.model.answer(messages, tools=tools, tool_choice=tool_choice, **options))

    async def batch(self, prompts: Iterable[Union[Prompt, Mapping[str, Any]]], **options: Unpack[Options]) -> List[Result]:
        return await self._call(lambda: self.model.batch(prompts, **options))

    async def logprobs(self, prompt: Prompt, continuation: Prompt) -> Score:
        return await self._call(lambda: self.model.logprobs(prompt, continuation))

    async def choose(self, prompt: Union[str, Messages], labels: Iterable[str], **options: Any) -> List[Choice]:
        return await self._call(lambda: self.model.choose(prompt, labels, **options))

    async def perplexity(self, text: Optional[str] = None, **options: Any) -> Perplexity:
        return await self._call(lambda: self.model.perplexity(text, **options))

    async def imatrix(self, path: Path, text: Optional[str] = None, **options: Any) -> Imatrix:
        return await self._call(lambda: self.model.imatrix(path, text, **options))

    async def verify(self, device: Optional[str] = None, tokens: Optional[Iterable[SupportsIndex]] = None, **options: Any) -> Verified:
        return await self._call(lambda: self.model.verify(device, tokens, **options))

    async def embed(self, text: Union[str, Sequence[str]], **options: Any) -> Vectors:
        return await self._call(lambda: self.model.embed(text, **options))

    async def transcribe(self, sound: Union[Path, bytes], **options: Any) -> List[Piece]:
        return await self._call(lambda: self.model.transcribe(sound, **options))

    async def rerank(self, query: str, documents: Sequence[str], **options: Any) -> List[Ranked]:
        return await self._call(lambda: self.model.rerank(query, documents, **options))

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncIterator[str]:
        if self._runs_alone(options):
            return self._pieces(lambda: self.model.stream(prompt, **options))
        return self._text(lambda jobs: jobs.add(prompt, **options))

    def stream_chat(
        self, messages: Messages, *, tools: Optional[Tools] = None, variables: Optional[Mapping[str, Any]] = None, **options: Unpack[Options]
    ) -> AsyncIterator[str]:
        if self._runs_alone(options):
            return self._pieces(lambda: self.model.stream_chat(messages, tools=tools, variables=variables, **options))
        return self._text(self._begin_chat(messages, tools, variables, options))

    def stream_answer(self, messages: Messages, **options: Any) -> AsyncIterator[Part]:
        return self._pieces(lambda: self.model.stream_answer(messages, **options))

    async def close(self) -> None:
        """Frees the model, when the calls before this one have ended. It ends streams. Any number of calls is fine; others then raise Error."""
        self._is_closing = True
        turn = self._streaming
        if turn is not None and turn.stream is not None and not turn.is_over:
            await self._in_thread(turn.stream.close)
            self._end(turn)
        async with self._alone():
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

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """The turn of a call that runs alone."""
        await self._take_turn()
        try:
            yield
        finally:
            self._lock().release()

    async def _take_turn(self) -> None:
        """Waits until what others have begun has ended. Meanwhile no further texts join those that run."""
        self._refuse_own_stream()
        self._n_waiting += 1
        try:
            await self._lock().acquire()
        finally:
            self._n_waiting -= 1

    def _refuse_own_stream(self) -> None:
        """Raises Error if this task would wait for itself."""
        if self._streaming is not None and self._streaming.reader is asyncio.current_task():
            raise Error(
                Status.USAGE, "this task has begun a stream of the model that has not ended: read it to its end, or close it by aclose(), before the next call"
            )

    def _end(self, turn: Turn) -> None:
        if not turn.is_over:
            turn.is_over = True
            self._streaming = None
            self._lock().release()

    async def _call(self, function: Callable[[], T]) -> T:
        async with self._alone():
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

    async def _pieces(self, begin: Callable[[], Pieces[T]]) -> AsyncIterator[T]:
        await self._take_turn()
        turn = self._streaming = Turn()
        try:
            turn.reader = asyncio.current_task()
            stream = await self._in_thread(begin)
            turn.stream = stream
            while True:
                self._refuse_closed()
                turn.reader = asyncio.current_task()
                piece: T = await self._in_thread(lambda: next(stream, END))
                if piece is END:
                    return
                yield piece
        finally:
            if not turn.is_over:
                try:
                    if turn.stream is not None:
                        await self._in_thread(turn.stream.close)
                finally:
                    self._end(turn)

    def _refuse_closed(self) -> None:
        if self._is_closing:
            raise Error(Status.USAGE, "the model is closed")

    # --- texts that run at the same time ------------------------------------------------------------

    def _begin_chat(
        self, messages: Messages, tools: Optional[Tools], variables: Optional[Mapping[str, Any]], options: Any
    ) -> Callable[[Jobs], Job]:
        def begin(jobs: Jobs) -> Job:
            prompt = self.model.format_chat(messages, tools=tools, variables=variables)
            return jobs.add(self.model.tokenize(prompt, add_special=False), **options)

        return begin

    def _runs_alone(self, options: Mapping[str, Any]) -> bool:
        return self.model._n_parallel == 1 or options.get("max_tokens") == 0

    async def _text(self, begin: Callable[[Jobs], Job], is_stream: bool = True) -> AsyncIterator[str]:
        self._refuse_own_stream()
        text = Text(begin, is_stream)
        self._texts.append(text)
        if self._runner is None:
            self._runner = asyncio.ensure_future(self._run_texts())
        try:
            while True:
                piece = await text.given.get()
                if isinstance(piece, BaseException):
                    raise piece
                if piece is END:
                    return
                if piece:
                    yield piece
        finally:
            text.is_unwanted = True
            if text in self._texts:  # it has not begun
                self._texts.remove(text)
                text.has_ended.set()
            cancelled: Optional[asyncio.CancelledError] = None
            while not text.has_ended.is_set():  # a task may be cancelled again while it waits for that
                try:
                    await text.has_ended.wait()
                except asyncio.CancelledError as error:
                    cancelled = error
            if cancelled is not None:
                raise cancelled

    async def _run_texts(self) -> None:
        """Runs the texts of all tasks, until there are none. A call that waits for the turn gets it when those that run have ended."""
        running: Dict[Job, Text] = {}
        given: List[Given] = []
        try:
            while self._texts:
                async with self._lock():
                    await self._run_together(running, given)
        except BaseException as error:
            why = error if isinstance(error, Error) else Error(Status.CANCELLED, "the loop that ran the model has ended")
            given += [(text, why) for text in [*running.values(), *self._texts]]
            self._texts = []
            self._deliver(given)
            if not isinstance(error, Error):
                raise
        finally:
            self._runner = None

    async def _run_together(self, running: Dict[Job, Text], given: List[Given]) -> None:
        jobs = await self._in_thread(self.model.jobs().__enter__)
        joins = True  # at least those that wait now run
        try:
            while running or (self._texts and joins):
                new: List[Text] = []
                if joins:
                    new, self._texts = self._texts, new
                await self._in_thread(functools.partial(self._step, jobs, running, new, given))
                self._deliver(given)
                joins = self._n_waiting == 0
        finally:
            await self._in_thread(jobs.close)

    @staticmethod
    def _deliver(given: List[Given]) -> None:
        for text, item in given:
            if isinstance(item, str):
                text.given.put_nowait(item)
            else:
                text.end(item)
        given.clear()

    def _step(self, jobs: Jobs, running: Dict[Job, Text], new: List[Text], given: List[Given]) -> None:
        """Begins and ends texts, and runs the model once."""
        for job, text in list(running.items()):
            if text.is_unwanted or (text.is_stream and self._is_closing):
                jobs.cancel(job)
                given.append((text, Error(Status.USAGE, "the model is closed")))
                del running[job]
        for text in new:
            try:
                if text.is_stream:
                    self._refuse_closed()
                if text.is_unwanted:
                    given.append((text, END))
                else:
                    running[text.begin(jobs)] = text
            except BaseException as error:
                given.append((text, error))
        with contextlib.suppress(Cancelled):  # all have ended, and have this error
            given += [(running[job], piece) for job, piece in jobs.step()]
        for job, text in list(running.items()):
            if job.run is not None:
                given.append((text, job.error or END))
                del running[job]
