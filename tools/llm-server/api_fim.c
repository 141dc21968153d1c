#include "api_fim.h"

#include "llm/tokenizer.h"

/* The marks of published models; each must be one token. */
static const char *const marks[][3] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "begin\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "hole\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "end\xef\xbd\x9c>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
    {"\xe2\x96\x81<PRE>", "\xe2\x96\x81<SUF>", "\xe2\x96\x81<MID>"},
    {"<PRE>", "<SUF>", "<MID>"},
};

/* Finds the id of a mark; -1: the text is no token of its own. */
static int32_t mark_id(const llm_tokenizer *t, const char *text) {
    llm_tokens ids = {0};
    ggl_error none = {0};
    const size_t n = strlen(text);
    int32_t id = -1;
    if (llm_tokenize(t, text, n, LLM_TOKENIZE_SPECIAL, &ids, &none) == GGL_OK && ids.n == 1) {
        const ggl_str piece = llm_token_piece(t, ids.id[0]);
        if (piece.n == n && memcmp(piece.s, text, n) == 0)
            id = ids.id[0];
    }
    llm_tokens_fini(&ids);
    return id;
}

static bool find_marks(const llm_tokenizer *t, int32_t id[3]) {
    for (size_t i = 0; t && i < sizeof marks / sizeof *marks; i++) {
        bool all = true;
        for (int k = 0; k < 3; k++)
            all &= (id[k] = mark_id(t, marks[i][k])) >= 0;
        if (all)
            return true;
    }
    return false;
}

static ggl_status add_mark(llm_tokens *ids, int32_t id, ggl_error *err) {
    if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    ids->id[ids->n++] = id;
    return GGL_OK;
}

ggl_status ids_prompt(ask *a, ask_prompt *p, const int32_t *id, size_t n, ggl_error *err) {
    int32_t *copy = ggl_arena_alloc(&a->arena, n + 1, sizeof *copy);
    if (!copy)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (n > 0)
        memcpy(copy, id, n * sizeof *id);
    *p = (ask_prompt){.id = copy, .n = n};
    return GGL_OK;
}

ggl_status fim_prompt(ask *a, const server_facts *facts, ggl_str before, ggl_str after,
                      ggl_str begun, ggl_error *err) {
    const ggl_str texts[3] = {before, after, begun};
    const llm_tokenizer *t = facts->tokenizer;
    int32_t mark[3];
    llm_tokens ids = {0};
    if (!find_marks(t, mark))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this model cannot fill in the middle: its vocabulary has no marks for "
                        "that, such as <|fim_prefix|>");
    a->n_prompts = 1;
    a->prompt = ggl_arena_alloc(&a->arena, 1, sizeof *a->prompt);
    ggl_status st = a->prompt ? llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &ids, err)
                              : ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    for (int k = 0; k < 3 && st == GGL_OK; k++) {
        st = add_mark(&ids, mark[k], err);
        if (st == GGL_OK && texts[k].n > 0)
            st = llm_tokenize(t, texts[k].s, texts[k].n, 0, &ids, err);
    }
    if (st == GGL_OK)
        st = ids_prompt(a, a->prompt, ids.id, ids.n, err);
    llm_tokens_fini(&ids);
    return st;
}
