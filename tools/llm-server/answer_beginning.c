/* Which part of a conversation's prompt other conversations have, too. */
#include <string.h>

#include "answer_impl.h"

/* Returns how many messages at the beginning are the system's. */
static uint32_t count_system(const json_value *list) {
    uint32_t n = 0;
    for (; n < list->n; n++) {
        const json_value *role = llm_json_get_kind(&list->item[n], "role", JSON_STRING);
        const ggl_str name = role ? json_str(role) : (ggl_str){"", 0};
        if (!ggl_str_is(name, "system") && !ggl_str_is(name, "developer"))
            break;
    }
    return n;
}

/* Writes a conversation with the same n first messages, tools and variables, and another message of the user. */
static void put_other(llm_json_out *out, const json_value *talk, const json_value *list,
                      uint32_t n) {
    llm_json_put_text(out, "{\"messages\": [");
    for (uint32_t i = 0; i < n; i++) {
        llm_json_put_value(out, &list->item[i]);
        llm_json_put_text(out, ", ");
    }
    llm_json_put_text(out, "{\"role\": \"user\", \"content\": \"?\"}]");
    for (uint32_t i = 0; i < talk->n; i++) {
        if (&talk->item[i] == list)
            continue;
        llm_json_put_text(out, ", ");
        llm_json_put_string(out, json_name(talk, i));
        llm_json_put_text(out, ": ");
        llm_json_put_value(out, &talk->item[i]);
    }
    llm_json_put_text(out, "}");
}

/* Sets how many tokens the prompt of the other conversation has in common with p. */
static void compare(server *s, const ask *a, ggl_str talk, job_prompt *p) {
    job_prompt q = {0};
    const char *param;
    ggl_error err;
    ask other = *a;
    other.talk = talk;
    other.continues = false;
    other.n_images = 0;
    const ggl_status st = answer_chat_prompt(s, &other, &q, &param, &err);
    while (st == GGL_OK && p->n_beginning < p->ids.n && p->n_beginning < q.ids.n &&
           p->ids.id[p->n_beginning] == q.ids.id[p->n_beginning])
        p->n_beginning++;
    llm_tokens_fini(&q.ids);
    ggl_free(q.owned);
}

void answer_count_beginning(server *s, const ask *a, job_prompt *p) {
    llm_json *doc;
    llm_json_out out = {0};
    ggl_error err;
    if (llm_json_parse(&doc, a->talk.s, a->talk.n, "request", &err) != GGL_OK)
        return;
    const json_value *list = llm_json_get_kind(&doc->root, "messages", JSON_ARRAY);
    const uint32_t n = list ? count_system(list) : 0;
    if (n > 0 || (list && a->tools.s && a->tool_choice != ASK_TOOLS_NONE)) {
        put_other(&out, &doc->root, list, n);
        if (!out.failed)
            compare(s, a, (ggl_str){out.s, out.n}, p);
    }
    ggl_free(out.s);
    llm_json_free(doc);
}
