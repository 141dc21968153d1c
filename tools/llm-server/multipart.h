/* Forms with files: bodies of the type multipart/form-data (RFC 7578). */
#ifndef LLM_SERVER_MULTIPART_H
#define LLM_SERVER_MULTIPART_H

#include <stdbool.h>

#include "ggl/status.h"
#include "ggl/str.h"

enum {
    MULTIPART_BOUNDARY = 70,
    MULTIPART_HEADER = 8192, /* bytes of a part's headers */
    MULTIPART_MOST = 64      /* parts of a request */
};

/* All strings are parts of the body. */
typedef struct multipart_part {
    ggl_str name, filename; /* as sent: escapes are not resolved */
    bool is_file;           /* has a file's name, which may be empty */
    ggl_str data;
} multipart_part;

/* True if the media type, which may be NULL, is multipart/form-data. */
bool multipart_is_type(const char *type);
/* Reads the boundary of a media type. GGL_FORMAT: it is missing, or not allowed. */
GGL_NODISCARD ggl_status multipart_boundary(const char *type, char out[MULTIPART_BOUNDARY + 1],
                                            ggl_error *err);
/* Reads the parts of a body, in time that grows with its length. GGL_FORMAT: it is damaged; GGL_LIMIT: there are more than
 * `most` parts, or a header is too long; GGL_UNSUPPORTED: a part is encoded. */
GGL_NODISCARD ggl_status multipart_read(multipart_part *part, size_t most, size_t *n,
                                        const char *boundary, ggl_str body, ggl_error *err);
/* Finds the first part of that name in a body of that media type. False: there is none, or the form is damaged. */
bool multipart_find(ggl_str *data, const char *type, ggl_str body, const char *name);

#endif
