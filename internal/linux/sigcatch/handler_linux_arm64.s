#include "textflag.h"

// The kernel calls this on the thread's signal stack, with the signal in R0
// and the way back in the link register.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0-0
	SUB	$16, RSP
	MOVB	R0, (RSP)
	MOVW	·pipeFD(SB), R0
	MOVD	RSP, R1
	MOVD	$1, R2
	MOVD	$64, R8 // SYS_WRITE
	SVC
	ADD	$16, RSP
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0-0
	MOVD	$139, R8 // SYS_RT_SIGRETURN
	SVC
	BRK

TEXT ·handlerPC(SB),NOSPLIT,$0-8
	MOVD	$·handler(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// The kernel brings its own.
TEXT ·restorerPC(SB),NOSPLIT,$0-8
	MOVD	ZR, ret+0(FP)
	RET
