package chaos

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
)

// childEnv holds the settings of a server process; where it is set, the test binary is one.
const childEnv = "TIDEMARK_CHAOS_SERVER"

// settings are what a server process is started with.
type settings struct {
	Facts  string `json:"facts"`  // name of the database
	Secret string `json:"secret"` // of tokens, in hexadecimal
	// Kill, where its place is opening, is sprung while the process starts.
	Kill *blow `json:"kill,omitempty"`
}

// order is one line from the judging process; every order is answered by one line.
type order struct {
	Arm    *blow  `json:"arm,omitempty"`
	Replay string `json:"replay,omitempty"` // path of a trace
}

// reply answers an order, or says that the process listens.
type reply struct {
	Address string         `json:"address,omitempty"`
	Opened  int            `json:"opened,omitempty"` // statements that the start took
	Loaded  *replay.Loaded `json:"loaded,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// serveChild is the whole server process: the product's engine and API with a trap set between
// them and the store. It ends with its standard input, so that no server outlives its judge.
func serveChild(text string) error {
	var set settings
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return fmt.Errorf("%s: %w", childEnv, err)
	}
	secret, err := hex.DecodeString(set.Secret)
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	ctx := context.Background()
	trap := &trap{}
	if set.Kill != nil {
		trap.arm(*set.Kill)
	}
	store, err := sqlstore.Open(ctx, set.Facts, sqlstore.Options{
		OnStatement: func(_ context.Context, query string) { trap.statement(query) },
	})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	engine, err := tidemark.OpenStore(ctx, trappedStore{store, trap}, tidemark.Options{Log: log})
	if err != nil {
		return err
	}
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		return err
	}
	const plenty = 1e6 // the load is not what is limited here
	api, err := httpapi.New(httpapi.Config{Engine: engine, Auth: auth, Log: log,
		Limits: httpapi.Limits{
			MemberRate: plenty, MemberBurst: plenty, ServiceRate: plenty, ServiceBurst: plenty,
		}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		err := http.Serve(listener, trap.answers(api))
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}()
	return obey(ctx, trap, engine, listener.Addr().String())
}

// obey carries out orders until there are no more.
func obey(ctx context.Context, trap *trap, engine *tidemark.Engine, address string) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(reply{Address: address, Opened: int(trap.statements.Load())}); err != nil {
		return err
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		switch {
		case o.Arm != nil:
			trap.arm(*o.Arm)
		case o.Replay != "":
			loaded, err := load(ctx, engine, o.Replay)
			if err != nil {
				r.Error = err.Error()
			}
			r.Loaded = &loaded
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// load replays a trace into its workspace.
func load(ctx context.Context, engine *tidemark.Engine, path string) (replay.Loaded, error) {
	f, err := os.Open(path)
	if err != nil {
		return replay.Loaded{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	rows, err := trace.NewReader(f)
	if err != nil {
		return replay.Loaded{}, err
	}
	if _, err := engine.CreateWorkspace(ctx, traceWorkspace, "Trace"); err != nil {
		return replay.Loaded{}, err
	}
	return replay.Load(ctx, engine.Workspace(traceWorkspace), rows, nil)
}

// trappedStore tells the trap when a commit has come back.
type trappedStore struct {
	facts.Store
	trap *trap
}

// Begin implements facts.Store.
func (s trappedStore) Begin(ctx context.Context) (facts.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return trappedTx{tx, s.trap}, nil
}

type trappedTx struct {
	facts.Tx
	trap *trap
}

// Commit implements facts.Tx.
func (t trappedTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	if err == nil {
		t.trap.reach(committed)
	}
	return err
}
