// Package policy turns an action into a decision. A decision is a function of
// its inputs: the package reads no file, no clock, no environment and no
// network, so the same question always gets the same answer and its tests need
// no machine.
package policy
