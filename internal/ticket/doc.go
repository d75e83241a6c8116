// Package ticket signs approved actions and redeems what was signed, each once. A ticket
// names one session and the digest of the action's meaning. It is an Ed25519 signature
// over bytes in a DSSE envelope (https://github.com/secure-systems-lab/dsse), and one
// ticket has exactly one encoding.
//
// Issuer holds the private key and belongs to the relay. Verifier holds public
// keys and the tickets that were used, and belongs to the executor: it has no
// way to sign. What can't be read, is not signed by a key that is trusted now,
// or was used before is refused with the name of a rule.
package ticket
