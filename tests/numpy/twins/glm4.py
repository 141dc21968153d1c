"""GLM 4 (transformers' modeling_glm4.py): norms around each part, a part of each head rotated, gate and up in one matrix."""
from kin import *
from nano import CASES, guess


def model(name, seed, more={}, drafts=0, **named):
    def parts(w, l):
        w.matrix(f"blk.{l}.ffn_up", 2 * N_FF, N_EMBD)
        w.matrix(f"blk.{l}.ffn_down", N_EMBD, N_FF, gain=2)

    case = kin(name, "glm4", seed, more, norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
               feed_forward="none", parts=parts, **named)
    case.keys["block_count"] += drafts
    for l in range(case.keys["block_count"] - drafts, case.keys["block_count"]):
        case.tensors.norm(f"blk.{l}.attn_norm", N_EMBD)


model("glm4", 271, {"rope.dimension_count": 6}, tied=False)
model("glm4-yarn", 272, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 8, "nextn_predict_layers": 0}, bias="qkv")
model("glm4-sections", 273, {**sizes(16, 1), "rope.dimension_sections": [2, 1, 1, 0], "nextn_predict_layers": 2}, drafts=2)
guess("glm4-sections")
model("glm4-no-sections", 274, {"rope.dimension_sections": [3, 0, 0, 0]})


def ollamas(name, like):
    """The model of another case as Ollama names its tensors: with two matrices, and in the second layer the names of its first files."""
    base, first = CASES[like], {"attn_output": "attn_out", "post_attention_norm": "post_attn_norm", "post_ffw_norm": "post_ffn_norm"}
    w = {}
    for tensor, x in base.tensors.items():
        for new, old in first.items() if tensor.startswith("blk.1.") else ():
            tensor = tensor.replace(new, old)
        if "ffn_up" in tensor:
            w[tensor.replace("ffn_up", "ffn_gate")], x = np.split(x, 2)
        w[tensor] = x
    keys = {key: value for key, value in base.keys.items() if key != "rope.dimension_sections"}
    add(name, "glmocr", {**keys, "rope.mrope_section": base.keys["rope.dimension_sections"][:3], "rope.partial_rotary_factor": 1.0}, w, None).outputs = base.outputs


ollamas("glmocr", "glm4-sections")
