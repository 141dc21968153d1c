#!/usr/bin/env python3
"""calls_table.py LIBRARY CASES: answers of models with what they should be read as, from CASES, a file outside of the repository. Reads each with
llm_calls, whole and byte by byte, and prints a table: per template, how many cases are the same, differ, or differ because the answer is cut off.

CASES has a JSON object in each line:
    template   name for the table             source     text of the chat template
    prompt     the prompt                     begun      how many characters at its end belong to the answer (0 if absent)
    tools      list in OpenAI's form, or null input      the answer
    partial    true: the answer is cut off    skip       a reason why the case is not compared (absent: it is)
    expect     {"content", "reasoning", "calls": [{"name", "arguments" (a text)}]}, without what `begun` holds
Texts are compared without white space at their ends, arguments as JSON. Exits with 77 if CASES is absent, with 1 if pieces make a difference."""
import collections
import ctypes as c
import json
import os
import sys


class Str(c.Structure):
    _fields_ = [("s", c.c_char_p), ("n", c.c_size_t)]


class Params(c.Structure):
    _fields_ = [("size", c.c_size_t), ("format", Str), ("template_text", Str), ("prompt", Str), ("n_begun", c.c_size_t), ("tools", Str),
                ("partial", c.c_bool), ("max_size", c.c_size_t), ("max_steps", c.c_uint64), ("max_bytes", c.c_size_t)]


class Part(c.Structure):
    _fields_ = [("kind", c.c_int), ("begins", c.c_bool)] + [(name + end, kind) for name in ("text", "name", "arguments", "id") for end, kind in
                (("_s", c.c_void_p), ("_n", c.c_size_t))] + [("has_begun", c.c_bool), ("error", c.c_char_p)]


def string(text):
    data = text.encode("utf-8", "surrogatepass")
    return Str(data, len(data))


def text_of(part, name):
    n = getattr(part, name + "_n")
    return c.string_at(getattr(part, name + "_s"), n) if n else b""


class Reader:
    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.llm_calls_format.restype = Str
        self.lib.llm_calls_format.argtypes = [Str]
        self.lib.llm_calls_next.restype = c.c_bool
        for name in ("llm_calls_finish", "llm_calls_cut"):
            getattr(self.lib, name).argtypes = [c.c_void_p, c.c_void_p]
        self.lib.llm_calls_add.argtypes = [c.c_void_p, c.c_char_p, c.c_size_t, c.c_void_p]
        self.lib.llm_calls_next.argtypes = [c.c_void_p, c.POINTER(Part)]
        self.lib.llm_calls_free.argtypes = [c.c_void_p]

    def format(self, source):
        found = self.lib.llm_calls_format(string(source))
        return found.s[:found.n].decode()

    def read(self, case, piece):
        data, got = case["input"].encode(), {"content": b"", "reasoning": b"", "calls": [], "broken": 0}
        begun = case["prompt"][len(case["prompt"]) - case.get("begun", 0):]
        params = Params(c.sizeof(Params), string(""), string(case["source"]), string(case["prompt"]), len(begun.encode()),
                        string(json.dumps(case["tools"]) if case["tools"] else ""))
        calls, part = c.c_void_p(), Part()
        if self.lib.llm_calls_new(c.byref(calls), c.byref(params), None):
            raise SystemExit("llm_calls_new fails for " + case["template"])
        steps = [data[i:i + piece] for i in range(0, len(data), piece)] + [None]
        for step in steps:
            if step is not None:
                self.lib.llm_calls_add(calls, step, len(step), None)
            else:
                (self.lib.llm_calls_cut if case.get("partial") else self.lib.llm_calls_finish)(calls, None)
            while self.lib.llm_calls_next(calls, c.byref(part)):
                if part.kind < 2:
                    got[("content", "reasoning")[part.kind]] += text_of(part, "text")
                elif part.kind == 2:
                    got["calls"].append((text_of(part, "name").decode(), json.loads(text_of(part, "arguments"))))
                else:
                    got["broken"] += 1
        self.lib.llm_calls_free(calls)
        return got


def arguments_of(text):
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def differs(expect, got):
    calls = [(call["name"], arguments_of(call["arguments"])) for call in expect["calls"]]
    return [name for name in ("content", "reasoning") if expect[name].strip() != got[name].decode("utf-8", "replace").strip()] + \
        ["calls"] * (calls != got["calls"])


def main(library, cases):
    if not os.path.exists(cases):
        print("skipped: there is no file of cases", cases)
        return 77
    reader, table, wrong = Reader(library), collections.OrderedDict(), []
    with open(cases, encoding="utf-8") as f:
        for line in f:
            case = json.loads(line)
            row = table.setdefault(case["template"], [reader.format(case["source"])] + [0] * 6)
            whole, cut = reader.read(case, max(1, len(case["input"]))), reader.read(case, 1)
            why = differs(case["expect"], whole)
            row[1] += 1
            row[6] += whole != cut
            row[5 if case.get("skip") else 2 if not why else 4 if case.get("partial") else 3] += 1
            if why and not case.get("skip"):
                wrong.append("%s: %s: %r gives %r, not %r" % (case["template"], ", ".join(why), case["input"], whole, case["expect"]))
    print("| template | format | cases | same | differ | differ (cut off) | not compared | pieces differ |\n|---|---|---|---|---|---|---|---|")
    for name, row in table.items():
        print("| " + " | ".join(map(str, [name] + row)) + " |")
    sums = [sum(row[i] for row in table.values()) for i in range(1, 7)]
    print("| **sum** | | " + " | ".join(map(str, sums)) + " |")
    print("\n".join(wrong))
    return 1 if sums[5] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
