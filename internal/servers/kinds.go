//go:build unix

package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Kinds are the servers that are known.
var Kinds = []*Kind{
	{
		Name: "postgres", Variable: "TIDEMARK_TEST_POSTGRES",
		Binaries: []string{"postgres"}, places: []string{"/usr/lib/postgresql/*/bin"},
		Packages: "postgresql", users: []string{"postgres"},
		end:     syscall.SIGINT, // a fast shutdown, which does not wait for clients
		prepare: preparePostgres, args: postgresArgs, Answers: postgresAnswers,
		dsn: func(port int) string {
			return fmt.Sprintf("postgres://postgres@%s:%d/postgres?sslmode=disable", loopback, port)
		},
	},
	{
		Name: "mysql", Variable: "TIDEMARK_TEST_MYSQL",
		Binaries: []string{"mariadbd", "mysqld"}, places: []string{"/usr/sbin"},
		Packages: "mariadb-server", users: []string{"mysql"},
		end:     syscall.SIGTERM,
		prepare: prepareMariaDB, args: mariaDBArgs, Answers: mysqlAnswers,
		dsn: func(port int) string {
			return fmt.Sprintf("tidemark:tidemark@tcp(%s:%d)/tidemark", loopback, port)
		},
	},
	{
		Name: "redis", Variable: "TIDEMARK_TEST_REDIS",
		Binaries: []string{"redis-server", "valkey-server"},
		Packages: "redis-server", end: syscall.SIGTERM,
		args: redisArgs, Answers: redisAnswers,
		dsn: func(port int) string { return fmt.Sprintf("redis://%s:%d/0", loopback, port) },
	},
}

func (at *place) data() string { return filepath.Join(at.dir, "data") }

func preparePostgres(ctx context.Context, at place) error {
	binary, err := filepath.EvalSymlinks(at.binary) // what belongs to it lies beside it
	if err != nil {
		return err
	}
	initdb := filepath.Join(filepath.Dir(binary), "initdb")
	return at.command(ctx, initdb, "--pgdata", at.data(), "--username", "postgres",
		"--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync").Run()
}

func postgresArgs(at place) []string {
	return []string{
		"-D", at.data(), "-h", loopback, "-p", strconv.Itoa(at.port), "-k", at.dir,
		"-c", "max_connections=200",
	}
}

// postgresAnswers sends a startup message: a server that is ready asks for no password and says
// so, one that is not yet ready answers with an error.
func postgresAnswers(conn net.Conn) error {
	const version3 = 3 << 16
	text := "user\x00postgres\x00database\x00postgres\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, uint32(8+len(text)))
	message = binary.BigEndian.AppendUint32(message, version3)
	if _, err := conn.Write(append(message, text...)); err != nil {
		return err
	}
	var kind [1]byte
	if _, err := io.ReadFull(conn, kind[:]); err != nil {
		return err
	}
	if kind[0] != 'R' {
		return errors.New("it is not ready yet")
	}
	return nil
}

const mariaDBSetup = `CREATE DATABASE IF NOT EXISTS tidemark CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS tidemark@'%' IDENTIFIED BY 'tidemark';
GRANT ALL ON *.* TO tidemark@'%';
`

func prepareMariaDB(ctx context.Context, at place) error {
	setup := filepath.Join(at.dir, "setup.sql")
	if err := os.WriteFile(setup, []byte(mariaDBSetup), 0o644); err != nil {
		return err
	}
	if filepath.Base(at.binary) == "mysqld" {
		return at.command(ctx, at.binary, "--no-defaults", "--initialize-insecure",
			"--datadir="+at.data()).Run()
	}
	return at.command(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+at.data(),
		"--auth-root-authentication-method=normal", "--skip-test-db").Run()
}

func mariaDBArgs(at place) []string {
	return []string{
		"--no-defaults", "--datadir=" + at.data(), "--bind-address=" + loopback,
		"--port=" + strconv.Itoa(at.port), "--socket=" + filepath.Join(at.dir, "socket"),
		"--pid-file=" + filepath.Join(at.dir, "pid"), "--tmpdir=" + at.dir,
		"--init-file=" + filepath.Join(at.dir, "setup.sql"), "--skip-name-resolve",
		// Tests make and drop many databases; what is written survives its process, not its machine.
		"--innodb-flush-log-at-trx-commit=2", "--skip-innodb-doublewrite", "--skip-log-bin",
	}
}

// mysqlAnswers waits for the greeting of protocol 10.
func mysqlAnswers(conn net.Conn) error {
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if head[4] != 10 {
		return errors.New("no greeting")
	}
	return nil
}

func redisArgs(at place) []string {
	return []string{
		"--bind", loopback, "--port", strconv.Itoa(at.port), "--dir", at.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
}

func redisAnswers(conn net.Conn) error {
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	var pong [5]byte
	if _, err := io.ReadFull(conn, pong[:]); err != nil {
		return err
	}
	if string(pong[:]) != "+PONG" {
		return fmt.Errorf("it said %q", pong)
	}
	return nil
}
