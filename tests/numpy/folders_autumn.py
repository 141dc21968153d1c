"""Folders of families that an indexer, states and streams of residual rows make, whose rows in ./recorded.txt transformers gave (../real/folder_logits.py). For ./folders.py."""
from folders import N_EMBD, N_HEAD
from folders_experts import CLASSES as EXPERTS
from folders_late import put, without

INDEX = {"index_topk": 5, "index_n_heads": 12, "index_head_dim": 12}


def sparse_weights(c, w):
    """DeepSeek 3's, and an indexer in the layers that choose rows."""
    EXPERTS["DeepseekV3ForCausalLM"][1](c, w)
    without(w, "model.layers.3.enorm")
    for l in range(c["num_hidden_layers"]):
        if c.get("indexer_types", ["full"] * 3)[l] == "full":
            put(w, f"model.layers.{l}.self_attn.indexer.", {"wq_b": (c["index_n_heads"] * c["index_head_dim"], c["q_lora_rank"]), "wk": (c["index_head_dim"], N_EMBD),
                                                            "k_norm": c["index_head_dim"], "k_norm.bias!": c["index_head_dim"], "weights_proj": (c["index_n_heads"], N_EMBD)})


def sparse(kind, **more):
    base = {key: value for key, value in EXPERTS["DeepseekV3ForCausalLM"][0].items() if key not in ("scoring_func", "topk_method", "num_nextn_predict_layers")}
    return {**base, "model_type": kind, "num_key_value_heads": N_HEAD, "rms_norm_eps": 1e-6, **INDEX, **more}, sparse_weights, ["default", "yarn-latent"]


CLASSES = {
    "DeepseekV32ForCausalLM": sparse("deepseek_v32"),
    "GlmMoeDsaForCausalLM": sparse("glm_moe_dsa", indexer_types=["full", "shared", "full"]),
}
