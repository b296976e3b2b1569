package sqlstore

import (
	"context"
	"database/sql/driver"
)

// onStatement is told of every statement before the driver runs it.
type onStatement func(ctx context.Context, query string)

// probed wraps the connections of a driver; without a hook the driver stays as it is.
func probed(c driver.Connector, hook onStatement) driver.Connector {
	if hook == nil {
		return c
	}
	return probeConnector{Connector: c, hook: hook}
}

type probeConnector struct {
	driver.Connector
	hook onStatement
}

func (c probeConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := conn.(fullConn)
	if !ok {
		// All drivers used here offer the whole interface; a probe that sees half is worse.
		panic("sqlstore: driver without contexts")
	}
	return &probeConn{fullConn: inner, hook: c.hook}, nil
}

// fullConn is what database/sql looks for in a connection.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
}

type probeConn struct {
	fullConn
	hook onStatement
}

// IsValid implements driver.Validator for the drivers that do.
func (c *probeConn) IsValid() bool {
	v, ok := c.fullConn.(driver.Validator)
	return !ok || v.IsValid()
}

// Unwrap lets the driver's own functions find the connection.
func (c *probeConn) Unwrap() driver.Conn { return c.fullConn }

func (c *probeConn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	c.hook(ctx, query)
	return c.fullConn.ExecContext(ctx, query, args)
}

func (c *probeConn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	c.hook(ctx, query)
	return c.fullConn.QueryContext(ctx, query, args)
}

func (c *probeConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.hook(ctx, "BEGIN")
	return c.fullConn.BeginTx(ctx, o)
}

func (c *probeConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	st, err := c.fullConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	inner, ok := st.(fullStmt)
	if !ok {
		panic("sqlstore: driver statement without contexts") // see Connect
	}
	return &probeStmt{fullStmt: inner, query: query, hook: c.hook}, nil
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type probeStmt struct {
	fullStmt
	query string
	hook  onStatement
}

func (s *probeStmt) ExecContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Result, error) {
	s.hook(ctx, s.query)
	return s.fullStmt.ExecContext(ctx, args)
}

func (s *probeStmt) QueryContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Rows, error) {
	s.hook(ctx, s.query)
	return s.fullStmt.QueryContext(ctx, args)
}
