/* llm-bench without a command: runs the tests of the command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/load.h"
#include "common/machine.h"
#include "common/override_options.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "compare.h"
#include "guesses.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "run.h"
#include "texts.h"
#include "tool.h"

#define TOOL "llm-bench"

typedef struct bench {
    bench_options o;
    bench_test *test;
    size_t n_tests;
    bench_row **row;
    size_t n_rows;
    bench_setup setup;
    bool noted;
    int64_t noted_length;
    const bench_where *told; /* its -ngl makes rows like those of another, which was said */
    const char *opened;      /* path of the open model */
    char cpu[96];
    struct {
        int64_t n_threads;
        bench_limits l;
    } known[64]; /* limits, by number of threads */
    int n_known;
    bench_report report, report_err;
    char last_error[sizeof((ggl_error *)0)->msg];
    size_t n_same_error; /* consecutive tests that failed with the same message */
} bench;

static ggl_status open_model(bench *b, const char *path, ggl_error *err) {
    bench_options *o = &b->o;
    if (b->opened && strcmp(b->opened, path) == 0)
        return GGL_OK;
    llm_close(b->setup.ctx);
    b->setup.ctx = NULL;
    b->opened = NULL;
    const int64_t begin = ggl_os_clock();
    ggl_status st = adapters_read(&o->open.adapters, &o->open.how.params, err);
    if (st == GGL_OK)
        st = llm_context_new(&b->setup.ctx, err);
    const char *of = o->models.n > 0 ? path : "builtin:stories";
    llm_opening *how = &b->setup.opening;
    *how = open_options_opening(&o->open);
    how->path = of;
    how->params.user = (void *)(uintptr_t)of;
    how->no_tokenizer = !o->guesses;
    how->cancelled = NULL;
    const bool has_begun = st == GGL_OK && tool_loading_begin(of, how->params.type);
    if (st == GGL_OK)
        st = llm_context_open(b->setup.ctx, &b->setup.opening, LLM_OPENED_MODEL, err);
    if (has_begun)
        progress_end();
    b->noted = false;
    b->noted_length = 0;
    b->setup.load_ns = (double)(ggl_os_clock() - begin);
    b->opened = st == GGL_OK ? path : NULL;
    return tool_load_advise(st, of, err);
}

static bench_limits limits_of(bench *b, int64_t n_threads) {
    for (int i = 0; i < b->n_known; i++)
        if (b->known[i].n_threads == n_threads)
            return b->known[i].l;
    if (b->o.no_limits)
        return (bench_limits){.isa = ""};
    if (b->o.progress)
        fprintf(stderr, TOOL ": limits of %d thread%s\n", (int)n_threads, llm_amount_s(n_threads));
    progress_begin(NULL, 0, "this machine's limits");
    bench_limits l = bench_limits_measure((int)n_threads, bench_features(b->o.open.how.mask));
    progress_end();
    bench_peak_memory_reset(); /* the buffer is not part of a model's memory */
    if (b->n_known < 64) {
        b->known[b->n_known].n_threads = n_threads;
        b->known[b->n_known++].l = l;
    }
    return l;
}

/* Says, once for each -ngl, that its rows would be those of another one. */
static void tell_equal(bench *b, const bench_row *row, const bench_row *equal) {
    if (b->told != row->test.where)
        tool_note(TOOL, "-ngl %" PRId64 " is not measured: it is what -ngl %" PRId64 " is, %s",
                  row->test.where->n_gpu_layers, equal->test.where->n_gpu_layers, equal->backend);
    b->told = row->test.where;
}

/* Compares the row with that of the same test of the first model: what a token costs predicts its speed. */
static void compare_first(const bench *b, bench_row *row) {
    const char *first = b->o.models.n > 1 ? b->o.models.s[0] : row->test.model;
    for (size_t i = 0; i < b->n_rows && strcmp(first, row->test.model) != 0; i++) {
        const bench_row *r = b->row[i];
        if (strcmp(r->test.model, first) != 0 || r->test.where != row->test.where ||
            !bench_test_alike(&r->test, &row->test))
            continue;
        if (r->gb > 0)
            row->of_first = 100 * row->gb / r->gb;
        else if (r->gmac > 0)
            row->of_first = 100 * row->gmac / r->gmac;
    }
}

/* Runs a test; false after an error message. */
static bool run_test(bench *b, size_t i) {
    const bench_test *t = &b->test[i];
    ggl_error err = {0};
    char text[96];
    bench_test_text(t, text, sizeof text);
    if (b->o.progress)
        fprintf(stderr, TOOL ": %zu of %zu: %s, %s, %d thread%s\n", i + 1, b->n_tests, t->model,
                text, (int)t->n_threads, llm_amount_s(t->n_threads));
    progress_set((double)i);
    progress_begin("runs", 0, "%s", text);
    bench_row *row = calloc(1, sizeof *row);
    const bench_row *equal = NULL;
    ggl_status st =
        row ? open_model(b, t->model, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    const char *skipped =
        st == GGL_OK ? bench_cannot(llm_model_arch(llm_opened_model(b->setup.ctx)), t) : NULL;
    if (st == GGL_OK && !skipped) {
        b->setup.limits = limits_of(b, t->n_threads);
        if (b->o.delay > 0)
            ggl_os_sleep((int64_t)b->o.delay * 1000000000);
        b->setup.row = b->row;
        b->setup.n_rows = b->n_rows;
        st = bench_run(row, &equal, &b->setup, t, &err);
    }
    progress_end();
    tool_begin_line();
    if (st != GGL_OK) {
        bench_row_free(row);
        overrides_advise(&err);
        if (strcmp(err.msg, b->last_error) == 0)
            b->n_same_error++;
        else
            tool_error(TOOL, 1, "%s: %s", text, err.msg);
        strcpy(b->last_error, err.msg);
        return false;
    }
    if (skipped && *skipped)
        tool_note(TOOL, "%s is not measured: %s", text, skipped);
    if (equal)
        tell_equal(b, row, equal);
    if (skipped || equal) {
        bench_row_free(row);
        return true;
    }
    compare_first(b, row);
    b->row[b->n_rows++] = row;
    bench_report_row(&b->report, row);
    bench_report_row(&b->report_err, row);
    if (row->guesses && row->guesses->n_differ > 0)
        tool_error(TOOL, 1, "%s: %d of %d texts are others than without guesses", text,
                   row->guesses->n_differ, row->guesses->n_texts);
    return !row->guesses || row->guesses->n_differ == 0;
}

/* Returns how many characters name the layers of a placement at most: "cpu=99,vulkan0=99", or "vulkan0" if
 * one backend has all. */
static int width_of_place(const llm_placement *p, const bench_where *w) {
    size_t widest = 0, all = 0;
    for (int k = 0; k < llm_placement_n_backends(p); k++) {
        const size_t n = strlen(llm_placement_backend(p, k)->name);
        widest = n > widest ? n : widest;
        all += n + strlen("=99") + (k > 0);
    }
    return (int)(w->split && strcmp(w->split, "auto") != 0 ? strlen(w->split)
                 : w->split || w->n_gpu_layers >= 0        ? all
                                                           : widest);
}

/* Opens the backends that will be used, so that a wrong name is reported before anything is
 * measured. Another -ngl above 0 uses the same backends. */
static int check_places(bench *b) {
    int code = -1;
    for (size_t i = 0; i < b->o.n_where && code < 0; i++) {
        bench_where *w = &b->o.where[i];
        llm_placement *p = NULL;
        for (size_t k = 0; k < i && w->width == 0; k++)
            if (w->n_gpu_layers > 0 && b->o.where[k].n_gpu_layers > 0 &&
                bench_where_equal(w, &b->o.where[k]))
                w->width = b->o.where[k].width;
        if (w->width > 0)
            continue;
        ggl_error err = {0};
        llm_opening how = bench_opening(&b->o, w);
        how.params.n_threads = 1;
        const ggl_status st = llm_open_placement(&p, &how, &err);
        if (st != GGL_OK)
            code = tool_error(TOOL, st == GGL_USAGE || st == GGL_NOT_FOUND ? 2 : 1, "%s", err.msg);
        if (code < 0)
            w->width = width_of_place(p, w);
        (void)llm_placement_close(p, NULL); /* the timeline is empty */
    }
    return code;
}

static int plot(const bench *b) {
    drawing d = {0};
    bench_plot(&d, b->row, b->n_rows);
    return drawing_save(&d, TOOL, "--plot", b->o.plot);
}

static int run_tests(bench *b) {
    int code = 0;
    b->row = calloc(b->n_tests + 1, sizeof *b->row);
    if (!b->row)
        return tool_error(TOOL, 1, "out of memory");
    b->setup.o = &b->o;
    b->setup.noted = &b->noted;
    b->setup.noted_length = &b->noted_length;
    b->setup.cpu = bench_cpu_name(b->cpu, sizeof b->cpu);
    bench_report_begin(&b->report, stdout, (bench_format)b->o.format, &b->o);
    bench_report_begin(&b->report_err, stderr, (bench_format)b->o.format_err, &b->o);
    progress_begin("tests", (double)b->n_tests, "measuring");
    for (size_t i = 0; i < b->n_tests; i++)
        code = run_test(b, i) ? code : 1;
    progress_end();
    if (b->n_same_error)
        tool_error(TOOL, 1, "%zu more test%s failed for the same reason as the one before",
                   b->n_same_error, b->n_same_error == 1 ? "" : "s");
    if (code == 0 && b->n_rows == 0)
        code = tool_error(TOOL, 1, "nothing was measured");
    bench_report_end(&b->report, b->row, b->n_rows);
    bench_report_end(&b->report_err, b->row, b->n_rows);
    return b->o.plot && b->n_rows > 0 && plot(b) ? 1 : code;
}

/* Returns 0, 1 (something is slower) or 2. The old results were read before anything ran. */
static int compare(bench *b, const bench_results *old, bench_results *new_) {
    FILE *out = b->o.compare_new || b->o.format == BENCH_MD ? stdout : stderr;
    fputs(b->o.compare_new ? "" : "\n", out);
    int slower = bench_compare_print(out, old, new_, b->o.confidence / 100, b->o.tolerance / 100);
    return slower >= 0 ? slower
                       : tool_error(TOOL, 2, "--compare: %s has no test in common with this run",
                                    b->o.compare_old);
}

static int run_and_compare(bench *b) {
    bench_results old = {0}, new_ = {0};
    ggl_error err = {0};
    ggl_status st = bench_results_read(&old, b->o.compare_old, &err);
    int code = 0;
    if (st == GGL_OK && b->o.compare_new) {
        st = bench_results_read(&new_, b->o.compare_new, &err);
    } else if (st == GGL_OK) {
        code = run_tests(b) == 0 ? 0 : 2;
        st = bench_results_take(&new_, b->row, b->n_rows, b->o.alternation, &err);
    }
    if (st != GGL_OK)
        code = tool_error(TOOL, 2, "--compare: %s", err.msg);
    else if (code == 0)
        code = compare(b, &old, &new_);
    bench_results_fini(&old);
    bench_results_fini(&new_);
    return code;
}

static int check_plot(const bench_options *o) {
    size_t n = o->models.n;
    const size_t n_texts = o->texts.n;
    tool_path *paths = calloc(n + n_texts + 5, sizeof *paths);
    if (!paths)
        return tool_error(TOOL, 1, "out of memory");
    int code = -1;
    for (size_t i = 0; i < n; i++) {
        paths[i] = (tool_path){"-m", o->models.s[i], .needed = true, .model = true};
        code = code < 0 ? tool_check_builtin(TOOL, o->models.s[i]) : code;
    }
    paths[n] = (tool_path){"--arch", o->open.how.params.arch, .written = false};
    paths[n + 1] = (tool_path){"--compare", o->compare_old, .written = false};
    paths[n + 2] = (tool_path){"--compare", o->compare_new, .written = false};
    paths[n + 3] = (tool_path){"--plot", o->plot, .written = true};
    paths[n + 4] =
        (tool_path){"--draft", open_options_draft(&o->open), .needed = true, .model = true};
    for (size_t i = 0; i < n_texts; i++)
        paths[n + 5 + i] = (tool_path){"-f", o->texts.s[i], .needed = true};
    code = code < 0 ? tool_check_paths(TOOL, paths, n + n_texts + 5) : code;
    free(paths);
    return code;
}

/* Downloads a model that was given by name, and a draft. */
static int get_model(bench_options *o) {
    const char *model = o->models.n > 0 ? o->models.s[0] : NULL;
    int code = tool_hub_get(TOOL, &o->open.hub, &model);
    if (code < 0 && !o->open.how.params.draft)
        code = tool_hub_get_draft(TOOL, &o->open.hub, &o->open.how.params.draft);
    if (code >= 0 || !o->open.hub.path[0])
        return code;
    o->models.s = calloc(1, sizeof *o->models.s); /* it was empty, or hub_get had refused */
    if (!o->models.s)
        return tool_error(TOOL, 1, "out of memory");
    o->models.s[o->models.n++] = model;
    return check_plot(o);
}

int bench_measure(int argc, char **argv, const args_command *commands) {
    static bench b;
    int code = bench_options_read(&b.o, argc, argv, commands);
    if (code < 0)
        code = check_plot(&b.o);
    if (code < 0)
        code = get_model(&b.o);
    if (code < 0)
        code = bench_guesses_read(&b.o);
    if (code < 0)
        code = process_set_cpus(TOOL, b.o.open.cpu_mask);
    if (code < 0)
        process_set_priority(TOOL, b.o.open.priority);
    if (code < 0 && !bench_options_tests(&b.o, &b.test, &b.n_tests))
        code = tool_error(TOOL, 1, "too many tests: the lists are multiplied with each other");
    if (code < 0 && b.n_tests == 0)
        code = tool_error(TOOL, 2,
                          "there is nothing to measure: -p and -n are 0, and there is no -pg");
    if (code < 0 && !b.o.compare_new)
        code = check_places(&b);
    if (code < 0)
        code = b.o.compare_old ? run_and_compare(&b) : run_tests(&b);
    for (size_t i = 0; i < b.n_rows; i++)
        bench_row_free(b.row[i]);
    free(b.row);
    free(b.test);
    llm_close(b.setup.ctx);
    bench_options_fini(&b.o);
    return code;
}
