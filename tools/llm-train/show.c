/* What llm-train prints. */
#include "show.h"

#include <inttypes.h>
#include <math.h>

#include "common/amounts.h"
#include "common/report.h"

void train_show_facts(const llm_training_facts *f, bool is_adapter) {
    char learn[32], values[32];
    const bool pairs = f->kind[0] == 'p';
    printf("learns     %" PRId64 " numbers of %" PRId64 " %s; with gradients and what AdamW "
           "remembers %s\n",
           f->n_numbers, f->n_weights, is_adapter ? "matrices of the adapter" : "weights",
           llm_amount_bytes(learn, f->learn_bytes));
    printf("from       %s: %" PRId64 " %s, %" PRId64 " tokens, of which %" PRId64 " count\n",
           f->kind, pairs ? f->n_items / 2 : f->n_items, pairs ? "pairs" : "sequences", f->n_tokens,
           f->n_counted);
    if (f->n_valid_items > 0)
        printf("measures   %" PRId64 " %s, %" PRId64 " tokens\n",
               pairs ? f->n_valid_items / 2 : f->n_valid_items, pairs ? "pairs" : "sequences",
               f->n_valid_tokens);
    else
        printf("measures   nothing: --valid FILE names what to measure the loss on\n");
    printf("steps      ");
    if (f->n_steps > 0)
        printf("%" PRId64, f->n_steps);
    else
        printf("as many as the time allows");
    printf(" of up to %" PRId64 " tokens, %" PRId64 " at once, the longest sequence has %" PRId64
           "; rate %.3g\n",
           f->n_batch, f->n_ubatch, f->n_ctx, f->rate);
    printf("values     %s\n", llm_amount_bytes(values, f->value_bytes));
    fflush(stdout);
}

void train_show_step(const llm_training_report *r) {
    char of[32] = "", left[32] = "";
    if (r->n_steps > 0)
        snprintf(of, sizeof of, "/%" PRId64, r->n_steps);
    if (isfinite(r->seconds_left) && !r->is_last)
        llm_amount_time(left, r->seconds_left);
    printf("step %" PRId64 "%s  epoch %.2f  loss %.4f", r->step, of, r->epoch, r->loss);
    if (isfinite(r->accuracy))
        printf("  right %.0f %%", 100 * r->accuracy);
    if (isfinite(r->valid_loss))
        printf("  valid %.4f", r->valid_loss);
    if (isfinite(r->valid_accuracy))
        printf(" (%.0f %%)", 100 * r->valid_accuracy);
    printf("  rate %.2e  norm %.2f  %.0f tokens/s", r->rate, r->norm, r->speed);
    printf("%s%s%s\n", left[0] ? "  " : "", left, left[0] ? " left" : "");
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
