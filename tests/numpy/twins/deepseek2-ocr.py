"""The text part of DeepSeek-OCR (DeepSeek-AI 2025): DeepSeek MoE with heads of width / heads, after the authors' modeling_deepseekocr.py."""
from mixtures import *


KEYS = {"expert_shared_count": 2}
nano("deepseek2-ocr", "deepseek2-ocr", 1171, {**KEYS, "leading_dense_block_count": 1, "rope.freq_base": 10000.0, "attention.head_count_kv": 4, "rope.dimension_count": 0, "attention.sliding_window": 6},
     n_dense=1, n_shared=44, choice_bias=True)
nano("deepseek2-ocr-plain", "deepseek2-ocr", 1172, KEYS, n_shared=44, tied=True, fused=True)
