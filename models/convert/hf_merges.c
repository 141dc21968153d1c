/* The merges of a BPE tokenizer. */
#include <string.h>

#include "hf_tokenizer_impl.h"

static ggl_status put_merge(llm_hf_tokenizer *t, ggl_str m, ggl_error *err) {
    const char *space = m.n > 0 ? memchr(m.s, ' ', m.n) : NULL;
    size_t left = space ? (size_t)(space - m.s) : 0;
    if (!space || left == 0 || left + 1 == m.n || memchr(space + 1, ' ', m.n - left - 1))
        return ggl_fail(err, GGL_FORMAT,
                        "merge %zu, '%.*s', is not two tokens with a space between", t->n_merge,
                        llm_hf_shown(m), m.s);
    t->merge[t->n_merge++] = m;
    return GGL_OK;
}

/* Sets pair to the two tokens of a merge. False: it is not ["a", "b"] or "a b". */
static bool tokens_of(const json_value *v, ggl_str pair[2]) {
    if (v->kind == JSON_ARRAY && v->n == 2 && v->item[0].kind == JSON_STRING &&
        v->item[1].kind == JSON_STRING) {
        pair[0] = json_str(&v->item[0]);
        pair[1] = json_str(&v->item[1]);
        return true;
    }
    const char *space = v->kind == JSON_STRING && v->n > 0 ? memchr(v->s, ' ', v->n) : NULL;
    if (!space || memchr(space + 1, ' ', v->n - (size_t)(space - v->s) - 1))
        return false;
    pair[0] = (ggl_str){v->s, (size_t)(space - v->s)};
    pair[1] = (ggl_str){space + 1, v->n - pair[0].n - 1};
    return true;
}

/* Reads merges as pairs of ids, of which tokens may have spaces. */
static ggl_status pairs_from_json(llm_hf_tokenizer *t, const json_value *list, ggl_error *err) {
    t->merge_id = ggl_arena_alloc(&t->arena, 2 * (size_t)list->n + 1, sizeof *t->merge_id);
    if (!t->merge_id)
        return llm_hf_no_memory(err);
    for (size_t i = 0; i < list->n; i++) {
        const json_value *v = &list->item[i];
        ggl_str pair[2] = {{"", 0}, {"", 0}};
        if (v->kind == JSON_STRING && v->n >= 8 && memcmp(v->s, "#version", 8) == 0)
            continue;
        if (!tokens_of(v, pair))
            return ggl_fail(err, GGL_FORMAT,
                            "merge %zu, '%.*s', is not two tokens with a space between", i,
                            v->kind == JSON_STRING ? llm_hf_shown(json_str(v)) : 0,
                            v->kind == JSON_STRING ? v->s : "");
        for (int k = 0; k < 2; k++) {
            const int64_t id = llm_hf_find_piece(t, pair[k]);
            if (id < 0)
                return ggl_fail(err, GGL_FORMAT, "merge %zu: the vocabulary has no token '%.*s'", i,
                                llm_hf_shown(pair[k]), pair[k].s);
            t->merge_id[2 * t->n_merge_id + (size_t)k] = (int32_t)id;
        }
        t->n_merge_id++;
    }
    return GGL_OK;
}

/* True if the strings "left right" cannot have all merges. */
static bool has_spaces(const json_value *list) {
    bool spaces = false;
    for (size_t i = 0; i < list->n && !spaces; i++) {
        ggl_str pair[2];
        for (int k = 0;
             k < 2 && list->item[i].kind == JSON_ARRAY && tokens_of(&list->item[i], pair); k++)
            spaces = spaces || pair[k].n == 0 || memchr(pair[k].s, ' ', pair[k].n) != NULL;
    }
    return spaces;
}

ggl_status llm_hf_merges_from_json(llm_hf_tokenizer *t, const json_value *list, ggl_error *err) {
    ggl_status s = GGL_OK;
    if (t->needs_steps && (has_spaces(list) || t->is_odd))
        return pairs_from_json(t, list, err);
    t->merge = ggl_arena_alloc(&t->arena, list->n + 1, sizeof *t->merge);
    if (!t->merge)
        return llm_hf_no_memory(err);
    for (size_t i = 0; s == GGL_OK && i < list->n; i++) {
        const json_value *v = &list->item[i];
        ggl_str m = {"", 0};
        if (v->kind == JSON_STRING) {
            m = json_str(v);
        } else if (v->kind == JSON_ARRAY && v->n == 2 && v->item[0].kind == JSON_STRING &&
                   v->item[1].kind == JSON_STRING) { /* ["a", "b"] */
            ggl_str a = json_str(&v->item[0]), b = json_str(&v->item[1]);
            char *both = ggl_arena_alloc(&t->arena, a.n + b.n + 1, 1);
            if (!both)
                return llm_hf_no_memory(err);
            memcpy(both, a.s, a.n);
            both[a.n] = ' ';
            memcpy(both + a.n + 1, b.s, b.n);
            m = (ggl_str){both, a.n + b.n + 1};
        }
        s = put_merge(t, m, err);
    }
    return s;
}

/* Reads merges.txt: a merge per line, after a first line that begins with "#version". */
ggl_status llm_hf_merges_from_text(llm_hf_tokenizer *t, const char *s, size_t n, ggl_error *err) {
    size_t n_line = 1, end;
    for (size_t i = 0; i < n; i++)
        n_line += s[i] == '\n';
    t->merge = ggl_arena_alloc(&t->arena, n_line, sizeof *t->merge);
    if (!t->merge)
        return llm_hf_no_memory(err);
    ggl_status st = GGL_OK;
    for (size_t i = 0; st == GGL_OK && i < n; i = end + 1) {
        for (end = i; end < n && s[end] != '\n';)
            end++;
        size_t len = end - i - (end > i && s[end - 1] == '\r');
        bool version = i == 0 && len >= 8 && memcmp(s, "#version", 8) == 0;
        if (len > 0 && !version)
            st = put_merge(t, (ggl_str){s + i, len}, err);
    }
    return st;
}

typedef struct joined { /* the token that a merge makes; the buffer is reused */
    char *text;
    size_t cap, left; /* left: bytes of the merge's first token */
    int64_t id;       /* -1: not a token */
} joined;

/* Joins the two tokens of a merge. False: out of memory. */
static bool join(const llm_hf_tokenizer *t, ggl_str m, joined *j) {
    j->left = (size_t)((const char *)memchr(m.s, ' ', m.n) - m.s);
    if (!ggl_grow(&j->text, &j->cap, m.n, 1))
        return false;
    memcpy(j->text, m.s, j->left);
    memcpy(j->text + j->left, m.s + j->left + 1, m.n - j->left - 1);
    j->id = llm_hf_find_piece(t, (ggl_str){j->text, m.n - 1});
    return true;
}

static ggl_status no_token(const llm_hf_tokenizer *t, size_t i, ggl_str piece, ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT, "merge %zu, '%.*s': the vocabulary has no token '%.*s'", i,
                    llm_hf_shown(t->merge[i]), t->merge[i].s, llm_hf_shown(piece), piece.s);
}

ggl_status llm_hf_check_merges(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < t->n_merge && s == GGL_OK; i++) {
        const ggl_str m = t->merge[i];
        if (!join(t, m, &j)) {
            s = llm_hf_no_memory(err);
            continue;
        }
        const ggl_str part[] = {{m.s, j.left}, {m.s + j.left + 1, m.n - j.left - 1}};
        for (int k = 0; k < 2 && s == GGL_OK; k++)
            if (llm_hf_find_piece(t, part[k]) < 0)
                s = no_token(t, i, part[k], err);
        if (s == GGL_OK && j.id < 0)
            s = no_token(t, i, (ggl_str){j.text, m.n - 1}, err);
    }
    ggl_free(j.text);
    return s;
}

/* Makes scores from the merges. SentencePiece merges the pair with the best score first, so
 * earlier merges get better scores. */
ggl_status llm_hf_make_scores(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    bool ok = true;
    for (int64_t id = 0; id < t->n; id++)
        t->score[id] = t->type[id] == LLM_TOKEN_NORMAL ? -1e6f : 0;
    for (size_t i = 0; i < t->n_merge && (ok = join(t, t->merge[i], &j)); i++)
        if (j.id >= 0 && t->score[j.id] == -1e6f)
            t->score[j.id] = -(float)i;
    ggl_free(j.text);
    return ok ? GGL_OK : llm_hf_no_memory(err);
}

ggl_status llm_hf_cut_merges(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    bool ok = true;
    size_t n = 0;
    for (size_t i = 0; i < t->n_merge && (ok = join(t, t->merge[i], &j)); i++) {
        ggl_str m = t->merge[i];
        if (j.id >= 0 && llm_hf_find_piece(t, (ggl_str){m.s, j.left}) >= 0 &&
            llm_hf_find_piece(t, (ggl_str){m.s + j.left + 1, m.n - j.left - 1}) >= 0)
            t->merge[n++] = m;
    }
    t->n_merge = n;
    ggl_free(j.text);
    return ok ? GGL_OK : llm_hf_no_memory(err);
}
