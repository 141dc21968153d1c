#include "data_thought.h"

#include <string.h>

#include "ggl/internal/text.h"

static bool is_white(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static ggl_str without_white(ggl_str s) {
    while (s.n > 0 && is_white(s.s[s.n - 1]))
        s.n--;
    while (s.n > 0 && is_white(s.s[0]))
        s = (ggl_str){s.s + 1, s.n - 1};
    return s;
}

/* The tag with which the prompt ends, "<think>" or "[THINK]"; empty: it ends with something else. */
static ggl_str last_tag(ggl_str prompt) {
    enum { MOST = 40 };
    const ggl_str s = without_white(prompt);
    const char close = s.n > 0 ? s.s[s.n - 1] : '\0', open = close == '>' ? '<' : '[';
    if (close != '>' && close != ']')
        return (ggl_str){0};
    size_t at = s.n - 1;
    while (at > 0 && s.n - at < MOST && s.s[at] != open)
        at--;
    return s.s[at] == open ? (ggl_str){s.s + at, s.n - at} : (ggl_str){0};
}

/* Finds the tag's closing form, "</think>". */
static const char *find_close(ggl_str s, ggl_str tag, size_t *n) {
    char close[64];
    *n = tag.n + 1;
    close[0] = tag.s[0];
    close[1] = '/';
    memcpy(close + 2, tag.s + 1, tag.n - 1);
    return s.n > 0 ? ggl_find_bytes(s.s, s.n, close, *n) : NULL;
}

/* The reasoning, and the white space between its closing tag and the answer. False: the message has none. */
static bool find_thought(const llm_talk_message *message, ggl_str tag, ggl_str *thought,
                         ggl_str *gap) {
    const ggl_str all = message->content;
    size_t n_close = 0, n_gap = 0;
    const char *close = find_close(all, tag, &n_close);
    if (!close) {
        *thought = without_white(message->reasoning);
        *gap = (ggl_str){"\n\n", 2};
        return thought->n > 0;
    }
    const char *after = close + n_close;
    while (after + n_gap < all.s + all.n && is_white(after[n_gap]))
        n_gap++;
    *gap = (ggl_str){after, n_gap};
    *thought = without_white((ggl_str){all.s, (size_t)(close - all.s)});
    if (thought->n >= tag.n && memcmp(thought->s, tag.s, tag.n) == 0)
        *thought = without_white((ggl_str){thought->s + tag.n, thought->n - tag.n});
    return true;
}

bool llm_train_thought(llm_json_out *out, ggl_str prompt, ggl_str whole,
                       const llm_talk_message *message) {
    const ggl_str tag = last_tag(prompt);
    const size_t before = tag.n > 0 ? (size_t)(tag.s - prompt.s) : 0;
    ggl_str thought, gap;
    if (tag.n < 3 || whole.n <= before || memcmp(prompt.s, whole.s, before) != 0 ||
        !find_thought(message, tag, &thought, &gap))
        return false;
    const ggl_str shown = {whole.s + before, whole.n - before};
    llm_json_put(out, thought.s, thought.n);
    llm_json_put_text(out, thought.n > 0 ? "\n" : "");
    llm_json_put(out, tag.s, 1);
    llm_json_put_text(out, "/");
    llm_json_put(out, tag.s + 1, tag.n - 1);
    if (!is_white(shown.s[0]))
        llm_json_put(out, gap.s, gap.n);
    llm_json_put(out, shown.s, shown.n);
    return true;
}
