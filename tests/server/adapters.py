#!/usr/bin/env python3
"""llm-server with adapters whose scales requests choose. adapters.py LLM-SERVER CASE LLM-CLI"""
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from gguf_file import gguf
from http_layer import check
from running import Server

BINARY, CLI = sys.argv[1], sys.argv[3]
FOLDER = tempfile.TemporaryDirectory()
WIDE = {"attn_q": (128, 128), "attn_output": (128, 128), "ffn_down": (352, 128)}  # of the built-in model


def adapter(name, seed, alpha=None, magnitudes=False, keys=()):
    """Writes an adapter of rank 2 for some matrices of the built-in model, drawn by the seed."""
    r = random.Random(seed)

    def numbers(n, low, high):
        return struct.pack(f"<{n}f", *(r.uniform(low, high) for _ in range(n)))
    tensors = []
    for k, (matrix, (n_in, n_out)) in itertools.product(range(1, 4), WIDE.items()):
        weight = f"blk.{k}.{matrix}.weight"
        if r.random() < 0.3:
            continue
        tensors += [(weight + ".lora_a", "f32", (n_in, 2), numbers(2 * n_in, -0.6, 0.6)), (weight + ".lora_b", "f32", (2, n_out), numbers(2 * n_out, -0.6, 0.6))]
        if magnitudes:
            tensors.append((weight + ".lora_magnitude", "f32", (n_out,), numbers(n_out, 0.5, 2)))
    all_keys = [("general.type", "string", "adapter"), ("adapter.type", "string", "lora"), ("general.architecture", "string", "llama"), *keys]
    all_keys += [("adapter.lora.alpha", "f32", alpha)] if alpha else []
    path = os.path.join(FOLDER.name, name + ".gguf")
    with open(path, "wb") as f:
        f.write(gguf(all_keys, tensors))
    return path


ONE, TWO, THREE = adapter("one", 1), adapter("two", 2, alpha=4.0), adapter("three", 3, alpha=1.0)
PROMPTS = ["Once upon a time there was", "Once upon a time there were two", "The dog ran to the", "Lily and Tom played in the park. Then"]


def start(*options):
    return Server([BINARY, "-m", "builtin:stories", "-c", "2048", "-t", "2", *options])


def body(prompt, scales=None, **more):
    lora = {} if scales is None else {"lora": [{"id": i, "scale": x} for i, x in enumerate(scales) if x != 0]}
    return {"prompt": prompt, "n_predict": 16, "temperature": 0, "n_probs": 3, **lora, **more}


def ask(s, request, status=200):
    got, _, text = s.post("/completion", request)
    check(got == status, f"{request}: {got} {text[:300]}")
    x = json.loads(text)
    return (x["content"], [[(p["id"], p["logprob"]) for p in t["top_logprobs"]] for t in x["completion_probabilities"]]) if status == 200 else x["error"]["message"]


def of_start(files, scales, prompts):
    """What a server answers that was started with these scales, which no request changes."""
    named = ",".join(f"{f}:{x}" for f, x in zip(files, scales))
    with start("--lora", named, "-np", "1") as s:
        return [ask(s, body(p)) for p in prompts]


def each():
    """Requests with scales of their own, many at once, are answered as by servers that were started with these, by the same bits."""
    files = [ONE, TWO, THREE]
    choices = [(1, 1, 1), (0, 0, 0), (1, 0, 0), (0, 0.5, 0), (0, 0, 1), (-2, 0.25, 0), (1, 1, 0)]
    want = {c: of_start(files, c, PROMPTS) for c in choices}
    check(len({json.dumps(x) for x in want.values()}) == len(choices), "scales make no difference")
    with start("-np", "1") as s:
        check([ask(s, body(p)) for p in PROMPTS] == want[0, 0, 0], "scale 0 is no adapter")
    # llm-cli computes with the scales as constants
    for c in choices:
        named = ",".join(f"{f}:{x}" for f, x in zip(files, c))
        r = subprocess.run([CLI, "-m", "builtin:stories", "--lora", named, "-p", PROMPTS[0], "-n", "16", "--temp", "0", "--no-display-prompt", "-t", "1"],
                           capture_output=True, check=True, stdin=subprocess.DEVNULL)
        check(r.stdout.decode().rstrip("\n") == want[c][0][0].rstrip("\n"), f"{c}: llm-cli writes {r.stdout}, the server {want[c][0][0]}")
    jobs = [(c, i) for c in choices for i in range(len(PROMPTS))] * 3
    random.Random(7).shuffle(jobs)
    with start("--lora", ",".join(files), "-np", "6") as s, ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda job: ask(s, body(PROMPTS[job[1]], None if job[0] == (1, 1, 1) else job[0])), jobs))
        for (c, i), a in zip(jobs, answers):
            # a request that lists no adapter has the scales of all requests: all others are 0 there
            expected = want[c][i] if any(c) else want[1, 1, 1][i]
            check(a == expected, f"{c}, {PROMPTS[i]}: {a}, not {expected}")
        zero = {"lora": [{"id": 0, "scale": 0}]}
        check(ask(s, {**body(PROMPTS[0]), **zero}) == want[0, 0, 0][0], "0 for one, and so for all")
        said = json.loads(s.post("/v1/completions", {"prompt": PROMPTS[0], "max_tokens": 16, "temperature": 0, "lora": [{"id": 1, "scale": 0.5}]})[2])
        check(said["choices"][0]["text"] == want[0, 0.5, 0][0][0], f"/v1/completions: {said}")
        # the beginning that was run with other scales is not used, and that with the same is
        long = "Once upon a time " * 20
        for c, cached in (((1, 0, 0), False), ((1, 0, 0), True), ((0, 1, 0), False), ((1, 0, 0), True), ((0, 1, 0), True)):
            n = json.loads(s.post("/completion", body(long, c))[2])["timings"]["cache_n"]
            check((n > 40) == cached, f"{c}: {n} tokens from the cache")


def chats():
    """The chats of all APIs that have the field."""
    talk, texts = [{"role": "user", "content": "What is the capital of France?"}], []
    for scales in ("0", "1"):
        with Server([BINARY, "-m", "builtin:chat", "-t", "1", "--lora", f"{ONE}:{scales}"]) as s:
            texts.append(json.loads(s.post("/v1/chat/completions", {"messages": talk, "max_tokens": 8, "temperature": 0})[2])["choices"][0]["message"]["content"])
            if scales == "0":
                for path, body, text in (("/v1/chat/completions", {"messages": talk, "max_tokens": 8}, lambda x: x["choices"][0]["message"]["content"]),
                                         ("/v1/responses", {"input": talk, "max_output_tokens": 16}, lambda x: x["output"][0]["content"][0]["text"])):
                    status, _, got = s.post(path, {**body, "temperature": 0, "lora": [{"id": 0, "scale": 1}]})
                    check(status == 200, f"{path}: {status} {got}")
                    texts.append(text(json.loads(got))[:len(texts[0]) // 2])
    base, chat, responses, adapted = texts
    check(base != adapted and adapted.startswith(chat) and adapted.startswith(responses), texts)


def all_requests():
    """POST /lora-adapters sets the scales of later requests, also after the model was unloaded."""
    files = [ONE, TWO]
    want = {c: of_start(files, c, PROMPTS[:1])[0] for c in ((1, 0.5), (0, 2), (1, 0))}
    with start("--lora", f"{ONE},{TWO}:0.5") as s:
        def scales():
            return [a["scale"] for a in json.loads(s.get("/lora-adapters")[2])]
        listed = json.loads(s.get("/lora-adapters")[2])
        check([(a["id"], os.path.basename(a["path"]), a["scale"], a["task_name"], a["prompt_prefix"]) for a in listed] ==
              [(0, "one.gguf", 1, "", ""), (1, "two.gguf", 0.5, "", "")], listed)
        check(ask(s, body(PROMPTS[0])) == want[1, 0.5], "as started")
        check(json.loads(s.post("/lora-adapters", [{"id": 1, "scale": 2}])[2]) == {"success": True}, "set")
        check(scales() == [0, 2], scales())
        check(ask(s, body(PROMPTS[0])) == want[0, 2] and ask(s, body(PROMPTS[0], (1, 0))) == want[1, 0], "set for all, and one's own")
        for own, used in ((None, [0, 2]), ((1, 0), [1, 0]), ((0, 0.25), [0, 0.25])):
            got = json.loads(s.post("/completion", body("Once", own))[2])["generation_settings"]["lora"]
            check(got == [{"id": i, "scale": x} for i, x in enumerate(used)], f"the scales that were used: {own}: {got}")
        check(s.post("/models/unload", {"model": "stories"})[0] == 200, "unload")
        check(ask(s, body(PROMPTS[0])) == want[0, 2] and scales() == [0, 2], "after it was unloaded")
        check(s.post("/lora-adapters", [])[0] == 200 and scales() == [0, 0], "none")
    with start("--lora", ",".join(files), "--lora-init-without-apply") as s:
        check([a["scale"] for a in json.loads(s.get("/lora-adapters")[2])] == [0, 0], "not applied")
        check(ask(s, body(PROMPTS[0], (1, 0))) == want[1, 0], "until a request does")
    # a list that was got can be set
    with start("--strict-fields", "--lora", f"{ONE}:0.1,{TWO}:-0.0,{adapter('long', 5, keys=[('adapter.lora.task_name', 'string', 't')])}:0.12345678912345") as s:
        text = s.get("/lora-adapters")[2]
        check([a["scale"] for a in json.loads(text)][:2] == [0.1, 0] and b'"scale": 0.1,' in text, text)
        check(s.post("/lora-adapters", json.loads(text))[0] == 200 and s.get("/lora-adapters")[2] == text, "the same again")
    with start() as s:
        check(s.get("/lora-adapters")[2] == b"[]", "no adapters")
        check("there is no adapter 0; the server has 0 (--lora opens some)" in ask(s, body("a", (1,)), 400), "none")


def several():
    """With several models, the query says for which one a list is."""
    folder = os.path.join(FOLDER.name, "models.ini")
    with open(folder, "w", encoding="utf-8") as f:
        f.write("".join(f"[{n}]\nmodel = builtin:stories\nlora = {a}\n" for n, a in (("a", ONE), ("b", TWO))))
    with Server([BINARY, "--models", folder, "-c", "512", "-t", "1"]) as s:
        status, _, text = s.post("/lora-adapters", [{"id": 0, "scale": 2}])
        check(status == 400 and b"?model=NAME behind the path says for which model this list is" in text, f"{status} {text}")
        check(s.post("/lora-adapters?model=a", [{"id": 0, "scale": 2}])[0] == 200, "of a")
        check([json.loads(s.get(f"/lora-adapters?model={m}")[2])[0]["scale"] for m in "ab"] == [2, 1], "of a alone")


def vector(name, seed, size=0.4):
    """Writes a control vector for the built-in model."""
    r = random.Random(seed)
    tensors = [(f"direction.{l}", "f32", (128,), struct.pack("<128f", *(r.uniform(-size, size) for _ in range(128)))) for l in range(1, 5)]
    path = os.path.join(FOLDER.name, name + ".gguf")
    with open(path, "wb") as f:
        f.write(gguf([("general.architecture", "string", "controlvector")], tensors))
    return path


def control_vectors():
    """All requests are steered, also beside adapters whose scales they choose; the texts are those of llm-cli, and saved slots belong to their vectors."""
    happy, sad = vector("happy", 1), vector("sad", 2)

    def cli(*more):
        r = subprocess.run([CLI, "-m", "builtin:stories", "-p", PROMPTS[0], "-n", "16", "--temp", "0", "--no-display-prompt", "-t", "1", *more], capture_output=True, check=True,
                           stdin=subprocess.DEVNULL)
        return r.stdout.decode().rstrip("\n")
    steered = ("--control-vector-scaled", f"{happy}:0.75,{sad}:-1", "--control-vector-layer-range", "2", "4")
    want = {x: cli(*steered, "--lora", f"{ONE}:{x}") for x in (0, 0.5, 1)}
    check(len({cli(), *want.values()}) == 4, f"vectors and adapters make a difference: {want}")
    save = os.path.join(FOLDER.name, "steered")
    os.mkdir(save)
    with start("-np", "4", "--lora", ONE, "--slot-save-path", save, *steered) as s, ThreadPoolExecutor(8) as pool:
        check([os.path.basename(a["path"]) for a in json.loads(s.get("/lora-adapters")[2])] == ["one.gguf"], "vectors are no adapters that requests scale")
        scales = [0, 0.5, 1] * 8
        # a list without an adapter turns off all that requests can turn off, and a vector is none of these
        answers = list(pool.map(lambda x: ask(s, {**body(PROMPTS[0]), "lora": [{"id": 0, "scale": x}]})[0].rstrip("\n"), scales))
        check(answers == [want[x] for x in scales], f"{answers}, not {want}")
        check("there is no adapter 1; the server has 1" in ask(s, {**body("a"), "lora": [{"id": 1, "scale": 1}]}, 400), "the vector has no number")
        ask(s, body(PROMPTS[0], id_slot=0))
        check(s.post("/slots/0?action=save", {"filename": "a"})[0] == 200, "save")
        check(s.post("/slots/1?action=restore", {"filename": "a"})[0] == 200, "restore")
    with start("-np", "1", "--lora", ONE, "--slot-save-path", save, "--control-vector", happy) as s:
        status, _, text = s.post("/slots/0?action=restore", {"filename": "a"})
        check(status == 400 and b"control vector happy.gguf:0.75 (layers 2 to 4)" in text, f"{status} {text}")
    for more, words in ((("--control-vector", ONE), "--control-vector: one.gguf is an adapter (general.type), not a control vector"),
                        (("--lora", happy), "--lora: happy.gguf is a control vector, not a LoRA adapter"),
                        (("--control-vector", happy, "--control-vector-layer-range", "1", "6"), "--control-vector: happy.gguf: the range of layers is 1 to 6, but ")):
        r = subprocess.run([BINARY, "-m", "builtin:stories", "--port", "0", *more], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        check(r.returncode in (1, 2) and words in r.stderr, f"{more}: {r}")


def mistakes():
    """Wrong lists, and adapters whose scale is fixed."""
    task = adapter("task", 4, keys=[("adapter.lora.task_name", "string", "summary"), ("adapter.lora.prompt_prefix", "string", "Short: ")])
    dora = adapter("dora", 6, magnitudes=True)
    with start("--lora", f"{dora}:0.5", "--lora-init-without-apply") as s:
        r = subprocess.run([CLI, "-m", "builtin:stories", "--lora", f"{dora}:0.5", "-p", PROMPTS[0], "-n", "16", "--temp", "0", "--no-display-prompt", "-t", "1"],
                           capture_output=True, check=True, stdin=subprocess.DEVNULL)
        check(ask(s, body(PROMPTS[0]))[0].rstrip("\n") == r.stdout.decode().rstrip("\n"), "magnitudes, which no request scales, and no flag turns off")
        said = ask(s, {**body("a"), "lora": [{"id": 0, "scale": 1}]}, 400)
        check("has the scale 0.5 for all requests, not 1: it has magnitudes (DoRA)" in said and "must have it with that scale" in said, said)
        check(ask(s, {**body(PROMPTS[0]), "lora": [{"id": 0, "scale": 0.5}]})[0].rstrip("\n") == r.stdout.decode().rstrip("\n"), "its own scale")
    save = os.path.join(FOLDER.name, "slots")
    os.mkdir(save)
    with start("--lora", f"{ONE},{task}:0.5", "--slot-save-path", save, "-np", "1") as s:
        listed = json.loads(s.get("/lora-adapters")[2])
        check((listed[1]["task_name"], listed[1]["prompt_prefix"], listed[1]["scale"]) == ("summary", "Short: ", 0.5), listed)
        for lora, words in ((3, "a list such as"), ({}, "a list such as"), ([3], "[0]: an object"), ([{}], "[0]: "), ([{"id": 0}], "scale"), ([{"scale": 1}], "id"),
                            ([{"id": 2, "scale": 1}], "[0]: there is no adapter 2; the server has 2, counted from 0"),
                            ([{"id": 0, "scale": 1}, {"id": -1, "scale": 1}], "[1]: \"id\" is -1"), ([{"id": 0.5, "scale": 1}], "0.5"), ([{"id": "0", "scale": 1}], "id"),
                            ([{"id": 0, "scale": 1e39}], "\"scale\" is 1e+39, but must be finite"), ([{"id": 0, "scale": None}], "scale"),
                            ([{"id": 1, "scale": 1}], "has the scale 0.5 for all requests, not 1: requests choose it by its task")):
            said = ask(s, {**body("a"), "lora": lora}, 400)
            check(words in said, f"{lora}: {said}")
            status, _, text = s.post("/lora-adapters", lora)
            check(status == 400 and words in json.loads(text)["error"]["message"], f"{lora}: {status} {text}")
        check(json.loads(s.get("/lora-adapters")[2]) == listed, "a mistake changes nothing")
        # saved slots have no scales
        ask(s, body(PROMPTS[0], (0.5,), id_slot=0))
        status, _, text = s.post("/slots/0?action=save", {"filename": "a"})
        check(status == 400 and b"other scales of adapters" in text, f"{status} {text}")
        ask(s, body(PROMPTS[0], id_slot=0))
        check(s.post("/slots/0?action=save", {"filename": "a"})[0] == 200, "save")


if __name__ == "__main__":
    globals()[sys.argv[2]]()
