"""The calls of llm/llm.h and llm/train.h, as ctypes has them: the structs, and a table of the functions."""
import ctypes as c
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _find
from ._errors import Status, error_of
from ._open_params import FIELDS
from ._version import __version__

Context = c.c_void_p
Ids = c.POINTER(c.c_int32)
Floats = c.POINTER(c.c_float)
SizeOut = c.POINTER(c.c_size_t)
TextOut = c.POINTER(c.c_void_p)
Progress = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_size_t, c.c_size_t)
Note = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
PieceFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.c_size_t)
PartFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.c_void_p, c.c_size_t)

RowsFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_size_t, c.c_size_t, c.c_void_p, c.c_size_t)
NodeFn = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)

ADD_SPECIAL, READ_SPECIAL, SHOW_SPECIAL = 1, 2, 4


class ErrorOut(c.Structure):
    _fields_ = [("status", c.c_int), ("msg", c.c_char * 2048)]


KINDS: Dict[str, Any] = {
    **{"z": c.c_size_t, "Q": c.c_uint64, "q": c.c_int64, "i": c.c_int32, "f": c.c_float, "d": c.c_double},
    **{"?": c.c_bool, "s": c.c_char_p, "p": c.c_void_p},
}


def fields(table: str, **others: Any) -> List[Tuple[str, Any]]:
    """Members of a struct: names, each with a letter of KINDS or a name of `others`."""
    kinds = {**KINDS, **others}
    return [(name, kinds[kind]) for name, kind in (word.split(":") for word in table.split())]


class Lora(c.Structure):
    _fields_ = fields("path:s scale:d")


class Kept(c.Structure):
    _fields_ = [("share", c.c_double), ("least", c.c_double), ("weight", c.c_char * 256)]


class FolderParams(c.Structure):
    _fields_ = fields("size:z type:s base_name:s arch:s n_threads:q progress:p user:p kept:kept", kept=c.POINTER(Kept))


class TokenBias(c.Structure):
    _fields_ = fields("id:i bias:f")


class Number(c.Structure):
    _fields_ = fields("name:s value:d")


class OpenParams(c.Structure):
    _fields_ = fields(FIELDS, texts=c.POINTER(c.c_char_p), call=Progress, loras=c.POINTER(Lora), says=Note)


class DiffuseParams(c.Structure):
    _fields_ = fields(
        "size:z n_steps:i n_block:i eps:d order:s order_temp:d cfg_scale:d step:p user:p"
    )


class GenerateParams(c.Structure):
    is_empty = False  # no token is to be generated, which n_max cannot say
    notes: Tuple[List[str], ...] = ()  # what `note` has got: one list
    _fields_ = fields(
        """size:z n_max:q temp:f top_k:i top_p:f min_p:f repeat_penalty:f ignore_end:? seed:Q stop:texts n_stop:z grammar:s json_schema:s
        repeat_last_n:i frequency_penalty:f presence_penalty:f dynatemp_range:f dynatemp_exponent:f typical_p:f top_n_sigma:f
        xtc_probability:f xtc_threshold:f dry_multiplier:f dry_base:f dry_allowed_length:i dry_last_n:i dry_breakers:texts n_dry_breakers:z
        mirostat:i mirostat_tau:f mirostat_eta:f bias:biases n_bias:z samplers:s json_spaces:? show_special:? tools:s tool_choice:s
        number:numbers n_numbers:z n_stop_shown:z shift:? n_keep:q grammar_name:s same_sampler:?
        user:p token:p shows:p force:p full:p prompt_logits:p prompt_progress:p note:says read:ids n_read:z
        diffuse:schedule n_beams:i length_penalty:f early_stopping:?""",
        ids=Ids,
        schedule=c.POINTER(DiffuseParams),
        says=Note,
        texts=c.POINTER(c.c_char_p),
        biases=c.POINTER(TokenBias),
        numbers=c.POINTER(Number),
    )


class Image(c.Structure):
    _fields_ = fields("path:s data:s n:z name:s")


class Audio(c.Structure):
    _fields_ = fields("path:s data:s n:z name:s raw:s raw_rate:i raw_channels:i")


class Word(c.Structure):
    _fields_ = fields("start:d end:d text:p n:z probability:d")


class Speech(c.Structure):
    _fields_ = fields(
        "start:d end:d text:p n:z id:ids n_id:z language:s logprob:d no_speech:d temperature:d word:words n_words:z compression_ratio:d",
        ids=Ids,
        words=c.POINTER(Word),
    )


SpeechFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(Speech))
SpeechText = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.c_size_t)
SpeechProgress = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_double, c.c_double)


class TranscribeParams(c.Structure):
    _fields_ = fields(
        """size:z language:s translate:? no_times:? no_context:? prompt:s temperature:f temperature_step:f least_logprob:f least_entropy:f
        no_speech:f n_beams:i n_best:i seed:Q offset:d duration:d data:s n_data:z raw:s raw_rate:i raw_channels:i each:call progress:done
        note:says user:p words:? warn:says spoken:says most_ratio:f vad_model:s vad_threshold:f
        vad_min_speech_duration_ms:i vad_min_silence_duration_ms:i vad_speech_pad_ms:i vad_max_speech_duration_s:f vad_samples_overlap:f live:? said:told""",
        call=SpeechFn,
        told=SpeechText,
        done=SpeechProgress,
        says=Note,
    )


class Facts(c.Structure):
    _fields_ = fields("n_ctx:q n_vocab:i n_embd:i bos:i eos:i has_chat:? sees:? hears:? pooling:s placement:s")


class Formatted(c.Structure):
    _fields_ = fields("id:ids n_id:z notes:p", ids=Ids)


class RunInfo(c.Structure):
    _fields_ = fields(
        "size:z finish:i stop:i n_reused:q n_prompt:q n_generated:q n_guessed:q n_right:q "
        "prompt_seconds:d seconds:d n_nan:q n_shifts:q n_dropped:q incomplete:? repack_seconds:d"
    )


class Job(c.Structure):
    _fields_ = fields(
        "prompt:s id:ids n:z params:params each:call user:p finish:i stop:i n_reused:q n_prompt:q n_generated:q err:error incomplete:?",
        ids=Ids,
        params=c.POINTER(GenerateParams),
        call=PieceFn,
        error=ErrorOut,
    )


class PerplexityParams(c.Structure):
    _fields_ = fields("size:z n_window:q n_chunks:q save:s base:s progress:call user:p id:ids n_id:z each:p", call=Progress, ids=Ids)


class PerplexityResult(c.Structure):
    _fields_ = fields(
        """size:z n_window:q n_chunks:q n_scored:q nll:d ppl:d ppl_error:d kld:d kld_error:d same_top:d same_top_error:d ppl_base:d
        ppl_base_error:d ln_ratio:d ln_ratio_error:d ratio:d ratio_error:d difference:d difference_error:d correlation:d p_diff:d
        p_diff_error:d p_rms:d p_rms_error:d kld_quantile:quantiles p_diff_quantile:quantiles""",
        quantiles=c.c_double * 13,
    )


class ImatrixParams(c.Structure):
    _fields_ = fields(
        """size:z n_window:q first_chunk:q n_chunks:q id:ids n_id:z read_special:? output:? n_directions:i no_perplexity:? name:s
        progress:call each:p user:p""",
        call=Progress,
        ids=Ids,
    )


class ImatrixResult(c.Structure):
    _fields_ = fields("size:z n_window:q n_chunks:q n_wanted:q n_scored:q ppl:d ppl_error:d n_missed:z missed:s")


class ImatrixFile(c.Structure):
    _fields_ = fields("size:z tells_window:? n_weights:q n_directed:q")


class EmbedParams(c.Structure):
    _fields_ = fields("size:z no_normalize:? n_dims:i each:call user:p task:s query:? truncate:? no_parse_special:? prompt:s n_prompt:z type:p", call=RowsFn)


class Choice(c.Structure):
    _fields_ = fields("logprob:d probability:d n_tokens:z")


class ChooseParams(c.Structure):
    _fields_ = fields("size:z chat:? per_token:? with_end:? value:p mean:p ends:p")


class VerifyNode(c.Structure):
    _fields_ = fields("text:s origin:s what:s departure:d token:q element:q got:d want:d")


class VerifyParams(c.Structure):
    _fields_ = fields("size:z device:s n_threads:i id:ids n:z all:? each:node progress:call user:p", ids=Ids, node=NodeFn, call=Progress)


class VerifyResult(c.Structure):
    _fields_ = fields("size:z n_nodes:q n_departed:q n_refused:q n_nan:q worst:d whole_departs:? whole:d rounding:d")


NamedProgress = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_char_p, c.c_size_t, c.c_size_t)


class TrainingParams(c.Structure):
    _fields_ = fields(
        """size:z file:texts n_files:z valid_file:texts n_valid_files:z valid_share:d valid_max:q separator:s all_tokens:? drop_long:? chat_template:s
        arch:s round_to:s lora:? rank:q alpha:d rs:? dora:? matrix:texts n_matrices:z adapter:s learn:texts n_learn:z draft:? draft_depth:q draft_model:s n_ctx:q n_batch:q n_seq:q
        n_ubatch:q n_steps:q n_epochs:d minutes:d rate:d schedule:s rate_end:d rate_hold:d n_warmup:q beta1:d beta2:d eps:d decay:d optimizer:s
        optimizer_bits:i bf16:? max_norm:d n_parts:q seed:Q memory:z n_threads:i
        dpo_beta:d teacher:s teacher_share:d teacher_temp:d record:s record_top:q contrast_temp:d dim:dims n_dims:z pooling:s loss:p progress:call note:says user:p mmproj:s mmproj_out:s""",
        texts=c.POINTER(c.c_char_p),
        dims=c.POINTER(c.c_int64),
        call=NamedProgress,
        says=Note,
    )


class TrainingFacts(c.Structure):
    _fields_ = fields(
        """size:z kind:s n_items:q n_tokens:q n_counted:q n_valid_items:q n_valid_tokens:q n_weights:q n_numbers:q learn_bytes:z value_bytes:z
        model_bytes:z teacher_bytes:z memory_bytes:z memory_left:z n_ctx:q n_batch:q n_ubatch:q n_steps:q rate:d n_draws:q n_valid_draws:q n_positions:q
        writes:?"""
    )


class TrainingReport(c.Structure):
    _fields_ = fields(
        """size:z step:q n_steps:q epoch:d loss:d accuracy:d valid_loss:d valid_accuracy:d rate:d norm:d n_tokens:q seconds:d speed:d
        seconds_left:d is_last:?"""
    )


ReportFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(TrainingReport))


class TrainingRunParams(c.Structure):
    _fields_ = fields(
        """size:z out:s save:s save_every:q save_minutes:d valid_every:q best:? patience:q f32:? each:call written:call user:p""",
        call=ReportFn,
    )


# What a function returns, and its arguments; one that returns STATUS has a pointer to an ErrorOut as its last argument, besides.
STATUS = object()
FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    "ggl_version": (c.c_char_p,),
    "ggl_free": (None, c.c_void_p),
    "llm_open": (STATUS, c.POINTER(Context), c.c_char_p, c.POINTER(OpenParams)),
    "llm_open_beside": (STATUS, c.POINTER(Context), Context, c.POINTER(OpenParams)),
    "llm_close": (None, Context),
    "llm_context_facts": (c.POINTER(Facts), Context),
    "llm_context_key": (c.c_void_p, Context, c.c_size_t, SizeOut),
    "llm_context_json": (STATUS, Context, c.c_char_p, TextOut, SizeOut),
    "llm_export_adapter": (STATUS, c.c_char_p, c.c_char_p, c.c_char_p, c.POINTER(FolderParams)),
    "llm_merge_adapters": (STATUS, c.POINTER(Lora), c.c_size_t, c.c_char_p, c.c_char_p, c.POINTER(FolderParams)),
    "llm_set_adapter_scale": (STATUS, Context, c.c_size_t, c.c_double),
    "llm_generate_fill_default_of": (None, Context, c.POINTER(GenerateParams), c.c_size_t),
    "llm_number_name": (c.c_char_p, c.c_size_t),
    "llm_begin": (STATUS, Context, Ids, c.c_size_t, c.POINTER(GenerateParams)),
    "llm_next": (STATUS, Context, TextOut, SizeOut),
    "llm_chat_see": (STATUS, Context, c.c_char_p, TextOut, SizeOut),
    "llm_chat_format": (STATUS, Context, c.c_char_p, c.c_bool, TextOut, SizeOut, c.POINTER(Formatted)),
    "llm_chat_answer": (STATUS, Context, c.c_char_p, c.POINTER(GenerateParams), PartFn, c.c_void_p, TextOut, SizeOut),
    "llm_jobs_add": (STATUS, Context, c.POINTER(Job)),
    "llm_jobs_step": (STATUS, Context, SizeOut),
    "llm_jobs_end": (None, Context, c.POINTER(Job)),
    "llm_last_run": (STATUS, Context, c.POINTER(RunInfo)),
    "llm_cancel": (None, Context),
    "llm_join_job": (STATUS, c.POINTER(c.c_int)),
    "llm_encode": (STATUS, Context, c.c_char_p, c.c_size_t, c.c_uint, c.POINTER(Ids), SizeOut),
    "llm_encode_after": (STATUS, Context, c.c_char_p, c.c_size_t, c.c_char_p, c.c_size_t, c.c_uint, c.POINTER(Ids), SizeOut, SizeOut),
    "llm_decode": (STATUS, Context, Ids, c.c_size_t, c.c_uint, TextOut, SizeOut),
    "llm_token_bytes": (c.c_void_p, Context, c.c_int32, SizeOut),
    "llm_token_is_end": (c.c_bool, Context, c.c_int32),
    "llm_eval": (STATUS, Context, Ids, c.c_size_t, c.c_bool, c.POINTER(Floats)),
    "llm_score": (STATUS, Context, Ids, c.c_size_t, Ids, c.c_size_t, c.POINTER(c.c_double), c.POINTER(c.c_bool)),
    "llm_choose": (STATUS, Context, c.c_char_p, c.c_size_t, c.POINTER(c.c_char_p), SizeOut, c.c_size_t, c.POINTER(ChooseParams), c.POINTER(Choice)),
    "llm_perplexity": (STATUS, Context, c.c_char_p, c.c_size_t, c.POINTER(PerplexityParams), c.POINTER(PerplexityResult)),
    "llm_imatrix_begin": (STATUS, c.POINTER(c.c_void_p)),
    "llm_imatrix_end": (None, c.c_void_p),
    "llm_imatrix_read": (STATUS, c.c_void_p, c.c_char_p, c.c_int64, c.POINTER(ImatrixFile)),
    "llm_imatrix_run": (STATUS, c.c_void_p, Context, c.c_char_p, c.c_size_t, c.POINTER(ImatrixParams), c.POINTER(ImatrixResult)),
    "llm_imatrix_save": (STATUS, c.c_void_p, c.c_char_p),
    "llm_imatrix_windows": (c.c_int64, c.c_void_p),
    "llm_verify": (STATUS, Context, c.POINTER(VerifyParams), c.POINTER(VerifyResult)),
    "llm_describe": (STATUS, c.c_char_p, c.POINTER(OpenParams), TextOut, SizeOut),
    "llm_plan": (STATUS, c.c_char_p, c.POINTER(OpenParams), TextOut, SizeOut),
    "llm_cached_models": (STATUS, TextOut, SizeOut),
    "llm_find_task": (c.c_int32, Context, c.c_char_p),
    "llm_embed_prompt": (STATUS, Context, c.c_char_p, TextOut, SizeOut),
    "llm_embed_texts": (STATUS, Context, c.POINTER(c.c_char_p), SizeOut, c.c_size_t, c.POINTER(EmbedParams)),
    "llm_listen": (STATUS, Context, c.POINTER(Audio), c.c_char_p),
    "llm_see": (STATUS, Context, c.POINTER(Image), c.c_char_p),
    "llm_unsee": (None, Context, c.c_char_p),
    "llm_live_begin": (STATUS, Context, c.POINTER(TranscribeParams), c.POINTER(c.c_int32)),
    "llm_live_end": (STATUS, Context),
    "llm_live_hear": (STATUS, Context, Floats, c.c_size_t),
    "llm_transcribe_fill_default": (None, c.POINTER(TranscribeParams), c.c_size_t),
    "llm_transcribe": (STATUS, Context, c.c_char_p, c.POINTER(TranscribeParams)),
    "llm_rerank": (STATUS, Context, c.c_char_p, c.c_size_t, c.POINTER(c.c_char_p), SizeOut, c.c_size_t, c.c_bool, Floats),
    "llm_sequence": (Ids, Context, SizeOut),
    "llm_sequence_read": (Ids, Context, SizeOut),
    "llm_truncate": (STATUS, Context, c.c_size_t),
    "llm_save": (STATUS, Context, c.c_char_p),
    "llm_restore": (STATUS, Context, c.c_char_p),
}
TRAINING = {  # of libllm-train
    "llm_training_open": (STATUS, c.POINTER(c.c_void_p), c.c_char_p, c.POINTER(TrainingParams)),
    "llm_training_close": (None, c.c_void_p),
    "llm_training_cancel": (None, c.c_void_p),
    "llm_training_describe": (STATUS, c.c_void_p, c.POINTER(TrainingFacts)),
    "llm_training_step": (STATUS, c.c_void_p, c.POINTER(TrainingReport)),
    "llm_training_evaluate": (STATUS, c.c_void_p, c.POINTER(c.c_double), c.POINTER(c.c_double)),
    "llm_training_write": (STATUS, c.c_void_p, c.c_char_p, c.c_bool),
    "llm_training_save": (STATUS, c.c_void_p, c.c_char_p),
    "llm_training_resume": (STATUS, c.c_void_p, c.c_char_p),
    "llm_training_past": (c.c_bool, c.c_void_p, c.c_int64, c.POINTER(TrainingReport)),
    "llm_training_run": (STATUS, c.c_void_p, c.POINTER(TrainingRunParams)),
}


class Library:
    """The loaded library. A function that returns a status raises Error instead."""

    def __init__(self, dll: c.CDLL):
        version = self.version_of(dll)
        if version != __version__:
            raise ImportError(
                f"ggml_lite {__version__} does not fit the library {dll._name}, which is "
                f"{'another program' if version is None else 'version ' + version}; install the package of the same version"
            )
        self.path: str = dll._name
        self.add(dll, FUNCTIONS)

    def add(self, dll: c.CDLL, functions: Dict[str, Any]) -> None:
        for name, (result, *arguments) in functions.items():
            function = dll[name]  # dll[name] is a new object each time, so nothing is changed for others
            function.argtypes = arguments + ([c.POINTER(ErrorOut)] if result is STATUS else [])
            function.restype = c.c_int if result is STATUS else result
            setattr(self, name, self.checked(function) if result is STATUS else function)

    def __getattr__(self, name: str) -> Any:
        """The functions that are set by `add`, for type checkers; and those for training, which are loaded when one is used."""
        if name not in TRAINING:
            raise AttributeError(name)
        self.add(_find.load_training(self.path), TRAINING)
        return self.__dict__[name]

    @staticmethod
    def version_of(dll: c.CDLL) -> Optional[str]:
        try:
            function, _ = dll["ggl_version"], dll["llm_open"]
        except AttributeError:
            return None
        function.restype = c.c_char_p
        version: bytes = function()
        return version.decode()

    @staticmethod
    def checked(function: Any) -> Any:
        def call(*arguments: Any) -> None:
            error = ErrorOut()
            status = function(*arguments, c.byref(error))
            if status != Status.OK:
                raise error_of(status, error.msg.decode("utf-8", "replace"))

        return call


_library: Optional[Library] = None


def library() -> Library:
    """The library, which is loaded at the first call."""
    global _library
    if _library is None:
        _library = Library(_find.load())
    return _library


def array(ids: Sequence[int]) -> Any:
    return (c.c_int32 * len(ids))(*ids)


def taken_bytes(lib: Library, text: c.c_void_p, n: c.c_size_t) -> bytes:
    """Copies n bytes that the library allocated, and frees them."""
    try:
        return c.string_at(text.value, n.value) if text.value else b""
    finally:
        lib.ggl_free(text)


