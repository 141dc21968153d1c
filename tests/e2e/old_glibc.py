"""libllm.so with library/glibc/old_glibc.c needs no glibc that is newer than 2.17, and works: old_glibc.py LIBRARY SOURCE_DIR"""
import os
import re
import subprocess
import sys

library, source = sys.argv[1:]
symbols = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
versions = re.findall(r"(\w+)@+GLIBC_(\d+)\.(\d+)", symbols)
assert len(versions) > 50, symbols
newer = sorted({f"{name} ({major}.{minor})" for name, major, minor in versions if (int(major), int(minor)) > (2, 17)})
assert not newer, f"functions newer than glibc 2.17, which library/glibc/old_glibc.c does not know: {', '.join(newer)}"
os.environ["GGML_LITE_LIBRARY"] = library
sys.path.insert(0, f"{source}/python/src")
from ggml_lite import Model

told = Model("builtin:stories").generate("Once upon a time", max_tokens=12, seed=1)
assert told == ", there was a young girl named Maria who lived at the", told
