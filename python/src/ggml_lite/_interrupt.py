"""Calls that take long, which signals interrupt."""
from __future__ import annotations

import _thread
import threading
from typing import Callable, List


def interruptible(function: Callable[[], None], cancel: Callable[[], object]) -> None:
    """Calls function(), which may take long. The main thread has another one make the call, and waits: handlers of signals run only where
    Python code runs, and what they raise, such as KeyboardInterrupt, then calls cancel() until the function has ended.

    The locks and the thread are those of _thread, whose functions are C code: an exception in the middle of threading.Event or
    threading.Thread, which are Python code, leaves their locks held."""
    if threading.current_thread() is not threading.main_thread():
        function()
        return
    failed: List[BaseException] = []
    ended: List[bool] = []  # also when the main thread has got `done` already, and what a handler raises comes after that
    claimed, done = _thread.allocate_lock(), _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            if claimed.acquire(False):  # else it is not wanted any more
                function()
        except BaseException as error:
            failed.append(error)
        finally:
            ended.append(True)
            done.release()

    is_here = False
    try:
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # there are no more threads, as at the end of the interpreter
            if not claimed.acquire(False):
                raise
            is_here = True
        else:
            done.acquire()
    except BaseException:
        if not claimed.acquire(False):
            while not ended and not done.acquire(timeout=0.02):
                cancel()
        raise
    if is_here:
        function()
    elif failed:
        raise failed[0]
