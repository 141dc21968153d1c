"""Pictures that a model sees, and sounds that it hears."""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

from . import _abi
from ._handle import Handle
from ._open_params import Path
from ._opening import file_bytes
from ._options import text_bytes, whole

Picture = Union[Path, bytes, bytearray, memoryview]
Sound = Picture
MARK_SIZE = 77  # LLM_IMAGE_MARK


class Sees(Handle):
    """The calls of a Model that sees or hears."""

    if TYPE_CHECKING:
        _shown: List[str]

    @property
    def sees(self) -> bool:
        """Whether the model was opened with an eye (mmproj=), so that it sees pictures."""
        with self._call() as handle:
            return bool(self._lib.llm_context_facts(handle).contents.sees)

    def see(self, picture: Picture) -> str:
        """Shows a picture, the path of its file or its bytes, to the model. Returns its mark, a text that stands for it in prompts and
        messages. What was seen is kept until unsee(mark)."""
        mark = c.create_string_buffer(MARK_SIZE)
        if isinstance(picture, (bytes, bytearray, memoryview)):
            data = bytes(picture)
            image = _abi.Image(data=data, n=len(data))
        else:
            image = _abi.Image(path=file_bytes("picture", picture))
        self._wait(lambda handle: self._lib.llm_see(handle, c.byref(image), mark))
        return mark.value.decode()

    @property
    def hears(self) -> bool:
        """Whether the model was opened with an ear (mmproj=), so that it hears sounds in conversations."""
        with self._call() as handle:
            return bool(self._lib.llm_context_facts(handle).contents.hears)

    def listen(self, sound: Sound, *, raw: Optional[str] = None, raw_rate: int = 0, raw_channels: int = 0) -> str:
        """Plays a sound, the path of its file or its bytes, to the model, and returns its mark, as see() does for a picture. raw: samples
        without a header, "s16le" or "f32le", of so many per second (0: the model's 16000) and channels (0: 1)."""
        mark = c.create_string_buffer(MARK_SIZE)
        audio = _abi.Audio(raw=None if raw is None else text_bytes("raw", raw), raw_rate=whole("raw_rate", raw_rate, 0, 32),
                           raw_channels=whole("raw_channels", raw_channels, 0, 32))
        if isinstance(sound, (bytes, bytearray, memoryview)):
            audio.data = data = bytes(sound)
            audio.n = len(data)
        else:
            audio.path = file_bytes("sound", sound)
        self._wait(lambda handle: self._lib.llm_listen(handle, c.byref(audio), mark))
        return mark.value.decode()

    def unsee(self, mark: str) -> None:
        """Lets a picture or a sound go. Memory is given back only when what was noticed of all such ones takes more than 256 MiB: until then, another
        see() or listen() of the same costs nothing. Its mark is sure to be of use only after that."""
        with self._call() as handle:
            self._lib.llm_unsee(handle, mark.encode())

    def _with_marks(self, messages: List[Dict[str, Any]]) -> None:
        """Puts marks in the places of the parts that are files or bytes of pictures or sounds, which are kept until the next conversation. The library
        shows those in OpenAI's form itself."""
        before, self._shown = self._shown, []
        try:
            for k, message in enumerate(messages):
                content = message.get("content")
                if isinstance(content, (list, tuple)):
                    message["content"] = [self._with_mark(part) for part in content]
        finally:
            for mark in before:
                self.unsee(mark)

    def _with_mark(self, part: Any) -> Any:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "image" and "image" in part and (self.sees or not isinstance(part["image"], str)):
            mark = self.see(part["image"])
        elif kind == "audio" and "audio" in part and (self.hears or not isinstance(part["audio"], str)):
            mark = self.listen(part["audio"])
        else:
            return part  # the library says if it does not read it, as see() and listen() do of bytes
        self._shown.append(mark)
        return {"type": "text", "text": mark}

    def _seen(self, conversation: bytes) -> bytes:
        """The conversation with marks in the places of pictures and sounds in OpenAI's form."""
        text, n = c.c_void_p(), c.c_size_t()
        self._wait(lambda handle: self._lib.llm_chat_see(handle, conversation, c.byref(text), c.byref(n)))
        return _abi.taken_bytes(self._lib, text, n)
