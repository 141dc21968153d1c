/* Tokenizers that are described as in a tokenizer.json (steps.h). */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "remembered.h"
#include "steps.h"

static const char KEY[] = "tokenizer.ggl.steps";

typedef struct steps {
    step_list normalizer, cutter, decoder;
    bool has_decoder, drops_space;
    step_added_list added;
    int32_t *added_at; /* [n_vocab], the place in the list; -1: none */
    ggl_str *spelled;  /* [n_vocab], for decoders; s NULL: no token */
    bool *hidden; /* [n_vocab]: the text of ids leaves it out, unless special tokens are wanted */
    step_model model;
} steps;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

/* --- reading --------------------------------------------------------------------------------------- */

static ggl_status read_flags(step_reader *r, const json_value *v, step_added *out) {
    static const bool no;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"single_word", &out->single_word},
                 {"lstrip", &out->lstrip},
                 {"rstrip", &out->rstrip},
                 {"normalized", &out->normalized},
                 {"special", &out->special}};
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && s == GGL_OK; i++)
        s = llm_step_flag(r, v, flags[i].name, &no, flags[i].flag);
    return s;
}

static ggl_status read_one_added(steps *m, const llm_tokenizer *t, step_reader *r,
                                 const json_value *v, size_t i, bool *in_model) {
    const json_value *id = llm_json_get_kind(v, "id", JSON_NUMBER);
    static const bool yes = true;
    bool in = true;
    if (!id || !id->whole || id->number < 0 || id->number >= t->n_vocab)
        return ggl_fail(r->err, GGL_FORMAT, "added_tokens: entry %zu has no id of a token", i);
    step_added *x = &m->added.item[m->added.n];
    x->id = (int32_t)id->number;
    if (m->added_at[x->id] >= 0 || t->piece[x->id].n == 0)
        return ggl_fail(r->err, GGL_FORMAT, "added_tokens: entry %zu is empty, or there twice", i);
    ggl_status s = read_flags(r, v, x);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "in_model", &yes, &in);
    if (s != GGL_OK)
        return s;
    x->special = x->special || t->type[x->id] == TOKEN_CONTROL;
    m->added_at[x->id] = (int32_t)m->added.n++;
    in_model[x->id] = in;
    return GGL_OK;
}

/* Adds control and user-defined tokens that the list does not have: a program has put them behind the others. */
static void add_unlisted(steps *m, const llm_tokenizer *t, bool *in_model) {
    for (int32_t id = 0; id < t->n_vocab; id++) {
        const bool control = t->type[id] == TOKEN_CONTROL;
        if (m->added_at[id] >= 0 || t->piece[id].n == 0 ||
            (!control && t->type[id] != TOKEN_USER_DEFINED))
            continue;
        m->added.item[m->added.n] = (step_added){.id = id, .special = control};
        m->added_at[id] = (int32_t)m->added.n++;
        in_model[id] = false;
    }
}

/* Reads the list, and sets in_model to false for those that the model does not have. */
static ggl_status read_added(steps *m, llm_tokenizer *t, step_reader *r, const json_value *root,
                             bool *in_model) {
    const json_value *list = llm_json_get_kind(root, "added_tokens", JSON_ARRAY);
    m->added_at = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->added_at);
    m->added.item = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->added.item);
    if (!m->added_at || !m->added.item)
        return no_memory(r->err);
    r->where = "added_tokens";
    for (int32_t id = 0; id < t->n_vocab; id++) {
        m->added_at[id] = -1;
        in_model[id] = t->type[id] != TOKEN_UNUSED;
    }
    ggl_status s = GGL_OK;
    for (size_t i = 0; list && i < list->n && s == GGL_OK; i++)
        s = read_one_added(m, t, r, &list->item[i], i, in_model);
    if (s == GGL_OK)
        add_unlisted(m, t, in_model);
    return s;
}

/* Spells the pieces as the model does: files of the model "bert" mark those that begin words instead of those that go on. */
static ggl_status spell_pieces(steps *m, llm_tokenizer *t, const bool *in_model, bool marked,
                               ggl_error *err) {
    m->model.piece = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->model.piece);
    if (!m->model.piece)
        return no_memory(err);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        ggl_str p = t->piece[id];
        if (!in_model[id])
            continue;
        if (marked && t->type[id] == TOKEN_NORMAL) {
            const bool begins =
                p.n >= sizeof llm_space && memcmp(p.s, llm_space, sizeof llm_space) == 0;
            if (begins)
                p = (ggl_str){p.s + sizeof llm_space, p.n - sizeof llm_space};
            else
                p = llm_step_joined(&t->arena, (ggl_str){"##", 2}, p);
            if (!p.s)
                return no_memory(err);
        }
        m->model.piece[id] = p;
    }
    return GGL_OK;
}

/* Sets what decoders and the search for normalized tokens see of an added token. */
static ggl_status normalize_added(steps *m, llm_tokenizer *t, step_memory *memory,
                                  step_text text[2], const step_added *x, size_t *room,
                                  ggl_error *err) {
    const ggl_str p = t->piece[x->id];
    m->spelled[x->id] = p;
    if (!x->normalized)
        return GGL_OK;
    step_line line;
    const ggl_status s = llm_steps_normalize(&m->normalizer, memory,
                                             &(step_line){.s = p.s, .n = p.n}, text, &line, err);
    if (s != GGL_OK)
        return s;
    if (line.n == 0) /* the library would find it anywhere */
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "added_tokens: nothing is left of '%.*s' after the normalizer",
                        (int)ggl_utf8_cut(p.s, p.n, 60), p.s);
    if (line.n > *room)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "added_tokens: the normalizer makes them longer than %d times, and %d "
                        "bytes more: '%.*s' has %zu bytes",
                        STEP_GROWTH, STEP_ROOM, (int)ggl_utf8_cut(p.s, p.n, 60), p.s, line.n);
    *room -= line.n;
    char *copy = ggl_arena_strndup(&t->arena, line.s, line.n);
    m->spelled[x->id] = (ggl_str){copy, line.n};
    return copy ? GGL_OK : no_memory(err);
}

/* Adds a token to an automaton. Of several that the normalizer makes alike the first counts; the library takes any one of them. */
static ggl_status add_token(automaton *x, bool *any, ggl_str spelling, size_t place,
                            ggl_error *err) {
    const ggl_status s = *any ? GGL_OK : llm_automaton_init(x, true, err);
    *any = true;
    return s == GGL_OK ? llm_automaton_add(x, spelling, (int32_t)place, err) : s;
}

/* The library looks a token up by what decoders see of it: one that a normalizer has changed is not found among the special ones. */
static ggl_status find_hidden(steps *m, llm_tokenizer *t, ggl_error *err) {
    ggl_index special;
    m->hidden = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->hidden);
    ggl_status s = m->hidden ? llm_spellings_init(&special, m->added.n, err) : no_memory(err);
    if (s != GGL_OK)
        return s;
    for (size_t i = 0; i < m->added.n; i++)
        if (m->added.item[i].special)
            (void)ggl_index_put(&special, t->piece, (size_t)m->added.item[i].id);
    for (int32_t id = 0; id < t->n_vocab; id++)
        m->hidden[id] = m->spelled[id].s && llm_spellings_find(&special, t->piece, m->spelled[id].s,
                                                               m->spelled[id].n) >= 0;
    ggl_index_fini(&special);
    return GGL_OK;
}

static ggl_status index_added(steps *m, llm_tokenizer *t, ggl_error *err) {
    step_added_list *list = &m->added;
    step_memory memory = {0};
    step_text text[2] = {{0}, {0}};
    ggl_status s = GGL_OK;
    size_t n_bytes = 0; /* together they may grow as one text may */
    for (size_t i = 0; i < list->n; i++)
        n_bytes += t->piece[list->item[i].id].n;
    size_t room = llm_step_most(n_bytes);
    for (size_t i = 0; i < list->n && s == GGL_OK; i++) {
        const step_added *x = &list->item[i];
        s = normalize_added(m, t, &memory, text, x, &room, err);
        if (s == GGL_OK && x->normalized)
            s = add_token(&list->normalized, &list->has_normalized, m->spelled[x->id], i, err);
        else if (s == GGL_OK)
            s = add_token(&list->raw, &list->has_raw, t->piece[x->id], i, err);
        if (s == GGL_OK && x->normalized && x->special && m->normalizer.n > 0)
            s = add_token(&list->control, &list->has_control, t->piece[x->id], i, err);
    }
    if (s == GGL_OK && list->has_raw)
        s = llm_automaton_finish(&list->raw, err);
    if (s == GGL_OK && list->has_normalized)
        s = llm_automaton_finish(&list->normalized, err);
    if (s == GGL_OK && list->has_control)
        s = llm_automaton_finish(&list->control, err);
    llm_step_memory_fini(&memory);
    ggl_free(text[0].s);
    ggl_free(text[1].s);
    return s;
}

static ggl_status read_parts(steps *m, llm_tokenizer *t, const ggl_gguf *file,
                             const json_value *root, bool *in_model, ggl_error *err) {
    step_reader r = {.arena = &t->arena, .err = err};
    const json_value *model = llm_json_get_kind(root, "model", JSON_OBJECT),
                     *decoder = llm_json_get(root, "decoder"),
                     *marked = llm_json_get_kind(model, "marked", JSON_BOOL);
    ggl_status s = llm_steps_read_normalizer(&m->normalizer, &r, llm_json_get(root, "normalizer"));
    if (s == GGL_OK)
        s = llm_steps_read_cutter(&m->cutter, &r, llm_json_get(root, "pre_tokenizer"));
    if (s == GGL_OK)
        s = llm_steps_read_decoder(&m->decoder, &r, decoder);
    if (s == GGL_OK)
        s = read_added(m, t, &r, root, in_model);
    if (s == GGL_OK)
        s = spell_pieces(m, t, in_model, marked && marked->flag, err);
    if (s != GGL_OK)
        return s;
    m->has_decoder = decoder && decoder->kind != JSON_NULL;
    m->model.of_bytes =
        llm_steps_have(&m->normalizer, "ByteLevel") || llm_steps_have(&m->cutter, "ByteLevel");
    m->drops_space = llm_steps_drop_space(&m->decoder, m->has_decoder);
    m->spelled = ggl_arena_alloc(&t->arena, (size_t)t->n_vocab, sizeof *m->spelled);
    if (!m->spelled)
        return no_memory(err);
    memcpy(m->spelled, m->model.piece, (size_t)t->n_vocab * sizeof *m->spelled);
    s = index_added(m, t, err);
    if (s == GGL_OK)
        s = find_hidden(m, t, err);
    return s == GGL_OK ? llm_step_model_read(&m->model, t, file, model, err) : s;
}

static ggl_status steps_init(llm_tokenizer *t, const ggl_gguf *file, ggl_error *err) {
    steps *m = ggl_arena_alloc(&t->arena, 1, sizeof *m);
    bool *in_model = ggl_calloc((size_t)t->n_vocab, sizeof *in_model);
    ggl_str text = {"", 0};
    llm_json *json = NULL;
    t->state = m;
    ggl_status s = m && in_model ? GGL_OK : no_memory(err);
    if (s == GGL_OK && ggl_gguf_get_string(file, KEY, &text, err) < 1)
        s = ggl_fail(err, GGL_FORMAT, "%s is missing", KEY);
    if (s == GGL_OK)
        s = llm_json_parse(&json, text.s, text.n, KEY, err);
    if (s == GGL_OK)
        s = read_parts(m, t, file, &json->root, in_model, err);
    llm_json_free(json);
    ggl_free(in_model);
    return s;
}

static void steps_free(llm_tokenizer *t) {
    steps *m = t->state; /* is in the arena */
    if (m) {
        llm_automaton_fini(&m->added.raw);
        llm_automaton_fini(&m->added.normalized);
        llm_automaton_fini(&m->added.control);
        llm_step_model_fini(&m->model);
    }
    t->state = NULL;
}

/* --- encoding -------------------------------------------------------------------------------------- */

typedef struct run {
    const llm_tokenizer *t;
    const steps *m;
    const llm_parts *parts;
    step_memory normalizing, cutting;
    step_text text[2], *cut_text;
    step_cutter cutter;
    step_model_run model;
} run;

static ggl_status give_piece(void *context, const char *s, size_t n) {
    return llm_step_model_piece(context, s, n);
}

/* Encodes what stands between added tokens, after the normalizer. */
static ggl_status encode_pieces(run *r, const step_line *line, size_t from, size_t to, bool at_zero,
                                bool begins) {
    if (from >= to)
        return GGL_OK;
    const step_piece p = {.s = line->s + from,
                          .n = to - from,
                          .zero =
                              from < line->zero ? (line->zero < to ? line->zero : to) - from : 0,
                          .at_zero = at_zero && from < line->zero,
                          .begins = begins};
    return llm_steps_cut(&r->cutter, 0, &p);
}

/* Encodes a text in which only normalized tokens are left. given, offset: as of llm_step_added_find, if the normalizer changes nothing. */
static ggl_status encode_line(run *r, const char *s, size_t n, size_t at, bool finds_control) {
    const llm_parts *p = r->parts;
    const bool at_zero = p->at_zero && at == 0, goes_on = p->goes_on && at == 0;
    const llm_spans *given = r->m->normalizer.n == 0 ? p->given : NULL;
    step_line line;
    step_match *found = NULL;
    size_t n_found = 0, done = 0;
    for (size_t i = 0; i < r->m->cutter.n; i++)
        r->cut_text[i].most = llm_step_most(n);
    const size_t first = n > 0 ? llm_utf8_length(s, n) : 0;
    ggl_status status = llm_steps_normalize(
        &r->m->normalizer, &r->normalizing,
        &(step_line){.s = s, .n = n, .zero = at_zero ? first : 0, .no_prefix = goes_on}, r->text,
        &line, p->err);
    if (status == GGL_OK && r->m->added.has_normalized)
        status = llm_step_added_find(&r->m->added, &r->m->added.normalized, line.s, line.n,
                                     p->special && finds_control, given, p->offset + at, &found,
                                     &n_found, p->err);
    for (size_t i = 0; i < n_found && status == GGL_OK; i++) {
        status = encode_pieces(r, &line, done, found[i].from, at_zero, goes_on && done == 0);
        if (status == GGL_OK)
            status = llm_tokens_append(p->out, found[i].id, p->err);
        done = found[i].to;
    }
    if (status == GGL_OK)
        status = encode_pieces(r, &line, done, line.n, at_zero, goes_on && done == 0);
    ggl_free(found);
    return status;
}

/* Encodes a text between tokens that are not normalized. If parts of the text are given as text, special tokens that are normalized count
 * as they are spelled: after the normalizer nobody knows which parts these were. */
static ggl_status encode_stretch(run *r, size_t from, size_t to) {
    const llm_parts *p = r->parts;
    const bool by_spelling = p->special && p->given && p->given->n > 0 && r->m->added.has_control;
    const char *s = p->text + from;
    step_match *found = NULL;
    size_t n_found = 0, done = 0;
    ggl_status status =
        by_spelling ? llm_step_added_find(&r->m->added, &r->m->added.control, s, to - from, true,
                                          p->given, p->offset + from, &found, &n_found, p->err)
                    : GGL_OK;
    for (size_t i = 0; i < n_found && status == GGL_OK; i++) {
        if (found[i].from > done)
            status = encode_line(r, s + done, found[i].from - done, from + done, false);
        if (status == GGL_OK)
            status = llm_tokens_append(p->out, found[i].id, p->err);
        done = found[i].to;
    }
    if (status == GGL_OK && to - from > done)
        status = encode_line(r, s + done, to - from - done, from + done, !by_spelling);
    ggl_free(found);
    return status;
}

/* The same, but a text that is known is copied. */
static ggl_status recall_stretch(run *r, size_t from, size_t to) {
    const llm_parts *p = r->parts;
    const char *s = p->text + from;
    const size_t n = to - from, first = p->out->n, lost = p->out->lost;
    const bool has_given = p->given && p->given->n > 0,
               as_ever = !(p->at_zero && from == 0) && !(has_given && r->m->added.has_normalized);
    struct remembered *memory = as_ever ? r->t->remembered : NULL;
    const unsigned how =
        (p->goes_on && from == 0) | (unsigned)p->special << 1 | (unsigned)has_given << 2;
    if (from >= to)
        return GGL_OK;
    if (memory && llm_remembered_find(memory, s, n, how, p->out))
        return GGL_OK;
    const ggl_status status = encode_stretch(r, from, to);
    if (memory && status == GGL_OK)
        llm_remembered_put(memory, s, n, how, p->out, first, p->out->lost - lost);
    return status;
}

static ggl_status encode_all(run *r) {
    const llm_parts *p = r->parts;
    const step_added_list *added = &r->m->added;
    step_match *found = NULL;
    size_t n_found = 0, done = 0;
    ggl_status status = added->has_raw
                            ? llm_step_added_find(added, &added->raw, p->text, p->n, p->special,
                                                  p->given, p->offset, &found, &n_found, p->err)
                            : GGL_OK;
    for (size_t i = 0; i < n_found && status == GGL_OK; i++) {
        status = recall_stretch(r, done, found[i].from);
        if (status == GGL_OK)
            status = llm_tokens_append(p->out, found[i].id, p->err);
        done = found[i].to;
    }
    if (status == GGL_OK)
        status = recall_stretch(r, done, p->n);
    ggl_free(found);
    return status;
}

/* In a text of which parts are only text, the model makes no special tokens: it does not know which parts these are. */
static ggl_status steps_parts(const llm_tokenizer *t, const llm_parts *p) {
    const steps *m = t->state;
    run r = {.t = t,
             .m = m,
             .parts = p,
             .model = {.m = &m->model,
                       .special = p->special && !(p->given && p->given->n > 0),
                       .out = p->out,
                       .err = p->err}};
    r.cut_text = ggl_calloc(m->cutter.n, sizeof *r.cut_text);
    r.cutter = (step_cutter){.list = &m->cutter,
                             .memory = &r.cutting,
                             .text = r.cut_text,
                             .piece = give_piece,
                             .context = &r.model,
                             .err = p->err};
    const ggl_status s = r.cut_text ? encode_all(&r) : llm_step_no_memory(p->err);
    for (size_t i = 0; r.cut_text && i < m->cutter.n; i++)
        ggl_free(r.cut_text[i].s);
    ggl_free(r.cut_text);
    ggl_free(r.text[0].s);
    ggl_free(r.text[1].s);
    llm_step_memory_fini(&r.normalizing);
    llm_step_memory_fini(&r.cutting);
    llm_step_model_run_fini(&r.model);
    return s;
}

/* --- text ------------------------------------------------------------------------------------------ */

static ggl_status steps_decode(const llm_tokenizer *t, const int32_t *id, size_t n, bool special,
                               char **text, size_t *size, ggl_error *err) {
    const steps *m = t->state;
    step_strings list = {0};
    step_memory memory = {0};
    ggl_status s = GGL_OK;
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        const bool known = id[i] >= 0 && id[i] < t->n_vocab && m->spelled[id[i]].s;
        if (known && (special || !m->hidden[id[i]]) &&
            !llm_step_strings_add(&list, m->spelled[id[i]]))
            s = no_memory(err);
    }
    if (s == GGL_OK && list.n > 0)
        s = llm_steps_decode(&m->decoder, &memory, m->has_decoder, &list, err);
    if (s == GGL_OK)
        s = llm_step_strings_take(&list, text, size, err);
    llm_step_strings_fini(&list);
    llm_step_memory_fini(&memory);
    return s;
}

static const char FIRST[] = "a", LAST[] = "b"; /* what stands beside a token */

/* Decodes up to three strings; false: out of memory. */
static bool decode_few(const steps *m, step_memory *memory, step_strings *list, const ggl_str *s,
                       size_t n) {
    llm_step_strings_clear(list);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = llm_step_strings_add(list, s[i]);
    return ok && llm_steps_decode(&m->decoder, memory, m->has_decoder, list, NULL) == GGL_OK;
}

/* The text of a token in the middle of others: what is between these. */
static ggl_str steps_text(llm_tokenizer *t, int32_t id) {
    const steps *m = t->state;
    const ggl_str p = m->spelled[id].s ? m->spelled[id] : t->piece[id], first = {FIRST, 1},
                  last = {LAST, 1};
    step_strings list = {0};
    step_memory memory = {0};
    ggl_str text = {NULL, 0};
    bool ok = decode_few(m, &memory, &list, (ggl_str[]){first, last}, 2);
    const size_t n_both = ok ? list.item[0].n : 0; /* "ab", or with something between */
    ok = ok && decode_few(m, &memory, &list, (ggl_str[]){first, p, last}, 3);
    const ggl_str all = ok ? list.item[0] : (ggl_str){"", 0};
    if (ok && all.n >= n_both && n_both > 1 && all.s[0] == FIRST[0])
        text = (ggl_str){ggl_arena_strndup(&t->arena, all.s + 1, all.n - n_both), all.n - n_both};
    else if (ok)
        text = p;
    llm_step_strings_fini(&list);
    llm_step_memory_fini(&memory);
    return text;
}

static bool steps_adds_space(const llm_tokenizer *t) {
    return ((const steps *)t->state)->drops_space;
}

static const char *steps_tables(const llm_tokenizer *t, llm_tokenizer_tables *out) {
    (void)t;
    (void)out;
    return "tokenizer.ggl.steps is there: the tokenizer has steps that only a tokenizer.json knows";
}

const llm_tokenizer_kind llm_tokenizer_steps = {
    .name = "steps",
    .init = steps_init,
    .text = steps_text,
    .parts = steps_parts,
    .decode = steps_decode,
    .adds_space = steps_adds_space,
    .free = steps_free,
    .tables = steps_tables,
};
