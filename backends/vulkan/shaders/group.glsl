/* Sums and maxima over a workgroup, always in the same order. All invocations must call these
 * together. With SUBGROUP each subgroup, of any size, reduces its own part first. */
#ifndef GROUP_GLSL
#define GROUP_GLSL

#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

layout(local_size_x_id = 0) in; /* before gl_WorkGroupSize is used, which is 1 until this line */

shared uint group_part[256]; /* the largest workgroup */

#ifdef SUBGROUP
float group_sum(float x) {
    x = subgroupAdd(x);
    if (gl_NumSubgroups == 1u)
        return x;
    if (subgroupElect())
        group_part[gl_SubgroupID] = floatBitsToUint(x);
    barrier();
    x = uintBitsToFloat(group_part[0]);
    for (uint i = 1u; i < gl_NumSubgroups; i++)
        x += uintBitsToFloat(group_part[i]);
    barrier(); /* group_part may be reused after this */
    return x;
}

uint group_max(uint x) {
    x = subgroupMax(x);
    if (gl_NumSubgroups == 1u)
        return x;
    if (subgroupElect())
        group_part[gl_SubgroupID] = x;
    barrier();
    for (uint i = 0u; i < gl_NumSubgroups; i++)
        x = max(x, group_part[i]);
    barrier();
    return x;
}
#else
float group_sum(float x) {
    const uint me = gl_LocalInvocationIndex;
    group_part[me] = floatBitsToUint(x);
    barrier();
    for (uint n = gl_WorkGroupSize.x / 2u; n > 0u; n /= 2u) {
        if (me < n)
            group_part[me] = floatBitsToUint(uintBitsToFloat(group_part[me]) + uintBitsToFloat(group_part[me + n]));
        barrier();
    }
    x = uintBitsToFloat(group_part[0]);
    barrier(); /* group_part may be reused after this */
    return x;
}

uint group_max(uint x) {
    const uint me = gl_LocalInvocationIndex;
    group_part[me] = x;
    barrier();
    for (uint n = gl_WorkGroupSize.x / 2u; n > 0u; n /= 2u) {
        if (me < n)
            group_part[me] = max(group_part[me], group_part[me + n]);
        barrier();
    }
    x = group_part[0];
    barrier();
    return x;
}
#endif

#endif
