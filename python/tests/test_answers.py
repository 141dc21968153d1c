"""Messages with tools, batches, scores, and asyncio."""
import asyncio
import gc
import json
import math
import os
import tempfile
import time
import unittest
import warnings
from unittest import mock

from common import STORY
from ggml_lite import AsyncModel, Cancelled, Error, Jobs, Message, Model

TEMPLATE = """{% for m in messages %}[{{ m.role }}] {{ m.content }}
{% endfor %}{% if tools %}Answer with <tool_call>{"name": .., "arguments": ..}</tool_call>
{% endif %}{% if add_generation_prompt and think %}<think>{% endif %}"""
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"day": {"enum": ["today", "tomorrow"]}},
            "required": ["day"],
            "additionalProperties": False,
        },
    },
}


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("builtin:chat", n_ctx=400, chat_template=TEMPLATE)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_demanded_calls(self):
        for choice in ("required", "weather", {"type": "function", "function": {"name": "weather"}}):
            messages = [{"role": "user", "content": "Rain?"}]
            reply = self.model.answer(messages, tools=[WEATHER], tool_choice=choice, temperature=0, max_tokens=120)
            (call,) = reply.tool_calls
            self.assertEqual((call.name, call.id, reply.content, reply["content"]), ("weather", "call_0", "", None))
            self.assertIn(call.arguments["day"], ("today", "tomorrow"))
            self.assertEqual(reply.run.finish, "end")
            messages += [reply, {"role": "tool", "tool_call_id": call.id, "content": "It rains."}]
            self.assertTrue(self.model.answer(json.loads(json.dumps(messages)), max_tokens=5).content)
        for choice, words in (("other", "other"), (5, "tool_choice")):
            with self.assertRaisesRegex(Error, words):
                self.model.answer("Rain?", tools=[WEATHER], tool_choice=choice)

    def test_content(self):
        with Model("builtin:chat") as model:
            reply = model.answer("Who are you?", temperature=0, max_tokens=40)
            self.assertEqual(reply, {"role": "assistant", "content": reply.content})
            self.assertEqual((reply.tool_calls, reply.reasoning), ([], ""))
            self.assertEqual(reply.content, model.chat("Who are you?", temperature=0, max_tokens=40))
            with model.stream_answer("Who are you?", temperature=0, max_tokens=40) as parts:
                pieces = list(parts)
            self.assertGreater(len(pieces), 3)
            self.assertEqual({part.kind for part in pieces}, {"content"})
            self.assertEqual("".join(part.text for part in pieces), reply.content)
            self.assertEqual(parts.message, reply)
            self.assertEqual(model.last_run, parts.run)

    def test_reasoning(self):
        grammar = 'root ::= "Hm, é." "</think>" "Yes."'
        with self.model.stream_answer("Rain?", variables={"think": True}, grammar=grammar) as parts:
            kinds = {}
            for kind, text in parts:
                kinds[kind] = kinds.get(kind, "") + text
        self.assertEqual(kinds, {"reasoning": "Hm, é.", "content": "Yes."})
        self.assertEqual((parts.message.reasoning, parts.message.content), ("Hm, é.", "Yes."))

    def test_arguments_that_are_no_json(self):
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}
        self.assertEqual(Message(role="assistant", content=None, tool_calls=[call]).tool_calls, [("f", "{", "1")])

    def test_closed_early(self):
        with self.model.stream_answer("Hi", ignore_end=True) as parts:
            next(parts)
            with self.assertRaisesRegex(Error, "has begun a stream"):
                self.model.answer("Hi")
        self.assertEqual((list(parts), parts.message), ([], None))
        self.assertIn(parts.run.finish, ("cancelled", "context"))
        self.assertTrue(self.model.answer("Hi", max_tokens=3).content)
        with self.assertRaisesRegex(ValueError, "max_tokens is 0"):
            self.model.answer("Hi", max_tokens=0)

    def test_streams_that_nobody_refers_to(self):
        gc.disable()
        try:
            for stream in (self.model.stream_answer, self.model.stream_chat, lambda text, **more: self.model.stream_batch([text], **more)):
                for _ in stream("Hi", ignore_end=True):
                    break
                self.assertTrue(self.model.answer("Hi", max_tokens=3).content)
        finally:
            gc.enable()

    def test_warns_of_what_the_template_does_not_read(self):
        def said(model, **more):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.format_chat("Hi", **more)
                model.chat("Hi", max_tokens=1, **more)
            texts = {str(w.message) for w in caught}
            self.assertEqual(len(caught), 2 * len(texts))
            self.assertTrue(all(w.filename == __file__ for w in caught))
            return "".join(texts)

        self.assertIn("does not read 'thinc'", said(self.model, variables={"thinc": True}))
        self.assertEqual(said(self.model, variables={"think": True}, tools=[WEATHER]), "")
        with Model("builtin:chat", chat_template="chatml") as model:
            self.assertIn("does not read 'tools', so the model does not see them", said(model, tools=[WEATHER]))
            self.assertEqual(said(model), "")
        with Model("builtin:chat") as model:
            self.assertEqual(said(model, tools=[WEATHER]), "")
            self.assertIn("does not read 'thinc'", said(model, variables={"thinc": True}))
            with self.assertRaisesRegex(Error, "at least one"):
                model.answer([])


    def test_warns_of_names_in_a_schema(self):
        schema = {"typ": "object", "title": "No keyword that says what fits, but one that is known"}
        for k, call in enumerate(
            (
                lambda **more: self.model.generate("Hi", **more),
                lambda **more: self.model.chat("Hi", **more),
                lambda **more: self.model.answer("Hi", **more),
                lambda **more: self.model.batch(["Hi"], **more),
            )
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call(json_schema={**schema, "description": f"another one for call {k}, as the last one is kept"}, max_tokens=9)
            self.assertEqual([w.filename for w in caught], [__file__])
            self.assertRegex(str(caught[0].message), "json_schema.*typ")


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("builtin:stories", n_ctx=128, n_parallel=3)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_same_texts_as_alone(self):
        prompts = [STORY, "The fox", {"prompt": "A cat", "seed": 3, "max_tokens": 5}, self.model.tokenize("The dog"), {"prompt": STORY, "stop": "."}]
        results = self.model.batch(prompts, seed=2, max_tokens=20)
        for prompt, result in zip(prompts, results):
            own = dict(prompt) if isinstance(prompt, dict) else {"prompt": prompt}
            text = self.model.generate(own.pop("prompt"), **{"seed": 2, "max_tokens": 20, **own})
            self.assertEqual(result.text, text)
            self.assertEqual(result.run.finish, self.model.last_run.finish)
            self.assertEqual(result.run.n_generated, self.model.last_run.n_generated)
            self.assertIsNone(result.error)
        self.assertEqual(results[2].run.n_generated, 5)

    def test_texts_are_their_tokens(self):
        texts = [STORY, "", "</s>The fox", "A\0cat", "Ein Hündchen 🙂"]
        by_text = self.model.batch(texts, seed=2, max_tokens=8)
        by_ids = self.model.batch([self.model.tokenize(text) for text in texts], seed=2, max_tokens=8)
        self.assertEqual([(r.text, r.error) for r in by_text], [(r.text, r.error) for r in by_ids])

    def test_pieces(self):
        prompts, texts = [STORY, "The fox", "The cat", "The dog"], {}
        with self.model.stream_batch(prompts, seed=2, max_tokens=20) as batch:
            order = [k for k, piece in batch if not texts.update({k: texts.get(k, "") + piece})]
        self.assertNotEqual(order, sorted(order))
        self.assertEqual([texts[k] for k in range(4)], [result.text for result in batch.results])
        grammar = 'root ::= ("é" | "漢" | "🙂"){6}'
        for k, piece in self.model.stream_batch([STORY] * 2, grammar=grammar):
            self.assertLessEqual(set(piece), set("é漢🙂"))
        with self.model.stream_batch(prompts, ignore_end=True) as batch:
            next(batch)
        self.assertIsNone(batch.results)
        self.assertEqual(self.model.batch([]), [])

    def test_failures(self):
        long, fine = self.model.batch(["The fox. " * 1000, STORY], max_tokens=3)
        self.assertIn("but the context only 128", str(long.error))
        self.assertEqual((long.run.finish, long.text, fine.error, fine.run.n_generated), ("error", "", None, 3))
        for n, is_cut in ((2, True), (60, False)):
            (result,) = self.model.batch([STORY], grammar='root ::= " one, two, three, four"', max_tokens=n)
            self.assertIs(result.run.incomplete, is_cut)
        for prompts, options, kind, words in (
            ("text", {}, TypeError, "prompts is str"),
            ([{"seed": 1}], {}, TypeError, "needs 'prompt'"),
            ([{"prompt": STORY, "sed": 1}], {}, TypeError, "did you mean 'seed'"),
            ([STORY], {"max_tokens": 0}, ValueError, "max_tokens is 0"),
        ):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                self.model.batch(prompts, **options)


    def test_jobs(self):
        alone = {prompt: self.model.generate(prompt, seed=2, max_tokens=20) for prompt in (STORY, "The fox", "A cat", "The dog")}
        texts = {}
        with self.model.jobs() as jobs:
            added = {jobs.add(prompt, seed=2, max_tokens=20): prompt for prompt in (STORY, "The fox")}
            for _ in range(3):
                jobs.step()
            added.update({jobs.add(prompt, seed=2, max_tokens=20): prompt for prompt in ("A cat", "The dog")})
            endless = jobs.add(STORY, ignore_end=True)
            self.assertEqual(self.model.tokenize("The fox")[1:], self.model.tokenize("The fox", add_special=False))
            with self.assertRaisesRegex(Error, "128"):
                jobs.add("The fox. " * 100)
            with self.assertRaisesRegex(TypeError, "did you mean 'seed'"):
                jobs.add(STORY, sed=1)
            with self.assertRaisesRegex(Error, "this thread has begun"):
                self.model.generate(STORY)
            while len(jobs) > 1:
                for job, piece in jobs.step():
                    texts[job] = texts.get(job, "") + piece
            self.assertTrue(all(job.run is not None for job in added) and endless.run is None)
            jobs.cancel(endless)
            jobs.cancel(endless)
            self.assertEqual((len(jobs), jobs.step(), endless.run.finish), (0, [], "cancelled"))
            left = jobs.add(STORY, ignore_end=True)
        self.assertEqual({prompt: job.text for job, prompt in added.items()}, alone)
        self.assertTrue(all(job.text.endswith(texts[job]) and job.result.error is None for job in added))
        self.assertEqual(left.run.finish, "cancelled")
        with self.assertRaisesRegex(TypeError, "with"):
            jobs.step()
        with self.model.jobs() as jobs:
            add = self.model._lib.llm_jobs_add

            def interrupted(*arguments):
                add(*arguments)
                raise KeyboardInterrupt

            with mock.patch.object(self.model._lib, "llm_jobs_add", interrupted), self.assertRaises(KeyboardInterrupt):
                jobs.add(STORY, ignore_end=True)
            gc.collect()
            self.assertEqual((len(jobs), jobs.step()), (0, []))
        other = Model("builtin:stories", n_parallel=2)
        with other.jobs() as jobs:
            left = jobs.add(STORY, ignore_end=True)
            jobs.step()
            other.close()
            with self.assertRaisesRegex(Error, "closed"):
                jobs.step()
        self.assertEqual(left.run.finish, "cancelled")


class Scores(unittest.TestCase):
    def test_scores(self):
        with Model("builtin:stories") as model:
            text = model.generate(STORY, max_tokens=6, temperature=0)
            score = model.logprobs(STORY, text)
            self.assertEqual(model.tokenize(STORY) + score.tokens, model.tokenize(STORY + text))
            self.assertTrue(all(score.is_greedy))
            self.assertEqual(len(score.logprobs), len(score.tokens))
            self.assertLess(score.total, 0)
            ids = model.tokenize(STORY)
            self.assertEqual(model.logprobs(ids, score.tokens), score)
            other = model.logprobs(ids, " elephant")
            self.assertFalse(all(other.is_greedy))
            self.assertLess(other.total, score.total)
            self.assertLessEqual(len(model.context), len(ids) + len(other.tokens))
            one, *more = score.tokens
            self.assertAlmostEqual(model.logprobs(ids, [one]).total + model.logprobs([*ids, one], more).total, score.total)
            self.assertLessEqual(sum(math.exp(model.logprobs(ids, [k]).total) for k in range(0, model.n_vocab, 50)), 1)
            merged = model.logprobs("Once up", "on a time")
            self.assertEqual(model.detokenize(merged.tokens)[-7:], " a time")
            for prompt, more in (([], [1]), (STORY, ""), ([1], [])):
                with self.assertRaisesRegex(ValueError, "at least one token"):
                    model.logprobs(prompt, more)


class Measuring(unittest.TestCase):
    TEXT = (STORY + " there was a little dog. He lived in a small house with a big garden. ") * 4

    def test_choose(self):
        text, labels = "Once upon a time there was a little", [" dog", " girl", " girl named Lily"]
        with Model("builtin:stories", n_ctx=128, n_parallel=3) as model, Model("builtin:stories", n_ctx=128) as alone:
            choices = model.choose(text, labels[:2])
            self.assertEqual([choice.label for choice in choices], labels[:2])
            for choice in choices:
                score = alone.logprobs(text, choice.label)
                self.assertAlmostEqual(choice.logprob, score.total, places=9)
                self.assertEqual(choice.n_tokens, len(score.tokens))
            self.assertAlmostEqual(sum(choice.probability for choice in choices), 1)
            self.assertGreater(choices[1].probability, choices[0].probability)
            self.assertEqual(alone.choose(text, iter(labels[:2])), choices)
            self.assertLess(model.choose(text, labels)[1].logprob, choices[1].logprob)  # with the end: a label begins another
            self.assertGreater(model.choose(text, labels[1:], per_token=True)[1].probability, model.choose(text, labels[1:])[1].probability)
            for wrong, error, words in (([], Error, "at least one label"), ([" a", " a"], Error, "are the same"), ("yes", TypeError, "labels is str"), ([" a", 1], TypeError, r"labels\[1\] is int"), ([""], Error, "has no token")):
                with self.subTest(wrong), self.assertRaisesRegex(error, words):
                    model.choose(text, wrong)
            with self.assertRaisesRegex(ValueError, "variables"):
                model.choose(text, labels, variables={"a": 1})
        with Model("builtin:chat") as model:
            yes, no = model.choose([{"role": "user", "content": "Is a cat an animal?"}], ["Yes", "No"])
            self.assertAlmostEqual(yes.probability + no.probability, 1)

    def test_perplexity(self):
        with Model("builtin:stories", n_ctx=64) as model, tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "base.kld")
            with self.assertRaisesRegex(Error, "the text has [0-9]+ tokens; with windows of 64 at least 128 are needed"):
                model.perplexity(STORY)
            one = model.perplexity(self.TEXT, n_window=16, n_chunks=2, save=file)
            self.assertEqual((one.n_window, one.n_chunks, one.n_scored, one.kld), (16, 2, 14, 0))
            self.assertAlmostEqual(math.log(one.ppl), one.nll)
            same = model.perplexity(base=file)
            self.assertEqual((same.nll, same.same_top), (one.nll, 1))
            self.assertAlmostEqual(same.ratio, 1, 3)
            self.assertEqual((len(same.kld_quantile), sorted(same.p_diff_quantile)), (13, same.p_diff_quantile))
            self.assertEqual(model.context, [])

    def test_imatrix(self):
        with Model("builtin:stories", n_ctx=64) as model, tempfile.TemporaryDirectory() as folder:
            file, both, own = (os.path.join(folder, name) for name in ("a.gguf", "both.gguf", "own.gguf"))
            before = model.context
            one = model.imatrix(file, self.TEXT, n_window=16, n_chunks=2, name="a text")
            self.assertEqual((one.n_window, one.n_chunks, one.n_all, one.n_scored), (16, 2, 2, 14))
            self.assertAlmostEqual(one.ppl, model.perplexity(self.TEXT, n_window=16, n_chunks=2).ppl)
            more = model.imatrix(both, self.TEXT, n_window=16, first_chunk=2, n_chunks=1, add=[file], perplexity=False)
            self.assertEqual((more.n_chunks, more.n_all, more.ppl), (1, 3, 0))
            self.assertEqual(model.imatrix(own, n_window=16, n_chunks=1, n_directions=0).n_chunks, 1)
            self.assertEqual(model.context, before)
            with self.assertRaisesRegex(Error, "n_directions must be -1, or a multiple of 4"):
                model.imatrix(own, self.TEXT, n_directions=3)
            with self.assertRaisesRegex(Error, "none.gguf"):
                model.imatrix(own, self.TEXT, add=["none.gguf"])

    def test_verify(self):
        with Model("builtin:stories", n_ctx=64) as model:
            found = model.verify(tokens=model.tokenize(STORY))
            self.assertEqual((found.departed, found.whole_departs, found.n_nan), ([], False, 0))
            self.assertGreater(found.n_nodes, 20)
            with self.assertRaisesRegex(Error, "did you mean 'cpu'"):
                model.verify("cup")

    def test_descriptions(self):
        what = Model.describe("builtin:stories")
        self.assertEqual((what["architecture"], what["n_layer"], what["has_chat"]), ("llama", 5, False))
        self.assertEqual(sum(t["bytes"] for t in what["types"].values()), what["bytes"])
        with Model("builtin:stories", n_ctx=128, n_threads=2) as model:
            plan = Model.plan("builtin:stories", n_ctx=128, n_threads=2)
            self.assertEqual((plan["n_ctx"], plan["placement"]), (model.n_ctx, model.placement))
        self.assertEqual([d["name"] for d in plan["devices"]][:1], ["cpu"])
        self.assertLess(Model.plan("builtin:stories", n_ctx=64)["devices"][0]["cache"], plan["devices"][0]["cache"])
        with self.assertRaisesRegex(TypeError, "n_context"):
            Model.plan("builtin:stories", n_context=4)


class Async(unittest.TestCase):
    def test_calls(self):
        async def main():
            async with await AsyncModel.open("builtin:stories", n_parallel=2) as model:
                want = model.model.generate(STORY, seed=1, max_tokens=20)
                texts = await asyncio.gather(*[model.generate(STORY, seed=1, max_tokens=20) for _ in range(3)])
                self.assertEqual(texts, [want] * 3)

                async def pieces():
                    return "".join([piece async for piece in model.stream(STORY, seed=1, max_tokens=20)])

                self.assertEqual(await asyncio.gather(pieces(), pieces(), model.generate(STORY, seed=1, max_tokens=20)), [want] * 3)
                self.assertEqual([result.text for result in await model.batch([STORY] * 2, seed=1, max_tokens=20)], [want] * 2)
                self.assertLess((await model.logprobs(STORY, want)).total, 0)
                text = Measuring.TEXT
                self.assertEqual(await model.perplexity(text, n_window=16, n_chunks=1), model.model.perplexity(text, n_window=16, n_chunks=1))
                self.assertEqual((await model.verify(tokens=[1, 2])).departed, [])
                with tempfile.TemporaryDirectory() as folder:
                    self.assertEqual((await model.imatrix(os.path.join(folder, "a"), text, n_window=16, n_chunks=1)).n_chunks, 1)
                with self.assertRaisesRegex(TypeError, "did you mean"):
                    await model.generate(STORY, sed=1)

        asyncio.run(main())

    def test_texts_run_together(self):
        async def main():
            async with await AsyncModel.open("builtin:stories", n_parallel=3) as model:
                want = model.model.generate(STORY, seed=1, max_tokens=20)
                first, second = (model.stream(STORY, seed=k, ignore_end=True) for k in range(2))
                for _ in range(5):  # neither waits for the end of the other
                    self.assertTrue(await first.__anext__() and await second.__anext__())
                self.assertEqual(await model.generate(STORY, seed=1, max_tokens=20), want)
                with self.assertRaisesRegex(Error, "has 3002 tokens"):
                    await model.generate("The fox. " * 1000)
                with self.assertRaisesRegex(TypeError, "did you mean"):
                    await model.generate(STORY, sed=1)
                alone = asyncio.ensure_future(model.logprobs(STORY, want))  # waits for those that run
                later = asyncio.ensure_future(model.generate(STORY, seed=1, max_tokens=20))  # waits for its turn behind it
                await asyncio.sleep(0.05)
                self.assertFalse(alone.done() or later.done())
                await first.aclose()
                self.assertTrue(await second.__anext__())
                await second.aclose()
                self.assertLess((await alone).total, 0)
                self.assertEqual(await later, want)
                ended = [asyncio.ensure_future(model.generate(STORY, ignore_end=True)) for _ in range(5)]
                await asyncio.sleep(0.05)
                model.model.cancel()
                for one in ended:
                    with self.assertRaises(Cancelled):
                        await one

        asyncio.run(main())

    def test_open_streams(self):
        """A task does not wait for itself, and closing the model ends streams, read or not."""

        async def streams(model):
            return [model.stream(STORY, ignore_end=True), model.stream_answer([{"role": "user", "content": "Hi"}], ignore_end=True)]

        async def main(n_parallel):
            for k in range(2):
                async with await AsyncModel.open("builtin:chat", n_parallel=n_parallel) as model:
                    stream = (await streams(model))[k]
                    await stream.__anext__()
                    if n_parallel == 1 or k == 1:
                        for call in (model.generate(STORY), model.batch([STORY]), model.stream(STORY).__anext__()):
                            with self.assertRaisesRegex(Error, "this task has begun a stream"):
                                await call
                        others = asyncio.ensure_future(model.generate(STORY, max_tokens=2))  # waits
                        await asyncio.sleep(0.02)
                        self.assertFalse(others.done())
                        await stream.aclose()
                        self.assertTrue(await others)
                        stream = (await streams(model))[k]
                        await stream.__anext__()
                    await asyncio.wait_for(model.close(), 20)
                    with self.assertRaisesRegex(Error, "closed"):
                        async for _ in stream:
                            pass

                    async def read():
                        async for _ in (await streams(model))[k]:
                            pass

                    model = await AsyncModel.open("builtin:chat", n_parallel=n_parallel)
                    readers = [asyncio.ensure_future(read()) for _ in range(2)]
                    await asyncio.sleep(0.05)
                    await asyncio.wait_for(model.close(), 20)
                    for reader in readers:
                        with self.assertRaisesRegex(Error, "closed"):
                            await reader
                with self.assertRaisesRegex(ZeroDivisionError, "of the user"):
                    async with await AsyncModel.open("builtin:chat", n_parallel=n_parallel) as model:
                        stream = (await streams(model))[k]
                        await stream.__anext__()
                        raise ZeroDivisionError("of the user")

        for n_parallel in (1, 2):
            asyncio.run(main(n_parallel))

    def test_tasks_that_have_not_begun(self):
        async def main():
            async with await AsyncModel.open("builtin:stories", n_parallel=2) as model:
                async with model._alone():  # a call that takes long
                    with self.assertRaises(asyncio.TimeoutError):
                        await asyncio.wait_for(model.generate(STORY), 0.05)
                self.assertTrue(await model.generate(STORY, max_tokens=3))

        asyncio.run(main())

    def test_cancelled_while_it_closes(self):
        async def main():
            async with await AsyncModel.open("builtin:stories", n_parallel=2) as model:
                stream = model.stream(STORY, ignore_end=True)
                await stream.__anext__()
                step = Jobs.step
                with mock.patch.object(Jobs, "step", lambda jobs: (time.sleep(0.1), step(jobs))[1]):
                    closing = asyncio.ensure_future(stream.aclose())
                    await asyncio.sleep(0.02)
                    closing.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await closing

        asyncio.run(main())

    def test_a_warning_that_is_an_error(self):
        async def main():
            async with await AsyncModel.open("builtin:stories", n_parallel=2) as model:
                other = asyncio.ensure_future(model.generate(STORY, max_tokens=100, ignore_end=True))
                await asyncio.sleep(0.01)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    with self.assertRaises(UserWarning):
                        await model.generate(STORY, json_schema={"typ": "object"})
                self.assertTrue(await other)

        asyncio.run(main())

    def test_a_loop_that_ends(self):
        model = Model("builtin:stories", n_parallel=2)

        async def main():
            shared = AsyncModel(model)
            tasks = [asyncio.ensure_future(shared.generate(STORY, ignore_end=True)) for _ in range(3)]
            await asyncio.sleep(0.05)
            return tasks

        tasks = asyncio.run(main())
        self.assertTrue(all(task.cancelled() for task in tasks))
        self.assertTrue(model.generate(STORY, max_tokens=3))
        model.close()

    def test_closed(self):
        async def pieces(model):
            return [piece async for piece in model.stream(STORY, max_tokens=4)]

        async def main():
            async with await AsyncModel.open("builtin:stories") as model:
                opened, closed = asyncio.ensure_future(model.generate(STORY, max_tokens=4)), asyncio.ensure_future(model.close())
                await asyncio.gather(opened, closed, model.close())
                await model.close()
                for call in (model.generate(STORY), pieces(model), model.batch([STORY])):
                    with self.assertRaisesRegex(Error, "the model is closed"):
                        await call
            with self.assertRaisesRegex(Error, "the model is closed"):
                model.model.tokenize(STORY)

        asyncio.run(main())

    def test_answers(self):
        async def main():
            async with AsyncModel(Model("builtin:chat")) as model:
                text = await model.chat("Who are you?", temperature=0)
                self.assertEqual((await model.answer("Who are you?", temperature=0)).content, text)
                self.assertEqual("".join([p async for p in model.stream_chat("Who are you?", temperature=0)]), text)
                self.assertEqual("".join([p.text async for p in model.stream_answer("Who are you?", temperature=0)]), text)

        asyncio.run(main())

    def test_cancelled_tasks(self):
        async def endless(model):
            while True:
                await model.generate(STORY, ignore_end=True)

        async def stream(model):
            while True:
                async for _ in model.stream(STORY, ignore_end=True):
                    pass

        async def main():
            async with await AsyncModel.open("builtin:stories") as model:
                want = await model.generate(STORY, seed=1, max_tokens=20)
                for use in (endless, stream):
                    task, waiting = asyncio.ensure_future(use(model)), asyncio.ensure_future(use(model))
                    await asyncio.sleep(0.05)
                    for one in (waiting, task):
                        one.cancel()
                        with self.assertRaises(asyncio.CancelledError):
                            await one
                    self.assertEqual(await asyncio.wait_for(model.generate(STORY, seed=1, max_tokens=20), 20), want)
                task = asyncio.ensure_future(endless(model))
                await asyncio.sleep(0.05)
                while not task.done():
                    model.model.cancel()
                    await asyncio.sleep(0.001)
                self.assertIsInstance(task.exception(), Cancelled)

        asyncio.run(main())

    def test_tasks_cancelled_twice(self):
        """However often a task is cancelled, it ends when its call has ended, and asyncio has nothing to complain about."""
        complaints = []

        class Slow(Model):
            """Needs to be told several times."""

            running = 0
            told = 0

            def generate(self, prompt, **options):
                self.running, self.told = self.running + 1, 0
                try:
                    return super().generate(prompt, **options)
                finally:
                    self.running -= 1

            def cancel(self):
                self.told += 1
                if self.told > 4:
                    super().cancel()

        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context["message"]))
            async with AsyncModel(Slow("builtin:stories")) as model:
                task = asyncio.ensure_future(model.generate(STORY, ignore_end=True))
                while not model.model.running:
                    await asyncio.sleep(0.001)
                for _ in range(3):
                    task.cancel()
                    await asyncio.sleep(0)
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(model.model.running, 0)
                model.model.told = 4  # so that closing the model ends what a fault leaves running
            gc.collect()
            await asyncio.sleep(0)

        asyncio.run(main())
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    unittest.main()
