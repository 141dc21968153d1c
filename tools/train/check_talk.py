"""Measures the answers of a chat model on conversations that it was not trained on, per kind of answer.

    python3 check_talk.py models/builtin/stories-chat.gguf --prose TEXT --count 1000

The weights are those of the file, dequantized. What was said before an answer is given by talk.py; the answer is right if
its tokens, the end included, are the likeliest ones: then it is what the model writes at temperature 0. Of tales, which
may be told in many ways, some are generated, and it is counted how many have the hero, and, if a name was asked for, the
name; and end by themselves.
"""

import argparse
import random
import re

import torch
import torch.nn.functional as F

from check_gguf import load
from llama import Config
from talk import Talk, prose_lines
from tune import MARKS, ChatLlama, Words, held_out, judge


def read(path):
    """(model, tokenizer) of a file of tune.py."""
    keys, tensors, _ = load(path)
    get = lambda name: keys["llama." + name]
    cfg = Config(vocab=get("vocab_size"), embd=get("embedding_length"), layers=get("block_count"),
                 heads=get("attention.head_count"), kv_heads=get("attention.head_count_kv"),
                 head=get("rope.dimension_count"), ff=get("feed_forward_length"), context=get("context_length"),
                 eps=get("attention.layer_norm_rms_epsilon"), rope_base=get("rope.freq_base"))
    model = ChatLlama(cfg)
    model.load_state_dict({n: torch.from_numpy(w.astype("float32")) for n, w in tensors.items()})
    for name in ("tokens", "scores", "token_type"):              # without the marks, which Words adds
        keys["tokenizer.ggml." + name] = keys["tokenizer.ggml." + name][:-len(MARKS)]
    return model, Words(keys)


@torch.no_grad()
def write(model, words, messages, most=300):
    """The model's answer at temperature 0."""
    ids = words.conversation(messages)[0] + [words.mark["<|assistant|>"]]
    new = []
    while len(new) < most and len(ids) < model.cfg.context:
        x = torch.tensor([ids])
        best = int(F.linear(model.logits(x)[0, -1], model.token_embd.weight).argmax())
        if best == words.mark["<|end|>"]:
            return words.tok.decode(new).strip(), True
        ids.append(best)
        new.append(best)
    return words.tok.decode(new).strip(), False


def stories(model, words, count, seed):
    """Counts (told by request, with the kind of hero, with the name, ended) of stories asked for at the begin."""
    rng, told = random.Random(seed), [0, 0, 0, 0, 0]
    for _ in range(count):
        asked = Talk(rng)
        topic, want = asked.topic()
        asked.user_says(f"tell me a story about {topic}")
        text, ended = write(model, words, asked.messages)
        told[0] += 1
        told[4] += ended
        if "name" in want:
            told[1] += 1
            told[2] += bool(re.search(rf"\b{want['name']}\b", text))
        else:
            told[3] += want.get("kind", want.get("thing", ("", ""))[1]) in text
    return told


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model")
    ap.add_argument("--prose", help="the text that tune.py was given")
    ap.add_argument("--count", type=int, default=500, help="conversations")
    ap.add_argument("--stories", type=int, default=60)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--all", action="store_true", help="print every kind, not only groups")
    args = ap.parse_args()
    torch.set_num_threads(1)
    model, words = read(args.model)
    model.eval()
    prose = prose_lines(args.prose)[::10] if args.prose else ()
    rows = held_out(words, prose, args.seed + 1000, args.count)
    score = judge(model, rows, model.cfg.context)
    groups = {}
    for kind, (right, asked) in score.items():
        for name in {kind.split(".")[0]} | ({kind} if args.all else set()):
            g = groups.setdefault(name, [0, 0])
            g[0], g[1] = g[0] + right, g[1] + asked
    for name, (right, asked) in sorted(groups.items()):
        print(f"{name:14} {100 * right / asked:5.1f} % of {asked}")
    if args.stories:
        n, named, right, topic, ended = stories(model, words, args.stories, args.seed)
        print(f"stories on request: {ended} of {n} end; the name is right in {right} of {named}, "
              f"the topic in {topic} of {n - named}")


if __name__ == "__main__":
    main()
