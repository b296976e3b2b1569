package clusterdemo

import (
	"os/exec"
	"syscall"
)

// apart keeps an interrupt of the terminal from the process, which is ended in order, and has it end
// when this process dies without a word.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
