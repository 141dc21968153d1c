/* vulkan.device: how a device is opened or refused, its memory, the validation layer's verdict over
 * all cases, and the file of pipelines. */
#include <dirent.h>
#include <fcntl.h>
#ifdef __linux__
#include <link.h>
#endif
#include <sys/mman.h>
#include <sys/stat.h>

#include "conform/case.h"
#include "device.h"
#include "vulkan_test.h"

/* --- opening -------------------------------------------------------------------------------- */

TEST(no_driver) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
    setenv("VK_DRIVER_FILES", "/nonexistent", 1);
    CHECK_INT(ggl_backend_open(&b, "vulkan", NULL, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, dlopen("libvulkan.so.1", RTLD_LAZY) ? "no Vulkan driver (vkCreateInstance: "
                                                           : "no Vulkan library: ");
    CHECK(!b);
}

TEST(device_numbers) {
    ggl_backend *b = vulkan_open(NULL), *other = NULL;
    ggl_error err = {0};
    if (!b)
        return;
    CHECK_STR(b->name, "vulkan0");
    CHECK(b->description[0] && b->memory > 0 && b->max_buffer > 0 && b->async);
    ggl_backend_close(b);
    CHECK_INT(ggl_backend_open(&other, "vulkan63", NULL, &err), GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "no device 63");
    REQUIRE_OK(ggl_backend_open(&other, "vulkan0", NULL, &err), &err);
    CHECK_STR(other->name, "vulkan0");
    ggl_backend_close(other);
}

#ifdef __linux__
static int count_object(struct dl_phdr_info *info, size_t size, void *n) {
    (void)info, (void)size;
    ++*(int *)n;
    return 0;
}

/* Returns how many shared objects are loaded. */
static int count_objects(void) {
    int n = 0;
    dl_iterate_phdr(count_object, &n);
    return n;
}

/* NVIDIA's driver can be loaded only some 30 times in a process, so the library and its drivers stay. */
TEST(the_drivers_stay_loaded) {
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return;
    const int n = count_objects();
    ggl_backend_close(b);
    CHECK_INT(count_objects(), n);
}
#endif

/* True if the description lists it, after the semicolon. */
static bool lists(const ggl_backend *b, const char *feature) {
    const char *list = strrchr(b->description, ';');
    return list && strstr(list, feature);
}

TEST(mask_takes_features_away) {
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return;
    const bool had = lists(b, "subgroup");
    ggl_backend_close(b);
    if (!had)
        SKIP("the device has no arithmetic of subgroups");
    b = vulkan_open("avx2,subgroup");
    REQUIRE(b);
    CHECK(!lists(b, "subgroup"));
    ggl_backend_close(b);
    setenv("GGL_VULKAN_MASK", "subgroup", 1);
    b = vulkan_open(NULL);
    REQUIRE(b);
    CHECK(!lists(b, "subgroup"));
    ggl_backend_close(b);
}

/* Opens the device with an environment variable that it must refuse. */
static void check_refused(const char *variable, const char *value, const char *words) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    setenv(variable, value, 1);
    CHECK_INT(ggl_backend_open(&b, "vulkan", NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, words);
    ggl_backend_close(b);
    unsetenv(variable);
}

TEST(settings_that_are_misspelled) {
    check_refused("GGL_VULKAN_FORCE", "half,matrx",
                  "GGL_VULKAN_FORCE: 'matrx' cannot be forced; did you mean 'matrix'?");
    check_refused("GGL_VULKAN_FORCE", "storage8",
                  "the known names are: all idot half ahead matrix");
    check_refused("GGL_VULKAN_MASK", "FUSE",
                  "GGL_VULKAN_MASK: 'FUSE' cannot be masked; did you mean 'fuse'? the known names "
                  "are: import ");
    check_refused("GGL_VULKAN_VALIDATE", "yes",
                  "GGL_VULKAN_VALIDATE is 'yes'; 1 turns Vulkan's validation on, 0 off");
}

/* Standard error goes to a file of the test from begin_said() to end_said(), which returns its text; free() it. */
static int said_before;

static void begin_said(char *path, size_t size) {
    snprintf(path, size, "%s/said", test_folder());
    fflush(stderr);
    said_before = dup(STDERR_FILENO);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static char *end_said(const char *path) {
    size_t n = 0;
    fflush(stderr);
    dup2(said_before, STDERR_FILENO);
    close(said_before);
    char *raw = (char *)test_read_file(path, &n), *text = calloc(1, n + 1);
    if (raw && text)
        memcpy(text, raw, n);
    free(raw);
    return text;
}

TEST(features_that_the_device_cannot_have) {
    char path[1024];
    setenv("GGL_VULKAN_FORCE", "matrix", 1);
    begin_said(path, sizeof path);
    ggl_backend *b = vulkan_open(NULL);
    char *said = end_said(path);
    if (b)
        CHECK(lists(b, "matrix") || strstr(said, "cannot have matrix, which is not used"));
    free(said);
    ggl_backend_close(b);
}

TEST(validation_that_is_not_there) {
    ggl_backend *b = vulkan_open(NULL);
    ggl_error err = {0};
    if (!b)
        return;
    ggl_backend_close(b);
    setenv("GGL_VULKAN_VALIDATE", "1", 1);
    setenv("VK_LAYER_PATH", "/nonexistent", 1); /* where layers are looked for */
    setenv("VK_LOADER_LAYERS_DISABLE", "*", 1);
    CHECK_INT(ggl_backend_open(&b, "vulkan", NULL, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "VK_LAYER_KHRONOS_validation is not installed");
}

/* --- memory --------------------------------------------------------------------------------- */

enum { SIZE = (20 << 20) + 5 }; /* more than the staging ring, and no multiple of anything */

static void fill(unsigned char *p, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(test_random(&seed) >> 56);
}

static bool is_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Bytes that go to the device, about it, and back, at any offsets. */
static void check_buffers(ggl_backend *b, int region, int other) {
    ggl_buffer *x = NULL, *y = NULL;
    ggl_error err = {0};
    unsigned char *in = malloc(SIZE), *out = malloc(SIZE);
    fill(in, SIZE, 3);
    CHECK_OK(b->v->alloc(b, region, SIZE, NULL, &x, &err), &err);
    CHECK_OK(b->v->alloc(b, other, SIZE, NULL, &y, &err), &err);
    if (x && y) {
        CHECK_OK(b->v->download(b, x, 0, out, SIZE, &err), &err);
        CHECK(is_zero(out, SIZE)); /* as it is new */
        CHECK_OK(b->v->upload(b, x, 0, in, SIZE, &err), &err);
        CHECK_OK(b->v->copy(b, y, x, &(ggl_copy_range){7, 3, SIZE - 10}, 1, &err), &err);
        CHECK_OK(b->v->download(b, y, 7, out, SIZE - 10, &err), &err);
        CHECK(memcmp(out, in + 3, SIZE - 10) == 0);
        CHECK_OK(b->v->clear(b, x, 5, 9 << 20, &err), &err);
        CHECK_OK(b->v->clear(b, x, 12 << 20, 64, &err), &err);
        CHECK_OK(b->v->upload(b, x, 6, in + 6, 1, &err), &err);
        memset(in + 7, 0, (9 << 20) + 5 - 7);
        memset(in + (12 << 20), 0, 64);
        in[5] = 0;
        CHECK_OK(b->v->download(b, x, 0, out, SIZE, &err), &err);
        CHECK(memcmp(out, in, SIZE) == 0);
        CHECK_OK(b->v->wait(b, &err), &err);
    }
    if (x)
        b->v->free(b, x);
    if (y)
        b->v->free(b, y);
    free(in);
    free(out);
}

static void check_memory(const char *mask) {
    ggl_backend *b = vulkan_open(mask);
    ggl_buffer *nothing = NULL;
    ggl_error err = {0};
    if (!b)
        return;
    check_buffers(b, GGL_REGION_ARENA, GGL_REGION_STORES);
    check_buffers(b, GGL_REGION_IO, GGL_REGION_WEIGHT);
    check_buffers(b, GGL_REGION_WEIGHT, GGL_REGION_IO);
    if (CHECK_OK(b->v->alloc(b, GGL_REGION_STORES, 0, NULL, &nothing, &err), &err)) {
        CHECK_OK(b->v->clear(b, nothing, 0, 0, &err), &err);
        b->v->free(b, nothing);
    }
    ggl_backend_close(b);
}

TEST(buffers) {
    check_memory(NULL);
}
/* Memory that the host does not see: all goes through the staging ring. */
TEST(buffers_by_staging) {
    check_memory("map");
}

TEST(buffers_too_large) {
    ggl_backend *b = vulkan_open(NULL);
    ggl_buffer *x = NULL;
    ggl_error err = {0};
    if (!b)
        return;
    CHECK_INT(b->v->alloc(b, GGL_REGION_ARENA, SIZE_MAX - 5, NULL, &x, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "MiB are allowed");
    ggl_backend_close(b);
}

/* Reads host memory of a region in place, at no page's beginning; refused where the device does not use it. */
static void check_imported(ggl_backend *b, int region, unsigned char *page, bool used) {
    enum { N = 3 * 4096, AT = 100 };
    unsigned char out[N];
    ggl_buffer *x = NULL;
    ggl_error err = {0};
    const ggl_status st = b->v->alloc(b, region, N - AT, page + AT, &x, &err);
    if (used)
        CHECK_OK(st, &err);
    else
        CHECK_INT(st, GGL_UNSUPPORTED);
    if (st == GGL_OK) {
        CHECK_OK(b->v->download(b, x, 1, out, N - AT - 1, &err), &err);
        CHECK(memcmp(out, page + AT + 1, N - AT - 1) == 0);
        b->v->free(b, x);
    }
}

/* Weights are used in place by devices that share the host's memory; values that cross, by all that do not see what the host
 * writes. */
TEST(imported_memory) {
    enum { N = 3 * 4096 };
    static const char *const mask[] = {NULL, "map", "import"};
    for (int i = 0; i < 3; i++) {
        ggl_backend *b = vulkan_open(mask[i]);
        if (!b)
            return;
        unsigned char *page =
            mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(page != MAP_FAILED);
        fill(page, N, 9);
        const bool imports = lists(b, "import"), maps = ((vk_backend *)b)->features.map;
        check_imported(b, GGL_REGION_IO, page, imports && !maps);
        mprotect(page, N, PROT_READ); /* as a file's */
        check_imported(b, GGL_REGION_WEIGHT, page,
                       imports && ggl_vk_shares_memory((vk_backend *)b));
        CHECK(i < 2 || !imports);
        ggl_backend_close(b);
        munmap(page, N);
    }
}

/* --- validation ----------------------------------------------------------------------------- */

static void check_cases(ggl_backend *b, const conform_kind *k) {
    for (int i = 0; i < k->n_cases; i++) {
        const conform_case *info = &k->cases[i];
        conform_result r;
        const int n = conform_n_variants(info), step = n > 20 ? 3 : 1;
        for (int v = n > vulkan_each() ? vulkan_first(step) : 0; v < n; v += step * vulkan_each()) {
            const long before = ggl_vulkan_messages();
            conform_outcome o = conform_check(info, v, b, &r);
            CHECK_MSG(o != CONFORM_FAILED && ggl_vulkan_messages() == before, "%s, %s: %s",
                      info->name, r.form_text, o == CONFORM_FAILED ? r.text : "see above");
        }
    }
}

/* A cache is one binding, and theirs are large. */
static bool has_caches(const conform_kind *k) {
    return k == &conform_attention || k == &conform_spans || k == &conform_kept;
}

/* All cases, with caches or without, and transfers, without a word of the layer; it looks for
 * missing barriers, too. */
static void check_validated(const char *mask, bool caches) {
    ggl_backend *b = vulkan_open(mask);
    ggl_error err = {0};
    if (!b)
        return;
    ggl_backend_close(b);
    setenv("GGL_VULKAN_VALIDATE", "1", 1);
    if (ggl_backend_open(&b, "vulkan",
                         &(ggl_backend_params){.size = sizeof(ggl_backend_params), .mask = mask},
                         &err) == GGL_UNSUPPORTED)
        SKIP("%s", err.msg);
    REQUIRE(b);
    for (int k = 0; conform_kind_at(k); k++)
        if (caches || !has_caches(conform_kind_at(k)))
            check_cases(b, conform_kind_at(k));
    check_buffers(b, GGL_REGION_IO, GGL_REGION_WEIGHT);
    ggl_backend_close(b);
    CHECK_INT(ggl_vulkan_messages(), 0);
}

TEST(validated) {
    check_validated(NULL, true);
}
TEST(validated_without_features) {
    check_validated("subgroup,idot,storage16,storage8,import,map,budget", true);
}
TEST(validated_with_small_bindings) {
    check_validated("range", false);
}

/* --- the device's clock --------------------------------------------------------------------- */

static void keep_longest(void *ctx, const ggl_tensor *node, int64_t n, bool prepares,
                         uint64_t begin, uint64_t end) {
    double *most = ctx;
    const double ns = (double)(end - begin);
    (void)node;
    (void)n;
    (void)prepares;
    *most = ns > *most ? ns : *most;
}

/* A clock of few bits: what it says is never longer than it goes. */
TEST(a_clock_that_begins_anew) {
    enum { BITS = 8 };
    ggl_backend *b = vulkan_open(NULL);
    ggl_error err = {0};
    conform_result r;
    double most = -1;
    const ggl_backend_params params = {
        .size = sizeof params, .profile = keep_longest, .profile_ctx = &most};
    if (!b)
        return;
    ggl_backend_close(b);
    REQUIRE_OK(ggl_backend_open(&b, "vulkan", &params, &err), &err);
    vk_device *d = ((vk_backend *)b)->device;
    if (d->clock_bits > 0) {
        d->clock_bits = BITS;
        CHECK_INT(conform_check(&conform_composites.cases[0], 0, b, &r), CONFORM_RIGHT);
        const double period = (double)d->properties.limits.timestampPeriod;
        CHECK_MSG(most >= 0 && most < (1 << BITS) * period, "%g ns", most);
    }
    ggl_backend_close(b);
}

/* --- pipelines on a disk -------------------------------------------------------------------- */

/* Opens a backend, runs something and closes it. */
static bool use_pipelines(void) {
    conform_result r;
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return false;
    CHECK_INT(conform_check(&conform_composites.cases[0], 0, b, &r), CONFORM_RIGHT);
    ggl_backend_close(b);
    return true;
}

/* The one file of the folder; false: there are others, or none. */
static bool only_file(char *path, size_t size) {
    int n = 0;
    DIR *dir = opendir(test_folder());
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", test_folder(), e->d_name);
            n++;
        }
    if (dir)
        closedir(dir);
    return n == 1;
}

TEST(pipelines_are_kept) {
    char path[1024], again[1024];
    struct stat before, after;
    setenv("GGL_VULKAN_CACHE", test_folder(), 1);
    if (!use_pipelines())
        return;
    REQUIRE(only_file(path, sizeof path));
    CHECK_HAS(path, "/vulkan-");
    REQUIRE(stat(path, &before) == 0 && use_pipelines());
    REQUIRE(only_file(again, sizeof again) && stat(again, &after) == 0);
    CHECK_STR(again, path);
    CHECK(before.st_ino == after.st_ino); /* nothing was new, so it was not written */
}

/* A file that is harmed is not used, but written anew, and then used: what a driver makes of the same pipelines may have other
 * bytes each time. */
TEST(pipelines_that_are_harmed) {
    char path[1024];
    size_t n = 0, m = 0;
    setenv("GGL_VULKAN_CACHE", test_folder(), 1);
    if (!use_pipelines())
        return;
    REQUIRE(only_file(path, sizeof path));
    unsigned char *whole = test_read_file(path, &n);
    REQUIRE(whole && n > 24);
    for (int harm = 0; harm < 4; harm++) {
        struct stat harmed, mended, again;
        unsigned char *bad = malloc(n);
        memcpy(bad, whole, n);
        if (harm == 0)
            bad[n - 1] ^= 1;
        else if (harm == 1)
            bad[0] ^= 1; /* of another program */
        else if (harm == 2)
            memset(bad + 8, 0xff, 8); /* a size that no machine has */
        REQUIRE(test_write_file(path, bad, harm == 3 ? n / 2 : n));
        free(bad);
        REQUIRE(stat(path, &harmed) == 0);
        REQUIRE(use_pipelines() && stat(path, &mended) == 0); /* it runs, and */
        CHECK_MSG(mended.st_ino != harmed.st_ino, "harm %d is still there", harm);
        unsigned char *now = test_read_file(path, &m);
        uint64_t size = 0;
        if (CHECK(now && m > 24))
            memcpy(&size, now + 8, sizeof size);
        CHECK(memcmp(now, whole, 8) == 0 && size == m - 24);
        free(now);
        REQUIRE(use_pipelines() && stat(path, &again) == 0);
        CHECK_MSG(again.st_ino == mended.st_ino, "the file after harm %d is not used", harm);
    }
    free(whole);
}

TEST(pipelines_that_cannot_be_kept) {
    char path[1024];
    setenv("GGL_VULKAN_CACHE", "/proc/nowhere", 1);
    begin_said(path, sizeof path);
    const bool used = use_pipelines() && use_pipelines();
    char *said = end_said(path), *note = strstr(said, "vulkan: GGL_VULKAN_CACHE: /proc/nowhere: ");
    if (used)
        CHECK_MSG(note && strstr(note, "are not kept") &&
                      !strstr(note + 1, "vulkan: GGL_VULKAN_CACHE"),
                  "%s", said);
    free(said);
}
