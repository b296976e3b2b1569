package main

import "context"

type demoCommand struct{}

func (c *demoCommand) run(_ context.Context, m *Main) error { return nil }

func browse(ctx context.Context, url string) error { return nil }
