"""Nano models that read the rows of a picture: text models of ./eye_texts.py, each with a small eye of ./eye_kinds.py, for tests that take cases as
./nano.py has them. What a descriptor says of rows in place of tokens shows in nothing else."""
import numpy as np

import eye_kinds
import eye_texts
import eyes
import gguf
import recorded

PROMPT = "ab<__media__>cdefgh"


class Sighted:
    """A text model, an eye and a picture; its outputs are the logits of the text's tokens."""

    descriptor = None

    def __init__(self, name, eye, seed):
        g = np.random.default_rng(seed)
        self.name, self.eye = name, eye_kinds.KINDS[eye](g)
        self.text = eye_texts.KINDS[self.eye.text](g, self.eye)
        self.arch = self.text.arch
        self.picture = g.integers(0, 256, (48, 31, 3), dtype=np.uint8)
        self.rows = self.text.logits(eyes.parts_of(self.eye, PROMPT, [self.picture]))  # now: a later eye may add words to all vocabularies

    def outputs(self):
        return recorded.Outputs(self.rows.shape, self.rows)

    def write(self, model):
        """Returns the paths of the files."""
        gguf.write(model, self.text.meta, self.text.w)
        gguf.write(model + ".eye", self.eye.meta, self.eye.w)
        eyes.write_picture(model + ".ppm", self.picture)
        return [model, model + ".eye", model + ".ppm"]

    def command(self, cli, model, out):
        return [cli, "-m", model, "--mmproj", model + ".eye", "--image", model + ".ppm", "-p", PROMPT, "-n", "0", "-t", "1", "-ctk", "f32", "-ctv", "f32",
                "--logits", out]


# The seeds give few rows of a picture, in several lines and columns; the second eye's also have numbers of their own for two of the text's three layers.
CASES = [("qwen2vl-picture", "qwen2vl", 4), ("qwen3vl-picture", "qwen3vl", 5)]


def cases_of(families):
    """Those whose text models are of these families."""
    return [Sighted(name, eye, seed) for name, eye, seed in CASES if eye_texts.KINDS[eye_kinds.KINDS[eye].text].arch in families]
