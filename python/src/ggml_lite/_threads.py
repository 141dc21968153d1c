"""Which thread it is."""
from __future__ import annotations

import threading
import weakref


class Mark:
    """That of a thread, which alone refers to it: it is gone when the thread has ended. threading.get_ident() gives a new thread the number of
    one that has ended."""


_own = threading.local()


def this_thread() -> weakref.ReferenceType[Mark]:
    """Refers to the mark of this thread: equal for the same thread, and to None once it has ended."""
    mark = getattr(_own, "mark", None)
    if mark is None:
        mark = _own.mark = Mark()
    return weakref.ref(mark)
