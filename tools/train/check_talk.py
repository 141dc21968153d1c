"""Measures the answers of a chat model on conversations that it was not trained on, per kind of answer.

    PYTHONPATH=python/src python3 check_talk.py MODEL --library libllm.so --prose TEXT --count 200

What was said before an answer is given by talk.py; the answer is right if the model, at temperature 0, writes it to the last letter. Of
tales, which may be told in many ways, some are generated, and it is counted how many have the hero, and, if a name was asked for, the
name; and end by themselves.
"""

import argparse
import os
import random
import re

from talk import HELD_OUT, Talk, held_out, prose_lines, talk

MOST = 300                                         # tokens of an answer


def opened(path, library):
    """A function that answers messages: (text, whether it has an end); None: they have no room in the context."""
    if library:
        os.environ["GGML_LITE_LIBRARY"] = library
    from ggml_lite import Error, Model
    model = Model(path)

    def answer(messages):
        try:
            said = model.answer([{"role": role, "content": text} for role, text, _ in messages], temperature=0, max_tokens=MOST)
        except Error as e:
            if "context" not in str(e):
                raise
            return None
        return said.content.strip(), said.run.finish == "end"
    return answer


def judge(answer, conversations):
    """kind -> [right, asked]"""
    score = {}
    for messages in conversations:
        for n, (role, text, kind) in enumerate(messages):
            if role != "assistant" or kind in ("tale", "short"):   # tales have many right wordings
                continue
            said = answer(messages[:n])
            if not said:
                break
            s = score.setdefault(kind, [0, 0])
            s[0] += said[0] == text.strip()
            s[1] += 1
    return score


def stories(answer, count, seed):
    """Counts (told by request, with the kind of hero, with the name, ended) of stories asked for at the begin."""
    rng, told = random.Random(seed), [0, 0, 0, 0, 0]
    for _ in range(count):
        asked = Talk(rng)
        topic, want = asked.topic()
        asked.user_says(f"tell me a story about {topic}")
        text, ended = answer(asked.messages)
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
    ap.add_argument("--library", help="libllm.so")
    ap.add_argument("--prose", help="the text that talk.py was given")
    ap.add_argument("--count", type=int, default=200, help="conversations")
    ap.add_argument("--stories", type=int, default=20)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--all", action="store_true", help="print every kind, not only groups")
    args = ap.parse_args()
    answer = opened(args.model, args.library)
    prose = held_out(prose_lines(args.prose)) if args.prose else ()
    score = judge(answer, [talk(args.seed + 1000, HELD_OUT + n, prose) for n in range(args.count)])
    groups = {}
    for kind, (right, asked) in score.items():
        for name in {kind.split(".")[0]} | ({kind} if args.all else set()):
            g = groups.setdefault(name, [0, 0])
            g[0], g[1] = g[0] + right, g[1] + asked
    for name, (right, asked) in sorted(groups.items()):
        print(f"{name:14} {100 * right / asked:5.1f} % of {asked}")
    if args.stories:
        n, named, right, topic, ended = stories(answer, args.stories, args.seed)
        print(f"stories on request: {ended} of {n} end; the name is right in {right} of {named}, "
              f"the topic in {topic} of {n - named}")


if __name__ == "__main__":
    main()
