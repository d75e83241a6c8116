package gitstore

import (
	"io"
	"os"
	"path/filepath"
)

// RemoteURL is where a push to a remote goes, by the configuration of the repository
// itself; "" where that does not say it in one way.
func RemoteURL(dir, remote string) string {
	r, err := Find(dir)
	if err != nil || r == nil {
		return ""
	}
	f, err := os.Open(filepath.Join(r.Common, "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return ""
	}
	list, err := parseConfig(string(text))
	if err != nil {
		return ""
	}
	return pushURL(list, remote)
}

// pushURL finds it among settings.
func pushURL(list []setting, remote string) string {
	var urls, pushes []string
	for _, s := range list {
		switch {
		case s.section == "url" || s.section == "include" || s.section == "includeif": // it may be another one
			return ""
		case s.section == "remote" && s.sub == remote && s.key == "url":
			urls = append(urls, s.value)
		case s.section == "remote" && s.sub == remote && s.key == "pushurl":
			pushes = append(pushes, s.value)
		}
	}
	if len(pushes) > 0 {
		urls = pushes
	}
	if len(urls) != 1 {
		return ""
	}
	return urls[0]
}
