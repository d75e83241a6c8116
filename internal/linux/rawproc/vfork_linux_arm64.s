#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// The child runs on the parent's stack while the parent sleeps. The return
// address is in the link register, of which each of them has its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-24
	MOVD	flags+0(FP), R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$0, R5
	MOVD	$220, R8 // SYS_CLONE
	SVC
	CMN	$4095, R0
	BCS	failed
	MOVD	R0, pid+8(FP)
	MOVD	ZR, errno+16(FP)
	RET
failed:
	NEG	R0, R0
	MOVD	ZR, pid+8(FP)
	MOVD	R0, errno+16(FP)
	RET

// func clone(flags, stack, tls, self uintptr) (pid, errno uintptr)
//
// The argument of childMain lies on top of its stack already. The goroutine is
// in a register of its own.
TEXT ·clone(SB),NOSPLIT|NOFRAME,$0-48
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	self+24(FP), R9
	MOVD	$220, R8 // SYS_CLONE
	SVC
	CMN	$4095, R0
	BCS	failed
	CBZ	R0, child
	MOVD	R0, pid+32(FP)
	MOVD	ZR, errno+40(FP)
	RET
child:
	MOVD	R9, g
	BL	·childMain(SB)
	BRK
failed:
	NEG	R0, R0
	MOVD	ZR, pid+32(FP)
	MOVD	R0, errno+40(FP)
	RET
