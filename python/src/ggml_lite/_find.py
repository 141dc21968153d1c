"""Where the shared libraries are. The build of the package uses this file, too, so it imports nothing of the package."""
import ctypes
import ctypes.util
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

VARIABLE = "GGML_LITE_LIBRARY"
FILE_NAME = {"darwin": "libllm.dylib", "win32": "llm.dll"}.get(sys.platform, "libllm.so")
BUILD = "cmake -B build/release -DGGL_TESTS=OFF && cmake --build build/release -j4 --target llm-train-shared"
HERE = Path(__file__).resolve().parent


def is_sanitized(path: Path) -> bool:
    """True for a library with a sanitizer, which ends a process that does not begin with the sanitizer's own library."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(name) >= 0 for name in (b"__asan_init", b"__tsan_init", b"__msan_init"))


def for_training(library: str) -> List[str]:
    """Where the library for training may be that belongs to this libllm, a path or a name: beside it, and beside the file to which it leads."""
    places = dict.fromkeys([library, os.path.realpath(library)] if os.path.dirname(library) else [library])
    return [os.path.join(os.path.dirname(place), os.path.basename(place).replace("llm", "llm-train", 1)) for place in places]


def in_builds(repository: Path) -> List[Path]:
    """The libraries in a repository's build folders: `build/release` first, then the newest."""
    found = [p for p in repository.glob(f"build/*/lib/{FILE_NAME}") if p.stat().st_size and not is_sanitized(p)]
    return sorted(found, key=lambda p: (p.parent.parent.name != "release", -p.stat().st_mtime))


def repository() -> Optional[Path]:
    """The repository that this package is in, or from which pip installed it; None: unknown."""
    sources = [HERE.parent.parent]
    for record in HERE.parent.glob("ggml_lite-*.dist-info/direct_url.json"):
        try:
            url = json.loads(record.read_text(encoding="utf-8"))["url"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(url, str) and url.startswith("file://"):
            from urllib.request import url2pathname  # takes a while to import

            sources.append(Path(url2pathname(url[len("file://") :])))
    for source in sources:
        if (source / "pyproject.toml").is_file() and (source.parent / "CMakePresets.json").is_file():
            return source.parent
    return None


def candidates() -> Iterator[Tuple[str, Optional[str]]]:
    """Places, in words, and the library at each, a path or a name; None: there is none. A library that the environment variable names is
    the only one."""
    given = os.environ.get(VARIABLE)
    yield f"the environment variable {VARIABLE}, which is " + (repr(given) if given else "not set"), given
    if given:
        return
    inside = HERE / FILE_NAME
    yield f"the package, {inside}", str(inside) if inside.is_file() else None
    root = repository()
    builds = in_builds(root) if root else []
    for path in builds:
        yield f"the repository, {path}", str(path)
    if not builds:
        yield f"the repository, {root}/build/*/lib/{FILE_NAME}" if root else "the repository, which pip did not install this from", None
    name = ctypes.util.find_library("llm")
    yield f"the system's libraries, {name or FILE_NAME}", name


def load() -> ctypes.CDLL:
    """Loads the first library there is. Raises ImportError, which lists where it was looked for."""
    tried = []
    for place, library in candidates():
        if library:
            try:
                return ctypes.CDLL(library)
            except OSError as error:
                place += f": {error}"
        tried.append(f"  - {place}\n")
    raise ImportError(
        f"ggml_lite needs the shared library {FILE_NAME}, and did not find it. It looked at\n{''.join(tried)}"
        f"To build it, run in the repository:\n  {BUILD}\n"
        f"then install the package again, or set {VARIABLE} to the library's path."
    )


def load_training(library: str) -> ctypes.CDLL:
    """Loads what trains, for the libllm that was loaded from this path or by this name. Raises ImportError, which says what is missing."""
    tried = []
    for path in for_training(library):
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"  - {error}\n")
    raise ImportError(
        f"ggml_lite.Training needs the shared library {os.path.basename(for_training(library)[0])} beside {library}, of the same version:\n{''.join(tried)}"
        f"Wheels of ggml_lite and the package of the programs have both. To build both, run in the repository:\n  {BUILD}"
    )
