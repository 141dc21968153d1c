"""Folders of DeepSeek V4 as its authors publish them, for ./folders.py: their own names of tensors, experts in FP4, other matrices in FP8,
both with powers of two as factors, the table of token-chosen experts in I64, and draft layers beside."""
from folders import *
from folders_more import FP8, Packed

RATIOS, N_HC, D, ROT, R_Q, R_O, N_GROUP, N_INDEX, D_INDEX, WIDE, N_EACH, N_EXPERT, N_USED = [0, 4, 8], 4, 16, 6, 32, 16, 2, 3, 12, 64, 32, 6, 2
CONFIG = {"hidden_size": WIDE, "num_hidden_layers": len(RATIOS), "vocab_size": N_VOCAB, "num_attention_heads": N_HEAD, "num_key_value_heads": 1, "head_dim": D,
          "qk_rope_head_dim": ROT, "q_lora_rank": R_Q, "o_lora_rank": R_O, "o_groups": N_GROUP, "sliding_window": 5, "compress_ratios": RATIOS + [0],
          "compress_rope_theta": 900.0, "index_n_heads": N_INDEX, "index_head_dim": D_INDEX, "index_topk": 2, "hc_mult": N_HC, "hc_sinkhorn_iters": 20,
          "hc_eps": 1e-3, "num_hash_layers": 1, "n_routed_experts": N_EXPERT, "n_shared_experts": 1, "num_experts_per_tok": N_USED,
          "moe_intermediate_size": N_EACH, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
          "swiglu_limit": 0.9, "num_nextn_predict_layers": 1, "rms_norm_eps": EPS, "max_position_embeddings": 128, "tie_word_embeddings": False,
          "hidden_act": "silu", "attention_bias": False, "theta": 300.0, "dspark_block_size": 5, "dspark_target_layer_ids": [0, 1]}


def weights(c, w):
    w.matrix("embed.weight", N_VOCAB, WIDE)
    w.matrix("head.weight", N_VOCAB, WIDE)
    w.vector("norm.weight", WIDE, 1.0)
    mixing(w, "hc_head_", N_HC, 1)
    w.vector("mtp.0.attn_norm.weight", WIDE)
    for l, ratio in enumerate(RATIOS):
        p = f"layers.{l}."
        for part in ("attn", "ffn"):
            mixing(w, f"{p}hc_{part}_", (2 + N_HC) * N_HC, 3)
            w.vector(f"{p}{part}_norm.weight", WIDE, 1.0)
        for name, *shape in (("wq_a", R_Q, WIDE), ("wq_b", N_HEAD * D, R_Q), ("wkv", D, WIDE), ("wo_a", N_GROUP * R_O, N_HEAD * D // N_GROUP),
                             ("wo_b", WIDE, N_GROUP * R_O)):
            w.matrix(f"{p}attn.{name}.weight", *shape)
        w.vector(p + "attn.q_norm.weight", R_Q, 1.0)
        w.vector(p + "attn.kv_norm.weight", D, 1.0)
        w.vector(p + "attn.attn_sink", N_HEAD)
        if ratio:
            compressor(w, p + "attn.compressor.", D * (1 + (ratio == 4)), D, ratio)
        if ratio == 4:
            w.matrix(p + "attn.indexer.wq_b.weight", N_INDEX * D_INDEX, R_Q)
            w.matrix(p + "attn.indexer.weights_proj.weight", N_INDEX, WIDE)
            compressor(w, p + "attn.indexer.compressor.", 2 * D_INDEX, D_INDEX, ratio)
        w.matrix(p + "ffn.gate.weight", N_EXPERT, WIDE)
        if l == 0:
            w[p + "ffn.gate.tid2eid"] = np.array([w.random.permutation(N_EXPERT)[:N_USED] for _ in range(N_VOCAB)], np.int64)
        else:
            w.vector(p + "ffn.gate.bias", N_EXPERT)
        for of in ["shared_experts."] + [f"experts.{e}." for e in range(N_EXPERT)]:
            for name, *shape in (("w1", N_EACH, WIDE), ("w3", N_EACH, WIDE), ("w2", WIDE, N_EACH)):
                w.matrix(f"{p}ffn.{of}{name}.weight", *shape)


def mixing(w, name, n, n_scale):
    w.matrix(name + "fn", n, N_HC * WIDE)
    w.vector(name + "base", n)
    w.vector(name + "scale", n_scale, 1.0)


def compressor(w, p, wide, n, ratio):
    w.matrix(p + "wkv.weight", wide, WIDE)
    w.matrix(p + "wgate.weight", wide, WIDE)
    w.matrix(p + "ape", ratio, wide)
    w.vector(p + "norm.weight", n, 1.0)


def packed_weights(c, w):
    """The same, experts rounded to FP4 with a factor for each 32 of a row, the matrices that are FP8 with one for 16 x 16."""
    weights(c, w)
    four = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6] + [-x for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)])
    eight = np.where(np.isnan(FP8), np.inf, FP8)
    for name, x in list(w.items()):
        experts = ".experts." in name
        if not experts and "shared_experts" not in name and not any(n in name for n in ("wq_a", "wq_b", "attn.wkv", "wo_a", "wo_b")):
            continue
        down, across = (1, 32) if experts else (16, 16)
        exponent = w.random.integers(124, 127, size=(-(-x.shape[0] // down), -(-x.shape[1] // across))) - (0 if experts else 5)
        factor = np.repeat(np.repeat(2.0 ** (exponent - 127), down, 0), across, 1)[: x.shape[0], : x.shape[1]]
        table = four if experts else eight
        codes = np.abs(table - (x / factor)[..., None]).argmin(-1)
        w[name] = table[codes] * factor
        w.blocks[name] = (codes, exponent, experts)


def published(w):
    out = dict(w)
    for name, (codes, exponent, experts) in w.blocks.items():
        data = (codes[:, 0::2] | codes[:, 1::2] << 4 if experts else codes).astype("u1")
        out[name] = Packed("I8" if experts else "F8_E4M3", data.shape, data)
        out[name[: -len("weight")] + "scale"] = Packed("F8_E8M0", exponent.shape, exponent.astype("u1"))
    for name, x in w.items():
        if x.dtype == np.int64:
            out[name] = Packed("I64", x.shape, np.frombuffer(x.astype("<i8").tobytes(), np.uint8))
    return out


def write(own):
    """transformers 5 has the two rotations apart."""
    if "rope_parameters" not in own:
        return own
    far = own.pop("rope_parameters")
    return {**own, "rope_parameters": {"main": {"rope_type": "default", "rope_theta": far["rope_theta"]},
                                       "compress": {**far, "rope_theta": own["compress_rope_theta"]}}}


FP8_CONFIG = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "scale_fmt": "ue8m0", "weight_block_size": [16, 16]}
CLASSES = {
    "DeepseekV4ForCausalLM": ({**CONFIG, "layout": published, "write": write}, weights, ["default", "yarn"]),
    "DeepseekV4ForCausalLM FP4": ({**CONFIG, "type": "f32", "layout": published, "write": write, "expert_dtype": "fp4", "quantization_config": FP8_CONFIG},
                                  packed_weights, ["default"]),
}
