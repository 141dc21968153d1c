/* llm-imatrix: collects an importance matrix over a text; merges, shows and draws such files. See
 * docs/tools.md. Files and options are those of llama.cpp's tool. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "common/amounts.h"
#include "common/chart.h"
#include "measure/imatrix.h"
#include "common/calibration.h"
#include "common/paths.h"
#include "common/process.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "options.h"
#include "plot.h"
#include "run.h"
#include "stats.h"

typedef struct tool {
    options o;
    imatrix *base; /* the files of --in-file; NULL if none */
    bool directed; /* something that is added up has directions */
} tool;

/* --- files ------------------------------------------------------------------------------------ */

static int check_paths(const options *o) {
    llm_builtin built_in;
    enum { OWN = 5 };
    const bool writes = o->text || o->out_given || (!o->statistics && !o->plot);
    const tool_path own[OWN] = {
        {"-m", llm_builtin_find(o->model, &built_in) ? NULL : o->model, .needed = true,
         .model = true},
        {"-f", calibration_is_own(o->text) ? NULL : o->text, .needed = true},
        {"--arch", o->arch, .needed = true, .or_name = true},
        {"--plot", o->plot, .written = true},
        {"--trace", placement_trace(&o->placement), .written = true},
    };
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

/* The number of weights with directions. */
static size_t n_directed(const imatrix *m) {
    size_t n = 0;
    for (size_t i = 0; i < llm_imatrix_n(m); i++)
        n += llm_imatrix_at(m, i)->n_sketch > 0;
    return n;
}

/* Merges the files of --in-file. */
static int read_files(tool *t) {
    ggl_error err = {0};
    for (size_t i = 0; i < t->o.n_files; i++) {
        imatrix *m = NULL;
        ggl_status st = llm_imatrix_open(&m, t->o.file[i], t->o.n_ctx, &err);
        if (st == GGL_OK && !t->o.ctx_given && !llm_imatrix_tells_chunk_size(m))
            tool_note(
                TOOL,
                "%s does not tell the size of its chunks, by which files are weighted: %" PRId64
                " tokens are assumed; -c N sets it",
                t->o.file[i], t->o.n_ctx);
        if (st == GGL_OK)
            t->directed |= n_directed(m) > 0;
        if (st == GGL_OK && t->base) {
            st = llm_imatrix_merge(t->base, m, &err);
            if (st != GGL_OK)
                st = ggl_within(&err, st, "%s", t->o.file[i]);
            llm_imatrix_free(m);
        } else {
            t->base = m;
        }
        if (st != GGL_OK)
            return tool_error(TOOL, 1, "%s", err.msg);
    }
    return -1;
}

/* Writes m and what the files have to *all. */
static int add_base(const tool *t, const imatrix *m, imatrix **all) {
    ggl_error err = {0};
    ggl_status st = llm_imatrix_new(all, llm_imatrix_chunk_size(m), &err);
    if (st == GGL_OK && t->base)
        st = llm_imatrix_merge(*all, t->base, &err);
    if (st == GGL_OK)
        st = llm_imatrix_merge(*all, m, &err);
    if (st == GGL_OK)
        return -1;
    return tool_error(TOOL, 1, "%s%s", err.msg,
                      st == GGL_USAGE ? ": the files of --in-file are not of this model" : "");
}

static int write_file(const tool *t, const imatrix *m, const char *path) {
    ggl_error err = {0};
    return llm_imatrix_write(m, path, (imatrix_format)t->o.format, &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "-o: %s", err.msg);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static int plot(const tool *t, const tensor_stats *s, size_t n) {
    ggl_error err = {0};
    ggl_new_file *f = NULL;
    char title[300];
    const char *of = t->o.text ? t->o.model ? t->o.model : "the built-in model" : t->o.file[0];
    const char *slash = strrchr(of, '/');
    snprintf(title, sizeof title, "Importance of columns, %s", slash ? slash + 1 : of);
    if (ggl_new_file_open(&f, t->o.plot, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--plot: %s", err.msg);
    chart_note_suffix(TOOL, "--plot", t->o.plot);
    imatrix_plot(ggl_new_file_stream(f), s, n, title);
    return ggl_new_file_commit(f, &err) == GGL_OK ? -1 : tool_error(TOOL, 1, "--plot: %s", err.msg);
}

/* Prints and draws what the options ask for. */
static int show(const tool *t, const imatrix *m) {
    if (!t->o.statistics && !t->o.plot)
        return -1;
    tensor_stats *s = stats_of(m);
    if (!s)
        return tool_error(TOOL, 1, "out of memory");
    if (t->o.statistics)
        stats_print(s, llm_imatrix_n(m), stdout);
    const int code = t->o.plot ? plot(t, s, llm_imatrix_n(m)) : -1;
    ggl_free(s);
    return code;
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Says how many matrices of experts have seen no rows, which are then quantized as if all columns were alike. */
static void note_unseen(const imatrix *m) {
    int64_t n = 0, n_all = 0;
    for (size_t i = 0; i < llm_imatrix_n(m); i++) {
        const imatrix_entry *e = llm_imatrix_at(m, i);
        n_all += e->n_mat;
        for (int64_t k = 0; k < e->n_mat; k++)
            n += e->count[k] == 0;
    }
    if (n > 0)
        tool_note(TOOL,
                  "%" PRId64 " of %" PRId64
                  " matrices have seen no token of this text: experts that were not chosen",
                  n, n_all);
}

static void say_written(const tool *t, const imatrix *m) {
    const size_t n = llm_imatrix_n(m) - n_directed(m);
    if (t->o.n_files > 0 && t->directed && n > 0 && t->o.format == IMATRIX_GGUF)
        tool_note(
            TOOL,
            "no directions for %zu of %zu weights: something that was added up has none for them",
            n, llm_imatrix_n(m));
    if (t->directed && t->o.format == IMATRIX_DAT)
        tool_note(TOOL,
                  "the old format has no place for directions, with which llm-quantize lets errors "
                  "cancel; %s has none",
                  t->o.out);
    tool_say(TOOL, "%zu weight%s, %" PRId64 " chunk%s in all: %s", llm_imatrix_n(m),
             llm_amount_s((int64_t)llm_imatrix_n(m)), llm_imatrix_n_chunks(m),
             llm_amount_s(llm_imatrix_n_chunks(m)), t->o.out);
}

/* Writes a file on the way. If it fails, the run goes on: the last file decides. */
static void write_copy(const tool *t, const imatrix *m, const char *path) {
    ggl_error err = {0};
    if (llm_imatrix_write(m, path, (imatrix_format)t->o.format, &err) != GGL_OK)
        tool_note(TOOL, "a copy on the way could not be written: %s; the run goes on", err.msg);
}

static int save(void *ctx, const imatrix *m, int64_t n_chunks, bool last) {
    const tool *t = ctx;
    imatrix *all = NULL;
    int code = add_base(t, m, &all);
    if (code < 0 && last)
        code = write_file(t, all, t->o.out);
    else if (code < 0 && n_chunks % t->o.write_every == 0)
        write_copy(t, all, t->o.out);
    if (code < 0 && t->o.keep_every > 0 && n_chunks % t->o.keep_every == 0) {
        const size_t size = strlen(t->o.out) + 32;
        char *path = ggl_calloc(size, 1);
        if (path)
            snprintf(path, size, "%s.at_%" PRId64, t->o.out, n_chunks);
        if (path)
            write_copy(t, all, path);
        else
            code = tool_error(TOOL, 1, "out of memory");
        ggl_free(path);
    }
    if (code < 0 && last) {
        note_unseen(all);
        say_written(t, all);
        code = show(t, all);
    }
    llm_imatrix_free(all);
    return code;
}

static void note_format(const options *o) {
    const char *end = strrchr(o->out, '.');
    if (o->format == IMATRIX_GGUF && o->out_given && (!end || strcmp(end, ".gguf") != 0))
        tool_note(TOOL, "%s is written as GGUF; --output-format dat writes the old format", o->out);
}

static int run_tool(tool *t) {
    int code = check_paths(&t->o);
    t->o.hub.arch = t->o.arch;
    if (code < 0)
        code = tool_hub_get(TOOL, &t->o.hub, &t->o.model);
    if (code < 0 && t->o.hub.path[0])
        code = check_paths(&t->o); /* now with the model's */
    if (code < 0)
        note_format(&t->o);
    if (code < 0)
        code = read_files(t);
    if (code >= 0)
        return code;
    if (t->o.text) {
        t->directed |= t->o.n_sketch > 0;
        return run_text(&t->o, t->base, save, t);
    }
    if (t->o.out_given || (!t->o.statistics && !t->o.plot)) {
        code = write_file(t, t->base, t->o.out);
        if (code < 0)
            say_written(t, t->base);
    }
    return code < 0 ? show(t, t->base) : code;
}

int main(int argc, char **argv) {
    process_begin();
    tool t = {0};
    int code = options_read(&t.o, argc, argv);
    if (code < 0) {
        process_wait_for_stop();
        code = run_tool(&t);
    }
    llm_imatrix_free(t.base);
    options_fini(&t.o);
    return tool_finish(TOOL, code < 0 ? 0 : code);
}
