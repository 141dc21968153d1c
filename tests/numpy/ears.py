#!/usr/bin/env python3
"""Models that hear in chats, beside a pass in float64 that shares no code with them: as ./eyes.py, of seeded ears (mmproj files), sounds from one sample to
several windows, and spectrograms (llm-embed --dump mel). And what is no sound for them.

    ears.py --cli LLM_CLI --embed LLM_EMBED --dir FOLDER [KIND ..]

Exit code 0, 1.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import wave

import numpy as np

import ear_kinds
import eye_kinds
import eye_texts
import eyes
import gguf
import today


def write_sound(path, x):
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(16000)
        w.writeframes((x * 32768).astype("<i2").tobytes())


def made_sounds(r, g, ear):
    window = 2 * ear.n_pos * ear_kinds.STEP
    for k, n in enumerate((1, int(g.integers(2, 1000)), int(g.integers(window // 2, window)), window, window + 1, int(g.integers(2 * window, 3 * window)))):
        t = np.arange(n)
        x = g.normal(size=n) * 10 ** g.uniform(-4, -1) + 0.3 * np.sin(t * g.uniform(0, 3)) * (t < g.uniform(0.2, 1.2) * n)
        x = np.clip(np.round(x * 32768), -32768, 32767) / 32768
        path = r.at(f"{k}.wav")
        write_sound(path, x)
        want = np.concatenate(list(ear.windows(x)))
        far = np.abs(r.rows(r.at("text"), r.at("eye"), path, "mel") - want).max()
        if far > 1e-5:
            r.tell(f"{ear.kind}: mel of {n} samples", False, f"{far:.0e}")
        yield path, x, f"{n} samples"


def test_mistakes(r):
    """What is said about files that are not what is asked for."""
    g = np.random.default_rng(1)
    ear, eye = ear_kinds.Ultravox(g), eye_kinds.Gemma3(g)
    ear.n_text = eye.n_text
    for name, x in (("ear", ear_kinds.Ultravox(np.random.default_rng(1))), ("eye", eye)):
        text = eye_texts.Llama(g, x)
        gguf.write(r.at(name), x.meta, x.w)
        gguf.write(r.at(name + ".text"), text.meta, text.w)
    long_ = np.sin(np.arange(16000 * 400) * 0.1) * 0.1
    write_sound(r.at("a.wav"), long_[:5000])
    write_sound(r.at("none.wav"), long_[:0])
    write_sound(r.at("long.wav"), long_)
    with open(r.at("a.wav"), "rb") as f:
        whole = f.read()
    for name, data in (("cut.wav", whole[:-1000]), ("text.wav", b"<html>")):
        with open(r.at(name), "wb") as f:
            f.write(data)
    eyes.write_picture(r.at("a.ppm"), np.zeros((9, 9, 3), np.uint8))
    # a context smaller than a window's rows has room for a sound of fewer
    write_sound(r.at("window.wav"), long_[: 2 * ear.n_pos * ear_kinds.STEP])
    write_sound(r.at("short.wav"), long_[: ear_kinds.STEP])
    whole_rows = len(r.rows(r.at("ear.text"), r.at("ear"), r.at("window.wav")))
    for path, fits in (("short.wav", True), ("window.wav", False)):
        done = subprocess.run([r.a.embed, "-m", r.at("ear.text"), "--mmproj", r.at("ear"), "--audio", r.at(path), "--dump", "rows", "-o", r.at("npy"),
                               "-c", str(whole_rows - 1)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        r.tell(f"{path} in a context of {whole_rows - 1}", (done.returncode == 0) == fits and ("the most that fit into a context" in done.stderr) != fits, done.stderr)
    for what, media, flag, path, words in (
            ("none", "ear", "--audio", "none.wav", "the sound has no samples"), ("cut", "ear", "--audio", "cut.wav", "it ends 500 samples before its header says"),
            ("text", "ear", "--audio", "text.wav", "text.wav: "), ("missing", "ear", "--audio", "no.wav", "No such file"),
            ("long", "ear", "--audio", "long.wav", "the most that fit into a context of 128 tokens"),
            ("a picture for an ear", "ear", "--image", "a.ppm", "which hears sounds and sees no pictures"),
            ("a sound for an eye", "eye", "--audio", "a.wav", "which sees pictures and hears no sounds"),
            ("no ear", None, "--audio", "a.wav", "mostly named mmproj-*.gguf; `llm-transcribe FILE` writes down what is said")):
        mmproj = ["--mmproj", r.at(media)] if media else []
        done = subprocess.run([r.a.cli, "-m", r.at((media or "ear") + ".text"), *mmproj, flag, r.at(path), "-p", "ab", "-n", "1", "-c", "128"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        r.tell(f"refused: {what}", done.returncode in (1, 2) and words in done.stderr, "" if words in done.stderr else f"{done.returncode} {done.stderr!r}")


def test_folder(r):
    """Ultravox' folder, with and without what its encoder is, makes the rows of the file with the same weights."""
    from folders import write_safetensors
    ear = ear_kinds.Ultravox(np.random.default_rng(8))
    text = eye_texts.KINDS[ear.text](np.random.default_rng(9), ear)
    gguf.write(r.at("text"), text.meta, text.w)
    gguf.write(r.at("eye"), ear.meta | {"clip.audio.attention.layer_norm_epsilon": 1e-5}, ear.w)
    table = {"a.conv1d.": "audio_tower.conv", "a.position_embd": "audio_tower.embed_positions", "a.post_ln": "audio_tower.layer_norm", "a.blk.": "audio_tower.layers.", ".ln1": ".self_attn_layer_norm",
             ".ln2": ".final_layer_norm", ".attn_out": ".self_attn.out_proj", ".attn_": ".self_attn.", ".ffn_up": ".fc1", ".ffn_down": ".fc2", "mm.a.mlp.": "multi_modal_projector.linear_",
             "mm.a.norm_": "multi_modal_projector.ln_"}
    tensors = {}
    for name, x in ear.w.items():
        for old, new in table.items():
            name = name.replace(old, new)
        for c in "qkv":
            name = name.replace(f".self_attn.{c}.", f".self_attn.{c}_proj.")
        tensors[name] = (x[:, 0] if "conv" in name and name.endswith("bias") else x).astype(np.float32)
    audio = {"model_type": "whisper", "d_model": ear.n, "encoder_layers": ear.n_layer, "encoder_attention_heads": ear.n_head, "encoder_ffn_dim": ear.n_ff, "num_mel_bins": ear.n_mel}
    folder = r.at("folder")
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    write_sound(r.at("a.wav"), np.sin(np.arange(3000) * 0.1) * 0.1)
    for more, words in (({}, None), ({"projector_ln_mid": False}, "projector_ln_mid"), ({"projector_act": "relu"}, "projector_act"), ({"audio_config": {}}, "a.conv1d.1.weight is")):
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"architectures": ["UltravoxModel"], "model_type": "ultravox", "projector_ln_mid": True, "projector_act": "swiglu", "stack_factor": ear.stack, "audio_config": audio} | more, f)
        if not words:
            same = np.array_equal(r.rows(r.at("text"), r.at("eye"), r.at("a.wav")), r.rows(r.at("text"), folder, r.at("a.wav")))
            r.tell("ultravox: the same rows of its folder", same)
            continue
        done = subprocess.run([r.a.embed, "-m", r.at("text"), "--mmproj", folder, "--audio", r.at("a.wav"), "--dump", "rows", "-o", r.at("npy")], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        r.tell(f"ultravox: a folder with {json.dumps(more)} is refused", done.returncode == 1 and words in done.stderr, done.stderr.strip())
    shutil.rmtree(folder)


def test_adapter(r, kind):
    """An adapter of the ear's matrices makes the rows of an ear into which it is merged."""
    g = np.random.default_rng(3)
    ear = ear_kinds.KINDS[kind](g)
    text = eye_texts.KINDS[ear.text](g, ear)
    gguf.write(r.at("text"), text.meta, text.w)
    gguf.write(r.at("eye"), ear.meta, ear.w)
    names = [n for n, x in ear.w.items() if x.ndim == 2 and n.endswith(".weight") and ("attn_" in n or "ffn_" in n or n.startswith("mm."))]
    pairs, merged = {}, dict(ear.w)
    for n in names:
        n_out, n_in = ear.w[n].shape
        a, b = (g.normal(size=s).astype(np.float32) for s in ((2, n_in), (n_out, 2)))
        pairs |= {n + ".lora_a": a, n + ".lora_b": b / np.float32(np.sqrt(n_in))}
        merged[n] = (ear.w[n] + 0.5 * (pairs[n + ".lora_b"].astype(np.float64) @ a)).astype(np.float32)
    gguf.write(r.at("merged"), ear.meta, merged)
    gguf.write(r.at("lora"), {"general.architecture": text.meta["general.architecture"], "general.type": "adapter", "adapter.type": "lora"}, pairs)
    write_sound(r.at("a.wav"), np.sin(np.arange(3000) * 0.1) * 0.1)
    plain, got = (r.rows(r.at("text"), r.at("eye"), r.at("a.wav"), words=words) for words in ((), ("--lora", r.at("lora") + ":0.5")))
    want = r.rows(r.at("text"), r.at("merged"), r.at("a.wav"))
    far, moved = eyes.off(got, want), eyes.off(plain, want)
    r.tell(f"{kind}: an adapter of {len(names)} matrices", len(names) > 3 and far <= eyes.LIMIT < moved, f"{far:.0e}, without it {moved:.0e}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--embed", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("kinds", nargs="*")
    a = p.parse_args()
    r = eyes.Runner(a, "--audio")
    try:
        for kind in a.kinds or ear_kinds.KINDS:
            for seed in today.sample("ears " + kind, range(100), a.seeds):
                eyes.test_kind(r, ear_kinds.KINDS, kind, seed, made_sounds)
            test_adapter(r, kind)
        test_folder(r)
        test_mistakes(r)
    finally:
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
