"""Folders whose tensors are laid out otherwise than their matrices are used: experts in one tensor, packed types, models within models.
For ./folders.py; small models laid out as their classes have them, and forward passes that read that layout."""
from folders import *
from folders_experts import N_EACH, N_EXPERT, N_SHARED, attention_weights, common_weights, deepseek, deepseek_weights, gated_weights
import folders_experts
import folders_kin
from folders import CLASSES as FIRST
from statespace import mamba2

NORMS = ("input_layernorm", "post_attention_layernorm")


class Packed:
    """A tensor of a type that numpy lacks."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data


def attend(c, w, p, h, turn, heads=None, **more):
    """Q, K and V, what `turn` makes of Q and K, attention and the output."""
    q, k, v = (split_heads(linear(h, w[f"{p}{x}_proj.weight"], w.get(f"{p}{x}_proj.bias")), n)
               for x, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)))
    for x, name in (("q", "q_norm"), ("k", "k_norm"), ("q", "q_layernorm"), ("k", "k_layernorm")):
        if f"{p}{name}.weight" in w:
            q, k = (rms_norm(q, w[f"{p}{name}.weight"], EPS), k) if x == "q" else (q, rms_norm(k, w[f"{p}{name}.weight"], EPS))
    a = merge_heads(attention(turn(q), turn(k), v, **more))
    out = p + ("out_proj" if p + "out_proj.weight" in w else "o_proj")
    return linear(a, w[out + ".weight"], w.get(out + ".bias"))


def decoder(c, w, part1, part2, norms=NORMS, last="model.norm", embedding=1.0, residual=1.0, logits=1.0):
    """part1(l, p, h) and part2(l, p, h): what a layer's two halves add."""
    def norm(x, name):
        return rms_norm(x, w[name + ".weight"], EPS) + w.get(name + ".bias", 0.0)

    x = w["model.embed_tokens.weight"][TOKENS] * embedding
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        x = x + residual * part1(l, p, norm(x, p + norms[0]))
        x = x + residual * part2(l, p, norm(x, p + norms[1]))
    return linear(norm(x, last), w.get("lm_head.weight", w["model.embed_tokens.weight"]), w.get("lm_head.bias")) * logits


def mix(scores, shares, h, expert, n_used=2):
    """The best by their scores; shares(chosen scores): their parts."""
    of = [best(row, n_used) for row in scores]
    parts = [dict(zip(es, shares(row[es]))) for row, es in zip(scores, of)]
    return experts(h, parts, of, expert)


# --- gpt-oss: gates and ups in turn, biases, sinks; columns without blocks, rows in MXFP4


def gpt_oss(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def part1(l, p, h):
        return attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag), sinks=w[p + "self_attn.sinks"],
                      window=c["sliding_window"] if c["layer_types"][l] == "sliding_attention" else None)

    def part2(l, p, h):
        p += "mlp."
        both, down = w[p + "experts.gate_up_proj"], w[p + "experts.down_proj"]

        def expert(e, x):
            y = x @ both[e] + w[p + "experts.gate_up_proj_bias"][e]
            gate, up = np.minimum(y[0::2], 7), np.clip(y[1::2], -7, 7)
            return (gate * sigmoid(1.702 * gate) * (up + 1)) @ down[e] + w[p + "experts.down_proj_bias"][e]

        return mix(linear(h, w[p + "router.weight"], w[p + "router.bias"]), softmax, h, expert)

    return decoder(c, w, part1, part2)


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


# --- experts in one tensor


def granitemoe(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def part1(l, p, h):
        return attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag), scale=c["attention_multiplier"])

    def part2(l, p, h):
        both, down = w[p + "block_sparse_moe.input_linear.weight"], w[p + "block_sparse_moe.output_linear.weight"]

        def expert(e, x):
            gate, up = np.split(both[e] @ x, 2)
            return down[e] @ (silu(gate) * up)

        gate, up = np.split(linear(h, w[p + "shared_mlp.input_linear.weight"]), 2, axis=-1)
        return mix(linear(h, w[p + "block_sparse_moe.router.layer.weight"]), softmax, h, expert) + linear(
            silu(gate) * up, w[p + "shared_mlp.output_linear.weight"])

    return decoder(c, w, part1, part2, embedding=c["embedding_multiplier"], residual=c["residual_multiplier"], logits=1 / c["logits_scaling"])


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


def phimoe(c, w, n_ctx):
    theta, _ = rotation({**c, "rope": {k: v for k, v in c["rope"].items() if "mscale" not in k}}, c["d"], n_ctx)
    mag = c["rope"].get("short_mscale", 1.0)

    def part2(l, p, h):
        p += "block_sparse_moe."
        one = [[w[f"{p}experts.{e}.{name}.weight"] for name in ("w1", "w3", "w2")] for e in range(N_EXPERT)]
        return mix(softmax(linear(h, w[p + "gate.weight"])), lambda s: s / sum(s), h,
                   lambda e, x: one[e][2] @ (silu(one[e][0] @ x) * (one[e][1] @ x)))

    return decoder(c, w, lambda l, p, h: attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag)), part2)


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


def dbrx(c, w, n_ctx):
    theta = inverse_frequencies(12, c["attn_config"]["rope_theta"])
    clip = c["attn_config"]["clip_qkv"]
    x = w["transformer.wte.weight"][TOKENS]
    for l in range(N_LAYER):
        p = f"transformer.blocks.{l}."
        y = np.clip(linear(layer_norm(x, w[p + "norm_attn_norm.norm_1.weight"], 0.0, 1e-5), w[p + "norm_attn_norm.attn.Wqkv.weight"]), -clip, clip)
        q, k, v = (split_heads(t, n) for t, n in zip(np.split(y, [48, 72], axis=-1), (N_HEAD, N_KV, N_KV)))
        x = x + linear(merge_heads(attention(rotate(q, theta, True), rotate(k, theta, True), v)), w[p + "norm_attn_norm.attn.out_proj.weight"])
        h = layer_norm(x, w[p + "norm_attn_norm.norm_2.weight"], 0.0, 1e-5)
        gate, up, down = (w[f"{p}ffn.experts.mlp.{n}"].reshape(N_EXPERT, N_EACH, N_EMBD) for n in ("w1", "v1", "w2"))
        x = x + mix(softmax(linear(h, w[p + "ffn.router.layer.weight"])), lambda s: s / sum(s), h,
                    lambda e, t: (silu(gate[e] @ t) * (up[e] @ t)) @ down[e])
    return linear(layer_norm(x, w["transformer.norm_f.weight"], 0.0, 1e-5), w["lm_head.weight"])


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


def llama4(c, w, n_ctx):
    """Every second layer has experts, the fourth no positions."""
    theta, mag = rotation(c, c["d"], n_ctx)

    def part1(l, p, h):
        def turned(x):
            y = rotate(x, theta, False, mag)
            return y / np.sqrt((y * y).mean(-1, keepdims=True) + EPS)

        grow = 1 + 0.1 * np.log(1 + np.floor((np.arange(len(TOKENS)) + 1) / 4))[:, None, None]
        return attend(c, w, p + "self_attn.", h, turned if (l + 1) % 4 else lambda x: x * (grow if x.shape[1] == N_HEAD else 1))

    def part2(l, p, h):
        p += "feed_forward."
        if (l + 1) % 2:
            return swiglu(w, p, h)
        s = linear(h, w[p + "router.weight"])
        both, down = w[p + "experts.gate_up_proj"], w[p + "experts.down_proj"]
        y = np.zeros_like(h)
        for t, row in enumerate(s):
            e = int(row.argmax())
            gate, up = np.split(h[t] * sigmoid(row[e]) @ both[e], 2)
            y[t] = (silu(gate) * up) @ down[e]
        return y + swiglu(w, p + "shared_expert.", h)

    return decoder(c, w, part1, part2)


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


def glm4moe(c, w, n_ctx):
    theta, mag = rotation(c, int(c["d"] * c["partial"]), n_ctx)

    def part2(l, p, h):
        p += "mlp."
        if l == 0:
            return swiglu(w, p, h)
        share = sigmoid(linear(h, w[p + "gate.weight"]))
        of = [best(row, 2) for row in share + w[p + "gate.e_score_correction_bias"]]
        parts = [{e: 1.5 * row[e] / sum(row[es]) for e in es} for row, es in zip(share, of)]
        one = [[w[f"{p}experts.{e}.{name}_proj.weight"] for name in ("gate", "up", "down")] for e in range(N_EXPERT)]
        return experts(h, parts, of, lambda e, x: one[e][2] @ (silu(one[e][0] @ x) * (one[e][1] @ x))) + swiglu(w, p + "shared_experts.", h)

    return decoder(c, w, lambda l, p, h: attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag)), part2)


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


def sparse(c, w, n_ctx):
    """dots.llm1, DeepSeek 1, ERNIE 4.5, MiniMax M2, Hunyuan: what `like` says of their experts, rotation and norms."""
    like = c["like"]
    theta, mag = rotation(c, like.get("rot", c["d"]), n_ctx)

    def part1(l, p, h):
        p += "self_attn."
        after = like.get("after")  # norms of heads, after the rotation

        def turn(x):
            x = rotate(x, theta, not like.get("pairs"), mag)
            return rms_norm(x, w[f"{p}{'query' if x.shape[1] == N_HEAD else 'key'}_layernorm.weight"], EPS) if after else x

        if not like.get("row"):
            return attend(c, w, p, h, turn)
        q, k, v = (linear(h, w[f"{p}{x}_proj.weight"]) for x in "qkv")
        q, k = rms_norm(q, w[p + "q_norm.weight"], EPS), rms_norm(k, w[p + "k_norm.weight"], EPS)
        a = attention(turn(split_heads(q, N_HEAD)), turn(split_heads(k, N_KV)), split_heads(v, N_KV))
        return linear(merge_heads(a), w[p + "o_proj.weight"])

    def part2(l, p, h):
        p += like.get("part", "mlp.")
        if l < like.get("dense", 1):
            return swiglu(w, p, h)
        s = linear(h, w[p + "gate.weight"])
        share = softmax(s) if like.get("softmax") else sigmoid(s)
        bias = w.get(p + like["bias"], np.zeros(N_EXPERT)) if "bias" in like else np.zeros(N_EXPERT)
        of = [best(row, 2) for row in share + bias.reshape(-1)]
        parts = [{e: like.get("scale", 1.0) * row[e] / (1 if like.get("plain") else sum(row[es])) for e in es} for row, es in zip(share, of)]
        one = [[w[f"{p}experts.{e}.{name}.weight"] for name in like.get("names", ("gate_proj", "up_proj", "down_proj"))] for e in range(N_EXPERT)]
        y = experts(h, parts, of, lambda e, x: one[e][2] @ (silu(one[e][0] @ x) * (one[e][1] @ x)))
        return y + swiglu(w, p + "shared_experts.", h) if like.get("shared", True) else y

    return decoder(c, w, part1, part2)


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


def granite_hybrid(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)
    n_in, n_st, n_h, n_g = 2 * N_EMBD, c["mamba_d_state"], c["mamba_n_heads"], c["mamba_n_groups"]

    def part1(l, p, h):
        if c["layer_types"][l] == "attention":
            turn = (lambda x: rotate(x, theta, True, mag)) if c["position_embedding_type"] == "rope" else lambda x: x
            return attend(c, w, p + "self_attn.", h, turn, scale=c["attention_multiplier"])
        p += "mamba."
        own = {"ssm_in.weight": w[p + "in_proj.weight"], "ssm_conv1d.weight": w[p + "conv1d.weight"][:, 0], "ssm_conv1d.bias": w[p + "conv1d.bias"],
               "ssm_dt.bias": w[p + "dt_bias"], "ssm_a": -np.exp(w[p + "A_log"])[:, None], "ssm_d": w[p + "D"][:, None],
               "ssm_norm.weight": w[p + "norm.weight"].reshape(n_g, -1), "ssm_out.weight": w[p + "out_proj.weight"]}
        return mamba2(lambda name, end=".weight": own.get(name + end), h, n_in, n_st, n_h, n_g, EPS)

    def part2(l, p, h):
        gate, up = np.split(linear(h, w[p + "shared_mlp.input_linear.weight"]), 2, axis=-1)
        y = linear(silu(gate) * up, w[p + "shared_mlp.output_linear.weight"])
        if not c["num_local_experts"]:
            return y
        both, down = w[p + "block_sparse_moe.input_linear.weight"], w[p + "block_sparse_moe.output_linear.weight"]

        def expert(e, x):
            gate, up = np.split(both[e] @ x, 2)
            return down[e] @ (silu(gate) * up)

        return y + mix(linear(h, w[p + "block_sparse_moe.router.layer.weight"]), softmax, h, expert)

    return decoder(c, w, part1, part2, embedding=c["embedding_multiplier"], residual=c["residual_multiplier"], logits=1 / c["logits_scaling"])


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


def deci(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)
    x = w["model.embed_tokens.weight"][TOKENS]
    for l, block in enumerate(c["block_configs"]):
        p, a = f"model.layers.{l}.", block["attention"]
        if not a.get("no_op"):
            h = rms_norm(x, w[p + "input_layernorm.weight"], EPS)
            if a.get("replace_with_linear"):
                x = x + linear(h, w[p + "self_attn.linear_attn.weight"])
            else:
                q, k, v = (split_heads(linear(h, w[f"{p}self_attn.{n}_proj.weight"]), N_HEAD if n == "q" else N_HEAD // a["n_heads_in_group"]) for n in "qkv")
                x = x + linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)), w[p + "self_attn.o_proj.weight"])
        if not block["ffn"].get("no_op"):
            x = x + swiglu(w, p + "mlp.", rms_norm(x, w[p + "post_attention_layernorm.weight"], EPS))
    return linear(rms_norm(x, w["model.norm.weight"], EPS), w["lm_head.weight"])


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


def minicpm3(c, w, n_ctx):
    rot, d, r, dv = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["kv_lora_rank"], c["v_head_dim"]
    theta, mag = rotation(c, rot, n_ctx)

    def part1(l, p, h):
        p += "self_attn."
        q = split_heads(linear(rms_norm(linear(h, w[p + "q_a_proj.weight"]), w[p + "q_a_layernorm.weight"], EPS), w[p + "q_b_proj.weight"]), N_HEAD)
        low = linear(h, w[p + "kv_a_proj_with_mqa.weight"])
        both = split_heads(linear(rms_norm(low[:, :r], w[p + "kv_a_layernorm.weight"], EPS), w[p + "kv_b_proj.weight"]), N_HEAD)
        k_rot = np.repeat(rotate(low[:, None, r:], theta, True, mag), N_HEAD, 1)
        q = np.concatenate([q[..., :d], rotate(q[..., d:], theta, True, mag)], -1)
        return linear(merge_heads(attention(q, np.concatenate([both[..., :d], k_rot], -1), both[..., d:])), w[p + "o_proj.weight"])

    return decoder(c, w, part1, lambda l, p, h: swiglu(w, p + "mlp.", h), embedding=12, residual=1.4 / math.sqrt(N_LAYER), logits=256 / N_EMBD)


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


def old_style(c, w, n_ctx):
    kind, names, d = c["kind"], OLD_NAMES[c["kind"]], 12

    def dense(x, name):
        return linear(x, w[name + ".weight"], w.get(name + ".bias"))

    def norm(x, name):
        return rms_norm(x, w[name + ".weight"], EPS) if kind == "qwen" else layer_norm(x, w[name + ".weight"], w[name + ".bias"], EPS)

    x = w["transformer.wte.weight"][TOKENS]
    if kind == "starcoder":
        x = x + w["transformer.wpe.weight"][: len(TOKENS)]
    for l in range(N_LAYER):
        p = f"transformer.h.{l}."
        h = norm(x, p + names["norm"])
        y = np.concatenate([dense(h, p + name) for name in names["qkv"]], -1)
        n_kv = 1 if kind == "starcoder" else N_HEAD
        q, k, v = (split_heads(t, n) for t, n in zip(np.split(y, [48, 48 + n_kv * d], axis=-1), (N_HEAD, n_kv, n_kv)))
        if kind == "gptj":
            q, k = (rotate(t, inverse_frequencies(8, 10000.0), False) for t in (q, k))
        if kind == "qwen":
            q, k = (rotate(t, inverse_frequencies(d, 10000.0), True) for t in (q, k))
        a = dense(merge_heads(attention(q, k, v)), p + names["o"])
        if "norm2" in names:
            x, a = x + a, 0.0
            h = norm(x, p + names["norm2"])
        up = dense(h, p + names["up"])
        x = x + a + dense(silu(dense(h, p + names["gate"])) * up if "gate" in names else gelu(up), p + names["down"])
    head = "lm_head" if "lm_head.weight" in w else "transformer.wte"
    return dense(norm(x, "transformer.ln_f"), head)


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


def afmoe(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def norm(x, name):
        return rms_norm(x, w[name + ".weight"], EPS)

    x = w["model.embed_tokens.weight"][TOKENS] * math.sqrt(N_EMBD)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        near = c["layer_types"][l] == "sliding_attention"
        h = norm(x, p + "input_layernorm")
        gated = dict(w)  # attention's output goes through the gate before o_proj
        gated[p + "self_attn.o_proj.weight"] = np.eye(N_HEAD * c["d"])
        a = attend(c, gated, p + "self_attn.", h, (lambda y: rotate(y, theta, True, mag)) if near else lambda y: y, window=c["sliding_window"] if near else None)
        a = linear(a * sigmoid(linear(h, w[p + "self_attn.gate_proj.weight"])), w[p + "self_attn.o_proj.weight"])
        x = x + norm(a, p + "post_attention_layernorm")
        h, m = norm(x, p + "pre_mlp_layernorm"), p + "mlp."
        if l == 0:
            f = swiglu(w, m, h)
        else:
            share = sigmoid(linear(h, w[m + "router.gate.weight"]))
            of = [best(row, 2) for row in share + w[m + "expert_bias"]]
            parts = [{e: 1.5 * row[e] / sum(row[es]) for e in es} for row, es in zip(share, of)]
            one = [[w[f"{m}experts.{e}.{name}_proj.weight"] for name in ("gate", "up", "down")] for e in range(N_EXPERT)]
            f = experts(h, parts, of, lambda e, t: one[e][2] @ (silu(one[e][0] @ t) * (one[e][1] @ t))) + swiglu(w, m + "shared_experts.", h)
        x = x + norm(f, p + "post_mlp_layernorm")
    return linear(norm(x, "model.norm"), w["lm_head.weight"])


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


def falcon_h1(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)
    n_in, n_st, n_h, n_g = c["mamba_d_ssm"], c["mamba_d_state"], c["mamba_n_heads"], c["mamba_n_groups"]
    wide = np.repeat(c["ssm_multipliers"], [n_in, n_in, n_g * n_st, n_g * n_st, n_h])

    def part1(l, p, h):
        own = dict(w)
        own[p + "self_attn.k_proj.weight"] = w[p + "self_attn.k_proj.weight"] * c["key_multiplier"]
        a = attend(c, own, p + "self_attn.", h * c["attention_in_multiplier"], lambda x: rotate(x, theta, True, mag))
        m = p + "mamba."
        ssm = {"ssm_in.weight": w[m + "in_proj.weight"] * wide[:, None], "ssm_conv1d.weight": w[m + "conv1d.weight"][:, 0],
               "ssm_conv1d.bias": w[m + "conv1d.bias"], "ssm_dt.bias": w[m + "dt_bias"], "ssm_a": -np.exp(w[m + "A_log"])[:, None],
               "ssm_d": w[m + "D"][:, None], "ssm_out.weight": w[m + "out_proj.weight"]}
        y = mamba2(lambda name, end=".weight": ssm.get(name + end), h * c["ssm_in_multiplier"], n_in, n_st, n_h, n_g, EPS)
        return a * c["attention_out_multiplier"] + y * c["ssm_out_multiplier"]

    def part2(l, p, h):
        p += "feed_forward."
        y = silu(linear(h, w[p + "gate_proj.weight"]) * c["mlp_multipliers"][0]) * linear(h, w[p + "up_proj.weight"])
        return linear(y, w[p + "down_proj.weight"]) * c["mlp_multipliers"][1]

    return decoder(c, w, part1, part2, ("input_layernorm", "pre_ff_layernorm"), "model.final_layernorm", embedding=c["embedding_multiplier"],
                   logits=c["lm_head_multiplier"])


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


def lfm2(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def part1(l, p, h):
        if c["layer_types"][l] == "full_attention":
            return attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag))
        b, g, y = np.split(linear(h, w[p + "conv.in_proj.weight"]), 3, axis=-1)
        return linear(g * causal_conv(b * y, w[p + "conv.conv.weight"][:, 0]), w[p + "conv.out_proj.weight"])

    def part2(l, p, h):
        p += "feed_forward."
        return linear(silu(linear(h, w[p + "w1.weight"])) * linear(h, w[p + "w3.weight"]), w[p + "w2.weight"])

    return decoder(c, w, part1, part2, ("operator_norm", "ffn_norm"), "model.embedding_norm")


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


def apertus(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def part2(l, p, h):
        p += "mlp."
        x = linear(h, w[p + "up_proj.weight"])
        alpha_p, alpha_n, beta, eps = (float(w[f"{p}act_fn.{name}"].reshape(())) for name in ("alpha_p", "alpha_n", "beta", "eps"))
        left = beta + softplus(alpha_n)
        y = np.where(x > 0, softplus(alpha_p) * x * x + beta * x, left * (np.expm1(np.minimum(x, eps)) - x) + beta * x)
        return linear(y, w[p + "down_proj.weight"])

    return decoder(c, w, lambda l, p, h: attend(c, w, p + "self_attn.", h, lambda x: rotate(x, theta, True, mag)), part2,
                   ("attention_layernorm", "feedforward_layernorm"))


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


def mamba_2(c, w, n_ctx):
    n_in, n_st, n_h, n_g = c["num_heads"] * c["head_dim"], c["state_size"], c["num_heads"], c["n_groups"]
    x = w["backbone.embeddings.weight"][TOKENS]
    for l in range(N_LAYER):
        p = f"backbone.layers.{l}.mixer."
        own = {"ssm_in.weight": w[p + "in_proj.weight"], "ssm_conv1d.weight": w[p + "conv1d.weight"][:, 0], "ssm_conv1d.bias": w[p + "conv1d.bias"],
               "ssm_dt.bias": w[p + "dt_bias"], "ssm_a": -np.exp(w[p + "A_log"])[:, None], "ssm_d": w[p + "D"][:, None],
               "ssm_norm.weight": w[p + "norm.weight"].reshape(n_g, -1), "ssm_out.weight": w[p + "out_proj.weight"]}
        h = rms_norm(x, w[f"backbone.layers.{l}.norm.weight"], EPS)
        x = x + mamba2(lambda name, end=".weight": own.get(name + end), h, n_in, n_st, n_h, n_g, EPS)
    return linear(rms_norm(x, w["backbone.norm_f.weight"], EPS), w["lm_head.weight"])


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
    config, forward, weights, scalings = of

    def write(config):
        return {**outside, "vision_config": {"hidden_size": 8, "model_type": "x"}, "text_config": {"model_type": "x", **config}}

    def layout(w):
        first = {"model.": "language_model.model.", "lm_head": "language_model.lm_head"} if old else {"model.": "model.language_model."}
        out = {f"{'' if old else 'model.'}{sees}.patch.weight": np.zeros((2, 2))}
        for name, t in w.items():
            begin = next((b for b in first if name.startswith(b)), "")
            out[first.get(begin, "") + name[len(begin):]] = t
        return out

    return {**config, "write": write, "layout": layout}, forward, weights, scalings[:1]


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
    "GptOssForCausalLM": (OSS, gpt_oss, wide(gpt_oss_weights), SOME),
    "GptOssForCausalLM MXFP4": ({**OSS, "type": "f32", "layout": in_blocks, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}},
                                gpt_oss, wide(gpt_oss_weights), ["default", "yarn"]),
    "DeepseekV3ForCausalLM FP8": ({**folders_experts.CLASSES["DeepseekV3ForCausalLM"][0], "type": "f32", "layout": in_fp8, "quantization_config": FP8_CONFIG},
                                  deepseek, fp8_weights, ["default"]),
    "GraniteMoeSharedForCausalLM": (llama_config("granitemoe", embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.3,
                                                 logits_scaling=1.7, num_local_experts=N_EXPERT, num_experts_per_tok=2,
                                                 shared_intermediate_size=N_SHARED), granitemoe, granitemoe_weights, SOME),
    "PhiMoEForCausalLM": ({**llama_config("phimoe", tied=False, num_local_experts=N_EXPERT, num_experts_per_tok=2, partial=1.0, attention_bias=True,
                                          lm_head_bias=True, sliding_window=128, input_jitter_noise=0.01), "intermediate_size": N_EACH},
                          phimoe, phimoe_weights, ["default", "longrope-mscale"]),
    "DbrxForCausalLM": ({"d_model": N_EMBD, "n_heads": N_HEAD, "n_layers": N_LAYER, "vocab_size": N_VOCAB, "max_seq_len": 64, "resid_pdrop": 0.0,
                         "attn_config": {"clip_qkv": 0.9, "kv_n_heads": N_KV, "rope_theta": 500.0},
                         "ffn_config": {"ffn_hidden_size": N_EACH, "moe_num_experts": N_EXPERT, "moe_top_k": 2, "ffn_act_fn": {"name": "silu"},
                                        "moe_loss_weight": 0.05}}, dbrx, dbrx_weights, [None]),
    "Llama4ForCausalLM": ({**llama_config("llama4", d=16, tied=False, head_dim=16, num_local_experts=N_EXPERT, num_experts_per_tok=1,
                                          intermediate_size_mlp=N_FF, interleave_moe_layer_step=2, floor_scale=4, attn_scale=0.1, use_qk_norm=True,
                                          attn_temperature_tuning=4, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0]),
                           "intermediate_size": N_EACH, "num_hidden_layers": 4}, llama4, llama4_weights, ["default", "llama3"]),
    "Glm4MoeForCausalLM": (llama_config("glm4moe", d=16, tied=False, head_dim=16, partial=0.5, first_k_dense_replace=1, n_routed_experts=N_EXPERT,
                                        num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=N_EACH, routed_scaling_factor=1.5,
                                        norm_topk_prob=True, n_group=1, topk_group=1, use_qk_norm=True, attention_bias=True,
                                        num_nextn_predict_layers=1), glm4moe, glm4moe_weights, SOME),
    "Lfm2ForCausalLM": ({**SIZE, "num_hidden_layers": 4, "num_attention_heads": N_HEAD, "num_key_value_heads": N_KV, "max_position_embeddings": 128,
                         "norm_eps": EPS, "conv_L_cache": 3, "conv_bias": False, "d": 12, "theta": 1e6, "intermediate_size": 60,
                         "block_multiple_of": 16, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
                         "layer_types": ["conv", "full_attention", "conv", "full_attention"]}, lfm2, lfm2_weights, SOME),
    "ApertusForCausalLM": (llama_config("apertus", tied=False, theta=12e6, qk_norm=True, post_norm=False, hidden_act="xielu"), apertus,
                           apertus_weights, SOME + ["llama3"]),
    "Mamba2ForCausalLM": ({**SIZE, "num_heads": 8, "head_dim": 12, "n_groups": 2, "state_size": 8, "conv_kernel": 4, "layer_norm_epsilon": EPS,
                           "expand": 2, "hidden_act": "silu", "use_bias": False, "use_conv_bias": True, "rms_norm": True, "chunk_size": 256,
                           "tie_word_embeddings": False, "time_step_limit": [0.0, None]}, mamba_2, mamba_2_weights, [None]),
}
HYBRID = {"layer_types": ["mamba", "attention", "mamba"], "attention_multiplier": 0.3, "embedding_multiplier": 3.0, "residual_multiplier": 0.4,
          "logits_scaling": 1.7, "shared_intermediate_size": N_SHARED, "mamba_d_conv": 4, "mamba_d_head": 12, "mamba_d_state": 8, "mamba_expand": 2,
          "mamba_n_groups": 2, "mamba_n_heads": 8, "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_proj_bias": False,
          "normalization_function": "rmsnorm", "time_step_limit": [0.0, None]}
FEW = {"moe_intermediate_size": N_EACH, "num_experts_per_tok": 2, "n_routed_experts": N_EXPERT, "n_shared_experts": 2}
CLASSES |= {
    "Dots1ForCausalLM": (llama_config("dots1", d=16, head_dim=16, tied=False, **FEW, like={"norms": "head", "bias": "gate.e_score_correction_bias", "scale": 2.5},
                                      first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func="sigmoid", topk_method="noaux_tc"),
                         sparse, sparse_weights, SOME),
    "DeepseekForCausalLM": (llama_config("deepseek1", tied=False, **FEW, like={"softmax": True, "plain": True}, first_k_dense_replace=1, norm_topk_prob=False,
                                         moe_layer_freq=1, scoring_func="softmax", aux_loss_alpha=0.001, seq_aux=True), sparse, sparse_weights, SOME),
    "MiniMaxM2ForCausalLM": ({**llama_config("minimax", d=16, head_dim=16, tied=False, num_local_experts=N_EXPERT, num_experts_per_tok=2, rotary_dim=8,
                                             like={"norms": "row", "row": True, "rot": 8, "part": "block_sparse_moe.", "dense": 0, "shared": False,
                                                   "bias": "e_score_correction_bias", "names": ("w1", "w3", "w2")},
                                             scoring_func="sigmoid", use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer",
                                             attn_type_list=[1, 1, 1], use_mtp=True, num_mtp_modules=3, mtp_transformer_layers=1), "intermediate_size": N_EACH},
                             sparse, sparse_weights, SOME),
    "Ernie4_5ForCausalLM": (llama_config("ernie", d=16, head_dim=16, theta=5e5, use_bias=False, like={"pairs": True, "dense": 3}), sparse, sparse_weights, SOME),
    "Ernie4_5_MoeForCausalLM": (llama_config("ernie", theta=5e5, use_bias=False, moe_intermediate_size=N_EACH, moe_k=2, moe_num_experts=N_EXPERT,
                                             moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1,
                                             like={"pairs": True, "softmax": True, "bias": "moe_statics.e_score_correction_bias", "bias_shape": (1, N_EXPERT)}),
                                sparse, sparse_weights, SOME),
    "HunYuanDenseV1ForCausalLM": (llama_config("hunyuan", d=16, head_dim=16, like={"norms": "head", "after": True, "dense": 3}, use_qk_norm=True), sparse,
                                  sparse_weights, ["default", "dynamic-alpha"]),
    "GraniteMoeHybridForCausalLM": (llama_config("granitehybrid", **HYBRID, num_local_experts=N_EXPERT, num_experts_per_tok=2, position_embedding_type="nope"),
                                    granite_hybrid, granite_hybrid_weights, ["default"]),
    "GraniteMoeHybridForCausalLM dense": (llama_config("granitehybrid", **{**HYBRID, "layer_types": ["attention"] * 3}, num_local_experts=0, num_experts_per_tok=0,
                                                       position_embedding_type="rope"), granite_hybrid, granite_hybrid_weights, ["default"]),
    "FalconH1ForCausalLM": (llama_config("falcon-h1", tied=False, theta=1e5, mamba_d_conv=4, mamba_d_ssm=96, mamba_d_state=8, mamba_d_head=12, mamba_n_heads=8,
                                         mamba_n_groups=2, mamba_expand=2, mamba_rms_norm=False, mamba_norm_before_gate=True, mamba_use_mlp=True,
                                         mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, projectors_bias=False, embedding_multiplier=3.0,
                                         lm_head_multiplier=0.7, key_multiplier=0.6, attention_in_multiplier=0.9, attention_out_multiplier=0.8,
                                         ssm_in_multiplier=1.25, ssm_out_multiplier=0.5, ssm_multipliers=[0.5, 1.5, 0.75, 1.25, 0.6], mlp_multipliers=[1.4, 0.4]),
                            falcon_h1, falcon_h1_weights, SOME),
    "BailingMoeV2ForCausalLM": (llama_config("bailing2", d=16, head_dim=16, tied=False, partial=0.5, num_experts=N_EXPERT, num_experts_per_tok=2,
                                             num_shared_experts=2, moe_intermediate_size=N_EACH, first_k_dense_replace=1, norm_topk_prob=True,
                                             routed_scaling_factor=2.5, n_group=1, topk_group=1, score_function="sigmoid", use_qk_norm=True, layout=bailing,
                                             like={"norms": "head", "rot": 8, "bias": "gate.e_score_correction_bias", "scale": 2.5}), sparse, sparse_weights, SOME),
    "AfmoeForCausalLM": (llama_config("afmoe", d=16, head_dim=16, tied=False, num_experts=N_EXPERT, num_experts_per_tok=2, num_shared_experts=1,
                                      num_dense_layers=1, moe_intermediate_size=N_EACH, route_scale=1.5, route_norm=True, score_func="sigmoid", n_group=1,
                                      topk_group=1, mup_enabled=True, sliding_window=5, global_attn_every_n_layers=2,
                                      layer_types=["sliding_attention", "full_attention", "sliding_attention"]), afmoe, afmoe_weights, SOME),
    "DeciLMForCausalLM": (llama_config("deci", tied=False, num_key_value_heads=None, intermediate_size=None, block_configs=[
        {"attention": {"n_heads_in_group": 2, "no_op": False, "window_length": None, "unshifted_sink": False}, "ffn": {"ffn_mult": 8, "no_op": False}},
        {"attention": {"n_heads_in_group": 4, "replace_with_linear": False}, "ffn": {"no_op": True, "ffn_mult": None}},
        {"attention": {"replace_with_linear": True, "n_heads_in_group": None}, "ffn": {"ffn_mult": 8}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 8, "replace_with_linear": False}}]) | {"num_hidden_layers": 4}, deci, deci_weights, SOME + ["llama3"]),
    "MiniCPM3ForCausalLM": (llama_config("minicpm3", d=8, partial=1.0, scale_emb=12, scale_depth=1.4, dim_model_base=256, q_lora_rank=18, kv_lora_rank=20,
                                         qk_nope_head_dim=10, qk_rope_head_dim=8, v_head_dim=12), minicpm3, minicpm3_weights, ["default", "longrope"]),
    "GPTBigCodeForCausalLM": ({"kind": "starcoder", "n_embd": N_EMBD, "n_positions": 64, "n_inner": N_FF, "multi_query": True, "scale_attn_weights": True,
                               "activation_function": "gelu_pytorch_tanh", **OLD}, old_style, old_style_weights, [None]),
    "GPTJForCausalLM": ({"kind": "gptj", "n_embd": N_EMBD, "n_positions": 64, "n_inner": N_FF, "rotary_dim": 8, "rotary": True,
                         "activation_function": "gelu_new", **OLD, "tie_word_embeddings": False}, old_style, old_style_weights, [None]),
    "QWenLMHeadModel": ({"kind": "qwen", **SIZE, "num_attention_heads": N_HEAD, "seq_length": 64, "max_position_embeddings": 128, "intermediate_size": 2 * N_FF,
                         "layer_norm_epsilon": EPS, "kv_channels": 12, "rotary_pct": 1.0, "rotary_emb_base": 10000, "no_bias": True, "bf16": True,
                         "use_dynamic_ntk": True, "use_logn_attn": True, "tie_word_embeddings": False}, old_style, old_style_weights, [None]),
    "OrionForCausalLM": folders_kin.family({"norms": folders_kin.LLAMA, "centre": True, "norm_bias": True}, tied=False, scalings=["default", "linear"],
                                           attention_bias=False, max_sequence_length=128),
    "BaichuanForCausalLM": ({**folders_kin.family({"norms": folders_kin.LLAMA}, tied=False, num_key_value_heads=None)[0], "layout": in_one},
                            *folders_kin.family({})[1:3], ["default"]),
    "Gemma3ForConditionalGeneration": nested(folders_kin.CLASSES["Gemma3ForCausalLM"], mm_tokens_per_image=4, image_token_index=7),
    "Mistral3ForConditionalGeneration": nested(folders_kin.CLASSES["Ministral3ForCausalLM"], spatial_merge_size=2, image_token_index=7),
    "Mistral3ForConditionalGeneration 5": nested(folders_kin.CLASSES["Ministral3ForCausalLM"], old=False, image_token_index=7),
    "Llama4ForConditionalGeneration": nested(CLASSES["Llama4ForCausalLM"], sees="vision_model", boi_token_index=5),
    "Qwen3_5ForConditionalGeneration": nested(FIRST["Qwen3_5ForCausalLM"], old=False, sees="visual", image_token_id=7),
}
