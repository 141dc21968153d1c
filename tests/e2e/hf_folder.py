"""Makes Hugging Face folders of tests/data/stories-qwen3.gguf. For tests; standard library only."""
import json, os, shutil, struct

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


def read_safetensors(file):
    """name -> (type, shape, bytes)."""
    with open(file, "rb") as f:
        data = f.read()
    start = 8 + struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:start])
    return {name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]]) for name, t in head.items()}


def bf16(x):
    return struct.pack("<f", x)[2:]


def to_mlx(shape, data, group=32):
    """The matrix as MLX has it: eight 4-bit codes in a word, and scale and bias for each group."""
    x = struct.unpack(f"<{len(data) // 2}f", b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2)))
    words, scales, biases = [], b"", b""
    for k in range(0, len(x), group):
        low, high = min(x[k:k + group]), max(x[k:k + group])
        scale = (high - low) / 15 or 1
        codes = [round((v - low) / scale) for v in x[k:k + group]]
        words += [sum(c << 4 * i for i, c in enumerate(codes[j:j + 8])) for j in range(0, group, 8)]
        scales, biases = scales + bf16(scale), biases + bf16(low)
    rows, columns = shape
    return {"weight": ("U32", [rows, columns // 8], struct.pack(f"<{len(words)}I", *words)),
            "scales": ("BF16", [rows, columns // group], scales), "biases": ("BF16", [rows, columns // group], biases)}


def make_mlx_folder(folder, to):
    """Writes the folder with a matrix that is quantized as MLX does it, in one file with an index, as MLX writes it."""
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors.update(read_safetensors(os.path.join(folder, name)))
    stem = "model.layers.0.mlp.up_proj"
    _, shape, data = tensors.pop(stem + ".weight")
    tensors.update({f"{stem}.{what}": t for what, t in to_mlx(shape, data).items()})
    os.mkdir(to)
    write_safetensors(to + "/model.safetensors", tensors)
    write_json(to + "/model.safetensors.index.json", {"weight_map": {name: "model.safetensors" for name in tensors}})
    with open(folder + "/config.json", encoding="utf-8") as f:
        write_json(to + "/config.json", {**json.load(f), "quantization": {"group_size": 32, "bits": 4}})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(folder, name), to)
