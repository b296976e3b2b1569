//go:build !unix

package clusterdemo

import (
	"errors"
	"os/exec"
)

var errSignals = errors.New("this system has no signals")

func apart(*exec.Cmd)         {}
func pause(*exec.Cmd) error   { return errSignals }
func resume(*exec.Cmd) error  { return errSignals }
func ask(cmd *exec.Cmd) error { return cmd.Process.Kill() }
