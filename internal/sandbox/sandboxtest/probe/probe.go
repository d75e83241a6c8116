// Package probe is shared by the harness of sandboxtest and its victim program.
// It has the description of the victim's world, its answers, and the names that
// both sides must agree on.
package probe

// A World is what the victim is told of the fixtures. It travels as JSON in an
// argument, because a sandbox may drop the environment.
type World struct {
	State     string `json:"state"`     // Present or Absent: which workspace this is
	Workspace string `json:"workspace"` // absolute, the working directory
	Token     string `json:"token"`     // in the names and contents of everything made by this run

	Out      string `json:"out"`      // a directory of the host, same file system as the workspace
	Secret   string `json:"secret"`   // a file in a directory that may not be read
	Denied   string `json:"denied"`   // a file that may not be read, in a directory that may
	Writable string `json:"writable"` // a writable directory of the host: WritableKept in it is read-only, WritableClosed hidden
	Home     string `json:"home"`
	Config   string `json:"config"` // Bawn's own configuration directory
	Data     string `json:"data"`   // Bawn's own state directory
	SetID    string `json:"setID"`  // a copy of the victim with another owner's set-user-ID bit, or ""

	TCP4     int    `json:"tcp4"`     // ports on the host's loopback that answer Answer
	TCP6     int    `json:"tcp6"`     // 0 where the host has no IPv6
	UDP4     int    `json:"udp4"`     //
	External string `json:"external"` // host:port, the same by another address of the host, or ""
	Inbound  int    `json:"inbound"`  // port that the host keeps dialling

	Stream    string `json:"stream"` // UNIX sockets of the host by path
	Datagram  string `json:"datagram"`
	SeqPacket string `json:"seqpacket"`
	Agent     string `json:"agent"`    // stands in for SSH_AUTH_SOCK
	Bus       string `json:"bus"`      // stands in for the session bus
	Abstract  string `json:"abstract"` // prefix of abstract names: "-stream", "-datagram", "-seqpacket" follow

	PID        int               `json:"pid"`     // a process of the host, same user
	PIDMark    string            `json:"pidMark"` // in its command line
	SysVKey    int               `json:"sysvKey"` // of a shared memory segment, a semaphore set and a queue
	Shm        string            `json:"shm"`     // name of a file in /dev/shm
	Queue      string            `json:"queue"`   // name of a POSIX message queue, no slash
	Namespaces map[string]string `json:"namespaces"`
	HostTypes  []string          `json:"hostTypes"` // kinds of file system of the root and of the workspace
	Rlimits    map[string]Rlimit `json:"rlimits"`
	Launcher   int               `json:"launcher"`   // session id of who starts the sandbox
	OpenFiles  int               `json:"openFiles"`  // most descriptors the sandbox was told to give, or 0
	FileSizeMB int64             `json:"fileSizeMB"` // largest file, or 0
}

// A Rlimit is a soft and a hard resource limit; see getrlimit(2).
type Rlimit struct{ Cur, Max uint64 }

// States of the workspace.
const (
	Present = "present" // every protected name is there
	Absent  = "absent"  // none is
)

// What listeners of the host answer, and what attacks write.
const (
	Answer = "HOSTSVC"
	Evil   = "#!/bin/sh\nexit 66\n"
	Evil1  = "exit 66" // on one line
)

// SecretVariable is in the environment of the process that starts the sandbox.
const SecretVariable = "API_KEY"

// Kinds of outcome.
const (
	Succeeded = "succeeded"
	Refused   = "refused"
	Failed    = "error"
)

// Errno names that no errno has.
const (
	Nothing = "absent" // the call worked and there was nothing behind it
	Killed  = "SIGSYS" // the process was killed by a system call filter
)

// An Outcome is what one check came to. Errno is set where it was refused.
type Outcome struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Errno   string `json:"errno,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// An Info says what a check is for; `victim list` prints them.
type Info struct {
	Name        string   `json:"name"`
	Family      string   `json:"family"`
	State       string   `json:"state"`
	Why         string   `json:"why"`
	Want        []string `json:"want,omitempty"`        // acceptable refusals
	Works       bool     `json:"works,omitempty"`       // must succeed inside: a use that has to stay possible
	Unavailable []string `json:"unavailable,omitempty"` // refusals without a sandbox: the machine does not have it
	NoControl   string   `json:"noControl,omitempty"`   // why there can't be a control
	RootOnly    bool     `json:"rootOnly,omitempty"`    // any kernel refuses it to an ordinary user
	Changes     bool     `json:"changes,omitempty"`     // leaves a change that the oracle must see
	Shares      bool     `json:"shares,omitempty"`      // is done in one process with others
	Git         string   `json:"git,omitempty"`         // the git directory, below the workspace, in which its target lies
}

// An Ask is what "victim serve" reads: one check, and the world as it is by now.
type Ask struct {
	Name  string `json:"name"`
	World World  `json:"world"`
}

// A Fetched is what came of one word of program secretclient.
type Fetched struct {
	Asked  string `json:"asked"`
	Status int    `json:"status,omitempty"` // of HTTP; 0 where there was no answer
	Text   string `json:"text"`             // the answer's, the variable's, or where something was found
	Failed string `json:"failed,omitempty"`
}
