"""A model: generate, stream, chat, answer, batch, tokenize, logits, embed."""
from __future__ import annotations

import contextlib
import ctypes as c
import json
import logging
import re
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, SupportsIndex, Tuple, Union, cast

from . import _abi
from ._elsewhere import Hints
from ._embed import Embeds, numpy_for
from ._errors import Error, Status
from ._handle import Handle
from ._interrupt import interruptible
from ._jobs import Batch, Job, Jobs
from ._measure import Measures
from ._notes import warn, warn_of, warn_of_notes
from ._open_params import Opening, Path
from ._opening import file_bytes, in_arguments, known_arguments, open_params
from ._options import Options, elements, flag, generate_defaults, generate_params, number, text_bytes, whole
from ._pictures import Sees
from ._results import Choice, Message, Metadata, Result, Run, Score, run_of
from ._speech import Hears
from ._stream import Answer, Stream
from ._threads import Mark, this_thread

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

    Array = numpy.typing.NDArray[numpy.float32]

Prompt = Union[str, Iterable[SupportsIndex]]
Messages = Union[str, Sequence[Mapping[str, Any]]]
Tools = Sequence[Mapping[str, Any]]
ROWS = 256  # of logits, which are computed by one call


class Model(Measures, Embeds, Hears, Sees, Hints, Handle):
    """A model that was opened, with one context: the tokens that it has read and written. Each call keeps the longest beginning that its
    prompt has in common with them, so a conversation that goes on is cheap.

    Threads may share a model: a call waits until the one before has ended, and a stream has ended when it is closed. batch() generates
    several texts at the same time."""

    _noun = "model"
    _busy = "this thread is in a call of the model, which a signal's handler cannot use now"
    _no_copy = "a Model cannot be copied or pickled; open it again"
    _close_call, _cancel_call = "llm_close", "llm_cancel"

    @known_arguments("Model")
    def __init__(self, path: Union[Path, Model], **how: Unpack[Opening]):
        """Opens a GGUF file, a folder, one of the models in the library, "builtin:stories" and "builtin:chat", or a repository of the Hugging
        Face Hub, "hf:USER/REPO" or "hf:USER/REPO:QUANT". Of a Model that is open: another context of it, which shares its file and, on the CPU, its
        weights, and has all else for itself: one generates while the other one embeds, each in its thread. They may be closed in any order.
        The arguments: ggml_lite.Opening."""
        n_parallel, chat_template = how.get("n_parallel"), how.get("chat_template")
        progress, note = how.get("progress"), how.get("note")
        self._begin_handle()
        self._turn = threading.Lock()  # held from the beginning of a generation to its end
        self._turn_thread: Optional[weakref.ReferenceType[Mark]] = None  # that has read the stream last
        self._jobs: Dict[Job, None] = {}  # that have not ended
        self._n_parallel = max(1, n_parallel or 0)
        self._shown: List[str] = []  # marks of the last conversation's pictures
        self._run = run_of(_empty_info())
        # None: it is that of the file, or a built-in one, whose text is not known here
        self._template = chat_template if chat_template and "{" in chat_template else None
        self._has_own_template = chat_template is not None
        raised: List[BaseException] = []
        stopped: List[bool] = []

        def on_progress(_user: Optional[int], done: int, total: int) -> bool:
            try:
                return not stopped and not raised and (progress is None or progress(done, total) is not False)
            except BaseException as error:
                raised.append(error)
                return False

        def on_note(_user: Optional[int], text: bytes) -> None:
            try:
                (note or logging.getLogger("ggml_lite").info)(text.decode("utf-8", "replace"))
            except BaseException as error:
                raised.append(error)

        p = open_params(how)
        p.progress, p.note = _abi.Progress(on_progress), _abi.Note(on_note)
        of = path if isinstance(path, Model) else file_bytes("path", cast(Path, path))
        try:
            interruptible(lambda: self._open(of, p), lambda: stopped.append(True))
        except Error as error:
            if raised:
                raise raised[0] from None
            if error.status is Status.USAGE:
                raise Error(error.status, in_arguments(str(error))) from None
            raise
        if raised:  # in the last call of on_progress or on_note
            self.close()
            raise raised[0]

    def _open(self, of: Union[bytes, Model], p: _abi.OpenParams) -> None:
        handle = c.c_void_p()
        if isinstance(of, Model):
            with of._kept() as other:
                self._lib.llm_open_beside(c.byref(handle), other, c.byref(p))
        else:
            self._lib.llm_open(c.byref(handle), of, c.byref(p))
        self._handle = handle.value  # here, so that nothing that the main thread gets can lose it
        facts = self._lib.llm_context_facts(handle).contents
        self._n_ctx: int = facts.n_ctx
        self._n_vocab: int = facts.n_vocab
        self._n_embd: int = facts.n_embd
        self._defaults = generate_defaults(self._lib, handle)

    @staticmethod
    def describe(path: Path, **arguments: Any) -> Dict[str, Any]:
        """What a model is: its name, architecture, number of parameters, bytes, layers and types of weights, by its file alone. The arguments
        are those of Model()."""
        return _Asked("llm_describe", path, arguments).facts

    @staticmethod
    def plan(path: Path, **arguments: Any) -> Dict[str, Any]:
        """Where Model(path, ..) would run the layers, and how many bytes of which memory it would take, without taking them."""
        return _Asked("llm_plan", path, arguments).facts

    @classmethod
    def from_repository(cls, repository: str, quant: Optional[str] = None, **arguments: Any) -> Model:
        """Opens a model of the Hugging Face Hub, "USER/REPO", which is downloaded unless it is in the cache. quant: which of its files, such as
        "Q4_K_M". Further arguments, such as token, offline and progress, are those of Model()."""
        return cls(f"hf:{repository}" + (f":{quant}" if quant else ""), **arguments)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<ggml_lite.Model, closed>"
        return f"<ggml_lite.Model {self.name or self.arch!r}, n_ctx={self.n_ctx}, on {self.placement}>"

    # --- what it is -------------------------------------------------------------------------------

    @property
    def n_ctx(self) -> int:
        """Most tokens of the context."""
        return self._n_ctx

    @property
    def n_vocab(self) -> int:
        """The length of a row of logits."""
        return self._n_vocab

    @property
    def n_embd(self) -> int:
        """The length of what embed() returns; 0: it was opened without embeddings."""
        return self._n_embd

    @property
    def name(self) -> Optional[str]:
        """The name in the file."""
        return cast(Optional[str], self.metadata("general.name"))

    @property
    def arch(self) -> Optional[str]:
        """The name of the architecture in the file."""
        return cast(Optional[str], self.metadata("general.architecture"))

    @property
    def placement(self) -> str:
        """Where the layers run, such as "cpu=12,vulkan0=20"."""
        with self._call() as handle:
            return _text(self._lib.llm_context_facts(handle).contents.placement) or ""

    @property
    def has_chat(self) -> bool:
        """True if there is a chat template."""
        with self._call() as handle:
            return bool(self._lib.llm_context_facts(handle).contents.has_chat)

    @property
    def bos(self) -> Optional[int]:
        """The token that begins a text."""
        with self._call() as handle:
            return _id(self._lib.llm_context_facts(handle).contents.bos)

    @property
    def eos(self) -> Optional[int]:
        """The token that ends a text. There may be others, too: is_end()."""
        with self._call() as handle:
            return _id(self._lib.llm_context_facts(handle).contents.eos)

    @property
    def last_run(self) -> Run:
        """What the last generation did."""
        return self._run

    def metadata(self, key: Optional[str] = None) -> Any:
        """The value of a key of the file, such as "general.license": a text, a number, a boolean or a list; None: there is no such key.
        Without a key: a mapping of all."""
        return Metadata(self) if key is None else Metadata(self).get(key)

    def set_adapter_scale(self, k: int, scale: float) -> None:
        """Changes how much of adapter k (0, 1, ..) is added to the weights, which stay as they are; control vectors are counted after the adapters. The context
        is empty afterwards."""
        given = whole("k", k, 0, 32), number("scale", scale)
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_set_adapter_scale(handle, *given))

    # --- text -------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> str:
        """Returns what the model writes after a prompt: a text, or tokens as they are. The options: ggml_lite.Options."""
        return self._whole(self.stream(prompt, **options))

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """The same, piece by piece: `for piece in model.stream("Once"):`. To stop early, close the stream."""
        return Stream(self, self._ids(prompt), generate_params(self._lib, self._defaults, options))

    def chat(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        variables: Optional[Mapping[str, Any]] = None,
        **options: Unpack[Options],
    ) -> str:
        """Returns the model's answer to a conversation, as the model wrote it: messages such as {"role": "user", "content": "Hi"},
        or the text of a user's only message. tools: what the model may call, in OpenAI's form. variables: further ones of the chat template."""
        return self._whole(self.stream_chat(messages, tools=tools, variables=variables, **options))

    def stream_chat(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        variables: Optional[Mapping[str, Any]] = None,
        **options: Unpack[Options],
    ) -> Stream:
        """The same, piece by piece."""
        ids = self.tokenize_chat(messages, tools=tools, variables=variables)
        return Stream(self, ids, generate_params(self._lib, self._defaults, options))

    def answer(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        tool_choice: Union[str, Mapping[str, Any], None] = None,
        variables: Optional[Mapping[str, Any]] = None,
        **options: Unpack[Options],
    ) -> Message:
        """Returns the answer to a conversation as a message, with its content, reasoning and calls of tools apart. tool_choice: "auto", "none",
        "required" (the answer is calls), or the name of a tool. The rest is as for chat()."""
        with self.stream_answer(messages, tools=tools, tool_choice=tool_choice, variables=variables, **options) as answer:
            for _ in answer:
                pass
        assert answer.message is not None
        return answer.message

    def stream_answer(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        tool_choice: Union[str, Mapping[str, Any], None] = None,
        variables: Optional[Mapping[str, Any]] = None,
        **options: Unpack[Options],
    ) -> Answer:
        """The same, piece by piece: content and reasoning. At the end, the stream's `message` is the whole one. Calls of the model
        but cancel() and close(), such as tokenize(), wait until the answer has been written, also those within the loop."""
        with self._call():  # raises Error if the model is closed
            pass
        talk = self._conversation(messages, tools, variables)
        if tool_choice is not None:
            talk["tool_choice"] = tool_choice
        return Answer(self, json.dumps(talk).encode(), self._params_with_text(options))

    def format_chat(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        variables: Optional[Mapping[str, Any]] = None,
        answer: bool = True,
    ) -> str:
        """The prompt that the chat template makes of a conversation. answer: it ends with the beginning of an answer."""
        return self._formatted(self._conversation(messages, tools, variables), answer)

    def tokenize_chat(
        self,
        messages: Messages,
        *,
        tools: Optional[Tools] = None,
        variables: Optional[Mapping[str, Any]] = None,
        answer: bool = True,
    ) -> List[int]:
        """The tokens of that prompt, in which what looks like a control token in a message is text. Warns of what the prompt does not show as it was
        given, such as a system message that stands in a user's."""
        more = _abi.Formatted()
        self._formatted(self._conversation(messages, tools, variables), answer, more)
        try:
            for note in c.string_at(more.notes).decode("utf-8", "replace").splitlines():
                warn_of(note)
            return list(more.id[: more.n_id])
        finally:
            self._lib.ggl_free(more.id)
            self._lib.ggl_free(more.notes)

    def _conversation(self, messages: Messages, tools: Optional[Tools], variables: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
        """What the library takes. Warns of what the template does not read."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        messages = list(elements("messages", messages, "a sequence of mappings", Mapping))
        for k, message in enumerate(messages):
            if not isinstance(message, Mapping):
                raise TypeError(f"messages[{k}] is {type(message).__name__}, not a mapping")
        copies = [dict(message) for message in messages]
        self._with_marks(copies)
        talk: Dict[str, Any] = {**(variables or {}), "messages": copies}
        if tools is not None:
            talk["tools"] = list(elements("tools", tools, "a sequence of mappings", Mapping))
        for name in [*(variables or {}), *(["tools"] if tools else [])]:
            if not self._template_reads(name, talk):
                more = ", so the model does not see them" if name == "tools" else ""
                warn(f"the model's chat template does not read '{name}'{more}")
        return talk

    def _template_reads(self, name: str, talk: Dict[str, Any]) -> bool:
        if not self._has_own_template and self._template is None:
            self._template = self.metadata("tokenizer.chat_template")
        if self._template is not None:
            return bool(re.search(rf"\b{re.escape(name)}\b" + (r"|\bfunctions\b" if name == "tools" else ""), self._template))
        return self._formatted(talk) != self._formatted({key: value for key, value in talk.items() if key != name})

    def _formatted(self, talk: Dict[str, Any], answer: bool = True, more: Optional[_abi.Formatted] = None) -> str:
        text, n = c.c_void_p(), c.c_size_t()
        conversation = json.dumps(talk).encode()
        if self.sees or self.hears:
            conversation = self._seen(conversation)
        with self._call() as handle:
            self._lib.llm_chat_format(handle, conversation, answer, c.byref(text), c.byref(n), c.byref(more) if more is not None else None)
        return _abi.taken_bytes(self._lib, text, n).decode("utf-8", "replace")

    # --- many texts -------------------------------------------------------------------------------

    def batch(self, prompts: Iterable[Union[Prompt, Mapping[str, Any]]], **options: Unpack[Options]) -> List[Result]:
        """Continues many prompts, n_parallel (of Model) of them at the same time. Each text is the one that generate() returns. A prompt with
        options of its own is a dict: {"prompt": .., "seed": 7}. A text that fails, such as one whose prompt is too long, has an `error`, and
        ends no other."""
        with self.stream_batch(prompts, **options) as batch:
            for _ in batch:
                pass
        return batch.results or []

    def stream_batch(self, prompts: Iterable[Union[Prompt, Mapping[str, Any]]], **options: Unpack[Options]) -> Batch:
        """The same, piece by piece: `for k, piece in model.stream_batch(prompts):`. At the end, the stream's `results` has the texts."""
        texts, params = [], []
        for given in elements("prompts", prompts, "a sequence of prompts", Mapping):
            own = dict(given) if isinstance(given, Mapping) else {"prompt": given}
            if "prompt" not in own:
                raise TypeError("a prompt with options needs 'prompt'")
            texts.append(self._text_or_ids(own.pop("prompt")))
            params.append(self._params_with_text({**options, **own}))
        return Batch(self, texts, params)

    def jobs(self) -> Jobs:
        """For prompts that come while others run: `with model.jobs() as jobs:`, then jobs.add(prompt, ..) and jobs.step()."""
        return Jobs(self)

    def _params_with_text(self, options: Mapping[str, Any]) -> _abi.GenerateParams:
        params = generate_params(self._lib, self._defaults, options)
        if params.is_empty:
            raise ValueError("max_tokens is 0, which only generate(), chat() and their streams take")
        return params

    # --- tokens -----------------------------------------------------------------------------------

    def tokenize(self, text: str, *, add_special: bool = True, read_special: bool = True) -> List[int]:
        """The tokens of a text. add_special: with those that the model wants around it, such as bos. read_special: text that spells a
        special token becomes it."""
        if not isinstance(text, str):
            raise TypeError(f"text is {type(text).__name__}, not a str")
        data = text.encode("utf-8")
        flags = _abi.ADD_SPECIAL * add_special | _abi.READ_SPECIAL * read_special
        ids, n = _abi.Ids(), c.c_size_t()
        with self._call() as handle:
            self._lib.llm_encode(handle, data, len(data), flags, c.byref(ids), c.byref(n))
        try:
            return list(ids[: n.value])
        finally:
            self._lib.ggl_free(ids)

    def detokenize(self, tokens: Iterable[SupportsIndex], *, show_special: bool = False) -> str:
        """The text of tokens, which the vocabulary has. Bytes that are no UTF-8 become U+FFFD. Rows of pictures and sounds in `context`, which
        are below 0, have no text."""
        array = _abi.array([whole("a token", token, -(1 << 31), 32) for token in elements("tokens", tokens, "a sequence of tokens")])
        text, n = c.c_void_p(), c.c_size_t()
        flags = _abi.SHOW_SPECIAL * show_special
        with self._call() as handle:
            self._lib.llm_decode(handle, array, len(array), flags, c.byref(text), c.byref(n))
        return _abi.taken_bytes(self._lib, text, n).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token, which may be a part of a character; b"" if there is no such token."""
        n = c.c_size_t()
        with self._call() as handle:
            text = self._lib.llm_token_bytes(handle, whole("token", token, -(1 << 31), 32), c.byref(n))
            return c.string_at(text, n.value) if text else b""

    def is_end(self, token: int) -> bool:
        """True if the token ends a text."""
        with self._call() as handle:
            return bool(self._lib.llm_token_is_end(handle, whole("token", token, -(1 << 31), 32)))

    # --- numbers ----------------------------------------------------------------------------------

    def logits(self, prompt: Prompt, *, first: int = 0, last: bool = False) -> Array:
        """The logits [n_tokens - first, n_vocab] after each token of a prompt, beginning with token `first`; last: [n_vocab], only after the
        last one. Tokens before these are not run again if the context has them. numpy is needed."""
        if last and first:
            raise ValueError(f"first is {first}, which last=True does not use; give one of them")
        np = numpy_for("logits()")
        ids = self._ids(prompt)
        array, n = _abi.array(ids), len(ids)
        if n == 0:
            raise ValueError("logits() needs at least one token")
        begin = n - 1 if last else whole("first", first, 0, 64)
        if begin >= n:
            raise ValueError(f"first is {first}, and the prompt has {n} tokens")
        rows: Array = np.empty((n - begin, self.n_vocab), np.float32)
        out = _abi.Floats()
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_truncate(handle, min(self._n_common(handle, ids), begin)))
            at = len(self.context)
            while at < n:
                has_rows = not last and at >= begin
                end = min(n, at + ROWS) if has_rows else n if last else begin
                part = (c.c_int32 * (end - at)).from_buffer(array, at * c.sizeof(c.c_int32))

                def run(handle: int) -> None:
                    self._lib.llm_eval(handle, part, len(part), has_rows, c.byref(out))
                    if has_rows or last:
                        c.memmove(rows[0 if last else at - begin :].ctypes.data, out, (len(part) if has_rows else 1) * rows.strides[0])

                self._wait(run)
                at = end
        return rows.reshape(-1) if last else rows

    def logprobs(self, prompt: Prompt, continuation: Prompt) -> Score:
        """How probable a continuation is after a prompt. The prompt is run once for all its continuations that follow one another. If both are
        texts, they become tokens together: a token with the end of the prompt and the beginning of the continuation counts as the latter's."""
        if isinstance(prompt, str) and isinstance(continuation, str):
            n, ids = self._ids_after(prompt, continuation) if continuation else (0, [])
        else:
            begin = self._ids(prompt)
            more = self.tokenize(continuation, add_special=False) if isinstance(continuation, str) else self._ids(continuation, "continuation")
            n, ids = len(begin), begin + more
        if not 0 < n < len(ids):
            raise ValueError("logprobs() needs at least one token of the prompt, and one of the continuation")
        first, rest = _abi.array(ids[:n]), _abi.array(ids[n:])
        logprob, greedy = (c.c_double * len(rest))(), (c.c_bool * len(rest))()
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_score(handle, first, len(first), rest, len(rest), logprob, greedy))
        return Score(list(rest), list(logprob), list(greedy))

    def choose(
        self,
        prompt: Union[str, Messages],
        labels: Iterable[str],
        *,
        per_token: bool = False,  # compares log-probabilities divided by the numbers of tokens
        with_end: bool = False,  # the text has to end after the label; so it is anyway if one label begins another
        variables: Optional[Mapping[str, Any]] = None,  # of the chat template, for messages
    ) -> List[Choice]:
        """Compares labels as continuations of a text, or as answers of a conversation (a list of messages): how probable each is, in the order
        of `labels`. Nothing is written. The prompt runs once, and n_parallel labels at the same time. The best one: max(.., key=lambda choice: choice.probability)"""
        names = list(elements("labels", labels, "a sequence of str"))
        given = [text_bytes(f"labels[{k}]", name) for k, name in enumerate(names)]
        chat = not isinstance(prompt, str)
        if not chat and variables is not None:
            raise ValueError("variables are for the chat template: give messages, not a text")
        asked = prompt.encode("utf-8") if isinstance(prompt, str) else json.dumps(self._conversation(prompt, None, variables)).encode()
        params = _abi.ChooseParams(size=c.sizeof(_abi.ChooseParams), chat=chat, per_token=flag("per_token", per_token), with_end=flag("with_end", with_end))
        found, n = (_abi.Choice * max(len(given), 1))(), len(given)
        data, sizes = (c.c_char_p * n)(*given), (c.c_size_t * n)(*map(len, given))
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_choose(handle, asked, len(asked), data, sizes, n, c.byref(params), found))
        return [Choice(name, one.probability, one.logprob, one.n_tokens) for name, one in zip(names, found)]

    def _ids_after(self, prompt: str, text: str) -> Tuple[int, List[int]]:
        """The tokens of both together, and how many of them are the prompt's alone."""
        begin, end = prompt.encode("utf-8"), text.encode("utf-8")
        ids, n_begin, n = _abi.Ids(), c.c_size_t(), c.c_size_t()
        flags = _abi.ADD_SPECIAL | _abi.READ_SPECIAL
        with self._call() as handle:
            self._lib.llm_encode_after(handle, begin, len(begin), end, len(end), flags, c.byref(ids), c.byref(n_begin), c.byref(n))
        try:
            return n_begin.value, list(ids[: n.value])
        finally:
            self._lib.ggl_free(ids)

    @property
    def context(self) -> List[int]:
        """The tokens that the model has read and written."""
        n = c.c_size_t()
        with self._call() as handle:
            ids = self._lib.llm_sequence(handle, c.byref(n))
            return list(ids[: n.value]) if n.value else []

    @property
    def text_read(self) -> List[int]:
        """The tokens of the text that the model has read before it wrote, if it is one that reads a text first (T5, BART)."""
        n = c.c_size_t()
        with self._call() as handle:
            ids = self._lib.llm_sequence_read(handle, c.byref(n))
            return list(ids[: n.value]) if n.value else []

    def reset(self) -> None:
        """Empties the context. Calls need no such thing before them: their results never depend on it."""
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_truncate(handle, 0))

    def save(self, path: Path) -> None:
        """Writes the tokens of the context, with what was computed of them, to a file."""
        file = file_bytes("path", path)
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_save(handle, file))

    def restore(self, path: Path) -> None:
        """Makes the context that which save() wrote, of the same model with the same arguments, so that its tokens need not run."""
        file = file_bytes("path", path)
        with self._own_turn():
            self._wait(lambda handle: self._lib.llm_restore(handle, file))

    # --- turns and calls --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _own_turn(self) -> Iterator[None]:
        """Waits until what others have begun has ended."""
        self._refuse_inside()
        owner = self._turn_thread
        if owner is not None and owner() is None:
            raise Error(
                Status.USAGE,
                "a thread that has ended has begun a stream of the model that has not: read it to its end, or close it, before the next call",
            )
        if owner == this_thread():
            raise Error(
                Status.USAGE, "this thread has begun a stream of the model that has not ended: read it to its end, or close it, before the next call"
            )
        with self._turn:
            self._turn_thread = this_thread()
            try:
                yield
            finally:
                self._turn_thread = None

    # --- for Stream -------------------------------------------------------------------------------

    def _begin(self, prompt: List[int], params: _abi.GenerateParams) -> None:
        ids = _abi.array(prompt)
        self._wait(lambda handle: self._lib.llm_begin(handle, ids, len(ids), c.byref(params)))
        warn_of_notes(params)

    def _next(self) -> Optional[bytes]:
        """The next bytes of the text; None: it has ended."""
        piece, n = c.c_void_p(), c.c_size_t()
        with self._call() as handle:
            self._lib.llm_next(handle, c.byref(piece), c.byref(n))
            return c.string_at(piece.value, n.value) if piece.value else None

    def _note_run(self, finish: Optional[str] = None) -> Run:
        info = _empty_info()
        with self._call() as handle:
            self._lib.llm_last_run(handle, c.byref(info))
        run = run_of(info)
        self._run = run._replace(finish=finish) if finish and run.finish == "none" else run
        return self._run

    # --- small things -----------------------------------------------------------------------------

    @staticmethod
    def _whole(stream: Stream) -> str:
        with stream:
            return "".join(stream)

    def _ids(self, prompt: Prompt, name: str = "prompt") -> List[int]:
        if isinstance(prompt, str):
            return self.tokenize(prompt)
        return [whole("a token", token, 0, 32) for token in elements(name, prompt, "a str or a sequence of tokens")]

    def _text_or_ids(self, prompt: Prompt) -> Union[bytes, List[int]]:
        """What a job takes: a text, or the tokens of one, also of a text that C cannot have."""
        return prompt.encode() if isinstance(prompt, str) and "\0" not in prompt else self._ids(prompt)

    def _n_common(self, handle: int, ids: List[int]) -> int:
        """How many tokens the context has in common with these, of which one is left to run."""
        n = c.c_size_t()
        held = self._lib.llm_sequence(handle, c.byref(n))
        most = min(n.value, len(ids) - 1)
        return next((i for i in range(most) if held[i] != ids[i]), most)


class _Asked(Model):
    """A call that takes what Model() takes, and returns JSON."""

    def __init__(self, call: str, path: Path, arguments: Mapping[str, Any]):
        self._asks = call
        self.facts: Dict[str, Any] = {}
        super().__init__(path, **arguments)

    def _open(self, of: Union[bytes, Model], p: _abi.OpenParams) -> None:
        text, n = c.c_void_p(), c.c_size_t()
        if isinstance(of, Model):
            raise TypeError(f"path is {type(of).__name__}, not a path")
        getattr(self._lib, self._asks)(of, c.byref(p), c.byref(text), c.byref(n))
        self.facts = json.loads(_abi.taken_bytes(self._lib, text, n))




def _empty_info() -> _abi.RunInfo:
    return _abi.RunInfo(size=c.sizeof(_abi.RunInfo), stop=-1)


def _text(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode("utf-8", "replace")


def _id(token: int) -> Optional[int]:
    return token if token >= 0 else None
