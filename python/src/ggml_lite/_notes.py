"""Warnings that name the line of the program that called the package."""
import os
import sys
import warnings

from ._abi import GenerateParams


def warn(text: str) -> None:
    level, frame = 0, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(os.path.dirname(__file__) + os.sep):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level + 1)


def warn_of(note: str) -> None:
    """Warns of a sentence of the library, but not of tools that are not shown: Model says so when it reads the conversation."""
    if not note.startswith("the chat template shows no tools"):
        warn(note)


def warn_of_notes(params: GenerateParams) -> None:
    """Warns of what the library has said of the parameters, such as a misspelt keyword of a schema. It said so on another thread."""
    for notes in params.notes:
        while notes:
            warn_of(notes.pop(0))
