/* llm-gguf set, unset, get: keys of a file. A file is always written as a whole, beside the old one,
 * which it then replaces: at no time is there a file that is half changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/load.h"
#include "common/paths.h"
#include "common/process.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/show.h"
#include "key_value.h"
#include "tool.h"

/* What is to be done to a file. */
typedef struct edit_job {
    const char *tool, *path, *out; /* out NULL: the file itself */
    bool dry_run, force;
    key_value *set;
    size_t n_set;
    char *const *unset; /* keys */
    size_t n_unset;
} edit_job;

/* The rows that both commands have, of an edit_job. */
#define EDIT_OPTIONS(j)                                                                            \
    {"-o --output", ARG_STRING, &(j).out, .value = "OUT",                                          \
     .help = "write this file, and leave FILE as it is"},                                          \
        {"--dry-run", ARG_FLAG, &(j).dry_run, .help = "print the changes, and write nothing"}, {   \
        "--force", ARG_FLAG, &(j).force,                                                           \
            .help =                                                                                \
                "change FILE also if llm-gguf check would find something wrong with its keys then" \
    }

static const key_value *set_of(const edit_job *j, ggl_str key) {
    for (size_t i = 0; i < j->n_set; i++)
        if (ggl_str_is(key, j->set[i].key))
            return &j->set[i];
    return NULL;
}

static bool is_unset(const edit_job *j, ggl_str key) {
    for (size_t i = 0; i < j->n_unset; i++)
        if (ggl_str_is(key, j->unset[i]))
            return true;
    return false;
}

/* Refuses keys that do not exist, are named twice, or belong to one file of a split model. Returns -1,
 * or an exit code. */
static int check_keys(const edit_job *j, const ggl_gguf *f) {
    for (size_t i = 0; i < j->n_unset; i++)
        if (!ggl_gguf_find(f, j->unset[i]))
            return tool_error(j->tool, 1, "%s has no key '%s'", j->path, j->unset[i]);
    for (size_t i = 0; i < j->n_set + j->n_unset; i++) {
        const char *key = i < j->n_set ? j->set[i].key : j->unset[i - j->n_set];
        if (gguf_is_split_key((ggl_str){key, strlen(key)}))
            return tool_error(j->tool, 2,
                              "%s says how the files of a split model belong together: llm-gguf "
                              "split and llm-gguf merge write it",
                              key);
        for (size_t k = 0; k < i && i < j->n_set; k++)
            if (strcmp(j->set[k].key, key) == 0)
                return tool_error(j->tool, 2, "%s is set twice", key);
    }
    return -1;
}

static void print_change(const ggl_gguf_value *old, const ggl_gguf_value *now) {
    char a[1024], b[1024];
    const ggl_gguf_value *v = old ? old : now;
    ggl_fprint(stdout, "%.*s: ", (int)(v->key.n < 200 ? v->key.n : 200), v->key.s);
    printf("%s -> %s\n", old ? value_text_within(old, 60, a, sizeof a) : "(none)",
           now ? value_text_within(now, 60, b, sizeof b) : "(none)");
}

/* Puts all keys, changed ones in their place, new ones at the end. */
static int put_keys(const edit_job *j, const ggl_gguf *f, ggl_gguf_writer *w) {
    const bool whole = j->out != NULL; /* else the first file of a split model remains one */
    int code = -1;
    for (size_t i = 0; code < 0 && i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        const key_value *set = set_of(j, v->key);
        if (set)
            code = key_value_put(j->tool, w, set, v);
        else if (!is_unset(j, v->key) && !(whole && gguf_is_split_key(v->key)))
            ggl_gguf_put_value(w, v);
    }
    for (size_t i = 0; code < 0 && i < j->n_set; i++)
        if (!ggl_gguf_find(f, j->set[i].key))
            code = key_value_put(j->tool, w, &j->set[i], NULL);
    return code;
}

/* --- what would be wrong with the changed file ------------------------------------------------- */

static ggl_status fill_nothing(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    (void)ctx, (void)to;
    return ggl_fail(err, GGL_USAGE, "the tensor has no data");
}

static ggl_gguf *compose(const edit_job *j, const ggl_gguf *f, ggl_gguf_writer *w) {
    const ggl_gguf_memory nothing = {.size = 0};
    const ggl_gguf_composition c = {
        .size = sizeof c, .name = j->out ? j->out : j->path, .part = &nothing, .n_parts = 1};
    ggl_gguf *out = NULL;
    ggl_error err = {0};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor_later(w, name, t->type, t->n_dims, t->ne, fill_nothing, NULL);
    }
    const ggl_status st = ggl_gguf_compose(&out, w, &c, &err);
    return st == GGL_OK ? out : NULL; /* why it fails, writing the file reports */
}

/* Finds what is wrong with the keys of the file after the changes, without its data. *opens: a model or an adapter can be made of it.
 * Returns -1, or an exit code after a message. */
static int find_faults(const edit_job *j, const ggl_gguf *f, gguf_findings *out, bool *opens) {
    edit_job whole = *j;
    whole.out = ""; /* the keys of parts would say that others are missing */
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const int code = w ? put_keys(&whole, f, w) : tool_error(j->tool, 1, "out of memory");
    ggl_gguf *changed = code < 0 ? compose(j, f, w) : NULL;
    ggl_gguf_writer_free(w);
    out->keeps = true;
    if (changed) {
        gguf_check_keys(out, changed);
        const size_t n_keys = out->n;
        gguf_check_composed(out, changed);
        *opens = out->n == n_keys;
    }
    return code < 0 && out->is_missing ? tool_error(j->tool, 1, "out of memory") : code;
}

static bool has_text(const gguf_findings *c, const char *text) {
    for (size_t i = 0; i < c->n_text; i++)
        if (strcmp(c->text[i], text) == 0)
            return true;
    return false;
}

/* Returns the first text of `a` that `b` lacks; NULL: it has all. */
static const char *first_other(const gguf_findings *a, const gguf_findings *b) {
    for (size_t i = 0; i < a->n_text; i++)
        if (!has_text(b, a->text[i]))
            return a->text[i];
    return NULL;
}

/* Refuses changes in place after which llm-gguf check finds what it did not find before, and warns of them if another file is
 * written, or if they mend a file that cannot be opened, which shows its first fault alone. Returns -1, or an exit code. */
static int check_faults(const edit_job *j, const ggl_gguf *f) {
    const bool in_place = !j->out || strcmp(j->out, j->path) == 0;
    edit_job none = *j;
    none.n_set = none.n_unset = 0;
    gguf_findings before = {0}, after = {0};
    bool opened = true, opens = true;
    int code = find_faults(j, f, &after, &opens);
    if (code < 0 && after.n > 0)
        code = find_faults(&none, f, &before, &opened);
    const char *first = code < 0 ? first_other(&after, &before) : NULL;
    const bool mends = !opened && first_other(&before, &after);
    if (first && in_place && !j->force && !mends)
        code = tool_error(j->tool, 1,
                          "nothing was written, because llm-gguf check would find this: %s; -o OUT "
                          "writes another file, --force changes %s",
                          first, j->path);
    else if (first)
        tool_warning(j->tool, "llm-gguf check finds this now: %s", first);
    gguf_findings_fini(&before);
    gguf_findings_fini(&after);
    return code;
}

/* --- the file ---------------------------------------------------------------------------------- */

/* Prints old and new values: the keys alone are written to memory and read again. */
static int print_changes(const edit_job *j, const ggl_gguf *f) {
    ggl_error err = {0};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    void *data = NULL;
    size_t size;
    ggl_gguf *now = NULL;
    edit_job whole = *j;
    whole.out = ""; /* a part could not be opened from memory */
    int code = w ? put_keys(&whole, f, w) : tool_error(j->tool, 1, "out of memory");
    if (code < 0 && (ggl_gguf_writer_write_memory(w, &data, &size, &err) != GGL_OK ||
                     ggl_gguf_open_memory(&now, data, size, j->path, &err) != GGL_OK))
        code = tool_error(j->tool, 1, "%s", err.msg);
    for (size_t i = 0; code < 0 && i < j->n_set; i++)
        print_change(ggl_gguf_find(f, j->set[i].key), ggl_gguf_find(now, j->set[i].key));
    for (size_t i = 0; code < 0 && i < j->n_unset; i++)
        print_change(ggl_gguf_find(f, j->unset[i]), NULL);
    ggl_gguf_close(now);
    ggl_free(data);
    ggl_gguf_writer_free(w);
    return code;
}

static int write_file(const edit_job *j, const ggl_gguf *f) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    gguf_copy_job copy;
    double bytes = 0;
    int code = gguf_copy_begin(&copy, f) && w ? put_keys(j, f, w)
                                              : tool_error(j->tool, 1, "out of memory");
    for (size_t i = 0; code < 0 && i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        if (!j->out && t->part != 0)
            break; /* other files of a split model stay as they are */
        gguf_copy_tensor(&copy, w, t);
        bytes += (double)t->size;
    }
    if (code < 0)
        code = gguf_write(j->tool, w, &copy, bytes, j->out ? j->out : j->path);
    else
        ggl_gguf_writer_free(w);
    gguf_copy_end(&copy);
    return code;
}

static int edit(const edit_job *j) {
    ggl_gguf *f = gguf_open_file(j->tool, j->path);
    if (!f)
        return 1;
    int code = check_keys(j, f);
    if (code < 0)
        code = check_faults(j, f);
    if (code < 0 && !j->dry_run)
        code = write_file(j, f);
    if (code <= 0) /* after that, because a file that cannot be written is not changed */
        code = print_changes(j, f);
    code = code < 0 ? 0 : code;
    ggl_gguf_close(f);
    return code;
}

static int check_paths(const edit_job *j) {
    const bool same = !j->out || strcmp(j->out, j->path) == 0;
    /* the file may be its own output, because it is replaced when the new one is complete */
    const tool_path paths[] = {{"FILE", j->path, .needed = true, .model = true, .no_folder = true},
                               {"-o", j->dry_run || same ? NULL : j->out, .written = true}};
    const tool_path itself[] = {{"FILE", j->dry_run || !same ? NULL : j->path, .written = true}};
    const int code = tool_check_paths(j->tool, paths, 2);
    return code < 0 ? tool_check_paths(j->tool, itself, 1) : code;
}

int gguf_set(int argc, char **argv) {
    arg_list words = {0};
    edit_job j = {.tool = "llm-gguf set"};
    const arg_option options[] = {EDIT_OPTIONS(j), {0}};
    static const args_example examples[] = {
        {"llm-gguf set model.gguf general.name=str:Mine", "changes a string, or adds it"},
        {"llm-gguf set model.gguf tokenizer.chat_template=str:@template.jinja",
         "the value is what the file holds"},
        {"llm-gguf set model.gguf general.file_type=7 -o new.gguf",
         "keeps the type of a key that is there"},
        {0}};
    const args_spec spec = {j.tool,
                            "FILE KEY=VALUE .. [options]",
                            "Changes keys of a GGUF file, or adds them: KEY=TYPE:VALUE, with the "
                            "types str, bool, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, and "
                            "arr[TYPE] for a list: 1,2,3 or JSON. Without a type, a key keeps its "
                            "own. The file is replaced when the new one is complete.",
                            options,
                            &words,
                            &gguf_hints,
                            .examples = examples};
    int code = args_parse_between(&spec, 2, SIZE_MAX, argc, argv);
    if (code >= 0)
        return code;
    j.path = words.s[0];
    j.set = calloc(words.n, sizeof *j.set);
    if (!j.set)
        code = tool_error(j.tool, 1, "out of memory");
    for (size_t i = 1; code < 0 && i < words.n; i++)
        code = key_value_read(j.tool, words.s[i], &j.set[j.n_set++]);
    if (code < 0)
        code = check_paths(&j);
    process_wait_for_stop();
    if (code < 0)
        code = edit(&j);
    for (size_t i = 0; i < j.n_set; i++)
        key_value_fini(&j.set[i]);
    free(j.set);
    args_list_fini(&words);
    return code;
}

int gguf_unset(int argc, char **argv) {
    arg_list words = {0};
    edit_job j = {.tool = "llm-gguf unset"};
    const arg_option options[] = {EDIT_OPTIONS(j), {0}};
    static const args_example examples[] = {
        {"llm-gguf unset model.gguf general.url", "removes a key"}, {0}};
    const args_spec spec = {j.tool,
                            "FILE KEY .. [options]",
                            "Removes keys of a GGUF file, which is replaced when the new one is "
                            "complete.",
                            options,
                            &words,
                            &gguf_hints,
                            .examples = examples};
    int code = args_parse_between(&spec, 2, SIZE_MAX, argc, argv);
    if (code >= 0)
        return code;
    j.path = words.s[0];
    j.unset = (char *const *)(const void *)(words.s + 1);
    j.n_unset = words.n - 1;
    code = check_paths(&j);
    process_wait_for_stop();
    if (code < 0)
        code = edit(&j);
    args_list_fini(&words);
    return code;
}

/* --- get -------------------------------------------------------------------------------------- */

/* Prints an element: a string as it is, except on a terminal, where it is escaped. */
static void print_element(const ggl_gguf_value *v, uint64_t i, bool terminal) {
    ggl_str s;
    char number[NUMBER_TEXT];
    if (ggl_gguf_string(v, i, &s) && terminal)
        for (size_t k = 0, n; k < s.n; k += n + 1) { /* line by line: newlines are not escaped */
            const char *end = memchr(s.s + k, '\n', s.n - k);
            n = end ? (size_t)(end - s.s) - k : s.n - k;
            ggl_fprint(stdout, "%.*s", (int)n, s.s + k);
            fputs(end ? "\n" : "", stdout);
        }
    else if (ggl_gguf_string(v, i, &s))
        fwrite(s.s, 1, s.n, stdout);
    else
        fputs(number_text(v, i, 17, number), stdout);
}

int gguf_get(int argc, char **argv) {
    static const char tool[] = "llm-gguf get";
    static const arg_option none[] = {{0}};
    arg_list words = {0};
    static const args_example examples[] = {
        {"llm-gguf get model.gguf tokenizer.chat_template", "prints the chat template"}, {0}};
    const args_spec spec = {
        tool,
        "FILE KEY",
        "Prints the value of a key: a string as it is, a list with an element on "
        "each line.",
        none,
        &words,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    const tool_path paths[] = {{"FILE", words.s[0], .needed = true, .model = true}};
    code = tool_check_paths(tool, paths, 1);
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    const ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    if (code < 0 && tool_load_file(&f, words.s[0], &p, true, &err) != GGL_OK)
        code = tool_error(tool, 1, "%s", err.msg);
    const ggl_gguf_value *v = f ? ggl_gguf_find(f, words.s[1]) : NULL;
    if (code < 0 && !v)
        code = tool_error(tool, 1, "%s has no key '%s'", words.s[0], words.s[1]);
    for (uint64_t i = 0; code < 0 && i < v->n; i++) {
        print_element(v, i, ggl_os_is_terminal(OS_STDOUT));
        if (v->is_array || v->type != GGL_GGUF_STRING || ggl_os_is_terminal(OS_STDOUT))
            putchar('\n');
    }
    ggl_gguf_close(f);
    args_list_fini(&words);
    return code < 0 ? 0 : code;
}
