package sandbox

// changesKept is how many changes wait to be fetched.
const changesKept = 64

// A ChangeList buffers the changes of one process between the provider, which
// notices them, and a reader, which need not fetch them. NewChangeList makes one.
type ChangeList struct{ kept chan Change }

// NewChangeList returns a list that is empty.
func NewChangeList() ChangeList { return ChangeList{make(chan Change, changesKept)} }

// Put hands a change on and does not wait: where nobody fetches them, an old one
// gives way. It is for one goroutine at a time, and not for after End.
func (l ChangeList) Put(c Change) {
	for {
		select {
		case l.kept <- c:
			return
		default:
			select {
			case <-l.kept:
			default:
			}
		}
	}
}

// End says that there will be no more changes. It is called once.
func (l ChangeList) End() { close(l.kept) }

// Changes delivers each stop, and at last the end; then it is closed.
func (l ChangeList) Changes() <-chan Change { return l.kept }
