"""A speech model with random weights, as a GGUF file; it need not say anything that makes sense."""
import eye_file
import gguf_file

WORDS = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def byte_names():
    """GPT-2's names of bytes: printable ones stand for themselves, the others for characters from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def speech(path, dim=8, n_sound=50, n_text=16, n_mel=12):
    words = byte_names() + WORDS + [f"<|{k * 0.02:.2f}|>" for k in range(n_sound + 1)]
    m = eye_file.Maker(1)
    for name, shape in (("token_embd", (dim, len(words))), ("enc.conv1", (3, n_mel, dim)), ("enc.conv2", (3, dim, dim)), ("enc.position_embd", (dim, n_sound)),
                        ("dec.position_embd", (dim, n_text))):
        m.put(name + ".weight", *shape)
    for name in ("enc.conv1", "enc.conv2"):
        m.put(name + ".bias", dim)
    for part, kinds in (("enc", ["attn"]), ("dec", ["attn", "cross_attn"])):
        at = part + ".blk.0."
        for kind in kinds:
            m.norm(f"{at}{kind}_norm", dim)
            for p in "qkvo":
                m.put(f"{at}{kind}_{p}.weight", dim, dim)
                if p != "k":
                    m.put(f"{at}{kind}_{p}.bias", dim)
        m.norm(at + "ffn_norm", dim)
        for name, n, to in (("up", dim, 2 * dim), ("down", 2 * dim, dim)):
            m.put(f"{at}ffn_{name}.weight", n, to)
            m.put(f"{at}ffn_{name}.bias", to)
        m.norm(part + ".output_norm", dim)
    keys = [("general.architecture", "string", "whisper")]
    keys += [("whisper." + k, "u32", v) for k, v in {
        "embedding_length": dim, "feed_forward_length": 2 * dim, "block_count": 1, "decoder_block_count": 1, "attention.head_count": 1, "context_length": n_text,
        "audio.context_length": n_sound, "audio.mel_count": n_mel, "vocab_size": len(words), "decoder_start_token_id": 257}.items()]
    keys += [("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", "gpt-2"), ("tokenizer.ggml.tokens", "string", words),
             ("tokenizer.ggml.token_type", "i32", [1] * 256 + [3] * (len(words) - 256)), ("tokenizer.ggml.merges", "string", []), ("tokenizer.ggml.eos_token_id", "u32", 256)]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys, m.tensors))
    return path
