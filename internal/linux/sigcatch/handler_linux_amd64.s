#include "textflag.h"

// The kernel calls this on the thread's signal stack, with the signal in DI.
TEXT ·handler(SB),NOSPLIT|NOFRAME,$0-0
	SUBQ	$16, SP
	MOVB	DI, 0(SP)
	MOVL	·pipeFD(SB), DI
	MOVQ	SP, SI
	MOVQ	$1, DX
	MOVQ	$1, AX // SYS_WRITE
	SYSCALL
	ADDQ	$16, SP
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0-0
	MOVQ	$15, AX // SYS_RT_SIGRETURN
	SYSCALL
	INT	$3

TEXT ·handlerPC(SB),NOSPLIT,$0-8
	LEAQ	·handler(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·restorerPC(SB),NOSPLIT,$0-8
	LEAQ	·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
