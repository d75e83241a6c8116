// Package policy turns an action into a decision. A decision is a function of
// its inputs. The package reads no file, clock, environment or network, so the
// same question always gets the same answer, and tests need no machine.
package policy
