"""GPT-Neo (Black et al. 2021; modeling_gpt_neo): GPT-2's block without the scale of the scores; local layers see the last window_size tokens."""
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_head, eps = k("attention.head_count"), k("attention.layer_norm_epsilon")
    near = k("attention.sliding_window_pattern")
    x = w["token_embd.weight"][tokens] + w["position_embd.weight"][: len(tokens)]
    for l in range(k("block_count")):
        b = layer(w, l)
        local = near[l] if isinstance(near, list) else (l + 1) % near != 0
        q, key, v = separate_qkv(b, layer_normed(b, x, "attn_norm", eps), n_head, n_head)
        a = attention(q, key, v, scale=1.0, window=k("attention.sliding_window") if local else None)
        x = x + dense(b, merge_heads(a), "attn_output")
        x = x + gelu_feed_forward(b, layer_normed(b, x, "ffn_norm", eps))
    return tied_output(w, final_norm(w, x, eps))


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
    add(name, "gptneo", {**keys_of(n_layer, n_embd, n_ff, n_head, 1e-2, True), **more}, w, forward)


gptneo("gptneo", 3181, {"attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True, False]})
gptneo("gptneo-untied", 3182, {"attention.sliding_window": 7, "attention.sliding_window_pattern": [True, True, False], "rope.freq_base": 20000.0}, False)
gptneo("gptneo-global", 3183, {"attention.sliding_window": 6, "attention.sliding_window_pattern": [False, False, False]})
