"""InternLM 2 (Cai et al. 2024, the authors' modeling_internlm2.py): a Llama."""
import families
from kin import *


def model(name, seed, more={}, **named):
    kin(name, "internlm2", seed, more, **named, forward=families.llama)


model("internlm2", 371, {**sizes(None, 2), "rope.freq_base": 300.0}, tied=False)
model("internlm2-plain", 372, {"rope.dimension_count": 8, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
model("internlm2-yarn", 373, {**sizes(14, 1, 10), **YARN}, bias="qkvo")
