/* The table of endpoints. */
#ifndef LLM_SERVER_ENDPOINTS_H
#define LLM_SERVER_ENDPOINTS_H

#include "server.h"

/* Returns the endpoint of a method and a path. NULL if none; `allowed` is then the methods that the path has, with
 * commas between them; "": there is no such path. */
const endpoint *endpoint_find(const char *method, const char *path, char *allowed, size_t size);
/* Returns the path of an endpoint that resembles a path; NULL if none does. */
const char *endpoint_nearest(const char *path);
/* Returns the index of the key, of n, that a request gives in one of the two headers (NULL: absent);
 * n: none of them. */
size_t endpoint_find_key(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key);
/* Returns the name of the model that a request is for: that of its query, or of its body. NULL: it has none; *why has an
 * error if that is because its body cannot be read. The caller frees it with ggl_free. */
char *endpoint_model(const http_request *q, ggl_error *why);
/* Identifies the client of a request, because each client has a limit of waiting sequences: by its key, if
 * there are keys, else by its address. Nothing else counts, so that nobody can pass for many clients. */
uint64_t endpoint_client(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key, const char *address);

#endif
