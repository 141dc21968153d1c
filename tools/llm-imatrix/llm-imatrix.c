/* llm-imatrix: collects an importance matrix over a text; merges, shows and draws such files. See
 * docs/tools.md. Files and options are those of llama.cpp's tool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/calibration.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/ranks.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "llm/llm.h"
#include "options.h"
#include "plot.h"
#include "run.h"
#include "stats.h"
#include "ggl/internal/os_fs.h"

typedef struct tool {
    options o;
    llm_imatrix *matrix;
    llm_imatrix_entry *entry; /* [n]: all that it has, at the end */
    size_t n;
    bool directed; /* something that is added up has directions */
} tool;

/* --- files ------------------------------------------------------------------------------------ */

static int check_paths(const void *ctx) {
    const options *o = ctx;
    const bool writes = o->text || o->out_given || (!o->statistics && !o->plot);
    const tool_path own[] = {
        OPEN_PATHS(&o->open),
        {"-f", calibration_is_own(o->text) ? NULL : o->text, .needed = true},
        {"--arch", o->open.how.params.arch, .needed = true, .or_name = true},
        {"--plot", o->plot, .written = true},
    };
    enum { OWN = sizeof own / sizeof *own };
    tool_path *path = calloc(OWN + 1 + o->n_files, sizeof *path);
    if (!path)
        return tool_error(TOOL, 1, "out of memory");
    memcpy(path, own, sizeof own);
    for (size_t i = 0; i < o->n_files; i++)
        path[OWN + i] = (tool_path){"--in-file", o->file[i], .needed = true};
    int code = tool_check_paths(TOOL, path, OWN + o->n_files);
    /* apart from --in-file: the file may replace one that it continues */
    path[OWN] = (tool_path){"-o", writes ? o->out : NULL, .written = true};
    code = code < 0 ? tool_check_paths(TOOL, path, OWN + 1) : code;
    free(path);
    return code;
}

/* Adds up the files of --in-file. */
static int read_files(tool *t) {
    ggl_error err = {0};
    for (size_t i = 0; i < t->o.n_files; i++) {
        llm_imatrix_file file = {.size = sizeof file};
        const ggl_status st = llm_imatrix_read(t->matrix, t->o.file[i], t->o.n_ctx, &file, &err);
        if (file.n_weights > 0 && !t->o.ctx_given && !file.tells_window)
            tool_note(
                TOOL,
                "%s does not tell the size of its chunks, by which files are weighted: %" PRId64
                " tokens are assumed; -c N sets it",
                t->o.file[i], t->o.n_ctx);
        t->directed |= file.n_directed > 0;
        if (st != GGL_OK)
            return tool_error(TOOL, 1, "%s", err.msg);
    }
    return -1;
}

/* Gets what the matrix has. */
static int list_entries(tool *t) {
    llm_imatrix_entry e;
    while (llm_imatrix_get(t->matrix, t->n, &e))
        t->n++;
    t->entry = ggl_calloc(t->n, sizeof *t->entry);
    for (size_t i = 0; t->entry && i < t->n; i++)
        (void)llm_imatrix_get(t->matrix, i, &t->entry[i]);
    return t->entry ? -1 : tool_error(TOOL, 1, "out of memory");
}

static int write_file(const tool *t) {
    ggl_error err = {0};
    return llm_imatrix_save(t->matrix, t->o.out, &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "-o: %s", err.msg);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static int plot(const tool *t, const tensor_stats *s) {
    drawing d = {0};
    const char *of =
        t->o.text ? t->o.open.how.path ? t->o.open.how.path : "the built-in model" : t->o.file[0];
    const char *slash = ggl_os_last_separator(of);
    d.title = drawing_text(&d, "Importance of columns, %s", slash ? slash + 1 : of);
    imatrix_plot(&d, s, t->n);
    return drawing_save(&d, TOOL, "--plot", t->o.plot) ? 1 : -1;
}

/* Prints and draws what the options ask for. */
static int show(const tool *t) {
    if (!t->o.statistics && !t->o.plot)
        return -1;
    tensor_stats *s = stats_of(t->entry, t->n);
    if (!s)
        return tool_error(TOOL, 1, "out of memory");
    if (t->o.statistics)
        stats_print(s, t->n, stdout);
    const int code = t->o.plot ? plot(t, s) : -1;
    ggl_free(s);
    return code;
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Says how many matrices of experts have seen no rows, which are then quantized as if all columns were alike. */
static void note_unseen(const tool *t) {
    int64_t n = 0, n_all = 0;
    for (size_t i = 0; i < t->n; i++) {
        const llm_imatrix_entry *e = &t->entry[i];
        n_all += e->n_mat;
        for (int64_t k = 0; k < e->n_mat; k++)
            n += e->count[k] == 0;
    }
    if (n > 0)
        tool_note(TOOL,
                  "%" PRId64 " of %" PRId64
                  " %s seen no token of this text: experts that were not chosen",
                  n, n_all, n_all == 1 ? "matrix has" : "matrices have");
}

static void say_written(const tool *t) {
    size_t n = t->n;
    for (size_t i = 0; i < t->n; i++)
        n -= t->entry[i].n_directions > 0;
    if (t->o.n_files > 0 && t->directed && n > 0)
        tool_note(
            TOOL,
            "no directions for %zu of %zu weight%s: something that was added up has none for them",
            n, t->n, llm_amount_s((int64_t)t->n));
    const int64_t n_chunks = llm_imatrix_windows(t->matrix);
    tool_say(TOOL, "%zu weight%s, %" PRId64 " chunk%s in all: %s", t->n,
             llm_amount_s((int64_t)t->n), n_chunks, llm_amount_s(n_chunks), t->o.out);
}

/* Writes what was collected over a text, with what was added before. Also after a signal. */
static int save(void *ctx) {
    tool *t = ctx;
    int code = write_file(t);
    if (code < 0)
        code = list_entries(t);
    if (code >= 0)
        return code;
    note_unseen(t);
    say_written(t);
    return show(t);
}

static void note_format(const options *o) {
    const char *end = strrchr(o->out, '.');
    if (o->out_given && (!end || strcmp(end, ".gguf") != 0))
        tool_note(TOOL,
                  "%s is written as GGUF, whose names end in .gguf; the old format is only read",
                  o->out);
}

static int run_tool(tool *t) {
    ggl_error err = {0};
    int code = open_options_get_model(TOOL, &t->o.open, check_paths, &t->o);
    if (code < 0)
        note_format(&t->o);
    if (code < 0 && llm_imatrix_begin(&t->matrix, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0)
        code = read_files(t);
    if (code >= 0)
        return code;
    if (t->o.text) {
        t->directed |= t->o.n_sketch > 0;
        return run_text(&t->o, t->matrix, save, t);
    }
    code = list_entries(t);
    if (code < 0 && (t->o.out_given || (!t->o.statistics && !t->o.plot))) {
        code = write_file(t);
        if (code < 0)
            say_written(t);
    }
    return code < 0 ? show(t) : code;
}

int main(int argc, char **argv) {
    process_begin(&argc, &argv);
    tool t = {0};
    int code = tool_join_job(TOOL);
    if (code < 0)
        code = options_read(&t.o, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = run_tool(&t);
    }
    llm_imatrix_end(t.matrix);
    ggl_free(t.entry);
    options_fini(&t.o);
    return tool_finish(TOOL, code < 0 ? 0 : code);
}
