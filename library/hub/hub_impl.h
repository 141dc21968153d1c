/* What hub.c, hub_cache.c, hub_files.c, hub_folder.c, hub_repo.c and hub_url.c share. */
#ifndef HUB_IMPL_H
#define HUB_IMPL_H

#include "hub.h"
#include "hub_list.h"
#include "watch.h"

enum { HUB_MOST_NAME = 256, HUB_MOST_PARTS = 1000 };

/* The work for one model. */
typedef struct hub {
    const hub_wanted *w;
    const char *token;        /* NULL: none */
    char endpoint[512];       /* without a slash at its end */
    char name[HUB_MOST_NAME]; /* USER/REPO */
    const char *quant;        /* NULL: the default */
    char *cache, *folder;     /* the cache; the repository's folder, relative to it */
    hub_list list;            /* the files that the hub lists */
    hub_list cached;          /* the files in the folder */
    int mark;                 /* the open mark of an unfinished download; -1: none */
    char *path;               /* the result: the model's file or folder, */
    char *eye;                /* and its eye's file; NULL: it has none, or it is not wanted */
} hub;

/* Files of hub.list. */
typedef struct hub_set {
    const hub_file **file; /* [n] */
    size_t n, cap;
} hub_set;

static inline bool hub_stopped(const hub *h) {
    return llm_watch_stopped(&h->w->watch);
}

/* Joins parts of a path with slashes; c may be NULL. The caller frees it; NULL: out of memory. */
char *llm_hub_join(const char *a, const char *b, const char *c);
bool llm_hub_is_url(const char *s); /* of https or http */
/* True if a URL is on the hub's own host, to which the token may be sent. */
bool llm_hub_is_on_endpoint(const hub *h, const char *url);

/* Get the model and set h->path. */
GGL_NODISCARD ggl_status llm_hub_get_repo(hub *h, ggl_error *err);
GGL_NODISCARD ggl_status llm_hub_get_url(hub *h, ggl_error *err);
GGL_NODISCARD ggl_status llm_hub_list_models(hub *h, void (*each)(void *user, const hub_model *m),
                                             void *user, ggl_error *err);

/* Passes on the models of a list: a split model as one, and last the Hugging Face folder. cached: the files in the cache; NULL: not
 * asked. */
void llm_hub_each_model(const hub *h, const hub_list *l, const hub_list *cached,
                        void (*each)(void *user, const hub_model *m), void *user);
GGL_NODISCARD ggl_status llm_hub_each_cached(hub *h, void (*each)(void *user, const hub_cached *c),
                                             void *user, ggl_error *err);

/* Downloads those of n files that are not current. If any is missing and `first` is not NULL, hub_set_unfinished is called before. */
GGL_NODISCARD ggl_status llm_hub_fetch(hub *h, const hub_file *const *file, size_t n,
                                       const char *first, ggl_error *err);
/* `first` is HUB_CONFIG for a Hugging Face folder, also for one without config.json.
 * Marks the model of the file `first` as unfinished from now on, until hub_set_finished. The process holds the mark until then. */
GGL_NODISCARD ggl_status llm_hub_set_unfinished(hub *h, const char *first, ggl_error *err);
/* True if a download of the model of that file did not come to its end: files may be missing, or be of an older version. */
bool llm_hub_is_unfinished(const hub *h, const char *first);
/* Removes the mark, unless another process that downloads the same model holds it, too; then that one removes it. If `weights`
 * is false, safetensors in the cache also keep the mark, for only the other files are known to be complete. */
void llm_hub_set_finished(hub *h, const char *first, bool weights);
/* Fails because a model has n files of weights, more than HUB_MOST_PARTS. */
ggl_status llm_hub_too_many(const hub *h, size_t n, ggl_error *err);

/* Downloads the Hugging Face folder of h->list, and removes what an older version of it had and this one has not. */
GGL_NODISCARD ggl_status llm_hub_get_folder(hub *h, ggl_error *err);
/* The folder of a list that has one. in_cache: the list is that of what was downloaded, so all its files are the model's; of a
 * hub's list, files in folders are not counted if there are some at the top, as only config.json says which of them are read. */
hub_model llm_hub_folder_model(const hub_list *l, bool in_cache);

#endif
