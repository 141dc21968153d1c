"""Builds the package, by the hooks of PEP 517 and PEP 660, with nothing but Python's own library.

A wheel has the Python files and a copy of the shared library, which is the one at the path in the environment variable
GGML_LITE_LIBRARY, or else in a build folder of the repository (build/*/lib), and of the one for training beside it, if that is there. It is for this platform alone, or for the one that the
setting `platform` names (`pip wheel -C platform=NAME`), which the builder knows to be right. If there is no library, the build
fails, unless the system has a library or the variable is "none". Such a wheel is for all platforms, and the library is looked for when the
package is used. An editable wheel leads to the source folder."""
import base64
import ctypes
import ctypes.util
import hashlib
import io
import os
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
NAME = "ggml_lite"
FOLDED = (1980, 1, 1, 0, 0, 0)  # a file's time, so that the same files make the same wheel

sys.path.insert(0, str(SOURCE / NAME))
import _find  # noqa: E402  (a file of the package that imports nothing else of it)
import _version  # noqa: E402

VERSION = _version.__version__
DIST_INFO = f"{NAME}-{VERSION}.dist-info"
Settings = Optional[Dict[str, Any]]


def metadata() -> str:
    return f"""Metadata-Version: 2.1
Name: ggml-lite
Version: {VERSION}
Summary: Runs language models from GGUF files: generate, stream, chat with tools, batches, log-probabilities, embeddings
License: MIT
Requires-Python: >=3.8
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Classifier: License :: OSI Approved :: MIT License
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{(ROOT / "README.md").read_text(encoding="utf-8")}"""


def tag(library: Optional[Path], config_settings: Settings = None) -> str:
    if library is None:
        return "py3-none-any"
    platform = (config_settings or {}).get("platform") or sysconfig.get_platform()
    return "py3-none-" + platform.replace("-", "_").replace(".", "_")


class Wheel:
    """A wheel's files, in the order in which they are added, and the record of their digests."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        self.zip = zipfile.ZipFile(self.bytes, "w", zipfile.ZIP_DEFLATED)
        self.record: List[str] = []

    def add(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, FOLDED)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def write(self, folder: str, wheel_tag: str) -> str:
        of_platform = "true" if wheel_tag.endswith("-any") else "false"
        self.add(f"{DIST_INFO}/METADATA", metadata().encode())
        self.add(
            f"{DIST_INFO}/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: {NAME}_build\nRoot-Is-Purelib: {of_platform}\nTag: {wheel_tag}\n".encode(),
        )
        record = f"{DIST_INFO}/RECORD"
        self.zip.writestr(zipfile.ZipInfo(record, FOLDED), "".join(self.record) + f"{record},,\n")
        self.zip.close()
        name = f"{NAME}-{VERSION}-{wheel_tag}.whl"
        (Path(folder) / name).write_bytes(self.bytes.getvalue())
        return name


def package_files() -> Dict[str, bytes]:
    """The files of the package by their names. The file with the version has the number, which the repository has in CMakeLists.txt."""
    paths = sorted(p for p in (SOURCE / NAME).iterdir() if p.suffix == ".py" or p.name == "py.typed")
    files = {path.name: path.read_bytes() for path in paths}
    files["_version.py"] = f'__version__ = "{VERSION}"\n'.encode()
    return files


def bundled_library() -> Optional[Path]:
    given = os.environ.get(_find.VARIABLE)
    if given == "none":
        return None
    if given:
        if not Path(given).is_file():
            sys.exit(f"{_find.VARIABLE}: there is no file '{given}'")
        return Path(given)
    for path in _find.in_builds(ROOT.parent):
        try:
            ctypes.CDLL(str(path))
        except OSError:
            continue  # built for another machine
        return path
    if not ctypes.util.find_library("llm"):
        sys.exit(
            f"there is no shared library {_find.FILE_NAME} yet. To build it, run in the repository: {_find.BUILD}\n"
            f"Then install the package again. With {_find.VARIABLE}=none it installs without a library."
        )
    return None


def licenses() -> List[Path]:
    """The project's, which hold for the library too; in a source distribution they are beside this package's files."""
    return [path for name in ("LICENSE", "NOTICE") for path in (ROOT / name, ROOT.parent / name) if path.is_file()]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    wheel, library = Wheel(), bundled_library()
    for name, data in package_files().items():
        wheel.add(f"{NAME}/{name}", data)
    for path in licenses():
        wheel.add(f"{DIST_INFO}/licenses/{path.name}", path.read_bytes())
    if library is None:
        print(f"no shared library was found: it will be looked for when the package is used. To build it: {_find.BUILD}")
    else:
        print(f"with a copy of {library}")
        wheel.add(f"{NAME}/{_find.FILE_NAME}", library.read_bytes())
        trains = next((path for path in map(Path, _find.for_training(str(library))) if path.is_file()), None)
        if trains is None:
            print(f"without {Path(_find.for_training(str(library))[0]).name}, which is not beside it: the package cannot train")
        else:
            wheel.add(f"{NAME}/{_find.for_training(_find.FILE_NAME)[0]}", trains.read_bytes())
    return wheel.write(wheel_directory, tag(library, config_settings))


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    wheel = Wheel()
    wheel.add(f"{NAME}.pth", f"{SOURCE}\n".encode())
    return wheel.write(wheel_directory, tag(None))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    stem = f"{NAME}-{VERSION}"
    made = {"PKG-INFO": metadata().encode()}
    made.update({f"src/{NAME}/{name}": data for name, data in package_files().items()})
    with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, data in made.items():
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for path in (ROOT / "pyproject.toml", ROOT / "README.md", Path(__file__).resolve()):
            tar.add(path, f"{stem}/{path.relative_to(ROOT).as_posix()}")
        for path in licenses():
            tar.add(path, f"{stem}/{path.name}")
    return f"{stem}.tar.gz"
