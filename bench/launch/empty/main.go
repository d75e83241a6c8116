// Command empty does nothing. It is what a Go program costs at least: the
// start-up of bawn is compared with it.
package main

func main() {}
