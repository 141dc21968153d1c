#!/usr/bin/env python3
"""Eyes in Hugging Face folders: the seeded eyes of ./eye_kinds.py with the names, shapes and configurations that transformers' folders have.

    eye_folders.py --cli LLM_CLI --embed LLM_EMBED --convert LLM_CONVERT --dir FOLDER [--server LLM_SERVER] [KIND ..]

Compared are the tensors of the file that llm-convert --mmproj makes, those of published files, to the last bit; the rows of pictures that the folder and
that file give, to the last bit; and these with the pass in float64, within 1e-4 of the range. Exit code 0, 1.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import eye_kinds
import eye_texts
import eyes
import gguf
import peft
import picture
import today
from blocks import gelu, gelu_erf, gelu_quick, silu
from folders import write_safetensors

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from running import Server  # noqa: E402


def renamed(w, pairs):
    """Tensors under other names: (the folder's stem, the file's stem)."""
    return {theirs + end: w[own + end] for theirs, own in pairs for end in (".weight", ".bias", "") if own + end in w}


def per_layer(n, pairs):
    return [(a.format(l=l), b.format(l=l)) for l in range(n) for a, b in pairs]


def split_layers(e):
    """The layers as separate, unswapped tensors, whatever the seed chose."""
    for l in range(e.n_layer):
        b = f"v.blk.{l}."
        for end in (".weight", ".bias"):
            if b + "attn_qkv" + end in e.w:
                for name, part in zip(("attn_q", "attn_k", "attn_v"), np.split(e.w.pop(b + "attn_qkv" + end), 3)):
                    e.w[b + name + end] = part
        if len(e.w[b + "ffn_up.weight"]) == e.n and e.n_ff != e.n:
            for end in (".weight", ".bias"):
                e.w[b + "ffn_up" + end], e.w[b + "ffn_down" + end] = e.w[b + "ffn_down" + end], e.w[b + "ffn_up" + end]
    e.w64 = {k: v.astype(np.float64) for k, v in e.w.items()}


def fused_qkv(e, name, of="v.blk.{l}.attn_{c}"):
    """The three products as one tensor."""
    return {name.format(l=l) + end: np.concatenate([e.w[of.format(l=l, c=c) + end] for c in "qkv"]) for l in range(e.n_layer) for end in (".weight", ".bias")
            if of.format(l=l, c="q") + end in e.w}


CLIP_LAYER = [("layer_norm1", "ln1"), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
              ("self_attn.out_proj", "attn_out"), ("layer_norm2", "ln2"), ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down")]


def clip_layers(e, at, n=None):
    return per_layer(n or e.n_layer, [(at + ".{l}." + a, "v.blk.{l}." + b) for a, b in CLIP_LAYER])


def embedded(e, at):
    """The tensors before the layers of CLIP and SigLIP."""
    return {at + "patch_embedding.weight": e.w["v.patch_embd.weight"], at + "position_embedding.weight": e.w["v.position_embd.weight"]} | {
        at + theirs: e.w[own] for theirs, own in (("patch_embedding.bias", "v.patch_embd.bias"), ("class_embedding", "v.class_embd")) if own in e.w}


# --- the kinds: each returns a class, config.json, the processor's file and the tensors -----------------------------


def qwen_tower(e, layer):
    w = {"visual.patch_embed.proj.weight": np.stack([e.w["v.patch_embd.weight"], e.w["v.patch_embd.weight.1"]], 2)} | fused_qkv(e, "visual.blocks.{l}.attn.qkv")
    return w | renamed(e.w, per_layer(e.n_layer, [("visual.blocks.{l}." + a, "v.blk.{l}." + b) for a, b in (
        ("norm1", "ln1"), ("attn.proj", "attn_out"), ("norm2", "ln2"), *layer)]))


def qwen_pixels(e, g):
    return {"min_pixels": e.least, "max_pixels": e.most} if g.integers(2) else {"size": {"shortest_edge": e.least, "longest_edge": e.most}}


def qwen2vl(e, g):
    e.eps, e.act = 1e-6, gelu_quick
    e.n_ff = e.n * int(g.integers(1, 4))
    e.layers()
    e.w64 = {k: v.astype(np.float64) for k, v in e.w.items()}
    e.look = erf_projector(e)
    vision = {"depth": e.n_layer, "embed_dim": e.n, "mlp_ratio": e.n_ff // e.n, "num_heads": e.n_head, "in_chans": 3, "hidden_size": e.n_text, "patch_size": e.p,
              "spatial_merge_size": 2, "spatial_patch_size": e.p, "temporal_patch_size": 2, "model_type": "qwen2_vl"}
    w = qwen_tower(e, [("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down")])
    w |= renamed(e.w, [("visual.merger.ln_q", "v.post_ln"), ("visual.merger.mlp.0", "mm.0"), ("visual.merger.mlp.2", "mm.2")])
    return "Qwen2VLForConditionalGeneration", {"vision_config": vision, "image_token_id": 9}, qwen_pixels(e, g), w


def qwen25vl(e, g):
    split_layers(e)
    e.eps, e.act = 1e-6, silu
    e.every = int(g.integers(1, e.n_layer + 1))
    e.look = erf_projector(e)
    vision = {"depth": e.n_layer, "hidden_act": "silu", "hidden_size": e.n, "intermediate_size": e.n_ff, "num_heads": e.n_head, "in_chans": 3,
              "out_hidden_size": e.n_text, "patch_size": e.p, "spatial_merge_size": 2, "spatial_patch_size": e.p, "window_size": e.keys["window_size"],
              "fullatt_block_indexes": list(range(e.every - 1, e.n_layer, e.every)), "tokens_per_second": 2, "temporal_patch_size": 2, "model_type": "qwen2_5_vl"}
    w = qwen_tower(e, [("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down")])
    w |= renamed(e.w, [("visual.merger.ln_q", "v.post_ln"), ("visual.merger.mlp.0", "mm.0"), ("visual.merger.mlp.2", "mm.2")])
    return "Qwen2_5_VLForConditionalGeneration", {"vision_config": vision, "image_token_id": 9}, qwen_pixels(e, g), w


def qwen3vl(e, g):
    e.eps, e.act = 1e-6, gelu
    e.look = erf_projector(e)
    deep = [l for l in range(e.n_layer) if e.is_deep[l]]
    vision = {"depth": e.n_layer, "hidden_act": "gelu_pytorch_tanh", "hidden_size": e.n, "intermediate_size": e.n_ff, "num_heads": e.n_head, "in_channels": 3,
              "initializer_range": 0.02, "out_hidden_size": e.n_text, "patch_size": e.p, "spatial_merge_size": 2, "num_position_embeddings": e.side**2,
              "deepstack_visual_indexes": deep, "temporal_patch_size": 2, "model_type": "qwen3_vl"}
    w = qwen_tower(e, [("mlp.linear_fc1", "ffn_up"), ("mlp.linear_fc2", "ffn_down")])
    w["visual.patch_embed.proj.bias"] = e.w["v.patch_embd.bias"]
    w |= renamed(e.w, [("visual.pos_embed", "v.position_embd"), ("visual.merger.norm", "v.post_ln"), ("visual.merger.linear_fc1", "mm.0"),
                       ("visual.merger.linear_fc2", "mm.2")])
    for k, l in enumerate(deep):
        w |= renamed(e.w, [(f"visual.deepstack_merger_list.{k}.{a}", f"v.deepstack.{l}.{b}") for a, b in (
            ("norm", "norm"), ("linear_fc1", "fc1"), ("linear_fc2", "fc2"))])
    return "Qwen3VLForConditionalGeneration", {"vision_config": vision, "image_token_id": 9}, qwen_pixels(e, g), w


def siglip_config(e, kind, act="gelu_pytorch_tanh", **more):
    return {"model_type": kind, "hidden_size": e.n, "image_size": e.side * e.p, "patch_size": e.p, "intermediate_size": e.n_ff, "num_attention_heads": e.n_head,
            "num_hidden_layers": e.n_layer, "hidden_act": act, "layer_norm_eps": e.eps, "num_channels": 3, **more}


def gemma3(e, g):
    split_layers(e)
    e.act = gelu
    stored = e.w["mm.soft_emb_norm.weight"] - 1
    e.w["mm.soft_emb_norm.weight"] = stored + 1
    e.w64["mm.soft_emb_norm.weight"] = e.w["mm.soft_emb_norm.weight"].astype(np.float64)
    tower = "vision_tower.vision_model."
    w = embedded(e, tower + "embeddings.") | renamed(e.w, clip_layers(e, tower + "encoder.layers") + [(tower + "post_layernorm", "v.post_ln")])
    w |= {"multi_modal_projector.mm_soft_emb_norm.weight": stored,
          "multi_modal_projector.mm_input_projection_weight": e.w["mm.input_projection.weight"]}
    config = {"vision_config": siglip_config(e, "siglip_vision_model", vision_use_head=False), "mm_tokens_per_image": (e.side // e.merge) ** 2}
    return "Gemma3ForConditionalGeneration", config, {"resample": 2, "size": {"height": e.side * e.p, "width": e.side * e.p}}, w


def idefics3(e, g):
    e.act = gelu
    w = embedded(e, "vision_model.embeddings.") | renamed(e.w, clip_layers(e, "vision_model.encoder.layers") + [
        ("vision_model.post_layernorm", "v.post_ln"), ("connector.modality_projection.proj", "mm.model.fc")])
    size = e.side * e.p
    vision = siglip_config(e, "idefics3_vision", max_image_size={"longest_edge": size}, size={"longest_edge": e.longest}, tie_word_embeddings=False)
    processor = {"do_image_splitting": e.longest > 0, "resample": 1, "max_image_size": {"longest_edge": size}, "size": {"longest_edge": e.longest or 99}}
    return "Idefics3ForConditionalGeneration", {"vision_config": vision, "scale_factor": e.merge, "image_token_id": 9}, processor, w


def janus(e, g):
    split_layers(e)
    e.act = gelu_erf
    layers = [(a.replace("out_proj", "projection_layer"), b) for a, b in clip_layers(e, "vision_model.encoder.layers")]
    w = embedded(e, "vision_model.embeddings.") | renamed(e.w, layers + [("vision_model.post_layernorm", "v.post_ln"), ("aligner.fc1", "mm.0"),
                                                                        ("aligner.hidden_layers.0", "mm.1")])
    w |= {"model.vqmodel.encoder.conv_in.weight": np.zeros((2, 3, 1, 1), np.float32)}
    vision = siglip_config(e, "janus_vision_model", "gelu", depth=2, projection_dim=e.n_text, attention_bias=True, num_channels=3, num_image_tokens=e.side**2,
                           use_qk_norm=False, use_vision_head=True, hidden_dropout_rate=0.0, projection_dropout=0.0)
    return "JanusForConditionalGeneration", {"vision_config": vision}, {"resample": 3, "size": {"height": e.side * e.p, "width": e.side * e.p}}, w


def llama4(e, g):
    e.act = gelu_erf
    e.look = erf_projector(e)
    w = {"vision_model.patch_embedding.linear.weight": e.w["v.patch_embd.weight"], "vision_model.class_embedding": e.w["v.class_embd"],
         "vision_model.positional_embedding_vlm": e.w["v.position_embd.weight"]}
    layer = [("input_layernorm", "ln1"), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
             ("self_attn.o_proj", "attn_out"), ("post_attention_layernorm", "ln2"), ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down")]
    w |= renamed(e.w, per_layer(e.n_layer, [("vision_model.model.layers.{l}." + a, "v.blk.{l}." + b) for a, b in layer]) + [
        ("vision_model.layernorm_pre", "v.pre_ln"), ("vision_model.layernorm_post", "v.post_ln"), ("vision_model.vision_adapter.mlp.fc1", "mm.model.mlp.1"),
        ("vision_model.vision_adapter.mlp.fc2", "mm.model.mlp.2"), ("multi_modal_projector.linear_1", "mm.model.fc")])
    vision = {**siglip_config(e, "llama4_vision_model", "gelu"), "norm_eps": e.eps, "num_channels": 3, "pixel_shuffle_ratio": 1 / e.merge, "rope_theta": 10000,
              "projector_input_dim": 34, "projector_output_dim": 34, "vision_output_dim": 34, "vision_feature_layer": -1, "projector_dropout": 0.0,
              "multi_modal_projector_bias": False, "vision_feature_select_strategy": "default"}
    del vision["layer_norm_eps"]
    return "Llama4ForConditionalGeneration", {"vision_config": vision, "image_token_index": 9}, {"resample": 2, "max_patches": 16}, w


def internvl(e, g):
    e.act = gelu_erf
    e.look = erf_projector(e)
    at = "vision_tower.encoder.layer."
    layer = [("layernorm_before", "ln1"), ("attention.q_proj", "attn_q"), ("attention.k_proj", "attn_k"), ("attention.v_proj", "attn_v"),
             ("attention.projection_layer", "attn_out"), ("layernorm_after", "ln2"), ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down")]
    w = renamed(e.w, per_layer(e.n_layer, [(at + "{l}." + a, "v.blk.{l}." + b) for a, b in layer]) + [
        ("vision_tower.embeddings.patch_embeddings.projection", "v.patch_embd"), ("multi_modal_projector.layer_norm", "mm.model.mlp.0"),
        ("multi_modal_projector.linear_1", "mm.model.mlp.1"), ("multi_modal_projector.linear_2", "mm.model.mlp.3")])
    w |= {f"{at}{l}.lambda_{k}": e.w[f"v.blk.{l}.ls{k}.weight"] for l in range(e.n_layer) for k in (1, 2)}
    w |= {"vision_tower.embeddings.cls_token": e.w["v.class_embd"].reshape(1, 1, -1),
          "vision_tower.embeddings.position_embeddings": e.w["v.position_embd.weight"][None]}
    vision = siglip_config(e, "internvl_vision", "gelu", num_channels=3, attention_bias=True, layer_scale_init_value=0.1, norm_type="layer_norm",
                           use_absolute_position_embeddings=True, use_mask_token=False, use_mean_pooling=True, use_qk_norm=False, projection_dropout=0.0)
    vision |= {"image_size": [e.side * e.p] * 2, "patch_size": [e.p] * 2}
    config = {"vision_config": vision, "downsample_ratio": 1 / e.merge, "image_token_id": 9, "projector_hidden_act": "gelu", "vision_feature_layer": -1,
              "vision_feature_select_strategy": "default"}
    return "InternVLForConditionalGeneration", config, {"resample": 3, "min_patches": 1, "max_patches": e.most, "crop_to_patches": False}, w


def pixtral(e, g):
    e.eps, e.act = 1e-5, [silu, gelu_erf][int(g.integers(2))]
    e.longest, e.projector_eps = int(g.integers(20, 90)), eye_texts.EPS
    e.look = erf_projector(e)
    at = "vision_tower.transformer.layers."
    layer = [("attention_norm", "ln1"), ("attention.q_proj", "attn_q"), ("attention.k_proj", "attn_k"), ("attention.v_proj", "attn_v"),
             ("attention.o_proj", "attn_out"), ("ffn_norm", "ln2"), ("feed_forward.gate_proj", "ffn_gate"), ("feed_forward.up_proj", "ffn_up"),
             ("feed_forward.down_proj", "ffn_down")]
    w = renamed(e.w, per_layer(e.n_layer, [(at + "{l}." + a, "v.blk.{l}." + b) for a, b in layer]) + [
        ("vision_tower.patch_conv", "v.patch_embd"), ("vision_tower.ln_pre", "v.pre_ln"), ("multi_modal_projector.norm", "mm.input_norm"),
        ("multi_modal_projector.patch_merger.merging_layer", "mm.patch_merger"), ("multi_modal_projector.linear_1", "mm.1"),
        ("multi_modal_projector.linear_2", "mm.2")])
    w |= {k: halved(v, e.n_head) for k, v in w.items() if "q_proj" in k or "k_proj" in k}
    words = g.normal(size=(12, e.n_text)).astype(np.float32)
    e.w["v.token_embd.img_break"] = words[11]
    w["language_model.model.embed_tokens.weight"] = words
    vision = {"model_type": "pixtral", "hidden_size": e.n, "image_size": 99, "patch_size": e.p, "intermediate_size": e.n_ff, "num_attention_heads": e.n_head,
              "num_hidden_layers": e.n_layer, "hidden_act": "silu" if e.act == silu else "gelu", "head_dim": e.n // e.n_head, "rope_theta": 10000.0,
              "num_channels": 3, "attention_dropout": 0.0}
    more = {"spatial_merge_size": 2} if e.merge > 1 else {}
    config = {"vision_config": vision, "projector_hidden_act": "gelu", "vision_feature_layer": -1, "image_token_index": 9, "text_config": {"rms_norm_eps": eye_texts.EPS}, **more}
    return ["LlavaForConditionalGeneration", "Mistral3ForConditionalGeneration"][e.merge - 1], config, {"resample": 3, "size": {"longest_edge": e.longest}}, w


def minicpmv(e, g):
    e.act, e.eps = gelu, 1e-6
    w = embedded(e, "vpm.embeddings.") | renamed(e.w, clip_layers(e, "vpm.encoder.layers") + [("vpm.post_layernorm", "v.post_ln")] + [
        ("resampler." + a, "resampler." + b) for a, b in (("kv_proj", "kv"), ("ln_q", "ln_q"), ("ln_kv", "ln_kv"), ("ln_post", "ln_post"), ("query", "query"),
                                                          ("attn.out_proj", "attn.out"))])
    for end in ("weight", "bias"):
        w["resampler.attn.in_proj_" + end] = np.concatenate([e.w[f"resampler.attn.{c}.{end}"] for c in "qkv"])
    w["resampler.proj"] = np.ascontiguousarray(e.w["resampler.proj.weight"].T)
    vision = {"model_type": "siglip", "hidden_size": e.n, "image_size": 980, "patch_size": e.p, "intermediate_size": e.n_ff, "num_attention_heads": e.n_head,
              "num_hidden_layers": e.n_layer}
    config = {"vision_config": vision, "query_num": len(e.w["resampler.query"]), "slice_mode": True, "image_size": 448, "patch_size": 14, "batch_vision_input": True,
              "slice_config": {"max_slice_nums": 9, "patch_size": e.p, "scale_resolution": e.size, "model_type": "minicpmv"}, "drop_vision_last_layer": False, "use_image_id": True,
              "vision_batch_size": 16, "batch_3d_resampler": True, "mm_use_im_start_end": True}
    version = e.published_as[int(g.integers(len(e.published_as)))]
    if version is not None:
        config |= {"version": version}
    return "MiniCPMV", config, {"norm_mean": [float(x) for x in e.mean], "norm_std": [float(x) for x in e.std]}, w


class MiniCPMV25(eye_kinds.MiniCPMV):
    versions, published_as = [2], (2.5, "2.5", None)


class MiniCPMV26(eye_kinds.MiniCPMV):
    versions, published_as = [3], (2.6, "2.6")


class MiniCPMV4(eye_kinds.MiniCPMV):
    versions, published_as = [5], (4.0, "4.0")


class MiniCPMV45(eye_kinds.MiniCPMV):
    versions, published_as = [100045], (4.5, "4.5")


class Pixtral(eye_kinds.Pixtral):
    def rule(self, fit, resize, **more):
        return super().rule(picture.LONGEST, resize, size=self.longest, **more)


def erf_projector(e):
    """look, whose projector has the error function in its activation, as transformers have it."""
    look = type(e).look

    def of_erf(a):
        eye_kinds.gelu = gelu_erf
        try:
            return look(e, a)
        finally:
            eye_kinds.gelu = gelu
    return of_erf


def llava(e, g):
    split_layers(e)
    class_row = e.first
    e.act, e.eps = [(gelu_quick, 1e-5), (gelu, 1e-6)][not class_row]
    e.look = erf_projector(e)
    crop = bool(g.integers(2))
    e.fit = picture.CROP if crop else picture.PAD
    e.w = {k: v for k, v in e.w.items() if "post_ln" not in k}
    e.w64 = {k: v.astype(np.float64) for k, v in e.w.items()}
    n = e.n_layer  # of which the last is not seen
    vision = {"model_type": "clip_vision_model" if class_row else "siglip_vision_model", "hidden_size": e.n, "image_size": e.side * e.p, "patch_size": e.p,
              "intermediate_size": e.n_ff, "num_attention_heads": e.n_head, "num_hidden_layers": n, "projection_dim": 768, "vocab_size": 32000,
              "hidden_act": "quick_gelu" if class_row else "gelu_pytorch_tanh", "num_channels": 3}
    tower = "vision_tower.vision_model."
    w = embedded(e, tower + "embeddings.") | renamed(e.w, clip_layers(e, tower + "encoder.layers", n) + [(tower + "pre_layrnorm", "v.pre_ln"),
                                                      ("multi_modal_projector.linear_1", "mm.0"), ("multi_modal_projector.linear_2", "mm.2")])
    w |= {tower + "post_layernorm" + end: np.zeros(e.n, np.float32) for end in (".weight", ".bias")}
    e.w = {k: v for k, v in e.w.items() if not k.startswith(f"v.blk.{n - 1}.")}
    config = {"projector_hidden_act": "gelu", "image_token_index": 9, "vision_config": vision, "vision_feature_layer": -2,
              "vision_feature_select_strategy": "default" if class_row else "full"}
    pixels = {"do_pad": True} if not crop else {"do_center_crop": True, "size": {"shortest_edge": e.side * e.p}}
    return "LlavaForConditionalGeneration", config, pixels, w


def llava_next(e, g):
    name, config, processor, w = llava(e, g)
    e.w["v.image_newline"] = g.normal(size=e.n_text).astype(np.float32)
    size = e.side * e.p
    grids = [[x * size for x in grid] for grid in e.grids]
    return "LlavaNextForConditionalGeneration", {**config, "image_grid_pinpoints": grids, "use_image_newline_parameter": True}, processor, w | {
        "image_newline": e.w["v.image_newline"]}


# the kind: the eye, its folder, the beginning of its tensors' names in newer and older folders, and whether the text model is looked at, too
FOLDERS = {"qwen2vl": (eye_kinds.Qwen2VL, qwen2vl, "model.visual.", "visual.", True),
           "qwen2.5vl": (eye_kinds.Qwen25VL, qwen25vl, "model.visual.", "visual.", True),
           "qwen3vl": (eye_kinds.Qwen3VL, qwen3vl, "model.visual.", "visual.", True),
           "llava": (eye_kinds.Llava, llava, "model.", "", True),
           "llava-next": (eye_kinds.LlavaTiled, llava_next, "model.", "", True),
           "gemma3": (eye_kinds.Gemma3, gemma3, "model.", "", False),
           "idefics3": (eye_kinds.Idefics3, idefics3, "model.", "", True),
           "internvl": (eye_kinds.InternVL, internvl, "model.", "", False),
           "janus": (eye_kinds.Janus, janus, "model.", "", True),
           "llama4": (eye_kinds.Llama4, llama4, "model.", "", False),
           "minicpmv-2.5": (MiniCPMV25, minicpmv, "", "", True),
           "minicpmv-2.6": (MiniCPMV26, minicpmv, "", "", True),
           "minicpmv-4": (MiniCPMV4, minicpmv, "", "", True),
           "minicpmv-4.5": (MiniCPMV45, minicpmv, "", "", True),
           "pixtral": (Pixtral, pixtral, "model.", "", True)}


# --- text models -----------------------------------------------------------------------------------

TEXT_LAYER = [("input_layernorm", "attn_norm"), ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
              ("self_attn.o_proj", "attn_output"), ("post_attention_layernorm", "ffn_norm"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
              ("mlp.down_proj", "ffn_down"), ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm")]


def halved(w, n_head):
    """Rows of heads, adjacent pairs -> halves."""
    return w.reshape(n_head, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


TEXT_BEGIN = {"llava": ("language_model.model.", "language_model.lm_head"), "idefics3": ("model.text_model.", "lm_head"),
              "janus": ("model.language_model.", "lm_head"), "qwen3vl": ("model.language_model.", "lm_head"),
              "pixtral": ("language_model.model.", "language_model.lm_head")}  # of other kinds, as of text models alone


def is_flat(kind):
    """True for folders whose configuration has the text model's values beside the others."""
    return kind.startswith("minicpmv")


def text_of(t, kind):
    """A text model's configuration and tensors, as a folder has them."""
    begin, head = ("llm.model.", "llm.lm_head") if is_flat(kind) else TEXT_BEGIN.get(kind, ("model.", "lm_head"))
    w = dict(t.w)
    if t.arch == "llama":  # whose pairs are adjacent in files
        for k in w:
            if "attn_q." in k or "attn_k." in k:
                w[k] = halved(w[k], eye_texts.N_HEAD if "attn_q." in k else eye_texts.N_KV)
    out = renamed(w, [(begin + "embed_tokens", "token_embd"), (begin + "norm", "output_norm"), (head, "output")] + per_layer(
        eye_texts.N_LAYER, [(begin + "layers.{l}." + a, "blk.{l}." + b) for a, b in TEXT_LAYER]))
    rope = {"rope_scaling": {"type": "mrope", "mrope_section": list(t.sections)}} if t.mrope else {}
    if kind == "qwen3vl":
        rope["rope_scaling"] = {"rope_type": "default", "mrope_interleaved": True, "mrope_section": list(t.sections)}
    if "rope_factors_long.weight" in t.w:
        rope["rope_scaling"] = {"rope_type": "longrope", "factor": 1.0, "original_max_position_embeddings": t.original} | {
            f"{name}_factor": [float(x) for x in t.w[f"rope_factors_{name}.weight"]] for name in ("long", "short")}
    return {"hidden_size": t.n_embd, "intermediate_size": eye_texts.N_FF, "num_hidden_layers": eye_texts.N_LAYER, "num_attention_heads": eye_texts.N_HEAD,
            "num_key_value_heads": eye_texts.N_KV, "head_dim": eye_texts.D, "rms_norm_eps": eye_texts.EPS, "rope_theta": t.theta, "vocab_size": t.n_vocab,
            "max_position_embeddings": 4096, "tie_word_embeddings": False, **rope}, out


def tokenizer_of(t):
    """tokenizer.json of a text model's tokens."""
    names = t.meta["tokenizer.ggml.tokens"]
    added = [{"id": i, "content": x, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, x in enumerate(names) if i >= 256]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": bytes_, "post_processor": None,
            "decoder": bytes_, "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                                         "fuse_unk": False, "byte_fallback": False, "vocab": {x: i for i, x in enumerate(names[:256])}, "merges": []}}


def newer_names(kind, w):
    newer, older = FOLDERS[kind][2:4]
    w = {k.replace("language_model.model.", "model.language_model."): v for k, v in w.items()}
    return {newer + k[len(older):] if k.startswith(older) and not k.startswith(newer) else k: v for k, v in w.items()}


def test_whole(r, kind, what, folder, name, config, processor, w, e, text, a):
    """A folder with both parts: it sees by itself, what its two files see."""
    own, own_w = text_of(text, kind)
    config = {**config, **(own if is_flat(kind) else {"text_config": own})}
    if next(iter(own_w)).startswith("model.text_model.") or kind in ("janus", "qwen3vl"):
        w = newer_names(kind, w)
    write_folder(folder, name, config, processor, w | own_w, more=False)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(tokenizer_of(text), f)
    r.run(r.a.convert, folder, "-o", r.at("whole"), "--mmproj", r.at("eye"))
    seen = ("-p", "ab<__media__>cde", "-n", "0", "-t", "1", "-ctk", "f32", "-ctv", "f32", "--image", r.at("ppm"), "--logits", r.at("npy"))
    want = text.logits(eyes.parts_of(e, seen[1], [a]))
    r.run(r.a.cli, "-m", r.at("whole"), "--mmproj", r.at("eye"), *seen)
    files = np.load(r.at("npy"))
    said = subprocess.run([r.a.cli, "-m", folder, *seen], capture_output=True, text=True)
    got = np.load(r.at("npy"))
    far = eyes.off(eyes.with_all(text, got, want), want)
    ok = said.returncode == 0 and "the eye or ear of this folder is opened" in said.stderr and far <= eyes.LIMIT and np.array_equal(files.view(np.uint32), got.view(np.uint32))
    r.tell(what + ": a folder that sees", ok, f"{far:.0e} {'' if ok else said.stderr}")
    said = subprocess.run([r.a.cli, "-m", folder, "--no-mmproj", *seen], capture_output=True, text=True)
    r.tell(what + ": --no-mmproj", said.returncode == 2 and "--image needs the model's eye" in said.stderr)
    if kind == "llava" and r.a.server:
        test_server(r, what, folder)
    test_adapter(r, what, folder, name, config, processor, w, own_w)
    strange = {**config["vision_config"], "hidden_act": "strange"}
    write_folder(folder, name, {**config, "vision_config": strange}, processor, w | own_w, more=False)
    said = subprocess.run([r.a.cli, "-m", folder, "-p", "ab", "-n", "0", "--logits", r.at("npy")], capture_output=True, text=True)
    damaged = os.path.join(folder, "processor_config.json")
    with open(damaged, "w", encoding="utf-8") as file:
        file.write("{bad")
    told = subprocess.run([r.a.cli, "-m", folder, "-p", "ab", "-n", "0", "--logits", r.at("npy")], capture_output=True, text=True)
    os.unlink(damaged)
    r.tell(what + ": a damaged file of its eye", told.returncode == 0 and "an eye or ear of this folder is not opened: " in told.stderr and damaged in told.stderr, told.stderr)
    r.tell(what + ": an eye that is left out", said.returncode == 0 and "the model sees no pictures" in said.stderr, said.stderr.strip() if said.returncode else "")


def pairs_of(r, of, folder, w, random, **config):
    """The matrices of the eye whose pairs llm-convert takes; those that no tensor of its file is made from, such as of a layer behind the last one that is
    read; and what it says of others."""
    names = [n for n, x in w.items() if peft.is_matrix(n, x) and peft.has_rows(n) and not any(part in n for part in ("position", "token"))]
    chosen, unused, said = [], [], []
    for some in (names, *([n] for n in names)):  # all at once, or one by one
        peft.Adapter(w, some, random, False, **config).write(of)
        done = subprocess.run([r.a.convert, of, "--base", folder, "-o", r.at("lora")], capture_output=True, text=True)
        name = some[0]
        if some is names:
            if done.returncode == 0:
                return names, [], []
        elif done.returncode == 0:
            chosen.append(name)
        elif "no weight of" in done.stderr:
            unused.append(name)
        else:
            said.append(done.stderr.strip())
    return chosen, unused, said


def test_adapter(r, what, folder, name, config, processor, w, own_w):
    """PEFT's pairs for modules of both parts: converted, they do what merging them into the folder does."""
    g, lora, merged, ppm, of = np.random.default_rng(7), r.at("lora"), r.at("merged"), r.at("ppm"), r.at("peft")
    for more in ({}, {"use_dora": True}):
        names, unused, said = pairs_of(r, of, folder, w, g, **more)
        bad = [x for x in said if "cannot be made for an adapter" not in x and "is for a matrix" not in x]
        text = [n for n in own_w if n.endswith("q_proj.weight")]
        adapter = peft.Adapter(w | own_w, names + unused + text, g, False, **more)
        for n in unused:  # which no gradient has reached
            adapter.tensors["base_model.model." + n[: -len(".weight")] + ".lora_B.weight"][:] = 0
        adapter.write(of)
        done = subprocess.run([r.a.convert, of, "--base", folder, "-o", lora], capture_output=True, text=True)
        left = f"{len(unused)} pair{' is' if len(unused) == 1 else 's are'} left out" in done.stderr
        bad += [done.stderr] * (done.returncode != 0 or left != bool(unused))
        added = {k: (x + adapter.added[k]).astype(np.float32) if k in names + text else x for k, x in (w | own_w).items()}
        write_folder(merged, name, config, processor, added, more=False)
        shutil.copy(os.path.join(folder, "tokenizer.json"), merged)
        r.run(r.a.convert, merged, "-o", r.at("merged-text"), "--mmproj", r.at("merged-eye"))
        plain, got = (r.rows(r.at("whole"), r.at("eye"), ppm, words=words) for words in ((), ("--lora", lora)))
        want = r.rows(r.at("merged-text"), r.at("merged-eye"), ppm)
        far, moved = eyes.off(got, want), eyes.off(plain, want)
        seen = ("-p", "ab<__media__>cde", "-n", "0", "-ctk", "f32", "-ctv", "f32", "--image", ppm, "--logits", r.at("npy"))
        r.run(r.a.cli, "-m", r.at("whole"), "--mmproj", r.at("eye"), "--lora", lora, *seen)
        logits = np.load(r.at("npy"))
        r.run(r.a.cli, "-m", r.at("merged-text"), "--mmproj", r.at("merged-eye"), *seen)
        apart = eyes.off(np.nan_to_num(logits), np.nan_to_num(np.load(r.at("npy"))))
        ok = len(names) > 3 and not bad and max(far, apart) <= 2 * eyes.LIMIT < moved
        r.tell(f"{what}: an adapter of {len(names)} matrices of its eye {' '.join(more)}".rstrip(), ok,
               f"{far:.0e}, {apart:.0e}, without it {moved:.0e} {' '.join(bad)}".rstrip())
    with open(lora, "rb") as f:
        before = f.read()
    for file in os.listdir(merged):
        if "config.json" not in file:
            os.unlink(os.path.join(merged, file))
    alone = not what.startswith("minicpmv")  # whose descriptor asks for the sizes of tensors
    if alone:
        r.run(r.a.convert, of, "--base", merged, "-o", lora)
        with open(lora, "rb") as f:
            r.tell(f"{what}: an adapter, by the configurations alone", before == f.read())
    module = names[0][: -len(".weight")]
    adapter.tensors |= {k.replace(module, module + ".none"): x for k, x in adapter.tensors.items()}
    adapter.write(of)
    for base in (folder, merged)[: 1 + alone]:
        done = subprocess.run([r.a.convert, of, "--base", base, "-o", lora], capture_output=True, text=True)
        r.tell(f"{what}: an adapter of no module", done.returncode == 1 and module + ".none" in done.stderr, done.stderr.strip())
    shutil.rmtree(merged)
    shutil.rmtree(of)


def test_server(r, what, folder):
    for words, sees in (((), True), (("--no-mmproj",), False)):
        with Server([r.a.server, "-m", folder, "-c", "256", *words]) as server:
            seen = json.loads(server.get("/props")[2])["modalities"]["vision"]
        r.tell(f"{what}: llm-server {' '.join(words)}".strip(), seen == sees)


# --- the test ------------------------------------------------------------------------------------


def write_folder(folder, name, config, processor, w, more=True):
    os.makedirs(folder, exist_ok=True)
    for file, content in (("config.json", {"architectures": [name], "model_type": "made-up", **({"text_config": {"hidden_size": 5, "unread": 1}} if more else {}), **config}),
                          ("preprocessor_config.json", processor)):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            json.dump(content, f)
    write_safetensors(os.path.join(folder, "model.safetensors"), w | ({"model.language_model.norm.weight": np.zeros(5, np.float32)} if more else {}))


class Runner(eyes.Runner):
    def convert(self, folder, *words):
        self.run(self.a.convert, folder, "--mmproj", self.at("eye"), *words)
        return gguf.read(self.at("eye"))

    def refused(self, name, folder, *said):
        done = subprocess.run([self.a.convert, folder, "--mmproj", self.at("no")], capture_output=True, text=True)
        ok = done.returncode == 1 and all(x in done.stderr for x in said) and not os.path.exists(self.at("no"))
        self.tell(name, ok, "" if ok else done.stderr.strip())


def same_tensors(made, e):
    """Names and shapes of the file, as published; the numbers to the last bit."""
    missing = sorted(set(e.w) ^ set(made))
    if missing:
        return f"other names: {', '.join(missing[:4])}"
    bad = [k for k, v in e.w.items() if not np.array_equal(np.asarray(made[k], np.float32).ravel().view(np.uint32), v.ravel().view(np.uint32))]
    return f"other numbers: {', '.join(bad[:4])}" if bad else ""


def test_kind(r, kind, seed):
    g = np.random.default_rng(seed)
    made_of, layout, _, _, whole = FOLDERS[kind]
    e = made_of(g)
    if e.published:
        e.as_published()
    text = eye_texts.KINDS[e.text](g, e)
    gguf.write(r.at("text"), text.meta, text.w)
    name, config, processor, w = layout(e, g)
    processor = {"image_mean": [float(x) for x in e.mean], "image_std": [float(x) for x in e.std], "do_resize": True, **processor}
    folder = r.at("folder")
    write_folder(folder, name, config, processor, w)
    _, made = r.convert(folder)
    bad = same_tensors(made, e)
    r.tell(f"{kind} {seed}: tensors", not bad, bad)
    for k, (width, height) in enumerate(eyes.shapes(g)):
        a = g.integers(0, 256, (height, width, 3), dtype=np.uint8)
        eyes.write_picture(r.at("ppm"), a)
        want = np.concatenate([p.rows for p in e.look(a) if not isinstance(p, str)])
        got, direct = (r.rows(r.at("text"), eye, r.at("ppm")) for eye in (r.at("eye"), folder))
        far = eyes.off(got, want)
        r.tell(f"{kind} {seed}: rows of {width} x {height}", far <= eyes.LIMIT and np.array_equal(got.view(np.uint32), direct.view(np.uint32)), f"{far:.0e}")
    before = open(r.at("eye"), "rb").read()
    write_folder(folder, name, config, {"image_processor": processor}, newer_names(kind, w))
    os.rename(os.path.join(folder, "preprocessor_config.json"), os.path.join(folder, "processor_config.json"))
    r.convert(folder)
    r.tell(f"{kind} {seed}: the same file of the newer form", before == open(r.at("eye"), "rb").read())
    os.unlink(os.path.join(folder, "processor_config.json"))
    if whole:
        test_whole(r, kind, f"{kind} {seed}", folder, name, config, processor, w, e, text, a)
    test_refused(r, f"{kind} {seed}", folder, name, config, processor, w, g)
    shutil.rmtree(folder)


def test_refused(r, what, folder, name, config, processor, w, g):
    some = next(k for k in w if k.endswith(".weight") and (".fc1." in k or "up_proj" in k or ".linear_fc1." in k) and ".0." in k and "layer" in k + "layer")
    write_folder(folder, name, config, processor, {k: v for k, v in w.items() if k != some})
    r.refused(what + ": without a tensor", folder, some)
    write_folder(folder, name, config, processor, w | {some.replace("weight", "more"): w[some]})
    r.refused(what + ": with a tensor that is not known", folder, some.replace("weight", "more"))
    write_folder(folder, name, {k: v for k, v in config.items() if k != "vision_config"}, processor, w)
    r.refused(what + ": without a tower", folder, "vision_config")
    write_folder(folder, name, {**config, "vision_config": config["vision_config"] | {"strange": 7}}, processor, w)
    r.refused(what + ": with a value that is not known", folder, "vision_config.strange = 7")
    if name.startswith("Llava"):
        strange = {**config["vision_config"], "model_type": "strange"}
        write_folder(folder, name, {**config, "vision_config": strange}, processor, w)
        r.refused(what + ": with another tower", folder, f"the convert section for '{name}' is for other folders")
    write_folder(folder, name, config, processor, w)
    os.unlink(os.path.join(folder, "preprocessor_config.json"))
    r.refused(what + ": without a file about pictures", folder, "the folder has neither preprocessor_config.json nor processor_config.json, which say how pictures are prepared")
    write_folder(folder, "StrangeForConditionalGeneration", config, processor, w)
    r.refused(what + ": of another class", folder, "no built-in descriptor converts the eye or ear of 'StrangeForConditionalGeneration'")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--embed", required=True)
    p.add_argument("--convert", required=True)
    p.add_argument("--server")
    p.add_argument("--dir", required=True)
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("kinds", nargs="*")
    a = p.parse_args()
    r = Runner(a)
    try:
        for kind in a.kinds or FOLDERS:
            for seed in today.sample("eye folders " + kind, range(100), a.seeds):
                test_kind(r, kind, seed)
    finally:
        for name in ("folder", "merged", "peft"):
            shutil.rmtree(r.at(name), ignore_errors=True)
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
