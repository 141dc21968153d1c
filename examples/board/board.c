/* The beginning of a program on two boards that qemu emulates, and output by semihosting: the debugger, or the emulator, writes. For another
 * board, take its maker's startup file in place of this one. The linker's scripts beside this file say where memory is. */
#include "board.h"

#include <stdint.h>
#include <string.h>

extern uint32_t board_data_from[], board_data[], board_data_end[], board_bss[], board_bss_end[],
    board_stack_end[];
int main(void);

static int32_t semihosting(int32_t call, const void *argument);

enum { PAINT = 0xa5 };

size_t board_stack_used(void) {
    const unsigned char *p = (const unsigned char *)board_bss_end;
    while (p < (const unsigned char *)board_stack_end && *p == PAINT)
        p++;
    return (size_t)((const unsigned char *)board_stack_end - p);
}

static void begin(void) {
    /* what lies below this function's own part of the stack */
    memset(board_bss_end, PAINT,
           (size_t)((char *)__builtin_frame_address(0) - 64 - (char *)board_bss_end));
    memcpy(board_data, board_data_from, (size_t)((char *)board_data_end - (char *)board_data));
    memset(board_bss, 0, (size_t)((char *)board_bss_end - (char *)board_bss));
    board_end(main());
    for (;;) {
    }
}

#ifdef __arm__
static int32_t semihosting(int32_t call, const void *argument) {
    register int32_t r0 __asm__("r0") = call;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_reset(void);
void board_reset(void) {
#ifdef __ARM_FP
    *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* CPACR: the coprocessors of floats */
    __asm__ volatile("dsb\n isb");
#endif
    begin();
}

/* The timer of the processor, which counts down from 2^24 - 1, and has 25 MHz on this board. */
uint32_t board_instructions(void) {
    enum { MOST = 0xffffff, PER_TICK = 1000 / 25 };
    volatile uint32_t *const timer = (volatile uint32_t *)0xe000e010;
    if (timer[0] == 0) {
        timer[1] = MOST;
        timer[2] = 0;
        timer[0] = 5;
        return 0;
    }
    return (MOST - timer[2]) * PER_TICK;
}

static void fault(void) {
    board_say("a fault of the processor\n");
    board_end(1);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))(uintptr_t)board_stack_end, board_reset, fault, fault, fault, fault, fault,
};
#else
static int32_t semihosting(int32_t call, const void *argument) {
    register int32_t a0 __asm__("a0") = call;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\nsrai x0, "
                     "x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

static void fault(void) {
    board_say("a fault of the processor\n");
    board_end(1);
}

uint32_t board_instructions(void) {
    uint32_t n;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop"
                     : "=r"(n));
    return n;
}

void board_begin(void);
__attribute__((used)) void board_begin(void) {
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrw mtvec, %0\n.option pop"
                     :
                     : "r"(fault));
    begin();
}

__attribute__((naked, section(".vectors"), used)) void board_reset(void);
__attribute__((naked, section(".vectors"), used)) void board_reset(void) {
    __asm__ volatile(".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\nla sp, "
                     "board_stack_end\nj board_begin");
}
#endif

void board_say(const char *text) {
    enum { WRITE0 = 4 };
    semihosting(WRITE0, text);
}

void board_end(int code) {
    enum { EXIT_EXTENDED = 0x20 };
    static uint32_t reason[2] = {0x20026}; /* the application ends */
    reason[1] = (uint32_t)code;
    semihosting(EXIT_EXTENDED, reason);
}
