/* Matrix units of a device that has none: what a driver says about them. */
#include <string.h>

#include "odd_impl.h"

static const struct {
    uint32_t m, n, k;
    VkComponentTypeKHR in, sum;
    VkScopeKHR scope;
} size[] = {
    {8, 8, 16, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR, VK_SCOPE_SUBGROUP_KHR},
    {16, 16, 16, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR,
     VK_SCOPE_SUBGROUP_KHR},
    {16, 16, 32, VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT16_KHR,
     VK_SCOPE_SUBGROUP_KHR}};
enum { N_SIZE = sizeof size / sizeof *size };

static VkResult list_sizes(VkPhysicalDevice d, uint32_t *n, VkCooperativeMatrixPropertiesKHR *out) {
    (void)d;
    *n = !out || *n > N_SIZE ? N_SIZE : *n;
    for (uint32_t i = 0; out && i < *n; i++)
        out[i] = (VkCooperativeMatrixPropertiesKHR){.sType = out[i].sType,
                                                    .MSize = size[i].m,
                                                    .NSize = size[i].n,
                                                    .KSize = size[i].k,
                                                    .AType = size[i].in,
                                                    .BType = size[i].in,
                                                    .CType = size[i].sum,
                                                    .ResultType = size[i].sum,
                                                    .scope = size[i].scope};
    return VK_SUCCESS;
}

PFN_vkVoidFunction odd_matrix_function(const char *name) {
    return strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") == 0
               ? (PFN_vkVoidFunction)list_sizes
               : NULL;
}

/* Returns the structure of that type in a chain; NULL: there is none. */
static VkBaseOutStructure *find(void *chain, int type) {
    VkBaseOutStructure *s = chain;
    while (s && (int)s->sType != type)
        s = s->pNext;
    return s;
}

void odd_matrix_features(VkPhysicalDeviceFeatures2 *f) {
    void *found = find(f, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (found)
        ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)found)->cooperativeMatrix = true;
}

void odd_matrix_properties(VkPhysicalDeviceProperties2 *p) {
    void *found = find(p, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    if (found)
        ((VkPhysicalDeviceCooperativeMatrixPropertiesKHR *)found)
            ->cooperativeMatrixSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
}

bool odd_matrix_remove(const void *chain) {
    VkBaseOutStructure *before = NULL, *s;
    memcpy(&s, &chain, sizeof s); /* the caller's structures are its own variables */
    for (; s; before = s, s = s->pNext)
        if (before &&
            (int)s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR) {
            before->pNext = s->pNext;
            return true;
        }
    return false;
}
