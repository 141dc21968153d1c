/* Conversations and tools of requests as lines of JSON. */
#ifndef TESTS_SERVER_TALK_TEXT_H
#define TESTS_SERVER_TALK_TEXT_H

#include "common/json_write.h"
#include "llm-server/ask.h"
#include "test.h"

/* A conversation as a line of JSON; valid until the next call but seven. */
TEST_UNUSED static const char *talk_text(const ask *a) {
    static llm_json_out kept[8];
    static int at;
    llm_json_out *out = &kept[at = (at + 1) % 8];
    const json_value *v;
    ggl_str name;
    out->n = 0;
    llm_json_put_text(out, "{\"messages\": [");
    for (size_t i = 0; i < llm_talk_n(a->talk); i++) {
        llm_json_put_text(out, i > 0 ? ", " : "");
        llm_json_put_value(out, llm_talk_at(a->talk, i)->object);
    }
    llm_json_put_text(out, "]");
    for (size_t k = 0; (name = llm_talk_variable(a->talk, k, &v)).s; k++) {
        llm_json_format(out, ", %.*s: ", LLM_JSON_STR(name));
        llm_json_put_value(out, v);
    }
    llm_json_put_text(out, "}");
    return out->s;
}

/* A value as a line of JSON; valid until the next call. */
TEST_UNUSED static const char *line_of(const json_value *v) {
    static llm_json_out out;
    out.n = 0;
    llm_json_put_value(&out, v);
    return out.s;
}

TEST_UNUSED static ggl_str talk_str(const ask *a) {
    const char *s = talk_text(a);
    return (ggl_str){s, strlen(s)};
}

TEST_UNUSED static ggl_str tools_str(const ask *a) {
    const char *s = line_of(a->tools);
    return (ggl_str){s, strlen(s)};
}

#endif
