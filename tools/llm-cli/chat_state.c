/* What all of a chat uses: messages, the template's variables, the sampler. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "chat_impl.h"
#include "common/amounts.h"
#include "ggl/internal/show.h"

void chat_say(const chat *c, const char *fmt, ...) {
    char text[4096];
    va_list args;
    va_start(args, fmt);
    (void)ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    fflush(stdout);
    tool_begin_line();
    fprintf(stderr, c->has_looks ? "\033[2m%s\033[0m\n" : "%s\n", text);
}

static double per_second(int64_t n, double seconds) {
    return seconds > 0 ? (double)n / seconds : 0;
}

void chat_say_times(const chat *c, const char *of, const chat_times *t) {
    chat_say(c, "%-11s  prompt %" PRId64 " token%s, %.1f t/s (%" PRId64 " reused)", of, t->n_prompt,
             llm_amount_s(t->n_prompt), per_second(t->n_prompt, t->t_prompt), t->n_reused);
    chat_say(c, "             answer %" PRId64 " token%s, %.1f t/s", t->n_drawn,
             llm_amount_s(t->n_drawn), per_second(t->n_drawn, t->t_draw));
    if (t->t_repack > 0)
        chat_say(c, "             repacking took %.1f s of it", t->t_repack);
}

ggl_status chat_set_variables(const chat *c, llm_talk *talk, ggl_error *err) {
    return c->tools ? llm_talk_put(talk, (ggl_str){"tools", 5}, &c->tools->root, err) : GGL_OK;
}

int chat_new_sampler(chat *c) {
    const int code = cli_generation_set_sampling(c->setup->generation, &c->o, c->ctx);
    c->is_fresh |= code < 0;
    return code;
}
