// Package crash_test kills processes of sessions at random moments. Afterwards it compares
// the commands that ran with the answers that were given and with the log.
package crash_test
