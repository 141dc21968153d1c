"""Dots 3 Note (rednote 2026; after transformers' modeling_dots3_note.py, and llama.cpp for the indexer's rotation): latent attention of two shapes with a gate for each head."""
from sparse import *

ROT, WINDOWED = 6, {"n_head": 2, "r": 12, "d": 12, "dv": 8}


def dots3note(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")

    def attend(b, h, l):
        near = k("attention.sliding_window_pattern")[l]
        theta = inverse_frequencies(ROT, k("rope.freq_base_swa" if near else "rope.freq_base"))
        low = rms_norm(linear(h, b("attn_q_a")), b("attn_q_a_norm"), eps)
        more = {"window": k("attention.sliding_window")} if near else {}
        if not near and k("attention.indexer.top_k") < len(tokens):
            more = {"chosen": chosen_by(k, b, h, low, lambda x: rotate(x, theta, True))}
        c, r = linear(h, b("attn_kv_a_mqa")), len(b("attn_kv_a_norm"))
        q = split_heads(linear(low, b("attn_q_b")), k("attention.head_count")[l])
        a = latent(b, h, q, rms_norm(c[:, :r], b("attn_kv_a_norm"), eps), rms_norm(c[:, r:], b("attn_k_norm"), eps), lambda x: rotate(x, theta, False), **more)
        return linear(merge_heads(a * sigmoid(linear(h, b("attn_gate")))[..., None]), b("attn_output"))

    return decoder(k, w, tokens, attend, lambda b, h, l: feed(k, b, h, l))


def model(name, seed, kinds, more={}, tied=False):
    """kinds: W has a window, A chooses rows."""
    w = Weights(seed)
    w.embedding(92, N_EMBD, tied)
    index = {}
    for l, kind in enumerate(kinds):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        put_latent(w, b, ROT, **(WINDOWED if kind == "W" else {}))
        w.norm(b + "attn_k_norm", ROT)
        w.matrix(b + "attn_gate", WINDOWED["n_head"] if kind == "W" else N_HEAD, N_EMBD)
        if kind == "A":
            index = put_indexer(w, b)
        put_feed(w, l, 1)
    w.norm("output_norm", N_EMBD)
    r = WINDOWED["r"]
    keys = {**sizes(len(kinds), ROT), **index, "attention.head_count": [WINDOWED["n_head"] if kind == "W" else N_HEAD for kind in kinds], "attention.head_count_kv": 1,
            "attention.kv_lora_rank_swa": r, "attention.key_length_swa": r + ROT, "attention.value_length_swa": r, "attention.key_length_mla_swa": WINDOWED["d"] + ROT,
            "attention.value_length_mla_swa": WINDOWED["dv"], "attention.sliding_window": 4, "attention.sliding_window_pattern": [kind == "W" for kind in kinds],
            "attention.indexer.top_k": 5, "attention.indexer.types": [kind != "W" for kind in kinds], "attention.q_lora_rank": LOW, "rope.freq_base": 900.0,
            "rope.freq_base_swa": 70.0, **more}
    add(name, "dots3note", keys, w, dots3note)


model("dots3note", 1540, "AWAW")
model("dots3note-tied", 1541, "WA", {"expert_group_count": 2, "expert_group_used_count": 1, "attention.indexer.top_k": 64}, tied=True)
