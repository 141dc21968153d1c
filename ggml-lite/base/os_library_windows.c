/* os_library.h for Windows. */
#include "ggl/internal/os_library.h"

#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "os_wide.h"

static _Thread_local char why[320];

bool ggl_os_library_is_name(const char *name) {
    return ggl_case_ends_with(name, ".dll") && ggl_case_compare(name, ".dll") != 0;
}

static void note_error(const char *path) {
    char *text = NULL;
    wchar_t *wide = NULL;
    (void)FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM |
                             FORMAT_MESSAGE_IGNORE_INSERTS,
                         NULL, GetLastError(), 0, (wchar_t *)&wide, 0, NULL);
    text = wide ? ggl_os_narrow(wide) : NULL;
    if (text)
        text[strcspn(text, "\r\n")] = '\0';
    snprintf(why, sizeof why, "%s: %s", path, text ? text : "cannot be loaded");
    free(text);
    LocalFree(wide);
}

void *ggl_os_library_open(const char *path) {
    wchar_t *w = ggl_os_wide(path);
    for (wchar_t *c = w; c && *c; c++)
        *c = *c == L'/' ? L'\\' : *c; /* which it alone understands */
    /* a name alone is not looked for in the current folder, which may be anybody's */
    const DWORD flags =
        ggl_os_has_separator(path, strlen(path)) ? 0 : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    HMODULE h = w ? LoadLibraryExW(w, NULL, flags) : NULL;
    if (!h)
        note_error(path);
    free(w);
    return h;
}

void *ggl_os_library_open_for_ever(const char *path) {
    HMODULE h = ggl_os_library_open(path), same;
    if (h)
        (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN |
                                     GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                                 (wchar_t *)h, &same);
    return h;
}

void *ggl_os_library_find(void *library, const char *name) {
    const FARPROC f = GetProcAddress(library, name);
    void *found = NULL;
    memcpy(&found, &f, sizeof found);
    if (!found)
        note_error(name);
    return found;
}

void ggl_os_library_close(void *library) {
    FreeLibrary(library);
}

const char *ggl_os_library_error(void) {
    return why;
}

bool ggl_os_library_of(const void *address, char *out, size_t size) {
    HMODULE h;
    wchar_t name[4096];
    char *path = NULL, *real = NULL;
    if (GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                               GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                           (const wchar_t *)address, &h) &&
        GetModuleFileNameW(h, name, sizeof name / sizeof *name) > 0)
        path = ggl_os_narrow(name);
    real = path ? ggl_os_real_path(path) : NULL;
    const bool found = real && snprintf(out, size, "%s", real) < (int)size;
    free(path);
    free(real);
    if (!found)
        out[0] = '\0';
    return found;
}
