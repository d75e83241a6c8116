// Package sigv4 reads, verifies and makes signatures of AWS's Signature Version
// 4 over requests that others have made, over the headers and the payload hash
// that they chose. See IAM User Guide, "Create a signed AWS API request", and
// S3 API Reference, "Authenticating Requests". It knows no clock, does no I/O,
// and keeps nothing.
package sigv4
