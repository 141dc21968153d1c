"""The adapter for lm-evaluation-harness, examples/lm_eval_adapter.py, without lm-eval."""
import unittest
from types import SimpleNamespace

from ggml_lite import Error, Model

try:
    from lm_eval_adapter import GgmlLite
except ImportError:
    GgmlLite = None


def requests(*args):
    return [SimpleNamespace(args=a) for a in args]


@unittest.skipUnless(GgmlLite, "examples/lm_eval_adapter.py is not in PYTHONPATH")
class Adapter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.adapter = GgmlLite("builtin:stories", n_ctx=48, batch_size="3")
        cls.model = cls.adapter.model

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_loglikelihood(self):
        text = self.model.generate("Once upon a time", max_tokens=4, temperature=0)
        pairs = [("Once upon a time", text), ("Once upon a time", " stone"), ("Once upon a time ", "stone"), ("", "Once"), ("The fox. " * 50, " He")]
        got = self.adapter.loglikelihood(requests(*pairs))
        self.assertEqual(got[0][1], True)
        self.assertAlmostEqual(got[0][0], self.model.logprobs("Once upon a time", text).total)
        self.assertLess(got[1][0], got[0][0])
        self.assertEqual(got[1:3], [got[1]] * 2)  # the space belongs to the continuation
        self.assertAlmostEqual(got[3][0], self.model.logprobs([self.model.bos], "Once").total)
        self.assertLess(got[4][0], 0)

    def test_rolling(self):
        short, long = "Once upon a time, there was a fox.", "Once upon a time, there was a fox. He sat down by the pond. " * 6
        got = self.adapter.loglikelihood_rolling(requests((short,), (long,), ("",)))
        self.assertAlmostEqual(got[0], self.model.logprobs([self.model.bos], short).total)
        self.assertEqual(got[2], 0)
        ids, n = self.model.tokenize(long, add_special=False), 0
        for context, continuation in self.adapter._windows(long):
            self.assertEqual(continuation, ids[n : n + len(continuation)])
            self.assertLessEqual(len(context) + len(continuation), self.model.n_ctx + 1)
            n += len(continuation)
        self.assertEqual(n, len(ids))
        with Model("builtin:stories", n_ctx=512) as large:  # with more before them, most tokens are as likely or likelier
            whole = GgmlLite(large).loglikelihood_rolling(requests((long,)))[0]
        self.assertLess(abs(whole - got[1]), abs(whole) / 4)

    def test_generate_until(self):
        greedy = {"until": ["."], "do_sample": False, "max_gen_toks": 20}
        got = self.adapter.generate_until(requests(("Once upon a time", greedy), ("The fox. " * 50, {**greedy, "until": "."})))
        self.assertEqual(got[0], self.model.generate("Once upon a time", temperature=0, stop=".", max_tokens=20))
        self.assertEqual(len(got), 2)
        with self.assertRaises(Error):
            self.adapter.generate_until(requests(("x", {**greedy, "do_sample": True, "top_p": 7})))


if __name__ == "__main__":
    unittest.main()
