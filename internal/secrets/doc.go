// Package secrets is the vault: values in the system's keyring, or in files encrypted
// with age if the system has no keyring, and never plain. Beside the values stands an
// index without values: names, stores, bindings.
//
// A guest gets a placeholder of the value's shape; who puts the value into a
// request is handed the vault as a bawn.SecretSource.
//
// A file of the vault begins with a line that says which value it is, so files that were
// exchanged are refused.
//
// No value is in an argument, a variable, a log or an error text. The package's own
// copies lie in separate memory that is locked if
// RLIMIT_MEMLOCK permits it (Vault.Notes says if not), left out of core dumps,
// and zeroed by Remove and Close. The keyring's library and age pass values
// through the Go heap, as strings or buffers that the runtime frees without
// zeroing. Between this process and the keyring's daemon values cross the session
// bus unencrypted. Harden keeps the whole process out of core dumps and from
// being read by others of the same user.
package secrets
