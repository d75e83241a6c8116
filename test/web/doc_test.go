// Package web_test drives the page in a real browser: Chromium, by Playwright,
// with keyboard, touch and a virtual passkey. The page's files are the embedded ones. The
// server speaks the real protocol and answers what the test sets (fixture_test.go).
//
// The steps are in page/*.mjs, one function a scenario. A scenario fails if it writes to the
// browser's console, sends a request to another origin, or breaks the page's policy.
package web_test
