package client

import "fmt"

// OnStep has a function called between the steps of an operation.
func (o *Options) OnStep(fn func(step string)) { o.onStep = fn }

// Fill lets the file grow by nothing any more; Empty takes that back.
func (c *Client) Fill() error { return c.limitPages(1) }

// Empty lets the file grow again.
func (c *Client) Empty() error { return c.limitPages(1 << 30) }

func (c *Client) limitPages(n int) error {
	_, err := c.store.db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n))
	return err
}

// Normalize is how addresses are compared.
func Normalize(address string) (string, error) { return normalize(address) }
