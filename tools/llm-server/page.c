#include "llm-server/page.h"

#include <string.h>

/* page_files.def has a line PAGE_FILE(path, media type, symbol, size, etag, encoding) for each file. CMake writes it
 * (page/CMakeLists.txt). */
#define PAGE_FILE(path, media_type, symbol, size, etag, encoding)                                  \
    extern const unsigned char symbol[];
#include "page_files.def"
#undef PAGE_FILE

static const page_file files[] = {
#define PAGE_FILE(path, media_type, symbol, size, etag, encoding)                                  \
    {path, media_type, symbol, size, etag, encoding},
#include "page_files.def"
#undef PAGE_FILE
};

const char *page_libraries(void) {
    return PAGE_LIBRARIES;
}

const page_file *page_at(size_t k) {
    return k < sizeof files / sizeof *files ? &files[k] : NULL;
}

const page_file *page_find(const char *path) {
    if (strcmp(path, "/") == 0) {
        path = "/index.html";
    }
    const page_file *file;
    for (size_t k = 0; (file = page_at(k)) && strcmp(file->path, path) != 0; k++) {
    }
    return file;
}
