/* Vocabulary, special tokens, begin and end. A kind (tokenizer_impl.h) splits the text between
 * special tokens.
 *
 * For some special tokens the table says that adjacent white space belongs to them; GGUF has no
 * key for that. */
#include <inttypes.h>
#include <string.h>

#include "common/amounts.h"
#include "tokenizer_impl.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "forms.h"
#include "remembered.h"
#include "unicode.h"

static const llm_tokenizer_kind *const KINDS[] = {
    &llm_tokenizer_spm,    &llm_tokenizer_bpe,       &llm_tokenizer_rwkv, &llm_tokenizer_unigram,
    &llm_tokenizer_plamo2, &llm_tokenizer_wordpiece, &llm_tokenizer_steps};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

void llm_tokens_fini(llm_tokens *t) {
    ggl_free(t->id);
    *t = (llm_tokens){0};
}

/* --- reading the keys ------------------------------------------------------------------------- */

static ggl_status out_of_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

static ggl_status read_pieces(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, "tokenizer.ggml.tokens");
    if (!v || v->n == 0)
        return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.tokens is %s", v ? "empty" : "missing");
    if (!v->is_array || v->type != GGL_GGUF_STRING)
        return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.tokens is %s%s, not an array of strings",
                        v->is_array ? "an array of " : "", ggl_gguf_type_name(v->type));
    if (v->n > INT32_MAX)
        return ggl_fail(err, GGL_LIMIT,
                        "tokenizer.ggml.tokens has %" PRIu64 " entries, at most %d are supported",
                        v->n, INT32_MAX);
    t->n_vocab = (int32_t)v->n;
    size_t n = (size_t)v->n, bytes = 0;
    ggl_str s;
    for (size_t i = 0; i < n; i++)
        if (!ggl_gguf_string(v, i, &s) || !ggl_size_add(bytes, s.n, &bytes))
            return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.tokens: entry %zu is unreadable", i);
    char *blob = ggl_arena_alloc(&t->arena, bytes + 1, 1);
    t->piece = ggl_arena_alloc(&t->arena, n, sizeof *t->piece);
    t->text = ggl_arena_alloc(&t->arena, n, sizeof *t->text);
    t->type = ggl_arena_alloc(&t->arena, n, sizeof *t->type);
    t->eog = ggl_arena_alloc(&t->arena, n, sizeof *t->eog);
    t->strip = ggl_arena_alloc(&t->arena, n, sizeof *t->strip);
    if (!blob || !t->piece || !t->text || !t->type || !t->eog || !t->strip)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (!ggl_gguf_string(v, i, &s))
            return ggl_fail(err, GGL_FORMAT, "tokenizer.ggml.tokens: entry %zu is unreadable", i);
        if (s.n > 0)
            memcpy(blob, s.s, s.n);
        t->piece[i] = (ggl_str){blob, s.n};
        blob += s.n;
    }
    return GGL_OK;
}

static ggl_status read_types(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, "tokenizer.ggml.token_type");
    t->has_types = v != NULL;
    if (!v) {
        memset(t->type, TOKEN_NORMAL, (size_t)t->n_vocab);
        return GGL_OK;
    }
    if (!v->is_array || v->n != (uint64_t)t->n_vocab)
        return ggl_fail(err, GGL_FORMAT,
                        "tokenizer.ggml.token_type has %" PRIu64 " entr%s, for %" PRId32 " token%s",
                        v->n, v->n == 1 ? "y" : "ies", t->n_vocab, llm_amount_s(t->n_vocab));
    for (int32_t i = 0; i < t->n_vocab; i++) {
        int64_t type;
        if (!ggl_gguf_integer(v, (uint64_t)i, &type))
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.token_type is an array of %s, not of integers",
                            ggl_gguf_type_name(v->type));
        if (type < TOKEN_UNDEFINED || type > TOKEN_BYTE)
            return ggl_fail(err, GGL_FORMAT,
                            "tokenizer.ggml.token_type of token %" PRId32 " is %" PRId64
                            ", but types are 0 to %d",
                            i, type, TOKEN_BYTE);
        t->type[i] = (uint8_t)type;
    }
    return GGL_OK;
}

/* Reads an optional key with a token id. -1, also as an unsigned 32-bit number, means none. If
 * the key is absent: `fallback`, provided that this token has type `type`. */
static ggl_status read_id(const llm_tokenizer *t, const ggl_gguf *file, const char *key,
                          int32_t fallback, int type, int32_t *out, ggl_error *err) {
    int64_t id;
    int got = ggl_gguf_get_integer(file, key, &id, err);
    *out = -1;
    if (got < 0)
        return GGL_FORMAT;
    if (got == 0) {
        if (fallback >= 0 && fallback < t->n_vocab && t->type[fallback] == type)
            *out = fallback;
        return GGL_OK;
    }
    if (id == -1 || id == UINT32_MAX)
        return GGL_OK;
    if (id < 0 || id >= t->n_vocab)
        return ggl_fail(err, GGL_FORMAT, "%s is %" PRId64 ", but there are %" PRId32 " tokens", key,
                        id, t->n_vocab);
    *out = (int32_t)id;
    return GGL_OK;
}

/* True if the token's spelling may make it end generation: control and user-defined tokens, or
 * any if the file has no types. */
static bool may_end(const llm_tokenizer *t, int32_t id) {
    return !t->has_types || t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_USER_DEFINED;
}

static bool str_same(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

/* Marks the tokens that end generation according to the table. */
static void find_ends(llm_tokenizer *t) {
    ggl_str ends[128], other, part;
    int n = 0;
    while (n < 128 && llm_table_name("end", n, &ends[n]))
        n++;
    for (int32_t id = 0; id < t->n_vocab; id++)
        for (int k = 0; k < n && may_end(t, id) && !t->eog[id]; k++)
            t->eog[id] = str_same(ends[k], t->piece[id]);
    for (int k = 0; llm_table_name("unless", k, &other) && llm_table_name("unless", k + 1, &part);
         k += 2) {
        bool found = false;
        for (int32_t id = 0; id < t->n_vocab; id++)
            found = found || (may_end(t, id) && str_same(other, t->piece[id]));
        for (int32_t id = 0; found && id < t->n_vocab; id++)
            if (str_same(part, t->piece[id]))
                t->eog[id] = false;
    }
}

static ggl_status read_special_ids(llm_tokenizer *t, const table_model *model, const ggl_gguf *file,
                                   ggl_error *err) {
    int32_t eot, eom, cls = -1, sep = -1;
    const struct {
        const char *key;
        int32_t fallback;
        int type;
        int32_t *out;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", model->bos, TOKEN_CONTROL, &t->bos},
        {"tokenizer.ggml.eos_token_id", model->eos, TOKEN_CONTROL, &t->eos},
        {"tokenizer.ggml.unknown_token_id", model->unknown, TOKEN_UNKNOWN, &t->unknown},
        {"tokenizer.ggml.eot_token_id", -1, TOKEN_CONTROL, &eot},
        {"tokenizer.ggml.eom_token_id", -1, TOKEN_CONTROL, &eom},
        {"tokenizer.ggml.cls_token_id", -1, TOKEN_CONTROL, &cls},
        {"tokenizer.ggml.seperator_token_id", -1, TOKEN_CONTROL, &sep}, /* spelled so in files */
    };
    /* cls and sep apply only to cls_sep models */
    const size_t n = sizeof ids / sizeof *ids - (model->cls_sep ? 0 : 2);
    for (size_t i = 0; i < n; i++) {
        ggl_status s = read_id(t, file, ids[i].key, ids[i].fallback, ids[i].type, ids[i].out, err);
        if (s != GGL_OK)
            return s;
    }
    if (model->cls_sep) {
        t->bos = cls >= 0 ? cls : t->bos;
        t->eos = sep >= 0 ? sep : t->eos;
    }
    find_ends(t);
    const int32_t ends[] = {t->eos, eot, eom}; /* the file's keys always apply */
    for (int i = 0; i < 3; i++)
        if (ends[i] >= 0)
            t->eog[ends[i]] = true;
    return GGL_OK;
}

/* Copies the text by which a reranker reads a query and a document. */
static ggl_status read_pair_form(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    ggl_str form;
    const int got = ggl_gguf_get_string(file, "tokenizer.chat_template.rerank", &form, err);
    if (got < 1)
        return got < 0 ? GGL_FORMAT : GGL_OK;
    char *own = ggl_arena_alloc(&t->arena, form.n + 1, 1);
    if (!own)
        return out_of_memory(err);
    if (form.n > 0)
        memcpy(own, form.s, form.n);
    t->pair_form = (ggl_str){own, form.n};
    return GGL_OK;
}

/* Reads a list of tokens that texts begin or end with. */
static ggl_status read_ends(llm_tokenizer *t, const ggl_gguf *file, const char *key, int32_t **out,
                            size_t *n, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, key);
    if (!v)
        return GGL_OK;
    if (!v->is_array || v->n > (uint64_t)t->n_vocab)
        return ggl_fail(err, GGL_FORMAT, "%s is not an array of at most %" PRId32 " tokens", key,
                        t->n_vocab);
    *out = ggl_arena_alloc(&t->arena, (size_t)v->n + 1, sizeof **out);
    if (!*out)
        return out_of_memory(err);
    for (; *n < (size_t)v->n; ++*n) {
        int64_t id;
        if (!ggl_gguf_integer(v, *n, &id) || id < 0 || id >= t->n_vocab)
            return ggl_fail(err, GGL_FORMAT, "%s: entry %zu is no token", key, *n);
        (*out)[*n] = (int32_t)id;
    }
    return GGL_OK;
}

/* Reads one of the two lists of parts, which have the same length. */
static ggl_status read_pair_numbers(llm_tokenizer *t, const ggl_gguf_value *v, const char *key,
                                    size_t offset, int64_t least, int64_t end, ggl_error *err) {
    for (size_t i = 0; i < t->n_pair; i++) {
        int64_t number;
        if (!ggl_gguf_integer(v, i, &number) || number < least || number >= end)
            return ggl_fail(err, GGL_FORMAT, "%s: entry %zu is not a number from %lld to %lld", key,
                            i, (long long)least, (long long)end - 1);
        memcpy((char *)&t->pair[i] + offset, &(int32_t){(int32_t)number}, sizeof(int32_t));
    }
    return GGL_OK;
}

/* Reads how two texts are read side by side, unless a text says that. */
static ggl_status read_pair(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    enum { MOST = 1024, MOST_TYPES = 1 << 16 };
    static const char ids[] = "tokenizer.ggl.pair", types[] = "tokenizer.ggl.pair_types";
    const ggl_gguf_value *id = ggl_gguf_find(file, ids), *type = ggl_gguf_find(file, types);
    if (!id || t->pair_form.n > 0)
        return GGL_OK;
    if (!id->is_array || id->n > MOST || (type && (!type->is_array || type->n != id->n)))
        return ggl_fail(err, GGL_FORMAT,
                        "%s is not an array of at most %d numbers, with as many in %s", ids, MOST,
                        types);
    t->n_pair = (size_t)id->n;
    t->pair = ggl_arena_alloc(&t->arena, t->n_pair + 1, sizeof *t->pair);
    if (!t->pair)
        return out_of_memory(err);
    memset(t->pair, 0, t->n_pair * sizeof *t->pair);
    const ggl_status s =
        read_pair_numbers(t, id, ids, offsetof(pair_part, id), PAIR_SECOND, t->n_vocab, err);
    return s == GGL_OK && type
               ? read_pair_numbers(t, type, types, offsetof(pair_part, type), 0, MOST_TYPES, err)
               : s;
}

/* --- special tokens in text ------------------------------------------------------------------- */

static bool in_range(const llm_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n_vocab;
}

static bool is_special(const llm_tokenizer *t, int32_t id) {
    return t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_USER_DEFINED ||
           t->type[id] == TOKEN_UNKNOWN;
}

static int32_t find_special(const llm_tokenizer *t, ggl_str spelling) {
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (is_special(t, id) && str_same(spelling, t->piece[id]))
            return id;
    return -1;
}

/* True if the vocabulary has a token: NAME, or NAME=ID. */
static bool has_token(const llm_tokenizer *t, ggl_str word) {
    size_t n = word.n;
    int64_t id = 0;
    while (n > 0 && word.s[n - 1] >= '0' && word.s[n - 1] <= '9')
        n--;
    if (n == 0 || n == word.n || word.s[n - 1] != '=')
        return find_special(t, word) >= 0;
    for (size_t i = n; i < word.n && id < INT32_MAX; i++)
        id = 10 * id + (word.s[i] - '0');
    return id < t->n_vocab && is_special(t, (int32_t)id) &&
           str_same(t->piece[id], (ggl_str){word.s, n - 1});
}

/* Reads from the table which special tokens absorb adjacent white space on this side. */
static void read_strip(llm_tokenizer *t, const char *what, uint8_t side) {
    ggl_str name, token;
    for (int k = 0; llm_table_word(what, k, 0, &name); k++) {
        bool holds = has_token(t, name);
        for (int i = 1; holds && llm_table_word(what, k, i, &token); i++) {
            int32_t id = find_special(t, token);
            if (id >= 0)
                t->strip[id] |= side;
        }
    }
}

static ggl_status index_special(llm_tokenizer *t, ggl_error *err) {
    ggl_status s = llm_special_init(&t->special, err);
    for (int32_t id = 0; id < t->n_vocab && s == GGL_OK; id++)
        if (is_special(t, id) && t->piece[id].n > 0)
            s = llm_special_add(&t->special, t->piece[id], id, t->type[id] == TOKEN_USER_DEFINED,
                                err);
    return s == GGL_OK ? llm_special_finish(&t->special, err) : s;
}

/* --- public functions ------------------------------------------------------------------------- */

/* Finds the file's row in the table, and its kind. */
static ggl_status find_kind(const ggl_gguf *file, const llm_tokenizer_kind **out, table_model *row,
                            ggl_error *err) {
    ggl_str model;
    int got = ggl_gguf_get_string(file, "tokenizer.ggml.model", &model, err);
    if (got < 0)
        return GGL_FORMAT;
    if (got == 0)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "the file has no tokenizer (no key tokenizer.ggml.model)");
    if (ggl_gguf_find(file, "tokenizer.ggl.steps"))
        model = (ggl_str){"steps", 5};
    ggl_status s = llm_table_find_model(model, row, err);
    if (s != GGL_OK)
        return s;
    if (row->kind.n == 1 && row->kind.s[0] == '-')
        return ggl_fail(err, GGL_NOT_FOUND,
                        "the file has no tokenizer (tokenizer.ggml.model is '%.*s'): the model "
                        "accepts only token ids",
                        (int)model.n, model.s);
    for (int i = 0; i < N_KINDS; i++)
        if (strlen(KINDS[i]->name) == row->kind.n &&
            memcmp(KINDS[i]->name, row->kind.s, row->kind.n) == 0) {
            *out = KINDS[i];
            return GGL_OK;
        }
    return ggl_fail(err, GGL_FORMAT, "tokenizers.txt: there is no kind '%.*s'", (int)row->kind.n,
                    row->kind.s);
}

/* Compares what tokenizer.ggml.metaspace.prepend_scheme says with the key that this kind reads. */
static ggl_status check_scheme(const llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    static const char key[] = "tokenizer.ggml.metaspace.prepend_scheme";
    ggl_str scheme;
    const int found = ggl_gguf_get_string(file, key, &scheme, err);
    if (found <= 0)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    const llm_tokenizer_kind *kind = t->kind;
    const bool known = ggl_str_is(scheme, "always") || ggl_str_is(scheme, "never");
    if (known && kind->adds_space && kind->adds_space(t) == ggl_str_is(scheme, "always"))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "key %s is '%.*s', which is not known of this tokenizer (%s): only 'always' "
                    "and 'never' are, if add_space_prefix says the same",
                    key, (int)(scheme.n < 40 ? scheme.n : 40), scheme.s, kind->name);
}

/* Reads what changes a text before any kind of tokenizer cuts it. The steps of a tokenizer.json say all of that themselves. */
static ggl_status read_changes(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    static const char tags[] = "tokenizer.ggml.dna_auto_tags";
    bool tagged = false;
    if (ggl_gguf_find(file, "tokenizer.ggl.steps"))
        return GGL_OK;
    ggl_status s = llm_tokenizer_flag(file, "tokenizer.ggml.normalizer.nfc", &t->composes, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, tags, &tagged, err);
    if (s == GGL_OK && tagged)
        s = ggl_fail(err, GGL_UNSUPPORTED, "key %s is true: it is not known where the tags stand",
                     tags);
    return s == GGL_OK ? check_scheme(t, file, err) : s;
}

static ggl_status tokenizer_read(llm_tokenizer *t, const table_model *model, const ggl_gguf *file,
                                 ggl_error *err) {
    t->model = *model;
    t->add_bos = model->add_bos;
    t->add_eos = model->add_eos;
    ggl_status s = read_pieces(t, file, err);
    if (s == GGL_OK)
        s = read_types(t, file, err);
    if (s == GGL_OK)
        s = read_special_ids(t, model, file, err);
    if (s == GGL_OK)
        s = t->kind->init(t, file, err);
    if (s == GGL_OK)
        s = read_changes(t, file, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
    if (s == GGL_OK)
        s = llm_tokenizer_flag(file, "tokenizer.ggml.add_eos_token", &t->add_eos, err);
    if (s == GGL_OK)
        s = read_pair_form(t, file, err);
    if (s == GGL_OK)
        s = read_ends(t, file, "tokenizer.ggl.before", &t->before, &t->n_before, err);
    if (s == GGL_OK)
        s = read_ends(t, file, "tokenizer.ggl.after", &t->after, &t->n_after, err);
    if (s == GGL_OK)
        s = read_pair(t, file, err);
    t->add_bos = t->add_bos || t->model.always_bos;
    t->add_eos = t->add_eos || t->model.always_eos;
    if (s == GGL_OK)
        s = index_special(t, err);
    if (s != GGL_OK)
        return s;
    read_strip(t, "lstrip", STRIP_LEFT);
    read_strip(t, "rstrip", STRIP_RIGHT);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        t->text[id] = is_special(t, id) ? t->piece[id] : t->kind->text(t, id);
        if (!t->text[id].s)
            return out_of_memory(err);
    }
    return GGL_OK;
}

/* Puts the file's name before a message, unless it is there. */
static ggl_status in_file(const ggl_gguf *file, ggl_status s, ggl_error *err) {
    const char *name = ggl_gguf_name(file);
    const size_t n = strlen(name);
    const bool there = err && strncmp(err->msg, name, n) == 0 && err->msg[n] == ':';
    return there ? s : ggl_within(err, s, "%s", name);
}

ggl_status llm_tokenizer_new(llm_tokenizer **out, const ggl_gguf *file, ggl_error *err) {
    const llm_tokenizer_kind *kind = NULL;
    table_model model;
    *out = NULL;
    ggl_status s = find_kind(file, &kind, &model, err);
    if (s != GGL_OK)
        return in_file(file, s, err);
    llm_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return out_of_memory(err);
    t->kind = kind;
    s = tokenizer_read(t, &model, file, err);
    if (s != GGL_OK) {
        llm_tokenizer_free(t);
        return in_file(file, s, err);
    }
    *out = t;
    return GGL_OK;
}

ggl_status llm_tokenizer_beside(llm_tokenizer **out, const llm_tokenizer *t, ggl_error *err) {
    llm_tokenizer *n = *out = ggl_calloc(1, sizeof *n);
    if (!n)
        return out_of_memory(err);
    *n = *t;
    n->marks = NULL;
    n->remembered = NULL;
    n->is_beside = true;
    return GGL_OK;
}

void llm_tokenizer_free(llm_tokenizer *t) {
    if (!t)
        return;
    llm_remembered_free(t->remembered);
    if (!t->is_beside) {
        t->kind->free(t);
        llm_special_fini(&t->special);
        ggl_arena_fini(&t->arena);
    }
    ggl_free(t);
}

/* Returns the bytes of white space at the start of s[0..n). */
static size_t white_after(const char *s, size_t n) {
    size_t used = 0, len;
    while (used < n && (len = ggl_utf8_length(s + used, n - used)) > 0 &&
           (llm_unicode_properties(llm_unicode_decode(s + used, len)) & UNICODE_WHITE))
        used += len;
    return used;
}

/* Returns the bytes of white space at the end of s[0..n). */
static size_t white_before(const char *s, size_t n) {
    size_t left = n;
    for (size_t len = 1; len <= 3 && len <= left; len++)
        if (ggl_utf8_length(s + left - len, len) == len &&
            white_after(s + left - len, len) == len) {
            left -= len;
            len = 0;
        }
    return n - left;
}

/* True if the last token can stand within a text. */
static bool ends_with_text(const llm_tokenizer *t, const llm_tokens *list) {
    const int32_t id = list->n > 0 ? list->id[list->n - 1] : -1;
    return in_range(t, id) && t->type[id] != TOKEN_CONTROL && t->type[id] != TOKEN_USER_DEFINED;
}

/* Encodes a text that is put into NFC first. */
static ggl_status encode_composed(const llm_tokenizer *t, const char *text, size_t n,
                                  const llm_stretch *how, llm_tokens *out, ggl_error *err) {
    char *composed;
    size_t n_composed;
    if (!llm_compose_text(text, n, &composed, &n_composed))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
    const ggl_status s = t->kind->encode(t, composed, n_composed, how, out, err);
    ggl_free(composed);
    return s;
}

/* Encodes a text without special tokens. */
static ggl_status encode(const llm_tokenizer *t, const char *text, size_t n, const llm_stretch *how,
                         llm_tokens *out, ggl_error *err) {
    const size_t first = out->n, lost = out->lost;
    if (t->remembered && llm_remembered_find(t->remembered, text, n, how->goes_on, out))
        return GGL_OK;
    const ggl_status s = t->composes ? encode_composed(t, text, n, how, out, err)
                                     : t->kind->encode(t, text, n, how, out, err);
    if (t->remembered && s == GGL_OK)
        llm_remembered_put(t->remembered, text, n, how->goes_on, out, first, out->lost - lost);
    return s;
}

ggl_status llm_tokenizer_remember(llm_tokenizer *t, size_t most, ggl_error *err) {
    if (!t->remembered)
        t->remembered = llm_remembered_new(most);
    return t->remembered ? GGL_OK : out_of_memory(err);
}

size_t llm_tokenizer_remembered(const llm_tokenizer *t) {
    return t->remembered ? llm_remembered_bytes(t->remembered) : 0;
}

/* A text that is tokenized. */
typedef struct job {
    const llm_tokenizer *t;
    const llm_marks *marks; /* NULL: none */
    const llm_spans *given; /* NULL: none */
    const char *text;
    size_t n;
    llm_tokens *out;
    ggl_error *err;
    word_memory *words;
} job;

/* Encodes special tokens and the text between them, of the part between two bytes. */
static ggl_status tokenize_parts(const job *j, size_t from, size_t to, unsigned flags) {
    const llm_tokenizer *t = j->t;
    const bool control = flags & LLM_TOKENIZE_SPECIAL;
    const bool goes_on = flags & LLM_TOKENIZE_GOES_ON && ends_with_text(t, j->out);
    const char *text = j->text + from;
    const size_t n = to - from;
    llm_tokens *out = j->out;
    ggl_error *err = j->err;
    if (t->kind->parts)
        return t->kind->parts(t,
                              &(llm_parts){.text = text,
                                           .n = n,
                                           .offset = from,
                                           .given = control ? j->given : NULL,
                                           .special = control,
                                           .goes_on = goes_on,
                                           .at_zero = from == 0 && !(flags & LLM_TOKENIZE_GOES_ON),
                                           .out = out,
                                           .err = err});
    special_match *found;
    size_t n_found;
    ggl_status s =
        control && j->given && j->given->n > 0
            ? llm_special_find_between(&t->special, text, n, j->given, from, &found, &n_found, err)
            : llm_special_find(&t->special, text, n, !control, &found, &n_found, err);
    for (size_t start = 0; s == GGL_OK;) { /* text[start..] is not encoded yet */
        /* it begins inside the previous token */
        while (n_found > 0 && found[n_found - 1].at < start)
            n_found--;
        size_t end = n_found > 0 ? found[n_found - 1].at : n;
        size_t white = n_found > 0 && t->strip[found[n_found - 1].id] & STRIP_LEFT
                           ? white_before(text + start, end - start)
                           : 0;
        if (end - white > start)
            s = encode(t, text + start, end - white - start,
                       &(llm_stretch){goes_on && start == 0, j->words}, out, err);
        if (n_found == 0)
            break;
        int32_t id = found[--n_found].id;
        if (s == GGL_OK)
            s = llm_tokens_append(out, id, err);
        start = end + t->piece[id].n;
        if (t->strip[id] & STRIP_RIGHT)
            start += white_after(text + start, n - start);
    }
    ggl_free(found);
    return s;
}

static ggl_status check_marks(const llm_marks *m, const char *text, size_t n, ggl_error *err) {
    size_t at = 0, size;
    int64_t n_marks = 0;
    while (m->find(m->ctx, text, n, &at, &size)) {
        at += size;
        n_marks++;
    }
    return n_marks <= m->most
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT,
                          "the model takes %" PRId64 " %s%s at a time, but the text has %" PRId64,
                          m->most, m->what, m->most == 1 ? "" : "s", n_marks);
}

/* Tokenizes what stands between marks, and what these stand for. */
static ggl_status tokenize_marked(const job *j, unsigned flags) {
    const llm_marks *m = flags & LLM_TOKENIZE_SPECIAL ? j->marks : NULL;
    const unsigned later = flags & ~(unsigned)LLM_TOKENIZE_GOES_ON; /* after a mark */
    size_t from = 0, at = 0, size;
    ggl_status s = m && m->most > 0 ? check_marks(m, j->text, j->n, j->err) : GGL_OK;
    if (s != GGL_OK)
        return s;
    while (s == GGL_OK && m && m->find(m->ctx, j->text, j->n, &at, &size)) {
        if (at > from)
            s = tokenize_parts(j, from, at, from == 0 ? flags : later);
        if (s == GGL_OK)
            s = m->append(m->ctx, j->t, j->text + at, j->out, j->err);
        from = at += size;
    }
    return s == GGL_OK && (j->n > from || from == 0)
               ? tokenize_parts(j, from, j->n, from == 0 ? flags : later)
               : s;
}

void llm_tokenizer_set_marks(llm_tokenizer *t, const llm_marks *marks) {
    t->marks = marks;
}

ggl_status llm_tokenize_given(const llm_tokenizer *t, const llm_spans *given, const char *text,
                              size_t n, unsigned flags, llm_tokens *out, ggl_error *err) {
    return llm_tokenize_marked(t, t->marks, given, text, n, flags, out, err);
}

/* Appends a list, or without one (NULL) the token `one`, if it is there. */
static ggl_status append_ends(const int32_t *list, size_t n, int32_t one, llm_tokens *out,
                              ggl_error *err) {
    ggl_status s = GGL_OK;
    if (!list)
        return one >= 0 ? llm_tokens_append(out, one, err) : GGL_OK;
    for (size_t i = 0; i < n && s == GGL_OK; i++)
        s = llm_tokens_append(out, list[i], err);
    return s;
}

ggl_status llm_tokenize_marked(const llm_tokenizer *t, const llm_marks *marks,
                               const llm_spans *given, const char *text, size_t n, unsigned flags,
                               llm_tokens *out, ggl_error *err) {
    word_memory words = {0};
    const job j = {t, marks, given, text, n, out, err, &words};
    ggl_status s = GGL_OK;
    if (flags & LLM_TOKENIZE_BOS)
        s = append_ends(t->before, t->n_before, t->add_bos ? t->bos : -1, out, err);
    if (s == GGL_OK)
        s = tokenize_marked(&j, flags);
    if (s == GGL_OK && (flags & LLM_TOKENIZE_BOS))
        s = append_ends(t->after, t->n_after, t->add_eos ? t->eos : -1, out, err);
    llm_word_memory_fini(&words);
    return s;
}

const char *llm_tokenizer_kind_name(const llm_tokenizer *t) {
    return t->kind->name;
}

int32_t llm_tokenizer_n_vocab(const llm_tokenizer *t) {
    return t->n_vocab;
}

int32_t llm_tokenizer_bos(const llm_tokenizer *t) {
    return t->bos;
}

int32_t llm_tokenizer_eos(const llm_tokenizer *t) {
    return t->eos;
}

bool llm_tokenizer_is_eog(const llm_tokenizer *t, int32_t id) {
    return in_range(t, id) && t->eog[id];
}

bool llm_tokenizer_is_control(const llm_tokenizer *t, int32_t id) {
    return in_range(t, id) && t->type[id] == TOKEN_CONTROL;
}

ggl_str llm_token_piece(const llm_tokenizer *t, int32_t id) {
    return in_range(t, id) ? t->piece[id] : (ggl_str){"", 0};
}

ggl_str llm_token_text(const llm_tokenizer *t, int32_t id, bool special) {
    if (!in_range(t, id) ||
        (!special && (t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_UNKNOWN)))
        return (ggl_str){"", 0};
    return t->text[id];
}

ggl_str llm_token_next_text(const llm_tokenizer *t, int32_t id, bool special, bool *has_begun) {
    const ggl_str s = llm_token_text(t, id, special);
    if (*has_begun || !in_range(t, id) || t->type[id] == TOKEN_CONTROL)
        return s;
    *has_begun = true;
    const bool is_added = s.n > 0 && s.s[0] == ' ' && !is_special(t, id) && t->kind->adds_space &&
                          t->kind->adds_space(t);
    return is_added ? (ggl_str){s.s + 1, s.n - 1} : s;
}

ggl_status llm_detokenize(const llm_tokenizer *t, const int32_t *id, size_t n, bool special,
                          char **text, size_t *size, ggl_error *err) {
    *text = NULL;
    *size = 0;
    if (t->kind->decode)
        return t->kind->decode(t, id, n, special, text, size, err);
    size_t bytes = 1, used = 0;
    bool has_begun = false;
    for (size_t i = 0; i < n; i++)
        if (!ggl_size_add(bytes, llm_token_text(t, id[i], special).n, &bytes))
            return out_of_memory(err);
    char *out = ggl_calloc(bytes, 1);
    if (!out)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++) {
        const ggl_str s = llm_token_next_text(t, id[i], special, &has_begun);
        if (s.n > 0)
            memcpy(out + used, s.s, s.n);
        used += s.n;
    }
    *text = out;
    *size = used;
    return GGL_OK;
}
