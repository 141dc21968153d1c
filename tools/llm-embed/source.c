#include "source.h"

#include <errno.h>
#include <string.h>

#include "common/input.h"
#include "common/process.h"
#include "common/user_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"

enum { MOST_LINE = 64 << 20, MOST_NAME = 200 };

int source_open(source *s, const options *o) {
    os_stat st;
    *s = (source){.path = o->file, .is_json = o->json_lines};
    if (!o->file) {
        s->is_tokens = o->tokens.n > 0;
        s->arg = s->is_tokens ? &o->tokens : &o->text;
        return -1;
    }
    const bool is_stdin = strcmp(o->file, "-") == 0;
    s->path = is_stdin ? "stdin" : o->file;
    s->file = is_stdin ? stdin : tool_open_input(o->file);
    if (!s->file && process_stopped)
        return process_stop_code();
    if (!s->file)
        return tool_error_about(TOOL, 1, "-f: %s: %s", s->path, strerror(errno));
    if (ggl_os_stat_fd(ggl_os_fileno(s->file), &st) && st.kind == OS_FILE)
        s->size = (double)st.size;
    return -1;
}

void source_name(const source *s, size_t k, char *buf, size_t size) {
    if (s->file)
        snprintf(buf, size, "%.*s, line %zu",
                 (int)ggl_utf8_cut(s->path, strlen(s->path), MOST_NAME), s->path, k + 1);
    else
        snprintf(buf, size, "text %zu", k + 1);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Returns what is wrong with a line that was read, or -1. */
static int check_line(source *s, size_t n) {
    const ggl_str line = {s->line, n};
    char name[MOST_NAME + 40];
    source_name(s, s->n, name, sizeof name);
    if (s->n == 0 && n >= 4 && memcmp(s->line, "GGUF", 4) == 0)
        return tool_error_about(TOOL, 1, "%s is a GGUF file, not a text", s->path);
    if (s->n == 0 && llm_text_wide(line))
        return tool_error_about(TOOL, 1, "%s: %s", s->path, llm_text_wide(line));
    if (s->is_json)
        return -1;
    if (memchr(s->line, 0, n))
        return tool_error_about(TOOL, 1, "%s has a byte 0: this is no text", name);
    if (!s->is_told && !ggl_utf8_is_valid(s->line, n)) {
        s->is_told = true;
        tool_warning(TOOL,
                     "%s is not UTF-8; the model reads such lines as other characters than are "
                     "meant (iconv converts texts)",
                     name);
    }
    return -1;
}

/* Reads a line without its end, which may be that of DOS. Returns as source_next. */
static int read_line(source *s, size_t *n_line) {
    size_t n = 0;
    int c;
    while ((c = ggl_os_getc(s->file)) != EOF && c != '\n') {
        if (n == MOST_LINE)
            return tool_error_about(TOOL, 1, "%s, line %zu: it has more than %d MiB", s->path,
                                    s->n + 1, MOST_LINE >> 20);
        if (!ggl_grow(&s->line, &s->cap, n + 1, 1))
            return tool_error(TOOL, 1, "out of memory");
        s->line[n++] = (char)c;
    }
    if (c == EOF && ferror(s->file))
        return process_stopped ? process_stop_code()
                               : tool_error_about(TOOL, 1, "%s: %s", s->path, strerror(errno));
    s->n_bytes += (double)n + 1;
    if (c == EOF && n == 0)
        return 0;
    n -= n > 0 && s->line[n - 1] == '\r';
    if (s->n == 0 && n > 0) {
        const ggl_str rest = llm_text_after_mark((ggl_str){s->line, n});
        memmove(s->line, rest.s, rest.n);
        n = rest.n;
    }
    *n_line = n;
    return check_line(s, n);
}

static int next_argument(source *s, source_text *out) {
    const char *arg = s->n < s->arg->n ? s->arg->s[s->n] : NULL;
    if (!arg)
        return 0;
    *out = (source_text){.s = arg, .n = strlen(arg)};
    s->n++;
    if (!s->is_tokens)
        return -1;
    ggl_free(s->id);
    s->id = NULL;
    const int code = tool_read_ids(TOOL, "--tokens", arg, &s->id, &out->n_id);
    out->id = s->id;
    return code;
}

/* Reads the string of JSON that a line is, or the member "text" of an object. Returns -1, or an exit code. */
static int read_json(source *s, source_text *out, size_t n) {
    ggl_error err = {0};
    char name[MOST_NAME + 40];
    source_name(s, s->n, name, sizeof name);
    llm_json_free(s->json);
    s->json = NULL;
    if (llm_json_parse(&s->json, s->line ? s->line : "", n, name, &err) != GGL_OK)
        return tool_error_about(TOOL, 1, "%s", err.msg);
    const json_value *root = &s->json->root;
    const json_value *text =
        root->kind == JSON_OBJECT ? llm_json_get_kind(root, "text", JSON_STRING) : root;
    if (!text || text->kind != JSON_STRING)
        return tool_error_about(TOOL, 1,
                                "%s: a JSON string is expected, or an object with the string "
                                "\"text\"",
                                name);
    *out = (source_text){.s = text->s, .n = text->n};
    s->n++;
    return -1;
}

int source_next(source *s, source_text *out) {
    size_t n = 0;
    if (s->arg)
        return next_argument(s, out);
    const int code = read_line(s, &n);
    if (code < 0 && s->is_json)
        return read_json(s, out, n);
    if (code < 0) {
        *out = (source_text){.s = s->line ? s->line : "", .n = n};
        s->n++;
    }
    return code;
}

void source_close(source *s) {
    if (s->file && s->file != stdin)
        fclose(s->file);
    ggl_free(s->line);
    ggl_free(s->id);
    llm_json_free(s->json);
    *s = (source){0};
}
