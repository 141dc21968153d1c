"""The package as it is installed: files, types, and how the library is found."""
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ggml_lite
from ggml_lite import Model, Options, _find

PACKAGE = Path(ggml_lite.__file__).parent


def run_python(program, folder, **variables):
    """Runs a program in another process, for which the package is the one in this folder."""
    environment = {name: value for name, value in os.environ.items() if name != _find.VARIABLE}
    environment.update(variables, PYTHONPATH=str(folder))
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr


class Package(unittest.TestCase):
    def test_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").is_file())
        for name in ggml_lite.__all__:
            self.assertTrue(hasattr(ggml_lite, name), name)

    def test_everything_public_is_documented(self):
        for part in (Model, ggml_lite.Training, ggml_lite.TrainingReport, ggml_lite.TrainingFacts, ggml_lite.Stream, ggml_lite.Run, Options, ggml_lite.Error, ggml_lite.Cancelled, ggml_lite.Status):
            self.assertTrue(part.__doc__, part)
        for name, member in [*inspect.getmembers(Model), *inspect.getmembers(ggml_lite.Training)]:
            if not name.startswith("_"):
                self.assertTrue(inspect.getdoc(member), name)
        for name in Options.__annotations__:
            self.assertRegex(Options.__doc__, rf"(?m)^ *{name} ")


class Library(unittest.TestCase):
    PROGRAM = "import ggml_lite; print(ggml_lite.library_path())"

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        inside = self.folder / "ggml_lite"
        shutil.copytree(PACKAGE, inside, ignore=shutil.ignore_patterns("__pycache__", _find.FILE_NAME, *_find.for_training(_find.FILE_NAME)))
        self.library = ggml_lite.library_path()

    def test_not_found(self):
        out, err = run_python(self.PROGRAM, self.folder)
        if not err:
            self.skipTest(f"the system has a library of this name: {out}")
        for words in ("ImportError", "GGML_LITE_LIBRARY, which is not set", str(self.folder / "ggml_lite" / _find.FILE_NAME), "cmake --build"):
            self.assertIn(words, err)

    def test_environment_variable(self):
        out, err = run_python(self.PROGRAM, self.folder, GGML_LITE_LIBRARY=self.library)
        self.assertEqual(out, self.library, err)
        out, err = run_python(self.PROGRAM, self.folder, GGML_LITE_LIBRARY="/no/such/library")
        self.assertIn("GGML_LITE_LIBRARY, which is '/no/such/library'", err)
        self.assertNotIn("the package,", err)

    def test_in_the_package(self):
        inside = self.folder / "ggml_lite" / _find.FILE_NAME
        inside.symlink_to(self.library)
        self.assertEqual(run_python(self.PROGRAM, self.folder)[0], str(inside))

    def test_for_training(self):
        program = "import ggml_lite; print(ggml_lite.Training('builtin:stories', 'a.txt', n_steps=1).facts.kind)"
        (self.folder / "a.txt").write_text("Once upon a time there was a cat. " * 40)
        inside = self.folder / "ggml_lite" / _find.FILE_NAME
        shutil.copy(self.library, inside)
        err = run_python(program, self.folder)[1]
        trains = _find.for_training(str(inside))[0]
        for words in ("ImportError", f"needs the shared library {Path(trains).name} beside {inside}", f"  - {trains}: ", "--target llm-train-shared"):
            self.assertIn(words, err)
        if sys.platform == "linux":  # that of another version
            version = ggml_lite.__version__.encode()
            library = Path(_find.for_training(os.path.realpath(self.library))[0]).read_bytes()
            Path(trains).write_bytes(library.replace(b"LLM_PRIVATE_" + version, b"LLM_PRIVATE_" + b"9" * len(version)))
            self.assertIn("version `LLM_PRIVATE_999", run_python(program, self.folder)[1])
            Path(trains).unlink()
        inside.unlink()
        inside.symlink_to(self.library)  # it is beside the file to which this leads
        self.assertEqual(run_python(program, self.folder), ("text", ""))

    def test_in_a_build_folder(self):
        source = self.folder / "clone" / "python" / "src"
        source.mkdir(parents=True)
        shutil.copytree(self.folder / "ggml_lite", source / "ggml_lite")
        (source.parent / "pyproject.toml").touch()
        (self.folder / "clone" / "CMakePresets.json").touch()
        for build in ("debug", "release", "zoo"):
            made = self.folder / "clone" / "build" / build / "lib"
            made.mkdir(parents=True)
            (made / _find.FILE_NAME).symlink_to(self.library)
        sanitized = self.folder / "clone" / "build" / "asan" / "lib"
        sanitized.mkdir(parents=True)
        (sanitized / _find.FILE_NAME).write_bytes(b"..__asan_init..")
        found = [path.parent.parent.name for path in _find.in_builds(self.folder / "clone")]
        if _find.is_sanitized(Path(self.library)):
            self.skipTest("the library that is tested has a sanitizer")
        self.assertEqual(found[0], "release")
        self.assertEqual(sorted(found), ["debug", "release", "zoo"])
        out, err = run_python(self.PROGRAM, source)
        self.assertEqual(out, str(self.folder / "clone" / "build" / "release" / "lib" / _find.FILE_NAME), err)

    def test_damaged_and_foreign_libraries(self):
        damaged = self.folder / "damaged.so"
        damaged.write_bytes(b"this is no library")
        self.assertIn("damaged.so", run_python(self.PROGRAM, self.folder, GGML_LITE_LIBRARY=str(damaged))[1])
        name = {"linux": "libm.so.6"}.get(sys.platform)
        if name:
            self.assertIn("does not fit the library", run_python(self.PROGRAM, self.folder, GGML_LITE_LIBRARY=name)[1])

    def test_another_version(self):
        (self.folder / "ggml_lite" / "_version.py").write_text('__version__ = "99.0.0"\n')
        err = run_python(self.PROGRAM, self.folder, GGML_LITE_LIBRARY=self.library)[1]
        self.assertIn("ggml_lite 99.0.0 does not fit the library", err)


if __name__ == "__main__":
    unittest.main()
