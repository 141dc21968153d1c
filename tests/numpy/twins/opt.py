"""OPT (Zhang et al. 2022; modeling_opt), Galactica (Taylor et al. 2022): learned positions, LayerNorm before or after each part, ReLU or exact
GELU, in OPT 350M embeddings of another width than the layers."""
from families import *
from kin import N_EMBD, N_FF, N_HEAD, N_VOCAB, project
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    eps, n_head, n_layer = k("attention.layer_norm_epsilon"), k("attention.head_count"), k("block_count")
    pre_norm = k("do_layer_norm_before", True)
    activation = {"relu": lambda y: np.maximum(y, 0), "gelu": gelu_erf}[k("hidden_activation", "relu")]
    x = w["token_embd.weight"][tokens]
    if "token_embd_proj.weight" in w:
        x = x @ w["token_embd_proj.weight"].T
    x = x + w["position_embd.weight"][np.arange(len(tokens))]
    for l in range(n_layer):
        b = layer(w, l)

        def attend(h):
            q, key, v = separate_qkv(b, h, n_head, n_head)
            return project(b, "attn_output", merge_heads(attention(q, key, v)))

        def feed(h):
            return project(b, "ffn_down", activation(project(b, "ffn_up", h)))

        for part, name in ((attend, "attn_norm"), (feed, "ffn_norm")):
            if pre_norm:
                x = x + part(layer_normed(b, x, name, eps))
            else:
                x = layer_normed(b, x + part(x), name, eps)
    if pre_norm and not k("remove_final_layer_norm", False):
        x = layer_norm(x, w.get("output_norm.weight"), w.get("output_norm.bias"), eps)
    if "output_proj.weight" in w:
        x = x @ w["output_proj.weight"].T
    return tied_output(w, x)


def opt(name, seed, more={}, tied=True, bias=True, affine=True, last=True, act="relu"):
    width = more.get("word_embedding_length", N_EMBD)
    w = Weights(seed)
    w.embedding(N_VOCAB, width, tied, scale=1.0 if act == "relu" else 0.5)
    w.put("position_embd.weight", 0.5 * w.random.normal(size=(64, N_EMBD)))
    if width != N_EMBD:
        w.matrix("token_embd_proj", N_EMBD, width)
        w.matrix("output_proj", width, N_EMBD)
    norms = ["output_norm"] if last else []
    for l in range(2):
        w.attention(l, N_EMBD, N_HEAD, N_HEAD, N_EMBD // N_HEAD, bias="qkvo" if bias else "")
        w.matrix(f"blk.{l}.ffn_up", N_FF, N_EMBD, bias=bias)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2, bias=bias)
        norms += [f"blk.{l}.attn_norm", f"blk.{l}.ffn_norm"]
    for norm in norms if affine else []:
        w.norm(norm, N_EMBD, True)
    keys = {**keys_of(2, N_EMBD, N_FF, N_HEAD, 1e-2, True), **more}
    if act != "relu":
        keys["hidden_activation"] = act
    add(name, "opt", keys, w, forward)


opt("opt", 3171)
opt("opt-narrow", 3172, {"word_embedding_length": 28, "do_layer_norm_before": False, "hidden_activation": "relu"}, last=False)
opt("opt-galactica", 3173, {"rope.freq_base": 20000.0}, tied=False, bias=False, affine=False, act="gelu")
opt("opt-no-last-norm", 3174, {"do_layer_norm_before": True, "remove_final_layer_norm": True}, last=False, act="gelu")
opt("opt-narrow-before", 3175, {"word_embedding_length": 56}, tied=False)
