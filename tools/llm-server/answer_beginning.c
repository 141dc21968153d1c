/* Which part of a conversation's prompt other conversations have, too. */
#include <string.h>

#include "answer_impl.h"

/* Sets how many tokens the prompt of the other conversation has in common with p. */
static void compare(server *s, const ask *a, llm_talk *talk, job_prompt *p) {
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
    const size_t n = llm_talk_begin(a->talk);
    llm_talk *other = NULL;
    ggl_error err;
    if (n == 0 && !(a->tools && a->tool_choice != ASK_TOOLS_NONE))
        return;
    if (llm_talk_copy(&other, a->talk, n, &err) == GGL_OK &&
        llm_talk_add(other, "user", (ggl_str){"?", 1}, &err) == GGL_OK)
        compare(s, a, other, p);
    llm_talk_free(other);
}
