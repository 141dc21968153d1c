"""Trainings: a model, or an adapter beside it, learns."""
from __future__ import annotations

import contextlib
import ctypes as c
import logging
import math
import os
import threading
from typing import Any, Callable, Iterator, List, Optional, Sequence, Type, TypeVar, Union

from . import _abi
from ._errors import Error, Status
from ._handle import Handle
from ._interrupt import interruptible
from ._open_params import Path
from ._opening import file_bytes, known_arguments
from ._options import elements, flag, number, text_bytes, whole
from ._results import Evaluation, TrainingFacts, TrainingReport

Texts = Union[str, Sequence[str]]
Files = Union[Path, Sequence[Path]]
Each = Callable[[TrainingReport], Optional[bool]]
Row = TypeVar("Row", TrainingFacts, TrainingReport)

# Arguments that other programs have, and what is here instead: the name of an argument, or words.
ELSEWHERE = {
    "model": "the path of the model is the first argument",
    "model_path": "the path of the model is the first argument",
    "files": "file",
    "dataset": "file",
    "train_dataset": "file",
    "train_file": "file",
    "valid": "valid_file",
    "eval_dataset": "valid_file",
    "r": "rank",
    "lora_r": "rank",
    "lora_alpha": "alpha",
    "use_dora": "dora",
    "target_modules": "matrix",
    "learning_rate": "rate",
    "lr": "rate",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "n_warmup",
    "num_train_epochs": "n_epochs",
    "epochs": "n_epochs",
    "max_steps": "n_steps",
    "steps": "n_steps",
    "max_seq_length": "n_ctx",
    "max_length": "n_ctx",
    "batch_size": "n_batch counts tokens, and n_seq sequences",
    "per_device_train_batch_size": "n_seq",
    "weight_decay": "decay",
    "adam_beta1": "beta1",
    "adam_beta2": "beta2",
    "adam_epsilon": "eps",
    "max_grad_norm": "max_norm",
    "beta": "dpo_beta",
    "temperature": "teacher_temp of a teacher, contrast_temp of texts that belong together",
    "matryoshka_dims": "dims",
    "loss": "losses of one's own are graphs of the C library",
    "output_dir": "run() and write() take the file",
    "save_steps": "run() takes save_every",
    "eval_steps": "run() takes valid_every",
    "device": "trainings run on the CPU",
}


def known(value: float) -> Optional[float]:
    """None in place of NaN, with which the library says that there is no such number."""
    return None if math.isnan(value) else value


def report_of(r: Any) -> TrainingReport:
    optional: Any = {name: known(getattr(r, name)) for name in ("accuracy", "valid_loss", "valid_accuracy", "seconds_left")}
    return row_of(TrainingReport, r)._replace(**optional)


def row_of(kind: Type[Row], struct: Any) -> Row:
    return kind(*(getattr(struct, name) for name in kind._fields))


def strings(name: str, value: Any, to_bytes: Callable[[str, Any], bytes]) -> Any:
    """An array of C strings, of one or of several."""
    given = [value] if isinstance(value, (str, bytes, os.PathLike)) else elements(name, value, "a str, a path or a list")
    texts = [to_bytes(name, text) for text in given]
    return (c.c_char_p * len(texts))(*texts)


class Callbacks:
    """Python functions that the library calls. What one raises stops the call, and is raised by it."""

    def __init__(self) -> None:
        self.raised: List[BaseException] = []
        self.is_stopped = False

    def go_on(self, function: Optional[Callable[..., Any]], *arguments: Any) -> bool:
        try:
            return not self.is_stopped and not self.raised and (function is None or function(*arguments) is not False)
        except BaseException as error:
            self.raised.append(error)
            return False

    def stop(self) -> None:
        self.is_stopped = True

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        try:
            yield
        except Error:
            if self.raised:
                raise self.raised[0] from None
            raise
        if self.raised:
            raise self.raised[0]


class Training(Handle):
    """A training that was opened: what learns, what it learns from, and the steps so far. It has its own copy of what learns; a Model of the
    same file does not change.

    Threads may share a training: a call waits until the one before has ended."""

    _noun = "training"
    _busy = "this thread is in a call of the training, whose callbacks, and a signal's handler, cannot make another one"
    _no_copy = "a Training cannot be copied or pickled; save() and resume() do that by a file"
    _close_call, _cancel_call = "llm_training_close", "llm_training_cancel"

    @known_arguments("Training", ELSEWHERE)
    def __init__(
        self,
        path: Path,
        file: Files = (),  # texts, JSON lines or JSON, all of one kind: a path, or several
        *,
        valid_file: Files = (),  # from which it does not learn, but on which it is measured
        valid_share: float = 0.0,  # without valid_file: the share of the items that is measured; 0: a twentieth, of at least 20 and for at most 64; -1: none
        valid_max: int = 0,  # most tokens of a measurement; 0: so many that ten take about a tenth of the time; -1: all
        separator: Optional[str] = None,  # of the documents of a text file; None: a file is a document
        all_tokens: bool = False,  # of conversations all tokens count, not only those of answers
        drop_long: bool = False,  # items of more than n_ctx tokens are left out; else they are cut
        chat_template: Optional[str] = None,  # a text (Jinja), or the name of a built-in one
        arch: Optional[str] = None,  # a descriptor's file, or the name of a built-in one
        round_to: Optional[str] = None,  # a type to which its matrices are rounded while they learn, such as "q4_0"
        lora: bool = False,  # a new adapter learns, and the model stays as it is
        rank: int = 0,  # of the adapter; 0: 16
        alpha: float = 0.0,  # of the adapter; 0: 2 * rank
        rs: bool = False,  # of a new adapter: its change counts alpha / sqrt(rank) times
        dora: bool = False,  # of a new adapter: it also learns the length of each row that it changes
        matrix: Texts = (),  # patterns of the matrices that the adapter changes; none: all of the layers
        adapter: Optional[Path] = None,  # an adapter's file that goes on learning, in place of a new one
        learn: Texts = (),  # patterns of the names of the weights that learn, such as "blk.*"; none: all of the model, or of the adapter
        draft: bool = False,  # only the model's layers that guess tokens ahead learn: the probabilities that the model itself gives
        draft_depth: int = 0,  # guesses in a chain; 0: 2, or one of each layer
        draft_model: Optional[Path] = None,  # a model that guesses for this one, from rows of its layers (EAGLE), learns so
        n_ctx: int = 0,  # most tokens of a sequence; 0: the model's own, but at most 1024
        n_batch: int = 0,  # most tokens of a step; 0: 2048, and 16384 of texts that belong together
        n_seq: int = 0,  # most conversations, answers, pairs or groups of a step; 0: 8, but 32 groups; of texts, as many as n_batch has room for
        n_ubatch: int = 0,  # most tokens that are computed at once; 0: 512, or what the longest sequence needs
        n_steps: int = 0,  # 0: by n_epochs, or minutes
        n_epochs: float = 0.0,  # how often it sees all items; 0: 3 times conversations, 1 time others
        minutes: float = 0.0,  # it ends after so many; 0: no limit
        rate: float = 0.0,  # the largest learning rate; 0: 2e-4 of an adapter, 2e-5 of a model; a tenth of it with preferences
        schedule: Optional[str] = None,  # of the rate: "cosine" (None: this one), "linear" or "constant"
        rate_end: float = 0.0,  # which share of it is left at the end
        rate_hold: float = 0.0,  # for which share of the steps after the warm-up it stays at its largest
        n_warmup: int = 0,  # steps in which the rate grows from 0; 0: a thirtieth of all; -1: none
        beta1: float = 0.0,  # of AdamW; 0: 0.9
        beta2: float = 0.0,  # of AdamW; 0: 0.999
        eps: float = 0.0,  # of AdamW; 0: 1e-8
        decay: float = 0.0,  # of matrices
        optimizer: Optional[str] = None,  # "adamw" (None: this one), "sgd" or "muon"
        optimizer_bits: int = 0,  # of each number that it remembers of a matrix: 32 (0: these) or 8
        bf16: bool = False,  # products are computed in bf16, with sums in f32; what learns stays f32
        max_norm: float = 0.0,  # longer gradients are cut to this length; 0: 1; -1: none is cut
        n_parts: int = 0,  # of a step, whose gradients are made one by one; 0: one
        seed: int = 0,  # of the order of the items, and of a new adapter
        memory: int = 0,  # bytes for values that gradients need: what is more is computed twice; 0: no limit
        n_threads: int = 0,  # 0: one for each physical core
        dpo_beta: float = 0.0,  # of preferences: how far the model may go from what it was; 0: 0.1
        teacher: Optional[Path] = None,  # a model with the same vocabulary, whose probabilities it learns
        teacher_share: float = 0.0,  # how much these count; the rest is the text itself; 0: all
        teacher_temp: float = 0.0,  # the temperature of both models' probabilities; 0: 1
        record: Optional[Path] = None,  # a file for what the teacher says, which is learned from in its place, also by others as `teacher`
        record_top: int = 0,  # the likeliest tokens that it has after each token; 0: 32
        contrast_temp: float = 0.0,  # of texts that belong together: what similarities are divided by; 0: 0.05
        dims: Sequence[int] = (),  # vectors that are cut to so many numbers shall be good, too
        pooling: Optional[str] = None,  # "mean", "last" or "cls": how the vectors of tokens become one; None: as the model's file says
        mmproj: Optional[Path] = None,  # the model's eye or ear: conversations may have pictures or sounds
        mmproj_out: Optional[Path] = None,  # where it is written whenever the model is; needed if weights of it learn
        progress: Optional[Callable[[str, int, int], Optional[bool]]] = None,  # what is done, how much of it, and of how much; False: stop
        note: Optional[Callable[[str], object]] = None,  # gets sentences, such as how many items were cut; None: logging, as "ggml_lite"
    ):
        """Opens a model, as Model() does, and what it learns from."""
        self._begin_handle()
        calls = Callbacks()
        say = note or logging.getLogger("ggml_lite").info
        lists = {
            "file": strings("file", file, file_bytes),
            "valid_file": strings("valid_file", valid_file, file_bytes),
            "matrix": strings("matrix", matrix, text_bytes),
            "learn": strings("learn", learn, text_bytes),
        }
        dim = [whole("dims", n, 1, 64) for n in elements("dims", dims, "a list of int")]
        p = _abi.TrainingParams(
            size=c.sizeof(_abi.TrainingParams),
            file=lists["file"],
            n_files=len(lists["file"]),
            valid_file=lists["valid_file"],
            n_valid_files=len(lists["valid_file"]),
            matrix=lists["matrix"],
            n_matrices=len(lists["matrix"]),
            learn=lists["learn"],
            n_learn=len(lists["learn"]),
            valid_share=number("valid_share", valid_share),
            valid_max=whole("valid_max", valid_max, -1, 64),
            separator=None if separator is None else text_bytes("separator", separator),
            all_tokens=flag("all_tokens", all_tokens),
            drop_long=flag("drop_long", drop_long),
            chat_template=None if chat_template is None else text_bytes("chat_template", chat_template),
            arch=None if arch is None else text_bytes("arch", arch),
            round_to=None if round_to is None else text_bytes("round_to", round_to),
            lora=flag("lora", lora),
            rank=whole("rank", rank, 0, 64),
            alpha=number("alpha", alpha),
            rs=flag("rs", rs),
            dora=flag("dora", dora),
            adapter=None if adapter is None else file_bytes("adapter", adapter),
            draft=flag("draft", draft),
            draft_depth=whole("draft_depth", draft_depth, 0, 64),
            draft_model=None if draft_model is None else file_bytes("draft_model", draft_model),
            n_ctx=whole("n_ctx", n_ctx, 0, 64),
            n_batch=whole("n_batch", n_batch, 0, 64),
            n_seq=whole("n_seq", n_seq, 0, 64),
            n_ubatch=whole("n_ubatch", n_ubatch, 0, 64),
            n_steps=whole("n_steps", n_steps, 0, 64),
            n_epochs=number("n_epochs", n_epochs),
            minutes=number("minutes", minutes),
            rate=number("rate", rate),
            schedule=None if schedule is None else text_bytes("schedule", schedule),
            rate_end=number("rate_end", rate_end),
            rate_hold=number("rate_hold", rate_hold),
            n_warmup=whole("n_warmup", n_warmup, -1, 64),
            beta1=number("beta1", beta1),
            beta2=number("beta2", beta2),
            eps=number("eps", eps),
            decay=number("decay", decay),
            optimizer=None if optimizer is None else text_bytes("optimizer", optimizer),
            optimizer_bits=whole("optimizer_bits", optimizer_bits, 0, 32),
            bf16=flag("bf16", bf16),
            max_norm=number("max_norm", max_norm),
            n_parts=whole("n_parts", n_parts, 0, 64),
            seed=whole("seed", seed, 0, 65),
            memory=whole("memory", memory, 0, 64),
            n_threads=whole("n_threads", n_threads, 0, 32),
            dpo_beta=number("dpo_beta", dpo_beta),
            teacher=None if teacher is None else file_bytes("teacher", teacher),
            teacher_share=number("teacher_share", teacher_share),
            teacher_temp=number("teacher_temp", teacher_temp),
            record=None if record is None else file_bytes("record", record),
            record_top=whole("record_top", record_top, 0, 64),
            contrast_temp=number("contrast_temp", contrast_temp),
            dim=(c.c_int64 * len(dim))(*dim),
            n_dims=len(dim),
            pooling=None if pooling is None else text_bytes("pooling", pooling),
            mmproj=None if mmproj is None else file_bytes("mmproj", mmproj),
            mmproj_out=None if mmproj_out is None else file_bytes("mmproj_out", mmproj_out),
            progress=_abi.NamedProgress(lambda _user, what, done, total: calls.go_on(progress, what.decode("utf-8", "replace"), done, total)),
            note=_abi.Note(lambda _user, text: calls.go_on(lambda: say(text.decode("utf-8", "replace")) and None) and None),
        )
        model = file_bytes("path", path)
        self._params = p  # whose callbacks are called as long as the training lives
        try:
            with calls.raising():
                interruptible(lambda: self._open(model, p), calls.stop)
        except BaseException:
            self.close()  # if the last call of a callback has raised something
            raise

    def _open(self, path: bytes, p: _abi.TrainingParams) -> None:
        handle = c.c_void_p()
        self._lib.llm_training_open(c.byref(handle), path, c.byref(p))
        self._handle = handle.value  # here, so that nothing that the main thread gets can lose it

    def __repr__(self) -> str:
        if self._handle is None:
            return "<ggml_lite.Training, closed>"
        return f"<ggml_lite.Training of {self.facts.kind}, after step {len(self.past)}>"

    # --- steps ------------------------------------------------------------------------------------

    def step(self) -> TrainingReport:
        """Learns from the next items. Error with Status.LIMIT: the training has diverged, or the first loss is not finite; with Status.USAGE: the last step was done before."""
        r = _abi.TrainingReport(size=c.sizeof(_abi.TrainingReport))
        self._wait(lambda handle: self._lib.llm_training_step(handle, c.byref(r)))
        return report_of(r)

    def run(
        self,
        out: Optional[Path] = None,  # where the model or adapter is written at the end, and with each checkpoint
        *,
        save: Optional[Path] = None,  # where the state is saved with each checkpoint; it is removed at the end
        save_every: int = 0,  # steps between checkpoints; 0: by minutes
        save_minutes: float = 0.0,  # between checkpoints; 0: 5
        valid_every: int = 0,  # steps between measurements; 0: a tenth of all, and at the end; -1: only at the end
        best: bool = False,  # `out` is written when a measurement is better than all before it, and at no other time
        patience: int = 0,  # end after so many measurements in a row that are no better than the best; 0: go on
        f32: bool = False,  # as for write()
        each: Optional[Each] = None,  # called after each step, with its report; False ends the training there
        written: Optional[Each] = None,  # called when `out` was written
    ) -> None:
        """Runs all steps that are left, with measurements and checkpoints. If it is cancelled, or `each` returns False, it writes a checkpoint
        first, and raises Cancelled. Within `each` and `written`, only past and facts may be asked for."""
        calls = Callbacks()

        def caller(function: Optional[Each]) -> Any:
            return _abi.ReportFn(lambda _user, r: calls.go_on(function, report_of(r.contents)))

        p = _abi.TrainingRunParams(
            size=c.sizeof(_abi.TrainingRunParams),
            out=None if out is None else file_bytes("out", out),
            save=None if save is None else file_bytes("save", save),
            save_every=whole("save_every", save_every, 0, 64),
            save_minutes=number("save_minutes", save_minutes),
            valid_every=whole("valid_every", valid_every, -1, 64),
            best=flag("best", best),
            patience=whole("patience", patience, 0, 64),
            f32=flag("f32", f32),
            each=caller(each),
            written=caller(written),
        )
        with calls.raising():
            self._wait(lambda handle: self._lib.llm_training_run(handle, c.byref(p)))

    def evaluate(self) -> Evaluation:
        """Measures it on what it does not learn from. Error with Status.NOT_FOUND: there is nothing."""
        loss, accuracy = c.c_double(), c.c_double()
        self._wait(lambda handle: self._lib.llm_training_evaluate(handle, c.byref(loss), c.byref(accuracy)))
        return Evaluation(loss.value, known(accuracy.value))

    def cancel(self) -> None:
        """Ends what another thread runs: its call raises Cancelled; run() first ends its step, and writes a checkpoint."""
        super().cancel()

    # --- files ------------------------------------------------------------------------------------

    def write(self, path: Path, *, f32: bool = False) -> None:
        """Writes the model, or the adapter, as it is now. Weights of a model have the types of its file, or f32; those of an adapter are f32."""
        file, as_f32 = file_bytes("path", path), flag("f32", f32)
        self._wait(lambda handle: self._lib.llm_training_write(handle, file, as_f32))

    def save(self, path: Path) -> None:
        """Saves all that it takes to go on after this step with the same bits."""
        file = file_bytes("path", path)
        self._wait(lambda handle: self._lib.llm_training_save(handle, file))

    def resume(self, path: Path) -> None:
        """Goes on from there, in a training that was opened with the same arguments and files. Error with Status.USAGE says which are others."""
        file = file_bytes("path", path)
        self._wait(lambda handle: self._lib.llm_training_resume(handle, file))

    # --- what it is -------------------------------------------------------------------------------

    @property
    def past(self) -> List[TrainingReport]:
        """What the steps so far reported, also those before it was resumed."""
        r = _abi.TrainingReport(size=c.sizeof(_abi.TrainingReport))
        reports: List[TrainingReport] = []
        with self._look() as handle:
            while self._lib.llm_training_past(handle, len(reports), c.byref(r)):
                reports.append(report_of(r))
        return reports

    @property
    def facts(self) -> TrainingFacts:
        """What was opened: what learns, how much it learns from, and the memory that takes."""
        f = _abi.TrainingFacts(size=c.sizeof(_abi.TrainingFacts))
        with self._look() as handle:
            self._lib.llm_training_describe(handle, c.byref(f))
        return row_of(TrainingFacts, f)._replace(kind=f.kind.decode())

    # --- calls ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _look(self) -> Iterator[int]:
        """The handle, for calls that change nothing, which callbacks may make, too."""
        if self._inside_thread == threading.get_ident() and self._handle is not None and not self._is_foreign():
            yield self._handle
            return
        with self._call() as handle:
            yield handle
