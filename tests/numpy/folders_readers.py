"""Folders of models with an encoder and a decoder that reads it, for ./folders.py: BART, mBART, Marian, T5, laid out as their classes have
them (Lewis et al. 2020, Liu et al. 2020, Junczys-Dowmunt et al. 2018, Raffel et al. 2020; transformers' modeling_*.py)."""
from folders import *

READ = [5, 30, 2, 21, 8, 8, 39, 14, 1]


def weights(c, w):
    how = c["how"]
    head = how["prefix"]
    w.matrix(head + "shared.weight", N_VOCAB, N_EMBD)
    w[head + "shared.weight"] *= how.get("gain", 1)

    def matrix(name, rows, columns):
        w.matrix(name + ".weight", rows, columns)
        w.vector(name + ".bias", rows)

    def norm(name):
        w.vector(name + ".weight", N_EMBD, 1.0)
        w.vector(name + ".bias", N_EMBD)

    for name in ("encoder", "decoder"):
        if not how["waves"]:
            w.matrix(f"{head}{name}.embed_positions.weight", c["max_position_embeddings"] + 2, N_EMBD)
            norm(f"{head}{name}.layernorm_embedding")
        if how["before"]:
            norm(f"{head}{name}.layer_norm")
        for l in range(c[name + "_layers"]):
            p = f"{head}{name}.layers.{l}."
            for part in ("self_attn", "encoder_attn") if name == "decoder" else ("self_attn",):
                for n in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    matrix(f"{p}{part}.{n}", N_EMBD, N_EMBD)
                norm(f"{p}{part}_layer_norm")
            matrix(p + "fc1", N_FF, N_EMBD)
            matrix(p + "fc2", N_EMBD, N_FF)
            norm(p + "final_layer_norm")
    if how.get("output") == "rank":
        matrix("classification_head.dense", N_EMBD, N_EMBD)
        matrix("classification_head.out_proj", 3, N_EMBD)
    if how["biased"]:
        w["final_logits_bias"] = np.float32(w.random.normal(size=(1, N_VOCAB))).astype(np.float64)


def copies(head, waves):
    """As files repeat the table of embeddings, and Marian's the sines."""
    def layout(w):
        table = w[head + "shared.weight"]
        out = {**w, head + "encoder.embed_tokens.weight": table, head + "decoder.embed_tokens.weight": table, "lm_head.weight": table}
        if waves:
            out |= {f"{head}{name}.embed_positions.weight": np.zeros((128, N_EMBD)) for name in ("encoder", "decoder")}
        return out
    return layout


def alone(name):
    """As safetensors files keep one of several equal tensors."""
    return lambda w: {(name if n.endswith("shared.weight") else n): x for n, x in w.items()}


# As config.json is published, without what its own program writes in every file.
COMMON = {"activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False, "add_final_layer_norm": False, "attention_dropout": 0.0,
          "bos_token_id": 0, "classif_dropout": 0.1, "classifier_dropout": 0.0, "d_model": N_EMBD, "decoder_attention_heads": 4, "decoder_ffn_dim": N_FF,
          "decoder_layerdrop": 0.0, "decoder_layers": 2, "decoder_start_token_id": 2, "dropout": 0.1, "encoder_attention_heads": 4,
          "encoder_ffn_dim": N_FF, "encoder_layerdrop": 0.0, "encoder_layers": 2, "eos_token_id": 2, "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
          "init_std": 0.02, "is_encoder_decoder": True, "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "max_position_embeddings": 128, "model_type": "bart",
          "normalize_before": False, "normalize_embedding": True, "num_hidden_layers": 2, "pad_token_id": 1, "scale_embedding": False,
          "static_position_embeddings": False, "use_cache": True, "vocab_size": N_VOCAB, "forced_eos_token_id": 2, "no_repeat_ngram_size": 3,
          "num_beams": 4, "early_stopping": True, "gradient_checkpointing": False, "torch_dtype": "float32", "transformers_version": "4.12.0"}
MARIAN = {"model_type": "marian", "activation_function": "swish", "bad_words_ids": [[39]], "decoder_start_token_id": 39, "decoder_vocab_size": N_VOCAB,
          "eos_token_id": 0, "extra_pos_embeddings": N_VOCAB + 1, "forced_eos_token_id": 0, "max_length": 512, "normalize_embedding": False,
          "pad_token_id": 39, "scale_embedding": True, "share_encoder_decoder_embeddings": True, "static_position_embeddings": True}
MBART = {"model_type": "mbart", "normalize_before": True, "add_final_layer_norm": True, "scale_embedding": True, "output_past": True, "max_length": 200,
         "_num_labels": 3, "tokenizer_class": "MBart50Tokenizer"}

M2M100 = {"model_type": "m2m_100", "activation_function": "relu", "scale_embedding": True, "max_length": 200, "encoder_layers": 3,
          **{k: None for k in ("normalize_before", "add_final_layer_norm", "static_position_embeddings", "normalize_embedding", "add_bias_logits", "classif_dropout")}}


def config(more={}, scale=1, **how):
    how = {"prefix": "model.", "waves": False, "before": False, "biased": True, "read": READ, **how}
    return {**{k: v for k, v in {**COMMON, **more}.items() if v is not None}, "how": how}, weights, [None]


CLASSES = {
    "BartModel": config({"prefix": " ", "_num_labels": 3, "replacing_rate": 0, "student_encoder_layers": None}, prefix="", biased=False),
    "BartForConditionalGeneration": config({"forced_bos_token_id": 0, "encoder_layers": 3, "decoder_layers": 1, "task_specific_params": {"summarization": {"num_beams": 4}}},
                                           layout=copies("model.", False), keys={"bart.decoder_start_token_id": 2, "bart.forced_bos_token_id": 0}),
    "BartForSequenceClassification": config({"decoder_layers": 3, "id2label": {"0": "contradiction", "1": "neutral", "2": "entailment"}, "label2id": {
        "contradiction": 0, "entailment": 2, "neutral": 1}}, biased=False, output="rank", layout=copies("model.", False),
        keys={"bart.pooling_type": 4, "bart.classifier.output_labels": ["contradiction", "neutral", "entailment"]}),
    "MBartForConditionalGeneration": config({**MBART, "activation_function": "relu"}, before=True, gain=0.3, layout=alone("model.decoder.embed_tokens.weight")),
    "M2M100ForConditionalGeneration": config(M2M100, waves=True, before=True, gain=0.3, biased=False, layout=copies("model.", False),
                                             keys={"m2m_100.decoder_start_token_id": 2}),
    "MarianMTModel": config(MARIAN, waves=True, gain=0.3, layout=copies("model.", True), keys={"marian.decoder_start_token_id": 39, "marian.forced_bos_token_id": None}),
    "MarianMTModel big": config({**MARIAN, "activation_function": "relu", "scale_embedding": False, "decoder_start_token_id": None}, waves=True, layout=alone("lm_head.weight"),
                                keys={"marian.decoder_start_token_id": 39}),
}


# --- T5


def t5_weights(c, w):
    d = c["d_kv"]
    w.matrix("shared.weight", N_VOCAB, N_EMBD)
    w["shared.weight"] *= 6 if c["tie_word_embeddings"] else 1
    if not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    for name, n_layer in (("encoder", c["num_layers"]), ("decoder", c["num_decoder_layers"])):
        for l in range(n_layer):
            p = f"{name}.block.{l}.layer."
            for part in ("0.SelfAttention.", "1.EncDecAttention.")[: 1 if name == "encoder" else 2]:
                for n in "qkv":
                    w.matrix(f"{p}{part}{n}.weight", N_HEAD * d, N_EMBD)
                w.matrix(f"{p}{part}o.weight", N_EMBD, N_HEAD * d)
                w.vector(f"{p}{part[0]}.layer_norm.weight", N_EMBD, 1.0)
            if l == 0 or c["how"]["every"]:
                w.matrix(f"{p}0.SelfAttention.relative_attention_bias.weight", 32, N_HEAD)
            p += "1." if name == "encoder" else "2."
            w.vector(p + "layer_norm.weight", N_EMBD, 1.0)
            for n in ("wi_0", "wi_1") if c["feed_forward_proj"] == "gated-gelu" else ("wi",):
                w.matrix(f"{p}DenseReluDense.{n}.weight", N_FF, N_EMBD)
            w.matrix(p + "DenseReluDense.wo.weight", N_EMBD, N_FF)
        w.vector(name + ".final_layer_norm.weight", N_EMBD, 1.0)


def t5_copies(w):
    """As T5's own files have them: the embeddings again, and biases of the decoder's other attention that nothing reads."""
    return {**w, "encoder.embed_tokens.weight": w["shared.weight"], "decoder.embed_tokens.weight": w["shared.weight"],
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": np.zeros((32, N_HEAD))}


def t5_config(more={}, **how):
    config = {"d_model": N_EMBD, "d_kv": 16, "d_ff": N_FF, "num_heads": N_HEAD, "num_layers": 2, "num_decoder_layers": 3, "vocab_size": N_VOCAB,
              "layer_norm_epsilon": EPS, "n_positions": 512, "relative_attention_num_buckets": 32, "feed_forward_proj": "relu", "is_encoder_decoder": True,
              "tie_word_embeddings": True, "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "dropout_rate": 0.1, "initializer_factor": 1.0,
              "model_type": "t5", "output_past": True, "use_cache": True, "task_specific_params": {"summarization": {"num_beams": 4}}, **more}
    return {**config, "how": {"read": READ, "every": False, **how}}, t5_weights, [None]


GATED = {"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True, "tie_word_embeddings": False, "relative_attention_max_distance": 128}
CLASSES |= {
    "T5ForConditionalGeneration": t5_config(layout=t5_copies, keys={"t5.decoder_start_token_id": 0, "t5.decoder_block_count": 3}),
    "MT5ForConditionalGeneration": t5_config({**GATED, "model_type": "mt5", "num_layers": 3, "classifier_dropout": 0.0}),
    "UMT5ForConditionalGeneration": t5_config({**GATED, "model_type": "umt5"}, every=True),
}
