"""Folders of encoders and diffusion models for ./folders.py: small models laid out as their classes have them, and forward passes that read that
layout. GELU is exact, as transformers has it, except where `act` says another."""
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
ALBERT = {**BERT, "project": "encoder.embedding_hidden_mapping_in", "layer": "encoder.albert_layer_groups.{}.albert_layers.0.", "o": "attention.dense",
          "qkv": ["attention.query", "attention.key", "attention.value"], "norm1": "attention.LayerNorm", "up": "ffn", "down": "ffn_output",
          "norm2": "full_layer_layer_norm"}
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
        up = gelu_erf(parts[how["halves"] - 1]) * parts[2 - how["halves"]]
    else:
        up = silu(dense(w, h, p + n["gate"])) * up if n.get("gate") else how.get("act", gelu_erf)(up)
    return dense(w, up, p + n["down"])


def experts_of(w, p, h):
    """Two of four, shares of a softmax over all; w1 and w2 have the experts' rows one after another, [n_ff, n_embd] each."""
    share = softmax(linear(h, w[p + "router.layer.weight"]))
    w1, w2 = (w[f"{p}experts.mlp.{x}"].reshape(4, N_FF, N_EMBD) for x in ("w1", "w2"))
    return experts(h, share, [best(row, 2) for row in share], lambda e, x: gelu_erf(w1[e] @ x) @ w2[e])


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
    if how.get("width"):
        x = dense(own, x, n["project"])
    for l in range(c["how"]["layers"]):
        p = n["layer"].format(how.get("group", int)(l))
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
        return after_pooling(how, w, x)
    pooled = next(name for name in ("classifier.dense", "pre_classifier", head + "pooler.dense", head + "pooler") if name + ".weight" in w)
    return dense(w, how.get("head_act", np.tanh)(dense(w, x[:1], pooled)), "classifier.out_proj" if pooled == "classifier.dense" else "classifier")


def after_pooling(how, w, x):
    """The dense layer `after`: the folder of its module, or the name of its tensor in the model; its activation, and what is pooled before it."""
    if not how.get("after"):
        return x
    name, act, pooling = how["after"]
    own = how["files"][name + "/model.safetensors"] if name + "/model.safetensors" in how.get("files", {}) else {
        "linear" + end: w[name + end] for end in (".weight", ".bias") if name + end in w}
    x = act(linear(x.mean(0, keepdims=True) if pooling == "mean" else x, own["linear.weight"], own.get("linear.bias")))
    return x / np.linalg.norm(x, axis=1, keepdims=True) if pooling == "none" else x


def bert_weights(c, w):
    how, head, stored = c["how"], c["how"].get("prefix", ""), c["how"].get("n_positions", 64)
    n = how["names"]

    def matrix(name, rows, columns, biased=True):
        w.matrix(f"{head}{name}.weight", rows, columns)
        if biased and how.get("biased", True):
            w.vector(f"{head}{name}.bias", rows)

    def norm(name, size=N_EMBD):
        w.vector(f"{head}{name}.weight", size, 1.0)
        w.vector(f"{head}{name}.bias", size)

    width = how.get("width", N_EMBD)
    matrix(n["embedding"], N_VOCAB, width, False)
    if n.get("types"):
        matrix(n["types"], c.get("type_vocab_size", 2), width, False)
    if n.get("positions"):
        matrix(n["positions"], stored, width, False)
    if how.get("width"):
        matrix(n["project"], N_EMBD, width)
    if n.get("bias"):
        matrix(n["bias"], 32, N_HEAD, False)
    norm(n["first"], width)
    for l in sorted({how.get("group", int)(l) for l in range(how["layers"])}):
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
        if name not in how.get("no_bias", ()):
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
    return {**{k: v for k, v in config.items() if v is not None}, "how": how}, bert_weights, [None], bert


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
DISTIL_CONFIG = {**NO_BERT, "type_vocab_size": None, "n_layers": 2, "dim": N_EMBD, "hidden_dim": N_FF, "n_heads": N_HEAD, "max_position_embeddings": 64,
                 "activation": "gelu", "sinusoidal_pos_embds": False, "tie_weights_": True, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
                 "model_type": "distilbert"}
ELECTRA = {**BERT, "project": "embeddings_project"}
ELECTRA_CONFIG = {"model_type": "electra", "embedding_size": N_EMBD, "summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu",
                  "summary_last_dropout": 0.1, "position_embedding_type": "absolute"}
ALBERT_CONFIG = {"model_type": "albert", "embedding_size": 20, "num_hidden_groups": 1, "inner_group_num": 1, "hidden_act": "gelu_new",
                 "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1, "classifier_dropout_prob": 0.1,
                 "position_embedding_type": "absolute"}
JINA2_CONFIG = {"position_embedding_type": "alibi", "feed_forward_type": "geglu", "attn_implementation": "torch", "emb_pooler": "mean"}

CLASSES = {
    "BertModel": bert_config(BERT, more=POOLER),
    "BertModel gelu_new": bert_config(BERT, act=gelu, config={"hidden_act": "gelu_new"}),
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
    "DistilBertModel": bert_config(DISTIL, layers=2, eps=1e-12, config=DISTIL_CONFIG),
    "DistilBertForSequenceClassification": bert_config(DISTIL, "rank", prefix="distilbert.", layers=2, eps=1e-12, head_act=lambda x: np.maximum(x, 0), more={"pre_classifier": N_EMBD, "classifier": 3},
                                                       config={**DISTIL_CONFIG, **LABELS}, keys={"bert.pooling_type": 4, "bert.classifier.activation": "relu"}),
    "MPNetModel": bert_config(MPNET, skip=2, n_positions=66, more=POOLER, config={"model_type": "mpnet", "pad_token_id": 1, "type_vocab_size": None,
                                                                                  "relative_attention_num_buckets": 32}),
    "ElectraModel": bert_config(ELECTRA, width=20, act=gelu_erf, config={**ELECTRA_CONFIG, "embedding_size": 20}),
    "ElectraForPreTraining": bert_config(ELECTRA, prefix="electra.", act=gelu_erf, config=ELECTRA_CONFIG,
                                         more={"discriminator_predictions.dense": N_EMBD, "discriminator_predictions.dense_prediction": 1}),
    "ElectraForMaskedLM": bert_config(ELECTRA, prefix="electra.", width=20, act=gelu_erf, config={**ELECTRA_CONFIG, "embedding_size": 20},
                                      more={"generator_predictions.dense": 20, "generator_lm_head": N_VOCAB}),
    "ElectraForSequenceClassification": bert_config(ELECTRA, "rank", prefix="electra.", width=20, act=gelu_erf, head_act=gelu_erf, more={
        "classifier.dense": N_EMBD, "classifier.out_proj": 3}, config={**ELECTRA_CONFIG, **LABELS, "embedding_size": 20},
        keys={"electra.pooling_type": 4, "electra.classifier.output_labels": ["a", "b", "c"]}),
    "AlbertModel": bert_config(ALBERT, width=20, act=gelu, group=lambda l: 0, more={"pooler": N_EMBD}, config=ALBERT_CONFIG),
    "AlbertForMaskedLM": bert_config(ALBERT, prefix="albert.", width=20, group=lambda l: l // 2, more={"predictions.dense": 20},
                                     config={**ALBERT_CONFIG, "hidden_act": "gelu", "num_hidden_layers": 4, "num_hidden_groups": 2}),
    "AlbertForSequenceClassification": bert_config(ALBERT, "rank", act=gelu, prefix="albert.", width=20, group=lambda l: 0, config={**ALBERT_CONFIG, **LABELS},
                                                   more={"albert.pooler": N_EMBD, "classifier": 3}, keys={"albert.pooling_type": 4}),
    "NomicBertModel": bert_config(NOMIC, theta=1000, layers=2, biased=False, config=NOMIC_CONFIG),
    "NomicBertModel moe": bert_config({**FLASH, "qkv": "attn.Wqkv", "o": "attn.out_proj"}, theta=1000, layers=2, experts=True, config=MOE_CONFIG),
    "JinaBertForMaskedLM": bert_config(JINA2, prefix="bert.", alibi=True, halves=1, config=JINA2_CONFIG),
    "JinaBertForSequenceClassification": bert_config({**BERT, "positions": None}, "rank", prefix="bert.", alibi=True, config={
        **JINA2_CONFIG, "feed_forward_type": "original", "id2label": {"0": "LABEL_0"}}, more={"bert.pooler.dense": N_EMBD, "classifier": 1}),
    "JinaBertModel code": bert_config(JINA2_CODE, alibi=True, halves=2, more=POOLER, config=JINA2_CONFIG),
}


# --- norms before each part


LLAMA = {"embedding": "embed_tokens", "layer": "layers.{}.", "qkv": [f"self_attn.{x}_proj" for x in "qkv"], "o": "self_attn.o_proj",
         "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "last": "norm"}
GEMMA = {**LLAMA, "after1": "post_attention_layernorm", "norm2": "pre_feedforward_layernorm", "after2": "post_feedforward_layernorm",
         "heads": "self_attn.{}_norm"}
MODERN = {"embedding": "embeddings.tok_embeddings", "first": "embeddings.norm", "layer": "layers.{}.", "qkv": "attn.Wqkv", "o": "attn.Wo", "norm1": "attn_norm",
          "norm2": "mlp_norm", "up": "mlp.Wi", "down": "mlp.Wo", "last": "final_norm"}
NEO = {"embedding": "encoder", "layer": "transformer_encoder.{}.", "qkv": "qkv", "o": "wo", "norm1": "attention_norm", "norm2": "ffn_norm", "up": "ffn.w12",
       "down": "ffn.w3", "last": "layer_norm"}
LLADA = {"embedding": "transformer.wte", "layer": "transformer.blocks.{}.", "qkv": ["q_proj", "k_proj", "v_proj"], "o": "attn_out", "norm1": "attn_norm",
         "norm2": "ff_norm", "gate": "ff_proj", "up": "up_proj", "down": "ff_out", "last": "transformer.ln_f"}
T5 = {"layer": "encoder.block.{}.", "qkv": [f"layer.0.SelfAttention.{x}" for x in "qkv"], "o": "layer.0.SelfAttention.o", "norm1": "layer.0.layer_norm",
      "norm2": "layer.1.layer_norm", "down": "layer.1.DenseReluDense.wo", "last": "encoder.final_layer_norm", "embedding": "shared"}
ACTIVATIONS = {"silu": silu, "gelu": gelu, "gelu_erf": gelu_erf, "relu": lambda x: np.maximum(x, 0)}


def before(c, w, n_ctx):
    how, head = c["how"], c["how"].get("prefix", "")
    n, act, n_kv, d = how["names"], ACTIVATIONS[how.get("act", "silu")], how.get("n_kv", N_HEAD), how.get("d", N_EMBD // N_HEAD)
    own = {name[len(head):]: x for name, x in w.items() if name.startswith(head)}

    def norm(x, name):
        weight = own.get(name + ".weight")
        if weight is None:
            return x
        return layer_norm(x, weight, None, EPS) if how.get("centre") else rms_norm(x, weight + how.get("one", 0.0), EPS)

    x = own[n["embedding"] + ".weight"][TOKENS] * how.get("scale", 1.0)
    x = norm(x, n["first"]) if "first" in n else x
    bias = None
    for l in range(N_LAYER):
        p = n["layer"].format(l)
        h = norm(x, p + n["norm1"])
        if isinstance(n["qkv"], str):
            both = dense(own, h, p + n["qkv"])
            if how.get("by_head"):
                q, k, v = (part for part in np.split(both.reshape(len(TOKENS), N_HEAD, -1), 3, axis=-1))
            else:
                q, k, v = (split_heads(part, N_HEAD) for part in np.split(both, 3, axis=-1))
        else:
            q, k, v = (split_heads(dense(own, h, p + name), heads) for name, heads in zip(n["qkv"], (N_HEAD, n_kv, n_kv)))
        if "heads" in n:
            q, k = norm(q, p + n["heads"].format("q")), norm(k, p + n["heads"].format("k"))
        near = how.get("window") and how["near"](l)
        if how.get("theta"):
            theta, mag = (inverse_frequencies(d, how["near_theta"]), 1.0) if near else rotation({**c, "theta": how["theta"]}, d, n_ctx)
            q, k = (rotate(y, theta, not how.get("pairs"), mag) for y in (q, k))
        if how.get("buckets") and f"{p}layer.0.SelfAttention.relative_attention_bias.weight" in own:
            bias = bias_of(own[f"{p}layer.0.SelfAttention.relative_attention_bias.weight"], len(TOKENS))
        a = merge_heads(attention(q, k, v, 1.0 if how.get("buckets") else None, both=True, window=how["window"] if near else None, bias=bias))
        a = dense(own, a, p + n["o"])
        x = x + (norm(a, p + n["after1"]) if "after1" in n else a)
        h = norm(x, p + n["norm2"])
        if how.get("experts"):
            f = llada_experts(own, p + "mlp.", h, how["experts"] == "normal")
        elif "gate" in n:
            f = dense(own, act(dense(own, h, p + n["gate"])) * dense(own, h, p + n["up"]), p + n["down"])
        elif how.get("buckets"):
            feed = p + "layer.1.DenseReluDense."
            gated = feed + "wi_0.weight" in own
            f = act(dense(own, h, feed + ("wi_0" if gated else "wi"))) * (dense(own, h, feed + "wi_1") if gated else 1)
            f = dense(own, f, p + n["down"])
        else:
            gate, up = np.split(dense(own, h, p + n["up"]), 2, axis=-1)
            f = dense(own, act(gate) * up, p + n["down"])
        x = x + (norm(f, p + n["after2"]) if "after2" in n else f)
    x = norm(x, n["last"])
    if how["output"] == "logits":
        return linear(x, w[how["logits"] + ".weight"])
    if how["output"] == "rank" and how.get("centre"):  # ModernBERT's: mean, dense, GELU, norm
        h = layer_norm(gelu_erf(dense(w, x.mean(0, keepdims=True), "head.dense")), w["head.norm.weight"], None, EPS)
        return dense(w, h, "classifier")
    if how["output"] == "rank":
        return dense(w, np.tanh(dense(w, x[:1], "dense")), "classifier")
    x = after_pooling(how, w, x)
    for m in how.get("dense", ()):
        x = linear(x, how["files"][m + "/model.safetensors"]["linear.weight"])
    return x


def llada_experts(w, p, h, normal):
    share = softmax(linear(h, w[p + "gate.weight"]))
    of = [best(row, 2) for row in share]
    weights = [{e: row[e] / (sum(row[i] for i in es) if normal else 1) for e in es} for row, es in zip(share, of)]
    gate, up, down = ([w[f"{p}experts.{e}.{x}_proj.weight"] for e in range(4)] for x in ("gate", "up", "down"))
    return experts(h, weights, of, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))


def before_weights(c, w):
    how, head = c["how"], c["how"].get("prefix", "")
    n, n_kv, d = how["names"], how.get("n_kv", N_HEAD), how.get("d", N_EMBD // N_HEAD)
    about = 1.0 - how.get("one", 0.0)

    def matrix(name, rows, columns):
        w.matrix(f"{head}{name}.weight", rows, columns)

    matrix(n["embedding"], N_VOCAB, N_EMBD)
    for name in ("first", "last"):
        if name in n:
            w.vector(f"{head}{n[name]}.weight", N_EMBD, about)
    for l in range(N_LAYER):
        p = n["layer"].format(l)
        for name in ("norm1", "after1", "norm2", "after2"):
            if name in n and not (how.get("centre") and name == "norm1" and l == 0):
                w.vector(f"{head}{p}{n[name]}.weight", N_EMBD, about)
        for x in "qk" if "heads" in n else "":
            w.vector(f"{head}{p}{n['heads'].format(x)}.weight", d, about)
        if isinstance(n["qkv"], str):
            matrix(p + n["qkv"], 3 * N_EMBD, N_EMBD)
        else:
            for name, heads in zip(n["qkv"], (N_HEAD, n_kv, n_kv)):
                matrix(p + name, heads * d, N_EMBD)
                if how.get("biased"):
                    w.vector(f"{head}{p}{name}.bias", heads * d)
        matrix(p + n["o"], N_EMBD, N_HEAD * d)
        if how.get("buckets"):
            if l == 0 or how["buckets"] == "all":
                matrix(p + "layer.0.SelfAttention.relative_attention_bias", 32, N_HEAD)
            for name in ("wi_0", "wi_1") if how.get("act") == "gelu" else ("wi",):
                matrix(f"{p}layer.1.DenseReluDense.{name}", N_FF, N_EMBD)
        elif how.get("experts"):
            matrix(p + "mlp.gate", 4, N_EMBD)
            for e in range(4):
                for x, rows, columns in (("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
                    matrix(f"{p}mlp.experts.{e}.{x}_proj", rows, columns)
            continue
        elif "gate" in n:
            matrix(p + n["gate"], N_FF, N_EMBD)
            matrix(p + n["up"], N_FF, N_EMBD)
        else:
            matrix(p + n["up"], 2 * N_FF, N_EMBD)
        matrix(p + n["down"], N_EMBD, N_FF)
    for name, rows in how.get("more", {}).items():
        w.matrix(name + ".weight", rows, N_EMBD)
        if name not in how.get("no_bias", ()):
            w.vector(name + ".bias", rows)
    for name in how.get("norms", ()):
        w.vector(name + ".weight", N_EMBD, 1.0)
    if how["output"] == "logits":
        w.matrix(how["logits"] + ".weight", N_VOCAB, N_EMBD)


def before_config(names, config, output="none", scalings=[None], **how):
    common = {"vocab_size": N_VOCAB, "num_hidden_layers": N_LAYER, "hidden_size": N_EMBD, "intermediate_size": N_FF, "num_attention_heads": N_HEAD,
              "max_position_embeddings": 64, **PUBLISHED, **config}
    return {**{k: v for k, v in common.items() if v is not None}, "d": how.get("d", N_EMBD // N_HEAD), "theta": how.get("theta"),
            "how": {"names": names, "output": output, **how}}, before_weights, scalings, before


KIN = {"hidden_act": "silu", "rms_norm_eps": EPS, "num_key_value_heads": 2, "tie_word_embeddings": False}
NOT_LLADA = {name: None for name in ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "max_position_embeddings")}
MODERN_CONFIG = {"hidden_activation": "gelu", "norm_eps": EPS, "local_attention": 6, "global_attn_every_n_layers": 2, "global_rope_theta": 160000.0,
                 "local_rope_theta": 100.0, "norm_bias": False, "classifier_pooling": "mean", "classifier_activation": "gelu", "classifier_bias": False,
                 "classifier_dropout": 0.0, "cls_token_id": 1, "decoder_bias": True, "layer_norm_eps": 1e-5, "deterministic_flash_attn": False,
                 "reference_compile": True, "position_embedding_type": "absolute", "sparse_prediction": False, "sparse_pred_ignore_index": -100,
                 "initializer_cutoff_factor": 2.0, "attention_bias": False, "mlp_bias": False, "mlp_dropout": 0.0, "gradient_checkpointing": False}
MODERN_HOW = {"centre": True, "act": "gelu_erf", "theta": 160000.0, "near_theta": 100.0, "window": 6, "near": lambda l: l % 2 != 0}
NEO_CONFIG = {"model_type": "neobert", "norm_eps": EPS, "intermediate_size": 3 * N_FF // 2, "max_length": 64, "max_position_embeddings": None, "dim_head": 12,
              "embedding_init_range": 0.02, "decoder_init_range": 0.02, "classifier_init_range": 0.02, "kwargs": {"x": 1}}
NEO_HOW = {"theta": 10000.0, "pairs": True, "by_head": True}
LLADA_CONFIG = {**NOT_LLADA, "d_model": N_EMBD, "n_layers": N_LAYER, "n_heads": N_HEAD, "n_kv_heads": 2, "mlp_hidden_size": N_FF, "max_sequence_length": 64,
                "rope_theta": 500.0, "rms_norm_eps": EPS, "embedding_size": N_VOCAB, "weight_tying": False, "block_type": "llama", "activation_type": "silu",
                "alibi": False, "alibi_bias_max": 8.0, "attention_layer_norm": False, "attention_layer_norm_with_affine": True, "input_emb_norm": False,
                "bias_for_layer_norm": False, "block_group_size": 1, "flash_attention": False, "include_bias": False, "include_qkv_bias": False,
                "init_cutoff_factor": None, "init_device": "meta", "init_fn": "mitchell", "init_std": 0.02, "layer_norm_type": "rms",
                "layer_norm_with_affine": True, "mlp_ratio": 4, "multi_query_attention": None, "precision": "amp_bf16", "rope": True,
                "rope_full_precision": True, "scale_logits": False, "mask_token_id": 9, "attention_dropout": 0.0, "embedding_dropout": 0.0,
                "residual_dropout": 0.0, "model_type": "llada"}
MOE = {**KIN, "model_type": "llada", "num_experts": 4, "num_experts_per_tok": 2, "expert_intermediate_size": N_FF, "dense_intermediate_size": 99, "moe_layer_freq": [1, 1, 1],
       "norm_topk_prob": None, "qk_layernorm": True, "partial_rotary_factor": 1, "attention_bias": False, "intermediate_size": None}
RND1 = {**KIN, "model_type": "rnd1", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": N_FF, "norm_topk_prob": True, "head_dim": 16,
        "decoder_sparse_step": 1, "mask_token_id": 9, "mlp_only_layers": [], "num_diffusion_steps": 256}
T5_CONFIG = {**NOT_LLADA, "d_model": N_EMBD, "d_kv": 16, "d_ff": N_FF, "num_heads": N_HEAD, "num_layers": N_LAYER, "layer_norm_epsilon": EPS, "n_positions": 512,
             "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "feed_forward_proj": "relu", "num_decoder_layers": 3,
             "is_encoder_decoder": True, "dense_act_fn": "relu", "is_gated_act": False, "tie_word_embeddings": False}
GEMMA_CONFIG = {"hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": EPS, "num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 16,
                "use_bidirectional_attention": True, "sliding_window": 8, "_sliding_window_pattern": 2, "attention_bias": False,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "attn_logit_softcapping": None, "final_logit_softcapping": None}


def drawn(seed, rows, columns):
    return np.float32(np.random.default_rng(seed).normal(size=(rows, columns)) / math.sqrt(columns)).astype(np.float64)


def dense_module(rows, columns, bias=False, act="linear.Identity", pooled=True):
    """As sentence-transformers 6 writes it."""
    names = {x: "sentence_embedding" if pooled else "token_embeddings" for x in ("module_input_name", "module_output_name")}
    return {"in_features": columns, "out_features": rows, "bias": bias, "activation_function": "torch.nn.modules." + act, **names}


def with_dense(pooled, rows, act="linear.Identity", bias=False):
    """A folder of sentence-transformers with a dense layer, or PyLate's, which has no pooling."""
    pool = {"1_Pooling/config.json": pooling(**{pooled: True})} if pooled else {}
    kinds = ["Transformer", "Pooling", "Dense"] if pooled else ["Transformer", "Dense"]
    tensors = {"linear.weight": drawn(3, rows, N_EMBD), **({"linear.bias": drawn(4, 1, rows)[0]} if bias else {})}
    return {"modules.json": [m for m in modules(*kinds) if m["path"] != "3_Dense"], **pool, "2_Dense/config.json": dense_module(rows, N_EMBD, bias, act, pooled),
            "2_Dense/model.safetensors": tensors}


MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Dense", "Dense"), ("4_Normalize", "Normalize")]


def modules(*kinds):
    return [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind} for i, (path, kind) in enumerate(MODULES) if kind in kinds]


def pooling(**how):
    return {"word_embedding_dimension": N_EMBD, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False, "include_prompt": True, **how}


GEMMA_FILES = {"modules.json": modules("Transformer", "Pooling", "Dense", "Normalize"), "1_Pooling/config.json": pooling(pooling_mode_mean_tokens=True),
               "2_Dense/config.json": dense_module(70, N_EMBD), "2_Dense/model.safetensors": {"linear.weight": drawn(1, 70, N_EMBD)},
               "3_Dense/config.json": dense_module(N_EMBD, 70), "3_Dense/model.safetensors": {"linear.weight": drawn(2, N_EMBD, 70)},
               "config_sentence_transformers.json": {"__version__": {}, "prompts": {"query": "task: search result | query: ", "document": "title: none | text: "},
                                                     "default_prompt_name": None, "similarity_fn_name": "cosine"}}
GEMMA_KEYS = {"gemma-embedding.pooling_type": 1, "sentence_transformers.prompt.query": "task: search result | query: ", "sentence_transformers.normalize": True,
              "sentence_transformers.prompt.document": "title: none | text: ", "sentence_transformers.similarity": "cosine",
              "sentence_transformers.default_prompt": None, "gemma-embedding.dense_2_feat_out": 70}
BERT_FILES = {"modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": pooling(pooling_mode_cls_token=True),
              "config_sentence_transformers.json": {"prompts": {"a": "b: "}, "default_prompt_name": "a"}}
BERT_KEYS = {"bert.pooling_type": 2, "sentence_transformers.prompt.a": "b: ", "sentence_transformers.default_prompt": "a",
             "sentence_transformers.normalize": False}

SAME = np.asarray  # no activation
PYLATE = {"prompts": {"query": "", "a": "b"}, "query_prefix": "[Q] ", "document_prefix": "[D] ", "similarity_fn_name": "MaxSim", "query_length": 32}
PYLATE_KEYS = {"modern-bert.pooling_type": 0, "sentence_transformers.prompt.query": "[Q] ", "sentence_transformers.prompt.document": "[D] ",
               "sentence_transformers.prompt.a": "b", "sentence_transformers.similarity": "MaxSim", "sentence_transformers.query_length": 32,
               "sentence_transformers.attend_to_expansion_tokens": False}

CLASSES |= {
    "BertModel sentences": bert_config(BERT, files=BERT_FILES, keys=BERT_KEYS),
    "HF_ColBERT": bert_config(BERT, prefix="bert.", more={"linear": 20, "bert.pooler.dense": N_EMBD}, no_bias=["linear"], after=("linear", SAME, "none"),
                              files={"artifact.metadata": {"query_maxlen": 24, "attend_to_mask_tokens": True, "doc_maxlen": 180}},
                              keys={"bert.pooling_type": 0, "bert.dense_2_feat_out": 20, "sentence_transformers.query_length": 24,
                                    "sentence_transformers.attend_to_expansion_tokens": True}),
    "BertModel labse": bert_config(BERT, more=POOLER, after=("2_Dense", np.tanh, "cls"), files=with_dense("pooling_mode_cls_token", N_EMBD, "activation.Tanh", True)),
    "DistilBertModel distiluse": bert_config(DISTIL, layers=2, eps=1e-12, config=DISTIL_CONFIG, after=("2_Dense", np.tanh, "mean"), keys={"bert.pooling_type": 1},
                                             files=with_dense("pooling_mode_mean_tokens", 20, "activation.Tanh", True)),
    "ModernBertModel pylate": before_config(MODERN, MODERN_CONFIG, **MODERN_HOW, after=("2_Dense", SAME, "none"), keys=PYLATE_KEYS,
                                            files={**with_dense(None, 20), "config_sentence_transformers.json": PYLATE}),
    "T5EncoderModel gtr": before_config(T5, T5_CONFIG, buckets="first", act="relu", d=16, after=("2_Dense", SAME, "rows"),
                                        files=with_dense("pooling_mode_mean_tokens", 20)),
    "ModernBertModel": before_config(MODERN, MODERN_CONFIG, **MODERN_HOW),
    "ModernBertModel granite": before_config(MODERN, {**MODERN_CONFIG, "hidden_activation": "silu"}, **{**MODERN_HOW, "act": "silu"},
                                             keys={"modern-bert.hidden_activation": "silu"}),
    "ModernBertForMaskedLM": before_config(MODERN, MODERN_CONFIG, **MODERN_HOW, prefix="model.", more={"head.dense": N_EMBD, "decoder": N_VOCAB}, norms=["head.norm"]),
    "ModernBertForSequenceClassification": before_config(MODERN, {**MODERN_CONFIG, **LABELS}, "rank", **MODERN_HOW, prefix="model.", norms=["head.norm"],
                                                         more={"head.dense": N_EMBD, "classifier": 3}, no_bias=["head.dense"],
                                                         keys={"modern-bert.pooling_type": 4, "modern-bert.classifier.output_labels": ["a", "b", "c"]}),
    "NeoBERTLMHead": before_config(NEO, NEO_CONFIG, **NEO_HOW, prefix="model.", more={"decoder": N_VOCAB}, keys={"neo-bert.pooling_type": 2}),
    "NeoBERTForSequenceClassification": before_config(NEO, {**NEO_CONFIG, "id2label": {str(i): f"LABEL_{i}" for i in range(9)}}, "rank", **NEO_HOW, prefix="model.", more={"dense": N_EMBD, "classifier": 9}),
    "EuroBertModel": before_config(LLAMA, {**KIN, "head_dim": 16, "clf_pooling": "late", "mask_token": "<|mask|>"}, theta=250000.0, d=16, n_kv=2, scalings=["default"]),
    "LlamaBidirectionalModel": before_config(LLAMA, {**KIN, "pooling": "avg", "temperature": 1.0}, theta=500.0, n_kv=2, scalings=EVERY + ["llama3"],
                                             keys={"llama-embed.pooling_type": 1}),
    "Gemma3TextModel": before_config(GEMMA, GEMMA_CONFIG, theta=1e6, near_theta=100.0, local=100.0, d=16, n_kv=2, one=1.0, act="gelu", scale=math.sqrt(N_EMBD), window=8,
                                     near=lambda l: l % 2 == 0, scalings=["default", "linear"], files=GEMMA_FILES, dense=["2_Dense", "3_Dense"], keys=GEMMA_KEYS),
    "T5EncoderModel": before_config(T5, T5_CONFIG, buckets="first", act="relu", d=16),
    "UMT5EncoderModel": before_config(T5, {**T5_CONFIG, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True}, buckets="all", act="gelu", d=16),
    "DreamModel": before_config(LLAMA, {**KIN, "use_sliding_window": False, "max_window_layers": 3, "mask_token_id": 9}, "logits", prefix="model.", theta=500.0, n_kv=2,
                                biased=True, logits="lm_head", scalings=["default"], keys={"diffusion.shift_logits": True}),
    "LLaDAModelLM": before_config(LLADA, LLADA_CONFIG, "logits", prefix="model.", theta=500.0, n_kv=2, logits="model.transformer.ff_out",
                                  keys={"diffusion.shift_logits": False}),
    "LLaDAMoEModelLM": before_config({**LLAMA, "heads": "self_attn.{}_norm"}, MOE, "logits", prefix="model.", theta=500.0, n_kv=2, experts="shares", logits="lm_head", scalings=["default"]),
    "RND1": before_config({**LLAMA, "heads": "self_attn.{}_norm"}, RND1, "logits", prefix="model.", theta=500.0, n_kv=2, d=16, experts="normal", logits="lm_head",
                          scalings=["default"]),
}
