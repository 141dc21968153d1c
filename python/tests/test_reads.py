"""Models that read a text before they write: marian_folder, of the project's tests/e2e, makes one."""
import os
import sys
import tempfile
import unittest

from ggml_lite import Model

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
try:
    import marian_folder
except ImportError:
    marian_folder = None


class Reads(unittest.TestCase):
    def test_saved_with_the_text(self):
        if marian_folder is None:
            self.skipTest("marian_folder.py is missing")
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
