"""The package's version is that of project() in the repository's CMakeLists.txt. In a wheel and in a source distribution, a file with the
number stands in place of this one."""
import re
from pathlib import Path


def of_repository() -> str:
    path = Path(__file__).resolve().parents[3] / "CMakeLists.txt"
    try:
        found = re.search(r"^project\(ggml-lite VERSION ([0-9.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError as error:
        raise ImportError(f"the version of ggml_lite is read from the repository's CMakeLists.txt: {error}") from error
    if not found:
        raise ImportError(f"{path}: there is no line 'project(ggml-lite VERSION ..' with the version of ggml_lite")
    return found.group(1)


__version__ = of_repository()
