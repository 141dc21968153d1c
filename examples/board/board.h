/* An example writes text to the board, and ends. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Writes text to whoever runs the board. */
void board_say(const char *text);
/* Ends the program, which an emulator reports; a board stops. */
void board_end(int code);

/* Returns how many instructions have run, in qemu with -icount shift=0: on the Cortex-M4, in steps of 40, up to 671 million, from the first call on. */
uint32_t board_instructions(void);
/* Returns the most bytes of stack that the program has used so far. */
size_t board_stack_used(void);

#endif
