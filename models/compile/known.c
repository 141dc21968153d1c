/* The table of keys that files have and descriptors need not read: known_keys.arch. Each key or
 * pattern of an `ignore` is a row; the first matching row decides. Patterns of tensors name
 * parts of a model that text does not need, those in key("..") keys of other namespaces. `absent` names keys in which 0 or false means that
 * there is no value. The table is parsed when first needed: the source has a key or tensor that
 * the descriptor does not read, or a 0 or false in one that it reads. */
#include <stdio.h>
#include <string.h>

#include "compile.h"

extern const unsigned char llm_known_keys_text[];
extern const size_t llm_known_keys_text_size;

typedef struct row {
    ggl_str name; /* without the dot */
    const arch_stmt *stmt;
} row;

struct arch_known {
    llm_arch *text;
    arch_eval ev; /* evaluates conditions */
    ggl_error err;
    row *row; /* keys and patterns in the order of the text */
    size_t n_row, n_pattern, n_tensor;
    size_t *pattern; /* indices of the rows that are patterns */
    ggl_index index; /* of the rows that are plain names; finds the first row of a name */
    row *tensor;     /* patterns of tensors */
    row *foreign;    /* patterns of whole keys, written key("..") */
    size_t n_foreign;
    row *absent; /* keys of `absent` */
    size_t n_absent;
    ggl_index absent_index;
};

/* Parses known_keys.arch as a text of its own, in the place of a prelude. */
static ggl_status parse_table(llm_arch **out, ggl_error *err) {
    llm_arch *a = *out = ggl_calloc(1, sizeof *a);
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "known_keys.arch: out of memory");
    a->arena.limit = ARCH_MAX_MEMORY;
    a->prelude = (arch_text){"known_keys.arch", (const char *)llm_known_keys_text,
                             llm_known_keys_text_size, true};
    a->text = a->prelude;
    a->language = LLM_ARCH_LANGUAGE;
    a->n_lines = 1;
    return llm_arch_parse_text(a, &a->prelude, err);
}

/* True for a string that names tensors; keys in strings begin with a dot. */
static bool is_tensor(const arch_expr *e) {
    return e->kind == EX_STRING && e->name[0] != '.';
}

static bool make_room(arch_known *k) {
    size_t n = 1;
    for (const arch_stmt *s = k->text->body; s; s = s->next)
        n += (size_t)s->n_expr;
    k->row = ggl_arena_alloc(&k->text->arena, n, sizeof *k->row);
    k->tensor = ggl_arena_alloc(&k->text->arena, n, sizeof *k->tensor);
    k->foreign = ggl_arena_alloc(&k->text->arena, n, sizeof *k->foreign);
    k->absent = ggl_arena_alloc(&k->text->arena, n, sizeof *k->absent);
    k->pattern = ggl_arena_alloc(&k->text->arena, n, sizeof *k->pattern);
    return k->row && k->tensor && k->foreign && k->absent && k->pattern &&
           ggl_index_init(&k->index, n, sizeof *k->row, GGL_INDEX_STRINGS, NULL) == GGL_OK &&
           ggl_index_init(&k->absent_index, n, sizeof *k->absent, GGL_INDEX_STRINGS, NULL) ==
               GGL_OK;
}

static void add_row(arch_known *k, const arch_stmt *s, const arch_expr *e) {
    const char *name = e->name + (e->kind == EX_STRING && !is_tensor(e));
    const row r = {{name, strlen(name)}, s};
    if (s->kind == ST_ABSENT) {
        k->absent[k->n_absent] = r;
        ggl_index_put(&k->absent_index, k->absent, k->n_absent++);
    } else if (e->whole) {
        k->foreign[k->n_foreign++] = r;
    } else if (is_tensor(e)) {
        k->tensor[k->n_tensor++] = r;
    } else {
        k->row[k->n_row] = r;
        if (e->kind == EX_STRING)
            k->pattern[k->n_pattern++] = k->n_row;
        else
            ggl_index_put(&k->index, k->row, k->n_row);
        k->n_row++;
    }
}

static bool index_rows(arch_known *k) {
    if (!make_room(k))
        return false;
    for (const arch_stmt *s = k->text->body; s; s = s->next)
        for (int i = 0; (s->kind == ST_IGNORE || s->kind == ST_ABSENT) && i < s->n_expr; i++)
            add_row(k, s, s->expr[i]);
    return true;
}

/* Returns the table, which it parses at the first call. NULL: ev->status is an error. */
static arch_known *known_of(arch_eval *ev) {
    if (ev->known || ev->status != GGL_OK)
        return ev->status == GGL_OK ? ev->known : NULL;
    arch_known *k = ev->known = ggl_calloc(1, sizeof *k);
    if (!k)
        return llm_arch_nomem(ev), NULL;
    ggl_status s = parse_table(&k->text, &k->err);
    if (s == GGL_OK) {
        k->ev = (arch_eval){.arch = k->text,
                            .src = ev->src,
                            .err = &k->err,
                            .family = ev->family,
                            .reader = ev->arch,
                            .layer = -1};
        k->ev.arena.limit = ARCH_MAX_MEMORY;
        s = llm_arch_eval_init(&k->ev) && index_rows(k) ? GGL_OK : GGL_NOMEM;
    }
    if (s == GGL_NOMEM)
        return llm_arch_nomem(ev), NULL;
    if (s != GGL_OK) { /* a mistake in the table itself, which every test would find */
        ev->status = s;
        if (ev->err)
            *ev->err = k->err;
        return NULL;
    }
    return k;
}

void llm_arch_known_free(arch_known *k) {
    if (!k)
        return;
    llm_arch_eval_fini(&k->ev);
    ggl_index_fini(&k->index);
    ggl_index_fini(&k->absent_index);
    llm_arch_free(k->text);
    ggl_free(k);
}

/* Returns the first row that matches {arch}.name, or NULL. */
static const row *find_row(const arch_known *k, ggl_str name) {
    size_t plain = ggl_index_find(&k->index, k->row, name);
    for (size_t i = 0; i < k->n_pattern && k->pattern[i] < plain; i++)
        if (arch_match(k->row[k->pattern[i]].name.s, name.s, name.n))
            return &k->row[k->pattern[i]];
    return plain == SIZE_MAX ? NULL : &k->row[plain];
}

/* Evaluates a condition; NULL holds. A condition that cannot be evaluated, e.g. because a key is
 * a string, does not. */
static bool holds(arch_eval *ev, arch_known *k, const arch_expr *cond) {
    bool yes = true;
    k->ev.g = ev->g; /* a constant of a conversion has a graph of its own */
    k->ev.status = GGL_OK;
    k->ev.steps = 0;
    k->ev.frame = NULL;
    k->ev.n_frames = 0;
    if (cond) {
        arch_value v = llm_arch_eval_expr(&k->ev, cond);
        yes = v.kind != VAL_FAIL && llm_arch_want_bool(&k->ev, cond, &v, &yes) && yes;
    }
    ev->steps += k->ev.steps;
    if (k->ev.status == GGL_NOMEM)
        llm_arch_nomem(ev);
    return yes && k->ev.status == GGL_OK;
}

arch_verdict llm_arch_judge_known(arch_eval *ev, ggl_str name) {
    arch_known *k = known_of(ev);
    const row *r = k ? find_row(k, name) : NULL;
    arch_place begin = {&ev->arch->text, 0, 1};
    if (!r || !llm_arch_step(ev, begin, 4 + (int64_t)k->n_pattern))
        return (arch_verdict){0};
    return (arch_verdict){.harmless = holds(ev, k, r->stmt->other),
                          .reason = r->stmt->string,
                          .cond = r->stmt->other};
}

const char *llm_arch_judge_foreign(arch_eval *ev, ggl_str key) {
    arch_known *k = known_of(ev);
    arch_place begin = {&ev->arch->text, 0, 1};
    if (!k || !llm_arch_step(ev, begin, (int64_t)k->n_foreign))
        return NULL;
    for (size_t i = 0; i < k->n_foreign; i++)
        if (arch_match(k->foreign[i].name.s, key.s, key.n))
            return k->foreign[i].stmt->string;
    return NULL;
}

const char *llm_arch_part_of_tensor(arch_eval *ev, ggl_str name) {
    arch_known *k = known_of(ev);
    arch_place begin = {&ev->arch->text, 0, 1};
    for (size_t i = 0; k && i < k->n_tensor; i++)
        if (!llm_arch_step(ev, begin, 1))
            return NULL;
        else if (arch_match(k->tensor[i].name.s, name.s, name.n))
            return holds(ev, k, k->tensor[i].stmt->other) ? k->tensor[i].stmt->string : NULL;
    return NULL;
}

bool llm_arch_means_absent(arch_eval *ev, const char *name) {
    const char *below = name + strlen(ev->family) + 1;
    arch_known *k = known_of(ev);
    size_t i =
        k ? ggl_index_find(&k->absent_index, k->absent, (ggl_str){below, strlen(below)}) : SIZE_MAX;
    return i != SIZE_MAX && holds(ev, k, k->absent[i].stmt->other);
}
