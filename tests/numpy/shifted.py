#!/usr/bin/env python3
"""llm-cli --prompt-cache with models that have states, of which the context is shifted until the slot no longer holds the prompt: the
text is complete, the exit code 0, and the next run begins from the file with the same text.

    shifted.py --cli LLM_CLI --dir FOLDER
"""
import argparse
import os
import subprocess
import sys
import tempfile

import gguf
import nano

FAMILIES = ["qwen3next", "rwkv6", "jamba", "granitehybrid"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    a = p.parse_args()
    failed = 0
    for family in FAMILIES:
        case = nano.CASES[nano.load_family(family)[0]]
        with tempfile.TemporaryDirectory(dir=a.dir) as folder:
            model, cache = os.path.join(folder, "m.gguf"), os.path.join(folder, "cache")
            gguf.write(model, case.meta(), case.tensors)
            command = [a.cli, "-m", model, "--tokens", ",".join(map(str, case.tokens[:16])), "-n", "60", "-c", "40", "--on-full", "shift", "--ignore-eos",
                       "--temp", "0", "--prompt-cache", cache]
            for keep in ("3", "0"):
                runs = [subprocess.run([*command, "--keep", keep], stdin=subprocess.DEVNULL, capture_output=True, text=True) for _ in range(2)]
                ok = all(r.returncode == 0 and r.stdout == runs[0].stdout for r in runs) and "from cache                    15 tokens" in runs[1].stderr
                print(f"{case.name}, --keep {keep}: {'ok' if ok else 'FAILED: ' + str([(r.returncode, r.stderr) for r in runs])}")
                failed += not ok
                os.path.exists(cache) and os.unlink(cache)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
