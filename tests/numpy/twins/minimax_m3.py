"""MiniMax M3 (MiniMax 2026, text), after the authors' graph in llama.cpp, where the blocks that are chosen are all there are."""
from mixtures import *


def model(name, seed, more, index=None, **named):
    """index: how the files name what belongs to the indexer."""
    def parts(w, l):
        for of in ("exps", "shexp"):  # so that both limits are met
            for part in ("gate", "up"):
                if f"blk.{l}.ffn_{part}_{of}.weight" in w:
                    w[f"blk.{l}.ffn_{part}_{of}.weight"] *= 4
        for part in ("gate", "up"):
            if f"blk.{l}.ffn_{part}.weight" in w:
                w[f"blk.{l}.ffn_{part}.weight"] *= 4
        if index and f"blk.{l}.ffn_gate_inp.weight" in w:
            for part, n in (("q_proj", 24), ("k_proj", 12)):
                w.matrix(f"blk.{l}.{index}{part}", n, 48)
            for part in "qk":
                w.norm(f"blk.{l}.{index}{part}_norm", 12)

    nano(name, "minimax-m3", seed, {"expert_shared_count": 1, **more}, n_shared=22 * more.get("expert_shared_count", 1),
         qk_norm="head", extra=parts, **named)


model("minimax-m3", 1821, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 8,
      "rope.freq_base": 300.0, "leading_dense_block_count": 1, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.0,
      "attention.indexer.head_count": 2, "attention.indexer.key_length": 12, "attention.indexer.top_k": 4,
      "attention.indexer.block_size": 16, "attention.indexer.local_blocks": 1}, "indexer.", n_kv=2, d=14, n_dense=1, n_layer=3, choice_bias=True)
model("minimax-m3-plain", 1822, {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_shared_count": 2}, "index_", fused=True, tied=True)
model("minimax-m3-softmax", 1823, {"expert_gating_func": 1})
