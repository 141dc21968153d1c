#include "pipeline_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cache_folder.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"

/* The file's header. Drivers check that cached data is their own, but not that it is complete
 * and undamaged. */
typedef struct head {
    char magic[8];
    uint64_t size, hash; /* of the data after the header */
} head;

#define VARIABLE "GGL_VULKAN_CACHE"
static const char MAGIC[8] = "gglvkpc";
enum { MAX_SIZE = 256 << 20 };

static uint64_t fnv1a(const unsigned char *data, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ data[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Finds the cache folder; with `make`, creates it and its parents. False: no cache is wanted, or
 * there is no home folder. */
static bool folder(char *path, size_t size, bool make) {
    if (!cache_folder(VARIABLE, "", path, size))
        return false;
    if (make)
        ggl_os_make_parents(path, false);
    return !make || ggl_os_make_folder(path, false) || errno == EEXIST;
}

bool ggl_vk_cache_is_wanted(void) {
    char path[OS_MOST_PATH];
    return folder(path, sizeof path, false);
}

/* Writes the cache file's path: FOLDER/vulkan-VENDOR-DEVICE-DRIVERVERSION-CACHEID.bin. False: no
 * folder. */
static bool file_name(const vk_backend *b, char *path, size_t size, bool make) {
    const VkPhysicalDeviceProperties *p = &b->device->properties;
    char id[2 * VK_UUID_SIZE + 1];
    if (!folder(path, size, make))
        return false;
    for (unsigned i = 0; i < VK_UUID_SIZE; i++)
        snprintf(id + 2 * i, 3, "%02x", p->pipelineCacheUUID[i]);
    size_t at = strlen(path);
    int n = snprintf(path + at, size - at, "/vulkan-%04x-%04x-%x-%s.bin", p->vendorID, p->deviceID,
                     p->driverVersion, id);
    return n > 0 && (size_t)n < size - at;
}

void *ggl_vk_cache_read(const vk_backend *b, size_t *size) {
    char path[OS_MOST_PATH];
    head h;
    void *data = NULL;
    FILE *f = file_name(b, path, sizeof path, false) ? ggl_os_fopen(path, "rb") : NULL;
    bool ok = f && fread(&h, sizeof h, 1, f) == 1 && memcmp(h.magic, MAGIC, sizeof MAGIC) == 0 &&
              h.size > 0 && h.size <= MAX_SIZE && (data = ggl_calloc(1, (size_t)h.size));
    ok = ok && fread(data, (size_t)h.size, 1, f) == 1 && fnv1a(data, (size_t)h.size) == h.hash;
    if (f)
        fclose(f);
    if (!ok) {
        ggl_free(data);
        return NULL;
    }
    *size = (size_t)h.size;
    return data;
}

/* Prints, once in a process, that the folder which the user named cannot be used. */
static void note_unusable(int error) {
    static atomic_bool noted;
    const char *dir = cache_folder_named(VARIABLE);
    if (dir && !cache_folder_is_off(VARIABLE) && !atomic_exchange(&noted, true))
        fprintf(stderr,
                "vulkan: " VARIABLE ": %s: %s; pipelines are not kept, and every start compiles "
                "them again\n",
                dir, strerror(error));
}

/* Writes a temporary file and renames it, so that a concurrent reader finds a complete file or
 * none. */
void ggl_vk_cache_write(const vk_backend *b, const void *data, size_t size) {
    char path[OS_MOST_PATH], temporary[OS_MOST_PATH + 32];
    head h = {.size = size, .hash = fnv1a(data, size)};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    if (size > MAX_SIZE)
        return;
    errno = 0;
    if (!file_name(b, path, sizeof path, true)) {
        note_unusable(errno ? errno : ENAMETOOLONG);
        return;
    }
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)ggl_os_pid());
    FILE *f = ggl_os_fopen(temporary, "wb");
    bool ok = f && fwrite(&h, sizeof h, 1, f) == 1 && fwrite(data, size, 1, f) == 1;
    ok = f && fclose(f) == 0 && ok;
    if (!ok || !ggl_os_rename(temporary, path)) {
        note_unusable(errno);
        ggl_os_remove(temporary);
    }
}
