"""GPT-NeoX, Pythia (Black et al. 2022; modeling_gpt_neox): parallel or in turn, LayerNorm, partial rotation, biases."""
from nano import Weights, add, keys_of


def gptneox(name, seed, more, tied=False):
    n_embd, n_head, n_ff = 48, 4, 92
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.matrix(b + "attn_qkv", 3 * n_embd, n_embd, gain=1.5, bias=True)
        w.matrix(b + "attn_output", n_embd, n_embd, bias=True)
        w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "gptneox", {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


gptneox("gptneox", 2031, {"rope.dimension_count": 4, "use_parallel_residual": True, "rope.freq_base": 300.0})
gptneox("gptneox-in-turn", 2032, {"rope.dimension_count": 6, "use_parallel_residual": False})
gptneox("gptneox-defaults", 2033, {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, tied=True)
