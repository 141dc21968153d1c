/* llm-lora export: writes an adapter as PEFT saves it, for programs that read no GGUF. */
#include <string.h>

#include "common/amounts.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/process.h"
#include "ggl/backends.h"
#include "llm/internal/lora_folder.h"
#include "tool.h"

static const char TOOL[] = "llm-lora export";

static int export(const char *adapter, const char *base, const char *out,
                  llm_lora_folder_params *params) {
    ggl_error err = {0};
    llm_adapter *a = NULL;
    ggl_backend *reference = NULL;
    llm_lora_folder_result r = {0};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1, .n_threads_batch = 1};
    ggl_status s = llm_adapter_open(&a, adapter, NULL, &err);
    if (s == GGL_OK)
        s = ggl_backend_open(&reference, "reference", &bp, &err);
    params->backend = reference;
    if (s == GGL_OK)
        s = llm_lora_export(a, base, out, params, &r, &err);
    if (s == GGL_OK)
        tool_say(NULL, "%s: %zu module%s, %.1f MiB", out, r.n_modules,
                 llm_amount_s((int64_t)r.n_modules), (double)r.bytes / 0x1p20);
    llm_adapter_free(a);
    ggl_backend_close(reference);
    return s == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}

int lora_export(int argc, char **argv) {
    static const char *const types[] = {"auto", "f32", "f16", "bf16", NULL}; /* llm_convert_type */
    arg_list words = {0};
    const char *base = NULL, *out = NULL, *arch = NULL, *name = NULL;
    int type = 0;
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &out, .value = "PEFT_FOLDER", .help = "the folder to write"},
        {"--base", ARG_STRING, &base, .value = "MODEL_FOLDER",
         .help =
             "the Hugging Face folder of the model: config.json, and the names and shapes of its "
             "safetensors"},
        {"--base-name", ARG_STRING, &name, .value = "NAME",
         .help =
             "the model's name in adapter_config.json, such as USER/REPO (default: MODEL_FOLDER)"},
        {"--type", ARG_CHOICE, &type, .value = "TYPE", .choices = types,
         .help = "the type of the halves: auto (default: f16 or bf16 if ADAPTER has it, else f32), "
                 "f32, f16 or bf16"},
        {"--arch", ARG_STRING, &arch, .value = "FILE",
         .help = "descriptor whose convert section to use"},
        {0}};
    static const args_example examples[] = {
        {"llm-lora export style.gguf --base SmolLM2-135M -o style-peft",
         "writes an adapter that PEFT, transformers and vLLM read"},
        {0}};
    const args_spec spec = {TOOL,
                            "ADAPTER --base MODEL_FOLDER -o PEFT_FOLDER [options]",
                            "Writes a LoRA adapter as PEFT saves it: adapter_config.json and "
                            "adapter_model.safetensors. The other direction is llm-lora convert.",
                            options,
                            &words,
                            &lora_hints,
                            .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    if (!base || !out)
        code =
            tool_error(TOOL, 2, "%s is missing", base ? "-o PEFT_FOLDER" : "--base MODEL_FOLDER");
    const tool_path paths[] = {{"ADAPTER", words.s[0], .needed = true, .model = true},
                               {"--base", base, .written = false},
                               {"--arch", arch, .written = false}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 3);
    llm_lora_folder_params params = {
        .arch_path = arch, .type = (llm_convert_type)type, .base_name = name};
    if (code < 0)
        code = export(words.s[0], base, out, &params);
    args_list_fini(&words);
    return code;
}
