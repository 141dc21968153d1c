#include "hf_tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text_file.h"
#include "ggl/file.h"
#include "ggl/index.h"
#include "ggl/show.h"
#include "sentence_pieces.h"
#include "text/tokenizer_table.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_ID   ((int64_t)1 << 24)

enum { BOS, EOS, UNK, PAD, EOT, EOM, N_ID };
#define MAX_ENDS 64

static const struct {
    const char *token, *id, *key;
} specials[N_ID] = {{"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
                    {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
                    {"unk_token", "unk_token_id", "tokenizer.ggml.unknown_token_id"},
                    {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"},
                    {"eot_token", "eot_token_id", "tokenizer.ggml.eot_token_id"},
                    {"eom_token", "eom_token_id", "tokenizer.ggml.eom_token_id"}};

struct llm_hf_tokenizer {
    ggl_arena arena;
    const char *folder;
    /* parsed files; NULL: absent */
    llm_json *file, *config, *vocab, *added;
    llm_json *generation;   /* generation_config.json */
    sentence_pieces pieces; /* of SentencePiece, from the mapped file */
    ggl_file_map map;
    const json_value *model_config;
    char *merges_text, *template_text;
    size_t template_n;
    bool bytes; /* byte-level BPE, model "gpt2"; else "llama" */
    ggl_str *piece;
    int32_t *type;
    float *score;
    /* n: ids of the model; n_ids: up to the tokenizer's last one; n_given: entries in the files,
     * in which added tokens count again */
    int64_t n, n_ids, n_given;
    ggl_index by_piece;
    ggl_str *merge;
    size_t n_merge;
    ggl_str pre; /* s NULL: unknown */
    int64_t id[N_ID];
    int add_bos, add_eos, add_space; /* -1: unknown */
    ggl_str chat;                    /* chat template; s NULL: none */
    int64_t n_cut;                   /* tokens that were dropped */
    const char *note[8];
    int n_note;
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

/* Adds a note, whose text is in the arena. False: out of memory. */
static bool add_note(llm_hf_tokenizer *t, const char *text) {
    return text && t->n_note < (int)(sizeof t->note / sizeof *t->note) &&
           (t->note[t->n_note++] = text);
}

/* Returns a length for %.*s. */
static int shown(ggl_str s) {
    return (int)ggl_utf8_cut(s.s, s.n, 60);
}

/* --- files ------------------------------------------------------------------------------------ */

static char *path_of(llm_hf_tokenizer *t, const char *name) {
    return ggl_arena_printf(&t->arena, "%s/%s", t->folder, name);
}

/* Reads a JSON file; *out stays NULL if there is none. */
static ggl_status read_optional(llm_hf_tokenizer *t, const char *name, llm_json **out,
                                ggl_error *err) {
    char *path = path_of(t, name);
    if (!path)
        return no_memory(err);
    return access(path, F_OK) == 0 ? llm_json_read(out, path, MAX_FILE, err) : GGL_OK;
}

static ggl_status read_text(llm_hf_tokenizer *t, const char *name, char **text, size_t *n,
                            ggl_error *err) {
    char *path = path_of(t, name);
    if (!path)
        return no_memory(err);
    return access(path, F_OK) == 0 ? llm_read_text_file(path, MAX_FILE, text, n, err) : GGL_OK;
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Returns a token's id, or -1. */
static int64_t find_piece(const llm_hf_tokenizer *t, ggl_str s) {
    size_t id = ggl_index_find(&t->by_piece, t->piece, s);
    return id == SIZE_MAX ? -1 : (int64_t)id;
}

static ggl_status read_id(const json_value *v, ggl_str name, int64_t *id, ggl_error *err) {
    if (!v || v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number >= (double)MAX_ID)
        return ggl_fail(err, GGL_FORMAT, "the id of token '%.*s' is not a whole number below %lld",
                        shown(name), name.s, (long long)MAX_ID);
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
                            shown(name), name.s);
        s = f(t, id, json_str(text), special && special->kind == JSON_BOOL && special->flag, err);
    }
    return s;
}

static ggl_status each_added(llm_hf_tokenizer *t, on_added f, ggl_error *err) {
    const json_value *root = t->file ? &t->file->root : NULL;
    const json_value *list = llm_json_get(root, "added_tokens");
    if (list && list->kind != JSON_ARRAY && list->kind != JSON_NULL)
        return ggl_fail(err, GGL_FORMAT, "added_tokens is %s, not an array",
                        llm_json_kind_text(list->kind));
    ggl_status s = each_listed(t, list && list->kind == JSON_ARRAY ? list : NULL, f, err);
    if (s != GGL_OK || t->file)
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
        return ggl_fail(err, GGL_FORMAT, "token '%.*s' has the ids %zu and %lld", shown(text),
                        text.s, first, (long long)id);
    return GGL_OK;
}

static ggl_status put_added(llm_hf_tokenizer *t, int64_t id, ggl_str text, bool special,
                            ggl_error *err) {
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
        !add_note(
            t,
            ggl_arena_printf(
                &t->arena,
                "the tokenizer's last %lld tokens, for which the model has no rows, are left out",
                (long long)t->n_cut)))
        return no_memory(err);
    t->n_ids = t->n - t->n_cut;
    t->n = vocab->n > 0 ? vocab->n : t->n;
    if (t->n > MAX_ID)
        return ggl_fail(err, GGL_LIMIT, "a vocabulary of %lld tokens, at most %lld are supported",
                        (long long)t->n, (long long)MAX_ID);
    if (t->n == 0)
        return ggl_fail(err, GGL_FORMAT, "the vocabulary is empty");
    t->piece = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->piece);
    t->type = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->type);
    if (!t->bytes)
        t->score = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->score);
    if (!t->piece || !t->type || (!t->bytes && !t->score))
        return no_memory(err);
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
            return no_memory(err);
        const ggl_str text = {name, strlen(name)};
        if (find_piece(t, text) >= 0)
            return ggl_fail(err, GGL_FORMAT,
                            "id %lld has no token, and another token already has the name of an "
                            "unused one, '%s'",
                            (long long)id, name);
        first = id < t->n_ids && n_holes++ == 0 ? id : first;
        t->piece[id] = text;
        t->type[id] = LLM_TOKEN_UNUSED;
    }
    return n_holes == 0 ||
                   add_note(t, ggl_arena_printf(
                                   &t->arena,
                                   "%lld ids below the tokenizer's last one have no token (the "
                                   "first is %lld): unused tokens are written for them",
                                   (long long)n_holes, (long long)first))
               ? GGL_OK
               : no_memory(err);
}

static ggl_status read_pieces(llm_hf_tokenizer *t, const json_value *vocab,
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
    }
    if (s == GGL_OK)
        s = each_added(t, put_added, err);
    return s == GGL_OK ? fill_ids(t, err) : s;
}

/* Reads the tokens of SentencePiece, whose scores are given. */
static ggl_status read_sentence_pieces(llm_hf_tokenizer *t, const sentence_pieces *p,
                                       const llm_hf_vocab *size, ggl_error *err) {
    t->bytes = false;
    t->n = t->n_given = p->n;
    ggl_status s = each_added(t, count_id, err);
    if (s == GGL_OK)
        s = make_room(t, size, err);
    for (int64_t id = 0; s == GGL_OK && id < p->n && id < t->n; id++) {
        t->score[id] = p->score[id];
        s = put_piece(t, id, p->piece[id], p->type[id], err);
    }
    if (s == GGL_OK)
        s = each_added(t, put_added, err);
    return s == GGL_OK ? fill_ids(t, err) : s;
}

/* --- merges ----------------------------------------------------------------------------------- */

static ggl_status put_merge(llm_hf_tokenizer *t, ggl_str m, ggl_error *err) {
    const char *space = m.n > 0 ? memchr(m.s, ' ', m.n) : NULL;
    size_t left = space ? (size_t)(space - m.s) : 0;
    if (!space || left == 0 || left + 1 == m.n || memchr(space + 1, ' ', m.n - left - 1))
        return ggl_fail(err, GGL_FORMAT,
                        "merge %zu, '%.*s', is not two tokens with a space between", t->n_merge,
                        shown(m), m.s);
    t->merge[t->n_merge++] = m;
    return GGL_OK;
}

static ggl_status merges_from_json(llm_hf_tokenizer *t, const json_value *list, ggl_error *err) {
    ggl_status s = GGL_OK;
    t->merge = ggl_arena_alloc(&t->arena, list->n + 1, sizeof *t->merge);
    if (!t->merge)
        return no_memory(err);
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
                return no_memory(err);
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
static ggl_status merges_from_text(llm_hf_tokenizer *t, const char *s, size_t n, ggl_error *err) {
    size_t n_line = 1, end;
    for (size_t i = 0; i < n; i++)
        n_line += s[i] == '\n';
    t->merge = ggl_arena_alloc(&t->arena, n_line, sizeof *t->merge);
    if (!t->merge)
        return no_memory(err);
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
    j->id = find_piece(t, (ggl_str){j->text, m.n - 1});
    return true;
}

static ggl_status no_token(const llm_hf_tokenizer *t, size_t i, ggl_str piece, ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT, "merge %zu, '%.*s': the vocabulary has no token '%.*s'", i,
                    shown(t->merge[i]), t->merge[i].s, shown(piece), piece.s);
}

/* Checks that each merge makes a token out of two tokens, as the library that writes these files
 * requires. */
static ggl_status check_merges(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < t->n_merge && s == GGL_OK; i++) {
        const ggl_str m = t->merge[i];
        if (!join(t, m, &j)) {
            s = no_memory(err);
            continue;
        }
        const ggl_str part[] = {{m.s, j.left}, {m.s + j.left + 1, m.n - j.left - 1}};
        for (int k = 0; k < 2 && s == GGL_OK; k++)
            if (find_piece(t, part[k]) < 0)
                s = no_token(t, i, part[k], err);
        if (s == GGL_OK && j.id < 0)
            s = no_token(t, i, (ggl_str){j.text, m.n - 1}, err);
    }
    ggl_free(j.text);
    return s;
}

/* Makes scores from the merges. SentencePiece merges the pair with the best score first, so
 * earlier merges get better scores. */
static ggl_status make_scores(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    bool ok = true;
    for (int64_t id = 0; id < t->n; id++)
        t->score[id] = t->type[id] == LLM_TOKEN_NORMAL ? -1e6f : 0;
    for (size_t i = 0; i < t->n_merge && (ok = join(t, t->merge[i], &j)); i++)
        if (j.id >= 0 && t->score[j.id] == -1e6f)
            t->score[j.id] = -(float)i;
    ggl_free(j.text);
    return ok ? GGL_OK : no_memory(err);
}

/* Drops merges whose tokens or result were dropped. */
static ggl_status cut_merges(llm_hf_tokenizer *t, ggl_error *err) {
    joined j = {0};
    bool ok = true;
    size_t n = 0;
    for (size_t i = 0; i < t->n_merge && (ok = join(t, t->merge[i], &j)); i++) {
        ggl_str m = t->merge[i];
        if (j.id >= 0 && find_piece(t, (ggl_str){m.s, j.left}) >= 0 &&
            find_piece(t, (ggl_str){m.s + j.left + 1, m.n - j.left - 1}) >= 0)
            t->merge[n++] = m;
    }
    t->n_merge = n;
    ggl_free(j.text);
    return ok ? GGL_OK : no_memory(err);
}

/* --- other keys ------------------------------------------------------------------------------- */

/* Sets t->pre, the name of the pre-tokenizer, or adds a note that it is unknown. */
static ggl_status find_pre(llm_hf_tokenizer *t, ggl_error *err) {
    char found[4096] = "", class_name[128] = "";
    if (!t->bytes) {
        t->pre = (ggl_str){"default", 7};
        return GGL_OK;
    }
    if (!t->file) {
        const json_value *c =
            llm_json_get_kind(t->config ? &t->config->root : NULL, "tokenizer_class", JSON_STRING);
        if (c)
            snprintf(class_name, sizeof class_name, "%.*s", shown(json_str(c)), c->s);
        if (c && llm_hf_pre_of_class(class_name, &t->pre))
            return GGL_OK;
        add_note(t, "vocab.json and merges.txt do not define how text is cut into words, and the "
                    "tokenizer's class is unknown, too: tokenizer.ggml.pre is not written");
        return GGL_OK;
    }
    if (llm_hf_find_pre(&t->file->root, found, sizeof found, &t->pre))
        return GGL_OK;
    bool noted =
        add_note(t, ggl_arena_printf(&t->arena,
                                     "no tokenizer.ggml.pre is known for the way this tokenizer "
                                     "cuts text into words, %s: the key is not written",
                                     found[0] ? found : "which is not a pattern"));
    return noted ? GGL_OK : no_memory(err);
}

/* Sets add_bos, add_eos and add_space. */
static void find_flags(llm_hf_tokenizer *t) {
    const json_value *config = t->config ? &t->config->root : NULL,
                     *file = t->file ? &t->file->root : NULL;
    const json_value *bos = llm_json_get_kind(config, "add_bos_token", JSON_BOOL);
    const json_value *eos = llm_json_get_kind(config, "add_eos_token", JSON_BOOL);
    const json_value *list =
        llm_json_get_kind(llm_hf_step(llm_json_get(file, "post_processor"), "TemplateProcessing"),
                          "single", JSON_ARRAY);
    t->add_bos = bos ? bos->flag : -1;
    t->add_eos = eos ? eos->flag : -1;
    if (list && list->n > 0) {
        if (!bos)
            t->add_bos = llm_json_get(&list->item[0], "SpecialToken") != NULL;
        if (!eos)
            t->add_eos = llm_json_get(&list->item[list->n - 1], "SpecialToken") != NULL;
    }
    const json_value *space = llm_hf_step(llm_json_get(file, "pre_tokenizer"), "Metaspace");
    bool prepended = llm_hf_step(llm_json_get(file, "normalizer"), "Prepend") != NULL;
    bool never = llm_json_is(llm_json_get(space, "prepend_scheme"), "never") ||
                 !llm_hf_flag(space, "add_prefix_space", true);
    t->add_space = t->bytes ? -1 : prepended || (space && !never);
}

/* Sets t->id: tokenizer_config.json names the token, else config.json has its id or a list of
 * ids. */
static void find_ids(llm_hf_tokenizer *t) {
    const json_value *config = t->config ? &t->config->root : NULL;
    for (int k = 0; k < N_ID; k++) {
        const json_value *v = llm_json_get(config, specials[k].token),
                         *id = llm_json_get(t->model_config, specials[k].id);
        if (v && v->kind == JSON_OBJECT)
            v = llm_json_get(v, "content");
        t->id[k] = v && v->kind == JSON_STRING ? find_piece(t, json_str(v)) : -1;
        if (id && id->kind == JSON_ARRAY && id->n > 0)
            id = id->item;
        if (t->id[k] < 0 && id && id->kind == JSON_NUMBER && id->whole && id->number >= 0 &&
            id->number < (double)t->n)
            t->id[k] = (int64_t)id->number;
    }
    if (!t->bytes && t->id[UNK] >= 0)
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
}

/* Adds the ids of a number or list to end[], unless they are there or in t->id. Returns the new
 * count. */
static int add_ends(const llm_hf_tokenizer *t, const json_value *v, int64_t *end, int n) {
    const json_value *item = v && v->kind == JSON_ARRAY ? v->item : v;
    const size_t n_item = v && v->kind == JSON_ARRAY ? v->n : v != NULL;
    for (size_t i = 0; i < n_item && i < MAX_ENDS; i++) {
        bool known = item[i].kind != JSON_NUMBER || !item[i].whole || item[i].number < 0 ||
                     item[i].number >= (double)t->n;
        for (int k = 0; !known && k < n; k++)
            known = end[k] == (int64_t)item[i].number;
        for (int k = 0; !known && k < N_ID; k++)
            known = (k == EOS || k == EOT || k == EOM) && t->id[k] == (int64_t)item[i].number;
        if (!known && n < MAX_ENDS)
            end[n++] = (int64_t)item[i].number;
    }
    return n;
}

/* True if readers recognize this end token by its spelling: <|eot_id|> and similar ones. */
static bool ends_by_name(ggl_str piece) {
    ggl_str name;
    for (int k = 0; llm_table_name("end", k, &name); k++)
        if (name.n == piece.n && memcmp(name.s, piece.s, name.n) == 0)
            return true;
    return false;
}

static bool is_eom(ggl_str piece) {
    for (size_t i = 0; i + 3 <= piece.n; i++)
        if (memcmp(piece.s + i, "eom", 3) == 0)
            return true;
    return false;
}

/* GGUF has keys for three tokens that end a text: eos, eot (of a turn) and eom (of a message).
 * Assigns them first to tokens that readers do not recognize by name. Notes those left over. */
static ggl_status find_ends(llm_hf_tokenizer *t, ggl_error *err) {
    int64_t end[MAX_ENDS], left = -1;
    int n = add_ends(t, llm_json_get(t->model_config, "eos_token_id"), end, 0), n_left = 0,
        first = 0;
    n = add_ends(t, llm_json_get(t->generation ? &t->generation->root : NULL, "eos_token_id"), end,
                 n);
    if (t->id[EOS] < 0 && n > 0)
        t->id[EOS] = end[first++];
    for (int by_name = 0; by_name < 2; by_name++)
        for (int i = first; i < n; i++) {
            const ggl_str piece = t->piece[end[i]];
            int key = is_eom(piece) ? EOM : EOT;
            if (ends_by_name(piece) != by_name)
                continue;
            if (!by_name && t->id[key] >= 0)
                key = key == EOM ? EOT : EOM;
            if (t->id[key] < 0) {
                t->id[key] = end[i];
            } else if (!by_name) {
                left = n_left++ ? left : end[i];
            }
        }
    if (n_left == 0)
        return GGL_OK;
    const ggl_str piece = t->piece[left];
    return add_note(t, ggl_arena_printf(
                           &t->arena,
                           "'%.*s' also ends a text, but files have no key for it (%d such tokens)",
                           shown(piece), piece.s, n_left))
               ? GGL_OK
               : no_memory(err);
}

/* Sets the chat template: tokenizer_config.json's (the one called "default" of several), else
 * chat_template.jinja. */
static ggl_status find_template(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *v = llm_json_get(t->config ? &t->config->root : NULL, "chat_template");
    for (size_t i = 0; v && v->kind == JSON_ARRAY && i < v->n; i++)
        if (llm_json_is(llm_json_get(&v->item[i], "name"), "default"))
            v = llm_json_get(&v->item[i], "template");
    if (v && v->kind == JSON_STRING) {
        t->chat = json_str(v);
        return GGL_OK;
    }
    ggl_status s = read_text(t, "chat_template.jinja", &t->template_text, &t->template_n, err);
    if (s == GGL_OK && t->template_text)
        t->chat = (ggl_str){t->template_text, t->template_n};
    return s;
}

/* --- the whole -------------------------------------------------------------------------------- */

static ggl_status read_model(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    const json_value *root = &t->file->root, *model = llm_json_get(root, "model"),
                     *type = llm_json_get(model, "type");
    const json_value *merges = llm_json_get_kind(model, "merges", JSON_ARRAY);
    if (!model || (type && !llm_json_is(type, "BPE")) || !merges)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the tokenizer's type '%.*s' is not supported, only BPE is; --no-tokenizer "
                        "leaves it out",
                        type && type->kind == JSON_STRING ? shown(json_str(type)) : 4,
                        type && type->kind == JSON_STRING ? type->s : "none");
    t->bytes = llm_hf_step(llm_json_get(root, "pre_tokenizer"), "ByteLevel") ||
               llm_hf_step(llm_json_get(root, "decoder"), "ByteLevel");
    if (!t->bytes && !llm_hf_flag(model, "byte_fallback", false))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "a BPE tokenizer that neither works on bytes nor falls back to them is not supported");
    ggl_status s = read_pieces(t, llm_json_get_kind(model, "vocab", JSON_OBJECT), size, err);
    if (s == GGL_OK)
        s = merges_from_json(t, merges, err);
    return s == GGL_OK && !t->bytes ? make_scores(t, err) : s;
}

static ggl_status read_two_files(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    size_t n;
    t->bytes = true;
    ggl_status s = read_optional(t, "added_tokens.json", &t->added, err);
    if (s == GGL_OK)
        s = read_text(t, "merges.txt", &t->merges_text, &n, err);
    if (s == GGL_OK && !t->merges_text)
        s = ggl_fail(err, GGL_NOT_FOUND, "there is a vocab.json but no merges.txt");
    if (s == GGL_OK)
        s = read_pieces(t, t->vocab->root.kind == JSON_OBJECT ? &t->vocab->root : NULL, size, err);
    return s == GGL_OK ? merges_from_text(t, t->merges_text, n, err) : s;
}

/* Notes what the normalizer does that a BPE tokenizer's file cannot say. */
static bool note_normalizer(llm_hf_tokenizer *t) {
    const sentence_pieces *p = &t->pieces;
    if (p->unigram || (p->charsmap.n == 0 && !p->remove_spaces))
        return true;
    char name[4 * 60 + 1]; /* escaped, because notes are lines */
    ggl_show(name, sizeof name, p->normalizer.n ? p->normalizer.s : "",
             (size_t)shown(p->normalizer));
    return add_note(
        t,
        ggl_arena_printf(&t->arena,
                         "tokenizer.model normalizes text (%s%s%s), which a file of its kind, BPE, "
                         "cannot say: text is not normalized",
                         name, name[0] && p->remove_spaces ? ", " : "",
                         p->remove_spaces ? "of several spaces one remains" : ""));
}

static ggl_status read_sentence_model(llm_hf_tokenizer *t, const char *path,
                                      const llm_hf_vocab *size, ggl_error *err) {
    ggl_status s = read_optional(t, "added_tokens.json", &t->added, err);
    if (s == GGL_OK)
        s = ggl_file_map_open(&t->map, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_model(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK)
        s = read_sentence_pieces(t, &t->pieces, size, err);
    if (s == GGL_OK)
        s = find_pre(t, err);
    if (s == GGL_OK && !note_normalizer(t))
        s = no_memory(err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", path);
    find_ids(t);
    find_flags(t);
    t->add_space = t->pieces.add_space;
    const int64_t own[] = {[BOS] = t->pieces.bos,
                           [EOS] = t->pieces.eos,
                           [UNK] = t->pieces.unknown,
                           [PAD] = t->pieces.pad};
    for (int k = BOS; k <= PAD; k++)
        if (t->id[k] < 0 && own[k] < t->n)
            t->id[k] = own[k];
    if (t->id[UNK] >= 0)
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    return find_ends(t, err);
}

static ggl_status read_all(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    ggl_status s = read_optional(t, "tokenizer_config.json", &t->config, err);
    if (s == GGL_OK && t->config && (s = llm_hf_check_config(&t->config->root, err)) != GGL_OK)
        s = ggl_within(err, s, "%s/tokenizer_config.json", t->folder);
    if (s == GGL_OK)
        s = read_optional(t, "generation_config.json", &t->generation, err);
    if (s == GGL_OK)
        s = read_optional(t, "tokenizer.json", &t->file, err);
    if (s == GGL_OK && !t->file)
        s = read_optional(t, "vocab.json", &t->vocab, err);
    const char *path = path_of(t, "tokenizer.model");
    if (s == GGL_OK && !path)
        s = no_memory(err);
    if (s == GGL_OK && !t->file && !t->vocab && access(path, F_OK) == 0)
        return read_sentence_model(t, path, size, err);
    if (s != GGL_OK || (!t->file && !t->vocab))
        return s;
    s = t->file ? read_model(t, size, err) : read_two_files(t, size, err);
    if (s == GGL_OK)
        s = t->n_cut > 0 ? cut_merges(t, err) : check_merges(t, err);
    if (s == GGL_OK)
        s = find_pre(t, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s/%s", t->folder, t->file ? "tokenizer.json" : "vocab.json");
    find_ids(t);
    find_flags(t);
    return find_ends(t, err);
}

ggl_status llm_hf_tokenizer_open(llm_hf_tokenizer **out, const char *folder,
                                 const json_value *config, const llm_hf_vocab *vocab,
                                 ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return no_memory(err);
    t->folder = folder;
    t->model_config = config;
    ggl_status s = read_all(t, vocab, err);
    if (s == GGL_OK && t->n > 0)
        s = find_template(t, err);
    if (s != GGL_OK || t->n == 0) {
        llm_hf_tokenizer_free(t);
        return s;
    }
    *out = t;
    return GGL_OK;
}

static ggl_status read_bin(llm_hf_tokenizer *t, const char *path, int64_t n, ggl_error *err) {
    ggl_status s = ggl_file_map_open(&t->map, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_bin(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK && t->pieces.n != n)
        s = ggl_fail(err, GGL_SHAPE,
                     "it has %lld tokens, but the checkpoint has rows for %lld, so it belongs to "
                     "another model",
                     (long long)t->pieces.n, (long long)n);
    if (s == GGL_OK)
        s = read_sentence_pieces(t, &t->pieces, &(llm_hf_vocab){.n = n}, err);
    return s == GGL_OK ? find_pre(t, err) : ggl_within(err, s, "%s", path);
}

ggl_status llm_hf_tokenizer_open_bin(llm_hf_tokenizer **out, const char *path, int64_t n,
                                     ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return no_memory(err);
    ggl_status s = read_bin(t, path, n, err);
    if (s != GGL_OK) {
        llm_hf_tokenizer_free(t);
        return s;
    }
    for (int k = 0; k < N_ID; k++)
        t->id[k] = -1;
    t->id[BOS] = t->pieces.bos;
    t->id[EOS] = t->pieces.eos;
    t->id[UNK] = t->pieces.unknown;
    t->add_bos = t->add_space = 1; /* as llama2.c's programs do */
    *out = t;
    return GGL_OK;
}

void llm_hf_tokenizer_free(llm_hf_tokenizer *t) {
    if (!t)
        return;
    llm_sentence_pieces_fini(&t->pieces);
    ggl_file_map_close(&t->map);
    llm_json_free(t->file);
    llm_json_free(t->config);
    llm_json_free(t->vocab);
    llm_json_free(t->added);
    llm_json_free(t->generation);
    ggl_free(t->merges_text);
    ggl_free(t->template_text);
    ggl_index_fini(&t->by_piece);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

const char *llm_hf_tokenizer_note(const llm_hf_tokenizer *t, int k) {
    return k < t->n_note ? t->note[k] : NULL;
}

static void put_flag(ggl_gguf_writer *w, const char *key, int value) {
    if (value >= 0)
        ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &(uint8_t){value != 0}, 1);
}

/* Returns the model name in files for a kind of tokenizer: the first such row of
 * text/tokenizers.txt. */
static ggl_str model_of_kind(const char *kind) {
    ggl_str name;
    for (int k = 0; llm_table_name("model", k, &name); k++) {
        table_model row;
        if (llm_table_find_model(name, &row, NULL) == GGL_OK && row.kind.n == strlen(kind) &&
            memcmp(row.kind.s, kind, row.kind.n) == 0)
            return name;
    }
    return (ggl_str){"", 0};
}

void llm_hf_tokenizer_put(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    const bool unigram = t->pieces.unigram;
    ggl_str model = model_of_kind(t->bytes ? "bpe" : unigram ? "unigram" : "spm");
    ggl_gguf_put_string(w, "tokenizer.ggml.model", model.s, model.n);
    if (t->pre.s)
        ggl_gguf_put_string(w, "tokenizer.ggml.pre", t->pre.s, t->pre.n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", t->piece, (uint64_t)t->n);
    if (!t->bytes)
        ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, t->score, (uint64_t)t->n);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, t->type, (uint64_t)t->n);
    if (t->bytes)
        ggl_gguf_put_strings(w, "tokenizer.ggml.merges", t->merge, t->n_merge);
    for (int k = 0; k < N_ID; k++)
        if (t->id[k] >= 0)
            ggl_gguf_put(w, specials[k].key, GGL_GGUF_U32, false, &(uint32_t){(uint32_t)t->id[k]},
                         1);
    put_flag(w, "tokenizer.ggml.add_bos_token", t->add_bos);
    put_flag(w, "tokenizer.ggml.add_eos_token", t->add_eos);
    put_flag(w, "tokenizer.ggml.add_space_prefix", t->add_space);
    put_flag(w, "tokenizer.ggml.remove_extra_whitespaces", unigram ? t->pieces.remove_spaces : -1);
    if (unigram && t->pieces.charsmap.n > 0)
        ggl_gguf_put(w, "tokenizer.ggml.precompiled_charsmap", GGL_GGUF_U8, true,
                     t->pieces.charsmap.s, t->pieces.charsmap.n);
    if (t->chat.s)
        ggl_gguf_put_string(w, "tokenizer.chat_template", t->chat.s, t->chat.n);
}
