"""Texts: generate, stream, chat, tokens."""
import gc
import json
import math
import unittest

from common import STORY, needs_cli, run_cli
from ggml_lite import Error, Model, Options, Status
from ggml_lite._options import ELSEWHERE


class Text(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("builtin:stories")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    @needs_cli
    def test_same_text_as_llm_cli(self):
        same = [
            ({"seed": 7}, ["--seed", "7"]),
            ({"seed": 8, "temperature": 1.5, "top_k": 12, "top_p": 0.8}, "--seed 8 --temp 1.5 --top-k 12 --top-p 0.8".split()),
            ({"seed": 9, "temperature": 2, "min_p": 0.2, "top_k": 0, "top_p": 1}, "--seed 9 --temp 2 --min-p 0.2 --top-k 0 --top-p 1".split()),
            ({"temperature": 0}, "--temp 0".split()),
            ({"seed": 3, "repeat_penalty": 1.4}, "--seed 3 --repeat-penalty 1.4".split()),
            ({"seed": 4, "stop": ["was", "."]}, "--seed 4 --stop was --stop .".split()),
            ({"seed": 5, "json_schema": {"enum": ["hop", "sleep"]}}, ["--seed", "5", "--json-schema", '{"enum": ["hop", "sleep"]}']),
            ({"seed": 3, "repeat_penalty": 1.4, "repeat_last_n": -1}, "--seed 3 --repeat-penalty 1.4 --repeat-last-n -1".split()),
            ({"seed": 3, "frequency_penalty": 1, "presence_penalty": 0.5, "repeat_last_n": 9},
             "--seed 3 --frequency-penalty 1 --presence-penalty 0.5 --repeat-last-n 9".split()),
            ({"seed": 3, "temperature": 1, "dynatemp_range": 0.7, "dynatemp_exponent": 2},
             "--seed 3 --temp 1 --dynatemp-range 0.7 --dynatemp-exp 2".split()),
            ({"seed": 3, "temperature": 2, "typical_p": 0.4, "top_n_sigma": 2}, "--seed 3 --temp 2 --typical 0.4 --top-n-sigma 2".split()),
            ({"seed": 3, "xtc_probability": 0.9, "xtc_threshold": 0.05}, "--seed 3 --xtc-probability 0.9 --xtc-threshold 0.05".split()),
            ({"seed": 3, "dry_multiplier": 2, "dry_base": 1.5, "dry_allowed_length": 1, "dry_penalty_last_n": 50, "dry_sequence_breakers": ["."]},
             "--seed 3 --dry-multiplier 2 --dry-base 1.5 --dry-allowed-length 1 --dry-penalty-last-n 50 --dry-sequence-breaker .".split()),
            ({"seed": 3, "mirostat": 2, "mirostat_tau": 2, "mirostat_eta": 0.2}, "--seed 3 --mirostat 2 --mirostat-ent 2 --mirostat-lr 0.2".split()),
            ({"seed": 3, "logit_bias": {468: 3, "261": -2.5}}, "--seed 3 --logit-bias 468+3 --logit-bias 261-2.5".split()),
            ({"seed": 3, "samplers": ["temperature", "top_k"], "top_k": 3}, "--seed 3 --samplers temperature;top_k --top-k 3".split()),
            ({"seed": 6, "grammar": 'root ::= ("hop " | "sleep ")+'}, ["--seed", "6", "--grammar", 'root ::= ("hop " | "sleep ")+']),
        ]
        for options, flags in same:
            with self.subTest(flags):
                text = self.model.generate(STORY, max_tokens=40, **options)
                self.assertTrue(text)
                self.assertEqual(text, run_cli("-p", STORY, "-n", "40", "--no-display-prompt", *flags))

    def test_defaults_of_the_file(self):
        keys = {"general.sampling.temp": 0.0, "general.sampling.top_k": 3, "general.sampling.sequence": "top_k;temperature"}
        notes = []
        with Model("builtin:stories", overrides=keys, note=notes.append) as model:
            first = model.generate(STORY, max_tokens=12, seed=1)
            self.assertEqual(first, model.generate(STORY, max_tokens=12, seed=2, temperature=None))
            self.assertEqual(first, self.model.generate(STORY, max_tokens=12, temperature=0))
            self.assertEqual([first, first], [x.text for x in model.batch([STORY, STORY], max_tokens=12)])
            want = self.model.generate(STORY, max_tokens=12, seed=3, temperature=2, top_k=3, samplers="top_k;temperature")
            self.assertEqual(want, model.generate(STORY, max_tokens=12, seed=3, temperature=2))
            self.assertNotEqual(want, model.generate(STORY, max_tokens=12, seed=3, temperature=2, top_k=0))
        self.assertIn("the model's file sets temperature 0, top_k 3, samplers top_k;temperature; no_file_sampling ignores that", notes)
        with Model("builtin:stories", overrides=keys, file_sampling=False, note=notes.append) as model:
            self.assertEqual(self.model.generate(STORY, max_tokens=12, seed=1), model.generate(STORY, max_tokens=12, seed=1))
        self.assertEqual(len([x for x in notes if "sets" in x]), 1)

    def test_seeds(self):
        texts = [self.model.generate(STORY, max_tokens=30, temperature=1.5, seed=seed) for seed in (1, 1, 2, 2**64 - 1)]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(len(set(texts)), 3)
        self.assertGreater(len({self.model.generate(STORY, max_tokens=30, temperature=1.5) for _ in range(3)}), 1)

    def test_numbers_that_others_have(self):
        self.assertEqual(self.model.generate(STORY, max_tokens=-1, seed=7), self.model.generate(STORY, seed=7))
        self.assertGreater(len({self.model.generate(STORY, max_tokens=30, temperature=1.5, seed=-1) for _ in range(3)}), 1)
        self.assertEqual(self.model.generate(STORY, max_tokens=0), "")
        run = self.model.last_run
        self.assertEqual((run.finish, run.n_generated), ("length", 0))
        self.assertEqual(self.model.context, self.model.tokenize(STORY))
        for name in "logprobs echo n suffix stream response_format logits_processor stopping_criteria mirostat_mode tools model user tfs_z".split():
            self.assertIn(name, ELSEWHERE)
        for name, text in ELSEWHERE.items():  # hints that name an option name one that there is
            self.assertTrue(" " in text or text in Options.__annotations__, name)

    def test_never_a_token(self):
        comma = self.model.tokenize(",", add_special=False)[-1]
        self.assertIn(",", self.model.generate(STORY, max_tokens=20, temperature=0))
        for never in (False, -math.inf):
            self.assertNotIn(",", self.model.generate(STORY, max_tokens=20, temperature=0, logit_bias={comma: never}))

    def test_json_with_spaces(self):
        schema = {"type": "array", "items": {"const": 1}, "minItems": 2}
        wild = {"temperature": 9, "top_k": 0, "top_p": 1, "min_p": 0, "max_tokens": 60}
        texts = {self.model.generate(STORY, json_schema=schema, json_spaces=True, seed=seed, **wild) for seed in range(9)}
        self.assertGreater(len(texts), 1)

    def test_pieces_are_the_whole(self):
        pieces = list(self.model.stream(STORY, max_tokens=40, seed=7))
        self.assertGreater(len(pieces), 10)
        self.assertEqual("".join(pieces), self.model.generate(STORY, max_tokens=40, seed=7))
        self.assertNotIn("", pieces)

    def test_pieces_are_whole_characters(self):
        grammar = 'root ::= ("é" | "漢" | "🙂"){12}'  # each of several tokens
        pieces = list(self.model.stream(STORY, grammar=grammar, seed=1))
        self.assertEqual(len("".join(pieces)), 12)
        self.assertLessEqual(set("".join(pieces)), set("é漢🙂"))
        self.assertGreater(self.model.last_run.n_generated, 12)

    def test_cut_character(self):
        grammar = 'root ::= "🙂"'
        ends = [self.model.generate(STORY, grammar=grammar, max_tokens=n, temperature=0) for n in (1, 2, 9)]
        self.assertEqual(ends[2], "🙂")
        self.assertLessEqual(set("".join(ends[:2])), set("🙂\N{REPLACEMENT CHARACTER}"))

    def test_prompt_of_tokens(self):
        text = self.model.generate(STORY, max_tokens=20, seed=1)
        self.assertEqual(self.model.generate(self.model.tokenize(STORY), max_tokens=20, seed=1), text)
        self.assertEqual(self.model.generate(tuple(self.model.tokenize(STORY)), max_tokens=20, seed=1), text)

    def test_closed_stream_stops(self):
        with self.model.stream(STORY, seed=1, ignore_end=True) as stream:
            first = next(stream)
        self.assertTrue(first)
        self.assertEqual(list(stream), [])
        self.assertEqual(stream.run.finish, "none")
        self.assertLess(stream.run.n_generated, 5)
        for piece in self.model.stream(STORY, seed=1):  # nothing refers to this one after the loop
            break
        self.assertEqual(piece, first)
        gc.collect()
        self.assertTrue(self.model.generate(STORY, max_tokens=2))
        never_begun = self.model.stream(STORY)
        never_begun.close()
        self.assertEqual((list(never_begun), never_begun.run), ([], None))

    def test_open_stream_occupies_the_model(self):
        with self.model.stream(STORY, seed=1) as stream:
            text = next(stream)
            with self.assertRaisesRegex(Error, "a stream of the model that has not ended"):
                self.model.generate("Another")
            with self.assertRaisesRegex(Error, "a stream of the model that has not ended"):
                next(self.model.stream("Another"))
            self.assertTrue(self.model.tokenize("Tokens are no generation"))
            text += "".join(stream)
        self.assertEqual(text, self.model.generate(STORY, seed=1))

    def test_why_it_ended(self):
        self.model.generate(STORY, max_tokens=5, seed=1)
        run = self.model.last_run
        self.assertEqual((run.finish, run.n_generated, run.stop), ("length", 5, None))
        self.model.generate(STORY, seed=1, stop=["@@", "."])
        self.assertEqual((self.model.last_run.finish, self.model.last_run.stop), ("stop", 1))
        self.model.generate(STORY, seed=1, json_schema={"const": 5})
        self.assertEqual(self.model.last_run.finish, "end")
        with Model("builtin:stories", n_ctx=24) as small:
            small.generate(STORY, ignore_end=True)
            self.assertEqual(small.last_run.finish, "context")

    def test_common_beginning_is_not_run_again(self):
        self.model.reset()
        self.model.generate("Once upon a time, there was a fox.", max_tokens=1)
        self.assertEqual(self.model.last_run.n_reused, 0)
        self.model.generate("Once upon a time, there was a cat.", max_tokens=1)
        self.assertGreater(self.model.last_run.n_reused, 2)

    def test_json(self):
        schema = {"type": "object", "properties": {"legs": {"type": "integer"}}, "required": ["legs"], "additionalProperties": False}
        for given in (schema, json.dumps(schema)):
            value = json.loads(self.model.generate("A fox", json_schema=given, max_tokens=40, seed=1))
            self.assertIsInstance(value["legs"], int)
        json.loads(self.model.generate("A fox", json_schema=True, max_tokens=40, seed=1))

    def test_options_are_checked(self):
        wrong = [
            ({"max_token": 5}, TypeError, "unknown option 'max_token'; did you mean 'max_tokens'?"),
            ({"max_tokens": -2}, ValueError, "max_tokens is -2"),
            ({"temp": 5}, TypeError, "unknown option 'temp'; did you mean 'temperature'?"),
            ({"stream": True}, TypeError, "unknown option 'stream': call stream(), stream_chat() or stream_answer()"),
            ({"qqqq": 1}, TypeError, "unknown option 'qqqq'; there are max_tokens, temperature, "),
            ({"repeat_last_n": 0}, ValueError, "repeat_last_n is 0"),
            ({"xtc_threshold": 0}, ValueError, "xtc_threshold is 0; it is above 0"),
            ({"mirostat": 1}, Error, "mirostat"),
            ({"samplers": ["top_k", "none"]}, Error, "none"),
            ({"logit_bias": [1]}, TypeError, "logit_bias is list"),
            ({"logit_bias": {-1: 1}}, ValueError, "a token of logit_bias is -1"),
            ({"logit_bias": {1: "x"}}, TypeError, "logit_bias[1] is str"),
            ({"logit_bias": {10**6: 1}}, Error, "1000000"),
            ({"max_tokens": "5"}, TypeError, "max_tokens is str, not an int"),
            ({"max_tokens": True}, TypeError, "max_tokens is bool"),
            ({"seed": -2}, ValueError, "seed is -2"),
            ({"seed": 2**64}, ValueError, "seed is 18446744073709551616"),
            ({"temperature": "0.5"}, TypeError, "temperature is str"),
            ({"top_p": 10**400}, ValueError, "top_p is too large"),
            ({"ignore_end": "no"}, TypeError, "ignore_end is str"),
            ({"json_schema": False}, ValueError, "json_schema is False"),
            ({"top_p": 7.0}, Error, "top_p"),
            ({"stop": ""}, Error, "stop"),
            ({"stop": [b"x"]}, TypeError, "stop is bytes"),
            ({"stop": "a\0b"}, ValueError, "NUL"),
            ({"grammar": "root ::= nobody"}, Error, "nobody"),
            ({"json_schema": {"type": "strin"}}, Error, "strin"),
            ({"json_schema": True, "grammar": 'root ::= "a"'}, Error, "grammar"),
        ]
        for options, kind, words in wrong:
            with self.subTest(options), self.assertRaises(kind) as caught:
                self.model.generate(STORY, **options)
            self.assertIn(words, str(caught.exception))
        none = dict.fromkeys(Options.__annotations__)
        self.assertTrue(self.model.generate(STORY, **{**none, "max_tokens": 3}))

    def test_last_has_no_first(self):
        with self.assertRaisesRegex(ValueError, "first is 1, which last=True does not use"):
            self.model.logits(STORY, first=1, last=True)

    def test_prompts_are_checked(self):
        for prompt, kind, words in (
            (5, TypeError, "prompt is int, not a str or a sequence of tokens"),
            (None, TypeError, "prompt is NoneType, not"),
            (b"bytes", TypeError, "prompt is bytes, not"),
            ([1.5], TypeError, "a token is float"),
            ([-1], ValueError, "a token is -1"),
            ([self.model.n_vocab], Error, str(self.model.n_vocab)),
            ([], Error, ""),
            ([1] * (self.model.n_ctx + 1), Error, str(self.model.n_ctx)),
        ):
            with self.subTest(str(prompt)[:20]), self.assertRaises(kind) as caught:
                self.model.generate(prompt)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(UnicodeEncodeError):
            self.model.generate("\ud800")
        self.assertTrue(self.model.generate(STORY, max_tokens=2))

    def test_sequences_are_checked(self):
        m = self.model
        options = {
            "stop": "a str or a sequence of str",
            "dry_sequence_breakers": "a str or a sequence of str",
            "samplers": "a str or a list of names",
            "read": "a sequence of tokens",
        }
        calls = [(lambda name=name: m.generate(STORY, **{name: 5}), f"{name} is int, not {words}") for name, words in options.items()]
        calls += [
            (lambda: m.detokenize(5), "tokens is int, not a sequence of tokens"),
            (lambda: m.logprobs(STORY, None), "continuation is NoneType, not"),
            (lambda: m.batch(None), "prompts is NoneType, not"),
            (lambda: m.batch([None]), "prompt is NoneType, not"),
            (lambda: m.chat(None), "messages is NoneType, not"),
            (lambda: m.chat("Hi", tools=5), "tools is int, not"),
            (lambda: m.rerank("a", 5), "documents is int, not"),
            (lambda: m.save(5), "path is int, not a path"),
            (lambda: Model("builtin:stories", place=5), "place is int, not"),
            (lambda: Model("builtin:stories", adapters=5), "adapters is int, not"),
            (lambda: Model(None), "path is NoneType, not a path"),
        ]
        for call, words in calls:
            with self.subTest(words), self.assertRaisesRegex(TypeError, f"^{words}"):
                call()

    def test_tokens_are_checked(self):
        for tokens, kind, words in (
            ([2**32 + 300], ValueError, "a token is 4294967596"),
            ([2**31], ValueError, "a token is 2147483648"),
            ([True], TypeError, "a token is bool"),
            (b"x", TypeError, "tokens is bytes"),
        ):
            with self.subTest(str(tokens)), self.assertRaisesRegex(kind, words):
                self.model.detokenize(tokens)
        for token in (-1, self.model.n_vocab):
            with self.assertRaisesRegex(Error, f"token {token} is not in the vocabulary of {self.model.n_vocab}"):
                self.model.detokenize([300, token])

    def test_nul_in_a_prompt_is_text(self):
        self.assertNotEqual(self.model.tokenize("a\0b"), self.model.tokenize("a"))

    def test_tokens(self):
        text = "Once upon a time, there was a fox. é漢🙂"
        ids = self.model.tokenize(text)
        self.assertEqual(self.model.detokenize(ids), text)
        self.assertEqual(ids[0], self.model.bos)
        plain = self.model.tokenize(text, add_special=False)
        self.assertNotEqual(plain[0], self.model.bos)
        self.assertTrue(self.model.is_end(self.model.eos))
        self.assertFalse(self.model.is_end(plain[0]))
        eos = self.model.token_bytes(self.model.eos).decode()
        self.assertEqual(self.model.tokenize(eos, add_special=False), [self.model.eos])
        self.assertGreater(len(self.model.tokenize(eos, add_special=False, read_special=False)), 1)
        self.assertEqual(self.model.detokenize([self.model.eos]), "")
        self.assertEqual(self.model.detokenize([self.model.eos], show_special=True), eos)
        self.assertEqual(self.model.token_bytes(self.model.n_vocab), b"")
        self.assertEqual(self.model.tokenize("", add_special=False), [])
        self.assertEqual(self.model.detokenize([]), "")

    def test_context(self):
        self.model.reset()
        self.assertEqual(self.model.context, [])
        prompt = self.model.tokenize(STORY)
        self.model.generate(STORY, max_tokens=3)
        self.assertEqual(self.model.context[: len(prompt)], prompt)
        self.assertGreaterEqual(len(self.model.context), len(prompt) + 2)


class Chat(unittest.TestCase):
    QUESTION = "Tell me a story about a cat."

    @classmethod
    def setUpClass(cls):
        cls.model = Model("builtin:chat")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    @needs_cli
    def test_same_answer_as_llm_cli(self):
        answer = self.model.chat([{"role": "user", "content": self.QUESTION}], seed=7)
        self.assertTrue(answer)
        self.assertEqual(answer, run_cli("-m", "builtin:chat", "-st", "-p", self.QUESTION, "--seed", "7"))

    def test_pieces_are_the_whole(self):
        messages = [{"role": "user", "content": self.QUESTION}]
        answer = self.model.chat(messages, seed=7)
        self.assertEqual("".join(self.model.stream_chat(messages, seed=7)), answer)
        self.assertEqual(self.model.chat(self.QUESTION, seed=7), answer)
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "What is the name of the cat?"}]
        self.assertTrue(self.model.chat(messages, max_tokens=40))
        self.assertGreater(self.model.last_run.n_reused, 20)

    def test_prompt(self):
        self.assertTrue(self.model.has_chat)
        whole = self.model.format_chat(self.QUESTION)
        self.assertIn(self.QUESTION, whole)
        self.assertTrue(whole.startswith(self.model.format_chat(self.QUESTION, answer=False)))

    def test_calls_as_the_template_wants_them(self):
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"zq": 1}}}
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
        for arguments, none in (("a", False), ("'' + a", False), ("a | tojson", True), ("'' + a", True)):
            text = "{% for m in messages %}|{% if m.tool_calls" + (" and m.content is none" if none else "") + " %}{% set a = m.tool_calls[0].function.arguments %}{{ "
            with self.subTest(text), Model("builtin:chat", n_ctx=64, chat_template=text + arguments + " }}{% endif %}{% endfor %}") as model:
                self.assertTrue(model.format_chat(messages, answer=False).endswith('||{"zq": 1}'))

    def test_control_tokens_in_messages(self):
        end = self.model.tokenize("<|end|>", add_special=False)[0]

        def count(model, content):
            return model.tokenize_chat([{"role": "user", "content": content}]).count(end)

        self.assertEqual(count(self.model, "a<|end|>"), count(self.model, "a"))
        with Model("builtin:chat", n_ctx=64, parse_special_in_messages=True) as model:
            self.assertEqual(count(model, "a<|end|>"), count(model, "a") + 1)

    def test_warns_of_system_messages_that_move(self):
        text = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('first') }}{% endif %}{{ m.content }}{% endfor %}"
        messages = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}]
        with Model("builtin:chat", n_ctx=64, chat_template=text) as model:
            for call in model.chat, model.answer:
                with self.assertWarnsRegex(UserWarning, "a system message stands in a message of another role"):
                    call(messages, max_tokens=1)

    def test_parts_of_contents(self):
        parts = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]
        whole = self.model.format_chat([{"role": "user", "content": "Hi\nyou"}])
        self.assertEqual(self.model.format_chat([{"role": "user", "content": parts}]), whole)
        picture = {"type": "image_url", "image_url": {"url": "x"}}
        for content, words in (
            (parts + [picture], r'messages\[0\]: content\[2\]: "image_url" is not supported: the model reads only text, unless it is opened with an eye \(mmproj\)'),
            (None, r'messages\[0\]: "content" must be a string or a list of parts, not null'),
            ([{"type": "text"}], r'content\[0\]: a part of type "text" needs "text"'),
            (["Hi"], r"content\[0\]: a part must be an object"),
        ):
            with self.subTest(content), self.assertRaisesRegex(Error, words):
                self.model.format_chat([{"role": "user", "content": content}])
        with self.assertRaisesRegex(Error, 'needs "messages", at least one'):
            self.model.chat([])

    def test_arguments_of_calls(self):
        def prompt(arguments):
            call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
            return self.model.format_chat([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}])

        self.assertEqual(prompt('{"a": 9007199254740993}'), prompt({"a": 9007199254740993}))
        self.assertIn("9007199254740993", prompt({"a": 9007199254740993}))
        self.assertIn("no object", prompt("no object"))
        with self.assertRaisesRegex(TypeError, "tools is str"):
            self.model.format_chat("Hi", tools="f")

    def test_wrong_conversations(self):
        for messages in ([], [{"content": "Hi"}], [{"role": "user"}], [{"role": "nobody", "content": "Hi"}]):
            with self.subTest(messages):
                try:
                    self.model.chat(messages, max_tokens=2)  # some templates accept them
                except Error as error:
                    self.assertTrue(str(error))
        for messages, words in (([5], r"messages\[0\] is int"), (["Hi"], r"messages\[0\] is str"), ({"role": "user"}, "messages is dict")):
            with self.assertRaisesRegex(TypeError, words):
                self.model.chat(messages)

    def test_no_template(self):
        with Model("builtin:stories") as model:
            self.assertFalse(model.has_chat)
            with self.assertRaises(Error) as caught:
                model.chat("Hi")
            self.assertEqual(caught.exception.status, Status.NOT_FOUND)
        with Model("builtin:stories", chat_template="chatml") as model:
            self.assertIn("<|im_start|>user\nHi", model.format_chat("Hi"))


if __name__ == "__main__":
    unittest.main()
