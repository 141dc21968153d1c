/* What hub.c, hub_repo.c and hub_url.c share. */
#ifndef TOOLS_HUB_IMPL_H
#define TOOLS_HUB_IMPL_H

#include "hub.h"
#include "hub_list.h"

enum { HUB_MOST_NAME = 256, HUB_MOST_PARTS = 1000 };

/* The work for one model. */
typedef struct hub {
    const char *tool, *token; /* token: NULL: none */
    const hub_options *o;
    char endpoint[512];       /* without a slash at its end */
    char name[HUB_MOST_NAME]; /* USER/REPO */
    const char *quant;        /* NULL: the default */
    char *cache, *folder;     /* the cache; the repository's folder, relative to it */
    hub_list list;            /* the files that the hub lists */
    hub_list cached;          /* the files in the folder */
    char *path;               /* the result: the model's file */
} hub;

/* Joins parts of a path with slashes; c may be NULL. The caller frees it; NULL: out of memory. */
char *hub_join(const char *a, const char *b, const char *c);
/* Reports a wrong argument, escaped for a terminal. Returns 2. */
int hub_wrong(const char *tool, const char *fmt, ...) GGL_PRINTF(2, 3);
bool hub_is_url(const char *s); /* of https or http */
/* True if a URL is on the hub's own host, to which the token may be sent. */
bool hub_is_on_endpoint(const hub *h, const char *url);

/* Get the model and set h->path. Return -1, or an exit code. `flag` is -hf or -hfd; `file` names a file of the repository, or is
 * NULL. */
int hub_get_repo(hub *h, const char *flag, const char *repo, const char *file);
int hub_get_url(hub *h, const char *url);

#endif
