/* What the driver's compiler made of a shader: its own numbers (VK_KHR_pipeline_executable_properties)
 * and some that are read off the text of the machine code, of AMD's processors. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "odd_impl.h"

/* Structures of the extension; names and layouts as Vulkan's specification defines them. */
typedef struct VkPipelineExecutableInfoKHR {
    VkStructureType sType;
    const void *pNext;
    VkPipeline pipeline;
    uint32_t executableIndex;
} VkPipelineExecutableInfoKHR;

typedef struct VkPipelineExecutableStatisticKHR {
    VkStructureType sType;
    void *pNext;
    char name[256], description[256];
    int format; /* 2: an unsigned number of 64 bits */
    uint64_t value;
} VkPipelineExecutableStatisticKHR;

typedef struct VkPipelineExecutableInternalRepresentationKHR {
    VkStructureType sType;
    void *pNext;
    char name[256], description[256];
    VkBool32 isText;
    size_t dataSize;
    void *pData;
} VkPipelineExecutableInternalRepresentationKHR;

enum { EXECUTABLE_INFO = 1000269003, STATISTIC = 1000269004, REPRESENTATION = 1000269005 };

typedef VkResult statistics_fn(VkDevice, const VkPipelineExecutableInfoKHR *, uint32_t *,
                               VkPipelineExecutableStatisticKHR *);
typedef VkResult texts_fn(VkDevice, const VkPipelineExecutableInfoKHR *, uint32_t *,
                          VkPipelineExecutableInternalRepresentationKHR *);

/* --- the compiler's own numbers --------------------------------------------------------------- */

static void read_statistic(odd_pipeline *p, const char *name, uint64_t value) {
    const struct {
        const char *name;
        uint64_t *to;
    } known[] = {{"VGPRs", &p->vector_registers}, {"SGPRs", &p->scalar_registers},
                 {"Spilled VGPRs", &p->spilled},  {"Spilled SGPRs", &p->scalar_spilled},
                 {"Scratch size", &p->scratch},   {"Instructions", &p->instructions}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            *known[i].to += value;
}

static void read_statistics(VkDevice d, const VkPipelineExecutableInfoKHR *of, odd_pipeline *p) {
    VkPipelineExecutableStatisticKHR s[64];
    uint32_t n = sizeof s / sizeof *s;
    PFN_vkVoidFunction found =
        odd_real.GetDeviceProcAddr(d, "vkGetPipelineExecutableStatisticsKHR");
    statistics_fn *get = (statistics_fn *)found;
    memset(s, 0, sizeof s);
    for (uint32_t i = 0; i < n; i++)
        s[i].sType = (VkStructureType)STATISTIC;
    if (get && get(d, of, &n, s) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            read_statistic(p, s[i].name, s[i].value);
}

/* --- the machine code ------------------------------------------------------------------------- */

typedef struct line {
    const char *text; /* its first word */
    size_t n;         /* length of the line from there */
} line;

static bool begins(const line *l, const char *with) {
    return l->n >= strlen(with) && !strncmp(l->text, with, strlen(with));
}

/* Returns the number after `what` in the line, or -1. */
static long number_after(const line *l, const char *what) {
    for (size_t i = 0; i + strlen(what) < l->n; i++)
        if (!strncmp(l->text + i, what, strlen(what)))
            return atol(l->text + i + strlen(what));
    return -1;
}

/* Loads return in order. A wait for vmcnt(k) ends when at most k are under way; one without vmcnt
 * waits for other things. */
static uint64_t most_loads(const line *l, size_t n) {
    long under_way = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (begins(&l[i], "buffer_load") || begins(&l[i], "global_load"))
            under_way++;
        const long left = begins(&l[i], "s_waitcnt") ? number_after(&l[i], "vmcnt(") : -1;
        under_way = left >= 0 && left < under_way ? left : under_way;
        most = under_way > most ? under_way : most;
    }
    return (uint64_t)most;
}

/* Returns the products with an addition of an instruction. */
static uint64_t products(const line *l) {
    static const struct {
        const char *name;
        uint64_t n;
    } of[] = {{"v_dot4", 4}, {"v_dot8", 8},  {"v_dot2", 2}, {"v_pk_fma", 2},
              {"v_fma", 1},  {"v_mad_f", 1}, {"v_mac_f", 1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (begins(l, of[i].name))
            return of[i].n;
    return 0;
}

/* Returns the index of the line with label BB<k>, or n. */
static size_t find_label(const line *l, size_t n, long k) {
    for (size_t i = 0; i < n; i++)
        if (begins(&l[i], "BB") && atol(l[i].text + 2) == k)
            return i;
    return n;
}

/* Of all loops (a jump back to a label) with at least half of the products, finds the shortest. */
static void find_loop(const line *l, size_t n, odd_pipeline *p) {
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += products(&l[i]);
    for (size_t i = 0; i < n; i++) {
        const bool jumps = begins(&l[i], "s_cbranch") || begins(&l[i], "s_branch");
        const long k = jumps ? number_after(&l[i], " BB") : -1;
        uint64_t instructions = 0, sum = 0;
        for (size_t j = k >= 0 ? find_label(l, i, k) : i; j < i; j++) {
            instructions += !begins(&l[j], "BB");
            sum += products(&l[j]);
        }
        if (sum > 0 && 2 * sum >= all &&
            (p->loop_products == 0 || instructions < p->loop_instructions)) {
            p->loop_products = sum;
            p->loop_instructions = instructions + 1;
        }
    }
}

static void read_code(const char *text, size_t size, odd_pipeline *p) {
    size_t n = 0, cap = 1;
    for (size_t i = 0; i < size; i++)
        cap += text[i] == '\n';
    line *l = calloc(cap, sizeof *l);
    for (size_t i = 0; l && i < size && text[i];) {
        const char *end = memchr(text + i, '\n', size - i);
        const size_t next = end ? (size_t)(end - text) : size;
        while (i < next && isspace((unsigned char)text[i]))
            i++;
        if (i < next && text[i] != ';')
            l[n++] = (line){text + i, next - i};
        i = next + 1;
    }
    if (l) {
        p->loads_in_flight = most_loads(l, n);
        find_loop(l, n, p);
    }
    free(l);
}

static void read_texts(VkDevice d, const VkPipelineExecutableInfoKHR *of, odd_pipeline *p) {
    VkPipelineExecutableInternalRepresentationKHR t[16];
    uint32_t n = sizeof t / sizeof *t;
    PFN_vkVoidFunction found =
        odd_real.GetDeviceProcAddr(d, "vkGetPipelineExecutableInternalRepresentationsKHR");
    texts_fn *get = (texts_fn *)found;
    memset(t, 0, sizeof t);
    for (uint32_t i = 0; i < n; i++)
        t[i].sType = (VkStructureType)REPRESENTATION;
    if (!get || get(d, of, &n, t) < VK_SUCCESS)
        return;
    for (uint32_t i = 0; i < n; i++)
        t[i].pData = calloc(1, t[i].dataSize + 1);
    if (get(d, of, &n, t) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            if (t[i].isText && t[i].pData && !strcmp(t[i].name, "Assembly"))
                read_code(t[i].pData, t[i].dataSize, p);
    for (uint32_t i = 0; i < n; i++) {
        if (getenv("ODD_PRINT") && t[i].pData)
            fprintf(stderr, "--- %s\n%s\n", t[i].name, (char *)t[i].pData);
        free(t[i].pData);
    }
}

void odd_count(VkDevice d, VkPipeline pipeline, odd_pipeline *p) {
    const VkPipelineExecutableInfoKHR of = {.sType = (VkStructureType)EXECUTABLE_INFO,
                                            .pipeline = pipeline};
    read_statistics(d, &of, p);
    read_texts(d, &of, p);
}
