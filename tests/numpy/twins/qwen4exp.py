"""Qwen 4 Exp (Qwen 2026; after transformers' modular_qwen4_exp.py): gated rows of the stream, blocks of chosen keys, rows that hashes choose, a delta rule."""
from gguf import ARRAY, U64, Typed
from kin import other_names, scaled_frequencies
from sparse import *

K_HEADS, V_HEADS, N_LOW, N_ALL = 2, 4, 9, 26


def hashed_rows(k, tokens):
    """For each token the rows of the table that the n-grams ending with it choose."""
    n, end, by = k("ple.ngram_size"), k("ple.eos_token_id"), k("ple.layer_multipliers")
    out = []
    for t in range(len(tokens)):
        gram = []
        for back in range(n):
            cut = t - back < 0 or end in tokens[t - back : t]
            gram.append(end if cut else int(tokens[t - back]))
        row = []
        for head, (size, first) in enumerate(zip(k("ple.head_vocab_sizes"), k("ple.head_offsets"))):
            mixed = 0
            for token, factor in zip(gram[: 2 + head // k("ple.heads_per_ngram")], by):
                mixed ^= token * factor
            row.append(first + mixed % size)
        out.append(row)
    return np.array(out)


JOINED = {"attn_qkv_gate": ("attn_qkv", "attn_gate"), "ssm_beta_alpha": ("ssm_beta", "ssm_alpha"), "hc_attn_down_inject": ("hc_attn_down", "hc_attn_inject"),
          "hc_ffn_down_inject": ("hc_ffn_down", "hc_ffn_inject")}


def apart(k, w):
    """The tensors of a file that has some of them in pairs, one below the other."""
    first = {"attn_qkv": (2 * k("ssm.group_count") + k("ssm.time_step_rank")) * k("ssm.state_size"), "ssm_beta": k("ssm.time_step_rank"), "hc_attn_down": N_LOW, "hc_ffn_down": N_LOW}
    out = dict(w)
    for name in w:
        parts = JOINED.get(name.split(".")[-2])
        if parts:
            both = np.split(out.pop(name), [first[parts[0]]])
            out.update({name.replace(name.split(".")[-2], part): t for part, t in zip(parts, both)})
    return out


def qwen4exp(k, w, tokens, n_ctx):
    w = apart(k, w)
    raw = lambda name, *rest: (lambda v: v.value if isinstance(v, Typed) else v)(k(name, *rest))
    n_hc, eps, size = k("hyper_connection.count"), k("attention.layer_norm_rms_epsilon"), k("ssm.state_size")
    d, n_head, n_kv = k("attention.key_length"), k("attention.head_count"), k("attention.head_count_kv")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count"))
    turn = lambda x, at=None: rotate(x, theta, True, mag) if at is None else rotate_at(x, at)
    rows_norm = lambda x, g: rms_norm(x, 1, eps) * g.reshape(n_hc, -1)

    def rotate_at(x, at):
        """Rows [.., numbers] at these positions."""
        n = 2 * len(theta)
        u, v, angle = x[..., : n // 2], x[..., n // 2 : n], np.asarray(at)[:, None] * theta
        return np.concatenate([mag * (u * np.cos(angle) - v * np.sin(angle)), mag * (v * np.cos(angle) + u * np.sin(angle)), x[..., n:]], -1)

    def mix(b, name, x):
        z = rows_norm(x, b(name + "_norm")).reshape(len(x), -1)
        share = sigmoid(linear(silu(linear(z, b(name + "_down")) / n_hc), b(name + "_up")))
        return z, (z * share).reshape(x.shape).mean(1)

    def inject(b, name, x, z, y):
        return x + y[:, None] * (2 * sigmoid(linear(z, b(name + "_inject")) / n_hc))[..., None]

    def choose(b, h, every):
        n = k("attention.indexer.head_count")
        q = turn(rms_norm(split_heads(linear(h, b("indexer.q_proj")), n), b("indexer.q_norm"), eps))
        raw_keys, key = linear(h, b("indexer.k_proj")), np.zeros((len(h), q.shape[-1]))
        for t in range(every - 1, len(h), every):  # of a block, in the place of its first token
            key[t] = rotate_at(rms_norm(raw_keys[t + 1 - every : t + 1].mean(0)[None], b("indexer.k_norm"), eps), [t + 1 - every])[0]
        return best_rows(q, key, np.ones((len(h), n)), k("attention.indexer.top_k") // every, every)

    def attend(b, h, l):
        every = k("attention.compress_ratios", [0] * 9)[l]
        chosen = choose(b, h, every) if every else None
        both = split_heads(linear(h, b("attn_q")), n_head)
        q, gate = turn(rms_norm(both[..., :d], b("attn_q_norm"), eps)), both[..., d:]
        key = turn(rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps))
        return linear(merge_heads(attention(q, key, split_heads(linear(h, b("attn_v")), n_kv), chosen=chosen) * sigmoid(gate)), b("attn_output"))

    def remember(b, h):
        k_heads, v_heads = k("ssm.group_count"), k("ssm.time_step_rank")
        q, key, v = np.split(silu(causal_conv(linear(h, b("attn_qkv")), b("ssm_conv1d"))), [k_heads * size, 2 * k_heads * size], axis=-1)
        q, key = (x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps) for x in (split_heads(q, k_heads), split_heads(key, k_heads)))
        of = [i % k_heads for i in range(v_heads)]
        decay = b("ssm_a", "") * softplus(linear(h, b("ssm_alpha")) + b("ssm_dt", ".bias"))
        y = gated_delta_rule(q[:, of], key[:, of], split_heads(v, v_heads), decay, sigmoid(linear(h, b("ssm_beta"))))
        return linear(merge_heads(rms_norm(y, b("ssm_norm"), eps) * sigmoid(split_heads(linear(h, b("attn_gate")), v_heads))), b("ssm_out"))

    def grams(b, x):
        e = w["per_layer_token_embd.weight"][hashed_rows(raw, tokens)].reshape(len(x), -1)
        key = rows_norm(linear(e, b("ple_key")).reshape(x.shape), b("ple_norm_key"))
        s = (key * rows_norm(x, b("ple_norm_query"))).sum(-1) / math.sqrt(N_EMBD)
        y = linear(e, b("ple_value"))[:, None] * sigmoid(np.sign(s) * np.sqrt(np.maximum(abs(s), 1e-6)))[..., None]
        z, taps, step = rows_norm(y, b("ple_norm_conv")).reshape(len(x), -1), b("ple_conv1d"), k("ple.ngram_size")
        apart = np.zeros_like(z)
        for t in range(len(z)):
            for j in range(taps.shape[1]):
                at = t - (taps.shape[1] - 1 - j) * step
                if at >= 0:
                    apart[t] += taps[:, j] * z[at]
        return x + y + silu(apart).reshape(x.shape)

    x = np.repeat(w["token_embd.weight"][tokens][:, None], n_hc, 1)
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        if l in k("ple.layers", []):
            x = grams(b, x)
        z, h = mix(b, "hc_attn", x)
        recurrent = k("attention.recurrent_layers")[l] if k("attention.recurrent_layers", None) else (l + 1) % k("full_attention_interval", 4) != 0
        x = inject(b, "hc_attn", x, z, remember(b, h) if recurrent else attend(b, h, l))
        z, h = mix(b, "hc_ffn", x)
        y = routed(k, b, h, 1, True) + shared(b, h) * sigmoid(h @ b("ffn_gate_inp_shexp"))[:, None]
        x = inject(b, "hc_ffn", x, z, y)
    whole = lambda name, end=".weight": w[name + end]
    return tied_output(w, mix(whole, "output_hc", x)[1])


def put_mix(w, name, n_hc, injects=True):
    wide = n_hc * N_EMBD
    w.norm(name + "_norm", wide)
    w.matrix(name + "_down", N_LOW, wide, gain=3)
    w.matrix(name + "_up", wide, N_LOW, gain=3)
    if injects:
        w.matrix(name + "_inject", n_hc, wide, gain=3)


def model(name, seed, every, more={}, n_layer=4, n_hc=3, block=3, gram=3, ple=(1,), size=SIZE, n_index=5, d_index=16, n_rot=8, tied=False, fused=False, tokens=None, n_each=N_EACH, d_row=5, joined=False, draft=0, d=14, taps=3):
    """every: each of so many layers attends; block: of so many tokens, 0: attention reads all rows; gram: the longest n-gram."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, tied)
    put_mix(w, "output_hc", n_hc, False)
    sizes = [23, 29, 31, 37, 41, 43][: 2 * (gram - 1)]
    firsts = [sum(sizes[:i]) for i in range(len(sizes))]
    if ple:
        w.put("per_layer_token_embd.weight", w.random.normal(size=(sum(sizes) + 7, d_row)))
    keys = {"ple.layers": list(ple), "ple.ngram_size": gram, "ple.heads_per_ngram": 2, "ple.conv_kernel": 4, "ple.eos_token_id": 11, "embedding_length_per_layer_input": d_row,
            **{"ple." + key: Typed(ARRAY, value, U64) for key, value in (("layer_multipliers", [24414062500001, 7654321012345, 35184372088831][:gram]), ("head_offsets", firsts),
                                                                        ("head_vocab_sizes", sizes))}} if ple else {}
    attends = [(l + 1) % every == 0 for l in range(n_layer)]
    for l in range(n_layer):
        b = f"blk.{l}."
        if l in ple:
            wide, n_gram = n_hc * N_EMBD, len(sizes) * d_row
            w.matrix(b + "ple_key", wide, n_gram)
            w.matrix(b + "ple_value", N_EMBD, n_gram)
            for part in ("key", "query", "conv"):
                w.norm(f"{b}ple_norm_{part}", wide)
            w.put(b + "ple_conv1d.weight", 0.7 * w.random.normal(size=(wide, 4)))
        put_mix(w, b + "hc_attn", n_hc)
        put_mix(w, b + "hc_ffn", n_hc)
        if attends[l]:
            w.matrix(b + "attn_q", 2 * N_HEAD * d, N_EMBD, gain=1.5)
            w.matrix(b + "attn_k", 2 * d, N_EMBD, gain=1.5)
            w.matrix(b + "attn_v", 2 * d, N_EMBD)
            w.matrix(b + "attn_output", N_EMBD, N_HEAD * d)
            for part in ("q", "k"):
                w.norm(f"{b}attn_{part}_norm", d)
            if block:
                w.matrix(b + "indexer.q_proj", n_index * d_index, N_EMBD)
                w.matrix(b + "indexer.k_proj", d_index, N_EMBD)
                w.norm(b + "indexer.q_norm", d_index)
                w.norm(b + "indexer.k_norm", d_index)
        else:
            wide = (2 * K_HEADS + V_HEADS) * size
            w.matrix(b + "attn_qkv", wide, N_EMBD, gain=1.5)
            w.matrix(b + "attn_gate", V_HEADS * size, N_EMBD)
            w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=(wide, taps)))
            w.matrix(b + "ssm_alpha", V_HEADS, N_EMBD)
            w.matrix(b + "ssm_beta", V_HEADS, N_EMBD)
            w.vector(b + "ssm_dt.bias", V_HEADS, 0.5)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.5, V_HEADS))
            w.norm(b + "ssm_norm", size)
            w.matrix(b + "ssm_out", N_EMBD, V_HEADS * size)
        w.experts(l, N_EMBD, n_each, N_EXPERT)
        w.shared_expert(l, N_EMBD, N_ALL)
        w.vector(b + "ffn_gate_inp_shexp.weight", N_EMBD, 0.3)
    if fused:
        w.fuse_experts()
    for l in range(n_layer if joined else 0):
        for both, parts in JOINED.items():
            if f"blk.{l}.{parts[0]}.weight" in w:
                w.put(f"blk.{l}.{both}.weight", np.concatenate([w.pop(f"blk.{l}.{part}.weight") for part in parts]))
    for l in range(draft):
        w.norm(f"blk.{n_layer + l}.nextn.enorm", N_EMBD)
    common = {**keys_of(n_layer + draft, N_EMBD, None, N_HEAD, 1e-6), "attention.head_count_kv": 2, "attention.key_length": d, "attention.value_length": d, "rope.dimension_count": n_rot, "rope.freq_base": 900.0,
              "full_attention_interval": every, "hyper_connection.count": n_hc, "hyper_connection.low_rank": N_LOW, "ssm.conv_kernel": taps, "ssm.group_count": K_HEADS, "ssm.time_step_rank": V_HEADS,
              "ssm.state_size": size, "ssm.inner_size": V_HEADS * size, "expert_count": N_EXPERT, "expert_used_count": 2, "expert_feed_forward_length": n_each,
              "expert_shared_feed_forward_length": N_ALL, "attention.indexer.head_count": n_index, "attention.indexer.key_length": d_index, "attention.indexer.top_k": 2 * block or 4,
              "attention.compress_ratios": [block if a else 0 for a in attends]}
    case = add(name, "qwen4exp", {key: value for key, value in {**common, **keys, **more}.items() if value is not None}, w, other_names(qwen4exp))
    if tokens:
        case.tokens = tokens


WITH_ENDS = [3, 17, 29, 5, 11, 38, 7, 7, 20, 11, 11, 14, 33, 5, 2, 90, 41, 8, 17, 29, 5, 11, 64, 1]
model("qwen4exp", 3741, 2, tokens=WITH_ENDS)
model("qwen4exp-whole", 3752, 4, {"attention.compress_ratios": None, "full_attention_interval": None, **{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24}},
      block=0, ple=(), n_hc=2, tied=True, fused=True)
model("qwen4exp-pairs", 3743, 3, {"attention.recurrent_layers": [True, True, False], "full_attention_interval": None, "rope.dimension_sections": [1, 1, 1, 0], "ple.image_token_id": 7,
      "expert_weights_norm": True, "expert_gating_func": 1, "nextn_predict_layers": 1, "attention.indexer.top_k": 63}, n_layer=3, joined=True, draft=1, gram=2, ple=(0,), n_rot=12, d_index=12)
model("qwen4exp-common", 3744, 4, {"rope.dimension_sections": [2, 1, 1, 0]}, n_hc=4, block=5, ple=(1,), d_row=12, size=8, d_index=16, tokens=WITH_ENDS, d=12, taps=4)
