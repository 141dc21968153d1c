"""The programs of README.md run, and print the text below them: readme.py SOURCE_DIR LIBRARY CC. The page's C program is compiled against the
headers of the sources and the shared library; its Python program uses the package of the sources with this library."""
import os
import re
import subprocess
import sys
import tempfile

source, library, cc = sys.argv[1:]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FOLDERS = "library", "train", "models", "backends", "ggml-lite"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def command(language, program, folder):
    """The command that runs a program of the page."""
    if language == "python":
        write(folder + "/program.py", program)
        return [sys.executable, folder + "/program.py"]
    write(folder + "/program.c", program)
    include = [flag for name in FOLDERS for flag in ("-I", f"{source}/{name}/include")]
    subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", *include, "-o", folder + "/program", folder + "/program.c", library,
                    "-Wl,-rpath," + os.path.dirname(library)], check=True)
    return [folder + "/program"]


def main():
    with open(source + "/README.md", encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    environment = dict(os.environ, PYTHONPATH=source + "/python/src", GGML_LITE_LIBRARY=library, PYTHONDONTWRITEBYTECODE="1")
    ran, failed = set(), 0
    for (language, program), (below, expected) in zip(blocks, blocks[1:] + [("", "")]):
        if language not in ("c", "python"):
            continue
        ran.add(language)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command(language, program, folder), env=environment, capture_output=True, text=True, check=False)
        if done.returncode or below != "text" or done.stdout.rstrip("\n") != expected.rstrip("\n"):
            print(f"the {language} program of README.md: exit code {done.returncode}\n{done.stdout}\n{done.stderr}\nand not\n{expected}")
            failed = 1
    return failed or ran != {"c", "python"}


if __name__ == "__main__":
    sys.exit(main())
