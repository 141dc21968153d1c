/* llm-gguf check: reports everything that is wrong with a file, instead of only the first fault. */
#include "check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/json_text.h"
#include "common/load.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/work_threads.h"
#include "compile/key_ranges.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "llm/internal/file_sampling.h"
#include "llm/internal/load.h"
#include "llm/internal/token_list.h"

static const char TOOL[] = "llm-gguf check";

static void on_defect(void *ctx, const char *text) {
    gguf_find(ctx, "%s", text);
}

/* --- places ----------------------------------------------------------------------------------- */

static uint64_t alignment_of(const ggl_gguf *f) {
    int64_t x = 32;
    (void)ggl_gguf_get_integer(f, "general.alignment", &x, NULL);
    return x > 0 && (x & (x - 1)) == 0 ? (uint64_t)x : 32;
}

void gguf_check_places(gguf_findings *c, const ggl_gguf *f) {
    const uint64_t alignment = alignment_of(f);
    const size_t n = ggl_gguf_n_tensors(f);
    for (size_t i = 0; i < n;) {
        const int part = ggl_gguf_tensor_at(f, i)->part;
        uint64_t expected = 0;
        const ggl_gguf_tensor *last = NULL; /* the one with the highest end */
        bool known = true, whole = true;
        for (; i < n && ggl_gguf_tensor_at(f, i)->part == part; i++) {
            const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
            if (known && t->offset != expected)
                gguf_find(c,
                          "tensor '%.*s' has offset %" PRIu64 ", but the tensors before it end at "
                          "%" PRIu64 ": other programs expect tensors in the order of the table, "
                          "without gaps; llm-gguf merge writes such a file",
                          (int)t->name.n, t->name.s, t->offset, expected);
            known = ggl_type_get((int)t->type) != NULL; /* else its size is unknown */
            expected = (t->offset + t->size_in_file + alignment - 1) & ~(alignment - 1);
            whole &= t->data || t->size == 0;
            if (t->data && (!last || t->offset >= last->offset))
                last = t;
        }
        size_t size;
        (void)ggl_gguf_part(f, part, &size);
        const size_t end =
            last ? ggl_gguf_data_at(f, part) + (size_t)last->offset + last->size_in_file : size;
        const size_t most = (end + alignment - 1) & ~(alignment - 1);
        if (known && whole && size > most) /* of a truncated file, the rest is part of a tensor */
            gguf_find(c, "%zu byte%s after the last tensor, '%.*s', to which nothing refers",
                      size - most, llm_amount_s((int64_t)(size - most)), (int)last->name.n,
                      last->name.s);
    }
}

void gguf_check_tensors(gguf_findings *c, const ggl_gguf *f) {
    char shape[128];
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        if (t->name.n ==
            GGL_GGUF_NAME_MAX_WRITTEN + 1) /* longer ones are found when the file is read */
            gguf_find(c, "tensor '%.*s' has a name of %zu bytes: llama.cpp reads at most %d",
                      (int)t->name.n, t->name.s, t->name.n, GGL_GGUF_NAME_MAX_WRITTEN);
        for (int d = 0; d < t->n_dims; d++)
            if (t->ne[d] == 0) {
                gguf_find(c,
                          "tensor '%.*s' has the shape %s, so it has no numbers: the file was not "
                          "written as its model is; convert that again",
                          (int)t->name.n, t->name.s, tensor_shape(t, shape, sizeof shape));
                break;
            }
    }
}

/* --- keys ------------------------------------------------------------------------------------- */

static void check_value(gguf_findings *c, const ggl_gguf_value *v) {
    const bool floats = v->type == GGL_GGUF_F32 || v->type == GGL_GGUF_F64;
    char doubt[512];
    for (uint64_t i = 0; i < v->n; i++) {
        double x = 0;
        ggl_str s;
        if (floats && ggl_gguf_number(v, i, &x) && !isfinite(x)) {
            gguf_find(c, "key '%.*s': element %" PRIu64 " is %s", (int)v->key.n, v->key.s, i,
                      isnan(x) ? "NaN" : "infinite");
            return;
        }
        if (llm_arch_doubts_key(v, false, doubt, sizeof doubt))
            gguf_find(
                c, "%s; llm-gguf set writes another value, such as that of the model's config.json",
                doubt);
        /* tokens may be parts of characters */
        if (!v->is_array && ggl_gguf_string(v, i, &s) && !ggl_utf8_is_valid(s.s, s.n))
            gguf_find(c, "key '%.*s' is text that is not valid UTF-8", (int)v->key.n, v->key.s);
    }
}

static void on_sampling(void *ctx, bool is_foreign, const char *text) {
    if (!is_foreign)
        gguf_find(ctx, "%s", text);
}

/* What a file says of generating. */
static void check_generating(gguf_findings *c, const ggl_gguf *f, uint64_t n_tokens) {
    llm_file_sampling unused;
    llm_token_list l;
    ggl_error err;
    size_t n = 0;
    llm_file_sampling_read(&unused, f, on_sampling, c);
    if (llm_token_list_read(&l, f, LLM_SUPPRESS_TOKENS, &err) != GGL_OK)
        gguf_find_error(c, &err);
    for (size_t i = 0; i < l.n && n_tokens > 0; i++)
        n += l.id[i] < 0 || (uint64_t)l.id[i] >= n_tokens;
    if (n > 0)
        gguf_find(c,
                  "%s lists %zu token%s that tokenizer.ggml.tokens, of %" PRIu64 ", does not have",
                  LLM_SUPPRESS_TOKENS, n, llm_amount_s((int64_t)n), n_tokens);
    llm_token_list_fini(&l);
}

void gguf_check_keys(gguf_findings *c, const ggl_gguf *f) {
    static const char *const lists[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        check_value(c, ggl_gguf_value_at(f, i));
    const ggl_gguf_value *tokens = ggl_gguf_find(f, "tokenizer.ggml.tokens");
    check_generating(c, f, tokens ? tokens->n : 0);
    for (size_t i = 0; tokens && i < sizeof lists / sizeof *lists; i++) {
        const ggl_gguf_value *list = ggl_gguf_find(f, lists[i]);
        if (list && list->n != tokens->n)
            gguf_find(c, "%s has %" PRIu64 " element%s, but tokenizer.ggml.tokens has %" PRIu64,
                      lists[i], list->n, llm_amount_s((int64_t)list->n), tokens->n);
    }
}

/* --- the command ------------------------------------------------------------------------------ */

typedef struct options {
    arg_list files;
    bool no_data, json;
    int64_t n_threads;
} options;

/* Checks an open file. Returns the exit code; -1: continue with the summary. */
static int check_file(gguf_findings *c, const options *o, const ggl_gguf *f) {
    const bool whole = c->n == 0;          /* another reader would refuse it for the same reason */
    if (!llm_load_converts(o->files.s[0])) /* those of a folder are not in the table */
        gguf_check_places(c, f);
    gguf_check_tensors(c, f);
    gguf_check_keys(c, f);
    if (whole)
        gguf_check_model(c, o->files.s[0], f);
    else
        tool_note(TOOL, "the architecture was not checked, because of these defects");
    if (!o->no_data && !gguf_check_data(c, f, (int)o->n_threads))
        return process_stopped ? process_stop_code() : 1;
    return -1;
}

static void print_number(const char *path, size_t n) {
    ggl_fprint(stdout, "%s: %zu finding%s", path, n, n == 1 ? "" : "s");
    if (n > GGUF_PAGE)
        printf(", of which these are the first %d (--json prints all)", GGUF_PAGE);
    putchar('\n');
}

static void begin_json(const char *path) {
    printf("{\"file\": ");
    json_put_string(stdout, path, strlen(path));
    printf(", \"findings\": [");
}

static int check(const options *o) {
    ggl_error err = {0};
    ggl_gguf *f;
    gguf_findings c = {.json = o->json};
    const ggl_gguf_params p = {.size = sizeof p, .defect = on_defect, .ctx = &c};
    const char *path = o->files.s[0];
    int code = -1;
    if (o->json)
        begin_json(path);
    if (tool_load_file(&f, path, &p, false, &err) != GGL_OK)
        gguf_find_error(&c, &err);
    else
        code = check_file(&c, o, f);
    if (o->json)
        printf("], \"n\": %zu}\n", c.n);
    else if (code < 0 && c.n > 0)
        print_number(path, c.n);
    else if (code < 0)
        ggl_fprint(stdout, "%s: nothing is wrong: %zu key%s, %zu tensor%s, %.2f MiB%s\n", path,
                   ggl_gguf_n_values(f), llm_amount_s((int64_t)ggl_gguf_n_values(f)),
                   ggl_gguf_n_tensors(f), llm_amount_s((int64_t)ggl_gguf_n_tensors(f)),
                   gguf_bytes(f) / 0x1p20, o->no_data ? ", whose numbers were not read" : "");
    ggl_gguf_close(f);
    return code >= 0 ? code : c.n > 0;
}

/* Checks that the file is there and may be read. Returns -1, or an exit code after a message, which is a finding, too. */
static int check_path(const options *o) {
    char wrong[1024] = "";
    const int code = gguf_check_path(TOOL, o->files.s[0], wrong, sizeof wrong);
    if (code >= 0 && o->json) {
        gguf_findings c = {.json = true};
        begin_json(o->files.s[0]);
        gguf_find(&c, "%s", wrong);
        printf("], \"n\": %zu}\n", c.n);
    }
    return code;
}

int gguf_check(int argc, char **argv) {
    options o = {0};
    const arg_option table[] = {
        {"--no-data", ARG_FLAG, &o.no_data,
         .help = "do not read the weights, which looks for NaN, infinities and space that was "
                 "never written"},
        {"--json", ARG_FLAG, &o.json, .help = "print the findings as JSON"},
        {"-t --threads", ARG_INT, &o.n_threads, .value = "N",
         .help = "threads (default: the number of processors)", .min = 1, .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-gguf check model.gguf", "is anything wrong with a file?"},
        {"llm-gguf check --no-data model.gguf", "the same, except for the numbers: at once"},
        {0}};
    const args_spec spec = {TOOL,
                            "FILE [options]",
                            "Finds everything that is wrong with a GGUF file: its structure, the "
                            "places of tensors, numbers that are NaN, infinite or out of range, "
                            "matrices of zero bytes, keys and tensors that its architecture lacks "
                            "or does not know. Exit code 1: there are findings.",
                            table,
                            &o.files,
                            &gguf_hints,
                            .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    code = check_path(&o);
    if (!o.n_threads)
        o.n_threads = work_threads();
    process_wait_for_stop();
    if (code < 0)
        code = check(&o);
    args_list_fini(&o.files);
    return code;
}
