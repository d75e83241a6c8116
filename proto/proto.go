// Package proto holds the descriptions of the relay's API (bawn/v1) with the
// Go code that is generated from them. See docs/dev/internals/relay-api.md.
package proto

//go:generate sh -c "cd .. && bin/buf lint && bin/buf generate"
