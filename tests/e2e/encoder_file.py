"""Small encoders with random weights, as GGUF files: an embedding model with a wordpiece vocabulary, a reranker, and a classifier."""
import math
import random
import struct
import sys

import gguf_file

WORDS = "the a fox cat dog cake bread house garden pond sleeps eats runs sits in on and with small big red old happy story king queen".split()
DIM, FF, LAYERS, CONTEXT = 32, 64, 2, 48
SIZE = DIM, FF, LAYERS, CONTEXT, 4, 0.3    # .. heads, and how large weights are


def vocabulary():
    """Tokens as llama.cpp's converter writes those of BERT: a word begins with U+2581, and ## has been removed from the other pieces."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(c) for c in range(97, 123)]
    return special + ["\u2581" + w for w in WORDS + letters + list(".,?!")] + letters


def encoder(path, seed=1, labels=None, keys=(), size=SIZE, tokens=None, rows=None, second=None):
    """Writes a BERT. labels: of a classifier, or of a reranker if there is one; None: an embedding model with mean pooling. tokens: other
    ones than vocabulary(), which begin with the same special ones. rows: the embedding, a list of numbers for each token. second: the position from
    which on tokens are of a second text: their types are added to their positions, and the file knows no types."""
    rng = random.Random(seed)
    tokens = tokens or vocabulary()
    dim, ff, layers, context, heads, scale = size
    tensors = []

    def put(name, *shape, scale=scale, centre=0.0):
        n = 1
        for k in shape:
            n *= k
        tensors.append((name, "f32", list(shape), struct.pack(f"<{n}f", *(rng.gauss(centre, scale) for _ in range(n)))))

    def norm(name):
        put(name + ".weight", dim, scale=0.1, centre=1.0)
        put(name + ".bias", dim, scale=0.1)

    if rows is None:
        put("token_embd.weight", dim, len(tokens))
    else:
        tensors.append(("token_embd.weight", "f32", [dim, len(rows)], b"".join(struct.pack(f"<{dim}f", *row) for row in rows)))
    put("token_types.weight", dim, 2)
    put("position_embd.weight", dim, context, scale=0.05)
    if second is not None:
        kind, place = (struct.unpack(f"<{len(x[3]) // 4}f", x[3]) for x in tensors[-2:])
        moved = [x + kind[i % dim + (dim if i >= second * dim else 0)] for i, x in enumerate(place)]
        tensors[-2:] = [("position_embd.weight", "f32", [dim, context], struct.pack(f"<{len(moved)}f", *moved))]
    norm("token_embd_norm")
    for layer in range(layers):
        b = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            put(f"{b}{name}.weight", dim, dim)
            put(f"{b}{name}.bias", dim)
        norm(b + "attn_output_norm")
        put(b + "ffn_up.weight", dim, ff)
        put(b + "ffn_up.bias", ff)
        put(b + "ffn_down.weight", ff, dim)
        put(b + "ffn_down.bias", dim)
        norm(b + "layer_output_norm")
    if labels is not None:
        put("cls.weight", dim, dim)
        put("cls.bias", dim)
        put("cls.output.weight", dim, len(labels))
        put("cls.output.bias", len(labels))
    table = [("general.architecture", "string", "bert"), ("bert.context_length", "u32", context), ("bert.embedding_length", "u32", dim),
             ("bert.block_count", "u32", layers), ("bert.feed_forward_length", "u32", ff), ("bert.attention.head_count", "u32", heads),
             ("bert.attention.layer_norm_epsilon", "f32", 1e-6), ("bert.attention.causal", "bool", False),
             ("bert.pooling_type", "u32", 1 if labels is None else 4), ("tokenizer.ggml.token_type_count", "u32", 2), *tokenizer_keys(tokens)]
    if labels is not None:
        table.append(("bert.classifier.output_labels", "string", labels))
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(table + list(keys), tensors))
    return path


def table(path, modules=(), keys=()):
    """Writes a table of vectors with a factor for each token, as model2vec's are converted. modules: what follows the mean, as (kind, tensors)."""
    rng = random.Random(4)
    tokens = vocabulary()
    floats = lambda *ne: ("f32", list(ne), struct.pack(f"<{math.prod(ne)}f", *(rng.gauss(0.5, 1) for _ in range(math.prod(ne)))))
    tensors = [("token_embd.weight", *floats(DIM, len(tokens))), ("token_weight.weight", *floats(1, len(tokens)))]
    for k, (_, parts) in enumerate(modules):
        tensors += [(f"sentence.{k}.{name}", *floats(*ne)) for name, ne in parts.items()]
    own = [("general.architecture", "string", "static-embedding"), ("static-embedding.vocab_size", "u32", len(tokens)),
           ("static-embedding.embedding_length", "u32", DIM), ("static-embedding.pooling_type", "u32", 1), *tokenizer_keys(tokens),
           ("sentence_transformers.add_special_tokens", "bool", False), ("sentence_transformers.drop_unknown_tokens", "bool", True)]
    if modules:
        own.append(("sentence_transformers.modules", "string", [kind for kind, _ in modules]))
    with open(path, "wb") as f:
        f.write(gguf_file.gguf([*own, *keys], tensors))
    return path


def tokenizer_keys(tokens):
    return [("tokenizer.ggml.model", "string", "bert"), ("tokenizer.ggml.pre", "string", "jina-v2-en"),
            ("tokenizer.ggml.tokens", "string", tokens), ("tokenizer.ggml.token_type", "i32", [3] * 5 + [1] * (len(tokens) - 5)),
            ("tokenizer.ggml.bos_token_id", "u32", 2), ("tokenizer.ggml.eos_token_id", "u32", 3), ("tokenizer.ggml.unknown_token_id", "u32", 1),
            ("tokenizer.ggml.seperator_token_id", "u32", 3), ("tokenizer.ggml.padding_token_id", "u32", 0),
            ("tokenizer.ggml.cls_token_id", "u32", 2), ("tokenizer.ggml.mask_token_id", "u32", 4)]


def adapter(path, task, prompt, seed):
    """Writes an adapter for a task of encoder()'s model, which changes the queries of its first layer, and one row for all tokens."""
    rng = random.Random(seed)
    tensors = [(f"{name}.lora_{half}", "f32", [n, 2] if half == "a" else [2, n], struct.pack(f"<{2 * n}f", *(rng.gauss(0, 0.5) for _ in range(2 * n))))
               for name, a, b in (("blk.0.attn_q.weight", DIM, DIM), ("token_types.weight", DIM, 2)) for half, n in (("a", a), ("b", b))]
    keys = [("general.type", "string", "adapter"), ("adapter.type", "string", "lora"), ("general.architecture", "string", "bert"),
            ("adapter.lora.alpha", "f32", 4.0), ("adapter.lora.task_name", "string", task), ("adapter.lora.prompt_prefix", "string", prompt)]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys, tensors))
    return path


def read_npy(path):
    """(rows, columns, numbers as a list of rows) of an array that llm-embed has written."""
    import ast

    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<H", data, 8)[0]
    head = ast.literal_eval(data[10 : 10 + n].decode())
    assert data[:6] == b"\x93NUMPY" and head["descr"] == "<f4" and head["fortran_order"] is False, head
    rows, columns = head["shape"]
    values = struct.unpack_from(f"<{rows * columns}f", data, 10 + n)
    return rows, columns, [list(values[i * columns : (i + 1) * columns]) for i in range(rows)]


if __name__ == "__main__":  # encoder_file.py FILE: an embedding model
    encoder(sys.argv[1])
