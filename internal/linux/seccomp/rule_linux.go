package seccomp

import "golang.org/x/sys/unix"

// An Action is what becomes of a call. The zero Action kills.
type Action uint32

const (
	Kill   Action = 0 // becomes SECCOMP_RET_KILL_PROCESS, see ret
	Allow  Action = unix.SECCOMP_RET_ALLOW
	Notify Action = unix.SECCOMP_RET_USER_NOTIF
)

// Errno is the action that refuses a call with an errno.
func Errno(e unix.Errno) Action { return Action(unix.SECCOMP_RET_ERRNO | uint32(e)) }

// ret returns the filter's return value. SECCOMP_RET_KILL_THREAD is zero as
// well, and killing one thread of a process is never wanted.
func (a Action) ret() uint32 {
	if a == Kill {
		return unix.SECCOMP_RET_KILL_PROCESS
	}
	return uint32(a)
}

// A Cond is a test of the lower 32 bits of one argument: all arguments tested
// here are ints or flags of which the kernel reads no more.
type Cond struct {
	Arg   int
	Mask  uint32 // the bits that are looked at
	Value uint32 // holds if they equal this …
	Any   bool   // … or, instead, if any of them is set
}

// AnySet holds if argument arg has any bit of mask.
func AnySet(arg int, mask uint32) Cond { return Cond{Arg: arg, Mask: mask, Any: true} }

// Equal holds if argument arg is v.
func Equal(arg int, v uint32) Cond { return Cond{Arg: arg, Mask: ^uint32(0), Value: v} }

// MaskedEqual holds if the bits of mask in argument arg are v.
func MaskedEqual(arg int, mask, v uint32) Cond { return Cond{Arg: arg, Mask: mask, Value: v} }

// A Call is a system call's number and name.
type Call struct {
	Nr   uint32
	Name string
}

// A Rule gives one action to some calls, if all conditions hold.
type Rule struct {
	Calls  []Call
	Conds  []Cond
	Action Action
	Why    string
}
