/* The table of endpoints: which request goes where, and what is said of those that go nowhere. */
#include "llm-server/endpoints.h"

#include "test.h"

static const endpoint *find(const char *method, const char *path, const char *allowed) {
    char got[64];
    const endpoint *e = endpoint_find(method, path, got, sizeof got);
    CHECK(strcmp(got, e ? "" : allowed) == 0 || e);
    return e;
}

TEST(found) {
    const endpoint *e = find("POST", "/v1/chat/completions", "");
    REQUIRE(e);
    CHECK(e->dialect == &api_openai_chat && !e->is_public && !e->needs_no_model);
    CHECK(find("POST", "/chat/completions", "")->dialect == &api_openai_chat);
    CHECK(find("POST", "/v1/messages", "")->dialect == &api_anthropic_messages);
    CHECK(find("POST", "/api/chat", "")->dialect == &api_ollama_chat);
    CHECK(find("POST", "/completion", "")->dialect == &api_llamacpp_completion);
    CHECK(find("GET", "/health", "")->is_public);
    CHECK(find("HEAD", "/health", "") == find("GET", "/health", ""));
}

TEST(error_forms) {
    static const struct {
        const char *path;
        const dialect *form;
    } rows[] = {{"/v1/chat/completions", &api_openai_chat},
                {"/v1/models/a", &api_openai_chat},
                {"/v1/messages/count_tokens", &api_anthropic_messages},
                {"/v1/messages/nothing", &api_anthropic_messages},
                {"/api/show", &api_ollama_chat},
                {"/api/nothing", &api_ollama_chat},
                {"/props", &api_llamacpp_completion},
                {"/slots/7", &api_llamacpp_completion},
                {"/health", &api_llamacpp_completion},
                {"/completions", &api_llamacpp_completion},
                {"/v1/completions", &api_openai_chat},
                {"/rerank", &api_llamacpp_completion},
                {"/messages", &api_anthropic_messages},
                {"/nothing", &api_openai_chat}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(path_errors(rows[i].path) == rows[i].form);
}

TEST(patterns) {
    const endpoint *one = find("GET", "/v1/models/a", "");
    REQUIRE(one);
    CHECK(find("GET", "/v1/models/a/b:c", "") == one);
    CHECK(find("GET", "/v1/models", "") != one);
    CHECK(!find("GET", "/v1/models/", ""));
    CHECK(!find("GET", "/v1/modelsa", ""));
    CHECK(find("POST", "/v1/responses/resp_1/cancel", ""));
    CHECK(!find("POST", "/v1/responses//cancel", "GET, HEAD, DELETE"));
    CHECK(!find("POST", "/v1/responses/resp_1/a/cancel", "GET, HEAD, DELETE"));
    CHECK(!find("POST", "/v1/responses/resp_1", "GET, HEAD, DELETE"));
}

TEST(wrong_methods) {
    CHECK(!find("GET", "/v1/chat/completions", "POST"));
    CHECK(!find("HEAD", "/v1/chat/completions", "POST"));
    CHECK(!find("POST", "/props", "GET, HEAD"));
    CHECK(!find("DELETE", "/v1/models/a", "GET, HEAD"));
    CHECK(!find("post", "/v1/chat/completions", "POST")); /* methods have a case */
    CHECK(!find("GET", "/V1/models", ""));
    CHECK(!find("GET", "", ""));
}

TEST(near_paths) {
    CHECK(strcmp(endpoint_nearest("/v1/chat/completion"), "/v1/chat/completions") == 0);
    CHECK(strcmp(endpoint_nearest("/v1/modles"), "/v1/models") == 0);
    CHECK(strcmp(endpoint_nearest("/helth"), "/health") == 0);
    CHECK(strcmp(endpoint_nearest("/chat/completion"), "/v1/chat/completions") == 0);
    CHECK(strcmp(endpoint_nearest("/v1/v1/chat/completions"), "/v1/chat/completions") == 0);
    static const char *const far[] = {"/something/else/altogether",
                                      "/v1/realtime",
                                      "/v1/files",
                                      "/v1/moderations",
                                      "/v1/batches",
                                      "/v1/assistants"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        CHECK_MSG(!endpoint_nearest(far[i]), "%s: %s", far[i], endpoint_nearest(far[i]));
}

TEST(api_keys) {
    static const char *const key[] = {"one", "two", ""};
    CHECK_INT(endpoint_find_key(key, 0, NULL, NULL), 0);
    CHECK_INT(endpoint_find_key(key, 2, NULL, NULL), 2);
    CHECK_INT(endpoint_find_key(key, 2, "Bearer one", NULL), 0);
    CHECK_INT(endpoint_find_key(key, 2, "bearer  two", NULL), 1);
    CHECK_INT(endpoint_find_key(key, 2, NULL, "two"), 1);
    CHECK_INT(endpoint_find_key(key, 2, "Basic x", "two"), 1);
    CHECK_INT(endpoint_find_key(key, 2, "Bearer on", NULL), 2);
    CHECK_INT(endpoint_find_key(key, 2, "Bearer onee", NULL), 2);
    CHECK_INT(endpoint_find_key(key, 2, "Bearer oneone", NULL), 2);
    CHECK_INT(endpoint_find_key(key, 2, "Bearer ", NULL), 2);
    CHECK_INT(endpoint_find_key(key, 2, "one", NULL), 2);
    CHECK_INT(endpoint_find_key(key + 2, 1, "Bearer x", NULL), 1);
}

/* Headers that are not checked make nobody another client. */
TEST(clients) {
    static const char *const key[] = {"one", "two"};
    const uint64_t here = endpoint_client(key, 0, NULL, NULL, "10.0.0.1");
    CHECK(here == endpoint_client(key, 0, "Bearer 17", "18", "10.0.0.1"));
    CHECK(here != endpoint_client(key, 0, NULL, NULL, "10.0.0.2"));
    const uint64_t one = endpoint_client(key, 2, "Bearer one", NULL, "10.0.0.1");
    CHECK(one == endpoint_client(key, 2, "Bearer one", "18", "10.0.0.2"));
    CHECK(one == endpoint_client(key, 2, NULL, "one", "10.0.0.2"));
    CHECK(one != endpoint_client(key, 2, "Bearer two", NULL, "10.0.0.1"));
    CHECK(one != here);
}
