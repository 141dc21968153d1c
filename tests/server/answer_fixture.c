#include "llm-server/answer_impl.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* test.h defines variables: this file only borrows its types */
#define TEST_H
#define CHECK_OK(st, err) ((st) == GGL_OK)
#include "answer_fixture.h"
#include "llm-server/server_adapters.h"

/* --- replies ------------------------------------------------------------------------------------ */

void http_reply_begin(http_reply *r, int status, const char *media_type, bool streams) {
    if (r->status != 0)
        abort();
    r->status = status;
    r->streams = streams;
    snprintf(r->media, sizeof r->media, "%s", media_type);
}

void http_reply_header(http_reply *r, const char *name, const char *value) {
    if (r->status != 0)
        abort();
    if (strcmp(name, "Retry-After") == 0)
        snprintf(r->retry_after, sizeof r->retry_after, "%s", value);
}

const char *http_reply_find_header(http_reply *r, const char *name) {
    (void)r;
    return strcmp(name, "request-id") == 0 ? "req_1" : NULL;
}

void http_reply_write(http_reply *r, const char *bytes, size_t n) {
    if (r->status == 0 || r->ended)
        abort();
    r->gone |= ++r->n_writes == r->gone_after || !answer_bytes_add(&r->body, bytes, n);
}

bool http_reply_reserve(http_reply *r, size_t n) {
    (void)r, (void)n;
    return true;
}
void http_reply_end(http_reply *r) {
    if (r->ended)
        abort();
    r->ended = true;
}

void http_reply_later(http_reply *r, void (*fn)(void *ctx), void *ctx) {
    r->n_later++;
    fn(ctx);
}

bool http_reply_is_gone(http_reply *r) {
    return r->gone;
}

void reply_free(http_reply *r) {
    if (r)
        ggl_free(r->body.s);
    ggl_free(r);
}

/* --- the server --------------------------------------------------------------------------------- */

uint64_t server_client(const server *s, const http_request *q) {
    (void)s;
    return q->client ? (uint64_t)q->client[0] : 0;
}

int server_n_slots(const server *s) {
    (void)s;
    return 2 * FIXTURE_PARALLEL;
}

const server_facts *server_get_facts(const server *s) {
    return &s->facts;
}
static ggl_status append_seen(const ask *a, size_t i, llm_tokens *ids, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < a->image[i].n && st == GGL_OK; k++)
        st = llm_tokens_append(ids, -1 - (int32_t)(100 * i + k), err);
    return st;
}

/* The eye of these tests, if facts.n_row says that there is one: a picture is as many rows as its file has bytes. */
void server_look(server *s, ask *a, http_reply *r, uint64_t client, int64_t deadline,
                 looked_fn *done, void *ctx) {
    static const api_error bad = {
        .status = 400, .type = "invalid_request", .message = "a picture is bad"};
    (void)r, (void)client, (void)deadline;
    s->n_looks += a->n_images;
    a->append_seen = append_seen;
    for (size_t i = 0; i < a->n_images; i++)
        a->n_rows += a->image[i].n;
    done(ctx, s->looks_fail ? &bad : NULL);
}
const llm_chat *server_chat(const server *s) {
    return s->chat;
}
const llm_tokenizer *server_tokenizer(const server *s) {
    return s->tokenizer;
}
ggl_status server_find_task(const server *s, const char *task, const char *prompt_name,
                            int32_t *number, char **before, size_t *n_before, const char **param,
                            ggl_error *err) {
    (void)s, (void)task, (void)prompt_name, (void)before, (void)n_before, (void)err;
    *number = 0;
    *param = NULL;
    return GGL_OK;
}
ggl_status server_request_scales(const server *s, const json_value *list, float **scale,
                                 ggl_error *err) {
    (void)s, (void)list, (void)err;
    *scale = NULL;
    return GGL_OK;
}
size_t server_shares(const server *s, const float *scale, float *share) {
    (void)s, (void)scale, (void)share;
    return 0;
}
size_t server_n_adapters(const server *s) {
    (void)s;
    return 0;
}
ggl_status server_fill_query(const server *s, llm_tokens *ids, int32_t *n_seen, ggl_error *err) {
    (void)s, (void)ids, (void)n_seen, (void)err;
    return GGL_OK;
}
/* By facts.pooling, which tests change. */
const llm_head *server_head(const server *s) {
    llm_head **h = &((server *)s)->head[s->facts.pooling];
    if (!*h && llm_head_new(h, s->facts.pooling, NULL, s->facts.n_embd, NULL) != GGL_OK)
        abort();
    return *h;
}
ggl_status server_read_text(const server *s, ggl_str text, unsigned flags, llm_tokens *ids,
                            ggl_error *err) {
    return llm_tokenize(s->tokenizer, text.s, text.n, flags, ids, err);
}
ggl_status server_cut_text(const server *s, llm_tokens *ids, ggl_error *err) {
    (void)err;
    ids->n = ids->n < (size_t)s->facts.n_ctx ? ids->n : (size_t)s->facts.n_ctx;
    return GGL_OK;
}
ggl_status server_count_before(const server *s, const ask *a, ggl_str prompt, int64_t *n,
                               ggl_error *err) {
    (void)s, (void)a, (void)prompt, (void)err;
    *n = 0;
    return GGL_OK;
}
answers *server_answers(const server *s) {
    return s->answers;
}
const llm_vocab *server_vocab(server *s) {
    pthread_mutex_lock(&s->lock);
    if (!s->vocab && llm_vocab_new(&s->vocab, s->tokenizer, NULL) != GGL_OK)
        s->vocab = NULL;
    pthread_mutex_unlock(&s->lock);
    return s->vocab;
}
void server_say_ignored(const server *s, const ignored_fields *x, const http_request *q,
                        http_reply *r) {
    (void)s, (void)x, (void)q, (void)r;
}

const char *server_other(const server *s, ask_kind kind) {
    (void)s, (void)kind;
    return NULL;
}

void server_hold(server *s) {
    s->n_holds++;
}

void server_release(server *s) {
    s->n_holds--;
}

void server_keep(server *s, double seconds) {
    s->keep_seconds = seconds;
}

void server_count(server *s, server_counter which) {
    s->count[which]++;
}

bool server_post(server *s, void (*fn)(void *ctx, llm_engine *e), void *ctx) {
    pthread_mutex_lock(&s->lock);
    const bool good =
        !s->ends && ggl_grow(&s->post, &s->cap_posts, s->n_posts + 1, sizeof *s->post);
    if (good)
        s->post[s->n_posts++] = (posted){fn, ctx};
    pthread_mutex_unlock(&s->lock);
    return good;
}

static bool next_post(server *s, posted *p) {
    pthread_mutex_lock(&s->lock);
    const bool is_there = s->n_posts > 0;
    if (is_there) {
        *p = s->post[0];
        memmove(s->post, s->post + 1, --s->n_posts * sizeof *s->post);
    }
    pthread_mutex_unlock(&s->lock);
    return is_there;
}

void server_run(server *s, int n_steps) {
    posted p;
    while (n_steps-- > 0) {
        while (next_post(s, &p))
            p.fn(p.ctx, s->engine);
        answers_tick(s->answers, s->engine);
        if (llm_engine_n_running(s->engine) + (int)llm_engine_n_waiting(s->engine) == 0)
            return;
        ggl_error err = {0};
        if (llm_engine_step(s->engine, &err) != GGL_OK)
            fprintf(stderr, "step: %s\n", err.msg);
    }
}

static int64_t fake_clock(void *ctx) {
    server *s = ctx;
    return s->now += 1000000;
}

static bool open_model(server *s) {
    return CHECK_OK(llm_model_open(&s->model, BUILTIN_CHAT_MODEL, NULL, &s->err), &s->err) &&
           CHECK_OK(llm_model_tokenizer(s->model, &s->tokenizer, &s->err), &s->err) &&
           CHECK_OK(llm_chat_new(&s->chat, llm_model_file(s->model), s->tokenizer, NULL, &s->err),
                    &s->err) &&
           CHECK_OK(ggl_backend_open(
                        &s->cpu, "cpu",
                        &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                        &s->err),
                    &s->err) &&
           CHECK_OK(ggl_backend_open(&s->reference, "reference", NULL, &s->err), &s->err);
}

static bool open_session(server *s) {
    llm_session_params p = llm_session_default();
    p.n_ctx = FIXTURE_CTX;
    p.n_ubatch = 64;
    p.n_rows = FIXTURE_PARALLEL;
    p.embeddings = s->embeds;
    p.n_slots = 2 * FIXTURE_PARALLEL;
    p.backend = &s->cpu;
    p.n_backends = 1;
    p.fold = s->reference;
    return CHECK_OK(llm_session_new(&s->session, s->model, &p, &s->err), &s->err) &&
           CHECK_OK(llm_session_alloc(s->session, &s->err), &s->err);
}

bool server_open(server *s, size_t n_queue) {
    const int64_t now = s->now;
    *s = (server){.now = now, .embeds = s->embeds, .api = s->api ? s->api : &fixture_api};
    pthread_mutex_init(&s->lock, NULL);
    if (!open_model(s) || !open_session(s))
        return false;
    const llm_engine_params p = {.size = sizeof p,
                                 .session = s->session,
                                 .tokenizer = s->tokenizer,
                                 .n_parallel = FIXTURE_PARALLEL,
                                 .n_queue = n_queue,
                                 .clock = now ? fake_clock : NULL,
                                 .clock_ctx = s};
    s->facts = (server_facts){.model = "stories",
                              .looks = true,
                              .strict_fields = true,
                              .n_ctx = FIXTURE_CTX,
                              .n_vocab = llm_session_n_vocab(s->session),
                              .n_embd = llm_session_n_embd(s->session),
                              .n_parallel = FIXTURE_PARALLEL,
                              .writes = true,
                              .has_chat = true,
                              .sampling = llm_sampler_default(),
                              .n_predict = -1,
                              .tokenizer = s->tokenizer};
    s->answers = answers_new();
    if (!s->answers)
        return false;
    if (now) {
        s->answers->clock = fake_clock;
        s->answers->clock_ctx = s;
    }
    return CHECK_OK(llm_engine_new(&s->engine, &p, &s->err), &s->err);
}

void server_close(server *s) {
    llm_engine_free(s->engine);
    (void)CHECK_OK(s->n_holds == 0 ? GGL_OK : GGL_USAGE,
                   NULL); /* each job has given the server back */
    answers_free(s->answers);
    llm_vocab_free(s->vocab);
    for (int k = 0; k < LLM_POOL_COUNT; k++)
        llm_head_free(s->head[k]);
    llm_session_free(s->session);
    llm_chat_free(s->chat);
    llm_model_free(s->model);
    ggl_backend_close(s->cpu);
    ggl_backend_close(s->reference);
    ggl_free(s->post);
    pthread_mutex_destroy(&s->lock);
}

/* --- asks --------------------------------------------------------------------------------------- */

static ask *new_ask(server *s, ask_kind kind) {
    ask *a = ask_new(&s->facts);
    if (!a)
        return NULL;
    a->kind = kind;
    a->has_seed = true;
    a->sampling.seed = 1;
    a->n_max = 60;
    return a;
}

ask *ask_chat(server *s, const char *message) {
    ask *a = new_ask(s, ASK_CHAT);
    ggl_error err;
    if (a && llm_talk_new(&a->talk, &err) == GGL_OK &&
        llm_talk_add(a->talk, "user", (ggl_str){message, strlen(message)}, &err) == GGL_OK)
        return a;
    ask_free(a);
    return NULL;
}

void ask_set_talk(ask *a, const char *json) {
    ggl_error err;
    llm_talk_free(a->talk);
    if (llm_talk_read(&a->talk, (ggl_str){json, strlen(json)}, NULL, NULL, &err) != GGL_OK)
        abort();
}

ask *ask_text(server *s, const char *text) {
    ask *a = new_ask(s, ASK_TEXT);
    if (a)
        a->prompt = ggl_arena_alloc(&a->arena, 1, sizeof *a->prompt);
    if (!a || !a->prompt) {
        ask_free(a);
        return NULL;
    }
    a->prompt[0].text = (ggl_str){text, strlen(text)};
    a->n_prompts = 1;
    return a;
}

static const char *no_header(const http_request *q, const char *name) {
    (void)q, (void)name;
    return NULL;
}

http_reply *start(server *s, ask *a) {
    const http_request q = {.header = no_header, .parameter = no_header, .client = "127.0.0.1"};
    http_reply *r = ggl_calloc(1, sizeof *r);
    if (r && a) {
        answer_start(s, s->api, a, &q, r);
        return r;
    }
    ggl_free(r);
    ask_free(a);
    return NULL;
}

http_reply *answer_alone(server *s, ask *a) {
    http_reply *r = start(s, a);
    server_run(s, 100000);
    return r;
}

/* --- the API ------------------------------------------------------------------------------------ */

static void put(llm_json_out *out, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    llm_json_put(out, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void put_hex(llm_json_out *out, ggl_str s) {
    llm_json_put(out, "x", 1);
    for (size_t i = 0; i < s.n; i++)
        put(out, "%02x", (unsigned)(unsigned char)s.s[i]);
}

static void put_tokens(const answer_part *p, llm_json_out *out) {
    for (size_t i = 0; i < p->n_tokens; i++) {
        const answer_token *t = &p->token[i];
        put(out, " %d:%a", (int)t->id, t->logprob);
        for (size_t k = 0; k < t->n_top; k++)
            put(out, "%c%d=%a", k ? ',' : ':', (int)t->top[k].id, t->top[k].logprob);
    }
    llm_json_put(out, "\n", 1);
}

static void write_part(const answer *x, const answer_choice *c, const answer_part *p,
                       llm_json_out *out) {
    (void)x;
    if (p->kind == PART_CALL) {
        put(out, "C %d %d ", c->index, p->call);
        put_hex(out, p->name);
        llm_json_put(out, " ", 1);
        put_hex(out, p->arguments);
        put(out, " %s", p->id.n > 0 ? "id" : "");
    } else {
        put(out, "P %d %d ", c->index, (int)p->kind);
        put_hex(out, p->text);
    }
    put_tokens(p, out);
}

static void write_end_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    (void)x;
    put(out, "F %d %d ", c->index, (int)c->finish);
    put_hex(out, c->stop);
    put(out, " %d %d %d %d\n", c->context_full, (int)c->n_prompt, (int)c->n_drawn, (int)c->seed);
}

static void write_end(const answer *x, llm_json_out *out) {
    put(out, "E %d %d %d\n", (int)x->counts.n_prompt, (int)x->counts.n_drawn,
        (int)x->counts.n_reasoning);
}

static void write_begin(const answer *x, llm_json_out *out) {
    (void)x;
    put(out, "B\n");
}

static void write_alive(const answer *x, llm_json_out *out) {
    (void)x;
    put(out, "A\n");
}

static void write_whole(const answer *x, llm_json_out *out) {
    for (int i = 0; i < x->n_choices; i++) {
        for (size_t k = 0; k < x->choice[i].n_parts; k++)
            write_part(x, &x->choice[i], &x->choice[i].part[k], out);
        write_end_choice(x, &x->choice[i], out);
    }
    write_end(x, out);
}

static void write_error(const api_error *e, bool in_stream, llm_json_out *out) {
    put(out, "X %d %s %.400s %d\n", e->status, e->type, e->message, in_stream);
}

const dialect fixture_api = {.name = "test",
                             .stream_type = "text/event-stream",
                             .whole = write_whole,
                             .begin = write_begin,
                             .part = write_part,
                             .end_choice = write_end_choice,
                             .end = write_end,
                             .alive = write_alive,
                             .error = write_error,
                             .own_size = 8};

/* --- reading it again --------------------------------------------------------------------------- */

/* Adds a word, or what follows it in its line, to a text. Returns what comes after it. */
static const char *add_until(answer_bytes *to, const char *from, const char *ends) {
    const size_t n = strcspn(from, ends);
    if (!answer_bytes_add(to, from, n))
        abort();
    return from + n;
}

/* Adds what the lines of one kind say of a choice. */
static void join_lines(answer_bytes *to, const char *body, char letter, int choice, int kind) {
    for (const char *line = body; *line; line += strcspn(line, "\n") + 1) {
        int index, what, at = 0;
        if (*line != letter || sscanf(line + 1, "%d %d %n", &index, &what, &at) < 2 || at == 0 ||
            index != choice || (letter == 'P' && what != kind))
            continue;
        line += 1 + at;
        if (letter == 'P')
            line = add_until(to, line + 1, " \n");
        else
            line = add_until(to, line, "\n");
    }
    answer_bytes_add(to, "\n", 1);
}

/* Adds the tokens of a choice, whichever part they came with. */
static void join_tokens(answer_bytes *to, const char *body, int choice) {
    for (const char *line = body; *line; line += strcspn(line, "\n") + 1) {
        int index, what, at = 0;
        if (*line != 'P' || sscanf(line + 1, "%d %d x%n", &index, &what, &at) < 2 ||
            index != choice)
            continue;
        line += 1 + at + strcspn(line + 1 + at, " \n");
        line = add_until(to, line, "\n");
    }
    answer_bytes_add(to, "\n", 1);
}

char *joined(const http_reply *r) {
    answer_bytes to = {0};
    const char *body = r->body.n > 0 ? r->body.s : "", *last = strstr(body, "E ");
    for (int i = 0; i < 256; i++) {
        char mark[24];
        snprintf(mark, sizeof mark, "F %d ", i);
        if (!strstr(body, mark))
            break;
        answer_bytes_add(&to, mark, strlen(mark));
        join_lines(&to, body, 'P', i, PART_CONTENT);
        join_lines(&to, body, 'P', i, PART_REASONING);
        join_lines(&to, body, 'C', i, 0);
        join_tokens(&to, body, i);
        join_lines(&to, body, 'F', i, 0);
    }
    if (last)
        add_until(&to, last, "\n");
    return to.s;
}

char *content_of(const http_reply *r, int choice) {
    answer_bytes to = {0};
    join_lines(&to, r->body.n > 0 ? r->body.s : "", 'P', choice, PART_CONTENT);
    size_t n = 0;
    for (size_t i = 0; i + 1 < to.n && isxdigit((unsigned char)to.s[i]); i += 2) {
        const char hex[3] = {to.s[i], to.s[i + 1], 0};
        to.s[n++] = (char)strtol(hex, NULL, 16);
    }
    to.s[n] = '\0';
    return to.s;
}
