"""The arguments of Model() and the struct that is made of them, as library/open_params.def has them. Written by tests/unit/open_params.py --write."""
from __future__ import annotations

import os
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
ScaledFiles = Union[Path, Tuple[Path, float], Mapping[Any, float], Sequence[Union[Path, Tuple[Path, float]]]]

FIELDS = """size:z
type:s arch:s override:texts n_override:z ignore_key:texts n_ignore_key:z ignore_tensor:texts
n_ignore_tensor:z hub_token:s offline:? no_mmap:? mlock:? chat_template:s no_chat_bos:?
parse_special_in_messages:? no_file_sampling:? n_ctx:q n_ubatch:q n_parallel:q cache_type_k:s
cache_type_v:s prompt_folder:s prompt_folder_size:q embeddings:? pooling:s mmproj:s
image_min_tokens:q image_max_tokens:q words:? adapter:loras n_adapters:z control_vector:loras
n_control_vectors:z control_first:q control_last:q n_threads:q n_threads_batch:q no_repack:?
repack_late:? n_expected:q repack_cache:s f16_as_bf16:? device:s n_gpu_layers:q split:s
tensor_split:s fit:? place:texts n_place:z cpu_moe:? n_cpu_moe:q strict:? draft:s lookup:? n_guess:q
draft_n_min:q draft_p_min:d guess_always:? draft_n_ctx:q draft_device:s draft_n_gpu_layers:q
progress:call note:says user:p"""


class Opening(TypedDict, total=False):
    """Arguments of Model(), all by their names. None is the default.

    type                      quantize the weights while they are loaded, to a mix or type such as "q4_k_m": for folders, and files of f32, f16
                              or bf16; default: as they are
    arch                      a descriptor's file, or the name of a built-in one; default: what the file says
    overrides                 other values of keys of the file, for this model, or further keys: {".rope.freq_base": 500000.0}; a key that begins
                              with . is one of the file's architecture. A value is a bool, int, float or str; default: none
    ignore_key                patterns of full names of keys, such as "acme.*", that the file may have although nothing reads them, at your own
                              risk; default: none
    ignore_tensor             the same for tensors; default: none
    token                     of repositories: an access token; default: the environment's HF_TOKEN
    offline                   True: of repositories, use only what was downloaded before
    mmap                      False: read the file into memory instead of mapping it
    mlock                     True: keep the model in memory, so that it is never swapped out
    chat_template             a text (Jinja), or the name of a built-in one, such as "chatml"; default: the file's
    chat_bos                  False: conversations begin with the token that the file demands only if the template writes it
    parse_special_in_messages True: what looks like a control token in a message, such as <|im_end|>, is one, and not text
    file_sampling             False: what the model's file says about sampling is no default
    n_ctx                     size of the context in tokens; default: the model's own, or as much of it as fits into memory
    n_batch                   the largest number of tokens computed at once; default: 512
    n_parallel                the largest number of texts that are computed at once: by batch, or by transcribe as beams; default: 1, of a model
                              that hears 5
    cache_type_k              type of the keys in the KV cache: "f16", "bf16", "f32", "q8_0" or "q4_0"; default: "f16"
    cache_type_v              type of the values; default: "f16"
    prompt_folder             a folder by whose files the jobs (batch, stream_batch, jobs) of several programs, and of servers with --prompt-
                              cache-dir, share beginnings of prompts; default: none
    prompt_folder_size        bytes that the folder may hold; default: 4 GiB
    embeddings                True makes embed and rerank available; rerankers and encoders need no such thing
    pooling                   how embed makes one vector: "mean", "last" (token), "cls" (the first token), "max", "mean_sqrt_len_tokens" or
                              "weightedmean"; "none": a vector for each token, and embed returns an array for each text; "rank": scores; default:
                              what the file says, or the mean
    mmproj                    the file of an eye or an ear, or the Hugging Face folder of a model that has one: the model sees pictures or hears
                              sounds; "": none; default: the folder's own, if the model is one that has an eye or an ear
    image_min_tokens          the fewest tokens of a picture, of an eye that sees pictures near their own size (Qwen-VL, Pixtral); default: as
                              its file says
    image_max_tokens          the most; default: as its file says
    words                     True makes transcribe(.., words=True) available, of models that hear
    adapters                  LoRA adapters: a file, a pair of a file and a scale, a list of these, [("style.gguf", 0.5)], or a dict,
                              {"style.gguf": 0.5}; default: none
    control_vectors           control vectors: a file, a pair of a file and a scale, a list of these, [("happy.gguf", 0.8)], or a dict,
                              {"happy.gguf": 0.8}; default: none
    control_first             the first layer to which control vectors are added; default: 1
    control_last              the last; default: the last layer
    n_threads                 threads of the CPU; default: one for each physical core; of two kinds, for each big one
    n_threads_batch           threads of the CPU for prompts; default: as n_threads; without it also small cores that help
    repack                    False: load faster, take less memory, run slower
    repack_late               True: the first token comes sooner, because the weights are prepared after it, little by little, for about as long
                              before each token as the token takes
    n_expected                how many tokens will be generated in all, if that is known: repack_late then prepares weights only as far as that
                              makes the whole faster; default: not known
    repack_cache              a file that keeps the repacked weights for the next time; "": beside the model; default: none
    f16_as_bf16               True: round f16 weights to bf16 when they are loaded, for faster prompts on processors with bf16
    device                    as --device: "cpu", "vulkan0", "none" (the CPU alone); of several, as in "vulkan0,vulkan1", the first runs all
                              layers unless n_gpu_layers or split divide them; default: the CPU
    n_gpu_layers              run this many of the last layers on the devices, or on the first GPU; -1: all
    split                     which layers run where: "vulkan0=20,cpu=12"; "auto": measure the devices, and use those that are faster than the
                              CPU; "copies": each device, or rank, has the whole model, and embed, rerank, perplexity and imatrix divide their
                              texts among them
    tensor_split              "3,1": the proportions of the devices' layers; default: by their memory
    fit                       True: run as many layers on the devices as fit into their memory
    place                     rules such as "blk.*.ffn_*exps*=cpu": operations whose weight has such a name run there; default: none
    cpu_moe                   True: run the experts of all layers on the CPU
    n_cpu_moe                 run the experts of this many first layers on the CPU
    strict                    True: fail if a device cannot run an operation, instead of running it on another one
    draft                     a smaller model with the same tokenizer, which guesses ahead: faster, and the same text. "": layers of the model
                              itself, if it has some; default: none
    lookup                    True: the text itself guesses, where it repeats
    n_guess                   the largest number of tokens guessed at once; default: 16
    draft_n_min               the fewest guesses that are used
    draft_p_min               guessing ends at a token that is less probable
    guess_always              use all guesses, also where they make generating slower
    draft_n_ctx               the context of the draft; default: as n_ctx
    draft_device              where the draft runs, as device; default: the CPU
    draft_n_gpu_layers        as n_gpu_layers
    progress                  a function that is called while files are downloaded and weights prepared, with the bytes done and the total; if it
                              returns False, opening stops
    note                      a function that gets sentences about downloads and conversions; default: Python's logging, as ggml_lite"""

    type: Optional[str]
    arch: Optional[str]
    overrides: Mapping[str, Union[bool, int, float, str]]
    ignore_key: Sequence[str]
    ignore_tensor: Sequence[str]
    token: Optional[str]
    offline: bool
    mmap: bool
    mlock: bool
    chat_template: Optional[str]
    chat_bos: bool
    parse_special_in_messages: bool
    file_sampling: bool
    n_ctx: Optional[int]
    n_batch: Optional[int]
    n_parallel: Optional[int]
    cache_type_k: Optional[str]
    cache_type_v: Optional[str]
    prompt_folder: Optional[Path]
    prompt_folder_size: Optional[int]
    embeddings: bool
    pooling: Optional[str]
    mmproj: Optional[Path]
    image_min_tokens: Optional[int]
    image_max_tokens: Optional[int]
    words: bool
    adapters: ScaledFiles
    control_vectors: ScaledFiles
    control_first: Optional[int]
    control_last: Optional[int]
    n_threads: Optional[int]
    n_threads_batch: Optional[int]
    repack: bool
    repack_late: bool
    n_expected: Optional[int]
    repack_cache: Optional[Path]
    f16_as_bf16: bool
    device: Optional[str]
    n_gpu_layers: Optional[int]
    split: Optional[str]
    tensor_split: Optional[str]
    fit: bool
    place: Sequence[str]
    cpu_moe: bool
    n_cpu_moe: Optional[int]
    strict: bool
    draft: Optional[Path]
    lookup: bool
    n_guess: Optional[int]
    draft_n_min: Optional[int]
    draft_p_min: float
    guess_always: bool
    draft_n_ctx: Optional[int]
    draft_device: Optional[str]
    draft_n_gpu_layers: Optional[int]
    progress: Optional[Callable[[int, int], Optional[bool]]]
    note: Optional[Callable[[str], object]]


class Row(NamedTuple):
    argument: str
    member: str
    kind: str
    is_opposite: bool
    most: int
    default: Any


ROWS = [
    Row("type", "type", "WORD", False, 0, None),
    Row("arch", "arch", "TEXT", False, 0, None),
    Row("overrides", "override", "TEXTS", False, 0, {}),
    Row("ignore_key", "ignore_key", "TEXTS", False, 0, ()),
    Row("ignore_tensor", "ignore_tensor", "TEXTS", False, 0, ()),
    Row("token", "hub_token", "TEXT", False, 0, None),
    Row("offline", "offline", "BOOL", False, 0, False),
    Row("mmap", "no_mmap", "BOOL", True, 0, True),
    Row("mlock", "mlock", "BOOL", False, 0, False),
    Row("chat_template", "chat_template", "TEXT", False, 0, None),
    Row("chat_bos", "no_chat_bos", "BOOL", True, 0, True),
    Row("parse_special_in_messages", "parse_special_in_messages", "BOOL", False, 0, False),
    Row("file_sampling", "no_file_sampling", "BOOL", True, 0, True),
    Row("n_ctx", "n_ctx", "INT", False, 1073741824, 0),
    Row("n_batch", "n_ubatch", "INT", False, 65536, 0),
    Row("n_parallel", "n_parallel", "INT", False, 256, 0),
    Row("cache_type_k", "cache_type_k", "WORD", False, 0, None),
    Row("cache_type_v", "cache_type_v", "WORD", False, 0, None),
    Row("prompt_folder", "prompt_folder", "PATH", False, 0, None),
    Row("prompt_folder_size", "prompt_folder_size", "INT", False, 9223372036854775807, 0),
    Row("embeddings", "embeddings", "BOOL", False, 0, False),
    Row("pooling", "pooling", "WORD", False, 0, None),
    Row("mmproj", "mmproj", "PATH", False, 0, None),
    Row("image_min_tokens", "image_min_tokens", "INT", False, 65536, 0),
    Row("image_max_tokens", "image_max_tokens", "INT", False, 65536, 0),
    Row("words", "words", "BOOL", False, 0, False),
    Row("adapters", "adapter", "LORAS", False, 0, ()),
    Row("control_vectors", "control_vector", "LORAS", False, 0, ()),
    Row("control_first", "control_first", "INT", False, 2147483647, 0),
    Row("control_last", "control_last", "INT", False, 2147483647, 0),
    Row("n_threads", "n_threads", "INT", False, 512, 0),
    Row("n_threads_batch", "n_threads_batch", "INT", False, 512, 0),
    Row("repack", "no_repack", "BOOL", True, 0, True),
    Row("repack_late", "repack_late", "BOOL", False, 0, False),
    Row("n_expected", "n_expected", "INT", False, 9223372036854775807, 0),
    Row("repack_cache", "repack_cache", "MAYBE", False, 0, None),
    Row("f16_as_bf16", "f16_as_bf16", "BOOL", False, 0, False),
    Row("device", "device", "TEXT", False, 0, None),
    Row("n_gpu_layers", "n_gpu_layers", "INT", False, 2147483647, 0),
    Row("split", "split", "TEXT", False, 0, None),
    Row("tensor_split", "tensor_split", "TEXT", False, 0, None),
    Row("fit", "fit", "BOOL", False, 0, False),
    Row("place", "place", "TEXTS", False, 0, ()),
    Row("cpu_moe", "cpu_moe", "BOOL", False, 0, False),
    Row("n_cpu_moe", "n_cpu_moe", "INT", False, 2147483647, 0),
    Row("strict", "strict", "BOOL", False, 0, False),
    Row("draft", "draft", "PATH", False, 0, None),
    Row("lookup", "lookup", "BOOL", False, 0, False),
    Row("n_guess", "n_guess", "INT", False, 64, 0),
    Row("draft_n_min", "draft_n_min", "INT", False, 64, 0),
    Row("draft_p_min", "draft_p_min", "FLOAT", False, 0, 0.75),
    Row("guess_always", "guess_always", "BOOL", False, 0, False),
    Row("draft_n_ctx", "draft_n_ctx", "INT", False, 1073741824, 0),
    Row("draft_device", "draft_device", "TEXT", False, 0, None),
    Row("draft_n_gpu_layers", "draft_n_gpu_layers", "INT", False, 2147483647, 0),
    Row("progress", "progress", "CALL", False, 0, None),
    Row("note", "note", "CALL", False, 0, None),
]
