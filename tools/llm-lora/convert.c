/* llm-lora convert: what `llm-convert PEFT_FOLDER --base MODEL_FOLDER` does, under a name that people
 * look for. */
#include <string.h>

#include "common/amounts.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/backends.h"
#include "llm/internal/convert.h"
#include "tool.h"

static const char TOOL[] = "llm-lora convert";

static void show_progress(void *ctx, size_t done, size_t total) {
    (void)progress_share(ctx, done, total);
}

static int convert(llm_convert_params *params, const char *base, const char *out) {
    ggl_error err = {0};
    llm_converter *c = NULL;
    ggl_backend *reference = NULL;
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1, .n_threads_batch = 1};
    ggl_status s = ggl_backend_open(&reference, "reference", &bp, &err);
    params->backend = reference;
    params->progress = show_progress;
    progress_begin(PROGRESS_BYTES, 0, "converting");
    if (s == GGL_OK)
        s = llm_converter_open(&c, base, params, &err);
    if (s == GGL_OK)
        tool_print_notes(llm_converter_notes(c));
    if (s == GGL_OK)
        s = llm_converter_write(c, out, &err);
    progress_end();
    if (s == GGL_OK)
        tool_say(NULL, "%s: %zu tensor%s, %.1f MiB", out, llm_converter_n_tensors(c),
                 llm_amount_s((int64_t)llm_converter_n_tensors(c)),
                 (double)llm_converter_size(c) / 0x1p20);
    llm_converter_free(c);
    ggl_backend_close(reference);
    return s == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}

int lora_convert(int argc, char **argv) {
    static const char *const types[] = {"auto", "f32", "f16", "bf16", NULL}; /* llm_convert_type */
    arg_list folders = {0};
    const char *base = NULL, *out = NULL, *arch = NULL;
    int type = 0;
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &out, .value = "ADAPTER", .help = "the GGUF file to write"},
        {"--base", ARG_STRING, &base, .value = "MODEL_FOLDER",
         .help = "the Hugging Face folder of the model, of which config.json is needed"},
        {"--type", ARG_CHOICE, &type, .value = "TYPE", .choices = types,
         .help = "the type of the halves: auto (default: as in the folder), f32, f16 or bf16"},
        {"--arch", ARG_STRING, &arch, .value = "FILE",
         .help = "descriptor whose convert section to use"},
        {0}};
    static const args_example examples[] = {
        {"llm-lora convert my-adapter --base Qwen3-0.6B -o adapter.gguf",
         "makes a GGUF file of an adapter from Hugging Face"},
        {0}};
    const args_spec spec = {
        TOOL,
        "PEFT_FOLDER --base MODEL_FOLDER -o ADAPTER [options]",
        "Makes a GGUF file of a LoRA adapter that PEFT has saved, as llm-convert "
        "--base does.",
        options,
        &folders,
        &lora_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    if (!base || !out)
        code = tool_error(TOOL, 2, "%s is missing", base ? "-o ADAPTER" : "--base MODEL_FOLDER");
    const tool_path paths[] = {{"PEFT_FOLDER", folders.s[0], .written = false},
                               {"--base", base, .written = false},
                               {"--arch", arch, .written = false},
                               {"-o", out, .written = true}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 4);
    llm_convert_params params = llm_convert_default();
    params.type = (llm_convert_type)type;
    params.arch_path = arch;
    params.adapter = folders.s[0];
    if (code < 0)
        code = convert(&params, base, out);
    args_list_fini(&folders);
    return code;
}
