"""GPT-Neo (Black et al. 2021; modeling_gpt_neo): GPT-2's block without the scale of the scores; local layers see the last window_size tokens."""
from nano import Weights, add, keys_of


def gptneo(name, seed, more, tied=True):
    n_embd, n_head, n_ff, n_layer = 48, 4, 92, 3
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, n_embd)))
    for l in range(n_layer):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.attention(l, n_embd, n_head, n_head, n_embd // n_head, bias="o")
        w.norm(b + "ffn_norm", n_embd, True)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, "gptneo", {**keys_of(n_layer, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


gptneo("gptneo", 3181, {"attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True, False]})
gptneo("gptneo-untied", 3182, {"attention.sliding_window": 7, "attention.sliding_window_pattern": [True, True, False], "rope.freq_base": 20000.0}, False)
gptneo("gptneo-global", 3183, {"attention.sliding_window": 6, "attention.sliding_window_pattern": [False, False, False]})
