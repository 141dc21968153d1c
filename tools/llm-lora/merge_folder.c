/* llm-lora merge of a Hugging Face folder, which becomes a folder again. */
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "ggl/backends.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "llm/internal/lora_folder.h"
#include "tool.h"

static const char TOOL[] = "llm-lora merge";

static bool show_progress(void *ctx, size_t done, size_t total) {
    (void)progress_share(ctx, done, total);
    return !process_stopped;
}

static ggl_status open_adapters(llm_adapter_use *use, const arg_list *words, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (size_t i = 1; i < words->n && s == GGL_OK; i++) {
        llm_adapter *a = NULL;
        char *path = ggl_copy_text(words->s[i]);
        if (!path)
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        const double scale = lora_read_scale(path);
        s = llm_adapter_open(&a, path, NULL, err);
        free(path);
        if (s == GGL_OK)
            use[i - 1] = (llm_adapter_use){.adapter = a, .scale = scale};
    }
    return s;
}

void lora_print_kept(const char *tool, const llm_lora_kept *k, const char *instead) {
    const double share = llm_lora_share(k->change, k->lost);
    if (k->change == 0)
        return;
    ggl_fprint(stdout, "rounding keeps %.1f %% of the change; the least, %.1f %%, of %s\n",
               100 * share, 100 * k->least, k->weight);
    if (share < LORA_ENOUGH)
        tool_warning(tool,
                     "rounding to the types of the tensors loses %.1f %% of what the adapters "
                     "change: %s, and --lora applies the whole change when the model runs",
                     100 * (1 - share), instead);
}

int lora_merge_folder(const char *base, const arg_list *words, const char *out, int n_threads) {
    ggl_error err = {0};
    ggl_backend *reference = NULL;
    llm_lora_folder_result r = {0};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1, .n_threads_batch = 1};
    llm_adapter_use *use = calloc(words->n, sizeof *use);
    ggl_status s =
        use ? open_adapters(use, words, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (s == GGL_OK)
        s = ggl_backend_open(&reference, "reference", &bp, &err);
    const llm_lora_folder_params params = {
        .backend = reference, .n_threads = n_threads, .progress = show_progress};
    progress_begin(PROGRESS_BYTES, 0, "merging");
    if (s == GGL_OK)
        s = llm_lora_merge(use, words->n - 1, base, out, &params, &r, &err);
    progress_end();
    if (s == GGL_OK)
        ggl_fprint(stdout, "%s: %zu of %zu tensor%s changed\n", out, r.n_modules, r.n_weights,
                   llm_amount_s((int64_t)r.n_weights));
    if (s == GGL_OK && r.n_left_out > 0)
        ggl_fprint(stdout, "%zu file%s with the weights as they were %s left out, such as %s\n",
                   r.n_left_out, llm_amount_s((int64_t)r.n_left_out),
                   r.n_left_out == 1 ? "is" : "are", r.left_out);
    if (s == GGL_OK)
        lora_print_kept(TOOL, &r.kept,
                        "merging into a file that ends in .gguf with --type f32 gives changed "
                        "tensors a type with all digits");
    for (size_t i = 0; use && i + 1 < words->n; i++)
        llm_adapter_free((llm_adapter *)use[i].adapter);
    free(use);
    ggl_backend_close(reference);
    if (s != GGL_OK && process_stopped)
        return tool_error(TOOL, process_stop_code(), "interrupted; %s was not written", out);
    return s == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}
