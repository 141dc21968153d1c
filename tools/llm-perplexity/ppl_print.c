#include "ppl_print.h"

/* How a quantile is called in text and JSON; NULL: the text of divergences leaves it out. */
typedef struct quantile_name {
    const char *text, *key;
    bool of_kld;
} quantile_name;

/* In the order of llm_perplexity_result's. */
static const quantile_name quantiles[LLM_N_QUANTILES] = {
    {"Minimum", "min", true},    {" 0.1%  ", "q0.1", true}, {" 1.0%  ", "q1", true},
    {" 5.0%  ", "q5", true},     {"10.0%  ", "q10", true},  {"25.0%  ", "q25", false},
    {"Median ", "median", true}, {"75.0%  ", "q75", false}, {"90.0%  ", "q90", true},
    {"95.0%  ", "q95", true},    {"99.0%  ", "q99", true},  {"99.9%  ", "q99.9", true},
    {"Maximum", "max", true}};

void ppl_print_compared(const llm_perplexity_result *r, FILE *to) {
    fprintf(to, "====== Perplexity statistics ======\n");
    fprintf(to, "Mean PPL(Q)                   : %10.6f ± %10.6f\n", r->ppl, r->ppl_error);
    fprintf(to, "Mean PPL(base)                : %10.6f ± %10.6f\n", r->ppl_base,
            r->ppl_base_error);
    fprintf(to, "Cor(ln(PPL(Q)), ln(PPL(base))): %6.2f%%\n", 100 * r->correlation);
    fprintf(to, "Mean ln(PPL(Q)/PPL(base))     : %10.6f ± %10.6f\n", r->ln_ratio,
            r->ln_ratio_error);
    fprintf(to, "Mean PPL(Q)/PPL(base)         : %10.6f ± %10.6f\n", r->ratio, r->ratio_error);
    fprintf(to, "Mean PPL(Q)-PPL(base)         : %10.6f ± %10.6f\n", r->difference,
            r->difference_error);
    fprintf(to, "\n====== KL divergence statistics ======\n");
    fprintf(to, "Mean    KLD: %10.6f ± %10.6f\n", r->kld, r->kld_error);
    for (int k = LLM_N_QUANTILES - 1; k >= 0; k--)
        if (quantiles[k].of_kld)
            fprintf(to, "%s KLD: %10.6f\n", quantiles[k].text, r->kld_quantile[k]);
    fprintf(to, "\n====== Token probability statistics ======\n");
    fprintf(to, "Mean    Δp: %6.3f ± %5.3f %%\n", 100 * r->p_diff, 100 * r->p_diff_error);
    for (int k = LLM_N_QUANTILES - 1; k >= 0; k--)
        fprintf(to, "%s Δp: %6.3f%%\n", quantiles[k].text, 100 * r->p_diff_quantile[k]);
    fprintf(to, "RMS Δp    : %6.3f ± %5.3f %%\n", 100 * r->p_rms, 100 * r->p_rms_error);
    fprintf(to, "Same top p: %6.3f ± %5.3f %%\n", 100 * r->same_top, 100 * r->same_top_error);
}

static void print_number(const char *key, double value, double error, FILE *to) {
    fprintf(to, ",\n  \"%s\": %.9g, \"%s_error\": %.9g", key, value, key, error);
}

static void print_quantiles(const char *key, double mean, double error, const double *quantile,
                            FILE *to) {
    fprintf(to, ",\n  \"%s\": {\"mean\": %.9g, \"mean_error\": %.9g", key, mean, error);
    for (int k = LLM_N_QUANTILES - 1; k >= 0; k--)
        fprintf(to, ", \"%s\": %.9g", quantiles[k].key, quantile[k]);
    fprintf(to, "}");
}

void ppl_print_compared_json(const llm_perplexity_result *r, FILE *to) {
    print_number("ppl_base", r->ppl_base, r->ppl_base_error, to);
    print_number("ln_ppl_ratio", r->ln_ratio, r->ln_ratio_error, to);
    fprintf(to, ",\n  \"correlation\": %.9g", r->correlation);
    print_quantiles("kld", r->kld, r->kld_error, r->kld_quantile, to);
    print_quantiles("delta_p", r->p_diff, r->p_diff_error, r->p_diff_quantile, to);
    print_number("rms_delta_p", r->p_rms, r->p_rms_error, to);
    print_number("same_top_p", r->same_top, r->same_top_error, to);
}
