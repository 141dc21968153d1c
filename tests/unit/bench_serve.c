/* What `llm-bench serve` sends and reads: texts from seeds, bodies, streams of events. */
#include "../../models/common/json.h"
#include "llm-bench/serve_stream.h"
#include "llm-bench/serve_text.h"
#include "ggl/internal/os_stream.h"
#include "test.h"

/* --- streams ---------------------------------------------------------------------------------- */

/* A stream made from a seed, and what must be read from it. */
typedef struct made {
    char bytes[1 << 14];
    size_t n;
    char text[1 << 12];
    size_t n_text;
    int64_t n_pieces, completion;
    const char *line_end;
} made;

static size_t below(uint64_t *state, size_t n) {
    return (size_t)(serve_random(state) % n);
}

static void put(made *m, const char *s) {
    size_t n = strlen(s);
    memcpy(m->bytes + m->n, s, n);
    m->n += n;
}

/* Ends a line, as all lines of this stream: "\r" and "\n" of two lines would be one end. */
static void put_end(made *m) {
    put(m, m->line_end);
}

/* Puts an event: its JSON on one line or two, among lines that must be skipped. */
static void put_event(made *m, uint64_t *r, const char *json) {
    static const char *const noise[] = {": comment", "event: message", "id: 7",
                                        "data",      "datax: 1",       "retry: 10"};
    for (size_t i = below(r, 3); i > 0; i--) {
        put(m, noise[below(r, 6)]);
        put_end(m);
    }
    const char *comma = strstr(json, ", ");
    if (comma && below(r, 3) == 0) { /* white space of JSON may be the end of a line */
        char head[256];
        snprintf(head, sizeof head, "data:%.*s", (int)(comma + 1 - json), json);
        put(m, head);
        put_end(m);
        json = comma + 1;
    }
    put(m, below(r, 2) ? "data: " : "data:");
    put(m, json);
    put_end(m);
    put_end(m);
    if (below(r, 4) == 0) /* an event without data is none */
        put_end(m);
}

static void put_piece(made *m, uint64_t *r, bool chat, bool finished) {
    static const char *const texts[][2] = {{"a", "a"},
                                           {" b\\n", " b\n"},
                                           {"\\u00e9\\ud83d\\ude00", "\xc3\xa9\xf0\x9f\x98\x80"},
                                           {"data: [DONE]", "data: [DONE]"},
                                           {"", ""}};
    size_t k = below(r, 5);
    char json[256];
    snprintf(json, sizeof json,
             chat ? "{\"choices\": [{\"delta\": {\"content\": \"%s\"}, \"finish_reason\": %s}]}"
                  : "{\"choices\": [{\"text\": \"%s\", \"finish_reason\": %s}], \"usage\": null}",
             texts[k][0], finished ? "\"stop\"" : "null");
    put_event(m, r, json);
    size_t n = strlen(texts[k][1]);
    memcpy(m->text + m->n_text, texts[k][1], n);
    m->n_text += n;
    m->n_pieces += n > 0 || !finished; /* an empty text at the end is not a token */
}

static void make(made *m, uint64_t seed) {
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    uint64_t r = seed;
    bool chat = below(&r, 2) == 0;
    *m = (made){.completion = -1, .line_end = ends[below(&r, 3)]};
    if (chat)
        put_event(m, &r,
                  "{\"choices\": [{\"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}");
    size_t n = below(&r, 20);
    for (size_t i = 0; i < n; i++)
        put_piece(m, &r, chat, false);
    put_piece(m, &r, chat, true);
    if (below(&r, 2) == 0) {
        char json[128];
        m->completion = (int64_t)below(&r, 1000);
        snprintf(json, sizeof json,
                 "{\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": %d}}",
                 (int)m->completion);
        put_event(m, &r, json);
    }
    if (below(&r, 2) == 0)
        put_event(m, &r, "[DONE]");
}

static void count(void *ctx) {
    ++*(int64_t *)ctx;
}

/* Feeds the stream in pieces of random lengths up to `most`. */
static void check_made(const made *m, uint64_t seed, size_t most) {
    int64_t arrived = 0;
    serve_answer a = {.arrived = count, .ctx = &arrived};
    ggl_error err = {0};
    uint64_t r = seed;
    for (size_t i = 0, n; i < m->n; i += n) {
        n = 1 + below(&r, most);
        n = n < m->n - i ? n : m->n - i;
        REQUIRE_OK(serve_answer_feed(&a, m->bytes + i, n, &err), &err);
    }
    CHECK_OK(serve_answer_end(&a, &err), &err);
    CHECK_MSG(a.text.n == m->n_text && memcmp(a.text.s ? a.text.s : "", m->text, m->n_text) == 0,
              "seed %" PRIu64 ": '%.*s'", seed, (int)a.text.n, a.text.s);
    CHECK_INT(a.n_pieces, m->n_pieces);
    CHECK_INT(arrived, m->n_pieces);
    CHECK_INT(a.completion_tokens, m->completion);
    CHECK_INT(a.prompt_tokens, m->completion < 0 ? -1 : 7);
    CHECK_INT(a.cached_tokens, -1);
    serve_answer_fini(&a);
}

TEST(streams) {
    static made m;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make(&m, seed);
        check_made(&m, seed, 1);
        check_made(&m, seed, 5);
        check_made(&m, seed, sizeof m.bytes);
    }
}

/* Reads a whole stream; returns the message of the error, or "". */
static const char *read_all(const char *s, ggl_error *err) {
    serve_answer a = {0};
    *err = (ggl_error){0};
    if (serve_answer_feed(&a, s, strlen(s), err) == GGL_OK)
        (void)!serve_answer_end(&a, err);
    serve_answer_fini(&a);
    return err->msg;
}

TEST(broken_streams) {
#define PIECE "data: {\"choices\": [{\"text\": \"a\"}]}\n\n"
    static const struct {
        const char *s, *words;
    } all[] = {
        {"", "not a stream of events"},
        {"{\"choices\": []}", "not a stream of events"},
        {"<html>\n\n", "not a stream of events"},
        {PIECE, "breaks off after 1 pieces"},
        {PIECE "data: [DONE]", "breaks off"}, /* an event ends with an empty line */
        {PIECE "data: {\n\n", "an event of the answer:"},
        {"data: 7\n\n", "is a number, not an object"},
        {"data: {}\n\n", "has no `choices`"},
        {"data: {\"error\": {\"message\": \"too long\"}}\n\n",
         "the server ends the answer: too long"},
        {"data: {\"error\": \"bad\"}\n\n", "the server ends the answer: bad"},
        {"data: [DONE]\n\n" PIECE, "goes on after [DONE]"},
        {"data: {\"choices\": [{\"text\": \"\\ud800\"}]}\n\n", "an event of the answer:"},
    };
    ggl_error err;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK_HAS(read_all(all[i].s, &err), all[i].words);
    CHECK_STR(read_all("data: {\"choices\": [{\"text\": 5, \"finish_reason\": \"x\"}]}\n\n", &err),
              "");
    CHECK_STR(read_all("data: {\"choices\": [7, {}]}\n\ndata: [DONE]\n\n", &err), "");
}

TEST(hostile_usage) {
    static const char *const counts[] = {"-3",   "1e300", "0.5",   "\"7\"",
                                         "null", "[]",    "1e400", "NaN"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char s[160];
        ggl_error err = {0};
        serve_answer a = {0};
        snprintf(s, sizeof s, "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": %s}}\n\n",
                 counts[i]);
        if (serve_answer_feed(&a, s, strlen(s), &err) == GGL_OK)
            CHECK_INT(a.prompt_tokens, -1);
        serve_answer_fini(&a);
    }
}

TEST(long_lines_end) {
    static char block[1 << 20];
    ggl_error err = {0};
    serve_answer a = {0};
    ggl_status st = GGL_OK;
    size_t n = 0;
    memset(block, 'x', sizeof block);
    for (; n < 64 && st == GGL_OK; n++)
        st = serve_answer_feed(&a, block, sizeof block, &err);
    CHECK_INT(st, GGL_LIMIT);
    CHECK_INT(n, 17);
    serve_answer_fini(&a);
}

TEST(error_texts) {
    char buf[12];
#define TEXT(s) serve_error_text(s, strlen(s), buf, sizeof buf)
    CHECK_STR(TEXT("{\"error\": {\"message\": \"full\", \"code\": 429}}"), "full");
    CHECK_STR(TEXT("{\"error\": \"full\"}"), "full");
    CHECK_STR(TEXT("{\"message\": \"full\"}"), "full");
    CHECK_STR(TEXT("{\"error\": {\"message\": 7}}"), "{\"error\": {");
    CHECK_STR(TEXT("Bad\nrequest"), "Bad");
    CHECK_STR(TEXT(""), "");
    CHECK_STR(TEXT("0123456789abcdef"), "0123456789a");
}

/* --- requests --------------------------------------------------------------------------------- */

static char *words_of(uint64_t seed, size_t n) {
    os_memory_stream s;
    if (!ggl_os_memory_stream_open(&s))
        abort();
    serve_put_words(s.to, seed, n);
    if (!ggl_os_memory_stream_close(&s))
        abort();
    return s.text;
}

TEST(words) {
    char *a = words_of(1, 50), *b = words_of(1, 50), *c = words_of(2, 50), *none = words_of(3, 0);
    size_t spaces = 0;
    for (const char *s = a; *s; s++) {
        spaces += *s == ' ';
        CHECK(*s == ' ' || (*s >= 'a' && *s <= 'z'));
    }
    CHECK_INT(spaces, 49);
    CHECK_STR(a, b);
    CHECK(strcmp(a, c) != 0);
    CHECK_STR(none, "");
    /* the bytes are the same on all machines, and in all versions that results are compared with */
    char *known = words_of(serve_seed(1, 2, 3, 4), 6);
    CHECK_STR(known, "carry above finger picture clear member");
    free(a), free(b), free(c), free(none), free(known);
}

TEST(gaps) {
    double sum = 0;
    uint64_t state = 5;
    for (int i = 0; i < 100000; i++) {
        double gap = serve_gap(&state, 4);
        CHECK(gap > 0);
        sum += gap;
    }
    CHECK_MSG(sum / 100000 > 0.245 && sum / 100000 < 0.255, "mean %g", sum / 100000);
}

TEST(bodies) {
    const char *field[] = {"top_k=3", "a\"b={\"c\": [1]}"};
    os_memory_stream s;
    REQUIRE(ggl_os_memory_stream_open(&s));
    serve_put_body(s.to, &(serve_body){.model = "m\"\n",
                                       .prompt = "a\t\"b\"",
                                       .n_prompt = 5,
                                       .max_tokens = 9,
                                       .seed = 11,
                                       .temperature = 0.25,
                                       .ignore_eos = true,
                                       .field = field,
                                       .n_fields = 2});
    REQUIRE(ggl_os_memory_stream_close(&s));
    llm_json *doc = NULL;
    ggl_error err = {0};
    REQUIRE_OK(llm_json_parse(&doc, s.text, s.n, "body", &err), &err);
    const json_value *v = &doc->root;
    CHECK(llm_json_is(llm_json_get(v, "model"), "m\"\n"));
    CHECK(llm_json_is(llm_json_get(v, "prompt"), "a\t\"b\""));
    CHECK(llm_json_get(v, "max_tokens")->number == 9 && llm_json_get(v, "seed")->number == 11);
    CHECK(llm_json_get(v, "temperature")->number == 0.25);
    CHECK(llm_json_get(v, "ignore_eos")->flag && llm_json_get(v, "stream")->flag);
    CHECK(llm_json_get(v, "top_k")->number == 3);
    CHECK(llm_json_get_kind(llm_json_get(v, "a\"b"), "c", JSON_ARRAY) != NULL);
    CHECK(!llm_json_get(v, "messages"));
    llm_json_free(doc);
    free(s.text);
}

TEST(fields) {
    static const char *const good[] = {"top_k=3", "a=null", "a=\"=\"", "b= [1] "};
    static const char *const bad[] = {"",
                                      "=",
                                      "a",
                                      "=1",
                                      "a=",
                                      "a=x",
                                      "a=1 2",
                                      "a={",
                                      "model=\"m\"",
                                      "stream=false",
                                      "ignore_eos=true"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(!serve_check_field(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(serve_check_field(bad[i]), "%s", bad[i]);
}
