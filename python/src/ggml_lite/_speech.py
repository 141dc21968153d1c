"""Speech that a model writes down."""
from __future__ import annotations

import contextlib
import ctypes as c
from array import array
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Generator, Iterable, List, Optional, Union

from . import _abi
from ._errors import Error
from ._notes import warn
from ._open_params import Path
from ._opening import file_bytes
from ._options import flag, text_bytes, whole
from ._results import Piece, Run, Word
from ._stream import Known, Pieces
from ._threads import this_thread


def piece_of(s: Any) -> Piece:
    """What C's llm_speech has."""
    text = c.string_at(s.text, s.n).decode("utf-8", "replace")
    words = [Word(w.start, w.end, c.string_at(w.text, w.n).decode("utf-8", "replace"), w.probability) for w in s.word[: s.n_words]]
    return Piece(s.start, s.end, text, s.language.decode(), s.id[: s.n_id], s.logprob, s.no_speech, s.temperature, words, s.compression_ratio)


def floats_of(samples: Any) -> Any:
    """Samples as C has them: a copy of a buffer of floats, or of any sequence of numbers."""
    try:
        view = memoryview(samples)
    except TypeError:
        view = memoryview(array("f", samples))
    if view.format != "f" or view.ndim != 1 or not view.contiguous:
        raise TypeError("samples must be numbers, or a buffer of 32-bit floats in one dimension, such as a float32 array of numpy")
    return (c.c_float * len(view)).from_buffer_copy(view)


class Hears:
    """The calls of a Model that hear."""

    if TYPE_CHECKING:
        _lib: _abi.Library
        _own_turn: Callable[[], ContextManager[None]]
        _wait: Callable[[Callable[[int], object]], None]
        _note_run: Callable[[], Run]
        _turn_thread: Any

    def transcribe(
        self,
        sound: Union[Path, bytes],
        *,
        language: Optional[str] = None,  # "de" or "german"; None: the likeliest of the first half minute
        translate: bool = False,  # into English
        prompt: Optional[str] = None,  # what may have been said before: names and words as they are spelled
        times: bool = True,  # False: half a minute is one piece
        words: bool = False,  # when each word was said: Piece.words, of Model(.., words=True)
        context: bool = True,  # the model sees what it wrote of the half minute before
        beams: Optional[int] = None,  # texts that are searched side by side, at most n_parallel of the model; None: 5, or n_parallel if that is less
        best_of: Optional[int] = None,  # texts that are drawn at temperatures above 0; in the same way
        temperature: float = 0.0,  # the first one
        temperature_step: float = 0.2,  # half a minute that became nonsense is written again at a higher one; 0: never
        logprob_threshold: float = -1.0,  # nonsense: the mean log-probability is below this
        compression_ratio_threshold: float = 2.4,  # nonsense: it repeats itself, and zlib makes it shorter by more than this factor; 0: any
        entropy_threshold: float = 0.0,  # nonsense: it repeats itself, and its last 32 tokens have a lower entropy
        no_speech_threshold: float = 0.6,  # silence from this probability on
        vad_model: Optional[Path] = None,  # a model that finds speech, such as Silero VAD: what it finds is written down, and nothing else; for the following
        vad_threshold: float = 0.5,  # the probability of speech
        vad_min_speech_duration_ms: int = 250,  # shorter speech is left out
        vad_min_silence_duration_ms: int = 100,  # shorter silence belongs to speech
        vad_max_speech_duration_s: float = 0.0,  # longer speech is cut; 0: it is not
        vad_speech_pad_ms: int = 30,  # what is heard before and after speech
        vad_samples_overlap: float = 0.1,  # seconds that are heard after each part, too, up to the next one
        seed: int = 0,
        offset: float = 0.0,  # seconds that are left out
        duration: float = 0.0,  # seconds that are written down; 0: all
        raw: Optional[str] = None,  # samples without a header: "s16le" or "f32le"
        raw_rate: int = 0,  # 0: the model's
        raw_channels: int = 0,  # 0: 1
        each: Optional[Callable[[Piece], Any]] = None,  # called for each piece as it comes; False ends the call
        note: Optional[Callable[[str], Any]] = None,  # told what was done to the sound, the language that was found, and what is wrong with the sound
        live: bool = False,  # each token is written as soon as what it is about was heard, also of a pipe: of models such as Voxtral Realtime
        said: Optional[Callable[[str], Any]] = None,  # called with the text of a piece while it is written; False ends the call
    ) -> List[Piece]:
        """What is said in a sound: the path of a file (WAV; others as the library was built), or its bytes."""
        pieces: List[Piece] = []
        raised: List[BaseException] = []
        damage: List[str] = []

        def guarded(call: Callable[[], Any]) -> bool:
            try:
                return call() is not False and not raised
            except BaseException as error:
                raised.append(error)
                return False

        def told(to: Optional[Callable[[str], Any]]) -> Any:
            return _abi.Note(lambda _user, text: guarded(lambda: to and to(text.decode("utf-8", "replace"))) and None)

        def take(s: Any) -> Any:
            pieces.append(piece_of(s))
            return each(pieces[-1]) if each else None

        def tell(text: int, n: int) -> Any:
            return said(c.string_at(text, n).decode()) if said else None

        data = bytes(sound) if isinstance(sound, (bytes, bytearray)) else None
        path = file_bytes("sound", sound) if not isinstance(sound, (bytes, bytearray)) else b"the bytes"
        p = _abi.TranscribeParams(
            size=c.sizeof(_abi.TranscribeParams),
            language=None if language is None else text_bytes("language", language),
            translate=flag("translate", translate),
            no_times=not flag("times", times),
            no_context=not flag("context", context),
            prompt=None if prompt is None else text_bytes("prompt", prompt),
            temperature=temperature,
            temperature_step=temperature_step,
            least_logprob=logprob_threshold,
            least_entropy=entropy_threshold,
            most_ratio=compression_ratio_threshold,
            no_speech=no_speech_threshold,
            n_beams=0 if beams is None else whole("beams", beams, 1, 32),
            n_best=0 if best_of is None else whole("best_of", best_of, 1, 32),
            vad_model=None if vad_model is None else file_bytes("vad_model", vad_model),
            vad_threshold=vad_threshold,
            vad_min_speech_duration_ms=whole("vad_min_speech_duration_ms", vad_min_speech_duration_ms, 0, 31),
            vad_min_silence_duration_ms=whole("vad_min_silence_duration_ms", vad_min_silence_duration_ms, 0, 31),
            vad_max_speech_duration_s=vad_max_speech_duration_s,
            vad_speech_pad_ms=whole("vad_speech_pad_ms", vad_speech_pad_ms, 0, 31),
            vad_samples_overlap=vad_samples_overlap,
            seed=whole("seed", seed, 0, 64),
            offset=offset,
            duration=duration,
            data=data,
            n_data=len(data or b""),
            words=flag("words", words),
            raw=None if raw is None else text_bytes("raw", raw),
            raw_rate=whole("raw_rate", raw_rate, 0, 32),
            raw_channels=whole("raw_channels", raw_channels, 0, 32),
            each=_abi.SpeechFn(lambda _user, s: guarded(lambda: take(s.contents))),
            progress=_abi.SpeechProgress(lambda _user, _done, _all: not raised),
            note=told(note),
            warn=told(note or damage.append),
            live=flag("live", live),
            said=_abi.SpeechText(lambda _user, text, n: guarded(lambda: tell(text, n))),
        )
        try:
            with self._own_turn():
                self._wait(lambda handle: self._lib.llm_transcribe(handle, path, c.byref(p)))
        except Error:
            if raised:
                raise raised[0] from None
            raise
        for text in damage:
            warn(text)
        return pieces

    def stream_speech(
        self,
        samples: Iterable[Any],
        *,
        language: Optional[str] = None,  # "de" or "german"
        temperature: float = 0.0,
        seed: int = 0,
        each: Optional[Callable[[Piece], Any]] = None,  # called for each piece that ends, which is a part of the sound
    ) -> Pieces[str]:
        """What is said in a sound while it comes, of models such as Voxtral Realtime: `for text in model.stream_speech(microphone())`. samples: pieces of any lengths of one channel with
        16000 samples a second, each an array of 32-bit floats of -1 to 1. The text is that of transcribe() for the whole sound. To stop early, close the stream."""
        known = Known()
        return Pieces(self._read_speech(known, iter(samples), language, temperature, whole("seed", seed, 0, 64), each), known)

    def _read_speech(
        self, known: Known, samples: Any, language: Optional[str], temperature: float, seed: int, each: Optional[Callable[[Piece], Any]]
    ) -> Generator[str, None, None]:
        texts: List[str] = []
        raised: List[BaseException] = []

        def take(s: Any) -> bool:
            try:
                return each is None or each(piece_of(s.contents)) is not False
            except BaseException as error:
                raised.append(error)
                return False

        def tell(_user: Any, text: int, n: int) -> bool:
            texts.append(c.string_at(text, n).decode())
            return True

        p = _abi.TranscribeParams()
        self._lib.llm_transcribe_fill_default(c.byref(p), c.sizeof(p))
        p.language = None if language is None else text_bytes("language", language)
        p.temperature, p.seed = temperature, seed
        p.each, p.said = _abi.SpeechFn(lambda _user, s: take(s)), _abi.SpeechText(tell)

        def run(call: Callable[[int], object]) -> str:
            try:
                self._wait(call)
            except Error:
                if raised:
                    raise raised[0] from None
                raise
            text = "".join(texts)
            texts.clear()
            return text

        with self._own_turn():
            try:
                run(lambda handle: self._lib.llm_live_begin(handle, c.byref(p), None))
                for some in samples:
                    heard = floats_of(some)
                    text = run(lambda handle, heard=heard: self._lib.llm_live_hear(handle, heard, len(heard)))  # type: ignore[misc]
                    if text:
                        yield text
                        self._turn_thread = this_thread()  # a stream moves with its reader
                text = run(lambda handle: self._lib.llm_live_end(handle))
                if text:
                    yield text
            finally:
                with contextlib.suppress(Error):  # the model may be closed
                    known.run = self._note_run()
                    self._wait(lambda handle: self._lib.llm_truncate(handle, 0))  # ends what is heard
