/* Models of a tokenizer.json: what becomes of a piece. */
#include "steps_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "unicode.h"

/* --- WordLevel ------------------------------------------------------------------------------------- */

static ggl_status word_level(step_model_run *r, const char *s, size_t n) {
    const int32_t id = llm_step_model_find(r, s, n), used = id >= 0 ? id : r->m->unknown;
    return used >= 0 ? llm_step_model_put(r, used) : llm_step_model_no_unknown(r, s, n);
}

/* --- WordPiece ------------------------------------------------------------------------------------- */

/* Returns the longest piece at the beginning of s[0..n), and its length; -1: none. */
static int32_t longest(const step_model_run *r, const automaton *x, const char *s, size_t n,
                       size_t *length) {
    int32_t found = -1, at = 0;
    for (size_t i = 0; i < n; i++) {
        at = llm_automaton_child(x, at, (unsigned char)s[i]);
        GGL_STEPS(1);
        if (at == 0)
            break;
        if (x->node[at].id >= 0 && llm_step_model_may(r, x->node[at].id)) {
            found = x->node[at].id;
            *length = i + 1;
        }
    }
    return found;
}

static size_t count_characters(const char *s, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; count++)
        i += llm_utf8_length(s + i, n - i);
    return count;
}

static ggl_status make_pieces(step_model_run *r, const char *s, size_t n) {
    const step_model *m = r->m;
    const size_t first = r->out->n;
    bool known = n <= m->most_characters || count_characters(s, n) <= m->most_characters;
    ggl_status status = GGL_OK;
    for (size_t i = 0, length = 0; i < n && known && status == GGL_OK; i += length) {
        const int32_t id = longest(r, i == 0 ? &m->begins : &m->continues, s + i, n - i, &length);
        known = id >= 0;
        if (known)
            status = llm_step_model_put(r, id);
    }
    if (known || status != GGL_OK)
        return status;
    r->out->n = first;
    return m->unknown >= 0 ? llm_step_model_put(r, m->unknown) : llm_step_model_no_unknown(r, s, n);
}

static ggl_status word_piece(step_model_run *r, const char *s, size_t n) {
    return llm_step_model_remembered(r, s, n, make_pieces);
}

/* --- Unigram --------------------------------------------------------------------------------------- */

/* Appends what is no piece: a token that is spelled so, its bytes, or the unknown token. */
static ggl_status end_run(step_model_run *r) {
    const step_model *m = r->m;
    const size_t n = r->n_run;
    ggl_status s = GGL_OK;
    r->n_run = 0;
    if (n == 0)
        return s;
    const int32_t id = llm_step_model_find(r, r->run, n);
    if (id >= 0)
        return llm_step_model_put(r, id);
    if (m->byte_fallback && llm_all_bytes(m->byte, r->run, n)) {
        for (size_t i = 0; i < n && s == GGL_OK; i++)
            s = llm_step_model_put(r, m->byte[(unsigned char)r->run[i]]);
        return s;
    }
    return m->unknown >= 0 ? llm_step_model_put(r, m->unknown)
                           : llm_step_model_no_unknown(r, r->run, n);
}

static ggl_status emit(void *context, int32_t id, const char *s, size_t n) {
    step_model_run *r = context;
    if (id >= 0 && id != r->m->unknown && llm_step_model_may(r, id)) {
        const ggl_status status = end_run(r);
        return status == GGL_OK ? llm_step_model_put(r, id) : status;
    }
    if (!ggl_grow(&r->run, &r->cap_run, r->n_run + n, 1))
        return llm_step_no_memory(r->err);
    memcpy(r->run + r->n_run, s, n);
    r->n_run += n;
    return GGL_OK;
}

static ggl_status find_path(step_model_run *r, const char *s, size_t n) {
    ggl_status status = GGL_OK;
    r->path.tokens = &r->m->begins;
    r->path.score = r->m->score;
    r->path.unknown = r->m->unknown_score;
    r->path.goes_on = true;
    r->path.emit = emit;
    r->path.context = r;
    for (size_t i = 0, length; i < n && status == GGL_OK; i += length) {
        length = llm_utf8_length(s + i, n - i);
        status = llm_best_path_add(&r->path, s + i, length, r->err);
    }
    if (status == GGL_OK)
        status = llm_best_path_end(&r->path);
    return status == GGL_OK ? end_run(r) : status;
}

static ggl_status unigram(step_model_run *r, const char *s, size_t n) {
    return llm_step_model_remembered(r, s, n, find_path);
}

/* --- reading --------------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

static ggl_status read_string(llm_tokenizer *t, const json_value *model, const char *name,
                              ggl_str *out, ggl_error *err) {
    const json_value *x = llm_json_get(model, name);
    *out = (ggl_str){"", 0};
    if (!x || x->kind == JSON_NULL)
        return GGL_OK;
    if (x->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "model: '%s' is %s, not a string", name,
                        llm_json_kind_text(x->kind));
    *out = (ggl_str){ggl_arena_strndup(&t->arena, x->s, x->n), x->n};
    return out->s ? GGL_OK : no_memory(err);
}

/* Adds the pieces, those with the prefix without it, to an automaton. Of equal ones the last counts, as in the library. */
static ggl_status add_pieces(automaton *x, const step_model *m, ggl_str prefix, ggl_error *err) {
    ggl_status s = llm_automaton_init(x, false, err);
    for (int32_t id = m->t->n_vocab - 1; id >= 0 && s == GGL_OK; id--) {
        const ggl_str p = m->piece[id];
        if (p.n > prefix.n && (prefix.n == 0 || memcmp(p.s, prefix.s, prefix.n) == 0))
            s = llm_automaton_add(x, (ggl_str){p.s + prefix.n, p.n - prefix.n}, id, err);
    }
    return s == GGL_OK ? llm_automaton_finish(x, err) : s;
}

enum { LONGEST_PIECE = 1024 }; /* each place of a long word may be compared with as many bytes */

static ggl_status read_word_piece(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                                  const json_value *model, ggl_error *err) {
    const json_value *most = llm_json_get(model, "max_input_chars_per_word");
    (void)file;
    m->most_characters = 100;
    if (most && (most->kind != JSON_NUMBER || !most->whole || most->number < 0))
        return ggl_fail(err, GGL_FORMAT, "model: 'max_input_chars_per_word' is not a whole number");
    if (most)
        m->most_characters =
            most->number > (double)SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)most->number;
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (m->piece[id].n > LONGEST_PIECE && m->most_characters > LONGEST_PIECE)
            return ggl_fail(err, GGL_LIMIT,
                            "token %" PRId32 " has %zu bytes, at most %d are supported where "
                            "'max_input_chars_per_word' is more than that, too",
                            id, m->piece[id].n, LONGEST_PIECE);
    ggl_status s = read_string(t, model, "continuing_subword_prefix", &m->prefix, err);
    if (s == GGL_OK)
        s = add_pieces(&m->begins, m, (ggl_str){"", 0}, err);
    return s == GGL_OK ? add_pieces(&m->continues, m, m->prefix, err) : s;
}

static ggl_status read_scores(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                              ggl_error *err) {
    static const char *const keys[] = {"tokenizer.ggl.scores", "tokenizer.ggml.scores"};
    const ggl_gguf_value *v = ggl_gguf_find(file, keys[0]);
    const char *key = keys[v == NULL];
    v = v ? v : ggl_gguf_find(file, key);
    m->score = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->score);
    if (!m->score)
        return no_memory(err);
    if (!v || !v->is_array || v->n != (uint64_t)t->n_vocab)
        return ggl_fail(err, GGL_FORMAT, "%s is not an array of %" PRId32 " numbers", key,
                        t->n_vocab);
    double worst = INFINITY;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        if (!ggl_gguf_number(v, (uint64_t)id, &m->score[id]) || !isfinite(m->score[id]))
            return ggl_fail(err, GGL_FORMAT, "%s of token %" PRId32 " is not a number", key, id);
        if (m->piece[id].s && m->score[id] < worst)
            worst = m->score[id];
    }
    m->unknown_score = (isfinite(worst) ? worst : 0) - 10;
    return GGL_OK;
}

static ggl_status read_unigram(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                               const json_value *model, ggl_error *err) {
    const json_value *unknown = llm_json_get(model, "unk_id");
    if (unknown && unknown->kind != JSON_NULL) {
        if (unknown->kind != JSON_NUMBER || !unknown->whole || unknown->number < 0 ||
            unknown->number >= t->n_vocab)
            return ggl_fail(err, GGL_FORMAT, "model: 'unk_id' is not the id of a token");
        m->unknown = (int32_t)unknown->number;
    }
    ggl_status s = read_scores(m, t, file, err);
    if (s == GGL_OK)
        s = add_pieces(&m->begins, m, (ggl_str){"", 0}, err);
    return s == GGL_OK ? llm_best_path_check(&m->begins, err) : s;
}

static const struct step_model_kind kinds[] = {
    {"BPE", llm_step_bpe_read, llm_step_bpe},
    {"WordPiece", read_word_piece, word_piece},
    {"WordLevel", NULL, word_level},
    {"Unigram", read_unigram, unigram},
};

static ggl_status find_kind(step_model *m, const json_value *model, ggl_error *err) {
    const json_value *type = llm_json_get_kind(model, "type", JSON_STRING);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (llm_json_is(type, kinds[k].type))
            m->kind = &kinds[k];
    return m->kind ? GGL_OK
                   : ggl_fail(err, GGL_UNSUPPORTED, "model: the type '%.*s' is not known",
                              type ? (int)ggl_utf8_cut(type->s, type->n, 60) : 4,
                              type ? type->s : "none");
}

static void find_bytes(step_model *m) {
    for (unsigned b = 0; b < 256; b++) {
        char spelled[8];
        snprintf(spelled, sizeof spelled, "<0x%02X>", b);
        m->byte[b] = llm_spellings_find(&m->by_piece, m->piece, spelled, 6);
    }
}

static ggl_status read_model(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                             const json_value *model, ggl_error *err) {
    ggl_str unknown;
    ggl_status s = llm_spellings_init(&m->by_piece, (size_t)t->n_vocab, err);
    for (int32_t id = t->n_vocab - 1; id >= 0 && s == GGL_OK; id--)
        if (m->piece[id].s)
            (void)ggl_index_put(&m->by_piece, m->piece, (size_t)id);
    if (s == GGL_OK)
        s = read_string(t, model, "unk_token", &unknown, err);
    if (s != GGL_OK)
        return s;
    m->unknown =
        unknown.n > 0 ? llm_spellings_find(&m->by_piece, m->piece, unknown.s, unknown.n) : -1;
    m->byte_fallback = llm_json_get_kind(model, "byte_fallback", JSON_BOOL) &&
                       llm_json_get(model, "byte_fallback")->flag;
    find_bytes(m);
    return m->kind->read ? m->kind->read(m, t, file, model, err) : GGL_OK;
}

ggl_status llm_step_model_read(step_model *m, llm_tokenizer *t, const ggl_gguf *file,
                               const json_value *model, ggl_error *err) {
    m->t = t;
    m->unknown = -1;
    ggl_status s = find_kind(m, model, err);
    return s == GGL_OK ? read_model(m, t, file, model, err) : s;
}

void llm_step_model_fini(step_model *m) {
    llm_automaton_fini(&m->begins);
    llm_automaton_fini(&m->continues);
    ggl_index_fini(&m->by_piece);
    ggl_index_fini(&m->by_pair);
    ggl_index_fini(&m->by_neighbors);
}

ggl_status llm_step_model_piece(step_model_run *r, const char *s, size_t n) {
    return r->m->kind->run(r, s, n);
}

void llm_step_model_run_fini(step_model_run *r) {
    ggl_free(r->sym);
    llm_merge_queue_fini(&r->queue);
    ggl_free(r->word);
    llm_best_path_fini(&r->path);
    ggl_free(r->run);
    llm_word_memory_fini(&r->words);
}
