/* llm-bench conform: checks which operators a backend has, whether they are right, and how fast
 * they are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "common/progress.h"
#include "conform/table.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "report.h"
#include "tool.h"

#define TOOL "llm-bench conform"

enum { MAX_ROWS = 512 };

typedef struct conform {
    conform_selection selection;
    arg_list backends; /* the ones given by name */
    int64_t n_threads;
    int format;
    bool verbose, no_speed;
    bool wrong, failed; /* an operator is wrong; a backend that was asked for did not open */
    int n_printed;
    ggl_backend *b;
    conform_limits limits;
    conform_row *row;
    int n_rows;
} conform;

/* --- the table for people --------------------------------------------------------------------- */

static void put_cell(const char *s) {
    for (; *s; s++)
        if (*s == '|')
            fputs("\\|", stdout);
        else
            putchar((unsigned char)*s < 0x20 ? ' ' : *s);
}

static void md_begin(conform *c) {
    printf("%s%s: %s\n", c->n_printed ? "\n" : "", c->b->name, c->b->description);
    if (c->limits.memory_gb > 0 || c->limits.product_gmac > 0)
        printf("limits: memory %.1f GB/s, products %.1f GMAC/s\n", c->limits.memory_gb,
               c->limits.product_gmac);
    puts(
        "\n| operator         | type       | cases |   error |       us | than ref | limit | "
        "result\n"
        "| ---------------- | ---------- | ----: | ------: | -------: | -------: | ----: | ------");
}

/* Prints the beginning before the row's cases run, so that a crash shows where it happened. On a terminal the
 * progress does. */
static void md_row_begin(const conform_row *r) {
    printf("| %-16s | %-10s ", r->op, r->type);
}

static void md_result(const conform_row *r) {
    if (r->n_wrong > 0) {
        printf("%s in %d of %d; the smallest: ",
               r->wrong.outcome == CONFORM_WRONG ? "WRONG" : "FAILS", r->n_wrong, r->n_cases);
        put_cell(r->wrong.form_text);
        fputs(": ", stdout);
        put_cell(r->wrong.text);
        if (r->right_alone)
            fputs("; right if all other operators run on the reference", stdout);
        return;
    }
    if (r->n_right > 0)
        printf("right%s", r->by_body ? ", by its body" : "");
    if (r->n_refused > 0 && r->n_right > 0)
        printf("; in %d ", r->n_refused);
    if (r->n_refused > 0) {
        fputs("refused: ", stdout);
        put_cell(r->reason);
    }
}

static void md_row_end(const conform *c, const conform_row *r) {
    char error[16] = "", us[32] = "", ratio[32] = "", percent[16] = "";
    (void)c;
    if (r->n_right > 0)
        snprintf(error, sizeof error, "%.2g", r->share);
    if (r->speed.ns > 0) {
        snprintf(us, sizeof us, "%.1f", r->speed.ns * 1e-3);
        snprintf(ratio, sizeof ratio, "%.1fx", r->speed.reference_ns / r->speed.ns);
    }
    if (r->percent > 0)
        snprintf(percent, sizeof percent, "%.0f %%", r->percent);
    printf("| %5d | %7s | %8s | %8s | %5s | ", r->n_cases, error, us, ratio, percent);
    md_result(r);
    putchar('\n');
}

/* --- tables for programs ---------------------------------------------------------------------- */

typedef struct field {
    const char *key;
    const char *text; /* NULL: the value is a number */
    double number;    /* NaN: no value */
} field;

enum { N_FIELDS = 22 };

static double or_none(bool has, double x) {
    return has ? x : NAN;
}

static void fields_of(const conform *c, const conform_row *r, field f[N_FIELDS]) {
    bool timed = r->speed.ns > 0, wrong = r->n_wrong > 0;
    const field all[N_FIELDS] = {
        {"backend", c->b->name, 0},
        {"device", c->b->description, 0},
        {"operator", r->op, 0},
        {"type", r->type, 0},
        {"cases", NULL, r->n_cases},
        {"right", NULL, r->n_right},
        {"refused", NULL, r->n_refused},
        {"wrong", NULL, r->n_wrong},
        {"by_body", NULL, r->by_body},
        {"reason", r->reason, 0},
        {"error_of_bound", NULL, or_none(r->n_right > 0, r->share)},
        {"wrong_case", wrong ? r->wrong.form_text : "", 0},
        {"wrong_text", wrong ? r->wrong.text : "", 0},
        {"right_alone", NULL, or_none(wrong, r->right_alone)},
        {"speed_case", r->speed.ns > 0 ? r->speed.text : "", 0},
        {"ns", NULL, or_none(timed, r->speed.ns)},
        {"reference_ns", NULL, or_none(timed, r->speed.reference_ns)},
        {"gb_per_s", NULL, or_none(timed, r->speed.bytes / r->speed.ns)},
        {"gmac_per_s", NULL, or_none(timed && r->speed.macs > 0, r->speed.macs / r->speed.ns)},
        {"percent_of_limit", NULL, or_none(r->percent > 0, r->percent)},
        {"memory_gb_per_s", NULL, or_none(c->limits.memory_gb > 0, c->limits.memory_gb)},
        {"product_gmac_per_s", NULL, or_none(c->limits.product_gmac > 0, c->limits.product_gmac)},
    };
    memcpy(f, all, sizeof all);
}

static void csv_begin(conform *c) {
    field f[N_FIELDS];
    if (c->n_printed || c->n_rows == 0)
        return;
    fields_of(c, &c->row[0], f);
    for (int i = 0; i < N_FIELDS; i++)
        printf("%s%s", i ? "," : "", f[i].key);
    putchar('\n');
}

static void csv_text(const char *s) {
    putchar('"');
    for (; *s; s++) {
        if (*s == '"')
            putchar('"');
        putchar(*s);
    }
    putchar('"');
}

static void csv_row(const conform *c, const conform_row *r) {
    field f[N_FIELDS];
    fields_of(c, r, f);
    for (int i = 0; i < N_FIELDS; i++) {
        fputs(i ? "," : "", stdout);
        if (f[i].text)
            csv_text(f[i].text);
        else if (isfinite(f[i].number))
            printf("%.6g", f[i].number);
    }
    putchar('\n');
}

static void json_object(const conform *c, const conform_row *r) {
    field f[N_FIELDS];
    fields_of(c, r, f);
    for (int i = 0; i < N_FIELDS; i++) {
        printf("%s\"%s\": ", i ? ", " : "{", f[i].key);
        if (f[i].text)
            json_put_string(stdout, f[i].text, strlen(f[i].text));
        else if (isfinite(f[i].number))
            printf("%.6g", f[i].number);
        else
            fputs("null", stdout);
    }
    putchar('}');
}

static void json_row(const conform *c, const conform_row *r) {
    fputs(c->n_printed ? ",\n  " : "[\n  ", stdout);
    json_object(c, r);
}

static void json_end(const conform *c) {
    puts(c->n_printed ? "\n]" : "[]");
}

static void jsonl_row(const conform *c, const conform_row *r) {
    json_object(c, r);
    putchar('\n');
}

static const struct {
    void (*begin)(conform *c); /* before the rows of a backend; NULL: nothing */
    void (*row_begin)(const conform_row *r);
    void (*row)(const conform *c, const conform_row *r);
    void (*end)(const conform *c);
} formats[] = {
    {md_begin, md_row_begin, md_row_end, NULL},
    {csv_begin, NULL, csv_row, NULL},
    {NULL, NULL, json_row, json_end},
    {NULL, NULL, jsonl_row, NULL},
};

/* --- running ---------------------------------------------------------------------------------- */

static void tell_case(void *ctx, const conform_case *info, const conform_result *r) {
    static const char *const outcomes[] = {[CONFORM_RIGHT] = "right",
                                           [CONFORM_REFUSED] = "refused",
                                           [CONFORM_WRONG] = "WRONG",
                                           [CONFORM_FAILED] = "FAILED",
                                           [CONFORM_INVALID] = "NOT RUN"};
    (void)ctx;
    (void)info;
    tool_begin_line();
    fprintf(stderr, "  %-7s %s", outcomes[r->outcome], r->form_text);
    if (r->text[0])
        fprintf(stderr, ": %s", r->text);
    else
        fprintf(stderr, " (%.3f of the bound)", r->share);
    fputc('\n', stderr);
}

static void check_backend(conform *c) {
    c->limits = (conform_limits){0};
    const bool on_terminal = ggl_os_is_terminal(OS_STDOUT);
    progress_begin(NULL, 0, "limits of %s", c->b->name);
    if (!c->no_speed)
        c->limits = conform_measure_limits(c->b, c->selection.seconds);
    progress_end();
    c->n_rows = conform_rows_of(&c->selection, c->row, MAX_ROWS);
    if (formats[c->format].begin)
        formats[c->format].begin(c);
    progress_begin("rows", c->n_rows, "%s", c->b->name);
    for (int i = 0; i < c->n_rows; i++) {
        const conform_row *r = &c->row[i];
        progress_say("%s: %s%s%s", c->b->name, r->op, *r->type ? " " : "", r->type);
        progress_set(i);
        if (formats[c->format].row_begin && !on_terminal)
            formats[c->format].row_begin(r);
        fflush(stdout);
        conform_row_run(&c->selection, &c->row[i], c->b, &c->limits);
        progress_clear();
        if (formats[c->format].row_begin && on_terminal)
            formats[c->format].row_begin(r);
        formats[c->format].row(c, &c->row[i]);
        fflush(stdout);
        c->n_printed++;
        c->wrong = c->wrong || c->row[i].n_wrong > 0;
    }
    progress_end();
}

static void check_named(conform *c, const char *name, bool asked) {
    const ggl_backend_params params = {.size = sizeof params, .n_threads = (int)c->n_threads};
    ggl_error err = {0};
    if (ggl_backend_open(&c->b, name, &params, &err) != GGL_OK) {
        tool_error(TOOL, 1, "%s: %s", name, err.msg);
        c->failed = c->failed || asked;
        return;
    }
    check_backend(c);
    ggl_backend_close(c->b);
}

static int check_all(conform *c) {
    c->row = calloc(MAX_ROWS, sizeof *c->row);
    if (!c->row)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < c->backends.n; i++)
        check_named(c, c->backends.s[i], true);
    for (int i = 0; c->backends.n == 0 && ggl_backend_name(i); i++)
        if (strcmp(ggl_backend_name(i), "reference") != 0)
            check_named(c, ggl_backend_name(i), false);
    if (formats[c->format].end)
        formats[c->format].end(c);
    free(c->row);
    return c->wrong || c->failed;
}

static int no_cases(const conform_selection *s) {
    if (!s->op)
        return tool_error(TOOL, 2, "no operator has cases of type %s", s->type);
    if (!s->type)
        return tool_error(TOOL, 2, "no operator is named '%s'", s->op);
    return tool_error(TOOL, 2, "no operator is named '%s' and has cases of type %s", s->op,
                      s->type);
}

int bench_conform(int argc, char **argv) {
    static const char *const names[] = {"md", "csv", "json", "jsonl", NULL};
    conform c = {.selection = {.seconds = 0.05}};
    bool json = false;
    conform_row one;
    const arg_option options[] = {
        {"--backend", ARG_LIST, &c.backends, .value = "NAME",
         .help = "a backend to check; repeatable (default: all of this build)"},
        {"--op", ARG_STRING, &c.selection.op, .value = "PATTERN",
         .help = "only operators and composites with matching names: linear, 'rope_*', '\\*'"},
        {"--type", ARG_STRING, &c.selection.type, .value = "TYPE",
         .help = "only weights, keys or values of this type"},
        {"-t --threads", ARG_INT, &c.n_threads, .value = "N",
         .help = "threads of backends that use threads (default: physical cores)", .min = 1,
         .max = TOOL_MAX_THREADS},
        {"--quick", ARG_FLAG, &c.selection.quick,
         .help = "only one shape of each operator and type, and no timing"},
        {"--no-speed", ARG_FLAG, &c.no_speed, .help = "do not measure times"},
        {"--seconds", ARG_FLOAT, &c.selection.seconds, .value = "S",
         .help = "duration of each measurement (default 0.05)", .min = 0.0001, .max = 60},
        {"-o --output", ARG_CHOICE, &c.format, .value = "FORMAT",
         .help = "md (default), csv, json, jsonl", .choices = names},
        {"--json", ARG_FLAG, &json, .help = "the same as -o json"},
        {"-v --verbose", ARG_FLAG, &c.verbose, .help = "print every case, to standard error"},
        {0}};
    static const args_example examples[] = {
        {"llm-bench conform --quick", "one shape of each operator on all backends"},
        {"llm-bench conform --backend ./my-backend.so --op linear",
         "products on a backend of your own"},
        {0}};
    const args_spec spec = {TOOL,
                            "[options]",
                            "Runs the operators of backends in many forms, compares them with the "
                            "reference, and times them. Wrong cases are reduced to the smallest "
                            "failing form. Exit code 1: something is wrong.",
                            options,
                            NULL,
                            NULL,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0 && c.selection.type && !ggl_type_find(c.selection.type))
        code = tool_error(TOOL, 2, "--type: there is no type '%s'", c.selection.type);
    if (code < 0 && conform_rows_of(&c.selection, &one, 1) == 0)
        code = no_cases(&c.selection);
    if (code < 0) {
        c.no_speed = c.no_speed || c.selection.quick;
        c.format = json ? 2 : c.format;
        c.selection.each = c.verbose ? tell_case : NULL;
        c.selection.seconds = c.no_speed ? 0 : c.selection.seconds;
        code = check_all(&c);
    }
    args_list_fini(&c.backends);
    return code;
}
