"""Models: opening, closing, numbers, threads, signals."""
import copy
import gc
import inspect
import json
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import unittest
import weakref
from concurrent.futures import ThreadPoolExecutor
from unittest import mock
from pathlib import Path

from common import STORY, needs_cli, needs_numpy, run_cli, write_adapter, write_control_vector, write_model_folder
from ggml_lite import Cancelled, Error, Model, Status, cached_models, export_adapter, merge_adapters
from ggml_lite._elsewhere import METHODS
from ggml_lite._opening import ELSEWHERE

try:
    import mock_hub
except ImportError:
    mock_hub = None


class Opening(unittest.TestCase):
    def test_properties(self):
        with Model("builtin:stories", n_ctx=64, n_threads=1) as model:
            self.assertEqual(model.n_ctx, 64)
            self.assertGreater(model.n_vocab, 256)
            self.assertEqual(model.n_embd, 0)
            self.assertEqual(model.arch, model.metadata("general.architecture"))
            self.assertTrue(model.name)
            self.assertIsNone(model.metadata("no.such.key"))
            self.assertEqual((model.metadata("llama.block_count"), model.metadata("llama.rope.freq_base")), (5, 10000.0))
            keys = model.metadata()
            self.assertEqual(len(keys["tokenizer.ggml.tokens"]), model.n_vocab)
            self.assertEqual((keys["general.name"], "no.such.key" in keys, "general.name" in keys), (model.name, False, True))
            self.assertEqual(len(list(keys)), len(keys))
            self.assertEqual(dict(keys)["llama.block_count"], 5)
            with self.assertRaises(KeyError):
                keys["no.such.key"]
            self.assertIn("cpu", model.placement)
            self.assertIn("n_ctx=64", repr(model))
        self.assertIn("closed", repr(model))

    @needs_numpy
    def test_another_context_of_a_model(self):
        def text(model):
            return model.generate(STORY, max_tokens=20, temperature=0)

        with Model("builtin:stories", n_ctx=64, n_threads=1) as alone, Model("builtin:stories", n_ctx=64, n_threads=1, embeddings=True) as embeds:
            want, vector = text(alone), embeds.embed("the cat sat")
        first = Model("builtin:stories", n_ctx=64, n_threads=1)
        second = Model(first, n_ctx=48, n_threads=1, embeddings=True)
        self.assertEqual((first.n_ctx, second.n_ctx, first.n_embd, second.n_embd > 0), (64, 48, 0, True))
        with ThreadPoolExecutor() as pool:
            texts, vectors = zip(*[(pool.submit(text, first), pool.submit(second.embed, "the cat sat")) for _ in range(4)])
            stream = first.stream(STORY, max_tokens=20, temperature=0)
            begun = next(stream)
            with Model(first, n_ctx=64, n_threads=1) as third:  # while the first one is in use
                self.assertEqual(text(third), want)
            self.assertEqual(begun + "".join(stream), want)
        self.assertEqual([f.result() for f in texts], [want] * 4)
        for f in vectors:
            self.assertEqual(list(f.result()), list(vector))
        first.close()
        with Model(second, n_ctx=64, n_threads=1) as third:
            self.assertEqual(text(third), want)
        with self.assertRaisesRegex(Error, "type says how a file is read"):
            Model(second, type="q8_0")
        second.close()
        with self.assertRaisesRegex(Error, "the model is closed"):
            Model(second)
        with self.assertRaisesRegex(TypeError, "path is Model"):
            Model.describe(third)

    def test_errors_say_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            nothing = os.path.join(folder, "nothing.gguf")
            text = os.path.join(folder, "text.gguf")
            with open(text, "w") as file:
                file.write("this is no model")
            wrong = [
                ((nothing,), {}, Status.IO, "nothing.gguf"),
                ((text,), {}, Status.FORMAT, "text.gguf"),
                (("builtin:nobody",), {}, None, "builtin:"),
                (("builtin:stories",), {"device": "toaster"}, None, "toaster"),
                (("builtin:stories",), {"arch": "nosuch"}, None, "nosuch"),
                (("builtin:stories",), {"split": "cpu=1000"}, None, ""),
            ]
            for path, options, status, words in wrong:
                with self.subTest(f"{path} {options}"), self.assertRaises(Error) as caught:
                    Model(*path, **options)
                self.assertIn(words, str(caught.exception))
                if status is not None:
                    self.assertEqual(caught.exception.status, status)
        with self.assertRaisesRegex(ValueError, "n_ctx is -1"):
            Model("builtin:stories", n_ctx=-1)
        with self.assertRaisesRegex(TypeError, "device is int"):
            Model("builtin:stories", device=5)
        with self.assertRaisesRegex(ValueError, "NUL"):
            Model("builtin:stories\0junk")
        with self.assertRaisesRegex(TypeError, "embeddings is str"):
            Model("builtin:stories", embeddings="no")
        with self.assertRaises(TypeError):
            Model(None)
        with self.assertRaisesRegex(ValueError, "device is empty"):
            Model("builtin:stories", device="")
        with self.assertRaisesRegex(ValueError, "split is empty"):
            Model("builtin:stories", split="")

    def test_arguments_of_other_programs(self):
        for name, words in (
            ("model_path", "the path is the first argument"),
            ("verbose", "prints nothing"),
            ("embedding", "did you mean 'embeddings'?"),
            ("lora_path", "write adapters"),
            ("type_k", "did you mean 'cache_type_k'?"),
            ("chat_format", "did you mean 'chat_template'?"),
            ("n_gpu_layer", "did you mean 'n_gpu_layers'?"),
            ("seed", "option of generate"),
            ("qqqq", "there are path, type"),
        ):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"unknown argument of Model '{name}'.*{words}"):
                Model("builtin:stories", **{name: "x"})
        with self.assertRaisesRegex(TypeError, "the path is the first argument"):
            Model(model_path="builtin:stories")
        with self.assertRaises(TypeError):
            Model()
        of_llama_cpp = """chat_handler lora_scale draft_model type_v flash_attn use_mmap use_mlock offload_kqv numa rope_freq_base
        rope_freq_scale kv_overrides main_gpu split_mode yarn_ext_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow yarn_orig_ctx
        spm_infill vocab_only swa_full op_offload no_perf rpc_servers"""
        for name in of_llama_cpp.split():
            self.assertIn(name, ELSEWHERE)
        for name, text in ELSEWHERE.items():  # hints that name an argument name one that there is
            self.assertTrue(" " in text or text in inspect.signature(Model).parameters, name)

    def test_methods_of_other_programs(self):
        with Model("builtin:stories", n_ctx=64) as model:
            for of in (Model, model):
                for name, words in (
                    ("from_pretrained", "from_repository"),
                    ("create_completion", "generate"),
                    ("create_chat_completion", "chat.*answer"),
                    ("create_embedding", "embed"),
                    ("eval", "logits"),
                    ("sample", "logits"),
                    ("scores", "logits"),
                    ("save_state", "save"),
                    ("load_state", "restore"),
                    ("token_bos", "bos"),
                    ("token_eos", "eos"),
                    ("set_cache", "save"),
                ):
                    with self.assertRaisesRegex(AttributeError, f"a Model has no '{name}': .*{words}"):
                        getattr(of, name)
                self.assertFalse(hasattr(of, "nothing"))
            with self.assertRaisesRegex(TypeError, "generate"):
                model(STORY)
            for name, text in METHODS.items():  # hints name methods that there are
                for called in re.findall(r"(?:call |, or |; )(?:Model\.)?(\w+)\(", text):
                    self.assertTrue(hasattr(Model, called), name)

    def test_none_is_the_default(self):
        arguments = [name for name, p in inspect.signature(Model).parameters.items() if p.kind is p.KEYWORD_ONLY]
        with Model("builtin:stories", **dict.fromkeys(arguments)) as model, Model("builtin:stories") as plain:
            self.assertEqual((model.n_ctx, model.placement, model.n_embd), (plain.n_ctx, plain.placement, 0))

    def test_overrides(self):
        how = {"n_ctx": 64, "n_threads": 2}
        with Model("builtin:stories", **how) as model:
            plain = model.generate(STORY, max_tokens=20, temperature=0)
        overrides = {".rope.freq_base": 300.0, "tokenizer.ggml.add_bos_token": True, "general.name": "a=b:c", ".rope.scaling.factor": 1}
        with Model("builtin:stories", overrides=overrides, **how) as model:
            self.assertEqual(model.metadata()["llama.rope.freq_base"], 300)
            self.assertEqual(model.metadata()["general.name"], "a=b:c")
            self.assertNotEqual(model.generate(STORY, max_tokens=20, temperature=0), plain)
        for overrides, error, words in (
            ([("a", 1)], TypeError, "overrides is list"),
            ({"a": None}, TypeError, "NoneType"),
            ({"a=b": 1}, ValueError, "not the name of a key"),
            ({".rope.speed": 1}, Error, "llama.rope.speed = 1: overridden"),
            ({".rope.freq_base": float("nan")}, Error, "is not KEY=TYPE:VALUE"),
        ):
            with self.subTest(overrides), self.assertRaisesRegex(error, words):
                Model("builtin:stories", overrides=overrides, **how)

    def test_ignored_keys(self):
        how = {"overrides": {"acme.speed": 2}, "n_ctx": 64}
        with self.assertRaisesRegex(Error, "acme.speed = 2(.|\n)*own risk: ignore_key 'acme.speed'"):
            Model("builtin:stories", **how)
        with self.assertRaisesRegex(Error, "Nothing unread matches ignore_key 'other'"):
            Model("builtin:stories", ignore_key=["other"], **how)
        with Model("builtin:stories", ignore_key=["acme.*"], ignore_tensor=["acme.*"], **how) as model:
            self.assertTrue(model.generate(STORY, max_tokens=4))
        with self.assertRaisesRegex((TypeError, ValueError), "ignore_key"):
            Model("builtin:stories", ignore_key=[None], **how)

    def test_errors_name_arguments(self):
        for how, error, words in (
            ({"n_batch": 1 << 20}, ValueError, "^n_batch is 1048576; it must be 0 to 65536"),
            ({"n_threads": -1}, ValueError, "^n_threads is -1"),
            ({"repack": False, "f16_as_bf16": True}, Error, "^f16_as_bf16 and repack=False cannot be used together"),
            ({"lookup": True, "n_guess": 2, "draft_n_min": 3}, Error, "^draft_n_min 3 is more than n_guess 2"),
            ({"draft_p_min": 2.0}, Error, "^draft_p_min must be 0 to 1, but is 2"),
            ({"overrides": {"": 1}}, ValueError, "overrides"),
        ):
            with self.subTest(how), self.assertRaisesRegex(error, words):
                Model("builtin:stories", n_ctx=64, **how)

    def test_cache_types(self):
        with Model("builtin:stories", n_ctx=64, cache_type_k="q8_0", cache_type_v="q4_0") as model:
            self.assertTrue(model.generate(STORY, max_tokens=3))
        with self.assertRaisesRegex(Error, "q5"):
            Model("builtin:stories", cache_type_k="q5")

    def test_how_it_is_opened(self):
        with Model("builtin:stories", n_ctx=64) as model:
            want = model.generate(STORY, max_tokens=5, temperature=0)
        for how in (
            {"n_threads_batch": 1, "mmap": False, "strict": True},
            {"device": "cpu1", "tensor_split": "1"},
            {"place": ["blk.0.*=cpu"]},
            {"draft": "builtin:stories", "draft_n_ctx": 64, "draft_p_min": 0.5, "draft_n_min": 1, "draft_device": "cpu1"},
        ):
            with self.subTest(how), Model("builtin:stories", n_ctx=64, **how) as model:
                self.assertEqual(model.generate(STORY, max_tokens=5, temperature=0), want)
        for how, words in (
            ({"type": "q4_k_m"}, "type: the built-in models are quantized already"),
            ({"place": ["none=cpu"]}, "place 'none=cpu'"),
            ({"tensor_split": "x"}, "tensor_split"),
            ({"draft": "builtin:stories", "draft_device": "cup"}, "draft_device"),
        ):
            with self.subTest(how), self.assertRaisesRegex(Error, words):
                Model("builtin:stories", **how)
        with self.assertRaisesRegex(TypeError, "place is str"):
            Model("builtin:stories", place="blk.0.*=cpu")

    def test_a_full_context(self):
        with Model("builtin:stories", n_ctx=32) as model:
            model.generate(STORY, max_tokens=60, temperature=0, ignore_end=True)
            self.assertEqual((model.last_run.finish, model.last_run.n_shifts), ("context", 0))
            model.generate(STORY, max_tokens=60, temperature=0, ignore_end=True, shift=True, n_keep=2)
            self.assertEqual((model.last_run.finish, model.last_run.n_generated), ("length", 60))
            self.assertTrue(model.last_run.n_shifts > 0 and model.last_run.seconds > 0 and not model.last_run.incomplete)

    def test_guesses_change_no_text(self):
        text = "a b c d e f g. " * 4
        with Model("builtin:stories") as model:
            want = model.generate(text, max_tokens=30, temperature=0)
        for guess in ({"lookup": True}, {"draft": "builtin:stories", "n_guess": 4}):
            with self.subTest(guess), Model("builtin:stories", **guess) as model:
                self.assertEqual(model.generate(text, max_tokens=30, temperature=0), want)
                # how many are guessed depends on what a step costs here and now
                self.assertTrue(0 <= model.last_run.n_right <= model.last_run.n_guessed)
        with self.assertRaisesRegex(Error, "draft"):
            Model("builtin:stories", draft="builtin:stories", lookup=True)

    @unittest.skipUnless(mock_hub and shutil.which("curl") and os.environ.get("MODEL_FILE"), "mock_hub.py, curl or MODEL_FILE is missing")
    def test_repositories(self):
        hub = mock_hub.start()
        with open(os.environ["MODEL_FILE"], "rb") as file:
            hub.add("user/repo", {"a-Q8_0.gguf": mock_hub.File(file.read()), "a-Q4_K_M.gguf": mock_hub.File(b"no model")})
        notes, seen = [], []

        def stop(text):
            raise OSError("from the callback")

        with tempfile.TemporaryDirectory() as cache:
            clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.lower().endswith("_proxy")}
            with mock.patch.dict(os.environ, {**clean, "HF_ENDPOINT": hub.url + "/", "LLM_CACHE": cache}, clear=True):
                with self.assertRaisesRegex(Error, "user/repo"):
                    Model.from_repository("user/repo", "Q8_0", offline=True)
                with self.assertRaisesRegex(OSError, "from the callback"):
                    Model.from_repository("user/repo", "Q8_0", note=stop)
                progress = lambda done, total: seen.append(total)  # noqa: E731
                with Model.from_repository("user/repo", "Q8_0", n_ctx=64, token="hf_secret", note=notes.append, progress=progress) as model:
                    self.assertTrue(model.generate(STORY, max_tokens=2))
                self.assertIn("Bearer hf_secret", {request.headers.get("Authorization") for request in hub.take_log()})
                with Model("hf:user/repo:Q8_0", offline=True) as model, self.assertLogs("ggml_lite", "INFO"):
                    self.assertEqual(model.name, "stories")
                    with self.assertRaises(Error):
                        Model("hf:user/repo:Q4_K_M")
                found = cached_models()
                self.assertEqual([model["file"] for model in found], ["a-Q4_K_M.gguf", "a-Q8_0.gguf"])
                cached = found[1]
                self.assertEqual((cached["repository"], cached["file"], cached["n_files"]), ("user/repo", "a-Q8_0.gguf", 1))
                self.assertEqual((cached["bytes"], cached["is_whole"]), (os.path.getsize(os.environ["MODEL_FILE"]), True))
                with Model(cached["path"]) as model:
                    self.assertEqual(model.name, "stories")
                os.makedirs(os.path.join(cache, "hub", "a b", "c"))
                self.assertEqual(cached_models(), found)
        hub.stop()
        self.assertIn(os.path.getsize(os.environ["MODEL_FILE"]), seen)
        self.assertRegex("".join(notes), "a-Q8_0.gguf")

    def test_adapters_go_back_to_folders(self):
        """The numbers are those of llm-lora, which tests/numpy/peft.py compares with others."""
        with tempfile.TemporaryDirectory() as folder:
            base, adapter = os.path.join(folder, "base"), os.path.join(folder, "adapter.gguf")
            write_adapter(adapter)
            write_model_folder(base)
            export_adapter(adapter, base, os.path.join(folder, "peft"), type="f16", base_name="some/model")
            with self.assertRaisesRegex(Error, "peft is an adapter of PEFT; this makes a GGUF file of it: llm-lora convert '.*peft' --base MODEL_FOLDER -o 'peft.gguf'"):
                Model("builtin:stories", adapters=[os.path.join(folder, "peft")])
            with open(os.path.join(folder, "peft", "adapter_config.json"), encoding="utf-8") as file:
                config = json.load(file)
            self.assertEqual((config["r"], config["base_model_name_or_path"], config["target_modules"]), (2, "some/model", ["model.layers.1.self_attn.q_proj"]))
            kept = merge_adapters([(adapter, 0.5)], base, os.path.join(folder, "merged"), n_threads=2)
            self.assertEqual(kept.weight, "model.layers.1.self_attn.q_proj.weight")
            self.assertTrue(0.9 < kept.least == kept.share <= 1, kept)
            for n, given in enumerate(([(adapter, 0)], (adapter, 0), {adapter: 0})):
                self.assertEqual(merge_adapters(given, base, os.path.join(folder, f"same{n}")), (1, 1, ""))
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "merged"))), sorted(os.listdir(base)))
            with self.assertRaisesRegex(Error, "is not empty"):
                merge_adapters([adapter], base, os.path.join(folder, "merged"))
            with self.assertRaisesRegex(Error, "'q4_0' is none of f32, f16, bf16"):
                export_adapter(adapter, base, os.path.join(folder, "x"), type="q4_0")
            self.assertEqual(merge_adapters(adapter, base, os.path.join(folder, "alone")), merge_adapters([adapter], base, os.path.join(folder, "listed")))
            with self.assertRaisesRegex(TypeError, "int"):
                merge_adapters([5], base, os.path.join(folder, "x"))
            with self.assertRaisesRegex(Error, "an adapter, folder and out are needed"):
                merge_adapters([], base, os.path.join(folder, "x"))

    def test_progress(self):
        seen = []
        with Model("builtin:stories", progress=lambda done, total: seen.append((done, total))):
            pass
        self.assertTrue(seen)
        self.assertEqual(*seen[-1])
        with self.assertRaises(Cancelled):
            Model("builtin:stories", progress=lambda done, total: False)

    def test_exceptions_of_a_callback_pass_through(self):
        class Own(Exception):
            pass

        def fail(done, total):
            raise Own("from the callback")

        with self.assertRaisesRegex(Own, "from the callback"):
            Model("builtin:stories", progress=fail)

        def interrupt(done, total):
            signal.raise_signal(signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            Model("builtin:stories", progress=interrupt)

    def test_options_change_no_bit(self):
        with Model("builtin:stories", n_threads=1, repack=False, n_batch=3) as one, Model("builtin:stories", n_threads=2) as two:
            self.assertEqual(one.generate(STORY, seed=5, max_tokens=30), two.generate(STORY, seed=5, max_tokens=30))


    def test_weights_that_wait(self):
        with Model("builtin:stories", n_threads=2) as one, Model("builtin:stories", n_threads=2, repack_late=True) as two:
            self.assertEqual(one.generate(STORY, seed=5, max_tokens=30), two.generate(STORY, seed=5, max_tokens=30))
            self.assertEqual(one.generate(STORY, seed=6, max_tokens=30), two.generate(STORY, seed=6, max_tokens=30))
        with self.assertRaises(TypeError):
            Model("builtin:stories", repack_late="no")

    def test_beginnings_are_shared(self):
        tale = "Once upon a time, there was a little girl named Lily. She liked the sun. " * 8
        prompts = [tale + "One day", tale + "Then a dog", tale + "Her cat"]
        with tempfile.TemporaryDirectory() as folder:
            def tell(**options):
                with Model("builtin:stories", n_threads=1, n_parallel=2, **options) as model:
                    return [r.text for r in model.batch(prompts, max_tokens=8, temperature=0)]
            first = tell(prompt_folder=folder)
            self.assertEqual([name.endswith(".prompt") for name in os.listdir(folder)], [True])
            self.assertEqual(first, tell(prompt_folder=folder, prompt_folder_size=1 << 30))
            self.assertEqual(first, tell())


class Adapters(unittest.TestCase):
    def test_scales(self):
        with tempfile.TemporaryDirectory() as folder, Model("builtin:stories", n_ctx=64) as plain:
            file = os.path.join(folder, "adapter.gguf")
            write_adapter(file)
            want = plain.logprobs(STORY, " there was a fox")
            with Model("builtin:stories", n_ctx=64, adapters=[(file, 0.0)]) as model:
                self.assertEqual(model.logprobs(STORY, " there was a fox"), want)
                model.set_adapter_scale(0, 1)
                self.assertEqual(model.context, [])
                changed = model.logprobs(STORY, " there was a fox")
                self.assertNotEqual(changed, want)
                with self.assertRaises(Error):
                    model.set_adapter_scale(1, 1)
                with self.assertRaisesRegex(TypeError, "scale is str"):
                    model.set_adapter_scale(0, "1")
            for given in ([file], [Path(file)], [(file, 1)], (file, 1), {file: 1}, {Path(file): 1.0}, (file,), file, Path(file)):
                with Model("builtin:stories", n_ctx=64, adapters=given) as model:
                    self.assertEqual(model.logprobs(STORY, " there was a fox"), changed)
            for given in ("nothing.gguf", ["nothing.gguf"]):
                with self.assertRaisesRegex(Error, "nothing.gguf"):
                    Model("builtin:stories", adapters=given)
            for none in ({file: 0.0}, (file, 0.0)):
                with Model("builtin:stories", n_ctx=64, adapters=none) as model:
                    self.assertEqual(model.logprobs(STORY, " there was a fox"), want)
            for wrong, words in (({file: "0.5"}, "neither a file nor a pair"), ([0.5, file], r"adapters has 0.5 \(float\), which is neither"), ([(file, 1, 2)], "such as"), ([[file, 1]], "pair"),
                                 ((file, None), "a scale of adapters is NoneType, not a number"), (5, "adapters is int, not a file, a pair")):
                with self.subTest(wrong), self.assertRaisesRegex(TypeError, words):
                    Model("builtin:stories", adapters=wrong)


class ControlVectors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "happy.gguf")
        write_control_vector(self.file)

    def tell(self, **how):
        with Model("builtin:stories", n_ctx=64, n_threads=1, **how) as model:
            return model.generate(STORY, max_tokens=16, temperature=0)

    @needs_cli
    def test_the_text_is_that_of_llm_cli(self):
        for more, how in (
            ((), {}),
            (("--control-vector", self.file), {"control_vectors": [Path(self.file)]}),
            (("--control-vector-scaled", self.file + ":-0.5"), {"control_vectors": [(self.file, -0.5)]}),
            (("--control-vector", self.file, "--control-vector-layer-range", "2", "3"), {"control_vectors": [self.file], "control_first": 2, "control_last": 3}),
        ):
            with self.subTest(more):
                self.assertEqual(self.tell(**how), run_cli("-p", STORY, "-n", "16", "--temp", "0", "--no-display-prompt", "-t", "1", *more))

    def test_scales(self):
        adapter = os.path.join(self.folder.name, "adapter.gguf")
        write_adapter(adapter)
        want = self.tell()
        with Model("builtin:stories", n_ctx=64, n_threads=1, adapters=[(adapter, 0)], control_vectors=[self.file]) as model:
            steered = model.generate(STORY, max_tokens=16, temperature=0)
            self.assertNotEqual(steered, want)
            model.set_adapter_scale(1, 0)  # the control vector, after the adapter
            self.assertEqual(model.generate(STORY, max_tokens=16, temperature=0), want)
            with self.assertRaisesRegex(Error, "there is no adapter 2; the context has 2"):
                model.set_adapter_scale(2, 1)
        self.assertEqual(self.tell(control_vectors=[(self.file, 0.5), (self.file, 0.5)]), steered)
        self.assertEqual(self.tell(control_vectors=self.file), steered)
        turned = self.tell(control_vectors=[(self.file, -1)])
        self.assertNotIn(turned, (want, steered))
        self.assertEqual([self.tell(control_vectors=given) for given in ((self.file, -1), {self.file: -1})], [turned, turned])

    def test_mistakes(self):
        narrow = os.path.join(self.folder.name, "narrow.gguf")
        write_control_vector(narrow, n_embd=64)
        for how, words in (
            ({"control_vectors": [narrow]}, "narrow.gguf: direction.1 has 64 numbers, but the rows that layer 1 of .* hands on have 128"),
            ({"control_vectors": [self.file], "control_first": 9}, "the range of layers is 9 to 4, but .* has 5 layers: 1 to 4 can be steered"),
            ({"control_vectors": [self.file], "control_first": 3, "control_last": 2}, "begins at layer 3 and ends at 2"),
            ({"control_vectors": ["nothing.gguf"]}, "nothing.gguf"),
            ({"control_first": 2}, r"control_first is for control vectors, and there are none \(control_vectors\)"),
            ({"control_last": 2, "control_vectors": []}, r"control_last is for control vectors"),
            ({"control_vectors": [(self.file, float("inf"))]}, "scale must be finite"),
            ({"adapters": [self.file]}, "happy.gguf is a control vector, not a LoRA adapter"),
        ):
            with self.subTest(words), self.assertRaisesRegex((Error, ValueError), words):
                Model("builtin:stories", n_ctx=64, **how)
        with self.assertRaisesRegex(TypeError, "control_vectors has .* neither a file nor a pair"):
            Model("builtin:stories", control_vectors=(self.file, "0.5", 0.5))
        with self.assertRaisesRegex(Error, "this is a control vector"):
            Model(self.file)


class Saving(unittest.TestCase):
    def test_a_state_belongs_to_its_control_vectors(self):
        with tempfile.TemporaryDirectory() as folder:
            vector, file = (os.path.join(folder, name) for name in ("happy.gguf", "state"))
            write_control_vector(vector)
            with Model("builtin:stories", n_ctx=64, control_vectors=[vector]) as model:
                model.generate(STORY, max_tokens=4, temperature=0)
                model.save(file)
                model.restore(file)
            for how in ({}, {"control_vectors": [(vector, 0.5)]}, {"control_vectors": [vector], "control_last": 2}):
                with self.subTest(how), Model("builtin:stories", n_ctx=64, **how) as model, self.assertRaisesRegex(Error, "control vector happy.gguf:1"):
                    model.restore(file)

    def test_save_and_restore(self):
        with tempfile.TemporaryDirectory() as folder, Model("builtin:stories", n_ctx=64) as model:
            file = Path(folder) / "state"
            with self.assertRaisesRegex(Error, "empty"):
                model.save(file)
            model.generate(STORY, max_tokens=5, seed=1)
            held = model.context
            model.save(file)  # the last token was generated, but not run: that is done now
            model.reset()
            model.restore(file)
            self.assertEqual(model.context, held)
            model.generate(held, max_tokens=1)
            self.assertEqual(model.last_run.n_prompt, 1)  # of which the logits are needed
            with self.assertRaisesRegex(Error, "nothing"):
                model.restore(Path(folder) / "nothing")
            with Model("builtin:stories", n_ctx=64) as other:
                other.restore(file)
                self.assertEqual(other.context, held)

    def test_full_context(self):
        with tempfile.TemporaryDirectory() as folder, Model("builtin:stories", n_ctx=64) as model:
            file = Path(folder) / "state"
            model.generate(STORY, ignore_end=True, seed=1)
            held = model.context
            self.assertEqual((model.last_run.finish, len(held)), ("context", 65))
            model.save(file)
            model.reset()
            model.restore(file)
            self.assertEqual(model.context, held)


class Closing(unittest.TestCase):
    def test_use_after_close(self):
        model = Model("builtin:stories")
        stream = model.stream(STORY)
        next(stream)
        model.close()
        model.close()
        uses = [
            lambda: model.generate(STORY),
            lambda: model.stream(STORY),
            lambda: next(stream),
            lambda: model.chat("Hi"),
            lambda: model.answer("Hi"),
            lambda: model.batch([STORY]),
            lambda: model.logprobs(STORY, "b"),
            lambda: model.choose(STORY, ["b"]),
            lambda: model.save("x"),
            lambda: model.set_adapter_scale(0, 1),
            lambda: dict(model.metadata()),
            lambda: model.tokenize("a"),
            lambda: model.detokenize([1]),
            lambda: model.token_bytes(1),
            lambda: model.is_end(1),
            lambda: model.context,
            lambda: model.reset(),
            lambda: model.name,
            lambda: model.placement,
            lambda: model.bos,
        ]
        for number, use in enumerate(uses):
            with self.subTest(number), self.assertRaisesRegex(Error, "the model is closed"):
                use()
        self.assertEqual(list(stream), [])
        stream.close()
        model.cancel()
        self.assertGreater(model.n_ctx, 0)

    def test_no_copies(self):
        with Model("builtin:stories") as model:
            for use in (copy.copy, copy.deepcopy, pickle.dumps):
                for thing in (model, model.stream(STORY)):
                    with self.assertRaisesRegex(TypeError, "cannot be copied or pickled"):
                        use(thing)
            with self.assertRaisesRegex(TypeError, "open already"):
                model.__init__("builtin:stories")

    def test_close_while_others_cancel(self):
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(5):
                model = Model("builtin:stories", n_ctx=32, n_threads=1, repack=False)

                def cancel(model=model):
                    while model._handle is not None:
                        model.cancel()

                threads = [threading.Thread(target=cancel) for _ in range(3)]
                for thread in threads:
                    thread.start()
                model.close()
                for thread in threads:
                    thread.join()
        finally:
            sys.setswitchinterval(interval)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_forked_child_only_forgets_it(self):
        for use in (lambda m: None, lambda m: m.close(), lambda m: m.generate(STORY)):
            model = Model("builtin:stories", n_threads=2)
            model.generate(STORY, max_tokens=2)
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)  # ends a child that waits forever
                try:
                    use(model)
                    code = 0
                except Error as error:
                    code = 3 if "another process" in str(error) else 4
                del model
                gc.collect()
                os._exit(code)
            code = os.waitpid(pid, 0)[1]
            self.assertIn(code, (0, 3 << 8))
            self.assertTrue(model.generate(STORY, max_tokens=2))
            model.close()

    def test_freed_without_close(self):
        model = Model("builtin:stories")
        model.generate(STORY, max_tokens=1)
        stream = model.stream(STORY)
        next(stream)
        gone = weakref.ref(model)
        del model
        self.assertTrue(next(stream))  # it keeps the model
        del stream
        gc.collect()
        self.assertIsNone(gone())

    def test_close_while_another_thread_generates(self):
        for use in (lambda m: m.generate(STORY, ignore_end=True), lambda m: list(m.stream(STORY, ignore_end=True))):
            model, errors, begun = Model("builtin:stories"), [], threading.Event()

            def run(model=model, errors=errors, begun=begun, use=use):
                try:
                    while True:
                        begun.set()
                        use(model)
                except Error as error:
                    errors.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            begun.wait()
            model.close()
            thread.join()
            self.assertEqual(len(errors), 1)
            self.assertIn(errors[0].status, (Status.CANCELLED, Status.USAGE))


class Threads(unittest.TestCase):
    def in_threads(self, *functions):
        results = [None] * len(functions)

        def run(k):
            try:
                results[k] = functions[k]()
            except BaseException as error:
                results[k] = error

        threads = [threading.Thread(target=run, args=(k,)) for k in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_threads_take_turns(self):
        with Model("builtin:stories") as model:
            seeds = range(6)
            want = [model.generate(STORY, seed=seed, max_tokens=20) for seed in seeds]
            whole = [lambda s=s: model.generate(STORY, seed=s, max_tokens=20) for s in seeds]
            pieces = [lambda s=s: "".join(model.stream(STORY, seed=s, max_tokens=20)) for s in seeds]
            others = [lambda: model.detokenize(model.tokenize("A fox"))] * 2
            self.assertEqual(self.in_threads(*whole, *pieces, *others), [*want, *want, "A fox", "A fox"])

    def test_models_side_by_side(self):
        with Model("builtin:stories") as one, Model("builtin:stories") as two:
            texts = self.in_threads(*[lambda m=m: [m.generate(STORY, seed=s, max_tokens=20) for s in range(4)] for m in (one, two)])
            self.assertEqual(texts[0], texts[1])

    def test_a_stream_waits_for_the_one_before(self):
        with Model("builtin:stories") as model:
            stream, waiting, texts = model.stream(STORY, seed=1, max_tokens=20), threading.Event(), []
            first = next(stream)

            def other():
                waiting.set()
                texts.append(model.generate(STORY, seed=2, max_tokens=20))

            thread = threading.Thread(target=other)
            thread.start()
            waiting.wait()
            text = first + "".join(stream)
            thread.join()
            self.assertEqual(text, model.generate(STORY, seed=1, max_tokens=20))
            self.assertEqual(texts, [model.generate(STORY, seed=2, max_tokens=20)])

    def test_a_stream_moves_with_its_reader(self):
        with Model("builtin:stories") as model, ThreadPoolExecutor(1) as worker:
            stream = model.stream(STORY, max_tokens=40, seed=1)
            worker.submit(next, stream).result()
            next(stream)
            with self.assertRaisesRegex(Error, "this thread has begun a stream"):
                model.generate(STORY, max_tokens=2)
            waiting = worker.submit(model.generate, STORY, max_tokens=2)
            stream.close()
            self.assertTrue(waiting.result())

    def test_the_reader_of_a_stream_has_ended(self):
        """Its number is given to the next thread."""
        makers = [lambda m: m.stream(STORY, max_tokens=40, seed=1), lambda m: m.stream_batch([STORY], max_tokens=40)]
        for make in makers:
            with Model("builtin:stories") as model:
                kept = []
                self.in_threads(lambda model=model, kept=kept: kept.extend((stream := make(model), next(stream))))
                for error in (*self.in_threads(lambda model=model: model.generate(STORY, max_tokens=2)), None):
                    if error is None:
                        with self.assertRaises(Error) as caught:
                            model.generate(STORY, max_tokens=2)
                        error = caught.exception
                    self.assertRegex(str(error), "^a thread that has ended has begun a stream")
                next(kept[0])
                with self.assertRaisesRegex(Error, "this thread has begun a stream"):
                    model.generate(STORY, max_tokens=2)
                kept[0].close()
                self.assertTrue(model.generate(STORY, max_tokens=2))

    def test_cancel(self):
        with Model("builtin:stories") as model:
            model.cancel()  # nothing runs: no effect
            self.assertTrue(model.generate(STORY, max_tokens=2))
            begun, results = threading.Event(), []

            def run():
                try:
                    while True:
                        begun.set()
                        results.append(model.generate(STORY, ignore_end=True))
                except Cancelled as error:
                    results.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            begun.wait()
            while thread.is_alive():
                model.cancel()
            thread.join()
            self.assertIsInstance(results[-1], Cancelled)
            self.assertTrue(model.generate(STORY, max_tokens=2))


@unittest.skipUnless(hasattr(signal, "pthread_kill"), "this system sends no signals to threads")
class Signals(unittest.TestCase):
    """An exception of a signal's handler ends what runs, and the model can be used further."""

    def interrupted(self, use):
        """Calls use() again and again until a signal arrives, which is sent when it is under way."""
        main, begun = threading.get_ident(), threading.Event()

        def send():
            begun.wait()
            signal.pthread_kill(main, signal.SIGINT)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    begun.set()
                    use()
        finally:
            sender.join()

    def test_interrupts(self):
        with Model("builtin:stories", embeddings=True) as model:
            long_prompt = model.tokenize("The fox sat down. " * 100)[: model.n_ctx - 8]
            want = model.generate(STORY, seed=1, max_tokens=20)
            uses = [
                lambda: model.generate(STORY, ignore_end=True),
                lambda: list(model.stream(STORY, ignore_end=True)),
                lambda: (model.reset(), model.generate(long_prompt, max_tokens=1)),
                lambda: model.tokenize("The fox"),
                lambda: model.batch([STORY] * 3, ignore_end=True),
                lambda: model.logprobs(long_prompt[:-1], long_prompt[-1:]),
            ]
            for number, use in enumerate(uses):
                with self.subTest(number):
                    self.interrupted(use)
                    self.assertEqual(model.generate(STORY, seed=1, max_tokens=20), want)

    def test_interrupts_while_it_opens(self):
        got, lost = [], 0

        def on_signal(number, frame):
            got.append(1)
            raise KeyboardInterrupt

        old = signal.signal(signal.SIGALRM, on_signal)
        try:
            for _ in range(40):
                got.clear()
                model = None  # one that a signal left open goes here, as Python ignores what is raised in __del__ under the timer
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.004)
                    model = Model("builtin:stories", n_threads=1)
                    lost += len(got)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    model.close()
                except KeyboardInterrupt:
                    pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        self.assertEqual(lost, 0)

    def signalled(self, model, handle, use):
        """Calls use() again and again until it raises. Meanwhile signals call handle() whenever a generation is under way."""
        main, over = threading.get_ident(), threading.Event()

        def send():
            while not over.wait(0.001):
                signal.pthread_kill(main, signal.SIGUSR1)

        def handler(number, frame):
            if model._turn.locked() and not over.is_set():
                handle(over)

        old = signal.signal(signal.SIGUSR1, handler)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            while True:
                use()
        finally:
            over.set()
            sender.join()
            signal.signal(signal.SIGUSR1, old)

    def test_handlers_cannot_begin_anything(self):
        class Own(Exception):
            pass

        said = []
        with Model("builtin:stories") as model:

            def handle(over):
                over.set()
                try:
                    model.generate(STORY)
                except Error as error:
                    said.append(str(error))
                raise Own

            with self.assertRaises(Own):
                self.signalled(model, handle, lambda: list(model.stream(STORY, ignore_end=True)))
            self.assertRegex(said[0], "this thread")
            self.assertTrue(model.generate(STORY, max_tokens=2))

    def test_handlers_may_cancel(self):
        with Model("builtin:stories") as model:
            with self.assertRaises(Cancelled):
                self.signalled(model, lambda over: model.cancel(), lambda: model.generate(STORY, ignore_end=True))
            self.assertTrue(model.generate(STORY, max_tokens=2))


class WithoutNumpy(unittest.TestCase):
    def test_says_what_is_missing(self):
        had = sys.modules.get("numpy")
        sys.modules["numpy"] = None  # import numpy fails
        try:
            with Model("builtin:stories") as model:
                for use in (lambda: model.logits(STORY), lambda: model.embed(STORY)):
                    with self.assertRaisesRegex(ImportError, "pip install numpy"):
                        use()
        finally:
            if had:
                sys.modules["numpy"] = had
            else:
                del sys.modules["numpy"]


@needs_numpy
class Numbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("builtin:stories", embeddings=True)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    @needs_cli
    def test_same_logits_as_llm_cli(self):
        import numpy as np

        text = "Once upon a time, there was a fox. " * 9
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "logits.npy")
            run_cli("-p", text, "-n", "0", "--logits", path)
            want = np.load(path)
        got = self.model.logits(text)
        self.assertEqual((got.shape, got.dtype), (want.shape, np.float32))
        self.assertGreater(got.shape[0], 64)
        self.assertEqual(got.shape[1], self.model.n_vocab)
        np.testing.assert_array_equal(got, want)
        last = self.model.logits(self.model.tokenize(text), last=True)
        np.testing.assert_array_equal(last, want[-1])
        cut = self.model.tokenize(text)[:20]
        np.testing.assert_array_equal(self.model.logits(cut, last=True), want[19])
        np.testing.assert_array_equal(self.model.logits(cut + [7, 8], last=True), self.model.logits(cut + [7, 8])[-1])

    def test_logits_from_a_token_on(self):
        import numpy as np

        ids = self.model.tokenize("Once upon a time, there was a fox. " * 20)[:200]
        whole = self.model.logits(ids)
        for first in (0, 1, 150, 199):
            self.model.reset()
            np.testing.assert_array_equal(self.model.logits(ids, first=first), whole[first:])
            np.testing.assert_array_equal(self.model.logits(ids, first=first), whole[first:])
        for first in (200, -1):
            with self.assertRaisesRegex(ValueError, f"first is {first}"):
                self.model.logits(ids, first=first)

    def test_longer_than_a_call(self):
        import numpy as np

        with Model("builtin:stories", n_ctx=600) as model:
            ids = (model.tokenize("The fox sat down by the pond. ") * 100)[:600]
            whole = model.logits(ids)
            self.assertEqual(whole.shape, (600, model.n_vocab))
            for k in (1, 255, 256, 257, 600):
                np.testing.assert_array_equal(model.logits(ids[:k], last=True), whole[k - 1])
            with self.assertRaisesRegex(Error, "600"):
                model.logits(ids + [1])

    def test_logits_are_a_copy(self):
        one = self.model.logits("A fox")
        two = one.copy()
        self.model.logits("A cat and a dog")
        self.assertTrue((one == two).all())

    def test_no_tokens(self):
        with self.assertRaisesRegex(ValueError, "at least one token"):
            self.model.logits([])
        with self.assertRaises(Error):
            self.model.logits([self.model.n_vocab])

    def test_embeddings(self):
        import numpy as np

        fox, same, other = (self.model.embed(text) for text in ("The fox sleeps.", "The fox sleeps.", "Cake for everybody"))
        self.assertEqual(fox.shape, (self.model.n_embd,))
        self.assertAlmostEqual(float(np.dot(fox, fox)), 1, places=5)
        np.testing.assert_array_equal(fox, same)
        several = self.model.embed(["The fox sleeps.", "Cake for everybody"])
        np.testing.assert_array_equal(several, [fox, other])
        self.assertEqual(self.model.embed([]).shape, (0, self.model.n_embd))
        with self.assertRaisesRegex(TypeError, r"texts\[1\] is int"):
            self.model.embed(["a", 5])
        self.assertLess(float(np.dot(fox, other)), 0.9999)
        with Model("builtin:stories", embeddings=True, pooling="last") as model:
            self.assertLess(float(np.dot(fox, model.embed("The fox sleeps."))), 0.9999)
        with self.assertRaisesRegex(Error, "'most' is none of mean, last, cls, none, rank, max, "):
            Model("builtin:stories", embeddings=True, pooling="most")
        with Model("builtin:stories") as model, self.assertRaisesRegex(Error, "embeddings=True") as caught:
            model.embed("A fox")
        self.assertEqual(caught.exception.status, Status.UNSUPPORTED)

    def test_interrupts(self):
        Signals.interrupted(self, lambda: self.model.logits([1] * (self.model.n_ctx - 1)))
        self.assertEqual(self.model.logits([1]).shape, (1, self.model.n_vocab))


if __name__ == "__main__":
    unittest.main()
