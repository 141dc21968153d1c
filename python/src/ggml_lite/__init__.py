"""Runs language models from GGUF files.

    from ggml_lite import Model

    with Model("model.gguf") as model:
        print(model.generate("Once upon a time", max_tokens=50))
        for piece in model.stream_chat([{"role": "user", "content": "Who are you?"}]):
            print(piece, end="", flush=True)

docs/python.md of the project has all calls."""
from ._errors import Cancelled, Error, Status
from ._model import Model
from ._options import Options
from ._stream import Run, Stream
from ._version import __version__

__all__ = ["Cancelled", "Error", "Model", "Options", "Run", "Status", "Stream", "__version__", "library_path"]


def library_path() -> str:
    """The shared library that is in use, which is loaded now if it was not yet. Raises ImportError if there is none."""
    from ._abi import library

    return library().path
