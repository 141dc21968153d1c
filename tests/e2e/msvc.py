"""clang-cl, clang with the options and rules of Microsoft's compiler, accepts all sources that are built for Windows, on x86-64 and ARM, and the public
headers as C and as C++, without a warning, and needs nothing of clang's own library. msvc.py SOURCE_DIR BUILD_DIR [FOLDER_OF_MICROHTTPD_H]

The headers of Windows and of its C library are those of Wine, with the corrections in the folder msvc. Nothing is linked. For ARM only the folders that ask for the
processor are compiled; GGL_TEST_LONG: all."""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from checks import check, finish, path

os.environ.pop("CMAKE_C_COMPILER_LAUNCHER", None)
SOURCE, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MICROHTTPD = sys.argv[3] if len(sys.argv) > 3 else ""
OF_PROCESSORS = ("ggml-lite", "backends/cpu", "tools/common", "tools/llm-bench")


def wine_headers():
    """The folders of Wine's headers; None: they are not installed."""
    for root in ("/usr/include/wine/wine", "/usr/include/wine"):
        if os.path.exists(root + "/msvcrt/stdio.h") and os.path.exists(root + "/windows/windows.h"):
            return [root + "/msvcrt", root + "/windows"]
    return None


def skip(why):
    print("skipped:", why)
    sys.exit(77)


clang = next((name for name in [f"clang-{i}" for i in range(19, 13, -1)] + ["clang"] if shutil.which(name)), None)
if not clang:
    skip("clang 14 or later is not installed (Debian: clang)")
wine = wine_headers()
if not wine:
    skip("Wine's headers are not there (Debian: libwine-dev)")
HEADERS = [word for folder in [os.path.join(SOURCE, "tests", "e2e", "msvc")] + wine for word in ("-imsvc", folder)]


def configure(processor):
    """Configures the build for a processor; returns its folder."""
    build = os.path.join(BUILD, "msvc-" + processor)
    shutil.rmtree(build, ignore_errors=True)  # another compiler, or other headers
    options = ["-DCMAKE_TOOLCHAIN_FILE=" + SOURCE + "/cmake/msvc.cmake", "-DCMAKE_SYSTEM_PROCESSOR=" + processor, "-DGGL_TESTS=OFF",
               "-DCMAKE_C_FLAGS=" + shlex.join(HEADERS)]
    if MICROHTTPD:  # without its neighbours, which are this system's
        shutil.copy(os.path.join(MICROHTTPD, "microhttpd.h"), path("microhttpd.h"))
        options += ["-DMICROHTTPD_INCLUDE_DIR=" + os.path.dirname(path(".")), "-DMICROHTTPD_LIBRARY=microhttpd"]
    for command in (["cmake", "-G", "Unix Makefiles", "-S", SOURCE, "-B", build, *options], ["make", "-s", "-C", build, "tools-commit"]):
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"{processor}: {command[0]}", done.stdout, done.stderr)
    return build


def sources(processor, build):
    """[(what it is, a command that only checks it)] for each source of the build."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for one in json.load(f):
            name = os.path.relpath(one["file"], SOURCE)
            if not name.endswith(".c") or processor == "ARM64" and not os.environ.get("GGL_TEST_LONG") and not name.startswith(OF_PROCESSORS):
                continue
            words = [word for word in shlex.split(one["command"]) if not re.match(r"/(Fo|Fd|Zi|RTC1|c$)", word)]
            words.insert(words.index("--"), "-fsyntax-only")
            found[name] = (f"{processor}: {name}", words)
    return list(found.values())


def headers():
    """The same for each public header: twice in one source, as C and as C++; and with what only Microsoft's compiler defines."""
    roots = [os.path.join(SOURCE, part, "include") for part in ("ggml-lite", "models", "backends", "library", "train")]
    for root in roots:
        for header in sorted(glob.glob(root + "/ggl/*.h") + glob.glob(root + "/llm/*.h")):
            name = os.path.relpath(header, root)
            source = path(name.replace("/", "_") + ".inc")
            with open(source, "w", encoding="utf-8") as f:
                f.write(f'#include "{name}"\n#include "{name}"\nint header_test;\n')
            for language in ("/TC", "/TP"):
                for more in ([], ["-U__clang__"]):
                    yield (f"{name} {language} {' '.join(more)}",
                           [clang, "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "-fms-compatibility-version=19.36", "/Zs", "/W4", *more, *HEADERS,
                            *("-I" + one for one in roots), language, source])


def check_links(build):
    """No source asks clang's own library for the processor: clang-cl does not link it."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for one in json.load(f):
            with open(one["file"], encoding="utf-8") as source:
                if not one["file"].endswith(".c") or "__builtin_cpu_" not in source.read():
                    continue
            words = [word for word in shlex.split(one["command"]) if not re.match(r"/(Fo|Fd|Zi|RTC1|c$)", word)]
            words[words.index("--"):words.index("--")] = ["/c", "/clang:-S", "/clang:-o" + path("said.s")]
            done = subprocess.run(words, capture_output=True, text=True)
            check(done.returncode == 0, one["file"], done.stderr)
            with open(path("said.s"), encoding="utf-8") as said:
                check("__cpu_model" not in said.read(), one["file"], "needs __cpu_model")


def compile_one(job):
    done = subprocess.run(job[1], capture_output=True, text=True)
    return job[0], done.returncode, done.stdout + done.stderr


jobs = list(headers())
check(len(jobs) > 60, "public headers", len(jobs))
for processor in ("AMD64", "ARM64"):
    build = configure(processor)
    own = sources(processor, build)
    if processor == "AMD64":
        check_links(build)
    check(len(own) > 200, f"{processor}: sources", len(own))
    jobs += own
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for what, code, said in pool.map(compile_one, jobs):
        check(code == 0 and not said, what, said)
sys.exit(finish())
