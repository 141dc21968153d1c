/* The tokens of a tokenizer: ids, texts and kinds, with those that were added to the vocabulary. */
#include <stdio.h>
#include <string.h>

#include "common/lines.h"
#include "hf_tokenizer_impl.h"

#define MAX_ID ((int64_t)1 << 24)

int64_t llm_hf_find_piece(const llm_hf_tokenizer *t, ggl_str s) {
    size_t id = ggl_index_find(&t->by_piece, t->piece, s);
    return id == SIZE_MAX ? -1 : (int64_t)id;
}

static ggl_status read_id(const json_value *v, ggl_str name, int64_t *id, ggl_error *err) {
    if (!v || v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number >= (double)MAX_ID)
        return ggl_fail(err, GGL_FORMAT, "the id of token '%.*s' is not a whole number below %lld",
                        llm_hf_shown(name), name.s, (long long)MAX_ID);
    *id = (int64_t)v->number;
    return GGL_OK;
}

/* Called for each token that is added to the vocabulary. */
typedef ggl_status (*on_added)(llm_hf_tokenizer *t, int64_t id, ggl_str text, bool special,
                               ggl_error *err);

static ggl_status each_listed(llm_hf_tokenizer *t, const json_value *list, on_added f,
                              ggl_error *err) {
    for (size_t i = 0; list && i < list->n; i++) {
        const json_value *v = &list->item[i], *text = llm_json_get_kind(v, "content", JSON_STRING);
        const json_value *special = llm_json_get(v, "special");
        int64_t id = 0;
        if (!text)
            return ggl_fail(err, GGL_FORMAT, "an added token has no string 'content'");
        ggl_status s = read_id(llm_json_get(v, "id"), json_str(text), &id, err);
        if (s == GGL_OK)
            s = f(t, id, json_str(text), special && special->kind == JSON_BOOL && special->flag,
                  err);
        if (s != GGL_OK)
            return s;
    }
    return GGL_OK;
}

/* "added_tokens_decoder": {"ID": {"content": .., "special": ..}} */
static ggl_status each_decoded(llm_hf_tokenizer *t, const json_value *map, on_added f,
                               ggl_error *err) {
    ggl_status s = GGL_OK;
    for (size_t i = 0; map && s == GGL_OK && i < map->n; i++) {
        ggl_str name = json_name(map, i);
        const json_value *text = llm_json_get_kind(&map->item[i], "content", JSON_STRING);
        const json_value *special = llm_json_get(&map->item[i], "special");
        int64_t id = name.n > 0 && text ? 0 : -1;
        for (size_t k = 0; id >= 0 && k < name.n; k++)
            id = name.s[k] >= '0' && name.s[k] <= '9' && id < MAX_ID ? 10 * id + (name.s[k] - '0')
                                                                     : -1;
        if (id < 0 || id >= MAX_ID)
            return ggl_fail(err, GGL_FORMAT, "added_tokens_decoder: '%.*s' is not an id of a token",
                            llm_hf_shown(name), name.s);
        s = f(t, id, json_str(text), special && special->kind == JSON_BOOL && special->flag, err);
    }
    return s;
}

static ggl_status each_added(llm_hf_tokenizer *t, on_added f, ggl_error *err) {
    const llm_json *file = t->file ? t->file : t->beside;
    const json_value *root = file ? &file->root : NULL;
    const json_value *list = llm_json_get(root, "added_tokens");
    if (list && list->kind != JSON_ARRAY && list->kind != JSON_NULL)
        return ggl_fail(err, GGL_FORMAT, "added_tokens is %s, not an array",
                        llm_json_kind_text(list->kind));
    ggl_status s = each_listed(t, list && list->kind == JSON_ARRAY ? list : NULL, f, err);
    if (s != GGL_OK || t->file)
        return s;
    ggl_str left = t->first_language > 0 ? t->languages : (ggl_str){"", 0}, token;
    for (int64_t id = t->first_language; s == GGL_OK && llm_hf_next_word(&left, &token); id++)
        s = f(t, id, token, true, err);
    ggl_str after = t->after;
    for (int64_t id = t->n_model;
         s == GGL_OK && t->pieces.n > 0 && llm_hf_next_word(&after, &token); id++)
        s = f(t, id, token, true, err);
    if (s != GGL_OK)
        return s;
    if (t->added && t->added->root.kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "added_tokens.json is %s, not an object",
                        llm_json_kind_text(t->added->root.kind));
    for (size_t i = 0; t->added && s == GGL_OK && i < t->added->root.n; i++) {
        int64_t id = 0;
        s = read_id(&t->added->root.item[i], json_name(&t->added->root, i), &id, err);
        if (s == GGL_OK)
            s = f(t, id, json_name(&t->added->root, i), true, err);
    }
    /* this file has the "special" flags */
    const json_value *config = t->config ? &t->config->root : NULL;
    return s == GGL_OK
               ? each_decoded(t, llm_json_get_kind(config, "added_tokens_decoder", JSON_OBJECT), f,
                              err)
               : s;
}

/* First pass: finds the number of ids. */
static ggl_status count_id(llm_hf_tokenizer *t, int64_t id, ggl_str text, bool special,
                           ggl_error *err) {
    (void)text;
    (void)special;
    (void)err;
    t->n = id >= t->n ? id + 1 : t->n;
    t->n_given++;
    return GGL_OK;
}

/* Second pass: sets the token of an id. */
static ggl_status put_piece(llm_hf_tokenizer *t, int64_t id, ggl_str text, int type,
                            ggl_error *err) {
    if (id >= t->n) /* dropped */
        return GGL_OK;
    bool there = t->piece[id].s != NULL;
    if (there && (t->piece[id].n != text.n || memcmp(t->piece[id].s, text.s, text.n) != 0))
        return ggl_fail(err, GGL_FORMAT, "two tokens have the id %lld", (long long)id);
    t->piece[id] = text;
    t->type[id] = type;
    size_t first = ggl_index_put(&t->by_piece, t->piece, (size_t)id);
    if (first != (size_t)id)
        return ggl_fail(err, GGL_FORMAT, "token '%.*s' has the ids %zu and %lld",
                        llm_hf_shown(text), text.s, first, (long long)id);
    return GGL_OK;
}

static ggl_status put_added(llm_hf_tokenizer *t, int64_t id, ggl_str text, bool special,
                            ggl_error *err) {
    if (t->is_world) { /* models are trained with the ids of its file, not with another one of the same bytes */
        text = llm_hf_spell_world(t, text);
        if (!text.s)
            return llm_hf_no_memory(err);
        if (llm_hf_find_piece(t, text) >= 0)
            return GGL_OK;
    }
    return put_piece(t, id, text, special ? LLM_TOKEN_CONTROL : LLM_TOKEN_USER_DEFINED, err);
}

/* Settles the number of ids and allocates the tables. Fails if the tokenizer has more tokens
 * than the model, unless they may be dropped. */
static ggl_status make_room(llm_hf_tokenizer *t, const llm_hf_vocab *vocab, ggl_error *err) {
    if (vocab->n == 0 && t->n > t->n_given)
        return ggl_fail(
            err, GGL_FORMAT,
            "it has %lld tokens with ids up to %lld, but the number of the model's tokens is "
            "unknown: config.json should have a vocab_size, and the convert section should read it",
            (long long)t->n_given, (long long)t->n - 1);
    t->n_cut = vocab->n > 0 && t->n > vocab->n ? t->n - vocab->n : 0;
    if (t->n_cut > 0 && !vocab->cut)
        return ggl_fail(err, GGL_FORMAT,
                        "the tokenizer has %lld tokens, but the model has rows for %lld; "
                        "--extra-tokens cut leaves out the last %lld",
                        (long long)t->n, (long long)vocab->n, (long long)t->n_cut);
    if (t->n_cut > 0 &&
        !llm_hf_note(
            t,
            ggl_arena_printf(
                &t->arena,
                "the tokenizer's last %lld tokens, for which the model has no rows, are left out",
                (long long)t->n_cut)))
        return llm_hf_no_memory(err);
    t->n_ids = t->n - t->n_cut;
    t->n = vocab->n > 0 ? vocab->n : t->n;
    if (t->n > MAX_ID)
        return ggl_fail(err, GGL_LIMIT, "a vocabulary of %lld tokens, at most %lld are supported",
                        (long long)t->n, (long long)MAX_ID);
    if (t->n == 0)
        return ggl_fail(err, GGL_FORMAT, "the vocabulary is empty");
    t->piece = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->piece);
    t->type = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->type);
    t->in_model = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->in_model);
    if (!t->bytes)
        t->score = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->score);
    if (!t->piece || !t->type || !t->in_model || (!t->bytes && !t->score))
        return llm_hf_no_memory(err);
    const int64_t n_named = t->n_given < t->n ? t->n_given : t->n;
    return ggl_index_init(&t->by_piece, (size_t)n_named, sizeof *t->piece, GGL_INDEX_STRINGS, err);
}

/* Gives ids without a token an unused one, because the model has rows for them. The index omits
 * these, as nothing looks for them. */
static ggl_status fill_ids(llm_hf_tokenizer *t, ggl_error *err) {
    int64_t n_holes = 0, first = 0;
    for (int64_t id = 0; id < t->n; id++) {
        if (t->piece[id].s)
            continue;
        char *name = ggl_arena_printf(&t->arena, "[PAD%lld]", (long long)id);
        if (!name)
            return llm_hf_no_memory(err);
        const ggl_str text = {name, strlen(name)};
        if (llm_hf_find_piece(t, text) >= 0)
            return ggl_fail(err, GGL_FORMAT,
                            "id %lld has no token, and another token already has the name of an "
                            "unused one, '%s'",
                            (long long)id, name);
        first = id < t->n_ids && n_holes++ == 0 ? id : first;
        t->piece[id] = text;
        t->type[id] = LLM_TOKEN_UNUSED;
    }
    return n_holes == 0 ||
                   llm_hf_note(t, ggl_arena_printf(
                                      &t->arena,
                                      "%lld ids below the tokenizer's last one have no token (the "
                                      "first is %lld): unused tokens are written for them",
                                      (long long)n_holes, (long long)first))
               ? GGL_OK
               : llm_hf_no_memory(err);
}

ggl_status llm_hf_read_pieces(llm_hf_tokenizer *t, const json_value *vocab,
                              const llm_hf_vocab *size, ggl_error *err) {
    int64_t id = 0;
    ggl_status s = GGL_OK;
    if (!vocab)
        return ggl_fail(err, GGL_FORMAT, "the object 'vocab' is missing");
    for (size_t i = 0; s == GGL_OK && i < vocab->n; i++)
        if ((s = read_id(&vocab->item[i], json_name(vocab, i), &id, err)) == GGL_OK)
            s = count_id(t, id, json_name(vocab, i), false, err);
    if (s == GGL_OK)
        s = each_added(t, count_id, err);
    if (s == GGL_OK)
        s = make_room(t, size, err);
    for (size_t i = 0; s == GGL_OK && i < vocab->n; i++) {
        ggl_str text = json_name(vocab, i);
        s = put_piece(t, (int64_t)vocab->item[i].number, text,
                      !t->bytes && llm_is_byte_piece(text) ? LLM_TOKEN_BYTE : LLM_TOKEN_NORMAL,
                      err);
        if ((int64_t)vocab->item[i].number < t->n)
            t->in_model[(int64_t)vocab->item[i].number] = true;
    }
    t->n_model = (int64_t)vocab->n;
    if (s == GGL_OK)
        s = each_added(t, put_added, err);
    return s == GGL_OK ? fill_ids(t, err) : s;
}

ggl_status llm_hf_make_room_for_lines(llm_hf_tokenizer *t, size_t n, int64_t more, int64_t *lines,
                                      ggl_error *err) {
    ggl_str rest = {t->merges_text, n}, line;
    for (*lines = 0; llm_take_line(&rest, &line);)
        ++*lines;
    if (*lines == 0)
        return ggl_fail(err, GGL_FORMAT, "it has no tokens");
    const ggl_status s = llm_sentence_pieces_make_room(&t->pieces, *lines + more, err);
    t->pieces.n = s == GGL_OK ? *lines + more : 0;
    return s;
}

ggl_status llm_hf_read_sentence_pieces(llm_hf_tokenizer *t, const sentence_pieces *p,
                                       const llm_hf_vocab *size, ggl_error *err) {
    t->n = t->n_given = t->n_model = p->n;
    ggl_status s = each_added(t, count_id, err);
    if (s == GGL_OK)
        s = make_room(t, size, err);
    for (int64_t id = 0; s == GGL_OK && id < p->n && id < t->n; id++) {
        if (t->score)
            t->score[id] = p->score[id];
        t->in_model[id] = true;
        s = put_piece(t, id, p->piece[id], p->type[id], err);
    }
    if (s == GGL_OK)
        s = each_added(t, put_added, err);
    return s == GGL_OK ? fill_ids(t, err) : s;
}
