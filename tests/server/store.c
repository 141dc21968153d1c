/* Answers that are kept (store.h), and requests that name them: these must become what they would be if the client had sent
 * everything again. */
#include "alloc_fail.h"
#include "dialect_test.h"
#include "llm-server/store.h"

/* --- the store -------------------------------------------------------------------------------------- */

static bool put_text(answer_store *s, const char *id, const char *parent, uint64_t owner,
                     const char *sent, const char *fixed, const char *given) {
    stored x = {.owner = owner, .sent = str(sent), .fixed = str(fixed), .answer = str(given)};
    snprintf(x.id, sizeof x.id, "%s", id);
    snprintf(x.parent, sizeof x.parent, "%s", parent);
    return store_put(s, &x);
}

/* An entry of n bytes. */
static bool put_bytes_of(answer_store *s, uint64_t owner, int k, size_t n) {
    static char bytes[1 << 20];
    stored x = {.owner = owner, .answer = {bytes, n}};
    snprintf(x.id, sizeof x.id, "e%d", k);
    return store_put(s, &x);
}

static bool has(answer_store *s, uint64_t owner, int k) {
    char id[32];
    snprintf(id, sizeof id, "e%d", k);
    const stored *x = store_find(s, str(id), owner);
    store_release(s, x);
    return x;
}

TEST(entries) {
    answer_store *s = store_new(NULL, 300);
    REQUIRE(s);
    CHECK(put_text(s, "a", "p", 7, "[1]", "{}", "{\"x\":2}"));
    const stored *x = store_find(s, str("a"), 7);
    REQUIRE(x);
    CHECK(str_is(x->sent, "[1]") && str_is(x->fixed, "{}") && str_is(x->answer, "{\"x\":2}"));
    CHECK_STR(x->parent, "p");
    CHECK(!store_find(s, str("a"), 8) && !store_find(s, str("b"), 7) && !store_find(s, str(""), 7));
    CHECK(!store_remove(s, str("a"), 8) && store_remove(s, str("a"), 7));
    CHECK(!store_remove(s, str("a"), 7) && !store_find(s, str("a"), 7));
    CHECK(str_is(x->sent, "[1]")); /* it is held */
    store_release(s, x);
    CHECK(put_text(s, "c", "", 7, "[]", "", ""));
    CHECK(store_append(s, str("c"), 7, str("[]"), str("[]")));
    CHECK(store_append(s, str("c"), 7, str("[1,2]"), str("[]")));
    CHECK(store_append(s, str("c"), 7, str("[3]"), str("[4]")));
    CHECK(!store_append(s, str("c"), 8, str("[5]"), str("[]")));
    x = store_find(s, str("c"), 7);
    REQUIRE(x && str_is(x->sent, "[1,2,3,4]"));
    stored other = *x;
    other.sent = str("[1]");
    CHECK(store_replace(s, x, &other) && !store_replace(s, x, &other)); /* it is another one now */
    store_release(s, x);
    x = store_find(s, str("c"), 7);
    CHECK(x && str_is(x->sent, "[1]"));
    CHECK(store_set_fixed(s, str("c"), 7, str("{1}")) && !store_set_fixed(s, str("c"), 8, str("")));
    store_release(s, x);
    x = store_find(s, str("c"), 7);
    CHECK(x && str_is(x->sent, "[1]") && str_is(x->fixed, "{1}"));
    CHECK(store_remove(s, str("c"), 7) && !store_replace(s, x, &other));
    store_release(s, x);
    store_free(s);
    store_free(NULL);
}

TEST(time_is_over) {
    answer_store *s = store_new(NULL, 0);
    CHECK(put_bytes_of(s, 1, 0, 5));
    CHECK(!has(s, 1, 0));
    CHECK(put_bytes_of(s, 1, 0, 5));
    store_expire(s);
    CHECK(!has(s, 1, 0));
    store_free(s);
}

/* Many small entries are bounded by their number, large ones by memory; who has most makes room, the longest unused first. */
TEST(bounds) {
    answer_store *s = store_new(NULL, 300);
    put_bytes_of(s, 7, 0, 1);
    for (int k = 0; k < STORE_KEPT + 10; k++)
        CHECK(put_bytes_of(s, 1, k, 1) && has(s, 1, 0)); /* it is used each time */
    CHECK(has(s, 7, 0) && !has(s, 1, 1) && !has(s, 1, 9) && has(s, 1, STORE_KEPT + 9));
    store_free(s);
    memory *m = memory_new((size_t)16 << 20); /* 2 MiB for the store */
    s = store_new(m, 300);
    REQUIRE(m && s);
    CHECK(!put_bytes_of(s, 1, 0, store_most(s) + 1) && put_bytes_of(s, 1, 0, store_most(s) - 1));
    CHECK(put_bytes_of(s, 7, 0, 1000));
    for (int k = 1; k < 40; k++)
        CHECK(put_bytes_of(s, 1, k, 200000));
    CHECK(has(s, 7, 0) && !has(s, 1, 0) && !has(s, 1, 29) && has(s, 1, 30) && has(s, 1, 39));
    CHECK(memory_held(m, MEMORY_STORE) <= memory_most(m, MEMORY_STORE));
    store_free(s);
    CHECK_INT(memory_held(m, MEMORY_STORE), 0);
    memory_free(m);
}

/* --- requests that name them ------------------------------------------------------------------------ */

static answer_store *store;
static const char *code;

/* As request(), of client 7, with the store. */
static ask *ask_of(const dialect *d, const char *text) {
    static ask *last;
    ask_free(last);
    facts.sampling = llm_sampler_default();
    err = (ggl_error){0};
    param = NULL;
    last = ask_new(&facts);
    last->store = store;
    last->owner = 7;
    status = llm_json_parse(&last->doc, text, strlen(text), "request", &err);
    if (status == GGL_OK)
        status = d->read(last, &facts, &param, &err);
    code = last->code;
    return status == GGL_OK ? last : NULL;
}

#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define SAYS(k, text)                                                                              \
    "{\"id\":\"msg_" k "\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\","  \
    "\"content\":[{\"type\":\"output_text\",\"text\":\"" text                                      \
    "\",\"annotations\":[],\"logprobs\":[]}]}"
#define THINKS(k, text)                                                                            \
    "{\"id\":\"rs_" k "\",\"type\":\"reasoning\",\"summary\":[],\"status\":\"completed\","         \
    "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"" text "\"}]}"
#define CALLS(k, id)                                                                               \
    "{\"id\":\"fc_" k "\",\"type\":\"function_call\",\"call_id\":\"" id                            \
    "\",\"name\":\"f\",\"arguments\":\"{}\",\"status\":\"completed\"}"
#define GIVES(id) "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"42\"}"
#define REF(id)   "{\"type\":\"item_reference\",\"id\":\"" id "\"}"

static void begin_store(void) {
    store = store_new(NULL, 300);
    put_text(store, "resp_A", "", 7, "[" USER("one") "]", "",
             "{\"output\":[" THINKS("A_0", "Hm") "," CALLS("A_1", "c1") "]}");
    put_text(store, "resp_B", "resp_A", 7, "[" GIVES("c1") "]", "",
             "{\"output\":[" SAYS("B_0", "two") "]}");
    put_text(store, "resp_R", "", 7,
             "[" USER("one") "," REF("rs_A_0") "," CALLS("A_1", "c1") "," GIVES("c1") "," REF(
                 "msg_B_0") "]",
             "", "{\"output\":[" SAYS("R_0", "four") "]}");
    put_text(store, "resp_lost", "resp_gone", 7, "[]", "", "{\"output\":[]}");
    put_text(store, "resp_C", "conv_T", 7, "[]", "", "{\"output\":[" SAYS("C_0", "x") "]}");
    put_text(store, "conv_T", "", 7,
             "[{\"id\":\"msg_T_xq\",\"role\":\"user\",\"content\":\"one\"}," SAYS("A_9", "yes") "]",
             "{}", "");
    put_text(store, "conv_U", "", 7, "[" USER("one") ",{\"role\":\"x\"}]", "{}", "");
    put_text(store, "conv_W", "", 7, "[{\"id\":\"msg_W_xa\",\"role\":\"x\",\"content\":\"a\"}]",
             "{}", "");
    put_text(store, "conv_V", "", 7, "[" REF("msg_none_0") "]", "{}", "");
}

static void end_store(void) {
    (void)ask_of(&api_openai_responses, ""); /* frees the last one */
    store_free(store);
    store = NULL;
}

/* True if both requests make the same conversation. */
static bool same_talk(const char *short_one, const char *whole) {
    char want[4096];
    const ask *a = ask_of(&api_openai_responses, whole);
    if (!CHECK_MSG(a, "%s: %s", whole, err.msg))
        return false;
    snprintf(want, sizeof want, "%s", talk_text(a));
    a = ask_of(&api_openai_responses, short_one);
    return CHECK_MSG(a, "%s: %s", short_one, err.msg) && CHECK_STR(talk_text(a), want);
}

#define ALL                                                                                        \
    USER("one") "," THINKS("x", "Hm") "," CALLS("x", "c1") "," GIVES("c1") "," SAYS("x", "two")

TEST(named_conversations) {
    begin_store();
    same_talk("{\"previous_response_id\":\"resp_B\",\"input\":\"three\",\"instructions\":\"s\"}",
              "{\"instructions\":\"s\",\"input\":[" ALL "," USER("three") "]}");
    same_talk("{\"previous_response_id\":\"resp_B\",\"input\":[" USER("three") "]}",
              "{\"input\":[" ALL "," USER("three") "]}");
    same_talk("{\"previous_response_id\":\"resp_B\"}", "{\"input\":[" ALL "]}");
    same_talk("{\"input\":[" USER("one") "," REF("rs_A_0") "," REF("fc_A_1") "," GIVES(
                  "c1") ","
                        "{\"id\":\"msg_B_0\"}," USER("three") "]}",
              "{\"input\":[" ALL "," USER("three") "]}");
    same_talk("{\"input\":[" REF("msg_A_i0") "," REF("msg_B_0") "]}",
              "{\"input\":[" USER("one") "," SAYS("x", "two") "]}");
    same_talk("{\"previous_response_id\":\"resp_R\",\"input\":\"five\"}",
              "{\"input\":[" ALL "," SAYS("x", "four") "," USER("five") "]}");
    same_talk("{\"conversation\":\"conv_T\",\"input\":\"three\"}",
              "{\"input\":[" USER("one") "," SAYS("x", "yes") "," USER("three") "]}");
    same_talk("{\"conversation\":{\"id\":\"conv_T\"},\"input\":[" REF("msg_T_xq") "]}",
              "{\"input\":[" USER("one") "," SAYS("x", "yes") "," USER("one") "]}");
    end_store();
}

TEST(what_is_kept) {
    begin_store();
    const ask *a = ask_of(&api_openai_responses,
                          "{\"previous_response_id\":\"resp_B\",\"input\":[" USER("three") "]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->keep.is_wanted && str_is(a->keep.sent, "[" USER("three") "]") && a->n_recalled == 5);
    CHECK_STR(a->keep.parent, "resp_B");
    CHECK(!a->keep.conversation);
    a = ask_of(&api_openai_responses, "{\"conversation\":\"conv_T\",\"input\":\"three\"}");
    CHECK(a &&
          str_is(a->keep.sent, "[{\"type\":\"message\",\"role\":\"user\",\"content\":\"three\"}]"));
    CHECK(a && a->keep.conversation && strcmp(a->keep.conversation, "conv_T") == 0);
    a = ask_of(&api_openai_responses, "{\"input\":\"a\",\"store\":false}");
    CHECK(a && !a->keep.is_wanted);
    a = ask_of(&api_openai_responses, "{\"input\":\"a\",\"store\":null}");
    CHECK(a && a->keep.is_wanted && !a->keep.parent);
    a = ask_of(&api_anthropic_messages, "{\"max_tokens\":9,\"messages\":[" USER("a") "]}");
    CHECK(a && !a->keep.is_wanted);
    end_store();
}

/* A request that is refused: the field, the API's own name of the error, and words. */
static const struct {
    const char *body, *param, *code, *words;
    ggl_status status;
} refusals[] = {
    {"{\"previous_response_id\":\"resp_none\",\"input\":\"a\"}", "previous_response_id",
     "previous_response_not_found", "Previous response with id 'resp_none' not found", GGL_USAGE},
    {"{\"previous_response_id\":\"resp_lost\",\"input\":\"a\"}", "previous_response_id",
     "previous_response_not_found", "what it follows", GGL_USAGE},
    {"{\"previous_response_id\":\"conv_T\",\"input\":\"a\"}", "previous_response_id",
     "previous_response_not_found", "not found", GGL_USAGE},
    {"{\"previous_response_id\":\"resp_C\",\"input\":\"a\"}", "previous_response_id", NULL,
     "belongs to the conversation \"conv_T\"", GGL_USAGE},
    {"{\"previous_response_id\":7,\"input\":\"a\"}", "previous_response_id", NULL,
     "\"previous_response_id\" must be a string", GGL_USAGE},
    {"{\"conversation\":{},\"input\":\"a\"}", "conversation", NULL, "must be a string", GGL_USAGE},
    {"{\"conversation\":\"conv_none\",\"input\":\"a\"}", "conversation", NULL,
     "Conversation with id 'conv_none' not found", GGL_NOT_FOUND},
    {"{\"conversation\":\"resp_A\",\"input\":\"a\"}", "conversation", NULL, "not found",
     GGL_NOT_FOUND},
    {"{\"conversation\":\"conv_T\",\"previous_response_id\":\"resp_A\"}", "conversation", NULL,
     "cannot be used together", GGL_USAGE},
    {"{\"store\":1,\"input\":\"a\"}", "store", NULL, "\"store\" must be true or false", GGL_USAGE},
    {"{\"input\":[" REF("msg_B_0") "," REF("msg_B_0") "]}", "input", NULL,
     "input[1]: Duplicate item found with id 'msg_B_0'", GGL_USAGE},
    {"{\"input\":[" REF("msg_A_0") "]}", "input", NULL,
     "input[0]: Item with id 'msg_A_0' not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_R_i1") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_A_i1") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_T_xr") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_T_i0") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_A_99999999999999999999") "]}", "input", NULL, "not found",
     GGL_NOT_FOUND},
    {"{\"input\":[" REF("") "," REF("_") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("__0") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_B_") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_B_0x") "]}", "input", NULL, "not found", GGL_NOT_FOUND},
    /* an item has one id: else it could be named, and shown, any number of times */
    {"{\"input\":[" REF("msg_A_i0") "," REF("a_A_i0") "]}", "input", NULL,
     "input[1]: Item with id 'a_A_i0' not found", GGL_NOT_FOUND},
    {"{\"input\":[" REF("msg_A_i0") "," REF("msg_A_i00") "]}", "input", NULL,
     "input[1]: Item with id 'msg_A_i00' not found", GGL_NOT_FOUND},
    {"{\"input\":[{\"type\":\"item_reference\"}]}", "input", NULL, "must be a string", GGL_USAGE},
    /* an error in what was kept does not count what was sent */
    {"{\"conversation\":\"conv_U\",\"input\":\"a\"}", "input", NULL,
     "item 1 of what is named: \"role\" must be", GGL_USAGE},
    {"{\"conversation\":\"conv_W\",\"input\":\"a\"}", "input", NULL,
     "the kept item \"msg_W_xa\": \"role\" must be", GGL_USAGE},
    {"{\"conversation\":\"conv_V\",\"input\":\"a\"}", "conversation", NULL,
     "the kept item \"msg_none_0\": Item with id 'msg_none_0' not found", GGL_NOT_FOUND},
    /* an error in what was sent now counts from there */
    {"{\"previous_response_id\":\"resp_B\",\"input\":[" USER("a") ",{\"role\":\"x\"}]}", "input",
     NULL, "input[1]: \"role\" must be", GGL_USAGE},
};

TEST(refused_names) {
    begin_store();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const char *wanted = refusals[i].code;
        CHECK_MSG(!ask_of(&api_openai_responses, refusals[i].body), "%s", refusals[i].body);
        CHECK_HAS(err.msg, refusals[i].words);
        CHECK_STR(param ? param : "", refusals[i].param);
        CHECK_MSG(status == refusals[i].status, "%s: %d", refusals[i].body, (int)status);
        CHECK_MSG(wanted ? code && strcmp(code, wanted) == 0 : !code, "%s: code %s",
                  refusals[i].body, code ? code : "none");
    }
    end_store();
    put_text(store = store_new(NULL, 300), "resp_A", "", 8, "[]", "", "{\"output\":[]}");
    CHECK(!ask_of(&api_openai_responses, "{\"previous_response_id\":\"resp_A\",\"input\":\"a\"}"));
    CHECK_STR(code ? code : "", "previous_response_not_found"); /* another client's */
    end_store();
}

/* --- threads ---------------------------------------------------------------------------------------- */

#define TOOL(name) "{\"name\": \"" name "\", \"input_schema\": {\"type\": \"object\"}}"

TEST(threads) {
    char want[4096];
    store = store_new(NULL, 300);
    const ask *a =
        ask_of(&api_anthropic_messages,
               "{\"max_tokens\":9,\"system\":\"s\",\"tools\":[" TOOL("f") "],\"messages\":[" USER(
                   "one") "],\"thread\":{\"type\":\"create\"}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->keep.is_wanted && str_is(a->keep.sent, "[" USER("one") "]"));
    CHECK(str_is(a->keep.fixed, "{\"system\":\"s\",\"tools\":[" TOOL("f") "]}"));
    put_text(store, "msg_A", "", 7, "[" USER("one") "]",
             "{\"system\":\"s\",\"tools\":[" TOOL("f") "]}",
             "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"\"},"
             "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{}}]}");
    put_text(store, "msg_B", "msg_A", 7,
             "[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\","
             "\"content\":\"42\"}]}]",
             "{}", "{\"content\":[]}");
    a = ask_of(
        &api_anthropic_messages,
        "{\"max_tokens\":9,\"system\":\"s\",\"tools\":[" TOOL("f") "],\"messages\":[" USER(
            "one") ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
                   "\"thinking\":\"Hm\",\"signature\":\"\"},{\"type\":\"tool_use\",\"id\":"
                   "\"t1\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":["
                   "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"42\"}]}," USER(
                       "three") "]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    snprintf(want, sizeof want, "%s", talk_text(a));
    a = ask_of(&api_anthropic_messages, "{\"max_tokens\":9,\"messages\":[" USER(
                                            "three") "],\"thread\":{\"type\":"
                                                     "\"continue\","
                                                     "\"previous_message_id\":\"msg_B\"}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(talk_text(a), want);
    CHECK(a->tools && a->keep.is_wanted && str_is(a->keep.sent, "[" USER("three") "]"));
    CHECK_STR(a->keep.parent, "msg_B");
    static const struct {
        const char *members, *code, *words;
        ggl_status status;
    } bad[] = {
        {"\"thread\":{\"type\":\"continue\",\"previous_message_id\":\"msg_none\"}",
         "thread_not_found", "create a thread with the whole conversation", GGL_NOT_FOUND},
        {"\"system\":\"t\",\"thread\":{\"type\":\"continue\",\"previous_message_id\":\"msg_B\"}",
         "thread_fingerprint_mismatch", "\"system\" is not that", GGL_USAGE},
        {"\"thread\":{\"type\":\"continue\"}", NULL, "\"previous_message_id\"", GGL_USAGE},
        {"\"thread\":{\"type\":\"stop\"}", NULL, "\"type\" must be", GGL_USAGE},
        {"\"thread\":7", NULL, "\"type\" must be", GGL_USAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"max_tokens\":9,\"messages\":[" USER("a") "],%s}",
                 bad[i].members);
        CHECK_MSG(!ask_of(&api_anthropic_messages, body), "%s", body);
        CHECK_HAS(err.msg, bad[i].words);
        CHECK_STR(code ? code : "none", bad[i].code ? bad[i].code : "none");
        CHECK(status == bad[i].status && param && strcmp(param, "thread") == 0);
    }
    end_store();
    CHECK(!ask_of(&api_anthropic_messages, "{\"max_tokens\":9,\"messages\":[" USER(
                                               "a") "],\"thread\":{\"type\":\"create\"}}"));
    CHECK_STR(code ? code : "", "thread_unsupported_request");
    end_store();
}

/* A thread goes on with messages: what is none of these is not taken for nothing. */
TEST(threads_without_messages) {
    static const char *const given[] = {"", "\"messages\":\"hello\",", "\"messages\":{},",
                                        "\"messages\":null,", "\"messages\":[],"};
    store = store_new(NULL, 300);
    put_text(store, "msg_A", "", 7, "[" USER("one") "]", "{}",
             "{\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"max_tokens\":9,%s\"thread\":{\"type\":\"continue\","
                 "\"previous_message_id\":\"msg_A\"}}",
                 given[i]);
        CHECK_MSG(!ask_of(&api_anthropic_messages, body), "%s", body);
        CHECK_HAS(err.msg, "\"messages\" must be a list");
        CHECK(status == GGL_USAGE && param && strcmp(param, "messages") == 0);
    }
    end_store();
}

/* What is too long to be kept is not kept, and the answer says so. */
TEST(too_long_to_be_kept) {
    static char text[300000], body[310000];
    memory *m = memory_new((size_t)16 << 20);
    store = store_new(m, 300);
    memset(text, 'a', sizeof text - 1);
    for (int i = 0; i < 2; i++) {
        const int n = i == 0 ? 1000 : (int)sizeof text - 1;
        snprintf(body, sizeof body, "{\"input\":\"%.*s\"}", n, text);
        const ask *a = ask_of(&api_openai_responses, body);
        CHECK(a && a->keep.is_wanted == (i == 0));
        snprintf(
            body, sizeof body,
            "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"%.*s\"}],\"thread\":"
            "{\"type\":\"create\"}}",
            n, text);
        a = ask_of(&api_anthropic_messages, body);
        CHECK(a && a->keep.is_wanted == (i == 0));
    }
    end_store();
    memory_free(m);
}

/* What is named counts as if it had been sent. */
TEST(memory_of_what_is_named) {
    static char text[240000], body[300000];
    memory *m = memory_new((size_t)16 << 20);
    store = store_new(m, 300);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = i % 4 == 3 ? ' ' : 'a';
    for (int i = 0; i < 2; i++) {
        const size_t n = i == 0 ? 1000 : sizeof text - 1;
        snprintf(body, sizeof body, "{\"output\":[" SAYS("L_0", "%.*s") "]}", (int)n, text);
        CHECK(put_text(store, "resp_L", "", 7, "[]", "", body));
        ask *a = ask_new(&facts);
        a->store = store;
        a->owner = 7;
        a->held = (memory_hold){.of = m, .use = MEMORY_REQUESTS};
        snprintf(body, sizeof body, "{\"input\":[" REF("msg_L_0") "]}");
        err = (ggl_error){0};
        CHECK(llm_json_parse(&a->doc, body, strlen(body), "request", &err) == GGL_OK);
        status = api_openai_responses.read(a, &facts, &param, &err);
        CHECK_INT(status, i == 0 ? GGL_OK : GGL_LIMIT);
        if (i == 1)
            CHECK_HAS(err.msg, "--request-memory");
        ask_free(a);
        CHECK_INT(memory_held(m, MEMORY_REQUESTS), 0);
    }
    end_store();
    memory_free(m);
}

/* So do the values of answers from which little is taken, while they are read. */
TEST(memory_of_what_is_read) {
    static char text[250000], body[260000];
    enum { N = 6, LIST = 200000 };
    memory *m = memory_new((size_t)16 << 20);
    store = store_new(m, 300);
    for (size_t i = 0; i < LIST; i++)
        text[i] = i % 2 ? ',' : '0';
    snprintf(body, sizeof body, "[" USER("one") ",%.*s]", LIST - 1, text);
    for (int i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof id, "resp_L%d", i);
        CHECK(put_text(store, id, "", 7, body, "", "{\"output\":[]}"));
    }
    for (int n = 1; n <= N; n += N - 1) {
        ask *a = ask_new(&facts);
        a->store = store;
        a->owner = 7;
        a->held = (memory_hold){.of = m, .use = MEMORY_REQUESTS};
        size_t at = (size_t)snprintf(body, sizeof body, "{\"input\":[");
        for (int i = 0; i < n; i++)
            at += (size_t)snprintf(body + at, sizeof body - at, "%s" REF("msg_L%d_i0"),
                                   i > 0 ? "," : "", i);
        snprintf(body + at, sizeof body - at, "]}");
        err = (ggl_error){0};
        CHECK(llm_json_parse(&a->doc, body, strlen(body), "request", &err) == GGL_OK);
        status = api_openai_responses.read(a, &facts, &param, &err);
        CHECK_INT(status, n == 1 ? GGL_OK : GGL_LIMIT);
        ask_free(a);
        CHECK_INT(memory_held(m, MEMORY_REQUESTS), 0);
    }
    end_store();
    memory_free(m);
}

/* --- without memory --------------------------------------------------------------------------------- */

typedef struct case_of {
    const dialect *d;
    const char *body;
} case_of;

static bool reads(void *arg) {
    const case_of *c = arg;
    ask *a = ask_new(&facts);
    ggl_error own = {0};
    if (!a)
        return false;
    a->store = store;
    a->owner = 7;
    ggl_status st = llm_json_parse(&a->doc, c->body, strlen(c->body), "request", &own);
    if (st == GGL_OK)
        st = c->d->read(a, &facts, &param, &own);
    ask_free(a);
    CHECK_MSG(st == GGL_OK || st == GGL_NOMEM, "%s: %s", c->body, own.msg);
    return st == GGL_OK;
}

TEST(allocation_failures) {
    begin_store();
    put_text(store, "msg_A", "", 7, "[" USER("one") "]", "{\"system\":\"s\"}",
             "{\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}");
    case_of rows[] = {
        {&api_openai_responses,
         "{\"previous_response_id\":\"resp_R\",\"input\":[" REF("msg_R_0") "," USER("three") "]}"},
        {&api_openai_responses,
         "{\"conversation\":\"conv_T\",\"input\":[" REF("msg_T_xq") "," REF("msg_A_i0") "]}"},
        {&api_anthropic_messages,
         "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"document\","
         "\"source\":{\"type\":\"text\",\"data\":\"d\"},\"title\":\"t\"}]},{\"role\":\"assistant\","
         "\"content\":[{\"type\":\"thinking\",\"thinking\":\"h\"},{\"type\":\"tool_use\",\"id\":"
         "\"i\","
         "\"name\":\"f\",\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":"
         "\"tool_result\",\"tool_use_id\":\"i\",\"content\":\"r\"}]},{\"role\":\"system\","
         "\"content\":[{"
         "\"type\":\"tool_addition\",\"tool\":{\"type\":\"tool_definition\",\"definition\":" TOOL(
             "g") "}}]}],\"context_management\":{\"edits\":[{\"type\":"
                  "\"clear_tool_uses_20250919\",\"trigger\":{\"type\":\"tool_"
                  "uses\",\"value\":0},\"keep\":{\"type\":\"tool_uses\","
                  "\"value\":0},\"exclude_tools\":[\"x\"]}]},\"thread\":{"
                  "\"type\":\"continue\",\"previous_message_id\":\"msg_A\"}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_MSG(reads(&rows[i]) && alloc_fail_each(reads, &rows[i]) > 5, "%s", rows[i].body);
    end_store();
}
