#include "serve_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "common/machine.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_stream.h"
#include "serve_text.h"

enum { MOST_HISTORY = 1 << 30, IDLE_MS = 1000 };

typedef struct run run;

typedef struct talk { /* a client, and the conversation it is in */
    run *run;
    size_t n_begun; /* its conversations so far */
    size_t id;      /* of the conversation, for seeds */
    size_t turn;
    serve_bytes history; /* the prompt's text, or the elements of `messages` */
    serve_answer answer;
    ggl_error err; /* of the answer */
    int64_t sent_ns, first_ns, last_ns;
    double *gap; /* [n_gaps] of this answer */
    size_t n_gaps, cap_gaps;
} talk;

struct run {
    serve_http *http;
    const serve_server *server;
    const serve_load *load;
    serve_log *log;
    talk *talk; /* [n] */
    size_t n;
    size_t n_open; /* conversations under way or to come */
    int64_t *due;  /* [n] with a rate: when each begins */
    int64_t now;   /* when the bytes being read arrived */
    int64_t end_ns;
    char url[1100];
    ggl_status status; /* why the run cannot go on */
    ggl_error *err;
};

int64_t serve_sample_answer(const serve_sample *s) {
    return s->completion_tokens >= 0 ? s->completion_tokens : s->n_pieces;
}

void serve_log_fini(serve_log *log) {
    ggl_free(log->sample);
    ggl_free(log->gap);
    *log = (serve_log){.sample = NULL};
}

/* --- the prompt ------------------------------------------------------------------------------- */

enum { SEED_TEXT, SEED_SHARED, SEED_SAMPLER, SEED_TIME };

/* Writes a message of a chat, or a part of a prompt. */
static void put_message(FILE *out, const talk *t, const char *role, const char *text, size_t n) {
    bool first = t->history.n == 0;
    if (!t->run->load->chat) {
        fputs(first || strcmp(role, "assistant") == 0 ? "" : " ", out);
        fwrite(text, 1, n, out);
        return;
    }
    fprintf(out, "%s{\"role\": \"%s\", \"content\": ", first ? "" : ", ", role);
    json_put_string(out, text, n);
    putc('}', out);
}

static ggl_status add_message(talk *t, const char *role, const char *text, size_t n) {
    os_memory_stream m;
    const bool opened = ggl_os_memory_stream_open(&m);
    if (opened)
        put_message(m.to, t, role, text, n);
    ggl_status st = opened && ggl_os_memory_stream_close(&m)
                        ? serve_bytes_add(&t->history, m.text, m.n, MOST_HISTORY, t->run->err)
                        : ggl_fail(t->run->err, GGL_NOMEM, "out of memory");
    free(m.text);
    return st;
}

static ggl_status add_words(talk *t, const char *role, uint64_t seed, size_t n_words) {
    os_memory_stream m;
    const bool opened = ggl_os_memory_stream_open(&m);
    if (opened)
        serve_put_words(m.to, seed, n_words);
    ggl_status st = opened && ggl_os_memory_stream_close(&m)
                        ? add_message(t, role, m.text, m.n)
                        : ggl_fail(t->run->err, GGL_NOMEM, "out of memory");
    free(m.text);
    return st;
}

/* --- a request -------------------------------------------------------------------------------- */

static void on_token(void *ctx) {
    talk *t = ctx;
    int64_t now = t->run->now;
    if (t->first_ns == 0) {
        t->first_ns = now;
    } else if (ggl_grow(&t->gap, &t->cap_gaps, t->n_gaps + 1, sizeof *t->gap)) {
        t->gap[t->n_gaps++] = (double)(now - t->last_ns) * 1e-6;
    } else {
        t->run->status = ggl_fail(t->run->err, GGL_NOMEM, "out of memory");
    }
    t->last_ns = now;
}

static bool on_bytes(void *ctx, const char *bytes, size_t n) {
    talk *t = ctx;
    t->run->now = ggl_os_clock();
    return serve_answer_feed(&t->answer, bytes, n, &t->err) == GGL_OK;
}

static void on_end(void *ctx, const serve_end *e);

static ggl_status send_turn(talk *t) {
    run *r = t->run;
    const serve_load *l = r->load;
    os_memory_stream m;
    const bool opened = ggl_os_memory_stream_open(&m);
    const serve_body body = {
        .model = r->server->model,
        .prompt = t->history.s,
        .n_prompt = t->history.n,
        .chat = l->chat,
        .max_tokens = l->n_answer,
        .seed = serve_seed(l->seed, t->id, t->turn, SEED_SAMPLER) & 0x7fffffff,
        .temperature = l->temperature,
        .ignore_eos = l->ignore_eos,
        .field = l->field,
        .n_fields = l->n_fields,
    };
    if (opened)
        serve_put_body(m.to, &body);
    if (!opened || !ggl_os_memory_stream_close(&m))
        return ggl_fail(r->err, GGL_NOMEM, "out of memory");
    serve_answer_fini(&t->answer);
    t->err = (ggl_error){0};
    t->n_gaps = 0;
    t->first_ns = 0;
    t->sent_ns = ggl_os_clock();
    const serve_call call = {r->url, r->server->key, m.text, m.n, on_bytes, on_end, t};
    ggl_status st = serve_http_start(r->http, &call, r->err);
    free(m.text);
    return st;
}

/* Adds the new text of a turn, and sends the request. */
static void begin_turn(talk *t) {
    run *r = t->run;
    ggl_status st = add_words(t, "user", serve_seed(r->load->seed, t->id, t->turn, SEED_TEXT),
                              r->load->n_words);
    r->status = st == GGL_OK ? send_turn(t) : st;
}

static void begin_talk(talk *t, size_t id) {
    run *r = t->run;
    t->history.n = 0;
    t->turn = 0;
    t->id = id;
    t->n_begun++;
    if (r->load->n_shared > 0)
        r->status =
            add_words(t, "system", serve_seed(r->load->seed, 0, 0, SEED_SHARED), r->load->n_shared);
    if (r->status == GGL_OK)
        begin_turn(t);
}

/* --- the end of a request --------------------------------------------------------------------- */

static void log_failure(serve_log *log, const char *text) {
    size_t i = 0;
    log->n_failed++;
    while (i < SERVE_FAILURES - 1 && log->failure[i].n > 0 &&
           strcmp(log->failure[i].text, text) != 0)
        i++;
    if (log->failure[i].n++ == 0)
        snprintf(log->failure[i].text, sizeof log->failure[i].text, "%s", text);
    else if (strcmp(log->failure[i].text, text) != 0)
        snprintf(log->failure[i].text, sizeof log->failure[i].text, "other reasons");
}

/* Writes why the request failed; returns false if it did not. */
static bool failure_of(talk *t, const serve_end *e, char *buf, size_t size) {
    char said[160];
    if (e->status == 0)
        snprintf(buf, size, "%s", e->error ? e->error : "no answer");
    else if (e->status != 200)
        snprintf(buf, size, "HTTP %d: %s", e->status,
                 serve_error_text(e->body, e->n_body, said, sizeof said));
    else if (t->err.status != GGL_OK)
        snprintf(buf, size, "%.200s", t->err.msg);
    else if (e->error)
        snprintf(buf, size, "the answer breaks off: %s", e->error);
    else if (serve_answer_end(&t->answer, &t->err) != GGL_OK)
        snprintf(buf, size, "%.200s", t->err.msg);
    else
        return false;
    return true;
}

static ggl_status log_sample(talk *t, int64_t now) {
    run *r = t->run;
    serve_log *log = r->log;
    const serve_answer *a = &t->answer;
    if (!ggl_grow(&log->sample, &log->cap_samples, log->n_samples + 1, sizeof *log->sample) ||
        !ggl_grow(&log->gap, &log->cap_gaps, log->n_gaps + t->n_gaps, sizeof *log->gap))
        return ggl_fail(r->err, GGL_NOMEM, "out of memory");
    serve_sample *s = &log->sample[log->n_samples++];
    int64_t first = t->first_ns ? t->first_ns : now; /* an answer may be empty */
    *s = (serve_sample){.turn = t->turn,
                        .first_ms = (double)(first - t->sent_ns) * 1e-6,
                        .end_ms = (double)(now - t->sent_ns) * 1e-6,
                        .prompt_tokens = a->prompt_tokens,
                        .cached_tokens = a->cached_tokens,
                        .completion_tokens = a->completion_tokens,
                        .n_pieces = a->n_pieces};
    if (t->n_gaps > 0)
        memcpy(log->gap + log->n_gaps, t->gap, t->n_gaps * sizeof *t->gap);
    log->n_gaps += t->n_gaps;
    serve_round *round = &log->round[log->n_rounds];
    round->prompt += a->prompt_tokens > 0 ? a->prompt_tokens : 0;
    round->answer += serve_sample_answer(s);
    return GGL_OK;
}

static void next_talk(talk *t) {
    run *r = t->run;
    r->n_open--;
    if (r->load->n_clients > 0 && t->n_begun < r->load->n_talks)
        begin_talk(t, t->id + r->load->n_clients);
}

static void on_end(void *ctx, const serve_end *e) {
    talk *t = ctx;
    run *r = t->run;
    char failure[256];
    int64_t now = ggl_os_clock();
    r->end_ns = now;
    if (r->status != GGL_OK)
        return;
    if (failure_of(t, e, failure, sizeof failure)) {
        log_failure(r->log, failure);
        next_talk(t);
        return;
    }
    r->status = log_sample(t, now);
    if (r->status != GGL_OK)
        return;
    if (++t->turn == r->load->n_turns) {
        next_talk(t);
        return;
    }
    r->status =
        add_message(t, "assistant", t->answer.text.s ? t->answer.text.s : "", t->answer.text.n);
    if (r->status == GGL_OK)
        begin_turn(t);
}

/* --- the run ---------------------------------------------------------------------------------- */

static ggl_status run_init(run *r) {
    const serve_load *l = r->load;
    r->n = l->n_clients > 0 ? l->n_clients : l->n_talks;
    r->n_open = l->n_clients > 0 ? l->n_clients * l->n_talks : l->n_talks;
    r->talk = ggl_calloc(r->n, sizeof *r->talk);
    r->due = ggl_calloc(r->n, sizeof *r->due);
    if (!r->talk || !r->due)
        return ggl_fail(r->err, GGL_NOMEM, "out of memory");
    if (r->log->n_rounds == SERVE_MAX_ROUNDS)
        return ggl_fail(r->err, GGL_LIMIT, "more than %d rounds", SERVE_MAX_ROUNDS);
    r->log->round[r->log->n_rounds] = (serve_round){.seconds = 0};
    snprintf(r->url, sizeof r->url, "%s%s", r->server->base,
             l->chat ? "/chat/completions" : "/completions");
    uint64_t state = serve_seed(l->seed, 0, 0, SEED_TIME);
    double at = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->talk[i].run = r;
        r->talk[i].answer = (serve_answer){.arrived = on_token, .ctx = &r->talk[i]};
        r->due[i] = (int64_t)(at * 1e9);
        at += l->n_clients > 0 ? 0 : serve_gap(&state, l->rate);
    }
    return GGL_OK;
}

static void run_fini(run *r) {
    for (size_t i = 0; r->talk && i < r->n; i++) {
        serve_bytes_fini(&r->talk[i].history);
        serve_answer_fini(&r->talk[i].answer);
        ggl_free(r->talk[i].gap);
    }
    ggl_free(r->talk);
    ggl_free(r->due);
}

/* Starts conversations when they are due, until all have ended. */
static void run_all(run *r, int64_t begin) {
    size_t next = 0;
    while (r->status == GGL_OK && r->n_open > 0) {
        int64_t now = ggl_os_clock();
        for (; next < r->n && r->due[next] <= now - begin && r->status == GGL_OK; next++)
            begin_talk(&r->talk[next], next);
        int64_t wait = IDLE_MS;
        if (next < r->n && (r->due[next] - (now - begin)) / 1000000 < wait)
            wait = (r->due[next] - (now - begin)) / 1000000 + 1;
        if (r->status == GGL_OK)
            r->status = serve_http_wait(r->http, (int)wait, r->err);
    }
}

ggl_status serve_load_run(serve_http *http, const serve_server *server, const serve_load *load,
                          serve_log *log, ggl_error *err) {
    ggl_error unused;
    run r = {.http = http, .server = server, .load = load, .log = log, .err = err ? err : &unused};
    r.status = run_init(&r);
    if (r.status == GGL_OK) {
        int64_t begin = r.end_ns = ggl_os_clock();
        run_all(&r, begin);
        log->round[log->n_rounds].seconds = (double)(r.end_ns - begin) * 1e-9;
        log->n_rounds += r.status == GGL_OK;
    }
    run_fini(&r);
    return r.status;
}
