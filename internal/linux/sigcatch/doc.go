// Package sigcatch catches signals as os/signal does, at a fraction of its
// cost: there each signal takes two changes of thread before it is caught,
// which for eight of them is more than a session's namespaces take. Here a
// handler of our own writes the signal's number to a pipe.
package sigcatch
