#!/usr/bin/env python3
"""What a text may be asked for with: llm-cli and llm-server refuse each two of their flags or fields if, and only if, library/job_rules.def
says so, with its sentence and their own words. tests/models/library_wishes.c asks the library.

job_rules.py ROOT TOOLS    TOOLS: the folder of the programs"""
import json
import os
import re
import sys

ROOT, TOOLS = sys.argv[1:]
sys.path.insert(0, os.path.join(ROOT, "tests", "server"))
import dream_file
from checks import TMP, check, finish, path, runner
from running import Server

FLAGS = {"CHOICE": ["--choose", " b"], "BEAMS": ["--beams", "2"], "GRAMMAR": ["--grammar", 'root ::= "a"'], "SCHEMA": ["--json"], "BIAS": ["-l", "5+1"], "PROMPT_LOGITS": ["--logits", "x.npy"],
         "SHIFT": ["--on-full", "shift"], "LOOKUP": ["--lookup"], "DRAFT": ["--draft", "builtin:stories"], "PROMPT_CACHE": ["--prompt-cache", "x.bin"],
         "RECORD": ["--json-output"], "WATCH": ["--watch"], "CONVERSATION": ["-cnv"], "INTERACTIVE": ["-i"]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FIELDS = {"BEAMS": {"num_beams": 2}, "GRAMMAR": {"grammar": 'root ::= "a"'}, "SCHEMA": {"response_format": {"type": "json_object"}},
          "CALL": {"tools": [TOOL], "tool_choice": "required"}, "BIAS": {"logit_bias": {"5": 1}}, "BUDGET": {"reasoning_budget_tokens": 2}, "LOGPROBS": {"logprobs": True}}
# What reads requests refuses these two before, with a sentence about what to do; and a schema is one of content, which an answer that must call has not.
READ_BEFORE, APART = [{"GRAMMAR", "SCHEMA"}, {"GRAMMAR", "CALL"}], {"SCHEMA", "CALL"}


def rules():
    """{ID: (IDs that it goes not with, what it is, member, flag, field)}"""
    with open(os.path.join(ROOT, "library/job_rules.def"), encoding="utf-8") as file:
        rows = re.findall(r'^JOB_WISH\((\w+), (NOTHING|JOB.*?), "(.*?)", (.*?), (.*?), (.*?)\)$', file.read(), re.M)
    return {name: (re.findall(r"JOB\((\w+)\)", others), what, *(None if w == "NULL" else w.strip('"') for w in words)) for name, others, what, *words in rows}


RULES = rules()


def sentence(a, b, words):
    """What is said about a and b, a row above that of b. words: 3: flags, 4: fields."""
    if a == "DIFFUSION":
        return f"the model writes by diffusion, all of a text at once, where {RULES[b][1]} ({RULES[b][words]}) cannot be used"
    return f"{RULES[a][1]} ({RULES[a][words]}) and {RULES[b][1]} ({RULES[b][words]}) cannot be used together"


def pairs(asks):
    """Each two of them: (a, b, True if they are refused), a above b in the table."""
    order = [name for name in RULES if name in asks]
    return [(a, b, a in RULES[b][0]) for i, b in enumerate(order) for a in order[:i]]


def by_flags():
    check(set(FLAGS) == {name for name, row in RULES.items() if row[3]} - {"DIFFUSION"}, "flags of the table", set(FLAGS))
    run = runner(TOOLS, cwd=TMP.name, both=True)
    for name, flags in FLAGS.items():
        if name != "WATCH":  # which says so, and waits for another descriptor
            run("llm-cli", "-m", "d.gguf", "-p", "a fox", "-n", "2", *flags, code=2, has=sentence("DIFFUSION", name, 3))
    for a, b, refused in pairs(FLAGS):
        if refused:
            run("llm-cli", "-p", "a fox", "-n", "2", *FLAGS[a], *FLAGS[b], code=2, has=sentence(a, b, 3))
        elif "BEAMS" in (a, b) and not {"CONVERSATION", "INTERACTIVE", "WATCH"} & {a, b}:
            run("llm-cli", "-p", "a fox", "-n", "2", *FLAGS[a], *FLAGS[b], lacks="cannot be used together")


def chat(s, body):
    return s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a fox"}], "max_tokens": 40, **body})


def by_fields():
    check(set(FIELDS) == {name for name, row in RULES.items() if row[4]} - {"DIFFUSION"}, "fields of the table", set(FIELDS))
    server = os.path.join(TOOLS, "llm-server")
    with Server([server, "-m", "builtin:chat", "-t", "1", "-np", "2", "-c", "1024"]) as s:
        for a, b, refused in pairs(FIELDS):
            status, _, text = chat(s, {**FIELDS[a], **FIELDS[b]})
            error = json.loads(text).get("error", {})
            check((status == 400) == (refused and {a, b} != APART), f"{a} and {b}", status, text)
            if status == 400 and {a, b} not in READ_BEFORE:
                check(error.get("message") == sentence(a, b, 4) and error.get("param") == RULES[b][4], f"{a} and {b}", error)
    with Server([server, "-m", path("d.gguf"), "-t", "1", "-np", "2", "--chat-template", "chatml"]) as s:
        for name, body in FIELDS.items():
            status, _, text = chat(s, {**body, "max_tokens": 4})
            error = json.loads(text).get("error", {})
            check(status == 400 and error.get("message") == sentence("DIFFUSION", name, 4) and error.get("param") == RULES[name][4], name, status, text)


def in_docs():
    with open(os.path.join(ROOT, "docs/library.md"), encoding="utf-8") as file:
        found = {tuple(c.strip() for c in line.split("|")[1:-1]) for line in file if line.count("|") == 7}
    for name, (others, what, *words) in RULES.items():
        beams = "" if name == "BEAMS" else "no" if "BEAMS" in others else "yes"
        row = (what, *(f"`{w}`" if w else "" for w in words), beams, "no" if "DIFFUSION" in others else "yes")
        check(name == "DIFFUSION" or row in found, "a row of docs/library.md", row)


dream_file.write(path("d.gguf"))
in_docs()
by_flags()
if os.path.exists(os.path.join(TOOLS, "llm-server")):
    by_fields()
sys.exit(finish())
