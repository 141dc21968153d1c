#include "options.h"

#include <string.h>

#include "common/hints.h"
#include "common/calibration.h"
#include "common/open_context.h"
#include "common/paths.h"
#include "common/report.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/types.h"

enum { DIRECTIONS = 32 }; /* where the user gives no number */

static const args_example examples[] = {
    {"llm-imatrix -m model-f16.gguf -f text.txt", "collects over a text, and writes imatrix.gguf"},
    {"llm-imatrix -m model-f16.gguf -f self", "the same over a text that the model writes"},
    {"llm-imatrix -m model-f16.gguf -f code.txt --in-file imatrix.gguf -o both.gguf",
     "adds another text to what was collected"},
    {"llm-imatrix --in-file imatrix.gguf --show-statistics",
     "shows how much the inputs of each weight differ"},
    {"llm-imatrix --in-file imatrix.gguf --plot imatrix.svg", "draws that, layer by layer"},
    {0}};

/* Appends the file s[0..n). False: out of memory. */
static bool add_file(options *o, size_t *cap, const char *s, size_t n) {
    char *copy = ggl_calloc(n + 1, 1);
    if (!copy || !ggl_grow(&o->file, cap, o->n_files + 1, sizeof *o->file)) {
        ggl_free(copy);
        return false;
    }
    memcpy(copy, s, n);
    o->file[o->n_files++] = copy;
    return true;
}

/* Lists the files of --in-file: each may be one, or several with commas between them. */
static int list_files(options *o) {
    size_t cap = 0;
    bool ok = true;
    for (size_t i = 0; i < o->in.n && ok; i++) {
        const char *s = o->in.s[i];
        if (ggl_file_exists(s)) {
            ok = add_file(o, &cap, s, strlen(s));
            continue;
        }
        for (size_t n = strcspn(s, ","); ok; s += n + 1, n = strcspn(s, ",")) {
            ok = add_file(o, &cap, s, n);
            if (s[n] == '\0')
                break;
        }
    }
    return ok ? -1 : tool_error(TOOL, 1, "out of memory");
}

static int check(const options *o) {
    if (o->n_sketch % 4 != 0)
        return tool_error(TOOL, 2, "--directions %lld: a multiple of 4 is expected",
                          (long long)o->n_sketch);
    if (tool_hub_only_lists(&o->open.hub))
        return -1;
    if (!o->text && o->in.n == 0)
        return tool_error(TOOL, 2,
                          "-f TEXT is missing: the text to collect over; or --in-file FILE, to "
                          "merge files; see --help");
    if (!o->text && (o->open.how.path || o->open.hub.repo || o->open.hub.url))
        return tool_error(TOOL, 2, "-f TEXT is missing: the text that the model is to read");
    const char *flag = o->sketch_given      ? "--directions"
                       : o->chunks_given    ? "--chunks"
                       : o->first_chunk > 0 ? "--chunk"
                       : o->parse_special   ? "--parse-special"
                       : o->output          ? "--process-output"
                       : o->no_ppl          ? "--no-ppl"
                                            : NULL;
    if (!o->text && flag)
        return tool_error(TOOL, 2,
                          "%s is for collecting over a text (-f TEXT); files of --in-file are "
                          "added up as they are",
                          flag);
    return -1;
}

int options_read(options *o, int argc, char **argv) {
    *o = (options){.n_ctx = CALIBRATION_WINDOW,
                   .n_chunk = -1,
                   .open = open_options_default(),
                   .write_every = 10,
                   .n_sketch = DIRECTIONS,
                   .out = "imatrix.gguf"};
    const arg_option own[] = {
        {NULL, .help = "model and text"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a GGUF file, best with the weights that are to be quantized, unrounded "
                 "(default: the built-in model builtin:stories; builtin:chat is another)"},
        HUB_OPTIONS(o->open.hub),
        {"-f --file", ARG_STRING, &o->text, .value = "FILE",
         .help = "the text; -: standard input; self: the model writes one (./self: a file)"},
        {"-c --ctx-size", ARG_INT, &o->n_ctx, .value = "N",
         .help = "tokens of a chunk (default 512)", .min = 4, .max = 1 << 24,
         .given = &o->ctx_given},
        {"--chunks", ARG_INT, &o->n_chunk, .value = "N", .help = "chunks to run (default -1: all)",
         .min = -1, .max = INT32_MAX, .given = &o->chunks_given},
        {"--chunk --from-chunk", ARG_INT, &o->first_chunk, .value = "N",
         .help = "leave out the first N chunks (default 0)", .min = 0, .max = INT32_MAX},
        {"--parse-special", ARG_FLAG, &o->parse_special,
         .help = "names of special tokens in the text stand for these"},
        {"--process-output", ARG_FLAG, &o->output,
         .help = "collect for the product that makes the logits, too"},
        {"--directions", ARG_INT, &o->n_sketch, .value = "N",
         .help = "numbers for each column of a weight that tell which columns vary together, a "
                 "multiple of 4: "
                 "llm-quantize lets their errors cancel (default 32; 0: none)",
         .min = 0, .max = GGL_MAX_DIRECTIONS, .given = &o->sketch_given},
        {"--no-ppl", ARG_FLAG, &o->no_ppl,
         .help = "do not compute the text's perplexity, which is faster"},
        {NULL, .help = "files"},
        {"-o --output --output-file", ARG_STRING, &o->out, .value = "FILE",
         .help = "the file to write (default imatrix.gguf)", .given = &o->out_given},
        {"--in-file", ARG_LIST, &o->in, .value = "FILE",
         .help = "add what another run has collected, also in the old format .dat; repeatable, or "
                 "several with "
                 "commas; without -f, files are only merged"},
        {"-ofreq --output-frequency", ARG_INT, &o->write_every, .value = "N",
         .help = "write the file after each N chunks, and at the end (default 10)", .min = 1,
         .max = INT32_MAX},
        {"--save-frequency", ARG_INT, &o->keep_every, .value = "N",
         .help = "also keep a copy, FILE.at_CHUNK, after each N chunks (default 0: none)", .min = 0,
         .max = INT32_MAX},
        {"--show-statistics", ARG_FLAG, &o->statistics,
         .help = "print how much the columns of each weight differ; without -f and -o, nothing is "
                 "written"},
        {"--plot", ARG_STRING, &o->plot, .value = "FILE",
         .help = "draw how many columns of each weight matter, as an SVG file"},
        {NULL, .help = "machine"},
        OPEN_ROWS(MODEL),
        OPEN_ROWS(MACHINE),
        OPEN_ROWS(PLACE),
        OPEN_ROWS(PLAN),
        {0}};
    arg_option table[OPEN_MOST_ROWS];
    open_options_table(table, own, IMATRIX, &o->open);
    const args_spec spec = {TOOL,
                            "[-m MODEL | -hf USER/REPO] -f TEXT [options]",
                            "Collects an importance matrix: how large the inputs of each weight's "
                            "columns are, on average "
                            "over a text. llm-quantize --imatrix rounds weights such that those "
                            "columns lose least. The "
                            "files are llama.cpp's. The text's perplexity is printed meanwhile.",
                            table,
                            NULL,
                            &imatrix_hints,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = check(o);
    if (code < 0)
        code = open_options_check(TOOL, &o->open, false);
    if (code < 0)
        code = list_files(o);
    open_options_limit_batch(&o->open);
    return code;
}

void options_fini(options *o) {
    open_options_fini(&o->open);
    args_list_fini(&o->in);
    for (size_t i = 0; i < o->n_files; i++)
        ggl_free(o->file[i]);
    ggl_free(o->file);
}
