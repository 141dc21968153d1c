/* Calls of builtins: filters, tests, functions and methods. */
#include <string.h>

#include "builtins.h"

const tv_builtin *llm_tv_lookup(const tv_builtin *table, size_t n, ggl_str name) {
    for (size_t i = 0; i < n; i++)
        if (ggl_str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

/* Sets a->at from the arguments given by place. */
static size_t bind_places(const tv_given *g, size_t n_params, tv_args *a) {
    size_t n = 0;
    for (; n < n_params && n < g->by_place.n; n++)
        a->at[n] = &g->by_place.at[n];
    if (g->by_place.n > n)
        a->rest = (tv_list){g->by_place.at + n, g->by_place.n - n, 0};
    return n;
}

/* Splits b->params into names; returns their number. */
typedef struct params {
    ggl_str name[TV_MOST_PARAMS];
    bool needed[TV_MOST_PARAMS];
    size_t n;
    bool rest, named; /* "*", "**" */
} params;

static params params_of(const tv_builtin *b) {
    params p = {.n = 0};
    for (const char *s = b->params; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        if (s[0] == '*') {
            *(n == 1 ? &p.rest : &p.named) = true;
        } else {
            const bool optional = s[n - 1] == '?';
            p.needed[p.n] = !optional;
            p.name[p.n++] = (ggl_str){s, n - optional};
        }
        s += n;
    }
    return p;
}

tv llm_tv_call_builtin(tv_heap *h, const tv_builtin *b, const char *what, tv self,
                       const tv_given *g) {
    const params p = params_of(b);
    tv_args a = {0};
    llm_tv_step(h, 1);
    llm_tv_enter(h);
    size_t n = bind_places(g, p.n, &a);
    if (a.rest.n && !p.rest)
        llm_tv_fail(h, GGL_FORMAT, "%s %s takes %zu arguments, not %zu", what, b->name, p.n,
                    g->by_place.n);
    a.named = llm_tv_new_dict(h).dict;
    for (size_t i = 0; g->by_name && i < g->by_name->n; i++) {
        const tv_item *item = &g->by_name->item[i];
        size_t k = 0;
        while (k < p.n && !llm_tv_equal(h, tv_str(p.name[k]), item->key))
            k++;
        if (k < p.n && k < n)
            llm_tv_fail(h, GGL_FORMAT, "%s %s has two values for '%.*s'", what, b->name,
                        (int)p.name[k].n, p.name[k].s);
        if (k == p.n && !p.named)
            llm_tv_fail(h, GGL_FORMAT, "%s %s has no parameter '%.*s'", what, b->name,
                        (int)item->name.n, item->name.s);
        if (k < p.n)
            a.at[k] = &item->value;
        else
            llm_tv_dict_set(h, a.named, item->key, item->value);
    }
    for (size_t k = 0; k < p.n; k++)
        if (p.needed[k] && !a.at[k])
            llm_tv_fail(h, GGL_FORMAT, "%s %s needs its argument '%.*s'", what, b->name,
                        (int)p.name[k].n, p.name[k].s);
    const tv result = b->fn(h, self, &a);
    tv_leave(h);
    return result;
}
