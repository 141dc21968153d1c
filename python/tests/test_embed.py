"""Vectors of texts, and scores of rerankers. encoder_file, of the project's tests/e2e, makes the models."""
import asyncio
import os
import sys
import tempfile
import unittest

from common import needs_numpy
from ggml_lite import AsyncModel, Error, Model, Ranked, Status

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
try:
    import encoder_file
except ImportError:
    encoder_file = None

TEXTS = ["the fox sleeps", "a cat", "the king eats a big cake in the garden.", "", "dog", "a cat"]
PROMPTS = [("sentence_transformers.prompt.query", "string", "the fox "), ("sentence_transformers.prompt.passage", "string", "a cat ")]


class WithFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if encoder_file is None:
            raise unittest.SkipTest("encoder_file.py is missing")
        cls.folder = tempfile.TemporaryDirectory()
        cls.embedder = encoder_file.encoder(os.path.join(cls.folder.name, "e.gguf"), keys=PROMPTS)
        cls.reranker = encoder_file.encoder(os.path.join(cls.folder.name, "r.gguf"), 2, ["LABEL_0"])
        cls.classifier = encoder_file.encoder(os.path.join(cls.folder.name, "c.gguf"), 3, ["good", "bad", "neither"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class Scores(WithFiles):
    def test_rerank(self):
        with Model(self.reranker) as model:
            self.assertEqual(model.pooling, "rank")
            ranking = model.rerank("a dog", TEXTS)
            self.assertIsInstance(ranking[0], Ranked)
            self.assertEqual(sorted(index for index, _ in ranking), list(range(len(TEXTS))))
            self.assertEqual([r.score for r in ranking], sorted((r.score for r in ranking), reverse=True))
            equal = [index for index, _ in ranking if TEXTS[index] == "a cat"]
            self.assertEqual(equal, [1, 5])
            for r in ranking:
                self.assertEqual(model.rerank("a dog", [TEXTS[r.document]]), [Ranked(0, r.score)])
            self.assertEqual(model.rerank("a dog", TEXTS, top_n=2), ranking[:2])
            self.assertEqual(model.rerank("a dog", iter(TEXTS)), ranking)
            self.assertNotEqual(model.rerank("the king", TEXTS), ranking)
            self.assertEqual(model.rerank("a dog", []), [])
            for arguments in (("a dog", "a cat"), ("a dog", [5]), (b"a dog", TEXTS)):
                with self.assertRaises(TypeError):
                    model.rerank(*arguments)
            with self.assertRaises(ValueError):
                model.rerank("a dog", TEXTS, top_n=0)
            with self.assertRaisesRegex(Error, r"documents\[1\] has [0-9]+ tokens.*truncate"):
                model.rerank("a dog", ["a cat", "a cat " * 40])
            cut = model.rerank("a dog", ["a cat " * 40, "a cat " * 50], truncate=True)
            self.assertEqual(cut[0].score, cut[1].score)
        with Model("builtin:stories") as model, self.assertRaises(Error) as caught:
            model.rerank("a", ["b"])
        self.assertEqual(caught.exception.status, Status.UNSUPPORTED)
        with Model(self.classifier) as model, self.assertRaisesRegex(Error, r"a classifier with 3 labels \(good, bad, neither\).* with the pooling rank, texts get all 3 scores"):
            model.rerank("a", ["b"])

    def test_rerank_async(self):
        async def main():
            async with await AsyncModel.open(self.reranker) as model:
                return await model.rerank("a dog", TEXTS, top_n=3)

        with Model(self.reranker) as model:
            self.assertEqual(asyncio.run(main()), model.rerank("a dog", TEXTS)[:3])


@needs_numpy
class Vectors(WithFiles):
    def test_lists(self):
        import numpy as np

        with Model(self.embedder, embeddings=True) as model:
            self.assertEqual(model.pooling, "mean")
            several = model.embed(TEXTS)
            self.assertEqual((several.shape, several.dtype), ((len(TEXTS), model.n_embd), np.float32))
            for text, row in zip(TEXTS, several):
                np.testing.assert_array_equal(model.embed(text), row)
            np.testing.assert_array_equal(model.embed(TEXTS * 60), np.tile(several, (60, 1)))
            self.assertEqual(model.embed([]).shape, (0, model.n_embd))
            self.assertEqual(model.embed([], dimensions=8).shape, (0, 8))
            plain = model.embed(TEXTS, normalize=False)
            np.testing.assert_allclose(plain / np.linalg.norm(plain, axis=1, keepdims=True), several, atol=1e-6)
            short = model.embed(TEXTS, dimensions=8)
            np.testing.assert_allclose(short, plain[:, :8] / np.linalg.norm(plain[:, :8], axis=1, keepdims=True), atol=1e-6)
            with self.assertRaisesRegex(Error, "4000 dimensions"):
                model.embed(TEXTS, dimensions=4000)
            for more in ({"dimensions": 0}, {"dimensions": -1}):
                with self.assertRaises(ValueError):
                    model.embed(TEXTS, **more)
            for wrong in (b"a cat", 5):
                with self.assertRaises(TypeError):
                    model.embed(wrong)
            with self.assertRaisesRegex(TypeError, r"texts\[1\] is int, not a str"):
                model.embed(["a", 5])
            long = "cat " * 60
            with self.assertRaisesRegex(Error, r"texts\[1\] has 62 tokens.*48 \(the context: n_ctx, or -c N\).*truncate"):
                model.embed(["a", long])
            np.testing.assert_array_equal(model.embed(["a", long], truncate=True), model.embed(["a", "cat " * 46]))
            read = model.embed("a [SEP] fox")
            np.testing.assert_array_equal(read, model.embed("a[SEP]fox"))
            self.assertLess(float(np.dot(read, model.embed("a [SEP] fox", parse_special=False))), 0.9999)
        shorter = encoder_file.encoder(os.path.join(self.folder.name, "s.gguf"), keys=[("sentence_transformers.max_seq_length", "u32", 20)])
        with Model(shorter, embeddings=True) as model:
            self.assertEqual(model.n_ctx, 20)
            with self.assertRaisesRegex(Error, "the text has 62 tokens.*20 .the max_seq_length of the model's settings; n_ctx, or -c N, sets another limit"):
                model.embed(long)
            cut = model.embed(long, truncate=True)
        with Model(shorter, embeddings=True, n_ctx=48) as model:
            np.testing.assert_array_equal(cut, model.embed("cat " * 18))

    def test_keys_of_files(self):
        """truncate_dim, and texts without tokens of tables of vectors."""
        import numpy as np

        cut = encoder_file.encoder(os.path.join(self.folder.name, "d.gguf"), keys=[("sentence_transformers.truncate_dim", "u32", 5)])
        with Model(self.embedder, embeddings=True) as model, Model(cut, embeddings=True) as few:
            self.assertEqual((few.n_embd, few.embed([]).shape), (5, (0, 5)))
            np.testing.assert_array_equal(few.embed(TEXTS), model.embed(TEXTS, dimensions=5))
            np.testing.assert_array_equal(few.embed(TEXTS, dimensions=9), model.embed(TEXTS, dimensions=9))
        table = encoder_file.table(os.path.join(self.folder.name, "t.gguf"))
        with Model(table, embeddings=True) as model:
            rows = model.embed(["", "a fox", "%%"])
            np.testing.assert_array_equal(rows[::2], np.zeros((2, model.n_embd)))
            np.testing.assert_array_equal(rows[1], model.embed("a fox"))
        with Model(table, pooling="none") as model:
            with self.assertRaisesRegex(Error, r"texts\[1\] has no tokens"):
                model.embed(["a fox", ""])
            self.assertEqual([x.shape for x in model.embed(["a fox", "cat"])], [(2, 32), (1, 32)])

    def test_copies(self):
        """Several copies of the model give the bits of one, in order; also of the measures."""
        import numpy as np

        with Model(self.embedder, embeddings=True) as model, Model(self.embedder, embeddings=True, device="cpu,cpu1", split="copies") as copies:
            self.assertEqual(copies.placement, "copies on cpu,cpu1")
            np.testing.assert_array_equal(copies.embed(TEXTS * 200), model.embed(TEXTS * 200))
            self.assertEqual(copies.embed([]).shape, (0, model.n_embd))
        text = "Once upon a time there was a dog. He had a red ball. " * 20
        with Model("builtin:stories", n_ctx=64) as model, Model("builtin:stories", n_ctx=64, device="cpu,cpu1,cpu2", split="copies") as copies:
            self.assertEqual(copies.perplexity(text), model.perplexity(text))

    def test_prompts(self):
        import numpy as np

        with Model(self.embedder, embeddings=True) as model:
            np.testing.assert_array_equal(model.embed("sleeps", prompt_name="query"), model.embed("the fox sleeps"))
            np.testing.assert_array_equal(model.embed(["sleeps"], prompt_name="document"), model.embed(["a cat sleeps"]))
            with self.assertRaisesRegex(Error, "no prompt 'mine'; its prompts are query, passage") as caught:
                model.embed("sleeps", prompt_name="mine")
            self.assertEqual(caught.exception.status, Status.NOT_FOUND)
        with Model("builtin:stories", embeddings=True) as model:
            np.testing.assert_array_equal(model.embed("a fox", prompt_name="query"), model.embed("a fox"))

    def test_tasks(self):
        import numpy as np

        files = [encoder_file.adapter(os.path.join(self.folder.name, f"{k}.gguf"), t, p, k)
                 for k, (t, p) in enumerate({"retrieval.query": "the fox ", "separation": ""}.items())]
        with Model(self.embedder, embeddings=True, adapters=files[:1]) as model:
            alone = model.embed("sleeps", prompt_name="query")
        with Model(self.embedder, embeddings=True, adapters=files) as model:
            np.testing.assert_array_equal(model.embed("sleeps", prompt_name="query"), alone)
            np.testing.assert_array_equal(model.embed("sleeps", task="retrieval.query"), alone)
            self.assertFalse(np.array_equal(model.embed("sleeps", task="separation"), model.embed("sleeps")))
            with self.assertRaisesRegex(Error, "no adapter for the task 'mine'; those that were opened are for "):
                model.embed("sleeps", task="mine")

    def test_poolings(self):
        import numpy as np

        with Model(self.embedder, embeddings=True, pooling="none") as model:
            tokens = model.embed(TEXTS)
            self.assertEqual([t.shape for t in tokens], [(len(model.tokenize(text)), model.n_embd) for text in TEXTS])
            np.testing.assert_array_equal(model.embed(TEXTS[0]), tokens[0])
            self.assertEqual(model.embed([]), [])
        with Model(self.embedder, embeddings=True) as model:
            np.testing.assert_allclose(model.embed(TEXTS, normalize=False), [t.mean(axis=0) for t in tokens], atol=1e-5)
        with Model(self.classifier) as model:
            scores = model.embed(TEXTS)
            self.assertEqual(scores.shape, (len(TEXTS), 3))
            np.testing.assert_array_equal(model.embed(TEXTS[1]), scores[1])
            self.assertEqual(model.metadata("bert.classifier.output_labels"), ["good", "bad", "neither"])
        with Model("builtin:stories", embeddings=True, pooling="none") as model:
            self.assertEqual(model.embed("A fox").shape, (len(model.tokenize("A fox")), model.n_embd))

    def test_async(self):
        import numpy as np

        async def main():
            async with await AsyncModel.open(self.embedder, embeddings=True) as model:
                return await asyncio.gather(model.embed(TEXTS), model.embed("sleeps", prompt_name="query", dimensions=8))

        several, one = asyncio.run(main())
        with Model(self.embedder, embeddings=True) as model:
            np.testing.assert_array_equal(several, model.embed(TEXTS))
            np.testing.assert_array_equal(one, model.embed("the fox sleeps", dimensions=8))


if __name__ == "__main__":
    unittest.main()
