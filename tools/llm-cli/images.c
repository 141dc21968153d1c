#include "images.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/text.h"

#define TOOL "llm-cli"

static const char place[] = "<__media__>"; /* llama.cpp's */
enum { PLACE = sizeof place - 1, MARK = LLM_IMAGE_MARK - 1 };

static size_t count_places(const char *text, size_t n) {
    size_t found = 0;
    for (const char *at = text; (at = ggl_find_bytes(at, n - (size_t)(at - text), place, PLACE));
         at += PLACE)
        found++;
    return found;
}

/* Shows each picture or plays each sound, and writes the marks one after the other. */
static int show_all(llm_context *c, const arg_list *file, bool sounds, char *mark) {
    ggl_error err = {0};
    for (size_t k = 0; k < file->n; k++) {
        const char *path = file->s[k];
        char one[LLM_IMAGE_MARK];
        progress_begin(NULL, 0, "%s %s", sounds ? "listening to" : "looking at", path);
        const ggl_status st = sounds ? llm_listen(c, &(llm_audio){.path = path}, one, &err)
                                     : llm_see(c, &(llm_image){.path = path}, one, &err);
        progress_end();
        if (st != GGL_OK)
            return process_stopped ? process_stop_code() : tool_error(TOOL, 1, "%s", err.msg);
        memcpy(mark + k * MARK, one, MARK);
    }
    return -1;
}

int images_show(llm_context *c, const arg_list *image, const arg_list *audio, char **text,
                size_t *n, size_t *n_before, double seconds[2]) {
    const char *prompt = *text ? *text : ""; /* a conversation may begin without one */
    const size_t n_places = count_places(prompt, *n), n_files = image->n + audio->n;
    *n_before = 0;
    if (n_places > 0 && n_files == 0)
        tool_note(TOOL, "the prompt's <__media__> is plain text without --image or --audio FILE");
    if (n_files == 0)
        return -1;
    if (n_places > n_files)
        return tool_error(
            TOOL, 2,
            "the prompt has %zu times <__media__>, where a picture or a sound stands, but --image "
            "and --audio give %zu",
            n_places, n_files);
    char *mark = malloc(n_files * MARK + 1), *all = malloc(n_files * MARK + *n + 1);
    const double begin = ggl_os_seconds();
    int code = mark && all ? show_all(c, image, false, mark) : tool_error(TOOL, 1, "out of memory");
    seconds[0] = ggl_os_seconds() - begin;
    if (code < 0)
        code = show_all(c, audio, true, mark + image->n * MARK);
    seconds[1] = ggl_os_seconds() - begin - seconds[0];
    if (code >= 0) {
        free(mark);
        free(all);
        return code;
    }
    *n_before = (n_files - n_places) * MARK;
    size_t used = *n_before, k = n_files - n_places;
    memcpy(all, mark, *n_before);
    for (const char *from = prompt, *end = prompt + *n;;) {
        const char *at = ggl_find_bytes(from, (size_t)(end - from), place, PLACE);
        const size_t n_text = (size_t)((at ? at : end) - from);
        memcpy(all + used, from, n_text);
        used += n_text;
        if (!at)
            break;
        memcpy(all + used, mark + k++ * MARK, MARK);
        used += MARK;
        from = at + PLACE;
    }
    all[used] = 0;
    free(mark);
    free(*text);
    *text = all;
    *n = used;
    return -1;
}

/* True if a picture's mark begins here. */
static bool is_mark_at(const char *text, size_t n) {
    static const char begin[] = "<__media:", digits[] = "0123456789abcdef", end[] = "__>";
    enum { BEGIN = sizeof begin - 1, END = sizeof end - 1 };
    size_t i = BEGIN;
    if (n < MARK || memcmp(text, begin, BEGIN) != 0)
        return false;
    while (i < MARK - END && memchr(digits, text[i], 16))
        i++;
    return i == MARK - END && memcmp(text + i, end, END) == 0;
}

const char *images_find(const char *text, size_t n) {
    const char *at = text, *end = text + n;
    while (at && !is_mark_at(at, (size_t)(end - at)))
        at = at < end ? memchr(at + 1, '<', (size_t)(end - at) - 1) : NULL;
    return at;
}

size_t images_hide(char *text, size_t n) {
    size_t n_out = 0;
    for (size_t i = 0; i < n;) {
        const bool is_mark = is_mark_at(text + i, n - i);
        if (is_mark)
            memcpy(text + n_out, place, PLACE);
        else
            text[n_out] = text[i];
        n_out += is_mark ? (size_t)PLACE : 1;
        i += is_mark ? (size_t)MARK : 1;
    }
    text[n_out] = 0;
    return n_out;
}
