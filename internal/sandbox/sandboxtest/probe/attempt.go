package probe

// An Attempt is what came of one thing that the victim was told to try.
type Attempt struct {
	Op     string `json:"op"`
	Answer string `json:"answer,omitempty"` // what the other side said
	From   string `json:"from,omitempty"`   // whence a datagram came
	Local  string `json:"local,omitempty"`  // the own address
	Errno  string `json:"errno,omitempty"`  // "" where it worked
	Micros int64  `json:"micros"`           // how long it took
}
