/* The library as the package ggml-lite for JavaScript calls it (worker.mjs): llm/llm.h with arguments that are numbers and texts. What
 * fails returns 0 or a negative number, and js_error() says why. There is one model in each instance of this module, so one error, too. */
#include <llm/llm.h>

#include <stdlib.h>
#include <string.h>

#define EXPORT(type, name, ...)                                                                    \
    type name(__VA_ARGS__);                                                                        \
    __attribute__((export_name(#name))) type name(__VA_ARGS__)
#define IMPORT(name) __attribute__((import_module("ggml_lite"), import_name(#name)))

/* Told how far the loading is, and how much of a prompt has been read; nonzero: stop. */
IMPORT(progress) int js_progress(double done, double total);
IMPORT(note) void js_note(const char *text, size_t n);

static ggl_error err;
static llm_context *model;

EXPORT(const char *, js_error, void) {
    return err.msg;
}

EXPORT(void *, js_alloc, size_t n) {
    return malloc(n ? n : 1);
}

EXPORT(void, js_free, void *p) {
    free(p);
}

EXPORT(const char *, js_version, void) {
    return ggl_version();
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool on_progress(void *user, size_t done, size_t total) {
    (void)user;
    return js_progress((double)done, (double)total) == 0;
}

static void on_note(void *user, const char *text) {
    (void)user;
    js_note(text, strlen(text));
}

/* Opens a file, or a built-in model; mmproj, chat_template, cache_type: NULL, or as in llm_open_params. */
EXPORT(int, js_open, const char *path, int32_t n_ctx, int32_t n_ubatch, const char *mmproj,
       const char *chat_template, const char *cache_type, int embeddings, int no_file_sampling,
       int n_threads) {
    const llm_open_params p = {.size = sizeof p,
                               .n_threads = n_threads,
                               .n_ctx = n_ctx,
                               .n_ubatch = n_ubatch,
                               .mmproj = mmproj,
                               .chat_template = chat_template,
                               .cache_type_k = cache_type,
                               .cache_type_v = cache_type,
                               .embeddings = embeddings != 0,
                               .no_file_sampling = no_file_sampling != 0,
                               .progress = on_progress,
                               .note = on_note};
    return llm_open(&model, path, &p, &err) == GGL_OK;
}

EXPORT(int32_t, js_n_ctx, void) {
    return (int32_t)llm_context_facts(model)->n_ctx;
}

EXPORT(int, js_has_chat, void) {
    return llm_context_facts(model)->has_chat;
}

/* --- generating ------------------------------------------------------------------------------- */

/* The parameters of the next generation. */
static struct {
    llm_generate_params p;
    llm_number *number;
    const char **stop;
    size_t n_numbers, n_stop;
} request;

/* Starts new parameters, the defaults. Texts that were given to the old ones are freed. */
EXPORT(void, js_request, void) {
    for (size_t i = 0; i < request.n_numbers; i++)
        free((char *)(uintptr_t)request.number[i].name);
    for (size_t i = 0; i < request.n_stop; i++)
        free((char *)(uintptr_t)request.stop[i]);
    free(request.number);
    free(request.stop);
    free((char *)(uintptr_t)request.p.grammar);
    free((char *)(uintptr_t)request.p.json_schema);
    memset(&request, 0, sizeof request);
    request.p = llm_generate_default_of(model);
}

static int no_memory(void) {
    strcpy(err.msg, "out of memory");
    return 0;
}

/* Sets a number: "max_tokens", "seed", or one of the sampler (llm_number_name). The name is the request's afterwards, from js_alloc. */
EXPORT(int, js_number, char *name, double value) {
    const bool is_max = strcmp(name, "max_tokens") == 0, is_seed = strcmp(name, "seed") == 0;
    if (is_max || is_seed) {
        free(name);
        if (is_max)
            request.p.n_max = (int64_t)value;
        else
            request.p.seed = (uint64_t)value;
        return 1;
    }
    llm_number *more = realloc(request.number, (request.n_numbers + 1) * sizeof *request.number);
    if (!more)
        return no_memory();
    request.number = more;
    more[request.n_numbers++] = (llm_number){name, value};
    request.p.number = more;
    request.p.n_numbers = request.n_numbers;
    return 1;
}

/* Returns the name of a number of the sampler, from 0 on; NULL: there are no more. */
EXPORT(const char *, js_number_name, size_t i) {
    return llm_number_name(i);
}

/* Text `value` is the request's afterwards, from js_alloc. */
EXPORT(int, js_stop, char *value) {
    const char **more = realloc(request.stop, (request.n_stop + 1) * sizeof *request.stop);
    if (!more)
        return no_memory();
    request.stop = more;
    more[request.n_stop++] = value;
    request.p.stop = more;
    request.p.n_stop = request.n_stop;
    return 1;
}

EXPORT(void, js_grammar, char *value) {
    request.p.grammar = value;
}

EXPORT(void, js_json_schema, char *value) {
    request.p.json_schema = value;
}

static bool on_prompt(void *user, int64_t done, int64_t n) {
    (void)user;
    return js_progress((double)done, (double)n) == 0;
}

/* Begins after tokens, which it frees. */
static int begin(int32_t *id, size_t n) {
    request.p.prompt_progress = on_prompt;
    const ggl_status st = llm_begin(model, id, n, &request.p, &err);
    ggl_free(id);
    return st == GGL_OK;
}

/* Begins to continue a text, by the request's parameters. */
EXPORT(int, js_begin, const char *text, size_t n) {
    int32_t *id;
    size_t n_id;
    const unsigned flags = LLM_ADD_SPECIAL | LLM_READ_SPECIAL;
    return llm_encode(model, text, n, flags, &id, &n_id, &err) == GGL_OK ? begin(id, n_id) : 0;
}

/* Begins to answer a conversation, {"messages": [..]}. */
EXPORT(int, js_begin_chat, const char *json) {
    char *text, *seen;
    size_t n, n_seen;
    if (llm_chat_see(model, json, &seen, &n_seen, &err) != GGL_OK)
        return 0;
    llm_formatted more;
    ggl_status st = llm_chat_format(model, seen, true, &text, &n, &more, &err);
    ggl_free(seen);
    if (st != GGL_OK)
        return 0;
    ggl_free(text);
    ggl_free(more.notes);
    return begin(more.id, more.n_id);
}

static size_t n_piece;

/* Returns the next piece of text, of js_piece_size() bytes; NULL: the end, or, if js_failed(), an error. */
static bool has_failed;

EXPORT(const char *, js_next, void) {
    const char *piece = NULL;
    n_piece = 0;
    has_failed = llm_next(model, &piece, &n_piece, &err) != GGL_OK;
    return has_failed ? NULL : piece;
}

EXPORT(size_t, js_piece_size, void) {
    return n_piece;
}

EXPORT(int, js_failed, void) {
    return has_failed;
}

/* Facts about the last generation: its finish, tokens of the prompt that were kept and that were run, tokens generated, and the seconds of both. */
EXPORT(double, js_fact, int which) {
    llm_run_info i = {.size = sizeof i};
    if (llm_last_run(model, &i, &err) != GGL_OK)
        return -1;
    const double fact[] = {i.finish,           (double)i.n_reused,
                           (double)i.n_prompt, (double)i.n_generated,
                           i.prompt_seconds,   i.seconds};
    return which >= 0 && which < (int)(sizeof fact / sizeof *fact) ? fact[which] : -1;
}

/* --- tokens, logits, vectors ------------------------------------------------------------------ */

/* Turns text into *n tokens, for js_free_tokens; NULL: an error. */
EXPORT(int32_t *, js_encode, const char *text, size_t size, int special, size_t *n) {
    int32_t *id;
    return llm_encode(model, text, size, special ? LLM_ADD_SPECIAL | LLM_READ_SPECIAL : 0, &id, n,
                      &err) == GGL_OK
               ? id
               : NULL;
}

EXPORT(char *, js_decode, const int32_t *id, size_t n_id, size_t *n) {
    char *text;
    return llm_decode(model, id, n_id, 0, &text, n, &err) == GGL_OK ? text : NULL;
}

EXPORT(void, js_free_result, void *p) {
    ggl_free(p);
}

/* Runs n tokens from an empty sequence; returns the logits [js_n_vocab()] after the last one. */
EXPORT(const float *, js_logits, const int32_t *id, size_t n) {
    const float *logits;
    return llm_truncate(model, 0, &err) == GGL_OK &&
                   llm_eval(model, id, n, false, &logits, &err) == GGL_OK
               ? logits
               : NULL;
}

EXPORT(int32_t, js_n_vocab, void) {
    return llm_context_facts(model)->n_vocab;
}

EXPORT(int32_t, js_n_embd, void) {
    return llm_context_facts(model)->n_embd;
}

/* Writes the vector [js_n_embd()] of a text. */
EXPORT(int, js_embed, const char *text, size_t n, float *out) {
    return llm_embed(model, text, n, out, &err) == GGL_OK;
}
