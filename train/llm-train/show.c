/* What llm-train prints. */
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/amounts.h"
#include "common/report.h"

/* Prints a line. On a terminal that is too narrow for it, it is broken where `gap` is, and goes on in `column`. */
static void put_line(const char *s, const char *gap, int column) {
    const int width = tool_columns(stdout), n_gap = (int)strlen(gap);
    int n = (int)strlen(s), room = width;
    while (width > 0 && n > room) {
        int end = room;
        while (end > 0 && strncmp(s + end, gap, (size_t)n_gap) != 0)
            end--;
        if (end == 0)
            break;
        printf("%.*s\n%*s", end, s, column, "");
        s += end + n_gap;
        n -= end + n_gap;
        room = width - column;
    }
    printf("%s\n", s);
}

#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2)))
#endif
static void
put_fact(const char *fmt, ...) {
    enum { COLUMN = 11 };
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_line(text, " ", COLUMN);
}

enum { PART_TEXT = 64 };

/* Writes what a part of the memory needs; "": nothing. Returns to. */
static const char *part(char to[PART_TEXT], const char *name, size_t bytes) {
    char amount[AMOUNT_TEXT];
    snprintf(to, PART_TEXT, "%s%s", bytes ? name : "",
             bytes ? llm_amount_bytes(amount, bytes) : "");
    return to;
}

void train_show_facts(const llm_training_facts *f, bool is_adapter) {
    char learn[AMOUNT_TEXT], values[AMOUNT_TEXT], all[AMOUNT_TEXT], amount[AMOUNT_TEXT],
        model[PART_TEXT], teacher[PART_TEXT], free[64] = "",
                                              steps[32] = "as many as the time allows";
    static const struct {
        const char *kind, *drawn;
    } names[] = {{"preferences", "pair"}, {"matches", "group"}, {"scores", "pair"}};
    const char *what = "sequence";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        what = strcmp(f->kind, names[i].kind) == 0 ? names[i].drawn : what;
    put_fact("learns     %" PRId64 " number%s of %" PRId64 " %s%s%s; with gradients and what the "
             "optimizer remembers %s",
             f->n_numbers, llm_amount_s(f->n_numbers), f->n_weights,
             is_adapter ? "tensor" : "weight", llm_amount_s(f->n_weights),
             is_adapter ? " of the adapter" : "", llm_amount_bytes(learn, f->learn_bytes));
    put_fact("from       %s: %" PRId64 " %s%s, %" PRId64 " token%s, of which %" PRId64 " count%s",
             f->kind, f->n_draws, what, llm_amount_s(f->n_draws), f->n_tokens,
             llm_amount_s(f->n_tokens), f->n_counted, f->n_counted == 1 ? "s" : "");
    if (f->n_valid_items > 0)
        put_fact("measures   %" PRId64 " %s%s, %" PRId64 " token%s", f->n_valid_draws, what,
                 llm_amount_s(f->n_valid_draws), f->n_valid_tokens,
                 llm_amount_s(f->n_valid_tokens));
    else
        put_fact("measures   nothing: --valid FILE names what to measure the loss on");
    if (f->n_steps > 0)
        snprintf(steps, sizeof steps, "%" PRId64, f->n_steps);
    put_fact("steps      %s of up to %" PRId64 " tokens, %" PRId64
             " at once, the longest sequence has %" PRId64 "; rate %.3g",
             steps, f->n_batch, f->n_ubatch, f->n_ctx, f->rate);
    if (f->memory_left > 0)
        snprintf(free, sizeof free, " of %s that are free",
                 llm_amount_bytes(amount, f->memory_left));
    put_fact("memory     %s%s; values need %s%s%s", llm_amount_bytes(all, f->memory_bytes), free,
             llm_amount_bytes(values, f->value_bytes), part(model, ", the model ", f->model_bytes),
             part(teacher, ", the teacher ", f->teacher_bytes));
    fflush(stdout);
}

/* Adds to a line of `size` bytes. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
static void
add(char *line, size_t size, const char *fmt, ...) {
    const size_t n = strlen(line);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, size - n, fmt, args);
    va_end(args);
}

void train_show_step(const llm_training_report *r) {
    enum { COLUMN = 5 };
    char line[400] = "", left[32];
#define ADD(...) add(line, sizeof line, __VA_ARGS__)
    ADD("step %" PRId64, r->step);
    if (r->n_steps > 0)
        ADD("/%" PRId64, r->n_steps);
    ADD("  epoch %.2f  loss %.4f", r->epoch, r->loss);
    if (isfinite(r->accuracy))
        ADD("  right %.0f %%", 100 * r->accuracy);
    if (isfinite(r->valid_loss))
        ADD("  valid %.4f", r->valid_loss);
    if (isfinite(r->valid_accuracy))
        ADD(" (%.0f %%)", 100 * r->valid_accuracy);
    ADD("  rate %.2e  norm %.2f  %.0f tokens/s", r->rate, r->norm, r->speed);
    if (isfinite(r->seconds_left) && !r->is_last)
        ADD("  %s left", llm_amount_time(left, r->seconds_left));
#undef ADD
    put_line(line, "  ", COLUMN);
    fflush(stdout);
}

static void put(FILE *out, const char *name, double x) {
    if (isfinite(x))
        fprintf(out, ", \"%s\": %.9g", name, x);
}

void train_log_step(FILE *out, const llm_training_report *r) {
    fprintf(out, "{\"step\": %" PRId64 ", \"tokens\": %" PRId64, r->step, r->n_tokens);
    put(out, "epoch", r->epoch);
    put(out, "loss", r->loss);
    put(out, "accuracy", r->accuracy);
    put(out, "valid_loss", r->valid_loss);
    put(out, "valid_accuracy", r->valid_accuracy);
    put(out, "rate", r->rate);
    put(out, "norm", r->norm);
    put(out, "seconds", r->seconds);
    put(out, "tokens_per_second", r->speed);
    fprintf(out, "}\n");
}
