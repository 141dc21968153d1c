"""OLMo 2 and 3 (Team OLMo 2024, 2025; transformers' modeling_olmo3.py): norms after each part, of Q and K over the whole row."""
from kin import *


def model(name, arch, seed, more={}, **named):
    def parts(w, l):
        w.norm(f"blk.{l}.attn_q_norm", N_HEAD * (more.get("attention.key_length") or N_EMBD // N_HEAD))
        w.norm(f"blk.{l}.attn_k_norm", (more.get("attention.head_count_kv") or N_HEAD) * (more.get("attention.key_length") or 12))

    kin(name, arch, seed, more, norms=("post_attention_norm", "post_ffw_norm"), parts=parts, **named)


three = {"attention.sliding_window": 6, **YARN}
model("olmo2", "olmo2", 261, {"rope.freq_base": 300.0}, tied=False)
model("olmo2-gqa", "olmo2", 262, {**sizes(14, 2, 10), "attention.sliding_window": 0})
model("olmo2-three", "olmo2", 263, {**three, **sizes(None, 2), "attention.sliding_window_pattern": [True, False, True],
                                    "rope.scaling.yarn_attn_factor": 1.2079}, n_layer=3)
model("olmo3", "olmo3", 264, {**three, "rope.scaling.attn_factor": 1 + 0.1 * math.log(4), "rope.freq_base_swa": 20.0}, n_layer=5)
model("olmo3-period", "olmo3", 265, {**three, "rope.scaling.attn_factor": 0.8, "attention.sliding_window_pattern": 2}, n_layer=3)
