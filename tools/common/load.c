#include "load.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "args.h"
#include "builtin/builtin.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
#include "model_path.h"
#include "process.h"
#include "progress.h"
#include "quant/quant_mix.h"
#include "work_threads.h"

/* Adds a name, unless it is there in another case; returns the number of names. */
static int add_name(const char **name, int n, const char *one) {
    for (int i = 0; i < n; i++)
        if (strcasecmp(name[i], one) == 0)
            return n;
    name[n] = one;
    return n + 1;
}

static bool on_progress(void *ctx, size_t done, size_t total) {
    return progress_share(ctx, done, total) && !process_stopped;
}

/* Writes what follows a message about a folder that names flags of llm-convert, which the tool itself does
 * not have: the command that takes them; "" if it names none. Nothing of the message is repeated: parts of it
 * come from the folder, and a command may be pasted into a shell. */
static const char *convert_advice(const char *path, const char *text, char *advice, size_t size) {
    static const char *const flags[] = {"--arch-class",    "--extra-tokens", "--ignore-config",
                                        "--ignore-tensor", "--no-tokenizer", "--tokenizer"};
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

/* Adds the advice to the error of a failed conversion. */
static ggl_status advise(ggl_status st, const char *path, ggl_error *err) {
    char advice[ADVICE];
    if (st != GGL_OK && st != GGL_CANCELLED && llm_load_converts(path))
        (void)ggl_fail(err, st, "%s%s", err->msg,
                       convert_advice(path, err->msg, advice, sizeof advice));
    return st;
}

/* ctx: the path of the model. */
static void on_note(void *ctx, const char *text) {
    char advice[ADVICE];
    tool_note(NULL, "%s%s", text, convert_advice(ctx, text, advice, sizeof advice));
}

const char *const *tool_load_types(void) {
    enum { MOST = 160 };
    static const char *name[MOST + 1] = {"auto", "f32", "f16", "bf16"};
    int n = 4;
    for (int k = 0; llm_quant_mix_at(k) && n < MOST; k++)
        n = add_name(name, n, llm_quant_mix_at(k)->name);
    for (int k = 0; ggl_type_at(k) && n < MOST; k++)
        if (llm_quant_type_usable(ggl_type_at(k)))
            n = add_name(name, n, ggl_type_at(k)->name);
    name[n] = NULL;
    return name;
}

static llm_load_params load_params(const char *path, const char *arch, int type) {
    return (llm_load_params){.size = sizeof(llm_load_params),
                             .arch_path = arch,
                             .type = type > 0 ? tool_load_types()[type] : NULL,
                             .open_backend = ggl_backend_open,
                             .close_backend = ggl_backend_close,
                             .n_threads = work_threads(),
                             .progress = on_progress,
                             .note = on_note,
                             .ctx = (void *)(uintptr_t)path};
}

static ggl_status no_builtin(const char *path, ggl_error *err) {
    return ggl_fail(err, GGL_USAGE, "%s: the built-in models are builtin:stories and builtin:chat",
                    path);
}

int tool_check_builtin(const char *tool, const char *name) {
    llm_builtin b;
    ggl_error err = {0};
    if (!llm_builtin_find(name, &b) || b.name)
        return -1;
    (void)no_builtin(name, &err);
    return tool_error(tool, 2, "-m %s", err.msg);
}

static ggl_status open_builtin(llm_model **out, const char *path, const llm_builtin *b,
                               const llm_model_params *p, int type, ggl_error *err) {
    *out = NULL;
    if (!b->name)
        return no_builtin(path, err);
    if (type > 0)
        return ggl_fail(err, GGL_USAGE, "--type: the built-in models are quantized already");
    return llm_model_open_memory(out, b->data, b->size, b->name, p, err);
}

ggl_status tool_load_model(llm_model **out, const char *path, const llm_model_params *p, int type,
                           ggl_error *err) {
    llm_builtin b;
    if (llm_builtin_find(path, &b))
        return open_builtin(out, path, &b, p, type, err);
    if (type <= 0 && !llm_load_converts(path))
        return llm_model_open(out, path, p, err);
    const llm_load_params load = load_params(path, p->arch_path, type);
    llm_model_params own = *p;
    own.load = &load;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_model_open(out, path, &own, err);
    progress_end();
    return advise(st, path, err);
}

ggl_status tool_open_gguf(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          ggl_error *err) {
    llm_builtin b;
    if (!llm_builtin_find(path, &b))
        return ggl_gguf_open(out, path, p, err);
    *out = NULL;
    return b.name ? ggl_gguf_open_memory(out, b.data, b.size, b.name, err) : no_builtin(path, err);
}

ggl_status tool_load_file(ggl_gguf **out, const char *path, const ggl_gguf_params *p,
                          bool vocab_only, ggl_error *err) {
    if (!llm_load_converts(path))
        return tool_open_gguf(out, path, p, err);
    llm_load_params load = load_params(path, NULL, 0);
    load.vocab_only = vocab_only;
    progress_begin(PROGRESS_BYTES, 0, "reading %s", path);
    const ggl_status st = llm_load(out, path, p, &load, err);
    progress_end();
    return advise(st, path, err);
}

int tool_refuse_converted(const char *tool, const tool_path *p) {
    if (!llm_load_converts(p->path))
        return -1;
    /* a pickle, or a checkpoint that is not whole, would be no use to llm-convert either */
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_load_params load = load_params(p->path, NULL, 0);
    const ggl_gguf_params only_keys = {.size = sizeof only_keys, .meta_only = true};
    load.note = NULL;
    const ggl_status st = llm_load(&f, p->path, &only_keys, &load, &err);
    ggl_gguf_close(f);
    return st == GGL_OK ? model_path_refuse(tool, p, "a checkpoint of llama2.c", p->path)
                        : tool_error(tool, 1, "%s", err.msg);
}
