"""libllm.so and libllm-train.so with library/glibc/old_glibc.c need no glibc that is newer than 2.17, and work: old_glibc.py LIBRARY TRAIN SOURCE_DIR"""
import os
import re
import subprocess
import sys
import tempfile

library, train, source = sys.argv[1:]
for path in library, train:
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True).stdout
    versions = re.findall(r"(\w+)@+GLIBC_(\d+)\.(\d+)", symbols)
    assert len(versions) > 25, symbols
    newer = sorted({f"{name} ({major}.{minor})" for name, major, minor in versions if (int(major), int(minor)) > (2, 17)})
    assert not newer, f"{path}: functions newer than glibc 2.17, which library/glibc/old_glibc.c does not know: {', '.join(newer)}"
os.environ["GGML_LITE_LIBRARY"] = library
sys.path.insert(0, f"{source}/python/src")
from ggml_lite import Model, Training

told = Model("builtin:stories").generate("Once upon a time", max_tokens=12, seed=1)
assert told == ", there was a young girl named Maria who lived at the", told
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "a.txt"), "w", encoding="utf-8") as file:
        file.write("Once upon a time there was a cat. " * 40)
    loss = Training("builtin:stories", file.name, n_steps=1, n_ctx=32).step().loss
assert 1 < loss < 10, loss
