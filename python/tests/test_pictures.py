"""Pictures and sounds in conversations, without a model: which ones are held."""
import unittest
from typing import Any, Dict, List

from ggml_lite._pictures import Sees


class Ear(Sees):
    """Repeats what it was played."""

    sees, hears = False, True  # type: ignore[assignment]

    def __init__(self) -> None:
        self._shown: List[str] = []

    def listen(self, sound: Any) -> str:
        return f"<{sound.decode()}>"

    def unsee(self, mark: str) -> None:
        pass


class Eye(Sees):
    """Counts what it was shown. A picture b"bad" cannot be read."""

    def __init__(self) -> None:
        self._shown: List[str] = []
        self.held: Dict[str, int] = {}

    @property
    def sees(self) -> bool:
        return True

    @property
    def hears(self) -> bool:
        return False

    def see(self, picture: Any) -> str:
        if picture == b"bad":
            raise ValueError("a bad picture")
        mark = f"<{picture.decode()}>"
        self.held[mark] = self.held.get(mark, 0) + 1
        return mark

    def unsee(self, mark: str) -> None:
        self.held[mark] -= 1


def turn(*pictures: bytes) -> List[Dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image", "image": p} for p in pictures]}]


class Pictures(unittest.TestCase):
    def test_the_next_conversation_lets_go(self) -> None:
        eye = Eye()
        messages = turn(b"a", b"b")
        eye._with_marks(messages)
        self.assertEqual(messages[0]["content"], [{"type": "text", "text": "<a>"}, {"type": "text", "text": "<b>"}])
        eye._with_marks(turn(b"b"))
        self.assertEqual(eye.held, {"<a>": 0, "<b>": 1})

    def test_also_after_a_picture_that_cannot_be_read(self) -> None:
        eye = Eye()
        eye._with_marks(turn(b"a"))
        with self.assertRaises(ValueError):
            eye._with_marks(turn(b"b", b"bad"))
        self.assertEqual(eye.held, {"<a>": 0, "<b>": 1})
        eye._with_marks(turn())
        self.assertEqual(eye.held, {"<a>": 0, "<b>": 0})


class Sounds(unittest.TestCase):
    def test_parts(self) -> None:
        picture = {"type": "image", "image": "a.png"}
        messages: List[Dict[str, Any]] = [{"role": "user", "content": [
            {"type": "audio", "audio": b"a"}, {"type": "input_audio", "input_audio": {"data": "Yg==", "format": "wav"}}, picture]}]
        Ear()._with_marks(messages)
        self.assertEqual(messages[0]["content"], [{"type": "text", "text": "<a>"}, {"type": "text", "text": "<b>"}, picture])

    def test_what_is_no_base64(self) -> None:
        for wrong, error in (({"data": "!"}, ValueError), ({"data": 1}, TypeError), ("Yg==", TypeError), (None, TypeError)):
            with self.assertRaises(error):
                Ear()._with_marks([{"role": "user", "content": [{"type": "input_audio", "input_audio": wrong}]}])


if __name__ == "__main__":
    unittest.main()
