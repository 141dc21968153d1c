/* The table of endpoints. */
#ifndef LLM_SERVER_ENDPOINTS_H
#define LLM_SERVER_ENDPOINTS_H

#include "server.h"

/* Returns the endpoint of a method and a path. NULL: there is none; `allowed` is then the methods that the path has, with
 * commas between them; "": there is no such path. */
const endpoint *endpoint_find(const char *method, const char *path, char *allowed, size_t size);
/* Returns the path of an endpoint that resembles a path; NULL: none does. */
const char *endpoint_nearest(const char *path);
/* True if a request has one of the n keys, in one of the two headers (NULL: absent), or n is 0. */
bool endpoint_key_fits(const char *const *key, size_t n, const char *authorization,
                       const char *x_api_key);

#endif
