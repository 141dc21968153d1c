/* os_file.h and os_file_impl.h for Windows. */
#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"
#include "ggl/internal/os_thread.h"
#include "os_file.h"
#include "os_file_impl.h"
#include "os_wide.h"

/* --- pages ------------------------------------------------------------------------------------ */

void *ggl_os_pages_new(size_t size) {
    void *p = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!p)
        (void)ggl_os_failed();
    return p;
}

void *ggl_os_pages_map(int fd, size_t size, bool populate) {
    HANDLE h = CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    void *p = h ? MapViewOfFile(h, FILE_MAP_READ, 0, 0, size) : NULL;
    if (!p)
        (void)ggl_os_failed();
    if (h)
        CloseHandle(h); /* the view keeps it */
    if (p && populate)
        ggl_os_map_will_need(p, size);
    return p;
}

void ggl_os_pages_free(void *p, size_t size, bool mapped) {
    (void)size;
    if (mapped)
        UnmapViewOfFile(p);
    else
        VirtualFree(p, 0, MEM_RELEASE);
}

void ggl_os_map_drop(const void *data, size_t size) {
    (void)data, (void)size; /* the system takes pages of files when it needs memory */
}

void ggl_os_map_will_need(const void *data, size_t size) {
    /* of Windows 8 and later: looked up, so that older ones start */
    typedef struct range {
        void *at;
        SIZE_T size;
    } range;
    typedef BOOL WINAPI prefetch(HANDLE process, ULONG_PTR n, range * of, ULONG flags);
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    prefetch *f = NULL;
    FARPROC found = kernel ? GetProcAddress(kernel, "PrefetchVirtualMemory") : NULL;
    memcpy(&f, &found, sizeof f);
    range r = {(void *)(uintptr_t)data, size};
    if (f)
        (void)f(GetCurrentProcess(), 1, &r, 0);
}

bool ggl_os_map_touch(const void *data) {
    (void)*(const volatile char *)data;
    return true; /* the system does not say */
}

bool ggl_os_map_is_present(const void *data) {
    (void)data;
    return true; /* it does not say, either */
}

/* A process may lock a little less than the least size of its working set, which is at first some 200 KiB. */
bool ggl_os_map_lock(const os_map *m) {
    enum { MORE = 1 << 20 };
    static os_mutex lock = OS_MUTEX_INIT;
    HANDLE self = GetCurrentProcess();
    SIZE_T least, most;
    if (m->size == 0)
        return true;
    ggl_os_mutex_lock(&lock);
    const bool has_room =
                   GetProcessWorkingSetSize(self, &least, &most) &&
                   SetProcessWorkingSetSize(self, least + m->size + MORE, most + m->size + MORE),
               locked = has_room && VirtualLock((void *)(uintptr_t)m->data, m->size);
    if (has_room && !locked)
        (void)SetProcessWorkingSetSize(self, least, most);
    ggl_os_mutex_unlock(&lock);
    return locked;
}

/* --- files to write --------------------------------------------------------------------------- */

char *ggl_os_resolve(const char *path) {
    char *real = ggl_os_real_path(path);
    if (!real && errno == ENOENT) { /* it is not there yet: its folder is */
        const char *end = ggl_os_last_separator(path), *name = end ? end + 1 : path;
        char *folder = calloc((size_t)(name - path) + 2, 1);
        if (!folder)
            return NULL;
        memcpy(folder, path, (size_t)(name - path));
        strcat(folder, ".");
        char *of = ggl_os_real_path(folder);
        free(folder);
        const size_t size = of ? strlen(of) + strlen(name) + 2 : 0;
        if (of && (real = malloc(size)))
            snprintf(real, size, "%s%s%s", of, of[strlen(of) - 1] == '/' ? "" : "/", name);
        free(of);
    }
    char *copy = real ? ggl_calloc(strlen(real) + 1, 1) : NULL;
    if (copy)
        memcpy(copy, real, strlen(real));
    free(real);
    return copy;
}

bool ggl_os_may_write(const char *path) {
    wchar_t *w = ggl_os_wide(path);
    const DWORD is = w ? GetFileAttributesW(w) : INVALID_FILE_ATTRIBUTES;
    free(w);
    if (is != INVALID_FILE_ATTRIBUTES && is & FILE_ATTRIBUTE_READONLY) {
        errno = EACCES;
        return false;
    }
    return true;
}

void ggl_os_keep_rights(int fd, const char *path) {
    (void)fd, (void)path; /* they are those of the folder */
}

void ggl_os_remove_open(int fd, const char *path) {
    (void)fd;
    ggl_os_remove(path); /* it goes when it is closed */
}

int ggl_os_duplicate(int fd) {
    HANDLE h;
    if (!DuplicateHandle(GetCurrentProcess(), (HANDLE)_get_osfhandle(fd), GetCurrentProcess(), &h,
                         0, FALSE, DUPLICATE_SAME_ACCESS)) {
        (void)ggl_os_failed();
        return -1;
    }
    const int copy = _open_osfhandle((intptr_t)h, _O_BINARY | _O_NOINHERIT);
    if (copy < 0)
        CloseHandle(h);
    return copy;
}

int ggl_os_hold(int fd) {
    (void)fd;
    return -1;
}

void ggl_os_sync_folder_of(char *path) {
    (void)path; /* ggl_os_rename has written it through */
}
