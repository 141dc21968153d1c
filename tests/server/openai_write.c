/* Answers of OpenAI's APIs (tools/llm-server/api_openai*.c): made up from a seed, written whole and as streams, and read
 * again as clients read them. Both must say what was made up. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "alloc_fail.h"
#include "llm-server/server.h"
#include "pieces.h"
#include "seed.h"

static ggl_error err;
static uint64_t state;
static uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* --- made-up answers ---------------------------------------------------------------------------- */

enum { MOST_CHOICES = 3, MOST_PARTS = 8, MOST_TOKENS = 3 };

typedef struct made {
    ask *a;
    answer x;
    answer_choice choice[MOST_CHOICES];
    answer_part part[MOST_CHOICES][MOST_PARTS];
    answer_token token[MOST_CHOICES][MOST_PARTS][MOST_TOKENS];
    llm_logprob top[2];
    char arguments[MOST_CHOICES][MOST_PARTS][64], id[MOST_CHOICES][MOST_PARTS][64];
} made;

static float vectors[2][5] = {{1, -2.5f, 0, 3e-38f, 0.1f}, {-0.0f, 7, 8, 9, 1e30f}};
static const server_facts facts = {
    .model = "m", .n_vocab = 100, .n_predict = -1, .n_embd = 5, .has_chat = true};

static const char *const pieces[] = {"Once",      " upon", "\n\"quoted\"\\", "\xc3\xa9\xe2\x82\xac",
                                     " </b>\x01", ""};
static ggl_str piece(void) {
    const char *s = pieces[rnd(sizeof pieces / sizeof *pieces)];
    return (ggl_str){s, strlen(s)};
}

static void make_tokens(made *m, int c, int p, bool asked) {
    answer_part *part = &m->part[c][p];
    part->token = m->token[c][p];
    part->n_tokens = asked ? rnd(MOST_TOKENS + 1) : 0;
    for (size_t i = 0; i < part->n_tokens; i++) {
        static const char *const text[] = {"a", "\xe2\x82", "\"", "\xc3\xa9"};
        const char *s = text[rnd(4)];
        m->token[c][p][i] = (answer_token){.id = (int32_t)rnd(100),
                                           .text = {s, strlen(s)},
                                           .logprob = rnd(5) ? -(double)rnd(1000) / 7 : -INFINITY,
                                           .top = m->top,
                                           .n_top = (size_t)(m->a->n_top > 0 ? m->a->n_top : 0)};
    }
}

static void make_choice(made *m, int k, bool chat) {
    answer_choice *c = &m->choice[k];
    const bool asked = m->a->n_top >= 0 || m->a->return_tokens;
    int n_calls = 0;
    *c = (answer_choice){
        .index = k, .part = m->part[k], .n_prompt = 7, .n_drawn = rnd(50), .prompt_s = 0.5};
    c->n_parts = rnd(MOST_PARTS + 1);
    const size_t n_text = chat ? rnd((uint32_t)c->n_parts + 1) : c->n_parts;
    for (size_t i = 0; i < c->n_parts; i++) {
        answer_part *p = &m->part[k][i];
        *p = (answer_part){.kind = i >= n_text      ? PART_CALL
                                   : chat && rnd(2) ? PART_REASONING
                                                    : PART_CONTENT,
                           .text = piece()};
        if (p->kind == PART_CALL) {
            snprintf(m->arguments[k][i], sizeof m->arguments[k][i], "{\"n\":%u,\"s\":\"\\\"\"}",
                     rnd(100));
            snprintf(m->id[k][i], sizeof m->id[k][i], "call_%d_%d", k, (int)i);
            p->call = n_calls++;
            p->name = (ggl_str){"f\"g", 3};
            p->arguments = (ggl_str){m->arguments[k][i], strlen(m->arguments[k][i])};
            p->id = (ggl_str){m->id[k][i], strlen(m->id[k][i])};
        }
        make_tokens(m, k, (int)i, asked);
    }
    c->finish = n_calls ? FINISH_CALLS : rnd(2) ? FINISH_STOP : FINISH_LENGTH;
}

/* The request decides what is asked for; the answer is random. */
static void make(made *m, const dialect *d, const char *request) {
    const char *param;
    memset(m, 0, sizeof *m);
    m->a = ask_new(&facts);
    m->top[0] = (llm_logprob){3, -0.25};
    m->top[1] = (llm_logprob){4, -2.5};
    if (!m->a || llm_json_parse(&m->a->doc, request, strlen(request), "request", &err) != GGL_OK ||
        d->read(m->a, &facts, &param, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    m->x =
        (answer){.ask = m->a, .facts = &facts, .id = "Ab3", .created = 1234, .choice = m->choice};
    m->x.n_choices =
        (int)(m->a->n_choices * (int64_t)(m->a->kind == ASK_CHAT ? 1 : m->a->n_prompts));
    m->x.counts =
        (answer_counts){.n_prompt = 7, .n_reused = 2, .n_drawn = 9, .n_reasoning = 4, .total_s = 2};
    m->x.embedding = vectors[0];
    m->x.own = ggl_calloc(1, d->own_size);
    for (int k = 0; k < m->x.n_choices && m->a->kind != ASK_EMBED; k++)
        make_choice(m, k, m->a->kind == ASK_CHAT);
}

static void unmake(made *m) {
    ggl_free(m->x.own);
    ask_free(m->a);
}

static void put(llm_json_out *to, ggl_str s) {
    if (s.n > 0)
        llm_json_put(to, s.s, s.n);
}

/* --- streams ------------------------------------------------------------------------------------ */

/* The events as they are sent: the parts of the choices mixed at random. */
static void write_stream(const made *m, const dialect *d, llm_json_out *out) {
    size_t next[MOST_CHOICES] = {0};
    int left = m->x.n_choices;
    if (d->begin)
        d->begin(&m->x, out);
    while (left > 0) {
        const int k = (int)rnd((uint32_t)m->x.n_choices);
        const answer_choice *c = &m->choice[k];
        if (next[k] < c->n_parts) {
            give_in_pieces(d, &m->x, c, &c->part[next[k]++], rnd(5), out);
        } else if (next[k] == c->n_parts) {
            d->end_choice(&m->x, c, out);
            next[k]++;
            left--;
        }
        if (rnd(10) == 0)
            d->alive(&m->x, out);
    }
    d->end(&m->x, out);
}

/* Reads the next event as a client does: comments are skipped, the data must be one line of JSON. *type: the event's
 * name. NULL at the end, and for "[DONE]", which sets *done. */
static llm_json *next_event(const char **s, ggl_str *type, bool *done) {
    llm_json *doc = NULL;
    *type = (ggl_str){0};
    while (**s) {
        const char *end = strchr(*s, '\n');
        if (!CHECK(end))
            return NULL;
        const char *line = *s;
        const size_t n = (size_t)(end - line);
        *s = end + 1;
        if (n > 7 && memcmp(line, "event: ", 7) == 0)
            *type = (ggl_str){line + 7, n - 7};
        if (n == 12 && memcmp(line, "data: [DONE]", 12) == 0) {
            *done = true;
            CHECK_STR(*s, "\n");
            return NULL;
        }
        if (n > 6 && memcmp(line, "data: ", 6) == 0) {
            CHECK(**s == '\n');
            CHECK_MSG(llm_json_parse(&doc, line + 6, n - 6, "event", &err) == GGL_OK, "%s: %.*s",
                      err.msg, (int)n, line);
            return doc;
        }
    }
    return NULL;
}

/* --- what a client has heard of a choice -------------------------------------------------------- */

typedef struct heard {
    llm_json_out text, reasoning, calls, logprobs, ids, finish;
} heard;

static void forget(heard *h) {
    llm_json_out *out[] = {&h->text, &h->reasoning, &h->calls, &h->logprobs, &h->ids, &h->finish};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ggl_free(out[i]->s);
    *h = (heard){0};
}

static bool same_text(const llm_json_out *a, const llm_json_out *b, const char *what) {
    return CHECK_MSG(a->n == b->n && (a->n == 0 || memcmp(a->s, b->s, a->n) == 0),
                     "%s: \"%s\" and \"%s\"", what, a->n ? a->s : "", b->n ? b->s : "");
}

static void same_heard(const heard *a, const heard *b) {
    same_text(&a->text, &b->text, "text");
    same_text(&a->reasoning, &b->reasoning, "reasoning");
    same_text(&a->calls, &b->calls, "calls");
    same_text(&a->logprobs, &b->logprobs, "logprobs");
    same_text(&a->ids, &b->ids, "ids");
    same_text(&a->finish, &b->finish, "finish");
}

static void hear_string(llm_json_out *to, const json_value *object, const char *name) {
    const json_value *v = llm_json_get_kind(object, name, JSON_STRING);
    if (v)
        put(to, json_str(v));
}

/* The elements of a list, with a comma after each. */
static void hear_list(llm_json_out *to, const json_value *object, const char *name) {
    const json_value *v = llm_json_get_kind(object, name, JSON_ARRAY);
    for (size_t i = 0; v && i < v->n; i++) {
        llm_json_put_value(to, &v->item[i]);
        llm_json_put_text(to, ",");
    }
}

static void hear_calls(llm_json_out *to, const json_value *message) {
    const json_value *list = llm_json_get_kind(message, "tool_calls", JSON_ARRAY);
    for (size_t i = 0; list && i < list->n; i++) {
        const json_value *f = llm_json_get(&list->item[i], "function");
        CHECK(!llm_json_get(&list->item[i], "id") ||
              llm_json_is(llm_json_get(&list->item[i], "type"), "function"));
        hear_string(to, &list->item[i], "id");
        hear_string(to, f, "name");
        hear_string(to, f, "arguments");
    }
}

/* A choice of a chat, or a chunk of one. */
static void hear_chat(heard *h, const json_value *choice, const char *message_name) {
    const json_value *message = llm_json_get(choice, message_name);
    const json_value *logprobs = llm_json_get(choice, "logprobs");
    hear_string(&h->text, message, "content");
    hear_string(&h->reasoning, message, "reasoning_content");
    hear_calls(&h->calls, message);
    CHECK(logprobs);
    hear_list(&h->logprobs, logprobs, "content");
    hear_list(&h->ids, choice, "tokens");
    hear_string(&h->finish, choice, "finish_reason");
}

/* A choice of a completion. */
static void hear_text(heard *h, const json_value *choice, const char *message_name) {
    static const char *const columns[] = {"tokens", "token_logprobs", "top_logprobs"};
    const json_value *logprobs = llm_json_get(choice, "logprobs");
    (void)message_name;
    hear_string(&h->text, choice, "text");
    CHECK(logprobs);
    hear_list(&h->logprobs, logprobs, "text_offset");
    for (int k = 0; k < 3; k++)
        hear_list(k == 0 ? &h->reasoning : k == 1 ? &h->calls : &h->ids, logprobs, columns[k]);
    hear_string(&h->finish, choice, "finish_reason");
}

static void expect_token(const made *m, const answer_token *t, heard *h) {
    llm_json_out out = {0};
    char text[400];
    llm_json_put_string(&out, t->text);
    snprintf(text, sizeof text, "%d|%s|", (int)t->id, out.s);
    put(&h->logprobs, (ggl_str){text, strlen(text)});
    ggl_free(out.s);
    (void)m;
}

/* What was made up, without the log-probabilities. */
static void expect(const made *m, int k, heard *h) {
    static const char *const reason[] = {
        [FINISH_STOP] = "stop", [FINISH_LENGTH] = "length", [FINISH_CALLS] = "tool_calls"};
    const answer_choice *c = &m->choice[k];
    for (size_t i = 0; i < c->n_parts; i++) {
        const answer_part *p = &c->part[i];
        if (p->kind == PART_CALL) {
            put(&h->calls, p->id);
            put(&h->calls, p->name);
            put(&h->calls, p->arguments);
        } else
            put(p->kind == PART_CONTENT ? &h->text : &h->reasoning, p->text);
        for (size_t j = 0; j < p->n_tokens && p->kind != PART_REASONING; j++)
            expect_token(m, &p->token[j], h);
    }
    llm_json_put_text(&h->finish, reason[c->finish]);
}

/* The logprobs of a chat as expect() has them. */
static void shorten(const llm_json_out *list, llm_json_out *to) {
    llm_json_out text = {0};
    llm_json *doc = NULL;
    llm_json_put_text(&text, "[");
    put(&text, (ggl_str){list->s, list->n ? list->n - 1 : 0});
    llm_json_put_text(&text, "]");
    if (CHECK_MSG(llm_json_parse(&doc, text.s, text.n, "list", &err) == GGL_OK, "%s", err.msg))
        for (size_t i = 0; i < doc->root.n; i++) {
            const json_value *t = &doc->root.item[i];
            llm_json_put_value(to, llm_json_get(t, "id"));
            llm_json_put_text(to, "|");
            llm_json_put_value(to, llm_json_get(t, "token"));
            llm_json_put_text(to, "|");
        }
    llm_json_free(doc);
    ggl_free(text.s);
}

/* --- chats and completions ---------------------------------------------------------------------- */

typedef void hear_fn(heard *h, const json_value *choice, const char *message_name);

static void check_head(const json_value *v, const char *object) {
    CHECK(llm_json_is(llm_json_get(v, "object"), object) &&
          llm_json_is(llm_json_get(v, "model"), "gpt"));
    const json_value *id = llm_json_get_kind(v, "id", JSON_STRING);
    const json_value *created = llm_json_get_kind(v, "created", JSON_NUMBER);
    CHECK(id && id->n > 3 && memcmp(id->s + id->n - 3, "Ab3", 3) == 0);
    CHECK(created && created->number == 1234);
    CHECK(llm_json_get_kind(v, "system_fingerprint", JSON_STRING));
}

static void check_usage(const json_value *v) {
    const json_value *u = llm_json_get_kind(v, "usage", JSON_OBJECT);
    if (!CHECK(u))
        return;
    CHECK(llm_json_get(u, "prompt_tokens")->number == 7 &&
          llm_json_get(u, "total_tokens")->number == 16);
    CHECK(llm_json_get(llm_json_get(u, "prompt_tokens_details"), "cached_tokens")->number == 2);
    CHECK(llm_json_get(llm_json_get(u, "completion_tokens_details"), "reasoning_tokens")->number ==
          4);
    CHECK(llm_json_get(llm_json_get(v, "timings"), "prompt_n"));
}

static void read_whole(const made *m, const dialect *d, const char *object, hear_fn *hear,
                       heard *h) {
    llm_json_out out = {0};
    llm_json *doc = NULL;
    d->whole(&m->x, &out);
    if (CHECK_MSG(llm_json_parse(&doc, out.s, out.n, "whole", &err) == GGL_OK, "%s: %s", err.msg,
                  out.s)) {
        const json_value *list = llm_json_get_kind(&doc->root, "choices", JSON_ARRAY);
        check_head(&doc->root, object);
        check_usage(&doc->root);
        CHECK(list && (int)list->n == m->x.n_choices);
        for (size_t i = 0; list && i < list->n; i++) {
            CHECK(llm_json_get(&list->item[i], "index")->number == (double)i);
            hear(&h[i], &list->item[i], "message");
        }
    }
    llm_json_free(doc);
    ggl_free(out.s);
}

/* Reads a chunk; returns its number of choices. */
static size_t read_chunk(const json_value *v, const char *object, hear_fn *hear, heard *h) {
    const json_value *list = llm_json_get_kind(v, "choices", JSON_ARRAY);
    check_head(v, object);
    if (!CHECK(list && list->n <= 1))
        return 0;
    if (list->n == 1)
        hear(&h[(int)llm_json_get(list->item, "index")->number], list->item, "delta");
    else
        check_usage(v);
    return list->n;
}

static void read_stream(const made *m, const dialect *d, const char *object, hear_fn *hear,
                        heard *h) {
    llm_json_out out = {0};
    llm_json *doc;
    ggl_str type;
    bool done = false, usage = false;
    write_stream(m, d, &out);
    const char *s = out.s;
    while ((doc = next_event(&s, &type, &done))) {
        CHECK(!usage && type.n == 0);
        usage = read_chunk(&doc->root, object, hear, h) == 0;
        llm_json_free(doc);
    }
    CHECK(done && usage == m->a->stream_usage);
    ggl_free(out.s);
}

static void compare(const made *m, const dialect *d, const char *whole, const char *chunk,
                    hear_fn *hear) {
    heard a[MOST_CHOICES] = {0}, b[MOST_CHOICES] = {0};
    read_whole(m, d, whole, hear, a);
    read_stream(m, d, chunk, hear, b);
    for (int k = 0; k < m->x.n_choices; k++) {
        heard want = {0}, brief = {0};
        same_heard(&a[k], &b[k]);
        expect(m, k, &want);
        same_text(&a[k].text, &want.text, "content");
        same_text(&a[k].finish, &want.finish, "finish_reason");
        if (hear == hear_chat) {
            same_text(&a[k].reasoning, &want.reasoning, "reasoning_content");
            same_text(&a[k].calls, &want.calls, "tool_calls");
            shorten(&a[k].logprobs, &brief.logprobs);
            if (m->a->n_top >= 0)
                same_text(&brief.logprobs, &want.logprobs, "tokens");
            else
                CHECK_INT(a[k].logprobs.n, 0);
        }
        forget(&want);
        forget(&brief);
        forget(&a[k]);
        forget(&b[k]);
    }
}

TEST(chats) {
    static const char *const requests[] = {
        "",
        ", \"n\": 3",
        ", \"logprobs\": true",
        ", \"logprobs\": true, \"top_logprobs\": 2, \"n\": 2",
        ", \"stream_options\": {\"include_usage\": true}, \"return_tokens\": true",
        ", \"timings_per_token\": true, \"n\": 2, \"stream_options\": {\"include_usage\": true}"};
    state = sample_seed();
    for (int i = 0; i < 600; i++) {
        char text[300];
        made m;
        snprintf(text, sizeof text,
                 "{\"model\": \"gpt\", \"messages\": [{\"role\": \"user\", \"content\": \"\"}]%s}",
                 requests[i % 6]);
        make(&m, &api_openai_chat, text);
        compare(&m, &api_openai_chat, "chat.completion", "chat.completion.chunk", hear_chat);
        unmake(&m);
    }
}

TEST(completions) {
    static const char *const requests[] = {
        "\"a\"", "\"a\", \"n\": 3", "\"a\", \"logprobs\": 2",
        "[\"a\", \"b\", [3]], \"logprobs\": 0, \"stream_options\": {\"include_usage\": true}"};
    state = sample_seed();
    for (int i = 0; i < 400; i++) {
        char text[300];
        made m;
        snprintf(text, sizeof text, "{\"model\": \"gpt\", \"prompt\": %s}", requests[i % 4]);
        make(&m, &api_openai_completions, text);
        compare(&m, &api_openai_completions, "text_completion", "text_completion", hear_text);
        unmake(&m);
    }
}

/* Members of a completion with log-probabilities, exactly. */
TEST(token_columns) {
    made m;
    llm_json_out out = {0};
    make(&m, &api_openai_completions, "{\"prompt\": \"a\", \"logprobs\": 1}");
    const answer_token t[] = {{.id = 1, .text = {"x\xc3\xa9", 3}, .logprob = NAN},
                              {.id = 2, .text = {"\xe2\x82", 2}, .logprob = -INFINITY},
                              {.id = 3, .text = {"y", 1}, .logprob = -0.5}};
    answer_part p = {.kind = PART_CONTENT, .text = {"xey", 3}, .token = t, .n_tokens = 3};
    m.choice[0] = (answer_choice){.part = &p, .n_parts = 1};
    api_openai_completions.whole(&m.x, &out);
    CHECK_HAS(out.s, "\"logprobs\":{\"tokens\":[\"x\xc3\xa9\",\"bytes:\\\\xe2\\\\x82\",\"y\"],"
                     "\"token_logprobs\":[null,-9999,-0.5],\"top_logprobs\":[null,{},{}],"
                     "\"text_offset\":[0,2,3]}");
    /* the space that a tokenizer puts before a text is not in it */
    const answer_token spaced[] = {{.id = 1, .text = {" Once", 5}},
                                   {.id = 2, .text = {" upon", 5}}};
    const answer_part q = {
        .kind = PART_CONTENT, .text = {"Once upon", 9}, .token = spaced, .n_tokens = 2};
    out.n = 0;
    p = q;
    api_openai_completions.whole(&m.x, &out);
    CHECK_HAS(out.s, "\"text_offset\":[0,4]}");
    /* all bytes of a character are where it begins, and tokens that are not in the text have no length */
    const answer_token split[] = {{.id = 1, .text = {"<s>", 3}, .n_hidden = 3},
                                  {.id = 2, .text = {"a", 1}},
                                  {.id = 3, .text = {"\xe6", 1}},
                                  {.id = 4, .text = {"\x97\xa5", 2}},
                                  {.id = 5, .text = {"<x>", 3}},
                                  {.id = 6, .text = {"\xc3", 1}},
                                  {.id = 7, .text = {"\xa9z", 2}},
                                  {.id = 8, .text = {"y", 1}}};
    p = (answer_part){.kind = PART_CONTENT,
                      .text = {"a\xe6\x97\xa5<x>\xc3\xa9zy", 11},
                      .token = split,
                      .n_tokens = 8};
    out.n = 0;
    api_openai_completions.whole(&m.x, &out);
    CHECK_HAS(out.s, "\"text_offset\":[0,0,1,1,2,5,5,7]}");
    ggl_free(out.s);
    unmake(&m);
}

/* --- responses ---------------------------------------------------------------------------------- */

/* Items as the events build them. */
typedef struct items {
    llm_json_out text[MOST_PARTS], done[MOST_PARTS];
    int n, n_done;
    int64_t sequence;
} items;

static bool is_delta(ggl_str type) {
    return type.n > 6 && memcmp(type.s + type.n - 6, ".delta", 6) == 0;
}

/* The text of an item: of its content, or its arguments. */
static const json_value *item_text(const json_value *item) {
    const json_value *content = llm_json_get_kind(item, "content", JSON_ARRAY);
    return content ? (content->n ? llm_json_get(content->item, "text") : NULL)
                   : llm_json_get(item, "arguments");
}

static void hear_event(items *h, ggl_str type, const json_value *v) {
    const json_value *at = llm_json_get_kind(v, "output_index", JSON_NUMBER);
    const json_value *number = llm_json_get_kind(v, "sequence_number", JSON_NUMBER);
    const int k = at ? (int)at->number : 0;
    CHECK(number && number->number == (double)h->sequence++);
    CHECK(json_str(llm_json_get(v, "type")).n == type.n);
    if (ggl_str_is(type, "response.output_item.added")) {
        CHECK(k == h->n && h->n == h->n_done);
        h->n++;
    } else if (llm_json_get(v, "summary_index")) {
        CHECK(k == h->n - 1); /* the same text once more */
    } else if (is_delta(type)) {
        CHECK(k == h->n - 1);
        hear_string(&h->text[k], v, "delta");
    } else if (ggl_str_is(type, "response.output_item.done")) {
        const json_value *item = llm_json_get(v, "item"), *text = item_text(item);
        CHECK(k == h->n_done++ && k == h->n - 1);
        CHECK(text && text->n == h->text[k].n &&
              (text->n == 0 || !memcmp(text->s, h->text[k].s, text->n)));
        llm_json_put_value(&h->done[k], item);
    }
}

static void check_output(const items *h, const json_value *response) {
    const json_value *output = llm_json_get_kind(response, "output", JSON_ARRAY);
    REQUIRE(output && (int)output->n == h->n);
    for (size_t i = 0; i < output->n; i++) {
        llm_json_out item = {0};
        llm_json_put_value(&item, &output->item[i]);
        same_text(&item, &h->done[i], "item");
        ggl_free(item.s);
    }
}

/* What was made up: texts of one kind that follow each other are an item. One without a text begins none. */
static void check_items(const made *m, const items *h) {
    const answer_choice *c = m->choice;
    int k = -1, open = -1;
    size_t at = 0;
    for (size_t i = 0; i < c->n_parts; i++) {
        const answer_part *p = &c->part[i];
        const ggl_str s = p->kind == PART_CALL ? p->arguments : p->text;
        if (p->kind == PART_CALL || (int)p->kind != open) {
            open = -1;
            if (p->kind != PART_CALL && p->text.n == 0)
                continue;
            open = p->kind == PART_CALL ? -1 : (int)p->kind;
            k++;
            at = 0;
        }
        REQUIRE(k < h->n && at + s.n <= h->text[k].n);
        CHECK(s.n == 0 || memcmp(h->text[k].s + at, s.s, s.n) == 0);
        at += s.n;
    }
    CHECK_INT(k + 1, h->n);
}

static void check_response(made *m, const dialect *d) {
    llm_json_out stream = {0}, whole = {0}, last = {0};
    items h = {0};
    llm_json *doc;
    ggl_str type;
    bool done = false, ended = false;
    write_stream(m, d, &stream);
    const char *s = stream.s;
    while ((doc = next_event(&s, &type, &done))) {
        CHECK(!ended);
        hear_event(&h, type, &doc->root);
        ended = ggl_str_is(type, "response.completed") || ggl_str_is(type, "response.incomplete");
        CHECK(!ended ||
              ggl_str_is(type, "response.incomplete") == (m->choice->finish == FINISH_LENGTH));
        if (ended) {
            check_output(&h, llm_json_get(&doc->root, "response"));
            llm_json_put_value(&last, llm_json_get(&doc->root, "response"));
        }
        llm_json_free(doc);
    }
    CHECK(ended && !done);
    check_items(m, &h);
    memset(m->x.own, 0, d->own_size);
    d->whole(&m->x, &whole);
    if (CHECK_MSG(llm_json_parse(&doc, whole.s, whole.n, "whole", &err) == GGL_OK, "%s", err.msg)) {
        llm_json_out again = {0};
        llm_json_put_value(&again, &doc->root);
        same_text(&again, &last, "whole response");
        CHECK_HAS(whole.s, "\"cached_tokens\":2,\"cache_write_tokens\":0}");
        ggl_free(again.s);
    }
    llm_json_free(doc);
    for (int k = 0; k < MOST_PARTS; k++) {
        ggl_free(h.text[k].s);
        ggl_free(h.done[k].s);
    }
    ggl_free(stream.s);
    ggl_free(whole.s);
    ggl_free(last.s);
}

TEST(responses) {
    static const char *const requests[] = {
        "", ", \"include\": [\"message.output_text.logprobs\"], \"top_logprobs\": 2",
        ", \"reasoning\": {\"summary\": \"auto\"}, \"include\": [\"reasoning.encrypted_content\"]",
        (", \"instructions\": \"x\", \"metadata\": {\"a\": \"b\"}, \"tools\": [{\"type\": "
         "\"function\", \"name\": \"f\"}]")};
    state = sample_seed();
    for (int i = 0; i < 300; i++) {
        char text[300];
        made m;
        snprintf(text, sizeof text, "{\"model\": \"gpt\", \"input\": \"Hi\"%s}", requests[i % 4]);
        make(&m, &api_openai_responses, text);
        check_response(&m, &api_openai_responses);
        unmake(&m);
    }
}

/* A call of a tool with free text, and one of a namespace, as items and as events. */
TEST(calls_of_codex) {
    static const char request[] =
        "{\"input\": \"a\", \"stream\": true, \"tools\": [{\"type\": \"custom\", \"name\": \"p\"}, "
        "{\"type\": \"namespace\", \"name\": \"s\", \"tools\": [{\"type\": \"function\", \"name\": "
        "\"q\"}]}]}";
    static const char *const parts[] = {
        "event: response.custom_tool_call_input.delta\n",
        "\"delta\":\"a\\nb\"",
        "event: response.custom_tool_call_input.done\n",
        "\"input\":\"a\\nb\"}",
        "\"type\":\"custom_tool_call\",\"call_id\":\"i\",\"name\":\"p\",\"input\":\"a\\nb\","
        "\"status\":\"completed\"",
        "\"type\":\"function_call\",\"call_id\":\"j\",\"name\":\"q\",\"namespace\":\"s\","
        "\"arguments\":\"{}\""};
    made m;
    llm_json_out out = {0};
    make(&m, &api_openai_responses, request);
    const answer_part calls[] = {{.kind = PART_CALL,
                                  .name = {"p", 1},
                                  .id = {"i", 1},
                                  .arguments = {"{\"input\": \"a\\nb\"}", 17}},
                                 {.kind = PART_CALL,
                                  .name = {"s__q", 4},
                                  .id = {"j", 1},
                                  .arguments = {"{}", 2},
                                  .call = 1}};
    for (int i = 0; i < 2; i++)
        api_openai_responses.part(&m.x, &m.choice[0], &calls[i], &out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CHECK_HAS(out.s, parts[i]);
    ggl_free(out.s);
    unmake(&m);
}

/* The events and items of reasoning with a summary; of a summary of the conversation; a call of a tool with free text in a chat. */
TEST(further_answers) {
    static const struct {
        const dialect *d;
        const char *request;
        const char *parts[9];
    } rows[] = {
        {&api_openai_responses,
         "{\"input\": \"a\", \"stream\": true, \"reasoning\": {\"summary\": \"concise\"}, "
         "\"include\": [\"reasoning.encrypted_content\"]}",
         {"event: response.reasoning_summary_part.added\n",
          "\"summary_index\":0,\"part\":{\"type\":\"summary_text\",\"text\":\"\"}",
          "event: response.reasoning_summary_text.delta\n", "\"summary_index\":0,\"delta\":\"Hm\"",
          "event: response.reasoning_summary_text.done\n", "\"summary_index\":0,\"text\":\"Hm\"",
          "event: response.reasoning_summary_part.done\n",
          "\"summary\":[{\"type\":\"summary_text\",\"text\":\"Hm\"}],\"encrypted_content\":"
          "\"plain text: Hm\",\"status\":\"completed\""}},
        {&api_openai_responses,
         "{\"input\": [{\"role\": \"user\", \"content\": \"a\"}, {\"type\": "
         "\"compaction_trigger\"}], \"stream\": true}",
         {"\"item\":{\"id\":\"cmp_Ab3_0\",\"type\":\"compaction\",\"encrypted_content\":\"\"}",
          "event: response.compaction.compacting\n",
          "\"item\":{\"id\":\"cmp_Ab3_0\",\"type\":\"compaction\",\"encrypted_content\":"
          "\"Well\"}"}},
        {&api_openai_chat,
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"stream\": true, \"tools\": "
         "[{\"type\": \"custom\", \"custom\": {\"name\": \"p\"}}]}",
         {"\"tool_calls\":[{\"index\":0,\"id\":\"i\",\"type\":\"custom\",\"custom\":{\"name\":"
          "\"p\",\"input\":\"a\\nb\"}}]"}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        made m;
        llm_json_out out = {0};
        make(&m, rows[i].d, rows[i].request);
        const answer_part parts[] = {{.kind = PART_REASONING, .text = {"Hm", 2}},
                                     {.kind = PART_CONTENT, .text = {"Well", 4}},
                                     {.kind = PART_CALL,
                                      .name = {"p", 1},
                                      .id = {"i", 1},
                                      .arguments = {"{\"input\": \"a\\nb\"}", 17}}};
        const size_t n = rows[i].d == &api_openai_chat ? 3 : 2;
        for (size_t k = 0; k < n; k++)
            rows[i].d->part(&m.x, &m.choice[0], &parts[k], &out);
        rows[i].d->end_choice(&m.x, &m.choice[0], &out);
        for (size_t k = 0; k < 9 && rows[i].parts[k]; k++)
            CHECK_HAS(out.s, rows[i].parts[k]);
        CHECK(i != 1 || !strstr(out.s, "Hm"));
        ggl_free(out.s);
        unmake(&m);
    }
}

/* --- embeddings and errors ---------------------------------------------------------------------- */

static int digit_value(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    return at && c ? (int)(at - digits) : -1;
}

/* Decodes base64 bit by bit; returns the number of bytes. */
static size_t decode(ggl_str s, unsigned char *out) {
    size_t bits = 0;
    for (size_t i = 0; i < s.n && s.s[i] != '='; i++)
        for (int b = 5; b >= 0; b--, bits++) {
            out[bits / 8] = bits % 8 ? out[bits / 8] : 0;
            out[bits / 8] |= (unsigned char)((digit_value(s.s[i]) >> b & 1) << (7 - bits % 8));
        }
    return bits / 8;
}

TEST(embeddings) {
    for (int base64 = 0; base64 < 2; base64++) {
        made m;
        llm_json_out out = {0};
        llm_json *doc = NULL;
        make(
            &m, &api_openai_embeddings,
            base64
                ? "{\"model\": \"gpt\", \"input\": [\"a\", \"b\"], \"encoding_format\": \"base64\"}"
                : "{\"model\": \"gpt\", \"input\": [\"a\", \"b\"]}");
        api_openai_embeddings.whole(&m.x, &out);
        REQUIRE(llm_json_parse(&doc, out.s, out.n, "whole", &err) == GGL_OK);
        const json_value *data = llm_json_get_kind(&doc->root, "data", JSON_ARRAY);
        REQUIRE(data && data->n == 2);
        for (int i = 0; i < 2; i++) {
            const json_value *v = llm_json_get(&data->item[i], "embedding");
            unsigned char bytes[40];
            CHECK(llm_json_get(&data->item[i], "index")->number == i);
            if (base64)
                CHECK(decode(json_str(v), bytes) == 20 && memcmp(bytes, vectors[i], 20) == 0);
            for (int k = 0; k < 5 && !base64; k++)
                CHECK((float)v->item[k].number == vectors[i][k]);
        }
        llm_json_free(doc);
        ggl_free(out.s);
        unmake(&m);
    }
}

/* Programs find out that a prompt is too long by names, numbers and words of the APIs' own servers. */
TEST(prompts_that_are_too_long) {
    static const struct {
        const dialect *d;
        const char *text;
    } rows[] = {
        {&api_openai_chat, "\"type\":\"exceed_context_size_error\",\"param\":null,"
                           "\"code\":\"context_length_exceeded\",\"n_prompt_tokens\":900,"
                           "\"n_ctx\":512}}"},
        {&api_openai_responses, "\"code\":\"context_length_exceeded\",\"n_prompt_tokens\":900"},
        {&api_anthropic_messages, "\"type\": \"invalid_request_error\", \"message\": "
                                  "\"prompt is too long: 900 tokens > 512 maximum\""},
        {&api_llamacpp_completion, "\"type\": \"exceed_context_size_error\","
                                   "\"n_prompt_tokens\":900,\"n_ctx\":512}}"}};
    const api_error e = {
        .status = 400, .type = "too_long", .message = "m", .n_prompt = 900, .n_ctx = 512};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        llm_json_out out = {0};
        rows[i].d->error(&e, false, &out);
        CHECK_HAS(out.s, rows[i].text);
        ggl_free(out.s);
    }
}

TEST(errors) {
    const api_error e = {.status = 401,
                         .type = "authentication",
                         .message = "the \"key\" is wrong",
                         .param = "model"};
    llm_json_out out = {0};
    api_openai_chat.error(&e, false, &out);
    CHECK_STR(
        out.s,
        "{\"error\":{\"message\":\"the \\\"key\\\" is wrong\",\"type\":\"authentication_error\","
        "\"param\":\"model\",\"code\":\"invalid_api_key\"}}");
    out.n = 0;
    api_openai_chat.error(&(api_error){.status = 500, .type = "server_error", .message = "m"}, true,
                          &out);
    CHECK_STR(out.s, "data: "
                     "{\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"param\":null,"
                     "\"code\":null}}\n\n");
    static const struct {
        const char *param, *code, *want;
    } rows[] = {{"model", NULL, "\"code\":\"model_not_found\""},
                {"input", NULL, "\"code\":\"not_found\""},
                {"input", "own", "\"code\":\"own\""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const api_error gone = {
            .type = "not_found", .message = "m", .param = rows[i].param, .code = rows[i].code};
        out.n = 0;
        api_openai_chat.error(&gone, false, &out);
        CHECK_HAS(out.s, rows[i].want);
    }
    out.n = 0;
    api_openai_responses.error(&(api_error){.status = 500, .type = "timeout", .message = "m"}, true,
                               &out);
    CHECK_STR(out.s,
              "event: error\ndata: "
              "{\"type\":\"error\",\"sequence_number\":0,\"code\":\"timeout\",\"message\":\"m\","
              "\"param\":null,\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"param\":"
              "null,\"code\":"
              "\"timeout\"}}\n\n");
    ggl_free(out.s);
}

/* --- memory ------------------------------------------------------------------------------------- */

static bool writes(void *arg) {
    made *m = arg;
    llm_json_out out = {0};
    memset(m->x.own, 0, api_openai_responses.own_size);
    api_openai_responses.whole(&m->x, &out);
    const bool ok = !out.failed;
    ggl_free(out.s);
    return ok;
}

TEST(allocation_failures) {
    made m;
    state = 5;
    do
        make(&m, &api_openai_responses,
             "{\"input\": \"Hi\", \"include\": [\"message.output_text.logprobs\"], "
             "\"top_logprobs\": 2}");
    while (m.choice->n_parts < 5 && (unmake(&m), true));
    CHECK(alloc_fail_each(writes, &m) > 5);
    unmake(&m);
}
