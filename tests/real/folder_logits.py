#!/usr/bin/env python3
"""Prints lines for ../numpy/recorded.txt: what transformers gives for the folders of ../numpy/folders*.py.

    folder_logits.py [--beside] CLASS ..

--beside: in place of lines, how far they are from those in recorded.txt. Needs torch and transformers, which run in float64; 5.24 has the classes of
folders_late.py."""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numpy"))
import folders  # noqa: E402
import recorded  # noqa: E402

folders.add_all()
sys.path = [path for path in sys.path if not path.endswith("tests/numpy")]  # it has modules of the same names as libraries
import torch  # noqa: E402
import transformers  # noqa: E402


def divided_by_less(std):
    """The deviation with n - 1 in place of n, as engines have it that run files of Gemma 3n; its authors divide by n, of 8192 at least."""
    return lambda x, **more: std(x, **{**more, "unbiased": True})


def neighbours(q, k, cos, sin, unsqueeze_dim=1):
    """Rotates (x[2i], x[2i+1]) by the i-th angle."""
    cos, sin = (x[..., : x.shape[-1] // 2].unsqueeze(unsqueeze_dim) for x in (cos, sin))
    turn = lambda x: torch.stack((x[..., ::2] * cos - x[..., 1::2] * sin, x[..., 1::2] * cos + x[..., ::2] * sin), -1).flatten(-2)
    return turn(q), turn(k)


def halves(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
    """Rotates (x[i], x[i + n/2]) by the i-th angle."""
    half = lambda x: torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)
    return tuple(x * cos.unsqueeze(unsqueeze_dim) + half(x) * sin.unsqueeze(unsqueeze_dim) for x in (q, k))


def of_indexer(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
    """Halves in an indexer, whose heads come later; neighbours in attention."""
    if unsqueeze_dim == 1:
        return neighbours(q, k, cos, sin)
    return halves(q, k, cos, sin, unsqueeze_dim=2)


def rows_of(class_name, scaling):
    c, w = folders.model_of(class_name, scaling)
    word = c.get("how", {}).get("class", class_name.split()[0])  # its name in transformers, if that is another one
    sees = c.get("how", {}).get("sees")  # names of what sees, if the class has no text part of its own
    text_part = word.replace("ForConditionalGeneration", "ForCausalLM").replace("Gemma2Model", "Gemma2TextModel")
    if "write" in c and not sees and hasattr(transformers, text_part):  # its text part, whose folder lacks what sees
        word = text_part
        c = {key: value for key, value in c.items() if key not in ("write", "layout")}
    if c.get("how", {}).get("renamed"):  # another class that transformers has, under other names
        c = {key: value for key, value in c.items() if key != "layout"}
    with tempfile.TemporaryDirectory() as folder:
        folders.write_safetensors(f"{folder}/model.safetensors", folders.stored_tensors(c, w))
        within = c.get("how", {}).get("within", dict)  # what transformers reads such a class as part of
        pathlib.Path(folder, "config.json").write_text(json.dumps(within(folders.written_config(word, c, scaling, 5))))
        model, found = getattr(transformers, word).from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    missing = [name for name in found["missing_keys"] if not (sees and name.startswith(sees)) and "vision" not in name and "audio" not in name]
    guesses = c.get("how", {}).get("guesses")  # names of layers that guess, which transformers lacks
    if missing or any(not (guesses and name.startswith(guesses)) for name in found["unexpected_keys"]):
        raise SystemExit(f"{class_name}: tensors are missing or not read: {found}")
    if c.get("how", {}).get("pairs"):  # transformers turns halves of this class, llama.cpp neighbours
        sys.modules[type(model).__module__].apply_rotary_pos_emb = neighbours
    if c.get("how", {}).get("halves"):  # transformers turns neighbours in this class's indexer, llama.cpp halves
        sys.modules[type(model).__module__].apply_rotary_pos_emb_interleave = of_indexer
    if c.get("how", {}).get("turns_halves"):  # transformers turns neighbours of the class that it has, the other one halves
        sys.modules[type(model).__module__].apply_rotary_pos_emb_interleave = halves
    if c.get("how", {}).get("around"):  # all tokens see each other, and convolutions are around each
        of = sys.modules[type(model).__module__]
        of.create_causal_mask = lambda *a, **named: None
        of.causal_conv1d_fn = lambda x, w, b, **named: torch.nn.functional.conv1d(x, w[:, None], b, padding=w.shape[1] // 2, groups=len(w))
    for part in model.modules():
        if hasattr(part, "config"):
            part.config._experts_implementation = "eager"
    with torch.no_grad():
        out = model.eval()(input_ids=torch.tensor([folders.TOKENS]))
    return (out.last_hidden_state if out.get("logits") is None else out.logits)[0].double().numpy()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--beside", action="store_true")
    p.add_argument("classes", nargs="+")
    a = p.parse_args()
    transformers.logging.set_verbosity_error()
    torch.std = divided_by_less(torch.std)
    for class_name in a.classes:
        for scaling in folders.CLASSES[class_name][2]:
            name, rows = f"{class_name} {scaling or 'default'}", rows_of(class_name, scaling)
            print(f"{name:50} {recorded.of(name).distance(rows):8.1e} of {np.std(rows):5.2f}" if a.beside else recorded.line_of(name, rows), flush=True)


if __name__ == "__main__":
    main()
