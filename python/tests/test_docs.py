"""The programs of docs/python.md run, and print what the page says. The variable PYTHON_PAGE names the page."""
import contextlib
import importlib.util
import io
import os
import re
import unittest

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


if __name__ == "__main__":
    unittest.main()
