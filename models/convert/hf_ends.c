/* What the post_processor of a tokenizer.json puts around a text. */
#include <string.h>

#include "hf_tokenizer_impl.h"

static bool is_null(const json_value *v) {
    return !v || v->kind == JSON_NULL;
}

static ggl_status add_id(llm_hf_ends *e, int64_t id, ggl_error *err) {
    if (e->n == LLM_HF_MOST_ENDS)
        return ggl_fail(err, GGL_LIMIT, "post_processor adds more than %d tokens",
                        LLM_HF_MOST_ENDS);
    e->id[e->n++] = (int32_t)id;
    return GGL_OK;
}

/* Adds the id that a file has written. */
static ggl_status add_number(const llm_hf_tokenizer *t, llm_hf_ends *e, const json_value *id,
                             ggl_error *err) {
    if (id->kind != JSON_NUMBER || !id->whole || id->number < 0 || id->number >= (double)t->n)
        return ggl_fail(err, GGL_FORMAT, "post_processor adds a token whose id is none of the %lld",
                        (long long)t->n);
    return add_id(e, (int64_t)id->number, err);
}

/* Adds the token with this name. */
static ggl_status add_name(const llm_hf_tokenizer *t, llm_hf_ends *e, const json_value *name,
                           ggl_error *err) {
    const bool is_name = name && name->kind == JSON_STRING;
    const int64_t id = is_name ? llm_hf_find_piece(t, json_str(name)) : -1;
    return id >= 0 ? add_id(e, id, err)
                   : ggl_fail(err, GGL_FORMAT, "post_processor adds '%.*s', which is no token",
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

/* "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, ..]; the ids of a special token are in "special_tokens". */
static ggl_status read_template(const llm_hf_tokenizer *t, const json_value *v, llm_hf_ends ends[2],
                                ggl_error *err) {
    const json_value *single = llm_json_get_kind(v, "single", JSON_ARRAY);
    int n_text = 0; /* how often the template has the text */
    ggl_status s = GGL_OK;
    for (size_t i = 0; single && i < single->n && s == GGL_OK && n_text < 2; i++) {
        const json_value *part = &single->item[i],
                         *name = llm_json_get_kind(llm_json_get(part, "SpecialToken"), "id",
                                                   JSON_STRING);
        if (!name) {
            n_text += llm_json_is(llm_json_get(llm_json_get(part, "Sequence"), "id"), "A") ? 1 : 2;
            continue;
        }
        const json_value *ids = ids_of(llm_json_get(v, "special_tokens"), json_str(name));
        if (!ids)
            s = add_name(t, &ends[n_text], name, err);
        for (size_t k = 0; ids && k < ids->n && s == GGL_OK; k++)
            s = add_number(t, &ends[n_text], &ids->item[k], err);
    }
    return s != GGL_OK || n_text == 1 ? s
                                      : ggl_fail(err, GGL_UNSUPPORTED,
                                                 "post_processor: a template that does not have "
                                                 "the text once is not supported");
}

/* ["name", id] before a text ("cls") and behind it ("sep"). */
static ggl_status read_pair(const llm_hf_tokenizer *t, const json_value *v, llm_hf_ends ends[2],
                            ggl_error *err) {
    static const char *const names[] = {"cls", "sep"};
    ggl_status s = GGL_OK;
    for (int k = 0; k < 2 && s == GGL_OK; k++) {
        const json_value *pair = llm_json_get_kind(v, names[k], JSON_ARRAY);
        if (pair && pair->n == 2)
            s = add_number(t, &ends[k], &pair->item[1], err);
        else if (pair && pair->n > 0)
            s = add_name(t, &ends[k], pair->item, err);
    }
    return s;
}

/* Adds what a step of the post-processor puts around the tokens so far. */
static ggl_status read_ends(const llm_hf_tokenizer *t, const json_value *v, llm_hf_ends ends[2],
                            ggl_error *err) {
    const json_value *parts = llm_json_get_kind(v, "processors", JSON_ARRAY),
                     *type = llm_json_get_kind(v, "type", JSON_STRING);
    llm_hf_ends own[2] = {{.n = 0}, {.n = 0}};
    ggl_status s = GGL_OK;
    for (size_t i = 0; parts && i < parts->n && s == GGL_OK; i++)
        s = read_ends(t, &parts->item[i], ends, err);
    if (parts || is_null(v) || llm_json_is(type, "ByteLevel"))
        return s;
    if (llm_json_is(type, "TemplateProcessing"))
        s = read_template(t, v, own, err);
    else if (llm_json_is(type, "BertProcessing") || llm_json_is(type, "RobertaProcessing"))
        s = read_pair(t, v, own, err);
    else
        return ggl_fail(err, GGL_UNSUPPORTED, "post_processor: a step '%.*s' is not known",
                        type ? llm_hf_shown(json_str(type)) : 4, type ? type->s : "none");
    for (int k = 0; k < 2 && s == GGL_OK; k++) {
        const llm_hf_ends inner = ends[k];
        if (inner.n + own[k].n > LLM_HF_MOST_ENDS)
            return ggl_fail(err, GGL_LIMIT, "post_processor adds more than %d tokens",
                            LLM_HF_MOST_ENDS);
        const llm_hf_ends *first = k == 0 ? &own[k] : &inner, *second = k == 0 ? &inner : &own[k];
        memcpy(ends[k].id, first->id, first->n * sizeof *first->id);
        memcpy(ends[k].id + first->n, second->id, second->n * sizeof *second->id);
        ends[k].n = inner.n + own[k].n;
    }
    return s;
}

ggl_status llm_hf_set_template_ends(llm_hf_tokenizer *t, ggl_error *err) {
    const llm_json *file = t->file ? t->file : t->beside;
    const ggl_status s =
        file ? read_ends(t, llm_json_get(&file->root, "post_processor"), t->ends, err) : GGL_OK;
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

/* True if a list is what the flag and the token say, too. */
static bool says_same(const llm_hf_ends *e, bool flag, int64_t id) {
    return e->n == 0 ? !flag || id < 0 : e->n == 1 && flag && id == e->id[0];
}

void llm_hf_put_ends(const llm_hf_tokenizer *t, ggl_gguf_writer *w) {
    static const char *const keys[] = {"tokenizer.ggl.before", "tokenizer.ggl.after"};
    const bool always = t->words && !t->needs_steps; /* the kind "bert" */
    if (!t->has_ends || (says_same(&t->ends[0], always || t->add_bos == 1, t->id[BOS]) &&
                         says_same(&t->ends[1], always || t->add_eos == 1, t->id[EOS])))
        return;
    for (int k = 0; k < 2; k++)
        ggl_gguf_put(w, keys[k], GGL_GGUF_I32, true, t->ends[k].id, t->ends[k].n);
}
