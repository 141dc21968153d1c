/* llm-tokenize: converts text to token ids and back, with the tokenizer of a GGUF file; `llm-tokenize train` makes one. See
 * docs/tokenizers.md. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_write.h"
#include "common/amounts.h"
#include "common/args.h"
#include "common/hints.h"
#include "common/hub_options.h"
#include "common/paths.h"
#include "common/input.h"
#include "common/json_text.h"
#include "common/load.h"
#include "common/open_template.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/show.h"
#include "llm/internal/chat.h"
#include "common/model_folder.h"
#include "llm/internal/tokenizer.h"
#include "tool.h"

static const char TOOL[] = "llm-tokenize";

typedef struct options {
    hub_options hub;
    const char *model, *text, *file, *decode, *chat, *chat_template;
    bool from_stdin, json_lines, ids, bos, parse_special, show_count, special, show;
    bool parse_in_messages;
    const llm_spans *given; /* of a prompt: what stems from messages */
} options;

/* Returns the length of the printable UTF-8 character at the beginning of s[n]; 0: there is
 * none. */
static size_t printable(const unsigned char *s, size_t n) {
    size_t len = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;
    if (len > n || s[0] < 0x20 || s[0] == 0x7f)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : len; /* U+0080 to U+009F control terminals */
}

/* Prints the inside of a C string: printable UTF-8 unchanged, the rest escaped in octal, as a
 * hexadecimal escape would also take the digits after it. */
static void print_escaped(ggl_str str) {
    static const char named[] = "\n\t\r\"\\", letter[] = "ntr\"\\";
    const unsigned char *s = (const unsigned char *)str.s;
    for (size_t i = 0; i < str.n;) {
        const char *escape = s[i] ? strchr(named, s[i]) : NULL;
        size_t len = printable(s + i, str.n - i);
        if (escape)
            printf("\\%c", letter[escape - named]);
        else if (len == 0)
            printf("\\%03o", s[i]);
        else
            fwrite(s + i, 1, len, stdout);
        i += len > 0 ? len : 1;
    }
}

static void print_ids(const llm_tokens *ids) {
    printf("[");
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%d", i > 0 ? ", " : "", (int)ids->id[i]);
    printf("]\n");
}

static ggl_status tokenize(const llm_tokenizer *t, const options *o, const char *text, size_t n,
                           llm_tokens *ids, ggl_error *err) {
    unsigned flags =
        (o->bos ? LLM_TOKENIZE_BOS : 0u) | (o->parse_special ? LLM_TOKENIZE_SPECIAL : 0u);
    ids->n = ids->lost = 0;
    return llm_tokenize_given(t, o->given, text, n, flags, ids, err);
}

/* Reads text[n], in which each line is a JSON string, and prints a line of ids for each. */
static int encode_lines(const llm_tokenizer *t, const options *o, const char *text, size_t n) {
    ggl_error err = {0};
    llm_tokens ids = {0};
    size_t n_line = 0, count = 0, used, line_n;
    char *line = malloc(n + 1);
    int code = line ? 0 : tool_error(TOOL, 1, "out of memory");
    const char *const begin = text;
    const bool shows_ids = ggl_os_is_terminal(OS_STDOUT); /* which are the progress */
    if (!shows_ids)
        progress_begin(PROGRESS_BYTES, (double)n, "tokenizing");
    for (const char *end = text + n; code == 0 && text < end;) {
        progress_set((double)(text - begin));
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((newline ? newline : end) - text);
        const char *wrong = json_read_string(text, size, line, &line_n, &used);
        n_line++;
        if (!wrong && strspn(text + used, " \t\r") < size - used)
            wrong = "there is more text after the string";
        if (wrong)
            code = tool_error(TOOL, 1, "line %zu: %s", n_line, wrong);
        else if (tokenize(t, o, line, line_n, &ids, &err) != GGL_OK)
            code = tool_error(TOOL, 1, "line %zu: %s", n_line, err.msg);
        else
            print_ids(&ids);
        count += ids.n;
        text += size + (newline != NULL);
    }
    progress_end();
    if (code == 0 && o->show_count)
        printf("tokens: %zu\n", count);
    llm_tokens_fini(&ids);
    free(line);
    return code;
}

static int encode_text(const llm_tokenizer *t, const options *o, const char *text, size_t n) {
    ggl_error err = {0};
    llm_tokens ids = {0};
    progress_begin(NULL, 0, "tokenizing");
    ggl_status s = tokenize(t, o, text, n, &ids, &err);
    progress_end();
    for (size_t i = 0; s == GGL_OK && !o->ids && i < ids.n; i++) {
        printf("%6d  \"", (int)ids.id[i]);
        print_escaped(llm_token_piece(t, ids.id[i]));
        printf("\"\n");
    }
    if (s == GGL_OK && o->ids)
        print_ids(&ids);
    if (s == GGL_OK && o->show_count)
        printf("tokens: %zu\n", ids.n);
    if (s == GGL_OK && ids.n == 0 && n > 0)
        tool_note(TOOL, "the text becomes no token: the vocabulary lacks all of its characters");
    else if (s == GGL_OK && ids.lost > 0)
        tool_note(TOOL, "left out of the text: %zu of %zu byte%s, which the vocabulary lacks",
                  ids.lost, n, llm_amount_s((int64_t)n));
    llm_tokens_fini(&ids);
    return s == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}

static int encode(const llm_tokenizer *t, const options *o) {
    size_t n = o->text ? strlen(o->text) : 0;
    char *read = o->text ? NULL : tool_read_any_text(TOOL, o->file ? o->file : "-", &n);
    if (!o->text && !read)
        return 1;
    const char *text = o->text ? o->text : read;
    int code = o->json_lines ? encode_lines(t, o, text, n) : encode_text(t, o, text, n);
    free(read);
    return code;
}

/* Reports a mistake in a list of ids; line: of --json-lines; 0: the list has no lines. */
GGL_PRINTF(3, 4)
static int wrong_list(size_t line, int code, const char *format, ...) {
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return line ? tool_error(TOOL, code, "--decode: line %zu: %s", line, what)
                : tool_error(TOOL, code, "--decode: %s", what);
}

/* Removes the brackets around a list. Returns -1, or an exit code if there is only one bracket. */
static int take_brackets(char *s, size_t line, int code) {
    char *open = s + strspn(s, " \t\r\n"), *end = s + strlen(s);
    while (end > open && strchr(" \t\r\n", end[-1]))
        end--;
    const bool opened = *open == '[', closed = end > open && end[-1] == ']';
    if (opened != closed)
        return wrong_list(line, code, "the list of ids %s",
                          opened ? "is not closed: ']' is missing"
                                 : "ends with ']' but does not begin with '['");
    if (opened) {
        *open = ' ';
        end[-1] = ' ';
    }
    return -1;
}

/* Reads ids separated by commas or white space, with or without brackets, as --ids prints them.
 * Returns -1, or an exit code. */
static int read_ids(const llm_tokenizer *t, char *s, size_t line, int code, llm_tokens *ids) {
    ids->n = 0;
    if (take_brackets(s, line, code) >= 0)
        return code;
    for (s += strspn(s, " \t\r\n,"); *s; s += strspn(s, " \t\r\n,")) {
        size_t n = strcspn(s, " \t\r\n,");
        char end = s[n];
        uint64_t id = 0;
        bool range;
        s[n] = '\0';
        if (!args_read_uint64(s, &id, &range) && !range)
            return wrong_list(line, code, "'%.*s' is not a token id",
                              (int)ggl_utf8_cut(s, strlen(s), 60), s);
        if (range || id >= (uint64_t)llm_tokenizer_n_vocab(t))
            return wrong_list(line, 1, "there is no token %.*s; the last id is %d",
                              (int)ggl_utf8_cut(s, strlen(s), 60), s,
                              (int)llm_tokenizer_n_vocab(t) - 1);
        if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
            return tool_error(TOOL, 1, "out of memory");
        ids->id[ids->n++] = (int32_t)id;
        s += n;
        *s = end;
    }
    return -1;
}

/* Decodes a list of ids, and prints it as it is, or with --json-lines as a JSON string in a line. */
static int decode_list(const llm_tokenizer *t, const options *o, char *list, size_t line,
                       int code_of_mistakes, llm_tokens *ids) {
    ggl_error err = {0};
    char *text = NULL;
    size_t size = 0;
    int code = read_ids(t, list, line, code_of_mistakes, ids);
    if (code >= 0)
        return code;
    if (llm_detokenize(t, ids->id, ids->n, o->special, &text, &size, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (o->json_lines) {
        llm_json_out out = {0};
        llm_json_put_string(&out, (ggl_str){text, size});
        code = out.failed ? tool_error(TOOL, 1, "out of memory") : 0;
        if (code == 0)
            printf("%s\n", out.s);
        ggl_free(out.s);
    } else {
        code = 0;
        fwrite(text, 1, size, stdout);
    }
    ggl_free(text);
    return code;
}

static int decode(const llm_tokenizer *t, const options *o) {
    bool from_stdin = strcmp(o->decode, "-") == 0;
    size_t n = strlen(o->decode);
    char *list = from_stdin ? tool_read_raw_text(TOOL, "-", SIZE_MAX, &n) : malloc(n + 1);
    if (!list)
        return from_stdin ? 1 : tool_error(TOOL, 1, "out of memory");
    if (!from_stdin)
        memcpy(list, o->decode, n + 1);
    llm_tokens ids = {0};
    int code = 0;
    size_t n_line = 0;
    for (char *next = list, *line = list; code == 0 && line; line = next) {
        next = o->json_lines ? strchr(line, '\n') : NULL;
        if (next)
            *next++ = '\0';
        n_line += o->json_lines;
        if (!o->json_lines || line[strspn(line, " \t\r")])
            code = decode_list(t, o, line, n_line, from_stdin ? 1 : 2, &ids);
    }
    llm_tokens_fini(&ids);
    free(list);
    return code;
}

/* --- conversations ---------------------------------------------------------------------------- */

/* Prints the prompt, or its ids, and how many these are. */
static int print_prompt(const llm_tokenizer *t, const options *o, const llm_spans *given,
                        const char *text, size_t n) {
    options as_is = *o;
    as_is.given = given;
    as_is.bos = false; /* the template writes the begin token itself */
    if (o->ids)
        return encode_text(t, &as_is, text, n);
    ggl_error err = {0};
    llm_tokens ids = {0};
    const ggl_status st = o->show_count ? tokenize(t, &as_is, text, n, &ids, &err) : GGL_OK;
    fwrite(text, 1, n, stdout);
    if (o->show_count && st == GGL_OK)
        printf("%stokens: %zu\n", n > 0 && text[n - 1] != '\n' ? "\n" : "", ids.n);
    llm_tokens_fini(&ids);
    return st == GGL_OK ? 0 : tool_error(TOOL, 1, "%s", err.msg);
}

enum { MOST_TALK = 16 << 20, MOST_TEMPLATE = 4 << 20 }; /* bytes */

enum { MOST_NOTES = 5 };

/* Notes on stderr that the template does not read a name; after a few, only counts. */
static void note_unread(void *arg, ggl_str name) {
    size_t *n = arg;
    if ((*n)++ < MOST_NOTES)
        tool_note(NULL, "the template does not read '%.*s'", (int)(name.n < 200 ? name.n : 200),
                  name.s);
}

static void note_all_unread(const llm_chat *c, const llm_talk *talk) {
    size_t n = 0;
    llm_chat_unread(c, talk, note_unread, &n);
    if (n > MOST_NOTES)
        tool_note(NULL, "nor %zu more name%s", n - MOST_NOTES,
                  llm_amount_s((int64_t)(n - MOST_NOTES)));
}

static void note_changes(const llm_chat_changes *changes) {
    char text[LLM_CHAT_NOTES];
    if (llm_chat_notes(changes, "; ", text))
        tool_note(NULL, "%s", text);
}

/* Prints what a conversation becomes. The template is that of --chat-template: a file, or the name of
 * one in the model or of a built-in one; else the model's usual one. t and file are NULL without a model. */
static int chat(const llm_tokenizer *t, const ggl_gguf *file, const options *o) {
    ggl_error err = {0};
    llm_chat *c = NULL;
    size_t n = 0, n_prompt = 0;
    char *prompt = NULL;
    char *text = tool_read_text(TOOL, o->chat, MOST_TALK, &n);
    if (!text)
        return 1;
    const bool is_stdin = o->chat_template && strcmp(o->chat_template, "-") == 0;
    const template_choice choice = {is_stdin ? "-" : NULL, o->chat_template, MOST_TEMPLATE};
    ggl_status st;
    int code = tool_open_template(&c, TOOL, &choice, file, t, &st, &err);
    if (code >= 0) {
        free(text);
        return code;
    }
    llm_chat_made made = {0};
    const llm_chat_params p = {.name = strcmp(o->chat, "-") ? o->chat : "stdin", .made = &made};
    llm_talk *talk = NULL;
    if (st == GGL_NOT_FOUND && !o->chat_template)
        (void)ggl_within(&err, st, "%s", o->model);
    if (st == GGL_OK) {
        llm_chat_parse_special(c, o->parse_in_messages);
        st = llm_talk_read(&talk, (ggl_str){text, n}, p.name, NULL, &err);
        if (st == GGL_OK)
            st = llm_chat_prompt(c, talk, &p, &prompt, &n_prompt, &err);
        if (st == GGL_OK) {
            note_changes(&made.changes);
            note_all_unread(c, talk);
        }
    }
    code = st == GGL_OK ? print_prompt(t, o, &made.given, prompt, n_prompt)
           : st == GGL_NOT_FOUND && !o->chat_template
               ? tool_error(TOOL, 1, "%s; --chat-template FILE gives one", err.msg)
               : tool_error(TOOL, 1, "%s", err.msg);
    ggl_free(prompt);
    llm_chat_made_fini(&made);
    llm_talk_free(talk);
    llm_chat_free(c);
    free(text);
    return code;
}

static void show_string(const ggl_gguf *file, const char *key) {
    ggl_error err = {0};
    ggl_str s;
    if (ggl_gguf_get_string(file, key, &s, &err) > 0) {
        printf("%-21s ", key);
        print_escaped(s);
        printf("\n");
    }
}

/* Prints the file's settings for the tokenizer, and their effect. */
static int show(const llm_tokenizer *t, const ggl_gguf *file) {
    ggl_error err = {0};
    llm_tokens empty = {0};
    show_string(file, "tokenizer.ggml.model");
    show_string(file, "tokenizer.ggml.pre");
    printf("%-21s %s\n", "kind", llm_tokenizer_kind_name(t));
    printf("%-21s %d\n", "tokens", (int)llm_tokenizer_n_vocab(t));
    for (int32_t id = 0; id < llm_tokenizer_n_vocab(t); id++)
        if (llm_tokenizer_is_eog(t, id)) {
            printf("%-21s %d \"", "ends generation", (int)id);
            print_escaped(llm_token_piece(t, id));
            printf("\"\n");
        }
    if (llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &empty, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    printf("%-21s ", "an empty text is");
    print_ids(&empty);
    llm_tokens_fini(&empty);
    return 0;
}

static int run(const options *o) {
    ggl_error err = {0};
    ggl_gguf *file;
    llm_tokenizer *t;
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    if (tool_load_file(&file, o->model, &params, true, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    ggl_status s = llm_tokenizer_new(&t, file, &err);
    int code = s != GGL_OK ? tool_error(TOOL, 1, "%s", err.msg)
               : o->show   ? show(t, file)
               : o->chat   ? chat(t, file, o)
               : o->decode ? decode(t, o)
                           : encode(t, o);
    ggl_gguf_close(file);
    llm_tokenizer_free(t);
    return code;
}

/* Returns what is wrong with the options; NULL: nothing. */
static const char *wrong_options(const options *o) {
    const int n_sources = (o->text != NULL) + (o->file != NULL) + (o->decode != NULL) +
                          (o->chat != NULL) + o->from_stdin + o->show;
    if (o->chat_template && !o->chat)
        return "--chat-template is for --chat FILE";
    if (n_sources > 1)
        return "-p, -f, --stdin, --decode, --chat and --show cannot be used together";
    if ((o->decode || o->show) && (o->ids || o->show_count))
        return "--ids and --show-count are for texts, and do not go with --decode and --show";
    if (o->chat && (!o->bos || o->special || o->json_lines))
        return "--no-bos, --special and --json-lines do not go with --chat: the template writes "
               "all "
               "special tokens";
    if (o->chat && o->chat_template && strcmp(o->chat, "-") == 0 &&
        strcmp(o->chat_template, "-") == 0)
        return "--chat and --chat-template cannot both be read from stdin";
    if (o->model || o->hub.repo || o->hub.url || tool_hub_only_lists(&o->hub))
        return NULL;
    if (o->chat && !o->chat_template)
        return "--chat needs -m FILE, whose template is used, or --chat-template FILE";
    if (o->chat && (o->ids || o->show_count))
        return "--ids and --show-count need -m FILE, whose tokens are printed";
    return o->chat ? NULL : "-m FILE is missing; see --help";
}

static const args_command commands[] = {{"train", tokenize_train, "makes a tokenizer from texts"},
                                        {0}};

/* A folder that has a tokenizer.json alone, and no model, stands for that file. Returns its path, to be freed; NULL: it is
 * none. */
static char *tokenizer_of_folder(const char *path) {
    static const char name[] = "tokenizer.json";
    if (!path || !llm_is_folder(path) || llm_folder_has(path, "config.json") ||
        !llm_folder_has(path, name))
        return NULL;
    const size_t n = strlen(path) + sizeof name + 1;
    char *file = malloc(n);
    if (file)
        snprintf(file, n, "%s/%s", path, name);
    return file;
}

static int show_tokens(int argc, char **argv) {
    options o = {.bos = true, .parse_special = true};
    const arg_option table[] = {
        {"-m --model", ARG_STRING, &o.model, .value = "FILE",
         .help = "GGUF file, Hugging Face folder, tokenizer.json, builtin:stories or builtin:chat, "
                 "whose tokenizer to use (required, or -hf or -mu)"},
        HUB_OPTIONS(o.hub),
        {"-p --prompt", ARG_STRING, &o.text, .value = "TEXT", .may_be_empty = true,
         .help = "text to tokenize, without resolving escapes"},
        {"-f --file", ARG_STRING, &o.file, .value = "FILE",
         .help = "text from a file; \"-\", the default: from stdin"},
        {"--stdin", ARG_FLAG, &o.from_stdin, .help = "text from stdin"},
        {"--json-lines", ARG_FLAG, &o.json_lines,
         .help = "the text is JSON strings, one on each line; prints a line of ids for each; with "
                 "--decode: lists of ids, one on each line; prints a JSON string for each"},
        {"--ids", ARG_FLAG, &o.ids, .help = "print ids only: [1, 2, 3]"},
        {"--no-bos", ARG_UNFLAG, &o.bos, .help = "do not add the file's begin (and end) tokens"},
        {"--no-parse-special", ARG_UNFLAG, &o.parse_special,
         .help = "treat text that spells a control token, such as </s>, as text"},
        {"--parse-special-in-messages", ARG_FLAG, &o.parse_in_messages,
         .help = "with --chat: what looks like a control token in a message is one, and not text"},
        {"--show-count", ARG_FLAG, &o.show_count, .help = "print the number of tokens at the end"},
        {"--decode", ARG_STRING, &o.decode, .value = "IDS", .may_be_empty = true,
         .help = "print the text of these ids, separated by commas; \"-\": ids from stdin"},
        {"--chat", ARG_STRING, &o.chat, .value = "FILE",
         .help = "print the prompt of a conversation: a JSON object with messages, tools, .."},
        {"--chat-template", ARG_STRING, &o.chat_template, .value = "FILE|NAME",
         .help = "template for --chat: a file, the name of one in the model, or of a built-in one "
                 "(chatml, llama3, ..); -m may be absent"},
        {"--show", ARG_FLAG, &o.show, .help = "print the kind of tokenizer, and no tokens"},
        {"--special", ARG_FLAG, &o.special, .help = "with --decode: show control tokens, too"},
        {0}};
    static const args_example examples[] = {
        {"llm-tokenize -m model.gguf -p \"Hello world\"", "the tokens of a text"},
        {"llm-tokenize -m model.gguf -f text.txt --show-count",
         "the tokens of a file, and how many there are"},
        {"llm-tokenize -m model.gguf --decode 15496,995", "the text of tokens"},
        {"llm-tokenize -m model.gguf --chat messages.json",
         "the prompt of a conversation, by the model's template"},
        {"llm-tokenize train text.txt -o tokenizer.json --vocab-size 8192",
         "makes a tokenizer from a text"},
        {0}};
    const args_spec spec = {
        TOOL,
        "{-m FILE | -hf USER/REPO} [-p TEXT | -f FILE | --stdin | --decode IDS | --chat FILE | "
        "--show] [options]",
        "Prints the tokens of a text, one on each line: the id and the piece as the file spells "
        "it.",
        table,
        NULL,
        &tokenize_hints,
        .examples = examples,
        .commands = commands};
    int code = args_parse(&spec, argc, argv);
    if (code >= 0)
        return code;
    const char *wrong = wrong_options(&o);
    if (wrong)
        return tool_error(TOOL, 2, "%s", wrong);
    o.hub.no_weights = true;
    code = tool_hub_get(TOOL, &o.hub, &o.model);
    char *file = code < 0 ? tokenizer_of_folder(o.model) : NULL;
    o.model = file ? file : o.model;
    if (code < 0)
        code = tool_check_paths(TOOL,
                                (tool_path[]){{"-m", o.model, .needed = true, .model = true},
                                              {"-f", o.file, .needed = true},
                                              {"--chat", o.chat, .needed = true}},
                                3);
    if (code < 0)
        code = o.model ? run(&o) : chat(NULL, NULL, &o);
    tool_hub_fini(&o.hub);
    free(file);
    return code;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    const args_command *c = argc > 1 ? args_find_command(commands, argv[1]) : NULL;
    return tool_finish(TOOL, c ? c->run(argc - 1, argv + 1) : show_tokens(argc, argv));
}
