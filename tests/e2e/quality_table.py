#!/usr/bin/env python3
"""scripts/quality-table.py reads what the tools print: a row for each type. quality_table.py BIN-FOLDER SCRIPT MODEL

MODEL: rows of 128 and 352 elements, so that q4_0 fits all matrices and q4_k none."""
import os
import re
import subprocess
import sys

from checks import check, finish, path, put, runner

BIN, SCRIPT, MODEL = (os.path.abspath(word) for word in sys.argv[1:4])
run = runner(BIN)
run("llm-quantize", "-q", "--allow-requantize", "--pure", MODEL, path("f32.gguf"), "F32")
put("text", b"Once upon a time, there was a little girl named Lily. She liked to play outside in the park. " * 12)
r = subprocess.run([sys.executable, SCRIPT, "--bin", BIN, "--chunks", "1", "-c", "64", path("f32.gguf"), path("text"), "q4_0", "q4_k"],
                   capture_output=True, text=True, timeout=600, check=False)
check(r.returncode == 0, "exit code", r.stderr)
rows = {cell[0]: cell for cell in ([word.strip() for word in line.split("|")[1:-1]] for line in r.stdout.splitlines() if line.startswith("|"))}
check(set(rows) >= {"unquantized", "q4_0", "q4_k"}, "rows", r.stdout)
for name, share in (("q4_0", "100 %"), ("q4_k", "0 %")):
    row = rows.get(name, [])
    check(len(row) == 11 and row[3] == share and all(re.search(r"[1-9]", word) for word in row[4:6]), name, (row, r.stderr))
sys.exit(finish())
