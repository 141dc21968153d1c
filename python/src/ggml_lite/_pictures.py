"""Pictures that a model sees."""
from __future__ import annotations

import base64
import binascii
import ctypes as c
import re
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, List, Mapping, Optional, Union

from . import _abi
from ._opening import Path, file_bytes

Picture = Union[Path, bytes, bytearray, memoryview]
MARK_SIZE = 77  # LLM_IMAGE_MARK
DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,", re.I | re.A)


def _of_address(url: object, where: str) -> bytes:
    """The bytes of a data: address."""
    if isinstance(url, Mapping):
        url = url.get("url")
    if not isinstance(url, str):
        raise TypeError(f"{where}: the picture's url is {type(url).__name__}, not a str")
    begin = DATA_URI.match(url)
    if not begin:
        raise ValueError(f"{where}: a picture is a data:image/..;base64,.. address, a path or bytes; nothing is downloaded: {url[:40]!r}")
    try:
        return base64.b64decode(url[begin.end() :], validate=True)
    except binascii.Error as error:
        raise ValueError(f"{where}: the picture is not base64: {error}") from None


class Sees:
    """The calls of a Model that sees."""

    if TYPE_CHECKING:
        _lib: _abi.Library
        _call: Callable[[], ContextManager[int]]
        _shown: List[str]

    @property
    def sees(self) -> bool:
        """Whether the model was opened with an eye (mmproj=), so that it sees pictures."""
        with self._call() as handle:
            return bool(self._lib.llm_context_sees(handle))

    def see(self, picture: Picture) -> str:
        """Shows a picture, the path of its file or its bytes, to the model. Returns its mark, a text that stands for it in prompts and
        messages. What was seen is kept until unsee(mark)."""
        mark = c.create_string_buffer(MARK_SIZE)
        if isinstance(picture, (bytes, bytearray, memoryview)):
            data = bytes(picture)
            image = _abi.Image(data=data, n=len(data))
        else:
            image = _abi.Image(path=file_bytes("picture", picture))
        with self._call() as handle:
            self._lib.llm_see(handle, c.byref(image), mark)
        return mark.value.decode()

    def unsee(self, mark: str) -> None:
        """Lets a picture go. Memory is given back only when what was seen of all such pictures takes more than 256 MiB: until then, another
        see() of the picture costs nothing. Its mark is sure to be of use only after that."""
        with self._call() as handle:
            self._lib.llm_unsee(handle, mark.encode())

    def _with_marks(self, messages: List[Dict[str, Any]]) -> None:
        """Puts marks in the places of the parts that are pictures, which are kept until the next conversation."""
        if not self.sees:
            return  # the library says which part it does not read
        before, self._shown = self._shown, []
        try:
            for k, message in enumerate(messages):
                content = message.get("content")
                if isinstance(content, (list, tuple)):
                    message["content"] = [self._with_mark(part, f"messages[{k}]") for part in content]
        finally:
            for mark in before:
                self.unsee(mark)

    def _with_mark(self, part: Any, where: str) -> Any:
        kind = part.get("type") if isinstance(part, Mapping) else None
        picture: Optional[Picture] = None
        if kind in ("image_url", "input_image"):
            picture = _of_address(part.get("image_url"), where)
        elif kind == "image" and "image" in part:
            picture = part["image"]
        if picture is None:
            return part
        mark = self.see(picture)
        self._shown.append(mark)
        return {"type": "text", "text": mark}
