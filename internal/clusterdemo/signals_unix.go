//go:build unix

package clusterdemo

import (
	"os/exec"
	"syscall"
)

func pause(cmd *exec.Cmd) error  { return cmd.Process.Signal(syscall.SIGSTOP) }
func resume(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGCONT) }
func ask(cmd *exec.Cmd) error    { return cmd.Process.Signal(syscall.SIGTERM) }
