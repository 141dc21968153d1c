"""Many texts at once."""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Generator, List, Optional, Tuple, Union

from . import _abi
from ._errors import Error, error_of
from ._notes import warn_of_notes
from ._results import FINISH, Result, Run, run_of
from ._stream import Known, Pieces, decoder
from ._threads import this_thread

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._model import Model, Prompt
    from ._options import Options


class Job:
    """One text of Jobs. `run` and `error` are None until it has ended."""

    def __init__(self, prompt: Union[bytes, List[int]], params: _abi.GenerateParams):
        self.text = ""
        self.run: Optional[Run] = None
        self.error: Optional[Error] = None  # why it failed, which ends no other text; None: it did not
        self._new: List[bytes] = []  # what the model wrote in this step
        self._decoder = decoder()
        ids = [] if isinstance(prompt, bytes) else prompt
        self._prompt = prompt if isinstance(prompt, bytes) else None
        self._ids = _abi.array(ids) if self._prompt is None else None
        self._params = params
        new = self._new  # so that the callback does not refer to this object

        def take(_user: object, piece: int, n: int) -> bool:
            new.append(c.string_at(piece, n))
            return True

        self._each = _abi.PieceFn(take)
        self._job = _abi.Job(prompt=self._prompt, id=self._ids, n=len(ids), params=c.pointer(params), each=self._each)

    def _take(self) -> str:
        """Returns what is new in the text, and notes its end."""
        has_ended = FINISH[self._job.finish] != "none"
        text = self._decoder.decode(b"".join(self._new), has_ended)
        self._new.clear()
        self.text += text
        if has_ended and self.run is None:
            self.run = run_of(self._job)
            if self._job.err.status:
                self.error = error_of(self._job.err.status, self._job.err.msg.decode("utf-8", "replace"))
        return text

    @property
    def result(self) -> Optional[Result]:
        """The text, its run and its error, once it has ended."""
        return None if self.run is None else Result(self.text, self.run, self.error)


class Jobs:
    """Texts that run at the same time, n_parallel (of Model) of them; others wait. They can be added at any time, and each is the text that
    generate() returns. The model is occupied until the end of the `with` block or close(), which ends the texts that are left. One thread
    uses it."""

    def __init__(self, model: Model):
        self._model = model
        # Those that have not ended, in their order. They belong to the model, as the library writes into them until it has closed it.
        self._left = model._jobs
        self._turn = model._own_turn()
        self._is_open = False

    def __enter__(self) -> Jobs:
        if self._is_open:
            raise TypeError("these Jobs have begun already")
        self._turn.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of texts that have not ended."""
        return len(self._left)

    def add(self, prompt: Prompt, **options: Unpack[Options]) -> Job:
        """Adds a text, with the options of generate(). An Error, such as that of a prompt that is too long, is raised."""
        self._refuse_closed()
        return self._add(Job(self._model._text_or_ids(prompt), self._model._params_with_text(options)))

    def step(self) -> List[Tuple[Job, str]]:
        """Runs the model once, which gives each text that runs at most a few tokens, and returns the new pieces. A text that has ended has a
        `run`. After cancel() from another thread, Cancelled is raised, and all texts have ended."""
        self._refuse_closed()
        n = c.c_size_t()
        try:
            self._model._wait(lambda handle: self._model._lib.llm_jobs_step(handle, c.byref(n)))
        finally:
            given = [(job, job._take()) for job in self._left]
            for job, _ in given:
                if job.run is not None:
                    del self._left[job]
        return [(job, text) for job, text in given if text]

    def cancel(self, job: Job) -> None:
        """Ends a text; its run's `finish` is then "cancelled". One that has ended is left as it is."""
        self._refuse_closed()
        if job in self._left:
            self._model._wait(lambda handle: self._model._lib.llm_jobs_end(handle, c.byref(job._job)))
            job._take()
            del self._left[job]

    def close(self) -> None:
        """Ends all texts. Any number of calls is fine."""
        if not self._is_open:
            return
        try:
            for job in list(self._left):
                self.cancel(job)
        except Error:
            pass  # the model was closed, and its texts have ended
        finally:
            self._is_open = False
            self._left.clear()
            self._turn.__exit__(None, None, None)

    def _refuse_closed(self) -> None:
        if not self._is_open:
            raise TypeError("Jobs are used in a `with` block")

    def _add(self, job: Job) -> Job:
        self._left[job] = None  # before the library has it, so that what a signal's handler raises cannot lose it
        try:
            with self._model._call() as handle:
                self._model._lib.llm_jobs_add(handle, c.byref(job._job))
            warn_of_notes(job._params)
        except Error:
            del self._left[job]  # it was not added
            raise
        except BaseException:
            self.cancel(job)
            raise
        return job


class Batch(Pieces[Tuple[int, str]]):
    """Pieces of many texts, as the model writes them: the number of a prompt, and a piece of its text."""

    def __init__(self, model: Model, prompts: List[Union[bytes, List[int]]], params: List[_abi.GenerateParams]):
        known = Known()
        super().__init__(self._read(known, model, prompts, params), known)

    @property
    def results(self) -> Optional[List[Result]]:
        """The texts, once all have ended. What each did is in its `run`; that of the stream is None."""
        return self._known.results

    @staticmethod
    def _read(
        known: Known, model: Model, prompts: List[Union[bytes, List[int]]], params: List[_abi.GenerateParams]
    ) -> Generator[Tuple[int, str], None, None]:
        all_jobs = [Job(*of) for of in zip(prompts, params)]
        number = {job: k for k, job in enumerate(all_jobs)}
        waiting = list(reversed(all_jobs))
        with Jobs(model) as jobs:
            while waiting or len(jobs):
                while waiting and len(jobs) < 2 * model._n_parallel:  # those that wait in the library take memory there
                    job = waiting.pop()
                    try:
                        jobs._add(job)
                    except Error:
                        job._take()
                        if job.error is None:  # it is not the job's own
                            raise
                for job, text in jobs.step():
                    yield number[job], text
                    model._turn_thread = this_thread()  # a stream moves with its reader
        known.results = [job.result for job in all_jobs if job.result]
