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

// func clone(flags, stack, tls, self uintptr) (pid, errno uintptr)
//
// The argument of childMain lies on top of its stack already. The wrapper by
// which assembly calls Go loads g from the thread's own memory.
TEXT ·clone(SB),NOSPLIT|NOFRAME,$0-48
	MOVQ	flags+0(FP), DI
	ORQ	$0x80000, DI // CLONE_SETTLS
	MOVQ	stack+8(FP), SI
	XORQ	DX, DX
	XORQ	R10, R10
	MOVQ	tls+16(FP), R8
	XORQ	R9, R9
	MOVQ	$56, AX // SYS_CLONE
	SYSCALL
	CMPQ	AX, $-4095
	JCC	failed
	TESTQ	AX, AX
	JZ	child
	MOVQ	AX, pid+32(FP)
	MOVQ	$0, errno+40(FP)
	RET
child:
	CALL	·childMain(SB)
	INT	$3
failed:
	NEGQ	AX
	MOVQ	$0, pid+32(FP)
	MOVQ	AX, errno+40(FP)
	RET
