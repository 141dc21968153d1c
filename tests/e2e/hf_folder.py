"""Makes a Hugging Face folder of tests/data/stories-qwen3.gguf. For tests; standard library only."""
import os, struct

from checks import write_json, write_safetensors
from gguf_file import read_gguf

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_output": "self_attn.o_proj",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def to_bf16(kind, shape, data):
    """The numbers of an f32 or q8_0 tensor as BF16, to the nearest even."""
    n = 1
    for d in shape:
        n *= d
    if kind == 0:
        numbers = struct.unpack_from(f"<{n}f", data)
    else:
        numbers = []
        for k in range(n // 32):
            scale, *q = struct.unpack_from("<e32b", data, k * 34)
            numbers += [scale * x for x in q]
    bits = struct.unpack(f"<{n}I", struct.pack(f"<{n}f", *numbers))
    return struct.pack(f"<{n}H", *[(b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits])


def make_folder(model, folder):
    """Writes a model of Qwen 3 as a folder whose weights are BF16, in two files without an index."""
    keys, tensors = read_gguf(model)
    key = lambda name: keys["qwen3." + name]
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    named = {}
    for name, (kind, shape, data) in tensors.items():
        stem = name[:-len(".weight")]
        if stem.startswith("blk."):
            _, layer, what = stem.split(".")
            stem = f"model.layers.{layer}.{LAYER[what]}"
        named[names.get(stem, stem) + ".weight"] = ("BF16", shape[::-1], to_bf16(kind, shape, data))
    os.mkdir(folder)
    half = len(named) // 2  # a model in two files
    write_safetensors(folder + "/model-00001-of-00002.safetensors", dict(list(named.items())[:half]))
    write_safetensors(folder + "/model-00002-of-00002.safetensors", dict(list(named.items())[half:]))
    tokens = keys["tokenizer.ggml.tokens"]
    special = [i for i, kind in enumerate(keys["tokenizer.ggml.token_type"]) if kind == 3]
    files = {"config.json": {
        "architectures": ["Qwen3ForCausalLM"], "vocab_size": len(tokens), "hidden_size": key("embedding_length"),
        "num_hidden_layers": key("block_count"), "intermediate_size": key("feed_forward_length"),
        "num_attention_heads": key("attention.head_count"), "num_key_value_heads": key("attention.head_count_kv"),
        "head_dim": key("attention.key_length"), "max_position_embeddings": key("context_length"), "rms_norm_eps": 1e-6,
        "rope_theta": key("rope.freq_base"), "hidden_act": "silu", "tie_word_embeddings": True,
        "eos_token_id": keys["tokenizer.ggml.eos_token_id"]},
        "tokenizer.json": {
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
            "added_tokens": [{"id": i, "content": tokens[i], "special": True} for i in special],
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens) if i not in special},
                      "merges": keys["tokenizer.ggml.merges"]}},
        "tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "eos_token": tokens[keys["tokenizer.ggml.eos_token_id"]],
                                  "chat_template": "{% for m in messages %}{{ m.content }}\n{% endfor %}"}}
    for name, value in files.items():
        write_json(os.path.join(folder, name), value)
