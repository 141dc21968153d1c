#include "schema_members.h"

enum { MOST_MEMBERS = 1 << 14 };

void llm_lits_add(schema *s, lits *l, literal lit) {
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 4;
        literal *wide = llm_schema_alloc(s, cap, sizeof *wide);
        if (!wide)
            return;
        if (l->n > 0)
            memcpy(wide, l->lit, l->n * sizeof *wide);
        l->lit = wide;
        l->cap = cap;
    }
    l->lit[l->n++] = lit;
}

static size_t name_hash(ggl_str name) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.s[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static uint32_t *find_bucket(const member_table *t, ggl_str name) {
    size_t i = name_hash(name) & (t->n_buckets - 1);
    for (; t->bucket[i]; i = (i + 1) & (t->n_buckets - 1)) {
        const ggl_str other = t->m[t->bucket[i] - 1].name;
        if (other.n == name.n && (name.n == 0 || memcmp(other.s, name.s, name.n) == 0))
            break;
    }
    return &t->bucket[i];
}

bool llm_members_widen(schema *s, member_table *t) {
    const size_t cap = t->cap ? 2 * t->cap : 16;
    member *m = llm_schema_alloc(s, cap, sizeof *m);
    t->bucket = llm_schema_alloc(s, 4 * cap, sizeof *t->bucket);
    if (!m || !t->bucket)
        return false;
    if (t->n > 0)
        memcpy(m, t->m, t->n * sizeof *m);
    t->m = m;
    t->cap = cap;
    t->n_buckets = 4 * cap;
    for (size_t i = 0; i < t->n; i++)
        *find_bucket(t, m[i].name) = (uint32_t)i + 1;
    return true;
}

member *llm_member_of(schema *s, member_table *t, ggl_str name) {
    if (t->n >= MOST_MEMBERS && t->n == t->cap) {
        llm_schema_fail(s, GGL_LIMIT, NULL, NULL, "an object has more than %d properties",
                        MOST_MEMBERS);
        return NULL;
    }
    if (t->n == t->cap && !llm_members_widen(s, t))
        return NULL;
    uint32_t *b = find_bucket(t, name);
    if (*b == 0) {
        t->m[t->n] = (member){.name = name};
        *b = (uint32_t)++t->n;
    }
    return &t->m[*b - 1];
}
