/* The files of the page at "/", which are embedded in the program. */
#ifndef LLM_SERVER_PAGE_H
#define LLM_SERVER_PAGE_H

#include <stddef.h>

typedef struct page_file {
    const char *path;          /* of the URL: "/app.js" */
    const char *media_type;    /* for Content-Type */
    const unsigned char *data; /* static */
    size_t size;               /* of data, in bytes */
    const char *etag;          /* for ETag, with its quotes; changes with the data */
    const char *encoding;      /* for Content-Encoding: "gzip", or NULL */
} page_file;

/* For Content-Security-Policy: the page loads nothing from elsewhere, runs nothing that is not one of its files, makes no
 * markup from text, and is shown in no frame. Send with each file also X-Content-Type-Options: nosniff, ETag, and
 * Cache-Control: no-cache, so that a browser asks whether a file has changed and gets 304 if not. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; media-src data:; font-src 'self'; base-uri 'none'; form-action "        \
    "'none'; frame-ancestors "                                                                     \
    "'none'; "                                                                                     \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* The file for a URL's path, without its query; "/" is the page itself. NULL: there is no such file. */
const page_file *page_find(const char *path);

/* What of others is in these files, for people: "the page contains markdown-it 10.0.0, katex 0.16.4". */
const char *page_libraries(void);

/* The file number k, or NULL if there are not that many. */
const page_file *page_at(size_t k);

#endif
