/* What a token costs besides its dispatches: waits for the device, submissions, and bytes that go to the
 * device and back. The functions of Vulkan that do it are counted. */
#include "device.h"
#include "llm/session.h"
#include "vulkan_test.h"

enum { MOST_BUFFERS = 64 };

/* The backend's functions, and what they have done since `clear`. */
static vk_functions real;
static struct {
    int waits, submissions;
    size_t to_device, to_host, on_device; /* bytes */
} count;

/* Buffers in memory of the device, as far as the host does not see it. */
static struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
} bound[MOST_BUFFERS];
static int n_bound;

static VkResult bind_memory(VkDevice d, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize at) {
    if (n_bound < MOST_BUFFERS) {
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
    for (uint32_t i = 0; i < n; i++)
        *(!is_on_device(src)  ? &count.to_device
          : is_on_device(dst) ? &count.on_device
                              : &count.to_host) += (size_t)range[i].size;
    real.CmdCopyBuffer(commands, src, dst, n, range);
}

static ggl_backend *open_counted(const char *mask) {
    ggl_backend *b = vulkan_open(mask);
    if (!b)
        return NULL;
    vk_functions *f = &((vk_backend *)b)->f;
    real = *f;
    f->BindBufferMemory = bind_memory;
    f->MapMemory = map_memory;
    f->WaitForFences = wait_for_fences;
    f->QueueSubmit = submit;
    f->CmdCopyBuffer = copy_buffer;
    n_bound = 0;
    return b;
}

/* A model wholly on one device, which writes a text. */
static void check_tokens(const char *mask, bool has_own_memory) {
    enum { N_TOKENS = 70 }; /* more than a page of the cache has */
    ggl_error err = {0};
    ggl_backend *reference = NULL, *b = open_counted(mask);
    llm_model *model = NULL;
    llm_session *s = NULL;
    if (!b)
        return;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&model, MODELS "/models/builtin/stories.gguf", NULL, &err), &err);
    llm_session_params p = llm_session_default();
    p.n_ctx = N_TOKENS + 1;
    p.backend = &b;
    p.n_backends = 1;
    p.fold = reference;
    p.strict = true;
    REQUIRE_OK(llm_session_new(&s, model, &p, &err), &err);
    REQUIRE_OK(llm_session_alloc(s, &err), &err);
    const size_t logits = (size_t)llm_session_n_vocab(s) * sizeof(float);
    for (int i = 0; i < N_TOKENS; i++) {
        const int32_t token = i % 100;
        memset(&count, 0, sizeof count);
        REQUIRE_OK(llm_session_eval(s, &(llm_batch){.n = 1, .token = &token}, &err), &err);
        if (i == 0)
            continue;              /* constants, weights and the table of pages go to the device */
        CHECK_INT(count.waits, 1); /* for the logits */
        CHECK_INT(count.submissions, has_own_memory ? 3 : 2);
        if (!has_own_memory)
            continue;
        const bool begins = i % GGL_PAGE == 0; /* a page, of which the table tells */
        CHECK_INT(count.to_device, (begins ? 4 : 3) * sizeof(int32_t)); /* token, position, slot */
        CHECK_INT(count.to_host, logits);
    }
    printf("each token: %d waits, %d submissions, %zu bytes to the device, %zu to the host, %zu on "
           "it\n",
           count.waits, count.submissions, count.to_device, count.to_host, count.on_device);
    llm_session_free(s);
    llm_model_free(model);
    ggl_backend_close(b);
    ggl_backend_close(reference);
}

TEST(a_token_waits_once) {
    check_tokens(NULL, false);
}

TEST(a_token_waits_once_with_own_memory) {
    check_tokens("map", true);
}

/* Two buffers, each with work of its own under way: reading the one waits for its work alone. */
TEST(a_download_waits_for_its_own_buffer) {
    enum { SIZE = 1 << 16 };
    static char text[SIZE], got[SIZE];
    const ggl_copy_range all = {0, 0, SIZE};
    ggl_error err = {0};
    ggl_buffer *from = NULL, *to[2] = {NULL};
    uint64_t mark[2] = {0};
    ggl_backend *b = open_counted(NULL);
    if (!b)
        return;
    const vk_device *d = ((vk_backend *)b)->device;
    memset(text, 'x', sizeof text);
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_STORES, SIZE, NULL, &from, &err), &err);
    REQUIRE_OK(b->v->upload(b, from, 0, text, SIZE, &err), &err);
    for (int i = 0; i < 2; i++)
        REQUIRE_OK(b->v->alloc(b, GGL_REGION_IO, SIZE, NULL, &to[i], &err), &err);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(b->v->copy(b, to[i], from, &all, 1, &err), &err);
        REQUIRE_OK(b->v->mark(b, &mark[i], &err), &err);
    }
    CHECK(mark[0] > 0);
    CHECK_INT(mark[1], mark[0] + 1);
    REQUIRE_OK(b->v->download(b, to[0], 0, got, SIZE, &err), &err);
    CHECK_INT(d->done, mark[0]);
    CHECK(memcmp(got, text, SIZE) == 0);
    memset(&count, 0, sizeof count);
    text[0] = 'y'; /* nothing uses this one any more: written at once */
    REQUIRE_OK(b->v->upload(b, to[0], 0, text, 1, &err), &err);
    CHECK_INT(count.to_device + count.on_device, 0);
    REQUIRE_OK(b->v->wait_for(b, mark[1], &err), &err);
    CHECK_INT(d->done, mark[1]);
    REQUIRE_OK(b->v->download(b, to[0], 0, got, SIZE, &err), &err);
    CHECK(memcmp(got, text, SIZE) == 0);
    CHECK_INT(count.submissions, 0);
    for (int i = 0; i < 2; i++)
        b->v->free(b, to[i]);
    b->v->free(b, from);
    ggl_backend_close(b);
}
