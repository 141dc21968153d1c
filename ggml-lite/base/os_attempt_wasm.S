/* os_attempt.h for WebAssembly, by an exception. C has no statement that catches one, so this is assembly. Locals have no names: of
 * ggl_os_attempt, 0 to 2 are its arguments, 3 is where the stack was, 4 is the result. That of a block on the operand stack would be
 * shorter, but assemblers before LLVM 17 count it twice. */
#ifdef __wasm64__
#define ADDRESS i64
#else
#define ADDRESS i32
#endif

    .globaltype __stack_pointer, ADDRESS
    .tagtype ggl_abandoned

    .section .text.ggl_os_attempt,"",@
    .hidden ggl_os_attempt
    .globl ggl_os_attempt
    .type ggl_os_attempt,@function
ggl_os_attempt:
    .functype ggl_os_attempt (ADDRESS, ADDRESS, ADDRESS) -> (i32)
    .local ADDRESS, i32
    global.get __stack_pointer
    local.set 3
    try
    local.get 2
    local.get 1
    call_indirect (ADDRESS) -> ()
    i32.const 1
    local.set 4
    catch ggl_abandoned
    local.get 3
    global.set __stack_pointer
    end_try
    local.get 4
    end_function

    .section .text.ggl_os_abandon,"",@
    .hidden ggl_os_abandon
    .globl ggl_os_abandon
    .type ggl_os_abandon,@function
ggl_os_abandon:
    .functype ggl_os_abandon (ADDRESS) -> ()
    throw ggl_abandoned
    end_function

ggl_abandoned:
