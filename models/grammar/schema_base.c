/* What all files of the compiler use: memory, messages with their places, and maps. */
#include <math.h>
#include <stdio.h>

#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "schema_impl.h"

/* --- maps ------------------------------------------------------------------------------------- */

static size_t ptr_hash(const void *key, unsigned bits) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u + bits * 0xc2b2ae3d27d4eb4fu;
    return (size_t)(h ^ h >> 29);
}

static ptr_entry *ptr_find(const ptr_map *m, const void *key, unsigned bits) {
    size_t i = ptr_hash(key, bits) & (m->cap - 1);
    while (m->entry[i].key && (m->entry[i].key != key || m->entry[i].bits != bits))
        i = (i + 1) & (m->cap - 1);
    return &m->entry[i];
}

const void **llm_schema_slot(schema *s, ptr_map *m, const void *key, unsigned bits) {
    if (2 * (m->n + 1) > m->cap) {
        ptr_map wide = {.n = m->n, .cap = m->cap ? 2 * m->cap : 64};
        wide.entry = llm_schema_alloc(s, wide.cap, sizeof *wide.entry);
        if (!wide.entry)
            return NULL;
        for (size_t i = 0; i < m->cap; i++)
            if (m->entry[i].key)
                *ptr_find(&wide, m->entry[i].key, m->entry[i].bits) = m->entry[i];
        *m = wide;
    }
    ptr_entry *e = ptr_find(m, key, bits);
    if (!e->key) {
        *e = (ptr_entry){.key = key, .bits = bits};
        m->n++;
    }
    return &e->value;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Notes the parent of each value below v. */
static void note_parents(schema *s, const json_value *v) {
    if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT)
        return;
    for (uint32_t i = 0; i < v->n; i++) {
        const void **slot = llm_schema_slot(s, &s->parent, &v->item[i], 0);
        GGL_STEPS(1);
        if (!slot)
            return;
        *slot = v;
        note_parents(s, &v->item[i]);
    }
}

/* Writes the name (index) of v's i-th element, as JSON pointers spell it. Returns the end. */
static size_t write_step(const json_value *v, uint32_t i, char *buf, size_t at, size_t size) {
    if (v->kind == JSON_ARRAY)
        return at + (size_t)snprintf(buf + at, size - at, "/%u", i);
    const ggl_str name = json_name(v, i);
    buf[at++] = '/';
    for (size_t k = 0; k < name.n && at + 3 < size; k++) {
        const char *escape = name.s[k] == '~' ? "~0" : name.s[k] == '/' ? "~1" : NULL;
        buf[at++] = escape ? escape[0] : name.s[k];
        if (escape)
            buf[at++] = escape[1];
    }
    return at;
}

size_t llm_schema_place(schema *s, const json_value *node, char *buf, size_t at, size_t size) {
    if (node == &s->doc->root)
        return at;
    if (!s->parent.n)
        note_parents(s, &s->doc->root);
    const void **slot = llm_schema_slot(s, &s->parent, node, 0);
    const json_value *v = slot ? *slot : NULL;
    GGL_STEPS(1);
    if (!v)
        return 0;
    at = llm_schema_place(s, v, buf, at, size);
    if (at == 0)
        return 0;
    at = write_step(v, (uint32_t)(node - v->item), buf, at, size);
    return at + 16 < size ? at : 0;
}

static void write_place(schema *s, const json_value *node, char *buf, size_t size) {
    const size_t end = node ? llm_schema_place(s, node, buf, 1, size) : 1;
    buf[0] = '#';
    buf[end ? end : 1] = '\0';
}

void llm_schema_fail(schema *s, ggl_status st, const json_value *node, const char *keyword,
                     const char *fmt, ...) {
    char place[600];
    if (s->status != GGL_OK)
        return;
    va_list args;
    va_start(args, fmt);
    s->status = ggl_failv(s->err, st, fmt, args);
    va_end(args);
    write_place(s, node, place, sizeof place);
    (void)ggl_within(s->err, st, "%s: %s%s%s", s->name, place, keyword ? "/" : "",
                     keyword ? keyword : "");
}

void llm_schema_ignored(schema *s, const json_value *value, const char *why) {
    enum { NOTED = 1 << 9 };
    char place[600], text[1200];
    const void **slot = s->params.note ? llm_schema_slot(s, &s->memo, value, NOTED) : NULL;
    if (!slot || *slot)
        return;
    *slot = s;
    write_place(s, value, place, sizeof place);
    snprintf(text, sizeof text, "%s: %s: %s", s->name, place, why);
    s->params.note(s->params.note_arg, text);
}

void *llm_schema_alloc(schema *s, size_t n, size_t size) {
    enum { ROUNDING = 16, BYTES_PER_STEP = 256 };
    if (s->g->status != GGL_OK)
        return NULL;
    const size_t before = s->arena.used;
    const ggl_status st = llm_budget_take(&s->g->use, n + ROUNDING / size + 1, size);
    void *p = st == GGL_OK ? ggl_arena_alloc(&s->arena, n, size) : NULL;
    if (st == GGL_OK) {
        llm_budget_give_back(&s->g->use, n + ROUNDING / size + 1, size);
        s->g->use.bytes += s->arena.used - before;
        llm_exprs_count(s->g, 1 + n * size / BYTES_PER_STEP);
    }
    if (st == GGL_LIMIT)
        s->g->status = st; /* see compile() */
    else if (!p)
        llm_schema_fail(s, GGL_NOMEM, NULL, NULL, "out of memory");
    return p;
}

bool llm_schema_count(schema *s, const word_use *u, int64_t *n) {
    const bool fits = u->value->kind == JSON_NUMBER && u->value->number >= 0 &&
                      floor(u->value->number) == u->value->number;
    if (!fits)
        llm_schema_fail(s, GGL_FORMAT, u->node, u->word, "must be a whole number, 0 or more");
    /* nothing has as many elements as that, so that a larger count says no more */
    *n = !fits ? 0 : u->value->number > INT32_MAX / 2 ? INT32_MAX / 2 : (int64_t)u->value->number;
    return fits;
}

const json_value *llm_schema_table(schema *s, const json_value *node, const char *word) {
    const json_value *t = llm_json_get(node, word);
    if (t && t->kind != JSON_OBJECT) {
        llm_schema_fail(s, GGL_FORMAT, node, word, "must be an object");
        return NULL;
    }
    return t;
}

schema_type llm_schema_type_of(const json_value *v) {
    static const schema_type type[] = {
        [JSON_NULL] = TYPE_NULL,     [JSON_BOOL] = TYPE_BOOL,   [JSON_NUMBER] = TYPE_NUMBER,
        [JSON_STRING] = TYPE_STRING, [JSON_ARRAY] = TYPE_ARRAY, [JSON_OBJECT] = TYPE_OBJECT};
    return type[v->kind];
}
