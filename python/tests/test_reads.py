"""Models that read a text before they write, and models that write by diffusion: modules of the project's tests/e2e make them."""
import os
import sys
import tempfile
import unittest

from ggml_lite import Error, Model

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
try:
    import dream_file
    import marian_folder
except ImportError:
    marian_folder = None


@unittest.skipIf(marian_folder is None, "modules of tests/e2e are missing")
class Reads(unittest.TestCase):
    def test_saved_with_the_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path, file = marian_folder.write(os.path.join(folder, "marian")), os.path.join(folder, "state")
            options = {"temperature": 0, "ignore_end": True}
            with Model(path) as model:
                self.assertEqual(model.text_read, [])
                text = model.tokenize("banana ban a", add_special=True)
                model.generate("banana ban a", max_tokens=5, **options)
                self.assertEqual(model.text_read, text)
                written = model.context
                self.assertEqual(len(written), 6)
                model.save(file)
                more = model.generate(written, max_tokens=8, read=text, **options)
            with Model(path) as model:
                model.restore(file)
                self.assertEqual((model.context, model.text_read), (written, text))
                self.assertEqual(model.generate(written, max_tokens=8, read=text, **options), more)
                self.assertEqual(model.last_run.n_prompt, 1)
                self.assertNotEqual(model.generate(written, max_tokens=8, read=text[:1], **options), more)
                for wrong in ([], [-1], "a"):
                    with self.assertRaises((TypeError, ValueError)):
                        model.generate(written, read=wrong)

    def test_beams(self):
        with tempfile.TemporaryDirectory() as folder:
            path = marian_folder.write(os.path.join(folder, "marian"))
            with Model(path, n_parallel=4) as model:
                texts = [model.generate("banana b", n_beams=n, max_tokens=6, **more) for n, more in ((2, {}), (4, {}), (4, {"length_penalty": 0.0}))]
                self.assertEqual(texts[1], model.generate("banana b", n_beams=4, max_tokens=6, length_penalty=1.0, seed=5, temperature=2))
                self.assertEqual(model.context, [])
                with self.assertRaisesRegex(Error, "5 beams need as many sequences"):
                    model.generate("banana b", n_beams=5)

    def test_diffusion(self):
        with tempfile.TemporaryDirectory() as folder, Model(dream_file.write(os.path.join(folder, "d.gguf"), has_bytes=False)) as model:
            options = {"max_tokens": 12, "temperature": 1.5, "seed": 3}
            text = model.generate("the fox", **options)
            self.assertEqual(model.last_run.n_generated, 12)
            self.assertEqual(model.context, [])
            with model.stream("the fox", **options) as stream:
                pieces = list(stream)
            self.assertEqual("".join(pieces), text)
            schedules = [{}, {"diffusion_steps": 3}, {"diffusion_block_length": 4, "diffusion_cfg_scale": 0.5},
                         {"diffusion_algorithm": "margin", "diffusion_alg_temp": 1.0, "diffusion_eps": 0.1}]
            alone = [model.generate("the fox", **options, **s) for s in schedules]
            self.assertEqual(len(set(alone)), 4)
            together = model.batch([{"prompt": "the fox", **s} for s in schedules], **options)
            self.assertEqual([result.text for result in together], alone)
            with self.assertRaises(Error):
                model.generate("the fox", diffusion_algorithm="best")
            with self.assertRaises(Error):
                model.generate("the fox", json_schema=True)
        with Model("builtin:stories") as model, self.assertRaises(Error):
            model.generate("a", diffusion_steps=3)
