//go:build unix && !linux

package clusterdemo

import (
	"os/exec"
	"syscall"
)

// apart keeps an interrupt of the terminal from the process, which is ended in order.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
