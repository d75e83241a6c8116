// Package dist tests releases: what scripts/dist builds is installed in a clean Debian,
// used, upgraded and removed.
package dist
