"""The talker of Qwen3-TTS (Qwen Team 2026): Qwen 3, whose output has the 3072 tokens of the codec, the last ones of the vocabulary."""
from kin import *

N_CODEC = 3072


def model(name, seed, more={}, n_text=20):
    def vocabulary(w):
        w.put("token_embd.weight", 0.25 * w.random.normal(size=(n_text + N_CODEC, N_EMBD)))
        w.put("output.weight", 0.25 * w.random.normal(size=(N_CODEC, N_EMBD)))

    kin(name, "qwen3tts", seed, more, qk_norm=True, whole=vocabulary)


model("qwen3tts", 1181)
model("qwen3tts-sections", 1182, {**sizes(16, 2), "rope.freq_base": 300.0, "rope.dimension_sections": [3, 3, 2, 0], "n_deepstack_layers": 0}, 7)
model("qwen3tts-yarn", 1183, {**sizes(14, 1), **YARN})
