#include "load.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "builtin/builtin.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"
#include "model_path.h"
#include "process.h"
#include "progress.h"
#include "quant/quant_mix.h"
#include "work_threads.h"

/* Adds a name, unless it is there in another case; returns the number of names. */
static int add_name(const char **name, int n, const char *one) {
    for (int i = 0; i < n; i++)
        if (ggl_case_compare(name[i], one) == 0)
            return n;
    name[n] = one;
    return n + 1;
}

static bool on_progress(void *user, size_t done, size_t total) {
    (void)user;
    return progress_share(NULL, done, total) && !process_stopped;
}

/* Writes what follows a message about a folder that names flags of llm-convert, which the tool itself does
 * not have: the command that takes them; "" if it names none. Nothing of the message is repeated: parts of it
 * come from the folder, and a command may be pasted into a shell. */
static const char *convert_advice(const char *path, const char *text, char *advice, size_t size) {
    static const char *const flags[] = {"--arch-class", "--extra-tokens", "--ignore-config",
                                        "--ignore-tensor", "--tokenizer"};
    char command[MODEL_PATH_COMMAND];
    bool names = false;
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        names = names || strstr(text, flags[k]);
    *advice = '\0';
    if (names)
        snprintf(advice, size, "; such flags are llm-convert's, and follow this command: %s",
                 model_path_convert(path, command, sizeof command));
    return advice;
}

enum { ADVICE = MODEL_PATH_COMMAND + 256 };

ggl_status tool_load_advise(ggl_status st, const char *path, ggl_error *err) {
    char advice[ADVICE];
    if (st != GGL_OK && path && st != GGL_CANCELLED && llm_load_converts(path))
        (void)ggl_fail(err, st, "%s%s", err->msg,
                       convert_advice(path, err->msg, advice, sizeof advice));
    return st;
}

void tool_load_note(void *path, const char *text) {
    char advice[ADVICE];
    tool_note(NULL, "%s%s", text, convert_advice(path, text, advice, sizeof advice));
}

const char *const *tool_load_types(void) {
    enum { MOST = 160 };
    static const char *name[MOST + 1] = {"auto", "f32", "f16", "bf16"};
    int n = 4;
    for (int pass = 0; pass < 2;
         pass++) /* of equally near mixes that of medium size is suggested */
        for (int k = 0; llm_quant_mix_at(k) && n < MOST; k++) {
            const char *mix = llm_quant_mix_at(k)->name;
            if (pass || mix[strlen(mix) - 1] == 'M')
                n = add_name(name, n, mix);
        }
    for (int k = 0; ggl_type_at(k) && n < MOST; k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            n = add_name(name, n, ggl_type_at(k)->name);
    name[n] = NULL;
    return name;
}

llm_opening tool_opening(const char *path) {
    llm_opening o = {.path = path,
                     .params = llm_open_default(),
                     .n_load_threads = work_threads(),
                     .no_chat = true,
                     .session = llm_session_default()};
    o.params.progress = on_progress;
    o.params.note = tool_load_note;
    o.params.user = (void *)(uintptr_t)path;
    return o;
}

bool tool_loading_begin(const char *path, const char *type) {
    const bool is_made = type || llm_load_converts(path);
    if (is_made)
        progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    return is_made;
}

ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p, int type,
                           ggl_error *err) {
    const llm_loading l = {.path = path,
                           .model = *p,
                           .type = type > 0 ? tool_load_types()[type] : NULL,
                           .type_name = "--type",
                           .n_threads = work_threads(),
                           .progress = on_progress,
                           .note = tool_load_note,
                           .ctx = (void *)(uintptr_t)path};
    const bool has_begun = tool_loading_begin(path, l.type);
    const ggl_status st = llm_load_named(out, &l, err);
    if (has_begun)
        progress_end();
    return tool_load_advise(st, path, err);
}

static ggl_status no_builtin(const char *path, ggl_error *err) {
    return llm_builtin_refuse(path, GGL_USAGE, err);
}

int tool_check_builtin(const char *tool, const char *name) {
    llm_builtin b;
    ggl_error err = {0};
    if (!llm_builtin_find(name, &b) || b.name)
        return -1;
    (void)no_builtin(name, &err);
    return tool_error(tool, 2, "-m %s", err.msg);
}

ggl_status tool_open_gguf(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          ggl_error *err) {
    llm_builtin b;
    if (!llm_builtin_find(path, &b))
        return ggl_gguf_open(out, path, p, err);
    *out = NULL;
    return b.name ? ggl_gguf_open_memory(out, b.data, b.size, b.name, err) : no_builtin(path, err);
}

/* For a folder or checkpoint of which only the file is needed. */
static llm_load_params load_params(const char *path) {
    return (llm_load_params){.size = sizeof(llm_load_params),
                             .open_backend = ggl_backend_open,
                             .close_backend = ggl_backend_close,
                             .n_threads = work_threads(),
                             .progress = on_progress,
                             .note = tool_load_note,
                             .ctx = (void *)(uintptr_t)path};
}

ggl_status tool_load_file(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          bool vocab_only, ggl_error *err) {
    if (!llm_load_converts(path) && !(vocab_only && llm_load_is_tokenizer(path)))
        return tool_open_gguf(out, path, p, err);
    llm_load_params load = load_params(path);
    load.vocab_only = vocab_only;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_load(out, path, p, &load, err);
    progress_end();
    return tool_load_advise(st, path, err);
}

int tool_refuse_converted(const char *tool, const tool_path *p) {
    if (!llm_load_converts(p->path))
        return -1;
    /* a pickle, or a checkpoint that is not whole, would be no use to llm-convert either */
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_load_params load = load_params(p->path);
    const ggl_gguf_params only_keys = {.size = sizeof only_keys, .meta_only = true};
    load.note = NULL;
    const ggl_status st = llm_load(&f, p->path, &only_keys, &load, &err);
    ggl_gguf_close(f);
    return st == GGL_OK ? model_path_refuse(tool, p, "a model of another format", p->path)
                        : tool_error(tool, 1, "%s", err.msg);
}
