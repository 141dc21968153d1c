#!/usr/bin/env python3
"""Random JSON schemas against a validator that shares no code with the product: instances are judged alike, and random texts of the
grammars are valid. And the schemas of ../shared/json, if that folder is there.

    schemas.py LLM_GRAMMAR SCHEMA_SAMPLES [--rounds N] [--seed N] [--shared FOLDER]"""
import argparse
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from fractions import Fraction

# --- the validator ---------------------------------------------------------------------------------------------------------


def type_of(v):
    return {type(None): "null", bool: "boolean", int: "integer", Fraction: "number", str: "string", list: "array", dict: "object"}[type(v)]


def is_type(v, name):
    if name == "integer":
        return type(v) is int or (isinstance(v, Fraction) and v.denominator == 1)
    return type_of(v) == name or (name == "number" and type_of(v) == "integer")


def same(a, b):
    numbers = (int, Fraction)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, numbers) and isinstance(b, numbers):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def object_words(s, v, ok):
    """The names that the keywords evaluate; None: v is invalid."""
    names, patterns, seen = s.get("properties", {}), s.get("patternProperties", {}), set()
    for k, x in v.items():
        known = k in names
        if known and not ok(names[k], x):
            return None
        for p in patterns:
            if re.search(p, k, re.ASCII):
                known = True
                if not ok(patterns[p], x):
                    return None
        if not known and not ok(s.get("additionalProperties", True), x):
            return None
        if known or "additionalProperties" in s:
            seen.add(k)
        if not ok(s.get("propertyNames", True), k):
            return None
    if any(k not in v for k in s.get("required", [])):
        return None
    if any(k in v and any(n not in v for n in needs) for k, needs in s.get("dependentRequired", {}).items()):
        return None
    return seen if s.get("minProperties", 0) <= len(v) <= s.get("maxProperties", len(v)) else None


def array_words(s, v, ok):
    """The indices that the keywords evaluate; None: v is invalid."""
    prefix = s.get("prefixItems", [])
    if not all(ok(p, x) for p, x in zip(prefix, v)) or not all(ok(s.get("items", True), x) for x in v[len(prefix):]):
        return None
    seen = set(range(len(v) if "items" in s else min(len(prefix), len(v))))
    if "contains" in s:
        fitting = {i for i, x in enumerate(v) if ok(s["contains"], x)}
        if not s.get("minContains", 1) <= len(fitting) <= s.get("maxContains", len(v)):
            return None
        seen |= fitting
    if s.get("uniqueItems") and any(same(a, b) for i, a in enumerate(v) for b in v[:i]):
        return None
    return seen if s.get("minItems", 0) <= len(v) <= s.get("maxItems", len(v)) else None


def number_words(s, v):
    for word, right in (("minimum", lambda b: v >= b), ("maximum", lambda b: v <= b), ("exclusiveMinimum", lambda b: v > b),
                        ("exclusiveMaximum", lambda b: v < b), ("multipleOf", lambda b: Fraction(v) / b % 1 == 0)):
        if word in s and not right(s[word]):
            return False
    return True


def own_words(s, v, ok):
    """Keywords of one type. None: v is invalid; otherwise what is evaluated."""
    types = s.get("type", [])
    if types and not any(is_type(v, t) for t in ([types] if isinstance(types, str) else types)):
        return None
    if "enum" in s and not any(same(v, x) for x in s["enum"]) or "const" in s and not same(v, s["const"]):
        return None
    if isinstance(v, dict):
        return object_words(s, v, ok)
    if isinstance(v, list):
        return array_words(s, v, ok)
    if isinstance(v, str):
        fits = s.get("minLength", 0) <= len(v) <= s.get("maxLength", len(v))
        fits = fits and ("pattern" not in s or re.search(s["pattern"], v, re.ASCII) is not None)
    else:
        fits = isinstance(v, bool) or v is None or number_words(s, v)
    return set() if fits else None


def combining_words(root, s, v):
    """Keywords whose schemas are those of the same value. None: v is invalid; otherwise what is evaluated."""
    def of(sub):
        return evaluated(root, sub, v)
    every = [of(x) for x in s.get("allOf", [])]
    if "$ref" in s:
        every.append(of(root["$defs"][s["$ref"].split("/")[-1]]))
    if isinstance(v, dict):
        every += [of(x) for k, x in s.get("dependentSchemas", {}).items() if k in v]
    if "if" in s:
        condition = of(s["if"])
        every += [condition] if condition is not None else []
        every.append(of(s.get("else" if condition is None else "then", True)))
    some, one = [of(x) for x in s.get("anyOf", [])], [of(x) for x in s.get("oneOf", [])]
    if None in every or some and all(x is None for x in some) or one and sum(x is not None for x in one) != 1:
        return None
    if "not" in s and of(s["not"]) is not None:
        return None
    return set().union(*(x for x in every + some + one if x is not None))


def evaluated(root, s, v):
    """The names or indices of v that the schema evaluates; None: v is invalid."""
    if isinstance(s, bool):
        return set() if s else None
    own = own_words(s, v, lambda sub, x: valid(root, sub, x))
    others = combining_words(root, s, v) if own is not None else None
    if others is None:
        return None
    seen = own | others
    for word, kind, elements in (("unevaluatedProperties", dict, lambda: v.items()), ("unevaluatedItems", list, lambda: enumerate(v))):
        if word in s and isinstance(v, kind):
            if not all(valid(root, s[word], x) for k, x in elements() if k not in seen):
                return None
            seen = {k for k, _ in elements()}
    return seen


def valid(root, s, v):
    return evaluated(root, s, v) is not None


# --- random schemas and values ---------------------------------------------------------------------------------------------

NAMES = ["a", "b", "ab", "x y", "é", ""]
STRINGS = ["", "a", "b", "ab", "aa", "ba", "é😀", "a\"\\/b", "\n\t", "1", "12", "a1", "<&>"]
PATTERNS = ["^a", "b$", "^[ab]+$", "a|b", "^(a|12)?$", "[0-9]{1,2}", "^.{2}$", "^(?!a)", "^[^a]*$", "^a.*b$", "(^|b)a", "^\\w*$",
            "a?(?!^)b", "^a*(?!^)b", "a?^b", "1{0}(?!^)a", "b?(^|1)a"]
NUMBERS = ["0", "1", "-1", "2", "10", "-12", "0.5", "-0.25", "2.5", "99", "100", "1e3", "0.1", "12.34", "-3.75", "7", "5"]


class Random(random.Random):
    def few(self, items, most=3):
        return self.sample(items, self.randint(0, min(most, len(items))))

    def number(self):
        return Number(self.choice(NUMBERS))

    def value(self, depth=0):
        kind = self.randint(0, 5 if depth < 2 else 3)
        if kind == 0:
            return self.choice([None, True, False])
        if kind == 1 or kind == 2 and self.random() < 0.3:
            return self.number()
        if kind in (2, 3):
            return self.choice(STRINGS)
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.randint(0, 3))]
        return {k: self.value(depth + 1) for k in self.few(NAMES)}


class Number:
    """A number as it is spelled."""

    def __init__(self, text):
        self.text = text
        value = Fraction(text)
        self.value = int(value) if value.denominator == 1 else value


def plain(v):
    """With the numbers' values."""
    if isinstance(v, Number):
        return v.value
    if isinstance(v, list):
        return [plain(x) for x in v]
    return {k: plain(x) for k, x in v.items()} if isinstance(v, dict) else v


def text(v, ascii_only=False):
    if isinstance(v, Number):
        return v.text
    if isinstance(v, list):
        return "[" + ", ".join(text(x, ascii_only) for x in v) + "]"
    if isinstance(v, dict):
        return "{" + ", ".join(json.dumps(k, ensure_ascii=ascii_only) + ": " + text(x, ascii_only) for k, x in v.items()) + "}"
    return json.dumps(v, ensure_ascii=ascii_only)


def number_schema(r, _):
    s = {"type": r.choice(["number", "number", "integer"])}
    for word in r.few(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], 2):
        s[word] = r.number()
    if r.random() < 0.2:
        s["multipleOf"] = Number(r.choice(["1", "2", "0.5", "3", "10", "0.01", "2.5", "15", "0.07", "1.5", "1.7", "7"]))
    return s


def string_schema(r, _):
    s = {"type": "string"}
    if r.random() < 0.5:
        s["pattern"] = r.choice(PATTERNS)
    if r.random() < 0.3:
        s["minLength"] = r.randint(0, 3)
    if r.random() < 0.3:
        s["maxLength"] = r.randint(0, 4)
    return s


def object_schema(r, depth):
    s = {"type": "object"} if r.random() < 0.8 else {}
    names = r.few(NAMES, 4)
    if r.random() < 0.8:
        s["properties"] = {k: schema(r, depth + 1) for k in names}
    if r.random() < 0.5:
        s["required"] = r.few(NAMES, 2)
    if r.random() < 0.4:
        s["additionalProperties"] = r.choice([False, False, True, schema(r, depth + 1)])
    if r.random() < 0.15:
        s["patternProperties"] = {p: schema(r, depth + 1) for p in r.few(PATTERNS, 2)}
    if r.random() < 0.1:
        s["propertyNames"] = string_schema(r, 0)
    if r.random() < 0.1:
        s["minProperties"] = r.randint(0, 2)
    if r.random() < 0.1:
        s["maxProperties"] = r.randint(0, 3)
    if r.random() < 0.1:
        s["dependentRequired"] = {r.choice(NAMES): r.few(NAMES, 2)}
    if r.random() < 0.1:
        s["dependentSchemas"] = {r.choice(NAMES): schema(r, depth + 1)}
    return with_unevaluated(r, s, "unevaluatedProperties", depth)


def array_schema(r, depth):
    s = {"type": "array"}
    if r.random() < 0.3:
        s["prefixItems"] = [schema(r, depth + 1) for _ in range(r.randint(1, 2))]
    if r.random() < 0.7:
        s["items"] = schema(r, depth + 1)
    if r.random() < 0.3:
        s["minItems"] = r.randint(0, 2)
    if r.random() < 0.3:
        s["maxItems"] = r.randint(0, 3)
    if r.random() < 0.2:
        s["contains"] = schema(r, depth + 1)
        for word in r.few(["minContains", "maxContains"], 2):
            s[word] = r.randint(0, 2)
    if r.random() < 0.1:
        s["uniqueItems"] = True
    return with_unevaluated(r, s, "unevaluatedItems", depth)


def finite_array_schema(r, depth):
    """Arrays of different items, of which there are few."""
    few = [lambda: {"enum": [r.value(1) for _ in range(r.randint(1, 4))]}, lambda: {"type": ["null", "boolean"]},
           lambda: {"type": "integer", "minimum": r.number(), "maximum": r.number()}, lambda: {"type": "string", "maxLength": 0}]
    s = {"type": "array", "uniqueItems": True, "items": r.choice(few)()}
    if r.random() < 0.4:
        s["prefixItems"] = [r.choice(few)() for _ in range(r.randint(1, 3))]
        s["items"] = r.choice([False, s["items"]])
    for word in r.few(["minItems", "maxItems"], 2):
        s[word] = r.randint(0, 4)
    return s


def with_unevaluated(r, s, word, depth):
    """Adds the keyword, and often keywords whose schemas are those of the same value."""
    make = object_schema if word == "unevaluatedProperties" else array_schema
    if depth > 2 or r.random() > 0.25:
        return s
    s[word] = r.choice([False, False, schema(r, depth + 2)])
    for word in r.few(["allOf", "anyOf", "oneOf", "if"], 2):
        if word == "if":
            s.update({w: make(r, depth + 1) for w in ["if"] + r.few(["then", "else"], 2)})
        else:
            s[word] = [make(r, depth + 1) for _ in range(r.randint(1, 3))]
    return s


def combined_schema(r, depth):
    s = object_schema(r, depth) if r.random() < 0.5 else {}
    word = r.choice(["allOf", "anyOf", "oneOf", "not", "if"])
    if word in ("allOf", "anyOf", "oneOf"):
        s[word] = [schema(r, depth + 1) for _ in range(r.randint(1, 3))]
    elif word == "not":
        s["not"] = schema(r, depth + 1)
    else:
        s.update({w: schema(r, depth + 1) for w in ["if"] + r.few(["then", "else"], 2)})
    return s


def schema(r, depth=0):
    if depth > 3 or r.random() < 0.12:
        return r.choice([True, {}, {"type": "string"}, {"type": "integer"}, {"type": ["null", "boolean"]}, {"const": r.value(1)},
                         {"enum": [r.value(1) for _ in range(r.randint(1, 4))]}, {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}])
    make = [number_schema, string_schema, object_schema, object_schema, array_schema, finite_array_schema, combined_schema]
    return r.choice(make)(r, depth)


def has_loop(s, names, defs):
    """Whether a schema is defined by itself without going into an element: then it means nothing."""
    if not isinstance(s, dict):
        return False
    if "$ref" in s:
        name = s["$ref"].split("/")[-1]
        if name in names or has_loop(defs[name], names | {name}, defs):
            return True
    parts = s.get("allOf", []) + s.get("anyOf", []) + s.get("oneOf", []) + [s[w] for w in ("not", "if", "then", "else") if w in s]
    parts += s.get("dependentSchemas", {}).values()
    return any(has_loop(p, names, defs) for p in parts)


def root_schema(r):
    while True:
        s = schema(r)
        if not isinstance(s, dict):
            s = {}
        s["$defs"] = {"one": schema(r, 2), "two": schema(r, 1)}
        if not has_loop(s, set(), s["$defs"]) and not any(has_loop(s["$defs"][k], {k}, s["$defs"]) for k in s["$defs"]):
            return s


def likely(r, root, s, depth=0):
    """A value that may be valid."""
    if not isinstance(s, dict) or depth > 4 or r.random() < 0.1:
        return r.value(depth)
    if "enum" in s:
        return r.choice(s["enum"])
    if "const" in s:
        return s["const"]
    if "$ref" in s:
        return likely(r, root, root["$defs"][s["$ref"].split("/")[-1]], depth + 1)
    branches = [x for w in ("allOf", "anyOf", "oneOf") for x in s.get(w, [])] + [s[w] for w in ("then", "else", "if") if w in s]
    v = likely(r, root, r.choice(branches), depth) if branches and r.random() < 0.7 else None
    kind = s.get("type")
    kind = r.choice(kind) if isinstance(kind, list) else kind
    if "properties" in s or "required" in s or kind == "object":
        v = dict(v) if isinstance(v, dict) else {}
        names = s.get("properties", {})
        for k in list(names) + s.get("required", []):
            if k in s.get("required", []) or r.random() < 0.6:
                v[k] = likely(r, root, names.get(k, s.get("additionalProperties", True)), depth + 1)
        if r.random() < 0.3:
            v[r.choice(NAMES + ["zz"])] = likely(r, root, s.get("additionalProperties", True), depth + 1)
        keys = list(v)
        r.shuffle(keys)
        return {k: v[k] for k in keys}
    if kind == "array":
        items = list(s.get("prefixItems", []))[:3]
        items += [s.get("items", True)] * r.randint(s.get("minItems", 0), 4)
        items = [r.choice([x, x, s.get("contains", x)]) for x in items]
        if isinstance(v, list) and r.random() < 0.5:
            return v
        return [likely(r, root, x, depth + 1) for x in items]
    if kind in ("number", "integer"):
        return r.number()
    if kind == "string":
        return r.choice(STRINGS)
    return v if branches else r.value(depth)


def canonical(v):
    """Numbers that the schema calls integers are spelled without exponent or fraction, as the grammar does."""
    if isinstance(v, Number) and isinstance(v.value, int):
        return Number(str(v.value))
    if isinstance(v, list):
        return [canonical(x) for x in v]
    return {k: canonical(x) for k, x in v.items()} if isinstance(v, dict) else v


# --- checks ----------------------------------------------------------------------------------------------------------------


def judge(tool, rows):
    """Judges rows by llm-grammar --bench; exits if one is misjudged."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(rows) + "\n")
        run = subprocess.run([tool, "--bench", path], capture_output=True, text=True, encoding="utf-8")
    if run.returncode != 0:
        for line in run.stdout.splitlines()[:10]:
            print(line)
        for name in re.findall(r"^misjudged: (\S+):", run.stdout, re.M)[:3]:
            print([x for x in rows if x.startswith('{"name": "%s",' % name)][0])
        sys.exit("misjudged: " + run.stderr)
    return float(re.search(r"^passing +\d+ +([0-9.]+) %", run.stdout, re.M).group(1)), run.stdout


def check_samples(program, seed, schemas, texts_of, count):
    """Random texts of the grammars are valid."""
    run = subprocess.run([program, str(seed), str(count)], input="\n".join(texts_of) + "\n", capture_output=True, text=True, encoding="utf-8")
    if run.returncode != 0:
        sys.exit(run.stderr)
    lines = iter(run.stdout.split("\n"))
    checked = 0
    for s, written in zip(schemas, texts_of):
        line = next(lines)
        if line.startswith("refused "):
            continue
        for _ in range(count):
            try:
                v = json.loads(line, parse_float=Fraction, object_pairs_hook=dict)
            except ValueError as e:
                sys.exit(f"{written}\nproduces {line}\nwhich is no JSON: {e}")
            if not valid(s, s, v):
                sys.exit(f"{written}\nproduces {line}\nwhich is invalid")
            checked += 1
            line = next(lines)
        if line:
            sys.exit(f"a line too many: {line}")
    return checked


def check_random(a, seed):
    r = Random(seed)
    rows, schemas, texts_of = [], [], []
    for i in range(a.rounds):
        s = root_schema(r)
        known = plain(s)
        tests = []
        for _ in range(8):
            v = canonical(likely(r, s, s))
            tests.append('{"valid": %s, "data": %s}' % ("true" if valid(known, known, plain(v)) else "false", text(v)))
        rows.append('{"name": "%d-%d", "schema": %s, "tests": [%s]}' % (seed, i, text(s), ", ".join(tests)))
        schemas.append(known)
        texts_of.append(text(s))
    share, _ = judge(a.tool, rows)
    n_valid = sum(x.count('{"valid": true') for x in rows)
    print(f"{a.rounds} schemas: {share} % understood, {n_valid} valid instances; {check_samples(a.samples, seed, schemas, texts_of, 4)} texts produced")
    if share < 50 or n_valid < a.rounds:
        sys.exit("too little is checked")


def check_shared(a):
    folder = os.path.join(a.shared, "json", "schemas")
    rows = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            rows.append(re.sub(r"^\{", '{"name": "%s", ' % name, json.dumps({k: v for k, v in json.load(f).items() if k != "name"}, ensure_ascii=False)))
    share, _ = judge(a.tool, rows)
    if share < 100:
        sys.exit(f"{folder}: {share} % pass, not all")
    path = os.path.join(a.shared, "json", "published", "schemas.jsonl.xz")
    with lzma.open(path, "rt", encoding="utf-8") as f:
        share, table = judge(a.tool, [x for x in f.read().split("\n") if x])
    print(table)
    if share < 95:
        sys.exit(f"{path}: {share} % pass, not 95")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool")
    p.add_argument("samples")
    p.add_argument("--rounds", type=int, default=400)
    p.add_argument("--seed", type=int, default=int(os.environ.get("GGL_TEST_SEED", int(time.time()) // 86400)))
    p.add_argument("--shared")
    a = p.parse_args()
    print(f"GGL_TEST_SEED={a.seed}")
    check_random(a, a.seed)
    if a.shared:
        check_shared(a)


if __name__ == "__main__":
    main()
