#include "options.h"
#include "ggl/internal/text.h"

#include <string.h>

#include "common/hints.h"
#include "common/output_ending.h"
#include "common/paths.h"
#include "ggl/internal/os_fs.h"

/* True if --pooling says so. */
static bool pools(const options *o, const char *how) {
    const char *pooling = o->open.how.params.pooling;
    return pooling && strcmp(pooling, how) == 0;
}

static const args_example examples[] = {
    {"llm-embed -m model.gguf -f lines.txt", "a JSON line with a vector for each line of a file"},
    {"llm-embed -m model.gguf -f lines.txt -o vectors.npy --resume",
     "a NumPy array, which the same command completes after an interruption"},
    {"llm-embed -m model.gguf -f lines.txt --query \"who wrote it?\" --top 5",
     "the five lines nearest to a question"},
    {"llm-embed -m model.gguf -p \"a cat\" -p \"a dog\" --format table",
     "how similar texts are to each other"},
    {"llm-embed -m reranker.gguf -f lines.txt --rerank \"who wrote it?\"",
     "the lines by a reranker's scores, best first"},
    {0}};

/* True if standard input brings texts: a pipe or a file. */
static bool has_input(void) {
    os_stat st;
    return ggl_os_stat_fd(OS_STDIN, &st) &&
           (st.kind == OS_PIPE || st.kind == OS_FILE || st.kind == OS_SOCKET);
}

/* Which texts there are. Returns -1, or an exit code. */
static int check_texts(options *o) {
    const int n = (o->text.n > 0) + (o->tokens.n > 0) + (o->file != NULL);
    if (n > 1)
        return tool_error(TOOL, 2, "-p, -f and --tokens cannot be used together");
    if (n == 0 && !has_input() && !o->open.plan)
        return tool_error(TOOL, 2,
                          "there is no text: -p TEXT, -f FILE or standard input bring some; see "
                          "--help");
    if (n == 0)
        o->file = "-";
    if (o->json_lines && !o->file)
        return tool_error(TOOL, 2, "--json-lines is for -f FILE and standard input");
    const char *flag = o->rerank        ? "--rerank"
                       : o->document    ? "--document"
                       : o->prompt_name ? "--prompt-name"
                                        : NULL;
    if (o->tokens.n > 0 && flag)
        return tool_error(TOOL, 2, "%s is for texts; --tokens are taken as they are", flag);
    return -1;
}

/* Flags that a reranker's scores have no use for. */
static int check_rerank(const options *o) {
    const char *flag = o->query.n > 0        ? "--query"
                       : o->document         ? "--document"
                       : o->prompt_name      ? "--prompt-name"
                       : o->task             ? "--task"
                       : o->n_dims > 0       ? "--dimensions"
                       : o->no_normalize     ? "--no-normalize"
                       : o->no_parse_special ? "--no-parse-special"
                                             : NULL;
    if (o->rerank && flag)
        return tool_error(TOOL, 2, "%s is for vectors; --rerank makes scores", flag);
    if (o->rerank && o->open.how.params.pooling && !pools(o, "rank"))
        return tool_error(TOOL, 2, "--rerank needs --pooling rank, not %s",
                          o->open.how.params.pooling);
    return -1;
}

/* Formats for numbers that are not written, and those that are. */
static const output_ending endings[] = {
    {".npy", FORMAT_NPY},       {".npz", OUTPUT_REFUSED},     {".pt", OUTPUT_REFUSED},
    {".pth", OUTPUT_REFUSED},   {".parquet", OUTPUT_REFUSED}, {".safetensors", OUTPUT_REFUSED},
    {".arrow", OUTPUT_REFUSED}, {".h5", OUTPUT_REFUSED},      {".feather", OUTPUT_REFUSED},
    {".hdf5", OUTPUT_REFUSED},  {".pkl", OUTPUT_REFUSED},     {".pickle", OUTPUT_REFUSED},
    {".csv", OUTPUT_REFUSED},   {".tsv", OUTPUT_REFUSED},     {".gguf", OUTPUT_REFUSED},
    {".json", OUTPUT_REFUSED},  {NULL, FORMAT_JSONL}};

static int check_output(options *o) {
    const int code = o->format_given || !o->out
                         ? -1
                         : output_ending_choose(
                               TOOL, o->out, endings,
                               ".npy makes a NumPy array, and .jsonl, or any other name, lines of "
                               "JSON (--format jsonl writes them under this name, too)",
                               &o->format);
    if (code >= 0)
        return code;
    if (o->format == FORMAT_NPY && !o->out)
        return tool_error(TOOL, 2, "--format npy needs a file: -o FILE.npy");
    if (o->resume && o->format != FORMAT_NPY)
        return tool_error(TOOL, 2, "--resume needs a NumPy array: -o FILE.npy");
    if (o->resume && pools(o, "none"))
        return tool_error(TOOL, 2,
                          "--resume needs one row for each line; --pooling none makes one for "
                          "each token");
    if (o->n_top > 0 && o->query.n == 0 && !o->rerank)
        return tool_error(TOOL, 2, "--top is for --query and --rerank, which rank the lines");
    if (o->n_top > 0 && o->format == FORMAT_NPY)
        return tool_error(TOOL, 2, "--top is for --format jsonl and table; an array has all lines");
    if (o->document + (o->prompt_name != NULL) + (o->task != NULL) > 1)
        return tool_error(TOOL, 2, "%s and %s cannot be used together",
                          o->document ? "--document" : "--prompt-name",
                          o->task ? "--task" : "--prompt-name");
    return -1;
}

/* A picture is looked at or a sound is heard, and no text is read. */
static int check_media(const options *o) {
    const char *mmproj = o->open.how.params.mmproj;
    const bool model = o->open.how.path || o->open.hub.repo || o->open.hub.url;
    const char *file = o->image ? "--image" : "--audio";
    const int own = o->image ? DUMP_PIXELS : DUMP_MEL, other = o->image ? DUMP_MEL : DUMP_PIXELS;
    const char *dump = own == DUMP_PIXELS ? "--dump pixels or rows" : "--dump mel or rows";
    const char *lacks = !o->image && !o->audio ? "--image FILE or --audio FILE"
                        : !mmproj              ? "--mmproj FILE, the model's eye or ear"
                        : !model               ? "-m MODEL, the model that the eye or ear is for"
                        : o->dump == DUMP_NONE || o->dump == other ? dump
                                                                   : NULL;
    if (!lacks && !o->out)
        return tool_error(TOOL, 2, "--dump needs a file: -o FILE.npy");
    if (lacks)
        return tool_error(TOOL, 2, "%s needs %s",
                          o->image || o->audio ? file
                          : o->dump            ? "--dump"
                                               : "--mmproj",
                          lacks);
    if (tool_is_file_list(o->image ? o->image : o->audio))
        return tool_error(TOOL, 2, "%s: one file at a time is dumped, and %s are several", file,
                          o->image ? o->image : o->audio);
    if (o->image && o->audio)
        return tool_error(TOOL, 2, "--image and --audio cannot be used together");
    if (o->text.n + o->tokens.n > 0 || o->file || o->rerank || o->query.n > 0)
        return tool_error(TOOL, 2, "%s and texts cannot be used together", file);
    return -1;
}

static int check(options *o) {
    if (tool_hub_only_lists(&o->open.hub))
        return -1;
    if (o->image || o->audio || o->open.how.params.mmproj || o->dump)
        return check_media(o);
    int code = check_texts(o);
    if (code < 0)
        code = check_rerank(o);
    if (o->rerank)
        o->open.how.params.pooling = "rank";
    return code < 0 ? check_output(o) : code;
}

int embed_options_read(options *o, int argc, char **argv) {
    static const char *const dumps[] = {"none", "pixels", "rows", "mel", NULL};
    static const char *const formats[] = {"jsonl", "npy", "table", NULL};
    *o = (options){.open = open_options_default()};
    const arg_option own[] = {
        {NULL, .help = "model and texts"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder: an embedding model, a reranker, a "
                 "classifier, or any other model (default: the built-in model builtin:stories; "
                 "builtin:chat is another)"},
        HUB_OPTIONS(o->open.hub),
        {"-p --prompt", ARG_LIST, &o->text, .value = "TEXT", .may_be_empty = true,
         .help = "a text; repeatable"},
        {"-f --file", ARG_STRING, &o->file, .value = "FILE",
         .help = "a text on each line; -: standard input, also if it is a pipe and no text is "
                 "given"},
        {"--json-lines", ARG_FLAG, &o->json_lines,
         .help = "each line is a text as a JSON string, or an object with the string \"text\", so "
                 "that texts may have line breaks"},
        {"--tokens", ARG_LIST, &o->tokens, .value = "IDS",
         .help = "a text as token ids, 1,2,3, taken as they are; repeatable"},
        {"--query", ARG_LIST, &o->query, .value = "TEXT",
         .help = "rank the lines by their similarity to this question, which gets the model's "
                 "prompt for queries, and the lines that for documents; repeatable"},
        {"--task", ARG_STRING, &o->task, .value = "NAME",
         .help = "use the adapter (--lora) for this task, such as retrieval.query, and its prompt; "
                 "--query and --document use those for retrieval"},
        {"--document", ARG_FLAG, &o->document,
         .help = "put the model's prompt for documents before each line"},
        {"--prompt-name", ARG_STRING, &o->prompt_name, .value = "NAME",
         .help = "put this prompt of the model before each line, such as query"},
        {"--rerank", ARG_STRING, &o->rerank, .value = "QUERY",
         .help = "rank the lines by the scores of a reranker"},
        {"--truncate", ARG_FLAG, &o->truncate,
         .help =
             "cut texts that are longer than the model's max_seq_length, or the context (default: "
             "an error)"},
        {"--no-parse-special", ARG_FLAG, &o->no_parse_special,
         .help = "read what looks like a special token, such as [SEP], as text (default: as that "
                 "token); not with --rerank"},
        OPEN_ROWS(SEES),
        {"--image", ARG_STRING, &o->image, .value = "FILE", .help = "look at a picture: --dump"},
        {"--audio", ARG_STRING, &o->audio, .value = "FILE", .help = "listen to a sound: --dump"},
        {"--dump", ARG_CHOICE, &o->dump, .value = "WHAT", .choices = dumps,
         .help = "write a step of looking or listening to -o FILE.npy: pixels, as the eye sees "
                 "them; mel, the spectrogram that the ear hears; or rows, which either makes for "
                 "the text model"},
        {NULL, .help = "vectors"},
        OPEN_ROWS(VECTORS),
        {"--no-normalize", ARG_FLAG, &o->no_normalize,
         .help = "vectors as the model computes them (default: of length 1)"},
        {"--dimensions", ARG_INT, &o->n_dims, .value = "N",
         .help = "only the first N numbers of each vector, which then gets length 1", .min = 1,
         .max = 1 << 24},
        {NULL, .help = "output"},
        {"-o --output", ARG_STRING, &o->out, .value = "FILE",
         .help = "the file to write; FILE.npy: a NumPy array (default: standard output)"},
        {"--format", ARG_CHOICE, &o->format, .value = "FORMAT", .choices = formats,
         .given = &o->format_given,
         .help = "jsonl: a line of JSON for each text (default); npy; table: similarities or "
                 "rankings to read"},
        {"--top", ARG_INT, &o->n_top, .value = "N",
         .help = "only the N best lines of each ranking (default: all)", .min = 1,
         .max = INT32_MAX},
        {"--resume", ARG_FLAG, &o->resume,
         .help = "go on after the lines that -o FILE.npy already has; an interrupted run keeps "
                 "the file"},
        {NULL, .help = "machine"},
        OPEN_ROWS(CONTEXT),
        OPEN_ROWS(MODEL),
        OPEN_ROWS(MACHINE),
        OPEN_ROWS(PLACE),
        OPEN_ROWS(PLAN),
        {0}};
    arg_option table[OPEN_MOST_ROWS];
    open_options_table(table, own, EMBED, &o->open);
    const args_spec spec = {
        TOOL,
        "[-m MODEL | -hf USER/REPO] [-p TEXT | -f FILE] [options]",
        "Makes vectors of texts, which are near each other if the texts mean the like, and ranks "
        "texts by similarity or by a reranker's scores. Results go to standard output or to -o "
        "FILE, everything else to standard error.",
        table,
        NULL,
        &embed_hints,
        .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = check(o);
    if (code < 0)
        code = open_options_check(TOOL, &o->open, false);
    return code;
}

void embed_options_fini(options *o) {
    open_options_fini(&o->open);
    args_list_fini(&o->text);
    args_list_fini(&o->tokens);
    args_list_fini(&o->query);
}
