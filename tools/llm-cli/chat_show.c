#include "chat_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat_options.h"
#include "common/args.h"
#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_stream.h"

static void put(chat_show *s, const char *text, size_t n) {
    text_stream_put(s->p.out, text, n);
}

static bool append(char **to, size_t *n_to, size_t *cap, const char *text, size_t n) {
    if (!ggl_grow(to, cap, *n_to + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(*to + *n_to, text, n);
    *n_to += n;
    return true;
}

/* --- looks ------------------------------------------------------------------------------------ */

static void set_dim(chat_show *s, bool dim) {
    if (dim == s->dimmed || !s->p.has_looks)
        return;
    text_stream_end(s->p.out);
    fputs(dim ? "\033[2m" : "\033[0m", stdout);
    s->dimmed = dim;
}

/* While reasoning is hidden, a word in the line says that something happens. */
static void set_thinks(chat_show *s, bool thinks) {
    if (thinks == s->thinks || !s->p.has_looks)
        return;
    fputs(thinks ? "\033[2mthinking ..\033[0m" : "\r\033[K", stdout);
    fflush(stdout);
    tool_set_line(thinks ? TOOL_LINE_TEXT : TOOL_LINE_EMPTY);
    s->thinks = thinks;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Begins text of a kind: after another kind, an empty line is between them. */
static void begin(chat_show *s, llm_calls_kind kind) {
    set_thinks(s, false);
    if (s->any && kind != s->last) {
        set_dim(s, false);
        put(s, "\n\n", 2);
    }
    set_dim(s, kind == LLM_CALLS_REASONING && s->p.reasoning == REASONING_DIM);
    s->last = kind;
    s->any = true;
}

/* True if the answer is shown as the model wrote it; its parts are only collected. */
static bool is_raw(const chat_show *s) {
    return s->p.reasoning == REASONING_SHOW;
}

/* Prints a call as a line of JSON, and adds it to those that were found. False: out of memory. */
static bool show_call(chat_show *s, const llm_calls_part *part) {
    os_memory_stream line;
    if (!ggl_os_memory_stream_open(&line))
        return false;
    fputs("{\"name\": ", line.to);
    json_put_string(line.to, part->name.s, part->name.n);
    fprintf(line.to, ", \"arguments\": %.*s}", (int)part->arguments.n, part->arguments.s);
    bool good = ggl_os_memory_stream_close(&line);
    if (good) {
        static const char open[] = "{\"type\": \"function\", \"function\": ";
        if (!is_raw(s)) {
            begin(s, LLM_CALLS_CALL);
            put(s, line.text, line.n);
            put(s, "\n", 1);
            s->any = false; /* the next part begins a line */
        }
        good = (s->n_found == 0 || append(&s->found, &s->n_found, &s->cap_found, ", ", 2)) &&
               append(&s->found, &s->n_found, &s->cap_found, open, sizeof open - 1) &&
               append(&s->found, &s->n_found, &s->cap_found, line.text, line.n) &&
               append(&s->found, &s->n_found, &s->cap_found, "}", 1);
    }
    free(line.text);
    return good;
}

/* Keeps a piece of content, and shows it. Between two parts of it there is a line break. */
static bool show_content(chat_show *s, ggl_str text, bool shown) {
    if (!is_raw(s) && shown) {
        begin(s, LLM_CALLS_CONTENT);
        put(s, text.s, text.n);
    }
    s->begun = true;
    return append(&s->content, &s->n_content, &s->cap_content, text.s, text.n);
}

static bool show_part(chat_show *s, const llm_calls_part *part) {
    if (part->kind == LLM_CALLS_CALL && s->p.has_tools)
        return show_call(s, part);
    if (part->kind == LLM_CALLS_REASONING) {
        if (is_raw(s))
            return true;
        if (s->p.reasoning == REASONING_HIDE) {
            s->hid = true;
            set_thinks(s, true);
            return true;
        }
        begin(s, LLM_CALLS_REASONING);
        put(s, part->text.s, part->text.n);
        return true;
    }
    const bool follows = s->any && s->last == LLM_CALLS_CONTENT; /* calls have lines of their own */
    if (part->begins && s->begun && !show_content(s, (ggl_str){"\n", 1}, follows))
        return false;
    return show_content(s, part->text, true);
}

static ggl_status show_parts(chat_show *s, ggl_error *err) {
    llm_calls_part part;
    while (llm_calls_next(s->calls, &part))
        if (!show_part(s, &part))
            return ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
    return GGL_OK;
}

/* --- the answer ------------------------------------------------------------------------------- */

ggl_status chat_show_begin(chat_show *s, const chat_show_params *p, ggl_error *err) {
    *s = (chat_show){.p = *p};
    const ggl_status st = llm_calls_new(&s->calls, &p->calls, err);
    if (st == GGL_OK && p->reasoning == REASONING_HIDE &&
        llm_calls_now(s->calls) == LLM_CALLS_REASONING)
        set_thinks(s, true);
    return st;
}

ggl_status chat_show_put(chat_show *s, const char *text, size_t n, ggl_error *err) {
    if (is_raw(s)) {
        put(s, text, n);
        s->any |= n > 0;
    }
    const ggl_status st = llm_calls_add(s->calls, text, n, err);
    return st == GGL_OK ? show_parts(s, err) : st;
}

ggl_status chat_show_end(chat_show *s, bool is_cut, ggl_error *err) {
    ggl_status st = !s->calls                  ? GGL_OK
                    : is_cut && s->p.has_tools ? llm_calls_cut(s->calls, err)
                                               : llm_calls_finish(s->calls, err);
    if (st == GGL_OK && s->calls)
        st = show_parts(s, err);
    set_dim(s, false);
    set_thinks(s, false);
    text_stream_end(s->p.out);
    return st;
}

void chat_show_fini(chat_show *s) {
    llm_calls_free(s->calls);
    ggl_free(s->found);
    ggl_free(s->content);
    *s = (chat_show){0};
}
