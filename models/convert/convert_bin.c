/* The tokenizer of a llama2.c checkpoint, which is a file of its own. */
#include <inttypes.h>
#include <string.h>

#include "convert_impl.h"
#include "ggl/internal/file.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/os_fs.h"

/* Returns a path in the checkpoint's folder, or NULL: out of memory. */
static char *beside(llm_converter *c, const char *name) {
    const char *slash = ggl_os_last_separator(c->folder);
    return ggl_arena_printf(&c->arena, "%.*s%s", slash ? (int)(slash - c->folder + 1) : 0,
                            c->folder, name);
}

static ggl_status note(llm_converter *c, const char *text, ggl_error *err) {
    return text && llm_converter_note(c, text) ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

ggl_status llm_converter_open_bin(llm_converter *c, int64_t n, ggl_error *err) {
    char *own = ggl_arena_printf(&c->arena, "tok%" PRId64 ".bin", n); /* as llama2.c names it */
    const char *const name[] = {own, "tokenizer.bin"};
    if (c->params.tokenizer)
        return llm_hf_tokenizer_open_bin(&c->tokenizer, c->params.tokenizer, n, err);
    for (int k = 0; k < 2; k++) {
        ggl_error why = {0};
        const char *path = name[k] ? beside(c, name[k]) : NULL;
        if (!path)
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        if (!ggl_file_exists(path))
            continue;
        const ggl_status s = llm_hf_tokenizer_open_bin(&c->tokenizer, path, n, &why);
        if (s != GGL_SHAPE)
            return s == GGL_OK ? s : ggl_pass(err, &why);
        return note(c, ggl_arena_printf(&c->arena, "the model has no tokenizer: %s", why.msg), err);
    }
    return note(c,
                ggl_arena_printf(&c->arena,
                                 "the model has no tokenizer: there is no %s and no tokenizer.bin "
                                 "next to the checkpoint; --tokenizer FILE names one",
                                 own),
                err);
}
