package gitstore

import "testing"

// TestPushURL finds where a push goes only where there is one answer.
func TestPushURL(t *testing.T) {
	const origin = "[remote \"origin\"]\n\turl = https://a/app.git\n"
	for text, want := range map[string]string{
		origin:                                 "https://a/app.git",
		origin + "\tpushurl = https://b/app\n": "https://b/app",
		origin + "\turl = https://c/app.git\n": "",
		origin + "[url \"https://evil/\"]\n\tinsteadOf = https://a/\n": "",
		origin + "[include]\n\tpath = x\n":                             "",
		"[remote \"other\"]\n\turl = https://a":                        "",
		"":                                                             "",
	} {
		list, err := parseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := pushURL(list, "origin"); got != want {
			t.Errorf("%s\ngot %q, want %q", text, got, want)
		}
	}
}
