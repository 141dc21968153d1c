"""Makes checkpoints of llama2.c, versions 0, 1 and 2, of a small Llama of random weights. For tests; standard library only."""
import array, random, struct

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ, GROUP = 64, 96, 2, 4, 2, 262, 48, 32
KV = DIM // HEADS * KV_HEADS
HEADER = [DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ]
SHAPES = {"attention_norm": [DIM], "attention.wq": [DIM, DIM], "attention.wk": [KV, DIM], "attention.wv": [KV, DIM],
          "attention.wo": [DIM, DIM], "ffn_norm": [DIM], "feed_forward.w1": [HIDDEN, DIM], "feed_forward.w2": [DIM, HIDDEN],
          "feed_forward.w3": [HIDDEN, DIM]}


def numbers(n, rng, around=0.0):
    return array.array("f", [around + rng.uniform(-0.3, 0.3) for _ in range(n)])


def make_weights():
    rng = random.Random(7)
    w = {"tok_embeddings": ([VOCAB, DIM], numbers(VOCAB * DIM, rng)), "norm": ([DIM], numbers(DIM, rng, 1)),
         "output": ([VOCAB, DIM], numbers(VOCAB * DIM, rng))}
    for k in range(LAYERS):
        for name, shape in SHAPES.items():
            n = shape[0] * (shape[1] if len(shape) > 1 else 1)
            w[f"layers.{k}.{name}"] = (shape, numbers(n, rng, 1 if len(shape) == 1 else 0))
    return w


def all_layers(*names):
    return [f"layers.{k}.{name}" for name in names for k in range(LAYERS)]


MATRICES = ["attention.wq", "attention.wk", "attention.wv", "attention.wo", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3"]


def version_0(w, shared):
    head = struct.pack("<7i", *HEADER[:5], VOCAB if shared else -VOCAB, SEQ)
    body = [w[n][1].tobytes() for n in ["tok_embeddings", *all_layers("attention_norm", *MATRICES[:4], "ffn_norm", *MATRICES[4:]), "norm"]]
    body.append(bytes(4 * SEQ * (DIM // HEADS)))  # two tables of SEQ rows, half a head long
    return head + b"".join(body) + (b"" if shared else w["output"][1].tobytes())


def new_header(version, shared, group=None):
    head = b"24ka" + struct.pack("<8iB", version, *HEADER, shared) + (struct.pack("<i", group) if group else b"")
    return head + bytes(256 - len(head))


def version_1(w, shared):
    names = [*all_layers("attention_norm", "ffn_norm"), "norm", "tok_embeddings", *all_layers(*MATRICES)] + ([] if shared else ["output"])
    return new_header(1, shared) + b"".join(w[n][1].tobytes() for n in names)


def quantize(x, group):
    """Codes of -127 to 127, and a factor for each group of them."""
    codes, scales = array.array("b"), array.array("f")
    for k in range(0, len(x), group):
        part = x[k:k + group]
        scales.append(max(abs(v) for v in part) / 127)
        codes.extend(round(v / scales[-1]) for v in part)
    return codes, scales


def version_2(w, shared, group=GROUP):
    body = [w[n][1].tobytes() for n in [*all_layers("attention_norm", "ffn_norm"), "norm"]]
    for name in ["tok_embeddings", *all_layers(*MATRICES)] + ([] if shared else ["output"]):
        codes, scales = quantize(w[name][1], group)
        body += [codes.tobytes(), scales.tobytes()]
    return new_header(2, shared, group) + b"".join(body)


def dequantized(w, group=GROUP):
    """The weights that version 2 holds: products, rounded to f32."""
    out = {}
    for name, (shape, x) in w.items():
        if len(shape) == 2:
            codes, scales = quantize(x, group)
            x = array.array("f", [c * scales[i // group] for i, c in enumerate(codes)])
        out[name] = (shape, x)
    return out


PIECES = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *[b"<0x%02X>" % i for i in range(256)], b" ", b"a", b" a"]


def tokenizer_bin(pieces=PIECES):
    body = b"".join(struct.pack("<fI", -float(i) if i > 258 else 0.0, len(p)) + p for i, p in enumerate(pieces))
    return struct.pack("<I", max(map(len, pieces))) + body
