// Package bawn holds the shared types: what an agent wants to do (Action), the
// decision (Verdict, Decision), the walls around it (Isolation, Capability),
// who permits it (Answer, Ticket) and the record (Event).
//
// The package imports only the standard library, does no I/O and starts
// nothing, so that every other package can speak its language without knowing
// any other. Zero values refuse: the zero Verdict denies, the zero Isolation
// has no writable path and no network, the zero Ticket permits nothing.
package bawn
