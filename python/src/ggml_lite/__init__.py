"""Runs language models from GGUF files.

    from ggml_lite import Model

    with Model("model.gguf") as model:
        print(model.generate("Once upon a time", max_tokens=50))
        for piece in model.stream_chat([{"role": "user", "content": "Who are you?"}]):
            print(piece, end="", flush=True)

docs/python.md of the project has all calls."""
import ctypes as _c
import json as _json
from typing import Any, Dict, List, Optional

from ._adapters import Kept, export_adapter, merge_adapters
from ._async import AsyncModel
from ._errors import Cancelled, Error, Status
from ._jobs import Batch, Job, Jobs
from ._model import Model
from ._open_params import Opening
from ._options import Options
from ._results import (
    Call, Choice, Evaluation, Imatrix, Message, Metadata, Node, Part, Perplexity, Piece, Ranked, Result, Run, Score, TrainingFacts, TrainingReport, Verified, Word,
)  # fmt: skip
from ._stream import Answer, Stream
from ._training import Training
from ._version import __version__

__all__ = [
    "Answer", "AsyncModel", "Batch", "Call", "Cancelled", "Choice", "Error", "Evaluation", "Imatrix", "Job", "Jobs", "Kept", "Message", "Metadata", "Model", "Node", "Opening", "Options",
    "Part", "Perplexity", "Piece", "Ranked", "Result", "Run", "Score", "Status", "Stream", "Training", "TrainingFacts", "TrainingReport", "Verified", "Word", "__version__", "cached_models", "export_adapter", "join_job", "library_path",
    "merge_adapters",
]  # fmt: skip


def library_path() -> str:
    """The shared library that is in use, which is loaded now if it was not yet. Raises ImportError if there is none."""
    from ._abi import library

    return library().path


def cached_models() -> List[Dict[str, Any]]:
    """The models that were downloaded: path, for Model(); repository ("USER/REPO"; absent for one from a URL), file ("" for a folder), bytes,
    n_files and is_whole, which is False if the download was interrupted."""
    from ._abi import library, taken_bytes

    text, n = _c.c_void_p(), _c.c_size_t()
    library().llm_cached_models(_c.byref(text), _c.byref(n))
    models: List[Dict[str, Any]] = _json.loads(taken_bytes(library(), text, n))["models"]
    return models


def join_job() -> Optional[int]:
    """In a program that mpirun starts on several machines, call this first: `code = join_job()`, then `if code is not None: sys.exit(code)`. None: this is
    rank 0, which goes on, with the devices "rank1", "rank2" .., or there is no other process. Otherwise the call has computed for rank 0 until the job
    ended."""
    from ._abi import library

    code = _c.c_int(-1)
    library().llm_join_job(_c.byref(code))
    return None if code.value < 0 else code.value
