"""Folders of encoders and diffusion models for ./folders.py: small models laid out as their classes have them, and forward passes that read that
layout. GELU is the tanh form, as established engines have it."""
from folders import *
from t5_buckets import bias_of

PUBLISHED = {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "torch_dtype": "float32",
             "transformers_version": "4.50.0", "use_cache": True, "classifier_dropout": None}


def bias_at(w, name):
    return w.get(name + ".bias")


def dense(w, x, name):
    return linear(x, w[name + ".weight"], bias_at(w, name))


def normed(c, w, x, name):
    return layer_norm(x, w[name + ".weight"], bias_at(w, name), c["how"].get("eps", EPS))


def attend(c, q, k, v, **more):
    return merge_heads(attention(*(split_heads(x, N_HEAD) for x in (q, k, v)), both=True, **more))


# --- BERT's order: a norm after each part. `names`: embedding, types, positions, first norm, the layer's prefix and its parts


BERT = {"embedding": "embeddings.word_embeddings", "types": "embeddings.token_type_embeddings", "positions": "embeddings.position_embeddings",
        "first": "embeddings.LayerNorm", "layer": "encoder.layer.{}.", "qkv": ["attention.self.query", "attention.self.key", "attention.self.value"],
        "o": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense", "down": "output.dense",
        "norm2": "output.LayerNorm"}
DISTIL = {"embedding": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings", "first": "embeddings.LayerNorm",
          "layer": "transformer.layer.{}.", "qkv": ["attention.q_lin", "attention.k_lin", "attention.v_lin"], "o": "attention.out_lin",
          "norm1": "sa_layer_norm", "up": "ffn.lin1", "down": "ffn.lin2", "norm2": "output_layer_norm"}
MPNET = {**BERT, "types": None, "qkv": ["attention.attn.q", "attention.attn.k", "attention.attn.v"], "o": "attention.attn.o",
         "norm1": "attention.LayerNorm", "bias": "encoder.relative_attention_bias"}
NOMIC = {"embedding": "embeddings.word_embeddings", "types": "embeddings.token_type_embeddings", "first": "emb_ln", "layer": "encoder.layers.{}.",
         "qkv": "attn.Wqkv", "o": "attn.out_proj", "norm1": "norm1", "up": "mlp.fc11", "gate": "mlp.fc12", "down": "mlp.fc2", "norm2": "norm2"}
FLASH = {**NOMIC, "qkv": "mixer.Wqkv", "o": "mixer.out_proj", "up": "mlp.fc1", "gate": None}
JINA2 = {**BERT, "positions": None, "up": "mlp.gated_layers", "down": "mlp.wo", "norm2": "mlp.layernorm"}
JINA2_CODE = {**BERT, "positions": None, "up": "mlp.up_gated_layer", "down": "mlp.down_layer", "norm2": "layer_norm_2", "after": "layer_norm_1",
              "whole": "attention.self.layer_norm_"}


def feed(how, w, p, h):
    n = how["names"]
    up = dense(w, h, p + n["up"])
    if how.get("halves"):  # of one matrix, which of them is the gate
        parts = np.split(up, 2, axis=-1)
        up = gelu(parts[how["halves"] - 1]) * parts[2 - how["halves"]]
    else:
        up = silu(dense(w, h, p + n["gate"])) * up if n.get("gate") else gelu(up)
    return dense(w, up, p + n["down"])


def experts_of(w, p, h):
    """Two of four, shares of a softmax over all; w1 and w2 have the experts' rows one after another, [n_ff, n_embd] each."""
    share = softmax(linear(h, w[p + "router.layer.weight"]))
    w1, w2 = (w[f"{p}experts.mlp.{x}"].reshape(4, N_FF, N_EMBD) for x in ("w1", "w2"))
    return experts(h, share, [best(row, 2) for row in share], lambda e, x: gelu(w1[e] @ x) @ w2[e])


def bert(c, w, n_ctx):
    how, head = c["how"], c["how"].get("prefix", "")
    n = how["names"]
    own = {name[len(head):]: x for name, x in w.items() if name.startswith(head)}
    more = {}
    if how.get("theta"):
        theta = inverse_frequencies(N_EMBD // N_HEAD, how["theta"])
    if n.get("bias"):
        more["bias"] = bias_of(own[n["bias"] + ".weight"], len(TOKENS))
    if how.get("alibi"):
        more["slopes"] = alibi_slopes(N_HEAD)
    x = own[n["embedding"] + ".weight"][TOKENS]
    if n.get("types"):
        x = x + own[n["types"] + ".weight"][0]
    if n.get("positions"):  # RoBERTa's first position is padding_idx + 1
        x = x + own[n["positions"] + ".weight"][how.get("skip", 0):][: len(TOKENS)]
    x = normed(c, own, x, n["first"])
    for l in range(c["how"]["layers"]):
        p = n["layer"].format(l)
        if isinstance(n["qkv"], str):
            q, k, v = np.split(dense(own, x, p + n["qkv"]), 3, axis=-1)
        else:
            q, k, v = (dense(own, x, p + name) for name in n["qkv"])
        if n.get("whole"):
            q, k = normed(c, own, q, p + n["whole"] + "q"), normed(c, own, k, p + n["whole"] + "k")
        if how.get("theta"):
            q, k = (merge_heads(rotate(split_heads(y, N_HEAD), theta, True)) for y in (q, k))
        h = normed(c, own, x + dense(own, attend(c, q, k, v, **more), p + n["o"]), p + n["norm1"])
        if n.get("after"):
            h = normed(c, own, x + h, p + n["after"])
        f = experts_of(own, p + "mlp.", h) if how.get("experts") and l % 2 == 1 else feed(how, own, p, h)
        x = normed(c, own, h + f, p + n["norm2"])
    if how["output"] == "none":
        return x
    pooled = "classifier.dense" if "classifier.dense.weight" in w else head + "pooler.dense"
    return dense(w, np.tanh(dense(w, x[:1], pooled)), "classifier.out_proj" if pooled == "classifier.dense" else "classifier")


def bert_weights(c, w):
    how, head, stored = c["how"], c["how"].get("prefix", ""), c["how"].get("n_positions", 64)
    n = how["names"]

    def matrix(name, rows, columns, biased=True):
        w.matrix(f"{head}{name}.weight", rows, columns)
        if biased and how.get("biased", True):
            w.vector(f"{head}{name}.bias", rows)

    def norm(name):
        w.vector(f"{head}{name}.weight", N_EMBD, 1.0)
        w.vector(f"{head}{name}.bias", N_EMBD)

    matrix(n["embedding"], N_VOCAB, N_EMBD, False)
    if n.get("types"):
        matrix(n["types"], c.get("type_vocab_size", 2), N_EMBD, False)
    if n.get("positions"):
        matrix(n["positions"], stored, N_EMBD, False)
    if n.get("bias"):
        matrix(n["bias"], 32, N_HEAD, False)
    norm(n["first"])
    for l in range(how["layers"]):
        p = n["layer"].format(l)
        for name in [n["qkv"]] if isinstance(n["qkv"], str) else n["qkv"]:
            matrix(p + name, (3 if isinstance(n["qkv"], str) else 1) * N_EMBD, N_EMBD)
        matrix(p + n["o"], N_EMBD, N_EMBD)
        for name in ("norm1", "norm2", "after"):
            if n.get(name):
                norm(p + n[name])
        for x in "qk" if n.get("whole") else "":
            norm(p + n["whole"] + x)
        if how.get("experts") and l % 2 == 1:
            w.matrix(f"{head}{p}mlp.router.layer.weight", 4, N_EMBD)
            for x in ("w1", "w2"):
                w.matrix(f"{head}{p}mlp.experts.mlp.{x}", 4 * N_FF, N_EMBD)
            w[f"{head}{p}mlp.experts.bias"] = np.zeros(N_EMBD)
            continue
        matrix(p + n["up"], (2 if how.get("halves") else 1) * N_FF, N_EMBD, not how.get("halves"))
        if n.get("gate"):
            matrix(p + n["gate"], N_FF, N_EMBD)
        matrix(p + n["down"], N_EMBD, N_FF)
    for name, rows in how.get("more", {}).items():
        w.matrix(name + ".weight", rows, N_EMBD)
        w.vector(name + ".bias", rows)


def with_adapters(w):
    """As Jina 3 stores its weights: each matrix beside those of five tasks."""
    out = {}
    for name, x in w.items():
        if name.endswith(".weight") and x.ndim == 2 and "pooler" not in name:
            stem = name[: -len("weight")] + "parametrizations.weight."
            out[stem + "original"] = x
            out[stem + "0.lora_A"], out[stem + "0.lora_B"] = np.ones((5, 2, x.shape[1])), np.ones((5, x.shape[0], 2))
        else:
            out[name] = x
    return out


def bert_config(names, output="none", **how):
    config = {"vocab_size": N_VOCAB, "num_hidden_layers": N_LAYER, "hidden_size": N_EMBD, "intermediate_size": N_FF, "num_attention_heads": N_HEAD,
              "layer_norm_eps": EPS, "max_position_embeddings": how.get("n_positions", 64), "hidden_act": "gelu", "type_vocab_size": 2,
              "model_type": "bert", "pad_token_id": 0, **PUBLISHED, **how.pop("config", {})}
    how = {"names": names, "output": output, "layers": config["num_hidden_layers"] or how.get("layers", N_LAYER), **how}
    return {**{k: v for k, v in config.items() if v is not None}, "how": how}, bert, bert_weights, [None]


ROBERTA = {"model_type": "xlm-roberta", "pad_token_id": 1, "type_vocab_size": 1, "position_embedding_type": "absolute"}
POOLER = {"pooler.dense": N_EMBD}
LABELS = {"id2label": {"1": "b", "0": "a", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}}
NO_BERT = {name: None for name in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "layer_norm_eps",
                                   "max_position_embeddings", "hidden_act", "model_type")}
NOMIC_CONFIG = {**NO_BERT, "n_layer": 2, "n_embd": N_EMBD, "n_inner": N_FF, "n_head": N_HEAD, "n_positions": 64, "layer_norm_epsilon": EPS,
                "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
                "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "prenorm": False, "causal": False, "use_rms_norm": False,
                "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
                "dense_seq_output": True, "fused_bias_fc": True, "fused_dropout_add_ln": True, "last_layer_subset": False,
                "pad_vocab_size_multiple": 64, "parallel_block": False, "parallel_block_tied_norm": False, "reorder_and_upcast_attn": False,
                "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "shared_aggregation_layernorm": True, "use_flash_attn": True,
                "use_xentropy": True, "max_trained_positions": 48, "model_type": "nomic_bert", "summary_type": "cls_index"}
MOE_CONFIG = {**NOMIC_CONFIG, "activation_function": "gelu", "qkv_proj_bias": True, "num_experts": 4, "moe_top_k": 2, "moe_every_n_layers": 2,
              "moe_normalize_expert_weights": False, "num_shared_experts": 0, "expert_choice_router": False, "ffn_div": 1, "moe_impl": "megablocks",
              "moe_resid_pdrop": 0.0, "router_aux_loss_coef": 0.1}
JINA2_CONFIG = {"position_embedding_type": "alibi", "feed_forward_type": "geglu", "attn_implementation": "torch", "emb_pooler": "mean"}

CLASSES = {
    "BertModel": bert_config(BERT, more=POOLER),
    "BertForMaskedLM": bert_config(BERT, prefix="bert.", more={"cls.predictions.transform.dense": N_EMBD}),
    "BertForSequenceClassification": bert_config(BERT, "rank", prefix="bert.", more={"bert.pooler.dense": N_EMBD, "classifier": 3}, config=LABELS),
    "RobertaModel": bert_config(BERT, skip=2, n_positions=66, more=POOLER, config={**ROBERTA, "model_type": "roberta"}),
    "CamembertModel": bert_config(BERT, skip=2, n_positions=66, config={**ROBERTA, "model_type": "camembert"}),
    "XLMRobertaForSequenceClassification": bert_config(BERT, "rank", prefix="roberta.", skip=2, n_positions=66, config={**ROBERTA, "id2label": {"0": "LABEL_0"}},
                                                       more={"classifier.dense": N_EMBD, "classifier.out_proj": 1}),
    "XLMRobertaModel jina-v3": bert_config(FLASH, prefix="roberta.", theta=2e4, layout=with_adapters, more={"roberta.pooler.dense": N_EMBD}, config={
        **ROBERTA, "position_embedding_type": "rotary", "rotary_emb_base": 2e4, "max_position_embeddings": 66, "lora_adaptations": ["a", "b"],
        "lora_rank": 2, "lora_alpha": 1, "lora_dropout_p": 0.0, "lora_main_params_trainable": False, "lora_prompts": {"a": "x"}, "use_flash_attn": True,
        "emb_pooler": None}),
    "DistilBertModel": bert_config(DISTIL, layers=2, eps=1e-12, config={**NO_BERT, "type_vocab_size": None, "n_layers": 2, "dim": N_EMBD, "hidden_dim": N_FF,
                                   "n_heads": N_HEAD, "max_position_embeddings": 64, "activation": "gelu", "sinusoidal_pos_embds": False, "tie_weights_": True,
                                   "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "model_type": "distilbert"}),
    "MPNetModel": bert_config(MPNET, skip=2, n_positions=66, more=POOLER, config={"model_type": "mpnet", "pad_token_id": 1, "type_vocab_size": None,
                                                                                  "relative_attention_num_buckets": 32}),
    "NomicBertModel": bert_config(NOMIC, theta=1000, layers=2, biased=False, config=NOMIC_CONFIG),
    "NomicBertModel moe": bert_config({**FLASH, "qkv": "attn.Wqkv", "o": "attn.out_proj"}, theta=1000, layers=2, experts=True, config=MOE_CONFIG),
    "JinaBertForMaskedLM": bert_config(JINA2, prefix="bert.", alibi=True, halves=1, config=JINA2_CONFIG),
    "JinaBertModel code": bert_config(JINA2_CODE, alibi=True, halves=2, more=POOLER, config=JINA2_CONFIG),
}
