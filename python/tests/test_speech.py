"""Speech that is written down. tests/numpy/transcribe.py of the project makes the models and sounds, and compares what the library writes with a pass of its own."""
import asyncio
import os
import sys
import tempfile
import unittest
import warnings

from common import needs_numpy
from ggml_lite import AsyncModel, Error, Model, Piece

sys.path.append(os.environ.get("NUMPY_TESTS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/numpy"))


@needs_numpy
class Speech(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import numpy

        try:
            import gguf
            import transcribe
        except ImportError:
            raise unittest.SkipTest("tests/numpy is missing") from None
        cls.folder = tempfile.TemporaryDirectory()
        cls.model, cls.sound = (os.path.join(cls.folder.name, name) for name in ("m.gguf", "s.wav"))
        g = numpy.random.default_rng(4)
        meta, weights, _ = transcribe.make_model(g)
        gguf.write(cls.model, meta, weights)
        transcribe.write_wav(cls.sound, transcribe.make_sound(g))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_transcribe(self):
        seen, notes = [], []
        with Model(self.model, n_parallel=5, words=True) as model:
            pieces = model.transcribe(self.sound, temperature_step=0, each=seen.append, note=notes.append)
            self.assertTrue(pieces)
            self.assertIsInstance(pieces[0], Piece)
            self.assertEqual(pieces, seen)
            self.assertTrue(any("language" in note for note in notes))
            with open(self.sound, "rb") as file:
                data = file.read()
            self.assertEqual(model.transcribe(data, temperature_step=0), pieces)
            damage = "the sound is damaged: it ends 50 samples before its header says"
            with self.assertWarnsRegex(UserWarning, damage):
                model.transcribe(data[:-100], temperature_step=0)
            notes.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model.transcribe(data[:-100], temperature_step=0, note=notes.append)
            self.assertIn(damage, notes)
            self.assertFalse(pieces[0].words)
            said = model.transcribe(self.sound, temperature_step=0, words=True)
            self.assertEqual("".join(w.text for p in said for w in p.words), "".join(p.text for p in said if p.words))  # the last hundredth of a second has none
            self.assertTrue(all(0 <= w.start <= w.end and 0 <= w.probability <= 1 for p in said for w in p.words))
            self.assertTrue(any(p.words for p in said))
            self.assertEqual({p.language for p in model.transcribe(self.sound, language="german", temperature_step=0)}, {"de"})
            with self.assertRaises(Error):
                model.transcribe(self.sound, each=lambda piece: False)
            with self.assertRaises(ZeroDivisionError):
                model.transcribe(self.sound, each=lambda piece: 1 / 0)
            with self.assertRaisesRegex(Error, "klingon"):
                model.transcribe(self.sound, language="klingon")
            with self.assertRaisesRegex(Error, "nowhere.wav"):
                model.transcribe("nowhere.wav")
            with self.assertRaises(ValueError):
                model.transcribe(self.sound, beams=0)
            with self.assertRaisesRegex(Error, "vad_threshold is 0.6, but there is no model that finds speech"):
                model.transcribe(self.sound, vad_threshold=0.6)
            with self.assertRaisesRegex(Error, "reads no text"):
                model.generate("a")

            async def later():
                return await AsyncModel(model).transcribe(self.sound, temperature_step=0)

            self.assertEqual(asyncio.run(later()), pieces)

    def test_texts_at_once(self):
        """Beams that are asked for are there, or it is said what they need."""
        how = {"temperature_step": 0, "language": "de"}
        with Model(self.model, n_parallel=5) as five, Model(self.model) as model, Model(self.model, n_parallel=1) as one:
            many, single = (five.transcribe(self.sound, beams=n, **how) for n in (5, 1))
            self.assertNotEqual(many, single)
            self.assertEqual(model.transcribe(self.sound, **how), many)
            self.assertEqual(model.transcribe(self.sound, beams=5, **how), many)
            self.assertEqual(one.transcribe(self.sound, **how), single)
            with self.assertRaisesRegex(Error, r"5 beams need as many sequences \(n_parallel\), but the context was opened with 1"):
                one.transcribe("nothing.wav", beams=5, **how)  # before a sound is read
            with self.assertRaisesRegex(Error, r"6 drawn texts need as many .* opened with 5"):
                model.transcribe(self.sound, best_of=6, temperature=0.5)
            self.assertEqual(one.transcribe(self.sound, best_of=5, **how), single)  # none are drawn

    def test_no_ears(self):
        with Model(self.model) as model, self.assertRaisesRegex(Error, "times of words need a model that was opened with words set"):
            model.transcribe(self.sound, words=True)
        with self.assertRaisesRegex(Error, "alignment"):
            Model("builtin:stories", words=True)
        with Model("builtin:stories") as model, self.assertRaisesRegex(Error, "does not hear"):
            model.transcribe(self.sound)


if __name__ == "__main__":
    unittest.main()
