/* The tokenizer of a speech model in ggml's format before GGUF. The file has each token's bytes, in the order of the ids, and neither
 * merges nor the special tokens. */
#include <inttypes.h>
#include <string.h>

#include "hf_tokenizer_impl.h"
#include "legacy.h"

/* The languages in the order of their tokens. */
static const char languages[] =
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur hr bg lt "
    "la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn "
    "yo so af oc "
    "ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue ";

/* --- tokens ----------------------------------------------------------------------------------- */

static ggl_status put(llm_hf_tokenizer *t, int64_t id, char *text, int32_t type, ggl_error *err) {
    if (!text)
        return llm_hf_no_memory(err);
    t->piece[id] = (ggl_str){text, strlen(text)};
    t->type[id] = type;
    return GGL_OK;
}

/* Names the special tokens, whatever texts the file has for them. */
static ggl_status name_specials(llm_hf_tokenizer *t, const legacy_specials *of, ggl_error *err) {
    static const char *const first[] = {"endoftext", "startoftranscript"};
    static const char *const tasks[] = {"translate",   "transcribe", "startoflm",
                                        "startofprev", "nospeech",   "notimestamps"};
    ggl_arena *a = &t->arena;
    int64_t id = of->end;
    const char *code = languages;
    ggl_status s = GGL_OK;
    for (size_t k = 0; s == GGL_OK && k < sizeof first / sizeof *first; k++)
        s = put(t, id++, ggl_arena_printf(a, "<|%s|>", first[k]), LLM_TOKEN_CONTROL, err);
    for (int64_t k = 0; s == GGL_OK && k < of->languages; k++) {
        const char *end = strchr(code, ' ');
        s = put(t, id++, ggl_arena_printf(a, "<|%.*s|>", (int)(end - code), code),
                LLM_TOKEN_CONTROL, err);
        code = end + 1;
    }
    for (size_t k = 0; s == GGL_OK && k < sizeof tasks / sizeof *tasks; k++)
        s = put(t, id++, ggl_arena_printf(a, "<|%s|>", tasks[k]), LLM_TOKEN_CONTROL, err);
    return s == GGL_OK ? llm_hf_name_times(t, id, err) : s;
}

/* Spells the file's tokens; ids that lack one get an unused token. */
static ggl_status spell_tokens(llm_hf_tokenizer *t, const ggl_str *token, int64_t n, int64_t end,
                               ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int64_t id = 0; s == GGL_OK && id < end; id++) {
        if (id >= n) {
            s = put(t, id, ggl_arena_printf(&t->arena, "[PAD%" PRId64 "]", id), LLM_TOKEN_UNUSED,
                    err);
            continue;
        }
        char *text = llm_hf_spell(t, token[id]);
        s = put(t, id, text, LLM_TOKEN_NORMAL, err);
    }
    return s;
}

static ggl_status read_all(llm_hf_tokenizer *t, const void *data, int64_t n, ggl_error *err) {
    legacy_specials specials;
    ggl_str *token;
    int64_t n_token = 0;
    if (!llm_legacy_find_specials(n, &specials))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the file does not name the special tokens, and the ids that they have "
                        "among %" PRId64 " tokens (n_vocab) are not known, only for up to 51866",
                        n);
    ggl_status s = llm_legacy_tokens(data, &t->arena, &token, &n_token, err);
    if (s != GGL_OK)
        return s;
    n_token = n_token < specials.end ? n_token : specials.end;
    t->bytes = true;
    t->n = t->n_ids = n;
    t->pre = (ggl_str){"gpt-2", 5};
    t->piece = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *t->piece);
    t->type = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *t->type);
    s = t->piece && t->type ? spell_tokens(t, token, n_token, specials.end, err)
                            : llm_hf_no_memory(err);
    if (s == GGL_OK)
        s = name_specials(t, &specials, err);
    if (s == GGL_OK)
        s = llm_hf_merges_by_order(t, token, n_token, err);
    for (int k = 0; k < N_ID; k++)
        t->id[k] = -1;
    t->id[BOS] = t->id[EOS] = specials.end;
    t->add_space = t->lower = t->strip = -1;
    return s;
}

ggl_status llm_hf_tokenizer_open_legacy(llm_hf_tokenizer **out, const void *data, int64_t n,
                                        ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    const ggl_status s = read_all(t, data, n, err);
    if (s == GGL_OK)
        *out = t;
    else
        llm_hf_tokenizer_free(t);
    return s;
}
