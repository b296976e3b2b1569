package bench

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Machine is where a report comes from.
type Machine struct {
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Procs    int       `json:"gomaxprocs"`
	Memory   uint64    `json:"memoryBytes"`
	System   string    `json:"system"`
	Kernel   string    `json:"kernel,omitempty"`
	Go       string    `json:"go"`
	Commit   string    `json:"commit"`
	Modified bool      `json:"modified"`
	Load     string    `json:"load,omitempty"` // when the run began
	Date     time.Time `json:"date"`
}

// thisMachine reads what the system tells; what it does not tell stays empty.
func thisMachine(ctx context.Context, now time.Time) Machine {
	m := Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		Procs: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: line("/proc/sys/kernel/osrelease"), Load: line("/proc/loadavg"),
		Go: runtime.Version(), Date: now.UTC(),
	}
	if kb, _, ok := strings.Cut(field("/proc/meminfo", "MemTotal"), " "); ok {
		n, _ := strconv.ParseUint(kb, 10, 64) // zero where the system says something else
		m.Memory = n << 10
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.Commit = s.Value
			case "vcs.modified":
				m.Modified = s.Value == "true"
			}
		}
	}
	if m.Commit == "" {
		m.Commit, m.Modified = workingCommit(ctx)
	}
	return m
}

// workingCommit asks git for the commit of the directory that the program was started in, for a
// build that does not know its own.
func workingCommit(ctx context.Context) (commit string, modified bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	raw, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown", false
	}
	changes, err := exec.CommandContext(ctx, "git", "--no-optional-locks", "status",
		"--porcelain", "--untracked-files=no").Output()
	return strings.TrimSpace(string(raw)), err != nil || len(changes) > 0
}

// field finds the first "name: value" of a file.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	in := bufio.NewScanner(f)
	for in.Scan() {
		if key, value, ok := strings.Cut(in.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func line(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// ResidentBytes is how much of this process is in memory; zero where the system does not tell.
func ResidentBytes() uint64 {
	kb, _, ok := strings.Cut(field("/proc/self/status", "VmRSS"), " ")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(kb, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
