#!/usr/bin/env python3
"""Prints lines for ../numpy/said.txt: small models of transformers' classes that hear, with the weights of ../numpy/late_senses.py, and what their generate() writes of seeded sounds
after the request for a transcription that their processors make.

    said_lines.py NAME ..

Needs torch and transformers 5.24, and mistral_common 1.13 for Voxtral."""
import json
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "numpy"))
import said  # noqa: E402

sys.path = [path for path in sys.path if not path.endswith("tests/numpy")]  # it has modules of the same names as libraries
import sense_rows  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from sense_rows import double, late_senses  # noqa: E402

TURNS = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
         "{% if p.type == 'text' %}{{ p.text }}{% else %}AUDIO{% endif %}{% endfor %}{% endif %}{% if not (loop.last and continue_final_message) %}<|im_end|>\n{% endif %}"
         "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


MOST = 40  # tokens that are compared of a text that goes on


def end_of(write):
    """A token that ends what is written: the first one after a few others that did not come before."""
    ids = write(None)
    return next((ids[i] for i in range(5, len(ids)) if ids[i] not in ids[:i]), None)


def tokenizer_of(words, folder):
    with open(f"{folder}/tokenizer.json", "w", encoding="utf-8") as f:
        json.dump(said.tokenizer(words), f)
    return transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")


def line_of(case, model, shapes, asks, **more):
    written = json.loads(model.config.to_json_string())
    return {"config": {**written, "architectures": [case.of]}, "processor": case.processor, "shapes": late_senses.packed(shapes), "asks": asks, **more}


def greedy(model, end, ids, most=MOST, **inputs):
    with torch.no_grad():
        got = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs, do_sample=False, eos_token_id=end, pad_token_id=0, **({"max_new_tokens": most} if most else {}))
    new = got[0, ids.shape[1] :].tolist()
    return new[:-1] if new and new[-1] == end else new


def realtime():
    case = sense_rows.VoxtralRealtime()
    model, shapes = case.model()
    model.generation_config.eos_token_id = None
    asks = []
    for size in ([9234], [50000]):
        sound = late_senses.medium("sound", size)
        filled = np.concatenate([np.zeros(32 * 1280), sound, np.zeros(-len(sound) % 1280 + 17 * 1280)]).astype(np.float32)
        x = double(transformers.VoxtralRealtimeFeatureExtractor(feature_size=16)([filled], sampling_rate=16000, return_tensors="pt")["input_features"])
        asks.append({"size": size, "ids": greedy(model, None, torch.tensor([[0] + [1] * 38]), None, input_features=x, num_delay_tokens=6), "ended": True})
    return line_of(case, model, shapes, asks, tekken=["<s>", "[STREAMING_PAD]"])


# What mistral_common wants of a tokenizer, at the places of published ones.
MISTRAL = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
           "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", *[None] * 4, "[AUDIO]", "[BEGIN_AUDIO]", *[None] * 6, "[ARGS]",
           "[CALL_ID]", "[TRANSCRIBE]", None]


def voxtral():
    case = sense_rows.voxtral()
    case.tower, case.config["audio_token_id"] = ("",), MISTRAL.index("[AUDIO]")
    case.config["text_config"] |= {"vocab_size": len(MISTRAL) + 256, "num_hidden_layers": 2, "pad_token_id": 0}
    model, shapes = case.model()
    model.generation_config.eos_token_id = None
    heard = {"num_mel_bins": 16, "hop_length": 160, "window_size": 400}
    asks = []
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/tekken.json", "w", encoding="utf-8") as f:
            json.dump(late_senses.tekken(MISTRAL, "v11") | {"audio": {"sampling_rate": 16000, "frame_rate": 12.5, "audio_encoding_config": heard, "chunk_length_s": 2.0}}, f)
        tokenizer = transformers.MistralCommonBackend(f"{folder}/tekken.json")
        processor = transformers.VoxtralProcessor(transformers.WhisperFeatureExtractor(feature_size=16), tokenizer)
        for size, more in (([9234], {}), ([50000], {"language": "de"})):
            x = processor.apply_transcription_request(audio=[late_senses.medium("sound", size)], model_id="a", sampling_rate=16000, format=["WAV"],
                                                      audio_kwargs={"pad_to_multiple_of": 32000, "max_source_positions": 200}, **more)
            ids = greedy(model, MISTRAL.index("</s>"), x["input_ids"], input_features=double(x["input_features"]))
            asks.append({"size": size, **more, "ids": ids, "ended": len(ids) < MOST})
    return line_of(case, model, shapes, asks, tekken=MISTRAL)


def qwen3asr():
    case = sense_rows.qwen3a()
    case.tower, words = ("",), ["<|im_start|>", "<|im_end|>", "<|audio_start|>", "<|audio_pad|>", "<|audio_end|>", "<asr_text>"]
    case.config |= {"audio_token_id": 256 + 3, "tie_word_embeddings": False}
    case.config["text_config"] |= {"vocab_size": 256 + len(words), "num_hidden_layers": 2, "pad_token_id": 0, "tie_word_embeddings": False}
    model, shapes = case.model()
    shapes["lm_head.weight"] = list(model.lm_head.weight.shape)
    model.lm_head.weight.data = torch.tensor(late_senses.weights({"lm_head.weight": shapes["lm_head.weight"]})["lm_head.weight"], dtype=torch.float64)
    template = TURNS.replace("AUDIO", "<|audio_start|><|audio_pad|><|audio_end|>")
    asks, end = [], None
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tokenizer_of(words, folder)
        for word, name in (("audio_token", "<|audio_pad|>"), ("audio_bos_token", "<|audio_start|>"), ("audio_eos_token", "<|audio_end|>")):
            setattr(tokenizer, word, name)
        tokenizer.pad_token = "<|im_end|>"
        processor = transformers.Qwen3ASRProcessor(transformers.Qwen3ASRFeatureExtractor(feature_size=16), tokenizer, chat_template=template)
        for size, more in (([9234], {}), ([20000], {"language": "de"}), ([9234], {"prompt": "Tool, Turm"}), ([140000], {"language": "en", "prompt": "x"})):
            x = processor.apply_transcription_request(late_senses.medium("sound", size), **more)
            of = {k: double(v) for k, v in x.items() if k not in ("input_ids", "attention_mask")}
            write = lambda end: greedy(model, end, x["input_ids"], **of)  # noqa: E731, B023
            end = end or end_of(write)
            ids = write(end)
            asks.append({"size": size, **more, "ids": ids, "ended": len(ids) < MOST})
    return line_of(case, model, shapes, asks, words=words, plain=["<asr_text>"], template=template, end=end)


def granite():
    case = sense_rows.granite_speech_whole()
    words = ["<|im_start|>", "<|im_end|>", "<|audio|>"]
    case.config["audio_token_index"] = 258
    case.config["text_config"]["vocab_size"] = 256 + len(words)
    model, shapes = case.model()
    template = TURNS.replace("AUDIO", "<|audio|>")
    asks, end = [], None
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tokenizer_of(words, folder)
        tokenizer.chat_template = template
        for size, task, text in (([9234], "transcribe", "can you transcribe the speech into a written format?"), ([20000], "translate", "can you translate the speech to English?")):
            features = case.heard(late_senses.medium("sound", size))
            n = -(-features.shape[1] // 15) * 3
            prompt = tokenizer.apply_chat_template([{"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": text}]}], tokenize=False, add_generation_prompt=True)
            ids = torch.tensor([tokenizer(prompt.replace("<|audio|>", "<|audio|>" * n))["input_ids"]])
            write = lambda end: greedy(model, end, ids, input_features=features)  # noqa: E731, B023
            end = end or end_of(write)
            got = write(end)
            asks.append({"size": size, "task": task, "ids": got, "ended": len(got) < MOST})
    return line_of(case, model, shapes, asks, words=words, template=template, end=end)


CASES = {"voxtral": voxtral, "voxtral-realtime": realtime, "qwen3-asr": qwen3asr, "granite-speech": granite}

if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        print(json.dumps({"name": name} | CASES[name]()))
