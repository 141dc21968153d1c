/* llm-convert: converts a Hugging Face folder to a GGUF file by a descriptor's convert section.
 * See docs/tools.md. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/args.h"
#include "common/hints.h"
#include "common/model_path.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/shell_quote.h"
#include "ggl/backends.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/show.h"
#include "llm/internal/convert.h"
#include "llm/internal/load.h"

static const char TOOL[] = "llm-convert";

typedef struct options {
    const char *out, *mmproj, *arch, *arch_class, *base, *task, *tokenizer, *target;
    int type, extra;
    bool reranker, no_reranker;
    bool vocab_only, no_tokenizer, dry_run;
    arg_list folder, ignore_config, ignore_tensors;
} options;

static void show_progress(void *ctx, size_t done, size_t total) {
    (void)progress_share(ctx, done, total);
}

static void print_notes(const char *notes) {
    for (const char *s = notes, *end; *s; s = end + 1) {
        end = strchr(s, '\n');
        tool_note(NULL, "%.*s", (int)(end - s), s);
    }
}

/* Prints a line of the report. On a terminal that is narrower, a table's last column goes to a line of
 * its own, and a sentence is wrapped; for other programs a row stays a line. */
static void print_line(void *ctx, const char *text) {
    enum { INDENT = 6 };
    char line[2400];
    const size_t width = ggl_os_is_terminal(OS_STDOUT) ? (size_t)tool_width() : SIZE_MAX;
    size_t gap = 0;
    (void)ctx;
    (void)ggl_show(line, sizeof line, text, strlen(text));
    if (strlen(line) <= width) {
        printf("%s\n", line);
        return;
    }
    for (size_t i = strspn(line, " "); line[i]; i++)
        if (i <= width && strncmp(line + i, "  ", 2) == 0 && line[i + 2] != ' ')
            gap = i;
    if (gap == 0) {
        tool_print_wrapped(line, 0, 2);
        return;
    }
    size_t end = gap;
    while (end > 0 && line[end - 1] == ' ')
        end--;
    printf("%.*s\n%*s", (int)end, line, INDENT, "");
    tool_print_wrapped(line + gap + 2, INDENT, INDENT);
}

/* Prints the report of a dry run, and frees c. Returns the exit code. */
static int report(llm_converter *c) {
    ggl_error err = {0};
    size_t n_faults;
    ggl_status s = llm_converter_report(c, print_line, NULL, &n_faults, &err);
    llm_converter_free(c);
    return s != GGL_OK ? tool_error(TOOL, 1, "%s", err.msg) : n_faults > 0;
}

/* Opens the keys and the tokenizer of the model for which the folder's guesses. *out is NULL if none is given. */
static ggl_status open_target(ggl_gguf **out, const options *o, ggl_error *err) {
    const ggl_gguf_params how = {.size = sizeof how, .meta_only = true};
    const llm_load_params load = {
        .size = sizeof load, .open_backend = ggl_backend_open, .close_backend = ggl_backend_close};
    *out = NULL;
    return o->target ? llm_load(out, o->target, &how, &load, err) : GGL_OK;
}

/* Converts the model, or with `eye` the eye that the folder has beside it. */
static int convert(const options *o, bool eye, ggl_backend *reference, const ggl_gguf *target) {
    const char *out = eye ? o->mmproj : o->out;
    ggl_error err = {0};
    llm_converter *c;
    llm_convert_params params = llm_convert_default();
    params.arch_path = o->arch;
    params.eye = eye;
    params.type = (llm_convert_type)o->type;
    params.backend = reference;
    params.arch_class = o->arch_class;
    params.dry_run = o->dry_run;
    params.ignore = (llm_arch_ignore){.key = o->ignore_config.s,
                                      .tensor = o->ignore_tensors.s,
                                      .n_key = o->ignore_config.n,
                                      .n_tensor = o->ignore_tensors.n};
    params.vocab_only = o->vocab_only;
    params.no_tokenizer = o->no_tokenizer;
    params.tokenizer_advice = o->vocab_only ? NULL : "--no-tokenizer leaves the tokenizer out";
    params.extra_tokens = (llm_convert_extra)o->extra;
    params.progress = show_progress;
    params.tokenizer = o->tokenizer;
    params.target = target;
    params.adapter = o->base ? o->folder.s[0] : NULL;
    params.task = o->task;
    params.reranker = o->no_reranker ? LLM_CONVERT_NO_RERANKER
                      : o->reranker  ? LLM_CONVERT_RERANKER
                                     : LLM_CONVERT_RERANKER_BY_NAME;
    progress_begin(NULL, 0, "reading %s", o->folder.s[0]);
    ggl_status s = llm_converter_open(&c, o->base ? o->base : o->folder.s[0], &params, &err);
    progress_end();
    if (s != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (!tool_is_quiet())
        ggl_fprint(stderr, "%s: architecture %s, by %s\n", llm_converter_class(c),
                   llm_converter_family(c), llm_converter_origin(c));
    print_notes(llm_converter_notes(c));
    if (target && !llm_converter_is_draft(c)) {
        llm_converter_free(c);
        return tool_error(TOOL, 1,
                          "--target is for models that guess for another one, and %s is none",
                          o->folder.s[0]);
    }
    if (o->vocab_only && !llm_converter_has_tokenizer(c)) {
        llm_converter_free(c);
        return tool_error(TOOL, 1, "%s has no tokenizer, so --vocab-only leaves nothing to write",
                          o->folder.s[0]);
    }
    if (o->dry_run)
        return report(c);
    progress_begin(PROGRESS_BYTES, 0, "converting");
    s = llm_converter_write(c, out, &err);
    progress_end();
    if (s == GGL_OK && !tool_is_quiet())
        fprintf(stderr, "%s: %zu tensor%s, %.1f MiB\n", out, llm_converter_n_tensors(c),
                llm_converter_n_tensors(c) == 1 ? "" : "s", (double)llm_converter_size(c) / 0x1p20);
    llm_converter_free(c);
    return s == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}

/* Converts what is asked for. Returns the exit code. */
static int convert_all(const options *o, ggl_backend *reference) {
    ggl_error err = {0};
    ggl_gguf *target;
    if (open_target(&target, o, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    int code = o->out || !o->mmproj ? convert(o, false, reference, target) : 0;
    if (code == 0 && o->mmproj)
        code = convert(o, true, reference, NULL);
    ggl_gguf_close(target);
    return code;
}

static bool has_file(const char *folder, const char *name) {
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && ggl_os_exists(path);
}

/* Refuses an adapter's folder without --base. */
static int check_adapter(const char *folder) {
    if (!has_file(folder, "adapter_config.json") || has_file(folder, "config.json"))
        return -1;
    return tool_error(TOOL, 2,
                      "%s is an adapter: --base MODEL_FOLDER gives the folder of its model, of "
                      "which config.json is needed",
                      folder);
}

/* Returns -1, or an exit code after a message about options that do not go together. */
static int check_options(const options *o) {
    char word[LLM_SHELL_WORD];
    const size_t n_second = o->folder.n == 2 ? strlen(o->folder.s[1]) : 0;
    if (n_second > 5 && !o->out && strcmp(o->folder.s[1] + n_second - 5, ".gguf") == 0)
        return tool_error(TOOL, 2,
                          "only one folder can be converted at a time; did you mean -o %s?",
                          llm_shell_quote(word, o->folder.s[1]));
    if (o->folder.n != 1)
        return tool_error(TOOL, 2,
                          o->folder.n ? "only one folder can be converted at a time"
                                      : "which FOLDER? --help tells more");
    if (!ggl_os_exists(o->folder.s[0]) && model_path_is_repo(o->folder.s[0]))
        return tool_error(TOOL, 1,
                          "there is no folder %s; if it is a repository of the Hugging Face Hub: "
                          "`llm-cli -hf %s` downloads and runs it",
                          o->folder.s[0], llm_shell_quote(word, o->folder.s[0]));
    if (o->mmproj && (o->base || o->task || o->vocab_only || o->tokenizer || o->target))
        return tool_error(TOOL, 2,
                          "--mmproj cannot be used together with %s: an eye or ear has none",
                          o->base        ? "--base"
                          : o->target    ? "--target"
                          : o->task      ? "--task"
                          : o->tokenizer ? "--tokenizer"
                                         : "--vocab-only");
    if (o->mmproj && o->out && (o->arch || o->arch_class))
        return tool_error(TOOL, 2, "%s is for one file: give -o and --mmproj one after the other",
                          o->arch ? "--arch" : "--arch-class");
    if (!o->out && !o->mmproj && !o->dry_run)
        return tool_error(TOOL, 2, "-o FILE is missing, as in: llm-convert %s -o model.gguf",
                          llm_shell_quote(word, o->folder.s[0]));
    if ((o->base || o->task) && (o->dry_run || o->vocab_only || (o->base && o->task)))
        return tool_error(TOOL, 2, "%s cannot be used together with --dry-run%s or --vocab-only",
                          o->base ? "--base" : "--task", o->base ? ", --task" : "");
    if (o->target && (o->base || o->task))
        return tool_error(TOOL, 2, "--target cannot be used together with %s: an adapter has none",
                          o->base ? "--base" : "--task");
    if (o->reranker && o->no_reranker)
        return tool_error(TOOL, 2, "--reranker and --no-reranker contradict each other");
    if (o->tokenizer && o->no_tokenizer)
        return tool_error(TOOL, 2, "--tokenizer and --no-tokenizer contradict each other");
    if (o->vocab_only && o->no_tokenizer)
        return tool_error(TOOL, 2, "--vocab-only and --no-tokenizer leave nothing to write");
    return o->base ? -1 : check_adapter(o->folder.s[0]);
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    static const char *const types[] = {"auto", "f32", "f16", "bf16", NULL}; /* llm_convert_type */
    static const char *const extras[] = {"refuse", "cut", NULL};             /* llm_convert_extra */
    options o = {0};
    const arg_option table[] = {
        {"-o --output", ARG_STRING, &o.out, .value = "FILE",
         .help = "GGUF file to write (required, unless --mmproj is given)"},
        {"--mmproj", ARG_STRING, &o.mmproj, .value = "FILE",
         .help = "GGUF file to write of the eye or ear that FOLDER has beside the text model: for "
                 "--mmproj "
                 "of llm-cli and of llama.cpp"},
        {"--type", ARG_CHOICE, &o.type, .value = "TYPE", .choices = types,
         .no_choice = "llm-quantize makes all other types of the GGUF file",
         .help = "type of matrices: auto (default: as in the folder), f32, f16 or bf16; all other "
                 "tensors become f32"},
        {"--base", ARG_STRING, &o.base, .value = "MODEL_FOLDER",
         .help = "FOLDER is a LoRA adapter (PEFT) for the model of MODEL_FOLDER, which needs only "
                 "config.json"},
        {"--task", ARG_STRING, &o.task, .value = "NAME",
         .help = "write the LoRA adapter for this task that FOLDER has beside the model "
                 "(jina-embeddings-v3: retrieval.query, retrieval.passage, ..)"},
        {"--reranker", ARG_FLAG, &o.reranker,
         .help = "FOLDER is a causal model that judges a document with \"yes\" or \"no\" "
                 "(Qwen3-Reranker): make a reranker (default if it is named so)"},
        {"--no-reranker", ARG_FLAG, &o.no_reranker, .help = "it is a model that writes texts"},
        {"--arch", ARG_STRING, &o.arch, .value = "FILE",
         .help = "descriptor whose convert section to use, instead of the built-in one for the "
                 "folder's architecture"},
        {"--arch-class", ARG_STRING, &o.arch_class, .value = "NAME",
         .help =
             "the convert section to use, instead of the one for config.json's \"architectures\""},
        {"--dry-run", ARG_FLAG, &o.dry_run,
         .help = "write nothing; print keys and tensors with the descriptor's lines that make and "
                 "read them, and all errors"},
        {"--vocab-only", ARG_FLAG, &o.vocab_only, .help = "write keys and tokenizer, no tensors"},
        {"--no-tokenizer", ARG_FLAG, &o.no_tokenizer, .help = "leave the tokenizer out"},
        {"--tokenizer", ARG_STRING, &o.tokenizer, .value = "FILE",
         .help = "tokenizer.bin of a llama2.c checkpoint, if it is not next to the checkpoint"},
        {"--target --target-model-dir", ARG_STRING, &o.target, .value = "MODEL",
         .help = "FOLDER is a draft that guesses for MODEL (EAGLE-3, DFlash, DSpark): a folder or "
                 "GGUF file, whose tokenizer the draft gets, and with it what depends on MODEL"},
        {"--extra-tokens", ARG_CHOICE, &o.extra, .value = "WHAT", .choices = extras,
         .help = "what to do with tokens for which the model has no embeddings: refuse (default), "
                 "or cut: leave them out"},
        {"--ignore-config", ARG_LIST, &o.ignore_config, .value = "PATTERN", .may_be_empty = true,
         .help = "continue although no line reads values of config.json with these names "
                 "('rope_scaling.*'); repeatable"},
        {"--ignore-tensor", ARG_LIST, &o.ignore_tensors, .value = "PATTERN",
         .help = "continue although no line reads tensors with these names; repeatable"},
        {0}};
    static const args_example examples[] = {
        {"llm-convert Qwen3-0.6B -o model.gguf",
         "converts a folder that was downloaded from Hugging Face"},
        {"llm-convert Qwen3-0.6B -o model.gguf --type bf16 --dry-run",
         "prints what would be written"},
        {"llm-convert stories15M.bin -o stories.gguf",
         "converts a llama2.c checkpoint, with the tokenizer.bin next to it"},
        {"llm-convert ggml-base.bin -o base.gguf",
         "converts a speech model in ggml's older format"},
        {"llm-convert Qwen2-VL-2B-Instruct -o model.gguf --mmproj mmproj-model.gguf",
         "converts a model that sees or hears, and its eye or ear"},
        {"llm-convert EAGLE3-8B --target Llama-3.1-8B -o draft.gguf",
         "converts a draft, for --draft of llm-cli"},
        {"llm-convert my-adapter --base Qwen3-0.6B -o adapter.gguf", "converts a LoRA adapter"},
        {0}};
    const args_spec spec = {TOOL,
                            "FOLDER [-o FILE] [--mmproj FILE] [options]",
                            "Makes a GGUF file from a Hugging Face folder (config.json, "
                            "safetensors, tokenizer), from that of a PEFT adapter, from a "
                            "checkpoint of llama2.c, or from a speech model in ggml's format "
                            "before GGUF.",
                            table,
                            &o.folder,
                            &convert_hints,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = check_options(&o);
    const tool_path paths[] = {{"FOLDER", code < 0 ? o.folder.s[0] : NULL, .written = false},
                               {"--arch", o.arch, .written = false},
                               {"--base", o.base, .written = false},
                               {"--tokenizer", o.tokenizer, .written = false},
                               {"--target", o.target, .written = false},
                               {"-o", o.dry_run ? NULL : o.out, .written = true},
                               {"--mmproj", o.dry_run ? NULL : o.mmproj, .written = true}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    if (code < 0) {
        ggl_error err = {0};
        ggl_backend *reference = NULL;
        const ggl_backend_params params = {
            .size = sizeof params, .n_threads = 1, .n_threads_batch = 1};
        if (ggl_backend_open(&reference, "reference", &params, &err) != GGL_OK)
            code = tool_error(TOOL, 1, "%s", err.msg);
        else
            code = convert_all(&o, reference);
        ggl_backend_close(reference);
    }
    args_list_fini(&o.folder);
    args_list_fini(&o.ignore_config);
    args_list_fini(&o.ignore_tensors);
    return tool_finish(TOOL, code);
}
