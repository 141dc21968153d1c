/* llm-lora show: what is in an adapter, and how large its changes are. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/paths.h"
#include "common/report.h"
#include "common/shell_quote.h"
#include "ggl/alloc.h"
#include "ggl/internal/show.h"
#include "llm/internal/adapter.h"
#include "tool.h"

static const char TOOL[] = "llm-lora show";

/* Returns the sum of the squares of row * a, for a row of b and a[rank][n_in]; sum[n_in]: memory. */
static double squares_of(const float *b, const float *a, size_t rank, size_t n_in, double *sum) {
    double all = 0;
    memset(sum, 0, n_in * sizeof *sum);
    for (size_t r = 0; r < rank; r++)
        for (size_t i = 0; i < n_in; i++)
            sum[i] += (double)b[r] * (double)a[r * n_in + i];
    for (size_t i = 0; i < n_in; i++)
        all += sum[i] * sum[i];
    return all;
}

/* Returns the sum of the elements of (B^T B) * (A A^T), element by element, both [rank][rank]. bb: B^T B. */
static double squares_of_gram(const double *bb, const float *a, size_t rank, size_t n_in) {
    double sum = 0;
    for (size_t r = 0; r < rank; r++)
        for (size_t s = 0; s < rank; s++) {
            double aa = 0;
            for (size_t i = 0; i < n_in; i++)
                aa += (double)a[r * n_in + i] * (double)a[s * n_in + i];
            sum += aa * bb[r * rank + s];
        }
    return sum;
}

/* Sets *norm to the Frobenius norm of rows * columns of all matrices, by the cheaper of two ways: the
 * elements of the product, row by row, in rank * n_in * n_out steps, or products of rank * rank elements,
 * in rank^2 * (n_in + n_out). So an absurd rank costs neither time nor memory. False: out of memory. */
static bool norm_of(const llm_adapter_pair *p, int64_t n, int64_t n_in, int64_t n_out,
                    double *norm) {
    const size_t rank = (size_t)p->rank, n_col = (size_t)n_in;
    const bool direct =
        (double)n_in * (double)n_out < (double)rank * ((double)n_in + (double)n_out);
    const size_t n_sum = direct ? n_col : rank * rank; /* below n_in * n_out */
    double sum = 0;
    float *a = ggl_calloc(rank, n_col * sizeof *a), *b = ggl_calloc(rank, sizeof *b);
    double *bb = ggl_calloc(n_sum, sizeof *bb);
    bool ok = a && b && bb;
    for (int64_t m = 0; ok && m < n; m++) {
        memset(bb, 0, n_sum * sizeof *bb);
        ok = llm_adapter_columns(p, m, n_in, a);
        for (int64_t o = 0; o < n_out; o++) {
            llm_adapter_row(p, m, o, b);
            if (direct)
                sum += squares_of(b, a, rank, n_col, bb);
            for (size_t r = 0; r < rank && !direct; r++)
                for (size_t s = 0; s < rank; s++)
                    bb[r * rank + s] += (double)b[r] * (double)b[s];
        }
        sum += direct ? 0 : squares_of_gram(bb, a, rank, n_col);
    }
    ggl_free(a);
    ggl_free(b);
    ggl_free(bb);
    *norm = sum > 0 || isnan(sum) ? sqrt(sum) : 0; /* fmax would take 0 instead of NaN */
    return ok;
}

/* Prints the pair whose half a is t, and counts it in *n_bad if its norm is no number. False: out of memory. */
static bool print_pair(const ggl_gguf *f, const ggl_gguf_tensor *t, double alpha, size_t *n_bad) {
    const ggl_str name = {t->name.s, t->name.n - strlen(".lora_a")};
    llm_adapter_pair p;
    double norm;
    if (!llm_adapter_find_pair(f, name, &p))
        return true;
    const int64_t n_in = p.columns->ne[p.flipped ? 1 : 0], n_out = p.rows->ne[1];
    const int64_t n = p.rows->ne[2];
    if (p.columns->ne[2] != 1 && p.columns->ne[2] != n)
        return true; /* no model has such a tensor; llm_adapter_check reports it */
    if (!norm_of(&p, n, n_in, n_out, &norm))
        return false;
    char shape[96];
    if (n > 1)
        snprintf(shape, sizeof shape, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", n_in, n_out, n);
    else
        snprintf(shape, sizeof shape, "[%" PRId64 ", %" PRId64 "]", n_in, n_out);
    ggl_fprint(stdout, "  %-26.*s %-14s rank %4" PRId64 "  %s, %s  norm %.4g%s\n", (int)name.n,
               name.s, shape, p.rank, tensor_type(p.columns), tensor_type(p.rows),
               isnan(norm) ? NAN : norm * (alpha != 0 ? fabs(alpha) / (double)p.rank : 1),
               p.magnitude ? "  magnitudes" : "");
    *n_bad += !isfinite(norm);
    return true;
}

static int show(const llm_adapter *a) {
    const ggl_gguf *f = llm_adapter_file(a);
    const llm_adapter_info x = llm_adapter_describe(a);
    size_t n_bad = 0;
    char word[LLM_SHELL_WORD];
    ggl_fprint(stdout, "%s: an adapter for %.*s%s%.*s%s, %zu pair%s, ", ggl_gguf_name(f),
               (int)x.architecture.n, x.architecture.s, x.title.n ? " (" : "", (int)x.title.n,
               x.title.n ? x.title.s : "", x.title.n ? ")" : "", x.n_pairs,
               x.n_pairs == 1 ? "" : "s");
    if (x.rank_min == x.rank_max)
        printf("rank %" PRId64, x.rank_min);
    else
        printf("ranks %" PRId64 " to %" PRId64, x.rank_min, x.rank_max);
    printf(", %.2f MiB\n", (double)x.bytes / 0x1p20);
    if (x.alpha != 0)
        printf("alpha %g: the change of a weight is %g / rank * lora_b * lora_a\n\n", x.alpha,
               x.alpha);
    else
        printf("no alpha: the change of a weight is lora_b * lora_a\n\n");
    if (x.n_magnitudes > 0)
        printf("%zu with magnitudes (DoRA): the lengths of the changed rows are lora_magnitude\n\n",
               x.n_magnitudes);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        if (t->name.s[t->name.n - 1] == 'a' && !print_pair(f, t, x.alpha, &n_bad))
            return tool_error(TOOL, 1, "out of memory");
    }
    if (n_bad > 0)
        tool_warning(TOOL,
                     "%zu pair%s of no use, because numbers of %s are NaN or infinite: `llm-gguf "
                     "check %s` finds them",
                     n_bad, n_bad == 1 ? " is" : "s are", n_bad == 1 ? "it" : "them",
                     llm_shell_quote(word, ggl_gguf_name(f)));
    return 0;
}

int lora_show(int argc, char **argv) {
    static const arg_option none[] = {{0}};
    arg_list files = {0};
    static const args_example examples[] = {
        {"llm-lora show style.gguf", "which weights does an adapter change, and how much?"}, {0}};
    const args_spec spec = {
        TOOL,
        "ADAPTER",
        "Prints the weights that a LoRA adapter changes, with shape, rank, types, "
        "and the Frobenius norm of the change at scale 1.",
        none,
        &files,
        &lora_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    const tool_path path = {"ADAPTER", files.s[0], .needed = true, .model = true};
    code = tool_check_paths(TOOL, &path, 1);
    ggl_error err = {0};
    llm_adapter *a = NULL;
    if (code < 0 && llm_adapter_open(&a, files.s[0], NULL, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0)
        code = show(a);
    llm_adapter_free(a);
    args_list_fini(&files);
    return code;
}
