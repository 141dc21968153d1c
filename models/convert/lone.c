#include "lone.h"

#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "common/text_file.h"
#include "ggl/internal/text.h"
#include "onnx.h"

extern const unsigned char llm_embedded_lone_files[];
extern const size_t llm_embedded_lone_files_size;

/* Takes a word off the n bytes at *s. n 0: the line has ended. */
static ggl_str next_word(const char **s, const char *end) {
    while (*s < end && **s == ' ')
        ++*s;
    const char *begin = *s;
    while (*s < end && **s != ' ')
        ++*s;
    return (ggl_str){begin, (size_t)(*s - begin)};
}

/* True if a model has a tensor of that name. */
typedef bool has_tensor(const void *ctx, ggl_str name);

/* Returns the class all whose tensors the model has; n 0: none. */
static ggl_str find_class(has_tensor *has, const void *ctx) {
    const char *at = (const char *)llm_embedded_lone_files,
               *end = at + llm_embedded_lone_files_size, *stop;
    for (; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const ggl_str name = next_word(&at, stop);
        bool fits = name.n > 0 && name.s[0] != '#';
        for (ggl_str x; fits && (x = next_word(&at, stop)).n > 0;)
            fits = has(ctx, x);
        if (fits)
            return name;
    }
    return (ggl_str){"", 0};
}

static bool has_in_table(const void *ctx, ggl_str name) {
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.s);
    return llm_safetensors_find(ctx, text) != NULL;
}

static bool has_in_head(const void *ctx, ggl_str name) {
    const ggl_str *head = ctx;
    char quoted[128];
    const int n = snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)name.n, name.s);
    return ggl_find_bytes(head->s, head->n, quoted, (size_t)n) != NULL;
}

enum { HEAD = 4096 };

bool llm_lone_is(const char *path) {
    char bytes[HEAD];
    const ggl_str head = {bytes, llm_read_head(path, bytes, sizeof bytes)};
    if (llm_onnx_is(path, head.s, head.n))
        return true;
    return ggl_ends_with(path, ".safetensors") && find_class(has_in_head, &head).n > 0;
}

static ggl_status read_lone(llm_safetensors *st, llm_json **config, const void *data, size_t size,
                            ggl_error *err) {
    llm_json_out text = {0};
    ggl_status s = llm_onnx_is(st->file[0].s, data, size)
                       ? llm_onnx_read(st, data, size, err)
                       : llm_safetensors_read(st, data, size, err);
    if (s != GGL_OK)
        return s;
    const ggl_str name = find_class(has_in_table, st);
    if (name.n == 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "its tensors are those of no model that is read from such a file; give the "
                        "folder that the model was made of");
    llm_json_format(&text, "{'architectures': [%.*s]}", LLM_JSON_STR(name));
    s = text.failed ? ggl_fail(err, GGL_NOMEM, "out of memory")
                    : llm_json_parse(config, text.s, text.n, "header", err);
    if (s == GGL_OK)
        (*config)->text = text.s; /* freed with the document */
    else
        ggl_free(text.s);
    return s;
}

ggl_status llm_lone_open(llm_safetensors **out, llm_json **config, const char *path,
                         const ggl_file_how *how, const ggl_str *bytes, ggl_error *err) {
    return llm_safetensors_open_other(out, config, path, how, bytes, read_lone, err);
}
