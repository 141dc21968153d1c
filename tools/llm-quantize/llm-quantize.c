/* llm-quantize: converts the matrices of a GGUF file to smaller types. See docs/tools.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hints.h"
#include "common/load.h"
#include "common/calibration.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/shell_quote.h"
#include "common/work_threads.h"
#include "ggl/internal/text.h"
#include "job.h"
#include "ggl/internal/os_fs.h"

/* --- the command line ------------------------------------------------------------------------- */

static int read_choice(quant_choice *c, const options *o, const char *type) {
    const ggl_type_info *t = NULL;
    ggl_error err = {0};
    const bool copy = ggl_case_compare(type, "COPY") == 0;
    int code = copy ? -1 : type_error("TYPE", llm_quant_choice_read(c, type, &err), &err);
    c->pure = o->pure;
    c->requantize = o->requantize;
    c->merge_experts = o->merge_experts;
    c->leave_output = o->leave_output;
    if (code < 0 && o->output_type &&
        (code = read_type("--output-tensor-type", o->output_type, &t)) < 0)
        c->output = t->name;
    if (code < 0 && o->embedding_type &&
        (code = read_type("--token-embedding-type", o->embedding_type, &t)) < 0)
        c->embedding = t->name;
    return code;
}

/* Reads what the flags say beside types. */
static int read_changes(job *j) {
    if (j->o.prune)
        j->choice.prune = &j->prune;
    const int code = read_tensor_types(j);
    return code < 0 ? read_key_overrides(j) : code;
}

/* Reads the list of --prune-layers. */
static int read_prune(job *j) {
    ggl_error err = {0};
    return !j->o.prune || llm_quant_prune_read(&j->prune, j->o.prune, &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 2, "--prune-layers: %s", err.msg);
}

/* Refuses what only has a meaning with --budget or --bpw. */
static int no_budget(const budget_options *b) {
    const char *flag = b->text      ? "--calibration"
                       : b->types   ? "--types"
                       : b->file    ? "--loss"
                       : b->n_ctx   ? "-c"
                       : b->n_chunk ? "--chunks"
                       : b->n_pass  ? "--passes"
                                    : NULL;
    if (!flag)
        return -1;
    return tool_error(TOOL, 2, "%s is for choosing types under a limit: --budget SIZE or --bpw N",
                      flag);
}

/* Says what is missing, or in another place, with the command to type: a person may give TYPE, which can
 * be told from a path, before OUT, or without it. */
static int wrong_files(const arg_list *given) {
    size_t type = given->n, file[2] = {given->n, given->n}, n = 0;
    for (size_t i = 0; i < given->n && n < 2; i++) {
        if (type == given->n && is_type_name(given->s[i]))
            type = i;
        else
            file[n++] = i;
    }
    char in[LLM_SHELL_WORD], out[LLM_SHELL_WORD], name[OS_MOST_PATH];
    if (type == given->n || n == 0)
        return tool_error(
            TOOL, 2,
            "IN, OUT and TYPE are needed, as in: llm-quantize model.gguf model-q4.gguf Q4_K_M");
    const char *path = given->s[file[0]], *kind = type_name(given->s[type]);
    const size_t len = strlen(path);
    const bool suffix = len > 5 && ggl_case_compare(path + len - 5, ".gguf") == 0;
    snprintf(name, sizeof name, "%.*s-%s.gguf", (int)(len - (suffix ? 5 : 0)), path, kind);
    return tool_error(
        TOOL, 2, "%s: llm-quantize %s %s %s", n < 2 ? "OUT is missing, as in" : "TYPE comes last",
        llm_shell_quote(in, path), llm_shell_quote(out, n < 2 ? name : given->s[file[1]]), kind);
}

/* Takes the number of threads that llama.cpp's program has after IN, OUT and TYPE. */
static void read_threads(options *o) {
    const char *s = o->args.n == 4 ? o->args.s[3] : "";
    if (!*s || strspn(s, "0123456789") != strlen(s) || strlen(s) > 3 || atoi(s) < 1 ||
        !is_type_name(o->args.s[2]) || o->n_threads)
        return;
    o->n_threads = atoi(s);
    o->args.n--;
}

/* Reads IN, OUT and, without a budget, TYPE. */
static int read_files(options *o) {
    const bool by_size = budget_wanted(&o->budget);
    if (!by_size)
        read_threads(o);
    const size_t n = o->args.n, all = by_size ? 2 : 3;
    const int code = by_size ? -1 : no_budget(&o->budget);
    if (code >= 0)
        return code;
    if (by_size && n != 2 && !(n == 1 && o->dry_run))
        return tool_error(TOOL, 2,
                          n < 2 ? "IN and OUT are needed, as in: llm-quantize --budget 4.2G "
                                  "model.gguf small.gguf"
                                : "only IN and OUT are accepted: --budget and --bpw choose the "
                                  "types, instead of TYPE");
    if (!by_size && n > 3)
        return tool_error(TOOL, 2,
                          "only IN, OUT and TYPE are accepted; -t N sets the number of threads");
    bool early = false; /* a type stands before the last argument, which is no type */
    for (size_t i = 0; !by_size && n > 0 && i + 1 < n && !is_type_name(o->args.s[n - 1]); i++)
        early = early || is_type_name(o->args.s[i]);
    if (!by_size && (early || (n != 3 && !(n == 2 && o->dry_run))))
        return wrong_files(&o->args);
    o->in = o->args.s[0];
    o->out = n == all ? o->args.s[1] : NULL;
    return -1;
}

static int read_options(job *j, int argc, char **argv) {
    options *o = &j->o;
    const arg_option table[] = {
        {"--dry-run", ARG_FLAG, &o->dry_run,
         .help =
             "print the type that each tensor would get, and write nothing; OUT may be left out"},
        {"--pure", ARG_FLAG, &o->pure,
         .help = "no mix: one type for all tensors that are quantized"},
        {"--output-tensor-type", ARG_STRING, &o->output_type, .value = "T",
         .help = "the type of output.weight"},
        {"--token-embedding-type", ARG_STRING, &o->embedding_type, .value = "T",
         .help = "the type of token_embd.weight"},
        {"--tensor-type", ARG_LIST, &o->tensor_types, .value = "PATTERN=T",
         .help = "the type of tensors whose name matches this regular expression; repeatable, the "
                 "first match counts"},
        {"--tensor-type-file", ARG_STRING, &o->tensor_type_file, .value = "FILE",
         .help = "more of them, from a text with PATTERN=T between spaces or line ends"},
        {"--leave-output-tensor", ARG_FLAG, &o->leave_output,
         .help = "output.weight keeps its type"},
        {"--imatrix", ARG_STRING, &o->imatrix, .value = "FILE",
         .help =
             "an importance matrix: errors count by how large the inputs of a column are; self: "
             "run IN, which writes a text, and collect one over it"},
        {"--no-search", ARG_FLAG, &o->budget.no_search,
         .help = "without --imatrix: do not search for scales that lose less, which takes four to "
                 "eight "
                 "times as long as types' plain encoders"},
        {"--include-weights", ARG_LIST, &o->include, .value = "PATTERN",
         .help = "use only those entries of it whose name matches; repeatable"},
        {"--exclude-weights", ARG_LIST, &o->exclude, .value = "PATTERN",
         .help = "do not use entries of it whose name matches; repeatable"},
        {"--prune-layers", ARG_STRING, &o->prune, .value = "LIST",
         .help = "leave out layers, as in 5,7,9-11, and renumber the others"},
        {"--override-kv", ARG_LIST, &o->override_kv, .value = "KEY=TYPE:VALUE",
         .help = "write this value of a key instead of the file's; TYPE: int, float, bool or str; "
                 "repeatable"},
        {"--keep-split", ARG_FLAG, &o->keep_split,
         .help = "write as many parts as IN has: OUT-00001-of-00003.gguf .."},
        {"--merge-experts", ARG_FLAG, &o->merge_experts,
         .help = "join tensors of single experts (blk.0.ffn_up.0.weight, in files of 2023) to one "
                 "for all (blk.0.ffn_up_exps.weight)"},
        {"--allow-requantize", ARG_FLAG, &o->requantize,
         .help = "also quantize tensors that are quantized already, which loses more accuracy"},
        {"-t --threads", ARG_INT, &o->n_threads, .value = "N",
         .help = "threads (default: the number of processors); the file is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {"-v --verbose", ARG_FLAG, &o->verbose, .help = "print each tensor's error"},
        {"--report", ARG_STRING, &o->report, .value = "FILE",
         .help = "draw the types, sizes and errors of all tensors as an SVG file"},
        BUDGET_OPTIONS(o->budget),
        {0}};
    static const args_example examples[] = {
        {"llm-quantize model.gguf model-q4.gguf Q4_K_M", "a mix of about 4.8 bits a weight"},
        {"llm-quantize --dry-run model.gguf Q4_K_M", "prints the type that each tensor would get"},
        {"llm-quantize --output-tensor-type q8_0 model.gguf out.gguf Q4_K_M",
         "the same mix, but the output in q8_0"},
        {"llm-quantize --imatrix imatrix.gguf model.gguf small.gguf IQ2_M",
         "2.7 bits a weight, where they matter most"},
        {"llm-quantize --imatrix self model.gguf small.gguf Q4_K_M",
         "the same without a file: over a text that the model writes"},
        {"llm-quantize --budget 4.2G --calibration text.txt model.gguf small.gguf",
         "the types that predict the text best in a file of at most 4.2 GB"},
        {0}};
    const args_operand operands[] = {{"TYPE", all_types()}, {0}};
    const args_spec spec = {
        TOOL,
        "[options] IN OUT TYPE | --budget SIZE [options] IN OUT",
        "Makes a GGUF file smaller: writes IN (for a split model, its first "
        "part) as OUT, with its matrices in TYPE, a mix such as Q4_K_M, or a "
        "type. Small tensors and vectors keep their type. Prints the resulting error.",
        table,
        &o->args,
        &quantize_hints,
        .examples = examples,
        .operands = operands,
        .print_more = list_types};
    int code = args_parse(&spec, argc, argv);
    if (code >= 0)
        return code;
    code = read_prune(j); /* first: where the list was forgotten, IN was taken for it */
    if (code < 0)
        code = read_files(o);
    if (code >= 0)
        return code;
    if (!o->n_threads)
        o->n_threads = work_threads();
    const bool by_size = budget_wanted(&o->budget);
    const char *given = by_size ? "COPY" : o->args.s[o->args.n - 1], *type = type_name(given);
    if (type != given)
        tool_note(TOOL, "TYPE %s is %s", given, type);
    code = read_choice(&j->choice, o, type);
    if (code < 0)
        code = read_changes(j);
    if (code < 0 && by_size)
        code = budget_new(&j->budget, TOOL, &o->budget, (int)o->n_threads, &j->choice);
    return code;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* With --keep-split, checks the paths of the parts that are written. */
static int check_parts(const job *j) {
    const int n = out_parts(j);
    int code = -1;
    for (int k = 0; n > 1 && !j->o.dry_run && code < 0 && k < n; k++) {
        char path[OS_MOST_PATH];
        out_part_path(path, sizeof path, j->o.out, k, n);
        const tool_path paths[] = {{.flag = "IN", .path = j->o.in}, {"OUT", path, .written = true}};
        code = tool_check_paths(TOOL, paths, 2);
    }
    return code;
}

/* Chooses the types under a limit, and plans the file with them. */
static int choose_types(job *j) {
    ggl_error err = {0};
    budget_source s = {
        .path = j->o.in, .file = j->file, .plan = &j->plan, .importance = j->importance};
    if (measure_head(j, &s.head, &s.alignment, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    int code = budget_solve(j->budget, &s);
    if (code >= 0)
        return code;
    llm_quant_plan_fini(&j->plan);
    if (llm_quant_plan_make(&j->plan, j->file, &j->choice, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s: %s", j->o.in, err.msg);
    return -1;
}

/* Prints and draws what was done, or would be. */
static int show(const job *j) {
    if (j->o.verbose || j->o.dry_run)
        print_tensors(j);
    if (j->budget)
        budget_print(j->budget);
    print_summary(j);
    const int code = j->o.report ? draw_report(j) : -1;
    return code < 0 ? 0 : code;
}

static int quantize(job *j) {
    ggl_error err = {0};
    const tool_path paths[] = {
        {"IN", j->o.in, .needed = true, .model = true, .no_folder = true,
         .also = "llm-cli and others quantize it while they load it: -m "
                 "MODEL --type q4_k_m"},
        {"OUT", j->o.dry_run ? NULL : j->o.out, .written = true},
        {"--imatrix", calibration_is_own(j->o.imatrix) ? NULL : j->o.imatrix, .needed = true},
        {"--calibration", j->o.budget.text, .needed = true},
        {"--loss", j->o.budget.file, .written = true},
        {"--report", j->o.report, .written = true}};
    int code = tool_check_paths(TOOL, paths, sizeof paths / sizeof *paths);
    if (code < 0)
        code = tool_refuse_converted(TOOL, &paths[0]);
    if (code < 0)
        code = open_importance(j);
    if (code >= 0)
        return code;
    if (tool_open_gguf(&j->file, j->o.in, NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    note_key_overrides(j);
    ggl_status s = llm_quant_plan_make(&j->plan, j->file, &j->choice, &err);
    if (s != GGL_OK)
        return tool_error(TOOL, s == GGL_NOT_FOUND ? 2 : 1, "%s: %s", j->o.in, err.msg);
    code = find_importance(j);
    if (code < 0)
        code = check_parts(j);
    if (code < 0 && j->budget)
        code = choose_types(j);
    if (code >= 0)
        return code;
    if (!j->o.dry_run) {
        progress_begin(PROGRESS_BYTES, (double)j->plan.size_before, "quantizing");
        s = write_model(j, &err);
        progress_end();
        if (s != GGL_OK && process_stopped)
            return tool_error(TOOL, process_stop_code(), "interrupted; %s was not written",
                              j->o.out);
        if (s != GGL_OK)
            return tool_error(TOOL, 1, "%s", *j->bad_input.msg ? j->bad_input.msg : err.msg);
    }
    return show(j);
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    job j = {0};
    int code = read_options(&j, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = quantize(&j);
    }
    llm_quant_plan_fini(&j.plan);
    budget_free(j.budget);
    llm_quant_encoder_free(j.encoder);
    free(j.error);
    free(j.tensor_job);
    for (size_t k = 0; k < j.choice.n_override; k++)
        llm_pattern_free(j.choice.override[k].pattern);
    free(j.choice.override);
    free(j.key);
    free(j.type_file);
    free(j.importance);
    llm_imatrix_free(j.matrix);
    ggl_gguf_close(j.file);
    args_list_fini(&j.o.args);
    args_list_fini(&j.o.tensor_types);
    args_list_fini(&j.o.include);
    args_list_fini(&j.o.exclude);
    args_list_fini(&j.o.override_kv);
    return tool_finish(TOOL, code);
}
