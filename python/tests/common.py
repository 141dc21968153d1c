"""What the tests share. They test the package that Python finds; the variable LLM_CLI names the program to compare with."""
import importlib.util
import os
import subprocess
import unittest

CLI = os.environ.get("LLM_CLI", "")
STORY = "Once upon a time"

needs_cli = unittest.skipUnless(CLI, "the variable LLM_CLI does not name the program llm-cli")
needs_numpy = unittest.skipUnless(importlib.util.find_spec("numpy"), "this python has no numpy")


def cli_environment():
    """The variables for llm-cli: all but a sanitizer's library, which is for python alone."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def run_cli(*arguments: str) -> str:
    """What llm-cli prints, without the newline at its end."""
    done = subprocess.run([CLI, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, env=cli_environment())
    if done.returncode:
        raise AssertionError(f"llm-cli {' '.join(arguments)}: {done.stderr.decode(errors='replace')[-500:]}")
    text = done.stdout.decode()
    return text[:-1] if text.endswith("\n") else text
