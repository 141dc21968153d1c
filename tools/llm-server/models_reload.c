/* Reads --models again. */
#include <string.h>

#include "models_impl.h"

/* True if two rows of the same name are the same model, with the same flags. */
static bool is_same(const model *a, const model *b) {
    char **x = a->words, **y = b->words;
    for (; x && y && *x && *y && strcmp(*x, *y) == 0; x++)
        y++;
    return x && y && !*x && !*y && a->card.is_known == b->card.is_known &&
           a->card.modified == b->card.modified && a->card.size == b->card.size;
}

/* Returns the row of the table that stays in place of a new one; NULL if none. */
static model *find_same(const model_list *old, const model *m) {
    for (size_t i = 0; i < old->n; i++)
        if (strcmp(old->at[i]->name, m->name) == 0)
            return is_same(old->at[i], m) ? old->at[i] : NULL;
    return NULL;
}

static bool has(const model_list *l, const model *m) {
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] == m)
            return true;
    return false;
}

/* Lets the requests for a model wait for the one that has its name now. */
static void pass_on(model *from, model *to) {
    if (!from->first)
        return;
    *to->last = from->first;
    to->last = from->last;
    to->n_waiting += from->n_waiting;
    to->wanted = to->wanted > 0 ? to->wanted : ++to->table->clock;
    from->first = NULL;
    from->last = &from->first;
    from->n_waiting = 0;
    from->wanted = 0;
}

/* The model is not offered any more, or only one of its name, with other flags or another file. Returns the requests that wait for it
 * in vain. */
static waiting *drop(model *m) {
    model *same = models_find_exactly(m->table, m->name);
    ggl_error err = {0};
    if (same)
        pass_on(m, same);
    (void)ggl_fail(&err, GGL_NOT_FOUND, "the model %.64s is not in --models any more", m->name);
    m->is_gone = true;
    m->leaves |= m->state == MODEL_LOADED || m->state == MODEL_LOADING;
    return models_collect(m, NULL, &err);
}

/* Takes over the rows of `fresh` that are new, with the lock. `at` has room for all of them. *gone: requests for models that
 * are not there any more. */
static ggl_status merge(models *t, models *fresh, model **at, waiting **gone, ggl_error *err) {
    const model_list *old = models_get_list(t), *now = models_get_list(fresh);
    if (t->ends)
        return ggl_fail(err, GGL_CANCELLED, "the server is ending");
    if (!t->has_manager) /* models_set_list would free a list that others read */
        return ggl_fail(err, GGL_LIMIT, "the server is starting; try again");
    for (size_t i = 0; i < now->n; i++) {
        model *same = find_same(old, now->at[i]);
        at[i] = same ? same : now->at[i];
    }
    if (!ggl_grow(&t->row, &t->cap, t->n + now->n, sizeof(model *)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const size_t n_before = t->n;
    for (size_t i = 0; i < now->n; i++) {
        model *m = now->at[i];
        if (at[i] != m)
            continue;
        m->table = t;
        m->wanted = m->wanted > 0 ? ++t->clock : 0;
        t->row[t->n++] = m;
        fresh->row[i] = NULL; /* both lists have the order of the rows */
    }
    /* only now: others read it without the lock */
    if (!models_set_list(t, at, now->n)) {
        for (size_t i = n_before; i < t->n; i++) {
            t->row[i]->is_gone = true;
            t->row[i]->wanted = 0;
        }
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < old->n; i++) {
        if (has(models_get_list(t), old->at[i]))
            continue;
        waiting **end = gone;
        while (*end)
            end = &(*end)->next;
        *end = drop(old->at[i]);
    }
    ggl_os_cond_signal(&t->has_news);
    return GGL_OK;
}

/* Reads the models into a table of their own, and moves those that are new. */
static ggl_status reload(models *t, ggl_error *err) {
    char why[sizeof err->msg];
    models *fresh = models_new(t->o, NULL, NULL, NULL);
    if (!fresh)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    why[0] = '\0';
    tool_copy_errors(why, sizeof why);
    const int code = t->read(fresh, t->argc, t->argv);
    tool_copy_errors(NULL, 0);
    const size_t n = models_get_list(fresh)->n;
    model **at = ggl_calloc(n + 1, sizeof(model *));
    waiting *gone = NULL;
    ggl_status st = code >= 0 ? ggl_fail(err, GGL_IO, "the models stay as they are: %.400s", why)
                    : at      ? GGL_OK
                              : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK) {
        ggl_os_mutex_lock(&t->lock);
        st = merge(t, fresh, at, &gone, err);
        ggl_os_mutex_unlock(&t->lock);
    }
    models_answer(gone);
    ggl_free(at);
    models_free(fresh);
    return st;
}

ggl_status models_reload(models *t, ggl_error *err) {
    if (models_is_single(t))
        return ggl_fail(err, GGL_USAGE, "the server has one model; --models lists several");
    if (atomic_flag_test_and_set(&t->reloads))
        return ggl_fail(err, GGL_LIMIT, "the models are being read now; try again");
    const ggl_status st = reload(t, err);
    atomic_flag_clear(&t->reloads);
    return st;
}
