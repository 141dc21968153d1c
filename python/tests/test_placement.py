"""Where layers run: Model(device=, split=, n_gpu_layers=) and llm-cli decide the same, and refuse with the same words."""
import re
import subprocess
import unittest

from common import CLI, cli_environment, needs_cli
from ggml_lite import Error, Model

# (device, split, n_gpu_layers). The model has five layers.
ROWS = [
    ("CPU", None, None),
    ("none", None, None),
    ("None", None, 3),
    ("Reference", None, None),
    ("cpu1,cpu", None, None),
    ("cpu1", None, 2),
    ("Cpu1,CPU2", None, 99),
    ("cpu1", None, -1),
    ("cpu,cpu1", None, 2),
    (None, "CPU=2,cpu1=3", None),
    (None, "CPU=2,cpu=3", None),
    (None, "cpu=0,cpu1=5", None),
    ("cpu", "cpu1=5", None),
    ("none", "auto", None),
    ("cpu,CPU", None, None),
    ("none,cpu1", None, None),
    ("cpu1,", None, None),
    ("cup", None, None),
    ("cpu01", None, None),
    (None, "cpu", None),
    (None, "auot", None),
    (None, "cpu=x", None),
    (None, "cpu=-1,cpu1=6", None),
    (None, "=5", None),
    (None, "cpu=5,", None),
    (None, "cup=5", None),
    (None, "cpu=2,cpu1=2", None),
    ("cpu1", "cpu=5", None),
    (None, "cpu=5", 3),
]


def by_cli(device, split, n_gpu_layers):
    """(where the layers run, None) or (None, the message, with the names that Python has); "" if llm-cli does not say where."""
    flags = [text for flag, value in (("--device", device), ("--split", split), ("-ngl", n_gpu_layers)) if value is not None
             for text in (flag, str(value))]
    done = subprocess.run([CLI, "-m", "builtin:stories", "-p", "x", "-n", "1", "-c", "64", *flags], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, env=cli_environment())
    told = done.stderr.decode()
    if done.returncode == 0:
        layers = re.search("^llm-cli: layers: (.*)$", told, re.M)
        return (layers.group(1) if layers else ""), None
    message = told.splitlines()[-1].partition(": ")[2]
    return None, message.replace("--device", "device").replace("--split", "split").replace("-ngl", "n_gpu_layers")


def by_package(device, split, n_gpu_layers):
    try:
        with Model("builtin:stories", n_ctx=64, device=device, split=split, n_gpu_layers=n_gpu_layers or 0) as model:
            return model.placement, None
    except Error as error:
        return None, str(error)


class Placement(unittest.TestCase):
    @needs_cli
    def test_as_llm_cli(self):
        for row in ROWS:
            with self.subTest(str(row)):
                want, message = by_cli(*row)
                got, own_message = by_package(*row)
                self.assertEqual(own_message, message)
                if want:
                    self.assertEqual(got, want)

    def test_names(self):
        for device, want in (("CPU", "cpu"), ("none", "cpu"), ("Cpu1,cpu", "cpu1"), ("REFERENCE", "reference")):
            self.assertEqual(by_package(device, None, None), (want, None))
        self.assertEqual(by_package("none", "auto", None), ("cpu=5", None))


if __name__ == "__main__":
    unittest.main()
