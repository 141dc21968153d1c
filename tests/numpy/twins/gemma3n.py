"""Gemma 3n (Gemma Team 2025; modeling_gemma3n): AltUp (Baykal et al. 2023), Laurel (Menghani et al. 2024), cut gates, shared keys and values.
The deviation of a cut gate is divided by n - 1, as engines that run the family's files do; the authors divide by n (16384)."""
import math

from kin import *


def altup(b, x, eps, part):
    modalities = np.tanh(linear(rms_norm(x, b("altup_router_norm"), eps) / x.shape[1], b("altup_router")))
    return linear(modalities, b(f"altup_{part}_coef"))


def like(x, target):
    norm = lambda y: np.sqrt((y**2).sum(-1, keepdims=True))
    return x * norm(target) / norm(x)


def gemma3n(k, w, tokens, n_ctx):
    n_layer, n_embd, eps = k("block_count"), k("embedding_length"), k("attention.layer_norm_rms_epsilon")
    n_head, n_alt = k("attention.head_count"), k("altup.num_inputs", 4)
    width = k("embedding_length_per_layer_input", 256)
    d = k("attention.key_length", k("head_dim", n_embd // n_head))
    every = k("attention.sliding_window_pattern", 5)
    near_base = k("rope.freq_base_swa", k("rope.freq_base_local", k("rope.freq_base", 10000.0)))
    kinds = {False: (*scaled_frequencies(k, d), None), True: (inverse_frequencies(d, near_base), 1.0, k("attention.sliding_window"))}
    first = w["token_embd.weight"][tokens] * math.sqrt(n_embd)
    own = (linear(first, w["per_layer_model_proj.weight"]) / math.sqrt(n_embd)).reshape(len(first), n_layer, width)
    own = rms_norm(own, w["per_layer_proj_norm.weight"], eps)
    own = (own + math.sqrt(width) * w["per_layer_token_embd.weight"][tokens].reshape(own.shape)) / math.sqrt(2)
    rows = [first] + [like(linear(first, p), first) for p in w["altup_proj.weight"]]
    stored = {}
    for l in range(n_layer):
        b, near = layer(w, l), every[l] if isinstance(every, list) else (l + 1) % every > 0
        theta, mag, window = kinds[bool(near)]
        mix = altup(b, rows[0], eps, "predict").reshape(-1, n_alt, n_alt)  # [T, which is foretold, from which]
        foretold = [rows[j] + sum(mix[:, j, i, None] * rows[i] for i in range(n_alt)) for j in range(n_alt)]
        x = foretold[0]
        h = rms_norm(x, b("attn_norm"), eps)
        laurel = h + rms_norm(linear(linear(h, b("laurel_l")), b("laurel_r")), b("laurel_post_norm"), eps)
        q = rotate(rms_norm(split_heads(linear(h, b("attn_q")), n_head), b("attn_q_norm"), eps), theta, True, mag)
        if l < n_layer - k("attention.shared_kv_layers", 0):
            n_kv = k("attention.head_count_kv", n_head)
            key = rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps)
            stored[bool(near)] = rotate(key, theta, True, mag), rms_norm(split_heads(linear(h, b("attn_v")), n_kv), None, eps)
        a = linear(merge_heads(attention(q, *stored[bool(near)], 1.0, window)), b("attn_output"))
        x = (x + rms_norm(a, b("post_attention_norm"), eps) + laurel) / math.sqrt(2)
        h = rms_norm(x, b("ffn_norm"), eps)
        gate = linear(h, b("ffn_gate"))
        cuts = k("activation_sparsity_scale", [1.6448533535003662] * min(10, n_layer) + [-np.inf] * (n_layer - 10))
        if np.isfinite(cuts[l]):
            gate = np.maximum(gate - gate.mean(-1, keepdims=True) - cuts[l] * gate.std(-1, ddof=1, keepdims=True), 0)
        x = x + rms_norm(linear(gelu(gate) * linear(h, b("ffn_up")), b("ffn_down")), b("post_ffw_norm"), eps)
        wrong, weights = x - foretold[0], 1 + altup(b, x, eps, "correct")
        rows = [foretold[j] + weights[:, j, None] * wrong for j in range(n_alt)]
        z = gelu(linear(rows[0] * b("altup_correct_scale"), b("inp_gate"))) * own[:, l]
        z = rms_norm(linear(z, b("proj")), b("post_norm"), eps)
        rows = [rows[0]] + [row + z for row in rows[1:]]
    rows = [rows[0]] + [like(linear(row, p), rows[0]) for row, p in zip(rows[1:], w["altup_unembd_proj.weight"])]
    y = tied_output(w, rms_norm(sum(rows) / n_alt, w["output_norm.weight"], eps))
    cap = k("final_logit_softcapping", 30.0)
    return cap * np.tanh(y / cap)


def model(name, seed, n, more={}, d=12, n_kv=4, n_alt=4, width=10, rank=9, n_own=99, tied=True, extra=False):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, tied)
    w.matrix("altup_proj", n_alt - 1, N_EMBD, N_EMBD)
    w.matrix("altup_unembd_proj", n_alt - 1, N_EMBD, N_EMBD)
    w.put("per_layer_token_embd.weight", 0.3 * w.random.normal(size=(N_VOCAB, n * width)))
    w.matrix("per_layer_model_proj", n * width, N_EMBD, gain=7)
    w.norm("per_layer_proj_norm", width)
    for l in range(n):
        b = f"blk.{l}."
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "laurel_post_norm", "altup_router_norm", "post_norm",
                     "altup_correct_scale"):
            w.norm(b + norm, N_EMBD)
        w.attention(l, N_EMBD, N_HEAD, n_kv, d)
        w.vector(b + "attn_q_norm.weight", d, 0.2, 0.6)
        w.vector(b + "attn_k_norm.weight", d, 0.2, 0.6)
        if l >= n_own and not extra:
            del w[b + "attn_k.weight"], w[b + "attn_v.weight"], w[b + "attn_k_norm.weight"]
        w.gated(l, N_EMBD, N_FF)
        w.matrix(b + "altup_router", n_alt, N_EMBD, gain=N_EMBD)
        w.matrix(b + "altup_predict_coef", n_alt * n_alt, n_alt, gain=0.4)
        w.matrix(b + "altup_correct_coef", n_alt, n_alt, gain=0.4)
        w.matrix(b + "laurel_l", rank, N_EMBD)
        w.matrix(b + "laurel_r", N_EMBD, rank)
        w.matrix(b + "inp_gate", width, N_EMBD)
        w.matrix(b + "proj", N_EMBD, width)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(n, N_EMBD, N_FF, N_HEAD, EPS), **sizes(d, n_kv), "attention.sliding_window": 6, "altup.num_inputs": n_alt, "altup.active_idx": 0,
            "embedding_length_per_layer_input": width, "laurel_rank": rank, **more}
    add(name, "gemma3n", {key: v for key, v in keys.items() if v is not None}, w, gemma3n)


model("gemma3n", 1611, 5, {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "attention.shared_kv_layers": 2, "final_logit_softcapping": 0.9,
                           "attention.sliding_window_pattern": [True, False, True, True, False],
                           "activation_sparsity_scale": [0.8, 0.3, -np.inf, 0.5, -np.inf]}, n_kv=2, n_own=3)
model("gemma3n-ollama", 1612, 6, {"attention.key_length": None, "head_dim": 14, "rope.freq_base_local": 20.0, "altup.num_inputs": 3,
                                  "altup.lr_multiplier": 1.0, "altup.correct_scale": True, "num_kv_shared_layers": 1, "attention.shared_kv_layers": 1,
                                  "activation_sparsity_scale": [-np.inf] * 6}, d=14, n_alt=3, n_own=5, tied=False, extra=True)
model("gemma3n-sparse", 1613, 11, {"attention.key_length": None, "attention.head_count_kv": None, "altup.num_inputs": None, "altup.active_idx": None,
                                   "laurel_rank": None, "embedding_length_per_layer_input": None, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                                   "rope.freq_base": 300.0}, width=256, rank=64)
model("gemma3n-common", 1618, 11, {"attention.value_length": 12, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "attention.shared_kv_layers": 0,
                                   "attention.sliding_window_pattern": 5}, n_kv=2, width=256, rank=64)
