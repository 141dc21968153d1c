#!/usr/bin/env python3
"""Converts adapters in the layout of Hugging Face's PEFT, and compares their effect with that of folders of whole models into
whose weights numpy has merged the same change.

    peft.py --cli LLM_CLI --dir FOLDER --convert LLM_CONVERT --lora LLM_LORA [--sample N] [CLASS ..]

The models are those of ./folders.py. Every matrix of a folder gets a pair; those for which llm-convert refuses one are printed,
and must be of a kind that is known to have no low-rank form. The other way round, llm-lora writes each adapter as a folder of PEFT again, whose
pairs must change each matrix as the first ones did, and merges it into a copy of the model's folder. Exit code 0, 1.
"""
import argparse
import copy
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import folders
import today
from folders import CLASSES, TOKENS, Weights, run, write_safetensors

LIMIT = 2e-4
EMBEDDING = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight", "tok_embeddings.weight", "embeddings.weight", "shared.weight", "relative_attention_bias.weight")
# classes whose sections ask which tensors there are, or for their numbers: config.json alone does not do
NEED_TENSORS = ["DeepseekV2ForCausalLM", "Qwen3_5MoeForCausalLM", "ApertusForCausalLM", "Dots1ForCausalLM", "Gemma4ForCausalLM experts", "MuseSparkForConditionalGeneration",
                "GraniteMoeSWAForCausalLM", "GraniteMoeSWAForCausalLM older", "HunYuanMoEV1ForCausalLM", "Qwen4ExpForCausalLM", "Rwkv6ForCausalLM",
                "Qwen4ExpForConditionalGeneration"]
# what may be refused, and a part of the reason
REFUSED = [("conv1d", ""), ("conv.", ""), ("embed", "tie_word_embeddings"), ("wte", "tie_word_embeddings"), ("shared", "tie_word_embeddings"),
           ("", "rows of matrices that have pairs of their own"), ("", "cannot be made for an adapter"), ("", "no weight of")]


def safetensors(path, tensors):
    write_safetensors(path, {k: np.asarray(v, np.float32) for k, v in tensors.items()})


class Adapter:
    """A PEFT folder for some matrices, and what it adds to them."""

    def __init__(self, stored, names, random, conv1d, **config):
        self.config = {"peft_type": "LORA", "r": 3, "lora_alpha": 5, "fan_in_fan_out": conv1d, "bias": "none", "target_modules": ["x"],
                       "lora_dropout": 0.1, "modules_to_save": None, "use_dora": False, "init_lora_weights": True, **config}
        self.tensors, self.added = {}, {}
        for name in names:
            module, w = name[: -len(".weight")], stored[name]
            rank, alpha = self.of(module, "rank_pattern", "r"), self.of(module, "alpha_pattern", "lora_alpha")
            scale = alpha / (np.sqrt(rank) if self.config.get("use_rslora") else rank)
            embedding = name.endswith(EMBEDDING)
            n_out, n_in = w.shape[::-1] if embedding or conv1d else w.shape
            a = random.normal(size=(rank, n_in)).astype(np.float32)
            b = (random.normal(size=(n_out, rank)) * 0.5 / np.sqrt(n_in)).astype(np.float32)
            add = scale * (b.astype(np.float64) @ a)
            if self.config["use_dora"]:  # as DoraLinearLayer and merge do
                rows = (w.T if conv1d else w) + add
                lengths = np.linalg.norm(rows, axis=1)
                m = (lengths * random.uniform(0.6, 1.4, n_out)).astype(np.float32)
                add += (m / lengths - 1)[:, None] * rows
                self.tensors["base_model.model." + module + ".lora_magnitude_vector" + random.choice(["", ".weight"])] = m
            self.added[name] = add.T if embedding or conv1d else add
            ends = (".lora_embedding_A", ".lora_embedding_B") if embedding else (".lora_A.weight", ".lora_B.weight")
            self.tensors["base_model.model." + module + ends[0]] = a
            self.tensors["base_model.model." + module + ends[1]] = b

    def of(self, module, table, otherwise):
        for key, value in self.config.get(table, {}).items():
            if module == key or module.endswith("." + key):
                return value
        return self.config[otherwise]

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        safetensors(os.path.join(folder, "adapter_model.safetensors"), self.tensors)
        with open(os.path.join(folder, "adapter_config.json"), "w") as f:
            json.dump(self.config, f)


def converts(a, folder, base, out):
    """None: llm-convert converts the adapter; else its message."""
    done = subprocess.run([a.convert, folder, "--base", base, "-o", out], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if "runtime error:" in done.stderr or done.returncode not in (0, 1):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def logits(a, class_name, model, out, *more):
    """Of all tokens, or the output that the class has instead."""
    program, words = folders.how_to_run(a, CLASSES[class_name][0], out)
    run(program, "-m", model, *words, "--backend", "reference", *(m + ":1" if program != a.cli and m.endswith(".gguf") else m for m in more))
    return np.load(out)


def apart(x, y):
    """The largest difference; scores of -inf are the same everywhere."""
    return np.abs(np.where(x == y, 0, x - np.where(x == y, 0, y))).max()


def model_folder(a, class_name, config, stored, name):
    """Writes a folder of the whole model, and converts it; returns the GGUF file's path."""
    folder = os.path.join(a.dir, name)
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), stored)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    run(a.convert, folder, "-o", folder + ".gguf", "--type", "f32")
    return folder + ".gguf"


def make(class_name):
    """config.json and the stored tensors of a class's model."""
    config, fill, scalings, *_ = CLASSES[class_name]
    scaling = scalings[0]
    c = {**config, "rope": dict(folders.SCALINGS[scaling] if scaling else {})}
    w = Weights(len(class_name))
    fill(c, w)
    stored = c.get("layout", c.get("how", {}).get("layout", lambda w: w))(w)
    own = {k: v for k, v in c.items() if k not in ("kind", "how", "d", "theta", "rope", "partial", "layout", "write", "type", "like")}
    rope = folders.write_rotation(c, 5) if scaling else {}
    return {"architectures": [class_name.split()[0]], **c.get("write", dict)({**own, **rope})}, stored


def is_matrix(name, x):
    return isinstance(x, np.ndarray) and x.ndim == 2 and name.endswith(".weight") and min(x.shape) > 1 and "norm" not in name


def has_rows(name):
    """Products read the matrix: it is no table, whose magnitudes PEFT gives to its columns."""
    return not any(part in name for part in ("emb", "wte", "wpe", "shared", "relative_attention_bias"))


def may_be_refused(name, message):
    return any(part in name and reason in message for part, reason in REFUSED)


def choose(a, class_name, stored, base, random, conv1d):
    """The matrices whose pairs llm-convert accepts, tried together, then kind by kind; None: it refuses one that it should not."""
    kinds, chosen = {}, []
    for name, x in stored.items():
        if is_matrix(name, x):
            kinds.setdefault(re.sub(r"\.\d+\.", ".N.", name), []).append(name)
    peft = os.path.join(a.dir, "peft-try")
    if not conv1d:
        everything = sum(kinds.values(), [])
        Adapter(stored, everything, random, False).write(peft)
        if converts(a, peft, base, peft + ".gguf") is None:
            return everything
    for kind, names in kinds.items():
        Adapter(stored, names, random, conv1d and "wte" not in kind and "wpe" not in kind).write(peft)
        message = converts(a, peft, base, peft + ".gguf")
        if message is None:
            chosen += names
            continue
        print(f"  {kind}: {message.split('safetensors: ')[-1][:160]}")
        if not may_be_refused(kind, message):
            return None
    return chosen


def table_of(config, stored):
    """The embedding of tokens."""
    return next((k for k in stored if k.endswith(EMBEDDING[:7]) and len(stored[k]) == config.get("vocab_size")), None)


def untied(a, config, stored, adapter, base, peft):
    """The adapter without the pair of an embedding that is also the output, which has no way back; converts it."""
    table = table_of(config, stored)
    if not config.get("tie_word_embeddings") or table not in adapter.added or len(adapter.added) == 1:
        return adapter
    rest = copy.copy(adapter)
    rest.added = {k: x for k, x in adapter.added.items() if k != table}
    rest.tensors = {k: x for k, x in adapter.tensors.items() if table[: -len("weight")] not in k}
    rest.write(peft)
    message = converts(a, peft, base, peft + ".gguf")
    if message:
        raise RuntimeError(message)
    return rest


def merge(config, stored, added):
    """The model with the changes. PEFT leaves an output that is tied to the embedding as it was, so it has a matrix of its own then."""
    merged = {k: x + added[k] if k in added else x for k, x in stored.items()}
    table = table_of(config, stored)
    if table in added: # its copies in the folder follow, or they would be none
        merged |= {k: merged[table] for k, x in stored.items() if k not in added and k != "lm_head.weight" and np.array_equal(x, stored[table])}
    if config.get("tie_word_embeddings") and (table in added or "lm_head.weight" in added):
        scale = config["d_model"] ** -0.5 if "relative_attention_num_buckets" in config else 1  # T5's, if tied
        return {**config, "tie_word_embeddings": False}, {**merged, "lm_head.weight": scale * (stored[table] + added.get("lm_head.weight", 0))}
    return config, merged


def vocabulary(a):
    """Pairs of the embedding and the output, beside which PEFT saves the whole weights, of models whose output is a matrix of its own or the embedding."""
    ok = True
    for tied in (False, True):
        config, stored = make("LlamaForCausalLM")
        embedding = "model.embed_tokens.weight"
        stored.setdefault("lm_head.weight", stored[embedding] * 0.5)
        whole = {"model.embed_tokens": stored[embedding], "lm_head": stored[embedding if tied else "lm_head.weight"]}
        config["tie_word_embeddings"] = tied
        if tied:
            del stored["lm_head.weight"]
        base = os.path.join(a.dir, "peft-vocabulary")
        plain = model_folder(a, "LlamaForCausalLM", config, stored, "peft-vocabulary")
        peft, out = os.path.join(a.dir, "peft"), os.path.join(a.dir, "peft.npy")
        for modules in (["lm_head"], ["model.embed_tokens"], ["lm_head", "model.embed_tokens"]):
            names = [m + ".weight" for m in modules]
            adapter = Adapter({**stored, "lm_head.weight": whole["lm_head"]}, names, np.random.default_rng(7), False, alpha_pattern={"lm_head": 7})
            copies = {f"base_model.model.{m}.base_layer.weight": whole[m].copy() for m in modules}
            adapter.tensors.update(copies)
            adapter.write(peft)
            message = converts(a, peft, base, peft + ".gguf")
            if message:
                raise RuntimeError(message)
            want = logits(a, "LlamaForCausalLM", model_folder(a, "LlamaForCausalLM", *merge(config, stored, adapter.added), "peft-merged"), out)
            worst = apart(logits(a, "LlamaForCausalLM", plain, out, "--lora", peft + ".gguf"), want) / max(1, np.abs(want).max())
            print(f"{'tied' if tied else 'untied'}, pairs of {' and '.join(modules)}: {worst:.1e}")
            ok = ok and worst <= LIMIT
            changed = next(iter(copies))
            adapter.tensors[changed][1, 2] += 1
            adapter.write(peft)
            message = converts(a, peft, base, peft + ".gguf") or ""
            if f"is not that of {base}: number" not in message or "merge_and_unload" not in message:
                print(f"another weight than the base's: {message}")
                ok = False
    return ok


def embedding_copies(a):
    """A folder with copies of the embedding, into which an adapter of it is merged: they follow, also in another type."""
    config, stored = make("T5ForConditionalGeneration")
    config["tie_word_embeddings"] = False
    stored["lm_head.weight"] = stored["shared.weight"] * 0.5
    stored["encoder.embed_tokens.weight"] = stored["decoder.embed_tokens.weight"] = stored["shared.weight"].copy()
    base, peft = os.path.join(a.dir, "peft-copies"), os.path.join(a.dir, "peft")
    model_folder(a, "T5ForConditionalGeneration", config, stored, "peft-copies")
    adapter = Adapter(stored, ["shared.weight"], np.random.default_rng(7), False)
    adapter.write(peft)
    message = converts(a, peft, base, peft + ".gguf") or goes_back(a, adapter, stored, base, peft)
    print(f"copies of the embedding: {message or 'they follow'}")
    return not message


def check(a, class_name):
    config, stored = make(class_name)
    if any(not isinstance(x, np.ndarray) for x in stored.values()):
        return True  # packed weights: merging would have to pack them again
    if any(".parametrizations." in name for name in stored):
        return True  # a folder that has adapters of its own, in the place of its matrices
    random = np.random.default_rng(len(class_name))
    conv1d = class_name.startswith("GPT2")
    plain = model_folder(a, class_name, config, stored, "peft-base")
    base, peft, out = plain[: -len(".gguf")], os.path.join(a.dir, "peft"), os.path.join(a.dir, "peft.npy")
    only_config = base + "-config"
    os.makedirs(only_config, exist_ok=True)
    shutil.copy(os.path.join(base, "config.json"), only_config)
    chosen = choose(a, class_name, stored, base, random, conv1d)
    ok = bool(chosen)
    worst = far = 0.0
    # experts are joined, so they must have the same rank
    one = next((n[: -len(".weight")] for n in reversed(chosen or []) if "expert" not in n), "none")
    dora = {"use_dora": True, "use_rslora": len(class_name) % 2 == 0}
    ways = [{}, {"use_rslora": True}, {"rank_pattern": {one: 5}, "alpha_pattern": {one.split(".", 1)[-1]: 11}}]
    ways.append(dora)
    if class_name not in ("LlamaForCausalLM", "GPT2LMHeadModel"):
        ways = [ways[len(class_name) % 4]]
    for way in ways if ok else []:
        names = [n for n in chosen if has_rows(n)] if way == dora else chosen
        adapter = Adapter(stored, names, random, conv1d, **way)
        adapter.write(peft)
        message = converts(a, peft, base, peft + ".gguf")
        if message and way == dora and "use_dora" in message:
            print(f"  {message.split('safetensors: ')[-1][:160]}")
            if ways == [dora]:
                ways.append({})
            continue
        if message:
            raise RuntimeError(message)
        with open(peft + ".gguf", "rb") as f:
            with_tensors = f.read()
        message = converts(a, peft, only_config, peft + ".gguf")
        with open(peft + ".gguf", "rb") as f:
            if message and class_name in NEED_TENSORS:
                print(f"  config.json alone: {message[:160]}")
            elif message or f.read() != with_tensors:
                raise RuntimeError(f"with config.json alone: {message or 'another file'}")
        wrong = a.lora and goes_back(a, untied(a, config, stored, adapter, base, peft), stored, base, peft)
        if wrong:
            raise RuntimeError(f"back: {wrong}")
        adapter.write(peft)
        converts(a, peft, base, peft + ".gguf")
        try:
            merged = model_folder(a, class_name, *merge(config, stored, adapter.added), "peft-merged")
        except RuntimeError as e:
            if "no output apart from the embedding" not in str(e):
                raise
            logits(a, class_name, plain, out, "--lora", peft + ".gguf")  # it has another effect, but no folder has that
            adapter = untied(a, config, stored, adapter, base, peft)
            merged = model_folder(a, class_name, *merge(config, stored, adapter.added), "peft-merged")
        want = logits(a, class_name, merged, out)
        size = max(1, np.abs(want[np.isfinite(want)]).max())
        worst = np.maximum(worst, apart(logits(a, class_name, plain, out, "--lora", peft + ".gguf"), want) / size)
        far = apart(logits(a, class_name, plain, out), want)
    ok = ok and worst <= LIMIT and far > 0.01
    print(f"{class_name:28} {len(chosen or []):3} matrices  {worst:8.1e}, from the plain model {far:6.2f}  {'ok' if ok else 'FAILED'}")
    return ok


# what llm-lora refuses to take back, and why
NOT_BACK = ["reads it more than once", "makes its output from this embedding", "only some modules have lengths", "lengths are given of parts", "lengths are given of its columns"]


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n = int.from_bytes(data[:8], "little")
    head = {k: v for k, v in json.loads(data[8 : 8 + n]).items() if k != "__metadata__"}
    types = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}
    assert {x["dtype"] for x in head.values()} <= {*types, "BF16"}, head
    out = {}
    for name, x in head.items():
        raw = data[8 + n + x["data_offsets"][0] : 8 + n + x["data_offsets"][1]]
        bf16 = x["dtype"] == "BF16"
        values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32) if bf16 else np.frombuffer(raw, types[x["dtype"]])
        out[name] = values.reshape(x["shape"])
    return out


def added_by(folder, stored):
    """What a folder of PEFT adds to the stored matrices, as PEFT computes it."""
    with open(os.path.join(folder, "adapter_config.json")) as f:
        config = json.load(f)
    tensors = read_safetensors(os.path.join(folder, "adapter_model.safetensors"))
    added = {}
    for key, a in tensors.items():
        for end_a, end_b in ((".lora_A.weight", ".lora_B.weight"), (".lora_embedding_A", ".lora_embedding_B")):
            if not key.endswith(end_a):
                continue
            module = key[len("base_model.model.") : -len(end_a)]
            stem = "base_model.model." + module
            name = next(n for n in (module + ".weight", module.split(".", 1)[-1] + ".weight") if n in stored)
            rank, alpha = config["rank_pattern"].get(module, config["r"]), config["alpha_pattern"].get(module, config["lora_alpha"])
            assert rank == len(a), (module, rank, a.shape)
            assert any(module == t or module.endswith("." + t) for t in config["target_modules"]), (module, config["target_modules"])
            add = alpha / rank * (tensors[stem + end_b].astype(np.float64) @ a)
            turned = config["fan_in_fan_out"] and end_a == ".lora_A.weight"
            if config["use_dora"]:
                rows = (stored[name].T if turned else stored[name]) + add
                add = (tensors[stem + ".lora_magnitude_vector"] / np.linalg.norm(rows, axis=1))[:, None] * rows - (rows - add)
            added[name] = add.T if turned or end_a != ".lora_A.weight" else add
    return added


def differ(name, x, y):
    """Relative to the largest number. Of a table of positions, rows that the model does not read have no place in its file."""
    if "position" in name:
        y = y * np.any(x, axis=-1, keepdims=True)
    return np.abs(x - y).max() / max(1e-3, np.abs(y).max())


def goes_back(a, adapter, stored, base, peft):
    """llm-lora export and llm-lora merge of the converted adapter: None, or what is wrong."""
    back, merged = peft + "-back", peft + "-into"
    for folder in (back, merged):
        shutil.rmtree(folder, ignore_errors=True)
    for command, other in ((["export", peft + ".gguf", "--base", base, "-o", back], []), (["merge", base, peft + ".gguf", "-o", merged], [])):
        done = subprocess.run([a.lora, *command, *other], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if "runtime error:" in done.stderr or done.returncode not in (0, 1):
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
        if done.returncode:
            message = done.stderr.strip().splitlines()[-1]
            if not any(words in message for words in NOT_BACK):
                return message
            print(f"  not back, {command[0]}: {message[-200:]}")
    if os.path.exists(back):
        again = added_by(back, stored)
        if set(again) != set(adapter.added):
            return f"other modules came back: {sorted(set(again) ^ set(adapter.added))[:4]}"
        worst = max((differ(n, again[n], adapter.added[n]), n) for n in again)
        if worst[0] > 1e-5:
            return f"{worst[1]} comes back with a difference of {worst[0]:.1e}"
    if os.path.exists(os.path.join(merged, "model.safetensors")):
        whole = read_safetensors(os.path.join(merged, "model.safetensors"))
        before = read_safetensors(os.path.join(base, "model.safetensors"))
        copies = {n: k for k in adapter.added for n, x in before.items() if n not in adapter.added and np.array_equal(x, before[k])}
        for n, x in before.items():
            added = whole[n] - x
            if n in copies:
                if not np.array_equal(whole[n], whole[copies[n]]):
                    return f"{n} is no copy of {copies[n]} any more"
            elif n not in adapter.added and not np.array_equal(whole[n], x):
                return f"{n} has changed by merging"
            if n in adapter.added and differ(n, added, adapter.added[n]) > 1e-5:
                return f"{n} is merged with a difference of {differ(n, added, adapter.added[n]):.1e}"
        if not os.path.exists(os.path.join(merged, "config.json")):
            return "merging copies no config.json"
    return None


def refused(a):
    """Values of the config, and tensors, that have no form in GGUF; each is named."""
    config, stored = make("LlamaForCausalLM")
    base, peft = os.path.join(a.dir, "peft-base"), os.path.join(a.dir, "peft")
    model_folder(a, "LlamaForCausalLM", config, stored, "peft-base")
    random = np.random.default_rng(1)
    names = [n for n in stored if n.endswith("q_proj.weight")]
    ok = True

    def expect(words, change=lambda adapter: None, **more):
        nonlocal ok
        adapter = Adapter(stored, names, random, False, **more)
        change(adapter)
        adapter.write(peft)
        message = converts(a, peft, base, peft + ".gguf")
        if message is None or any(word not in message for word in words.split("|")):
            print(f"expected '{words}', not: {message}")
            ok = False

    def put(end, shape):
        def change(adapter):
            adapter.tensors["base_model.model." + end] = np.zeros(shape, np.float32)
        return change

    def drop(adapter):
        del adapter.tensors["base_model.model." + names[0][:-7] + ".lora_B.weight"]

    def reshape(adapter):
        adapter.tensors["base_model.model." + names[0][:-7] + ".lora_B.weight"] = np.zeros((7, 3), np.float32)

    def no_lengths(adapter):
        del adapter.tensors[next(n for n in adapter.tensors if "lora_magnitude_vector" in n)]

    expect("no lora_magnitude_vector|use_dora", no_lengths, use_dora=True)
    expect("a lora_magnitude_vector|nothing of|use_dora", lambda adapter: adapter.config.update(use_dora=False), use_dora=True)
    expect("with 1 dimension and 4 numbers", lambda adapter: adapter.tensors.update({n: x[:4] for n, x in adapter.tensors.items() if "lora_magnitude" in n}),
           use_dora=True)
    expect("2 dimensions", lambda adapter: adapter.tensors.update({n: x[:, None] for n, x in adapter.tensors.items() if "lora_magnitude" in n}), use_dora=True)
    expect("embed_tokens is an embedding", lambda adapter: (put("model.embed_tokens.lora_embedding_A", (3, 8))(adapter), put("model.embed_tokens.lora_embedding_B", (4, 3))(adapter),
                                                            put("model.embed_tokens.lora_magnitude_vector", (4,))(adapter)), use_dora=True)
    expect("modules_to_save|lm_head|merge_and_unload", modules_to_save=["lm_head"])
    expect("trainable_token_indices|rows of the embedding; merge it with PEFT", trainable_token_indices=[3, 4])
    expect("bias|lora_only", bias="lora_only")
    expect("lora_bias", lora_bias=True)
    expect("target_parameters", target_parameters=["experts.up"])
    expect("alora_invocation_tokens", alora_invocation_tokens=[1, 2])
    expect("init_lora_weights|pissa", init_lora_weights="pissa_niter_4")
    expect("peft_type", peft_type="IA3")
    expect("some_new_thing|does not know", some_new_thing=3)
    expect("lora_alpha", lambda adapter: adapter.config.update(lora_alpha="many"))
    expect("regular expression", alpha_pattern={".*q_proj": 3})
    expect("has the rank 3", lambda adapter: adapter.config.update(rank_pattern={"q_proj": 2}))
    expect("lora_magnitude_vector", put("model.layers.0.self_attn.q_proj.lora_magnitude_vector", (4,)))
    expect("lm_head.weight has 4 rows of 4, but in|merge_and_unload", put("lm_head.weight", (4, 4)))
    expect("tensor some.weight is not a part of a pair|merge_and_unload", put("some.weight", (4, 4)))
    expect("embed_tokens.weight has 4 rows of 4", put("model.embed_tokens.base_layer.weight", (4, 4)))
    expect("input_layernorm.weight is not that of", put("model.layers.0.input_layernorm.weight", (stored["model.embed_tokens.weight"].shape[1],)))
    expect("has no pairs", lambda adapter: adapter.tensors.clear() or put("lm_head.weight", (4, 4))(adapter))
    expect("half of a pair", drop)
    expect("q_proj|7 rows", reshape)
    expect("model.layers.0.self_attn.z_proj", lambda x: (put("model.layers.0.self_attn.z_proj.lora_A.weight", (3, 4))(x),
                                                          put("model.layers.0.self_attn.z_proj.lora_B.weight", (4, 3))(x)))
    expect("same rank", put("model.layers.0.self_attn.q_proj.lora_A.weight", (2, 48)))
    write_safetensors(os.path.join(base, "model.safetensors"), {**stored, names[0]: stored[names[0]][:, :, None]})
    expect(names[0] + "|is for a matrix, but the model's tensor has 3 dimensions, not 2")
    done = subprocess.run([a.convert, peft, "-o", peft + ".gguf"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 2 or "--base MODEL_FOLDER" not in done.stderr:
        print("without --base:", done.stderr)
        ok = False
    print("what is refused is named" if ok else "FAILED")
    return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--convert", required=True)
    p.add_argument("--lora", help="llm-lora")
    p.add_argument("--dir", default=".")
    p.add_argument("--sample", type=int, help="so many classes, others each day")
    p.add_argument("classes", nargs="*")
    a = p.parse_args()
    a.dir = os.path.join(a.dir, "peft-test")
    os.makedirs(a.dir, exist_ok=True)
    folders.add_all(without=("gpt", "vision"))
    failed = (not refused(a)) + (not vocabulary(a)) + (not embedding_copies(a))
    for class_name in today.sample("classes", a.classes or CLASSES, a.sample):
        try:
            failed += not check(a, class_name)
        except RuntimeError as e:
            failed += 1
            print(f"{class_name:28} FAILED: {e}")
    shutil.rmtree(a.dir)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
