"""gpt-oss (OpenAI 2025, the authors' gpt_oss/torch/model.py): sinks, alternating windows, experts with a clamped SwiGLU."""
from kin import *


def swiglu(gate, up):
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def gpt_oss(k, w, tokens, n_ctx):
    eps, every = k("attention.layer_norm_rms_epsilon"), k("attention.sliding_window_pattern", 2)
    d, base, factor = head_size(k), k("rope.freq_base", 10000.0), k("rope.scaling.factor", 1.0)
    theta, mag = scaled_frequencies(k, d)
    if k("of ollama", 0):
        theta, mag = yarn_frequencies(d, base, factor, k("rope.scaling.original_context_length", k("context_length"))), 1 + 0.1 * math.log(factor)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        near = every[l] if isinstance(every, list) else l % every != every - 1
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, sinks=b("attn_sinks"),
                      window=k("attention.sliding_window") if near else None)
        x = x + project(b, "attn_output", merge_heads(a))
        h = rms_norm(x, b("post_attention_norm"), eps)
        s = project(b, "ffn_gate_inp", h)
        chosen = [best(row, k("expert_used_count")) for row in s]
        share = [dict(zip(e, softmax(row[e]))) for e, row in zip(chosen, s)]

        def one(name, e, x):
            bias = b(name, ".bias")
            return b(name)[e] @ x + (0 if bias is None else bias[e])

        x = x + experts(h, share, chosen, lambda e, x: one("ffn_down_exps", e, swiglu(one("ffn_gate_exps", e, x),
                                                                                     one("ffn_up_exps", e, x))))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


OLLAMA = {".attn_out.": ".attn_output.", ".ffn_norm.": ".post_attention_norm."}


def plain_names(k, w, tokens, n_ctx):
    """The same of a file with other names, or with gate and up in one."""
    out = {}
    for name, t in w.items():
        for old, new in OLLAMA.items():
            name = name.replace(old, new)
        if "gate_up_exps" in name:
            out[name.replace("gate_up", "gate")], out[name.replace("gate_up", "up")] = np.split(t, 2, axis=1)
        else:
            out[name + ".weight" if name.endswith("attn_sinks") else name] = t
    return gpt_oss(k, out, tokens, n_ctx)


def model(name, arch, seed, more, bias, fused=False, **named):
    n_ff, n_expert = more.get("expert_feed_forward_length", N_FF), 6

    def parts(w, l):
        w.put(f"blk.{l}.attn_sinks.weight", 1 + w.random.normal(size=N_HEAD))
        w.experts(l, N_EMBD, n_ff, n_expert, bias)
        for part in ("gate", "up"):  # so that both limits are met
            w[f"blk.{l}.ffn_{part}_exps.weight"] *= 4

    case = kin(name, arch, seed, {"attention.sliding_window": 5, "expert_count": n_expert, "expert_used_count": 2, **more},
               norms=("attn_norm", "post_attention_norm"), bias="qkvo" if bias else "", feed_forward="none", parts=parts, **named, forward=plain_names)
    if fused:
        for end in (".weight", ".bias") if bias else (".weight",):
            for name in [n for n in case.tensors if n.endswith("ffn_gate_exps" + end)]:
                up = case.tensors.pop(name.replace("gate", "up"))
                case.tensors.put(name.replace("gate", "gate_up"), np.concatenate([case.tensors.pop(name), up], axis=1))
    return case


size = {"expert_feed_forward_length": 26}
model("gpt-oss", "gpt-oss", 221, {**sizes(16, 2), **YARN, **size}, True, n_layer=3, tied=False)
model("gpt-oss-plain", "gpt-oss", 222, {**size, "expert_gating_func": 3, "expert_weights_norm": False, "attention.sliding_window_pattern": [False, True, True]}, False, n_layer=3)
model("gpt-oss-fused", "gpt-oss", 223, {**sizes(14, 1, 10), **size, "attention.sliding_window_pattern": 3}, True, True, n_layer=4)
model("gpt-oss-fused-plain", "gpt-oss", 224, size, False, True)
model("gptoss-typed", "gptoss", 226, {**YARN, **size}, True)


def ollama(name, seed, more):
    case = model(name, "gptoss", seed, more, True)
    case.forward = lambda k, w, tokens, n_ctx: plain_names(lambda key, *d: key == "of ollama" or k(key, *d), w, tokens, n_ctx)
    for name in list(case.tensors):
        for old, new in OLLAMA.items():
            if new in name:
                case.tensors[name.replace(new, old)] = case.tensors.pop(name)
        if "attn_sinks" in name:
            case.tensors[name[: -len(".weight")]] = case.tensors.pop(name)


ollama("gptoss", 225, {"rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 16, "rope.freq_base": 90.0})
ollama("gptoss-original", 227, {"rope.scaling.factor": 8.0, "rope.freq_base": 3.0, "context_length": 640, **sizes(40)})
ollama("gptoss-no-scaling", 228, {})
