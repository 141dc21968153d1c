/* The manager's thread: which model is loaded or unloaded next. See models.h. */
#include <inttypes.h>
#include <string.h>

#include "common/process.h"
#include "common/report.h"
#include "ggl/internal/os_clock.h"
#include "abilities.h"
#include "models_impl.h"

#define TOOL "llm-server"

enum { LOOK_SECONDS = 1 }; /* how often it is asked whether the clients that wait have gone */

static bool is_idle(const model *m) {
    return m->n_uses == 0 && m->n_peeks == 0;
}

static model *loading(const models *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i]->state == MODEL_LOADING)
            return t->row[i];
    return NULL;
}

static size_t n_loaded(const models *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->row[i]->state == MODEL_LOADED;
    return n;
}

/* --- requests that wait ------------------------------------------------------------------------- */

/* Removes the requests whose clients have gone. Returns them. */
static waiting *take_gone(model *m) {
    waiting *gone = NULL;
    for (waiting **at = &m->first; *at;) {
        waiting *w = *at;
        if (!http_reply_is_gone(w->r)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->next = gone;
        gone = w;
        m->n_waiting--;
        m->table->n_waiting--;
        m->count[COUNT_GONE]++;
    }
    m->last = &m->first;
    while (*m->last)
        m->last = &(*m->last)->next;
    if (gone && !m->first)
        m->wanted = 0;
    return gone;
}

static void drop_gone(models *t) {
    for (size_t i = 0; i < t->n; i++) {
        waiting *w = take_gone(t->row[i]);
        for (waiting *next; w; w = next) {
            next = w->next;
            http_reply_end(w->r);
            ggl_free(w);
        }
    }
}

/* Gives a loaded model to the requests that wait for it. */
static void serve_waiting(model *m) {
    waiting *w = models_collect(m, m->server, NULL);
    ggl_os_mutex_unlock(&m->table->lock);
    models_answer(w);
    ggl_os_mutex_lock(&m->table->lock);
}

/* --- loading ------------------------------------------------------------------------------------ */

static void fail_waiting(model *m) {
    ggl_error err = {0};
    models_failure(m, &err);
    waiting *w = models_collect(m, NULL, &err);
    m->state = MODEL_UNLOADED;
    m->has_failed = true;
    m->leaves = false;
    ggl_os_mutex_unlock(&m->table->lock);
    models_answer(w);
    ggl_os_mutex_lock(&m->table->lock);
}

static void on_loaded(void *ctx) {
    model *m = ctx;
    models *t = m->table;
    ggl_os_mutex_lock(&t->lock);
    m->has_news = true;
    ggl_os_cond_signal(&t->has_news);
    ggl_os_mutex_unlock(&t->lock);
}

static void begin_loading(model *m) {
    models *t = m->table;
    ggl_error err = {0};
    m->state = MODEL_LOADING;
    m->has_news = false;
    m->insists |= n_loaded(t) == 0;
    m->n_loads++;
    m->server = server_new(m->o, m, t->memory, t->streams, t->store, on_loaded, m);
    ggl_status st = m->server ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (m->server)
        m->server->insists = m->insists;
    if (m->server && !models_is_single(t)) {
        m->server->name = m->name;
        m->server->taken = model_taken;
        m->server->beside = model_beside;
        m->server->other = model_other;
        tool_say(TOOL, "loading %s", m->name);
    }
    if (st == GGL_OK)
        st = server_start(m->server, &err);
    if (st == GGL_OK)
        return;
    server_free(m->server);
    m->server = NULL;
    snprintf(m->error, sizeof m->error, "%s", err.msg);
    fail_waiting(m);
}

/* Returns the model to unload next: one that must leave in any case, else one that does not answer, else any; among several, the
 * one that was used least recently. NULL if none is loaded, or one makes room already. */
static model *choose_victim(const models *t) {
    model *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        model *m = t->row[i];
        if (m->state != MODEL_LOADED)
            continue;
        if (m->makes_room)
            return NULL;
        if (best && best->leaves)
            continue;
        if (!best || m->leaves || (is_idle(m) && !is_idle(best)) ||
            (is_idle(m) == is_idle(best) && m->used < best->used))
            best = m;
    }
    return best;
}

/* Lets a model make room for another. Returns false if none is loaded. */
static bool make_room(models *t, const model *wanted, const char *why) {
    model *victim = choose_victim(t);
    if (victim) {
        tool_say(TOOL, "%s makes room for %s (%s)%s", victim->name, wanted->name, why,
                 is_idle(victim) ? "" : " when its answers have ended");
        victim->makes_room = true;
    }
    return n_loaded(t) > 0;
}

/* Ends the thread of a model that could not be loaded. */
static void end_failed(model *m) {
    models *t = m->table;
    server *s = m->server;
    const bool lacks_room = s->lacks_room;
    const int code = s->exit_code;
    snprintf(m->error, sizeof m->error, "%s", s->error);
    ggl_os_mutex_unlock(&t->lock);
    server_stop(s);
    server_free(s);
    ggl_os_mutex_lock(&t->lock);
    m->server = NULL;
    if (lacks_room && !t->ends) {
        m->state = MODEL_UNLOADED; /* and is loaded again, since it is wanted still */
        m->n_loads--;
        if (m->wanted > 0 && !make_room(t, m, "memory"))
            m->insists = true;
        return;
    }
    if (models_is_single(t) && !t->was_ready) {
        t->exit_code = code;
        t->changed(t->changed_ctx);
    }
    fail_waiting(m);
}

/* The only model is called as its file says. */
static void set_name(model *m) {
    const size_t n = strlen(m->server->facts.model) + 1;
    char *name = ggl_calloc(n, 1);
    if (!name)
        return;
    ggl_free(m->name);
    m->name = memcpy(name, m->server->facts.model, n);
}

static void end_loading(model *m) {
    models *t = m->table;
    m->has_news = false;
    if (m->server->exit_code >= 0) {
        end_failed(m);
        return;
    }
    m->state = MODEL_LOADED;
    m->has_failed = m->insists = false;
    m->leaves |= m->is_gone;
    m->error[0] = '\0';
    m->used = ++t->clock;
    m->idle_since = ggl_os_seconds();
    m->keep = (double)m->o->keep_alive;
    if (models_is_single(t)) {
        if (!t->was_ready)
            set_name(m);
        t->was_ready = true;
        t->changed(t->changed_ctx);
    } else {
        tool_say(TOOL, "%s is loaded, with a context of %" PRId64 " tokens (%.1f s)", m->name,
                 m->server->facts.n_ctx, m->server->load_seconds);
    }
    serve_waiting(m);
}

/* --- unloading ---------------------------------------------------------------------------------- */

static void unload(model *m, const char *why) {
    models *t = m->table;
    server *s = m->server;
    tool_say(TOOL, "unloading %s (%s)", m->name, why);
    m->state = MODEL_UNLOADING;
    ggl_os_mutex_unlock(&t->lock);
    char *props = server_props(s);
    const int64_t t_start = s->facts.t_start;
    const llm_senses has = server_senses(&s->facts);
    server_stop(s);
    server_free(s);
    ggl_os_mutex_lock(&t->lock);
    ggl_free(m->props);
    m->props = props;
    m->has = has;
    if (models_is_single(t)) /* its card was not read */
        m->modified = t_start;
    m->server = NULL;
    m->state = MODEL_UNLOADED;
    m->makes_room = m->leaves = false;
}

/* Returns the seconds until the model has been unused for long enough; less than 0: for ever. */
static double seconds_left(const model *m, double now) {
    if (m->state != MODEL_LOADED || !is_idle(m) || m->keep < 0)
        return -1;
    const double left = m->idle_since + m->keep - now;
    return left > 0 ? left : 0;
}

/* --- the thread --------------------------------------------------------------------------------- */

/* Returns the model that has been wanted for longest, and is not loaded. */
static model *next_wanted(const models *t) {
    model *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        model *m = t->row[i];
        if (m->state == MODEL_UNLOADED && m->wanted > 0 && (!best || m->wanted < best->wanted))
            best = m;
    }
    return best;
}

/* Lets models go on that were to make room, since no model needs it any more. */
static void keep_all(models *t) {
    for (size_t i = 0; i < t->n; i++) {
        model *m = t->row[i];
        if (m->state != MODEL_LOADED || m->leaves || !(m->makes_room || m->first))
            continue;
        m->makes_room = false;
        serve_waiting(m);
    }
}

/* True if a model that must make room still answers. (A model that leaves for another reason delays no other.) */
static bool is_one_making_room(const models *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i]->state == MODEL_LOADED && t->row[i]->makes_room)
            return true;
    return false;
}

/* Does one thing. Returns false if there is nothing to do. */
static bool act(models *t) {
    for (size_t i = 0; i < t->n; i++) {
        model *m = t->row[i];
        if (m->has_news) {
            end_loading(m);
            return true;
        }
        if (m->state == MODEL_LOADED && is_idle(m) && (m->makes_room || m->leaves)) {
            unload(m, m->is_gone  ? "changed, or no longer in --models"
                      : m->leaves ? "as requested"
                                  : "for room");
            return true;
        }
        if (seconds_left(m, ggl_os_seconds()) == 0) {
            unload(m, "not used");
            return true;
        }
    }
    model *wanted = next_wanted(t);
    if (!wanted) {
        if (!loading(t))
            keep_all(t);
        return false;
    }
    if (loading(t))
        return false;
    if (is_one_making_room(t))
        return false;
    const size_t most = (size_t)t->o->models_max;
    if (most > 0 && n_loaded(t) >= most)
        return make_room(t, wanted, "--models-max");
    begin_loading(wanted);
    return true;
}

/* Waits for news, or until something is due. */
static void wait_for_news(models *t) {
    double least = t->n_waiting > 0 ? LOOK_SECONDS : -1;
    const double now = ggl_os_seconds();
    for (size_t i = 0; i < t->n; i++) {
        const double left = seconds_left(t->row[i], now);
        if (left >= 0 && (least < 0 || left < least))
            least = left;
    }
    if (least < 0) {
        ggl_os_cond_wait(&t->has_news, &t->lock);
        return;
    }
    least = least < 3600 ? least : 3600;
    const int64_t until = ggl_os_clock() + (int64_t)(least * 1e9) + 1000000;
    (void)ggl_os_cond_wait_until(&t->has_news, &t->lock, until);
}

void *models_manage(void *arg) {
    models *t = arg;
    ggl_os_mutex_lock(&t->lock);
    while (!t->ends) {
        drop_gone(t);
        if (!act(t) && !t->ends)
            wait_for_news(t);
    }
    ggl_os_mutex_unlock(&t->lock);
    return NULL;
}
