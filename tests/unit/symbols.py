#!/usr/bin/env python3
"""Every external symbol of the installed libraries begins with ggl_ or llm_, so that a program that links them can use any other name.

    symbols.py LIBRARY..   prints each that does not; exit code 0: there is none"""
import re
import subprocess
import sys

text = subprocess.run(["nm", "-A", "--defined-only", *sys.argv[1:]], check=True, capture_output=True, text=True).stdout
names = {m.group(2): m.group(1) for m in re.finditer(r"^(\S+?):(?:[0-9a-f]*) [TDBRCVWGSu] (\S+)$", text, re.M)}
wrong = sorted(n for n in names if not n.startswith(("ggl_", "llm_")))
print("\n".join(f"{n} ({names[n]})" for n in wrong) or f"{len(names)} external symbols, each with its prefix")
sys.exit(1 if wrong or len(names) < 500 else 0)
