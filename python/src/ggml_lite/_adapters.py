"""Adapters, back to the Hugging Face folders of their models."""
import ctypes as c
from typing import NamedTuple, Optional

from . import _abi
from ._open_params import Path, ScaledFiles
from ._opening import file_bytes, loras
from ._options import text_bytes, whole


class Kept(NamedTuple):
    """How much of a change is left after the changed weights are rounded to their types: 1 - |Q - W - D|² / |D|² for the change D of W and the rounded result Q."""
    share: float  #: of the change of all weights, from 0 to 1
    least: float  #: of the weight that keeps the least
    weight: str  #: its name; "": nothing changes


def export_adapter(adapter: Path, folder: Path, out: Path, *, type: Optional[str] = None, base_name: Optional[str] = None) -> None:
    """Writes an adapter's GGUF file as PEFT saves adapters, into the folder `out`. `folder`: the Hugging Face folder of the model, of whose tensors only names and
    shapes are read. type: "f32", "f16" or "bf16"; None: f16 or bf16 if the file has only that, else f32. base_name: the model's name in
    adapter_config.json; None: the path of the folder."""
    p = _abi.FolderParams(size=c.sizeof(_abi.FolderParams))
    p.type = None if type is None else text_bytes("type", type)
    p.base_name = None if base_name is None else text_bytes("base_name", base_name)
    paths = file_bytes("adapter", adapter), file_bytes("folder", folder), file_bytes("out", out)
    _abi.library().llm_export_adapter(*paths, c.byref(p))


def merge_adapters(adapters: ScaledFiles, folder: Path, out: Path, *, n_threads: int = 0) -> Kept:
    """Writes a copy of the Hugging Face folder `folder` into the folder `out`, which must be empty or not there, with adapters (a file, a pair of a file and
    a scale, a list of these, or a dict {file: scale}) added to the weights. These keep their types. Returns how much of the change the types keep."""
    kept = _abi.Kept()
    p = _abi.FolderParams(size=c.sizeof(_abi.FolderParams))
    p.kept = c.pointer(kept)
    p.n_threads = whole("n_threads", n_threads, 0, 31)
    given, n = loras(adapters)
    _abi.library().llm_merge_adapters(given, n, file_bytes("folder", folder), file_bytes("out", out), c.byref(p))
    return Kept(kept.share, kept.least, kept.weight.decode("utf-8", "replace"))
