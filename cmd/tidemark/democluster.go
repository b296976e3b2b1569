package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/clusterdemo"
)

// cluster runs three nodes, a central process and private databases, and a page to break them on.
func (c *demoCommand) cluster(ctx context.Context, m *Main) (err error) {
	log := c.logger(m.Stderr)
	var ports net.ListenConfig
	l, err := ports.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // the server has closed it
	if host, _, _ := net.SplitHostPort(l.Addr().String()); !net.ParseIP(host).IsLoopback() {
		return wrongUsage("--listen: the page has buttons that kill processes: only this machine may see it")
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(m.Stdout, "Starting PostgreSQL, a central process and three nodes ...")
	if err != nil {
		return err
	}
	cluster, err := clusterdemo.Start(ctx, clusterdemo.Options{
		Binary: binary, Env: demoEnvironment(os.Environ()), Every: c.Every, Now: m.Now,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	page := logHTTP(log, cluster.Page(), httpapi.Limits{})
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(page.Serve(l)) })
	group.Go(func() error {
		<-serving.Done()
		return page.Close()
	})
	group.Go(func() error { return cluster.Run(serving) })
	if err := c.tellCluster(ctx, m, "http://"+l.Addr().String(), cluster); err != nil {
		return err
	}
	return group.Wait()
}

// demoEnvironment leaves out what would configure the processes of a demo.
func demoEnvironment(all []string) []string {
	return slices.DeleteFunc(all, func(assignment string) bool {
		return strings.HasPrefix(assignment, "TIDEMARK_") && !strings.HasPrefix(assignment, "TIDEMARK_TEST_")
	})
}

func (c *demoCommand) tellCluster(
	ctx context.Context, m *Main, page string, cluster *clusterdemo.Cluster,
) error {
	text := "\nKill a node, pause one, and watch who takes over:\n\n  " + page + "\n\n" +
		"Clients come to " + cluster.Central.Address + "; the nodes are\n"
	for _, n := range cluster.Nodes {
		text += "  " + n.Name + "  " + n.Address + "\n"
	}
	text += "\nEverything goes with the demo. Ctrl+C ends it.\n"
	if _, err := fmt.Fprint(m.Stdout, text); err != nil {
		return err
	}
	if c.Open {
		return m.Browse(ctx, page)
	}
	return nil
}
