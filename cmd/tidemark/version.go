package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

type versionCommand struct{}

func (c *versionCommand) run(_ context.Context, m *Main) error {
	_, err := fmt.Fprintln(m.Stdout, buildText())
	return err
}

// buildText describes the build: version, commit, compiler, system.
func buildText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "tidemark (unknown build)"
	}
	parts := []string{"tidemark", buildVersion(info)}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit != "" {
		parts = append(parts, "commit "+commit+changed)
	}
	parts = append(parts, info.GoVersion, runtime.GOOS+"/"+runtime.GOARCH)
	return strings.Join(parts, " ")
}

func buildVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "development"
}
