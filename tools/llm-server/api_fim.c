#include "api_fim.h"

#include "api_prompt.h"
#include "api_shape.h"
#include "llm/internal/tokenizer.h"

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

/* Finds a mark by its possible texts, which a NULL ends. */
static int32_t mark_of(const llm_tokenizer *t, const char *const *text) {
    int32_t id = -1;
    while (*text && id < 0)
        id = mark_id(t, *text++);
    return id;
}

/* Finds the marks: those that the file names, or else those of a row. */
static bool find_marks(const server_facts *facts, int32_t id[N_FIM]) {
    static const char *const repo[] = {"<|repo_name|>", "<reponame>", "<repo_name>", NULL},
                             *const file[] = {"<|file_sep|>", "<file_sep>", "<|file_separator|>",
                                              NULL};
    const llm_tokenizer *t = facts->tokenizer;
    for (int k = 0; k < N_FIM; k++)
        id[k] = facts->fim ? facts->fim[k] : -1;
    bool found = t && id[FIM_PRE] >= 0 && id[FIM_SUF] >= 0 && id[FIM_MID] >= 0;
    for (size_t i = 0; t && !found && i < sizeof marks / sizeof *marks; i++) {
        found = true;
        for (int k = 0; k < 3; k++)
            found &= (id[k] = mark_id(t, marks[i][k])) >= 0;
    }
    if (found && id[FIM_REP] < 0)
        id[FIM_REP] = mark_of(t, repo);
    if (found && id[FIM_SEP] < 0)
        id[FIM_SEP] = mark_of(t, file);
    return found;
}

static ggl_status add_mark(llm_tokens *ids, int32_t id, ggl_error *err) {
    if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    ids->id[ids->n++] = id;
    return GGL_OK;
}

static ggl_status add_text(llm_tokens *ids, const llm_tokenizer *t, ggl_str s, ggl_error *err) {
    return s.n > 0 ? llm_tokenize(t, s.s, s.n, 0, ids, err) : GGL_OK;
}

static ggl_status add_line(llm_tokens *ids, const llm_tokenizer *t, int32_t mark, ggl_str s,
                           ggl_error *err) {
    ggl_status st = add_mark(ids, mark, err);
    if (st == GGL_OK)
        st = add_text(ids, t, s, err);
    return st == GGL_OK ? add_text(ids, t, (ggl_str){"\n", 1}, err) : st;
}

/* --- other files -------------------------------------------------------------------------------- */

typedef struct chunk {
    const json_value *text, *filename;
} chunk;

static ggl_status read_chunk(ask *a, const json_value *v, size_t i, chunk *c, ggl_error *err) {
    static const shape_row rows[] = {
        {"text", SHAPE_STRING | SHAPE_REQUIRED, offsetof(chunk, text), NULL},
        {"filename", SHAPE_STRING, offsetof(chunk, filename), NULL},
        {"time", SHAPE_IGNORED, 0, NULL}, /* llama.vim sends it */
        {0}};
    const ggl_status st = read_shape(c, sizeof *c, &a->ignored, v, rows, err);
    return st == GGL_OK ? st : ggl_within(err, st, "input_extra[%zu]", i);
}

/* A file, or a piece of one, as models saw them in training: after a mark with its name, or, if there is no such mark, after a
 * line that no language has. */
static ggl_status add_chunk(llm_tokens *ids, const llm_tokenizer *t, const int32_t *mark,
                            const chunk *c, ggl_error *err) {
    static const char line[] = "\n\n--- snippet ---\n\n";
    const ggl_str name = c->filename ? json_str(c->filename) : (ggl_str){"tmp", 3};
    const ggl_status st = mark[FIM_SEP] >= 0
                              ? add_line(ids, t, mark[FIM_SEP], name, err)
                              : add_text(ids, t, (ggl_str){line, sizeof line - 1}, err);
    return st == GGL_OK ? add_text(ids, t, json_str(c->text), err) : st;
}

/* Writes the other files that fit into `room` tokens: the last ones, which are the most useful.
 * Those that do not fit are named as ignored. */
static ggl_status add_extra(ask *a, const server_facts *facts, const int32_t *mark,
                            const json_value *list, size_t room, llm_tokens *out, ggl_error *err) {
    const llm_tokenizer *t = facts->tokenizer;
    llm_tokens all = {0};
    size_t first = 0, n_dropped = 0;
    ggl_status st = GGL_OK;
    if (mark[FIM_REP] >= 0)
        st = add_line(out, t, mark[FIM_REP], (ggl_str){"project", 7}, err);
    const size_t n_head = out->n + 8; /* and a mark with a name at the end */
    room = room > n_head ? room - n_head : 0;
    size_t *begin = ggl_calloc((size_t)list->n + 1, sizeof *begin);
    if (!begin && st == GGL_OK)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        chunk c;
        begin[i] = all.n;
        st = read_chunk(a, &list->item[i], i, &c, err);
        if (st == GGL_OK)
            st = add_chunk(&all, t, mark, &c, err);
    }
    while (st == GGL_OK && n_dropped < list->n && all.n - first > room) {
        first = ++n_dropped < list->n ? begin[n_dropped] : all.n;
        st = fields_ignore(&a->ignored, "input_extra", (ggl_str){"oldest", 6}, err);
    }
    for (size_t i = first; i < all.n && st == GGL_OK; i++)
        st = add_mark(out, all.id[i], err);
    if (st == GGL_OK && mark[FIM_SEP] >= 0)
        st = add_line(out, t, mark[FIM_SEP], (ggl_str){"filename", 8}, err);
    ggl_free(begin);
    llm_tokens_fini(&all);
    return st;
}

/* --- the prompt --------------------------------------------------------------------------------- */

/* [PRE]before, begun[SUF]after[MID] */
static ggl_status add_gap(llm_tokens *ids, const llm_tokenizer *t, const int32_t *mark,
                          const fim_request *q, ggl_error *err) {
    ggl_status st = add_mark(ids, mark[FIM_PRE], err);
    if (st == GGL_OK)
        st = add_text(ids, t, q->before, err);
    if (st == GGL_OK)
        st = add_text(ids, t, q->begun, err);
    if (st == GGL_OK)
        st = add_mark(ids, mark[FIM_SUF], err);
    if (st == GGL_OK)
        st = add_text(ids, t, q->after, err);
    return st == GGL_OK ? add_mark(ids, mark[FIM_MID], err) : st;
}

ggl_status fim_prompt(ask *a, const server_facts *facts, const fim_request *q, ggl_error *err) {
    const llm_tokenizer *t = facts->tokenizer;
    int32_t mark[N_FIM];
    llm_tokens gap = {0}, ids = {0};
    if (!find_marks(facts, mark))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this model cannot fill in the middle: its vocabulary has no marks for "
                        "that, such as <|fim_prefix|>");
    a->n_prompts = 1;
    a->prompt = ggl_arena_alloc(&a->arena, 1, sizeof *a->prompt);
    ggl_status st = a->prompt ? ask_hold_text(a, a->n_digits, err)
                              : ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (st == GGL_OK)
        st = add_gap(&gap, t, mark, q, err);
    if (st == GGL_OK)
        st = llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &ids, err);
    const size_t n_answer = a->n_max > 0 ? (size_t)a->n_max : 0;
    const size_t n_taken = gap.n + n_answer, n_ctx = (size_t)facts->n_ctx;
    if (st == GGL_OK && q->extra && q->extra->n > 0)
        st = add_extra(a, facts, mark, q->extra, n_ctx > n_taken ? n_ctx - n_taken : 0, &ids, err);
    for (size_t i = 0; i < gap.n && st == GGL_OK; i++)
        st = add_mark(&ids, gap.id[i], err);
    if (st == GGL_OK)
        st = prompt_of_ids(a, a->prompt, ids.id, ids.n, err);
    llm_tokens_fini(&gap);
    llm_tokens_fini(&ids);
    return st;
}
