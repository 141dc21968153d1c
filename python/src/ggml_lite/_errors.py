"""Exceptions, which carry the message of the C library."""
import enum


class Status(enum.IntEnum):
    """How a call of the library ended (ggl/status.def)."""

    OK = 0
    USAGE = 1
    NOMEM = 2
    IO = 3
    FORMAT = 4
    UNSUPPORTED = 5
    NOT_FOUND = 6
    LIMIT = 7
    SHAPE = 8
    DEVICE = 9
    CANCELLED = 10


class Error(Exception):
    """A call failed. str(error) is a sentence that names the thing, the value found and the value allowed."""

    def __init__(self, status: Status, message: str):
        super().__init__(message)
        self.status = status


class Cancelled(Error):
    """Model.cancel() ended the call, or a callback returned False."""

    def __init__(self, message: str = "the call was cancelled"):
        super().__init__(Status.CANCELLED, message)


def error_of(status: int, message: str) -> Error:
    if status == Status.CANCELLED:
        return Cancelled(message)
    try:
        return Error(Status(status), message)
    except ValueError:  # a later version's status
        return Error(Status.UNSUPPORTED, f"{message} (status {status})")
