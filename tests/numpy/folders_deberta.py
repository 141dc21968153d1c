"""Folders of DeBERTa 2 and 3 for ./folders.py, after transformers' modeling_deberta_v2.py."""
from folders import *
from folders_encoders import LABELS, PUBLISHED


def weights(c, w):
    head, width = c["how"]["prefix"], c.get("embedding_size", N_EMBD)
    side = c.get("position_buckets", -1)
    side = side if side > 0 else c["max_relative_positions"] if c.get("max_relative_positions", -1) > 0 else c["max_position_embeddings"]

    def matrix(name, rows, columns, biased=True):
        w.matrix(f"{head}{name}.weight", rows, columns)
        if biased:
            w.vector(f"{head}{name}.bias", rows)

    def norm(name):
        w.vector(f"{head}{name}.weight", N_EMBD, 1.0)
        w.vector(f"{head}{name}.bias", N_EMBD)

    matrix("embeddings.word_embeddings", N_VOCAB, width, False)
    if c.get("position_biased_input", True) or c["how"].get("old"):  # old files have positions that are not used
        matrix("embeddings.position_embeddings", c["max_position_embeddings"], width, False)
    if c.get("type_vocab_size", 0):
        matrix("embeddings.token_type_embeddings", c["type_vocab_size"], width, False)
    if width != N_EMBD:
        matrix("embeddings.embed_proj", N_EMBD, width, False)
    norm("embeddings.LayerNorm")
    matrix("encoder.rel_embeddings", 2 * side, N_EMBD, False)
    if c.get("norm_rel_ebd", "none") == "layer_norm":
        norm("encoder.LayerNorm")
    for l in range(N_LAYER):
        p = f"encoder.layer.{l}."
        for part in ("query", "key", "value"):
            matrix(f"{p}attention.self.{part}_proj", N_EMBD, N_EMBD)
        for kind, part in (("c2p", "key"), ("p2c", "query")):
            if not c.get("share_att_key", False) and kind in c["pos_att_type"]:
                matrix(f"{p}attention.self.pos_{part}_proj", N_EMBD, N_EMBD)
        matrix(p + "attention.output.dense", N_EMBD, N_EMBD)
        norm(p + "attention.output.LayerNorm")
        matrix(p + "intermediate.dense", N_FF, N_EMBD)
        matrix(p + "output.dense", N_EMBD, N_FF)
        norm(p + "output.LayerNorm")
    if c.get("conv_kernel_size", 0):
        w[head + "encoder.conv.conv.weight"] = w.random.normal(size=(N_EMBD, N_EMBD, c["conv_kernel_size"])) / 9
        w.vector(head + "encoder.conv.conv.bias", N_EMBD)
        norm("encoder.conv.LayerNorm")
    for name, rows in c["how"].get("more", {}).items():
        w.matrix(name + ".weight", rows, N_EMBD)
        w.vector(name + ".bias", rows)


def config(output="none", prefix="deberta.", more={}, old=False, keys={}, **values):
    c = {"model_type": "deberta-v2", "vocab_size": N_VOCAB, "num_hidden_layers": N_LAYER, "hidden_size": N_EMBD, "intermediate_size": N_FF,
         "num_attention_heads": N_HEAD, "layer_norm_eps": EPS, "max_position_embeddings": 64, "hidden_act": "gelu", "relative_attention": True,
         "type_vocab_size": 0, "pad_token_id": 0, "pooler_dropout": 0, "pooler_hidden_act": "gelu", "pooler_hidden_size": N_EMBD, **PUBLISHED, **values}
    how = {"output": output, "prefix": prefix, "more": more, "old": old, "keys": keys}
    return {**c, "how": how}, weights, [None]


VERSION_3 = {"position_buckets": 6, "max_relative_positions": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
             "position_biased_input": False, "legacy": True}
CLASSES = {
    "DebertaV2Model": config(prefix="", old=True, **VERSION_3),
    "DebertaV2ForMaskedLM": config(more={"cls.predictions.transform.dense": N_EMBD, "lm_predictions.lm_head.dense": N_EMBD}, pos_att_type=["c2p", "p2c"],
                                   max_relative_positions=9, embedding_size=20, type_vocab_size=2, conv_kernel_size=3, conv_act="gelu",
                                   attention_head_size=N_EMBD // N_HEAD),
    "DebertaV2ForMaskedLM c2p": config(**{**VERSION_3, "pos_att_type": ["c2p"]}, conv_kernel_size=5),
    "DebertaV2ForSequenceClassification": config("rank", more={"pooler.dense": N_EMBD, "classifier": 3}, keys={
        "deberta-v2.pooling_type": 4, "deberta-v2.classifier.output_labels": ["a", "b", "c"]}, **{**VERSION_3, "pos_att_type": "p2c"}, **LABELS),
}
