// Package bawn holds the words of Bawn: what an agent wants to do (Action),
// what becomes of it (Verdict, Decision), inside which walls (Isolation,
// Capability), on whose word (Answer, Ticket) and what is written
// down (Event).
//
// The package imports only the standard library, does no I/O and starts
// nothing, so that every other package can speak its language without knowing
// any other. Zero values refuse: the zero Verdict denies, the zero Isolation
// has no writable path and no network, the zero Ticket permits nothing.
package bawn
