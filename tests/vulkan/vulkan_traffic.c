/* What a token costs besides its dispatches: waits for the device, submissions, and bytes that go to the
 * device and back. The functions of Vulkan that do it are counted. */
#include "device.h"
#include "llm/internal/session.h"
#include "vulkan_test.h"

enum { MOST_BUFFERS = 64 };

/* The backend's functions, and what they have done since `clear`. */
static vk_functions real;
static struct {
    int waits, submissions;
    size_t to_device, to_host, on_device; /* bytes */
    size_t pinned_in, pinned_out;         /* of these, those in imported memory of the host */
    size_t from_peer;                     /* and those from another device's memory */
} count;

/* Buffers in memory of the device, as far as the host does not see it. */
static struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
} bound[MOST_BUFFERS];
static int n_bound;
/* Memory that was imported, and the buffers in it. */
typedef struct imports {
    VkDeviceMemory memory[MOST_BUFFERS];
    VkBuffer buffer[MOST_BUFFERS];
    int n_memory, n_buffer;
} imports;
static imports of_host, of_peer;

static VkResult allocate(VkDevice d, const VkMemoryAllocateInfo *info,
                         const VkAllocationCallbacks *a, VkDeviceMemory *out) {
    const VkResult r = real.AllocateMemory(d, info, a, out);
    for (const VkBaseOutStructure *more = info->pNext; more && r == VK_SUCCESS;
         more = more->pNext) {
        imports *of = more->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT
                          ? &of_host
                      : more->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR ? &of_peer
                                                                                   : NULL;
        if (of && of->n_memory < MOST_BUFFERS)
            of->memory[of->n_memory++] = *out;
    }
    return r;
}

/* Notes the buffer if its memory was imported. */
static bool note(imports *of, VkBuffer buffer, VkDeviceMemory memory) {
    for (int i = 0; i < of->n_memory; i++)
        if (of->memory[i] == memory && of->n_buffer < MOST_BUFFERS) {
            of->buffer[of->n_buffer++] = buffer;
            return true;
        }
    return false;
}

static VkResult bind_memory(VkDevice d, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize at) {
    (void)note(&of_peer, buffer, memory);
    if (!note(&of_host, buffer, memory) && n_bound < MOST_BUFFERS) {
        bound[n_bound].buffer = buffer;
        bound[n_bound++].memory = memory;
    }
    return real.BindBufferMemory(d, buffer, memory, at);
}

static VkResult map_memory(VkDevice d, VkDeviceMemory memory, VkDeviceSize at, VkDeviceSize size,
                           VkMemoryMapFlags flags, void **out) {
    for (int i = 0; i < n_bound; i++)
        if (bound[i].memory == memory)
            bound[i] = bound[--n_bound];
    return real.MapMemory(d, memory, at, size, flags, out);
}

static bool is_on_device(VkBuffer buffer) {
    for (int i = 0; i < n_bound; i++)
        if (bound[i].buffer == buffer)
            return true;
    return false;
}

static bool is_in(const imports *of, VkBuffer buffer) {
    for (int i = 0; i < of->n_buffer; i++)
        if (of->buffer[i] == buffer)
            return true;
    return false;
}

static VkResult wait_for_fences(VkDevice d, uint32_t n, const VkFence *fence, VkBool32 all,
                                uint64_t timeout) {
    count.waits++;
    return real.WaitForFences(d, n, fence, all, timeout);
}

static VkResult submit(VkQueue queue, uint32_t n, const VkSubmitInfo *info, VkFence fence) {
    count.submissions++;
    return real.QueueSubmit(queue, n, info, fence);
}

static void copy_buffer(VkCommandBuffer commands, VkBuffer src, VkBuffer dst, uint32_t n,
                        const VkBufferCopy *range) {
    for (uint32_t i = 0; i < n; i++) {
        count.pinned_in += is_in(&of_host, src) ? (size_t)range[i].size : 0;
        count.pinned_out += is_in(&of_host, dst) ? (size_t)range[i].size : 0;
        count.from_peer += is_in(&of_peer, src) ? (size_t)range[i].size : 0;
        *(!is_on_device(src)  ? &count.to_device
          : is_on_device(dst) ? &count.on_device
                              : &count.to_host) += (size_t)range[i].size;
    }
    real.CmdCopyBuffer(commands, src, dst, n, range);
}

static ggl_backend *open_counted(const char *mask) {
    ggl_backend *b = vulkan_open(mask);
    if (!b)
        return NULL;
    vk_functions *f = &((vk_backend *)b)->f;
    real = *f;
    f->AllocateMemory = allocate;
    f->BindBufferMemory = bind_memory;
    f->MapMemory = map_memory;
    f->WaitForFences = wait_for_fences;
    f->QueueSubmit = submit;
    f->CmdCopyBuffer = copy_buffer;
    n_bound = 0;
    of_host = of_peer = (imports){0};
    return b;
}

enum { N_TOKENS = 70 }; /* more than a page of the cache has */

typedef struct fixture {
    ggl_backend *reference;
    llm_model *model;
    llm_session *s;
    size_t logits; /* bytes */
} fixture;

static int half_of_layers(void *ctx, int layer, int n_layer, const char *weight) {
    (void)ctx;
    (void)weight;
    return layer >= n_layer / 2;
}

/* The built-in model on the backends; with two, half of the layers are on each. */
static bool setup(fixture *f, ggl_backend **b, int n) {
    ggl_error err = {0};
    *f = (fixture){0};
    llm_session_params p = llm_session_default();
    if (!CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &err), &err) ||
        !CHECK_OK(llm_model_open(&f->model, MODELS "/models/builtin/stories.gguf", NULL, &err),
                  &err))
        return false;
    p.n_ctx = N_TOKENS + 1;
    p.backend = b;
    p.n_backends = n;
    p.fold = f->reference;
    p.strict = true;
    p.place = n > 1 ? half_of_layers : NULL;
    if (!CHECK_OK(llm_session_new(&f->s, f->model, &p, &err), &err) ||
        !CHECK_OK(llm_session_alloc(f->s, &err), &err))
        return false;
    f->logits = (size_t)llm_session_n_vocab(f->s) * sizeof(float);
    return true;
}

static void teardown(fixture *f) {
    llm_session_free(f->s);
    llm_model_free(f->model);
    ggl_backend_close(f->reference);
}

/* Computes token i, and counts what that takes. */
static bool next_token(fixture *f, int i) {
    ggl_error err = {0};
    const int32_t token = i % 100;
    memset(&count, 0, sizeof count);
    return CHECK_OK(llm_session_eval(f->s, &(llm_batch){.n = 1, .token = &token}, &err), &err);
}

/* True if the host does not see the device's memory: what it writes and reads is copied by the device. */
static bool has_own_memory(const ggl_backend *b) {
    return !((const vk_backend *)b)->features.map;
}

/* True if the device copies from and to the host's memory without staging. */
static bool pins(const ggl_backend *b) {
    return has_own_memory(b) && ((const vk_backend *)b)->features.import;
}

static void print_counts(void) {
    printf("each token: %d waits, %d submissions, %zu bytes to the device, %zu to the host, %zu on "
           "it; of these %zu and %zu without staging, "
           "%zu from another device\n",
           count.waits, count.submissions, count.to_device, count.to_host, count.on_device,
           count.pinned_in, count.pinned_out, count.from_peer);
}

/* A model wholly on one device, which writes a text. */
static void check_tokens(const char *mask) {
    fixture f;
    ggl_backend *b = open_counted(mask);
    if (!b)
        return;
    const bool own = has_own_memory(b);
    bool ok = setup(&f, &b, 1);
    for (int i = 0; ok && i < N_TOKENS && (ok = next_token(&f, i)); i++) {
        if (i == 0)
            continue; /* constants, weights and the table of pages go to the device */
        /* for the logits; if these come by staging, for the run and then for the copy */
        CHECK_INT(count.waits, own && !pins(b) ? 2 : 1);
        CHECK_INT(count.submissions, own ? 3 : 2);
        if (!own) {
            CHECK_INT(count.to_host, 0); /* the host reads and writes them itself */
            continue;
        }
        const bool begins = i % GGL_PAGE == 0; /* a page, of which the table tells */
        CHECK_INT(count.to_device, (begins ? 4 : 3) * sizeof(int32_t)); /* token, position, slot */
        CHECK_INT(count.to_host, f.logits);
        CHECK_INT(count.pinned_out, pins(b) ? f.logits : 0);
    }
    print_counts();
    teardown(&f);
    ggl_backend_close(b);
}

TEST(a_token_waits_once) {
    check_tokens(NULL);
}

TEST(a_token_waits_once_with_own_memory) {
    check_tokens("map");
}

/* Values cross between the CPU's memory and that of the device by one copy of the device, either way. */
TEST(a_crossing_is_one_copy) {
    for (int cpu_first = 0; cpu_first < 2; cpu_first++) {
        fixture f;
        ggl_error err = {0};
        ggl_backend *cpu = NULL, *b = open_counted("map");
        if (!b)
            return;
        if (!pins(b)) {
            ggl_backend_close(b);
            SKIP("the device imports no memory of the host");
        }
        REQUIRE_OK(ggl_backend_open(&cpu, "cpu", NULL, &err), &err);
        ggl_backend *list[] = {cpu_first ? cpu : b, cpu_first ? b : cpu};
        bool ok = setup(&f, list, 2);
        for (int i = 0; ok && i < N_TOKENS && (ok = next_token(&f, i)); i++) {
            if (i == 0 || i % GGL_PAGE == 0)
                continue;
            /* the residual, of 128 numbers, crosses */
            CHECK_INT(cpu_first ? count.pinned_in : count.pinned_out, 128 * sizeof(float));
            CHECK_INT(cpu_first ? count.pinned_out : count.pinned_in, cpu_first ? f.logits : 0);
            /* by staging come the token, unless the CPU reads it, position and slot */
            CHECK_INT(count.to_device - count.pinned_in, (cpu_first ? 2 : 3) * sizeof(int32_t));
            CHECK_INT(count.to_host, count.pinned_out);
            CHECK_INT(count.waits, 1);
        }
        print_counts();
        teardown(&f);
        ggl_backend_close(b);
        ggl_backend_close(cpu);
    }
}

static void copy_logits(void *ctx, int64_t i, const float *row) {
    (void)i;
    memcpy(ctx, row, 2048 * sizeof *row);
}

/* Half of the layers on each of two devices, which are one here: the second one copies the residual from
 * the memory of the first, or from that of the host, and the logits are the same. */
static void check_peers(const char *mask, bool reaches, float *logits) {
    fixture f;
    ggl_error err = {0};
    ggl_backend *first = open_counted(mask), *second = first ? open_counted(mask) : NULL;
    if (!second)
        return;
    bool ok = setup(&f, (ggl_backend *[]){first, second}, 2);
    for (int i = 0; ok && i < 3 && (ok = next_token(&f, i)); i++)
        if (i > 0) {
            CHECK_INT(count.from_peer, reaches ? 128 * sizeof(float) : 0);
            CHECK_INT(count.pinned_in, pins(first) && !reaches ? 128 * sizeof(float) : 0);
            CHECK_INT(count.pinned_out,
                      !pins(first) ? 0 : f.logits + (reaches ? 0 : 128 * sizeof(float)));
        }
    print_counts();
    const int32_t token = 7;
    const bool want = true;
    CHECK_INT(f.logits, 2048 * sizeof(float));
    CHECK_OK(llm_session_eval(
                 f.s,
                 &(llm_batch){
                     .n = 1, .token = &token, .want = &want, .each = copy_logits, .ctx = logits},
                 &err),
             &err);
    teardown(&f);
    ggl_backend_close(first);
    ggl_backend_close(second);
}

TEST(a_device_copies_from_its_peer) {
    static const struct {
        const char *mask;
        bool reaches;
    } way[] = {{NULL, true}, {"map", true}, {"map,peer", false}, {"peer", false}};
    static float logits[4][2048];
    for (int i = 0; i < 4; i++) {
        check_peers(way[i].mask, way[i].reaches, logits[i]);
        CHECK(memcmp(logits[i], logits[0], sizeof logits[0]) == 0);
    }
}

/* Two buffers, each with work of its own under way: reading the one waits for its work alone. A buffer is memory of the device
 * that the host sees, or of the host that the device copies to (pinned). */
enum { SIZE = 1 << 16 };

typedef struct two_buffers {
    ggl_backend *b;
    ggl_buffer *from, *to[2];
    uint64_t mark[2]; /* when each copy from `from` is done */
    char *pinned[2];  /* NULL: the device's memory */
    char text[SIZE];
} two_buffers;

static bool begin_copies(two_buffers *t, const char *mask, bool pinned) {
    const ggl_copy_range all = {0, 0, SIZE};
    ggl_error err = {0};
    memset(t, 0, sizeof *t);
    memset(t->text, 'x', SIZE);
    ggl_backend *b = t->b = open_counted(mask);
    if (!b)
        return false;
    bool ok = CHECK_OK(b->v->alloc(b, GGL_REGION_STORES, SIZE, NULL, &t->from, &err), &err) &&
              CHECK_OK(b->v->upload(b, t->from, 0, t->text, SIZE, &err), &err);
    for (int i = 0; i < 2 && ok; i++) {
        t->pinned[i] = pinned ? aligned_alloc(SIZE, SIZE) : NULL;
        ok = CHECK_OK(b->v->alloc(b, GGL_REGION_IO, SIZE, t->pinned[i], &t->to[i], &err), &err);
    }
    for (int i = 0; i < 2 && ok; i++)
        ok = CHECK_OK(b->v->copy(b, t->to[i], t->from, &all, 1, &err), &err) &&
             CHECK_OK(b->v->mark(b, &t->mark[i], &err), &err);
    return ok && CHECK(t->mark[0] > 0) && CHECK_INT(t->mark[1], t->mark[0] + 1);
}

static void end_copies(two_buffers *t) {
    if (!t->b)
        return;
    for (int i = 0; i < 2; i++) {
        t->b->v->free(t->b, t->to[i]);
        free(t->pinned[i]);
    }
    t->b->v->free(t->b, t->from);
    ggl_backend_close(t->b);
}

TEST(a_download_waits_for_its_own_buffer) {
    static two_buffers t;
    static char got[SIZE];
    ggl_error err = {0};
    bool ok = begin_copies(&t, NULL, false);
    ggl_backend *b = t.b;
    if (ok && has_own_memory(b)) {
        end_copies(&t);
        SKIP("the host does not see the device's memory");
    }
    if (ok) {
        const vk_device *d = ((vk_backend *)b)->device;
        CHECK_OK(b->v->download(b, t.to[0], 0, got, SIZE, &err), &err);
        CHECK_INT(d->done, t.mark[0]);
        CHECK(memcmp(got, t.text, SIZE) == 0);
        memset(&count, 0, sizeof count);
        t.text[0] = 'y'; /* nothing uses this one any more: written at once */
        CHECK_OK(b->v->upload(b, t.to[0], 0, t.text, 1, &err), &err);
        CHECK_INT(count.to_device + count.on_device, 0);
        CHECK_OK(b->v->wait_for(b, t.mark[1], &err), &err);
        CHECK_INT(d->done, t.mark[1]);
        CHECK_OK(b->v->download(b, t.to[0], 0, got, SIZE, &err), &err);
        CHECK(memcmp(got, t.text, SIZE) == 0);
        CHECK_INT(count.submissions, 0);
    }
    end_copies(&t);
}

/* So the scheduler reads results of a device with memory of its own. */
TEST(results_in_pinned_memory_wait_for_their_own_copy) {
    static two_buffers t;
    ggl_error err = {0};
    ggl_backend *b = open_counted("map");
    const bool pinned = b && pins(b);
    ggl_backend_close(b);
    if (b && !pinned)
        SKIP("the device imports no memory of the host");
    if (b && begin_copies(&t, "map", true)) {
        const vk_device *d = ((vk_backend *)t.b)->device;
        memset(&count, 0, sizeof count);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(t.b->v->wait_for(t.b, t.mark[i], &err), &err);
            CHECK_INT(d->done, t.mark[i]);
            CHECK(memcmp(t.pinned[i], t.text, SIZE) == 0);
        }
        CHECK_INT(count.submissions, 0);
    }
    end_copies(&t);
}

/* What the host does not see comes by a copy through staging, after all work that was submitted before; and so does what it
 * writes, which waits for nothing. */
TEST(a_staged_download_waits_for_all_before_it) {
    static two_buffers t;
    static char got[SIZE];
    ggl_error err = {0};
    if (begin_copies(&t, "map", false)) {
        ggl_backend *b = t.b;
        const vk_device *d = ((vk_backend *)b)->device;
        memset(&count, 0, sizeof count);
        CHECK_OK(b->v->download(b, t.to[0], 0, got, SIZE, &err), &err);
        CHECK_INT(d->done, t.mark[1] + 1);
        CHECK_INT(count.submissions, 1);
        CHECK_INT(count.to_host, SIZE);
        CHECK(memcmp(got, t.text, SIZE) == 0);
        t.text[0] = 'y';
        memset(&count, 0, sizeof count);
        CHECK_OK(b->v->upload(b, t.to[0], 0, t.text, 1, &err), &err);
        CHECK_INT(count.to_device, 1);
        CHECK_INT(count.waits + count.submissions, 0);
        CHECK_OK(b->v->download(b, t.to[0], 0, got, SIZE, &err), &err);
        CHECK(memcmp(got, t.text, SIZE) == 0);
    }
    end_copies(&t);
}
