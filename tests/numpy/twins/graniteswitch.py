"""Granite Switch (IBM 2026; written from llama.cpp's graph): adapters that tokens choose for themselves and later ones."""
from kin import *
from mixtures import decoder


def slots_of(k, tokens):
    """The adapter of each token: the mean of those that the tokens so far have called, rounded; a half is rounded up."""
    numbers = [k("adapters.token_ids_activate").index(t) + 1 if t in k("adapters.token_ids_activate") else 0 for t in tokens]
    out = []
    for t in range(len(tokens)):
        called = [n for n in numbers[: t + 1] if n]
        out.append(math.floor(sum(called) / len(called) + 0.5) if called else 0)
    return out


def graniteswitch(k, w, tokens, n_ctx):
    d, share = head_size(k), k("residual_scale", 1.0)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))
    slot = slots_of(k, tokens)
    meant = dict(zip(k("adapters.token_ids_activate"), k("adapters.token_ids_substitute")))

    def both(b, name, x, base=None):
        a, c = b(name, ".lora_a"), b(name, ".lora_b")
        return (linear(x, b(name)) if base is None else base) + np.array([c[s] @ (a[s] @ row) for s, row in zip(slot, x)])

    def attend(b, h, l):
        n_kv = k("attention.head_count_kv", N_HEAD)
        parts = np.split(linear(h, b("attn_qkv")), [N_HEAD * d, (N_HEAD + n_kv) * d], axis=-1)
        q, key, v = (split_heads(both(b, "attn_" + p, h, base), n) for p, base, n in zip("qkv", parts, (N_HEAD, n_kv, n_kv)))
        if k("rope.scaling.finetuned", True):
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        return both(b, "attn_output", merge_heads(attention(q, key, v, k("attention.scale", None)))) * share

    def feed(b, h, l):
        return both(b, "ffn_down", silu(both(b, "ffn_gate", h)) * both(b, "ffn_up", h)) * share

    w = {"output.weight": w["token_embd.weight"], **w, "token_embd.weight": w["token_embd.weight"] * k("embedding_scale", 1.0)}
    return decoder(k, w, [meant.get(t, t) for t in tokens], attend, feed) / k("logit_scale", 1.0)


def model(name, seed, calls, more={}, rank=3, **named):
    """calls: which of the case's tokens choose an adapter, in the order of the adapters."""
    d, n_kv = more.get("attention.key_length") or 12, more.get("attention.head_count_kv") or N_HEAD

    def parts(w, l):
        b = f"blk.{l}."
        w.put(b + "attn_qkv.weight", np.concatenate([w.pop(f"{b}attn_{part}.weight") for part in "qkv"]))
        for part, n_in, n_out in (("attn_q", N_EMBD, N_HEAD * d), ("attn_k", N_EMBD, n_kv * d), ("attn_v", N_EMBD, n_kv * d), ("attn_output", N_HEAD * d, N_EMBD), ("ffn_gate", N_EMBD, N_FF),
                                  ("ffn_up", N_EMBD, N_FF), ("ffn_down", N_FF, N_EMBD)):
            for end, shape in (("a", (rank, n_in)), ("b", (n_out, rank))):
                t = w.random.normal(size=(len(calls) + 1, *shape)) / math.sqrt(shape[-1])
                t[0] = 0
                w.put(f"{b}{part}.lora_{end}", t)

    case = kin(name, "graniteswitch", seed, {"adapters.count": len(calls), "adapters.lora_rank": rank, "adapters.token_ids_substitute": [3 + i for i in range(len(calls))], **more}, parts=parts,
               forward=graniteswitch, **named)
    case.keys["adapters.token_ids_activate"] = [case.tokens[at] for at in calls]


SCALES = {"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 1.7, "attention.scale": 0.4}
model("graniteswitch", 3901, [6], {**SCALES, "rope.freq_base": 200.0, "expert_used_count": 0, "expert_shared_feed_forward_length": N_FF})
model("graniteswitch-three", 3902, [21, 4, 13], {**SCALES, **sizes(16, 2), "adapters.router_gain": 12.0, **YARN}, tied=False)
model("graniteswitch-plain", 3903, [9, 2], {"rope.scaling.finetuned": False}, rank=2)
model("graniteswitch-common", 3904, [21, 4, 13], {**SCALES, **sizes(16, 2, 16), "rope.freq_base": 200.0, "rope.dimension_count": 16, "adapters.router_gain": 15.0}, tied=False)
