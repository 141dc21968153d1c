"""Small models that read a text and write another, with random weights, as folders of Hugging Face with their tokenizers: Marian, and mBART."""
import os
import random
import struct

from checks import write_json, write_safetensors
from sentencepiece import LANGUAGES, SOURCE, TOKENS, UNIGRAM, language_tokens, model

N, N_FF, N_LAYER, PAD = 16, 24, 1, len(TOKENS) - 1
N_CTX = 32
SHAPE = {"d_model": N, "encoder_layers": N_LAYER, "decoder_layers": N_LAYER, "encoder_ffn_dim": N_FF, "decoder_ffn_dim": N_FF, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "max_position_embeddings": N_CTX, "scale_embedding": True}


def tensors_of(n_vocab=len(TOKENS), learned=False):
    """Returns name -> (type, shape, bytes). learned: mBART's, with positions of its own and further norms."""
    rng, tensors = random.Random(6), {}

    def add(name, *shape, centre=0.0):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = ("F32", list(shape), struct.pack(f"<{n}f", *(rng.gauss(centre, 0.4) for _ in range(n))))

    def norm(name):
        add(name + ".weight", N, centre=1.0)
        add(name + ".bias", N)

    add("model.shared.weight", n_vocab, N)
    add("final_logits_bias", 1, n_vocab)
    for side in ("encoder", "decoder"):
        if learned:
            add(f"model.{side}.embed_positions.weight", N_CTX + 2, N)
            norm(f"model.{side}.layernorm_embedding")
            norm(f"model.{side}.layer_norm")
        for l in range(N_LAYER):
            p = f"model.{side}.layers.{l}."
            for part in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
                norm(f"{p}{part}_layer_norm")
                for w in "qkv":
                    add(f"{p}{part}.{w}_proj.weight", N, N)
                    add(f"{p}{part}.{w}_proj.bias", N)
                add(f"{p}{part}.out_proj.weight", N, N)
                add(f"{p}{part}.out_proj.bias", N)
            norm(p + "final_layer_norm")
            for w, rows, columns in (("fc1", N_FF, N), ("fc2", N, N_FF)):
                add(f"{p}{w}.weight", rows, columns)
                add(f"{p}{w}.bias", rows)
    return tensors


def write(folder, labels=None):
    """Writes the folder, and returns its path. labels: of a classifier."""
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    with open(at("source.spm"), "wb") as f:
        f.write(model(SOURCE, UNIGRAM, remove=1))
    tensors, more = tensors_of(), {}
    if labels:
        rng = random.Random(9)
        for name, rows in (("dense", N), ("out_proj", len(labels))):
            for end, n in ((".weight", rows * N), (".bias", rows)):
                shape = [rows, N] if end == ".weight" else [rows]
                tensors[f"classification_head.{name}{end}"] = ("F32", shape, struct.pack(f"<{n}f", *(rng.gauss(0, 0.4) for _ in range(n))))
        more = {"architectures": ["BartForSequenceClassification"], "id2label": {str(i): label for i, label in enumerate(labels)}}
    write_safetensors(at("model.safetensors"), tensors)
    write_json(at("vocab.json"), {t: i for i, t in enumerate(TOKENS)})
    write_json(at("config.json"), {
        "architectures": ["MarianMTModel"], "model_type": "marian", "activation_function": "swish", **SHAPE, "vocab_size": len(TOKENS),
        "decoder_start_token_id": PAD, "pad_token_id": PAD, "eos_token_id": 0, "bos_token_id": 0, **more})
    return folder


def write_languages(folder, codes=LANGUAGES, config={}):
    """Writes a folder of mBART, whose texts name their languages."""
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)
    n = len(language_tokens(codes))
    with open(at("sentencepiece.bpe.model"), "wb") as f:
        f.write(model(SOURCE, UNIGRAM, remove=1))
    write_safetensors(at("model.safetensors"), tensors_of(n, True))
    write_json(at("config.json"), {"architectures": ["MBartForConditionalGeneration"], "model_type": "mbart", "activation_function": "gelu", **SHAPE,
                                   "vocab_size": n, "decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0, **config})
    return folder
