"""NeoBERT (Le Breton et al. 2025; the authors' model.py): RMS norms before each part, rotated pairs, SwiGLU in one matrix."""
from encoders import *


def model(name, seed, more={}, output="none", n_labels=0, bias=True, pooled=True, fused=True):
    def feed(w, l):
        w.matrix(f"blk.{l}.ffn_up", 2 * N_FF, N_EMBD)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2)
    w = llama_weights(seed, feed=feed, parts=fuse_qkv if fused else lambda w, l: None)
    w.put("enc.output_norm.weight", w.pop("output_norm.weight"))
    if output == "rank":
        head(w, n_labels, bias, pooled)
    encoder(name, "neo-bert", {**keys_of(2, N_EMBD, N_FF, 4, EPS), **more}, w, None, output)


model("neo-bert", 3201, {"attention.causal": False, "rope.scaling.type": "none"})
model("neo-bert-rank", 3202, {**labels(3), "rope.freq_base": 300.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0}, "rank", 3, fused=False)
model("neo-bert-dense-rank", 3203, {}, "rank", bias=False)
model("neo-bert-direct-rank", 3204, {**labels(2), "rope.scaling.attn_factor": 1.4}, "rank", 2, bias=False, pooled=False)
