#!/usr/bin/env python3
"""Converts Hugging Face folders and compares the logits with forward passes that read the folders' own layout, or with what such a pass once gave.

    folders.py --cli LLM_CLI --dir FOLDER --convert LLM_CONVERT [CLASS ..]

Each class that a built-in descriptor converts has a small model with random weights, with config.json as transformers 4 and 5
write it and with every way to scale the rotation. What these mean is stated here once more, after the papers and
transformers' documentation; the keys and tensors of the GGUF file are not looked at. Exit code 0, 1.
"""
import argparse
import importlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

import folders_mlx
import folders_parallel
import folders_published
import gguf
import recorded
import today
from blocks import *

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import checks  # noqa: E402

LIMIT = 1e-4
N_VOCAB, N_LAYER, N_EMBD, N_HEAD, N_KV, N_FF, EPS = 40, 3, 48, 4, 2, 56, 1e-2
TOKENS = [3, 17, 29, 5, 11, 38, 7, 7, 20, 1, 33, 14]

# --- the rotation -----------------------------------------------------------------------------------

SCALINGS = {
    "default": {},
    "linear": {"rope_type": "linear", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    "yarn-factors": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 1.3,
                     "beta_fast": 16.0, "beta_slow": 2.0},
    "yarn-mscale": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "mscale": 1.2,
                    "mscale_all_dim": 0.7},
    "yarn-latent": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16.0, "beta_slow": 2.0,
                    "mscale": 0.7, "mscale_all_dim": 0.7},  # as DeepSeek says it: into the scores' scale, not into the rotation
    "yarn-bare": {"rope_type": "yarn", "factor": 2.0},  # then the original length is max_position_embeddings
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 16},
    "ministral": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4, "mscale": 1.0, "mscale_all_dim": 1.0,
                  "beta_fast": 32.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.3},
    "longrope": {"rope_type": "longrope", "original_max_position_embeddings": 32},
    "longrope-mscale": {"rope_type": "longrope", "original_max_position_embeddings": 32, "short_mscale": 1.25, "long_mscale": 1.25},
    "dynamic-alpha": {"rope_type": "dynamic", "alpha": 100.0, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32, "beta_slow": 1},
    "longrope-long": {"rope_type": "longrope", "original_max_position_embeddings": 8},
}
EVERY = ["default", "linear", "yarn", "yarn-factors", "yarn-mscale", "yarn-bare"]


def rotation(c, n, n_ctx):
    """Frequencies and magnitude for n rotated dimensions."""
    r, theta = c["rope"], inverse_frequencies(n, c["theta"])
    kind, factor = r.get("rope_type", "default"), r.get("factor")
    original = r.get("original_max_position_embeddings", c.get("max_position_embeddings"))
    if kind == "linear":
        return theta / factor, 1.0
    if kind == "dynamic":  # by alpha, whatever the length
        return inverse_frequencies(n, c["theta"] * r["alpha"] ** (n / (n - 2))), 1.0
    if kind == "llama3":
        return llama3_frequencies(n, c["theta"], factor, r["low_freq_factor"], r["high_freq_factor"], original), 1.0
    if kind == "yarn":
        def mag(m):
            return 0.1 * m * math.log(factor) + 1
        both = r.get("mscale") and r.get("mscale_all_dim")
        scale = r.get("attention_factor", mag(r["mscale"]) / mag(r["mscale_all_dim"]) if both else mag(1))
        return yarn_frequencies(n, c["theta"], factor, original, r.get("beta_fast", 32), r.get("beta_slow", 1)), scale
    if kind == "longrope":
        factors = r["long_factor" if n_ctx > original else "short_factor"]
        times = c["max_position_embeddings"] / original
        return theta / np.array(factors), math.sqrt(1 + math.log(times) / math.log(original))
    return theta, 1.0


def write_rotation(c, form):
    """As transformers 4, 4 with the older name `type`, 5: what goes into config.json."""
    r = dict(c["rope"])
    part = {"partial_rotary_factor": c["partial"]} if "partial" in c else {}
    local = c.get("how", {}).get("local")  # the theta of layers with a window
    if form == 5:
        new = {"rope_type": "default", **r, "rope_theta": c["theta"], **part}
        kinds = {"full_attention": new, "sliding_attention": {"rope_type": "default", "rope_theta": local}}
        return {"rope_parameters": kinds if local else new}
    out = {"rope_theta": c["theta"], "rope_scaling": None, **part}
    if local:
        out["rope_local_base_freq"] = local
    if r and form == 3:
        r["type"] = {"longrope": "su"}.get(r["rope_type"], r.pop("rope_type"))
        r.pop("rope_type", None)
    if r and c["rope"]["rope_type"] == "longrope":
        out["original_max_position_embeddings"] = r.pop("original_max_position_embeddings")
    return {**out, "rope_scaling": r or None}


# --- forward passes: names and layouts are those of the folder -----------------------------------------


def swiglu(w, p, h):
    return linear(silu(linear(h, w[p + "gate_proj.weight"])) * linear(h, w[p + "up_proj.weight"]), w[p + "down_proj.weight"])


def mixture(w, router, expert, names, h, n_used):
    p = softmax(linear(h, w[router]))
    chosen = [best(row, n_used) for row in p]
    weights = [{e: row[e] / sum(row[i] for i in of) for e in of} for row, of in zip(p, chosen)]
    gate, up, down = ([w[f"{expert}{e}.{name}.weight"] for e in range(p.shape[1])] for name in names)
    return experts(h, weights, chosen, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))


def llama_like(c, w, n_ctx):
    """Llama, Mistral, Mixtral, Qwen 2, Qwen 3 with and without experts, Gemma 2, Phi 3."""
    kind, d, gemma = c["kind"], c["d"], c["kind"] == "gemma2"
    one = 1.0 if gemma else 0.0
    n_rot = int(d * c.get("partial", 1.0))
    theta, mag = rotation(c, n_rot, n_ctx)
    x = w["model.embed_tokens.weight"][TOKENS] * (math.sqrt(N_EMBD) if gemma else 1.0)

    def norm(x, name):
        return rms_norm(x, w[name] + one, EPS)

    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        h = norm(x, p + "input_layernorm.weight")
        if kind == "phi3":
            q, k, v = np.split(linear(h, w[p + "self_attn.qkv_proj.weight"]), [N_HEAD * d, (N_HEAD + N_KV) * d], axis=-1)
        else:
            q, k, v = (linear(h, w[f"{p}self_attn.{n}_proj.weight"], w.get(f"{p}self_attn.{n}_proj.bias")) for n in "qkv")
        q, k, v = split_heads(q, N_HEAD), split_heads(k, N_KV), split_heads(v, N_KV)
        if kind.startswith("qwen3"):
            q, k = norm(q, p + "self_attn.q_norm.weight"), norm(k, p + "self_attn.k_norm.weight")
        window = c.get("sliding_window") if not gemma or l % 2 == 0 else None
        a = merge_heads(attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v, window=window,
                                  cap=c.get("attn_logit_softcapping")))
        a = linear(a, w[p + "self_attn.o_proj.weight"])
        x = x + (norm(a, p + "post_attention_layernorm.weight") if gemma else a)
        h = norm(x, p + ("pre_feedforward_layernorm.weight" if gemma else "post_attention_layernorm.weight"))
        if kind == "mixtral":
            f = mixture(w, p + "block_sparse_moe.gate.weight", p + "block_sparse_moe.experts.", ("w1", "w3", "w2"), h, 2)
        elif kind == "qwen3moe":
            f = mixture(w, p + "mlp.gate.weight", p + "mlp.experts.", ("gate_proj", "up_proj", "down_proj"), h, 2)
        elif kind == "phi3":
            gate, up = np.split(linear(h, w[p + "mlp.gate_up_proj.weight"]), 2, axis=-1)
            f = linear(silu(gate) * up, w[p + "mlp.down_proj.weight"])
        elif gemma:
            f = gelu(linear(h, w[p + "mlp.gate_proj.weight"])) * linear(h, w[p + "mlp.up_proj.weight"])
            f = norm(linear(f, w[p + "mlp.down_proj.weight"]), p + "post_feedforward_layernorm.weight")
        else:
            f = swiglu(w, p + "mlp.", h)
        x = x + f
    y = linear(norm(x, "model.norm.weight"), w.get("lm_head.weight", w["model.embed_tokens.weight"]))
    cap = c.get("final_logit_softcapping")
    return cap * np.tanh(y / cap) if cap else y


# --- folders ------------------------------------------------------------------------------------------


class Weights(dict):
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.blocks = {}  # by name: what a packed form of it holds

    def matrix(self, name, *shape):
        self[name] = np.float32(self.random.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float64)

    def vector(self, name, n, about=0.0):
        self[name] = np.float32(about + self.random.normal(size=n) / 5).astype(np.float64)


def llama_weights(c, w):
    kind, d, gemma = c["kind"], c["d"], c["kind"] == "gemma2"
    about = 0.0 if gemma or kind == "qwen35" else 1.0
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, about)
    if not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        names = ["input_layernorm", "post_attention_layernorm"]
        for name in names + (["pre_feedforward_layernorm", "post_feedforward_layernorm"] if gemma else []):
            w.vector(f"{p}{name}.weight", N_EMBD, about)
        if kind == "phi3":
            w.matrix(p + "self_attn.qkv_proj.weight", (N_HEAD + 2 * N_KV) * d, N_EMBD)
        for name, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)):
            gated = 2 if kind == "qwen35" and name == "q" else 1
            if kind != "phi3" and (kind != "qwen35" or (l + 1) % 4 == 0):
                w.matrix(f"{p}self_attn.{name}_proj.weight", gated * n * d, N_EMBD)
            if kind == "qwen2":
                w.vector(f"{p}self_attn.{name}_proj.bias", n * d)
        if kind != "qwen35" or (l + 1) % 4 == 0:
            w.matrix(p + "self_attn.o_proj.weight", N_EMBD, N_HEAD * d)
            for name in "qk" if kind.startswith("qwen3") else "":
                w.vector(f"{p}self_attn.{name}_norm.weight", d, about)
        else:
            p += "linear_attn."
            for name, n in (("in_proj_qkv", 64), ("in_proj_z", 32), ("in_proj_a", 4), ("in_proj_b", 4)):
                w.matrix(f"{p}{name}.weight", n, N_EMBD)
            w.matrix(p + "conv1d.weight", 64, 1, 4)
            w.vector(p + "dt_bias", 4)
            w.vector(p + "A_log", 4)
            w.vector(p + "norm.weight", 8, 1.0)
            w.matrix(p + "out_proj.weight", N_EMBD, 32)
        feed_forward_weights(kind, f"model.layers.{l}.", w)
        if kind == "llama":  # the frequencies, as tensors
            w[f"model.layers.{l}.self_attn.rotary_emb.inv_freq"] = np.zeros(d // 2)


def feed_forward_weights(kind, p, w):
    if kind in ("mixtral", "qwen3moe"):
        router, of, names = {"mixtral": ("block_sparse_moe.gate", "block_sparse_moe.experts", ("w1", "w3", "w2")),
                             "qwen3moe": ("mlp.gate", "mlp.experts", ("gate_proj", "up_proj", "down_proj"))}[kind]
        w.matrix(f"{p}{router}.weight", 4, N_EMBD)
        for e in range(4):
            for name, shape in zip(names, ((N_FF, N_EMBD), (N_FF, N_EMBD), (N_EMBD, N_FF))):
                w.matrix(f"{p}{of}.{e}.{name}.weight", *shape)
        return
    for name in ("gate_up",) if kind == "phi3" else ("gate", "up"):
        w.matrix(f"{p}mlp.{name}_proj.weight", (2 if name == "gate_up" else 1) * N_FF, N_EMBD)
    w.matrix(p + "mlp.down_proj.weight", N_EMBD, N_FF)


def old_weights(c, w):
    is_gpt2 = c["kind"] == "gpt2"
    embedding, *norms = ("wte", "ln_1", "ln_2") if is_gpt2 else ("word_embeddings", "input_layernorm", "post_attention_layernorm")
    dense = {"attn.c_attn": (48, 144), "attn.c_proj": (48, 48), "mlp.c_fc": (48, 192), "mlp.c_proj": (192, 48)} if is_gpt2 else {
        "self_attention.query_key_value": (144, 48), "self_attention.dense": (48, 48), "mlp.dense_h_to_4h": (192, 48),
        "mlp.dense_4h_to_h": (48, 192)}
    w.matrix(f"transformer.{embedding}.weight", N_VOCAB, N_EMBD)
    if is_gpt2:
        w.matrix("transformer.wpe.weight", 64, N_EMBD)
    ends = ["transformer.ln_f"] + ([] if is_gpt2 else ["transformer.word_embeddings_layernorm"])
    for name in ends + [f"transformer.h.{l}.{n}" for l in range(N_LAYER) for n in norms]:
        w.vector(name + ".weight", N_EMBD, 1.0)
        w.vector(name + ".bias", N_EMBD)
    for l in range(N_LAYER):
        for name, shape in dense.items():
            w.matrix(f"transformer.h.{l}.{name}.weight", *shape)
            w.vector(f"transformer.h.{l}.{name}.bias", shape[1 if is_gpt2 else 0])
        if is_gpt2:  # which tokens see which, as tensors
            w[f"transformer.h.{l}.attn.bias"] = np.zeros((1, 1, 4, 4))


def llama_config(kind, d=12, theta=10000.0, tied=True, **more):
    return {"kind": kind, "d": d, "theta": theta, "tie_word_embeddings": tied, "hidden_size": N_EMBD, "intermediate_size": N_FF,
            "num_attention_heads": N_HEAD, "num_key_value_heads": N_KV, "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB,
            "max_position_embeddings": 128, "rms_norm_eps": EPS, "hidden_act": "silu", **more}


OLD = {"vocab_size": N_VOCAB, "n_layer": N_LAYER, "n_head": N_HEAD, "layer_norm_epsilon": EPS, "tie_word_embeddings": True}
CLASSES = {  # the class: the configuration, weights, the scalings that its descriptor has, and a forward pass unless ./recorded.txt has its rows
    "LlamaForCausalLM": (llama_config("llama"), llama_weights, EVERY + ["llama3", "longrope", "longrope-long"], llama_like),
    "MistralForCausalLM": (llama_config("mistral", d=16, head_dim=16, tied=False), llama_weights, EVERY, llama_like),
    "MixtralForCausalLM": (llama_config("mixtral", theta=1e6, tied=False, num_local_experts=4, num_experts_per_tok=2),
                           llama_weights, ["default", "yarn"], llama_like),
    "Qwen2ForCausalLM": (llama_config("qwen2", theta=1e6), llama_weights, EVERY, llama_like),
    "Qwen3ForCausalLM": (llama_config("qwen3", d=16, theta=1e6, head_dim=16), llama_weights, EVERY, llama_like),
    "Qwen3MoeForCausalLM": (llama_config("qwen3moe", d=16, tied=False, head_dim=16, num_experts=4, num_experts_per_tok=2,
                                         moe_intermediate_size=N_FF, norm_topk_prob=True), llama_weights,
                            ["default", "yarn"], llama_like),
    "Gemma2ForCausalLM": (llama_config("gemma2", d=16, head_dim=16, query_pre_attn_scalar=16, sliding_window=5,
                                       attn_logit_softcapping=3.0, final_logit_softcapping=4.0,
                                       hidden_act="gelu_pytorch_tanh"), llama_weights, EVERY, llama_like),
    "Phi3ForCausalLM": (llama_config("phi3", d=12, tied=False, sliding_window=6, partial=0.5), llama_weights,
                        ["default", "longrope", "longrope-long"], llama_like),
    "Qwen3_5ForCausalLM": ({**llama_config("qwen35", d=16, theta=1e7, head_dim=16, linear_conv_kernel_dim=4,
                                           linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2,
                                           linear_num_value_heads=4, full_attention_interval=4, partial=0.5),
                            "num_hidden_layers": 4}, llama_weights, EVERY),
    "GPT2LMHeadModel": ({"kind": "gpt2", "n_embd": N_EMBD, "n_positions": 64, **OLD}, old_weights, [None]),
    "BloomForCausalLM": ({"kind": "bloom", "hidden_size": N_EMBD, "seq_length": 64, **OLD}, old_weights, [None]),
}
CLASSES |= folders_parallel.classes(sys.modules[__name__])


def write_safetensors(path, tensors):
    checks.write_safetensors(path, {
        name: (("I64", x.shape, x.astype("<i8").tobytes()) if x.dtype == np.int64 else ("F32", x.shape, x.astype("<f4").tobytes())) if isinstance(x, np.ndarray)
        else (x.dtype, x.shape, x.data.tobytes())
        for name, x in tensors.items()})


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or "runtime error:" in done.stderr:
        raise RuntimeError(done.stderr.strip())


def check_mlx(a, class_name, folder, model, stored, kind, c):
    """The folder as mlx-lm writes it becomes the same file."""
    changed = folders_mlx.as_mlx(class_name, stored, c)
    if not changed:
        return
    write_safetensors(os.path.join(folder, "model.safetensors"), changed)
    run(a.convert, folder, "-o", model + ".mlx", "--type", kind)
    with open(model, "rb") as one, open(model + ".mlx", "rb") as other:
        if one.read() != other.read():
            raise RuntimeError("MLX's folder becomes another file")
    os.unlink(model + ".mlx")
    write_safetensors(os.path.join(folder, "model.safetensors"), stored)


def model_of(class_name, scaling):
    """The configuration and the weights."""
    c = {**CLASSES[class_name][0], "rope": dict(SCALINGS[scaling] if scaling else {})}
    if c["rope"].get("rope_type") == "longrope":
        half = int(c["d"] * c.get("partial", 1)) // 2
        c["rope"] |= {"long_factor": [1.5 + i for i in range(half)], "short_factor": [1.0 + i / 4 for i in range(half)]}
    w = Weights(len(class_name))
    CLASSES[class_name][1](c, w)
    return c, w


def written_config(class_name, c, scaling, form):
    """config.json's object in a form of ./write_rotation."""
    own = {k: v for k, v in c.items() if k not in ("kind", "how", "d", "theta", "rope", "partial", "layout", "write", "type", "like")}
    rope = write_rotation(c, form) if scaling else {}
    return {"architectures": [class_name.split()[0]], **c.get("write", dict)({**own, **rope})}


def stored_tensors(c, w):
    """The tensors as the folder has them."""
    return c.get("layout", c.get("how", {}).get("layout", lambda w: w))(w)


def write_others(folder, c):
    """The files beside config.json and model.safetensors."""
    for name, content in c.get("how", {}).get("files", {}).items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        if name.endswith(".safetensors"):
            write_safetensors(os.path.join(folder, name), content)
        else:
            pathlib.Path(folder, name).write_text(json.dumps(content))


def how_to_run(a, c, out):
    """A program and its words, which writes the outputs of all tokens into a file."""
    tokens, output = ",".join(map(str, TOKENS)), c.get("how", {}).get("output")
    if output:
        return os.environ["TEST_OUTPUTS"], ["--tokens", tokens, "--output", output, "--logits", out]
    read = c.get("how", {}).get("read")
    return a.cli, [*(["--encode-tokens", ",".join(map(str, read))] if read else []), "--tokens", tokens, "-n", "0", "-c", "16", "-t", "1", "-ctk", "f32", "-ctv", "f32", "--logits", out]


def check(a, class_name, scaling, plain):
    """plain: the logits without scaling, once they are known; a scaling has to show."""
    forward = CLASSES[class_name][3:]
    folder, model = (os.path.join(a.dir, f"hf-{class_name.replace(' ', '-')}{end}") for end in ("", ".gguf"))
    out = model[: -len("gguf")] + "npy"
    c, w = model_of(class_name, scaling)
    name = f"{class_name} {scaling or 'default'}"
    if forward:
        rows = forward[0](c, w, 16)
        want = recorded.Outputs(rows.shape, rows)
        if a.record:
            print(recorded.line_of(name, rows))
            return True
    else:
        want = recorded.of(name)
    plain.setdefault(class_name, want.values)
    shows = scaling in (None, "default") or np.abs(want.values - plain[class_name]).max() > 100 * LIMIT
    worst = 0.0
    os.makedirs(folder, exist_ok=True)
    stored = stored_tensors(c, w)
    write_safetensors(os.path.join(folder, "model.safetensors"), stored)
    write_others(folder, c)
    for form in (3, 4, 5):
        config = written_config(class_name, c, scaling, form)
        pathlib.Path(folder, "config.json").write_text(json.dumps(folders_published.with_values(class_name, config) if form == 4 else config))
        run(a.convert, folder, "-o", model, "--type", c.get("type", "auto"))
        program, say = how_to_run(a, c, out)
        run(program, "-m", model, *say)
        converted = np.load(out)
        if converted.shape != want.shape:
            raise RuntimeError(f"rows of the shape {converted.shape}, not {want.shape}")
        worst = np.maximum(worst, want.distance(converted))  # NaN stays
    for change, words in folders_published.REFUSED.get(class_name, []):
        pathlib.Path(folder, "config.json").write_text(json.dumps({**config, **change}))
        refused = subprocess.run([a.convert, folder, "-o", out], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if refused.returncode != 1 or words not in refused.stderr:
            raise RuntimeError(f"{change} is not refused: {refused.stderr}")
    pathlib.Path(folder, "config.json").write_text(json.dumps(config))
    found = gguf.read(model)[0] if "keys" in c.get("how", {}) else {}
    for key, value in c.get("how", {}).get("keys", {}).items():
        if found.get(key) != value:
            raise RuntimeError(f"key {key} is {found.get(key)!r}, not {value!r}")
    if scaling in (None, CLASSES[class_name][2][0]):
        check_mlx(a, class_name, folder, model, stored, c.get("type", "auto"), c)
    # the folder opened directly: the file's logits, to the last bit
    run(program, "-m", folder, *(["--type", c.get("type", "auto")] if program == a.cli else []), *say)
    if not np.array_equal(np.load(out).view(np.uint32), converted.view(np.uint32)):
        raise RuntimeError("the folder opened directly has other logits than its file")
    spread = want.values[np.isfinite(want.values)].std()
    ok = bool(worst <= LIMIT) and (spread > 0.1 or want.values.size == 1) and shows
    print(f"{class_name:22} {scaling or '':14} {worst:8.1e} of {spread:5.2f}  {'ok' if ok else 'FAILED'}")
    shutil.rmtree(folder)
    os.unlink(model)
    os.unlink(out)
    return ok


def add_all(without=()):
    """Adds the classes of the other files, which import this one."""
    for name in ("kin", "experts", "more", "gpt", "vision", "deepseek4", "deepseek41", "encoders", "deberta", "readers", "late", "autumn", "indexed", "mixed", "named", "november", "older", "december"):
        if name not in without:
            CLASSES.update(importlib.import_module("folders_" + name).CLASSES)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--convert")
    p.add_argument("--dir", default=".")
    p.add_argument("--sample", type=int, help="so many classes, others each day")
    p.add_argument("--record", action="store_true", help="print the lines for ./recorded.txt of what the classes' forward passes give")
    p.add_argument("classes", nargs="*")
    a = p.parse_args()
    add_all()
    failed, skipped, plain = 0, 0, {}
    for class_name in today.sample("classes", a.classes or CLASSES, a.sample):
        for scaling in CLASSES[class_name][2]:
            try:
                failed += not check(a, class_name, scaling, plain)
            except recorded.OtherNumpy:
                skipped += 1
            except RuntimeError as e:
                failed += 1
                print(f"{class_name:22} {scaling or '':14} FAILED: {e}")
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
