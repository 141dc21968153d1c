"""Pictures and sounds in conversations, without a model: which ones are held. And sounds for the built-in model, with an ear of random weights."""
import base64
import os
import signal
import sys
import tempfile
import threading
import unittest
from typing import Any, Dict, List

from ggml_lite import Error, Model, Status
from ggml_lite._pictures import Sees

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))


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


EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")


@unittest.skipUnless(os.path.exists(os.path.join(EXAMPLES, "words.wav")), "the examples are missing")
class BuiltIn(unittest.TestCase):
    def test_sees(self) -> None:
        with Model("builtin:shapes") as model:
            self.assertTrue(model.sees)
            content = [{"type": "image", "image": os.path.join(EXAMPLES, "shapes.bmp")}, {"type": "text", "text": "How many shapes are there?"}]
            self.assertEqual(model.chat([{"role": "user", "content": content}], temperature=0), "Two shapes.")
            with self.assertRaisesRegex(Error, "takes 1 picture at a time, but the text has 2"):
                model.chat([{"role": "user", "content": content[:1] + content}])
        with Model("builtin:chat") as model:
            self.assertFalse(model.sees)
        device, blind = (Model.plan(name)["devices"][0] for name in ("builtin:shapes", "builtin:chat"))
        self.assertGreater(sum(device["mmproj"][k] for k in ("weights_mapped", "weights_copied", "weights_repacked")), 100000)
        self.assertGreater(device["mmproj"]["scratch"], 0)
        self.assertNotIn("mmproj", blind)

    def test_hears(self) -> None:
        stages = Model.plan("builtin:words")["devices"][0]["stages"]
        self.assertGreater(stages["scratch"], 300000)  # of the sound's spectrogram alone
        with Model("builtin:words", n_parallel=5) as model:
            self.assertEqual("".join(p.text for p in model.transcribe(os.path.join(EXAMPLES, "words.wav"))).split(), ["seven", "blue", "lamp", "stop"])


class Recorder:
    """The library, and how its calls of llm_see ended."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.ended = lib, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lib, name)

    def llm_see(self, *given: Any) -> None:
        try:
            self.lib.llm_see(*given)
            self.ended.append(None)
        except Error as error:
            self.ended.append(error.status)
            raise


class Stop(Exception):
    pass


@unittest.skipUnless(hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread(), "there are no timers")
class Interrupted(unittest.TestCase):
    def test_a_signal_stops_the_eye(self) -> None:
        try:
            import eye_file
        except ImportError:
            raise unittest.SkipTest("tests/e2e is missing") from None

        def stop(*_: Any) -> None:
            raise Stop

        with tempfile.TemporaryDirectory() as folder:
            eye = eye_file.slow(os.path.join(folder, "eye.gguf"), 128, side=128, layers=24)  # which looks for many seconds
            with Model("builtin:chat", mmproj=eye, n_ctx=2048) as model:
                model._lib = lib = Recorder(model._lib)
                before = signal.signal(signal.SIGALRM, stop)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.2)
                    with self.assertRaises(Stop):
                        model.see(eye_file.ppm((1, 2, 3)))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    signal.signal(signal.SIGALRM, before)
                self.assertEqual(lib.ended, [Status.CANCELLED])


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
        given = messages[0]["content"][1:]
        Ear()._with_marks(messages)
        self.assertEqual(messages[0]["content"], [{"type": "text", "text": "<a>"}, *given])


class Heard(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        try:
            import eye_file
        except ImportError:
            raise unittest.SkipTest("tests/e2e is missing") from None
        cls.folder = tempfile.TemporaryDirectory()
        cls.wav = staticmethod(eye_file.wav)
        cls.model = Model("builtin:chat", mmproj=eye_file.ultravox(os.path.join(cls.folder.name, "ear.gguf"), 128), n_ctx=512)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.model.close()
        cls.folder.cleanup()

    def test_a_file_its_bytes_and_its_samples_are_the_same_sound(self) -> None:
        sound = self.wav(300)
        path = os.path.join(self.folder.name, "s.wav")
        with open(path, "wb") as f:
            f.write(sound)
        mark = self.model.listen(sound)
        self.assertEqual([mark] * 3, [self.model.listen(path), self.model.listen(sound[44:], raw="s16le"), self.model.listen(sound[44:], raw="s16le", raw_rate=16000)])
        self.assertNotEqual(mark, self.model.listen(sound[44:], raw="s16le", raw_rate=8000))
        self.assertNotEqual(mark, self.model.listen(self.wav(301)))
        for _ in range(5):
            self.model.unsee(mark)  # once more than it was played

    def test_conversations(self) -> None:
        sound = self.wav(500)
        data = base64.b64encode(sound).decode()
        answers = [self.model.chat([{"role": "user", "content": [{"type": "text", "text": "Tell me of"}, part]}], max_tokens=8, temperature=0) for part in (
            {"type": "audio", "audio": sound}, {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}})]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual((self.model.sees, self.model.hears), (False, True))

    def test_what_is_no_base64(self) -> None:
        for wrong, words in (({"data": "!"}, "character 0 does not belong there"), ({"data": ""}, "no bytes"), ({"data": 1}, 'needs "input_audio"'),
                             ("Yg==", 'needs "input_audio"'), (None, 'needs "input_audio"'), ({"data": "Yg=="}, "no kind of sound")):
            for call in (self.model.chat, self.model.format_chat):
                with self.assertRaisesRegex(Error, r"messages\[0\]: content\[1\]: .*" + words):
                    call([{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "input_audio", "input_audio": wrong}]}])

    def test_prompts(self) -> None:
        sound = self.wav(300)
        part = {"type": "input_audio", "input_audio": {"data": base64.b64encode(sound).decode()}}
        prompts = [self.model.format_chat([{"role": "user", "content": [p, {"type": "text", "text": "What is said?"}]}]) for p in (
            {"type": "audio", "audio": sound}, part)]
        self.assertEqual(prompts[0], prompts[1])
        self.assertIn(self.model.listen(sound) + "What is said?", prompts[0].replace("\n", "#"))

    def test_mistakes(self) -> None:
        for wrong, words in ((b"<html>", "no kind of sound"), (self.wav(1, 0), "no samples"), (self.wav(1)[:-100], "before its header says"),
                             (self.wav(9, 700, 1000), "fit into a context of 512")):
            with self.assertRaisesRegex(Error, words):
                self.model.listen(wrong)
        with self.assertRaisesRegex(Error, "raw is 'mp3'"):
            self.model.listen(b"1234", raw="mp3")
        with self.assertRaisesRegex(Error, "hears sounds and sees no pictures"):
            self.model.see(self.wav(1))
        with self.assertRaisesRegex(Error, "hears sounds and sees no pictures"):
            self.model.chat([{"role": "user", "content": [{"type": "image", "image": b"x"}]}])
        with Model("builtin:chat", n_ctx=64) as deaf:
            with self.assertRaisesRegex(Error, "opened without an ear"):
                deaf.listen(self.wav(1))


if __name__ == "__main__":
    unittest.main()
