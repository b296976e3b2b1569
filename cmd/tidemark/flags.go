package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
)

// Flags that several commands have.

// factsFlag names the database.
type factsFlag struct {
	Facts     string `default:"sqlite:tidemark.db" placeholder:"sqlite:PATH|URL" help:"${about_facts}"`
	FactsFile string `placeholder:"FILE" help:"${about_facts_file}"`
}

const (
	sqlitePrefix = "sqlite:"
	usualFacts   = "sqlite:tidemark.db"
)

// Validate implements kong's check. It takes the name from the file, if there is one.
func (f *factsFlag) Validate() error {
	if f.FactsFile != "" {
		if f.Facts != usualFacts {
			return errors.New("--facts and --facts-file are both set")
		}
		text, err := secretText("facts-file", f.FactsFile)
		if err != nil {
			return err
		}
		f.Facts, f.FactsFile = text, ""
	}
	return checkFacts(f.Facts)
}

// secretText reads a file of one line that command lines and environments should not show.
func secretText(flag, name string) (string, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("--%s: %s has to have one line", flag, name)
	}
	return text, nil
}

func checkFacts(text string) error {
	if err := sqlstore.Check(text); err != nil {
		return fmt.Errorf("--facts is %w", err)
	}
	return nil
}

// path is where the file is. A command that has to do with files only asks inFile first.
func (f *factsFlag) path() string { return strings.TrimPrefix(f.Facts, sqlitePrefix) }

// inFile reports that the facts are in a file, not on a server.
func (f *factsFlag) inFile() bool {
	_, ok := sqlstore.File(f.Facts)
	return ok
}

// shown is the name of the database without its password.
func (f *factsFlag) shown() string {
	if f.inFile() {
		return f.path()
	}
	return sqlstore.Shown(f.Facts)
}

// logFlags choose what is logged.
type logFlags struct {
	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: ${enum}."`
	LogFormat string `default:"text" enum:"text,json" help:"How log lines look: ${enum}."`
}

func (f *logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // one of the enumeration
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// secretVariable holds the secret itself. There is no flag for it, since command lines are seen
// by everybody on a machine.
const secretVariable = "TIDEMARK_JWT_SECRET"

// secretFlag says where the secret that signs tokens is.
type secretFlag struct {
	JWTSecretFile string `name:"jwt-secret-file" placeholder:"FILE" help:"${about_jwt_secret_file}"`
}

// secrets reads the secrets from the file or the environment; none is no error.
func (f *secretFlag) secrets() ([][]byte, error) {
	text := os.Getenv(secretVariable)
	if f.JWTSecretFile != "" {
		if text != "" {
			return nil, wrongUsage("--jwt-secret-file and $%s are both set", secretVariable)
		}
		raw, err := os.ReadFile(f.JWTSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--jwt-secret-file: %w", err)
		}
		text = string(raw)
	}
	var out [][]byte
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, []byte(line))
		}
	}
	if f.JWTSecretFile != "" && len(out) == 0 {
		return nil, fmt.Errorf("--jwt-secret-file: %s is empty", f.JWTSecretFile)
	}
	return out, nil
}

// authFlags say which tokens are believed.
type authFlags struct {
	secretFlag
	JWKS string `name:"jwks" placeholder:"FILE|URL" help:"${about_jwks}"`
}

var errNoKeys = errors.New("no way to check tokens: set $" + secretVariable +
	" or --jwt-secret-file (32 bytes or more), or --jwks")

func (f *authFlags) authenticator(now func() time.Time, log *slog.Logger) (*httpapi.JWT, error) {
	secrets, err := f.secrets()
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 && f.JWKS == "" {
		return nil, &usageError{errNoKeys}
	}
	return httpapi.NewJWT(httpapi.JWTConfig{Secrets: secrets, JWKS: f.JWKS, Now: now, Log: log})
}

// checkAddress refuses what cannot be listened on.
func checkAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--%s is %q, want HOST:PORT", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--%s is %q: the port is not a number from 0 to 65535", flag, address)
	}
	return nil
}

// checkRange refuses a number that lies outside its documented range.
func checkRange[N int | float64 | time.Duration](flag string, value, low, high N) error {
	if value < low || value > high {
		return fmt.Errorf("--%s is %v, want %v to %v", flag, value, low, high)
	}
	return nil
}
