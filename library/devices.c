#include "devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- opening ---------------------------------------------------------------------------------- */

/* Opens the backend with that name, unless it is open already. Returns its index, or -1 with *err set. */
static int need(devices *d, const char *name, size_t n, const ggl_backend_params *p,
                ggl_error *err) {
    for (int i = 0; i < d->n; i++)
        if (strlen(d->name[i]) == n && memcmp(d->name[i], name, n) == 0)
            return i;
    if (n == 0 || n >= sizeof d->name[0] || d->n == MOST_DEVICES) {
        (void)ggl_fail(err, GGL_USAGE, "'%.*s' is not the name of a device, or there are over %d",
                       (int)(n < 80 ? n : 80), name, MOST_DEVICES);
        return -1;
    }
    snprintf(d->name[d->n], sizeof d->name[0], "%.*s", (int)n, name);
    if (ggl_backend_open(&d->backend[d->n], d->name[d->n], p, err) != GGL_OK)
        return -1;
    if (strcmp(d->name[d->n], "cpu") == 0)
        d->host = d->n;
    return d->n++;
}

/* Opens the first GPU that is not emulated; without one all layers run on the CPU. */
static void need_gpu(devices *d, const ggl_backend_params *p) {
    const char *name;
    for (int k = 0; (name = ggl_backend_name(k)); k++) {
        char first[64];
        ggl_error err;
        snprintf(first, sizeof first, "%.60s0", name);
        if (ggl_backend_kind(k) != GGL_BACKEND_DEVICE || need(d, first, strlen(first), p, &err) < 0)
            continue;
        if (!d->backend[d->n - 1]->software)
            return;
        ggl_backend_close(d->backend[--d->n]);
        d->backend[d->n] = NULL;
    }
}

/* Reads a whole number of layers from the n bytes at s. Returns -1 if they are not a number. */
static int64_t read_layers(const char *s, size_t n) {
    int64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || x > 100000)
            return -1;
        x = 10 * x + (s[i] - '0');
    }
    return n > 0 ? x : -1;
}

static ggl_status read_split(devices *d, const char *s, const ggl_backend_params *p,
                             ggl_error *err) {
    for (size_t n; *s; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        const char *eq = memchr(s, '=', n);
        const int64_t layers = eq ? read_layers(eq + 1, (size_t)(s + n - eq - 1)) : -1;
        if (layers < 0)
            return ggl_fail(err, GGL_USAGE,
                            "split: '%.*s' is not NAME=LAYERS, as in vulkan0=20,cpu=12", (int)n, s);
        const int before = d->n, k = need(d, s, (size_t)(eq - s), p, err);
        if (k < 0)
            return ggl_within(err, err->status, "split");
        if (k < before)
            return ggl_fail(err, GGL_USAGE, "split: '%s' is named twice", d->name[k]);
        d->n_layers[k] = layers;
    }
    d->is_split = true;
    return GGL_OK;
}

static ggl_status read_devices(devices *d, const char *s, const ggl_backend_params *p,
                               ggl_error *err) {
    for (size_t n; *s; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        if (need(d, s, n, p, err) < 0)
            return ggl_within(err, err->status, "device");
    }
    return GGL_OK;
}

ggl_status devices_open(devices *d, const llm_open_params *p, ggl_error *err) {
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = p->n_threads};
    *d = (devices){.host = -1, .n_last = -1};
    if (p->n_threads < 0 || p->n_threads > GGL_MAX_THREADS || p->n_gpu_layers < 0)
        return ggl_fail(
            err, GGL_USAGE,
            "n_threads must be 0 to %d and n_gpu_layers 0 or more, but they are %" PRId32
            " and %" PRId32,
            GGL_MAX_THREADS, p->n_threads, p->n_gpu_layers);
    if (p->split && (p->device || p->n_gpu_layers))
        return ggl_fail(err, GGL_USAGE,
                        "split cannot be used together with device or n_gpu_layers");
    ggl_status st = GGL_OK;
    if (p->split)
        st = read_split(d, p->split, &bp, err);
    else if (p->device)
        st = read_devices(d, p->device, &bp, err);
    else if (p->n_gpu_layers)
        need_gpu(d, &bp);
    if (st == GGL_OK && p->n_gpu_layers)
        d->n_last = p->n_gpu_layers;
    /* the CPU runs the other layers, and nodes that devices refuse */
    if (st == GGL_OK && d->host < 0 && need(d, "cpu", 3, &bp, err) < 0)
        st = err->status;
    return st == GGL_OK ? ggl_backend_open(&d->reference, "reference", NULL, err) : st;
}

void devices_close(devices *d) {
    for (int i = 0; i < d->n; i++)
        ggl_backend_close(d->backend[i]);
    ggl_backend_close(d->reference);
    *d = (devices){.host = -1};
}

/* --- placing ---------------------------------------------------------------------------------- */

/* How many layers each backend has, in the order of the layers: those that are left for the CPU come
 * first, the devices have equal shares. */
static void shares(const devices *d, int n_layer, int order[MOST_DEVICES],
                   int64_t count[MOST_DEVICES], int *n) {
    const bool only_cpu = d->n == 1 && d->host == 0;
    int64_t on_devices = d->n_last < 0 || d->n_last > n_layer ? n_layer : d->n_last;
    int n_dev = 0, k = 0;
    *n = 0;
    /* "cpu" that was named as a device is the first to be opened */
    for (int i = 0; i < d->n; i++)
        n_dev += i != d->host;
    if (only_cpu)
        on_devices = 0;
    if (!d->is_split && on_devices < n_layer && d->host >= 0) {
        order[*n] = d->host;
        count[(*n)++] = n_layer - on_devices;
    }
    for (int i = 0; i < d->n; i++) {
        if (!d->is_split && i == d->host)
            continue;
        order[*n] = i;
        count[(*n)++] =
            d->is_split ? d->n_layers[i] : on_devices * (k + 1) / n_dev - on_devices * k / n_dev;
        k++;
    }
}

/* llm_session_params.place. The part before the first layer runs where the first layer does, and the
 * part after the last where the last does. */
static int place(void *ctx, int layer, int n_layer, const char *weight) {
    const devices *d = ctx;
    int order[MOST_DEVICES], n;
    int64_t count[MOST_DEVICES], end = 0;
    if (weight)
        return -1;
    shares(d, n_layer, order, count, &n);
    const int64_t at = layer < 0 ? 0 : layer >= n_layer ? n_layer - 1 : layer;
    int last = 0;
    for (int i = 0; i < n; i++) {
        end += count[i];
        if (count[i] > 0)
            last = order[i];
        if (at < end)
            break;
    }
    return last;
}

void devices_place(devices *d, llm_session_params *p) {
    p->backend = d->backend;
    p->n_backends = d->n;
    p->fold = d->reference;
    p->place = place;
    p->place_ctx = d;
}

ggl_status devices_check(const devices *d, const char *split, int64_t n_layer, ggl_error *err) {
    int64_t sum = 0;
    for (int i = 0; i < d->n; i++)
        sum += d->n_layers[i];
    return !d->is_split || sum == n_layer
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "split %s: that is %" PRId64 " layers; the model has %" PRId64, split,
                          sum, n_layer);
}

void devices_text(const devices *d, int n_layer, char *buf, size_t size) {
    int order[MOST_DEVICES], n, n_used = 0;
    int64_t count[MOST_DEVICES];
    size_t used = 0;
    shares(d, n_layer, order, count, &n);
    for (int i = 0; i < n; i++)
        n_used += count[i] > 0;
    *buf = 0;
    for (int i = 0; i < n && used < size; i++)
        if (count[i] > 0 && n_used == 1)
            used += (size_t)snprintf(buf + used, size - used, "%s", d->name[order[i]]);
        else if (count[i] > 0)
            used += (size_t)snprintf(buf + used, size - used, "%s%s=%" PRId64, used ? "," : "",
                                     d->name[order[i]], count[i]);
}
