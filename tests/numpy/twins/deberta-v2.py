"""DeBERTa 2 and 3 (He et al. 2021, 2023; transformers' modeling_deberta_v2.py): scores of contents and of relative positions."""
from deberta_positions import disentangled, rows_of
from encoders import *


def around(x, n):
    """For each token the rows of the n tokens around it, side by side; zeros beyond the ends."""
    half = n // 2
    padded = np.concatenate([np.zeros((half, x.shape[1])), x, np.zeros((half, x.shape[1]))])
    return np.concatenate([padded[i : i + len(x)] for i in range(n)], axis=1)


def deberta(k, w, tokens, output):
    eps, n_head, n_conv = k("attention.layer_norm_epsilon"), k("attention.head_count"), k("conv_kernel", 0)
    x = w["token_embd.weight"][tokens]
    if "token_types.weight" in w:
        x = x + w["token_types.weight"][0]
    if "position_embd.weight" in w:
        x = x + w["position_embd.weight"][: len(tokens)]
    if "token_embd_proj.weight" in w:
        x = linear(x, w["token_embd_proj.weight"])
    x = first = layer_norm(x, w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
    places = w["rel_embd.weight"]
    if "rel_norm.weight" in w:
        places = layer_norm(places, w["rel_norm.weight"], w["rel_norm.bias"], eps)
    rows = rows_of(len(tokens), k("attention.relative_buckets_count", 0), k("attention.relative_max_distance"))
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = (split_heads(dense(b, x, "attn_" + part), n_head) for part in "qkv")
        own = b("attn_rel_k") is not None
        place_k, place_q = (split_heads(dense(b, places, ("attn_rel_" if own else "attn_") + part), n_head) for part in "kq")
        a = disentangled(q, key, v, place_k if k("attention.content_to_position", True) else None,
                         place_q if k("attention.position_to_content", True) else None, rows)
        h = layer_normed(b, x + dense(b, merge_heads(a), "attn_output"), "attn_output_norm", eps)
        x = layer_normed(b, h + dense(b, gelu_erf(dense(b, h, "ffn_up")), "ffn_down"), "layer_output_norm", eps)
        if l == 0 and n_conv:
            act = {"gelu": gelu_erf, "tanh": np.tanh}[k("conv_activation", "tanh")]
            x = layer_normed(b, x + act(dense(b, around(first, n_conv), "conv")), "conv_norm", eps)
    return sentence_dense(k, w, x) if output in ("none", "mean") else classified(w, x[:1], gelu_erf)


def model(name, seed, side, more={}, output="none", width=N_EMBD, types=0, placed=False, own=False, normed=True, n_conv=0, n_layer=3, n_labels=1, length=24):
    w = Weights(seed)
    w.embedding(N_VOCAB, width, scale=0.5)
    if types:
        w.put("token_types.weight", 0.25 * w.random.normal(size=(types, width)))
    if placed:
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(more.get("context_length", 64), width)))
    if width != N_EMBD:
        w.matrix("token_embd_proj", N_EMBD, width)
    w.norm("token_embd_norm", N_EMBD, True)
    w.put("rel_embd.weight", w.random.normal(size=(2 * side, N_EMBD)))
    if normed:
        w.norm("rel_norm", N_EMBD, True)
    for l in range(n_layer):
        w.attention(l, N_EMBD, 4, 4, N_EMBD // 4, bias="qkvo")
        for part in "qk" if own else "":
            w.matrix(f"blk.{l}.attn_rel_{part}", N_EMBD, N_EMBD, bias=True)
        w.matrix(f"blk.{l}.ffn_up", N_FF, N_EMBD, bias=True)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2, bias=True)
        for norm in ("attn_output_norm", "layer_output_norm"):
            w.norm(f"blk.{l}.{norm}", N_EMBD, True)
    if n_conv:
        w.matrix("blk.0.conv", N_EMBD, n_conv * N_EMBD, bias=True)
        w.norm("blk.0.conv_norm", N_EMBD, True)
    if output == "rank":
        head(w, n_labels)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS, True), "attention.causal": False, **more}
    if width != N_EMBD:
        keys["word_embedding_length"] = width
    if types:
        keys["tokenizer.ggml.token_type_count"] = types
    if n_conv:
        keys["conv_kernel"] = n_conv
    encoder(name, "deberta-v2", keys, w, deberta, output)
    CASES[name].tokens = [int(t) for t in np.random.default_rng(7).integers(0, N_VOCAB, length)]


def places(most, buckets=None):
    return {"attention.relative_max_distance": most, **({"attention.relative_buckets_count": buckets} if buckets else {})}


model("deberta-v2", 3921, 6, places(16, 6))
model("deberta-v2-far", 3922, 16, {**places(40, 16), "context_length": 256}, length=200)
model("deberta-v2-own-rank", 3923, 12, {**places(12), **labels(3)}, "rank", 20, 2, True, True, False, 5, n_labels=3)
model("deberta-v2-c2p", 3924, 5, {**places(20, 5), "attention.position_to_content": False, "conv_activation": "gelu"}, n_conv=3)
model("deberta-v2-p2c", 3925, 7, {**places(9, 7), "attention.content_to_position": False, "attention.causal": None, "dense_2_feat_out": 20})
