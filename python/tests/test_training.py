"""Trainings: what learns, files, interruptions, mistakes."""
import copy
import gc
import inspect
import json
import math
import os
import pickle
import signal
import tempfile
import threading
import time
import unittest
from pathlib import Path

from common import write_adapter
from ggml_lite import Cancelled, Error, Evaluation, Model, Status, Training, TrainingFacts, TrainingReport
from ggml_lite._training import ELSEWHERE

WHO, WHAT = ("Tom", "Lily", "Ben", "Anna"), ("ball", "dog", "hat")
ARGUMENTS = {"lora": True, "rate": 4e-3, "n_threads": 2}


class Trainings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.chats = self.folder / "chats.jsonl"
        with open(self.chats, "w", encoding="utf-8") as file:
            for i in range(40):
                answer = {"role": "assistant", "content": f"{WHO[i % 4]} likes the {WHAT[i % 3]}."}
                file.write(json.dumps({"messages": [{"role": "user", "content": f"Who is {WHO[i % 4]}?"}, answer]}) + "\n")

        self.pairs = self.folder / "pairs.jsonl"
        row = {"chosen": ", there was a dog.", "rejected": " 7 7 7"}
        self.pairs.write_text("".join(json.dumps({"prompt": f"Once upon a time {i}", **row}) + "\n" for i in range(40)), encoding="utf-8")

    def open(self, **more):
        return Training("builtin:chat", self.chats, **{**ARGUMENTS, **more})

    def bytes_of(self, name):
        return (self.folder / name).read_bytes()


class Learning(Trainings):
    def test_an_adapter(self):
        with self.open(n_epochs=6) as t:
            facts = t.facts
            self.assertIsInstance(facts, TrainingFacts)
            self.assertEqual((facts.kind, facts.n_items, facts.n_valid_items, facts.rate), ("answers", 38, 2, 4e-3))
            self.assertTrue(0 < facts.n_counted < facts.n_tokens and facts.n_weights > 10 and facts.learn_bytes > 0)
            self.assertTrue(facts.writes and facts.n_positions > 0)
            before = t.evaluate()
            self.assertIsInstance(before, Evaluation)
            self.assertIsNone(before.accuracy)
            reports = []
            t.run(self.folder / "style.gguf", each=reports.append, valid_every=10)
            self.assertEqual(t.past, reports)
            self.assertEqual([r.step for r in reports], list(range(1, facts.n_steps + 1)))
            last = reports[-1]
            self.assertIsInstance(last, TrainingReport)
            self.assertTrue(last.is_last and not reports[0].is_last and last.loss < 0.2 * reports[0].loss)
            self.assertTrue(all(math.isfinite(x) for x in (last.epoch, last.rate, last.norm, last.seconds, last.speed)))
            self.assertEqual([r.step for r in reports if r.valid_loss is not None], [10, 20, 29])
            self.assertIsNone(last.accuracy)
            self.assertLess(t.evaluate().loss, before.loss)
            self.assertAlmostEqual(t.evaluate().loss, last.valid_loss)
        with Model("builtin:chat", adapters=[self.folder / "style.gguf"]) as model:
            self.assertIn("likes the", model.chat("Who is Lily?", temperature=0, max_tokens=9))

    def test_lengths_of_rows(self):
        with self.open(n_steps=1) as plain, self.open(n_steps=6, dora=True, rank=4) as t:
            self.assertEqual((plain.facts.n_weights, t.facts.n_weights), (70, 105))
            self.assertEqual(t.evaluate().loss, plain.evaluate().loss)
            t.run(self.folder / "sized.gguf")
            self.assertLess(t.evaluate().loss, plain.evaluate().loss)
        with Training("builtin:chat", self.chats, adapter=self.folder / "sized.gguf", n_steps=1) as t:
            self.assertEqual(t.facts.n_weights, 105)

    def test_a_model(self):
        with Training("builtin:chat", [str(self.chats)], rate=1e-3, n_steps=4, learn="blk.*", schedule="linear", n_warmup=-1) as t:
            first = t.step()
            while not t.step().is_last:
                pass
            self.assertLess(t.past[-1].loss, first.loss)
            t.write(self.folder / "model.gguf")
            t.write(self.folder / "f32.gguf", f32=True)
            with self.assertRaisesRegex(Error, "there is no step after step 4") as caught:
                t.step()
            self.assertEqual(caught.exception.status, Status.USAGE)
        self.assertGreater(len(self.bytes_of("f32.gguf")), len(self.bytes_of("model.gguf")))
        with Model(self.folder / "model.gguf") as model:
            self.assertTrue(model.generate("Once", max_tokens=2, seed=1))

    def test_preferences_and_teachers(self):
        with Training("builtin:stories", self.pairs, lora=True, rate=2e-3, n_steps=3, dpo_beta=0.2, valid_file=[self.pairs]) as t:
            t.run()
            self.assertEqual(t.facts.kind, "preferences")
            self.assertEqual([r.accuracy for r in t.past], [0, 1, 1])
            self.assertEqual(t.past[-1].valid_accuracy, 1)
            self.assertEqual(t.evaluate().accuracy, 1)
        with self.open(teacher="builtin:chat", teacher_share=0.5, teacher_temp=2, n_steps=1) as t:
            self.assertGreater(t.step().loss, 0)

    def test_pictures(self):
        (self.folder / "square.ppm").write_bytes(b"P6 40 40 255\n" + bytes(range(240)) * 20)
        talks, out, eye = (self.folder / name for name in ("talks.jsonl", "out.gguf", "eye.gguf"))
        turns = [{"role": "user", "content": "<image>What is in the picture?"}, {"role": "assistant", "content": "A square."}]
        talks.write_text(json.dumps({"messages": turns, "images": ["square.ppm"]}), encoding="utf-8")
        arguments = {"mmproj": "builtin:shapes-eye", "n_steps": 2, "n_threads": 2}
        with Training("builtin:shapes", talks, **arguments) as t, self.assertRaisesRegex(Error, "mmproj_out"):
            t.run(out)
        with Training("builtin:shapes", talks, mmproj_out=eye, **arguments) as t:
            t.step()
            t.run(out)
            first = eye.read_bytes()
            t.write(self.folder / "again.gguf")
        self.assertEqual(eye.read_bytes(), first)
        with Model(out, mmproj=eye) as m:
            self.assertTrue(m.sees)
        with self.assertRaisesRegex(Error, r"mmproj \(--mmproj\), which is not given"):
            self.open(n_steps=1, lora=False, mmproj_out=eye)

    def test_layers_that_guess(self):
        with self.assertRaisesRegex(Error, "no layers that guess"):
            Training("builtin:stories", self.chats, chat_template="chatml", draft=True)
        with self.assertRaisesRegex(Error, "it must be 0 without draft"):
            self.open(draft_depth=2)
        with self.assertRaisesRegex(Error, "the model gives no guess"):
            Training("builtin:chat", self.chats, draft_model="builtin:chat")

    def test_best_and_patience(self):
        valid, written = self.folder / "valid.jsonl", []
        valid.write_text('{"prompt": "Who is Tom?", "completion": "No. No. No."}\n', encoding="utf-8")
        with self.open(valid_file=valid, n_steps=60, n_warmup=-1) as t:
            t.run(self.folder / "best.gguf", best=True, patience=2, valid_every=1, written=written.append)
            losses = [r.valid_loss for r in t.past]
            self.assertLess(len(losses), 60)
            self.assertEqual(losses.index(min(losses)), len(losses) - 3)
            self.assertEqual(written[-1].valid_loss, min(losses))
        with Training("builtin:chat", self.chats, adapter=self.folder / "best.gguf", valid_file=str(valid), n_steps=1) as t:
            self.assertAlmostEqual(t.evaluate().loss, min(losses), places=5)

    def test_progress_and_notes(self):
        seen, notes = [], []
        with Training("builtin:chat", self.pairs, lora=True, n_ctx=12, progress=lambda *what: seen.append(what), note=notes.append):
            self.assertEqual(seen[-1], ("probabilities before the training", 80, 80))
            self.assertTrue(any("were cut" in note for note in notes), notes)


class Interrupting(Trainings):
    def test_the_same_bits(self):
        with self.open(n_steps=8, seed=2**64 - 1) as t:
            for _ in range(8):
                t.step()
            t.write(self.folder / "whole")
        with self.open(n_steps=8, seed=2**64 - 1, n_threads=1) as t:
            for _ in range(3):
                t.step()
            t.save(self.folder / "state")
        with self.open(n_steps=8, seed=2**64 - 1) as t:
            t.resume(self.folder / "state")
            self.assertEqual(len(t.past), 3)
            t.run(self.folder / "resumed")
            self.assertEqual(self.bytes_of("resumed"), self.bytes_of("whole"))
        with self.open(n_steps=8, seed=2**64 - 2) as t:
            with self.assertRaisesRegex(Error, rf"seed \(-s\) = {2**64 - 1}, and now it is {2**64 - 2}"):
                t.resume(self.folder / "state")

    def test_false_ends_a_run(self):
        out, save = self.folder / "out", self.folder / "save"
        with self.open(n_steps=6) as t:
            t.run(self.folder / "whole")
        with self.open(n_steps=6) as t:
            with self.assertRaises(Cancelled):
                t.run(out, save=save, each=lambda r: r.step < 3)
            self.assertEqual(len(t.past), 3)
        with self.open(n_steps=6) as t:
            t.resume(save)
            t.run(out, save=save, save_every=1)
        self.assertEqual(self.bytes_of("out"), self.bytes_of("whole"))
        self.assertFalse(save.exists())

    def test_exceptions_of_callbacks(self):
        def fail(*_):
            raise KeyError("mine")

        for name in ("progress", "note"):
            with self.assertRaises(KeyError):
                Training("builtin:chat", self.pairs, lora=True, n_ctx=12, **{name: fail})
        with self.assertRaises(Cancelled):
            Training("builtin:chat", self.pairs, lora=True, progress=lambda *_: False)
        with self.open(n_steps=3) as t:
            for name in ("each", "written"):
                with self.assertRaises(KeyError):
                    t.run(self.folder / "out", save_every=1, **{name: fail})
            t.run(self.folder / "out")
            self.assertEqual(len(t.past), 3)

    def test_within_a_callback(self):
        seen = []
        with self.open(n_steps=2) as t:

            def each(report):
                seen.append((t.past[-1], t.facts.n_steps))
                with self.assertRaisesRegex(Error, "callbacks"):
                    t.step()
                with self.assertRaisesRegex(Error, "callbacks"):
                    t.close()

            t.run(each=each)
            self.assertEqual(seen, [(r, 2) for r in t.past])

    def test_cancel_from_another_thread(self):
        with self.open(n_steps=100000) as t:
            begun, failed = threading.Event(), []

            def run():
                try:
                    t.run(save=self.folder / "save", each=lambda _: begun.set())
                except Error as error:
                    failed.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            begun.wait(60)
            t.cancel()
            thread.join(60)
            self.assertIsInstance(failed[0], Cancelled)
            self.assertTrue((self.folder / "save").exists())

    def test_close_from_another_thread(self):
        t = self.open(n_steps=100000)
        begun, failed = threading.Event(), []

        def run():
            try:
                t.run(each=lambda _: begun.set())
            except Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        begun.wait(60)
        t.close()
        thread.join(60)
        self.assertEqual(len(failed), 1)

    def test_threads_go_on_during_a_step(self):
        """The lock of the interpreter is not held."""
        with self.open(n_steps=12) as t:
            counted, ended = [0], threading.Event()

            def count():
                while not ended.is_set():
                    counted[0] += 1
                    time.sleep(0)

            thread = threading.Thread(target=count)
            thread.start()
            inside = []
            while not t.past or not t.past[-1].is_last:
                before = counted[0]
                t.step()
                inside.append(counted[0] - before)
            ended.set()
            thread.join()
            self.assertGreater(max(inside), 10)

    @unittest.skipUnless(hasattr(signal, "setitimer"), "there are no timers")
    def test_ctrl_c(self):
        with self.open(n_steps=100000) as t:
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
            self.addCleanup(signal.signal, signal.SIGALRM, signal.SIG_DFL)
            with self.assertRaises(KeyboardInterrupt):
                t.run(self.folder / "out", save=self.folder / "save", each=lambda r: r.step != 2 or signal.setitimer(signal.ITIMER_REAL, 0.02) or True)
            self.assertTrue((self.folder / "out").exists() and (self.folder / "save").exists())
            n = len(t.past)
            self.assertGreaterEqual(n, 2)
            self.assertEqual(t.step().step, n + 1)


class Mistakes(Trainings):
    def test_arguments(self):
        for name, value in (("rate", "high"), ("n_steps", 1.5), ("lora", 1), ("separator", 5), ("matrix", [5]), ("seed", True)):
            with self.assertRaisesRegex(TypeError, name):
                self.open(**{name: value})
        for name, value in (("n_batch", -5), ("seed", -1), ("teacher", "a\0b"), ("learn", "a\0b"), ("n_steps", 2**63)):
            with self.assertRaisesRegex(ValueError, name):
                self.open(**{name: value})
        with self.assertRaisesRegex(TypeError, "unknown argument of Training 'learning_rate'; did you mean 'rate'"):
            self.open(learning_rate=1e-4)
        with self.assertRaisesRegex(TypeError, "unknown argument of Training 'schedul'; did you mean 'schedule'"):
            self.open(schedul="linear")
        with self.assertRaisesRegex(TypeError, "run\\(\\) takes save_every"):
            self.open(save_steps=5)
        known = inspect.signature(Training).parameters
        for name, text in ELSEWHERE.items():
            self.assertNotIn(name, known)
            self.assertTrue(text in known or " " in text, text)
        with self.open(rank=None, schedule=None, valid_file=None) as t:  # None: the default
            for wrong in ({"save_every": -1}, {"valid_every": -2}):
                with self.assertRaises(ValueError):
                    t.run(**wrong)

    def test_errors(self):
        with self.assertRaisesRegex(Error, "blk.99") as caught:
            self.open(matrix="blk.99.*")
        self.assertEqual(caught.exception.status, Status.NOT_FOUND)
        with self.assertRaisesRegex(Error, "needs a file"):
            Training("builtin:chat")
        bad = self.folder / "bad.jsonl"
        bad.write_text('{"text": "a"}\nhello\n', encoding="utf-8")
        with self.assertRaisesRegex(Error, "bad.jsonl:2:1: "):
            Training("builtin:chat", bad)
        with self.open(valid_share=-1, n_steps=1) as t:
            with self.assertRaises(Error) as caught:
                t.evaluate()
            self.assertEqual(caught.exception.status, Status.NOT_FOUND)
            for call in (t.write, t.save, t.run):
                with self.assertRaisesRegex(Error, "folder does not exist"):
                    call(self.folder / "none" / "file")
            with self.assertRaises(Error):
                t.resume(self.chats)
            self.assertEqual(t.past, [])

    def test_closed(self):
        t = self.open()
        self.assertIn("answers, after step 0", repr(t))
        t.close()
        t.close()
        t.cancel()
        self.assertIn("closed", repr(t))
        for call in (t.step, t.run, t.evaluate, lambda: t.past, lambda: t.facts):
            with self.assertRaisesRegex(Error, "the training is closed"):
                call()
        with self.open() as t:
            for function in (copy.copy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be copied"):
                    function(t)
            with self.assertRaisesRegex(TypeError, "is open already"):
                t.__init__("builtin:chat", self.chats)
        del t
        gc.collect()

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_after_fork(self):
        with self.open() as t:
            child = os.fork()
            if child == 0:
                try:
                    t.step()
                    os._exit(1)
                except Error as error:
                    os._exit(0 if "another process" in str(error) else 2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            t.step()

    def test_adapters_of_others(self):
        write_adapter(self.folder / "adapter.gguf")
        with Training("builtin:chat", self.chats, adapter=self.folder / "adapter.gguf", n_steps=1) as t:
            t.run(self.folder / "out")
            self.assertEqual(t.facts.n_weights, 2)


if __name__ == "__main__":
    unittest.main()
