"""Folders whose tensors are laid out otherwise than their matrices are used: experts in one tensor, packed types, models within models.
For ./folders.py; small models laid out as their classes have them."""
from folders import *
from folders_experts import N_EACH, N_EXPERT, N_SHARED, attention_weights, common_weights, deepseek_weights, gated_weights
import folders_experts
import folders_kin
from folders import CLASSES as FIRST

NORMS = ("input_layernorm", "post_attention_layernorm")


class Packed:
    """A tensor of a type that numpy lacks."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data


# --- gpt-oss: gates and ups in turn, biases, sinks; columns without blocks, rows in MXFP4


def gpt_oss_weights(c, w):
    common_weights(c, w)
    n, f, d = 64, 32, c["d"]
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        for name, rows, columns in (("q", N_HEAD * d, n), ("k", N_KV * d, n), ("v", N_KV * d, n), ("o", n, N_HEAD * d)):
            w.matrix(f"{p}self_attn.{name}_proj.weight", rows, columns)
            w.vector(f"{p}self_attn.{name}_proj.bias", rows)
        w.vector(p + "self_attn.sinks", N_HEAD)
        w.matrix(p + "mlp.router.weight", N_EXPERT, n)
        w.vector(p + "mlp.router.bias", N_EXPERT)
        for name, rows, columns in (("gate_up_proj", n, 2 * f), ("down_proj", f, n)):
            codes = w.random.integers(0, 16, size=(N_EXPERT, columns, rows // 32, 32))
            scales = w.random.integers(124, 127, size=(N_EXPERT, columns, rows // 32))
            value = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7] * np.where(codes & 8, -1, 1) * 2.0 ** (scales[..., None] - 127)
            w[f"{p}mlp.experts.{name}"] = value.reshape(N_EXPERT, columns, rows).transpose(0, 2, 1)
            w.blocks[f"{p}mlp.experts.{name}"] = (codes[..., 0::2] | codes[..., 1::2] << 4, scales)
            w[f"{p}mlp.experts.{name}_bias"] = np.float32(w.random.normal(size=(N_EXPERT, columns)) / 5).astype(np.float64)


def in_blocks(w):
    """The published form."""
    out = dict(w)
    for name, (codes, scales) in w.blocks.items():
        del out[name]
        out[name + "_blocks"] = Packed("U8", codes.shape, codes.astype("u1"))
        out[name + "_scales"] = Packed("U8", scales.shape, scales.astype("u1"))
    return out


# --- DeepSeek 3 with FP8 in blocks


def fp8_table():
    out = []
    for u in range(256):
        e, f = u >> 3 & 15, u & 7
        x = (1 + f / 8) * 2.0 ** (e - 7) if e else f / 8 * 2.0**-6
        out.append(math.nan if u & 127 == 127 else -x if u & 128 else x)
    return np.array(out)


FP8 = fp8_table()


def fp8_weights(c, w):
    """The same matrices, each rounded to codes times a factor for 16 x 16 numbers."""
    deepseek_weights(c, w)
    values = np.where(np.isnan(FP8), np.inf, FP8)
    for name, x in list(w.items()):
        if x.ndim != 2 or "proj" not in name:
            continue
        down, across = -(-x.shape[0] // 16), -(-x.shape[1] // 16)
        scale = np.float32(2.0 ** w.random.integers(-9, -6, size=(down, across)))
        wide = np.repeat(np.repeat(scale, 16, 0), 16, 1)[: x.shape[0], : x.shape[1]].astype(np.float64)
        codes = np.abs(values[None, None, :] - (x / wide)[..., None]).argmin(-1)
        w[name] = FP8[codes] * wide
        w.blocks[name] = (codes, scale)


def in_fp8(w):
    out = dict(w)
    for name, (codes, scale) in w.blocks.items():
        out[name] = Packed("F8_E4M3", codes.shape, codes.astype("u1"))
        out[name + "_scale_inv"] = scale
    return out


# --- MiMo V2.5 with FP8 in blocks, queries, keys and values in parts


def in_parts(x, of, n):
    """Rows of several matrices as n devices have them side by side: a part of each, then the next part of each."""
    parts = [np.split(t, n) for t in of(x)]
    return np.concatenate([part[i] for i in range(n) for part in parts])


def fp8_parts_weights(c, w, n=4, side=(14, 16)):
    """Each matrix rounded to codes times a factor for 14 x 16 numbers, which begin anew with each part."""
    folders_experts.mimo2_weights(c, w)
    values = np.where(np.isnan(FP8), np.inf, FP8)
    for l in range(N_LAYER):
        p = f"model.layers.{l}.self_attn."
        three = [p + x + "_proj.weight" for x in "qkv"]
        split = np.cumsum([len(w[name]) // n for name in three])[:2]
        whole = in_parts(None, lambda _: [w[name] for name in three], n)
        codes, scales, back = [], [], [[], [], []]
        for part in np.split(whole, n):
            scale = np.float32(2.0 ** w.random.integers(-9, -6, size=(-(-len(part) // side[0]), -(-part.shape[1] // side[1]))))
            wide = np.repeat(np.repeat(scale, side[0], 0), side[1], 1)[: len(part), : part.shape[1]].astype(np.float64)
            codes.append(np.abs(values[None, None, :] - (part / wide)[..., None]).argmin(-1))
            scales.append(scale)
            for to, rows in zip(back, np.split(FP8[codes[-1]] * wide, split)):
                to.append(rows)
        for name, rows in zip(three, back):
            w[name] = np.concatenate(rows)
        w.blocks[p + "qkv_proj.weight"] = (np.concatenate(codes), np.concatenate(scales))


def joined_fp8(w):
    out = {name: t for name, t in w.items() if not name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))}
    for name, (codes, scale) in w.blocks.items():
        out |= {name: Packed("F8_E4M3", codes.shape, codes.astype("u1")), name + "_scale_inv": scale}
    return out


# --- experts in one tensor


def granitemoe_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        w.matrix(p + "block_sparse_moe.router.layer.weight", N_EXPERT, N_EMBD)
        w.matrix(p + "block_sparse_moe.input_linear.weight", N_EXPERT, 2 * N_FF, N_EMBD)
        w.matrix(p + "block_sparse_moe.output_linear.weight", N_EXPERT, N_EMBD, N_FF)
        w.matrix(p + "shared_mlp.input_linear.weight", 2 * N_SHARED, N_EMBD)
        w.matrix(p + "shared_mlp.output_linear.weight", N_EMBD, N_SHARED)


def phimoe_weights(c, w):
    common_weights(c, w)
    w.vector("lm_head.bias", N_VOCAB)
    w.vector("model.norm.bias", N_EMBD)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"], bias=True)
        w.vector(p + "self_attn.o_proj.bias", N_EMBD)
        for name in NORMS:
            w.vector(f"{p}{name}.bias", N_EMBD)
        w.matrix(p + "block_sparse_moe.gate.weight", N_EXPERT, N_EMBD)
        for e in range(N_EXPERT):
            gated_weights(w, f"{p}block_sparse_moe.experts.{e}.", N_EACH, ("w1", "w3", "w2"))


def dbrx_weights(c, w):
    w.matrix("transformer.wte.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("transformer.norm_f.weight", N_EMBD, 1.0)
    for l in range(N_LAYER):
        p = f"transformer.blocks.{l}."
        for name in ("norm_1", "norm_2"):
            w.vector(f"{p}norm_attn_norm.{name}.weight", N_EMBD, 1.0)
        w.matrix(p + "norm_attn_norm.attn.Wqkv.weight", 48 + 2 * 24, N_EMBD)
        w.matrix(p + "norm_attn_norm.attn.out_proj.weight", N_EMBD, 48)
        w.matrix(p + "ffn.router.layer.weight", N_EXPERT, N_EMBD)
        for name in ("w1", "v1", "w2"):
            w.matrix(f"{p}ffn.experts.mlp.{name}", N_EXPERT * N_EACH, N_EMBD)


def llama4_weights(c, w):
    common_weights({**c}, w)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        for name in NORMS:
            w.vector(f"{p}{name}.weight", N_EMBD, 1.0)
        attention_weights(w, p + "self_attn.", c["d"])
        if (l + 1) % 2:
            gated_weights(w, p + "feed_forward.", N_FF)
            continue
        w.matrix(p + "feed_forward.router.weight", N_EXPERT, N_EMBD)
        w.matrix(p + "feed_forward.experts.gate_up_proj", N_EXPERT, N_EMBD, 2 * N_EACH)
        w.matrix(p + "feed_forward.experts.down_proj", N_EXPERT, N_EACH, N_EMBD)
        gated_weights(w, p + "feed_forward.shared_expert.", N_EACH)


def glm4moe_weights(c, w):
    common_weights(c, w)
    w.vector(f"model.layers.{N_LAYER}.enorm.weight", N_EMBD)  # the draft layer
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"], bias=True)
        for name in "qk":
            w.vector(f"{p}self_attn.{name}_norm.weight", c["d"], 1.0)
        if l == 0:
            gated_weights(w, p + "mlp.", N_FF)
            continue
        folders_experts.expert_weights(w, p + "mlp.", shared=False)
        gated_weights(w, p + "mlp.shared_experts.", N_EACH)
        w.vector(p + "mlp.gate.e_score_correction_bias", N_EXPERT)


def sparse_weights(c, w):
    like, d = c["like"], c["d"]
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", d)
        heads = {"row": (N_HEAD * d, N_KV * d), "head": (d, d)}.get(like.get("norms"), ())
        for name, n in zip(("query_layernorm", "key_layernorm") if like.get("after") else ("q_norm", "k_norm"), heads):
            w.vector(f"{p}self_attn.{name}.weight", n, 1.0)
        if l < like.get("dense", 1):
            gated_weights(w, p + "mlp.", N_FF)
            continue
        p += like.get("part", "mlp.")
        names = like.get("names", ("gate_proj", "up_proj", "down_proj"))
        w.matrix(p + "gate.weight", N_EXPERT, N_EMBD)
        for e in range(N_EXPERT):
            gated_weights(w, f"{p}experts.{e}.", N_EACH, names)
        if like.get("shared", True):
            gated_weights(w, p + "shared_experts.", 2 * N_EACH)
        if "bias" in like:
            w[p + like["bias"]] = np.float32(w.random.normal(size=like.get("bias_shape", (N_EXPERT,))) / 3).astype(np.float64)


def granite_hybrid_weights(c, w):
    n_in, n_bc, n_h = 2 * N_EMBD, c["mamba_n_groups"] * c["mamba_d_state"], c["mamba_n_heads"]
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        if c["layer_types"][l] == "attention":
            attention_weights(w, p + "self_attn.", c["d"])
        else:
            for name, *shape in (("in_proj.weight", 2 * n_in + 2 * n_bc + n_h, N_EMBD), ("conv1d.weight", n_in + 2 * n_bc, 1, 4), ("out_proj.weight", N_EMBD, n_in)):
                w.matrix(f"{p}mamba.{name}", *shape)
            for name, n, about in (("conv1d.bias", n_in + 2 * n_bc, 0), ("dt_bias", n_h, 0), ("A_log", n_h, 0), ("D", n_h, 1), ("norm.weight", n_in, 1)):
                w.vector(f"{p}mamba.{name}", n, about)
        w.matrix(p + "shared_mlp.input_linear.weight", 2 * N_SHARED, N_EMBD)
        w.matrix(p + "shared_mlp.output_linear.weight", N_EMBD, N_SHARED)
        if c["num_local_experts"]:
            w.matrix(p + "block_sparse_moe.router.layer.weight", N_EXPERT, N_EMBD)
            w.matrix(p + "block_sparse_moe.input_linear.weight", N_EXPERT, 2 * N_FF, N_EMBD)
            w.matrix(p + "block_sparse_moe.output_linear.weight", N_EXPERT, N_EMBD, N_FF)


def deci_weights(c, w):
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, 1.0)
    for l, block in enumerate(c["block_configs"]):
        p, a = f"model.layers.{l}.", block["attention"]
        if not a.get("no_op"):
            w.vector(p + "input_layernorm.weight", N_EMBD, 1.0)
            if a.get("replace_with_linear"):
                w.matrix(p + "self_attn.linear_attn.weight", N_EMBD, N_EMBD)
            else:
                n_kv = N_HEAD // a["n_heads_in_group"] * c["d"]
                for name, rows, columns in (("q", N_HEAD * c["d"], N_EMBD), ("k", n_kv, N_EMBD), ("v", n_kv, N_EMBD), ("o", N_EMBD, N_HEAD * c["d"])):
                    w.matrix(f"{p}self_attn.{name}_proj.weight", rows, columns)
        if not block["ffn"].get("no_op"):
            w.vector(p + "post_attention_layernorm.weight", N_EMBD, 1.0)
            gated_weights(w, p + "mlp.", 256 * block["ffn"]["ffn_mult"] // 8)


def minicpm3_weights(c, w):
    rot, d, r, r_q, dv = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["kv_lora_rank"], c["q_lora_rank"], c["v_head_dim"]
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        for name, rows, columns in (("q_a_proj", r_q, N_EMBD), ("q_b_proj", N_HEAD * (d + rot), r_q), ("kv_a_proj_with_mqa", r + rot, N_EMBD),
                                    ("kv_b_proj", N_HEAD * (d + dv), r), ("o_proj", N_EMBD, N_HEAD * dv)):
            w.matrix(f"{p}self_attn.{name}.weight", rows, columns)
        w.vector(p + "self_attn.q_a_layernorm.weight", r_q, 1.0)
        w.vector(p + "self_attn.kv_a_layernorm.weight", r, 1.0)
        gated_weights(w, p + "mlp.", N_FF)


OLD_NAMES = {  # GPT-J, StarCoder 1, Qwen 1: transformer.h.{l}. and these
    "gptj": {"norm": "ln_1", "qkv": ["attn.q_proj", "attn.k_proj", "attn.v_proj"], "o": "attn.out_proj", "up": "mlp.fc_in", "down": "mlp.fc_out"},
    "starcoder": {"norm": "ln_1", "norm2": "ln_2", "qkv": ["attn.c_attn"], "o": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"},
    "qwen": {"norm": "ln_1", "norm2": "ln_2", "qkv": ["attn.c_attn"], "o": "attn.c_proj", "up": "mlp.w1", "gate": "mlp.w2", "down": "mlp.c_proj"},
}


def old_style_weights(c, w):
    kind, names = c["kind"], OLD_NAMES[c["kind"]]
    some = {"gptj": ("up", "down"), "starcoder": ("qkv", "o", "up", "down"), "qwen": ("qkv",)}[kind]  # which have biases
    w.matrix("transformer.wte.weight", N_VOCAB, N_EMBD)
    if kind == "starcoder":
        w.matrix("transformer.wpe.weight", 64, N_EMBD)
    else:
        w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    if kind == "gptj":
        w.vector("lm_head.bias", N_VOCAB)
    rows = {"qkv": {"gptj": 48, "starcoder": 48 + 2 * 12, "qwen": 144}[kind], "o": 48, "up": N_FF, "gate": N_FF, "down": 48}
    norms = ["transformer.ln_f"]
    for l in range(N_LAYER):
        p = f"transformer.h.{l}."
        norms += [p + names[n] for n in ("norm", "norm2") if n in names]
        for short, n in rows.items():
            for name in names[short] if short == "qkv" else [names[short]] if short in names else []:
                w.matrix(f"{p}{name}.weight", n, N_FF if short == "down" else N_EMBD)
                if short in some:
                    w.vector(f"{p}{name}.bias", n)
    for name in norms:
        w.vector(name + ".weight", N_EMBD, 1.0)
        if kind != "qwen":
            w.vector(name + ".bias", N_EMBD)


def in_one(w):
    """Baichuan's Q, K and V: each query head has a key head, here the same for several."""
    out = {}
    for name, t in w.items():
        if "q_proj" in name:
            k, v = (np.repeat(w[name.replace("q_proj", x)].reshape(N_KV, -1, N_EMBD), N_HEAD // N_KV, 0).reshape(-1, N_EMBD) for x in ("k_proj", "v_proj"))
            out[name.replace("q_proj", "W_pack")] = np.concatenate([t, k, v])
        elif "k_proj" not in name and "v_proj" not in name:
            out[name] = t
    return out


def afmoe_weights(c, w):
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, 1.0)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        w.matrix(p + "self_attn.gate_proj.weight", N_HEAD * c["d"], N_EMBD)
        for name, n in (("self_attn.q_norm", c["d"]), ("self_attn.k_norm", c["d"]), ("input_layernorm", N_EMBD), ("post_attention_layernorm", N_EMBD),
                        ("pre_mlp_layernorm", N_EMBD), ("post_mlp_layernorm", N_EMBD)):
            w.vector(f"{p}{name}.weight", n, 1.0)
        if l == 0:
            gated_weights(w, p + "mlp.", N_FF)
            continue
        w.matrix(p + "mlp.router.gate.weight", N_EXPERT, N_EMBD)
        w.vector(p + "mlp.expert_bias", N_EXPERT)
        for e in range(N_EXPERT):
            gated_weights(w, f"{p}mlp.experts.{e}.", N_EACH)
        gated_weights(w, p + "mlp.shared_experts.", N_EACH)


def falcon_h1_weights(c, w):
    n_in, n_bc, n_h = c["mamba_d_ssm"], c["mamba_n_groups"] * c["mamba_d_state"], c["mamba_n_heads"]
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("model.final_layernorm.weight", N_EMBD, 1.0)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        for name in ("input_layernorm", "pre_ff_layernorm"):
            w.vector(f"{p}{name}.weight", N_EMBD, 1.0)
        attention_weights(w, p + "self_attn.", c["d"])
        for name, *shape in (("in_proj.weight", 2 * n_in + 2 * n_bc + n_h, N_EMBD), ("conv1d.weight", n_in + 2 * n_bc, 1, 4), ("out_proj.weight", N_EMBD, n_in)):
            w.matrix(f"{p}mamba.{name}", *shape)
        for name, n, about in (("conv1d.bias", n_in + 2 * n_bc, 0), ("dt_bias", n_h, 0), ("A_log", n_h, 0), ("D", n_h, 1)):
            w.vector(f"{p}mamba.{name}", n, about)
        gated_weights(w, p + "feed_forward.", N_FF)


def bailing(w):
    """Ling 2's names and its one matrix for Q, K and V."""
    names = {"embed_tokens": "word_embeddings", "self_attn.o_proj": "attention.dense", "self_attn.q_norm": "attention.query_layernorm",
             "self_attn.k_norm": "attention.key_layernorm", "gate.e_score_correction_bias": "gate.expert_bias"}
    out = {}
    for name, t in w.items():
        if "q_proj" in name:
            both = [w[name.replace("q_proj", x + "_proj")] for x in "qkv"]
            out[name.replace("self_attn.q_proj", "attention.query_key_value")] = np.concatenate(both)
        elif "k_proj" not in name and "v_proj" not in name:
            for old, new in names.items():
                name = name.replace(old, new)
            out[name] = t
    return out


# --- layers that are a list, numbers that are tensors


def lfm2_weights(c, w):
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.vector("model.embedding_norm.weight", N_EMBD, 1.0)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        for name in ("operator_norm", "ffn_norm"):
            w.vector(f"{p}{name}.weight", N_EMBD, 1.0)
        if c["layer_types"][l] == "full_attention":
            attention_weights(w, p + "self_attn.", c["d"])
            w[p + "self_attn.out_proj.weight"] = w.pop(p + "self_attn.o_proj.weight")
            for name in "qk":
                w.vector(f"{p}self_attn.{name}_layernorm.weight", c["d"], 1.0)
        else:
            w.matrix(p + "conv.in_proj.weight", 3 * N_EMBD, N_EMBD)
            w.matrix(p + "conv.conv.weight", N_EMBD, 1, 3)
            w.matrix(p + "conv.out_proj.weight", N_EMBD, N_EMBD)
        gated_weights(w, p + "feed_forward.", 48, ("w1", "w3", "w2"))  # 2/3 of 60 are 40, in steps of 16


def apertus_weights(c, w):
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, 1.0)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        for name, n in (("attention_layernorm", N_EMBD), ("feedforward_layernorm", N_EMBD), ("self_attn.q_norm", c["d"]), ("self_attn.k_norm", c["d"])):
            w.vector(f"{p}{name}.weight", n, 1.0)
        w.matrix(p + "mlp.up_proj.weight", N_FF, N_EMBD)
        w.matrix(p + "mlp.down_proj.weight", N_EMBD, N_FF)
        for name, about, shape in (("alpha_p", 0.8, (1,)), ("alpha_n", 0.3, (1,)), ("beta", 0.5, ()), ("eps", -1e-6, ())):
            w[f"{p}mlp.act_fn.{name}"] = np.array(np.float32(about + (l / 8 if shape else 0)), dtype=np.float64).reshape(shape)


def mamba_2_weights(c, w):
    n_in, n_bc, n_h = c["num_heads"] * c["head_dim"], c["n_groups"] * c["state_size"], c["num_heads"]
    w.matrix("backbone.embeddings.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("backbone.norm_f.weight", N_EMBD, 1.0)
    for l in range(N_LAYER):
        p = f"backbone.layers.{l}."
        w.vector(p + "norm.weight", N_EMBD, 1.0)
        for name, *shape in (("in_proj.weight", 2 * n_in + 2 * n_bc + n_h, N_EMBD), ("conv1d.weight", n_in + 2 * n_bc, 1, 4), ("out_proj.weight", N_EMBD, n_in)):
            w.matrix(f"{p}mixer.{name}", *shape)
        for name, n, about in (("conv1d.bias", n_in + 2 * n_bc, 0), ("dt_bias", n_h, 0), ("A_log", n_h, 0), ("D", n_h, 1), ("norm.weight", n_in, 1)):
            w.vector(f"{p}mixer.{name}", n, about)


# --- the text part of models that see


def nested(of, old=True, sees="vision_tower", **outside):
    """The class's configuration in an object of its own, beside that of what sees; other beginnings of its tensors' names."""
    config, weights, scalings, *forward = of

    def write(config):
        return {**outside, "vision_config": {"hidden_size": 8, "model_type": "x"}, "text_config": {"model_type": "x", **config}}

    def layout(w):
        first = {"model.": "language_model.model.", "lm_head": "language_model.lm_head"} if old else {"model.": "model.language_model."}
        out = {f"{'' if old else 'model.'}{sees}.patch.weight": np.zeros((2, 2))}
        for name, t in w.items():
            begin = next((b for b in first if name.startswith(b)), "")
            out[first.get(begin, "") + name[len(begin):]] = t
        return out

    return {**config, "write": write, "layout": layout}, weights, scalings[:1], *forward


SOME = ["default", "linear", "yarn"]
SIZE = {"hidden_size": N_EMBD, "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB}
FP8_CONFIG = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [16, 16]}
OSS = {**llama_config("gpt-oss", d=16, theta=150000.0, tied=False, head_dim=16, num_local_experts=N_EXPERT, num_experts_per_tok=2, sliding_window=5,
                      experts_per_token=2, layer_types=["sliding_attention", "full_attention", "full_attention"], swiglu_limit=7.0), "hidden_size": 64,
       "intermediate_size": 32, "attention_bias": True, "initial_context_length": 32}


def wide(of):
    """MXFP4's blocks have 32 numbers: more channels than elsewhere."""
    def weights(c, w):
        import folders_experts as module
        narrow, module.N_EMBD = module.N_EMBD, 64
        try:
            of(c, w)
        finally:
            module.N_EMBD = narrow

    return weights


CLASSES = {
    "GptOssForCausalLM": (OSS, wide(gpt_oss_weights), SOME),
    "GptOssForCausalLM MXFP4": ({**OSS, "type": "f32", "layout": in_blocks, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}},
                                wide(gpt_oss_weights), ["default", "yarn"]),
    "MiMoV2ForCausalLM FP8": ({**folders_experts.CLASSES["MiMoV2ForCausalLM"][0], "type": "f32", "layout": joined_fp8, "v_head_dim": 10, "swa_v_head_dim": 10,
                               "quantization_config": {**FP8_CONFIG, "weight_block_size": [14, 16]}}, fp8_parts_weights, *folders_experts.CLASSES["MiMoV2ForCausalLM"][2:]),
    "DeepseekV3ForCausalLM FP8": ({**folders_experts.CLASSES["DeepseekV3ForCausalLM"][0], "type": "f32", "layout": in_fp8, "quantization_config": FP8_CONFIG},
                                  fp8_weights, ["default"]),
    "GraniteMoeSharedForCausalLM": (llama_config("granitemoe", embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.3,
                                                 logits_scaling=1.7, num_local_experts=N_EXPERT, num_experts_per_tok=2,
                                                 shared_intermediate_size=N_SHARED), granitemoe_weights, SOME),
    "PhiMoEForCausalLM": ({**llama_config("phimoe", tied=False, num_local_experts=N_EXPERT, num_experts_per_tok=2, partial=1.0, attention_bias=True,
                                          lm_head_bias=True, sliding_window=128, input_jitter_noise=0.01), "intermediate_size": N_EACH},
                          phimoe_weights, ["default", "longrope-mscale"]),
    "DbrxForCausalLM": ({"d_model": N_EMBD, "n_heads": N_HEAD, "n_layers": N_LAYER, "vocab_size": N_VOCAB, "max_seq_len": 64, "resid_pdrop": 0.0,
                         "attn_config": {"clip_qkv": 0.9, "kv_n_heads": N_KV, "rope_theta": 500.0},
                         "ffn_config": {"ffn_hidden_size": N_EACH, "moe_num_experts": N_EXPERT, "moe_top_k": 2, "ffn_act_fn": {"name": "silu"},
                                        "moe_loss_weight": 0.05}}, dbrx_weights, [None]),
    "Llama4ForCausalLM": ({**llama_config("llama4", d=16, tied=False, head_dim=16, num_local_experts=N_EXPERT, num_experts_per_tok=1,
                                          intermediate_size_mlp=N_FF, interleave_moe_layer_step=2, floor_scale=4, attn_scale=0.1, use_qk_norm=True,
                                          attn_temperature_tuning=4, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0]),
                           "intermediate_size": N_EACH, "num_hidden_layers": 4}, llama4_weights, ["default", "llama3"]),
    "Glm4MoeForCausalLM": (llama_config("glm4moe", d=16, tied=False, head_dim=16, partial=0.5, first_k_dense_replace=1, n_routed_experts=N_EXPERT,
                                        num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=N_EACH, routed_scaling_factor=1.5,
                                        norm_topk_prob=True, n_group=1, topk_group=1, use_qk_norm=True, attention_bias=True,
                                        num_nextn_predict_layers=1), glm4moe_weights, SOME),
    "Lfm2ForCausalLM": ({**SIZE, "num_hidden_layers": 4, "num_attention_heads": N_HEAD, "num_key_value_heads": N_KV, "max_position_embeddings": 128,
                         "norm_eps": EPS, "conv_L_cache": 3, "conv_bias": False, "d": 12, "theta": 1e6, "intermediate_size": 60,
                         "block_multiple_of": 16, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
                         "layer_types": ["conv", "full_attention", "conv", "full_attention"]}, lfm2_weights, SOME),
    "ApertusForCausalLM": (llama_config("apertus", tied=False, theta=12e6, qk_norm=True, post_norm=False, hidden_act="xielu"), apertus_weights, SOME + ["llama3"]),
    "Mamba2ForCausalLM": ({**SIZE, "num_heads": 8, "head_dim": 12, "n_groups": 2, "state_size": 8, "conv_kernel": 4, "layer_norm_epsilon": EPS,
                           "expand": 2, "hidden_act": "silu", "use_bias": False, "use_conv_bias": True, "rms_norm": True, "chunk_size": 256,
                           "tie_word_embeddings": False, "time_step_limit": [0.0, None]}, mamba_2_weights, [None]),
}
HYBRID = {"layer_types": ["mamba", "attention", "mamba"], "attention_multiplier": 0.3, "embedding_multiplier": 3.0, "residual_multiplier": 0.4,
          "logits_scaling": 1.7, "shared_intermediate_size": N_SHARED, "mamba_d_conv": 4, "mamba_d_head": 12, "mamba_d_state": 8, "mamba_expand": 2,
          "mamba_n_groups": 2, "mamba_n_heads": 8, "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_proj_bias": False,
          "normalization_function": "rmsnorm", "time_step_limit": [0.0, None]}
FEW = {"moe_intermediate_size": N_EACH, "num_experts_per_tok": 2, "n_routed_experts": N_EXPERT, "n_shared_experts": 2}
CLASSES |= {
    "Dots1ForCausalLM": (llama_config("dots1", d=16, head_dim=16, tied=False, **FEW, like={"norms": "head", "bias": "gate.e_score_correction_bias"},
                                      first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func="sigmoid", topk_method="noaux_tc"),
                         sparse_weights, SOME),
    "DeepseekForCausalLM": (llama_config("deepseek1", tied=False, **FEW, like={}, first_k_dense_replace=1, norm_topk_prob=False,
                                         moe_layer_freq=1, scoring_func="softmax", aux_loss_alpha=0.001, seq_aux=True), sparse_weights, SOME),
    "MiniMaxM2ForCausalLM": ({**llama_config("minimax", d=16, head_dim=16, tied=False, num_local_experts=N_EXPERT, num_experts_per_tok=2, rotary_dim=8,
                                             like={"norms": "row", "part": "block_sparse_moe.", "dense": 0, "shared": False,
                                                   "bias": "e_score_correction_bias", "names": ("w1", "w3", "w2")},
                                             scoring_func="sigmoid", use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer",
                                             attn_type_list=[1, 1, 1], use_mtp=True, num_mtp_modules=3, mtp_transformer_layers=1), "intermediate_size": N_EACH},
                             sparse_weights, SOME),
    "Ernie4_5ForCausalLM": (llama_config("ernie", d=16, head_dim=16, theta=5e5, use_bias=False, like={"dense": 3}), sparse_weights, SOME),
    "Ernie4_5_MoeForCausalLM": (llama_config("ernie", theta=5e5, use_bias=False, moe_intermediate_size=N_EACH, moe_k=2, moe_num_experts=N_EXPERT,
                                             moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1,
                                             like={"bias": "moe_statics.e_score_correction_bias", "bias_shape": (1, N_EXPERT)}),
                                sparse_weights, SOME),
    "HunYuanDenseV1ForCausalLM": (llama_config("hunyuan", d=16, head_dim=16, like={"norms": "head", "after": True, "dense": 3}, use_qk_norm=True), sparse_weights, ["default", "dynamic-alpha"]),
    "GraniteMoeHybridForCausalLM": (llama_config("granitehybrid", **HYBRID, num_local_experts=N_EXPERT, num_experts_per_tok=2, position_embedding_type="nope"),
                                    granite_hybrid_weights, ["default"]),
    "GraniteMoeHybridForCausalLM dense": (llama_config("granitehybrid", **{**HYBRID, "layer_types": ["attention"] * 3}, num_local_experts=0, num_experts_per_tok=0,
                                                       position_embedding_type="rope"), granite_hybrid_weights, ["default"]),
    "FalconH1ForCausalLM": (llama_config("falcon-h1", tied=False, theta=1e5, mamba_d_conv=4, mamba_d_ssm=96, mamba_d_state=8, mamba_d_head=12, mamba_n_heads=8,
                                         mamba_n_groups=2, mamba_expand=2, mamba_rms_norm=False, mamba_norm_before_gate=True, mamba_use_mlp=True,
                                         mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, projectors_bias=False, embedding_multiplier=3.0,
                                         lm_head_multiplier=0.7, key_multiplier=0.6, attention_in_multiplier=0.9, attention_out_multiplier=0.8,
                                         ssm_in_multiplier=1.25, ssm_out_multiplier=0.5, ssm_multipliers=[0.5, 1.5, 0.75, 1.25, 0.6], mlp_multipliers=[1.4, 0.4]),
                            falcon_h1_weights, SOME),
    "BailingMoeV2ForCausalLM": (llama_config("bailing2", d=16, head_dim=16, tied=False, partial=0.5, num_experts=N_EXPERT, num_experts_per_tok=2,
                                             num_shared_experts=2, moe_intermediate_size=N_EACH, first_k_dense_replace=1, norm_topk_prob=True,
                                             routed_scaling_factor=2.5, n_group=1, topk_group=1, score_function="sigmoid", use_qk_norm=True, layout=bailing,
                                             like={"norms": "head", "bias": "gate.e_score_correction_bias"}), sparse_weights, SOME),
    "AfmoeForCausalLM": (llama_config("afmoe", d=16, head_dim=16, tied=False, num_experts=N_EXPERT, num_experts_per_tok=2, num_shared_experts=1,
                                      num_dense_layers=1, moe_intermediate_size=N_EACH, route_scale=1.5, route_norm=True, score_func="sigmoid", n_group=1,
                                      topk_group=1, mup_enabled=True, sliding_window=5, global_attn_every_n_layers=2,
                                      layer_types=["sliding_attention", "full_attention", "sliding_attention"]), afmoe_weights, SOME),
    "DeciLMForCausalLM": (llama_config("deci", tied=False, num_key_value_heads=None, intermediate_size=None, block_configs=[
        {"attention": {"n_heads_in_group": 2, "no_op": False, "window_length": None, "unshifted_sink": False}, "ffn": {"ffn_mult": 8, "no_op": False}},
        {"attention": {"n_heads_in_group": 4, "replace_with_linear": False}, "ffn": {"no_op": True, "ffn_mult": None}},
        {"attention": {"replace_with_linear": True, "n_heads_in_group": None}, "ffn": {"ffn_mult": 8}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 8, "replace_with_linear": False}}]) | {"num_hidden_layers": 4}, deci_weights, SOME + ["llama3"]),
    "MiniCPM3ForCausalLM": (llama_config("minicpm3", d=8, partial=1.0, scale_emb=12, scale_depth=1.4, dim_model_base=256, q_lora_rank=18, kv_lora_rank=20,
                                         qk_nope_head_dim=10, qk_rope_head_dim=8, v_head_dim=12), minicpm3_weights, ["default", "longrope"]),
    "GPTBigCodeForCausalLM": ({"kind": "starcoder", "n_embd": N_EMBD, "n_positions": 64, "n_inner": N_FF, "multi_query": True, "scale_attn_weights": True,
                               "activation_function": "gelu_pytorch_tanh", **OLD}, old_style_weights, [None]),
    "GPTJForCausalLM": ({"kind": "gptj", "n_embd": N_EMBD, "n_positions": 64, "n_inner": N_FF, "rotary_dim": 8, "rotary": True,
                         "activation_function": "gelu_new", **OLD, "tie_word_embeddings": False}, old_style_weights, [None]),
    "QWenLMHeadModel": ({"kind": "qwen", **SIZE, "num_attention_heads": N_HEAD, "seq_length": 64, "max_position_embeddings": 128, "intermediate_size": 2 * N_FF,
                         "layer_norm_epsilon": EPS, "kv_channels": 12, "rotary_pct": 1.0, "rotary_emb_base": 10000, "no_bias": True, "bf16": True,
                         "use_dynamic_ntk": True, "use_logn_attn": True, "tie_word_embeddings": False}, old_style_weights, [None]),
    "OrionForCausalLM": folders_kin.family({"norms": folders_kin.LLAMA, "centre": True, "norm_bias": True}, tied=False, scalings=["default", "linear"],
                                           attention_bias=False, max_sequence_length=128),
    "BaichuanForCausalLM": ({**folders_kin.family({"norms": folders_kin.LLAMA}, tied=False, num_key_value_heads=None)[0], "layout": in_one},
                            folders_kin.weights, ["default"], folders_kin.forward),
    "Gemma3ForConditionalGeneration": nested(folders_kin.CLASSES["Gemma3ForCausalLM"], mm_tokens_per_image=4, image_token_index=7),
    "Mistral3ForConditionalGeneration": nested(folders_kin.CLASSES["Ministral3ForCausalLM"], spatial_merge_size=2, image_token_index=7),
    "Mistral3ForConditionalGeneration 5": nested(folders_kin.CLASSES["Ministral3ForCausalLM"], old=False, image_token_index=7),
    "Llama4ForConditionalGeneration": nested(CLASSES["Llama4ForCausalLM"], sees="vision_model", boi_token_index=5),
    "Qwen3_5ForConditionalGeneration": nested(FIRST["Qwen3_5ForCausalLM"], old=False, sees="visual", image_token_id=7),
}
