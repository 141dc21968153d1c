"""Tables of vectors (model2vec 0.10, model.py: a row for each token, times a factor if there are some)."""
from encoders import *


def forward(k, w, tokens, output):
    rows = w["token_embd.weight"][tokens]
    return rows * w["token_weight.weight"][tokens] if "token_weight.weight" in w else rows


for name, seed, weighted in (("static-embedding", 3030, False), ("static-embedding-weights", 3031, True)):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD)
    if weighted:
        w.put("token_weight.weight", 1 + 0.3 * w.random.normal(size=(N_VOCAB, 1)))
    encoder(name, "static-embedding", {"embedding_length": N_EMBD, "context_length": 64, "pooling_type": 1}, w, forward)
