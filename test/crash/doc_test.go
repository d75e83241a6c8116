// Package crash_test kills what a session consists of, at random moments and at
// work, and compares afterwards what was executed with what was answered and
// recorded.
package crash_test
