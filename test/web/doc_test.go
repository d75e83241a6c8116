// Package web_test drives the page in a real browser: Chromium, by Playwright,
// with keys, fingers and a virtual passkey. The page's files are those that
// are embedded; the server beneath them speaks the real protocol and says what
// a test wants to be said (fixture_test.go).
//
// The steps are in page/*.mjs, one function a scenario. A line that one of
// them writes to the browser's console, a request to another origin and a
// breach of the page's policy fail it.
package web_test
