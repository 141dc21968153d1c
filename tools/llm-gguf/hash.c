/* llm-gguf hash: digests of tensors, as lines that --check compares with another copy of a model.
 *
 *     sha256  5e1c..  model.gguf:token_embd.weight
 *     sha256  09ab..  model.gguf                      of all tensors' data, in the order of the file */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/hints.h"
#include "common/input.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/sha256.h"
#include "common/work_share.h"
#include "common/work_threads.h"
#include "ggl/internal/xxh64.h"
#include "ggl/internal/show.h"
#include "tool.h"

static const char TOOL[] = "llm-gguf hash";

typedef enum hash_kind { HASH_SHA256, HASH_XXH64, HASH_KINDS } hash_kind;
static const char *const kinds[] = {"sha256", "xxh64", NULL};

/* A digest in the making. */
typedef struct digest {
    hash_kind kind;
    sha256 sha;
    ggl_xxh64 xxh;
} digest;

static void digest_begin(digest *d, hash_kind kind) {
    d->kind = kind;
    llm_sha256_begin(&d->sha);
    ggl_xxh64_begin(&d->xxh);
}

static void digest_add(digest *d, const void *data, size_t n) {
    if (d->kind == HASH_SHA256)
        llm_sha256_add(&d->sha, data, n);
    else
        ggl_xxh64_add(&d->xxh, data, n);
}

static void digest_end(digest *d, char hex[SHA256_HEX]) {
    if (d->kind == HASH_SHA256)
        llm_sha256_end(&d->sha, hex);
    else
        snprintf(hex, SHA256_HEX, "%016" PRIx64, ggl_xxh64_end(&d->xxh));
}

/* --- hashing ---------------------------------------------------------------------------------- */

typedef struct hash_job {
    const ggl_gguf *file;
    digest one[HASH_KINDS], all[HASH_KINDS]; /* of the tensor, of all tensors */
    bool wanted[HASH_KINDS];
    digest *part[2 * HASH_KINDS]; /* those that are computed, for threads */
    size_t n_parts;
    double done;
    /* the current piece */
    const void *data;
    size_t n;
} hash_job;

static void add_part(void *ctx, size_t i, int thread) {
    hash_job *j = ctx;
    (void)thread;
    digest_add(j->part[i], j->data, j->n);
}

static ggl_status add_piece(void *ctx, const void *data, size_t n, ggl_error *err) {
    hash_job *j = ctx;
    (void)err;
    j->data = data;
    j->n = n;
    llm_work_share(work_threads(), j->n_parts, add_part, j);
    return GGL_OK;
}

static void begin_all(hash_job *j) {
    j->n_parts = 0;
    for (int k = 0; k < HASH_KINDS; k++) {
        if (!j->wanted[k])
            continue;
        digest_begin(&j->all[k], (hash_kind)k);
        j->part[j->n_parts++] = &j->one[k];
        j->part[j->n_parts++] = &j->all[k];
    }
}

static ggl_status hash_tensor(hash_job *j, const ggl_gguf_tensor *t, ggl_error *err) {
    for (int k = 0; k < HASH_KINDS; k++)
        digest_begin(&j->one[k], (hash_kind)k);
    return gguf_stream(j->file, t, GGUF_STEP, &j->done, add_piece, j, err);
}

static void print_line(hash_kind k, digest *d, const char *path, ggl_str name) {
    char hex[SHA256_HEX];
    digest_end(d, hex);
    tool_begin_line();
    ggl_fprint(stdout, "%-8s  %s  %s%s%.*s\n", kinds[k], hex, path, name.n ? ":" : "", (int)name.n,
               name.s);
}

static int failed(const ggl_error *err) {
    return tool_error(TOOL, process_stopped ? process_stop_code() : 1, "%s", err->msg);
}

static int print_hashes(hash_job *j, const char *path) {
    ggl_error err = {0};
    begin_all(j);
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(j->file, i);
        if (hash_tensor(j, t, &err) != GGL_OK)
            return failed(&err);
        for (int k = 0; k < HASH_KINDS; k++)
            if (j->wanted[k])
                print_line((hash_kind)k, &j->one[k], path, t->name);
    }
    for (int k = 0; k < HASH_KINDS; k++)
        if (j->wanted[k])
            print_line((hash_kind)k, &j->all[k], path, (ggl_str){"", 0});
    return 0;
}

/* --- checking --------------------------------------------------------------------------------- */

/* What a list says of each tensor: hex digits in its text, NULL: nothing. */
typedef struct manifest {
    const char **tensor[HASH_KINDS]; /* [n_tensors] */
    const char *all[HASH_KINDS];
    size_t n_missing; /* tensors of the list that the file lacks */
    size_t n_unknown; /* lines with digests of other kinds, such as SHA-1 */
} manifest;

/* Returns the index of the tensor that "model.gguf:NAME" means; SIZE_MAX: none. The path may have
 * colons, too. */
static size_t find_tensor(const ggl_gguf *f, const char *name) {
    enum { MOST = 64 }; /* bytes of a tensor's name */
    const size_t n = strlen(name);
    for (const char *at = strchr(n > MOST ? name + n - MOST - 1 : name, ':'); at;
         at = strchr(at + 1, ':')) {
        const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, at + 1);
        if (t)
            return (size_t)(t - ggl_gguf_tensor_at(f, 0));
    }
    return SIZE_MAX;
}

/* True if the name, which is no tensor's, is that of a file: what follows its last colon, if any, is
 * not a tensor that this file lacks. */
static bool is_whole(const char *name) {
    const size_t n = strlen(name);
    return !strchr(name, ':') || (n > 5 && strcmp(name + n - 5, ".gguf") == 0);
}

/* Reads a line, which it changes. Returns -1, or an exit code after a message. */
static int read_line(manifest *m, const hash_job *j, char *line, size_t number, const char *path) {
    char *kind = strtok(line, " \t\r"), *hex = kind ? strtok(NULL, " \t\r") : NULL;
    char *name = hex ? strtok(NULL, "\r") : NULL;
    if (!kind || kind[0] == '#')
        return -1;
    int k = 0;
    while (k < HASH_KINDS && strcmp(kinds[k], kind) != 0)
        k++;
    const size_t digits = k == HASH_SHA256 ? 64 : 16;
    if (k < HASH_KINDS &&
        (!name || strspn(hex, "0123456789abcdefABCDEF") != digits || strlen(hex) != digits))
        return tool_error(TOOL, 1,
                          "%s:%zu: this is not a line such as 'sha256  HEX  FILE:TENSOR', with %zu "
                          "hexadecimal digits",
                          path, number, digits);
    if (k == HASH_KINDS) {
        m->n_unknown++;
        return -1;
    }
    name += strspn(name, " \t");
    const size_t i = find_tensor(j->file, name);
    if (i == SIZE_MAX && !is_whole(name)) {
        ggl_fprint(stdout, "%s: MISSING\n", name);
        m->n_missing++;
    } else if (i == SIZE_MAX) {
        m->all[k] = hex;
    } else {
        m->tensor[k][i] = hex;
    }
    return -1;
}

/* Compares a digest with the list. Returns whether they agree. */
static bool compare(digest *d, const char *wanted, ggl_str name, const char *path, bool *any) {
    char hex[SHA256_HEX];
    if (!wanted)
        return true;
    digest_end(d, hex);
    *any = true;
    bool same = strlen(hex) == strlen(wanted);
    for (size_t i = 0; same && hex[i]; i++)
        same = hex[i] == (wanted[i] >= 'A' && wanted[i] <= 'F' ? wanted[i] + 32 : wanted[i]);
    if (!same) {
        tool_begin_line();
        ggl_fprint(stdout, "%s%s%.*s: DIFFERENT\n", path, name.n ? ":" : "", (int)name.n, name.s);
    }
    return same;
}

static int compare_all(hash_job *j, const manifest *m, const char *path) {
    ggl_error err = {0};
    size_t n_wrong = 0, n_right = 0, n_unlisted = 0;
    for (int k = 0; k < HASH_KINDS; k++) {
        j->wanted[k] = m->all[k] != NULL;
        for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++)
            j->wanted[k] |= m->tensor[k][i] != NULL;
    }
    begin_all(j);
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(j->file, i);
        bool same = true, any = false;
        if (hash_tensor(j, t, &err) != GGL_OK)
            return failed(&err);
        for (int k = 0; k < HASH_KINDS; k++)
            same &= compare(&j->one[k], m->tensor[k][i], t->name, path, &any);
        n_wrong += !same;
        n_right += same && any;
        n_unlisted += !any;
    }
    bool any = false;
    for (int k = 0; k < HASH_KINDS; k++)
        n_wrong += !compare(&j->all[k], m->all[k], (ggl_str){"", 0}, path, &any);
    n_wrong += m->n_missing;
    if (m->n_unknown > 0)
        tool_note(TOOL, "%zu line%s of the list with digests of other kinds, not checked",
                  m->n_unknown, llm_amount_s((int64_t)m->n_unknown));
    if (n_unlisted > 0 && n_right > 0)
        tool_note(TOOL, "not in the list: %zu tensor%s", n_unlisted,
                  llm_amount_s((int64_t)n_unlisted));
    if (n_wrong == 0 && n_right == 0 && !any)
        return tool_error(TOOL, 1, "the list has no digest of this file");
    ggl_fprint(stdout, "%s: %s\n", path, n_wrong ? "DIFFERENT" : "OK");
    return n_wrong > 0;
}

static int check_hashes(hash_job *j, const char *path, const char *list) {
    size_t n;
    char *text = tool_read_file(TOOL, list, &n);
    if (!text)
        return 1;
    manifest m = {0};
    int code = strlen(text) == n ? -1 : tool_error(TOOL, 1, "%s is not a text", list);
    for (int k = 0; k < HASH_KINDS; k++) {
        m.tensor[k] = calloc(ggl_gguf_n_tensors(j->file) + 1, sizeof *m.tensor[k]);
        if (!m.tensor[k])
            code = tool_error(TOOL, 1, "out of memory");
    }
    size_t number = 1;
    for (char *line = text, *end; code < 0 && line; line = end, number++) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        code = read_line(&m, j, line, number, list);
    }
    if (code < 0)
        code = compare_all(j, &m, path);
    for (int k = 0; k < HASH_KINDS; k++)
        free(m.tensor[k]);
    free(text);
    return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int hash(hash_job *j, const char *path, const char *list) {
    ggl_gguf *f = gguf_open(TOOL, path);
    if (!f)
        return 1;
    j->file = f;
    progress_begin(PROGRESS_BYTES, gguf_bytes(f), "hashing %s", path);
    const int code = list ? check_hashes(j, path, list) : print_hashes(j, path);
    progress_end();
    ggl_gguf_close(f);
    return code;
}

int gguf_hash(int argc, char **argv) {
    arg_list files = {0};
    const char *list = NULL;
    hash_job *j = calloc(1, sizeof *j);
    if (!j)
        return tool_error(TOOL, 1, "out of memory");
    const arg_option options[] = {
        {"--sha256", ARG_FLAG, &j->wanted[HASH_SHA256], .help = "SHA-256 (the default)"},
        {"--xxh64", ARG_FLAG, &j->wanted[HASH_XXH64],
         .help = "XXH64: faster, but no protection from malice; both flags: both digests"},
        {"-c --check", ARG_STRING, &list, .value = "LIST",
         .help = "compare with a list that this command printed; exit code 1: they differ"},
        {0}};
    static const args_example examples[] = {
        {"llm-gguf hash model.gguf", "prints a line for each tensor, and one for all"},
        {"llm-gguf hash --check model.sha256 copy.gguf", "is a copy still the same?"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE [options]",
        "Prints a digest of each tensor's data, and one of all tensors' data. The "
        "last one does not depend on keys, and not on how the model is split; "
        "sha256sum gives that of the file.",
        options,
        &files,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code < 0) {
        const tool_path paths[] = {{"FILE", files.s[0], .needed = true, .model = true},
                                   {"--check", list, .needed = true}};
        code = tool_check_paths(TOOL, paths, 2);
        j->wanted[HASH_SHA256] |= !j->wanted[HASH_XXH64];
        process_wait_for_stop();
        if (code < 0)
            code = hash(j, files.s[0], list);
        args_list_fini(&files);
    }
    free(j);
    return code;
}
