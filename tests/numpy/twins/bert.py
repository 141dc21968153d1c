"""BERT (Devlin et al. 2019; transformers' modeling_bert.py, modeling_xlm_roberta.py), and after its authors' code: Nomic's (Nussbaum et al. 2024;
modeling_hf_nomic_bert.py), its mixture of experts (2025), Jina's 2 (Guenther et al. 2023; ALiBi on both sides, gated) and 3 (Sturua et al.
2024; rotary), MPNet (Song et al. 2020; modeling_mpnet.py: biases by the bucket of a distance) and ELECTRA (Clark et al. 2020; modeling_electra.py:
embeddings of another width, and a head with GELU). GELU is the tanh form, as established engines have it, unless the file says that it is exact; ELECTRA's,
which they lack, is its own."""
from encoders import *
from t5_buckets import bias_of


def feed_of(arch, k, b, h):
    act = gelu_erf if arch == "electra" or k("gelu", "tanh") == "erf" else gelu
    if b("ffn_gate_inp") is not None:  # MegaBlocks' mixture without a gate: softmax, the best, shares as they are
        p = softmax(linear(h, b("ffn_gate_inp")))
        chosen = [best(row, k("expert_used_count")) for row in p]
        return experts(h, p, chosen, lambda e, x: b("ffn_down_exps")[e] @ act(b("ffn_up_exps")[e] @ x))
    if arch in ("nomic-bert", "jina-bert-v2"):  # gated: SiLU, GELU
        up = dense(b, h, "ffn_up")
        if b("ffn_gate") is None and up.shape[-1] == k("feed_forward_length"):  # no gate
            return dense(b, act(up), "ffn_down")
        if b("ffn_gate") is None:  # one matrix, gate first
            gate, up = np.split(up, 2, axis=-1)
        else:
            gate = dense(b, h, "ffn_gate")
        return dense(b, (silu(gate) if arch == "nomic-bert" else act(gate)) * up, "ffn_down")
    return dense(b, act(dense(b, h, "ffn_up")), "ffn_down")


def forward_of(arch):
    def forward(k, w, tokens, output):
        n_head, eps = k("attention.head_count"), k("attention.layer_norm_epsilon")
        how = {}
        if arch == "jina-bert-v2":
            how = {"slopes": alibi_slopes(n_head)}
        elif arch == "mpnet":
            how = {"bias": bias_of(w["attn_rel_b.weight"], len(tokens))}
        elif arch not in ("bert", "electra"):
            how = dict(zip(("theta", "mag"), scaled_frequencies(k, k("embedding_length") // n_head)))
        x = w["token_embd.weight"][tokens]
        if "token_types.weight" in w:
            x = x + w["token_types.weight"][0]
        if arch in ("bert", "mpnet", "electra"):
            x = x + w["position_embd.weight"][: len(tokens)]
        x = layer_norm(x, w["token_embd_norm.weight"], w["token_embd_norm.bias"], eps)
        if "token_embd_proj.weight" in w:
            x = linear(x, w["token_embd_proj.weight"], w["token_embd_proj.bias"])
        for l in range(k("block_count")):
            b = layer(w, l)
            if b("attn_q_norm") is not None:  # of Jina's code models: of the whole row, before the heads
                q, key, v = (dense(b, x, "attn_" + p) for p in "qkv")
                q, key = layer_normed(b, q, "attn_q_norm", eps), layer_normed(b, key, "attn_k_norm", eps)
                a = attention(*(split_heads(p, n_head) for p in (q, key, v)), both=True, **how)
                a = dense(b, merge_heads(a), "attn_output")
            else:
                a = attend(k, b, x, **how)
            h = layer_normed(b, x + a, "attn_output_norm", eps)
            if b("attn_norm_2") is not None:
                h = layer_normed(b, x + h, "attn_norm_2", eps)
            x = layer_normed(b, h + feed_of(arch, k, b, h), "layer_output_norm", eps)
        if output == "rank" and arch == "electra":
            return classified(w, x[:1], gelu_erf)
        return output_of(k, output, x, w)
    return forward


def model(name, arch, seed, more={}, output="none", n_head=4, types=2, biased=True, fused=False, n_labels=0, whole_norms=False, every=0, n_layer=2, pooled=True, one=False, plain=False, width=N_EMBD, n_scores=N_EMBD):
    w = Weights(seed)
    w.embedding(N_VOCAB, width)
    if types:
        w.put("token_types.weight", 0.25 * w.random.normal(size=(types, width)))
    if arch in ("bert", "mpnet", "electra"):
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, width)))
    if arch == "mpnet":
        w.put("attn_rel_b.weight", w.random.normal(size=(8, n_head)))
    w.norm("token_embd_norm", width, True)
    if width != N_EMBD:
        w.matrix("token_embd_proj", N_EMBD, width, bias=True)
    for l in range(n_layer):
        b = f"blk.{l}."
        w.attention(l, N_EMBD, n_head, n_head, N_EMBD // n_head, bias="qkvo" if biased else "")
        for norm in ["attn_output_norm", "layer_output_norm"] + (["attn_q_norm", "attn_k_norm"] if whole_norms else []) + (["attn_norm_2"] if whole_norms else []):
            w.norm(b + norm, N_EMBD, True)
        if every and l % every == 1:
            w.experts(l, N_EMBD, N_FF, 5)
            w.pop(b + "ffn_gate_exps.weight")
        else:
            if arch in ("nomic-bert", "jina-bert-v2") and not one and not plain:
                w.matrix(b + "ffn_gate", N_FF, N_EMBD)
            w.matrix(b + "ffn_up", (2 if one else 1) * N_FF, N_EMBD, bias=biased)
            w.matrix(b + "ffn_down", N_EMBD, N_FF, gain=2, bias=biased)
        if fused:
            fuse_qkv(w, l)
    if output == "rank":
        head(w, n_labels, biased, pooled, n_scores)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, n_head, EPS, True), "attention.causal": False, **more}
    encoder(name, arch, keys, w, forward_of(arch), output)


model("bert", "bert", 3001)
model("bert-roberta-rank", "bert", 3002, {**labels(3), "tokenizer.ggml.token_type_count": 1}, "rank", types=1, n_labels=3)
model("bert-plain-rank", "bert", 3003, {"attention.causal": None}, "rank", biased=False)  # the dense layer alone
model("bert-direct-rank", "bert", 3009, labels(2), "rank", n_labels=2, pooled=False)
model("nomic-bert", "nomic-bert", 3004, {"rope.freq_base": 300.0}, fused=True, biased=False)
model("nomic-bert-moe", "nomic-bert-moe", 3005, {"moe_every_n_layers": 2, "expert_count": 5, "expert_used_count": 2}, fused=True, every=2, n_layer=4)
model("jina-bert-v2", "jina-bert-v2", 3006, n_head=6)
model("jina-bert-v2-norms", "jina-bert-v2", 3007, biased=False, whole_norms=True)
model("jina-bert-v3", "jina-bert-v3", 3008, {"rope.freq_base": 20000.0, "rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, fused=True, types=0)
model("jina-bert-v2-one", "jina-bert-v2", 3010, one=True)
model("jina-bert-v2-rank", "jina-bert-v2", 3016, {}, "rank", one=True, n_scores=1)  # the dense layer gives the score
model("jina-bert-v2-plain", "jina-bert-v2", 3017, {}, "rank", plain=True, n_labels=1)  # no gate
model("jina-bert-v2-erf", "jina-bert-v2", 3018, {"gelu": "erf"}, one=True)
model("bert-erf", "bert", 3019, {"gelu": "erf"})
model("nomic-bert-moe-erf", "nomic-bert-moe", 3020, {"moe_every_n_layers": 2, "expert_count": 5, "expert_used_count": 2, "gelu": "erf"}, fused=True, every=2)
model("mpnet", "mpnet", 3011, {"attention.relative_buckets_count": 8}, types=0)
model("bert-dense-mean", "bert", 3014, {"dense_2_feat_out": 20, "dense_2_activation": "tanh"}, "mean")
model("bert-dense-first", "bert", 3015, {"dense_2_feat_out": N_EMBD, "dense_2_activation": "tanh", "pooling_type": 2})
model("electra", "electra", 3012, {"word_embedding_length": 20}, width=20)
model("electra-rank", "electra", 3013, labels(3), "rank", n_labels=3)
