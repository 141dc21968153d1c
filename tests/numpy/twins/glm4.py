"""GLM 4 (transformers' modeling_glm4.py): norms around each part, a part of each head rotated, gate and up in one matrix."""
from kin import *
from nano import guess


def glm4(k, w, tokens, n_ctx):
    eps, halves = k("attention.layer_norm_rms_epsilon"), k("rope.dimension_sections", [0, 0])[1] > 0
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, halves, mag), rotate(key, theta, halves, mag), v)
        x = x + rms_norm(project(b, "attn_output", merge_heads(a)), b("post_attention_norm"), eps)
        gate, up = np.split(project(b, "ffn_up", rms_norm(x, b("ffn_norm"), eps)), 2, axis=-1)
        x = x + rms_norm(project(b, "ffn_down", silu(gate) * up), b("post_ffw_norm"), eps)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more={}, drafts=0, **named):
    def parts(w, l):
        w.matrix(f"blk.{l}.ffn_up", 2 * N_FF, N_EMBD)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2)

    case = kin(name, "glm4", glm4, seed, more, norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
               feed_forward="none", parts=parts, **named)
    case.keys["block_count"] += drafts
    for l in range(case.keys["block_count"] - drafts, case.keys["block_count"]):
        case.tensors.norm(f"blk.{l}.attn_norm", N_EMBD)


model("glm4", 271, {"rope.dimension_count": 6}, tied=False)
model("glm4-yarn", 272, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 8, "nextn_predict_layers": 0}, bias="qkv")
model("glm4-sections", 273, {**sizes(16, 1), "rope.dimension_sections": [2, 1, 1, 0], "nextn_predict_layers": 2}, drafts=2)
guess("glm4-sections")
model("glm4-no-sections", 274, {"rope.dimension_sections": [3, 0, 0, 0]})
