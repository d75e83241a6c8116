package launch

import "testing"

func TestLoopbackPort(t *testing.T) {
	for value, want := range map[string]uint16{
		"http://127.0.0.1:11434": 11434, "http://localhost:8080/v1": 8080, "https://[::1]": 443, "http://127.3.2.1/": 80, "http://[::ffff:127.0.0.1]:5": 5,
		"https://api.example.com": 0, "http://10.0.0.1:80": 0, "localhost:80": 0, "": 0, "true": 0, "http://localhost:x": 0, "http://localhost:70000": 0, "ftp://localhost": 0,
	} {
		if got, ok := loopbackPort(value); got != want && ok || ok != (want != 0) {
			t.Errorf("%q: got %d, %v, want %d", value, got, ok, want)
		}
	}
}
