// Package sigcatch catches signals as os/signal does, at a fraction of its
// cost. There each caught signal takes two thread switches; for eight signals
// that is more than a session's namespaces take. Here a handler of our own
// writes the signal's number to a pipe.
package sigcatch
