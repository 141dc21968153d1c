#include "matrix.h"

#include "ggl/alloc.h"
#include "linear.h"
#include "shaders/kinds.h"

/* The tiles, by width, and how linear_matrix.comp divides one among subgroups: among four blocks of
 * 16 x 16, 16 x 32, 32 x 32 or 32 x 64 elements. So a device's matrices have to divide 16 x 16. */
static const vk_matrix_tile tile[] = {{16, 4}, {32, 4}, {64, 2}, {128, 2}};
enum {
    N_TILE = sizeof tile / sizeof *tile,
    LEAST_BLOCK = 16,
    ROWS = 64,
    DEEP = HALVES_DEEP,    /* elements of a row, or column, in shared memory, */
    PITCH = 2 * DEEP + 16, /* and their bytes with those between two rows */
    OF_COLUMN = 16,        /* bytes of what else shared memory has of a column */
    LEAST_DEEP = 32,       /* elements of a slab of attend_matrix.comp */
    LEAST_SIZE = 8,        /* a subgroup has at most 4 by 8 matrices */
    LOCAL_HALVES = 128
};

static bool divides(uint32_t size, uint32_t of) {
    return size > 0 && of % size == 0;
}

bool ggl_vk_choose_matrix(const VkCooperativeMatrixPropertiesKHR *list, uint32_t n,
                          vk_matrix *out) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const VkCooperativeMatrixPropertiesKHR *p = &list[i];
        const uint32_t size = p->MSize * p->NSize * p->KSize;
        const bool types = p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p->AType == p->BType &&
                           p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->CType == p->ResultType;
        if (!types || p->scope != VK_SCOPE_SUBGROUP_KHR || p->saturatingAccumulation ||
            !divides(p->MSize, LEAST_BLOCK) || !divides(p->NSize, LEAST_BLOCK) ||
            !divides(p->KSize, LEAST_DEEP) || p->MSize < LEAST_SIZE || p->NSize < LEAST_SIZE ||
            p->KSize < LEAST_SIZE || size <= most)
            continue;
        most = size;
        *out = (vk_matrix){p->MSize, p->NSize, p->KSize};
    }
    return most > 0;
}

/* Returns how many tiles, from the narrowest on, have room in a workgroup's shared memory. */
static int n_tiles(const vk_limits *l) {
    int n = 0;
    while (n < N_TILE && PITCH * (ROWS + tile[n].cols) + OF_COLUMN * tile[n].cols <= l->shared_size)
        n++;
    return n;
}

ggl_status ggl_vk_find_matrix(const vk_backend *b, VkInstance instance, VkPhysicalDevice physical,
                              vk_matrix *out, bool *found, ggl_error *err) {
    PFN_vkVoidFunction function =
        b->f.GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR of_device =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)function;
    uint32_t n = 0;
    *found = false;
    if (!of_device || of_device(physical, &n, NULL) != VK_SUCCESS || n == 0 ||
        n_tiles(&b->limits) == 0 ||
        b->limits.subgroup_size * VK_MATRIX_SUBGROUPS > b->limits.local_size)
        return GGL_OK;
    VkCooperativeMatrixPropertiesKHR *list = ggl_calloc(n, sizeof *list);
    if (!list) /* without matrix units, results would have other bits */
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    for (uint32_t i = 0; i < n; i++)
        list[i].sType = (VkStructureType)VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    *found = of_device(physical, &n, list) >= VK_SUCCESS && ggl_vk_choose_matrix(list, n, out);
    ggl_free(list);
    return GGL_OK;
}

vk_matrix_tile ggl_vk_matrix_tile(const vk_limits *l, int64_t n) {
    enum { MANY = 8 }; /* tiles, beside which half an empty one does not matter */
    int i = 0;
    while (i + 1 < n_tiles(l) && n > tile[i].cols)
        i++;
    /* the widest: a weight is decoded once for all its columns */
    const int64_t narrow = i > 0 ? tile[i - 1].cols : n, n_narrow = (n + narrow - 1) / narrow;
    return n > tile[i].cols && n_narrow % 2 != 0 && n_narrow < MANY ? tile[i - 1] : tile[i];
}

/* --- columns of f16 --------------------------------------------------------------------------- */

/* Zeros follow the numbers up to a multiple of DEEP. */
size_t ggl_vk_halves_size(int64_t n_in) {
    return (size_t)(n_in + DEEP - 1) / DEEP * DEEP * 2 + VK_HALVES_UNIT;
}

ggl_status ggl_vk_emit_halves(vk_emit *e, const ggl_operand *x, int64_t n_in, bool codes,
                              bool by_runs, const vk_binding *to, ggl_error *err) {
    vk_call c = {.shader = codes ? VK_SHADER_LINEAR_HALVES_CODES : VK_SHADER_LINEAR_HALVES,
                 VK_SPEC(linear_halves, LOCAL_HALVES, by_runs)};
    const uint32_t x_at = ggl_vk_bind(e, &c, x, false),
                   at = ggl_vk_bind_bytes(e, &c, to->region, to->offset, to->size, true);
    vk_push_linear_halves *p = VK_PUSH(&c, linear_halves);
    p->n_in = (uint32_t)n_in;
    ggl_vk_outer_extents(e, x, p->n);
    p->x_at = x_at;
    ggl_vk_outer_strides(e, x, p->x_step);
    p->halves_at = at / VK_HALVES_UNIT;
    p->pitch = (uint32_t)(ggl_vk_halves_size(n_in) / VK_HALVES_UNIT);
    c.groups[0] = ggl_vk_groups(ggl_vk_rows(e, x), 1);
    return ggl_vk_dispatch(e, &c, err);
}
