/* The functions operators call: they turn operands into bindings and push constants, and calls
 * into dispatches. */
#include <assert.h>
#include <string.h>

#include "pipelines.h"
#include "recording.h"

/* --- operands --------------------------------------------------------------------------------- */

int64_t ggl_vk_extent(const vk_emit *e, const ggl_operand *o, int d) {
    return o->ne[d] == GGL_N ? e->n : o->ne[d];
}

int64_t ggl_vk_rows(const vk_emit *e, const ggl_operand *o) {
    return ggl_vk_extent(e, o, 1) * ggl_vk_extent(e, o, 2) * ggl_vk_extent(e, o, 3);
}

int64_t ggl_vk_count(const vk_emit *e, const ggl_operand *o) {
    return ggl_vk_extent(e, o, 0) * ggl_vk_rows(e, o);
}

/* Returns the bytes that addresses count in: an element, or one byte for block types. */
static size_t unit(ggl_type type) {
    const ggl_type_info *t = ggl_type_get(type);
    return t->block > 1 ? 1 : t->size;
}

uint32_t ggl_vk_stride(const vk_emit *e, const ggl_operand *o, int d) {
    return o->region < 0 || ggl_vk_extent(e, o, d) == 1 ? 0 : (uint32_t)(o->nb[d] / unit(o->type));
}

bool ggl_vk_is_dense(const vk_emit *e, const ggl_operand *o) {
    size_t next = ggl_type_get(o->type)->size;
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        int64_t n = d == 0 ? o->ne[0] / ggl_type_get(o->type)->block : ggl_vk_extent(e, o, d);
        if (n != 1 && o->nb[d] != next)
            return false;
        next *= (size_t)n;
    }
    return true;
}

size_t ggl_vk_span(const vk_emit *e, const ggl_operand *o) {
    size_t size = ggl_row_size(o->type, o->ne[0]);
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        size += (size_t)(ggl_vk_extent(e, o, d) - 1) * o->nb[d];
    return size;
}

/* --- bindings --------------------------------------------------------------------------------- */

/* Returns the offset of a region's first byte in its VkBuffer; 0 while compiling, when there are
 * no buffers. */
static size_t shift_of(const vk_emit *e, int region) {
    return e->recording ? e->recording->region[region]->shift : 0;
}

uint32_t ggl_vk_bind_bytes(vk_emit *e, vk_call *c, int region, size_t offset, size_t size,
                           bool write) {
    assert(c->n_bind < VK_MAX_BIND);
    vk_binding *x = &c->bind[c->n_bind++];
    *x = (vk_binding){.region = region};
    if (region < 0)
        return 0;
    const size_t off = (shift_of(e, region) + offset) % e->b->limits.offset_align;
    *x = (vk_binding){
        .region = region, .offset = offset - off, .size = (off + size + 3) / 4 * 4, .write = write};
    return (uint32_t)off;
}

/* Returns the offset of an operand in its region, for the first token and the turn of a loop. */
static size_t place(const vk_emit *e, const ggl_operand *o) {
    const size_t batch = o->ne[GGL_BATCH_DIM] == GGL_N ? o->nb[GGL_BATCH_DIM] : 0;
    return o->offset + (size_t)e->turn * o->loop + (size_t)e->first * batch;
}

uint32_t ggl_vk_bind_part(vk_emit *e, vk_call *c, const ggl_operand *o, size_t offset, size_t size,
                          bool write) {
    if (o->region < 0)
        return ggl_vk_bind_bytes(e, c, -1, 0, 0, false);
    return ggl_vk_bind_bytes(e, c, o->region, place(e, o) + offset, size, write) /
           (uint32_t)unit(o->type);
}

uint32_t ggl_vk_bind(vk_emit *e, vk_call *c, const ggl_operand *o, bool write) {
    return ggl_vk_bind_part(e, c, o, 0, o->region < 0 ? 0 : ggl_vk_span(e, o), write);
}

size_t ggl_vk_bind_together(vk_emit *e, vk_call *c, const ggl_operand *const *o, const size_t *size,
                            int n, bool write, uint32_t *at) {
    size_t begin = SIZE_MAX, end = 0;
    memset(at, 0, (size_t)n * sizeof *at);
    if (o[0]->region < 0)
        return ggl_vk_bind_bytes(e, c, -1, 0, 0, false);
    for (int i = 0; i < n; i++) {
        const size_t first = place(e, o[i]);
        begin = first < begin ? first : begin;
        end = first + size[i] > end ? first + size[i] : end;
    }
    const size_t off = ggl_vk_bind_bytes(e, c, o[0]->region, begin, end - begin, write);
    for (int i = 0; i < n; i++)
        at[i] = (uint32_t)(off + place(e, o[i]) - begin);
    return end - begin;
}

uint32_t ggl_vk_bind_store(vk_emit *e, vk_call *c, const ggl_store *s, bool write) {
    const ggl_loc at = e->store_loc[s->id];
    const uint32_t off = ggl_vk_bind_bytes(e, c, at.region, at.offset, s->size, write);
    c->bind[c->n_bind - 1].kept = true;
    return off;
}

/* Dispatches between two barriers use other counters, because their bindings count as written. */
void ggl_vk_bind_counters(vk_emit *e, vk_call *c, size_t n) {
    const size_t size =
        (n * sizeof(uint32_t) + VK_BUFFER_ALIGN - 1) / VK_BUFFER_ALIGN * VK_BUFFER_ALIGN;
    size_t *at = &e->b->counters_at;
    assert(c->n_bind < VK_MAX_BIND && n <= VK_MOST_COUNTERS);
    *at = *at + size > VK_COUNTERS_SIZE ? 0 : *at;
    c->bind[c->n_bind++] =
        (vk_binding){.region = VK_COUNTERS, .offset = *at, .size = size, .write = true};
    *at += size;
}

void ggl_vk_strides(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS]) {
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        out[d] = ggl_vk_stride(e, o, d);
}

void ggl_vk_outer_strides(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS - 1]) {
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        out[d - 1] = ggl_vk_stride(e, o, d);
}

void ggl_vk_outer_extents(const vk_emit *e, const ggl_operand *o, uint32_t out[GGL_MAX_DIMS - 1]) {
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        out[d - 1] = (uint32_t)ggl_vk_extent(e, o, d);
}

uint32_t ggl_vk_groups(int64_t items, uint32_t local) {
    int64_t n = (items + local - 1) / local;
    return n > VK_MAX_GROUPS ? VK_MAX_GROUPS : (uint32_t)n;
}

/* --- dispatches ------------------------------------------------------------------------------- */

static ggl_status check_binding(const vk_emit *e, const vk_binding *x, ggl_error *err) {
    static const char help[] =
        " (the cache of all slots; fewer positions (a smaller context), fewer "
        "slots or a smaller type of cache need less)";
    if (x->size <= e->b->limits.max_range)
        return GGL_OK;
    return ggl_fail(
        err, GGL_LIMIT, "%.1f MiB in one buffer; this device supports at most %.1f MiB%s",
        (double)x->size / 1048576, (double)e->b->limits.max_range / 1048576, x->kept ? help : "");
}

static ggl_status check_call(const vk_emit *e, const vk_call *c, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < c->n_bind && st == GGL_OK; i++)
        st = check_binding(e, &c->bind[i], err);
    if (st != GGL_OK)
        return st;
    for (int i = 0; i < 3; i++)
        if (c->groups[i] > VK_MAX_GROUPS)
            return ggl_fail(err, GGL_LIMIT, "%u workgroups; at most %d are allowed", c->groups[i],
                            VK_MAX_GROUPS);
    return GGL_OK;
}

ggl_status ggl_vk_dispatch(vk_emit *e, const vk_call *c, ggl_error *err) {
    VkPipeline pipeline;
    ggl_status st = check_call(e, c, err);
    if (st == GGL_OK && e->count) {
        e->count->dispatches++;
        e->count->barriers += ggl_vk_needs_barrier(&e->count->touched, c);
        return GGL_OK;
    }
    if (st == GGL_OK && !e->recording)
        return ggl_vk_pipeline_note(e->b, c, err);
    if (st == GGL_OK)
        st = ggl_vk_pipeline_of(e->b, c, &pipeline, err);
    return st == GGL_OK ? ggl_vk_recording_add(e->b, e->recording, c, pipeline, err) : st;
}
