"""Mistral Large 4 (2026; after transformers' modular_mistral_large4.py): latent attention to chosen rows, shared latent rows, queries that grow by learned numbers."""
from kin import scaled_frequencies
from sparse import *

ROT = 6


def mistral_large4(k, w, tokens, n_ctx):
    eps, eps_ln, chosen, kept = k("attention.layer_norm_rms_epsilon"), k("attention.layer_norm_epsilon"), None, {}
    theta, mag = scaled_frequencies(k, ROT)
    if w.get("rope_freqs.weight") is not None:
        theta = theta / w["rope_freqs.weight"]
    turn = lambda x: rotate(x, theta, False, mag)
    grown = np.log(np.arange(len(tokens)) + 1.0)[:, None]
    scaled = lambda b, name, q: q * (grown * b(name) + b(name, ".bias"))[..., None]

    def choose(b, h, turns):
        n = k("attention.indexer.head_count")
        q = layer_norm(h, b("indexer.q_norm"), b("indexer.q_norm", ".bias"), eps_ln)
        q = scaled(b, "indexer.ssmax", split_heads(linear(q, b("indexer.attn_q_b")), n))
        key = layer_norm(linear(h, b("indexer.attn_k")), b("indexer.k_norm"), b("indexer.k_norm", ".bias"), eps_ln)[:, None]
        at_start = (lambda x: np.concatenate([turn(x[..., :ROT]), x[..., ROT:]], -1)) if turns else lambda x: x
        return best_rows(at_start(q), at_start(key)[:, 0], linear(h, b("indexer.proj")), k("attention.indexer.top_k"))

    def attend(b, h, l):
        nonlocal chosen
        turns = k("attention.rope_pattern", [True] * 9)[l]
        if k("attention.indexer.types", [True] * 9)[l] and k("attention.indexer.top_k") < len(tokens):
            chosen = choose(b, h, turns)
        source = k("attention.kv_source_map", range(9))[l]
        if source == l:
            c = linear(h, b("attn_kv_a_mqa"))
            kept[l] = rms_norm(c[:, :RANK], b("attn_kv_a_norm"), eps), turn(c[:, None, RANK:]) if turns else c[:, None, RANK:]
        c, tail = kept[source]
        n_tail = tail.shape[-1]
        key = np.concatenate([np.einsum("tr,hrd->thd", c, b("attn_k_b")), np.repeat(tail, N_HEAD, 1)], -1)
        q = split_heads(linear(h, b("attn_q")), N_HEAD)
        if n_tail:
            q = np.concatenate([q[..., :-n_tail], turn(q[..., -n_tail:])], -1)
        a = attention(scaled(b, "attn_ssmax", q), key, np.einsum("tr,hdr->thd", c, b("attn_v_b")), scale=1 / math.sqrt(D + ROT), chosen=chosen)
        return linear(merge_heads(a), b("attn_output"))

    def feed(b, h, l):
        return swiglu(b, h) if b("ffn_gate") is not None else routed(k, b, h, 1, True) + shared(b, h)

    y, most = decoder(k, w, tokens, attend, feed), k("final_logit_softcapping", 0)
    return most * np.tanh(y / most) if most else y


def model(name, seed, kinds, more={}, factors=(), n_dense=1, tied=False):
    """kinds: of each layer, whether it is turned (T or t) or not (P or p), has an indexer (capitals), and has latent rows of its own (no ')."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, tied)
    if factors:
        w.put("rope_freqs.weight", factors)
    sources, index, last = [], {}, {}
    for l, kind in enumerate(kinds):
        b, turns, owns = f"blk.{l}.", kind[0] in "Tt", len(kind) == 1
        t = ROT if turns else 0
        last[turns] = l if owns else last[turns]
        sources.append(last[turns])
        w.norm(b + "attn_norm", N_EMBD)
        put_latent(w, b, t, r_q=0, d=D + ROT - t)
        if not owns:
            del w[b + "attn_kv_a_mqa.weight"], w[b + "attn_kv_a_norm.weight"]
        w.vector(b + "attn_ssmax.weight", N_HEAD, 0.3)
        w.vector(b + "attn_ssmax.bias", N_HEAD, 0.3, 1.0)
        if kind[0] in "TP":
            index = put_indexer(w, b, d=16)
            w.matrix(b + "indexer.attn_q_b", 5 * 16, N_EMBD)
            w.norm(b + "indexer.q_norm", N_EMBD, True)
            w.vector(b + "indexer.ssmax.weight", 5, 0.3)
            w.vector(b + "indexer.ssmax.bias", 5, 0.3, 1.0)
        w.norm(b + "ffn_norm", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
        else:
            w.experts(l, N_EMBD, N_EACH, N_EXPERT)
            w.shared_expert(l, N_EMBD, N_EACH)
    w.norm("output_norm", N_EMBD)
    keys = {**sizes(len(kinds), ROT), **index, "attention.layer_norm_epsilon": 1e-5, "attention.indexer.top_k": 5, "rope.freq_base": 900.0, "expert_gating_func": 1,
            "attention.indexer.types": [kind[0] in "TP" for kind in kinds], "attention.rope_pattern": [kind[0] in "Tt" for kind in kinds], "attention.kv_source_map": sources, **more}
    add(name, "mistral-large4", {key: value for key, value in keys.items() if value is not None}, w, mistral_large4)


model("mistral-large4", 3731, ["T", "p", "t'", "P'", "t"], {"final_logit_softcapping": 3.0, "expert_group_count": 2, "expert_group_used_count": 1,
      "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.scaling.attn_factor": 0.9}, factors=[0.8, 1.3, 1.1])
model("mistral-large4-plain", 3732, ["T", "T"], dict.fromkeys(("attention.indexer.types", "attention.rope_pattern", "attention.kv_source_map", "expert_weights_norm", "expert_gating_func",
                                                              "rope.freq_base", "leading_dense_block_count")) | {"attention.indexer.top_k": 64}, n_dense=0, tied=True)
