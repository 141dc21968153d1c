"""Trains the tokenizer on the corpus and turns the corpus into token ids.

The tokenizer is SentencePiece's byte-pair encoding with byte fallback, the kind that GGUF calls "llama":
    0 <unk>   1 <s>   2 </s>   3..258 <0x00>..<0xFF>   259.. pieces, "▁" standing for a space
There is no normalisation: decoding gives the input. A newline is the byte token <0x0A>.

Reads train.txt, valid-*.txt in --work; writes tokenizer.model and for each text a .bin of uint16 ids in
which every story is <s> ... </s>.
"""

import argparse
import os

import numpy as np
import sentencepiece as spm


def stories(path):
    with open(path, encoding="utf-8") as f:
        return f.read().rstrip("\n").split("\n\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--work", required=True)
    ap.add_argument("--vocab", type=int, default=2048)
    ap.add_argument("--sample", type=int, default=30000, help="stories to train the tokenizer on")
    ap.add_argument("--keep", action="store_true", help="use the existing tokenizer.model")
    args = ap.parse_args()
    model = os.path.join(args.work, "tokenizer.model")
    train = stories(os.path.join(args.work, "train.txt"))

    if not args.keep:
        lines = (line for s in train[:args.sample] for line in s.split("\n"))
        spm.SentencePieceTrainer.train(
            sentence_iterator=lines, model_prefix=model[:-len(".model")], model_type="bpe", vocab_size=args.vocab,
            byte_fallback=True, add_dummy_prefix=True, normalization_rule_name="identity",
            remove_extra_whitespaces=False, split_digits=True, character_coverage=1.0,
            unk_id=0, bos_id=1, eos_id=2, pad_id=-1, num_threads=2, minloglevel=1)
    sp = spm.SentencePieceProcessor(model_file=model)

    for name in ("train", "valid-world", "valid-prose"):
        texts = train if name == "train" else stories(os.path.join(args.work, name + ".txt"))
        parts = [np.array([1, *ids, 2], np.uint16) for ids in sp.encode(texts)]
        ids = np.concatenate(parts)
        ids.tofile(os.path.join(args.work, name + ".bin"))
        chars = sum(map(len, texts))
        print(f"{name}: {len(texts)} stories, {len(ids)} tokens, {chars / len(ids):.2f} characters each, "
              f"longest {max(map(len, parts))}", flush=True)


if __name__ == "__main__":
    main()
