/* What the post_processor of a tokenizer.json puts around a text, and around two side by side. */
#include <string.h>

#include "hf_tokenizer_impl.h"

static bool is_null(const json_value *v) {
    return !v || v->kind == JSON_NULL;
}

/* --- what a post_processor makes of texts ------------------------------------------------------- */

/* Parts in a row. Those before end[k], from end[k - 1] on, are encoding k: the library hands these from step to step. */
enum { MOST_PARTS = 2 * LLM_HF_MOST_ENDS, MOST_ENCODINGS = MOST_PARTS };
typedef struct encodings {
    llm_hf_part part[MOST_PARTS];
    size_t n, end[MOST_ENCODINGS], n_end;
} encodings;

typedef struct reader {
    const llm_hf_tokenizer *t;
    const encodings *from; /* of the step before */
    encodings *to;
    ggl_error *err;
} reader;

static ggl_status add_part(reader *r, int64_t id, int64_t type) {
    if (r->to->n == MOST_PARTS)
        return ggl_fail(r->err, GGL_LIMIT, "post_processor adds more than %d tokens",
                        LLM_HF_MOST_ENDS);
    r->to->part[r->to->n++] = (llm_hf_part){(int32_t)id, (int32_t)type};
    return GGL_OK;
}

static ggl_status end_encoding(reader *r) {
    if (r->to->n_end == MOST_ENCODINGS)
        return ggl_fail(r->err, GGL_LIMIT, "post_processor has more than %d parts", MOST_ENCODINGS);
    r->to->end[r->to->n_end++] = r->to->n;
    return GGL_OK;
}

/* Adds encoding k of the step before. type below 0: the types that it has. */
static ggl_status add_encoding(reader *r, size_t k, int64_t type) {
    ggl_status s = GGL_OK;
    for (size_t i = k > 0 ? r->from->end[k - 1] : 0; i < r->from->end[k] && s == GGL_OK; i++) {
        const llm_hf_part *p = &r->from->part[i];
        s = add_part(r, p->id, type < 0 ? p->type : type);
    }
    return s;
}

/* Adds the id that a file has written. */
static ggl_status add_number(reader *r, const json_value *id, int64_t type) {
    if (id->kind != JSON_NUMBER || !id->whole || id->number < 0 || id->number >= (double)r->t->n)
        return ggl_fail(r->err, GGL_FORMAT,
                        "post_processor adds a token whose id is none of the %lld",
                        (long long)r->t->n);
    return add_part(r, (int64_t)id->number, type);
}

/* Adds the token with this name. */
static ggl_status add_name(reader *r, const json_value *name, int64_t type) {
    const bool is_name = name && name->kind == JSON_STRING;
    const int64_t id = is_name ? llm_hf_find_piece(r->t, json_str(name)) : -1;
    return id >= 0 ? add_part(r, id, type)
                   : ggl_fail(r->err, GGL_FORMAT, "post_processor adds '%.*s', which is no token",
                              is_name ? llm_hf_shown(json_str(name)) : 0, is_name ? name->s : "");
}

/* Returns the list of ids of a special token of a template; NULL: it has none. */
static const json_value *ids_of(const json_value *tokens, ggl_str name) {
    for (size_t k = 0; tokens && tokens->kind == JSON_OBJECT && k < tokens->n; k++) {
        const ggl_str x = json_name(tokens, k);
        if (x.n == name.n && (x.n == 0 || memcmp(x.s, name.s, x.n) == 0))
            return llm_json_get_kind(&tokens->item[k], "ids", JSON_ARRAY);
    }
    return NULL;
}

/* Reads the type of a part of a template. */
static ggl_status read_type(const reader *r, const json_value *part, int64_t *type) {
    const json_value *v = llm_json_get(part, "type_id");
    *type = 0;
    if (is_null(v))
        return GGL_OK;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number >= LLM_HF_MOST_TYPES)
        return ggl_fail(r->err, GGL_FORMAT,
                        "post_processor: a \"type_id\" is no number from 0 to %d",
                        LLM_HF_MOST_TYPES - 1);
    *type = (int64_t)v->number;
    return GGL_OK;
}

/* {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "<s>", "type_id": 0}}; the ids of the latter are in `tokens`. */
static ggl_status read_template_part(reader *r, const json_value *part, const json_value *tokens) {
    const json_value *text = llm_json_get(part, "Sequence"),
                     *token = llm_json_get(part, "SpecialToken"),
                     *name = llm_json_get_kind(token, "id", JSON_STRING);
    int64_t type;
    ggl_status s = read_type(r, name ? token : text, &type);
    if (s != GGL_OK)
        return s;
    if (!name) {
        const size_t k = !llm_json_is(llm_json_get(text, "id"), "A");
        return k < r->from->n_end
                   ? add_encoding(r, k, type)
                   : ggl_fail(r->err, GGL_UNSUPPORTED,
                              "post_processor: the template of a single text has a second one");
    }
    const json_value *ids = ids_of(tokens, json_str(name));
    if (!ids)
        return add_name(r, name, type);
    for (size_t k = 0; k < ids->n && s == GGL_OK; k++)
        s = add_number(r, &ids->item[k], type);
    return s;
}

/* {"single": [part, ..], "pair": [part, ..], "special_tokens": {..}} */
static ggl_status read_template(reader *r, const json_value *v) {
    const char *name = r->from->n_end == 1 ? "single" : "pair";
    const json_value *list = llm_json_get_kind(v, name, JSON_ARRAY);
    ggl_status s = r->from->n_end <= 2
                       ? GGL_OK
                       : ggl_fail(r->err, GGL_UNSUPPORTED,
                                  "post_processor: a template after a template is not supported");
    for (size_t i = 0; list && i < list->n && s == GGL_OK; i++) {
        s = read_template_part(r, &list->item[i], llm_json_get(v, "special_tokens"));
        if (s == GGL_OK)
            s = end_encoding(r);
    }
    return s;
}

/* Adds ["name", id], a member of the step. */
static ggl_status add_end(reader *r, const json_value *v, const char *member, int64_t type) {
    const json_value *pair = llm_json_get_kind(v, member, JSON_ARRAY);
    return !pair || pair->n == 0 ? GGL_OK
           : pair->n == 2        ? add_number(r, &pair->item[1], type)
                                 : add_name(r, pair->item, type);
}

/* "cls" before the first text, and "sep" behind each. */
static ggl_status read_bert(reader *r, const json_value *v) {
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < r->from->n_end && s == GGL_OK; k++) {
        if (k == 0)
            s = add_end(r, v, "cls", 0);
        if (s == GGL_OK)
            s = add_encoding(r, k, -1);
        if (s == GGL_OK)
            s = add_end(r, v, "sep", k > 0);
        if (s == GGL_OK)
            s = end_encoding(r);
    }
    return s;
}

/* The same, and "sep" before the other texts; all types are 0. */
static ggl_status read_roberta(reader *r, const json_value *v) {
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < r->from->n_end && s == GGL_OK; k++) {
        s = add_end(r, v, k == 0 ? "cls" : "sep", 0);
        if (s == GGL_OK)
            s = add_encoding(r, k, 0);
        if (s == GGL_OK)
            s = add_end(r, v, "sep", 0);
        if (s == GGL_OK)
            s = end_encoding(r);
    }
    return s;
}

static const struct {
    const char *type;
    ggl_status (*read)(reader *r, const json_value *v);
} processors[] = {{"TemplateProcessing", read_template},
                  {"BertProcessing", read_bert},
                  {"RobertaProcessing", read_roberta},
                  {"ByteLevel", NULL}}; /* changes no tokens */
enum { N_PROCESSORS = sizeof processors / sizeof *processors };

/* Applies a step of the post-processor to *e. */
static ggl_status process(const llm_hf_tokenizer *t, const json_value *v, encodings *e,
                          ggl_error *err) {
    const json_value *parts = llm_json_get_kind(v, "processors", JSON_ARRAY),
                     *type = llm_json_get_kind(v, "type", JSON_STRING);
    ggl_status s = GGL_OK;
    for (size_t i = 0; parts && i < parts->n && s == GGL_OK; i++)
        s = process(t, &parts->item[i], e, err);
    if (parts || is_null(v))
        return s;
    int k = 0;
    while (k < N_PROCESSORS && !llm_json_is(type, processors[k].type))
        k++;
    if (k == N_PROCESSORS)
        return ggl_fail(err, GGL_UNSUPPORTED, "post_processor: a step '%.*s' is not known",
                        type ? llm_hf_shown(json_str(type)) : 4, type ? type->s : "none");
    if (!processors[k].read)
        return GGL_OK;
    const encodings from = *e;
    e->n = e->n_end = 0;
    return processors[k].read(&(reader){t, &from, e, err}, v);
}

/* --- single texts and pairs --------------------------------------------------------------------- */

/* Divides the parts of a single text into what is before and behind it. */
static ggl_status set_single(llm_hf_tokenizer *t, const encodings *e, ggl_error *err) {
    int n_text = 0;
    for (size_t i = 0; i < e->n; i++) {
        llm_hf_ends *to = &t->ends[n_text > 0];
        if (e->part[i].id < 0)
            n_text++;
        else if (to->n == LLM_HF_MOST_ENDS)
            return ggl_fail(err, GGL_LIMIT, "post_processor adds more than %d tokens",
                            LLM_HF_MOST_ENDS);
        else
            to->id[to->n++] = e->part[i].id;
    }
    return n_text == 1 ? GGL_OK
                       : ggl_fail(err, GGL_UNSUPPORTED,
                                  "post_processor: a template that does not have the text once "
                                  "is not supported");
}

static ggl_status set_pair(llm_hf_tokenizer *t, const encodings *e, ggl_error *err) {
    if (e->n == 0) /* such a template says nothing */
        return GGL_OK;
    t->pair = ggl_arena_alloc(&t->arena, e->n + 1, sizeof *t->pair);
    if (!t->pair)
        return llm_hf_no_memory(err);
    memcpy(t->pair, e->part, e->n * sizeof *t->pair);
    t->n_pair = e->n;
    return GGL_OK;
}

/* Processes one text, or two. */
static ggl_status read_texts(llm_hf_tokenizer *t, const json_value *post, size_t n,
                             ggl_error *err) {
    encodings e = {.part = {{LLM_HF_FIRST, 0}, {LLM_HF_SECOND, 1}}, .n = n, .end = {1, 2}};
    e.n_end = n;
    const ggl_status s = process(t, post, &e, err);
    if (s != GGL_OK)
        return s;
    return n == 1 ? set_single(t, &e, err) : set_pair(t, &e, err);
}

ggl_status llm_hf_set_template_ends(llm_hf_tokenizer *t, ggl_error *err) {
    const llm_json *file = t->file ? t->file : t->beside;
    const json_value *post = file ? llm_json_get(&file->root, "post_processor") : NULL;
    ggl_status s = file ? read_texts(t, post, 1, err) : GGL_OK;
    if (s == GGL_OK && !is_null(post))
        s = read_texts(t, post, 2, err);
    if (s != GGL_OK)
        return s;
    /* a model that generates may end its texts with another token */
    const bool counts = t->is_alone || t->pieces.unigram;
    if (t->ends[0].n > 0 && (counts || t->id[BOS] < 0))
        t->id[BOS] = t->ends[0].id[0];
    if (t->ends[1].n > 0 && (counts || t->id[EOS] < 0))
        t->id[EOS] = t->ends[1].id[t->ends[1].n - 1];
    return s;
}

/* --- writing ------------------------------------------------------------------------------------ */

/* True if a list is what the flag and the token say, too. */
static bool says_same(const llm_hf_ends *e, bool flag, int64_t id) {
    return e->n == 0 ? !flag || id < 0 : e->n == 1 && flag && id == e->id[0];
}

/* What GGUF's own keys say of the beginning (k 0) and the end (1) of a text. */
static llm_hf_ends said_by_keys(const llm_hf_tokenizer *t, int k) {
    const bool always = t->words && !t->needs_steps; /* the kind "bert" */
    const int64_t id = t->id[k == 0 ? BOS : EOS];
    const bool adds = always || (k == 0 ? t->add_bos : t->add_eos) == 1;
    return adds && id >= 0 ? (llm_hf_ends){.id = {(int32_t)id}, .n = 1} : (llm_hf_ends){.n = 0};
}

/* True if the keys of single texts are needed. */
static bool needs_ends(const llm_hf_tokenizer *t) {
    const bool always = t->words && !t->needs_steps;
    return t->has_ends && !(says_same(&t->ends[0], always || t->add_bos == 1, t->id[BOS]) &&
                            says_same(&t->ends[1], always || t->add_eos == 1, t->id[EOS]));
}

static size_t put_list(llm_hf_part *to, size_t n, const llm_hf_ends *e, int32_t type) {
    for (size_t i = 0; i < e->n; i++)
        to[n++] = (llm_hf_part){e->id[i], type};
    return n;
}

/* Makes the pair that readers make of the keys of single texts (models/text/pair.c): to[4 * LLM_HF_MOST_ENDS + 2]. Returns its length. */
static size_t usual_pair(const llm_hf_tokenizer *t, llm_hf_part *to) {
    const bool own = needs_ends(t), words = t->words && !t->needs_steps;
    const int64_t eos = t->id[EOS];
    const int32_t second = words || (eos >= 0 && ggl_str_is(t->piece[eos], "[SEP]"));
    llm_hf_ends ends[2];
    for (int k = 0; k < 2; k++)
        ends[k] = own ? t->ends[k] : said_by_keys(t, k);
    size_t n = put_list(to, 0, &ends[0], 0);
    to[n++] = (llm_hf_part){LLM_HF_FIRST, 0};
    n = put_list(to, n, &ends[1], 0);
    if (ends[0].n > 0 && ends[0].id[0] == t->id[BOS]) {
        if (eos >= 0 && !second)
            ends[0].id[0] = (int32_t)eos;
        else
            memmove(ends[0].id, ends[0].id + 1, --ends[0].n * sizeof *ends[0].id);
    }
    n = put_list(to, n, &ends[0], second);
    to[n++] = (llm_hf_part){LLM_HF_SECOND, second};
    return put_list(to, n, &ends[1], second);
}

/* Writes the parts of two texts side by side, unless readers find the same without them. A class whose models get no types has zeros. */
static void put_pair(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    llm_hf_part usual[4 * LLM_HF_MOST_ENDS + 2];
    const size_t n_usual = usual_pair(t, usual);
    const bool own = t->pair && t->has_ends, typed = t->is_typed;
    const llm_hf_part *part = own ? t->pair : usual;
    const size_t n = own ? t->n_pair : n_usual;
    int32_t id[4 * LLM_HF_MOST_ENDS + 2], type[4 * LLM_HF_MOST_ENDS + 2];
    bool same = n == n_usual;
    for (size_t i = 0; i < n; i++) {
        id[i] = part[i].id;
        type[i] = typed ? part[i].type : 0;
        same = same && id[i] == usual[i].id && type[i] == usual[i].type;
    }
    if (same)
        return;
    ggl_gguf_put(w, "tokenizer.ggl.pair", GGL_GGUF_I32, true, id, n);
    ggl_gguf_put(w, "tokenizer.ggl.pair_types", GGL_GGUF_I32, true, type, n);
}

void llm_hf_put_ends(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    static const char *const keys[] = {"tokenizer.ggl.before", "tokenizer.ggl.after"};
    for (int k = 0; k < 2 && needs_ends(t); k++)
        ggl_gguf_put(w, keys[k], GGL_GGUF_I32, true, t->ends[k].id, t->ends[k].n);
    put_pair(t, w);
}
