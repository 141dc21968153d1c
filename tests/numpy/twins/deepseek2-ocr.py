"""The text part of DeepSeek-OCR (DeepSeek-AI 2025): DeepSeek MoE with heads of width / heads, after the authors' modeling_deepseekocr.py."""
from mixtures import *


def deepseek_ocr(k, w, tokens, n_ctx):
    theta = inverse_frequencies(k("embedding_length") // k("attention.head_count"), 10000.0)

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        return output_of(b, attention(rotate(q, theta, True), rotate(key, theta, True), v))

    def feed(b, h, l):
        return swiglu(b, h) if l < k("leading_dense_block_count", 0) else routed(k, b, h) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


KEYS = {"expert_shared_count": 2}
nano("deepseek2-ocr", "deepseek2-ocr", 1171, deepseek_ocr, {**KEYS, "leading_dense_block_count": 1, "rope.freq_base": 10000.0, "attention.head_count_kv": 4},
     n_dense=1, n_shared=44, choice_bias=True)
nano("deepseek2-ocr-plain", "deepseek2-ocr", 1172, deepseek_ocr, KEYS, n_shared=44, tied=True, fused=True)
