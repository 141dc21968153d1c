/* llm-grammar: checks texts against a grammar or a JSON schema. See docs/tools.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grammar_source.h"
#include "common/input.h"
#include "common/process.h"
#include "ggl/internal/show.h"
#include "tool.h"

typedef struct options {
    grammar_source source;
    const char *model;
    bool bench, verbose;
    arg_list files;
} options;

/* --- texts ------------------------------------------------------------------------------------ */

static bool continues_char(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Line and column of s[at], counted from 1 in characters. */
static void find_place(const char *s, size_t at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at; i++)
        if (s[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (!continues_char(s[i])) {
            ++*column;
        }
}

/* Writes what stands at s[at], at < n: the character, or a name of what nobody would see. */
static void describe(const char *s, size_t n, size_t at, char *buf, size_t size) {
    const size_t len = ggl_utf8_length(s + at, n - at);
    if (len == 0)
        snprintf(buf, size, "the byte 0x%02x, which is not UTF-8", (unsigned char)s[at]);
    else if (len == 3 && memcmp(s + at, "\xef\xbb\xbf", len) == 0)
        snprintf(buf, size, "a byte order mark (U+FEFF)");
    else
        snprintf(buf, size, "'%.*s'", (int)len, s + at);
}

static int refuse(const char *name, llm_matcher *m, const char *s, size_t n, size_t at) {
    char expected[400], found[60] = "the text ends here";
    size_t line, column;
    while (at > 0 && at < n && continues_char(s[at]) &&
           ggl_utf8_length(s + at - 1, n - at + 1) != 1)
        at--;
    find_place(s, at, &line, &column);
    llm_matcher_expected(m, expected, sizeof expected);
    if (at < n)
        describe(s, n, at, found, sizeof found);
    ggl_fprint(stdout, "%s:%zu:%zu: %s, expected %s\n", name, line, column, found, expected);
    return 1;
}

/* Checks one file. White space around JSON is not the grammar's, and is skipped. */
static int check_file(const options *o, llm_matcher *m, const char *path) {
    ggl_error err = {0};
    size_t n = 0, from = 0, accepted = 0;
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    char *s = tool_read_at_most(GRAMMAR_TOOL, path, GRAMMAR_MOST_TEXT, &n);
    if (!s)
        return 1;
    size_t end = n;
    if (!o->source.grammar) {
        while (from < end && strchr(" \t\r\n", s[from]) && s[from])
            from++;
        while (end > from && s[end - 1] && strchr(" \t\r\n", s[end - 1]))
            end--;
    }
    llm_matcher_reset(m);
    const ggl_status st = llm_matcher_accept_bytes(m, s + from, end - from, &accepted, &err);
    int code = 0;
    if (st != GGL_OK)
        code = tool_error(GRAMMAR_TOOL, 1, "%s: %s", name, err.msg);
    else if (accepted < end - from || !llm_matcher_is_complete(m))
        code = refuse(name, m, s, end, from + accepted);
    else
        ggl_fprint(stdout, "%s: accepted\n", name);
    free(s);
    return code;
}

static int check_files(const options *o) {
    ggl_error err = {0};
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    int code = grammar_read(&g, GRAMMAR_TOOL, &o->source, false);
    if (code >= 0)
        return process_stopped ? code : 2; /* 1 is for texts */
    if (llm_matcher_new(&m, g, NULL, &err) != GGL_OK)
        code = tool_error(GRAMMAR_TOOL, 1, "%s", err.msg);
    else {
        /* nobody waits for the next byte here */
        llm_matcher_limit(m, LLM_MATCHER_USUAL_STEPS, LLM_MATCHER_USUAL_STEPS);
        code = 0;
    }
    for (size_t i = 0; m && i < o->files.n; i++) {
        const int one = check_file(o, m, o->files.s[i]);
        code = one > code ? one : code;
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    return code;
}

/* Returns what is wrong with the options; NULL: nothing. */
static const char *wrong_options(const options *o) {
    const int n =
        (o->source.grammar != NULL) + (o->source.schema != NULL) + o->source.json + o->bench;
    if (n > 1)
        return "--grammar, --json-schema, --json and --bench cannot be used together";
    if (n == 0)
        return "one of --grammar FILE, --json-schema FILE, --json or --bench is needed; see --help";
    if (o->files.n == 0)
        return o->bench ? "--bench needs a folder of schemas, or a file of them (.jsonl)"
                        : "no file to check; \"-\" is stdin";
    if (!o->bench && (o->model || o->verbose))
        return "-m and -v are for --bench";
    return NULL;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    options o = {0};
    const arg_option table[] = {
        {"--grammar", ARG_STRING, &o.source.grammar, .value = "FILE|GBNF",
         .help = "a grammar in GBNF: a file, or the grammar itself, which contains ::="},
        {"--json-schema", ARG_STRING, &o.source.schema, .value = "FILE|JSON",
         .help = "a JSON schema: a file, or the schema itself, which begins with {, "
                 "or is true or false"},
        {"--json", ARG_FLAG, &o.source.json, .help = "any JSON text"},
        {"--bench", ARG_FLAG, &o.bench,
         .help = "judge the instances of schemas, {\"name\", \"schema\", \"tests\": [{\"valid\", "
                 "\"data\"}]} on each line of FILE.jsonl or in each file of a folder, and time it"},
        {"-m --model", ARG_STRING, &o.model, .value = "FILE",
         .help = "with --bench: GGUF file with the vocabulary for which masks are made"},
        {"-v --verbose", ARG_FLAG, &o.verbose,
         .help = "with --bench: name each schema that is refused"},
        {0}};
    static const args_example examples[] = {
        {"llm-grammar --json-schema user.json answer.json", "does a file fit a JSON schema?"},
        {"llm-grammar --grammar list.gbnf text.txt", "does a text fit a grammar?"},
        {"llm-grammar --bench schemas.jsonl -m model.gguf", "judges and times a set of schemas"},
        {0}};
    const args_spec spec = {GRAMMAR_TOOL,
                            "(--grammar FILE | --json-schema FILE | --json) TEXT-FILE...",
                            "Reports whether texts fit a grammar; if not, where the first error "
                            "is, and what was expected there. Exit code 0: all texts fit; 1: one "
                            "does not; 2: the grammar or schema cannot be used.",
                            table,
                            &o.files,
                            NULL,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0) {
        const char *wrong = wrong_options(&o);
        code = wrong     ? tool_error(GRAMMAR_TOOL, 2, "%s", wrong)
               : o.bench ? grammar_bench(&o.files, o.model, o.verbose)
                         : check_files(&o);
        code = tool_finish(GRAMMAR_TOOL, code);
    }
    args_list_fini(&o.files);
    return code;
}
