/* The vtable, and opening and closing a backend. */
#include "vulkan.h"

#include <stdio.h>

#include "ggl/alloc.h"
#include "memory.h"
#include "pace.h"
#include "pipelines.h"
#include "plan.h"
#include "repack.h"
#include "share.h"
#include "weights.h"

static ggl_status wait_done(ggl_backend *base, ggl_error *err) {
    return ggl_vk_wait_all((vk_backend *)base, err);
}

static ggl_status mark(ggl_backend *base, uint64_t *number, ggl_error *err) {
    vk_backend *b = (vk_backend *)base;
    ggl_status st = ggl_vk_submit_run(b, NULL, 0, NULL, err);
    *number = b->device->submitted;
    return st;
}

static ggl_status wait_for(ggl_backend *base, uint64_t number, ggl_error *err) {
    return ggl_vk_wait_for((vk_backend *)base, number, err);
}

static void close_backend(ggl_backend *base) {
    vk_backend *b = (vk_backend *)base;
    if (b->device && b->device->device) {
        if (b->f.DeviceWaitIdle)
            b->f.DeviceWaitIdle(b->device->device);
        if (b->nothing)
            ggl_vk_buffer_free(base, b->nothing);
        if (b->counters)
            ggl_vk_buffer_free(base, b->counters);
        ggl_vk_pipelines_close(b);
        ggl_vk_codebooks_close(b);
        ggl_vk_staging_free(b);
    }
    ggl_vk_device_close(b);
    ggl_free(b);
}

static const ggl_backend_vtable vtable = {
    .close = close_backend,
    .alloc = ggl_vk_buffer_alloc,
    .free = ggl_vk_buffer_free,
    .upload = ggl_vk_buffer_upload,
    .download = ggl_vk_buffer_download,
    .copy = ggl_vk_buffer_copy,
    .clear = ggl_vk_buffer_clear,
    .refuses = ggl_vk_refuses,
    .compile = ggl_vk_plan_compile,
    .run = ggl_vk_plan_run,
    .wait = wait_done,
    .mark = mark,
    .wait_for = wait_for,
    .share = ggl_vk_share,
    .borrow = ggl_vk_borrow,
    .plan_free = ggl_vk_plan_free,
    .repack_size = ggl_vk_repack_size,
    .repack = ggl_vk_repack,
    .repack_layout = VK_REPACK_LAYOUT,
    .describe = ggl_vk_plan_describe,
};

ggl_status ggl_vulkan_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);
ggl_status ggl_vulkan_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err) {
    vk_backend *b = ggl_calloc(1, sizeof *b);
    if (!b)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    b->base = (ggl_backend){.v = &vtable, .async = true};
    b->profile = params->profile;
    b->profile_ctx = params->profile_ctx;
    snprintf(b->base.name, sizeof b->base.name, "vulkan%d", params->device);
    ggl_status st = ggl_vk_device_open(b, params, err);
    if (st == GGL_OK) {
        ggl_vk_pace_open(b);
        st = ggl_vk_pipelines_open(b, err);
    }
    if (st == GGL_OK)
        st = ggl_vk_buffer_alloc(&b->base, GGL_REGION_IO, 0, NULL, &b->nothing, err);
    if (st == GGL_OK)
        st = ggl_vk_buffer_alloc(&b->base, GGL_REGION_ARENA, VK_COUNTERS_SIZE, NULL, &b->counters,
                                 err);
    if (st == GGL_OK)
        st = ggl_vk_codebooks_open(b, err);
    if (st != GGL_OK) {
        close_backend(&b->base);
        return st;
    }
    *out = &b->base;
    return GGL_OK;
}
