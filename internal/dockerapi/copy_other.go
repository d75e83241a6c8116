//go:build !linux

package dockerapi

func (v View) copyIn(guest, _ string, _ func(more load) error) error {
	if err := v.covers(guest); err != nil {
		return err
	}
	return refuse(RuleMount, "copy files in (docker cp), or use a volume", "nothing of the workspace can be mounted on this system")
}
