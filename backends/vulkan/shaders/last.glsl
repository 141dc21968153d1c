/* Finds the workgroup of a dispatch that ends last. It sees what all others have stored, so it can go on with
 * their results at once, without another dispatch. The results that it reads must be `coherent`. */

shared bool is_last;

/* Returns whether n - 1 calls with this counter came before this one; n is the same for all. The counter, which began as 0, is 0 again then.
 * All invocations of a workgroup call it together, and what they stored before is seen after the last call. */
bool ends_last(uint counter, uint n) {
    memoryBarrierBuffer();
    barrier();
    memoryBarrierBuffer();
    if (n == 1)
        return true;
    if (gl_LocalInvocationIndex == 0) {
        is_last = atomicAdd(counters[counter], 1) == n - 1;
        if (is_last)
            atomicExchange(counters[counter], 0);
    }
    barrier();
    memoryBarrierBuffer();
    return is_last;
}
