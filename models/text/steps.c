/* Reading steps of a tokenizer.json, and texts that steps write. */
#include "steps.h"

#include <string.h>

#include "ggl/internal/show.h"
#include "unicode.h"

ggl_status llm_step_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM,
                    "out of memory for a text, or the steps of tokenizer.ggl.steps make it more "
                    "than %d times as long",
                    STEP_GROWTH);
}

size_t llm_step_most(size_t n) {
    return n < (SIZE_MAX - STEP_ROOM) / STEP_GROWTH ? n * STEP_GROWTH + STEP_ROOM : SIZE_MAX;
}

bool llm_step_put(step_text *t, const char *s, size_t n, bool of_zero) {
    if (t->most > 0 && n > t->most - t->n)
        return false;
    if (t->n + n > t->cap && !ggl_grow(&t->s, &t->cap, t->n + n, 1))
        return false;
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->zero += of_zero && t->zero == t->n ? n : 0;
    t->n += n;
    return true;
}

bool llm_step_put_char(step_text *t, uint32_t c, bool of_zero) {
    char s[4];
    if (c >= 0x110000) { /* a byte that is no character */
        s[0] = (char)(c - 0x110000);
        return llm_step_put(t, s, 1, of_zero);
    }
    return llm_step_put(t, s, llm_unicode_encode(c, s), of_zero);
}

ggl_str llm_step_joined(ggl_arena *arena, ggl_str a, ggl_str b) {
    char *s = ggl_arena_alloc(arena, a.n + b.n + 1, 1);
    if (s && a.n > 0)
        memcpy(s, a.s, a.n);
    if (s && b.n > 0)
        memcpy(s + a.n, b.s, b.n);
    return (ggl_str){s, a.n + b.n};
}

/* --- members ------------------------------------------------------------------------------------ */

static ggl_status wrong(step_reader *r, const json_value *v, const char *name, const char *wanted) {
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING), *x = llm_json_get(v, name);
    return ggl_fail(r->err, GGL_FORMAT, "%s: '%s' of a step '%.*s' is %s; it should be %s",
                    r->where, name, type ? (int)ggl_utf8_cut(type->s, type->n, 60) : 0,
                    type ? type->s : "", x ? llm_json_kind_text(x->kind) : "missing", wanted);
}

ggl_status llm_step_flag(step_reader *r, const json_value *v, const char *name,
                         const bool *fallback, bool *out) {
    const json_value *x = llm_json_get(v, name);
    if (fallback && (!x || x->kind == JSON_NULL)) {
        *out = *fallback;
        return GGL_OK;
    }
    if (!x || x->kind != JSON_BOOL)
        return wrong(r, v, name, "true or false");
    *out = x->flag;
    return GGL_OK;
}

ggl_status llm_step_string(step_reader *r, const json_value *v, const char *name, ggl_str *out) {
    const json_value *x = llm_json_get_kind(v, name, JSON_STRING);
    if (!x)
        return wrong(r, v, name, "a string");
    char *copy = ggl_arena_strndup(r->arena, x->s, x->n);
    *out = (ggl_str){copy, x->n};
    return copy ? GGL_OK : llm_step_no_memory(r->err);
}

ggl_status llm_step_char(step_reader *r, const json_value *v, const char *name, uint32_t *out) {
    const json_value *x = llm_json_get_kind(v, name, JSON_STRING);
    const size_t n = x && x->n > 0 ? ggl_utf8_length(x->s, x->n) : 0;
    if (n == 0 || n != x->n)
        return wrong(r, v, name, "a string of one character");
    *out = llm_unicode_decode(x->s, n);
    return GGL_OK;
}

ggl_status llm_step_length(step_reader *r, const json_value *v, const char *name, size_t *out) {
    const json_value *x = llm_json_get_kind(v, name, JSON_NUMBER);
    if (!x || !x->whole || x->number < 0 || x->number > 0xffffffffu)
        return wrong(r, v, name, "a whole number");
    *out = (size_t)x->number;
    return GGL_OK;
}

ggl_status llm_step_pattern(step_reader *r, const json_value *v, bool may_be_empty, step *out) {
    const json_value *pattern = llm_json_get(v, "pattern"),
                     *string = llm_json_get_kind(pattern, "String", JSON_STRING),
                     *regex = llm_json_get_kind(pattern, "Regex", JSON_STRING),
                     *x = string ? string : regex;
    if (!x)
        return wrong(r, v, "pattern", "{\"String\": ..} or {\"Regex\": ..}");
    bool empty = x->n == 0;
    ggl_status s =
        string ? llm_pretok_compile_text(&out->pattern, r->arena, json_str(x), r->err)
               : llm_pretok_compile_lines(&out->pattern, r->arena, json_str(x), &empty, r->err);
    if (s == GGL_FORMAT)
        s = GGL_UNSUPPORTED; /* the library's expressions are more than ours */
    if (s == GGL_OK && empty && !may_be_empty)
        s = ggl_fail(r->err, GGL_UNSUPPORTED, "it can match no character at all");
    if (s == GGL_OK)
        return s;
    char shown[300];
    ggl_show(shown, sizeof shown, x->s, ggl_utf8_cut(x->s, x->n, 80));
    return ggl_within(r->err, s, "%s: the pattern '%s'", r->where, shown);
}

/* --- lists -------------------------------------------------------------------------------------- */

enum { MOST_STEPS = 256 };

static ggl_status read_step(step_list *out, step_reader *r, const json_value *v, const char *list,
                            const struct step_kind *kinds, size_t n_kinds) {
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING),
                     *parts = llm_json_get_kind(v, list, JSON_ARRAY);
    if (llm_json_is(type, "Sequence")) {
        ggl_status s = parts ? GGL_OK : wrong(r, v, list, "a list");
        for (size_t i = 0; parts && i < parts->n && s == GGL_OK; i++)
            s = read_step(out, r, &parts->item[i], list, kinds, n_kinds);
        return s;
    }
    if (!type)
        return ggl_fail(r->err, GGL_UNSUPPORTED, "%s: a step without a \"type\" is not supported",
                        r->where);
    if (out->n == MOST_STEPS)
        return ggl_fail(r->err, GGL_LIMIT, "%s: more than %d steps", r->where, MOST_STEPS);
    for (size_t k = 0; k < n_kinds; k++)
        if (llm_json_is(type, kinds[k].type)) {
            step *x = &out->item[out->n++];
            *x = (step){.kind = &kinds[k]};
            return kinds[k].read ? kinds[k].read(r, v, x) : GGL_OK;
        }
    return ggl_fail(r->err, GGL_UNSUPPORTED, "%s: a step '%.*s' is not known", r->where,
                    (int)ggl_utf8_cut(type->s, type->n, 60), type->s);
}

ggl_status llm_steps_read(step_list *out, step_reader *r, const json_value *v, const char *list,
                          const struct step_kind *kinds, size_t n_kinds) {
    *out = (step_list){0};
    if (!v || v->kind == JSON_NULL)
        return GGL_OK;
    out->item = ggl_arena_alloc(r->arena, MOST_STEPS, sizeof *out->item);
    return out->item ? read_step(out, r, v, list, kinds, n_kinds) : llm_step_no_memory(r->err);
}

bool llm_steps_have(const step_list *list, const char *type) {
    bool has = false;
    for (size_t i = 0; i < list->n && !has; i++)
        has = strcmp(list->item[i].kind->type, type) == 0;
    return has;
}

/* --- memory ------------------------------------------------------------------------------------- */

pretok_finder *llm_step_finder(step_memory *m, size_t at) {
    if (at >= m->n) {
        size_t cap = m->n;
        if (!ggl_grow(&m->finder, &cap, at + 1, sizeof *m->finder))
            return NULL;
        for (; m->n < cap; m->n++)
            m->finder[m->n] = NULL;
    }
    if (!m->finder[at])
        m->finder[at] = llm_pretok_finder_new();
    return m->finder[at];
}

void llm_step_memory_fini(step_memory *m) {
    for (size_t i = 0; i < m->n; i++)
        llm_pretok_finder_free(m->finder[i]);
    ggl_free(m->finder);
    *m = (step_memory){0};
}
