#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// The child runs on the parent's stack while the parent sleeps. It would
// overwrite the return address there, so that is kept in a register, of which
// each of them has its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	flags+0(FP), DI
	XORQ	SI, SI
	XORQ	DX, DX
	XORQ	R10, R10
	XORQ	R8, R8
	XORQ	R9, R9
	MOVQ	$56, AX // SYS_CLONE
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $-4095
	JCC	failed
	MOVQ	AX, pid+8(FP)
	MOVQ	$0, errno+16(FP)
	RET
failed:
	NEGQ	AX
	MOVQ	$0, pid+8(FP)
	MOVQ	AX, errno+16(FP)
	RET
