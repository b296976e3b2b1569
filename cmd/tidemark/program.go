package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main is the program. All fields are required.
type Main struct {
	Stdout io.Writer
	Stderr io.Writer
	Now    func() time.Time
	// Browse opens an address in the person's browser.
	Browse func(ctx context.Context, url string) error
}

// commands is the command line.
type commands struct {
	Config kong.ConfigFlag  `help:"JSON file with values for flags." placeholder:"FILE"`
	About  kong.VersionFlag `name:"version" env:"-" help:"Say what this is, like the command version."`

	Serve       serveCommand       `cmd:"" help:"Run the server."`
	Demo        demoCommand        `cmd:"" help:"Run a server with people, traffic and a page to look at."`
	Chat        chatCommand        `cmd:"" help:"Read and write in the terminal."`
	Relay       relayCommand       `cmd:"" help:"Run the agent of a Nostr relay for windows of this machine."`
	RelayDev    relayDevCommand    `cmd:"" name:"relay-dev" help:"Run a Nostr relay to develop against."`
	Replay      replayCommand      `cmd:"" help:"Load a chat trace and print the totals of all counts."`
	Trace       traceCommand       `cmd:"" help:"Write a generated chat trace."`
	Token       tokenCommand       `cmd:"" help:"Sign a token and print it."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database to the schema of this version."`
	Backup      backupCommand      `cmd:"" help:"Copy the database, which may be in use, to a new file."`
	Bench       benchCommand       `cmd:"" help:"Measure this program, alone and against others."`
	Conformance conformanceCommand `cmd:"" help:"Run the language-neutral cases against any server."`
	Doctor      doctorCommand      `cmd:"" help:"Look at configuration, clock, disk, limits and database."`
	Version     versionCommand     `cmd:"" help:"Say what this is."`
}

// command is what every command does once its flags are known.
type command interface {
	run(ctx context.Context, m *Main) error
}

// Run carries out a command line and returns the exit code. It ends soon after ctx does.
func (m *Main) Run(ctx context.Context, args []string) int {
	cmd, done, err := m.parse(args)
	if done {
		return exitDone
	}
	if err == nil {
		err = cmd.run(ctx, m)
	}
	if err == nil {
		return exitDone
	}
	_, _ = fmt.Fprintf(m.Stderr, "tidemark: %s\n", oneLine(err)) // nowhere else to say it
	if errors.As(err, new(*usageError)) {
		return exitUsage
	}
	return exitFailed
}

// parse finds the command with its flags. Done means that help or the version was asked for and
// given.
func (m *Main) parse(args []string) (cmd command, done bool, err error) {
	parser, err := m.parser(&done, args...)
	if err != nil {
		return nil, false, err // a mistake in the tags of the commands
	}
	parsed, err := parser.Parse(asFlag(args))
	if done {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, &usageError{plainly(err)}
	}
	cmd, ok := parsed.Selected().Target.Addr().Interface().(command)
	if !ok {
		return nil, false, fmt.Errorf("%s cannot be run", parsed.Command())
	}
	return cmd, false, nil
}

// parser makes the command line, as far as the arguments need it; without any it is whole. Done is
// set once help or the version was asked for and given.
func (m *Main) parser(done *bool, args ...string) (*kong.Kong, error) {
	var flags commands
	whole := len(args) == 0 || namesConfig(args)
	for name, settings := range map[string]*settingFlags{
		"serve": &flags.Serve.settingFlags, "demo": &flags.Demo.settingFlags,
		"doctor": &flags.Doctor.settingFlags,
	} {
		if whole || slices.Contains(args, name) { // a hundred flags take tens of milliseconds
			*settings = newSettingFlags(name != "serve")
		}
	}
	return kong.New(&flags,
		kong.Name("tidemark"),
		kong.Description("Exact unread counts for chat, team and inbox products."),
		kong.Writers(m.Stdout, m.Stderr),
		kong.Exit(func(int) { *done = true }),
		kong.DefaultEnvars("TIDEMARK"),
		helpTexts,
		kong.Vars{"version": buildText()},
		kong.ValueFormatter(helpLine),
		kong.Configuration(readConfig),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
}

// namesConfig reports that there is a file of flags, each of which some command must know.
func namesConfig(args []string) bool {
	return os.Getenv("TIDEMARK_CONFIG") != "" || slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--config")
	})
}

// asFlag turns no words at all, and the word help before a command, into the flag for help.
func asFlag(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	if args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

var takenForFlag = regexp.MustCompile(`^(--[a-z-]+): expected .* but got "(-[^"]*)" \(`)

// plainly says better what the parser says of a negative value.
func plainly(err error) error {
	if m := takenForFlag.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s: %q looks like another flag; a value is written %s=%s", m[1], m[2], m[1], m[2])
	}
	return err
}

// usageError is a command line or a configuration that is not understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + "; see tidemark --help" }
func (e *usageError) Unwrap() error { return e.err }

// wrongUsage is a usageError for what the parser cannot know.
func wrongUsage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// oneLine keeps what joined errors put on several lines together.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool {
		return r == '\n' || r == '\r'
	}), "; ")
}
