package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	m := Main{Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Browse: browse}
	os.Exit(m.Run(ctx, os.Args[1:]))
}
