"""Folders of DeepSeek V4.1 as its authors publish them, for ./folders.py: values of the text in an object of their own, and a tokenizer, whose tokens say which rows
of the tables hashes choose. What numpy's generator draws is computed by numpy here."""
import re
import unicodedata

import nano
from folders import *
from folders_deepseek4 import mixing

RATIOS, N_HC, D, ROT, R_Q, R_O, N_GROUP, N_INDEX, D_INDEX, WIDE, N_EACH, N_EXPERT, N_USED = [0, 2, 2, 1, 1], 4, 16, 6, 32, 16, 2, 3, 12, 64, 32, 6, 2
TABLES, N_GRAM, N_HASH, D_HASH, FROM = [1, 2], 3, 2, 8, 90
BYTES = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
SPELLED = {b: chr(b) for b in BYTES} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in BYTES)}
WORDS = ["a", "A", " a", "á", "A\u0301", "b", " B ", "b\n\n", " ", "\n", "  ", "", "ß", "ﬁ", "FI", "fi", "Σ", "σ", "ς", "İ", "\ufffd", "Ａ", "ｂ", "é ", "E\u0301", "\ue000", "İx", "가", "가", "가", "x\u0300\u0300", "\u0300", "z", "Z", "ž", "Ź",
         "\t\r", " \ufb03", "½", "1⁄2"]
TEXTS = [w.encode() for w in dict.fromkeys(WORDS) if w] + [b"\xe2\x82", b"a\xff"]
TEXTS += [bytes([b]) for b in range(256) if bytes([b]) not in TEXTS] + [f"{kind}{i}".encode() for i in range(1100) for kind in (("n",) if i > 20 else ("n", " N"))]
SPECIAL = ["<｜begin▁of▁sentence｜>", "<S>", " a  "]
N = len(TEXTS) + len(SPECIAL)


def kinds():
    """For each token its number among those that differ otherwise than in case, accents and spaces."""
    seen, out = {}, []
    for text in TEXTS + [s.encode() for s in SPECIAL]:
        plain = text.decode(errors="replace")
        key = "".join(SPELLED[b] for b in text)
        if "\ufffd" not in plain:
            key = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", plain))
            key = "".join(c for c in key if unicodedata.category(c)[0] != "M").lower()
            key = re.sub("[ \t\r\n]+", " ", key)
            key = (" " if key == " " else key.strip()).replace("\ue000", " ") or plain
        out.append(seen.setdefault(key, len(seen)))
    return out


def tokenizer():
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": len(TEXTS) + i, "content": t, "special": i == 0, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, t in enumerate(SPECIAL)]
    return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": step, "post_processor": None, "decoder": step,
            "model": {"type": "BPE", "vocab": {"".join(SPELLED[b] for b in t): i for i, t in enumerate(TEXTS)}, "merges": []}}


PRIMES = [x for x in range(FROM, 200) if all(x % y for y in range(2, 15))][: len(TABLES) * (N_GRAM - 1) * N_HASH]
ROWS = [sum(PRIMES[i : i + (N_GRAM - 1) * N_HASH]) for i in range(0, len(PRIMES), (N_GRAM - 1) * N_HASH)]
CONFIG = {"hidden_size": WIDE, "num_hidden_layers": len(RATIOS), "vocab_size": N, "num_attention_heads": N_HEAD, "num_key_value_heads": 1, "head_dim": D,
          "qk_rope_head_dim": ROT, "q_lora_rank": R_Q, "o_lora_rank": R_O, "o_groups": N_GROUP, "sliding_window": 5, "compress_ratios": RATIOS + [0], "kv_source_layer_ids": [1, 3],
          "index_source_layer_ids": [1, 3, 4], "candidate_source_layer_id": 3, "candidate_topk_blocks": 64, "candidate_block_size": 8,
          "compress_rope_theta": 900.0, "index_n_heads": N_INDEX, "index_head_dim": D_INDEX, "index_topk": 2, "hc_mult": N_HC, "hc_sinkhorn_iters": 20,
          "hc_eps": 1e-3, "n_routed_experts": N_EXPERT, "n_shared_experts": 1, "num_experts_per_tok": N_USED,
          "moe_intermediate_size": N_EACH, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
          "swiglu_limit": 0.9, "num_nextn_predict_layers": 1, "rms_norm_eps": EPS, "max_position_embeddings": 128, "tie_word_embeddings": False,
          "hidden_act": "silu", "attention_bias": False, "theta": 300.0, "gate_temp": 1.0, "engram_layer_ids": TABLES, "engram_num_embeddings": ROWS, "engram_vocab_size": FROM,
          "engram_max_ngram_size": N_GRAM, "engram_n_heads": N_HASH, "engram_head_dim": D_HASH, "engram_pad_id": 2, "engram_compressed_vocab_size": len(set(kinds())),
          "dspark_block_size": 5, "dspark_target_layer_ids": [2, 3, 4]}
NAMES = {"attn.wq_a.weight": "attn_q_a", "attn.wq_b.weight": "attn_q_b", "attn.wkv.weight": "attn_kv", "attn.wo_a.weight": "attn_output_a", "attn.wo_b.weight": "attn_output_b",
         "attn.q_norm.weight": "attn_q_a_norm", "attn.kv_norm.weight": "attn_kv_a_norm", "attn.attn_sink": "attn_sinks", "attn.compressor.wkv.weight": "attn_compressor_kv",
         "attn.compressor.wgate.weight": "attn_compressor_gate", "attn.compressor.norm.weight": "attn_compressor_norm", "attn.indexer.wk.weight": "indexer.attn_k",
         "attn.indexer.k_norm.weight": "indexer.k_norm", "attn.indexer.wq_b.weight": "indexer.attn_q_b", "attn.indexer.weights_proj.weight": "indexer.proj",
         "engram.embed.weight": "engram_embd", "engram.wkv.weight": "engram_wkv", "engram.q_weight": "engram_q", "engram.k_weight": "engram_k", "ffn.gate.weight": "ffn_gate_inp",
         **{f"ffn.shared_experts.w{i}.weight": f"ffn_{name}_shexp" for i, name in ((1, "gate"), (3, "up"), (2, "down"))}, "attn_norm.weight": "attn_norm", "ffn_norm.weight": "ffn_norm",
         **{f"hc_{part}_{name}": f"hc_{part}_{name}" for part in ("attn", "ffn") for name in ("fn", "base", "scale")}}


def weights(c, w):
    w.matrix("embed.weight", N, WIDE)
    w.matrix("head.weight", N, WIDE)
    w.vector("norm.weight", WIDE, 1.0)
    w.vector("mtp.0.attn_norm.weight", WIDE)
    w.vector("image_start", WIDE)
    for l, ratio in enumerate(RATIOS):
        p = f"layers.{l}."
        for part in ("attn", "ffn"):
            mixing(w, f"{p}hc_{part}_", (2 + N_HC) * N_HC, 3)
            w.vector(f"{p}{part}_norm.weight", WIDE, 1.0)
        shapes = {"attn.wq_a": (R_Q, WIDE), "attn.wq_b": (N_HEAD * D, R_Q), "attn.wkv": (D, WIDE), "attn.wo_a": (N_GROUP * R_O, N_HEAD * D // N_GROUP), "attn.wo_b": (WIDE, N_GROUP * R_O),
                  "ffn.gate": (N_EXPERT, WIDE)}
        for of in ["shared_experts."] + [f"experts.{e}." for e in range(N_EXPERT)]:
            shapes |= {f"ffn.{of}w1": (N_EACH, WIDE), f"ffn.{of}w3": (N_EACH, WIDE), f"ffn.{of}w2": (WIDE, N_EACH)}
        norms = {"attn.q_norm": R_Q, "attn.kv_norm": D}
        if l in c["kv_source_layer_ids"]:
            shapes |= {"attn.compressor.wkv": (D, WIDE), "attn.indexer.wk": (D_INDEX, D)} | ({"attn.compressor.wgate": (D, WIDE)} if ratio > 1 else {})
            norms |= {"attn.compressor.norm": D, "attn.indexer.k_norm": D_INDEX}
        if l in c["index_source_layer_ids"]:
            shapes |= {"attn.indexer.wq_b": (N_INDEX * D_INDEX, R_Q), "attn.indexer.weights_proj": (N_INDEX, WIDE)}
        if l in TABLES:
            shapes |= {"engram.embed": (ROWS[TABLES.index(l)], D_HASH), "engram.wkv": ((N_HC + 1) * WIDE, (N_GRAM - 1) * N_HASH * D_HASH)}
            for name in "qk":
                w.vector(f"{p}engram.{name}_weight", (N_HC, WIDE), 1.0)
        for name, shape in shapes.items():
            w.matrix(f"{p}{name}.weight", *shape)
        for name, n in norms.items():
            w.vector(f"{p}{name}.weight", n, 1.0)
        w.vector(p + "attn.attn_sink", N_HEAD)
        w.vector(p + "ffn.gate.bias", N_EXPERT)
        w.vector(p + "ffn.gate.bias_vl", N_EXPERT)


def forward(c, w, n_ctx):
    """The twin's, of the same weights by their names in a file."""
    nano.load_family("deepseek41")
    out = {"token_embd.weight": w["embed.weight"], "output.weight": w["head.weight"], "output_norm.weight": w["norm.weight"]}
    for l in range(len(RATIOS)):
        p, b = f"layers.{l}.", f"blk.{l}."
        out.update({f"{b}{name}.weight": w[p + theirs] for theirs, name in NAMES.items() if p + theirs in w})
        out[b + "exp_probs_b.bias"] = w[p + "ffn.gate.bias"]
        for i, name in ((1, "gate"), (3, "up"), (2, "down")):
            out[f"{b}ffn_{name}_exps.weight"] = np.stack([w[f"{p}ffn.experts.{e}.w{i}.weight"] for e in range(N_EXPERT)])
    alike, by = kinds(), []
    for l in TABLES:
        by += [int(x) * 2 + 1 for x in np.random.default_rng(10007 * l).integers(0, (2**63 - 1) // len(set(alike)) // 2, N_GRAM)]
    rope = c["rope"]
    keys = {"attention.layer_norm_rms_epsilon": EPS, "attention.head_count": N_HEAD, "attention.key_length": D, "rope.dimension_count": ROT, "block_count": len(RATIOS),
            "attention.compress_rope_freq_base": 900.0, "rope.freq_base": 300.0, "attention.compress_ratios": RATIOS, "attention.indexer.head_count": N_INDEX,
            "attention.indexer.key_length": D_INDEX, "attention.indexer.top_k": 2, "attention.sliding_window": 5, "attention.output_group_count": N_GROUP,
            "hyper_connection.epsilon": 1e-3, "hyper_connection.sinkhorn_iterations": 20, "expert_used_count": N_USED, "expert_weights_scale": 1.5,
            "swiglu_clamp_exp": [0.9] * len(RATIOS), "engram.layer_ids": TABLES, "engram.max_ngram_size": N_GRAM, "engram.head_count": N_HASH, "engram.multipliers": by,
            "engram.primes": PRIMES, "engram.offsets": [sum(PRIMES[i - i % 4 : i]) for i in range(len(PRIMES))], "engram.token_map": alike, "engram.pad_id": alike[2],
            **({"rope.scaling.type": "yarn", "rope.scaling.factor": rope["factor"], "rope.scaling.original_context_length": rope["original_max_position_embeddings"]} if rope.get("rope_type") == "yarn" else {})}
    return nano.CASES["deepseek41"].forward(lambda name, *rest: keys.get(name, *rest) if rest else keys[name], out, TOKENS, n_ctx)


def write(own):
    """As published: the values of the text in an object of their own. transformers 5 has the two rotations apart."""
    if "rope_parameters" in own:
        far = own.pop("rope_parameters")
        own = {**own, "rope_parameters": {"main": {"rope_type": "default", "rope_theta": far["rope_theta"]}, "compress": {**far, "rope_theta": own["compress_rope_theta"]}}}
    return {"model_type": "deepseek_v41", "image_token_id": 30, "vision_config": {"hidden_size": 16}, "text_config": own}


FILES = {"tokenizer.json": tokenizer(), "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": "<S>"}}
CLASSES = {"DeepseekV41ForCausalLM": ({**CONFIG, "write": write, "how": {"files": FILES}}, weights, ["default", "yarn"], forward)}
