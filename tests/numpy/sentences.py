#!/usr/bin/env python3
"""Folders of sentence-transformers: vectors that llm-embed makes, of the folder and of the file that llm-convert makes of it, are those of numpy, with all kinds of
pooling and modules after it; and of tables of vectors (model2vec, StaticEmbedding). What cannot be computed is refused by name.

    sentences.py --cli LLM_CLI --dir FOLDER --convert LLM_CONVERT --embed LLM_EMBED

Exit code 0, 1."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import types

import numpy as np

import folders_encoders
import gguf
from blocks import gelu_erf
from folders import N_EMBD, TOKENS, Weights, write_safetensors

LIMIT = 5e-6
TORCH = "torch.nn.modules.activation."
OTHERS = [f"pooling_mode_{x}" for x in ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")]
faults = []
draw = np.random.default_rng(11)


def check(ok, *what):
    if not ok:
        faults.append(what)
        print("FAILED:", *what)


def unit(x):
    return x / np.linalg.norm(x)


POOL = {"cls": lambda r: r[0], "max": lambda r: r.max(0), "mean": lambda r: r.mean(0), "mean_sqrt_len_tokens": lambda r: r.sum(0) / np.sqrt(len(r)),
        "weightedmean": lambda r: np.average(r, 0, np.arange(1, len(r) + 1)), "lasttoken": lambda r: r[-1]}


def drawn(*shape):
    return (0.3 * draw.normal(size=shape)).astype(np.float32)


def dense(rows, columns, name, f, bias=True, residual=False):
    """A Dense module: its class, config.json, tensors, and what it does."""
    w = {"linear.weight": drawn(rows, columns)}
    if bias:
        w["linear.bias"] = drawn(rows)
    if residual and rows != columns:
        w["residual.weight"] = drawn(rows, columns)
    own = {k: v.astype(np.float64) for k, v in w.items()}
    added = lambda x: (own["residual.weight"] @ x if "residual.weight" in own else x) if residual else 0
    config = {"in_features": columns, "out_features": rows, "bias": bias, "activation_function": name, "module_input_name": "sentence_embedding",
              "module_output_name": "sentence_embedding", **({"use_residual": True} if residual else {})}
    return "Dense", config, w, lambda x: f(own["linear.weight"] @ x + own.get("linear.bias", 0)) + added(x)


def layer_norm(n):
    w = {"norm.weight": drawn(n) + 1, "norm.bias": drawn(n)}
    return "LayerNorm", {"dimension": n}, w, lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5) * w["norm.weight"] + w["norm.bias"]


NORMALIZE, DROPOUT = ("Normalize", None, None, unit), ("Dropout", {"dropout": 0.1}, None, lambda x: x)
IDENTITY = "torch.nn.modules.linear.Identity"
CHAINS = {
    "max": ("max", []), "mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", []), "weightedmean": ("weightedmean", []), "lasttoken": ("lasttoken", []),
    "several": (["lasttoken", "cls", "max"], [NORMALIZE]), "all": (list(POOL), [dense(20, 6 * N_EMBD, TORCH + "Tanh", np.tanh)]),
    "two": ("mean", [dense(30, N_EMBD, IDENTITY, lambda x: x, False), dense(9, 30, TORCH + "GELU", gelu_erf), NORMALIZE]),
    "normed": ("cls", [NORMALIZE, layer_norm(N_EMBD), DROPOUT, dense(20, N_EMBD, TORCH + "Sigmoid", lambda x: 1 / (1 + np.exp(-x)))]),
    "residual": ("mean", [dense(N_EMBD, N_EMBD, TORCH + "SiLU", lambda x: x / (1 + np.exp(-x)), residual=True), dense(20, N_EMBD, TORCH + "ReLU", lambda x: np.maximum(x, 0), residual=True)]),
}


def write(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name.endswith(".safetensors"):
            write_safetensors(path, content)
        else:
            with open(path, "w") as f:
                json.dump(content, f)


def modules(*kinds):
    return [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]


def bert():
    """config.json, tensors and rows of a small BERT."""
    config, fill, _, forward = folders_encoders.CLASSES["BertModel"]
    c, w = {**config, "rope": {}}, Weights(5)
    fill(c, w)
    return {"architectures": ["BertModel"], **{k: v for k, v in c.items() if k not in ("how", "rope")}}, w, forward(c, w, 16)


def vectors(a, model, *more):
    done = subprocess.run([a.embed, "-m", model, "--tokens", ",".join(map(str, TOKENS)), *more], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        return check(False, model, done.stderr)
    return np.array(json.loads(done.stdout)["embedding"])


def compare(a, name, folder, want):
    file = folder + ".gguf"
    done = subprocess.run([a.convert, folder, "-o", file, "--type", "f32"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        return check(False, name, done.stderr)
    got, direct, plain = vectors(a, file), vectors(a, folder), vectors(a, file, "--no-normalize")
    if got is None or direct is None or plain is None:
        return None
    far = np.abs(got - unit(want)).max() if got.shape == want.shape else np.inf
    print(f"{name:24} {len(got):4} numbers, {far:.1e}")
    check(far < LIMIT, name, far)
    check(np.array_equal(got, direct), name, "the folder opened directly")
    check(np.abs(plain - want).max() < 10 * LIMIT * max(1, np.abs(want).max()), name, "--no-normalize")
    return gguf.read(file)[0]


def refused(a, folder, files, *words):
    write(folder, files)
    done = subprocess.run([a.convert, folder, "-o", folder + ".gguf"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(done.returncode == 1 and all(w in done.stderr for w in words), words, done.stderr)


def asked(a, config, w, rows):
    """--pooling: the modules follow any pooling whose vectors they take. Others are refused."""
    folder = os.path.join(a.dir, "sentences-asked")
    files = {"config.json": config, "model.safetensors": w, "1_Pooling/config.json": {"pooling_mode": "mean"}, "modules.json": modules("Transformer", "Pooling", "Dense")}

    def told(words, *more):
        for model in (folder, folder + ".gguf"):
            done = subprocess.run([a.embed, "-m", model, "--tokens", "5,6", *more], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            check(done.returncode == 1 and words in done.stderr, more, done.stderr)

    for name, act, obeyed in ((IDENTITY, lambda x: x, True), (TORCH + "GELU", gelu_erf, True), (TORCH + "Tanh", np.tanh, False)):
        _, own, tensors, run = dense(20, N_EMBD, name, act)
        write(folder, {**files, "2_Dense/config.json": own, "2_Dense/model.safetensors": tensors})
        compare(a, "--pooling " + name.split(".")[-1], folder, run(POOL["mean"](rows)))
        if not obeyed:  # a layer of the model itself, which is applied to each token
            told("pooling cls: the model has a dense layer for what its own pooling, mean, gives", "--pooling", "cls")
            continue
        for pool in ("cls", "last", "weightedmean"):
            want = run(POOL["lasttoken" if pool == "last" else pool](rows))
            for model in (folder, folder + ".gguf"):
                got = vectors(a, model, "--pooling", pool, "--no-normalize")
                check(got is not None and np.abs(got - want).max() < 10 * LIMIT, name, pool)
    files["1_Pooling/config.json"] = {"pooling_mode": ["cls", "mean"]}
    _, own, tensors, _ = dense(20, 2 * N_EMBD, IDENTITY, None)
    write(folder, {**files, "2_Dense/config.json": own, "2_Dense/model.safetensors": tensors})
    subprocess.run([a.convert, folder, "-o", folder + ".gguf"], check=True, capture_output=True)
    told(f"pooling mean: it makes vectors of {N_EMBD} numbers, but the model's modules are for the {2 * N_EMBD} of its own pooling, cls+mean", "--pooling", "mean")


def named(a, config, w):
    """Messages about a layer that the model's descriptor computes name the file and its key, and what no line reads of it, too."""
    folder = os.path.join(a.dir, "sentences-named")
    _, own, tensors, _ = dense(20, N_EMBD, IDENTITY, None)
    write(folder, {"config.json": config, "model.safetensors": w, "1_Pooling/config.json": {"pooling_mode": "mean"}, "modules.json": modules("Transformer", "Pooling", "Dense"),
                   "2_Dense/model.safetensors": tensors})
    file = folder + "/2_Dense/config.json: "
    for act in IDENTITY, TORCH + "GELU":  # the descriptor computes the former
        mine, tensor = own | {"activation_function": act}, {"linear.weight": tensors["linear.weight"]}
        for key, x, words in (("out_features", 21, 'in_features = 48, out_features = 21, but tensor linear.weight of 2_Dense/model.safetensors has 20 rows of 48 numbers'),
                              ("in_features", 20, "in_features = 20, out_features = 20, but tensor linear.weight"), ("bias", False, "bias = false, but there is a tensor linear.bias"),
                              ("in_features", 0, '"in_features" is 0, but a whole number of at least 1 is expected'), ("out_features", None, '"out_features" is null, but a whole number'),
                              ("use_residual", "yes", '"use_residual" is "yes", but true or false is expected'), ("activation_function", 7, '"activation_function" is 7, but the name of a class')):
            refused(a, folder, {"2_Dense/config.json": mine | {key: x}}, file + words)
        refused(a, folder, {"2_Dense/config.json": {k: x for k, x in mine.items() if k != "out_features"}}, file + '"out_features" is missing, but a whole number of at least 1 is expected')
        refused(a, folder, {"2_Dense/config.json": mine, "2_Dense/model.safetensors": tensor}, file + "bias = true, but there is no tensor linear.bias")
        refused(a, folder, {"2_Dense/model.safetensors": {"linear.bias": tensors["linear.bias"]}}, folder + "/2_Dense: its safetensors have no tensor linear.weight")
        refused(a, folder, {"2_Dense/model.safetensors": tensor | {"linear.bias": drawn(19)}}, file + "out_features = 20, but tensor linear.bias of 2_Dense/model.safetensors is not a list of so many")
        mine = {"2_Dense/config.json": mine}
        refused(a, folder, mine | {"2_Dense/model.safetensors": tensors | {"strange": drawn(3)}}, "2_Dense/model.safetensors: tensor strange: read by no line")
        refused(a, folder, mine | {"2_Dense/model.safetensors": tensors | {"linear.weight": tensors["linear.weight"] * np.float32(np.nan)}},
                "NaN or infinite; it comes from linear.weight of 2_Dense/model.safetensors: the folder is damaged")
        _, short, w_short, _ = dense(20, N_EMBD - 1, act, None)
        short = {"2_Dense/config.json": short, "2_Dense/model.safetensors": w_short}
        refused(a, folder, short, file + "in_features = 47, but the model's vectors have 48 numbers (hidden_size = 48 in config.json)")
        refused(a, folder, {"1_Pooling/config.json": {"pooling_mode": ["cls", "max"]}}, file + "in_features = 47, but the model's vectors have 96 numbers, of 2 poolings (hidden_size = 48 in config.json)")
        write(folder, {"1_Pooling/config.json": {"pooling_mode": "mean"}, "2_Dense/model.safetensors": tensors})
    norm = {"modules.json": modules("Transformer", "Pooling", "LayerNorm", "Normalize"), "2_LayerNorm/config.json": {"dimension": 20}, "2_LayerNorm/model.safetensors": {"norm.weight": drawn(20), "norm.bias": drawn(20)}}
    refused(a, folder, norm, "2_LayerNorm/config.json: dimension = 20, but the model's vectors have 48 numbers (hidden_size = 48 in config.json)")
    write(folder, {"2_Dense/config.json": own, "2_Dense/model.safetensors": tensors, "modules.json": modules("Transformer", "Pooling", "Dense")})
    three = modules("Transformer", "Pooling", "Dense", "Dense")
    refused(a, folder, {"modules.json": three, "3_Dense/config.json": own | {"in_features": 21}}, "3_Dense/config.json: in_features = 21, but out_features in 2_Dense/config.json is 20")
    lacks = ": no such file: modules.json names the folder {}, which is a part of the model: download it beside the other files"
    os.remove(folder + "/3_Dense/config.json")
    refused(a, folder, {}, folder + "/3_Dense/config.json" + lacks.format("3_Dense"))
    refused(a, folder, {"modules.json": modules("Transformer", "Pool") + modules("Transformer", "Pooling")[1:]}, "modules.json: module 1 is of the kind 'Pool'")
    for first, words in ((three[0] | {"path": "0_Transformer"}, folder + "/0_Transformer/config.json" + lacks.format("0_Transformer")), (three[1], "modules.json: module 0 is of the kind 'Pooling'; Transformer or")):
        refused(a, folder, {"modules.json": [first, *three[1:3]]}, words)
    for path in "../2_Dense", "", 7, None:
        refused(a, folder, {"modules.json": [*three[:2], three[2] | {"path": path}]}, f'modules.json: "path" of a Dense is {json.dumps(path)}, but the name of a folder beside this file is expected')
    for path in "sub/dir", "../other", 7:  # what is in the folder itself was read in place of it
        refused(a, folder, {"modules.json": [three[0] | {"path": path}, *three[1:3]]}, f'modules.json: "path" of a Transformer is {json.dumps(path)}, but the name of a folder beside')
    with_norm = modules("Transformer", "Pooling", "LayerNorm", "LayerNorm")
    norm = {"norm.weight": drawn(N_EMBD), "norm.bias": drawn(N_EMBD)}
    refused(a, folder, {"modules.json": [*with_norm[:2], with_norm[2] | {"path": "../x"}]}, 'modules.json: "path" of a LayerNorm is "../x", but the name of a folder')
    for name in "2_LayerNorm", "3_LayerNorm":  # of an earlier run
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    write(folder, {"modules.json": with_norm[:3]})
    refused(a, folder, {}, folder + "/2_LayerNorm/config.json" + lacks.format("2_LayerNorm"))
    for own_norm, has, words in (({}, norm, '/config.json: "dimension" is missing, but a whole number'), ({"dimension": N_EMBD}, {"norm.weight": norm["norm.weight"]}, ": its safetensors have no tensor norm.bias"),
                                 ({"dimension": 7}, norm, "/config.json: dimension = 7, but tensor norm.weight of 2_LayerNorm/model.safetensors is not a list of so many numbers")):
        refused(a, folder, {"2_LayerNorm/config.json": own_norm, "2_LayerNorm/model.safetensors": has}, folder + "/2_LayerNorm" + words)
    refused(a, folder, {"modules.json": with_norm, "2_LayerNorm/config.json": {"dimension": N_EMBD}, "3_LayerNorm/config.json": {"dimension": 9}},
            f"3_LayerNorm/config.json: dimension = 9, but dimension in 2_LayerNorm/config.json is {N_EMBD}")
    for has, words in ((tensors, ": its safetensors have no tensor residual.weight"), (tensors | {"residual.weight": drawn(3, 4)}, ", but tensor residual.weight of 2_Dense/model.safetensors has 3 rows of 4 numbers")):
        refused(a, folder, {"modules.json": three[:3], "2_Dense/config.json": own | {"use_residual": True}, "2_Dense/model.safetensors": has}, folder + "/2_Dense", words)
    write(folder, {"2_Dense/config.json": own, "2_Dense/model.safetensors": tensors})
    write(folder, {"modules.json": three[:3]})
    refused(a, folder + "/2_Dense", {}, f"/2_Dense is a folder of a model: give that of the whole model, '{folder}'")
    done = subprocess.run([a.embed, "-m", folder + "/2_Dense/model.safetensors", "--tokens", "5"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(done.returncode == 1 and f"is part of a Hugging Face folder; -m '{folder}' opens it" in done.stderr, "a file of a folder in the folder", done.stderr)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/archs/bert.arch"), encoding="utf-8") as f:
        text = f.read()
    lines = [line for line in text.split("\n") if line.strip() != "use sentence_dense"]
    with open(folder + ".arch", "w", encoding="utf-8") as f:
        f.write("\n".join(lines + ["# use sentence_dense"]))
    with open(folder + ".odd.arch", "w", encoding="utf-8") as f:
        f.write(text.replace("  use sentence_dense", '  require config.modules.Dense_0.out_features == 21, "an odd size"  # use sentence_dense'))
    for more, words in (({}, "2_Dense/config.json has values that this conversion does not read: in_features = 48, out_features = 20, bias = true, "),
                        ({"strange": 7}, 'Identity", config.json: strange = 7. If')):
        write(folder, {"config.json": config | more, "2_Dense/config.json": own})
        done = subprocess.run([a.convert, folder, "--arch", folder + ".arch", "-o", folder + ".gguf"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check(done.returncode == 1 and words in done.stderr and "add there: ignore config.modules.Dense_0.in_features" in done.stderr, words, done.stderr)
    done = subprocess.run([a.convert, folder, "--arch", folder + ".odd.arch", "-o", folder + ".gguf"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(done.returncode == 1 and file + "out_features = 20" in done.stderr and "an odd size" in done.stderr, "an odd size", done.stderr)


def truncated(a, config, w, rows):
    folder = os.path.join(a.dir, "sentences-truncated")
    files = {"config.json": config, "model.safetensors": w, "1_Pooling/config.json": {"pooling_mode": "mean"}, "modules.json": modules("Transformer", "Pooling", "Normalize")}
    for said, n in ((7, 7), (None, N_EMBD), (10000, N_EMBD)):
        write(folder, {**files, "config_sentence_transformers.json": {"truncate_dim": said, "model_type": "SentenceTransformer"}})
        keys = compare(a, f"truncate_dim {said}", folder, POOL["mean"](rows)[:n])
        check(keys and keys.get("sentence_transformers.truncate_dim") == said, "truncate_dim", said)
    for said, shown in ((0, "0"), (-1, "-1"), (2.5, "2.5"), ("7", '"7"'), (True, "true")):
        refused(a, folder, {"config_sentence_transformers.json": {"truncate_dim": said}},
                f'config_sentence_transformers.json: "truncate_dim" is {shown}, but a whole number of at least 1, or null, is expected')


def chains(a):
    config, w, rows = bert()
    for name, (mode, after) in CHAINS.items():
        folder = os.path.join(a.dir, "sentences-" + name)
        pooling = {"embedding_dimension": N_EMBD, "pooling_mode": mode, "include_prompt": True}
        if name == "max":  # as older programs write it
            pooling = {"word_embedding_dimension": N_EMBD, **{x: x == "pooling_mode_max_tokens" for x in OTHERS}}
        files = {"config.json": config, "model.safetensors": w, "1_Pooling/config.json": pooling, "modules.json": modules("Transformer", "Pooling", *(m[0] for m in after)),
                 "sentence_bert_config.json": {"max_seq_length": 40, "do_lower_case": False}}
        want = np.concatenate([POOL[m](rows) for m in ([mode] if isinstance(mode, str) else mode)])
        for i, (kind, own, tensors, run) in enumerate(after):
            files |= {f"{i + 2}_{kind}/config.json": own} if own else {}
            files |= {f"{i + 2}_{kind}/model.safetensors": tensors} if tensors else {}
            if not (kind == "Normalize" and i + 1 == len(after)):  # --no-normalize
                want = run(want)
        write(folder, files)
        keys = compare(a, name, folder, want)
        check(keys and keys["sentence_transformers.max_seq_length"] == 40 and keys["sentence_transformers.normalize"] == (bool(after) and after[-1][0] == "Normalize"), name, "keys")
    asked(a, config, w, rows)
    truncated(a, config, w, rows)
    folder = os.path.join(a.dir, "sentences-router")  # of sentence-transformers 6: there is no config.json beside modules.json
    write(folder, {"router_config.json": {"types": {}, "structure": {}}})
    for kind in ("Router", "Asym"):
        refused(a, folder, {"modules.json": modules(kind, "Normalize")}, f"modules.json: module 0 is a {kind}, which holds a model for each kind of text",
                'sub_modules["query"]', "QUERY_FOLDER")
    folder = os.path.join(a.dir, "sentences-refused")
    write(folder, {"config.json": config, "model.safetensors": w, "modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": {"pooling_mode": "mean"}})
    refused(a, folder, {"modules.json": modules("Transformer", "Pooling", "LSTM")}, "'LSTM'", "Normalize")
    refused(a, folder, {"modules.json": modules("Transformer", "Pooling", "Dense"), "2_Dense/config.json": {"in_features": 48, "out_features": 9, "activation_function": "mine.Act"}},
            "activation_function", "mine.Act", "torch.nn these are: Identity Tanh ", " Hardswish")
    refused(a, folder, {"2_Dense/config.json": {"activation_function": IDENTITY, "module_input_name": "token_embeddings"}}, "module_input_name", "token_embeddings")
    refused(a, folder, {"modules.json": modules("Transformer", "Dense", "Pooling"), "1_Dense/config.json": {"in_features": 48, "out_features": 9, "activation_function": IDENTITY}, "2_Pooling/config.json": {}}, "before the pooling")
    named(a, config, w)
    refused(a, folder, {"modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": {"pooling_mode": "median"}}, "median", "weightedmean")
    refused(a, folder, {"1_Pooling/config.json": {"pooling_mode_median_tokens": True}}, "pooling_mode_median_tokens")


def tables(a):
    n, size = 40, 16
    table = drawn(n, size)
    folder = os.path.join(a.dir, "sentences-table")
    write(folder, {"0_StaticEmbedding/model.safetensors": {"embedding.weight": table},
                   "modules.json": [{"idx": 0, "name": "0", "path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}]})
    compare(a, "StaticEmbedding", folder, table[TOKENS].astype(np.float64).mean(0))
    factors, rows = drawn(n) + 1, draw.integers(0, 7, n)
    few = types.SimpleNamespace(dtype="I8", shape=(n, size), data=np.rint(table * 127 / np.abs(table).max()).astype(np.int8))
    whole = types.SimpleNamespace(dtype="I64", shape=rows.shape, data=rows.astype("<i8"))
    for name, tensors, want in (("model2vec", {"embeddings": table}, table), ("model2vec weights", {"embeddings": table, "weights": factors}, table * factors[:, None]),
                                ("model2vec mapping", {"embeddings": table[:7], "weights": factors, "mapping": whole}, table[rows] * factors[:, None]),
                                ("model2vec int8", {"embeddings": few}, few.data), ("model2vec int8 weights", {"embeddings": few, "weights": factors}, few.data * factors[:, None]),
                                ("model2vec int8 mapping", {"embeddings": types.SimpleNamespace(dtype="I8", shape=(7, size), data=few.data[:7]), "weights": factors, "mapping": whole},
                                 few.data[rows] * factors[:, None])):
        folder = os.path.join(a.dir, "sentences-" + name.replace(" ", "-"))
        write(folder, {"model.safetensors": tensors, "config.json": {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True, "seq_length": 1000000}})
        keys = compare(a, name, folder, want[TOKENS].astype(np.float64).mean(0))
        check(keys and keys["sentence_transformers.max_seq_length"] == 512 and keys["sentence_transformers.drop_unknown_tokens"] is True, name, keys)


def main():
    p = argparse.ArgumentParser()
    for name in ("--cli", "--dir", "--convert", "--embed"):
        p.add_argument(name, required=True)
    a = p.parse_args()
    chains(a)
    tables(a)
    print("ok" if not faults else f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
