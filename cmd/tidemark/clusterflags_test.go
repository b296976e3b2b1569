package main

import "testing"

// What makes no sense of the flags of a cluster is refused before anything is opened.
func TestClusterFlags(t *testing.T) {
	secret := secretFile(t, testSecret)
	file, _ := database(t)
	const server = "--facts=postgres://u@127.0.0.1:1/d"
	for _, c := range []struct {
		says string
		args []string
	}{
		{"needs --facts on a server", []string{file, "--profile", "workspace", "--node", "n"}},
		{"needs --facts on a server", []string{file, "--profile", "central"}},
		{"needs --node", []string{server, "--profile", "workspace"}},
		{"--node goes with --profile workspace only", []string{file, "--node", "n"}},
		{"--advertise goes with --profile workspace only", []string{server, "--profile", "central", "--advertise", "http://a"}},
		{"--workspaces goes with --profile workspace only", []string{server, "--profile", "central", "--workspaces", "w"}},
		{"--node: ", []string{server, "--profile", "workspace", "--node", ".."}},
		{"set --advertise", []string{server, "--profile", "workspace", "--node", "n", "--listen", "0.0.0.0:0"}},
		{"set --advertise", []string{server, "--profile", "workspace", "--node", "n", "--listen", ":0"}},
		{"want an address like", []string{server, "--profile", "workspace", "--node", "n", "--advertise", "n1:8480"}},
		{"want an address like", []string{server, "--profile", "workspace", "--node", "n", "--advertise", "ftp://n1"}},
		{"want an address like", []string{server, "--profile", "workspace", "--node", "n", "--advertise", "http://me@n1"}},
		{"names \"w\" twice", []string{server, "--profile", "workspace", "--node", "n", "--workspaces", "w,v,w"}},
		{"--workspaces: ", []string{server, "--profile", "workspace", "--node", "n", "--workspaces", "*"}},
		{"--lease is 1ms", []string{server, "--profile", "workspace", "--node", "n", "--lease", "1ms"}},
		{"--profile must be one of", []string{file, "--profile", "some"}},
	} {
		args := append([]string{"serve", "--jwt-secret-file", secret, "--admin-listen", "off"}, c.args...)
		run(t, args...).fails(t, exitUsage, c.says)
	}
}
