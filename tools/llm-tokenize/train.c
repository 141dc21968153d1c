/* llm-tokenize train: makes a tokenizer from texts. See docs/tokenizers.md. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/args.h"
#include "common/input.h"
#include "common/json.h"
#include "common/lines.h"
#include "common/model_folder.h"
#include "common/paths.h"
#include "common/progress.h"
#include "common/user_text.h"
#include "common/work_threads.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "llm/internal/tokenizer_trainer.h"
#include "tool.h"

static const char TOOL[] = "llm-tokenize train";

typedef struct options {
    const char *out, *pre, *json_field;
    const char *role[4]; /* unknown, bos, eos, pad */
    int kind;            /* llm_vocabulary_kind */
    int64_t n_vocab, min_count, max_length, n_seed, n_threads;
    double coverage;
    bool add_bos, add_eos, no_byte_fallback, no_space_prefix;
    arg_list files, special;
} options;

/* --- texts ------------------------------------------------------------------------------------ */

/* Texts that are passed on together, so that threads share them. */
typedef struct batch {
    llm_tokenizer_trainer *t;
    ggl_str *text; /* [n] */
    size_t *at;    /* [n]: where each begins in `bytes` */
    size_t n, cap_text, cap_at;
    char *bytes;
    size_t n_bytes, cap_bytes;
} batch;

enum { BATCH = 32 << 20 }; /* bytes */

static ggl_status flush(batch *b, ggl_error *err) {
    for (size_t i = 0; i < b->n; i++)
        b->text[i].s = b->bytes + b->at[i];
    const ggl_status s = llm_tokenizer_trainer_add(b->t, b->text, b->n, err);
    b->n = b->n_bytes = 0;
    return s;
}

static ggl_status add_copy(batch *b, ggl_str s, ggl_error *err) {
    if (!ggl_grow(&b->text, &b->cap_text, b->n + 1, sizeof *b->text) ||
        !ggl_grow(&b->at, &b->cap_at, b->n + 1, sizeof *b->at) ||
        !ggl_grow(&b->bytes, &b->cap_bytes, b->n_bytes + s.n + 1, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(b->bytes + b->n_bytes, s.s, s.n);
    b->at[b->n] = b->n_bytes;
    b->text[b->n++].n = s.n;
    b->n_bytes += s.n;
    return b->n_bytes >= BATCH ? flush(b, err) : GGL_OK;
}

/* Adds the field of an object, the line of a file. */
static ggl_status add_line(batch *b, ggl_str line, const char *field, ggl_error *err) {
    llm_json *doc;
    ggl_status s = llm_json_parse(&doc, line.s, line.n, "", err);
    if (s != GGL_OK)
        return s;
    const json_value *v = llm_json_get(&doc->root, field);
    if (v && v->kind == JSON_STRING)
        s = add_copy(b, json_str(v), err);
    else if (v)
        s = ggl_fail(err, GGL_FORMAT, "'%s' is %s, not a string", field,
                     llm_json_kind_text(v->kind));
    else
        s = ggl_fail(err, GGL_FORMAT, "%s",
                     doc->root.kind == JSON_OBJECT ? "the object has no such field"
                                                   : "it is not an object");
    llm_json_free(doc);
    return s;
}

static int add_lines(llm_tokenizer_trainer *t, const char *name, ggl_str text, const char *field) {
    ggl_error err = {0};
    ggl_str line;
    batch b = {.t = t};
    size_t n_line = 0;
    ggl_status s = GGL_OK;
    while (s == GGL_OK && llm_take_line(&text, &line)) {
        size_t i = 0;
        n_line++;
        while (i < line.n && strchr(" \t\r", line.s[i]) && line.s[i])
            i++;
        s = i < line.n ? add_line(&b, line, field, &err) : GGL_OK;
    }
    int code = 0;
    if (s != GGL_OK)
        code = tool_error(TOOL, 1, "%s: line %zu: --json-field %s: %s", name, n_line, field,
                          err.msg[0] == ':' ? err.msg + 1 : err.msg);
    else if (flush(&b, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s: %s", name, err.msg);
    ggl_free(b.text);
    ggl_free(b.at);
    ggl_free(b.bytes);
    return code;
}

static int add_file(llm_tokenizer_trainer *t, const options *o, const char *path) {
    ggl_error err = {0};
    ggl_str text = {0};
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    progress_begin(NULL, 0, "reading %s", name);
    char *s = tool_read_any_text(TOOL, path, &text.n);
    int code = s ? 0 : 1;
    const size_t n = text.n;
    if (s && !o->json_field) /* as llm-train reads it */
        text.n = llm_text_end_lines(s, n, s);
    text.s = s;
    if (text.n < n)
        tool_note(TOOL, "%s: " LLM_TEXT_LINES_ENDED, name);
    if (s && !o->json_field && llm_text_is_json(name, text))
        tool_note(
            TOOL,
            "%s is JSON, and is learned as it is, with its keys and braces: --json-field NAME "
            "learns the text of a field of each line",
            name);
    if (s && o->json_field)
        code = add_lines(t, name, text, o->json_field);
    else if (s && llm_tokenizer_trainer_add(t, &text, 1, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s: %s", name, err.msg);
    progress_end();
    free(s);
    return code;
}

/* --- the tokenizer ---------------------------------------------------------------------------- */

static bool show_progress(void *ctx, const char *what, size_t done, size_t total) {
    const char **last = ctx;
    if (total == 0) /* within the job of a file */
        return true;
    if (*last != what) {
        if (*last)
            progress_end();
        progress_begin(NULL, (double)total, "%s", what);
        *last = what;
    }
    return progress_share(NULL, done, total);
}

static void describe(const options *o, const llm_vocabulary_result *r) {
    if (tool_is_quiet())
        return;
    ggl_fprint(stderr,
               "%s: %" PRId32 " tokens: %" PRId32 " special, %" PRId32
               " bytes and characters, %" PRId32 " piece%s\n",
               o->out, r->n_vocab, r->n_special, r->n_base, r->n_vocab - r->n_special - r->n_base,
               llm_amount_s(r->n_vocab - r->n_special - r->n_base));
    ggl_fprint(stderr,
               "learned from %" PRIu64 " text%s of %" PRIu64 " byte%s, %" PRIu64
               " different word%s; now %" PRIu64 " token%s, %.3f bytes each\n",
               r->n_texts, llm_amount_s((int64_t)r->n_texts), r->n_bytes,
               llm_amount_s((int64_t)r->n_bytes), r->n_words, llm_amount_s((int64_t)r->n_words),
               r->n_tokens, llm_amount_s((int64_t)r->n_tokens),
               (double)r->n_bytes / (double)(r->n_tokens ? r->n_tokens : 1));
    if (r->n_vocab < o->n_vocab)
        tool_note(TOOL,
                  "--vocab-size %" PRId64
                  " is not reached: in these texts, there are no more pieces that occur %" PRId64
                  " times; more text, or a smaller --min-count, gives more",
                  o->n_vocab, o->min_count);
}

static int learn_and_write(llm_tokenizer_trainer *t, const options *o, const char **what) {
    ggl_error err = {0};
    int code = 0;
    for (size_t i = 0; i < o->files.n && code == 0; i++)
        code = add_file(t, o, o->files.s[i]);
    if (code != 0)
        return code;
    ggl_status s = llm_tokenizer_trainer_train(t, &err);
    if (*what)
        progress_end();
    if (s == GGL_OK)
        s = llm_tokenizer_trainer_write(t, o->out, &err);
    if (s != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const llm_vocabulary_result r = llm_tokenizer_trainer_result(t);
    describe(o, &r);
    return 0;
}

static int train(const options *o) {
    ggl_error err = {0};
    const char *what = NULL;
    llm_tokenizer_trainer *t;
    const llm_vocabulary_params p = {.size = sizeof p,
                                     .kind = (llm_vocabulary_kind)o->kind,
                                     .n_vocab = (int32_t)o->n_vocab,
                                     .pre = o->pre,
                                     .unknown = o->role[0],
                                     .bos = o->role[1],
                                     .eos = o->role[2],
                                     .pad = o->role[3],
                                     .special = o->special.s,
                                     .n_special = o->special.n,
                                     .add_bos = o->add_bos,
                                     .add_eos = o->add_eos,
                                     .min_count = o->min_count,
                                     .max_length = (int32_t)o->max_length,
                                     .coverage = o->coverage,
                                     .no_byte_fallback = o->no_byte_fallback,
                                     .no_space_prefix = o->no_space_prefix,
                                     .n_seed = (int32_t)o->n_seed,
                                     .n_threads = o->n_threads ? (int)o->n_threads : work_threads(),
                                     .progress = show_progress,
                                     .ctx = &what};
    const ggl_status s = llm_tokenizer_trainer_new(&t, &p, &err);
    if (s != GGL_OK)
        return tool_error(TOOL, s == GGL_NOMEM ? 1 : 2, "%s", err.msg);
    const int code = learn_and_write(t, o, &what);
    llm_tokenizer_trainer_free(t);
    return code;
}

/* --- the command line ------------------------------------------------------------------------- */

/* Returns what is wrong with the options; NULL: nothing. */
static const char *wrong_options(const options *o) {
    const bool is_bpe = o->kind == LLM_VOCABULARY_BPE;
    if (o->files.n == 0)
        return "which FILE? \"-\" is stdin; --help tells more";
    size_t n_stdin = 0;
    for (size_t i = 0; i < o->files.n; i++)
        n_stdin += strcmp(o->files.s[i], "-") == 0;
    if (n_stdin > 1)
        return "standard input (-) is given more than once, but it can be read only once";
    if (!o->out)
        return "-o FILE is missing, as in: -o tokenizer.json";
    if (is_bpe && (o->coverage != 0 || o->no_space_prefix))
        return "--coverage and --no-space-prefix are for --model spm and unigram: bpe works on "
               "bytes, all of which have tokens";
    if (o->no_byte_fallback && o->kind != LLM_VOCABULARY_UNIGRAM)
        return "--no-byte-fallback is for --model unigram";
    if (o->n_seed && o->kind != LLM_VOCABULARY_UNIGRAM)
        return "--seeds is for --model unigram";
    if (o->max_length > 64 && o->kind == LLM_VOCABULARY_UNIGRAM)
        return "--max-length has to be at most 64 with --model unigram";
    return NULL;
}

/* Makes the folder OUT if it is a new name that is that of no file: programs know the files by their ends. Returns -1, or an exit code after a
 * message. */
static int make_folder(const char *out) {
    const char *name = ggl_os_last_separator(out);
    name = name ? name + 1 : out;
    if (ggl_os_exists(out) || ggl_ends_with(out, ".gguf") || ggl_ends_with(out, ".json"))
        return -1;
    if (strchr(name, '.'))
        return tool_error_about(TOOL, 2,
                                "-o %s: a file is called *.gguf or *.json, and a folder has no "
                                "point in its name: by another name no program would open it",
                                out);
    return ggl_os_make_folder(out, false)
               ? -1
               : tool_error_about(TOOL, 1, "-o %s: the folder cannot be made: %s", out,
                                  strerror(errno));
}

/* Checks that the files can be read and OUT written: a file, or those in a folder. */
static int check_paths(const options *o) {
    const bool folder = llm_is_folder(o->out);
    ggl_arena arena = {0};
    const char *out = folder ? ggl_arena_printf(&arena, "%s/tokenizer.json", o->out) : o->out;
    tool_path *paths = ggl_calloc(o->files.n + 1, sizeof *paths);
    int code = paths && out ? -1 : tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < o->files.n && code < 0; i++)
        paths[i] = (tool_path){"FILE", o->files.s[i], .needed = strcmp(o->files.s[i], "-") != 0};
    if (code < 0) {
        paths[o->files.n] = (tool_path){"-o", out, .written = true};
        code = tool_check_paths(TOOL, paths, o->files.n + 1);
    }
    if (code < 0)
        code = make_folder(o->out);
    ggl_free(paths);
    ggl_arena_fini(&arena);
    return code;
}

int tokenize_train(int argc, char **argv) {
    static const char *const kinds[] = {"bpe", "spm", "unigram", NULL}; /* llm_vocabulary_kind */
    options o = {.n_vocab = 8192, .min_count = 2};
    const arg_option table[] = {
        {"-o --output", ARG_STRING, &o.out, .value = "OUT",
         .help =
             "file to write (required): GGUF if it is called *.gguf, a tokenizer.json if *.json; "
             "in "
             "a folder, which is made if need be, a tokenizer.json and a tokenizer_config.json"},
        {"--vocab-size", ARG_INT, &o.n_vocab, .value = "N", .help = "tokens in all (default: 8192)",
         .min = 1, .max = 1 << 24},
        {"--model", ARG_CHOICE, &o.kind, .value = "KIND", .choices = kinds,
         .help = "bpe (default): byte-pair encoding of bytes, as of GPT-2 and Llama 3; spm: of "
                 "characters, as SentencePiece's and of Llama 2; unigram: SentencePiece's other "
                 "kind, as of T5"},
        {"--pre", ARG_STRING, &o.pre, .value = "NAME",
         .help =
             "what cuts texts into words, beyond which no piece goes: a name of "
             "docs/tokenizers.md, such as tekken or smaug-bpe (default: gpt-2 for bpe, letters, "
             "numbers and signs for the others)"},
        {"--json-field", ARG_STRING, &o.json_field, .value = "NAME",
         .help = "the files have JSON objects, one on each line; this field is the text"},
        {NULL, .help = "tokens"},
        {"--special", ARG_LIST, &o.special, .value = "TOKEN",
         .help = "a special token; can be repeated. In the texts it divides, and is not counted"},
        {"--bos", ARG_STRING, &o.role[1], .value = "TOKEN", .may_be_empty = true,
         .help = "the special token that begins texts (default: <s> for spm and unigram; \"\": "
                 "none)"},
        {"--eos", ARG_STRING, &o.role[2], .value = "TOKEN", .may_be_empty = true,
         .help = "the one that ends texts (default: </s> for spm and unigram; \"\": none)"},
        {"--unk", ARG_STRING, &o.role[0], .value = "TOKEN", .may_be_empty = true,
         .help = "the one for what has no token (default: <unk> for spm and unigram; \"\": none)"},
        {"--pad", ARG_STRING, &o.role[3], .value = "TOKEN", .help = "the one that fills batches"},
        {"--add-bos", ARG_FLAG, &o.add_bos, .help = "texts become tokens with bos in front"},
        {"--add-eos", ARG_FLAG, &o.add_eos, .help = "texts become tokens with eos at the end"},
        {NULL, .help = "pieces"},
        {"--min-count", ARG_INT, &o.min_count, .value = "N",
         .help = "what occurs fewer times becomes no piece (default: 2)", .min = 1,
         .max = 1000000000},
        {"--max-length", ARG_INT, &o.max_length, .value = "N",
         .help = "the longest piece: 256 bytes of bpe, 16 characters of the others by default",
         .min = 1, .max = 65536},
        {"--coverage", ARG_FLOAT, &o.coverage, .value = "X",
         .help =
             "the share of all characters that have tokens of their own, the most frequent ones "
             "(default: 0.9995)",
         .min = 1e-9, .max = 1},
        {"--no-byte-fallback", ARG_FLAG, &o.no_byte_fallback,
         .help = "unigram: other characters become unk, not tokens of their bytes"},
        {"--no-space-prefix", ARG_FLAG, &o.no_space_prefix,
         .help = "spm and unigram: put no space before a text"},
        {"--seeds", ARG_INT, &o.n_seed, .value = "N",
         .help = "unigram: pieces to begin with (default: a million)", .min = 1, .max = 1 << 26},
        {NULL, .help = "work"},
        {"-t --threads", ARG_INT, &o.n_threads, .value = "N",
         .help = "threads (default: the number of processors); the file is the same for any number",
         .min = 1, .max = TOOL_MAX_THREADS},
        {0}};
    static const args_example examples[] = {
        {"llm-tokenize train text.txt -o tokenizer.json --vocab-size 8192",
         "as of GPT-2, from one text"},
        {"llm-tokenize train a.txt b.txt -o vocab.gguf --pre tekken",
         "as of Llama 3, from two texts"},
        {"llm-tokenize train posts.jsonl --json-field text -o folder --model unigram",
         "as of T5, from a field of JSON lines"},
        {0}};
    const args_spec spec = {TOOL,
                            "FILE.. -o OUT [options]",
                            "Makes a tokenizer from texts: learns the pieces that it cuts texts "
                            "into. The same texts give the same file.",
                            table,
                            &o.files,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    const char *wrong = code < 0 ? wrong_options(&o) : NULL;
    if (wrong)
        code = tool_error(TOOL, 2, "%s", wrong);
    if (code < 0)
        code = check_paths(&o);
    if (code < 0)
        code = train(&o);
    args_list_fini(&o.files);
    args_list_fini(&o.special);
    return code;
}
