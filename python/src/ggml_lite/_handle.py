"""What a Model and a Training have in common: a handle of the library, which one thread at a time uses, and how it is closed."""
from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Callable, ClassVar, Iterator, Optional, TypeVar

from . import _abi
from ._errors import Error, Status
from ._interrupt import interruptible

Self = TypeVar("Self", bound="Handle")


class Handle:
    """A handle of the library. An exception may arrive between any two steps of Python code, as signals' handlers raise some. So what must be
    given back is held by `with` blocks, and whoever calls the library holds the lock for that itself: nothing can be closed meanwhile."""

    _noun: ClassVar[str]  # how errors name it
    _busy: ClassVar[str]  # what a second call of the thread is told
    _no_copy: ClassVar[str]  # what a copy or pickle of it is told
    _close_call: ClassVar[str]  # functions of the library
    _cancel_call: ClassVar[str]

    def _begin_handle(self) -> None:
        """The first step of opening."""
        if getattr(self, "_handle", None) is not None:
            raise TypeError(f"this {type(self).__name__} is open already; make another one")
        self._handle: Optional[int] = None
        self._alive = threading.RLock()  # held while the handle is taken away, and by cancel(), which may be called at any time
        self._pid = os.getpid()  # the library's threads live in this process alone
        self._lib = _abi.library()
        self._inside = threading.Lock()  # held during each call of the library
        self._beside = threading.Lock()  # held while something is opened beside it, which other calls need not wait for
        self._inside_thread: Optional[int] = None

    def close(self) -> None:
        """Frees it; what was not written or saved is lost. A call that another thread makes is cancelled. Any number of calls is fine; others then
        raise Error."""
        if self._handle is None:
            return
        if self._is_foreign():
            self._handle = None
            return
        self._refuse_inside()
        while not self._inside.acquire(timeout=0.02):
            self.cancel()
        try:
            with self._beside, self._alive:
                handle, self._handle = self._handle, None
            if handle is not None:
                getattr(self._lib, self._close_call)(handle)
        finally:
            self._inside.release()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:  # nobody is inside, as whoever is has a reference
            self._handle = None
            if not self._is_foreign():
                getattr(self._lib, self._close_call)(handle)

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError(self._no_copy)

    def cancel(self) -> None:
        """Ends what another thread runs: its call raises Cancelled."""
        if self._is_foreign():
            return
        with self._alive:
            if self._handle is not None:
                getattr(self._lib, self._cancel_call)(self._handle)

    def _is_foreign(self) -> bool:
        """In a child of os.fork(): the library's threads are not there, so closing would wait for them forever."""
        return self._pid != os.getpid()

    def _refuse_inside(self) -> None:
        if self._is_foreign():  # the locks may be those of threads that this process does not have
            raise Error(Status.USAGE, f"the {self._noun} was opened by another process, before os.fork(); open it again in this one")
        if self._inside_thread == threading.get_ident():
            raise Error(Status.USAGE, self._busy)

    def _open_handle(self) -> int:
        if self._handle is None:
            raise Error(Status.USAGE, f"the {self._noun} is closed")
        return self._handle

    @contextlib.contextmanager
    def _call(self) -> Iterator[int]:
        """The handle, for one call of the library."""
        self._refuse_inside()
        with self._inside:
            handle = self._open_handle()
            self._inside_thread = threading.get_ident()
            try:
                yield handle
            finally:
                self._inside_thread = None

    @contextlib.contextmanager
    def _kept(self) -> Iterator[int]:
        """The handle, which is not closed meanwhile, for a call that may be made while another thread is in one."""
        if self._is_foreign():
            self._refuse_inside()
        with self._beside:
            yield self._open_handle()

    def _wait(self, function: Callable[[int], object]) -> None:
        """Calls function(handle), which may take long. What a signal's handler raises meanwhile cancels the call."""

        def run() -> None:
            with self._call() as handle:
                function(handle)

        interruptible(run, self.cancel)
