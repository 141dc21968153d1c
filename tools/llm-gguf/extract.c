/* llm-gguf extract: some tensors of a file, as a GGUF file, as .npy files, or as bytes. */
#include <stdlib.h>
#include <string.h>

#include "common/new_folder.h"
#include "common/hints.h"
#include "common/npy.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"
#include "tool.h"

static const char TOOL[] = "llm-gguf extract";

typedef struct extract_job {
    const char *path, *out;
    llm_new_folder folder; /* of files for several tensors */
    bool npy, raw, no_keys;
    const ggl_gguf *file;
    gguf_patterns patterns;
    size_t n; /* tensors that match */
    double bytes, done;
    /* the tensor that is being written */
    const ggl_type_info *type;
    npy_writer writer;
    ggl_new_file *raw_file;
    int64_t n_row; /* elements of a row of it */
    float *x;      /* [GGUF_STEP] */
} extract_job;

static bool is_wanted(const extract_job *j, const ggl_gguf_tensor *t) {
    return gguf_patterns_match(&j->patterns, t->name);
}

static int write_gguf(extract_job *j) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    gguf_copy_job copy;
    if (!gguf_copy_begin(&copy, j->file) || !w) {
        gguf_copy_end(&copy);
        ggl_gguf_writer_free(w);
        return tool_error(TOOL, 1, "out of memory");
    }
    if (!j->no_keys)
        gguf_put_keys(w, j->file);
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->file); i++)
        if (is_wanted(j, ggl_gguf_tensor_at(j->file, i)))
            gguf_copy_tensor(&copy, w, ggl_gguf_tensor_at(j->file, i));
    const int code = gguf_write(TOOL, w, &copy, j->bytes, j->out);
    gguf_copy_end(&copy);
    return code;
}

/* --- one file for each tensor ----------------------------------------------------------------- */

static ggl_status raw_piece(void *ctx, const void *data, size_t n, ggl_error *err) {
    extract_job *j = ctx;
    if (fwrite(data, 1, n, ggl_new_file_stream(j->raw_file)) != n)
        ggl_new_file_note(j->raw_file);
    const int error = ggl_new_file_error(j->raw_file);
    return error ? ggl_fail(err, GGL_IO, "cannot be written: %s", strerror(error)) : GGL_OK;
}

enum { STEP = 1 << 16 }; /* elements: whole blocks of every type */

/* Gets whole rows of types whose rows have scales of their own. */
static ggl_status npy_piece(void *ctx, const void *data, size_t n, ggl_error *err) {
    extract_job *j = ctx;
    const int64_t n_row = j->n_row,
                  n_all = j->type->row_meta
                              ? (int64_t)(n / ggl_row_size(j->type->type, n_row)) * n_row
                              : (int64_t)(n / j->type->size) * j->type->block;
    for (int64_t at = 0, k; at < n_all; at += k) {
        k = n_all - at < STEP ? n_all - at : STEP;
        ggl_to_float(j->type, data, n_row, at, k, j->x);
        npy_row(&j->writer, j->x, k);
    }
    const int error = ggl_new_file_error(j->writer.file);
    return error ? ggl_fail(err, GGL_IO, "cannot be written: %s", strerror(error)) : GGL_OK;
}

static ggl_status write_npy(extract_job *j, const ggl_gguf_tensor *t, const char *path,
                            ggl_error *err) {
    int64_t shape[GGL_MAX_DIMS];
    for (int d = 0; d < t->n_dims; d++)
        shape[d] = t->ne[t->n_dims - 1 - d];
    j->type = ggl_type_get((int)t->type);
    ggl_status s = npy_open_shape(&j->writer, path, shape, t->n_dims, err);
    if (s != GGL_OK)
        return s;
    j->n_row = t->ne[0];
    s = gguf_stream(j->file, t, ggl_row_size(t->type, j->type->row_meta ? t->ne[0] : STEP),
                    &j->done, npy_piece, j, err);
    if (s == GGL_OK)
        return npy_close(&j->writer, err);
    npy_abort(&j->writer);
    return s;
}

static ggl_status write_raw(extract_job *j, const ggl_gguf_tensor *t, const char *path,
                            ggl_error *err) {
    ggl_status s = ggl_new_file_open(&j->raw_file, path, err);
    if (s != GGL_OK)
        return s;
    s = gguf_stream(j->file, t, GGUF_STEP, &j->done, raw_piece, j, err);
    if (s == GGL_OK)
        return ggl_new_file_commit(j->raw_file, err);
    ggl_new_file_discard(j->raw_file);
    return s;
}

/* Sets path to the file of a tensor: OUT if it is the only one, else OUT/NAME.npy. Fails if the name
 * cannot be that of a file in this folder. */
static ggl_status path_of(const extract_job *j, const ggl_gguf_tensor *t, char *path, size_t size,
                          ggl_error *err) {
    if (j->n == 1) {
        snprintf(path, size, "%s", j->out);
        return GGL_OK;
    }
    if (t->name.s[0] == '.' || ggl_os_has_separator(t->name.s, t->name.n))
        return ggl_fail(err, GGL_FORMAT,
                        "tensor '%.*s' has a name that cannot be that of a file; extract it alone",
                        (int)t->name.n, t->name.s);
    const size_t n = (size_t)snprintf(path, size, "%s/%.*s.%s", j->folder.path, (int)t->name.n,
                                      t->name.s, j->npy ? "npy" : "bin");
    return n < size ? GGL_OK : ggl_fail(err, GGL_LIMIT, "the path %s is too long", j->out);
}

static int write_files(extract_job *j) {
    ggl_error err = {0};
    char path[8192] = "";
    ggl_status s = GGL_OK;
    if (j->n > 1 && llm_new_folder_open(&j->folder, j->out, &err) != GGL_OK)
        return tool_error(TOOL, 1, "-o: %s", err.msg);
    j->x = ggl_calloc(1 << 16, sizeof *j->x);
    if (!j->x)
        s = ggl_fail(&err, GGL_NOMEM, "out of memory");
    progress_begin(PROGRESS_BYTES, j->bytes, "extracting");
    for (size_t i = 0; s == GGL_OK && i < ggl_gguf_n_tensors(j->file); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(j->file, i);
        if (!is_wanted(j, t))
            continue;
        s = path_of(j, t, path, sizeof path, &err);
        if (s == GGL_OK)
            s = j->npy ? write_npy(j, t, path, &err) : write_raw(j, t, path, &err);
        if (s != GGL_OK && *path && !strstr(err.msg, path))
            s = ggl_within(&err, s, "%s", path);
    }
    progress_end();
    ggl_free(j->x);
    if (s == GGL_OK && j->n > 1)
        s = llm_new_folder_commit(&j->folder, &err);
    llm_new_folder_discard(&j->folder);
    if (s == GGL_OK)
        return 0;
    return tool_error(TOOL, process_stopped ? process_stop_code() : 1, "%s", err.msg);
}

/* --- the command ------------------------------------------------------------------------------ */

static int extract(extract_job *j) {
    ggl_gguf *f = gguf_open(TOOL, j->path);
    if (!f)
        return 1;
    j->file = f;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        if (is_wanted(j, ggl_gguf_tensor_at(f, i))) {
            j->n++;
            j->bytes += (double)ggl_gguf_tensor_at(f, i)->size;
        }
    int code = -1;
    const bool folder = (j->npy || j->raw) && j->n > 1;
    const tool_path paths[] = {{"FILE", j->path, .written = false},
                               {"-o", folder ? NULL : j->out, .written = true}};
    if (j->n == 0)
        code = tool_error(TOOL, 1, "%s has no tensor that matches", j->path);
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 2);
    if (code < 0)
        code = j->npy || j->raw ? write_files(j) : write_gguf(j);
    if (code == 0)
        tool_say(NULL, "%s: %zu tensor%s, %.2f MiB of the model", j->out, j->n,
                 j->n == 1 ? "" : "s", j->bytes / 0x1p20);
    ggl_gguf_close(f);
    return code;
}

int gguf_extract(int argc, char **argv) {
    arg_list words = {0};
    extract_job j = {0};
    const arg_option options[] = {
        {"-o --output", ARG_STRING, &j.out, .value = "OUT",
         .help = "the file to write; with --npy or --raw and several tensors, a folder"},
        {"--npy", ARG_FLAG, &j.npy,
         .help = "as NumPy arrays of float32, decoded; the first dimension varies slowest"},
        {"--raw", ARG_FLAG, &j.raw, .help = "the bytes as they are in the file"},
        {"--no-keys", ARG_FLAG, &j.no_keys, .help = "a GGUF file with tensors only"},
        {0}};
    static const args_example examples[] = {
        {"llm-gguf extract model.gguf 'blk\\.0\\.' -o layer0.gguf", "the tensors of a layer"},
        {"llm-gguf extract model.gguf --npy '^token_embd' -o embeddings.npy", "a matrix for NumPy"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE PATTERN .. -o OUT [options]",
        "Writes the tensors whose names match one of the regular expressions to "
        "a GGUF file with the same keys, to .npy files, or as bytes.",
        options,
        &words,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, SIZE_MAX, argc, argv);
    if (code >= 0)
        return code;
    j.path = words.s[0];
    const arg_list patterns = {words.s + 1, words.n - 1};
    const tool_path paths[] = {{"FILE", j.path, .needed = true, .model = true}};
    code = tool_check_paths(TOOL, paths, 1);
    if (code < 0 && !j.out)
        code = tool_error(TOOL, 2, "-o OUT is missing");
    if (code < 0 && j.npy && j.raw)
        code = tool_error(TOOL, 2, "--npy and --raw exclude each other");
    if (code < 0)
        code = gguf_patterns_open(TOOL, "PATTERN", &patterns, &j.patterns);
    process_wait_for_stop();
    if (code < 0)
        code = extract(&j);
    if (code == 0)
        gguf_patterns_warn(TOOL, "", &patterns, &j.patterns, "tensor");
    gguf_patterns_close(&j.patterns);
    args_list_fini(&words);
    return code;
}
