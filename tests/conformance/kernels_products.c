/* conformance.cpu: products of all weight types. */
#include "../../backends/cpu/quant/rows16.h"
#include "../../backends/cpu/trial.h"
#include "kernels.h"
#if defined(__x86_64__) && defined(__linux__)
#define HAVE_TILES
#include "../../backends/cpu/x86/x86.h"
#include "tiles.h"
#endif
#if defined(__aarch64__) && defined(__linux__)
#define HAVE_SME
#include "../../backends/cpu/arm/arm.h"
#include "sme.h"
void test_kernels_quant_sme(cpu_kernels *k);
#endif

static tables all;
static int emulated = -1; /* a table of all that takes long */
/* Tables of all with SME, and with SVE, whose vectors have any length. */
TEST_UNUSED static int streaming = -1, scalable = -1;

/* Adds a table of `features` with what `more` replaces. */
TEST_UNUSED static void add_table(uint32_t features, void (*more)(cpu_kernels *k),
                                  const char *name) {
    ggl_cpu_kernels_init(&all.k[all.n], features);
    more(&all.k[all.n]);
    snprintf(all.name[all.n++], sizeof all.name[0], "%s", name);
}

#ifdef AVXVNNI_AS_AVX512
void test_kernels_quant_avxvnni(cpu_kernels *k);
#endif

static void tables_of_products(void) {
    tables_init(&all);
#ifdef AVXVNNI_AS_AVX512
    if (ggl_cpu_features_detect() & CPU_AVX512VNNI)
        add_table(CPU_AVX2, test_kernels_quant_avxvnni, "avxvnni as avx512vnni");
#endif
#ifdef HAVE_TILES
    if ((ggl_cpu_features_detect() & (CPU_AVX512 | CPU_AMX)) == CPU_AVX512) {
        tiles_emulate();
        emulated = all.n;
        add_table(CPU_AVX2 | CPU_AVX512, ggl_cpu_kernels_quant_amx, "amx with emulated tiles");
    }
#endif
#ifdef HAVE_SME
    uint32_t set[CPU_MAX_SETS];
    for (int i = ggl_cpu_features_sets(set) - 1; i >= 0; i--) {
        streaming = set[i] & CPU_SME ? i : streaming;
        scalable = set[i] & CPU_SVE ? i : scalable;
    }
    if (streaming >= 0 && !sme_multiplies())
        test_kernels_quant_sme(&all.k[streaming]);
#endif
}

/* Gives vectors of any length another one for each problem. */
static void next_length(void) {
#ifdef HAVE_SME
    static int turn;
    const int length = 16 << turn++ % 5;
    if (scalable >= 0)
        snprintf(all.name[scalable], sizeof all.name[0], "sve, vectors of %d bytes",
                 sve_set_length(length));
    if (streaming >= 0)
        snprintf(all.name[streaming], sizeof all.name[0], "sme, vectors of %d bytes%s",
                 sme_set_length(length), sme_multiplies() ? "" : ", of floats");
#endif
}

static bool is_weight(ggl_type type) {
    return ggl_type_has_products(type);
}

typedef struct problem {
    ggl_type type;
    int64_t k, n_rows;
    int n_cols;
    size_t row_size, column_size;
    exact w;
    /* n_cols of column_size, in each form that a table wants; or NULL */
    char *column[CPU_N_COLUMNS];
    float *want; /* [n_cols][n_rows] */
} problem;

static problem problem_new(ggl_type type, int64_t k, int64_t n_rows, int n_cols, uint64_t *seed,
                           values kind) {
    problem p = {.type = type,
                 .k = k,
                 .n_rows = n_rows,
                 .n_cols = n_cols,
                 .row_size = ggl_row_size(type, k)};
    const cpu_product *product = &all.k[0].product[type];
    p.w = exact_new(p.row_size * (size_t)n_rows, type == GGL_F32 ? 4 : 2);
    if (ggl_type_get(type)->row_meta == 0)
        fill_weights(p.w.p, type, k * n_rows, seed, kind);
    for (int j = 0; j < n_rows && ggl_type_get(type)->row_meta > 0; j++)
        fill_weights((char *)p.w.p + (size_t)j * p.row_size, type, k, seed, kind);
    p.column_size = (size_t)(k + 32) * 4;
    for (int t = 0; t < all.n; t++) {
        char **form = &p.column[all.k[t].product[type].columns];
        *form = *form ? *form : calloc((size_t)n_cols, p.column_size);
    }
    p.want = calloc((size_t)(n_rows * n_cols) + 1, sizeof(float));
    for (int c = 0; c < n_cols; c++) {
        exact x = exact_new((size_t)k * 4, 0);
        fill(x.p, k, seed, kind);
        if (kind != ORDINARY && k >= 32) /* a block that is zero */
            memset((float *)x.p + test_random(seed) % ((uint64_t)k / 32) * 32, 0,
                   32 * sizeof(float));
        for (cpu_columns form = 0; form < CPU_N_COLUMNS; form++)
            if (p.column[form])
                ggl_cpu_column_make(&all.k[0], form, p.column[form] + (size_t)c * p.column_size,
                                    x.p, k);
        const void *y = p.column[product->columns] + (size_t)c * p.column_size;
        product->rows((float *[]){p.want + c * n_rows}, &y, 1, p.w.p, p.row_size, n_rows, k);
        exact_free(&x);
    }
    return p;
}

static void problem_free(problem *p) {
    exact_free(&p->w);
    for (int form = 0; form < CPU_N_COLUMNS; form++)
        free(p->column[form]);
    free(p->want);
}

/* Outputs [n_cols][n] between canaries, and the columns. */
typedef struct outputs {
    guarded y[CPU_MAX_COLS];
    float *to[CPU_MAX_COLS];
    const void *x[CPU_MAX_COLS];
} outputs;

static outputs outputs_new(const problem *p, int64_t n, int t) {
    outputs o;
    for (int c = 0; c < p->n_cols; c++) {
        o.y[c] = guarded_new((size_t)n * 4, 8);
        o.to[c] = (float *)o.y[c].p;
        o.x[c] = p->column[all.k[t].product[p->type].columns] + (size_t)c * p->column_size;
    }
    return o;
}

static void outputs_check(outputs *o, const problem *p, int64_t j, int64_t n, int t,
                          const char *what) {
    for (int c = 0; c < p->n_cols; c++) {
        CHECK_SAME(o->to[c], p->want + c * p->n_rows + j, n,
                   "%s of %s, k = %lld, %lld rows, column %d of %d, %s", what,
                   ggl_type_get(p->type)->name, (long long)p->k, (long long)n, c, p->n_cols,
                   all.name[t]);
        guarded_end(&o->y[c], what);
    }
}

/* How kernels read: by what the processor foresees, and as processors need that foresee less. */
static const cpu_reading reading_of[] = {{0, false}, {8192, false}, {2048, true}};
enum { N_READING = sizeof reading_of / sizeof *reading_of };

/* True if a table before t has the same kernel of products, whose place in cpu_product is `at`. */
static bool is_checked(const problem *p, int t, size_t at) {
    const char *kernel = (const char *)&all.k[t].product[p->type] + at;
    for (int i = 1; i < t; i++)
        if (memcmp((const char *)&all.k[i].product[p->type] + at, kernel, sizeof(void (*)(void))) ==
            0)
            return true;
    return false;
}

static void check_rows(const problem *p, int t) {
    if (is_checked(p, t, offsetof(cpu_product, rows)))
        return;
    outputs o = outputs_new(p, p->n_rows, t);
    all.k[t].product[p->type].rows(o.to, o.x, p->n_cols, p->w.p, p->row_size, p->n_rows, p->k);
    outputs_check(&o, p, 0, p->n_rows, t, "rows");
}

/* A program may have sums of its own in ZA, which the kernels save for it. Of three calls one has it so, and one
 * with half of ZA to be saved. */
#ifdef HAVE_SME
static struct {
    uint8_t za[SME_MOST_BYTES * SME_MOST_BYTES], saved[SME_MOST_BYTES * SME_MOST_BYTES + 1];
    sme_save save;
    int turn, length;
} program;

/* True if the kernel of table t uses ZA. */
static bool has_za(const problem *p, int t) {
    return t == streaming && p->k > 0 && ggl_type_get(p->type)->quantized;
}
#endif

static void leave_za(const problem *p, int t) {
#ifdef HAVE_SME
    uint64_t seed = 7;
    if (!has_za(p, t) || ++program.turn % 3 == 0)
        return;
    program.length = sme_length();
    if (program.za[0] == 0)
        for (size_t i = 0; i < sizeof program.za; i++)
            program.za[i] = (uint8_t)(test_random(&seed) | 1);
    memset(program.saved, 0, sizeof program.saved);
    program.save = (sme_save){program.saved, (uint16_t)(program.length / (program.turn % 3)), {0}};
    sme_leave_za(program.za, program.length, &program.save);
#else
    (void)p, (void)t;
#endif
}

static void check_za(const problem *p, int t) {
#ifdef HAVE_SME
    const int size = program.save.slices * program.length;
    if (!has_za(p, t))
        return;
    CHECK_MSG(sme_state() == 0 && sme_left() == NULL, "a thread keeps the state of SME");
    CHECK_MSG(program.turn % 3 == 0 || (memcmp(program.saved, program.za, (size_t)size) == 0 &&
                                        program.saved[size] == 0),
              "%d slices of %d bytes are saved wrongly", program.save.slices, program.length);
#else
    (void)p, (void)t;
#endif
}

/* w16: the row-interleaved layout; NULL: rows as in a file. */
static void check_panel(const problem *p, int t, const void *w16) {
    const cpu_product *f = &all.k[t].product[p->type];
    if (!f->pack || p->k % f->panel_unit || p->n_rows == 0 ||
        (is_checked(p, t, offsetof(cpu_product, tile)) &&
         is_checked(p, t, offsetof(cpu_product, pack))))
        return;
    guarded panel = guarded_new(f->panel_size(p->k), 0);
    for (int64_t j = 0; j < p->n_rows; j += f->panel_rows) {
        int n = (int)(p->n_rows - j < f->panel_rows ? p->n_rows - j : f->panel_rows);
        if (w16)
            f->pack16(panel.p, (const char *)w16 + ggl_cpu_rows16_size(p->type, j, p->k), n, p->k);
        else
            f->pack(panel.p, (char *)p->w.p + (size_t)j * p->row_size, p->row_size, n, p->k);
        outputs o = outputs_new(p, n, t);
        leave_za(p, t);
        f->tile(o.to, o.x, p->n_cols, panel.p, n, p->k);
#ifdef HAVE_TILES
        CHECK_MSG(tiles.config.palette == 0, "a thread keeps the state of its tiles");
#endif
        check_za(p, t);
        outputs_check(&o, p, j, n, t, w16 ? "tile of interleaved rows" : "tile");
    }
    guarded_end(&panel, "pack");
}

static void check_rows16(const problem *p, int t) {
    const cpu_product *f = &all.k[t].product[p->type];
    if (!f->rows16)
        return;
    CHECK_MSG(f->interleave != NULL, "%s is interleaved by its definition, which is slow, %s",
              ggl_type_get(p->type)->name, all.name[t]);
    guarded w16 = guarded_new(ggl_cpu_rows16_size(p->type, p->n_rows, p->k), 0);
    int64_t groups = (p->n_rows + CPU_GROUP - 1) / CPU_GROUP;
    for (int64_t j = groups - 1; j >= 0; j--)
        ggl_cpu_rows16_pack(NULL, w16.p, p->type, p->w.p, p->row_size, p->n_rows, p->k, j, j + 1);
    const bool old = is_checked(p, t, offsetof(cpu_product, rows16)) &&
                     is_checked(p, t, offsetof(cpu_product, interleave));
    for (int64_t step = 1; step <= 5 && !old; step += 2) { /* groups in one call */
        guarded by = guarded_new(w16.size, 0);
        for (int64_t j = 0; j < groups; j += step)
            ggl_cpu_rows16_pack(f, by.p, p->type, p->w.p, p->row_size, p->n_rows, p->k, j,
                                j + step < groups ? j + step : groups);
        CHECK_MSG(memcmp(by.p, w16.p, w16.size) == 0,
                  "interleaving %s, k = %lld, %lld rows, %lld groups at once: other bytes, %s",
                  ggl_type_get(p->type)->name, (long long)p->k, (long long)p->n_rows,
                  (long long)step, all.name[t]);
        guarded_end(&by, "interleave");
    }
    for (int i = 0; i < N_READING && !old; i++) {
        outputs o = outputs_new(p, p->n_rows, t);
        f->rows16(o.to, o.x, p->n_cols, w16.p, p->n_rows, p->k, reading_of[i]);
        outputs_check(&o, p, 0, p->n_rows, t, "interleaved rows");
    }
    check_panel(p, t, w16.p);
    guarded_end(&w16, "ggl_cpu_rows16_pack");
}

static bool is_chosen(void) {
    static uint64_t at;
    uint64_t first;
    const uint64_t n = kernels_every(&first);
    return at++ % n == first;
}

static void check_type(ggl_type type) {
    static const int64_t ks[] = {0,   1,   2,   7,   15,  16,  17,  31,  32,  33,
                                 48,  63,  64,  65,  96,  100, 128, 160, 192, 256,
                                 288, 320, 384, 512, 544, 640, 768, 1024};
    static const int rows[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 32, 33, 40};
    /* more blocks, rows and columns than kernels of panels take at once; k becomes whole blocks */
    static const struct {
        int k, rows, cols;
    } large[] = {{1056, 100, 17}, {2080, 17, 49}, {352, 97, 64},
                 {1312, 33, 16},  {1024, 16, 24}, {2080, 100, 53}};
    uint64_t seed = 3 + (uint64_t)type;
    int n_lengths = 0;
    tables_of_products();
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        if (ks[i] % ggl_type_get(type)->block)
            continue;
        n_lengths++;
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            for (values kind = ORDINARY; kind < N_VALUES; kind++) {
                if (!is_chosen())
                    continue;
                problem p = problem_new(type, ks[i], rows[j], 1 + (int)((i + j) % 9), &seed, kind);
                next_length();
                for (int t = 1; t < all.n; t++) {
                    if (t == emulated && (i + j + kind) % 8 != (size_t)type % 8)
                        continue;
                    check_rows(&p, t);
                    check_panel(&p, t, NULL);
                    check_rows16(&p, t);
                }
                problem_free(&p);
            }
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (!is_chosen())
            continue;
        const int64_t k = large[i].k - large[i].k % ggl_type_get(type)->block;
        problem p =
            problem_new(type, k, large[i].rows, large[i].cols, &seed, (values)(i % N_VALUES));
        next_length();
        for (int t = 1; t < all.n; t++) {
            check_panel(&p, t, NULL);
            check_rows16(&p, t);
        }
        problem_free(&p);
    }
    CHECK_MSG(n_lengths >= 4, "%s: add lengths of whole blocks to ks[]", ggl_type_get(type)->name);
}

/* Types first, first + step, .. of the table. */
static void check_types(int first, int step) {
    for (int i = first; i < GGL_TYPE_COUNT; i += step)
        if (is_weight(ggl_type_at(i)->type))
            check_type(ggl_type_at(i)->type);
}

/* All types that a weight can have, in four parts, which run side by side. */
LONG_TEST(products_1_of_4) {
    check_types(0, 4);
}
LONG_TEST(products_2_of_4) {
    check_types(1, 4);
}
LONG_TEST(products_3_of_4) {
    check_types(2, 4);
}
LONG_TEST(products_4_of_4) {
    check_types(3, 4);
}
/* What is chosen when a backend is opened, whatever its time: all that has the right bits. */
TEST(products_that_are_tried) {
    static cpu_kernels k, want;
    const uint32_t features = ggl_cpu_features_ask(ggl_cpu_features_detect());
    uint32_t right = features;
#ifdef HAVE_SME
    if (sme_here() && !sme_multiplies())
        right &= ~(uint32_t)CPU_SME;
#endif
    CHECK_INT(ggl_cpu_kernels_choose(&k, features, false), right);
    ggl_cpu_kernels_init(&want, right);
    for (int type = 0; type < GGL_TYPE_LIMIT; type++)
        CHECK_MSG(k.product[type].tile == want.product[type].tile &&
                      k.product[type].pack == want.product[type].pack,
                  "the kernel of type %d is another one", type);
}

/* Values for which an instruction that flushes subnormals would show. */
TEST(products_of_bf16_at_the_cut) {
    uint64_t seed = 6;
    tables_of_products();
    for (int i = 0; i < 200; i++) {
        problem p = problem_new(GGL_BF16, 32 + i % 4 * 32, 40, 9, &seed, AT_CUT);
        for (int t = 1; t < all.n; t++) {
            check_rows(&p, t);
            check_panel(&p, t, NULL);
        }
        problem_free(&p);
    }
}

/* The definition against double precision. Float rows: k / 16 fused steps in each sum, 4 additions
 * in the tree, half an eps each, of the sum of magnitudes (twice the steps for bf16, whose pairs
 * are two). Quantized rows: three roundings for each block, and those of the running sum. */
TEST(product_against_double) {
    tables_init(&all);
    uint64_t seed = 4;
    for (int i = 0; ggl_type_at(i); i++)
        for (int64_t k = ggl_type_at(i)->block < 32 ? 32 : ggl_type_at(i)->block; k <= 2048;
             k *= 2) {
            if (!is_weight(ggl_type_at(i)->type))
                break;
            problem p = problem_new(ggl_type_at(i)->type, k, 5, 1, &seed, ORDINARY);
            float w[2048];
            for (int r = 0; r < 5; r++) {
                double sum = 0, size = 0;
                ggl_type_get(p.type)->to_float((char *)p.w.p + (size_t)r * p.row_size, w, k);
                for (int64_t e = 0; e < k; e++) {
                    const void *column = p.column[all.k[0].product[p.type].columns];
                    const cpu_qblock *b = (const cpu_qblock *)column + e / 32;
                    const float *x = column;
                    double v = ggl_type_get(p.type)->quantized ? (double)b->d * b->q[e % 32]
                               : p.type == GGL_BF16
                                   ? (double)x[e / 32 * 32 + (e % 2 ? 0 : 16) + e % 32 / 2]
                                   : (double)x[e];
                    sum += v * (double)w[e];
                    size += fabs(v * (double)w[e]);
                }
                double steps = ggl_type_get(p.type)->quantized
                                   ? (double)k / 32 + 3
                                   : (double)k / 16 * (p.type == GGL_BF16 ? 2 : 1) + 5;
                CHECK_MSG(fabs(sum - (double)p.want[r]) <= steps * 0x1p-24 * size,
                          "%s, k = %lld: %.9g, expected %.9g", ggl_type_get(p.type)->name,
                          (long long)k, (double)p.want[r], sum);
            }
            problem_free(&p);
        }
}

/* Codes are prefetched, and read in two places, on processors that were seen to need it: all but AMD's, Zen 3 near, and Zen 5 where few bytes of codes
 * lie between scales. */
TEST(reading_by_processor) {
    static const cpu_reading none = {0, false}, near = {2048, false}, far = {8192, false},
                             nearer = {1024, true}, apart = {2048, true};
    const struct {
        int family, model;
        cpu_reading bytes, fewer;
    } want[] = {
        {0, 0, nearer, apart},    /* somebody else's */
        {0x17, 0x31, none, none}, /* Zen 2 */
        {0x19, 0x01, near, near}, /* Zen 3: a server, a desktop, a notebook */
        {0x19, 0x21, near, near}, {0x19, 0x50, near, near},
        {0x19, 0x11, none, none}, /* Zen 4: a server, a desktop, one of many cores */
        {0x19, 0x61, none, none}, {0x19, 0xa0, none, none},
        {0x1a, 0x02, none, far}, /* Zen 5 */
        {0x1b, 0x00, none, far}, /* what comes after it */
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int c = CPU_BYTES; c <= CPU_FEWER_BITS; c++) {
            const cpu_reading r = ggl_cpu_reading_of(want[i].family, want[i].model, (cpu_codes)c),
                              w = c == CPU_BYTES ? want[i].bytes : want[i].fewer;
            CHECK_MSG(r.ahead == w.ahead && r.apart == w.apart, "family %#x, model %#x",
                      (unsigned)want[i].family, (unsigned)want[i].model);
        }
    tables_init(&all);
    CHECK(all.k[0].product[GGL_Q4_K].reading.ahead == ggl_cpu_reading(CPU_FEWER_BITS).ahead);
    CHECK(all.k[0].product[GGL_Q8_0].reading.ahead == ggl_cpu_reading(CPU_BYTES).ahead);
}
