"""The families that train.py trains: the model, its default shape, and the meaning of its token ids."""

from dataclasses import dataclass

from gpt2 import GPT2
from llama import Config, Llama
from qwen import Qwen2, Qwen3


@dataclass
class Family:
    model: type
    config: Config
    begin: int = None          # the token that begins a story; none: it begins after the last token of the vocabulary
    first: int = 256           # the first token that is longer than a byte
    last: int = 1              # number of tokens at the end of the vocabulary that are not text

    def pieces(self, vocab):
        return self.first, vocab - self.last


# These models are for tests: 96 wide and 4 layers deep, at most 1 MB each as Q8_0.
SIBLING = dict(vocab=1536, embd=96, layers=4, context=256)
FAMILIES = {
    "llama": Family(Llama, Config(), begin=1, first=259, last=0),
    "gpt2": Family(GPT2, Config(**SIBLING, heads=4, kv_heads=4, head=24, ff=384, eps=1e-5)),
    "qwen2": Family(Qwen2, Config(**SIBLING, heads=4, kv_heads=2, head=24, ff=256, eps=1e-6, rope_base=1e6)),
    "qwen3": Family(Qwen3, Config(**SIBLING, heads=4, kv_heads=2, head=32, ff=256, eps=1e-6, rope_base=1e6)),
}
