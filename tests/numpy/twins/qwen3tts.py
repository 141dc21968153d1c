"""The talker of Qwen3-TTS (Qwen Team 2026): Qwen 3, whose output has the 3072 tokens of the codec, the last ones of the vocabulary."""
from families import swiglu
from kin import *

N_CODEC = 3072


def qwen3tts(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, head_size(k))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        x = x + project(b, "attn_output", merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    scores = linear(rms_norm(x, w["output_norm.weight"], eps), w["output.weight"])
    text = np.full((len(scores), len(w["token_embd.weight"]) - N_CODEC), -np.inf)
    return np.concatenate([text, scores], axis=1)


def model(name, seed, more={}, n_text=20):
    def vocabulary(w):
        w.put("token_embd.weight", 0.25 * w.random.normal(size=(n_text + N_CODEC, N_EMBD)))
        w.put("output.weight", 0.25 * w.random.normal(size=(N_CODEC, N_EMBD)))

    kin(name, "qwen3tts", qwen3tts, seed, more, qk_norm=True, whole=vocabulary)


model("qwen3tts", 1181)
model("qwen3tts-sections", 1182, {**sizes(16, 2), "rope.freq_base": 300.0, "rope.dimension_sections": [3, 3, 2, 0], "n_deepstack_layers": 0}, 7)
model("qwen3tts-yarn", 1183, {**sizes(14, 1), **YARN})
