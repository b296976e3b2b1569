package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	driversql "github.com/go-sql-driver/mysql"

	"github.com/tidemark-im/tidemark/facts"
)

const mysqlPort = "3306"

func parseMySQL(name string, o Options) (*server, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, errors.New("want mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	database := strings.TrimPrefix(u.Path, "/")
	if u.Host == "" || database == "" || strings.Contains(database, "/") {
		return nil, errors.New("want mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	// The driver reads the parameters; everything else may hold what its own form could not.
	cfg, err := driversql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	if u.Port() == "" {
		u.Host += ":" + mysqlPort
	}
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, database
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.ClientFoundRows, cfg.InterpolateParams, cfg.ParseTime = true, true, true
	cfg.MultiStatements = false
	cfg.MaxAllowedPacket = 0 // as the server says
	cfg.Logger = silent{}    // what goes wrong comes back as an error
	cfg.DialFunc = dialer().DialContext
	if cfg.Timeout == 0 {
		cfg.Timeout = dialTimeout
	}
	connector, err := driversql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	m := &mysqlDatabase{name: database, o: o}
	return &server{
		d: mysqlDialect, settle: m.settle, found: m.found,
		dial: func(r role) driver.Connector {
			return setupConnector{connector, func(ctx context.Context, c fullConn) error {
				return m.setup(ctx, c, r)
			}}
		},
	}, nil
}

// keptIdle is for how long a session that nobody uses stays.
const keptIdle = 2_147_483 * time.Second

// silent drops what the driver would print.
type silent struct{}

// Print implements the driver's Logger.
func (silent) Print(...any) {}

// mysqlDatabase is a database of a server.
type mysqlDatabase struct {
	name string
	o    Options
}

// setup makes a session ready. A value that does not fit is an error, and a session that nobody
// uses for a while stays.
func (m *mysqlDatabase) setup(ctx context.Context, c fullConn, r role) error {
	wait := defaultBusyTimeout
	if m.o.BusyTimeout > 0 {
		wait = m.o.BusyTimeout
	}
	if idle := m.o.idle(r); idle > 0 {
		wait = min(wait, idle)
	}
	seconds := int(math.Ceil(wait.Seconds()))
	level := "READ COMMITTED"
	if r == roleReading {
		level = "REPEATABLE READ"
	}
	for _, text := range [...]string{
		fmt.Sprintf(`SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',
  SESSION autocommit = 1, SESSION innodb_lock_wait_timeout = %d, SESSION wait_timeout = %d`, seconds,
			int(keptIdle.Seconds())),
		"SET SESSION TRANSACTION ISOLATION LEVEL " + level,
	} {
		if err := run(ctx, c, text); err != nil {
			return err
		}
	}
	if err := m.setupVersion(ctx, c, r); err != nil || r != roleOwning {
		return err
	}
	// The name of a lock is short, and the same for the whole server.
	lock := fmt.Sprintf("tidemark %x", sha256.Sum256([]byte(m.name)))[:40]
	got, err := ask(ctx, c, fmt.Sprintf("SELECT GET_LOCK('%s', %d)", lock, seconds))
	if err == nil && got[0] != int64(1) {
		err = errOwned()
	}
	return err
}

// setupVersion says what only some servers understand. MySQL itself has no limit of idle transactions:
// there sessions without one end, too, and are replaced.
func (m *mysqlDatabase) setupVersion(ctx context.Context, c fullConn, r role) error {
	version, err := ask(ctx, c, "SELECT VERSION()")
	if err != nil {
		return err
	}
	limit := "wait_timeout"
	switch text := textOf(version[0]); {
	case strings.Contains(text, "TiDB"):
		limit = "tidb_idle_transaction_timeout"
		err = setupTiDB(ctx, c)
	case strings.Contains(text, "MariaDB"):
		limit = "idle_transaction_timeout"
	}
	idle := m.o.idle(r)
	if err != nil || idle == 0 {
		return err
	}
	return run(ctx, c, fmt.Sprintf("SET SESSION %s = %d", limit, int(math.Ceil(idle.Seconds()))))
}

// setupTiDB has transactions lock what they write, and answers come from who may write.
func setupTiDB(ctx context.Context, c fullConn) error {
	err := run(ctx, c, "SET SESSION tidb_txn_mode = 'pessimistic', SESSION tidb_replica_read = 'leader'")
	if err != nil {
		return err
	}
	mode, err := ask(ctx, c, "SELECT @@tidb_txn_mode, @@tidb_replica_read")
	if err != nil {
		return err
	}
	if textOf(mode[0]) != "pessimistic" || textOf(mode[1]) != "leader" {
		return fmt.Errorf("%w: transactions are %s, replicas answer as %s; want pessimistic and leader",
			facts.ErrUnavailable, textOf(mode[0]), textOf(mode[1]))
	}
	return nil
}

func textOf(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// settle refuses a database that holds something else.
func (m *mysqlDatabase) settle(ctx context.Context, db *sql.DB) error {
	var tables, ours int
	err := db.QueryRowContext(ctx, `SELECT count(*), count(CASE WHEN table_name = ? THEN 1 END)
  FROM information_schema.tables WHERE table_schema = database()`, mysqlDialect.table).
		Scan(&tables, &ours)
	if err == nil && tables > 0 && ours == 0 {
		err = fmt.Errorf("%w: %w: database %q holds other tables", facts.ErrUnavailable, ErrCorrupt, m.name)
	}
	return err
}

func (m *mysqlDatabase) found(ctx context.Context, db *sql.DB) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.tables
  WHERE table_schema = database() AND table_name = ?`, mysqlDialect.table).Scan(&n)
	return n > 0, err
}
