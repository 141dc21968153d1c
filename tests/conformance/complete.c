/* conformance.complete: every operator, composite and type stands in all the places that it belongs in: definition, kernels of
 * the backends, conformance cases, documentation, tests that have tables of their own. For whatever is missing this says which
 * line to add to which file. It reads the product's tables, and the text of the other files; it needs no device. */
#include <dirent.h>

#include "../../backends/cpu/cpu_features.h"
#include "../../backends/cpu/kernels.h"
#include "bodies.h"
#include "ggl/internal/types.h"

/* --- the tables ------------------------------------------------------------------------------- */

/* What a backend's table has of an operator or composite. */
typedef enum way {
    ABSENT,
    KERNEL,
    WITHOUT /* it says that there is no kernel: REFUSED, BODY */
} way;

typedef struct backend {
    const char *folder, *prefix; /* in backends/; of its functions */
    bool composites;             /* it may have kernels for composites */
    way op[GGL_OP_COUNT], composite[GGL_COMPOSITE_COUNT];
} backend;

static const backend backends[] = {
    {.folder = "reference",
     .prefix = "ggl_ref_",
     .op =
         {
#define OP(ID, fn) [GGL_OP_##ID] = KERNEL,
#include "../../backends/reference/ops.def"
         }},
    {.folder = "cpu",
     .prefix = "ggl_cpu_op_",
     .composites = true,
     .op =
         {
#define OP(ID, fn)  [GGL_OP_##ID] = KERNEL,
#define REFUSED(ID) [GGL_OP_##ID] = WITHOUT,
#include "../../backends/cpu/ops.def"
         },
     .composite =
         {
#define COMPOSITE(ID, fn) [GGL_COMPOSITE_##ID] = KERNEL,
#define BODY(ID)          [GGL_COMPOSITE_##ID] = WITHOUT,
#include "../../backends/cpu/ops.def"
         }},
    {.folder = "vulkan",
     .prefix = "ggl_vk_op_",
     .composites = true,
     .op =
         {
#define OP(ID, fn)  [GGL_OP_##ID] = KERNEL,
#define REFUSED(ID) [GGL_OP_##ID] = WITHOUT,
#include "../../backends/vulkan/ops.def"
         },
     .composite =
         {
#define COMPOSITE(ID, fn) [GGL_COMPOSITE_##ID] = KERNEL,
#define BODY(ID)          [GGL_COMPOSITE_##ID] = WITHOUT,
#include "../../backends/vulkan/ops.def"
         }},
};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

static const char *const op_id[GGL_OP_COUNT] = {
#define OP(ID, name, signature, rule, result, bits, kind, text) [GGL_OP_##ID] = #ID,
#include "ggl/ops.def"
#undef OP
};

static const char *const composite_id[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, name, n_src, n_num, recurrent, fits) [GGL_COMPOSITE_##ID] = #ID,
#include "ggl/composites.def"
#undef COMPOSITE
};

static const char *const type_id[GGL_TYPE_LIMIT] = {
#define TYPE(id, NAME, name) [id] = #NAME,
#include "ggl/types.def"
#undef TYPE
};

/* Types that Vulkan's shaders do not decode. */
static const bool is_foreign[GGL_TYPE_LIMIT] = {
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)
#define QUANT_READ(id, NAME, name, block, size, form, text)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text) [id] = true,
#include "ggl/types.def"
};

/* --- what the checks read --------------------------------------------------------------------- */

enum { OPS_MD, NUMERIC_MD, TYPES_MD, WEIGHTS_PY, PRELUDE, PLUGIN_C, TYPES_GLSL, RANDOM_H, N_FILES };
static const char *const file_name[N_FILES] = {"docs/ops.md",
                                               "docs/numeric.md",
                                               "docs/types.md",
                                               "tests/numpy/weights.py",
                                               "models/archs/prelude.arch",
                                               "tests/backends/plugin.c",
                                               "backends/vulkan/shaders/types.glsl",
                                               "tests/random/program.h"};

typedef struct facts {
    backend backend[N_BACKENDS];
    char *file[N_FILES];
    bool op_case[GGL_OP_COUNT], composite_case[GGL_COMPOSITE_COUNT];
    bool type_kernel[GGL_TYPE_LIMIT]; /* the CPU has a kernel */
    char report[1 << 16];             /* what is missing */
    size_t used;
} facts;

/* Reports a line that is missing in a file. */
__attribute__((format(printf, 3, 4))) static void missing(facts *f, const char *file,
                                                          const char *format, ...) {
    size_t left = sizeof f->report - f->used;
    int n = snprintf(f->report + f->used, left, "\n  %s lacks:  ", file);
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < left)
        n += vsnprintf(f->report + f->used + n, left - (size_t)n, format, args);
    va_end(args);
    f->used += n > 0 && (size_t)n < left ? (size_t)n : 0;
}

/* Operators that cases have in their graphs, and composites that they call. */
static void find_cases(facts *f) {
    for (int k = 0; conform_kind_at(k); k++)
        for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
            const conform_case *info = &conform_kind_at(k)->cases[i];
            conform_form form = conform_variant(info, 0);
            conform_output out;
            ggl_error err = {0};
            form.n = form.n_batch = 2;
            ggl_status st = conform_run_on(info, &form, "reference", NULL, &out, &err);
            CHECK_MSG(st == GGL_OK, "%s: %s", info->name, err.msg);
            CHECK_MSG(out.covers[info->op] > 0, "the case %s has no '%s'", info->name,
                      ggl_op_get(info->op).name);
            for (int op = 0; op < GGL_OP_COUNT; op++)
                f->op_case[op] = f->op_case[op] || out.covers[op] > 0;
            f->composite_case[composite_of_name(info->call)] = true;
            conform_output_fini(&out);
        }
}

/* Types for which a vector kernel multiplies, or, where the machine has none, the portable one. */
static void find_type_kernels(facts *f) {
    static cpu_kernels k[CPU_MAX_SETS];
    uint32_t set[CPU_MAX_SETS];
    int n = ggl_cpu_features_sets(set);
    for (int i = 0; i < n; i++)
        ggl_cpu_kernels_init(&k[i], set[i]);
    for (int i = 0; ggl_type_at(i); i++) {
        const ggl_type type = ggl_type_at(i)->type;
        f->type_kernel[type] = k[0].product[type].rows &&
                               (n == 1 || k[n - 1].product[type].rows != k[0].product[type].rows);
    }
}

static void facts_free(facts *f) {
    for (int i = 0; f && i < N_FILES; i++)
        free(f->file[i]);
    free(f);
}

static facts *facts_new(void) {
    facts *f = calloc(1, sizeof *f);
    bool ok = f != NULL;
    for (int i = 0; i < N_FILES && ok; i++) {
        char path[1024];
        size_t n = 0;
        snprintf(path, sizeof path, GGL_SOURCE_DIR "/%s", file_name[i]);
        f->file[i] = (char *)test_read_file(path, &n);
        ok = CHECK_MSG(f->file[i], "%s cannot be read", path);
        if (ok)
            f->file[i][n] = '\0';
    }
    if (!ok) {
        facts_free(f);
        return NULL;
    }
    memcpy(f->backend, backends, sizeof backends);
    find_cases(f);
    find_type_kernels(f);
    return f;
}

/* --- text ------------------------------------------------------------------------------------- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_sign(char c) {
    return c && strchr("<>=!*+-/%", c);
}

/* True if [text, end) has the name as a whole word, or as a whole run of signs. */
static bool has_token(const char *text, const char *end, const char *name) {
    size_t n = strlen(name);
    bool (*same)(char) = is_word(*name) ? is_word : is_sign;
    for (const char *s = text; s + n <= end; s++)
        if (memcmp(s, name, n) == 0 && (s == text || !same(s[-1])) && (s + n == end || !same(s[n])))
            return true;
    return false;
}

/* True if the name stands between backquotes in the page. */
static bool mentions(const char *page, const char *name) {
    char bare[64];
    size_t n = strlen(name);
    snprintf(bare, sizeof bare, "%s", name);
    if (n > 2 && name[0] == '<' && is_word(name[1])) /* <cast> is also said without the signs */
        snprintf(bare, sizeof bare, "%.*s", (int)(n - 2), name + 1);
    for (const char *s = strchr(page, '`'); s; s = strchr(s, '`')) {
        const char *end = s + 1 + strcspn(s + 1, "`\n");
        if (*end == '`' && has_token(s + 1, end, bare))
            return true;
        s = *end ? end + 1 : end;
    }
    return false;
}

/* The line of the page that begins so; *end: where it ends. NULL: there is none. */
static const char *line_of(const char *page, const char *begin, const char **end) {
    const size_t n = strlen(begin);
    for (const char *s = page; *s; s = **end ? *end + 1 : *end) {
        *end = s + strcspn(s, "\n");
        if (strncmp(s, begin, n) == 0)
            return s;
    }
    return NULL;
}

static const char *lower(const char *id, char *buf, size_t size) {
    size_t i = 0;
    for (; id[i] && i + 1 < size; i++)
        buf[i] = (char)(id[i] >= 'A' && id[i] <= 'Z' ? id[i] - 'A' + 'a' : id[i]);
    buf[i] = '\0';
    return buf;
}

/* --- operators and composites ----------------------------------------------------------------- */

static void check_op(facts *f, ggl_op op) {
    const ggl_op_info info = ggl_op_get(op);
    char line[512], fn[64], file[64];
    lower(op_id[op], fn, sizeof fn);
    snprintf(line, sizeof line, "| `%s` | %s%s%s | %s |", info.name, info.signature[0] ? "`" : "",
             info.signature, info.signature[0] ? "`" : "", info.text);
    if (!strstr(f->file[OPS_MD], line))
        missing(f, file_name[OPS_MD], "%s", line);
    snprintf(line, sizeof line, "X(%s, \"%s\")", op_id[op], info.name);
    if (!strstr(f->file[RANDOM_H], line))
        missing(f, file_name[RANDOM_H],
                "%s in R_OPS; a maker, a meaning and a fault: tests/random/README.md", line);
    if (info.kind == GGL_KIND_LEAF && op != GGL_OP_IOTA)
        return;
    if (!f->op_case[op])
        missing(f, "tools/conform/cases_*.c",
                "{.name = \"%s\", .op = GGL_OP_%s, .build = build_%s, FORM_LIST(..)},", fn,
                op_id[op], fn);
    if (info.kind == GGL_KIND_CALL)
        return;
    if (!mentions(f->file[NUMERIC_MD], info.name))
        missing(f, file_name[NUMERIC_MD],
                "- `%s`: the bits of its result, in the section of its kind of operator", fn);
    for (int b = 0; b < N_BACKENDS; b++)
        if (f->backend[b].op[op] == ABSENT) {
            snprintf(file, sizeof file, "backends/%s/ops.def", f->backend[b].folder);
            missing(f, file, "OP(%s, %s%s)%s%s%s", op_id[op], f->backend[b].prefix, fn,
                    b == 0 ? "" : ", or without a kernel REFUSED(", b == 0 ? "" : op_id[op],
                    b == 0 ? "" : ")");
        }
}

static void check_composite(facts *f, int c) {
    const char *id = composite_id[c], *name = composite_name[c], *end;
    char begin[80], file[64];
    snprintf(begin, sizeof begin, "op %s(", name);
    if (!line_of(f->file[PRELUDE], begin, &end))
        missing(f, file_name[PRELUDE], "op %s(..) = ..", name);
    if (!f->composite_case[c])
        missing(f, "tools/conform/cases_composites.c",
                "{.name = \"%s\", .op = GGL_OP_CALL, .call = \"%s\", .build = build_%s, "
                "FORM_LIST(..)},",
                name, name, name);
    if (!mentions(f->file[NUMERIC_MD], name))
        missing(f, file_name[NUMERIC_MD], "- `%s`: what its text computes, operation by operation",
                name);
    for (int b = 0; b < N_BACKENDS; b++)
        if (f->backend[b].composites && f->backend[b].composite[c] == ABSENT) {
            snprintf(file, sizeof file, "backends/%s/ops.def", f->backend[b].folder);
            missing(f, file, "COMPOSITE(%s, %s%s), or without a kernel BODY(%s)", id,
                    f->backend[b].prefix, name, id);
        }
}

/* --- types ------------------------------------------------------------------------------------ */

/* How the rows of docs/numeric.md, section 4, begin, by ggl_type_form. */
static const char *const form_row[] = {[GGL_SCALE] = "| scale |",
                                       [GGL_SCALE_MIN] = "| scale, minimum |",
                                       [GGL_SCALE16] = "| scale for each half |",
                                       [GGL_SCALE16_MIN] = "| scale and minimum for each half |"};

static void check_quantized(facts *f, const ggl_type_info *t) {
    const char *row = form_row[t->form], *end, *id = type_id[t->type];
    const char *line = line_of(f->file[NUMERIC_MD], row, &end);
    char text[128];
    if (!line || !has_token(line, end, t->name))
        missing(f, file_name[NUMERIC_MD], "%s in the second column of '%s'", t->name, row);
    snprintf(text, sizeof text, "\"%s\": (%d, %d, %zu, ", t->name, (int)t->type, (int)t->block,
             t->size);
    if (!strstr(f->file[WEIGHTS_PY], text))
        missing(f, file_name[WEIGHTS_PY], "%s%s), in TYPES, and the function", text, t->name);
    if (!f->type_kernel[t->type])
        missing(f, "backends/cpu/quant/quant_types.def", "QTYPE(%s, %s, ..)", id, t->name);
    const char *glsl = f->file[TYPES_GLSL];
    snprintf(text, sizeof text, "unpack_%s", t->name);
    if (!is_foreign[t->type] && !has_token(glsl, glsl + strlen(glsl), text))
        missing(f, file_name[TYPES_GLSL], "the function %s", text);
}

static void check_type(facts *f, const ggl_type_info *t) {
    char begin[128];
    const char *end;
    snprintf(begin, sizeof begin, "| `%s` | %d | %d | %zu | %.10g |", t->name, (int)t->type,
             (int)t->block, t->size, 8 * (double)t->size / (double)t->block);
    if (!line_of(f->file[TYPES_MD], begin, &end))
        missing(f, file_name[TYPES_MD], "%s scales, minima | codes |", begin);
    if (t->quantized)
        check_quantized(f, t);
}

/* Counts that the interface of plug-ins stands for. */
static void check_counts(facts *f) {
    const struct {
        const char *name;
        int n;
    } count[] = {{"GGL_OP_COUNT", GGL_OP_COUNT},
                 {"GGL_TYPE_COUNT", GGL_TYPE_COUNT},
                 {"GGL_TYPE_LIMIT", GGL_TYPE_LIMIT},
                 {"GGL_STATUS_COUNT", GGL_STATUS_COUNT}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        char text[64];
        snprintf(text, sizeof text, "IS(%s, %d),", count[i].name, count[i].n);
        if (!strstr(f->file[PLUGIN_C], text))
            missing(f, file_name[PLUGIN_C],
                    "%s in place of the other number; and GGL_BACKEND_ABI in ggl/backend.h grows "
                    "by one, unless no release has had %d",
                    text, GGL_BACKEND_ABI);
    }
}

/* --- the tests -------------------------------------------------------------------------------- */

static void check_all(facts *f) {
    for (int op = 0; op < GGL_OP_COUNT; op++)
        check_op(f, (ggl_op)op);
    for (int c = 1; c < GGL_COMPOSITE_COUNT; c++)
        check_composite(f, c);
    for (int i = 0; ggl_type_at(i); i++)
        check_type(f, ggl_type_at(i));
    check_counts(f);
}

TEST(nothing_is_missing) {
    facts *f = facts_new();
    REQUIRE(f);
    check_all(f);
    CHECK_MSG(f->used == 0, "to be added:%s", f->report);
    facts_free(f);
}

TEST(kernels_of_composites_on_the_cpu) {
    static const bool by_body[GGL_COMPOSITE_COUNT + 1] = {
        [GGL_COMPOSITE_COUNT] = true,
#define BODY(ID) [GGL_COMPOSITE_##ID] = true,
#include "../../backends/cpu/ops.def"
    };
    ggl_backend *b = NULL;
    ggl_error err = {0};
    REQUIRE_OK(ggl_backend_open(
                   &b, "cpu",
                   &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1}, &err),
               &err);
    check_bodies(b, by_body);
    ggl_backend_close(b);
}

/* Each folder of backends with a table of operators is one of those above. */
TEST(all_backends) {
    DIR *dir = opendir(GGL_SOURCE_DIR "/backends");
    int n = 0;
    REQUIRE(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[1024];
        bool known = false;
        snprintf(path, sizeof path, GGL_SOURCE_DIR "/backends/%s/ops.def", e->d_name);
        for (int b = 0; b < N_BACKENDS; b++)
            known |= strcmp(backends[b].folder, e->d_name) == 0;
        if (access(path, R_OK) == 0)
            n += CHECK_MSG(known, "backends[] of complete.c has no row for backends/%s/ops.def",
                           e->d_name);
    }
    closedir(dir);
    CHECK_INT(n, N_BACKENDS);
}

/* Removes every line with these words from a text. */
static void remove_lines(char *text, const char *words) {
    for (char *at; (at = strstr(text, words));) {
        while (at > text && at[-1] != '\n')
            at--;
        char *end = at + strcspn(at, "\n");
        memmove(at, *end ? end + 1 : end, strlen(*end ? end + 1 : end) + 1);
    }
}

/* Tables that lack something: the report has the line to add and nothing else. */
TEST(finds_what_is_missing) {
    static const char *const want[] = {
        "docs/ops.md lacks:  | `sum` | `x #dim=0` | sum over dim; it becomes 1, and vanishes if "
        "it is the last |",
        "tools/conform/cases_*.c lacks:  {.name = \"rank\", .op = GGL_OP_RANK, ",
        "backends/reference/ops.def lacks:  OP(TOPK, ggl_ref_topk)\n",
        "backends/cpu/ops.def lacks:  OP(SUM, ggl_cpu_op_sum), or without a kernel REFUSED(SUM)",
        "backends/vulkan/ops.def lacks:  COMPOSITE(WKV7, ggl_vk_op_wkv7), or without a kernel "
        "BODY(WKV7)",
        "models/archs/prelude.arch lacks:  op silu(..) = ..",
        "tools/conform/cases_composites.c lacks:  {.name = \"gelu\", ",
        "docs/numeric.md lacks:  - `l2`: ",
        "docs/numeric.md lacks:  - `topk`: ",
        "docs/numeric.md lacks:  q2_k in the second column of '| scale and minimum for each half",
        "docs/types.md lacks:  | `q4_0` | 2 | 32 | 18 | 4.5 |",
        "tests/numpy/weights.py lacks:  \"mxfp4\": (39, 32, 17, mxfp4), in TYPES",
        "backends/cpu/quant/quant_types.def lacks:  QTYPE(Q6_K, q6_k, ..)",
        "tests/backends/plugin.c lacks:  IS(GGL_TYPE_COUNT, ",
        "backends/vulkan/shaders/types.glsl lacks:  the function unpack_tq2_0",
        "tests/random/program.h lacks:  X(AMAX, \"amax\") in R_OPS",
    };
    facts *f = facts_new();
    REQUIRE(f);
    check_all(f);
    if (f->used > 0) {
        facts_free(f);
        SKIP("nothing_is_missing reports lines that are missing");
    }
    remove_lines(f->file[OPS_MD], "| `sum` |");
    f->op_case[GGL_OP_RANK] = f->composite_case[GGL_COMPOSITE_GELU] = false;
    f->backend[0].op[GGL_OP_TOPK] = f->backend[1].op[GGL_OP_SUM] = ABSENT;
    f->backend[2].composite[GGL_COMPOSITE_WKV7] = ABSENT;
    remove_lines(f->file[PRELUDE], "op silu(");
    remove_lines(f->file[NUMERIC_MD], "`l2`");
    remove_lines(f->file[NUMERIC_MD], "topk");
    remove_lines(f->file[NUMERIC_MD], "| q2_k |");
    remove_lines(f->file[TYPES_MD], "| `q4_0` |");
    remove_lines(f->file[WEIGHTS_PY], "\"mxfp4\"");
    remove_lines(f->file[PLUGIN_C], "GGL_TYPE_COUNT");
    remove_lines(f->file[TYPES_GLSL], "unpack_tq2_0");
    remove_lines(f->file[RANDOM_H], "\"amax\"");
    f->type_kernel[GGL_Q6_K] = false;
    check_all(f);
    int n = 0;
    for (const char *s = f->report; (s = strstr(s, " lacks:  ")); s++)
        n++;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_HAS(f->report, want[i]);
    CHECK_MSG(n >= (int)(sizeof want / sizeof *want) && n < 30, "%d lines:%s", n, f->report);
    facts_free(f);
}
