"""The programs of docs/python.md run, and print what the page says. The variable PYTHON_PAGE names the page."""
import contextlib
import importlib.util
import inspect
import io
import os
import re
import unittest

from ggml_lite import Evaluation, Model, Options, Training, TrainingFacts, TrainingReport

PAGE = os.environ.get("PYTHON_PAGE", "")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@unittest.skipUnless(PAGE, "the variable PYTHON_PAGE does not name the page docs/python.md")
class Page(unittest.TestCase):
    def test_programs_print_what_the_page_says(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = BLOCK.findall(file.read())
        names, n = {}, 0
        for k, (language, program) in enumerate(blocks):
            if language != "python" or ("numpy" in program and not importlib.util.find_spec("numpy")):
                continue
            n += 1
            printed = io.StringIO()
            with self.subTest(program), contextlib.redirect_stdout(printed):
                exec(compile(program, f"{PAGE}, program {n}", "exec"), names)  # names go on from one to the next
            follows = blocks[k + 1] if k + 1 < len(blocks) else ("", "")
            with self.subTest(program):
                self.assertEqual(printed.getvalue(), follows[1] if follows[0] == "text" else "")
        self.assertGreater(n, 4)

    def test_page_names_every_option(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        arguments = [name for name, p in inspect.signature(Model).parameters.items() if p.kind is p.KEYWORD_ONLY]
        arguments += [*inspect.signature(Training).parameters][1:] + [*inspect.signature(Training.run).parameters][2:]
        for name in [*Options.__annotations__, *arguments]:
            self.assertIn(f"\n| `{name}` | ", page)
        for name in [*TrainingReport._fields, *TrainingFacts._fields, *Evaluation._fields]:
            self.assertIn(f"`{name}`", page)
        for name, _ in [*inspect.getmembers(Model), *inspect.getmembers(Training)]:
            if not name.startswith("_"):
                self.assertTrue(re.search(rf"\b{name}\b", page), name)


if __name__ == "__main__":
    unittest.main()
