/* Opens models, generates text, and reads and changes the sequence of a context: the part of llm/llm.h that most programs need.
 * That header says what all calls have in common: sizes of structs, NULL, threads.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef LLM_CONTEXT_H
#define LLM_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/status.h"
#include "ggl/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_context llm_context;

/* --- opening ---------------------------------------------------------------------------------- */

/* An adapter (LoRA), or a control vector: docs/adapters.md. This struct stays as it is. */
typedef struct llm_lora {
    const char *path; /* a GGUF file */
    double scale;     /* how much of it is added: 1 is all, 0 nothing, -1 all of its opposite */
} llm_lora;

/* Begin with llm_open_default(). A member that is 0 or NULL there says nothing, which its comment shows as "0:" or "NULL:". */
typedef struct llm_open_params {
    size_t size; /* sizeof(llm_open_params) */

    /* --- the file */

    /* Quantize the weights while they are loaded, to a mix or type of llm-quantize, such as "q4_k_m": for folders, and files of
     * f32, f16 or bf16. NULL: they stay as they are. */
    const char *type;
    const char *arch; /* a descriptor's file, or the name of a built-in one; NULL: by the file */
    /* [n_override]: keys of the model's file that have another value while it is open, or are added, as --override-kv:
     * "KEY=TYPE:VALUE", TYPE being int, float, bool or str. A KEY that begins with '.' is one of the file's architecture:
     * ".rope.freq_base=float:500000". It is an error if nothing reads the key, or if it is a list in the file. */
    const char *const *override;
    size_t n_override;
    /* [n_ignore_key], [n_ignore_tensor]: patterns of full names ('*': anything) of keys and tensors that the file may have although nothing reads
     * them, as --ignore-key. Without them a file with such keys is refused, because what they say may change the results. */
    const char *const *ignore_key;
    size_t n_ignore_key;
    const char *const *ignore_tensor;
    size_t n_ignore_tensor;
    /* Of a model "hf:..": an access token, for private and gated repositories; NULL: that of the environment, HF_TOKEN. */
    const char *hub_token;
    bool offline; /* use only what was downloaded before, and no network */
    bool no_mmap; /* read the file into memory instead of mapping it */
    bool mlock;   /* keep the model in memory, so that it is never swapped out */

    /* --- conversations */

    /* Text of a chat template (Jinja), or the name of a built-in one, such as "chatml"; NULL: the
     * file's. */
    const char *chat_template;
    /* Conversations begin with the token that the file demands (add_bos_token) although the template does not write it, as with
     * llama.cpp; true: only if the template writes it, as with Hugging Face. */
    bool no_chat_bos;
    /* Control tokens that somebody has written into a message, a tool or a document stay control tokens. Otherwise they are plain text, so that nobody ends a
     * turn or begins one by what he writes. */
    bool parse_special_in_messages;

    /* --- sampling */

    /* What the model's file says about sampling (general.sampling.*; of a folder, generation_config.json) is ignored by llm_generate_default_of, and where
     * no parameters are given. */
    bool no_file_sampling;

    /* --- the context */

    /* Most tokens of the sequence; 0: the model's own context, or 4096; fewer, but at least 2048, if their KV cache
     * does not fit into memory. At most 2^30. */
    int64_t n_ctx;
    int64_t n_ubatch; /* most tokens computed at once; 0: 512 */
    /* Most jobs that llm_generate_jobs computes at once. The KV cache is that many times as large; 0: 1, or 5 of a model that writes down speech (llm_transcribe). At most 256. */
    int64_t n_parallel;
    /* Types of the keys and values in the KV cache: "f16", "bf16", "f32", "q8_0" or "q4_0"; NULL: "f16". */
    const char *cache_type_k, *cache_type_v;
    /* llm_generate_jobs and llm_jobs_add share beginnings of prompts by the files of this folder, as llm-server --prompt-cache-dir does: one that
     * two prompts have had is saved, and other programs with the same model and settings load it. The folder exists; NULL: none. It is kept
     * below prompt_folder_size bytes; 0: 4 GiB. No result changes. */
    const char *prompt_folder;
    int64_t prompt_folder_size;

    /* --- vectors and scores */

    bool embeddings; /* make llm_embed available */
    /* Of embeddings: "mean", "last" (token) or "cls" (the first token), "none": a vector for each token, or "rank": scores of
     * a reranker. NULL: as the model's file says. */
    const char *pooling;

    /* --- pictures and sounds */

    /* The file of an eye or an ear, which makes rows of pictures or of sounds for this model (mostly named mmproj-*.gguf), or a Hugging Face folder that has
     * one: see llm_see and llm_listen. NULL: what the model's own folder has, or none; one that is of no use is left out then, with a note. "": none. */
    const char *mmproj;
    /* How many tokens a picture takes at least and at most, 1 to 65536, as --image-min-tokens and --image-max-tokens. This is for eyes that see
     * pictures near their own size, such as those of Qwen-VL and Pixtral; with others the result is GGL_UNSUPPORTED. 0: the eye's file says it. */
    int64_t image_min_tokens, image_max_tokens;
    bool words; /* make llm_transcribe_params.words available, of a model that hears */

    /* --- adapters */

    /* [n_adapters], applied all together, to the model and to its eye or ear (mmproj). */
    const llm_lora *adapter;
    size_t n_adapters;
    /* [n_control_vectors]: their sum is added to what the layers of the model hand on, for every token. A file is GGUF (general.architecture
     * "controlvector") and has tensors direction.N, f32 [n_embd], each for the end of layer N; layers are counted from 0, and layer 0 gets nothing. llm_open
     * fails with GGL_FORMAT if a file is none or a broken one, with GGL_SHAPE if it does not fit the model's n_embd or number of layers, and with
     * GGL_UNSUPPORTED if the model has no such layers. The paths are read by llm_open, and not kept. */
    const llm_lora *control_vector;
    size_t n_control_vectors;
    /* The first and the last layer that get something; 0: 1, and the last layer of the model. GGL_USAGE: there are no such layers, or a vector has a
     * direction for none of them. */
    int64_t control_first, control_last;

    /* --- the processor */

    /* Of the CPU; 0: one for each physical core that we may use; of two kinds, for each big one. At most 512. */
    int64_t n_threads;
    /* Of the CPU, for prompts; 0: as n_threads; if that is 0, also small cores that are fast enough to
     * help. */
    int64_t n_threads_batch;
    /* Use the weights as they are in the file: loads faster, takes less memory, runs slower. Not with the two last members of this part. */
    bool no_repack;
    /* Prepare the weights for the CPU only after the first token, which comes up to ten times as soon: they run as they are in
     * the file meanwhile, and the rest is prepared little by little, for about as long before each token as the token takes. No
     * result changes. Without effect with repack_cache and no_repack. */
    bool repack_late;
    /* How many tokens will be generated in all, if that is known: repack_late then prepares weights only while enough tokens are
     * left for that to make the whole faster. 0: not known. */
    int64_t n_expected;
    /* A file that keeps the repacked weights for this machine, to start from it next time; "": the model's path plus
     * ".repack". Contexts that start from it share its memory. NULL: none. */
    const char *repack_cache;
    bool
        f16_as_bf16; /* round f16 weights to bf16 when they are loaded: faster prompts on processors with bf16 */

    /* --- devices */

    /* As --device, in any case: "cpu", "vulkan0", "none" (the CPU alone). With several, as in
     * "vulkan0,vulkan1", the first has all layers, unless n_gpu_layers or split divide them. NULL: "cpu" */
    const char *device;
    int64_t
        n_gpu_layers; /* as -ngl: number of last layers on the devices, or on the first GPU; INT32_MAX: all */
    /* As --split: "vulkan0=20,cpu=12", all layers in order; "auto": the devices are measured, and those that
     * are faster than the CPU get as many layers as fit; or "copies": each device has the whole model, and llm_embed_texts,
     * llm_embed_tokens, llm_rerank, llm_perplexity and llm_imatrix_run divide their texts and windows among them, with results in order and of the same
     * bits (callbacks still run in the caller's thread); all other calls use the first device. NULL: not used */
    const char *split;
    /* As --tensor-split: "3,1", the proportions of the devices' layers. NULL: by their memory */
    const char *tensor_split;
    bool fit; /* as --fit: as many layers on the devices as fit into their memory */
    /* [n_place], as --place: "blk.*.ffn_*exps*=cpu" runs operations whose weight has such a name there. */
    const char *const *place;
    size_t n_place;
    bool cpu_moe;      /* run the experts of all layers on the CPU */
    int64_t n_cpu_moe; /* those of the first layers */
    bool
        strict; /* fail if a device cannot run an operation, instead of running it on another one */

    /* --- guessing ahead */

    /* Guessing makes generating faster and changes no text: a smaller model with the same
     * tokenizer guesses the next tokens (draft: its path), or layers of the model itself that guess (draft: ""), or the text
     * itself does, where it repeats (lookup). At most one of the two. llm_generate_jobs does not guess. */
    const char *draft;
    bool lookup;
    int64_t n_guess;     /* most tokens guessed at once, up to 64; 0: 16 */
    int64_t draft_n_min; /* fewer guesses are not used */
    double
        draft_p_min; /* the draft guesses no token that is less probable; by llm_open_default 0.75 */
    bool
        guess_always; /* use all guesses, also where they are measured to make generating slower; for measurements */
    /* Of the draft: its context (0: as n_ctx); where it runs, as device and n_gpu_layers (NULL and 0: the CPU). */
    int64_t draft_n_ctx;
    const char *draft_device;
    int64_t draft_n_gpu_layers;

    /* --- what is called */

    /* Called while files are downloaded and while weights are prepared, with the bytes done and in total, each time from 0
     * on, and while a server is waited for, a few times a second, with the same numbers again. Returning false stops, and llm_open returns GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *user, size_t done, size_t total);
    /* Called with sentences about what is opened: what of a model "hf:.." is downloaded, and what is used instead if the hub
     * cannot be asked; what the conversion of a folder left out; what became of repack_cache. NULL: none. */
    void (*note)(void *user, const char *text);
    void *user;
} llm_open_params;

static inline llm_open_params llm_open_default(void) {
    llm_open_params p;
    memset(&p, 0, sizeof p);
    p.size = sizeof p;
    p.draft_p_min = 0.75;
    return p;
}

/* Opens a model and makes it ready to run. path: a GGUF file, a Hugging Face folder (config.json,
 * safetensors, tokenizer), one of the models in the library, such as "builtin:stories" (models/builtin/README.md; "builtin:shapes" comes with its eye), or
 * "hf:USER/REPO" or "hf:USER/REPO:QUANT", a repository of the Hugging Face Hub: its model is downloaded by the
 * program curl into the cache that llm-cli -hf uses, unless it is there already. params NULL: llm_open_default(). The caller
 * closes *out by llm_close; on failure it is NULL. GGL_IO (the file), GGL_FORMAT (it is damaged),
 * GGL_NOT_FOUND (no descriptor, or no device of that name), GGL_UNSUPPORTED, GGL_LIMIT (n_ctx
 * exceeds what can be counted), GGL_NOMEM (n_ctx may be too large), GGL_DEVICE, GGL_USAGE (params: also a text of a chat template with a
 * mistake, and a key of override that nothing reads). */
GGL_API GGL_NODISCARD ggl_status llm_open(llm_context **out, const char *path,
                                          const llm_open_params *params, ggl_error *err);
/* Opens another context of the model that c has opened, with a window, a KV cache, slots, devices, adapters, a chat template, an eye and a use of its
 * own: one generates while another one embeds, each in its thread. They share the file, its tables, and on the CPU the prepared weights, so that a
 * further context takes the memory and the time of its cache; what one of them gives does not depend on the others. On a device with memory of its own, each has its weights.
 * params as of llm_open, but for the members that say how the file is read (arch, type, override, ignore_key, ignore_tensor, hub_token, offline, no_mmap, mlock), which are
 * GGL_USAGE, and mmproj NULL: no eye. c may be in use by another thread meanwhile, and contexts may be closed in any order. Statuses of llm_open. */
GGL_API GGL_NODISCARD ggl_status llm_open_beside(llm_context **out, const llm_context *c,
                                                 const llm_open_params *params, ggl_error *err);
GGL_API void llm_close(llm_context *c); /* NULL is fine */

/* What is known of an open context. A later version may add members at its end. */
typedef struct llm_facts {
    int64_t n_ctx;    /* most tokens of the sequence */
    int32_t n_vocab;  /* the length of a row of logits */
    int32_t n_embd;   /* the length of a vector of llm_embed; 0: opened without embeddings */
    int32_t bos, eos; /* the tokens that begin and end a text; -1: none */
    bool has_chat;    /* there is a chat template, which llm_reply and llm_chat_format need */
    bool sees, hears; /* opened with an eye, with an ear (llm_open_params.mmproj) */
    const char *
        pooling; /* how vectors are made of texts: "mean", "last", "cls", "none", "rank", "max", "mean_sqrt_len_tokens", "weightedmean"; or several of a file's, as "cls+mean"; see llm_open_params.pooling */
    const char *
        placement; /* where the layers run: "cpu=12,vulkan0=20"; or one name, such as "cpu", if neither split nor n_gpu_layers was given */
} llm_facts;

/* Never NULL; valid until llm_close. */
GGL_API const llm_facts *llm_context_facts(const llm_context *c);
/* Gets the text under a key of the model's file, such as "general.architecture" or "general.name". The
 * caller frees *text, of *n bytes and a NUL, by ggl_free. GGL_NOT_FOUND: there is no such key;
 * GGL_FORMAT: its value is not a text. */
GGL_API GGL_NODISCARD ggl_status llm_context_text(const llm_context *c, const char *key,
                                                  char **text, size_t *n, ggl_error *err);
/* Returns key k = 0, 1, .. of the model's file, *n bytes without a NUL; NULL past the end. Valid until llm_close. */
GGL_API const char *llm_context_key(const llm_context *c, size_t k, size_t *n);
/* Gets the value of a key as JSON: a number, a boolean, a string, or an array of them. The caller frees *json, of *n
 * bytes and a NUL, by ggl_free. GGL_NOT_FOUND: there is no such key. */
GGL_API GGL_NODISCARD ggl_status llm_context_json(const llm_context *c, const char *key,
                                                  char **json, size_t *n, ggl_error *err);
/* What is left of a change after the changed weights are rounded to their types: with the change D of W and the rounded result Q, the share
 * is 1 - |Q - W - D|^2 / |D|^2, and at least 0. A small change of bf16 weights can be lost as a whole. */
typedef struct llm_kept {
    double share;     /* of the change of all weights; 1 if nothing changes */
    double least;     /* of the weight that keeps the least; 1 if nothing changes, */
    char weight[256]; /* and its name */
} llm_kept;

/* How an adapter goes back to the Hugging Face folder of its model. Zero-initialize it, and set size. */
typedef struct llm_folder_params {
    size_t size; /* sizeof(llm_folder_params) */
    /* Of llm_export_adapter: the type of the pairs, "f32", "f16" or "bf16". NULL: f16 or bf16 if the file has only that, else f32. */
    const char *type;
    /* Of llm_export_adapter: the model's name in adapter_config.json. NULL: the path of the folder. */
    const char *base_name;
    const char *arch; /* as llm_open_params.arch */
    /* Of llm_merge_adapters; 0: 1. The result does not depend on it. */
    int64_t n_threads;
    /* Of llm_merge_adapters: called with the bytes that are written, and all. False: the call returns GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *user, size_t done, size_t total);
    void *user;
    /* Of llm_merge_adapters: set on success. NULL: not wanted. */
    llm_kept *kept;
} llm_folder_params;

/* Writes an adapter's GGUF file as PEFT saves adapters, into the folder `out`, which must be empty or not there: adapter_config.json and adapter_model.safetensors. After a failure `out` is as it was. `folder`
 * is the Hugging Face folder of the model, of whose tensors only names and shapes are read. p may be NULL. GGL_UNSUPPORTED: PEFT has no form for a part
 * of it, which the message names; GGL_NOT_FOUND: the folder has no weight for a part; GGL_SHAPE, GGL_FORMAT, GGL_USAGE, GGL_IO, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_export_adapter(const char *adapter, const char *folder,
                                                    const char *out, const llm_folder_params *p,
                                                    ggl_error *err);
/* Writes a copy of a Hugging Face folder into the folder `out`, which must be empty or not there, with n adapters added to the weights. They are
 * computed in double precision, and rounded once to the types that they have; llm_folder_params.kept says how much of the change is left then. p may be NULL. As llm_export_adapter; GGL_FORMAT also if a weight
 * would be NaN or infinite. */
GGL_API GGL_NODISCARD ggl_status llm_merge_adapters(const llm_lora *adapter, size_t n,
                                                    const char *folder, const char *out,
                                                    const llm_folder_params *p, ggl_error *err);
/* Changes the scale of adapter k of llm_open_params.adapter, or, with k = n_adapters + i, of its control vector i. The sequence is empty afterwards. It plans
 * the model again, and needs memory for a second KV cache meanwhile; the model's weights stay as they are. GGL_USAGE: there is no adapter k, or the scale is
 * not finite; else as llm_open. After a failure the old scale stays. If the adapter also changes the eye or the ear, what
 * llm_see and llm_listen have computed of pictures and sounds was computed with the old scale, and stays so: call them again after this, and use
 * the marks that they then return. */
GGL_API GGL_NODISCARD ggl_status llm_set_adapter_scale(llm_context *c, size_t k, double scale,
                                                       ggl_error *err);

/* --- generating text -------------------------------------------------------------------------- */

/* An addition to the logit of a token; -INFINITY: it is never chosen. This struct stays as it is. */
typedef struct llm_token_bias {
    int32_t id;
    float bias;
} llm_token_bias;

/* A number of the sampler. This struct stays as it is. */
typedef struct llm_number {
    const char *name; /* llm_number_name has all of them */
    double value;
} llm_number;

/* How a model of the diffusion kind (Dream, LLaDA), whose tokens all see each other, writes a text: it begins as masks, which are
 * replaced by tokens, in any order. Zero it, and set size. */
typedef struct llm_diffuse_params {
    size_t size;     /* sizeof(llm_diffuse_params) */
    int32_t n_steps; /* 0: one for each token of the answer */
    int32_t
        n_block; /* > 0: blocks of so many tokens are written one after the other (LLaDA); 0: all at once (Dream) */
    double eps; /* of the schedule without blocks; 0: 0.001 */
    const char *
        order; /* which masks are replaced first: "confidence" (NULL: this one), "entropy", "margin", "random", "origin" */
    double order_temp; /* 0: strictly in that order */
    double
        cfg_scale; /* > 0: each step computes the text without the prompt, too, and goes away from that */
    /* Called before the first step and after each: the n tokens of the answer so far, of which some are the mask. False stops with
     * GGL_CANCELLED. NULL: none. */
    bool (*step)(void *user, int32_t n_done, int32_t n_steps, const int32_t *id, size_t n,
                 int32_t mask);
    void *user;
} llm_diffuse_params;

enum {
    LLM_NO_TOKENS = -2
}; /* 0, in an integer of the sampler in which 0 stands for another number */

typedef struct llm_generate_params {
    size_t size;   /* sizeof(llm_generate_params) */
    int64_t n_max; /* most tokens to generate; 0: until the text ends, or the context is full */
    float temp;    /* 0 or less: always the likeliest token */
    int32_t top_k; /* choose from the k likeliest tokens; 0: from all */
    float top_p;   /* choose from the likeliest whose probabilities add up to p; 0 or 1: from all */
    float min_p;   /* leave out tokens less probable than this times the likeliest; 0: none */
    float repeat_penalty;    /* makes recent tokens less likely (repeat_last_n); 0 or 1: off */
    bool ignore_end;         /* go on after the model ended its text */
    uint64_t seed;           /* same seed, same text */
    const char *const *stop; /* [n_stop]: the text ends before one of these */
    size_t n_stop;
    /* At most one of these two. The text then fits a grammar, or is JSON that fits a schema, and is
     * complete within n_max tokens where that is possible. NULL: any text. */
    const char *grammar;     /* GBNF: docs/grammars.md */
    const char *json_schema; /* docs/json-schema.md; "{}": any JSON */
    /* More stages of the sampler: docs/sampling.md. All are off if they are 0, except for numbers that a stage has
     * anyway: 0 is then the default that the comment names. */
    int32_t
        repeat_last_n; /* how many tokens are recent, for the penalties; 0: 64; -1: all; LLM_NO_TOKENS: none */
    float frequency_penalty;    /* subtracted from a logit for each occurrence among these */
    float presence_penalty;     /* subtracted once if there is one */
    float dynatemp_range;       /* temp varies by as much, by how sure the model is */
    float dynatemp_exponent;    /* 0: 1 */
    float typical_p;            /* keep the most typical tokens that add up to p; 0 or 1: off */
    float top_n_sigma;          /* leave out what is n standard deviations below the best */
    float xtc_probability;      /* how often the likeliest tokens are left out */
    float xtc_threshold;        /* they are those at least as probable as this; 0: 0.1 */
    float dry_multiplier;       /* makes long repetitions less likely */
    float dry_base;             /* 0: 1.75 */
    int32_t dry_allowed_length; /* 0: 2 */
    int32_t dry_last_n;         /* how many tokens are looked through; 0 or -1: all */
    const char *const
        *dry_breakers; /* [n_dry_breakers]: repetitions end here; NULL: "\n", ":", "\"", "*" */
    size_t n_dry_breakers;
    int32_t mirostat;                 /* 2: in place of the stages that leave tokens out */
    float mirostat_tau, mirostat_eta; /* 0: 5 and 0.1 */
    const llm_token_bias *bias;       /* [n_bias] */
    size_t n_bias;
    const char *samplers; /* the stages in another order: "top_k;temperature"; NULL: all */
    bool json_spaces;     /* json_schema: white space between values is allowed */
    bool show_special; /* the text has special tokens, too, such as the marks of calls of tools */
    /* The tools that the model may call, a JSON array of {"type": "function", "function": {"name": .., "parameters": {..}}}, and how: NULL, "auto" or "none": nothing is
     * demanded; "required": the text is calls, maybe after reasoning; a name: calls of this tool. Not with a grammar or
     * schema. llm_chat_answer takes both from the conversation. */
    const char *tools, *tool_choice;
    /* [n_numbers]: numbers of the sampler by their names (llm_number_name), those that are members above or not; with
     * priority over members. 0 is 0 here. */
    const llm_number *number;
    size_t n_numbers;
    size_t n_stop_shown; /* stop[0 .. n_stop_shown) are themselves a part of the text */
    /* When the context is full, drop tokens and go on, instead of ending the text: the first n_keep stay (-1: the prompt), the older
     * half of the others is dropped, and the rest is run again. A picture that would be cut is dropped whole. */
    bool shift;
    int64_t n_keep;
    const char *
        grammar_name; /* how messages name grammar or json_schema, such as its file; NULL: by the member */
    /* Draw with the sampler of the last generation, whose random numbers go on; the members about sampling are not read. */
    bool same_sampler; /* not in llm_generate_jobs */
    /* What follows is called with `user`, on the thread that generates; each may be NULL. llm_generate_jobs calls only token and shows. */
    void *user;
    /* Gets each token before its text is returned, except one that ends the text, and the logits [n_vocab] that it was drawn from.
     * Returning false ends the generation with GGL_CANCELLED. With it, a model whose tokenizer is unknown can generate. */
    bool (*token)(void *user, int32_t id, const float *logits);
    /* True if the text has this special token; NULL: as show_special says. Stop texts match special tokens that are not shown, too. */
    bool (*shows)(void *user, int32_t id);
    /* Returns how many tokens (*id) have to come next; 0: any may. Called before each token is drawn. */
    size_t (*force)(void *user, const int32_t **id);
    /* The context is full: gives the tokens *id of another sequence, *n of them, after which the same text goes on. False: it ends. */
    bool (*full)(void *user, const int32_t **id, size_t *n);
    /* Gets the logits after each token of the prompt, and after each row of a picture or a sound, but of a picture whose rows see each other only after the last one; all of them run then. */
    void (*prompt_logits)(void *user, int64_t i, const float *logits);
    /* Gets the number of tokens of a prompt that have run, and of all; false: stop with GGL_CANCELLED. */
    bool (*prompt_progress)(void *user, int64_t n_done, int64_t n);
    /* Gets sentences about names in json_schema that have no effect, and of llm_reply and llm_chat_answer about what of the conversation the prompt does
     * not show as it was given. */
    void (*note)(void *user, const char *text);
    /* [n_read]: of a model that reads a text before it writes (an encoder and a decoder, such as T5), the tokens of that
     * text; the prompt is then the beginning of what it writes. NULL: it reads the prompt, and begins with its own start token. */
    const int32_t *read;
    size_t n_read;
    /* For a model that writes by diffusion: how masks are replaced. NULL: the defaults. n_max 0: 64 tokens, or what fits. Such a text takes temp,
     * top_k, top_p and seed of the sampler, no grammar, schema or demanded tool, and no bias. It is returned as far as it is settled from the left, and
     * `token` gets no logits (NULL). The sequence is empty afterwards. */
    const llm_diffuse_params *diffuse;
    /* > 1: the text is the likeliest that a search of so many beams finds (at most 64, and llm_open_params.n_parallel), instead of one that is drawn;
     * no sampler, grammar, schema or bias acts on it, and the sequence is empty afterwards. n_max 0: until the context is full. Models that
     * translate or summarize were published for it. A text's score is the sum of its log-probabilities divided by its length ^
     * length_penalty; early_stopping: end as soon as n_beams texts have ended. (As transformers defines them.) A job takes as
     * many of the n_parallel sequences, waits until they are free, and gets its text when the search is done. */
    int32_t n_beams;
    float length_penalty; /* 1 is usual, and the default; with 0, long texts score less */
    bool early_stopping;
} llm_generate_params;

/* llama.cpp's defaults, whatever the model's file says: temp 0.8, top_k 40, top_p 0.95, min_p 0.05, n_max 0, seed 0. */
static inline llm_generate_params llm_generate_default(void);
/* The same with what the file of the open model says about sampling (general.sampling.*; docs/sampling.md), unless it was opened with no_file_sampling: so the
 * programs begin. `samplers` is valid until llm_close. c NULL: llm_generate_default(). */
static inline llm_generate_params llm_generate_default_of(const llm_context *c);

/* Returns the name of a number of the sampler, as requests to llm-server have it ("temperature"), for i from 0;
 * NULL after the last one. docs/sampling.md says what each does. */
GGL_API const char *llm_number_name(size_t i);

/* Receives the text piece by piece: n bytes without a NUL at the end. They are whole characters if the
 * model writes UTF-8. Returning false ends the generation with GGL_CANCELLED. */
typedef bool llm_piece_fn(void *user, const char *piece, size_t n);

/* Generates text after a prompt, and passes it to `each` (NULL: to nothing). The sequence becomes the
 * prompt, with the special tokens that the model expects at its beginning, and the generated tokens.
 * Text that spells a special token, such as "</s>", becomes that token. params NULL: llm_generate_default_of(c). GGL_LIMIT: the prompt
 * exceeds the context; GGL_CANCELLED: stopped by `each` or llm_cancel, and the sequence has the
 * tokens run so far; GGL_USAGE: params are wrong; GGL_UNSUPPORTED: the model's tokenizer is unknown, or
 * the schema has a keyword that cannot be guaranteed; GGL_FORMAT: the grammar or schema is wrong, or no text
 * fits it, or the model's numbers are not finite; GGL_LIMIT also: the grammar is too large; GGL_NOMEM,
 * GGL_DEVICE. After a failure the context can still be used. */
GGL_API GGL_NODISCARD ggl_status llm_generate(llm_context *c, const char *prompt,
                                              const llm_generate_params *params, llm_piece_fn *each,
                                              void *user, ggl_error *err);
/* Like llm_generate, for programs that have tokens, to which no special ones are added, and ask for each piece:
 *
 *     if (llm_begin(c, ids, n, &p, &err) != GGL_OK) ...
 *     while ((st = llm_next(c, &piece, &n_piece, &err)) == GGL_OK && piece)
 *         fwrite(piece, 1, n_piece, stdout);
 *
 * llm_begin runs the prompt. Each llm_next runs the model until there is a piece of text, and sets *piece
 * to it, which is valid until the next call. After the end of the text, *piece is NULL. After a failure *piece is
 * text that was held back, because it could have become a stop text, or NULL. A program need
 * not read to the end: the next call that changes the sequence ends the generation. Statuses are those of
 * llm_generate; after a failure the text has ended, too. */
GGL_API GGL_NODISCARD ggl_status llm_begin(llm_context *c, const int32_t *id, size_t n,
                                           const llm_generate_params *params, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_next(llm_context *c, const char **piece, size_t *n,
                                          ggl_error *err);

/* Checks parameters as llm_begin does, but runs nothing. What is made of a grammar or schema is kept for the next generation
 * with the same one. */
GGL_API GGL_NODISCARD ggl_status llm_check_params(llm_context *c, const llm_generate_params *params,
                                                  ggl_error *err);

/* A message of a conversation. This struct stays as it is. */
typedef struct llm_message {
    const char *role; /* "system", "user", "assistant" */
    const char *content;
} llm_message;

/* Answers a conversation of n messages: formats it by the model's chat template, and generates. GGL_NOT_FOUND:
 * the model has no template (llm_open_params.chat_template names one); GGL_USAGE also: the template refuses
 * the conversation; else as llm_generate. */
GGL_API GGL_NODISCARD ggl_status llm_reply(llm_context *c, const llm_message *message, size_t n,
                                           const llm_generate_params *params, llm_piece_fn *each,
                                           void *user, ggl_error *err);
/* What llm_chat_format gives besides the text. The caller frees id and notes by ggl_free. This struct stays as it is. */
typedef struct llm_formatted {
    int32_t *
        id; /* [n_id]: the tokens of the prompt, in which what looks like a control token in a message is text */
    size_t n_id;
    char *
        notes; /* what of the conversation the prompt does not show as it was given, such as a system message that stands in a user's: lines; "": nothing */
} llm_formatted;
/* Formats a conversation as llm_reply does. json: the text of an object that the template reads,
 * {"messages": [..], "tools": [..]}, in any form that llm-server reads, which makes the same prompt of it (docs/templates.md); GGL_FORMAT: it is none, or one
 * of the tools is no function. An error about a message names it: "messages[1]: ..". A content may be a list of parts of text; pictures, sounds and
 * files are refused (GGL_UNSUPPORTED): llm_chat_see puts marks in their places. answer: end with the beginning of an answer. The caller frees
 * *text, of *n bytes and a NUL, by ggl_free. Its special tokens are all in it: tokenize it without
 * LLM_ADD_SPECIAL; but what stems from messages can no longer be told from the rest then, so take more->id for llm_begin. more: NULL: nobody asks;
 * after a failure its members are NULL. */
GGL_API GGL_NODISCARD ggl_status llm_chat_format(const llm_context *c, const char *json,
                                                 bool answer, char **text, size_t *n,
                                                 llm_formatted *more, ggl_error *err);

/* Shows the pictures of a conversation to the model and plays its sounds, as llm_see and llm_listen do: *seen becomes the same conversation with their marks in
 * their places, for llm_chat_format. json: as for llm_chat_format, with contents that are lists of parts, in the order of the text, such as
 *
 *     {"type": "image_url", "image_url": {"url": "data:image/png;base64,DIGITS"}}       also "input_image", and the url itself in place of the object
 *     {"type": "input_audio", "input_audio": {"data": "DIGITS", "format": "wav"}}       the file says what it is; the format has no effect
 *
 * Nothing is downloaded. What was shown is held until the next llm_chat_see or llm_chat_answer of this context shows a conversation that neither has it again nor has
 * its mark; a call that fails before it has shown all of its own lets go of nothing that was held before. llm_unsee is for marks of llm_see and llm_listen. The caller frees *seen, *n bytes and a NUL, by ggl_free. Of a conversation of texts it is a copy.
 * GGL_FORMAT: json is none; GGL_USAGE: a part has another form; GGL_UNSUPPORTED: the model has no eye or no ear for it; else as llm_see and llm_listen. The sentence begins
 * with its place: "messages[0]: content[1]: ..". *seen is then NULL. */
GGL_API GGL_NODISCARD ggl_status llm_chat_see(llm_context *c, const char *json, char **seen,
                                              size_t *n, ggl_error *err);

typedef enum llm_part {
    LLM_PART_CONTENT,  /* text for the user */
    LLM_PART_REASONING /* the model's thoughts */
} llm_part;

/* Receives the answer piece by piece: n bytes of one part. Returning false ends the generation with GGL_CANCELLED. */
typedef bool llm_part_fn(void *user, llm_part part, const char *piece, size_t n);

/* Answers a conversation with tools: json is as for llm_chat_format, and may have "tools", "tool_choice" and "parallel_tool_calls" (as in
 * OpenAI's API; with false the answer ends after its first call); its pictures and sounds are shown as llm_chat_see does. Generates as llm_reply does, and passes content and reasoning to `each` (NULL: to nothing) while they
 * come. *message becomes the JSON of the whole message, to be appended to the conversation:
 *
 *     {"role": "assistant", "reasoning_content": .., "content": .., "tool_calls": [{"id": "call_0", "type": "function",
 *      "function": {"name": "f", "arguments": "{..}"}}, ..]}
 *
 * with reasoning_content and tool_calls only if there are any, and content null beside calls. Without tools, a call is content. The caller frees it, *n
 * bytes and a NUL, by ggl_free. With tool_choice "required" or a tool's name the answer is calls whose arguments fit
 * their schemas; GGL_UNSUPPORTED: calls in the model's format cannot be demanded. Else as llm_reply. */
GGL_API GGL_NODISCARD ggl_status llm_chat_answer(llm_context *c, const char *json,
                                                 const llm_generate_params *params,
                                                 llm_part_fn *each, void *user, char **message,
                                                 size_t *n, ggl_error *err);

typedef struct llm_parse_params {
    size_t size; /* sizeof(llm_parse_params) */
    const char *
        tools; /* the tools, a JSON array; NULL: none. What is a string and what a number can depend on them */
    const char *prompt; /* the prompt, as its end may begin the answer; NULL if it does not */
    bool is_cut;        /* the answer ended at a limit: a call that is not complete is left out */
} llm_parse_params;
/* Splits an answer of n bytes that was generated with show_special, as llm_chat_answer does. params may be NULL. Calls are found
 * without `tools`, too: of any function. A call that cannot be read becomes content. A line break is put between texts that stand on two sides of a call. The caller frees *json, of *n_json bytes and a NUL, by ggl_free. GGL_FORMAT: tools
 * are no JSON array; GGL_LIMIT: the answer is longer than 16 MiB; GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_chat_parse(const llm_context *c, const char *answer, size_t n,
                                                const llm_parse_params *params, char **json,
                                                size_t *n_json, ggl_error *err);

typedef enum llm_finish {
    LLM_FINISH_NONE,      /* nothing was generated yet, or llm_next has not come to the end */
    LLM_FINISH_END,       /* the model ended its text, or the grammar allows nothing more */
    LLM_FINISH_STOP,      /* the text came to one of `stop` */
    LLM_FINISH_LENGTH,    /* n_max tokens were generated */
    LLM_FINISH_CONTEXT,   /* the context is full */
    LLM_FINISH_CANCELLED, /* by the callback or llm_cancel */
    LLM_FINISH_ERROR      /* the call failed otherwise */
} llm_finish;

/* Facts about the last llm_generate, llm_begin, llm_reply or llm_chat_answer. */
typedef struct llm_run_info {
    size_t size; /* sizeof(llm_run_info), set by the caller */
    llm_finish finish;
    int32_t stop;        /* index of the text that stopped it; -1: none did */
    int64_t n_reused;    /* tokens of the prompt that were in the context already */
    int64_t n_prompt;    /* tokens of the prompt that were run */
    int64_t n_generated; /* tokens, the one that ends the text not counted */
    int64_t n_guessed;   /* tokens that were guessed (llm_open_params.draft, lookup) */
    int64_t n_right;     /* those of them that were right, which cost no step of their own */
    double prompt_seconds, seconds; /* the prompt's time; that of the calls that generated */
    int64_t n_nan;                  /* NaNs among the last logits; such tokens are never drawn */
    int64_t n_shifts,
        n_dropped;   /* how often the context was full (shift), and how many tokens that dropped */
    bool incomplete; /* by its grammar or schema, the text is not complete */
    double
        repack_seconds; /* the part of these times in which weights were prepared (llm_open_params.repack_late) */
} llm_run_info;
/* Fills in as many members as info->size says. GGL_USAGE: size is wrong. */
GGL_API GGL_NODISCARD ggl_status llm_last_run(const llm_context *c, llm_run_info *info,
                                              ggl_error *err);

/* One of many texts that are generated at once. Set all members to 0 first. This struct keeps its size. */
typedef struct llm_job {
    const char *prompt; /* the prompt, as for llm_generate; or NULL and.. */
    const int32_t *id;  /* ..[n]: its tokens, as for llm_begin */
    size_t n;
    const llm_generate_params *params; /* NULL: llm_generate_default_of(c) */
    llm_piece_fn *each; /* receives the text; returning false ends this job alone. NULL: none */
    void *user;         /* for `each` */
    /* Results: as of llm_run_info, and what went wrong (status GGL_OK: nothing). */
    llm_finish finish;
    int32_t stop;
    int64_t n_reused, n_prompt, n_generated;
    ggl_error err;
    bool incomplete;
} llm_job;
/* Generates n texts, llm_open_params.n_parallel of them at once in one batch, which takes much less time than one
 * after the other. Each text is the one that llm_begin and llm_next would give, bit for bit. Calls of `each` for different
 * jobs alternate. Prompts that begin alike share that part where they follow one another. The sequence is empty
 * afterwards. A job that fails does not end the others, and is no failure of this call. GGL_CANCELLED: llm_cancel, so jobs
 * that had not ended have this status, too; GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_generate_jobs(llm_context *c, llm_job *job, size_t n,
                                                   ggl_error *err);

/* The same for programs to which jobs come one after the other, such as servers: each step of the model generates the next token
 * of every job that runs, and jobs join and leave between steps.
 *
 *     if (llm_jobs_add(c, &job, &err) != GGL_OK) ...
 *     while ((st = llm_jobs_step(c, &n_left, &err)) == GGL_OK && n_left > 0)
 *         ... llm_jobs_add(c, &another, &err) ...
 *
 * llm_jobs_add lets a job wait for its turn. The job and what it points to stay in place until its `finish` is not
 * LLM_FINISH_NONE. After a failure, which job->err holds, too, the job was not added: GGL_USAGE, GGL_LIMIT, GGL_NOMEM, ..
 * as of llm_begin. llm_jobs_step runs one step and sets *n to the number of jobs that wait or run; its failures are those of the
 * jobs, except that GGL_CANCELLED (llm_cancel) ends all of them. llm_jobs_end ends one job, with LLM_FINISH_CANCELLED: now, or
 * in a callback at the end of the step; one that has ended, or is unknown, is ignored. A callback of a job may call llm_jobs_end and llm_cancel,
 * but no other function with its context. Every other call that changes the sequence ends all jobs first. */
GGL_API GGL_NODISCARD ggl_status llm_jobs_add(llm_context *c, llm_job *job, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_jobs_step(llm_context *c, size_t *n, ggl_error *err);
GGL_API void llm_jobs_end(llm_context *c, llm_job *job);

/* Stops the call that another thread is making with this context, as soon as the current step of the
 * model has ended. That call returns GGL_CANCELLED. If there is no such call, it ends what llm_begin has
 * begun: the next llm_next returns GGL_CANCELLED. If nothing was begun, or c is NULL, it has no effect. */
GGL_API void llm_cancel(llm_context *c);

/* Several machines (docs/cluster.md): a program that mpirun starts as several processes calls this first in main, before threads
 * and files. It sets *exit_code to -1 in rank 0, and where mpirun has started no other process: the program goes on, and its devices
 * ("rank1", "rank2:vulkan0") are those of the other ranks, which end when it ends. In these the call computes for rank
 * 0, returns when the job has ended, and sets *exit_code to what main is to return.
 *
 *     int code;
 *     if (llm_join_job(&code, &err) != GGL_OK)
 *         return fprintf(stderr, "%s\n", err.msg), 1;
 *     if (code >= 0)
 *         return code;
 *
 * GGL_UNSUPPORTED: the library has no plug-in for MPI, or the ranks are of different builds; GGL_DEVICE: rank 0 is gone. */
GGL_API GGL_NODISCARD ggl_status llm_join_job(int *exit_code, ggl_error *err);

/* --- tokens ----------------------------------------------------------------------------------- */

enum {
    LLM_ADD_SPECIAL =
        1, /* llm_encode: add the special tokens that the model expects around a text */
    LLM_READ_SPECIAL = 2, /* llm_encode: text that spells a special token becomes that token */
    LLM_SHOW_SPECIAL = 4  /* llm_decode: write special tokens, too */
};

/* Turns n bytes of text into tokens. The caller frees *id by ggl_free. GGL_UNSUPPORTED: the
 * model's tokenizer is unknown; GGL_LIMIT, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_encode(const llm_context *c, const char *text, size_t n,
                                            unsigned flags, int32_t **id, size_t *n_id,
                                            ggl_error *err);
/* Turns tokens into text. Those of a sequence that stand for rows of pictures and sounds, which are below 0, have no text. The caller frees
 * *text, of *n bytes and a NUL, by ggl_free. GGL_USAGE: a token is not in the vocabulary; GGL_UNSUPPORTED, GGL_NOMEM as of llm_encode. */
GGL_API GGL_NODISCARD ggl_status llm_decode(const llm_context *c, const int32_t *id, size_t n_id,
                                            unsigned flags, char **text, size_t *n, ggl_error *err);
/* The bytes of one token, special ones too; "" and *n 0 if there is none. Valid until llm_close. */
GGL_API const char *llm_token_bytes(const llm_context *c, int32_t id, size_t *n);
/* True if the token ends a text. */
GGL_API bool llm_token_is_end(const llm_context *c, int32_t id);

/* --- logits, embeddings, and the sequence ----------------------------------------------------- */

/* Appends n tokens to the sequence. Gives the logits after each of them (all), [n][n_vocab], or only
 * after the last one, [1][n_vocab]: *logits belongs to the context, and is valid until its next call.
 * logits may be NULL. GGL_LIMIT: the context is full; GGL_USAGE: n is 0, or a token is out of range;
 * GGL_CANCELLED, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_eval(llm_context *c, const int32_t *id, size_t n, bool all,
                                          const float **logits, ggl_error *err);
/* Returns the logits [n_vocab] after the last token that llm_eval has run, or those from which the last
 * token was generated; NULL if there are none. Valid until the next call. */
GGL_API const float *llm_logits(const llm_context *c);

/* Turns a prompt and the text that follows it into tokens *id, both together, as the model learned them: "in the" and " garden". The
 * first *n_begin of *n_id are those of the prompt; a token with the end of the prompt and the beginning of the text is not.
 * (llm_encode on the text alone gives other tokens: for many models, it begins with a space of its own.) flags and statuses are those of
 * llm_encode; GGL_USAGE: nothing is left of one of them. The caller frees *id by ggl_free. */
GGL_API GGL_NODISCARD ggl_status llm_encode_after(const llm_context *c, const char *prompt,
                                                  size_t n_prompt, const char *text, size_t n,
                                                  unsigned flags, int32_t **id, size_t *n_begin,
                                                  size_t *n_id, ggl_error *err);

/* Scores a continuation of a prompt: logprob[i] becomes the natural logarithm of the model's probability of token id[i] after the
 * prompt and the tokens before it, and greedy[i] whether it is the likeliest token there. Both are [n], or NULL. The sequence
 * becomes the prompt and all but the last token of id; what it has in common with the prompt is not run again, which makes
 * further continuations of the same prompt cheap. llm_encode_after gives the tokens of both. A model that reads a text and writes
 * another scores what it would write after the text that the last generation has read. GGL_USAGE: a token is out of range, n_prompt or
 * n is 0, or no text has been read; GGL_LIMIT: they exceed the context; GGL_UNSUPPORTED: tokens of the model see those after them, or it
 * gives no logits; GGL_CANCELLED, GGL_NOMEM, GGL_DEVICE. */
GGL_API GGL_NODISCARD ggl_status llm_score(llm_context *c, const int32_t *prompt, size_t n_prompt,
                                           const int32_t *id, size_t n, double *logprob,
                                           bool *greedy, ggl_error *err);

/* What llm_choose knows of a label. This struct stays as it is. */
typedef struct llm_choice {
    double logprob; /* the natural logarithm of the probability of its tokens after the prompt */
    double probability; /* its share of 1 among the labels */
    size_t n_tokens;    /* that count, with the end of the text if that does */
} llm_choice;
typedef struct llm_choose_params {
    size_t size; /* sizeof(llm_choose_params) */
    /* The prompt is a conversation, as JSON for llm_chat_format, and labels are the beginning of its answer. */
    bool chat;
    /* Labels are compared by their log-probability for each token, which makes long ones as likely as short ones. */
    bool per_token;
    /* What is compared is that the text goes on with a label and ends then. Without it, it may go on in any way, unless one label begins with
     * all tokens of another, of which both would be true at the same time: then the ends count, too. */
    bool with_end;
    /* [n]: what the labels stand for, for example 1 to 5. *mean becomes the sum of value times probability. NULL: nothing. */
    const double *value;
    double *mean;
    bool *ends; /* becomes true if the ends count. NULL: nobody asks */
} llm_choose_params;
/* Compares n labels, label[k] of n_label[k] bytes, as continuations of a prompt: choice[k] gets what is known of label k. The prompt runs
 * once, and so does each token that several labels begin with; with llm_open_params.n_parallel, so many labels run in one batch. A
 * question of yes or no is a choice of two, and a score one of numbers (value, mean).
 *
 * A label's tokens are those that prompt and label have together, from the first one on that is not the same for the prompt alone and all labels: as
 * llm_encode_after, for all labels at once. So a label usually begins with a space, unless the prompt ends a line or is a
 * conversation. Probabilities are the model's own: neither sampling nor tokens that the model's file suppresses change them.
 * The sequence becomes the prompt without the tokens that change; what it has in common with the prompt is not run again.
 *
 * GGL_USAGE: there are no labels, one has no token, two are the same, or ends count and no token ends a text; GGL_LIMIT: the prompt and a label exceed the context;
 * else as llm_encode_after, llm_chat_format and llm_score. */
GGL_API GGL_NODISCARD ggl_status llm_choose(llm_context *c, const char *prompt, size_t n_prompt,
                                            const char *const *label, const size_t *n_label,
                                            size_t n, const llm_choose_params *params,
                                            llm_choice *choice, ggl_error *err);

/* Writes the embedding of n bytes of text to out: a vector [n_embd] of length 1. It is pooled as the
 * model's file says (mean, first or last token), or as the mean if the file does not say, unless
 * llm_open_params.pooling chooses. llm_open refuses embeddings of a model whose file has another pooling, for
 * example one that ranks texts. The sequence is empty afterwards.
 * GGL_UNSUPPORTED: opened without embeddings. */
GGL_API GGL_NODISCARD ggl_status llm_embed(llm_context *c, const char *text, size_t n, float *out,
                                           ggl_error *err);

/* Gets the prompt that an embedding model expects before a text (llm_embed_params.prompt): that of the key
 * sentence_transformers.prompt.NAME of its file. Of an adapter
 * for a task (llm_embed_params.task), it is that of its key adapter.lora.prompt_prefix. "query" and "document" (also under the names passage and corpus): if there is none, and for
 * a name of NULL, it is the one that the key sentence_transformers.default_prompt names, or "". The caller frees
 * *text, of *n bytes and a NUL, by ggl_free. GGL_NOT_FOUND: there is no prompt of another name; the message has their names. */
GGL_API GGL_NODISCARD ggl_status llm_embed_prompt(const llm_context *c, const char *name,
                                                  char **text, size_t *n, ggl_error *err);

/* Returns the name of the k-th task for which there are adapters, *n bytes; NULL past the end. Valid until llm_close. */
GGL_API const char *llm_context_task(const llm_context *c, size_t k, size_t *n);

/* Returns 1 + k of the task that llm_embed_params.task would choose by this name, which may be NULL; 0: none. */
GGL_API int32_t llm_find_task(const llm_context *c, const char *name);

/* Vectors of many texts. Texts of any lengths run together, as many as fit into n_ubatch tokens at once, and without
 * padding; each has the bits that it has alone. Zero it, and set size. */
typedef struct llm_embed_params {
    size_t size;       /* sizeof(llm_embed_params) */
    bool no_normalize; /* vectors as the model computes them; else of length 1 */
    /* Only the first numbers of each vector, before it gets length 1; 0: llm_facts.n_embd, which is all of them unless the model's file says less
     * (sentence_transformers.truncate_dim). Up to all may be asked for. */
    int32_t n_dims;
    /* Called for each text, in order, with its n_rows rows of n numbers, one after the other, valid during the call: one
     * row, or with the pooling "none" one for each token, not normalized. With the pooling "rank" they are scores. Returning
     * false stops, and the call returns GGL_CANCELLED. */
    bool (*each)(void *user, size_t text, size_t n_rows, const float *row, size_t n);
    void *user;
    /* Adapters whose file names a task (adapter.lora.task_name) count only if it is chosen: by its name, or as "query" or "document", which
     * mean retrieval.query and retrieval.passage if there are adapters for these, and else nothing. NULL: the task of all opened adapters
     * that have one, if it is the same; else none. GGL_NOT_FOUND: there is no adapter for a task of another name. */
    const char *task;
    /* The texts are queries. Models of ColBERT's kind fill them up to a length of their own (the key sentence_transformers.query_length) with the
     * mask token, whose vectors count, too; other texts see these tokens only if sentence_transformers.attend_to_expansion_tokens says so. */
    bool query;
    /* Texts of more tokens than llm_facts.n_ctx are cut to so many, of which the last one stays the token that ends texts; else GGL_LIMIT says
     * which text it is, before any is computed. */
    bool truncate;
    /* What looks like a special token in a text, such as [SEP], is text. Else it is that token, as for sentence-transformers. */
    bool no_parse_special;
    const char *
        prompt; /* n_prompt bytes that come before each text, as llm_embed_prompt gives them; NULL: none. Vectors of its tokens are left out if the */
    size_t
        n_prompt; /* model's file says so (sentence_transformers.include_prompt), which is why it is no part of the texts. Lists of tokens begin with it. */
    /* Of llm_embed_tokens, [n_texts] lists as long as those of tokens: which of two texts side by side each is of, as llm_encode_pair gives
     * them. Models that know no such types do not read them. NULL: all are 0. */
    const int32_t *const *type;
} llm_embed_params;

/* Embeds n_texts texts, text[i] of n[i] bytes, as llm_embed does, or lists of tokens, taken as they are. The sequence is
 * empty afterwards. GGL_USAGE: a text has no tokens; GGL_LIMIT: a text is longer than the context, and is not cut. */
GGL_API GGL_NODISCARD ggl_status llm_embed_texts(llm_context *c, const char *const *text,
                                                 const size_t *n, size_t n_texts,
                                                 const llm_embed_params *params, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_embed_tokens(llm_context *c, const int32_t *const *id,
                                                  const size_t *n, size_t n_texts,
                                                  const llm_embed_params *params, ggl_error *err);
/* Turns a query and a text into the tokens that a reranker reads: in the form of the file's key tokenizer.chat_template.rerank,
 * in which {query} and {document} stand for them, as the tokenizer's own pairs (tokenizer.ggl.pair), or one after the other, with the special
 * tokens that the model expects. *type: which of the two each token is of, for llm_embed_params.type; type NULL: not wanted.
 * The caller frees *id and *type, both [*n_id], by ggl_free. Statuses of llm_encode. llm_embed_tokens with the pooling "rank" gives all
 * scores of such tokens. */
GGL_API GGL_NODISCARD ggl_status llm_encode_pair(const llm_context *c, const char *query,
                                                 size_t n_query, const char *text, size_t n,
                                                 int32_t **id, int32_t **type, size_t *n_id,
                                                 ggl_error *err);
/* Sets score[i] to the first score that a reranker gives to a query and text i: the larger, the better it answers. truncate: the end of a
 * text is cut if the two are longer than the context; else GGL_LIMIT says which one is. Scores are as the model computes them, which may be any numbers. GGL_UNSUPPORTED: the model is no reranker, but for
 * example a classifier, whose file names several labels, the first of which is not "yes", or it was opened with a pooling other than "rank". */
GGL_API GGL_NODISCARD ggl_status llm_rerank(llm_context *c, const char *query, size_t n_query,
                                            const char *const *text, const size_t *n,
                                            size_t n_texts, bool truncate, float *score,
                                            ggl_error *err);

/* The tokens of the sequence; *n is their number. Valid until the next call. */
GGL_API const int32_t *llm_sequence(const llm_context *c, size_t *n);
/* The tokens of the text that the sequence reads, of a model that reads one before it writes; *n is 0 if there is none. Valid until
 * the next call. With llm_generate_params.read the same, a generation does not read it again. */
GGL_API const int32_t *llm_sequence_read(const llm_context *c, size_t *n);
/* Keeps the first n tokens of the sequence; 0 empties it. Only llm_eval needs this: calls with a prompt
 * do it themselves. A model with recurrent states cannot go back, so its n tokens are run again. GGL_USAGE: there are fewer than n. */
GGL_API GGL_NODISCARD ggl_status llm_truncate(llm_context *c, size_t n, ggl_error *err);

/* Saves the sequence, with its KV cache and states, and the text that it reads, if there is one, to a file, which appears when it is complete; llm_restore makes it
 * the sequence again, so that its tokens need not run. llm_save runs the last token of a generation, which was only
 * drawn; if the generation has filled the context, which then has no room for this token, the file has the token without its keys and values.
 * Only a context that computes the same bits can use the file: of the
 * same model, adapters, placement and types of the KV cache. GGL_USAGE: the sequence is empty, or there is another file
 * of that name, which stays; GGL_NOT_FOUND: there is no such file; GGL_UNSUPPORTED: it is of another model, version or setting;
 * GGL_FORMAT: it is damaged, empty, of another kind, or has other types of the KV cache; GGL_LIMIT: the context is too small for it; GGL_IO, GGL_NOMEM, GGL_DEVICE. The message
 * begins with the path. After a failure of llm_restore the sequence is as before, or empty. */
GGL_API GGL_NODISCARD ggl_status llm_save(llm_context *c, const char *path, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_restore(llm_context *c, const char *path, ggl_error *err);

/* --- defaults --------------------------------------------------------------------------------- */

/* Fills in as many bytes as the caller's struct has; called by the function below, which is compiled
 * into the program and so knows the program's size. */
GGL_API void llm_generate_fill_default(llm_generate_params *p, size_t size);
static inline llm_generate_params llm_generate_default(void) {
    llm_generate_params p;
    llm_generate_fill_default(&p, sizeof p);
    return p;
}
GGL_API void llm_generate_fill_default_of(const llm_context *c, llm_generate_params *p,
                                          size_t size);
static inline llm_generate_params llm_generate_default_of(const llm_context *c) {
    llm_generate_params p;
    llm_generate_fill_default_of(c, &p, sizeof p);
    return p;
}

#ifdef __cplusplus
}
#endif
#endif
