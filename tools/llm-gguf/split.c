/* llm-gguf split and merge: a model as several files PREFIX-00001-of-0000N.gguf, as every program that
 * reads split models expects them, and back.
 *
 * The first file has all keys; each has split.no (from 0), split.count and split.tensors.count. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/process.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "tool.h"

static const char TOOL[] = "llm-gguf split";

enum { MOST_PARTS = 65535, DEFAULT_TENSORS = 128 };

typedef struct split_job {
    const char *path, *prefix;
    size_t n_prefix; /* bytes of the prefix, without ".gguf" */
    const char *size;
    int64_t max_tensors;
    double max_size; /* bytes of tensors in a file; 0: any */
    bool keys_alone, dry_run;
    const ggl_gguf *file;
    uint16_t *part; /* of each tensor */
    size_t n_parts;
} split_job;

/* Reads a size such as 2G, 500M or 1.5GiB; G and M are powers of 1000, as for disks. */
static int read_size(const char *s, double *out) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},         {"K", 1e3},      {"M", 1e6},      {"G", 1e9},
                 {"T", 1e12},     {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const size_t n = ggl_number_length(s, strlen(s));
    for (size_t i = 0; n > 0 && i < sizeof units / sizeof *units; i++)
        if (strcmp(s + n, units[i].unit) == 0)
            *out = ggl_number_value(s, n) * units[i].bytes;
    return *out >= 1 ? -1
                     : tool_error(TOOL, 2, "--max-size: '%s' is not a size such as 2G or 500M", s);
}

/* Gives each tensor its part, in order. Returns -1, or an exit code. */
static int plan(split_job *j) {
    const size_t n = ggl_gguf_n_tensors(j->file);
    size_t part = j->keys_alone ? 1 : 0, n_in_part = 0;
    double size = 0;
    j->part = calloc(n + 1, sizeof *j->part);
    if (!j->part)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const double more = (double)ggl_gguf_tensor_at(j->file, i)->size;
        const bool full =
            j->max_size > 0 ? size + more > j->max_size : n_in_part >= (size_t)j->max_tensors;
        if (full && n_in_part > 0) {
            part++;
            n_in_part = 0;
            size = 0;
        }
        if (part >= MOST_PARTS)
            return tool_error(TOOL, 1, "more than %d files would be needed", MOST_PARTS);
        j->part[i] = (uint16_t)part;
        n_in_part++;
        size += more;
    }
    j->n_parts = part + 1;
    return -1;
}

static void path_of(const split_job *j, size_t part, char *path, size_t size) {
    snprintf(path, size, "%.*s-%05zu-of-%05zu.gguf", (int)j->n_prefix, j->prefix, part + 1,
             j->n_parts);
}

/* Checks that all files can be written. Returns -1, or an exit code. */
static int check_outputs(const split_job *j) {
    int code = -1;
    char path[OS_MOST_PATH];
    for (size_t k = 0; code < 0 && k < j->n_parts; k++) {
        path_of(j, k, path, sizeof path);
        const tool_path paths[] = {{"FILE", j->path, .written = false},
                                   {"OUT", path, .written = true}};
        code = tool_check_paths(TOOL, paths, 2);
    }
    return code;
}

/* Writes file `part`. Returns the exit code. */
static int write_part(const split_job *j, size_t part, const char *path) {
    const uint16_t no = (uint16_t)part, count = (uint16_t)j->n_parts;
    const int32_t n_tensors = (int32_t)ggl_gguf_n_tensors(j->file);
    int64_t alignment;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    gguf_copy_job copy;
    double bytes = 0;
    if (!gguf_copy_begin(&copy, j->file) || !w) {
        gguf_copy_end(&copy);
        ggl_gguf_writer_free(w);
        return tool_error(TOOL, 1, "out of memory");
    }
    if (part == 0)
        gguf_put_keys(w, j->file);
    else if (ggl_gguf_get_integer(j->file, "general.alignment", &alignment, NULL) == 1 &&
             alignment != 32) /* that is the default */
        ggl_gguf_put_value(w, ggl_gguf_find(j->file, "general.alignment"));
    ggl_gguf_put(w, "split.no", GGL_GGUF_U16, false, &no, 1);
    /* in the order of llama.cpp's llama-gguf-split, so that the files are the same */
    ggl_gguf_put(w, "split.tensors.count", GGL_GGUF_I32, false, &n_tensors, 1);
    ggl_gguf_put(w, "split.count", GGL_GGUF_U16, false, &count, 1);
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++)
        if (j->part[i] == part) {
            gguf_copy_tensor(&copy, w, ggl_gguf_tensor_at(j->file, i));
            bytes += (double)ggl_gguf_tensor_at(j->file, i)->size;
        }
    const int code = gguf_write(TOOL, w, &copy, bytes, path);
    gguf_copy_end(&copy);
    return code;
}

static void print_part(const split_job *j, size_t part, const char *path) {
    size_t n = 0;
    double bytes = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++)
        if (j->part[i] == part) {
            n++;
            bytes += (double)ggl_gguf_tensor_at(j->file, i)->size;
        }
    ggl_fprint(stdout, "%s: %zu tensor%s, %.2f MiB%s\n", path, n, n == 1 ? "" : "s", bytes / 0x1p20,
               part == 0 ? ", and the keys" : "");
}

/* Writes all files. If one fails, those before it are removed. */
static int write_parts(const split_job *j) {
    char path[OS_MOST_PATH];
    int code = 0;
    size_t k = 0;
    for (; code == 0 && k < j->n_parts; k++) {
        path_of(j, k, path, sizeof path);
        if (!j->dry_run)
            code = write_part(j, k, path);
        if (code == 0)
            print_part(j, k, path);
    }
    for (size_t i = 0; code != 0 && i + 1 < k; i++) {
        path_of(j, i, path, sizeof path);
        ggl_os_remove(path);
    }
    return code;
}

static int split(split_job *j) {
    ggl_gguf *f = gguf_open_file(TOOL, j->path);
    if (!f)
        return 1;
    j->file = f;
    int code = ggl_gguf_n_tensors(f) <= INT32_MAX
                   ? plan(j)
                   : tool_error(TOOL, 1, "%s has too many tensors", j->path);
    if (code < 0 && !j->dry_run)
        code = check_outputs(j);
    if (code < 0)
        code = write_parts(j);
    free(j->part);
    ggl_gguf_close(f);
    return code;
}

static int check_options(split_job *j, const arg_list *files) {
    j->path = files->s[0];
    j->prefix = files->s[1];
    const size_t n = strlen(j->prefix);
    j->n_prefix = n > 5 && strcmp(j->prefix + n - 5, ".gguf") == 0 ? n - 5 : n;
    if (j->n_prefix > OS_MOST_PATH - 64)
        return tool_error(TOOL, 2, "OUT is too long");
    if (j->size && j->max_tensors)
        return tool_error(TOOL, 2, "--max-size and --max-tensors exclude each other");
    if (!j->max_tensors)
        j->max_tensors = DEFAULT_TENSORS;
    return j->size ? read_size(j->size, &j->max_size) : -1;
}

int gguf_split(int argc, char **argv) {
    arg_list files = {0};
    split_job j = {0};
    const arg_option options[] = {
        {"--max-size --split-max-size", ARG_STRING, &j.size, .value = "SIZE",
         .help = "tensors in a file have at most this many bytes: 2G, 500M, 1GiB. A larger tensor "
                 "gets a file of its own"},
        {"--max-tensors --split-max-tensors", ARG_INT, &j.max_tensors, .value = "N",
         .help = "at most this many tensors in a file (default: 128)", .min = 1, .max = 1e9},
        {"--no-tensor-first-split", ARG_FLAG, &j.keys_alone,
         .help = "the first file has only the keys"},
        {"--dry-run", ARG_FLAG, &j.dry_run, .help = "print the files, and write none"},
        {0}};
    static const args_example examples[] = {{"llm-gguf split model.gguf parts --max-size 2G",
                                             "writes parts-00001-of-00003.gguf and so on"},
                                            {0}};
    const args_spec spec = {
        TOOL,
        "FILE OUT [options]",
        "Divides a model into files OUT-00001-of-0000N.gguf, which programs open "
        "by the name of the first. The tensors keep their order.",
        options,
        &files,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    code = check_options(&j, &files);
    const tool_path paths[] = {{"FILE", j.path, .needed = true, .model = true, .no_folder = true}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 1);
    process_wait_for_stop();
    if (code < 0)
        code = split(&j);
    args_list_fini(&files);
    return code;
}

/* --- merge ------------------------------------------------------------------------------------ */

static int merge(const char *tool, const char *path, const char *out) {
    ggl_gguf *f = gguf_open_file(tool, path);
    if (!f)
        return 1;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    gguf_copy_job copy;
    int code = 1;
    if (gguf_copy_begin(&copy, f) && w) {
        gguf_put_keys(w, f);
        for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
            gguf_copy_tensor(&copy, w, ggl_gguf_tensor_at(f, i));
        code = gguf_write(tool, w, &copy, gguf_bytes(f), out);
    } else {
        ggl_gguf_writer_free(w);
        tool_error(tool, 1, "out of memory");
    }
    if (code == 0)
        ggl_fprint(stdout, "%s: %zu tensor%s of %d file%s, %.2f MiB\n", out, ggl_gguf_n_tensors(f),
                   llm_amount_s((int64_t)ggl_gguf_n_tensors(f)), ggl_gguf_n_parts(f),
                   llm_amount_s(ggl_gguf_n_parts(f)), gguf_bytes(f) / 0x1p20);
    gguf_copy_end(&copy);
    ggl_gguf_close(f);
    return code;
}

int gguf_merge(int argc, char **argv) {
    static const char tool[] = "llm-gguf merge";
    static const arg_option none[] = {{0}};
    arg_list files = {0};
    static const args_example examples[] = {
        {"llm-gguf merge model-00001-of-00003.gguf model.gguf", "makes one file of three"}, {0}};
    const args_spec spec = {tool,
                            "FIRST OUT",
                            "Makes one file of a split model, whose first file FIRST is. Of a file "
                            "that is not split, it makes one with its tensors in order and without "
                            "gaps.",
                            none,
                            &files,
                            &gguf_hints,
                            .examples = examples};
    int code = args_parse_between(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    const tool_path paths[] = {
        {"FIRST", files.s[0], .needed = true, .model = true, .no_folder = true},
        {"OUT", files.s[1], .written = true}};
    code = tool_check_paths(tool, paths, 2);
    process_wait_for_stop();
    if (code < 0)
        code = merge(tool, files.s[0], files.s[1]);
    args_list_fini(&files);
    return code;
}
