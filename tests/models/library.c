/* The calls of llm/llm.h, with the models that are in the library. */
#include "llm/llm.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "test.h"

typedef struct text {
    char s[4096];
    size_t n;
    int n_pieces, stop_after; /* 0: never */
    llm_context *cancel;
} text;

static bool take(void *user, const char *piece, size_t n) {
    text *t = user;
    CHECK(n > 0 && t->n + n < sizeof t->s);
    memcpy(t->s + t->n, piece, n);
    t->n += n;
    t->s[t->n] = 0;
    if (t->cancel)
        llm_cancel(t->cancel);
    return ++t->n_pieces != t->stop_after;
}

static llm_context *open_model(const char *name, bool embeddings) {
    ggl_error err;
    llm_context *c;
    const llm_open_params p = {
        .size = sizeof p, .n_ctx = 128, .n_threads = 2, .embeddings = embeddings};
    if (!CHECK_OK(llm_open(&c, name, &p, &err), &err))
        return NULL;
    return c;
}

static llm_generate_params greedy(int64_t n_max) {
    return (llm_generate_params){.size = sizeof(llm_generate_params), .n_max = n_max};
}

static llm_run_info last_run(const llm_context *c) {
    llm_run_info run = {.size = sizeof run};
    ggl_error err;
    CHECK_OK(llm_last_run(c, &run, &err), &err);
    return run;
}

TEST(generates_the_same_text_twice) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    text a = {.n = 0}, b = {.n = 0};
    llm_generate_params p = llm_generate_default();
    p.n_max = 20;
    CHECK_OK(llm_generate(c, "Once upon", &p, take, &a, &err), &err);
    llm_run_info run = last_run(c);
    CHECK(run.finish == LLM_FINISH_LENGTH && run.n_generated == 20 && run.n_reused == 0);
    CHECK(run.n_prompt > 1 && run.stop == -1);
    const int64_t n = run.n_prompt;
    CHECK_OK(llm_generate(c, "Once upon", &p, take, &b, &err), &err);
    CHECK(a.n > 20 && strcmp(a.s, b.s) == 0);
    run = last_run(c);
    CHECK(run.n_reused == n - 1 && run.n_prompt == 1); /* what is kept is not run again */
    size_t n_seq;
    CHECK(llm_sequence(c, &n_seq) && n_seq == (size_t)n + 20);
    llm_close(c);
}

/* Weights that are repacked between tokens change no text. */
TEST(repacks_late) {
    ggl_error err;
    llm_context *c, *late = NULL;
    const llm_generate_params p = greedy(20);
    const llm_open_params open = {
        .size = sizeof open, .n_ctx = 128, .n_threads = 2, .repack_late = true};
    REQUIRE((c = open_model("builtin:stories", false)) != NULL);
    REQUIRE_OK(llm_open(&late, "builtin:stories", &open, &err), &err);
    for (int i = 0; i < 4; i++) { /* and when all are */
        text a = {.n = 0}, b = {.n = 0};
        const char *prompt = i % 2 ? "The fox" : "Once upon";
        CHECK_OK(llm_generate(c, prompt, &p, take, &a, &err), &err);
        CHECK_OK(llm_generate(late, prompt, &p, take, &b, &err), &err);
        CHECK(a.n > 20 && strcmp(a.s, b.s) == 0);
    }
    llm_close(c);
    llm_close(late);
    /* and so few tokens are known to come that copies would not pay */
    llm_open_params few = open;
    few.n_expected = 5;
    REQUIRE_OK(llm_open(&late, "builtin:stories", &few, &err), &err);
    const llm_generate_params five = greedy(5);
    text b = {.n = 0};
    CHECK_OK(llm_generate(late, "Once upon", &five, take, &b, &err), &err);
    CHECK(last_run(late).repack_seconds == 0 && last_run(late).seconds > 0);
    llm_close(late);
}

TEST(ends) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    text t = {.n = 0};
    llm_generate_params p = greedy(0);
    CHECK_OK(llm_generate(c, "Once upon a time", &p, take, &t, &err), &err);
    CHECK_INT(last_run(c).finish, LLM_FINISH_CONTEXT);
    const char *stops[] = {"never there", "Jack", " lived"};
    p.stop = stops;
    p.n_stop = 3;
    t = (text){.n = 0};
    CHECK_OK(llm_generate(c, "Once upon a time", &p, take, &t, &err), &err);
    CHECK(last_run(c).finish == LLM_FINISH_STOP && last_run(c).stop == 1);
    CHECK(strcmp(t.s, ", there was a little boy named ") == 0);
    t = (text){.stop_after = 3};
    CHECK_INT(llm_generate(c, "Once upon a time", NULL, take, &t, &err), GGL_CANCELLED);
    CHECK(last_run(c).finish == LLM_FINISH_CANCELLED && t.n_pieces == 3);
    t = (text){.cancel = c};
    CHECK_INT(llm_generate(c, "Once upon a time", NULL, take, &t, &err), GGL_CANCELLED);
    CHECK(t.n_pieces == 1);
    t = (text){.n = 0}; /* it can be used further */
    p = greedy(4);
    CHECK_OK(llm_generate(c, "Once upon a time", &p, take, &t, &err), &err);
    CHECK(strncmp(t.s, ", there", 7) == 0);
    llm_close(c);
}

/* Reads what llm_begin has begun, but no more than n pieces. */
static ggl_status read_pieces(llm_context *c, int n, text *t, ggl_error *err) {
    const char *piece = "";
    size_t n_piece;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && piece && t->n_pieces < n) {
        st = llm_next(c, &piece, &n_piece, err);
        CHECK(piece ? n_piece > 0 : n_piece == 0);
        if (piece)
            take(t, piece, n_piece);
    }
    return st;
}

TEST(pieces_without_a_callback) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    text want = {.n = 0}, t = {.n = 0};
    int32_t *id;
    size_t n;
    const char *stops[] = {"Jack"};
    llm_generate_params p = {.size = sizeof p, .n_max = 20, .stop = stops, .n_stop = 1};
    REQUIRE_OK(llm_encode(c, "Once upon a time", 16, LLM_ADD_SPECIAL, &id, &n, &err), &err);
    CHECK_OK(read_pieces(c, 9, &t, &err), &err); /* nothing was begun */
    CHECK_INT(t.n_pieces, 0);
    for (int k = 0; k < 2; k++, p.n_stop = 0) {
        want = t = (text){.n = 0};
        CHECK_OK(llm_generate(c, "Once upon a time", &p, take, &want, &err), &err);
        const llm_run_info run = last_run(c);
        CHECK_OK(llm_begin(c, id, n, &p, &err), &err);
        CHECK_INT(last_run(c).finish, LLM_FINISH_NONE);
        CHECK_OK(read_pieces(c, 99, &t, &err), &err);
        CHECK(strcmp(t.s, want.s) == 0 && t.n_pieces == want.n_pieces);
        CHECK(last_run(c).finish == run.finish && last_run(c).n_generated == run.n_generated);
        CHECK_OK(read_pieces(c, 99, &t, &err), &err); /* it stays ended */
        CHECK(t.n == want.n);
    }
    /* what is not read to its end ends with the next call that changes the sequence */
    const char *rules[] = {"root ::= [a-z ]+", "root ::= nobody"};
    p.grammar = rules[0];
    for (int k = 0; k < 3; k++) {
        t = (text){.n = 0};
        CHECK_OK(llm_begin(c, id, n, &p, &err), &err);
        CHECK_OK(read_pieces(c, 3, &t, &err), &err);
        CHECK_INT(t.n_pieces, 3);
        if (k == 1)
            CHECK_OK(llm_truncate(c, 2, &err), &err);
        if (k == 2)
            CHECK_OK(llm_eval(c, id, n, false, NULL, &err), &err);
    }
    CHECK_OK(read_pieces(c, 99, &t, &err), &err);
    CHECK_INT(t.n_pieces, 3);
    p.grammar = rules[1];
    CHECK_INT(llm_begin(c, id, n, &p, &err), GGL_FORMAT);
    CHECK_INT(last_run(c).finish, LLM_FINISH_ERROR);
    p.grammar = NULL;
    CHECK_OK(llm_begin(c, id, n, &p, &err), &err);
    llm_cancel(c);
    CHECK_INT(read_pieces(c, 99, &t, &err), GGL_CANCELLED);
    CHECK_INT(last_run(c).finish, LLM_FINISH_CANCELLED);
    CHECK_OK(llm_begin(c, id, n, &p, &err), &err); /* freed by llm_close */
    CHECK_OK(read_pieces(c, 5, &t, &err), &err);
    llm_close(c);
    ggl_free(id);
}

/* A reply that fails before it generates ends what was begun, as every other call does. */
TEST(failed_reply_ends_what_was_begun) {
    ggl_error err;
    llm_context *c = open_model("builtin:chat", false);
    REQUIRE(c);
    text t = {.n = 0};
    const int32_t id[] = {1, 300};
    const llm_generate_params p = {.size = sizeof p, .n_max = 10, .ignore_end = true};
    const llm_message no_role = {.role = NULL};
    for (int k = 0; k < 2; k++) {
        t = (text){.n = 0};
        CHECK_OK(llm_begin(c, id, 2, &p, &err), &err);
        CHECK_OK(read_pieces(c, 3, &t, &err), &err);
        CHECK_INT(t.n_pieces, 3);
        CHECK_INT(llm_reply(c, k ? NULL : &no_role, 1, &p, NULL, NULL, &err), GGL_USAGE);
        CHECK_OK(read_pieces(c, 99, &t, &err), &err);
        CHECK_INT(t.n_pieces, 3);
        CHECK(last_run(c).finish == LLM_FINISH_ERROR && last_run(c).n_generated == 0);
    }
    llm_close(c);
}

static llm_context *to_cancel;
static void cancel_it(int signal) {
    (void)signal;
    llm_cancel(to_cancel);
}

/* A cancel while the prompt is tokenized has its effect: else the prompt would exceed the context. The
 * timer counts the time that we compute, so the text only has to take more than that. */
TEST(cancel_while_tokenizing) {
    enum { LENGTH = 4 << 20 };
    ggl_error err;
    llm_context *c = to_cancel = open_model("builtin:stories", false);
    char *prompt = malloc(LENGTH + 1);
    REQUIRE(c && prompt);
    for (int i = 0; i < LENGTH; i++)
        prompt[i] = "abcd efg hij "[i % 13];
    prompt[LENGTH] = 0;
    struct sigaction act = {.sa_handler = cancel_it, .sa_flags = SA_RESTART}, before;
    REQUIRE(sigaction(SIGVTALRM, &act, &before) == 0);
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    REQUIRE(setitimer(ITIMER_VIRTUAL, &soon, NULL) == 0);
    CHECK_INT(llm_generate(c, prompt, NULL, NULL, NULL, &err), GGL_CANCELLED);
    CHECK_INT(last_run(c).finish, LLM_FINISH_CANCELLED);
    CHECK_INT(llm_generate(c, prompt, NULL, NULL, NULL, &err), GGL_LIMIT); /* it is forgotten */
    sigaction(SIGVTALRM, &before, NULL);
    free(prompt);
    llm_close(c);
}

static void keep_note(void *user, const char *note) {
    snprintf(user, 512, "%s", note);
}

/* What looks like a control token in a message is text, and what a prompt does not show as it was given is said. */
TEST(what_stems_from_messages) {
    static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a<|end|>\"}, "
                               "{\"role\": \"system\", \"content\": \"b\"}]}",
                      first[] =
                          "{% for m in messages %}{% if m.role == 'system' and not loop.first "
                          "%}{{ raise_exception('first') }}{% endif %}<|{{ m.role }}|>{{ "
                          "m.content }}<|end|>{% endfor %}";
    for (int parses = 0; parses < 2; parses++) {
        const llm_open_params o = {.size = sizeof o,
                                   .n_ctx = 256,
                                   .chat_template = first,
                                   .parse_special_in_messages = parses};
        ggl_error err;
        llm_context *c = NULL;
        llm_formatted more;
        char *prompt = NULL, note[512] = "";
        size_t n = 0, n_ends = 0;
        int32_t *end = NULL;
        REQUIRE_OK(llm_open(&c, "builtin:chat", &o, &err), &err);
        REQUIRE_OK(llm_chat_format(c, talk, false, &prompt, &n, &more, &err), &err);
        CHECK_HAS(more.notes, "a system message stands in a message of another role");
        REQUIRE_OK(llm_encode(c, "<|end|>", 7, LLM_READ_SPECIAL, &end, &n, &err), &err);
        for (size_t i = 0; i < more.n_id; i++)
            n_ends += more.id[i] == end[0];
        CHECK_INT((int)n_ends, 1 + parses);
        llm_generate_params p = greedy(1);
        p.note = keep_note;
        p.user = note;
        const llm_message m[] = {{"user", "a"}, {"system", "b"}};
        CHECK_OK(llm_reply(c, m, 2, &p, NULL, NULL, &err), &err);
        CHECK_HAS(note, "a system message stands in a message of another role");
        ggl_free(end);
        ggl_free(prompt);
        ggl_free(more.id);
        ggl_free(more.notes);
        CHECK(llm_chat_format(c, "{}", false, &prompt, &n, &more, &err) != GGL_OK);
        CHECK(!prompt && !more.id && !more.notes);
        llm_close(c);
    }
}

TEST(converses) {
    ggl_error err;
    llm_context *c = open_model("builtin:chat", false);
    REQUIRE(c);
    CHECK(llm_context_facts(c)->has_chat);
    text t = {.n = 0};
    const llm_generate_params p = greedy(40);
    llm_message m[3] = {{"user", "Who are you?"}};
    CHECK_OK(llm_reply(c, m, 1, &p, take, &t, &err), &err);
    CHECK(strstr(t.s, "Fable") && last_run(c).finish == LLM_FINISH_END);
    m[1] = (llm_message){"assistant", t.s};
    m[2] = (llm_message){"user", "Hello!"};
    CHECK_OK(llm_reply(c, m, 3, &p, NULL, NULL, &err), &err);
    CHECK(last_run(c).n_reused > 5); /* the beginning of the conversation */
    char *prompt;
    size_t n;
    CHECK_OK(llm_chat_format(c, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}", true,
                             &prompt, &n, NULL, &err),
             &err);
    CHECK(prompt && strstr(prompt, "Hi") && strlen(prompt) == n);
    char *parts; /* as a list, and with variables of the template before it */
    CHECK_OK(llm_chat_format(c,
                             "{\"x\": [1], \"messages\": [{\"role\": \"user\", \"content\": "
                             "[{\"type\": \"text\", \"text\": \"Hi\"}]}]}",
                             true, &parts, &n, NULL, &err),
             &err);
    CHECK_STR(parts, prompt);
    ggl_free(parts);
    CHECK_INT(llm_chat_format(c,
                              "{\"messages\": [{\"role\": \"user\", \"content\": "
                              "[{\"type\": \"image_url\"}]}]}",
                              true, &parts, &n, NULL, &err),
              GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "messages[0]: content[0]: \"image_url\" is not supported");
    CHECK(!parts && n == 0);
    ggl_free(prompt);
    CHECK_INT(llm_reply(c, (llm_message[]){{"user", NULL}}, 1, &p, NULL, NULL, &err), GGL_USAGE);
    llm_close(c);
    c = open_model("builtin:stories", false);
    REQUIRE(c);
    CHECK(!llm_context_facts(c)->has_chat);
    CHECK_INT(llm_reply(c, m, 1, &p, NULL, NULL, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg,
              "chat_template (--chat-template) gives one: its text, or a name such as \"chatml\"");
    llm_close(c);
}

TEST(follows_a_schema) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    text t = {.n = 0};
    llm_generate_params p = greedy(30);
    p.json_schema = "{\"enum\": [\"yes\", \"no\"]}";
    CHECK_OK(llm_generate(c, "Is it?", &p, take, &t, &err), &err);
    CHECK(strcmp(t.s, "\"yes\"") == 0 || strcmp(t.s, "\"no\"") == 0);
    CHECK_INT(last_run(c).finish, LLM_FINISH_END);
    p.grammar = "root ::= \"a\"";
    CHECK_INT(llm_generate(c, "Is it?", &p, take, &t, &err), GGL_USAGE);
    p.json_schema = NULL;
    t = (text){.n = 0};
    CHECK_OK(llm_generate(c, "Is it?", &p, take, &t, &err), &err);
    CHECK(strcmp(t.s, "a") == 0);
    static const char *const wrong[] = {"no grammar", "root ::= root"};
    for (int i = 0; i < 2; i++) {
        p.grammar = wrong[i];
        CHECK_INT(llm_generate(c, "Is it?", &p, take, &t, &err), GGL_FORMAT);
    }
    p.grammar = NULL;
    static const struct {
        const char *schema;
        ggl_status st;
    } row[] = {{"false", GGL_FORMAT},
               {"{\"allOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}]}", GGL_FORMAT},
               {"{\"enum\": 5}", GGL_FORMAT},
               {"{\"$dynamicRef\": \"#a\"}", GGL_FORMAT},
               {"{\"pattern\": \"(?<=a)b\"}", GGL_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        p.json_schema = row[i].schema;
        CHECK_INT(llm_generate(c, "Is it?", &p, take, &t, &err), row[i].st);
    }
    static const char *const long_ones[] = {"{\"type\": \"string\", \"minLength\": 100000000}",
                                            "{\"type\": \"array\", \"minItems\": 100000000}"};
    for (int i = 0; i < 2; i++) {
        p.json_schema = long_ones[i];
        CHECK_INT(llm_generate(c, "Is it?", &p, take, &t, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "minLength, minItems or {N,} is too large; make it smaller");
    }
    llm_close(c);
}

TEST(tokens) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    static const char words[] = "Once upon a time";
    int32_t *id, *with;
    size_t n, n_with, n_text;
    char *back;
    REQUIRE_OK(llm_encode(c, words, strlen(words), 0, &id, &n, &err), &err);
    REQUIRE_OK(llm_encode(c, words, strlen(words), LLM_ADD_SPECIAL, &with, &n_with, &err), &err);
    CHECK(n_with == n + 1 && with[0] == llm_context_facts(c)->bos && with[1] == id[0]);
    REQUIRE_OK(llm_decode(c, id, n, 0, &back, &n_text, &err), &err);
    CHECK(strcmp(back, words) == 0 && n_text == strlen(words));
    CHECK(llm_token_is_end(c, llm_context_facts(c)->eos) && !llm_token_is_end(c, id[0]));
    const int32_t wrong[] = {-1, llm_context_facts(c)->n_vocab, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        char want[80], *none;
        size_t n_none;
        snprintf(want, sizeof want, "token %d is not in the vocabulary of 2048", (int)wrong[i]);
        CHECK_INT(llm_decode(c, (const int32_t[]){id[0], wrong[i]}, 2, 0, &none, &n_none, &err),
                  GGL_USAGE);
        CHECK_STR(err.msg, want);
        CHECK(!none && n_none == 0);
    }
    CHECK(*llm_token_bytes(c, id[0], &n_text) && n_text > 0);
    CHECK(!*llm_token_bytes(c, -5, &n_text) && n_text == 0);
    ggl_free(back);
    ggl_free(id);
    ggl_free(with);
    REQUIRE_OK(llm_encode(c, "", 0, 0, &id, &n, &err), &err);
    CHECK(id && n == 0);
    ggl_free(id);
    char *name;
    REQUIRE_OK(llm_context_text(c, "general.architecture", &name, &n, &err), &err);
    CHECK(*name && n == strlen(name));
    ggl_free(name);
    CHECK_INT(llm_context_text(c, "general.none", &name, &n, &err), GGL_NOT_FOUND);
    CHECK(strcmp(llm_context_facts(c)->placement, "cpu") == 0 &&
          llm_context_facts(c)->n_ctx == 128);
    llm_close(c);
}

/* The likeliest token by llm_logits. */
static int32_t likeliest(const llm_context *c, const float *logits) {
    int32_t best = 0;
    for (int32_t i = 1; i < llm_context_facts(c)->n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

TEST(logits) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    text t = {.n = 0};
    const llm_generate_params p = greedy(12);
    int32_t *id;
    size_t n, n_seq;
    const float *rows;
    REQUIRE_OK(llm_encode(c, "Once upon a time", 16, LLM_ADD_SPECIAL, &id, &n, &err), &err);
    REQUIRE_OK(llm_generate(c, "Once upon a time", &p, take, &t, &err), &err);
    const int32_t *seq = llm_sequence(c, &n_seq);
    REQUIRE(n_seq == n + 12);
    int32_t drawn[12];
    memcpy(drawn, seq + n, sizeof drawn);

    /* by hand: the same tokens, from all rows at once and one after the other */
    const size_t n_vocab = (size_t)llm_context_facts(c)->n_vocab;
    REQUIRE_OK(llm_truncate(c, 0, &err), &err);
    CHECK(!llm_logits(c));
    REQUIRE_OK(llm_eval(c, id, n, true, &rows, &err), &err);
    CHECK(rows && llm_logits(c) == rows + (n - 1) * n_vocab);
    for (int k = 0; k < 12; k++) {
        const int32_t next = likeliest(c, llm_logits(c));
        CHECK_INT(next, drawn[k]);
        REQUIRE_OK(llm_eval(c, &next, 1, false, NULL, &err), &err);
    }
    /* back, and on with other tokens than were drawn; then a prompt reuses what is there */
    REQUIRE_OK(llm_truncate(c, n + 4, &err), &err);
    llm_sequence(c, &n_seq);
    CHECK_INT((long long)n_seq, (long long)n + 4);
    REQUIRE_OK(llm_eval(c, drawn + 4, 1, false, &rows, &err), &err);
    CHECK_INT(likeliest(c, rows), drawn[5]);
    REQUIRE_OK(llm_generate(c, "Once upon a time", &p, NULL, NULL, &err), &err);
    CHECK(last_run(c).n_reused == (int64_t)n - 1);
    /* after generated tokens, the last of which was not run yet */
    REQUIRE_OK(llm_eval(c, drawn, 1, false, &rows, &err), &err);
    llm_sequence(c, &n_seq);
    CHECK_INT((long long)n_seq, (long long)n + 13);

    const int32_t wrong = 1 << 30;
    CHECK_INT(llm_eval(c, &wrong, 1, false, &rows, &err), GGL_USAGE);
    CHECK_INT(llm_eval(c, id, 0, false, &rows, &err), GGL_USAGE);
    CHECK_INT(llm_truncate(c, 1000, &err), GGL_USAGE);
    llm_sequence(c, &n_seq);
    CHECK_INT((long long)n_seq, (long long)n + 13); /* as before */
    int32_t many[128];
    for (int i = 0; i < 128; i++)
        many[i] = id[1];
    CHECK_INT(llm_eval(c, many, 128, false, &rows, &err), GGL_LIMIT);
    ggl_free(id);
    llm_close(c);
}

/* Tokens of llm_sequence are appended to it: its array moves while they are read. */
TEST(evaluates_its_own_sequence) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    REQUIRE(c);
    size_t n;
    const int32_t first[] = {1, 300};
    REQUIRE_OK(llm_eval(c, first, 2, false, NULL, &err), &err);
    for (size_t want = 4; want <= 64; want *= 2) {
        const int32_t *id = llm_sequence(c, &n);
        REQUIRE_OK(llm_eval(c, id, n, false, NULL, &err), &err);
        id = llm_sequence(c, &n);
        REQUIRE(n == want);
        for (size_t i = 0; i < n; i++)
            CHECK_INT(id[i], first[i % 2]);
    }
    llm_close(c);
}

TEST(embeddings) {
    ggl_error err;
    llm_context *c = open_model("builtin:stories", true);
    REQUIRE(c);
    const int32_t n = llm_context_facts(c)->n_embd;
    REQUIRE(n > 0 && n <= 4096);
    float a[4096], b[4096], d[4096];
    double length = 0, near = 0, far = 0;
    REQUIRE_OK(llm_embed(c, "The cat sat.", 12, a, &err), &err);
    REQUIRE_OK(llm_embed(c, "The cat sat!", 12, b, &err), &err);
    REQUIRE_OK(llm_embed(c, "\n\n\n42", 5, d, &err), &err);
    for (int32_t i = 0; i < n; i++) {
        length += (double)a[i] * (double)a[i];
        near += (double)a[i] * (double)b[i];
        far += (double)a[i] * (double)d[i];
    }
    CHECK(fabs(length - 1) < 1e-5 && near > far);
    text t = {.n = 0};
    const llm_generate_params p = greedy(4);
    CHECK_OK(llm_generate(c, "Once upon a time", &p, take, &t, &err), &err);
    CHECK(strncmp(t.s, ", there", 7) == 0);
    llm_close(c);
    c = open_model("builtin:stories", false);
    REQUIRE(c);
    CHECK_INT(llm_embed(c, "x", 1, a, &err), GGL_UNSUPPORTED);
    llm_close(c);
}

/* Writes a copy of the built-in model with the key llama.pooling_type. */
static bool write_with_pooling(const char *path, unsigned char value) {
    size_t size;
    unsigned char *data = test_read_file(BUILTIN_MODEL, &size),
                  *copy = data ? malloc(size + 64) : NULL;
    /* two keys of 64 bytes together, so that the tensors stay aligned: the second one is a text */
    static const char keys[64] = "\x12\0\0\0\0\0\0\0llama.pooling_type\x04\0\0\0_\0\0\0"
                                 "\x07\0\0\0\0\0\0\0split.y\x08\0\0\0\x03\0\0\0\0\0\0\0   ";
    if (!copy)
        return false;
    memcpy(copy, data, 24);
    copy[16] = (unsigned char)(copy[16] + 2); /* the number of keys, which is small */
    memcpy(copy + 24, keys, 64);
    copy[24 + 30] = value;
    memcpy(copy + 88, data + 24, size - 24);
    const bool ok = test_write_file(path, copy, size + 64);
    free(data);
    free(copy);
    return ok;
}

/* The file's pooling_type decides, unless the caller does; other values than 1 to 3 are refused by name. */
TEST(poolings) {
    static const struct {
        unsigned char type;
        const char *pooling, *error;
        int like; /* its embedding is that of row `like` */
    } rows[] = {{1, NULL, NULL, 0},
                {2, NULL, NULL, 1},
                {3, NULL, NULL, 2},
                {1, "last", NULL, 2},
                {4, "last", NULL, 2},
                {0, "mean", NULL, 0},
                {9, "cls", NULL, 1},
                {0, NULL, "llama.pooling_type is 0 (none", 0},
                {4, NULL, "llama.pooling_type is 4 (rank", 0},
                {9, NULL, "llama.pooling_type is 9 (", 0},
                {1, "first",
                 "none of mean, last, cls, none, rank, max, mean_sqrt_len_tokens and weightedmean",
                 0},
                {1, "rank", "the model gives no score", 0}};
    enum { N_ROWS = sizeof rows / sizeof *rows };
    static float e[N_ROWS][4096];
    for (int i = 0; i < N_ROWS; i++) {
        ggl_error err = {0};
        const char *path = test_path("pooling.gguf");
        llm_context *c = NULL;
        const llm_open_params p = {.size = sizeof p,
                                   .n_ctx = 64,
                                   .n_threads = 1,
                                   .embeddings = true,
                                   .pooling = rows[i].pooling};
        REQUIRE(write_with_pooling(path, rows[i].type));
        const ggl_status st = llm_open(&c, path, &p, &err);
        CHECK_MSG((st == GGL_OK) == !rows[i].error, "row %d: %s", i, err.msg);
        if (st != GGL_OK)
            CHECK_HAS(err.msg, rows[i].error);
        else if (CHECK_OK(llm_embed(c, "The cat sat.", 12, e[i], &err), &err))
            for (int k = 0; k <= i; k++)
                CHECK_MSG((memcmp(e[i], e[k], sizeof e[i]) == 0) == (rows[i].like == rows[k].like),
                          "rows %d and %d", i, k);
        llm_close(c);
    }
}

TEST(refused) {
    ggl_error err;
    llm_context *c;
    const struct {
        llm_open_params p;
        const char *path;
        ggl_status status;
        const char *words;
    } cases[] = {
        {{.n_ctx = 5}, "builtin:stories", GGL_USAGE, "llm_open_params.size is 0"},
        {{.size = sizeof(llm_open_params)}, "builtin:none", GGL_NOT_FOUND, "builtin:chat"},
        {{.size = sizeof(llm_open_params)}, "/none/x.gguf", GGL_IO, "/none/x.gguf"},
        {{.size = sizeof(llm_open_params)}, NULL, GGL_USAGE, "path"},
        {{.size = sizeof(llm_open_params), .n_ctx = -1}, "builtin:chat", GGL_USAGE, "n_ctx"},
        {{.size = sizeof(llm_open_params), .n_threads = -1},
         "builtin:chat",
         GGL_USAGE,
         "n_threads"},
        {{.size = sizeof(llm_open_params), .device = "gpu"}, "builtin:chat", GGL_NOT_FOUND, "gpu"},
        {{.size = sizeof(llm_open_params), .device = ","}, "builtin:chat", GGL_USAGE, "name"},
        {{.size = sizeof(llm_open_params), .split = "cpu"}, "builtin:chat", GGL_USAGE, "cpu=12"},
        {{.size = sizeof(llm_open_params), .split = "cpu=1"}, "builtin:chat", GGL_USAGE, "layers"},
        {{.size = sizeof(llm_open_params), .split = "cpu=1", .n_gpu_layers = 1},
         "builtin:chat",
         GGL_USAGE,
         "split and n_gpu_layers cannot be used together"},
        {{.size = sizeof(llm_open_params), .chat_template = "none"},
         "builtin:chat",
         GGL_NOT_FOUND,
         "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(llm_open(&c, cases[i].path, &cases[i].p, &err), cases[i].status);
        CHECK_HAS(err.msg, cases[i].words);
        CHECK(!c);
        CHECK_INT(llm_open(&c, cases[i].path, &cases[i].p, NULL), cases[i].status);
    }
    c = open_model("builtin:stories", false);
    REQUIRE(c);
    llm_generate_params p = greedy(-1);
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    p = (llm_generate_params){.n_max = 1};
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "llm_generate_params.size is 0");
    CHECK_INT(last_run(c).finish, LLM_FINISH_ERROR);
    llm_run_info run = {.size = 0};
    CHECK_INT(llm_last_run(c, &run, &err), GGL_USAGE);
    char *found;
    size_t n;
    CHECK_INT(llm_generate(c, NULL, NULL, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "prompt");
    CHECK_INT(llm_chat_format(c, NULL, true, &found, &n, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "JSON");
    CHECK_INT(llm_context_text(c, NULL, &found, &n, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "key");
    CHECK(!found && n == 0);
    CHECK_INT(llm_reply(c, NULL, 2, NULL, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "2 messages");
    llm_close(c);
    llm_close(NULL);
}

/* --- other values of keys --------------------------------------------------------------------- */

static ggl_status open_overridden(llm_context **c, const char *path, const char *value,
                                  ggl_error *err) {
    const llm_open_params p = {.size = sizeof p,
                               .n_ctx = 64,
                               .n_threads = 2,
                               .override = &value,
                               .n_override = value != NULL};
    return llm_open(c, path, &p, err);
}

TEST(overrides_keys) {
    static const char *const base = ".rope.freq_base=float:300";
    const int32_t prompt[] = {1, 403, 407, 261, 378};
    const char *const saved = "library_overrides.save";
    ggl_error err;
    llm_context *plain, *other, *again;
    char *json;
    size_t n;
    REQUIRE(CHECK_OK(open_overridden(&plain, "builtin:stories", NULL, &err), &err));
    REQUIRE(CHECK_OK(open_overridden(&other, "builtin:stories", base, &err), &err));
    REQUIRE(CHECK_OK(open_overridden(&again, "builtin:stories", base, &err), &err));
    CHECK_OK(llm_context_json(other, "llama.rope.freq_base", &json, &n, &err), &err);
    CHECK_STR(json, "300");
    ggl_free(json);
    CHECK_OK(llm_eval(plain, prompt, 5, false, NULL, &err), &err);
    CHECK_OK(llm_eval(other, prompt, 5, false, NULL, &err), &err);
    const size_t row = (size_t)llm_context_facts(plain)->n_vocab * sizeof(float);
    const float *a = llm_logits(plain), *b = llm_logits(other);
    CHECK(a && b && memcmp(a, b, row) != 0);

    /* a saved sequence is that of the same values */
    CHECK_OK(llm_save(other, saved, &err), &err);
    CHECK(llm_restore(plain, saved, &err) == GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "overridden keys");
    CHECK_OK(llm_restore(again, saved, &err), &err);
    remove(saved);
    llm_close(plain);
    llm_close(other);
    llm_close(again);
}

/* The mistakes are in the parameters that the caller gives; nothing is wrong with the model's file. */
TEST(opening_refused) {
    ggl_error err;
    llm_context *c;
    llm_open_params p = {.size = sizeof p, .arch = "nope"};
    CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "nope: there is no such file, and no built-in descriptor of that name");
    p = (llm_open_params){.size = sizeof p, .chat_template = "{% if %}"};
    CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "chat_template:1: an expression was expected");
    p.chat_template = "nope";
    CHECK_INT(llm_open(&c, "builtin:stories", &p, &err), GGL_NOT_FOUND);
}

TEST(overrides_refused) {
    static const struct {
        const char *override;
        ggl_status status;
        const char *words;
    } cases[] = {
        {"llama.block_count", GGL_USAGE, "override: 'llama.block_count' is not KEY=TYPE:VALUE"},
        {"a=float64:1", GGL_USAGE, "with the TYPE int, float, bool"},
        {"a=int:1.5", GGL_USAGE, "is not KEY=TYPE:VALUE"},
        {"a=float:inf", GGL_USAGE, "is not KEY=TYPE:VALUE"},
        {"=int:1", GGL_USAGE, "is not KEY=TYPE:VALUE"},
        {"tokenizer.ggml.tokens=int:1", GGL_USAGE, "key 'tokenizer.ggml.tokens' is a list"},
        {".rope.speed=int:1", GGL_USAGE, "llama.rope.speed = 1: overridden, but nothing reads it"},
        {"lama.rope.freq_base=int:1", GGL_USAGE, "lama.rope.freq_base = 1: overridden"},
        {".rope.scaling.yarn_beta_fast=int:3", GGL_USAGE,
         "llama.rope.scaling.yarn_beta_fast = 3: overridden, but nothing reads it"},
        {".vision.block_count=int:3", GGL_USAGE, "llama.vision.block_count = 3: overridden"},
        {"general.architecture=str:none", GGL_NOT_FOUND, "none"},
        {".block_count=int:9", GGL_FORMAT, "blk.5.attn_norm.weight is missing"},
    };
    ggl_error err;
    llm_context *c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(open_overridden(&c, "builtin:stories", cases[i].override, &err), cases[i].status);
        CHECK_HAS(err.msg, cases[i].words);
        CHECK(!strstr(err.msg, "--ignore")); /* a flag of programs */
        CHECK(!c);
    }
}

/* Layers on two instances of one backend, and another device than the CPU. */
TEST(devices) {
    ggl_error err;
    llm_context *c;
    text want = {.n = 0}, got = {.n = 0};
    const llm_generate_params p = greedy(10);
    c = open_model("builtin:stories", false);
    REQUIRE(c);
    REQUIRE_OK(llm_generate(c, "Once", &p, take, &want, &err), &err);
    llm_close(c);
    llm_open_params op = {.size = sizeof op, .n_ctx = 64, .device = "cpu1", .n_gpu_layers = 1};
    REQUIRE_OK(llm_open(&c, "builtin:stories", &op, &err), &err);
    CHECK(strncmp(llm_context_facts(c)->placement, "cpu=", 4) == 0);
    CHECK_HAS(llm_context_facts(c)->placement, ",cpu1=1");
    REQUIRE_OK(llm_generate(c, "Once", &p, take, &got, &err), &err);
    CHECK(strcmp(want.s, got.s) == 0);
    llm_close(c);
    op = (llm_open_params){.size = sizeof op, .n_ctx = 64, .device = "reference"};
    REQUIRE_OK(llm_open(&c, "builtin:stories", &op, &err), &err);
    CHECK(strcmp(llm_context_facts(c)->placement, "reference") == 0);
    llm_close(c);
}

static void *story(void *arg) {
    text *t = arg;
    ggl_error err;
    llm_context *c = open_model("builtin:stories", false);
    const llm_generate_params p = greedy(30);
    if (c)
        CHECK_OK(llm_generate(c, "Once upon a time", &p, take, t, &err), &err);
    llm_close(c);
    return NULL;
}

/* As docs/library.md says: contexts in different threads. */
TEST(threads) {
    static text t[3];
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&thread[i], NULL, story, &t[i]) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    CHECK(t[0].n > 0 && strcmp(t[0].s, t[1].s) == 0 && strcmp(t[0].s, t[2].s) == 0);
}
