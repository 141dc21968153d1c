#!/usr/bin/env python3
"""Prints lines for ../numpy/senses.txt: small towers of transformers' classes, with the weights of ../numpy/late_senses.py, and the rows that transformers makes of
seeded pictures and sounds with their processors, in float64.

    sense_rows.py [--beside EMBED] [--mtmd FOLDER] NAME ..

--beside: in place of lines, how far llm-embed (its path) is from them. --mtmd: FOLDER/dots-ocr.bin and FOLDER/youtu-vl.bin have the rows of llama.cpp, float32, in place of transformers'. Needs torch, torchvision and transformers 5.24."""
import argparse
import base64
import json
import math
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numpy"))
import late_senses  # noqa: E402

sys.path = [path for path in sys.path if not path.endswith("tests/numpy")]  # it has modules of the same names as libraries
import torch  # noqa: E402
import transformers  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402

N_TEXT = 16


def text_config(kind, **more):
    return {"model_type": kind, "hidden_size": N_TEXT, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
            "vocab_size": 64, "max_position_embeddings": 512, **more}


class Case:
    """A class of transformers: its configuration, that of its processor, and what it makes of a picture or a sound."""

    def __init__(self, kind, of, config, processor, tower, parts, media, dtype=torch.float64, words=()):
        self.kind, self.of, self.config, self.processor, self.tower, self.parts, self.media = kind, of, config, processor, tower, parts, media
        self.dtype, self.words = dtype, words

    def model(self):
        cls = getattr(transformers, self.of)
        config = cls.config_class(**self.config)
        config._attn_implementation = "eager"
        model = cls._from_config(config, attn_implementation="eager").to(self.dtype).eval()
        shapes = {k: list(v.shape) for k, v in model.state_dict().items() if k.startswith(self.tower) and v.dtype != torch.long and k != "lm_head.weight"}
        w = late_senses.weights(shapes)
        found = model.load_state_dict({k: torch.tensor(v, dtype=self.dtype) for k, v in w.items()}, strict=False)
        if found.unexpected_keys:
            raise SystemExit(f"unexpected: {found.unexpected_keys}")
        return model, shapes

    def shown(self):
        """The token in whose place a row stands."""
        return next(self.config[key] for key in ("image_token_id", "image_token_index", "audio_token_id", "audio_token_index") if key in self.config)

    def whole_line(self, name):
        """Of a model with its text part: the scores of the text's tokens, of the first tokens of the vocabulary."""
        model, shapes = self.model()
        inputs, layouts, scores = late_senses.words_of(self.words), [], []
        for size in self.media:
            with torch.no_grad():
                pictures = [Image.fromarray(late_senses.medium("picture", of)) for of in late_senses.pictures_of(size)]
                layout, more = self.parts(model, *(pictures or [late_senses.medium("sound", size)]))
                ids, is_text = [ord("a"), ord("b")], [True, True]
                for part in layout:
                    new = [256 + inputs.index(part) if part in inputs else ord(part)] if isinstance(part, str) else [self.shown()] * part
                    ids, is_text = ids + new, is_text + [isinstance(part, str)] * len(new)
                ids, is_text = ids + [ord("c"), ord("d")], is_text + [True, True]
                of = torch.tensor([ids])
                if pictures:
                    more |= {"mm_token_type_ids": (of == self.shown()).int()}
                out = model(input_ids=of, attention_mask=torch.ones_like(of), **more)
            layouts.append(layout)
            scores.append(out.logits[0].double().numpy()[np.array(is_text)][:, :64])
        data = np.concatenate(scores).astype("<f4")
        written = json.loads(model.config.to_json_string())
        return {"name": name, "kind": "whole", "words": inputs, "config": {**written, "architectures": [self.of]}, "processor": self.processor,
                "shapes": late_senses.packed(shapes), "media": self.media, "layouts": layouts, "n_row": 64, "rows": base64.b64encode(data.tobytes()).decode()}

    def line(self, name):
        if self.kind == "whole":
            return self.whole_line(name)
        model, shapes = self.model()
        written = json.loads(model.config.to_json_string())
        of_text = written.get("text_config")
        if of_text:
            written["text_config"] = {key: of_text[key] for key in ("hidden_size", "rms_norm_eps") if key in of_text}
        rows, layouts = [], []
        for size in self.media:
            kind, size = late_senses.kind_of(self.kind, size)
            medium = late_senses.medium(kind, size)
            with torch.no_grad():
                parts = self.parts(model, Image.fromarray(medium) if kind == "picture" else medium)
            layouts.append([p if isinstance(p, str) else len(p) for p in parts])
            rows += [p.double().numpy() if hasattr(p, "double") else p for p in parts if not isinstance(p, str)]
        data = np.concatenate(rows).astype("<f4")
        return {"name": name, "kind": self.kind, "config": {**written, "architectures": [self.of]}, "processor": self.processor, "shapes": late_senses.packed(shapes),
                "media": self.media, "layouts": layouts, "n_row": data.shape[1], "rows": base64.b64encode(data.tobytes()).decode()}


class Saved(Case):
    """A class that transformers saves with other names than its modules have. `named` makes of such a name that of the folder."""

    named = staticmethod(lambda name: name)

    def model(self):
        from safetensors.torch import load_file, save_file
        cls = getattr(transformers, self.of)
        config = cls.config_class(**self.config)
        with tempfile.TemporaryDirectory() as folder:
            cls._from_config(config).save_pretrained(folder)
            path = f"{folder}/model.safetensors"
            theirs = {k: list(v.shape) for k, v in load_file(path).items()}
            shapes = {self.named(k): v for k, v in theirs.items() if k.startswith(self.tower)}
            w = late_senses.weights(shapes)
            save_file({k: torch.tensor(w[self.named(k)]) if self.named(k) in w else v for k, v in load_file(path).items()}, path, {"format": "pt"})
            model, found = cls.from_pretrained(folder, dtype=self.dtype, attn_implementation="eager", experts_implementation="eager", output_loading_info=True)
        if found["missing_keys"] or found["unexpected_keys"] or found["mismatched_keys"]:
            raise SystemExit(f"names: {found}")
        return model.eval(), shapes


class Published(Saved):
    """The same, with a configuration of the folder that is not transformers'. `published` is that, `written` the class it names."""

    def line(self, name):
        line = super().line(name)  # or that of the whole
        return line | {"config": {**self.published, "architectures": [self.written]}}


def double(x):
    return x.double() if x.is_floating_point() else x


def features(x):
    """The rows of a model's answer."""
    x = getattr(x, "pooler_output", x)
    return torch.cat(list(x)) if isinstance(x, (list, tuple)) else x


# --- the classes


def gemma4v(**more):
    vision = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 8, "patch_size": 4,
              "position_embedding_size": 4096, "pooling_kernel_size": 2, **more}
    processor = {"patch_size": 4, "max_soft_tokens": 70, "pooling_kernel_size": 2, "resample": 3, "image_mean": [0.0] * 3, "image_std": [1.0] * 3, "do_normalize": False}

    def parts(model, picture):
        x = transformers.Gemma4ImageProcessor(**processor)(picture, return_tensors="pt")
        return ["<|image>", features(model.get_image_features(x["pixel_values"].to(model.dtype), x["image_position_ids"], return_dict=True)), "<image|>"]

    config = {"text_config": text_config("gemma4_text", hidden_size_per_layer_input=0, global_head_dim=8), "vision_config": {"model_type": "gemma4_vision", **vision}, "audio_config": None}
    return Case("picture", "Gemma4ForConditionalGeneration", config, processor, ("model.vision_tower.", "model.embed_vision."), parts, [[40, 30], [9, 70], [120, 40]])


def gemma4_whole(**text):
    """Rows of a picture see each other in layers with a window, but not in models with a vector for each token and layer, where they have those of the token 0."""
    of = gemma4v()
    of.kind, of.words, of.tower, of.media = "whole", ("<|image>", "<image|>"), ("",), [[40, 30]]
    of.config["image_token_id"] = 3
    of.config["text_config"] |= {"vocab_size": 258, "num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 9,
                                 "global_head_dim": 16, "vocab_size_per_layer_input": 258, "pad_token_id": 0, **text}

    def parts(model, picture):
        x = transformers.Gemma4ImageProcessor(**of.processor)(picture, return_tensors="pt")
        return ["<|image>", int(x["num_soft_tokens_per_image"][0]), "<image|>"], {"pixel_values": double(x["pixel_values"]), "image_position_ids": x["image_position_ids"]}

    of.parts = parts
    return of


def glm(of="Glm4vForConditionalGeneration", **more):
    vision = {"depth": 2, "hidden_size": 24, "intermediate_size": 40, "num_heads": 3, "image_size": 28, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2,
              "out_hidden_size": N_TEXT, **more}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 2 * 8 * 64, "longest_edge": 2 * 40 * 64}, "resample": 3}

    def parts(model, picture):
        x = transformers.Glm4vImageProcessor(**processor)(picture, return_tensors="pt")
        return ["<|begin_of_image|>", features(model.get_image_features(double(x["pixel_values"]), x["image_grid_thw"], return_dict=True)), "<|end_of_image|>"]

    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1], "partial_rotary_factor": 1.0}
    config = {"text_config": text_config({"Glm4vFor": "glm4v_text", "Glm4vMoe": "glm4v_moe_text"}.get(of[:8], "glm_ocr_text"), rope_parameters=rope), "vision_config": vision}
    return Case("picture", of, config, processor | {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]},
                ("model.visual.",), parts, [[40, 30], [9, 70], [120, 40]])


def glm53():
    """GLM-5.3-Flash: the same tower with clamped gates; its pictures lie on a canvas."""
    from transformers.models.glm5_next.image_processing_pil_glm5_next import Glm5NextImageProcessorPil
    vision = {"depth": 2, "hidden_size": 24, "intermediate_size": 40, "num_heads": 3, "image_size": 28, "patch_size": 4, "out_hidden_size": N_TEXT, "projection_intermediate_size": 20,
              "swiglu_limit": 0.75}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "min_image_tokens": 8, "max_image_tokens": 40, "resample": 3,
                 "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    text = {**text_config("glm5_next_text", num_hidden_layers=4, num_key_value_heads=2, q_lora_rank=12, kv_lora_rank=8, qk_nope_head_dim=6, v_head_dim=10, n_routed_experts=4,
                          num_experts_per_tok=2, moe_intermediate_size=12, routed_scaling_factor=1.5, swiglu_limit=0.5, linear_head_dim=8, linear_num_heads=2, hc_eps=1e-3, index_topk=12,
                          index_head_dim=12, index_n_heads=8, index_kpool=4, pad_token_id=0), "vocab_size": 258}
    config = {"text_config": text, "vision_config": vision, "tie_word_embeddings": False, "image_token_id": 3}

    def seen(picture):
        x = Glm5NextImageProcessorPil(**processor)(picture, return_tensors="pt")
        return {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    def parts(model, picture):
        return ["<|begin_of_image|>", features(model.get_image_features(**seen(picture), return_dict=True)), "<|end_of_image|>"]

    case = Saved("picture", "Glm5NextForConditionalGeneration", config, processor, ("model.visual.",), parts, [[40, 30], [9, 70], [120, 40], [13, 10]])
    case.seen = seen
    return case


def marked_whole(of, marks, media):
    """The whole of a model whose pictures stand between two marks, with a row for each four patches."""
    of.kind, of.words, of.tower, of.media = "whole", marks, ("",), media

    def parts(model, picture):
        x = of.seen(picture)
        return [marks[0], int(x["image_grid_thw"].prod() // 4), marks[1]], x

    of.parts = parts
    return of


def glm53_whole():
    return marked_whole(glm53(), GLM_MARKS, [[40, 30], [70, 30]])


def as_published(of):
    """transformers 5.24's class with what it has otherwise than the code that Tencent published with the models, and vLLM: each pair of a head is turned by one position, and
    positions are found by a factor."""
    import torch.nn.functional as F
    modeling = transformers.models.hunyuan_vl.modeling_hunyuan_vl

    def of_parts(self, x):
        n = len(self.mrope_section)
        return torch.cat([m[i % n] for i, m in enumerate(torch.cat((x, x), -1).split(list(self.mrope_section) * 2, -1))], -1)

    def positions(self, embeddings, height, width):
        n = self.position_edge
        table = self.position_embedding.weight[1:].reshape(1, n, n, -1).permute(0, 3, 1, 2)
        x = F.interpolate(table, scale_factor=((int(height) + 0.1) / n, (int(width) + 0.1) / n), mode="bilinear", align_corners=False)
        return x.permute(0, 2, 3, 1).reshape(1, height * width, -1)

    modeling.HunYuanVLRotaryEmbedding.recomposition_frequencies = of_parts
    modeling.HunYuanVLVisionPatchEmbed.interpolate_pos_encoding = positions
    return of


HUNYUAN_MARKS = ("<｜hy_place▁holder▁no▁100｜>", "<｜hy_place▁holder▁no▁101｜>")


def hunyuan_processor():
    from transformers.models.hunyuan_vl.image_processing_pil_hunyuan_vl import HunYuanVLImageProcessorPil
    return HunYuanVLImageProcessorPil


def hunyuan(sections=(1, 1, 1, 1)):
    vision = {"num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "patch_size": 4, "max_image_size": 36, "out_hidden_size": N_TEXT,
              "text_hidden_size": N_TEXT}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 1, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 1,
                 "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

    def parts(model, picture):
        x = hunyuan_processor()(**processor)(picture, return_tensors="pt")
        return [HUNYUAN_MARKS[0], features(model.get_image_features(double(x["pixel_values"]), x["image_grid_thw"], return_dict=True)), HUNYUAN_MARKS[1]]

    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "mrope_section": list(sections), "factor": 1.0}
    config = {"text_config": text_config("hunyuan_vl_text", rope_parameters=rope), "vision_config": vision}
    return as_published(Saved("picture", "HunYuanVLForConditionalGeneration", config, processor, ("vit.", "model.vit.", "model.vision_tower."), parts, [[40, 30], [9, 70], [120, 40]]))


def hunyuan4():
    """Hunyuan 4: fewer rows of the model's own, and a text part with latent attention, whose rows an indexer chooses."""
    of = hunyuan((2, 1, 1))
    vision = {key: value for key, value in of.config["vision_config"].items() if key != "text_hidden_size"}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    text = {**text_config("hy_v4_vl_text", rope_parameters=rope), "q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 6, "qk_rope_head_dim": 8, "v_head_dim": 10, "n_routed_experts": 4,
            "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 12, "index_topk": 12, "index_head_dim": 12, "index_n_heads": 8, "hc_mult": 3, "bos_token_id": 1,
            "eos_token_id": 2, "pad_token_id": 0, "swiglu_limit": 0.5, "hc_eps": 1e-3}
    return Saved("picture", "HYV4VLForConditionalGeneration", {"text_config": text, "vision_config": vision}, of.processor, of.tower, of.parts, of.media)


def hunyuan_whole(of, of_its_own=2):
    of = turned_whole(of, HUNYUAN_MARKS, "")

    def parts(model, *pictures):
        x = hunyuan_processor()(**of.processor)(list(pictures), return_tensors="pt")
        layout = [[HUNYUAN_MARKS[0], int(h * (w + 1) + of_its_own), HUNYUAN_MARKS[1]] for _, h, w in x["image_grid_thw"] // 2]
        return sum(layout, []), {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    of.parts, of.media = parts, [[40, 30], [70, 30, 9, 70], [40, 30, 40, 30]]
    return of


def hunyuan4_whole():
    of = hunyuan_whole(hunyuan4(), 0)
    of.config["tie_word_embeddings"] = of.config["text_config"]["tie_word_embeddings"] = False
    return of


def paddle():
    vision = {"num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "image_size": 28, "patch_size": 4, "spatial_merge_size": 2}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 1, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3,
                 "image_mean": [0.5] * 3, "image_std": [0.5] * 3}

    def parts(model, picture):
        x = transformers.PaddleOCRVLImageProcessor(**processor)(picture, return_tensors="pt")
        return ["<|IMAGE_START|>", features(model.get_image_features(double(x["pixel_values"]), x["image_grid_thw"], return_dict=True)), "<|IMAGE_END|>"]

    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    config = {"text_config": text_config("paddleocr_vl_text", rope_parameters=rope), "vision_config": vision}
    return Case("picture", "PaddleOCRVLForConditionalGeneration", config, processor, ("model.visual.", "model.projector."), parts, [[40, 30], [9, 70], [120, 40]])


def lighton():
    vision = {"model_type": "pixtral", "num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "image_size": 64, "patch_size": 4,
              "head_dim": 8, "hidden_act": "silu"}
    processor = {"patch_size": {"height": 4, "width": 4}, "size": {"longest_edge": 64}, "resample": 3, "image_mean": [0.48145466, 0.4578275, 0.40821073],
                 "image_std": [0.26862954, 0.26130258, 0.27577711]}

    def parts(model, picture):
        x = transformers.PixtralImageProcessor(**{**processor, "patch_size": {"height": 8, "width": 8}})(picture, return_tensors="pt")
        return ["<|im_start|>", features(model.get_image_features(double(x["pixel_values"]), x["image_sizes"], return_dict=True)), "<|im_end|>"]

    config = {"text_config": text_config("qwen3"), "vision_config": vision, "spatial_merge_size": 2}
    return Case("picture", "LightOnOcrForConditionalGeneration", config, processor, ("model.vision_encoder.", "model.vision_projection."), parts,
                [[40, 30], [70, 9], [120, 40]])


def mistral4():
    """Saved with the names of its authors."""
    vision = {"model_type": "pixtral", "num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "image_size": 64, "patch_size": 4, "hidden_act": "silu"}
    processor = {"patch_size": {"height": 4, "width": 4}, "size": {"longest_edge": 64}, "resample": 3, "image_mean": [0.48145466, 0.4578275, 0.40821073],
                 "image_std": [0.26862954, 0.26130258, 0.27577711]}
    text = text_config("mistral_large4_text", num_hidden_layers=4, rms_norm_eps=1e-4, moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, kv_lora_rank=12, qk_rope_head_dim=4,
                       qk_nope_head_dim=6, v_head_dim=6, index_n_heads=16, index_head_dim=8, index_topk=9, no_rope_layers=[1, 0, 1, 1]) | {"vocab_size": 258, "num_key_value_heads": 2}

    def seen(picture):
        x = transformers.PixtralImageProcessor(**{**processor, "patch_size": {"height": 8, "width": 8}})(picture, return_tensors="pt")
        return {"pixel_values": double(x["pixel_values"]), "image_sizes": x["image_sizes"]}

    def parts(model, picture):
        x = seen(picture)
        rows = features(model.get_image_features(**x, return_dict=True))
        return lines(rows, int(x["image_sizes"][0][1]) // 8)

    def lines(rows, n):
        return [x for y in range(0, len(rows), n) for x in (rows[y : y + n], "[IMG_BREAK]")][:-1] + ["[IMG_END]"]

    config = {"text_config": text, "vision_config": vision, "image_token_index": 3}
    case = Saved("picture", "MistralLarge4ForConditionalGeneration", config, processor, ("vision_encoder.", "patch_merger.", "pre_mm_projector_norm.", "vision_language_adapter."), parts,
                 [[40, 30], [70, 9], [120, 40]])
    case.seen = seen
    return case


def mistral4_whole():
    of = mistral4()
    of.kind, of.words, of.tower, of.media = "whole", ("[IMG_BREAK]", "[IMG_END]"), ("",), [[40, 30], [70, 50]]
    rows = of.parts
    of.parts = lambda model, picture: ([x if isinstance(x, str) else len(x) for x in rows(model, picture)], of.seen(picture))
    return of


def qwen35_whole():
    """Its layers with attention turn the rows of a picture by line and column."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5, "mrope_interleaved": True}
    text = text_config("qwen3_5_text", rope_parameters=rope, num_hidden_layers=4, layer_types=["linear_attention"] * 3 + ["full_attention"], head_dim=16, vocab_size=258,
                       linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8, linear_conv_kernel_dim=4, tie_word_embeddings=True)
    vision = {"depth": 1, "hidden_size": 24, "intermediate_size": 40, "num_heads": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2,
              "out_hidden_size": N_TEXT, "num_position_embeddings": 25, "deepstack_visual_indexes": []}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3,
                 "image_mean": [0.5] * 3, "image_std": [0.5] * 3}

    def parts(model, picture):
        x = transformers.Qwen2VLImageProcessor(**processor)(picture, return_tensors="pt")
        return ["<|vision_start|>", int(x["image_grid_thw"].prod() // 4), "<|vision_end|>"], {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    return Case("whole", "Qwen3_5ForConditionalGeneration", {"text_config": text, "vision_config": vision, "image_token_id": 3, "tie_word_embeddings": True}, processor, ("",),
                parts, [[40, 30], [70, 30]], words=("<|vision_start|>", "<|vision_end|>"))


def minicpm(mode="16x", of="MiniCPMV4_6ForConditionalGeneration"):
    from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil
    vision = {"num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "image_size": 280, "patch_size": 4}
    processor = {"patch_size": 4, "scale_resolution": 40, "max_slice_nums": 4, "slice_mode": True, "downsample_mode": mode, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def seen(picture):
        x = MiniCPMV4_6ImageProcessorPil(**processor)(picture, return_tensors="pt")
        return x, {"pixel_values": double(x["pixel_values"]), "target_sizes": x["target_sizes"], "downsample_mode": mode}

    def parts(model, picture):
        x, more = seen(picture)
        whole, *tiles = model.get_image_features(**more, return_dict=True).pooler_output
        out = ["<image>", whole, "</image>"]
        for k, tile in enumerate(tiles):
            out += ["\n"] * (k > 0 and k % x["grids"][0][1] == 0) + ["<slice>", tile, "</slice>"]
        return out

    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5, "mrope_interleaved": True}
    text = text_config("qwen3_5_text", rope_parameters=rope, num_hidden_layers=4, layer_types=["linear_attention"] * 3 + ["full_attention"], vocab_size=260,
                       linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8, linear_conv_kernel_dim=4, tie_word_embeddings=True) | {"head_dim": 16}
    config = {"text_config": text, "vision_config": vision, "insert_layer_id": 1, "downsample_mode": mode, "image_token_id": 3, "tie_word_embeddings": True}
    case = Case("picture", of, config, processor, ("model.vision_tower.", "model.merger."), parts, [[40, 30], [9, 70], [90, 50]])
    case.seen = seen
    return case


def minicpm_whole(*more):
    """Its text part turns the rows of a picture as words."""
    of = minicpm(*more)
    of.kind, of.words, of.tower, of.media = "whole", ("<image>", "</image>", "<slice>", "</slice>"), ("",), [[40, 30], [70, 30]]

    def parts(model, picture):
        x, more = of.seen(picture)
        n = [int(y.prod()) // (16 if more["downsample_mode"] == "16x" else 4) for y in more["target_sizes"]]
        out = ["<image>", n[0], "</image>"]
        for k, size in enumerate(n[1:]):
            out += ["\n"] * (k > 0 and k % x["grids"][0][1] == 0) + ["<slice>", size, "</slice>"]
        return out, more

    of.parts = parts
    return of


KIMI_SAVES = {"language_model.model.blocks.": "language_model.model.layers.", "vision_tower.encoder.patch_embed.": "vision_tower.patch_embed.", "model.mm_projector.": "mm_projector."}
KIMI_VL = {"mm_projector.proj.0.": "multi_modal_projector.linear_1.", "mm_projector.proj.2.": "multi_modal_projector.linear_2.", "mm_projector.": "multi_modal_projector."}


def renaming(*tables):
    """The name with the first of each table's beginnings that it has replaced."""
    def named(name):
        for table in tables:
            old = next((x for x in table if name.startswith(x)), "")
            name = table.get(old, "") + name[len(old):]
        return name
    return named


def kimi(of="Kimi_K25ForConditionalGeneration"):
    """Its processor needs torchvision; here, Pillow resizes pictures to the same sizes. Kimi-VL computes the same, with other names and limits."""
    vision = {"num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "patch_size": 4, "pos_emb_height": 5, "pos_emb_width": 5}
    processor = {"patch_size": 4, "merge_size": 2, "max_patches": 80, "size": {"max_height": 512, "max_width": 512}, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def seen(picture):
        w, h = picture.size
        by = min(1, (80 / (max(1, w // 4) * max(1, h // 4))) ** 0.5)
        small = picture.resize((max(1, int(w * by)), max(1, int(h * by))), Image.BICUBIC)
        nx, ny = (-(-x // 8) * 2 for x in small.size)
        a = Image.new("RGB", (4 * nx, 4 * ny))
        a.paste(small)
        x = (np.asarray(a, np.float64) / 255 - 0.5) / 0.4
        return {"pixel_values": torch.tensor(x.reshape(ny, 4, nx, 4, 3).transpose(0, 2, 4, 1, 3).reshape(ny * nx, 3, 4, 4)), "image_grid_thw": torch.tensor([[1, ny, nx]])}

    def parts(model, picture):
        begin = "<|media_start|>image<|media_content|>" if "VL" in of else "<|media_begin|>image<|media_content|>"
        return [begin, features(model.get_image_features(**seen(picture), return_dict=True)), "<|media_end|>"]

    text = text_config("deepseek_v3", num_hidden_layers=2, moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=1, n_shared_experts=1,
                       kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8) | {"vocab_size": 259, "num_key_value_heads": 2, "head_dim": 4}
    config = {"text_config": text, "vision_config": vision, "projection_hidden_size": 24, "tie_word_embeddings": False, "image_token_id": 3}
    case = Saved("picture", "Kimi_K25ForConditionalGeneration", config, processor, ("vision_tower.", "mm_projector.", "model.mm_projector."), parts, [[40, 30], [9, 70], [60, 40]])
    case.seen, case.named = seen, renaming(KIMI_SAVES)
    return case


def kimivl():
    case = kimi("KimiVLForConditionalGeneration")
    case.named, made = renaming(KIMI_SAVES, KIMI_VL), case.line

    def line(name):
        """With the configuration of Kimi-VL's folders."""
        x = made(name)
        vision = {"model_type": "moonvit", "patch_size": 4, "num_attention_heads": 3, "num_hidden_layers": 3, "hidden_size": 24, "intermediate_size": 40, "init_pos_emb_height": 5,
                  "init_pos_emb_width": 5, "merge_kernel_size": [2, 2], "torch_dtype": "bfloat16"}
        processor = {"patch_size": 4, "pad_input": True, "image_mean": [0.5] * 3, "image_std": [0.4] * 3, "in_token_limit": 80, "merge_kernel_size": [2, 2], "num_pooled_tokens": 1024}
        return {**x, "config": {"architectures": ["KimiVLForConditionalGeneration"], "model_type": "kimi_vl", "text_config": {"hidden_size": N_TEXT}, "vision_config": vision}, "processor": processor}

    case.line = line
    return case


def kimi_whole():
    """With the names that transformers saves."""
    of = kimi()
    of.kind, of.words, of.tower, of.media, of.named = "whole", ("<|media_begin|>", "<|media_content|>", "<|media_end|>"), ("",), [[40, 30], [60, 40]], renaming()

    def parts(model, picture):
        x = of.seen(picture)
        return ["<|media_begin|>", *"image", "<|media_content|>", int(x["image_grid_thw"].prod() // 4), "<|media_end|>"], x

    of.parts = parts
    return of


class Glm52:
    """GLM-5.2-Vision, which transformers lacks: Kimi K2.5's eye, whose rows stand in a text of GLM-5.2 between the marks of GLM."""

    def __init__(self, is_whole):
        self.is_whole = is_whole

    def line(self, name):
        eye = kimi()
        vision, shapes = eye.model()
        text = {**text_config("glm_moe_dsa", num_hidden_layers=3, moe_intermediate_size=8, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, n_shared_experts=1,
                              kv_lora_rank=8, q_lora_rank=12, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=10, index_topk=12, index_head_dim=12, index_n_heads=8, tie_word_embeddings=False,
                              indexer_types=["full", "full", "shared"], mlp_layer_types=["dense", "sparse", "sparse"], first_k_dense_replace=1), "vocab_size": 258, "num_key_value_heads": 2, "pad_token_id": 0}
        config = {"architectures": ["Glm5vForConditionalGeneration"], "model_type": "glm5v", "text_config": text, "vision_config": {**eye.config["vision_config"], "mm_hidden_size": 24},
                  "media_placeholder_token_id": 3}
        media, words = [[40, 30], [60, 40]] if self.is_whole else [[40, 30], [9, 70], [60, 40]], list(GLM_MARKS) if self.is_whole else []
        if self.is_whole:
            model, own = Saved("whole", "GlmMoeDsaForCausalLM", text, {}, ("",), None, []).model()
            shapes = own | {name: shape for name, shape in shapes.items()}
            config["text_config"] = json.loads(model.config.to_json_string())
        data, layouts = [], []
        for size in media:
            with torch.no_grad():
                rows = eye.parts(vision, Image.fromarray(late_senses.medium("picture", size)))[1]
                layouts.append([GLM_MARKS[0], len(rows), GLM_MARKS[1]])
                if self.is_whole:
                    ids = torch.tensor([[97, 98, 256, *[3] * len(rows), 257, 99, 100]])
                    x = model.model.embed_tokens(ids)
                    x[0, 3 : 3 + len(rows)] = rows
                    keep = np.array([True] * 3 + [False] * len(rows) + [True] * 3)
                    rows = model(inputs_embeds=x).logits[0][torch.tensor(keep)][:, :64]
            data.append(rows.double().numpy())
        data = np.concatenate(data).astype("<f4")
        return {"name": name, "kind": "whole" if self.is_whole else "picture", "words": words, "config": config, "processor": eye.processor, "shapes": late_senses.packed(shapes), "media": media,
                "layouts": layouts, "n_row": data.shape[1], "rows": base64.b64encode(data.tobytes()).decode()}


def granite4():
    """LLaVA-NeXT's processor needs torchvision; here, Pillow resizes pictures to the same sizes. Rows of all layers of the text stand side by side."""
    vision = {"model_type": "siglip_vision_model", "hidden_size": 64, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 32, "patch_size": 4,
              "vision_use_head": False}
    grids = [[32, 64], [64, 32], [64, 64], [32, 96]]
    processor = {"image_grid_pinpoints": grids, "size": {"height": 32, "width": 32}, "crop_size": {"height": 32, "width": 32}, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    text = text_config("granite4_vision_text", num_hidden_layers=8, embedding_multiplier=3.0, residual_multiplier=0.7, logits_scaling=2.0, attention_multiplier=0.4, tie_word_embeddings=True) | {"vocab_size": 258}
    qformer = {"model_type": "blip_2_qformer", "num_hidden_layers": 1, "intermediate_size": 48, "cross_attention_frequency": 1, "max_position_embeddings": 2048, "use_qformer_text_input": False}
    config = {"text_config": text, "vision_config": vision, "qformer_config": qformer, "downsample_rate": "2/4", "deepstack_layer_map": [[-2, 2], [-1, 0]], "spatial_vision_layer": -1,
              "spatial_target_layers": [3, 4, 6, 7], "image_grid_pinpoints": grids, "vision_feature_select_strategy": "full", "image_token_index": 3, "image_token_id": 3, "tie_word_embeddings": True}

    def seen(picture):
        w, h = picture.size
        gh, gw = transformers.image_processing_utils.select_best_resolution((h, w), grids)
        by = (gw / w, gh / h)
        size = (gw, min(-int(-(h * by[0]) // 1), gh)) if by[0] < by[1] else (min(-int(-(w * by[1]) // 1), gw), gh)
        big = Image.new("RGB", (gw, gh))
        big.paste(picture.resize(size, Image.BICUBIC), ((gw - size[0]) // 2, (gh - size[1]) // 2))
        a = [np.asarray(picture.resize((32, 32), Image.BICUBIC), np.float64)]
        a += [np.asarray(big, np.float64)[y : y + 32, x : x + 32] for y in range(0, gh, 32) for x in range(0, gw, 32)]
        return {"pixel_values": torch.tensor(np.stack(a) / 255 * 2 - 1).permute(0, 3, 1, 2)[None], "image_sizes": torch.tensor([[h, w]])}

    def parts(model, picture):
        found = model.get_image_features(**seen(picture), vision_feature_select_strategy="full", return_dict=True).deepstack_features
        found = [torch.cat(list(x)) if isinstance(x, (list, tuple)) else x for _, x in sorted(found, key=lambda f: f[0])]
        return [torch.cat(found, 1), "\n"]

    case = Case("picture", "Granite4VisionForConditionalGeneration", config, processor,
                ("model.vision_tower.", "model.layerwise_projectors.", "model.spatial_projectors.", "model.image_newline"), parts, [[40, 30], [70, 20], [90, 50]])
    case.seen = seen
    return case


def granite4_whole():
    of = granite4()
    of.kind, of.words, of.tower, of.media = "whole", (), ("",), [[40, 30], [90, 50]]
    rows = of.parts

    def parts(model, picture):
        return [len(rows(model, picture)[0]), "\n"], of.seen(picture)

    of.parts = parts
    return of


def ocr_seen(picture, whole, tile, most):
    """As DeepSeek-OCR's own code prepares a picture: the whole, and tiles if a side is longer than one; [n, 3, size, size] each, tiles' columns and lines."""
    def values(x):
        return torch.tensor(np.asarray(x, np.float64) / 255 * 2 - 1).permute(2, 0, 1)

    seen = values(ImageOps.pad(picture, (whole, whole), color=(127, 127, 127)))[None]
    if max(picture.size) <= tile:
        return seen, None, (1, 1)
    own, best, far = picture.size[0] / picture.size[1], (1, 1), float("inf")
    for nx, ny in sorted({(x, y) for x in range(1, most + 1) for y in range(1, most + 1) if 2 <= x * y <= most}, key=lambda g: g[0] * g[1]):
        off = abs(own - nx / ny)
        if off < far or (off == far and picture.size[0] * picture.size[1] > 0.5 * tile * tile * nx * ny):
            best, far = (nx, ny), off
    big = values(picture.resize((tile * best[0], tile * best[1])))
    return seen, torch.stack([big[:, y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] for y in range(best[1]) for x in range(best[0])]), best


def deepseek_ocr():
    """DeepSeek-OCR has the towers of Unlimited OCR, which transformers saves with the published names."""
    sam = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 64, "patch_size": 4, "mlp_dim": 96, "output_channels": 12, "window_size": 6,
           "global_attn_indexes": [1], "downsample_channels": [20, 32]}
    encoder = {"hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 56, "patch_size": 14}
    text = {"hidden_size": N_TEXT, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 64, "moe_intermediate_size": 8,
            "n_routed_experts": 2, "n_shared_experts": 1, "num_experts_per_tok": 1}

    def parts(model, picture):
        whole, tiles, grid = ocr_seen(picture, 64, 40, 9)
        more = {} if tiles is None else {"pixel_values_local": tiles, "num_local_patches": [len(tiles)], "patches_grid": [list(grid)]}
        return [features(model.get_image_features(whole, **more, return_dict=True)), "\n"]

    case = Published("picture", "UnlimitedOcrForConditionalGeneration", {"text_config": text, "vision_config": {"sam_config": sam, "encoder_config": encoder}},
                     {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, ("model.sam_model.", "model.vision_model.", "model.projector.", "model.image_newline", "model.view_seperator"),
                     parts, [[40, 30], [90, 50], [30, 60], [200, 90]])
    case.written = "DeepseekOCRForCausalLM"
    towers = {"clip-l-14-224": {"heads": 2, "image_size": 56, "layers": 2, "patch_size": 14, "width": 32},
              "sam_vit_b": {"downsample_channels": [20, 32], "global_attn_indexes": [1], "heads": 2, "layers": 3, "width": 24, "window_size": 6}}
    case.published = {"candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "language_config": {"hidden_size": N_TEXT}, "tile_tag": "2D",
                      "projector_config": {"input_dim": 64, "n_embed": N_TEXT, "projector_type": "linear"},
                      "vision_config": {"image_size": 64, "mlp_ratio": 3.7362, "model_name": "deeplip_b_l", "model_type": "vision", "width": towers}}
    return case


def deepseek_ocr_whole():
    """Without an answer, Unlimited OCR's text part is DeepSeek-OCR's."""
    of = deepseek_ocr()
    of.kind, of.tower, of.media = "whole", ("",), [[40, 30], [90, 50]]
    rows = of.parts
    of.config["image_token_id"] = 3
    text = {"vocab_size": 258, "num_hidden_layers": 2, "first_k_dense_replace": 1, "n_routed_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-6}
    of.config["text_config"] |= text
    of.published["language_config"] |= of.config["text_config"] | {"use_mla": False, "kv_lora_rank": None, "qk_nope_head_dim": 0, "v_head_dim": 0, "qk_rope_head_dim": 0, "lm_head": True,
                                                                   "rm_head": False, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "torch_dtype": "bfloat16"}

    def parts(model, picture):
        whole, tiles, grid = ocr_seen(picture, 64, 40, 9)
        more = {} if tiles is None else {"pixel_values_local": tiles, "num_local_patches": [len(tiles)], "patches_grid": [list(grid)]}
        return [len(rows(model, picture)[0]), "\n"], {"pixel_values": whole, **more}

    of.parts = parts
    return of


def deepseek_ocr2():
    """It has 256 queries for the whole and 144 for a tile, so that pictures have the sides of a real one in patches."""
    sam = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1, "image_size": 128, "patch_size": 2, "mlp_dim": 32, "output_channels": 6, "window_size": 14,
           "global_attn_indexes": [1], "downsample_channels": [8, 16]}
    encoder = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "vocab_size": 4,
               "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}}
    text = {"hidden_size": N_TEXT, "intermediate_size": 16, "num_hidden_layers": 2, "mlp_layer_types": ["dense", "sparse"], "num_attention_heads": 2, "num_key_value_heads": 2,
            "vocab_size": 258, "moe_intermediate_size": 8, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
            "bos_token_id": None, "eos_token_id": None}

    def seen(picture):
        whole, tiles, _ = ocr_seen(picture, 128, 96, 6)
        return {"pixel_values": whole} | ({} if tiles is None else {"pixel_values_local": tiles, "num_local_patches": [len(tiles)]})

    def parts(model, picture):
        return [features(model.get_image_features(**seen(picture), return_dict=True)), "\n"]

    case = Published("picture", "DeepseekOcr2ForConditionalGeneration", {"text_config": text, "vision_config": {"sam_config": sam, "encoder_config": encoder}, "image_token_id": 3},
                     {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, ("model.sam_model.", "model.qwen2_model.", "model.projector.", "model.view_seperator"), parts,
                     [[40, 30], [150, 100]])
    case.seen, case.written = seen, "DeepseekOCR2ForCausalLM"
    towers = {"qwen2-0-5b": {"dim": 16, "intermediate_size": 24, "layers": 2, "heads": 4, "kv_heads": 2},
              "sam_vit_b": {"downsample_channels": [8, 16], "global_attn_indexes": [1], "heads": 1, "layers": 2, "width": 8, "window_size": 14}}
    case.published = {"candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "tile_tag": "2D", "projector_config": {"input_dim": 16, "n_embed": N_TEXT, "projector_type": "linear"},
                      "language_config": {k: v for k, v in text.items() if k != "mlp_layer_types"} | {"first_k_dense_replace": 1, "use_mla": False},
                      "vision_config": {"image_size": 128, "mlp_ratio": 3.7362, "model_name": "deepencoderv2", "model_type": "vision", "width": towers}}
    return case


def deepseek_ocr2_own():
    """As transformers configures it."""
    of = deepseek_ocr2()
    return Saved("picture", of.of, of.config, of.processor, of.tower, of.parts, [[40, 30]])


def deepseek_ocr2_whole(own=False):
    of = deepseek_ocr2()
    if own:
        of = Saved("picture", of.of, of.config, of.processor, of.tower, of.parts, of.media)
        of.seen = deepseek_ocr2().seen
    of.kind, of.tower, of.media = "whole", ("",), [[40, 30]]
    rows = of.parts
    of.parts = lambda model, picture: ([len(rows(model, picture)[0]), "\n"], of.seen(picture))
    return of


def exaone():
    vision = {"depth": 4, "hidden_size": 48, "intermediate_size": 40, "num_heads": 4, "num_key_value_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2,
              "out_hidden_size": N_TEXT, "window_size": 16, "fullatt_block_indexes": [1, 3]}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 8 * 64, "max_pixels": 40 * 64, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def seen(picture):
        more = {k: v for k, v in processor.items() if "pixels" not in k}
        x = transformers.Qwen2VLImageProcessor(**more, size={"shortest_edge": 8 * 64, "longest_edge": 40 * 64})(picture, return_tensors="pt")
        return {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    def parts(model, picture):
        return ["<vision>", features(model.get_image_features(**seen(picture), return_dict=True)), "</vision>"]

    text = text_config("exaone4", num_hidden_layers=4, tie_word_embeddings=True, sliding_window=5, sliding_window_pattern=4) | {"vocab_size": 258}
    config = {"text_config": text, "vision_config": vision, "image_token_id": 3, "tie_word_embeddings": True}
    case = Case("picture", "Exaone4_5_ForConditionalGeneration", config, processor, ("model.visual.",), parts, [[40, 30], [9, 70], [60, 40]])
    case.seen = seen
    return case


def exaone_whole():
    return marked_whole(exaone(), ("<vision>", "</vision>"), [[40, 30], [60, 40]])


def minimax():
    """Its processor needs torchvision; that of Qwen2-VL makes the same of pictures."""
    vision = {"num_hidden_layers": 3, "hidden_size": 48, "intermediate_size": 40, "num_attention_heads": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "image_size": 64}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3,
                 "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}

    def parts(model, picture):
        x = transformers.Qwen2VLImageProcessor(**processor)(picture, return_tensors="pt")
        return ["]<]start of image[>[", features(model.get_image_features(double(x["pixel_values"]), x["image_grid_thw"], return_dict=True)), "]<]end of image[>["]

    text = text_config("minimax_m3_vl_text", num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=8)
    config = {"text_config": text, "vision_config": vision, "projector_hidden_size": 20, "image_token_index": 3}
    case = Saved("picture", "MiniMaxM3SparseForConditionalGeneration", config, processor, ("vision_tower.", "multi_modal_projector.", "patch_merge_mlp."), parts, [[40, 30], [9, 70], [60, 40]])
    return case


def step3_windows(picture, size, tile, longest):
    """What Step 3's authors show of a picture: windows, line by line with what is behind each line, and the whole."""
    w, h = picture.size
    if min(w, h) < 32 and max(w, h) > 4 * min(w, h):
        square = Image.new("RGB", (max(w, h),) * 2)
        square.paste(picture)
        picture, (w, h) = square, square.size
    if max(w, h) > longest:
        picture = picture.resize((int(w * longest / max(w, h)), int(h * longest / max(w, h))), Image.BILINEAR)
        w, h = picture.size
    window = tile if max(w, h) <= 4 * min(w, h) else min(tile, *picture.size)
    if max(w, h) <= size:
        window = min(w, h) if max(w, h) > 1.5 * min(w, h) else 0
    seen = []
    if window:
        nx, ny = (max(1, x // window + (x % window > 0.2 * window)) for x in (w, h))
        all_ = picture.resize(tuple(x if x < window else n * window for x, n in ((w, nx), (h, ny))), Image.BILINEAR)
        for k in range(nx * ny):
            x, y = k % nx * window, k // nx * window
            seen.append((all_.crop((x, y, x + window, y + window)).resize((tile, tile), Image.BILINEAR), k % nx == nx - 1 and k < nx * ny - 1))
    return seen, picture.resize((size, size), Image.BILINEAR)


def step3():
    """Its processor needs torchvision; where a window is larger than the picture, its authors have black, and transformers stretches the picture."""
    vision = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 48, "patch_size": 4, "mlp_ratio": 1.25, "layer_scale_init_value": 0.1}
    processor = {"patch_size": 32, "size": {"height": 48, "width": 48}, "max_image_size": 120, "resample": 2, "image_mean": [0.48145466, 0.4578275, 0.40821073],
                 "image_std": [0.26862954, 0.26130258, 0.27577711]}

    def seen(picture):
        tiles, whole = step3_windows(picture, 48, 32, 120)
        given = lambda x: torch.tensor((np.asarray(x, np.float64) / 255 - processor["image_mean"]) / processor["image_std"]).permute(2, 0, 1)
        more = {"pixel_values": given(whole)[None], "num_local_patches": [len(tiles)]}
        return tiles, more | ({"pixel_values_local": torch.stack([given(x) for x, _ in tiles])} if tiles else {})

    def parts(model, picture):
        tiles, more = seen(picture)
        rows = features(model.get_image_features(**more, return_dict=True))
        out = []
        for k, (_, is_last) in enumerate(tiles):
            out += ["<patch_start>", rows[4 * k : 4 * k + 4], "<patch_end>"] + ["<patch_newline>"] * is_last
        return out + ["<im_start>", rows[4 * len(tiles) :], "<im_end>"]

    text = text_config("step3p5", num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2, sliding_window=5, moe_intermediate_size=8, n_routed_experts=4,
                       num_experts_per_tok=2, share_expert_dim=8, moe_layers_enum="2,3", partial_rotary_factors=[1.0, 0.5] * 2, rope_theta=[10000.0, 5000.0] * 2) | {"vocab_size": 261}
    config = {"text_config": text, "vision_config": vision, "image_token_id": 3, "tie_word_embeddings": False}
    case = Saved("picture", "Step3p7ForConditionalGeneration", config, processor, ("vision_model.", "vit_large_projector."), parts, [[40, 30], [40, 24], [100, 60], [70, 24], [60, 5], [150, 90], [140, 33]])
    case.seen = seen
    return case


def step3_whole():
    of = step3()
    of.kind, of.words, of.tower, of.media = "whole", ("<im_start>", "<im_end>", "<patch_start>", "<patch_end>", "<patch_newline>"), ("",), [[40, 30], [60, 64]]
    rows = of.parts

    def parts(model, picture):
        return [x if isinstance(x, str) else len(x) for x in rows(model, picture)], of.seen(picture)[1]

    of.parts = parts
    return of


def turned_whole(of, words, processor, merge=4):
    """The whole of a model whose text turns the rows of a picture by time, line and column."""
    of.kind, of.words, of.tower, of.media = "whole", words, ("",), [[40, 30], [70, 30]]
    of.config |= {"image_token_id": 3, "tie_word_embeddings": True}
    of.config["text_config"] |= {"vocab_size": 258, "num_hidden_layers": 2, "pad_token_id": 0, "tie_word_embeddings": True}

    def parts(model, picture):
        x = getattr(transformers, processor)(**{key: value for key, value in of.processor.items() if "std" not in key and "mean" not in key or "Paddle" in processor})(picture, return_tensors="pt")
        return [words[0], int(x["image_grid_thw"].prod() // merge), words[1]], {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    of.parts = parts
    return of


class Other:
    """A model that transformers lacks: the rows are those of llama.cpp's mtmd, which another program writes to FOLDER/NAME.bin, [n][n_row] of f32, for pictures that are not
    resized; without the file, a line without rows."""

    folder = pathlib.Path("/nowhere")

    def __init__(self, of, config, processor, shapes, media, around, kind="picture"):
        self.of, self.config, self.processor, self.shapes, self.media, self.around, self.kind = of, config, processor, shapes, media, around, kind

    def line(self, name):
        path = self.folder / (name + ".bin")
        data = np.fromfile(path, "<f4").reshape(-1, N_TEXT) if path.exists() else np.zeros((0, N_TEXT), "<f4")
        return {"name": name, "kind": self.kind, "limit": 2e-3, "config": {**self.config, "architectures": [self.of]}, "processor": self.processor,
                "shapes": late_senses.packed(self.shapes), "media": [size for *size, n in self.media], "layouts": [[*self.around[:1], n, *self.around[1:]] for *size, n in self.media],
                "n_row": N_TEXT, "rows": base64.b64encode(data.tobytes()).decode()}


def dots():
    vision = {"embed_dim": 24, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 3, "num_channels": 3, "patch_size": 4, "post_norm": True,
              "rms_norm_eps": 1e-5, "spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": False, "is_causal": False, "init_merger_std": 0.02, "initializer_range": 0.02}
    shapes = {"vision_tower.patch_embed.patchifier.proj.weight": [24, 3, 4, 4], "vision_tower.patch_embed.patchifier.proj.bias": [24],
              "vision_tower.patch_embed.patchifier.norm.weight": [24], "vision_tower.post_trunk_norm.weight": [24], "vision_tower.merger.ln_q.weight": [24],
              "vision_tower.merger.ln_q.bias": [24], "vision_tower.merger.mlp.0.weight": [96, 96], "vision_tower.merger.mlp.0.bias": [96],
              "vision_tower.merger.mlp.2.weight": [N_TEXT, 96], "vision_tower.merger.mlp.2.bias": [N_TEXT]}
    for part, shape in {"norm1": [24], "norm2": [24], "attn.qkv": [72, 24], "attn.proj": [24, 24], "mlp.fc1": [40, 24], "mlp.fc2": [24, 40], "mlp.fc3": [40, 24]}.items():
        shapes |= {f"vision_tower.blocks.{l}.{part}.weight": shape for l in range(3)}
    processor = {"patch_size": 4, "merge_size": 2, "min_pixels": 64, "max_pixels": 40 * 64, "image_mean": [0.48145466, 0.4578275, 0.40821073],
                 "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3}
    return Other("DotsOCRForCausalLM", {"hidden_size": N_TEXT, "vision_config": vision}, processor, shapes, [[40, 32, 20], [16, 56, 14]], ("<|img|>", "<|endofimg|>"))


def youtu():
    vision = {"model_type": "siglip2_vision_model", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 3, "num_channels": 3, "patch_size": 4,
              "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "window_size": 16, "fullatt_block_indexes": [1, 3], "out_hidden_size": N_TEXT, "spatial_merge_size": 2,
              "tokens_per_second": 2, "num_patches": 256}
    tower = "siglip2.vision_model."
    shapes = {tower + "embeddings.patch_embedding.weight": [24, 48], tower + "embeddings.patch_embedding.bias": [24], tower + "post_layernorm.weight": [24], tower + "post_layernorm.bias": [24],
              "merger.ln_q.weight": [24], "merger.mlp.0.weight": [96, 96], "merger.mlp.0.bias": [96], "merger.mlp.2.weight": [N_TEXT, 96], "merger.mlp.2.bias": [N_TEXT]}
    for part, shape in {"layer_norm1": [24], "layer_norm2": [24], **{f"self_attn.{x}_proj": [24, 24] for x in ("q", "k", "v", "out")}, "mlp.fc1": [40, 24], "mlp.fc2": [24, 40]}.items():
        for l in range(4):
            shapes |= {f"{tower}encoder.layers.{l}.{part}.weight": shape, f"{tower}encoder.layers.{l}.{part}.bias": shape[:1]}
    processor = {"patch_size": 4, "max_num_patches": 160, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return Other("YoutuVLForConditionalGeneration", {"hidden_size": N_TEXT, "vision_config": vision}, processor, shapes, [[40, 32, 20], [16, 56, 14], [64, 40, 40]],
                 ("<|vision_start|>", "<|vision_end|>"))


def lfm2():
    """Its processor needs torchvision; here, Pillow resizes pictures to the same sizes."""
    vision = {"model_type": "siglip2_vision_model", "num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "patch_size": 4, "num_patches": 25,
              "vision_use_head": False}
    processor = {"encoder_patch_size": 4, "downsample_factor": 2, "min_image_tokens": 4, "max_image_tokens": 20, "tile_size": 24, "min_tiles": 2, "max_tiles": 6, "resample": 2,
                 "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_image_splitting": True, "use_thumbnail": True}

    def near(size, least=4 * 64, most=20 * 64):
        w, h = (max(8, round(x / 8) * 8) for x in size)
        if w * h > most:
            return [max(8, int(x / (size[0] * size[1] / most) ** 0.5 // 8) * 8) for x in size]
        return [w, h] if w * h >= least else [int(-(-x * (least / (size[0] * size[1])) ** 0.5 // 8)) * 8 for x in size]

    def rows(model, picture):
        a = np.asarray(picture, np.float64) / 255 * 2 - 1
        ny, nx = a.shape[0] // 4, a.shape[1] // 4
        x = torch.tensor(a.reshape(ny, 4, nx, 4, 3).transpose(0, 2, 1, 3, 4).reshape(1, ny * nx, 48))
        return features(model.get_image_features(x, torch.tensor([[ny, nx]]), torch.ones(1, ny * nx, dtype=torch.int32), return_dict=True)).reshape(-1, N_TEXT)

    def parts(model, picture):
        size = picture.size
        whole = [rows(model, picture.resize(near(size), Image.BILINEAR))]
        if np.prod([round(x / 8) * 8 for x in size]) <= 2 * 20 * 64:
            return ["<|image_start|>", *whole, "<|image_end|>"]
        across, down = min(sorted({(x, y) for x in range(1, 7) for y in range(1, 7) if 2 <= x * y <= 6}, key=lambda g: g[0] * g[1]), key=lambda g: abs(size[0] / size[1] - g[0] / g[1]))
        big, out = np.asarray(picture.resize((24 * across, 24 * down), Image.BILINEAR)), []
        for y in range(down):
            for x in range(across):
                out += [f"<|img_row_{y + 1}_col_{x + 1}|>", rows(model, big[24 * y : 24 * y + 24, 24 * x : 24 * x + 24])]
        return ["<|image_start|>", *out, "<|img_thumbnail|>", *whole, "<|image_end|>"]

    config = {"text_config": text_config("lfm2", layer_types=["full_attention"], head_dim=8), "vision_config": vision, "projector_hidden_size": 30, "downsample_factor": 2}
    return Case("picture", "Lfm2VlForConditionalGeneration", config, processor, ("model.vision_tower.", "model.multi_modal_projector."), parts,
                [[40, 30], [64, 12], [90, 50]])


def lfm3():
    """LFM3-VL: its processor is Qwen2-VL's."""
    vision = {"hidden_size": 24, "intermediate_size": 40, "patch_size": 4, "num_hidden_layers": 4, "num_attention_heads": 3, "num_key_value_heads": 1}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3}
    text = {**text_config("lfm3", layer_types=["conv", "sliding_attention", "conv", "full_attention"], num_hidden_layers=4, sliding_window=9, tie_word_embeddings=True, pad_token_id=0),
            "vocab_size": 258}
    config = {"text_config": text, "vision_config": vision, "projector_hidden_size": 20, "image_token_id": 3}

    def seen(picture):
        x = transformers.Qwen2VLImageProcessor(**processor)(picture, return_tensors="pt")
        return {"pixel_values": double(x["pixel_values"]), "image_grid_thw": x["image_grid_thw"]}

    def parts(model, picture):
        return ["<|vision_start|>", features(model.get_image_features(**seen(picture), return_dict=True)), "<|vision_end|>"]

    case = Saved("picture", "Lfm3VlForConditionalGeneration", config, processor | {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]},
                 ("model.vision_tower.", "model.multi_modal_projector."), parts, [[40, 30], [9, 70], [120, 40]])
    case.seen = seen
    return case


def lfm3_whole():
    return marked_whole(lfm3(), ("<|vision_start|>", "<|vision_end|>"), [[40, 30], [70, 30]])


def gemma4uv():
    processor = {"patch_size": 4, "max_soft_tokens": 70, "pooling_kernel_size": 2, "resample": 3, "image_mean": [0.0] * 3, "image_std": [1.0] * 3, "do_normalize": False}

    def parts(model, picture):
        """Without torchvision, by the processor of Gemma 4, whose patches are joined."""
        x = transformers.Gemma4ImageProcessor(**processor)(picture, return_tensors="pt")
        n = int(x["num_soft_tokens_per_image"][0]) * 4
        at, rows = x["image_position_ids"][0, :n], double(x["pixel_values"])[0, :n]
        nx, ny = (int(at[:, k].max()) + 1 for k in (0, 1))
        pixels = rows.reshape(ny, nx, 4, 4, 3).permute(0, 2, 1, 3, 4).reshape(ny // 2, 8, nx // 2, 8, 3).permute(0, 2, 1, 3, 4).reshape(1, n // 4, 192)
        places = torch.stack(torch.meshgrid(torch.arange(nx // 2), torch.arange(ny // 2), indexing="xy"), -1).reshape(1, -1, 2)
        return ["<|image>", features(model.get_image_features(pixels, places, return_dict=True)), "<image|>"]

    config = {"text_config": text_config("gemma4_unified_text", hidden_size_per_layer_input=0, global_head_dim=8),
              "vision_config": {"model_type": "gemma4_unified_vision", "patch_size": 4, "pooling_kernel_size": 2, "mm_embed_dim": N_TEXT, "mm_posemb_size": 80,
                                "output_proj_dims": N_TEXT}, "audio_config": None}
    return Case("picture", "Gemma4UnifiedForConditionalGeneration", config, processor, ("model.embed_vision.",), parts, [[40, 30], [9, 70], [120, 40]])


def muse():
    """Its processor needs torchvision. The text model normalises the rows."""
    vision = {"num_hidden_layers": 5, "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3, "patch_size": 4, "pos_emb_height": 4, "pos_emb_width": 4, "max_position_embeddings": 16}
    processor = {"patch_size": 4, "temporal_patch_size": 2, "merge_size": 2, "max_image_tokens": 20, "resample": 1, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}

    def parts(model, picture):
        w, h = picture.size
        n, best = [w / 8, h / 8], None
        if n[0] * n[1] > 20:
            n = [(20 / (w / h)) ** 0.5 * (w / h), (20 / (w / h)) ** 0.5]
        sizes = [(x, y) for y in (int(n[1]), int(-(-n[1] // 1))) for x in (int(n[0]), int(-(-n[0] // 1))) if x >= 1 and y >= 1 and x * y <= 20]
        best = min(sizes, key=lambda s: (abs(s[1] / s[0] - h / w), -s[0] * s[1]))
        a = np.asarray(picture.resize((8 * best[0], 8 * best[1]), Image.LANCZOS), np.float64) / 255 * 2 - 1
        ny, nx = a.shape[0] // 4, a.shape[1] // 4
        x = a.reshape(ny, 4, nx, 4, 3).transpose(0, 2, 4, 1, 3).reshape(ny * nx, 1, 48)
        seen = model.model.vision_tower(torch.tensor(np.repeat(x, 2, 1).reshape(ny * nx, 96)), torch.tensor([[1, ny, nx]]))
        return ["<|image_start|>", model.model.vision_projection(model.model.vision_adapter(seen.last_hidden_state)), "<|image_end|>"]

    config = {"text_config": text_config("muse_glimmer_text"), "vision_config": vision, "out_hidden_size": 96, "projector_hidden_size": 20}
    return Case("picture", "MuseGlimmerForConditionalGeneration", config, processor, ("model.vision_tower.", "model.vision_adapter.", "model.vision_projection."), parts,
                [[40, 30], [64, 8], [72, 40]])


def glm_experts():
    of = turned_whole(glm("Glm4vMoeForConditionalGeneration"), GLM_MARKS, "Glm4vImageProcessor")
    case = Saved(*(getattr(of, x) for x in ("kind", "of", "config", "processor", "tower", "parts", "media")), words=of.words)
    case.config["tie_word_embeddings"] = case.config["text_config"]["tie_word_embeddings"] = False
    case.config["text_config"] |= {"moe_intermediate_size": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1}
    return case


def wave(x):
    """A processor's sound, as a row of samples."""
    return [np.asarray(x, np.float32)]


def gemma4a(**more):
    """Its attention mixes types, so that all is float32."""
    audio = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "subsampling_conv_channels": [16, 4], "output_proj_dims": 20, **more}

    def parts(model, sound):
        x = transformers.Gemma4AudioFeatureExtractor(feature_size=16)(wave(sound), return_tensors="pt")
        got = model.model.get_audio_features(x["input_features"].float(), x["input_features_mask"], return_dict=True)
        return ["<|audio>", got.pooler_output[got.attention_mask], "<audio|>"]

    config = {"text_config": text_config("gemma4_text", hidden_size_per_layer_input=0, global_head_dim=8), "audio_config": {"model_type": "gemma4_audio", **audio}, "vision_config": None}
    return Case("sound", "Gemma4ForConditionalGeneration", config, {"feature_size": 16}, ("model.audio_tower.", "model.embed_audio."), parts, [[16000], [9234], [1700]], dtype=torch.float32)


def gemma4ua():
    def parts(model, sound):
        x = transformers.Gemma4UnifiedAudioFeatureExtractor(feature_size=64, audio_samples_per_token=64)(wave(sound), return_tensors="pt")
        got = model.model.get_audio_features(double(x["input_features"]), x["input_features_mask"], return_dict=True)
        return ["<|audio>", got.pooler_output.reshape(-1, N_TEXT), "<audio|>"]

    config = {"text_config": text_config("gemma4_unified_text", hidden_size_per_layer_input=0, global_head_dim=8),
              "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 64}, "vision_config": None}
    return Case("sound", "Gemma4UnifiedForConditionalGeneration", config, {}, ("model.embed_audio.",), parts, [[640], [1000]])


def qwen3a():
    audio = {"num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40, "d_model": 24, "output_dim": N_TEXT, "downsample_hidden_size": 6}

    def parts(model, sound):
        x = transformers.Qwen3ASRFeatureExtractor(feature_size=16)(wave(sound), padding="longest", return_tensors="pt", sampling_rate=16000, return_attention_mask=True)
        got = model.model.get_audio_features(double(x["input_features"]), x["attention_mask"], return_dict=True)
        n = [13 * 8] * (got.pooler_output.shape[0] // 104)
        rows = torch.split(got.pooler_output, [*n, got.pooler_output.shape[0] - sum(n)])
        return ["<|audio_start|>", *(x for x in rows if len(x)), "<|audio_end|>"]

    config = {"text_config": text_config("qwen3"), "audio_config": audio}
    return Case("sound", "Qwen3ASRForConditionalGeneration", config, {"feature_size": 16}, ("model.audio_tower.", "model.multi_modal_projector."), parts,
                [[16000], [9234], [1700], [140000]])


def torch_mel(x, n_mel):
    """The power of bands, as torchaudio's MelSpectrogram(16000, n_fft=512, win_length=400, hop_length=160, n_mels=n_mel) gives it: [n_mel, rows]."""
    edges = 700 * (10 ** (torch.linspace(0, 2595 * np.log10(1 + 8000 / 700), n_mel + 2, dtype=torch.float64) / 2595) - 1)
    slopes = edges[None] - torch.linspace(0, 8000, 257, dtype=torch.float64)[:, None]
    bands = torch.clamp(torch.minimum(-slopes[:, :-2] / (edges[1:-1] - edges[:-2]), slopes[:, 2:] / (edges[2:] - edges[1:-1])), min=0)
    power = torch.stft(torch.tensor(x, dtype=torch.float64), 512, 160, 400, torch.hann_window(400, dtype=torch.float64), center=True, pad_mode="reflect", return_complex=True).abs() ** 2
    return bands.T @ power


def granite_speech(plus=False):
    """Its feature extractor needs torchaudio."""
    audio = {"input_dim": 32, "num_layers": 4, "hidden_dim": 24, "feedforward_mult": 2, "num_heads": 3, "dim_head": 8, "output_dim": 10, "context_size": 12, "max_pos_emb": 14,
             "conv_kernel_size": 7} | ({"cat_hidden_layers": [0, 2, 3]} if plus else {})
    qformer = {"model_type": "blip_2_qformer", "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "cross_attention_frequency": 1,
               "encoder_hidden_size": 96 if plus else 24}

    def heard(sound):
        log = torch.clamp(torch_mel(sound, 16).T, min=1e-10).log10()
        log = torch.maximum(log, log.max() - 8) / 4 + 1
        return log[: len(log) // 2 * 2].reshape(1, -1, 32)

    def parts(model, sound):
        return [features(model.model.get_audio_features(heard(sound), return_dict=True))[0]]

    config = {"text_config": text_config("granite"), "encoder_config": audio, "projector_config": qformer, "window_size": 15, "downsample_rate": 5, "has_lora_adapter": False}
    case = Saved("sound", f"GraniteSpeech{'Plus' * plus}ForConditionalGeneration", config, {}, ("encoder.", "projector.", "model.encoder.", "model.projector."), parts,
                 [[16000], [9234], [1700], [20000]])
    case.heard = heard
    return case


def granite_speech_whole():
    """Without a scale of the scores, which transformers leaves out."""
    of = granite_speech()
    of.kind, of.words, of.tower, of.media = "whole", (), ("",), [[9234], [1700]]
    of.config |= {"audio_token_index": 3, "tie_word_embeddings": True}
    of.config["text_config"] |= {"vocab_size": 258, "num_hidden_layers": 2, "pad_token_id": 0, "tie_word_embeddings": True, "embedding_multiplier": 3.0, "residual_multiplier": 0.7, "attention_multiplier": 0.4}

    def parts(model, sound):
        x = of.heard(sound)
        return [-(-x.shape[1] // 15) * 3], {"input_features": x}

    of.parts = parts
    return of


def timed_parts(parts):
    """Music Flamingo's ear finds the windows of a sound by the tokens in whose place rows stand."""
    def of_windows(model, sound):
        n, own = -(-len(sound) // 320) // 2, model.get_audio_features
        model.get_audio_features = lambda *x, **more: own(*x, input_ids=torch.full((1, n), model.config.audio_token_id), **more)
        rows = parts(model, sound)
        model.get_audio_features = own
        return ["<|sound_bos|>", *rows, "<|sound_eos|>"]

    return of_windows


def flamingo(of="AudioFlamingo3ForConditionalGeneration"):
    glm, music = of.startswith("Glm"), of.startswith("Music")
    audio = {"num_mel_bins": 16, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96 if glm else 40, "hidden_size": 24}

    def parts(model, sound):
        chunks = [sound[i : i + 480000] for i in range(0, len(sound), 480000)]
        x = transformers.WhisperFeatureExtractor(feature_size=16)(chunks, padding="max_length", return_attention_mask=True, return_tensors="pt", sampling_rate=16000)
        rows = features(model.get_audio_features(double(x["input_features"]), x["attention_mask"], return_dict=True))
        n = [int(m.sum() + 1) // 2 // (4 if glm else 2) for m in x["attention_mask"]]
        parts = [p for p in torch.split(rows, n) if len(p)]
        return ["<|begin_of_audio|>", *parts, "<|end_of_audio|>"] if glm else parts

    if music:
        audio["model_type"], parts = "audioflamingo3_encoder", timed_parts(parts)
    text = text_config("llama" if glm else "qwen2")
    config = {"text_config": text, "audio_config": audio, "projector_bias": True} if not glm else {"text_config": text, "audio_config": audio}
    return Saved("sound", of, config, {"feature_size": 16}, ("audio_tower.", "multi_modal_projector.", "model.audio_tower.", "model.multi_modal_projector."), parts,
                 [[16000], [9234], [1700]] + [[500000]] * (glm or music))


def qwen2a():
    """Qwen2-Audio: Audio Flamingo's encoder, one product, and marks around all."""
    audio = {"num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40, "d_model": 24}

    def parts(model, sound):
        x = transformers.WhisperFeatureExtractor(feature_size=16)([sound], padding="max_length", return_attention_mask=True, return_tensors="pt", sampling_rate=16000)
        inner = model.model if hasattr(model, "model") else model
        n = (int(x["attention_mask"].sum()) - 1) // 2 + 1
        sees = torch.zeros(1, 1, 1500, 1500, dtype=torch.float64).masked_fill(torch.arange(1500) >= n, -torch.inf)
        found = inner.audio_tower(double(x["input_features"]), attention_mask=sees).last_hidden_state
        return ["<|audio_bos|>", inner.multi_modal_projector(found)[0, : (n - 2) // 2 + 1], "<|audio_eos|>"]

    config = {"text_config": text_config("qwen2"), "audio_config": audio, "audio_token_id": 3}
    return Saved("sound", "Qwen2AudioForConditionalGeneration", config, {"feature_size": 16}, ("audio_tower.", "multi_modal_projector.", "model.audio_tower.", "model.multi_modal_projector."),
                 parts, [[16000], [9234], [1700]])


def qwen2a_whole():
    """Rows of a sound in place of its token, as transformers' class merges them; text and ear have the names that it saves."""
    of = qwen2a()
    of.kind, of.words, of.tower, of.media = "whole", ("<|audio_bos|>", "<|audio_eos|>"), ("",), [[9234], [1700]]
    of.config["text_config"] |= {"vocab_size": 258, "num_hidden_layers": 2, "pad_token_id": 0, "tie_word_embeddings": False}

    def parts(model, sound):
        x = transformers.WhisperFeatureExtractor(feature_size=16)([sound], padding="max_length", return_attention_mask=True, return_tensors="pt", sampling_rate=16000)
        n = ((int(x["attention_mask"].sum()) - 1) // 2 - 1) // 2 + 1
        return ["<|audio_bos|>", n, "<|audio_eos|>"], {"input_features": double(x["input_features"]), "feature_attention_mask": x["attention_mask"]}

    of.parts = parts
    return of


def listener_whole(of, around):
    """The whole of one with Whisper's encoder; rows in place of a token."""
    of.kind, of.words, of.tower, of.media = "whole", around, ("",), [[9234], [1700]]
    of.config |= {"audio_token_id": 3, "tie_word_embeddings": False}
    of.config["text_config"] |= {"vocab_size": 258, "num_hidden_layers": 2, "pad_token_id": 0, "tie_word_embeddings": False}
    each = 4 if of.of.startswith("Glm") else 2

    def parts(model, sound):
        x = transformers.WhisperFeatureExtractor(feature_size=16)([sound], padding="max_length", return_attention_mask=True, return_tensors="pt", sampling_rate=16000)
        n = int(x["attention_mask"].sum() + 1) // 2 // each
        return [*around[:1], n, *around[1:]], {"input_features": double(x["input_features"]), "input_features_mask": x["attention_mask"]}

    of.parts = parts
    return of


def voxtral_heard(sound):
    """Windows of two seconds, which are so many rows of silence longer than the sound; the processor has them of half a minute."""
    x = transformers.WhisperFeatureExtractor(feature_size=16)(sound, padding=True, truncation=False, pad_to_multiple_of=32000, return_tensors="pt", sampling_rate=16000)
    return double(x["input_features"].reshape(16, -1, 200).transpose(0, 1))


def voxtral():
    audio = {"num_mel_bins": 16, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96, "hidden_size": 24, "max_source_positions": 100}

    def parts(model, sound):
        rows = features(model.get_audio_features(voxtral_heard(sound), return_dict=True))
        return ["[BEGIN_AUDIO]", *torch.split(rows, 25)]

    config = {"text_config": text_config("llama", rms_norm_eps=1e-5), "audio_config": audio, "audio_token_id": 3}
    return Saved("sound", "VoxtralForConditionalGeneration", config, {"feature_size": 16}, ("audio_tower.", "multi_modal_projector."), parts, [[9234], [31990], [32000], [50000]])


def voxtral_whole():
    case = voxtral()
    case.kind, case.words, case.tower, case.media = "whole", ("[BEGIN_AUDIO]",), ("",), [[9234], [40000]]
    case.config["text_config"] |= {"vocab_size": 257, "num_hidden_layers": 2, "pad_token_id": 0}

    def parts(model, sound):
        x = voxtral_heard(sound)
        return ["[BEGIN_AUDIO]", 25 * len(x)], {"input_features": x}

    case.parts = parts
    return case


class VoxtralRealtime(Saved):
    """The whole, as rows are added to tokens: rows, and the scores of as many tokens as there are rows. mistral_common fills a sound with silence: 32 rows of 80 ms before it, and
    behind it up to whole rows, and 17 more."""

    def __init__(self):
        audio = {"num_mel_bins": 16, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40, "hidden_size": 24, "head_dim": 16, "sliding_window": 20}
        text = text_config("voxtral_realtime_text", vocab_size=258, num_hidden_layers=2, sliding_window=20, rms_norm_eps=1e-5)
        super().__init__("added", "VoxtralRealtimeForConditionalGeneration", {"text_config": text, "audio_config": audio}, {"feature_size": 16}, ("",), None, [[9234], [50000]])

    def line(self, name):
        model, shapes = self.model()
        all_rows, scores = [], []
        for size in self.media:
            sound = late_senses.medium("sound", size)
            filled = np.concatenate([np.zeros(32 * 1280), sound, np.zeros(-len(sound) % 1280 + 17 * 1280)]).astype(np.float32)
            x = double(transformers.VoxtralRealtimeFeatureExtractor(feature_size=16)([filled], sampling_rate=16000, return_tensors="pt")["input_features"])
            with torch.no_grad():
                rows = features(model.get_audio_features(input_features=x, return_dict=True))[0]
                ids = [0] + [1] * 38 + [2 + x for x in late_senses.letters(len(rows) - 39)]  # late_senses.TEKKEN's
                scores.append(model(input_ids=torch.tensor([ids]), input_features=x, num_delay_tokens=6).logits[0].numpy()[:, :64])
            all_rows.append(rows.numpy())
        pack = lambda x: base64.b64encode(np.concatenate(x).astype("<f4").tobytes()).decode()  # noqa: E731
        written = json.loads(model.config.to_json_string())
        return {"name": name, "kind": "added", "config": {**written, "architectures": [self.of]}, "processor": self.processor, "shapes": late_senses.packed(shapes), "media": self.media,
                "counts": [len(x) for x in all_rows], "n_row": N_TEXT, "rows": pack(all_rows), "scores": pack(scores)}


class Meralion(Other):
    """A model that transformers lacks, but for its encoder, which is Whisper's; behind it, as vLLM's plug-in of its authors computes."""

    def __init__(self):
        config = transformers.WhisperConfig(num_mel_bins=16, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=40, d_model=24, decoder_layers=1)
        config._attn_implementation = "eager"
        self.encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder._from_config(config, attn_implementation="eager").double().eval()
        shapes = {"speech_encoder." + k: list(v.shape) for k, v in self.encoder.state_dict().items()} | {"ln_speech.weight": [24], "ln_speech.bias": [24]}
        for name, out, n in (("mlp_adapter.0", 20, 15 * 24), ("gate_proj", 20, 20), ("pool_proj", 20, 20), ("out_proj", N_TEXT, 20)):
            shapes |= {f"speech_audio_adapter.{name}.weight": [out, n], f"speech_audio_adapter.{name}.bias": [out]}
        super().__init__("MERaLiON2ForConditionalGeneration", {"speech_config": json.loads(config.to_json_string()), "speech_mlp_scale_factor": 15}, {}, shapes,
                         [[16000, 100], [9234, 100]], (), "sound")

    def line(self, name):
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in late_senses.weights(self.shapes).items()}
        self.encoder.load_state_dict({k.removeprefix("speech_encoder."): v for k, v in w.items() if k.startswith("speech_encoder.")})
        product = lambda x, part: x @ w[f"speech_audio_adapter.{part}.weight"].T + w[f"speech_audio_adapter.{part}.bias"]  # noqa: E731
        silu, rows = torch.nn.functional.silu, []
        for size, _ in self.media:
            x = transformers.WhisperFeatureExtractor(feature_size=16)(wave(late_senses.medium("sound", [size]))[0], padding="max_length", return_tensors="pt", sampling_rate=16000)
            with torch.no_grad():
                y = self.encoder(x["input_features"].double()).last_hidden_state[0]
            y = torch.nn.functional.layer_norm(y, (24,), w["ln_speech.weight"], w["ln_speech.bias"])
            y = silu(product(y.reshape(-1, 15 * 24), "mlp_adapter.0"))
            rows.append(product(silu(product(y, "gate_proj")) * product(y, "pool_proj"), "out_proj"))
        return super().line(name) | {"limit": late_senses.LIMIT, "rows": base64.b64encode(torch.cat(rows).numpy().astype("<f4").tobytes()).decode()}


class Dots3(Other):
    """Its encoder is one of transformers' classes; names are those of published folders."""

    def __init__(self):
        self.own = {"downsample_hidden_size": 6, "adapter_input_size": 24, "adapter_out_dim": N_TEXT,
                    "whisper_config": {"d_model": 24, "encoder_attention_heads": 3, "encoder_layers": 2, "encoder_ffn_dim": 40, "num_mel_bins": 16, "activation_function": "swiglu"}}
        config = transformers.models.dots3_note.configuration_dots3_note.Dots3NoteAudioConfig(**self.own)
        config._attn_implementation = "eager"
        self.encoder = transformers.models.dots3_note.modeling_dots3_note.Dots3NoteAudioModel._from_config(config, attn_implementation="eager").double().eval()
        shapes = {self.named(k): list(v.shape) for k, v in self.encoder.state_dict().items()}
        written = self.own | {"use_causal": False, "use_conv2d_stem": True, "use_rope": True, "use_rms_norm": True, "merge_factor": 1, "chunk_seconds": 60,
                              "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}
        super().__init__("Dots3NoteForConditionalGeneration", {"audio_config": written}, {}, shapes, [[16000, 13], [9234, 8], [1700, 2]],
                         ("<|audio_comp_start|>", "<|audio_comp_end|>"), "sound")

    @staticmethod
    def named(k):
        for new, old in {"adapter.norm.": "audio_adapter.proj.0.", "adapter.fc1.": "audio_adapter.proj.1.", "adapter.fc2.": "audio_adapter.proj.3.", "conv_stem.convs.0.": "conv2d1.",
                         "conv_stem.convs.1.": "conv2d2.", "conv_stem.convs.2.": "conv2d3.", "conv_stem.": "", ".o_proj.": ".out_proj.", ".input_layernorm.": ".self_attn_layer_norm.",
                         ".post_attention_layernorm.": ".final_layer_norm.", ".mlp.gate_up_proj.": ".fc1.", ".mlp.down_proj.": ".fc2."}.items():
            k = k.replace(new, old)
        return "audio_encoder." + k if k.startswith("audio_adapter.") else "audio_encoder.dots_encoder.speech_encoder." + k

    def line(self, name):
        w = late_senses.weights(self.shapes)
        self.encoder.load_state_dict({k: torch.tensor(w[self.named(k)], dtype=torch.float64) for k in self.encoder.state_dict()})
        rows = []
        for size, n in self.media:
            x = transformers.models.dots3_note.feature_extraction_dots3_note.Dots3NoteFeatureExtractor(feature_size=16)(wave(late_senses.medium("sound", [size])))
            with torch.no_grad():
                rows.append(self.encoder(x["input_features"].double(), x["chunk_sample_lengths"]).pooler_output)
        return super().line(name) | {"limit": late_senses.LIMIT, "rows": base64.b64encode(torch.cat(rows).numpy().astype("<f4").tobytes()).decode()}


class Parakeet(Other):
    """Its encoder is one of transformers' classes; the projection is computed here, as llama.cpp does."""

    def __init__(self):
        self.own = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40, "num_mel_bins": 16, "subsampling_conv_channels": 6,
                    "conv_kernel_size": 9, "subsampling_factor": 8, "attention_bias": False, "convolution_bias": False, "scale_input": False, "hidden_act": "silu"}
        config = transformers.ParakeetEncoderConfig(**self.own)
        config._attn_implementation = "eager"
        self.encoder = transformers.ParakeetEncoder._from_config(config, attn_implementation="eager").double().eval()
        shapes = {"sound_encoder.encoder." + k: list(v.shape) for k, v in self.encoder.state_dict().items() if v.dtype != torch.long}
        shapes |= {"sound_projection.norm.weight": [24], "sound_projection.linear1.weight": [20, 24], "sound_projection.linear2.weight": [N_TEXT, 20]}
        super().__init__("NemotronH_Nano_VL_V2", {"sound_config": self.own}, {}, shapes, [[16000], [9234], [20000]], (), "sound")

    def line(self, name):
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in late_senses.weights(self.shapes).items()}
        self.encoder.load_state_dict({k.removeprefix("sound_encoder.encoder."): v for k, v in w.items() if k.startswith("sound_encoder.")}, strict=False)
        rows, media = [], []
        for size, in self.media:
            x = transformers.ParakeetFeatureExtractor(feature_size=16)(wave(late_senses.medium("sound", [size])), sampling_rate=16000, return_tensors="pt")
            with torch.no_grad():
                y = self.encoder(x["input_features"].double(), attention_mask=x["attention_mask"], output_attention_mask=True)
            y, kept = y.last_hidden_state[0], y.attention_mask
            y = y if kept is None else y[kept[0].bool()]
            y = y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-6) * w["sound_projection.norm.weight"]
            rows.append(torch.relu(y @ w["sound_projection.linear1.weight"].T) ** 2 @ w["sound_projection.linear2.weight"].T)
            media.append([size, len(rows[-1])])
        self.media = media
        return super().line(name) | {"limit": late_senses.LIMIT, "rows": base64.b64encode(torch.cat(rows).numpy().astype("<f4").tobytes()).decode()}


def qwen25o():
    audio = {"num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40, "d_model": 24, "output_dim": N_TEXT}

    def parts(model, sound):
        x = transformers.WhisperFeatureExtractor(feature_size=16)(wave(sound)[0], padding="max_length", return_attention_mask=True, return_tensors="pt", sampling_rate=16000)
        rows = features(model.thinker.get_audio_features(double(x["input_features"]), x["attention_mask"], return_dict=True))
        return ["<|audio_bos|>", *(part for part in torch.split(rows, 50) if len(part)), "<|audio_eos|>"]

    config = {"thinker_config": {"audio_config": audio, "text_config": text_config("qwen2_5_omni_text"), "vision_config": {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16}}, "enable_audio_output": False}
    return Case("sound", "Qwen2_5OmniForConditionalGeneration", config, {"feature_size": 16}, ("thinker.audio_tower.", "thinker.model.audio_tower."), parts, [[16000], [9234], [1700], [70000]])


class Own(Other):
    """A model that transformers lacks: its rows are computed here, of patches that Qwen2-VL's processor makes, [n][3 * frames * p * p] in squares of 2 x 2, and their lines and columns."""

    def __init__(self, of, config, processor, shapes, media, around, rows_of):
        super().__init__(of, config, processor, shapes, media, around)
        self.rows_of = rows_of

    def line(self, name):
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in late_senses.weights(self.shapes).items()}
        rows, media = [], []
        for size in self.media:
            rows.append(self.rows_of(w, Image.fromarray(late_senses.medium("picture", size))))
            media.append([*size, len(rows[-1])])
        self.media = media
        return super().line(name) | {"limit": late_senses.LIMIT, "rows": base64.b64encode(torch.cat(rows).numpy().astype("<f4").tobytes()).decode()}


def qwen_patches(picture, processor):
    """Patches, lines and columns."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    x = Qwen2VLImageProcessorPil(**processor)(picture, return_tensors="pt")
    _, ny, nx = x["image_grid_thw"][0].tolist()
    yx = torch.tensor([(y + dy, x + dx) for y in range(0, ny, 2) for x in range(0, nx, 2) for dy in range(2) for dx in range(2)])
    return x["pixel_values"].double(), yx, ny, nx


def rms(x, w, eps=1e-6):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w


def turned_by_place(x, yx):
    """Heads x [n, h, d], halves: the first half of the pairs by the line, the second by the column."""
    d = x.shape[-1]
    f = 10000.0 ** (-torch.arange(0, d // 2, 2) / (d // 2))
    angle = (yx[:, :, None] * f).reshape(len(yx), 1, d // 2)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def mimo():
    """From llama.cpp's graph: transformers lacks the model."""
    n, n_ff, n_head, n_kv, d, types, reach = 24, 40, 4, 2, 8, [-1, 0, 1, 1, -1, 1], 5
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 8 * 64, "max_pixels": 40 * 64, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}
    vision = {"depth": len(types), "hidden_size": n, "intermediate_size": n_ff, "num_heads": n_head, "num_key_value_heads": n_kv, "qk_channels": d, "patch_size": 4, "spatial_merge_size": 2,
              "temporal_patch_size": 2, "in_chans": 3, "hidden_act": "silu", "out_hidden_size": N_TEXT, "visual_token_window_size": reach, "vit_window_attn_types": types, "use_sink": True,
              "fullatt_block_indexes": [0, 4], "num_query_groups": 2}
    shapes = {"visual.patch_embed.proj.weight": [n, 3, 2, 4, 4], "visual.merger.ln_q.weight": [n], "visual.merger.mlp.0.weight": [4 * n, 4 * n],
              "visual.merger.mlp.2.weight": [N_TEXT, 4 * n]}
    for l in range(len(types)):
        b = f"visual.blocks.{l}."
        for part, rows, columns in (("attn.qkv", (n_head + 2 * n_kv) * d, n), ("attn.proj", n, n_head * d), ("mlp.gate_proj", n_ff, n), ("mlp.up_proj", n_ff, n), ("mlp.down_proj", n, n_ff)):
            shapes |= {f"{b}{part}.weight": [rows, columns], f"{b}{part}.bias": [rows]}
        shapes |= {b + "norm1.weight": [n], b + "norm2.weight": [n]} | ({b + "attn.sinks": [n_head]} if types[l] >= 0 else {})

    def rows_of(w, picture):
        more = {k: v for k, v in processor.items() if "pixels" not in k}
        x, yx, ny, nx = qwen_patches(picture, more | {"size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}})
        at, lin = lambda name: w["visual." + name], lambda x, name: x @ w[f"visual.{name}.weight"].T + w.get(f"visual.{name}.bias", 0)
        x = x @ at("patch_embed.proj.weight").reshape(n, -1).T
        columns = torch.tensor([(r * (nx // 2) + c) * 4 + k for c in range(nx // 2) for r in range(ny // 2) for k in range(4)])
        for l, kind in enumerate(types):
            order = columns if kind == 1 else torch.arange(len(x))
            b, y = f"blocks.{l}.", x[order]
            q, k, v = lin(rms(y, at(b + "norm1.weight")), b + "attn.qkv").split([n_head * d, n_kv * d, n_kv * d], -1)
            q, k = (turned_by_place(z.reshape(len(y), -1, d), yx[order]) for z in (q, k))
            k, v = (z.reshape(len(y), n_kv, d).repeat_interleave(n_head // n_kv, 1) for z in (k, v))
            scores = torch.einsum("ihd,jhd->hij", q, k) / d**0.5
            if kind >= 0:
                i = torch.arange(len(y))
                scores = torch.where((i[:, None] - i).abs() <= reach, scores, -torch.inf)
                scores = torch.cat([scores, at(b + "attn.sinks")[:, None, None].expand(-1, len(y), 1)], -1)
            shares = scores.softmax(-1)[..., : len(y)]
            y = y + lin(torch.einsum("hij,jhd->ihd", shares, v).reshape(len(y), -1), b + "attn.proj")
            h = rms(y, at(b + "norm2.weight"))
            y = y + lin(torch.nn.functional.silu(lin(h, b + "mlp.gate_proj")) * lin(h, b + "mlp.up_proj"), b + "mlp.down_proj")
            x = torch.empty_like(y).index_copy(0, order, y)
        x = torch.nn.functional.layer_norm(x, [n], at("merger.ln_q.weight"), None, 1e-6).reshape(-1, 4 * n)
        return lin(torch.nn.functional.gelu(lin(x, "merger.mlp.0")), "merger.mlp.2")

    return Own("MiMoV2ForCausalLM", {"hidden_size": N_TEXT, "vision_config": vision}, processor, shapes, [[40, 30], [9, 70], [60, 40]], ("<|vision_start|>", "<|vision_end|>"), rows_of)


class MimoEar(Other):
    """Its authors' tokenizer of sounds and what reads its codes (modeling_mimo_v2.py), as SGLang runs them, computed here: transformers lacks them."""

    N, N_FF, N_HEAD, N_MEL, REACH, BOOKS, N_CODES, GROUP = 24, 40, 3, 16, 5, (20, 20, 12, 7), 28, 4

    def __init__(self):
        n, tokenizer = self.N, {}
        self.own = {"sampling_rate": 24000, "hop_length": 240, "window_size": 960, "nfft": 960, "fmin": 0, "fmax": None, "n_mels": self.N_MEL, "kernel_size": 3, "stride_size": 2, "avg_pooler": 2,
                    "d_model": n, "encoder_layers": 4, "encoder_attention_heads": self.N_HEAD, "encoder_ffn_dim": self.N_FF, "encoder_causal": True, "encoder_skip_layer_id": 3,
                    "encoder_attn_window_size": [self.REACH, 0], "hybrid_attention": True, "swa_per_block": 2, "activation_function": "gelu", "ln_type": "LayerNorm", "rope_theta": 10000,
                    "rope_type": "default", "num_quantizers": len(self.BOOKS), "codebook_size": self.BOOKS, "decoder_layers": 2}
        linear = lambda out, n_in: {"weight": [out, n_in], "bias": [out]}  # noqa: E731
        for name, parts in (("conv1", {"weight": [n, self.N_MEL, 3], "bias": [n]}), ("conv2", {"weight": [n, n, 3], "bias": [n]}), ("layer_norm", {"weight": [n], "bias": [n]}),
                            ("down_sample_layer.0", {"weight": [n, n, 2]}), ("down_sample_norm", {"weight": [n], "bias": [n]})):
            tokenizer |= {f"encoder.{name}.{part}": shape for part, shape in parts.items()}
        for l in range(4):
            for name, parts in (("self_attn_layer_norm", {"weight": [n], "bias": [n]}), ("self_attn.q_proj", linear(n, n)), ("self_attn.k_proj", {"weight": [n, n]}), ("self_attn.v_proj", linear(n, n)),
                                ("self_attn.out_proj", linear(n, n)), ("final_layer_norm", {"weight": [n], "bias": [n]}), ("fc1", linear(self.N_FF, n)), ("fc2", linear(n, self.N_FF))):
                tokenizer |= {f"encoder.layers.{l}.{name}.{part}": shape for part, shape in parts.items()}
        for k, rows in enumerate(self.BOOKS):
            book = f"encoder.quantizer.vq.layers.{k}._codebook."
            tokenizer |= {book + "embed": [rows, n], book + "embed_avg": [rows, n], book + "cluster_size": [rows], book + "inited": [1]}
        tokenizer["decoder.conv_out.weight"] = [4, 4]
        shapes = {f"speech_embeddings.{k}.weight": [self.N_CODES, n] for k in range(len(self.BOOKS))}
        for l in range(2):
            b = f"audio_encoder.input_local_transformer.layers.{l}."
            shapes |= {b + "input_layernorm.weight": [n], b + "post_attention_layernorm.weight": [n], b + "self_attn.o_proj.weight": [n, n]}
            shapes |= {f"{b}self_attn.{c}_proj.{part}": shape for c in "qkv" for part, shape in linear(n, n).items()}
            shapes |= {b + "mlp.gate_proj.weight": [44, n], b + "mlp.up_proj.weight": [44, n], b + "mlp.down_proj.weight": [n, 44]}
        shapes |= {"audio_encoder.input_local_transformer.norm.weight": [n], "audio_encoder.projection.mlp.0.weight": [20, self.GROUP * n], "audio_encoder.projection.mlp.2.weight": [N_TEXT, 20]}
        audio = {"group_size": self.GROUP, "audio_channels": len(self.BOOKS), "input_local_layers": 2, "input_local_dim": n, "input_local_attn_heads": self.N_HEAD, "input_local_intermediate_size": 44,
                 "input_full_attention": True, "rope_theta": 640000.0, "partial_rotary_factor": 1.0, "add_post_norm": True, "projection_layers": 2, "speech_vocab_size": str(self.N_CODES),
                 "out_hidden_size": N_TEXT, "audio_segment_size": 6000}
        self.tokenizer = tokenizer
        super().__init__("MiMoV2ForCausalLM", {"hidden_size": N_TEXT, "audio_config": audio}, {}, shapes, [[24000], [7439], [7440], [7920], [100], [1442200]],
                         ("<|mimo_audio_start|>", "<|mimo_audio_end|>"), "sound")

    def mel(self, x):
        """torchaudio's MelSpectrogram of magnitudes, whose bands are triangles on the scale of HTK, and the natural logarithm."""
        x = torch.tensor(x, dtype=torch.float64)
        half = min(480, len(x) - 1)  # a shorter sound is mirrored as far as it goes
        x = torch.nn.functional.pad(torch.nn.functional.pad(x[None], (half, half), "reflect")[0], (480 - half, 480 - half))
        spectrum = torch.stft(x, 960, 240, window=torch.hann_window(960, dtype=torch.float64), center=False, return_complex=True).abs()
        at = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + 12000 / 700), self.N_MEL + 2, dtype=torch.float64) / 2595) - 1)
        hz = torch.linspace(0, 12000, 481, dtype=torch.float64)
        up, down = (hz - at[:-2, None]) / (at[1:-1] - at[:-2])[:, None], (at[2:, None] - hz) / (at[2:] - at[1:-1])[:, None]
        return torch.log((torch.minimum(up, down).clamp(min=0) @ spectrum).clamp(min=1e-7)).T

    @staticmethod
    def attention(x, q, k, v, n_head, theta, sees):
        n, d = len(x), x.shape[1] // n_head
        angle = torch.arange(n, dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        c, s = angle.cos(), angle.sin()
        heads = lambda y: y.reshape(n, n_head, d).transpose(0, 1)  # noqa: E731
        turn = lambda y: torch.cat([y[..., : d // 2] * c - y[..., d // 2 :] * s, y[..., d // 2 :] * c + y[..., : d // 2] * s], -1)  # noqa: E731
        a = (turn(heads(q)) @ turn(heads(k)).transpose(1, 2) / d**0.5).masked_fill(~sees, -torch.inf)
        return (a.softmax(-1) @ heads(v)).transpose(0, 1).reshape(n, -1)

    def codes(self, w, mel):
        """Of at most a minute."""
        F, lin = torch.nn.functional, lambda y, name: y @ w[name + ".weight"].T + w.get(name + ".bias", 0)
        normed = lambda y, name: F.layer_norm(y, (self.N,), w[name + ".weight"], w[name + ".bias"])  # noqa: E731
        x = F.gelu(F.conv1d(mel.T[None], w["encoder.conv1.weight"], w["encoder.conv1.bias"], padding=1))
        x = F.gelu(F.conv1d(x, w["encoder.conv2.weight"], w["encoder.conv2.bias"], stride=2, padding=1))[0].T
        i = torch.arange(len(x))
        for l in range(4):
            b, back = f"encoder.layers.{l}.", i[:, None] - i
            h = normed(x, b + "self_attn_layer_norm")
            sees = (back >= 0) & (back <= (self.REACH if l % 2 == 0 else len(x)))
            x = x + lin(self.attention(h, *(lin(h, f"{b}self_attn.{c}_proj") for c in "qkv"), self.N_HEAD, 10000.0, sees), b + "self_attn.out_proj")
            x = x + lin(F.gelu(lin(normed(x, b + "final_layer_norm"), b + "fc1")), b + "fc2")
            kept = x if l == 2 else None if l < 2 else kept
        x = normed(x + kept, "encoder.layer_norm")
        x = F.gelu(F.conv1d(F.pad(x, (0, 0, 0, len(x) % 2)).T[None], w["encoder.down_sample_layer.0.weight"], stride=2))[0].T
        left, found = normed(x, "encoder.down_sample_norm"), []
        for k in range(len(self.BOOKS)):
            book = w[f"encoder.quantizer.vq.layers.{k}._codebook.embed"]
            far = (left[:, None] - book).square().sum(-1)
            best = far.sort(-1).values
            self.closest = min(self.closest, float((best[:, 1] - best[:, 0]).min()))
            found.append(far.argmin(-1))
            left = left - book[found[-1]]
        return torch.stack(found, 1)

    def rows(self, w, sound):
        F, mel = torch.nn.functional, self.mel(sound)
        codes = torch.cat([self.codes(w, part) for part in mel.split(6000)])
        codes = torch.cat([codes, codes[-1:].repeat(-len(codes) % self.GROUP, 1)])
        x = sum(w[f"speech_embeddings.{k}.weight"][codes[:, k]] for k in range(len(self.BOOKS)))
        out, lin, t = [], lambda y, name: y @ w[name + ".weight"].T + w.get(name + ".bias", 0), "audio_encoder.input_local_transformer."
        for y in x.split(self.GROUP):
            for l in range(2):
                b = f"{t}layers.{l}."
                h = rms(y, w[b + "input_layernorm.weight"])
                q, k, v = (lin(h, f"{b}self_attn.{c}_proj") for c in "qkv")
                y = y + lin(self.attention(h, q, k, v, self.N_HEAD, 640000.0, torch.ones(self.GROUP, self.GROUP, dtype=torch.bool)), b + "self_attn.o_proj")
                h = rms(y, w[b + "post_attention_layernorm.weight"])
                y = y + lin(F.silu(lin(h, b + "mlp.gate_proj")) * lin(h, b + "mlp.up_proj"), b + "mlp.down_proj")
            out.append(rms(y, w[t + "norm.weight"]).reshape(-1))
        return lin(F.gelu(lin(torch.stack(out), "audio_encoder.projection.mlp.0")), "audio_encoder.projection.mlp.2")

    def line(self, name):
        self.closest = math.inf
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in (late_senses.weights(self.shapes) | late_senses.weights(self.tokenizer)).items()}
        rows = [self.rows(w, late_senses.medium("sound", size)) for size in self.media]
        if self.closest < 1e-3:
            raise SystemExit(f"{name}: a second row of a codebook is as near as {self.closest:.0e}")
        self.media = [[*size, len(x)] for size, x in zip(self.media, rows)]
        return super().line(name) | {"limit": late_senses.LIMIT, "rate": 24000, "folders": {"audio_tokenizer": {"config": self.own, "shapes": late_senses.packed(self.tokenizer)}},
                                     "rows": base64.b64encode(torch.cat(rows).numpy().astype("<f4").tobytes()).decode()}


def phi4():
    """SigLIP 2 of transformers up to the last layer but one; sizes as the model's processor has them, which transformers lacks."""
    from transformers.models.siglip2.image_processing_pil_siglip2 import get_image_size_for_max_num_patches
    own = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 3, "patch_size": 4, "num_patches": 25}
    config = transformers.Siglip2VisionConfig(**own, vision_use_head=False)
    model = transformers.Siglip2VisionModel._from_config(config, attn_implementation="eager").double().eval()
    before = "model.vision_tower.vision_tower."
    names = {(k if k.startswith("vision_model.") else "vision_model." + k): k for k in model.state_dict()}
    shapes = {before + k: list(model.state_dict()[v].shape) for k, v in names.items()}
    shapes |= {"model.mm_projector.0.weight": [20, 24], "model.mm_projector.0.bias": [20], "model.mm_projector.2.weight": [N_TEXT, 20], "model.mm_projector.2.bias": [N_TEXT]}
    processor = {"patch_size": 4, "min_num_patches": 12, "max_num_patches": 80, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def rows_of(w, picture):
        model.load_state_dict({v: w[before + k] for k, v in names.items()})
        n = min(max(picture.width // 4 * (picture.height // 4), 12), 80)
        h, w_ = get_image_size_for_max_num_patches(picture.height, picture.width, 4, n)
        a = (np.asarray(picture.resize((w_, h), Image.BILINEAR), np.float64) / 255 - 0.5) / 0.4
        x = torch.tensor(a.reshape(h // 4, 4, w_ // 4, 4, 3).transpose(0, 2, 1, 3, 4).reshape(1, -1, 48))
        with torch.no_grad():
            y = model(pixel_values=x, pixel_attention_mask=torch.ones(x.shape[:2], dtype=torch.long), spatial_shapes=torch.tensor([[h // 4, w_ // 4]]), output_hidden_states=True).hidden_states[-2][0]
        y = torch.nn.functional.gelu(y @ w["model.mm_projector.0.weight"].T + w["model.mm_projector.0.bias"])
        return y @ w["model.mm_projector.2.weight"].T + w["model.mm_projector.2.bias"]

    return Own("Phi4ForCausalLMV", {"hidden_size": N_TEXT, "vision_config": own | {"model_type": "siglip2_vision_model"}, "mm_vision_select_layer": -2}, processor, shapes,
               [[40, 30], [70, 9], [60, 40], [7, 5], [41, 13]], (), rows_of)


def ling3():
    """The eye of transformers' Qwen3-VL without its products, and Ling's own behind it."""
    own = {"depth": 2, "hidden_size": 24, "intermediate_size": 40, "num_heads": 3, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 96,
           "num_position_embeddings": 25, "deepstack_visual_indexes": []}
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel
    config = Qwen3VLVisionModel.config_class(**own)
    model = Qwen3VLVisionModel._from_config(config, attn_implementation="eager").double().eval()
    shapes = {"visual." + k: list(v.shape) for k, v in model.state_dict().items() if "merger.linear" not in k and k != "patch_embed.proj.bias"}
    shapes |= {"linear_proj.0.weight": [20, 96], "linear_proj.0.bias": [20], "linear_proj.2.weight": [N_TEXT, 20], "linear_proj.2.bias": [N_TEXT]}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def rows_of(w, picture):
        x, _, ny, nx = qwen_patches(picture, processor)
        model.load_state_dict({k.removeprefix("visual."): v for k, v in w.items() if k.startswith("visual.")} | {"patch_embed.proj.bias": torch.zeros(24)}, strict=False)
        with torch.no_grad():
            found = model(x, torch.tensor([[1, ny, nx]]), return_dict=True).last_hidden_state
            y = model.merger.norm(found).reshape(-1, 96)
        y = torch.nn.functional.gelu(y @ w["linear_proj.0.weight"].T + w["linear_proj.0.bias"])
        return y @ w["linear_proj.2.weight"].T + w["linear_proj.2.bias"]

    return Own("BailingMoeV3VLForConditionalGeneration", {"text_config": {"hidden_size": N_TEXT}, "vision_config": own | {"disable_merger_proj": True}}, processor, shapes,
               [[40, 30], [9, 70], [60, 40]], ("<|vision_start|>", "<|vision_end|>"), rows_of)


def dots3():
    """The tower of transformers' Dots 3 Note, with the names of its authors' folders."""
    import re
    from transformers.models.dots3_note.modeling_dots3_note import Dots3NoteVisionModel
    own = {"embed_dim": 24, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 3, "patch_size": 4, "spatial_merge_size": 2, "rms_norm_eps": 1e-5,
           "pyramid_num_routed": [-1, 1, 3, 5], "capacity_factor": 2, "router_scale": 1.0, "moe_intermediate_size": 12, "adapter_in_dim": 24, "adapter_out_dim": N_TEXT, "adapter_merge_size": 2}
    config = Dots3NoteVisionModel.config_class(**own)
    model = Dots3NoteVisionModel._from_config(config, attn_implementation="eager", experts_implementation="eager").double().eval()
    renames = ((r"^norm", "post_trunk_norm"), ("^merger", "adapter"), (r"(\d)\.norm(\d)", r"\1.norm_\2"), ("gate_proj", "fc1"), ("up_proj", "fc3"), ("down_proj", "fc2"), ("gate.weight", "gate_weight"),
               ("e_score_correction_bias", "router_bias"))

    def named(name):
        for old, new in renames:
            name = re.sub(old, new, name)
        return "vision_encoder." + name

    shapes, parts = {}, {}  # of a tensor of the model: those of the folder
    for k, v in model.state_dict().items():
        of = re.match(r"(.*experts\.)(gate_up|down)_proj", k)
        names = [[named(f"{of[1]}{e}.{p}_proj.weight") for p in of[2].split("_")] for e in range(len(v))] if of else [[named(k)]]
        parts[k] = names
        for one in names:
            shapes |= {name: [v.shape[1] // len(one), v.shape[2]] if of else list(v.shape) for name in one}
    processor = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 1, "size": {"shortest_edge": 8 * 64, "longest_edge": 40 * 64}, "resample": 3, "image_mean": [0.5] * 3, "image_std": [0.4] * 3}

    def rows_of(w, picture):
        x, _, ny, nx = qwen_patches(picture, processor)
        model.load_state_dict({k: torch.stack([torch.cat([w[name] for name in one]) for one in names]) if "experts" in k else w[names[0][0]] for k, names in parts.items()})
        with torch.no_grad():
            return model(x, torch.tensor([[1, ny, nx]]), return_dict=True).pooler_output

    theirs = {k: v for k, v in own.items()} | {"adapter_type": "patch_merger", "pre_pixel_shuffle": True, "use_qk_norm": True, "use_bias": False, "temporal_patch_size": 1}
    return Own("Dots3NoteForConditionalGeneration", {"hidden_size": N_TEXT, "vision_config": theirs}, processor, shapes, [[40, 30], [9, 70], [60, 40]], ("<|img|>", "<|endofimg|>"), rows_of)


def vision_exp_size(picture, p, r, most, least, wide):
    """The size that the authors of DeepSeek-V4-Flash-Vision give a picture."""
    def tokens(h, w):
        nh, nw = -(-(h // p) // r), -(-(w // p) // r)
        lines = nh + nh % 2
        return lines * (nw + 1) + 2 + 2 * (lines // 2 * (nw + 1) % 2)

    def solved(n):
        shape = h / w
        across = math.sqrt((n - 2) / shape + 0.25) - 0.5
        if across < 1:
            lines = (n - 2) // 2
            return (lines - lines % 2) * p * r, p * r
        if across * shape < 2:
            return 2 * p * r, ((n - 2) // 2 - 1) * p * r
        across, lines = math.floor(across), math.floor(across * shape)
        by = min(across * p * r / w, (lines - lines % 2) * p * r / h)
        return math.floor(h * by / p) * p, math.floor(w * by / p) * p

    w, h = picture.size
    w = min(w, h * wide)
    if w * h < least:
        by = (least / (w * h)) ** 0.5
        w, h = int(w * by), int(h * by)
    to, n = (-(-h // p) * p, -(-w // p) * p), most - 3
    while tokens(*to) > most - 3:
        to, n = solved(n), n - 1
    return to


def deepseek4v():
    """From the authors' description: transformers lacks it. Rows in pairs of lines, without those that fill what is before them."""
    n, n_ff, n_head, deep, p, r, least, wide = 24, 40, 3, 3, 4, 3, 2000, 8
    config = {"vision_n_layers": deep, "vision_dim": n, "vision_n_heads": n_head, "vision_inter_dim": n_ff, "vision_patch_size": p, "vision_rope_theta": 10000.0,
              "vision_downsample_ratio": r, "vision_max_n_token": 384, "vision_min_pixels": least, "vision_max_wh_ratio": wide}
    shapes = {"vision.patch_embed.proj.weight": [n, 3 * p * p], "vision.patch_embed.proj.bias": [n], "vision.norm.weight": [n], "aligner.w1.weight": [20, n * r * r], "aligner.w1.bias": [20],
              "aligner.w2.weight": [N_TEXT, 20], "aligner.w2.bias": [N_TEXT]} | {"image_" + x: [N_TEXT] for x in ("start", "end", "newline", "pad")}
    for b in (f"vision.blocks.{l}." for l in range(deep)):
        shapes |= {b + "norm1.weight": [n], b + "attn.wqkv.weight": [3 * n, n], b + "attn.wqkv.bias": [3 * n], b + "attn.wo.weight": [n, n], b + "attn.wo.bias": [n], b + "norm2.weight": [n],
                   b + "mlp.w1.weight": [2 * n_ff, n], b + "mlp.w2.weight": [n, n_ff]}

    def rows_of(w, picture):
        h_, w_ = vision_exp_size(picture, p, r, 384, least, wide)
        seen = picture.resize((w_, h_)) if picture.width >= wide * picture.height else ImageOps.pad(picture, (w_, h_), color=(127, 127, 127))
        ny, nx, lin = h_ // p, w_ // p, lambda x, name: x @ w[name + ".weight"].T + w.get(name + ".bias", 0)
        a = (np.asarray(seen, np.float64) / 255 - 0.5) / 0.5
        x = lin(torch.tensor(a.reshape(ny, p, nx, p, 3).transpose(0, 2, 4, 1, 3).reshape(ny * nx, -1)), "vision.patch_embed.proj")
        yx = torch.tensor([(i // nx, i % nx) for i in range(ny * nx)])
        for b in (f"vision.blocks.{l}." for l in range(deep)):
            q, k, v = lin(rms(x, w[b + "norm1.weight"]), b + "attn.wqkv").reshape(-1, 3, n_head, n // n_head).unbind(1)
            shares = (torch.einsum("ihd,jhd->hij", turned_by_place(q, yx), turned_by_place(k, yx)) / (n // n_head) ** 0.5).softmax(-1)
            x = x + lin(torch.einsum("hij,jhd->ihd", shares, v).reshape(-1, n), b + "attn.wo")
            gate, up = lin(rms(x, w[b + "norm2.weight"]), b + "mlp.w1").chunk(2, -1)
            x = x + lin(torch.nn.functional.silu(gate) * up, b + "mlp.w2")
        x = rms(x, w["vision.norm.weight"]).reshape(ny, nx, n).permute(2, 0, 1)
        x = torch.nn.functional.unfold(torch.nn.functional.pad(x, (0, -nx % r, 0, -ny % r))[None], r, stride=r)[0].T
        x = lin(torch.nn.functional.gelu(lin(x, "aligner.w1")), "aligner.w2").reshape(-(-ny // r), -(-nx // r), -1)
        block = torch.cat([x, w["image_newline"].expand(len(x), 1, -1)], 1)
        if len(x) % 2:
            block = torch.cat([block, w["image_pad"].expand(1, block.shape[1], -1)])
        block = block.reshape(len(block) // 2, 2, block.shape[1], -1).transpose(1, 2).reshape(-1, N_TEXT)
        return torch.cat([w["image_start"][None], block, w["image_pad"].expand(len(block) % 4, -1), w["image_end"][None]])

    case = Own("DeepseekV4ForCausalLM", {"hidden_size": N_TEXT} | config, {}, shapes, [[40, 30], [9, 70], [300, 20], [140, 140], [400, 300], [30, 500]], (), rows_of)
    made = case.line
    case.line = lambda name: made(name) | {"fill": ["image_pad", 4], "twin": "deepseek4"}
    return case


def yasa2(patches=64):
    """ConvNeXt V2 of transformers, and what llama.cpp's graph makes of its last rows: transformers lacks the whole."""
    own = {"depths": [2, 1, 2, 1], "hidden_sizes": [8, 12, 16, 20], "patch_size": 2, "image_size": 2 * patches}
    config = transformers.ConvNextV2Config(**{k: v for k, v in own.items()})
    model = transformers.ConvNextV2Model._from_config(config).double().eval()
    before = "model.vision_model.backbone."
    shapes = {before + k: list(v.shape) for k, v in model.state_dict().items()}
    shapes |= {"model.language_projection.0.weight": [24, 20], "model.language_projection.0.bias": [24], "model.language_projection.2.weight": [N_TEXT, 24], "model.language_projection.2.bias": [N_TEXT]}
    processor = {"resample": 3, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "size": {"height": 2 * patches, "width": 2 * patches}}

    def places(n):
        x, f = np.arange(n), 10000.0 ** (-np.arange(5) / 5)
        angles = [np.outer(of, f) for of in (x % 50, x // 50)]
        return torch.tensor(np.concatenate([of(a) for a in angles for of in (np.sin, np.cos)], 1))

    def rows_of(w, picture):
        model.load_state_dict({k.removeprefix(before): v for k, v in w.items() if k.startswith(before)})
        a = (np.asarray(picture.resize((2 * patches, 2 * patches), Image.BICUBIC), np.float64) / 255 - processor["image_mean"]) / processor["image_std"]
        with torch.no_grad():
            x = model(pixel_values=torch.tensor(a).permute(2, 0, 1)[None]).last_hidden_state[0]
        if x[0].numel() == 256:
            x = x + places(256).T.reshape(x.shape)
        x = torch.nn.functional.adaptive_avg_pool2d(x[None], 8)[0].flatten(1).T
        x = torch.nn.functional.gelu(x @ w["model.language_projection.0.weight"].T + w["model.language_projection.0.bias"])
        return x @ w["model.language_projection.2.weight"].T + w["model.language_projection.2.bias"]

    written = json.loads(config.to_json_string())
    return Own("Yasa2ForConditionalGeneration", {"text_config": {"hidden_size": N_TEXT}, "vision_config": written}, processor, shapes, [[40, 30], [100, 90]] if patches == 64 else [[50, 20]],
               ("<image>", "</image>"), rows_of)


def lfm2a():
    """A model that transformers lacks; the size of its rows is one of llama.cpp's constants."""
    n, deep, shapes = 512, 2, {}

    def put(name, *shape, bias=True):
        shapes[name + ".weight"] = list(shape)
        if bias:
            shapes[name + ".bias"] = [shape[0]]

    for k, shape in {0: (8, 1, 3, 3), 2: (8, 1, 3, 3), 3: (8, 8, 1, 1), 5: (8, 1, 3, 3), 6: (8, 8, 1, 1)}.items():
        put(f"conformer.pre_encode.conv.{k}", *shape)
    put("conformer.pre_encode.out", n, 8 * 2)
    for b in (f"conformer.layers.{l}." for l in range(deep)):
        for norm in ("norm_feed_forward1", "norm_self_att", "norm_conv", "norm_feed_forward2", "norm_out", "conv.batch_norm"):
            put(b + norm, n)
        for which in (1, 2):
            put(b + f"feed_forward{which}.linear1", 4 * n, n)
            put(b + f"feed_forward{which}.linear2", n, 4 * n)
        for part in ("q", "k", "v", "out"):
            put(b + "self_attn.linear_" + part, n, n)
        put(b + "self_attn.linear_pos", n, n, bias=False)
        shapes |= {b + "self_attn.pos_bias_u": [4, n // 4], b + "self_attn.pos_bias_v": [4, n // 4], b + "conv.batch_norm.running_mean": [n], b + "conv.batch_norm.running_var": [n]}
        put(b + "conv.pointwise_conv1", 2 * n, n, 1)
        put(b + "conv.depthwise_conv", n, 1, 9)
        put(b + "conv.pointwise_conv2", n, n, 1)
    put("audio_adapter.model.0", n)
    put("audio_adapter.model.1", 20, n)
    put("audio_adapter.model.3", N_TEXT, 20)
    encoder = {"feat_in": 16, "feat_out": -1, "n_layers": deep, "d_model": n, "n_heads": 4, "conv_kernel_size": 9, "subsampling": "dw_striding", "subsampling_factor": 8,
               "self_attention_model": "rel_pos", "xscaling": False, "pos_emb_max_len": 5000}
    return Other("Lfm2AudioForConditionalGeneration", {"encoder": encoder}, {}, shapes, [[16000, 13], [9234, 8], [20000, 16]], (), "sound")


def gemma4_both():
    """An eye and an ear in one file."""
    eye, ear = gemma4v(), gemma4a(use_clipped_linears=False)
    return Case("both", eye.of, eye.config | {"audio_config": ear.config["audio_config"]}, {"image_processor": eye.processor, "feature_extractor": ear.processor},
                eye.tower + ear.tower, lambda model, medium: (eye if isinstance(medium, Image.Image) else ear).parts(model, medium),
                [["picture", 40, 30], ["sound", 9234]], dtype=torch.float32)


class CogVLM:
    """CogVLM, which transformers lacks: a pass from its authors' modeling_cogvlm.py and visual.py. Rows of a picture, but its last one, take matrices of their own, and those between the
    first and the last one have one position."""

    SIDE, MEAN, STD = 24, [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    PARTS = ("mlp.{}.gate_proj", 24, N_TEXT), ("mlp.{}.up_proj", 24, N_TEXT), ("mlp.{}.down_proj", N_TEXT, 24)

    def __init__(self, is_whole):
        self.is_whole = is_whole
        vision = {"dropout_prob": 0.0, "hidden_act": "gelu", "hidden_size": 24, "image_size": self.SIDE, "in_channels": 3, "intermediate_size": 40, "layer_norm_eps": 1e-6, "num_heads": 3,
                  "num_hidden_layers": 2, "num_positions": (self.SIDE // 4) ** 2 + 1, "patch_size": 4}
        self.config = {"architectures": ["CogVLMForCausalLM"], "hidden_act": "silu", "hidden_size": N_TEXT, "intermediate_size": 24, "max_position_embeddings": 512,
                       "num_attention_heads": 2, "num_hidden_layers": 2, "rms_norm_eps": 1e-5, "vocab_size": 256, "tie_word_embeddings": False, "template_version": "chat",
                       "vision_config": vision}
        v = "model.vision."
        self.shapes = {v + "patch_embedding.proj.weight": [24, 3, 4, 4], v + "patch_embedding.proj.bias": [24], v + "patch_embedding.cls_embedding": [1, 24],
                       v + "patch_embedding.position_embedding.weight": [vision["num_positions"], 24], v + "boi": [1, 1, N_TEXT], v + "eoi": [1, 1, N_TEXT],
                       v + "linear_proj.linear_proj.weight": [N_TEXT, 24], v + "linear_proj.norm1.weight": [N_TEXT], v + "linear_proj.norm1.bias": [N_TEXT],
                       v + "linear_proj.dense_h_to_4h.weight": [24, N_TEXT], v + "linear_proj.gate_proj.weight": [24, N_TEXT], v + "linear_proj.dense_4h_to_h.weight": [N_TEXT, 24]}
        for part, shape in {"input_layernorm": [24], "post_attention_layernorm": [24], "attention.query_key_value": [72, 24], "attention.dense": [24, 24], "mlp.fc1": [40, 24],
                            "mlp.fc2": [24, 40]}.items():
            for l in range(2):
                self.shapes |= {f"{v}transformer.layers.{l}.{part}.weight": shape, f"{v}transformer.layers.{l}.{part}.bias": shape[:1]}
        if not is_whole:
            return
        self.shapes |= {"model.embed_tokens.weight": [256, N_TEXT], "model.norm.weight": [N_TEXT], "lm_head.weight": [256, N_TEXT]}
        for l in range(2):
            b = f"model.layers.{l}."
            self.shapes |= {b + "input_layernorm.weight": [N_TEXT], b + "post_attention_layernorm.weight": [N_TEXT]}
            for expert in ("vision", "language"):
                self.shapes |= {f"{b}self_attn.{expert}_expert_query_key_value.weight": [3 * N_TEXT, N_TEXT], f"{b}self_attn.{expert}_expert_dense.weight": [N_TEXT, N_TEXT]}
                self.shapes |= {b + part.format(expert + "_mlp") + ".weight": list(shape) for part, *shape in self.PARTS}

    def rows(self, w, picture):
        import torch.nn.functional as F
        v, side = "model.vision.", self.SIDE
        of = lambda name, x: F.linear(x, w[v + name + ".weight"], w.get(v + name + ".bias"))
        norm = lambda name, x, eps: F.layer_norm(x, x.shape[-1:], w[v + name + ".weight"], w[v + name + ".bias"], eps)
        a = (np.asarray(Image.fromarray(picture).resize((side, side), Image.BICUBIC), np.float64) / 255 - self.MEAN) / self.STD
        x = F.conv2d(torch.tensor(a.transpose(2, 0, 1))[None], w[v + "patch_embedding.proj.weight"], w[v + "patch_embedding.proj.bias"], 4).flatten(2)[0].T
        x = torch.cat([w[v + "patch_embedding.cls_embedding"], x]) + w[v + "patch_embedding.position_embedding.weight"]
        for l in range(2):
            b = f"transformer.layers.{l}."
            q, k, u = of(b + "attention.query_key_value", x).reshape(len(x), 3, 3, 8).permute(1, 2, 0, 3)
            y = (torch.softmax(q @ k.transpose(1, 2) / 8**0.5, -1) @ u).transpose(0, 1).reshape(len(x), 24)
            x = x + norm(b + "input_layernorm", of(b + "attention.dense", y), 1e-6)
            x = x + norm(b + "post_attention_layernorm", of(b + "mlp.fc2", F.gelu(of(b + "mlp.fc1", x))), 1e-6)
        x = F.gelu(norm("linear_proj.norm1", of("linear_proj.linear_proj", x[1:]), 1e-5))
        x = of("linear_proj.dense_4h_to_h", F.silu(of("linear_proj.gate_proj", x)) * of("linear_proj.dense_h_to_4h", x))
        return torch.cat([w[v + "boi"][0], x, w[v + "eoi"][0]])

    def scores(self, w, x, is_picture, pos):
        """Of the inputs x, rows of pictures and tokens."""
        import torch.nn.functional as F
        n, d = len(x), N_TEXT // 2
        other = torch.tensor(is_picture)[:, None]
        rms = lambda name, x: x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w[name + ".weight"]
        of = lambda name, x: torch.where(other, F.linear(x, w[name.format("vision") + ".weight"]), F.linear(x, w[name.format("language") + ".weight"]))
        angle = torch.tensor(pos)[:, None] * 10000.0 ** (-2 * torch.arange(d // 2) / d)
        c, s = torch.cos(angle), torch.sin(angle)
        turn = lambda x: torch.cat([x[..., : d // 2] * c - x[..., d // 2 :] * s, x[..., d // 2 :] * c + x[..., : d // 2] * s], -1)
        for l in range(2):
            b = f"model.layers.{l}."
            q, k, u = of(b + "self_attn.{}_expert_query_key_value", rms(b + "input_layernorm", x)).reshape(n, 3, 2, d).permute(1, 2, 0, 3)
            a = (turn(q) @ turn(k).transpose(1, 2) / d**0.5).masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
            x = x + of(b + "self_attn.{}_expert_dense", (torch.softmax(a, -1) @ u).transpose(0, 1).reshape(n, N_TEXT))
            h, gate, up, down = rms(b + "post_attention_layernorm", x), *(b + part.format("{}_mlp") for part, *_ in self.PARTS)
            x = x + of(down, F.silu(of(gate, h)) * of(up, h))
        return F.linear(rms("model.norm", x), w["lm_head.weight"])

    def line(self, name):
        w = {k: torch.tensor(x.astype(np.float64)) for k, x in late_senses.weights(self.shapes).items()}
        media = [[40, 30], [24, 24, 50, 30], [40, 30, 40, 30]] if self.is_whole else [[40, 30], [24, 24]]
        data, layouts = [], []
        for size in media:
            rows = [self.rows(w, late_senses.medium("picture", of)) for of in late_senses.pictures_of(size)]
            layouts.append([len(r) for r in rows])
            if not self.is_whole:
                data += [torch.cat([r, torch.tensor([[1.0]] * (len(r) - 1) + [[0.0]])], 1) for r in rows]
                continue
            words = lambda text: w["model.embed_tokens.weight"][[ord(c) for c in text]]
            is_picture, pos, at = [False] * 2, [0, 1], 2
            for r in rows:
                is_picture += [True] * (len(r) - 1) + [False]
                pos += [at] + [at + 1] * (len(r) - 2) + [at + 2]
                at += 3
            is_text = np.array([True] * 2 + [False] * sum(layouts[-1]) + [True] * 2)
            data.append(self.scores(w, torch.cat([words("ab"), *rows, words("cd")]), is_picture + [False] * 2, pos + [at, at + 1])[is_text][:, :64])
        data = np.concatenate([x.numpy() for x in data]).astype("<f4")
        return {"name": name, "kind": "whole" if self.is_whole else "picture", "words": [], "config": self.config, "processor": {}, "shapes": late_senses.packed(self.shapes),
                "media": media, "layouts": layouts, "n_row": data.shape[1], "rows": base64.b64encode(data.tobytes()).decode()}


GLM_MARKS = ("<|begin_of_image|>", "<|end_of_image|>")
CASES = {"reka-edge": yasa2, "reka-edge-places": lambda: yasa2(128), "deepseek-v4": deepseek4v, "mistral-large4": mistral4, "mistral-large4-text": mistral4_whole, "deepseek-ocr": deepseek_ocr, "deepseek-ocr-text": deepseek_ocr_whole, "deepseek-ocr2": deepseek_ocr2, "deepseek-ocr2-text": deepseek_ocr2_whole, "deepseek-ocr2-own": deepseek_ocr2_own, "deepseek-ocr2-own-text": lambda: deepseek_ocr2_whole(True), "dots3-note": dots3, "ling3": ling3, "phi4": phi4, "mimo-v2.5": mimo, "mimo-v2.5-ear": MimoEar, "step3.7": step3, "step3.7-text": step3_whole, "youtu-vl": youtu, "minimax-m3": minimax, "exaone4.5": exaone, "exaone4.5-text": exaone_whole, "granite4-vision": granite4, "granite4-vision-text": granite4_whole, "glm4.5v-text": glm_experts, "kimi-k2.5": kimi, "kimi-vl": kimivl, "glm5.2": lambda: Glm52(False), "glm5.2-text": lambda: Glm52(True), "kimi-k2.5-text": kimi_whole, "minicpm-v4.6": minicpm, "minicpm-v4.6-4x": lambda: minicpm("4x"), "minicpm-v4.6-text": minicpm_whole, "minicpm-ocr": lambda: minicpm("4x", "MiniCPMOcrForConditionalGeneration"), "minicpm-ocr-text": lambda: minicpm_whole("4x", "MiniCPMOcrForConditionalGeneration"), "muse-glimmer": muse, "gemma4uv": gemma4uv, "lfm2-vl": lfm2, "lfm3-vl": lfm3, "lfm3-vl-text": lfm3_whole, "dots-ocr": dots, "qwen3.5-text": qwen35_whole, "glm4v": glm, "glm5.3": glm53, "glm5.3-text": glm53_whole, "glm-ocr": lambda: glm("GlmOcrForConditionalGeneration"), "paddleocr": paddle, "lightonocr": lighton, "glm4v-text": lambda: turned_whole(glm(), GLM_MARKS, "Glm4vImageProcessor"), "glm-ocr-text": lambda: turned_whole(glm("GlmOcrForConditionalGeneration"), GLM_MARKS, "Glm4vImageProcessor"), "paddleocr-text": lambda: turned_whole(paddle(), ("<|IMAGE_START|>", "<|IMAGE_END|>"), "PaddleOCRVLImageProcessor"), "gemma4-text": lambda: gemma4_whole(use_bidirectional_attention="vision"), "gemma4-text-small": lambda: gemma4_whole(hidden_size_per_layer_input=8), "gemma4v": gemma4v, "gemma4ua": gemma4ua, "gemma4-both": gemma4_both, "qwen3a": qwen3a, "lfm2a": lfm2a, "qwen2.5o": qwen25o, "parakeet": Parakeet, "gemma4a": lambda: gemma4a(use_clipped_linears=False), "gemma4a-clipped": gemma4a, "gemma4v-clipped": lambda: gemma4v(use_clipped_linears=True, standardize=True), "audio-flamingo3": flamingo, "qwen2-audio": qwen2a, "qwen2-audio-text": qwen2a_whole, "glm-asr": lambda: flamingo("GlmAsrForConditionalGeneration"), "meralion": Meralion, "dots3-note-ear": Dots3, "audio-flamingo3-text": lambda: listener_whole(flamingo(), ()), "glm-asr-text": lambda: listener_whole(flamingo("GlmAsrForConditionalGeneration"), ("<|begin_of_audio|>", "<|end_of_audio|>")), "granite-speech": granite_speech, "granite-speech-text": granite_speech_whole, "granite-speech-plus": lambda: granite_speech(True), "music-flamingo": lambda: flamingo("MusicFlamingoForConditionalGeneration"), "music-flamingo-text": lambda: listener_whole(flamingo("MusicFlamingoForConditionalGeneration"), ("<|sound_bos|>", "<|sound_eos|>")), "voxtral": voxtral, "voxtral-text": voxtral_whole, "voxtral-realtime": VoxtralRealtime, "cogvlm": lambda: CogVLM(False), "cogvlm-text": lambda: CogVLM(True), "hunyuan-vl": hunyuan, "hunyuan-vl-text": lambda: hunyuan_whole(hunyuan((1, 1, 1, 1))), "hunyuan-vl-text-three": lambda: hunyuan_whole(hunyuan((2, 1, 1))), "hy-v4-vl": hunyuan4, "hy-v4-vl-text": hunyuan4_whole}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--beside")
    p.add_argument("--mtmd", type=pathlib.Path, default=Other.folder, help="rows of other models")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    transformers.logging.set_verbosity_error()
    Other.folder = a.mtmd
    for name in a.names or CASES:
        line = json.loads(json.dumps(CASES[name]().line(name)))
        if not a.beside:
            print(json.dumps(line))
            continue
        with tempfile.TemporaryDirectory() as folder:
            late_senses.Check(a.beside, None, None, folder).rows(line)


if __name__ == "__main__":
    main()
