/* The rows of the table of models, and the requests that use them. */
#include "common/amounts.h"
#include "models_impl.h"

#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/report.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "log.h"

#define TOOL "llm-server"

const char *const model_state_names[] = {[MODEL_UNLOADED] = "unloaded",
                                         [MODEL_LOADING] = "loading",
                                         [MODEL_LOADED] = "loaded",
                                         [MODEL_UNLOADING] = "unloading"};

/* --- rows ------------------------------------------------------------------------------------- */

static model *find_exactly(const models *t, const char *name, size_t n) {
    const model_list *l = models_get_list(t);
    for (size_t i = 0; i < l->n; i++) {
        const model *m = l->at[i];
        if (strlen(m->name) == n && memcmp(m->name, name, n) == 0)
            return l->at[i];
        for (size_t k = 0; model_alias(m, k); k++)
            if (strlen(model_alias(m, k)) == n && memcmp(model_alias(m, k), name, n) == 0)
                return l->at[i];
    }
    return NULL;
}

model *models_find_exactly(const models *t, const char *name) {
    return find_exactly(t, name, strlen(name));
}

void models_set_reader(models *t, models_reader *read, int argc, char **argv) {
    t->read = read;
    t->argc = argc;
    t->argv = argv;
}

bool models_set_list(models *t, model *const *at, size_t n) {
    model_list *l = ggl_calloc(1, sizeof *l + n * sizeof *at), *old = t->list;
    if (!l)
        return false;
    l->n = n;
    for (size_t i = 0; i < n; i++)
        l->at[i] = at[i];
    l->older = t->has_manager ? old : NULL; /* others may read it */
    t->list = l;
    if (!t->has_manager)
        ggl_free(old);
    return true;
}

const model_list *models_get_list(const models *t) {
    return t->list;
}

const char *model_name(const model *m) {
    return m->name;
}

const char *model_alias(const model *m, size_t i) {
    const char *s = m->aliases;
    for (; i > 0 && *s; i--)
        s += strlen(s) + 1;
    return *s ? s : NULL;
}

models *model_table(const model *m) {
    return m->table;
}

/* True if the two, which are open, share a file, whose mapped weights are in memory once. */
static bool has_same_file(const model *a, const model *b) {
    return llm_model_file(llm_opened_model(a->server->ctx)) ==
           llm_model_file(llm_opened_model(b->server->ctx));
}

double model_taken(void *ctx, const char *device) {
    const model *m = ctx;
    models *t = m->table;
    double sum = 0;
    ggl_os_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n; i++) {
        const model *other = t->row[i];
        if (other == m || other->state != MODEL_LOADED || (!*device && has_same_file(m, other)))
            continue;
        for (int k = 0; k < SERVER_MEMORIES; k++)
            if (strcmp(other->server->used[k].device, device) == 0)
                sum += other->server->used[k].bytes;
    }
    ggl_os_mutex_unlock(&t->lock);
    return sum;
}

/* True if the model is in a file that is not what it was. Of what is converted while it is read, nothing is known. */
static bool has_changed(const llm_model *m, const char *path) {
    ggl_gguf_identity id;
    os_stat now;
    return ggl_os_is_file(path) && (!ggl_gguf_identify(llm_model_file(m), &id) ||
                                    !ggl_os_stat(path, &now) || now.modified != id.modified);
}

llm_model *model_beside(void *ctx, const llm_opening *o) {
    const model *m = ctx;
    models *t = m->table;
    llm_model *found = NULL;
    ggl_error err;
    ggl_os_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n && !found; i++) {
        const model *x = t->row[i];
        llm_model *of =
            x->state == MODEL_LOADED && !x->is_gone ? llm_opened_model(x->server->ctx) : NULL;
        if (of && llm_opening_reads_same(&x->server->opening, o) && !has_changed(of, o->path) &&
            llm_model_beside(&found, of, &err) == GGL_OK)
            tool_say(TOOL, "%s shares the weights of %s", m->name, x->name);
    }
    ggl_os_mutex_unlock(&t->lock);
    return found;
}

const model_card *model_get_card(const model *m) {
    return &m->card;
}

int64_t model_get_modified(const model *m) {
    ggl_os_mutex_lock(&m->table->lock);
    const int64_t t = m->modified;
    ggl_os_mutex_unlock(&m->table->lock);
    return t;
}

const server_options *model_options(const model *m) {
    return m->o;
}

const server_options *models_options(const models *t) {
    return t->o;
}

memory *models_memory(const models *t) {
    return t->memory;
}

answer_store *models_store(const models *t) {
    return t->store;
}

stream_table *models_streams(const models *t) {
    return t->streams;
}

void models_say_ignored(const models *t, const ignored_fields *x, const http_request *q,
                        http_reply *r) {
    if (!x->n)
        return;
    http_reply_header(r, "X-Ignored-Fields", x->names);
    if (t->log)
        log_line(t->log, "%s %s %s ignored: %s", q->client, q->method, q->path, x->names);
}

void models_warn(const models *t, const char *text) {
    if (t->log)
        log_line(t->log, "%s", text);
    else
        tool_warning(TOOL, "%s", text);
}

bool models_is_single(const models *t) {
    return !t->o->models;
}

bool models_is_ready(const models *t) {
    return !models_is_single(t) || t->was_ready;
}

/* True if a further request would find no place: in the queue for models that are to be loaded, or in that of the only model. One
 * client gets half of it, and without keys a balancer is one. */
static bool is_full(models *t) {
    const size_t n_clients = t->o->n_api_keys > 1 ? 1 : 2;
    ggl_os_mutex_lock(&t->lock);
    bool full = t->n_waiting * n_clients >= (size_t)t->o->n_queue;
    const model *m = models_is_single(t) ? models_get_list(t)->at[0] : NULL;
    if (m && m->state == MODEL_LOADED)
        full |= m->server->n_waiting * n_clients >= m->server->n_queue;
    ggl_os_mutex_unlock(&t->lock);
    return full;
}

int64_t models_get_began(const models *t) {
    return t->began;
}

models_readiness models_get_readiness(models *t) {
    return t->drains             ? MODELS_DRAINING
           : !models_is_ready(t) ? MODELS_LOADING
           : is_full(t)          ? MODELS_FULL
                                 : MODELS_READY;
}

void models_drain(models *t) {
    t->drains = true;
}

int models_exit_code(const models *t) {
    return t->exit_code;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Names the models that there are, as many as have room. */
static void list_names(const models *t, char *buf, size_t size) {
    const model_list *l = models_get_list(t);
    size_t n = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < l->n && n < size; i++) {
        if (n + strlen(l->at[i]->name) + 6 > size) {
            snprintf(buf + n, size - n, ", ..");
            return;
        }
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 0 ? ", " : "", l->at[i]->name);
    }
}

static model *unknown(const models *t, const char *name, ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(name);
    const model_list *l = models_get_list(t);
    char names[120];
    for (size_t i = 0; i < l->n; i++)
        ggl_nearest_try(&near, l->at[i]->name, SIZE_MAX);
    list_names(t, names, sizeof names);
    if (near.best)
        (void)ggl_fail(err, GGL_NOT_FOUND, "there is no model %.64s; did you mean %.64s?", name,
                       near.best);
    else
        (void)ggl_fail(err, GGL_NOT_FOUND, "there is no model %.64s; there are %s", name, names);
    return NULL;
}

/* As find_exactly; an Ollama tag ":latest" may follow. */
static model *find_tagged(const models *t, const char *name) {
    static const char latest[] = ":latest";
    const size_t n = strlen(name), n_tag = sizeof latest - 1;
    model *m = find_exactly(t, name, n);
    return !m && n > n_tag && strcmp(name + n - n_tag, latest) == 0
               ? find_exactly(t, name, n - n_tag)
               : m;
}

model *models_find(const models *t, const char *name, ggl_error *err) {
    const model_list *l = models_get_list(t);
    char names[120];
    if (l->n > 0 && (models_is_single(t) || ((!name || !*name) && l->n == 1)))
        return l->at[0];
    if (l->n == 0) {
        (void)ggl_fail(err, GGL_NOT_FOUND,
                       "there are no models yet; GET /v1/models?reload=1 reads --models again");
        return NULL;
    }
    if (!name || !*name) {
        list_names(t, names, sizeof names);
        (void)ggl_fail(err, GGL_USAGE, "the field \"model\" is missing; it names one of %s", names);
        return NULL;
    }
    model *m = find_tagged(t, name);
    return m ? m : unknown(t, name, err);
}

model *models_find_named(const models *t, const char *name, ggl_error *err) {
    model *m = models_find(t, name, err);
    if (!m || !models_is_single(t) || find_tagged(t, name))
        return m;
    (void)ggl_fail(err, GGL_NOT_FOUND, "there is no model %.100s; this server has %s", name,
                   m->name);
    return NULL;
}

/* --- use -------------------------------------------------------------------------------------- */

static void wake(models *t) {
    ggl_os_cond_signal(&t->has_news);
}

static bool takes_requests(const model *m) {
    return m->state == MODEL_LOADED && !m->makes_room && !m->leaves;
}

static size_t n_of_client(const models *t, uint64_t client) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        for (const waiting *w = t->row[i]->first; w; w = w->next)
            n += w->client == client;
    return n;
}

/* Lets a request wait. With the lock. */
static ggl_status add_waiting(model *m, uint64_t client, const http_request *q, http_reply *r,
                              model_ready *ready, ggl_error *err) {
    models *t = m->table;
    const size_t most = (size_t)t->o->n_queue;
    if (t->ends)
        return ggl_fail(err, GGL_CANCELLED, "the server is ending");
    if (t->n_waiting >= most || n_of_client(t, client) >= (most + 1) / 2)
        return ggl_fail(err, GGL_LIMIT,
                        "%zu request%s for models already (--queue %zu; one client may have "
                        "half of them); try again later",
                        t->n_waiting, t->n_waiting == 1 ? " waits" : "s wait", most);
    waiting *w = ggl_calloc(1, sizeof *w);
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    *w = (waiting){.table = t, .q = q, .r = r, .ready = ready, .client = client};
    *m->last = w;
    m->last = &w->next;
    m->n_waiting++;
    t->n_waiting++;
    if (m->wanted == 0)
        m->wanted = ++t->clock;
    wake(t);
    return GGL_OK;
}

ggl_status models_take(model *m, server **s, uint64_t client, const http_request *q, http_reply *r,
                       model_ready *ready, ggl_error *err) {
    models *t = m->table;
    ggl_status st = GGL_OK;
    *s = NULL;
    ggl_os_mutex_lock(&t->lock);
    if (m->is_gone) {
        st = ggl_fail(err, GGL_NOT_FOUND, "there is no model %.64s any more", m->name);
    } else if (m->state == MODEL_UNLOADED && m->wanted == 0 && t->o->no_autoload) {
        st = ggl_fail(
            err, GGL_USAGE,
            "the model %.64s is not loaded, and --no-models-autoload forbids that a request "
            "loads it; POST /models/load does",
            m->name);
    } else if (takes_requests(m)) {
        *s = m->server;
        m->n_uses++;
        m->used = ++t->clock;
        m->keep = (double)m->o->keep_alive;
    } else {
        st = add_waiting(m, client, q, r, ready, err);
    }
    ggl_os_mutex_unlock(&t->lock);
    return st;
}

void server_hold(server *s) {
    model *m = s->model_row;
    ggl_os_mutex_lock(&m->table->lock);
    m->n_uses++;
    ggl_os_mutex_unlock(&m->table->lock);
}

void server_release(server *s) {
    model *m = s->model_row;
    models *t = m->table;
    ggl_os_mutex_lock(&t->lock);
    if (--m->n_uses == 0) {
        m->idle_since = ggl_os_seconds();
        wake(t);
    }
    ggl_os_mutex_unlock(&t->lock);
}

void server_keep(server *s, double seconds) {
    model *m = s->model_row;
    ggl_os_mutex_lock(&m->table->lock);
    if (!models_is_single(m->table) || m->o->keep_alive >= 0)
        m->keep = seconds;
    ggl_os_mutex_unlock(&m->table->lock);
}

server *model_peek(model *m) {
    ggl_os_mutex_lock(&m->table->lock);
    server *s = m->state == MODEL_LOADED ? m->server : NULL;
    m->n_peeks += s != NULL;
    ggl_os_mutex_unlock(&m->table->lock);
    return s;
}

void model_unpeek(server *s) {
    model *m = s->model_row;
    ggl_os_mutex_lock(&m->table->lock);
    if (--m->n_peeks == 0)
        wake(m->table);
    ggl_os_mutex_unlock(&m->table->lock);
}

model_status model_get_status(model *m) {
    models *t = m->table;
    ggl_os_mutex_lock(&t->lock);
    model_status x = {.state = m->leaves && m->state == MODEL_LOADED ? MODEL_UNLOADING : m->state,
                      .has_failed = m->has_failed,
                      .n_uses = m->n_uses,
                      .n_waiting = m->n_waiting,
                      .seconds_left = -1,
                      .n_loads = m->n_loads,
                      .has = m->has};
    /* one that is wanted is about to be loaded */
    if (x.state == MODEL_UNLOADED && m->wanted > 0)
        x.state = MODEL_LOADING;
    if (m->keep >= 0)
        x.seconds_left = m->keep;
    if (m->keep >= 0 && m->n_uses == 0)
        x.seconds_left -= ggl_os_seconds() - m->idle_since;
    if (m->keep >= 0 && x.seconds_left < 0)
        x.seconds_left = 0;
    memcpy(x.error, m->error, sizeof x.error);
    ggl_os_mutex_unlock(&t->lock);
    return x;
}

char *model_props(model *m) {
    char *copy = NULL;
    ggl_os_mutex_lock(&m->table->lock);
    const size_t n = m->props ? strlen(m->props) + 1 : 0;
    if (n > 0)
        copy = ggl_calloc(n, 1);
    if (copy)
        memcpy(copy, m->props, n);
    ggl_os_mutex_unlock(&m->table->lock);
    return copy;
}

bool model_get_scales(model *m, float *scale, size_t n) {
    ggl_os_mutex_lock(&m->table->lock);
    const bool is_set = m->scale && m->n_scales == n;
    if (is_set)
        memcpy(scale, m->scale, n * sizeof *scale);
    ggl_os_mutex_unlock(&m->table->lock);
    return is_set;
}

ggl_status model_set_scales(model *m, const float *scale, size_t n, ggl_error *err) {
    float *copy = ggl_calloc(n, sizeof *copy);
    if (!copy)
        return ggl_fail(err, GGL_NOMEM, "out of memory for scales");
    memcpy(copy, scale, n * sizeof *copy);
    ggl_os_mutex_lock(&m->table->lock);
    ggl_free(m->scale);
    m->scale = copy;
    m->n_scales = n;
    ggl_os_mutex_unlock(&m->table->lock);
    return GGL_OK;
}

void model_want(model *m) {
    m->wanted = ++m->table->clock;
}

void model_load(model *m) {
    ggl_os_mutex_lock(&m->table->lock);
    m->leaves = m->is_gone;
    if (m->state != MODEL_LOADED && m->wanted == 0 && !m->is_gone)
        m->wanted = ++m->table->clock;
    wake(m->table);
    ggl_os_mutex_unlock(&m->table->lock);
}

bool model_unload(model *m) {
    ggl_os_mutex_lock(&m->table->lock);
    const bool is_there = m->state == MODEL_LOADED || m->state == MODEL_LOADING;
    m->leaves |= is_there;
    wake(m->table);
    ggl_os_mutex_unlock(&m->table->lock);
    return is_there;
}

/* --- counters --------------------------------------------------------------------------------- */

void models_count(models *t, model *m, server_counter which) {
    if (!m && models_is_single(t))
        m = models_get_list(t)->at[0];
    (m ? m->count : t->count)[which]++;
}

uint64_t models_get_count(const models *t, const model *m, server_counter which) {
    return (m ? m->count : t->count)[which];
}

void server_count(server *s, server_counter which) {
    s->model_row->count[which]++;
}

/* --- requests that wait ----------------------------------------------------------------------- */

waiting *models_collect(model *m, server *s, const ggl_error *err) {
    waiting *first = m->first;
    for (waiting *w = first; w; w = w->next) {
        w->server = s;
        m->n_uses += s != NULL;
        if (err)
            w->err = *err;
    }
    if (s && first) {
        m->used = ++m->table->clock;
        m->keep = (double)m->o->keep_alive;
    }
    m->table->n_waiting -= m->n_waiting;
    m->n_waiting = 0;
    m->first = NULL;
    m->last = &m->first;
    m->wanted = 0;
    return first;
}

static void answer_one(void *ctx) {
    waiting *w = ctx;
    w->ready(w->table, w->server, &w->err, w->q, w->r);
    ggl_free(w);
}

void models_answer(waiting *w) {
    for (waiting *next; w; w = next) {
        next = w->next;
        http_reply_later(w->r, answer_one, w);
    }
}

void models_failure(const model *m, ggl_error *err) {
    (void)ggl_fail(err, GGL_IO, "the model %.64s could not be loaded: %s", m->name, m->error);
}

void server_say_ignored(const server *s, const ignored_fields *x, const http_request *q,
                        http_reply *r) {
    models_say_ignored(model_table(s->model_row), x, q, r);
}
