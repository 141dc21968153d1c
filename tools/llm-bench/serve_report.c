#include "serve_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/show.h"

#define TOOL "llm-bench serve"

/* --- columns ---------------------------------------------------------------------------------- */

enum { N_COLUMNS = 6 };

typedef struct column {
    const char *over, *title; /* `over`: of this one and the next */
    const char *md;           /* both, short: a table has 100 columns */
    double (*of)(const serve_row *r);
} column;

static double prompt_rate(const serve_row *r) {
    return r->prompt_rate;
}
static double answer_rate(const serve_row *r) {
    return r->answer_rate;
}
static double first_median(const serve_row *r) {
    return r->first.median;
}
static double first_99(const serve_row *r) {
    return r->first.p99;
}
static double between_median(const serve_row *r) {
    return r->between.median;
}
static double between_99(const serve_row *r) {
    return r->between.p99;
}

static const column columns[N_COLUMNS] = {
    {"tokens per second", "prompts", "t/s in", prompt_rate},
    {NULL, "answers", "t/s out", answer_rate},
    {"first token, ms", "median", "first, ms", first_median},
    {NULL, "99th", "99th", first_99},
    {"between tokens, ms", "median", "next, ms", between_median},
    {NULL, "99th", "99th", between_99},
};

static const char letters[SERVE_MAX_SERVERS] = {'A', 'B'};

/* Writes a number in at most 9 characters, or "-" for NaN. */
static const char *number_text(double x, char *buf, size_t size) {
    double most = fabs(x);
    if (!isfinite(x))
        snprintf(buf, size, "-");
    else
        snprintf(buf, size,
                 most < 10      ? "%.2f"
                 : most < 10000 ? "%.1f"
                 : most < 1e9   ? "%.0f"
                                : "%.3g",
                 x);
    return buf;
}

static const char *count_text(double x, char *buf, size_t size) {
    snprintf(buf, size, isfinite(x) ? "%.0f" : "-", x);
    return buf;
}

static void put_cells(FILE *out, bool md, const char *name, const double *x, const char *failed) {
    char text[32];
    fprintf(out, md ? "| %-12s |" : "%-12s", name);
    for (int i = 0; i < N_COLUMNS; i++) {
        number_text(x[i], text, sizeof text);
        fprintf(out, md ? " %9s |" : i % 2 ? "%9s" : "%11s", text);
    }
    fprintf(out, md ? " %6s |\n" : "%7s\n", failed);
}

static void put_row(FILE *out, bool md, const char *name, const serve_row *row) {
    double x[N_COLUMNS];
    char failed[24];
    for (int i = 0; i < N_COLUMNS; i++)
        x[i] = columns[i].of(row);
    snprintf(failed, sizeof failed, "%zu", row->n_failed);
    put_cells(out, md, name, x, failed);
}

static void put_ratio(FILE *out, bool md, const serve_row *row) {
    double x[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        x[i] = columns[i].of(&row[0]) / columns[i].of(&row[1]);
    put_cells(out, md, "     A / B", x, "");
}

/* --- tables ----------------------------------------------------------------------------------- */

static void put_head(FILE *out, bool md, const serve_row *row) {
    const serve_load *l = &row->load;
    fprintf(out, "\nprompts of %" PRId64 " tokens, answers of %" PRId64, row->n_prompt,
            l->n_answer);
    if (row->n_shared > 0)
        fprintf(out, ", a common beginning of %" PRId64, row->n_shared);
    if (l->n_turns > 1)
        fprintf(out, ", %zu turns", l->n_turns);
    fputs("\n\n", out);
    const char *load = l->n_clients > 0 ? "clients" : "arrivals";
    if (md) {
        fprintf(out, "| %-12s |", load);
        for (int i = 0; i < N_COLUMNS; i++)
            fprintf(out, " %s |", columns[i].md);
        fputs(" failed |\n| :--- |", out);
        for (int i = 0; i <= N_COLUMNS; i++)
            fputs(" ---: |", out);
        putc('\n', out);
        return;
    }
    fprintf(out, "%-12s", "");
    for (int i = 0; i < N_COLUMNS; i += 2)
        fprintf(out, "%20s", columns[i].over);
    fprintf(out, "\n%-12s", load);
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(out, i % 2 ? "%9s" : "%11s", columns[i].title);
    fprintf(out, "%7s\n", "failed");
}

static void put_turn(FILE *out, bool md, const serve_row *row, size_t n_servers, size_t k) {
    char a[32], b[32], c[32];
    fprintf(out, md ? "| turn %zu |" : "  turn %-5zu", k + 1);
    for (size_t i = 0; i < n_servers; i++)
        fprintf(out, md ? " %s | %s | %s |" : "%11s%9s%12s",
                count_text(row[i].turn_prompt[k], a, sizeof a),
                count_text(row[i].turn_cached[k], b, sizeof b),
                number_text(row[i].turn_first[k], c, sizeof c));
    putc('\n', out);
}

static void put_turns_head(FILE *out, bool md, size_t n_servers) {
    fprintf(out, md ? "| |" : "%-12s", "");
    for (size_t i = 0; i < n_servers; i++) {
        char title[16];
        snprintf(title, sizeof title, "%c prompt", n_servers > 1 ? letters[i] : ' ');
        fprintf(out, md ? " %s | kept | first token |" : "%11s     kept first token", title);
    }
    putc('\n', out);
    for (size_t i = 0; i <= 3 * n_servers && md; i++)
        fputs(i ? " ---: |" : "| :--- |", out);
    fputs(md ? "\n" : "", out);
}

/* Prints the time to the first token of each turn. */
static void put_turns(FILE *out, bool md, const serve_row *row, size_t n_servers) {
    char load[32];
    size_t n = row->load.n_clients;
    serve_load_text(&row->load, load, sizeof load);
    fprintf(out,
            "\nturns at %s%s: tokens of the prompt, those of them that the\n"
            "server had kept, and the time to the first token in ms (medians)\n\n",
            load,
            n == 1  ? " client"
            : n > 0 ? " clients"
                    : "");
    put_turns_head(out, md, n_servers);
    for (size_t k = 0; k < row->load.n_turns; k++)
        put_turn(out, md, row, n_servers, k);
}

static void put_table(serve_report *r, const serve_row *row) {
    bool md = r->format == SERVE_MD, turns = row->load.n_turns > 1;
    char load[32], name[48];
    if (r->n == 0 || turns || row->n_prompt != r->n_prompt || row->load.n_answer != r->n_answer)
        put_head(r->out, md, row);
    r->n_prompt = row->n_prompt;
    r->n_answer = row->load.n_answer;
    serve_load_text(&row->load, load, sizeof load);
    for (size_t i = 0; i < r->n_servers; i++) {
        snprintf(name, sizeof name, r->n_servers > 1 ? "%-9s%c" : "%s", load, letters[i]);
        put_row(r->out, md, name, &row[i]);
    }
    if (r->n_servers > 1)
        put_ratio(r->out, md, row);
    if (turns)
        put_turns(r->out, md, row, r->n_servers);
    fflush(r->out);
}

/* --- all formats ------------------------------------------------------------------------------ */

void serve_report_begin(serve_report *r, FILE *out, const serve_options *o,
                        const serve_server *server) {
    *r = (serve_report){.out = out, .format = (serve_format)o->format, .n_servers = o->n_servers};
    if (r->format == SERVE_JSON)
        putc('[', out);
    for (size_t i = 0; i < o->n_servers && r->format <= SERVE_MD; i++) {
        if (o->n_servers > 1)
            fprintf(out, "%c: ", letters[i]);
        if (server[i].name)
            ggl_fprint(out, "%s, ", server[i].name);
        ggl_fprint(out, "%s, %s", server[i].url, server[i].model);
        fputs(r->format == SERVE_MD ? "  \n" : "\n", out);
    }
    if (r->format <= SERVE_MD)
        fprintf(out, "--seed %" PRId64 "\n", o->seed);
}

static void put_object(FILE *out, const bench_field *f, int n) {
    for (int i = 0; i < n; i++) {
        fprintf(out, "%s\n    \"%s\": ", i ? "," : "{", f[i].key);
        bench_put_json(out, &f[i]);
    }
    fputs("\n  }", out);
}

void serve_report_rows(serve_report *r, const serve_row *row) {
    bench_field f[SERVE_MAX_FIELDS];
    if (r->format <= SERVE_MD)
        put_table(r, row);
    for (size_t i = 0; i < r->n_servers; i++, r->n++) {
        int n = serve_row_fields(&row[i], f);
        if (r->format == SERVE_CSV && r->n == 0)
            bench_put_csv(r->out, f, n, true);
        if (r->format == SERVE_CSV)
            bench_put_csv(r->out, f, n, false);
        if (r->format == SERVE_JSON) {
            fputs(r->n ? ",\n  " : "\n  ", r->out);
            put_object(r->out, f, n);
        }
    }
}

void serve_report_end(serve_report *r) {
    if (r->format == SERVE_JSON)
        fputs(r->n ? "\n]\n" : "]\n", r->out);
}

static void put_notes(const serve_row *row, const char *who, const serve_log *log) {
    const serve_load *l = &row->load;
    char load[32];
    serve_load_text(l, load, sizeof load);
    for (size_t i = 0; i < SERVE_FAILURES && log->failure[i].n > 0; i++)
        ggl_fprint(stderr, TOOL ": %s%s: %zu of %zu requests failed: %s\n", who, load,
                   log->failure[i].n, row->n_ok + row->n_failed, log->failure[i].text);
    if (row->n_short > 0)
        tool_note(TOOL, "%s%s: %zu of %zu answers have fewer than %" PRId64 " tokens", who, load,
                  row->n_short, row->n_ok, l->n_answer);
    if (row->n_ok > 0 && fabs(row->pieces / row->answer - 1) > 0.05)
        tool_note(TOOL,
                  "%s%s: %.0f tokens came in %.0f pieces; the times between "
                  "tokens are those between pieces",
                  who, load, row->answer, row->pieces);
    if (row->n_ok > 0 && isnan(row->prompt))
        tool_note(TOOL,
                  "%s%s: the server reports no usage; its pieces are counted "
                  "as tokens",
                  who, load);
}

void serve_report_notes(const serve_row *row, size_t n_servers, serve_log *const *log) {
    for (size_t i = 0; i < n_servers; i++)
        put_notes(&row[i], n_servers == 1 ? "" : i ? "B, " : "A, ", log[i]);
}
