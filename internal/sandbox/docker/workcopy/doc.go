// Package workcopy takes a workspace to another machine and brings back what
// a guest has changed of it there, both as tar streams (pax(1)). No provider works
// elsewhere today.
//
// The way back is the dangerous one: the process that made that stream had the guest in
// it. It is kept and read as a whole before anything is written ([Read]), and refused
// as a whole where it is not one that tar makes. Then each change is checked against
// the rules and against the workspace as it was taken ([Compare]), and carried out
// below an open directory, without following links ([Apply]). What the host's side has
// changed meanwhile stays.
package workcopy
