/* The table of models: its rows, its beginning and its end. */
#include <string.h>

#include "ggl/internal/os_clock.h"
#include "models_impl.h"

/* Replaces commas by NULs, without white space around the names; a second NUL ends them. */
static char *split_aliases(const char *aliases) {
    const size_t n = aliases ? strlen(aliases) : 0;
    char *out = ggl_calloc(n + 2, 1), *to = out;
    for (const char *s = aliases; out && s && *s;) {
        s += strspn(s, ", \t");
        size_t k = strcspn(s, ",");
        const char *next = s + k;
        while (k > 0 && strchr(" \t", s[k - 1]))
            k--;
        memcpy(to, s, k);
        to += k + (k > 0);
        s = next;
    }
    return out;
}

void model_free(model *m) {
    if (!m)
        return;
    server_free(m->server);
    if (m->own)
        server_options_fini(m->own);
    ggl_free(m->own);
    ggl_free(m->words);
    ggl_free(m->props);
    ggl_free(m->scale);
    ggl_free(m->aliases);
    ggl_free(m->name);
    ggl_free(m);
}

ggl_status models_add(models *t, const char *name, const char *aliases, server_options *o,
                      char **words, const model_card *card, ggl_error *err) {
    model *m = ggl_calloc(1, sizeof *m);
    const size_t n_name = strlen(name) + 1;
    if (m) {
        m->name = ggl_calloc(n_name, 1);
        m->aliases = split_aliases(aliases);
    }
    if (!m || !m->name || !m->aliases || !ggl_grow(&t->row, &t->cap, t->n + 1, sizeof(model *))) {
        model_free(m);
        if (o)
            server_options_fini(o);
        ggl_free(o);
        ggl_free(words);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    memcpy(m->name, name, n_name);
    m->table = t;
    m->own = o;
    m->o = o ? o : t->o;
    m->last = &m->first;
    m->card = card ? *card : (model_card){.weight_type = ""};
    m->modified = m->card.modified;
    m->has = m->card.has;
    m->words = words;
    const bool is_new = !models_find_exactly(t, name);
    t->row[t->n++] = m;
    if (!models_set_list(t, t->row, t->n))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (!is_new)
        return ggl_fail(err, GGL_USAGE, "two models have the name %.100s", name);
    for (size_t k = 0; model_alias(m, k); k++) {
        const char *alias = model_alias(m, k);
        if (models_find_exactly(t, alias) != m)
            return ggl_fail(err, GGL_USAGE, "two models have the name %.100s", alias);
    }
    return GGL_OK;
}

models *models_new(server_options *o, FILE *log, void (*changed)(void *ctx), void *ctx) {
    models *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->o = o;
    t->began = ggl_os_time() / 1000000000;
    t->log = log;
    t->changed = changed;
    t->changed_ctx = ctx;
    t->exit_code = -1;
    t->memory = memory_new((size_t)o->request_memory << 20);
    t->streams = streams_new(t->memory, o->resume_time);
    t->store = o->no_store ? NULL : store_new(t->memory, o->store_time);
    ggl_os_mutex_init(&t->lock);
    ggl_os_cond_init(&t->has_news);
    if (t->memory && t->streams && (t->store || o->no_store) && models_set_list(t, NULL, 0))
        return t;
    models_free(t);
    return NULL;
}

ggl_status models_start(models *t, ggl_error *err) {
    ggl_os_mutex_lock(&t->lock); /* requests may be answered already */
    const bool has = ggl_os_thread_start(&t->manager, models_manage, t, 0);
    t->has_manager = has;
    ggl_os_mutex_unlock(&t->lock);
    return has ? GGL_OK : ggl_fail(err, GGL_NOMEM, "no thread could be started");
}

void models_stop(models *t) {
    ggl_error ending = {0};
    (void)ggl_fail(&ending, GGL_CANCELLED, "the server is ending");
    ggl_os_mutex_lock(&t->lock);
    t->ends = true;
    ggl_os_cond_signal(&t->has_news);
    ggl_os_mutex_unlock(&t->lock);
    if (t->has_manager)
        ggl_os_thread_join(t->manager);
    t->has_manager = false;
    for (size_t i = 0; i < t->n; i++) {
        ggl_os_mutex_lock(&t->lock);
        waiting *w = models_collect(t->row[i], NULL, &ending);
        ggl_os_mutex_unlock(&t->lock);
        models_answer(w);
        if (t->row[i]->server)
            server_stop(t->row[i]->server);
    }
}

void models_free(models *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        model_free(t->row[i]);
    for (model_list *l = t->list, *older; l; l = older) {
        older = l->older;
        ggl_free(l);
    }
    ggl_free(t->row);
    streams_free(t->streams);
    store_free(t->store);
    memory_free(t->memory);
    ggl_os_cond_destroy(&t->has_news);
    ggl_os_mutex_destroy(&t->lock);
    ggl_free(t);
}
