#!/usr/bin/env python3
"""python_members.py ROOT: Python's structs (_abi.py) have the members of those that llm/llm.h has, in their order and kinds; every member of
llm_generate_params and of trainings is set by an argument or an option of Python, or ABSENT says why not; and the numbers of samplers.def
are options of that name.

    python_members.py --test   shows that faults are found"""
import ast
import ctypes
import glob
import inspect
import os
import re
import sys
import textwrap

from sampler_rows import ROWS, rows

STRUCTS = {"Lora": "llm_lora", "FolderParams": "llm_folder_params", "Kept": "llm_kept", "TokenBias": "llm_token_bias", "Number": "llm_number",
           "GenerateParams": "llm_generate_params", "RunInfo": "llm_run_info", "Job": "llm_job", "PerplexityParams": "llm_perplexity_params",
           "PerplexityResult": "llm_perplexity_result", "ImatrixParams": "llm_imatrix_params", "ImatrixResult": "llm_imatrix_result",
           "ImatrixFile": "llm_imatrix_file", "EmbedParams": "llm_embed_params", "Choice": "llm_choice", "ChooseParams": "llm_choose_params", "Speech": "llm_speech", "Word": "llm_word", "Image": "llm_image", "Audio": "llm_audio", "TranscribeParams": "llm_transcribe_params", "VerifyNode": "llm_verify_node", "VerifyParams": "llm_verify_params", "VerifyResult": "llm_verify_result",
           "TrainingParams": "llm_training_params", "TrainingFacts": "llm_training_facts", "TrainingReport": "llm_training_report",
           "TrainingRunParams": "llm_training_run_params"}
# Members that Python does not take, each with the reason. This list may only shrink, or grow with a reason.
OF_C = "for C programs"
ABSENT = {
    "llm_generate_params": {
        "tools": "chat() and answer() have them in the conversation", "tool_choice": "answer() has it in the conversation",
        "n_stop_shown": OF_C, "grammar_name": OF_C, "same_sampler": OF_C, "user": OF_C, "token": "logits() gives them",
        "shows": OF_C, "force": OF_C, "full": OF_C, "prompt_logits": "logits() gives them", "prompt_progress": OF_C, "note": OF_C},
    "llm_training_params": {"user": "callbacks are Python's own functions", "loss": "it is made of operators of ggl/graph.h, which Python does not have"},
    "llm_training_run_params": {"user": "callbacks are Python's own functions"},
}
# Structs to which C has appended members that Python does not read.
SHORTER = {"GenerateParams", "VerifyNode", "VerifyParams", "VerifyResult"}
KINDS = {"size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "float": ctypes.c_float,
         "double": ctypes.c_double, "bool": ctypes.c_bool}


def members(header):
    """{struct: [(member, its C type; None: a pointer, a struct or an array)]}"""
    text = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", header, flags=re.S))
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
        found[name] = []
        for line in filter(None, (re.sub(r"\s+", " ", part).strip() for part in body.split(";"))):
            call = re.search(r"\(\*(\w+)\)\(", line)
            if call:
                found[name].append((call[1], None))
                continue
            kind = line.split(" ")[0]
            for one in line.split(","):
                member = re.search(r"(\w+) ?(\[\w+\])?$", one.strip())
                found[name].append((member[1], None if "*" in one or member[2] else KINDS.get(kind)))
    return found


def struct_faults(c, abi):
    faults = []
    for python, name in STRUCTS.items():
        have, want = getattr(abi, python)._fields_, c.get(name, [])
        want = want[: len(have)] if python in SHORTER else want
        if [m for m, _ in have] != [m for m, _ in want]:
            other = [f"{a} instead of {b}" for (a, _), (b, _) in zip(have, want) if a != b] or [f"{len(have)} members instead of {len(want)}"]
            faults.append(f"_abi.{python}: {other[0]} of {name}")
        faults += [f"_abi.{python}.{member} is {kind.__name__}, but {name} has {of.__name__}"
                   for (member, kind), (_, of) in zip(have, want) if of and kind is not of]
    return faults


def set_by(function, names):
    """The members that a function sets: arguments of a call, attributes, and keys of dicts, of those in `names`."""
    found = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Dict):
            found.update(k.value for k in node.keys if isinstance(k, ast.Constant))
    return found & names


def absent_faults(name, want, taken, absent):
    """want: members of the struct; taken: those that Python sets; absent: those that it leaves out."""
    want = [m for m in want if m != "size"]
    return ([f"{name}.{m}: Python neither takes it nor lists it in ABSENT" for m in want if m not in taken and m not in absent] +
            [f"{name}.{m} is in ABSENT, " + ("but Python takes it" if m in taken else "but there is none") for m in absent if m in taken or m not in want])


def taken_by_options(options, names):
    taken = set_by(options.generate_params, names) | set_by(options.set_numbers, names) | set_by(options.set_diffusion, names)
    for setter in options.SETTERS.values():
        taken |= set_by(setter, names) if callable(setter) else {setter[0]}
    return taken


def number_faults(text, options):
    """The numbers of the sampler are options of their names; those without a member are named by the library."""
    faults = []
    members = {setter[0] for setter in options.SETTERS.values() if not callable(setter)}
    for row in rows(text, "SAMPLER_NUMBER"):
        member, field = re.fullmatch(r"MEMBER\((\w+)\)", row[4]), row[8]
        if member and (member[1] not in members or (field not in options.SETTERS and field not in options.ELSEWHERE)):
            faults.append(f"samplers.def: the number {field} (member {member[1]}) is no option of Python, and ELSEWHERE does not say what is")
    keys = set(options.Options.__annotations__)
    return faults + [f"Options and SETTERS differ: {name}" for name in sorted(keys ^ {*options.SETTERS, *options.SCHEDULE})]


def self_test():
    c = members("typedef struct llm_lora {\n    const char *path; /* a; b */\n    double scale, *more;\n    bool (*f)(int a, int b);\n    double q[13];\n} llm_lora;")
    assert c == {"llm_lora": [("path", None), ("scale", ctypes.c_double), ("more", None), ("f", None), ("q", None)]}, c
    assert len(absent_faults("s", ["size", "a", "b"], {"a"}, {})) == 1
    assert absent_faults("s", ["size", "a", "b"], {"a"}, {"b": "why"}) == []
    assert len(absent_faults("s", ["a"], {"a"}, {"a": "why", "c": "why"})) == 2


def main():
    if sys.argv[1:] == ["--test"]:
        self_test()
        return 0
    root = sys.argv[1]
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(root, "python", "src"))
    from ggml_lite import _abi, _options, _results, _training

    c = {}
    for path in glob.glob(os.path.join(root, "*/include/llm/*.h")):
        with open(path, encoding="utf-8") as file:
            c.update(members(file.read()))
    with open(os.path.join(root, ROWS), encoding="utf-8") as file:
        sampler_rows = file.read()
    faults = struct_faults(c, _abi) + number_faults(sampler_rows, _options)
    for python, rows_of in (("TrainingFacts", _results.TrainingFacts), ("TrainingReport", _results.TrainingReport)):
        have, want = list(rows_of._fields), [m for m, _ in getattr(_abi, python)._fields_ if m != "size"]
        faults += [] if have == want else [f"_results.{python} has other members than _abi.{python}: {have}"]
    for name, taken in (("llm_training_params", lambda names: set_by(_training.Training.__init__, names)),
                        ("llm_training_run_params", lambda names: set_by(_training.Training.run, names)),
                        ("llm_generate_params", lambda names: taken_by_options(_options, names))):
        names = {m for m, _ in c[name]}
        faults += absent_faults(name, [m for m, _ in c[name]], taken(names), ABSENT[name])
    print("\n".join(faults) if faults else f"{len(STRUCTS)} structs, {len(_options.SETTERS)} options")
    return 1 if faults else 0


sys.exit(main())
