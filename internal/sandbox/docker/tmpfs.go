package docker

import "fmt"

// tmpfsOptions are those of a place of the session's own (tmpfs(5)); an owner
// below 0 is the engine's. Programs are executed there, as in /tmp elsewhere,
// which the engine would forbid by itself.
func tmpfsOptions(sizeMB int64, mode uint32, uid, gid int) string {
	o := fmt.Sprintf("rw,exec,nosuid,nodev,mode=%04o", mode)
	if uid >= 0 {
		o += fmt.Sprintf(",uid=%d,gid=%d", uid, gid)
	}
	if sizeMB > 0 {
		o += fmt.Sprintf(",size=%dm", sizeMB)
	}
	return o
}
