"""What calls return: runs, messages, results of batches, scores."""
from __future__ import annotations

import ctypes as c
import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from . import _abi
from ._errors import Error, Status

if TYPE_CHECKING:
    from ._model import Model

FINISH = ("none", "end", "stop", "length", "context", "cancelled", "error")  # as llm_finish


class Run(NamedTuple):
    """What a generation did."""

    finish: str  # "end", "stop", "length", "context" (it is full), "cancelled", "error"; "none": the stream was closed before its end
    stop: Optional[int]  # the index of the stop string that ended the text
    n_reused: int  # tokens of the prompt that the model had read already
    n_prompt: int  # tokens of the prompt that it has read now
    n_generated: int  # the token that ends a text is not counted
    n_guessed: int  # tokens that were guessed (draft, lookup); 0 for a text of a batch
    n_right: int  # guesses that were right
    prompt_seconds: float = 0.0  # of the prompt, and
    seconds: float = 0.0  # of the text; 0 for a text of a batch
    n_shifts: int = 0  # how often the context was full (shift)
    incomplete: bool = False  # by its grammar or schema, the text is not complete
    repack_seconds: float = 0.0  # the part of `seconds` in which weights were prepared (repack_late)


def run_of(info: Any) -> Run:
    """The run that a RunInfo or a Job tells of."""
    finish = FINISH[info.finish] if 0 <= info.finish < len(FINISH) else "error"
    more: Any = [getattr(info, name, 0) for name in Run._fields[5:]]
    return Run(finish, info.stop if info.stop >= 0 else None, info.n_reused, info.n_prompt, info.n_generated, *more)


class Word(NamedTuple):
    """A word of a piece of speech, with the signs beside it."""

    start: float  # seconds
    end: float
    text: str  # " And"
    probability: float


class Piece(NamedTuple):
    """A piece of speech that was written down."""

    start: float  # seconds
    end: float
    text: str
    language: str  # "en"; "": the model is not told which
    tokens: List[int]  # with those that stand for times
    logprob: float  # the mean of its window's tokens
    no_speech: float  # the probability that its window is silence
    temperature: float  # at which it was written
    words: List[Word]  # of transcribe(.., words=True)
    compression_ratio: float = 0.0  # bytes of its window's text, divided by those that zlib makes of it; large: it repeats itself


class Result(NamedTuple):
    """One text of a batch."""

    text: str
    run: Run
    error: Optional[Error]  # why it failed, which ends no other text; None: it did not


class Perplexity(NamedTuple):
    """How well a model predicts a text: numbers of llm_perplexity_result."""

    n_window: int
    n_chunks: int
    n_scored: int  # tokens
    nll: float  # mean of -log p(token)
    ppl: float  # exp of it
    ppl_error: float  # its standard error
    kld: float  # with base: mean of the divergence from it
    kld_error: float
    same_top: float  # with base: share of tokens with the same likeliest token
    # what follows is with base, too
    same_top_error: float
    ppl_base: float
    ppl_base_error: float
    ln_ratio: float  # ln(ppl / ppl_base)
    ln_ratio_error: float
    ratio: float
    ratio_error: float
    difference: float
    difference_error: float
    correlation: float  # between the -log p(token) of both
    p_diff: float  # p(token) less that of the base: the mean
    p_diff_error: float
    p_rms: float  # and the root of the mean of squares
    p_rms_error: float
    kld_quantile: List[float]  # over the tokens, at 0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1
    p_diff_quantile: List[float]


class Imatrix(NamedTuple):
    """What imatrix() has collected."""

    n_window: int
    n_chunks: int  # windows of the text
    n_all: int  # and of the files that were added
    n_scored: int  # tokens
    ppl: float  # of the text; 0: not computed
    ppl_error: float
    n_missed: int  # weights for which nothing can be collected


class Node(NamedTuple):
    """A node of a model's graph whose result departs from double precision."""

    text: str
    origin: str  # the line of the descriptor
    what: str  # "value"; of a cache "keys" or "values"
    departure: float  # in limits of what rounding can explain
    token: int
    element: int  # the worst element's place
    got: float
    want: float


class Verified(NamedTuple):
    """What verify() found out. It is right if departed is empty and whole_departs is False."""

    departed: List[Node]
    n_nodes: int
    n_refused: int  # nodes that the device does not run, which were not compared
    n_nan: int  # logits that are no numbers in double precision, too
    worst: float  # the largest departure
    whole_departs: bool
    whole: float
    rounding: float


class TrainingReport(NamedTuple):
    """Where a training is, after a step."""

    step: int  # steps so far
    n_steps: int  # of all; 0: not known yet
    epoch: float  # how often it has seen all items
    loss: float  # of the step: the mean over tokens that count, in nats; of preferences, over pairs
    accuracy: Optional[float]  # of preferences: the share of pairs in which the chosen answer gained
    valid_loss: Optional[float]  # the same of the items that it is measured on; None: it was not measured after this step
    valid_accuracy: Optional[float]
    rate: float  # the learning rate
    norm: float  # the gradient's length before it was cut
    n_tokens: int  # that it has learned from
    seconds: float  # since the beginning, without time between calls
    speed: float  # tokens per second, of the step
    seconds_left: Optional[float]  # estimated; None: not known
    is_last: bool  # there is no further step


class TrainingFacts(NamedTuple):
    """What was opened for a training."""

    kind: str  # "text", "answers", "preferences", "matches" (texts that belong together) or "scores" (pairs of texts with a number)
    n_items: int  # to learn from: sequences,
    n_tokens: int  # their tokens,
    n_counted: int  # and those that count
    n_valid_items: int  # on which it is measured
    n_valid_tokens: int
    n_weights: int  # tensors that learn,
    n_numbers: int  # and their elements
    learn_bytes: int  # of these, their gradients, and what the optimizer remembers
    value_bytes: int  # of the values between operators
    model_bytes: int  # of weights that do not learn
    teacher_bytes: int
    memory_bytes: int  # of all these
    memory_left: int  # what the machine had free before; 0: not known
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_steps: int  # 0: not known before some steps have run
    rate: float
    n_draws: int  # what steps draw: sequences, pairs, or groups of texts
    n_valid_draws: int
    n_positions: int  # the context that the model was trained with before; 0: its file does not say
    writes: bool  # what learns goes on with texts


class Evaluation(NamedTuple):
    """How good a training is on what it does not learn from."""

    loss: float
    accuracy: Optional[float]  # of preferences and of matches


class Score(NamedTuple):
    """How probable a continuation is: for each of its tokens, the natural logarithm of its probability, and whether it is the likeliest."""

    tokens: List[int]
    logprobs: List[float]
    is_greedy: List[bool]

    @property
    def total(self) -> float:
        """The logarithm of the probability of the whole continuation."""
        return sum(self.logprobs)


class Choice(NamedTuple):
    """A label, and how probable it is in comparison with the others."""

    label: str
    probability: float  # its share of 1
    logprob: float  # the natural logarithm of the probability of its tokens
    n_tokens: int  # that count, with the end of the text if that does


class Ranked(NamedTuple):
    """A document's place in a ranking."""

    document: int  # its index in the list that was given
    score: float


class Part(NamedTuple):
    """A piece of an answer."""

    kind: str  # "content" or "reasoning"
    text: str


class Call(NamedTuple):
    """A call of a tool that the model asks for."""

    name: str
    arguments: Any  # a dict; the model's own text if that is no JSON
    id: str  # for the message that has the result, {"role": "tool", "tool_call_id": id, "content": ..}


class Message(Dict[str, Any]):
    """A model's answer, as OpenAI's dict: append it to the conversation as it is."""

    run: Optional[Run] = None  # what the generation did

    @property
    def content(self) -> str:
        """The text for the user; "": there is none."""
        return self.get("content") or ""

    @property
    def reasoning(self) -> str:
        """The model's thoughts; "": there are none."""
        return self.get("reasoning_content") or ""

    @property
    def tool_calls(self) -> List[Call]:
        """The calls of tools, with their arguments read."""
        calls = []
        for call in self.get("tool_calls") or []:
            arguments = call["function"]["arguments"]
            try:
                arguments = json.loads(arguments)
            except ValueError:
                pass
            calls.append(Call(call["function"]["name"], arguments, call["id"]))
        return calls


class Metadata(Mapping[str, Any]):
    """The keys of a model's file, and their values: texts, numbers, booleans, and lists of these. A value is read when it is asked for."""

    def __init__(self, model: Model):
        self._model = model

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str) or "\0" in key:
            raise KeyError(key)
        text, n = c.c_void_p(), c.c_size_t()
        try:
            with self._model._call() as handle:
                self._model._lib.llm_context_json(handle, key.encode(), c.byref(text), c.byref(n))
        except Error as error:
            if error.status == Status.NOT_FOUND:
                raise KeyError(key) from None
            raise
        return json.loads(_abi.taken_bytes(self._model._lib, text, n).decode("utf-8", "replace"))

    def _keys(self) -> List[str]:
        keys: List[str] = []
        n = c.c_size_t()
        with self._model._call() as handle:
            while True:
                key = self._model._lib.llm_context_key(handle, len(keys), c.byref(n))
                if not key:
                    return keys
                keys.append(c.string_at(key, n.value).decode("utf-8", "replace"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __repr__(self) -> str:
        return f"<{len(self)} keys of {self._model!r}>"
