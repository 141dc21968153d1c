#!/usr/bin/env python3
"""Compares vectors of the library (Python), of llm-embed and of llm-server with those of sentence-transformers, transformers and model2vec, on 305 texts
(./texts.py): published models where they are, and folders of sentence-transformers with random weights and all kinds of pooling and modules.

    embedders.py --bin FOLDER --python SOURCES --library FILE [--models FOLDER] [--work FOLDER] [--texts N] [PART ..]

--models: has all-MiniLM-L6-v2 and all-mpnet-base-v2 (folders of sentence-transformers) and nomic-embed-text-v1.5.f16.gguf, or some of them.
PART: minilm, mpnet, nomic, made, rerank (cross encoders with random weights), static; default: all. Prints a line for each comparison. Exit code 0, 1; 77: a package or all models are missing.

The python needs torch, transformers, sentence-transformers and numpy; static also model2vec."""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import numpy as np
    import sentence_transformers
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as st
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import texts

COSINE = 0.999999
faults = []


def check(ok, *what):
    if not ok:
        faults.append(what)
        print("FAILED:", *what)


def cosines(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    length = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    both_zero = (np.linalg.norm(a, axis=1) == 0) & (np.linalg.norm(b, axis=1) == 0)
    return np.where(both_zero, 1.0, (a * b).sum(1) / np.where(length == 0, 1, length))


def unit(rows):
    rows = np.asarray(rows, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length == 0, 1, length)


def compare(name, how, got, want, least=COSINE):
    got = np.asarray(got)
    if got.shape != want.shape:
        return check(False, name, how, got.shape, want.shape)
    c, far = cosines(got, want), np.abs(unit(got) - unit(want)).max()
    print(f"{name:34} {how:8} {len(want):4} texts  min cosine {c.min():.9f}  max difference {far:.1e}")
    check(c.min() >= least, name, how, f"{c.min():.9f} at text {int(c.argmin())}")


# --- the three programs ------------------------------------------------------------------------------


def by_library(a, model, some, **how):
    sys.path[:0] = [a.python] if a.python not in sys.path else []
    os.environ["GGML_LITE_LIBRARY"] = a.library
    from ggml_lite import Model
    with Model(model, embeddings=True, n_threads=a.threads) as m:
        return m.embed(some, truncate=True, **how)


def by_program(a, model, some, *how):
    out = os.path.join(a.work, "out.npy")
    said = "".join(json.dumps(t) + "\n" for t in some).encode()
    done = subprocess.run([os.path.join(a.bin, "llm-embed"), "-m", model, "--json-lines", "--truncate", "-o", out, "-t", str(a.threads), *how], input=said,
                          capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return np.load(out)


def by_server(a, model, some, **more):
    s = subprocess.Popen([os.path.join(a.bin, "llm-server"), "-m", model, "--port", "0", "-t", str(a.threads)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = next(w for line in s.stdout for w in line.split() if w.startswith("http://127.0.0.1:")).rstrip("/.,")
        rows = []
        for k in range(0, len(some), 61):
            body = json.dumps({"input": some[k: k + 61], "truncate": True, **more}).encode()
            with urllib.request.urlopen(urllib.request.Request(address + "/v1/embeddings", body, {"Content-Type": "application/json"})) as answer:
                rows += [x["embedding"] for x in json.load(answer)["data"]]
        return np.array(rows)
    finally:
        s.terminate()
        s.communicate()


def compare_all(a, name, model, some, want, least=COSINE, prompt_name=None):
    named = {"prompt_name": prompt_name} if prompt_name else {}
    compare(name, "library", by_library(a, model, some, **named), want, least)
    compare(name, "program", by_program(a, model, some, *(["--prompt-name", prompt_name] if prompt_name else [])), want, least)
    compare(name, "server", by_server(a, model, some, **named), want, least)


def converted(a, folder, name):
    out = os.path.join(a.work, name + ".gguf")
    done = subprocess.run([os.path.join(a.bin, "llm-convert"), folder, "-o", out, "--type", "f32"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return out


# --- published models --------------------------------------------------------------------------------


def published(a, name, folder):
    folder = os.path.join(a.models or "", folder)
    if not os.path.isdir(folder):
        return print(f"{name:34} skipped: there is no {folder}")
    model = SentenceTransformer(folder, device="cpu")
    some = a.texts
    if hasattr(model[0].auto_model.embeddings, "padding_idx"):  # a token of padding that the text spells has no place there; in the product it has one
        padding = model.tokenizer.pad_token_id
        some = [t for t in some if padding not in model.tokenizer(t)["input_ids"]]
        print(f"{name:34} left out: {len(a.texts) - len(some)} text that spells padding")
    want = model.encode(some, batch_size=1, show_progress_bar=False)
    compare_all(a, name, converted(a, folder, name), some, want)
    compare(name, "folder", by_library(a, folder, some), want)


def nomic(a):
    """The file's own numbers in transformers' class. Its tokenizer is that of all-MiniLM-L6-v2."""
    file, words = (os.path.join(a.models or "", n) for n in ("nomic-embed-text-v1.5.f16.gguf", "all-MiniLM-L6-v2/tokenizer.json"))
    if not os.path.exists(file) or not os.path.exists(words):
        return print(f"nomic{'':29} skipped: there is no {file}, or no {words}")
    from tokenizers import Tokenizer
    spec = importlib.util.spec_from_file_location("own_gguf", HERE.parent / "numpy/gguf.py")  # a package is called so, too
    own_gguf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own_gguf)
    keys, tensors = own_gguf.read(file)[:2]
    n_layer, n = keys["nomic-bert.block_count"], keys["nomic-bert.embedding_length"]
    config = transformers.NomicBertConfig(vocab_size=len(tensors["token_embd.weight"]), rope_parameters={"rope_type": "default", "rope_theta": keys["nomic-bert.rope.freq_base"]})
    model = transformers.NomicBertModel(config, add_pooling_layer=False).eval()
    names = {"embeddings.word_embeddings.weight": "token_embd.weight", "embeddings.token_type_embeddings.weight": "token_types.weight"}
    for end in (".weight", ".bias"):
        names["embeddings.LayerNorm" + end] = "token_embd_norm" + end
        for l in range(n_layer):
            names[f"layers.{l}.post_attention_layernorm{end}"] = f"blk.{l}.attn_output_norm{end}"
            names[f"layers.{l}.post_mlp_layernorm{end}"] = f"blk.{l}.layer_output_norm{end}"
    own = {a_: np.asarray(tensors[b], np.float32) for a_, b in names.items()}
    for l in range(n_layer):
        q, k, v = np.split(np.asarray(tensors[f"blk.{l}.attn_qkv.weight"], np.float32), 3)
        own |= {f"layers.{l}.self_attn.{x}_proj.weight": w for x, w in zip("qkv", (q, k, v))}
        for x, y in (("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down")):
            own[f"layers.{l}.{x}.weight"] = np.asarray(tensors[f"blk.{l}.{y}.weight"], np.float32)
    model.load_state_dict({name: torch.from_numpy(np.array(w)) for name, w in own.items()})
    tokenizer = Tokenizer.from_file(words)
    tokenizer.no_padding()
    tokenizer.enable_truncation(keys["nomic-bert.context_length"])
    with torch.no_grad():
        want = np.stack([model(torch.tensor([e.ids])).last_hidden_state[0].double().mean(0).numpy() for e in tokenizer.encode_batch(a.texts)])
    compare_all(a, "nomic (f16)", file, a.texts, want, least=0.99999)


# --- folders with random weights ---------------------------------------------------------------------


def small_bert(a):
    """A BERT of 2 layers, with the tokenizer of all-MiniLM-L6-v2 if it is there, else with letters and marks alone."""
    folder = os.path.join(a.work, "small")
    words = os.path.join(a.models or "", "all-MiniLM-L6-v2")
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(words):
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
            shutil.copy(os.path.join(words, name), folder)
    else:
        letters = [chr(c) for c in range(33, 127)]
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + x for x in letters)]
        pathlib.Path(folder, "vocab.txt").write_text("\n".join(vocabulary) + "\n")
        transformers.BertTokenizer(os.path.join(folder, "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(7)
    size = sum(1 for _ in open(os.path.join(folder, "vocab.txt"), encoding="utf-8"))
    config = transformers.BertConfig(vocab_size=size, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=160,
                                     initializer_range=0.3)
    transformers.BertModel(config, add_pooling_layer=False).eval().save_pretrained(folder)
    return folder


def dense(rows, columns, act, **how):
    from sentence_transformers.base.modules import Dense
    return Dense(columns, rows, activation_function=act, **how)


def made(a):
    folder = small_bert(a)
    some = [t for t in a.texts if len(t) < 6000]
    nn, several = torch.nn, ("cls", "mean", "lasttoken")
    everything = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
    chains = {"mean": ("mean", []), "max": ("max", []), "mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", []), "weightedmean": ("weightedmean", []),
              "lasttoken": ("lasttoken", []), "all of them": (everything, []), "several, dense": (several, [dense(40, 144, nn.Tanh())]),
              "tanh": ("mean", [dense(40, 48, nn.Tanh())]), "truncated": ("mean", [st.Normalize()]), "dense, truncated": ("cls", [dense(40, 48, nn.Identity())]),
              "max, dense": ("max", [dense(40, 48, nn.Identity(), bias=False), st.Normalize()]),
              "dense, dense": ("mean", [dense(70, 48, nn.GELU()), dense(20, 70, nn.ReLU()), st.Normalize()]),
              "norms": ("cls", [st.LayerNorm(48), st.Dropout(0.1), dense(30, 48, nn.SiLU()), st.Normalize(), dense(30, 30, nn.Sigmoid()), st.LayerNorm(30)]),
              "residuals": ("mean", [dense(48, 48, nn.Tanh(), use_residual=True), dense(30, 48, nn.Mish(), use_residual=True)])}
    for name, (mode, after) in chains.items():
        torch.manual_seed(len(name))
        transformer = st.Transformer(folder, max_seq_length=96)
        for m in after:
            for p in m.parameters():
                torch.nn.init.normal_(p, std=0.3)
        model = SentenceTransformer(modules=[transformer, st.Pooling(48, pooling_mode=mode, include_prompt=name not in ("weightedmean", "norms")), *after], device="cpu",
                                    prompts={"query": "a question about: ", "none": ""}, default_prompt_name=None, truncate_dim=13 if "truncated" in name else None)
        path = os.path.join(a.work, "made-" + name.replace(", ", "-").replace(" ", "-"))
        model.save_pretrained(path, create_model_card=False)
        want = model.encode(some, batch_size=1, show_progress_bar=False)
        file = converted(a, path, os.path.basename(path))
        compare_all(a, name, file, some, want)
        compare(name, "folder", by_library(a, path, some), want)
        asked = model.encode(some, prompt_name="query", batch_size=1, show_progress_bar=False)
        compare_all(a, name + ", a prompt", file, some, asked, prompt_name="query")
    default = SentenceTransformer(path, device="cpu", default_prompt_name="query")
    default.save_pretrained(path + "-default", create_model_card=False)
    compare_all(a, "a default prompt", converted(a, path + "-default", "default"), some, default.encode(some, batch_size=1, show_progress_bar=False))


# --- tables of vectors -------------------------------------------------------------------------------


def static(a):
    words = os.path.join(a.models or "", "all-MiniLM-L6-v2/tokenizer.json")
    if not os.path.exists(words):
        return print(f"static{'':28} skipped: there is no {words}")
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(words)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    draw = np.random.default_rng(3)
    n = tokenizer.get_vocab_size()
    some = ["", *a.texts]
    model = SentenceTransformer(modules=[st.StaticEmbedding(tokenizer, embedding_weights=draw.normal(size=(n, 64)).astype(np.float32)), st.Normalize()], device="cpu")
    path = os.path.join(a.work, "table")
    model.save_pretrained(path, create_model_card=False)
    want = model.encode(some, show_progress_bar=False)
    compare_all(a, "StaticEmbedding", converted(a, path, "table"), some, want)
    compare("StaticEmbedding", "folder", by_library(a, path, some), want)
    try:
        from model2vec import StaticModel
        from model2vec.quantization import DType, quantize_embeddings
    except ImportError as error:
        return print(f"model2vec{'':25} skipped: {error}")
    mapping = draw.integers(0, 900, n)
    for name, how in (("model2vec", {}), ("model2vec, weights", {"weights": draw.uniform(0.1, 2, n).astype(np.float32)}),
                      ("model2vec, weights and mapping", {"weights": draw.uniform(0.1, 2, n).astype(np.float32), "token_mapping": mapping}),
                      ("model2vec, int8", {}), ("model2vec, int8, weights and mapping", {"weights": draw.uniform(0.1, 2, n).astype(np.float32), "token_mapping": mapping})):
        rows = draw.normal(size=(900 if "token_mapping" in how else n, 64)).astype(np.float32)
        if "int8" in name:
            rows = quantize_embeddings(rows, DType.Int8)
        model = StaticModel(rows, Tokenizer.from_file(words), config={"normalize": True}, normalize=True, **how)
        path = os.path.join(a.work, name.replace(", ", "-").replace(" ", "-"))
        model.save_pretrained(path)
        want = StaticModel.from_pretrained(path).encode(some, max_length=None)
        # the default length of 512 tokens also cuts letters there
        short = np.array([len(tokenizer.encode(t, add_special_tokens=False).ids) <= 512 for t in some])
        kept = [t for t, ok in zip(some, short) if ok]
        compare_all(a, name, converted(a, path, os.path.basename(path)), kept, want[short])
        compare(name, "folder", by_library(a, path, kept), want[short])


# --- cross encoders ----------------------------------------------------------------------------------

QUERIES = ("what is a model", "wörds [SEP] and [MASK] marks", "")


def scores_by_library(a, model, query, documents):
    sys.path[:0] = [a.python] if a.python not in sys.path else []
    os.environ["GGML_LITE_LIBRARY"] = a.library
    from ggml_lite import Model
    with Model(model, embeddings=True, n_threads=a.threads) as m:
        ranked = m.rerank(query, documents, truncate=True)
    return [score for _, score in sorted(ranked)]


def scores_by_program(a, model, query, documents):
    said = "".join(json.dumps(t) + "\n" for t in documents).encode()
    done = subprocess.run([os.path.join(a.bin, "llm-embed"), "-m", model, "--json-lines", "--truncate", "-t", str(a.threads), "--rerank", query], input=said, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    rows = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda row: row["index"])
    return [row["score"] for row in rows]


def labels_by_program(a, model, query, documents):
    """All scores of a classifier, which ranks nothing."""
    said, out = "".join(json.dumps(t) + "\n" for t in documents).encode(), os.path.join(a.work, "labels.npy")
    done = subprocess.run([os.path.join(a.bin, "llm-embed"), "-m", model, "--json-lines", "--truncate", "-t", str(a.threads), "--rerank", query, "-o", out], input=said, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return np.load(out)


def scores_by_server(a, model, queries, documents):
    s = subprocess.Popen([os.path.join(a.bin, "llm-server"), "-m", model, "--port", "0", "-t", str(a.threads)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = next(w for line in s.stdout for w in line.split() if w.startswith("http://127.0.0.1:")).rstrip("/.,")
        for query in queries:
            body = json.dumps({"query": query, "documents": documents, "truncate": True}).encode()
            with urllib.request.urlopen(urllib.request.Request(address + "/v1/rerank", body, {"Content-Type": "application/json"})) as answer:
                yield [x["relevance_score"] for x in sorted(json.load(answer)["results"], key=lambda x: x["index"])]
    finally:
        s.terminate()
        s.communicate()


def compare_scores(name, how, got, want):
    far = np.abs(np.asarray(got, np.float64) - want).max()
    print(f"{name:34} {how:8} {len(want):4} pairs  max difference {far:.1e} of scores from {want.min():.3f} to {want.max():.3f}")
    check(far <= 1e-4 * max(1, np.abs(want).max()), name, how, far)


def cross_encoder(name, config, folder, model_class, words, post=None, max_length=160, **more):
    """A folder with random weights, and a tokenizer: that of all-MiniLM-L6-v2 or one of another class."""
    torch.manual_seed(len(name))
    tokenizer = words
    tokenizer.model_max_length = max_length
    config = config(vocab_size=max(len(tokenizer), tokenizer.vocab_size), hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=160,
                    initializer_range=0.3, pad_token_id=tokenizer.pad_token_id, **more)
    model_class(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if post:  # steps that no class has
        path = pathlib.Path(folder, "tokenizer.json")
        said = json.loads(path.read_text(encoding="utf-8"))
        said["post_processor"] = post(said["post_processor"])
        path.write_text(json.dumps(said), encoding="utf-8")
        path = pathlib.Path(folder, "tokenizer_config.json")  # BertTokenizer would make its own steps
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "token_type_ids"]}), encoding="utf-8")


def with_pair(pair):
    """Another pair in the template of a tokenizer.json; "A:0" is the first text with type 0."""
    def change(post):
        parts = [part.split(":") for part in pair.split()]
        return {**post, "pair": [{"Sequence": {"id": x, "type_id": int(t)}} if x in "AB" else {"SpecialToken": {"id": x, "type_id": int(t)}} for x, t in parts]}
    return change


def bytes_tokenizer(folder, kind):
    """A tokenizer of bytes, of a class of RoBERTa's kind."""
    from tokenizers import ByteLevelBPETokenizer
    b = ByteLevelBPETokenizer()
    b.train_from_iterator([" ".join(texts.texts()[:40])], vocab_size=500, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    os.makedirs(folder, exist_ok=True)
    b.save_model(folder)
    return kind(vocab=os.path.join(folder, "vocab.json"), merges=os.path.join(folder, "merges.txt"))


def rerank(a):
    words = os.path.join(a.models or "", "all-MiniLM-L6-v2")
    if not os.path.isdir(words):
        return print(f"rerank{'':28} skipped: there is no {words}")
    from sentence_transformers import CrossEncoder
    bert = transformers.BertTokenizer.from_pretrained(words)
    t = transformers
    roberta = bytes_tokenizer(os.path.join(a.work, "bytes"), t.RobertaTokenizer)
    distil = t.DistilBertTokenizer.from_pretrained(words)
    kinds = {
        "cross: BERT": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=1),
        "cross: BERT, three labels": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=3),
        "cross: BERT, another pair": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=1,
                                          post=with_pair("[CLS]:1 [SEP]:0 A:1 [SEP]:1 [SEP]:0 B:0 [SEP]:1")),
        "cross: BERT, four types": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=1, type_vocab_size=4,
                                        post=with_pair("[CLS]:3 A:0 [SEP]:1 B:2 [SEP]:2")),
        "cross: BERT, steps Bert": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=1,
                                        post=lambda _: {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                                                                                           {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}]}),
        "cross: BERT, steps Roberta": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=bert, num_labels=1,
                                           post=lambda _: {"type": "RobertaProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101], "trim_offsets": True, "add_prefix_space": True}),
        "cross: BERT, words without types": dict(config=t.BertConfig, model_class=t.BertForSequenceClassification, words=distil, num_labels=1),
        "cross: ELECTRA": dict(config=t.ElectraConfig, model_class=t.ElectraForSequenceClassification, words=bert, num_labels=1, embedding_size=32),
        "cross: ALBERT": dict(config=t.AlbertConfig, model_class=t.AlbertForSequenceClassification, words=bert, num_labels=1, embedding_size=32),
        "cross: DeBERTa": dict(config=t.DebertaV2Config, model_class=t.DebertaV2ForSequenceClassification, words=bert, num_labels=1, type_vocab_size=2, relative_attention=True,
                               position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], pooler_hidden_size=48, pooler_hidden_act="gelu",
                               max_relative_positions=160, position_biased_input=False),
        "cross: RoBERTa": dict(config=t.RobertaConfig, model_class=t.RobertaForSequenceClassification, words=roberta, num_labels=1, type_vocab_size=1, max_length=158),
    }
    documents = [x for x in a.texts if len(x) < 6000]
    for name, how in kinds.items():
        folder = os.path.join(a.work, name.replace(": ", "-").replace(", ", "-").replace(" ", "-"))
        cross_encoder(name, folder=folder, **how)
        model = CrossEncoder(folder, device="cpu")
        wanted = [model.predict([(query, x) for x in documents], activation_fn=torch.nn.Identity(), batch_size=1, show_progress_bar=False) for query in QUERIES]
        file = converted(a, folder, os.path.basename(folder))
        if how["num_labels"] > 1:
            for query, want in zip(QUERIES, wanted):
                if query:
                    compare_scores(name, "program", labels_by_program(a, file, query, documents), want)
            continue
        for query, want in zip(QUERIES, wanted):
            compare_scores(name, "library", scores_by_library(a, file, query, documents), want)
            compare_scores(name, "folder", scores_by_library(a, folder, query, documents), want)
            if query:
                compare_scores(name, "program", scores_by_program(a, file, query, documents), want)
        for got, want in zip(scores_by_server(a, file, [q for q in QUERIES if q], documents), wanted):
            compare_scores(name, "server", got, want)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--python", required=True)
    p.add_argument("--library", required=True)
    p.add_argument("--models")
    p.add_argument("--work")
    p.add_argument("--texts", type=int, help="only so many, spread over all")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("part", nargs="*")
    a = p.parse_args()
    every = texts.texts()
    a.texts = every if not a.texts else every[:: max(1, len(every) // a.texts)]
    own = None if a.work else tempfile.TemporaryDirectory()
    a.work = a.work or own.name
    os.makedirs(a.work, exist_ok=True)
    torch.set_num_threads(a.threads)
    parts = {"minilm": lambda: published(a, "all-MiniLM-L6-v2", "all-MiniLM-L6-v2"), "mpnet": lambda: published(a, "all-mpnet-base-v2", "all-mpnet-base-v2"),
             "nomic": lambda: nomic(a), "made": lambda: made(a), "rerank": lambda: rerank(a), "static": lambda: static(a)}
    print(f"sentence-transformers {sentence_transformers.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
    for name in a.part or parts:
        parts[name]()
    print("ok" if not faults else f"{len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
