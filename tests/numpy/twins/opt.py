"""OPT (Zhang et al. 2022; modeling_opt), Galactica (Taylor et al. 2022): learned positions, LayerNorm before or after each part, ReLU or exact
GELU, in OPT 350M embeddings of another width than the layers."""
from kin import N_EMBD, N_FF, N_HEAD, N_VOCAB
from nano import Weights, add, keys_of


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
    add(name, "opt", keys, w)


opt("opt", 3171)
opt("opt-narrow", 3172, {"word_embedding_length": 28, "do_layer_norm_before": False, "hidden_activation": "relu"}, last=False)
opt("opt-galactica", 3173, {"rope.freq_base": 20000.0}, tied=False, bias=False, affine=False, act="gelu")
opt("opt-no-last-norm", 3174, {"do_layer_norm_before": True, "remove_final_layer_norm": True}, last=False, act="gelu")
opt("opt-narrow-before", 3175, {"word_embedding_length": 56}, tied=False)
