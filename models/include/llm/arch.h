/* Architecture descriptors: a text says which keys and tensors a model has and what happens to one
 * token; building it against a source of keys and tensors gives a graph. The language:
 * docs/architectures.md.
 *
 *     llm_arch *arch;
 *     llm_arch_source src = llm_arch_source_gguf(file);
 *     ggl_graph *g = ggl_graph_new(NULL);
 *     if (llm_arch_open(&arch, "llama", &err) != GGL_OK ||
 *         llm_arch_build(arch, &src, NULL, g, NULL, &err) != GGL_OK || ggl_graph_finish(g, &err) !=
 * GGL_OK) fprintf(stderr, "%s\n", err.msg);              // file:line:column, the line, a caret
 *
 * A descriptor may come from an untrusted file: time, memory and depth are bounded, every error is
 * an ordinary one. */
#ifndef LLM_ARCH_H
#define LLM_ARCH_H

#include "ggl/gguf.h"
#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_ARCH_LANGUAGE 1 /* versions of the language up to this are understood */

/* --- descriptors ------------------------------------------------------------------------------ */

typedef struct llm_arch llm_arch;

/* Parses a descriptor: grammar, names, calls, limits. The text is copied; `name` ("llama.arch")
 * stands in messages and is copied too. On success the caller owns *out; on failure *out is NULL.
 * GGL_FORMAT, GGL_LIMIT, GGL_UNSUPPORTED (a newer language), GGL_NOMEM. A parsed descriptor is
 * never changed: any number of threads may build from it. */
GGL_API GGL_NODISCARD ggl_status llm_arch_parse(llm_arch **out, const char *text, size_t n,
                                                const char *name, ggl_error *err);
GGL_API void llm_arch_free(llm_arch *arch);

GGL_API const char *llm_arch_name(const llm_arch *arch); /* "llama.arch" */
/* The names of its header, which are values of a file's general.architecture: k = 0, 1, ..; NULL
 * past the end. */
GGL_API const char *llm_arch_family(const llm_arch *arch, int k);
GGL_API int llm_arch_n_lines(const llm_arch *arch);
/* Its text, n bytes; the descriptor's. */
GGL_API const char *llm_arch_text(const llm_arch *arch, size_t *n);

/* The descriptors compiled into the library, in order of their names; false past the end. */
GGL_API bool llm_arch_builtin(int k, const char **name, const char **text, size_t *n);
/* The built-in descriptor whose header has this family. GGL_NOT_FOUND with the nearest name. */
GGL_API GGL_NODISCARD ggl_status llm_arch_open(llm_arch **out, const char *family, ggl_error *err);
/* The built-in descriptor of that file's name, with or without ".arch": "llama". False: there is none. */
GGL_API bool llm_arch_builtin_named(const char *name, const char **file, const char **text,
                                    size_t *n);
/* A descriptor as people give one: a file, or where there is no such file the name of a built-in one. *builtin (may be NULL)
 * says which. GGL_IO, GGL_FORMAT, GGL_LIMIT. */
GGL_API GGL_NODISCARD ggl_status llm_arch_open_given(llm_arch **out, const char *given,
                                                     bool *builtin, ggl_error *err);

/* --- where keys and tensors come from --------------------------------------------------------- */

typedef enum llm_arch_type { LLM_ARCH_NUMBER, LLM_ARCH_BOOL, LLM_ARCH_STRING } llm_arch_type;

typedef struct llm_arch_key {
    llm_arch_type type; /* of the value, or of a list's elements */
    bool is_list;
    uint64_t n;         /* elements; 1 unless a list */
    const void *handle; /* the source's own */
} llm_arch_key;

typedef struct llm_arch_item {
    double number;
    bool flag;
    ggl_str string;
} llm_arch_item;

typedef struct llm_arch_tensor {
    const char *name;
    bool optional; /* asked with '?', 'bias?' or '??': it may be absent */
    /* In: as declared. Out: as the source has it. */
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    const void *data; /* borrowed until the graph is freed; NULL if only the table was read */
} llm_arch_tensor;

/* The source outlives the graph: weights point into it. */
typedef struct llm_arch_source {
    void *ctx;
    const char *name; /* "model.gguf", for messages */
    bool (*find_key)(void *ctx, const char *name, llm_arch_key *out);
    bool (*get_item)(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out);
    /* *t names a tensor and has the declared shape; true: the source has it, *t tells type, shape
     * and data. */
    bool (*find_tensor)(void *ctx, llm_arch_tensor *t);
    /* For the check that nothing is left unread: the i-th name, false past the end. NULL: no such
     * check, and no tensor is looked for as a part of another (`a, b from "ab"`). */
    bool (*key_at)(void *ctx, size_t i, ggl_str *name);
    bool (*tensor_at)(void *ctx, size_t i, ggl_str *name);
    /* May be NULL. A `require key == value` does not hold; made-up values take the hint and are
     * built from again. item NULL: the key has to be absent. */
    void (*require_key)(void *ctx, const char *name, const llm_arch_item *item);
} llm_arch_source;

GGL_API llm_arch_source llm_arch_source_gguf(const ggl_gguf *file);

/* --- building --------------------------------------------------------------------------------- */

/* Patterns of keys and tensors, by their full names ('*' stands for anything), that are no error
 * where the descriptor does not read them, at the user's own risk. A key or tensor that it does
 * read is read all the same. What was ignored stands in the notes, and so does a pattern that fits
 * nothing. */
typedef struct llm_arch_ignore {
    const char *const *key, *const *tensor;
    size_t n_key, n_tensor;
} llm_arch_ignore;

typedef struct llm_arch_params {
    int64_t n_ctx;   /* what `n_ctx` is; 0: the graph's n_pos */
    int64_t n_vocab; /* what `n_vocab` is; 0: {arch}.vocab_size, or as many as
                        tokenizer.ggml.tokens, or token_embd's rows */
    llm_arch_ignore ignore;
    /* May be NULL. Called for the i-th tensor of the source if nothing reads it. part, valid until it
     * returns: which part of a model that text does not need it belongs to ("a vision tower"); NULL:
     * it is an error, unless it is to be ignored. */
    void (*unread)(void *ctx, size_t i, const char *part);
    void *ctx;
} llm_arch_params;

typedef enum llm_arch_line {
    LLM_ARCH_LINE_RAN = 1,   /* a statement was run */
    LLM_ARCH_LINE_TAKEN = 2, /* an `if`: its condition held */
    LLM_ARCH_LINE_PASSED = 4 /* an `if`: none of its arms was taken */
} llm_arch_line;

typedef struct llm_arch_result {
    const char *family; /* which of the header's names the model has; the descriptor's */
    int64_t n_vocab;
    int64_t n_layer; /* turns of the layer loop: nodes have the groups -1, 0 .. n_layer-1, and
                        n_layer after it */
    char *notes;     /* what is no error but worth a line, each ended by a newline; NULL: nothing */
    /* [llm_arch_n_lines]: bits of llm_arch_line for the statements that begin in the line */
    uint8_t *line_ran;
} llm_arch_result;

/* Makes the inputs "token", "pos" and "slot" (i32, one for each of the batch), the nodes and the
 * output "logits" of [n_vocab] in `graph`, which is new; the caller finishes it. Checks that every
 * key and tensor of the source is known and every value reaches the logits. params and result may
 * be NULL; *result is the caller's, freed by llm_arch_result_fini, and valid after failure too.
 * GGL_FORMAT: descriptor and model do not fit; GGL_LIMIT, GGL_SHAPE, GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status llm_arch_build(const llm_arch *arch, const llm_arch_source *source,
                                                const llm_arch_params *params, ggl_graph *graph,
                                                llm_arch_result *result, ggl_error *err);
GGL_API void llm_arch_result_fini(llm_arch_result *result);

/* What becomes of a key of the source when the descriptor is built with it (docs/gguf.md, "How keys
 * are judged"). */
typedef enum llm_arch_use {
    LLM_ARCH_ENGINE,   /* read by the engine or the tokenizer, or general information */
    LLM_ARCH_READ,     /* named by the descriptor or a function it calls, in `line` of `file` */
    LLM_ARCH_IGNORED,  /* named by an `ignore` of the descriptor, in `line` of `file`; `reason`: its
                          condition, if that depends on more than keys, else NULL */
    LLM_ARCH_HARMLESS, /* not read, and without effect on the logits; `reason` says why */
    LLM_ARCH_UNREAD,   /* not read: an error; `reason`: what it does, or NULL */
    LLM_ARCH_FOREIGN   /* of another namespace: noted */
} llm_arch_use;

typedef struct llm_arch_judged {
    ggl_str key;
    llm_arch_use use;
    const char *file;
    int line;
    const char *reason;
} llm_arch_judged;

/* Calls each(ctx, key) for all keys of the source, in order; *key is valid until it returns. Nothing
 * is built. GGL_FORMAT: the source's architecture is none of this descriptor's; GGL_LIMIT,
 * GGL_NOMEM. */
GGL_API GGL_NODISCARD ggl_status
llm_arch_judge_keys(const llm_arch *arch, const llm_arch_source *source,
                    void (*each)(void *ctx, const llm_arch_judged *key), void *ctx, ggl_error *err);

/* --- made-up models --------------------------------------------------------------------------- */

/* Values for all keys a descriptor names, and random f32 weights of the shapes it declares. Variant
 * 0 has no optional key or tensor, 1 has all of them; the others differ from these in one, or have
 * another of the values it is compared with. */
typedef struct llm_arch_toy llm_arch_toy;

GGL_API int llm_arch_toy_n_variants(const llm_arch *arch); /* 0: out of memory */
/* NULL (err says why): the descriptor cannot be built with it, or out of memory. It borrows `arch`.
 */
GGL_API llm_arch_toy *llm_arch_toy_new(const llm_arch *arch, int variant, ggl_error *err);
GGL_API void llm_arch_toy_free(llm_arch_toy *toy);
GGL_API const llm_arch_source *llm_arch_toy_source(const llm_arch_toy *toy);
GGL_API const char *llm_arch_toy_text(
    const llm_arch_toy *toy); /* what is special about it: "all but attn_q.bias" */
/* From now on the toy is like a file: it has the keys of its variant and the tensors that were
 * asked for, no others, and whoever builds from it must know all of them. */
GGL_API void llm_arch_toy_freeze(llm_arch_toy *toy);

/* Builds the descriptor with every variant. On success *notes (may be NULL; the caller's, ggl_free)
 * says what was not taken by any of them, or is NULL. The first error is returned, with the
 * variant. */
GGL_API GGL_NODISCARD ggl_status llm_arch_check(const llm_arch *arch, char **notes, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
