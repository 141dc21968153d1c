#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub_impl.h"

char *llm_hub_join(const char *a, const char *b, const char *c) {
    const size_t size = strlen(a) + strlen(b) + (c ? strlen(c) : 0) + 3;
    char *s = malloc(size);
    if (s)
        snprintf(s, size, "%s/%s%s%s", a, b, c ? "/" : "", c ? c : "");
    return s;
}

bool llm_hub_is_url(const char *s) {
    return strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0;
}

bool llm_hub_is_on_endpoint(const hub *h, const char *url) {
    const size_t n = strlen(h->endpoint);
    return strncmp(url, h->endpoint, n) == 0 && (url[n] == '/' || url[n] == '\0');
}
