#!/usr/bin/env python3
"""families.py CHECK_GOLDEN DIR: unpacks the models NAME.gguf.xz of DIR beside their logits, and runs check-golden on them with the
built-in descriptors. Exit code: 77 without such a folder, else check-golden's."""
import lzma
import os
import shutil
import subprocess
import sys
import tempfile


def main():
    check, source = sys.argv[1:]
    packed = sorted(f for f in os.listdir(source) if f.endswith(".gguf.xz")) if os.path.isdir(source) else []
    if not packed:
        print("skipped: reference models of families: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for f in os.listdir(source):
            if f.endswith(".npy"):
                shutil.copy(os.path.join(source, f), folder)
        for f in packed:
            shutil.copy(os.path.join(source, "tokens.json"), os.path.join(folder, f[: -len(".gguf.xz")] + ".tokens.json"))
            with lzma.open(os.path.join(source, f)) as model, open(os.path.join(folder, f[: -len(".xz")]), "wb") as out:
                shutil.copyfileobj(model, out)
        return subprocess.run([check, folder], stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
