/* Pictures of a conversation that is saved and loaded: only their marks are in its file. */
#include <stdlib.h>
#include <string.h>

#include "chat_impl.h"
#include "images.h"

ggl_str chat_shown(const llm_talk *talk, size_t message) {
    const ggl_str text = llm_talk_at(talk, message)->content;
    char *copy = text.s ? malloc(text.n + 1) : NULL;
    if (!copy)
        return (ggl_str){0};
    memcpy(copy, text.s, text.n);
    copy[text.n] = '\0';
    return (ggl_str){copy, images_hide(copy, text.n)};
}

/* Calls each(c, mark) for the mark of each picture in the conversation, until it returns false. */
static void each_picture(chat *c, bool (*each)(chat *c, const char *mark)) {
    for (size_t i = 0; i < llm_talk_n(c->talk); i++) {
        const ggl_str text = llm_talk_at(c->talk, i)->content;
        size_t from = 0;
        for (const char *at; text.s && (at = images_find(text.s + from, text.n - from));
             from = (size_t)(at - text.s) + LLM_IMAGE_MARK - 1)
            if (!each(c, at))
                return;
    }
}

static bool tell_unsaved(chat *c, const char *mark) {
    (void)mark;
    chat_say(c,
             "(without its pictures and sounds: after /load, /image and /audio bring them back)");
    return false;
}

void chat_tell_unsaved(chat *c) {
    each_picture(c, tell_unsaved);
}

/* Adds the mark to c->missing unless the picture is there. */
static bool note_missing(chat *c, const char *mark) {
    ggl_error none = {0};
    llm_tokens ids = {0};
    bool ok = true;
    if (!llm_context_facts(c->ctx)->sees && !llm_context_facts(c->ctx)->hears) {
        chat_say(c, "(it has pictures or sounds, which need an eye or an ear: --mmproj FILE)");
        return false;
    }
    if (llm_seen_tokens(c->ctx, mark, &ids, &none) != GGL_OK)
        ok = chat_text_add(&c->missing, mark, LLM_IMAGE_MARK - 1);
    llm_tokens_fini(&ids);
    return ok;
}

void chat_find_missing(chat *c) {
    c->missing.n = 0;
    each_picture(c, note_missing);
    if (c->missing.n > 0)
        chat_say(
            c, "(its pictures and sounds are not in the file: /image and /audio bring them back)");
}

bool chat_found_missing(chat *c, const char *mark) {
    enum { N = LLM_IMAGE_MARK - 1 };
    const size_t before = c->missing.n;
    for (size_t at = 0; at < c->missing.n;) {
        if (memcmp(c->missing.s + at, mark, N) == 0) {
            c->missing.n -= N;
            memmove(c->missing.s + at, c->missing.s + at + N, c->missing.n - at);
        } else {
            at += N;
        }
    }
    return c->missing.n < before;
}
