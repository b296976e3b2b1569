package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v4"
)

const deployDir = "../../deploy"

func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// joined puts lines that end in a backslash together and leaves out comments.
func joined(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// The lines of the Dockerfile that build run as they stand, but that /out is elsewhere; what they make
// needs no library and serves with the environment and the command of the image.
func TestDockerfile(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	out := t.TempDir()
	env := []string{}
	stage, user := 0, ""
	var command []string
	for _, line := range joined(deployFile(t, "Dockerfile")) {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "FROM":
			stage++
		case word == "RUN" && stage == 1:
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(rest, "/out/", out+"/"))
			cmd.Dir = "../.."
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", rest, err, text)
			}
		case word == "RUN":
			t.Errorf("there is no shell in the last stage: %s", line)
		case word == "ENV":
			env = append(env, strings.Fields(rest)...)
		case word == "USER":
			user = rest
		case word == "ENTRYPOINT" || word == "CMD":
			var words []string
			if err := json.Unmarshal([]byte(rest), &words); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			command = append(command, words...)
		}
	}
	if id, _, _ := strings.Cut(user, ":"); id == "" || id == "0" || id == "root" {
		t.Errorf("it runs as %q", user)
	}
	if command[0] != "/usr/local/bin/tidemark" {
		t.Errorf("the command is %v", command)
	}
	binary := filepath.Join(out, "tidemark")
	if runtime.GOOS == "linux" {
		isStatic(t, binary)
	}
	p := startProcess(t, process{
		binary: binary, args: command[1:], dir: filepath.Join(out, "state"),
		env: append(env, "TIDEMARK_JWT_SECRET_FILE="+secretFile(t, testSecret)),
	})
	if status, text := ask(t, "GET", p.url+"/readyz", "", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if _, err := os.Stat(filepath.Join(out, "state", "tidemark.db")); err != nil {
		t.Errorf("the database is not in the volume: %v", err)
	}
	p.end(t)
}

func isStatic(t *testing.T, binary string) {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("needs %v, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("needs a dynamic linker")
		}
	}
}

// The unit's ExecStart runs as it stands, but for where its files are; what it may write to is what the
// unit leaves writable.
func TestSystemdUnit(t *testing.T) {
	unit := map[string][]string{}
	for _, line := range joined(deployFile(t, "systemd/tidemark.service")) {
		if key, value, ok := strings.Cut(line, "="); ok {
			unit[key] = append(unit[key], value)
		}
	}
	words := strings.Fields(unit["ExecStart"][0])
	credentials, state := t.TempDir(), t.TempDir()
	name, _, _ := strings.Cut(unit["LoadCredential"][0], ":")
	if err := os.WriteFile(filepath.Join(credentials, name), []byte(testSecret), 0o400); err != nil {
		t.Fatal(err)
	}
	if words[0] != "/usr/local/bin/tidemark" {
		t.Errorf("it runs %s", words[0])
	}
	for i, word := range words {
		word = strings.ReplaceAll(word, "%d", credentials)
		words[i] = strings.ReplaceAll(word, "/var/lib/"+unit["StateDirectory"][0], state)
	}
	p := startProcess(t, process{args: words[1:], dir: state})
	if status, text := ask(t, "GET", p.url+"/readyz", "", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	p.end(t)
	if code := unit["RestartPreventExitStatus"][0]; code != fmt.Sprint(exitUsage) {
		t.Errorf("usage is %s", code)
	}
	for _, key := range []string{
		"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices",
		"CapabilityBoundingSet", "MemoryDenyWriteExecute", "SystemCallFilter", "RestrictNamespaces",
	} {
		if len(unit[key]) == 0 {
			t.Errorf("the unit says nothing of %s", key)
		}
	}
}

// rendered renders a template of the chart with its values, some of them changed.
func rendered(t *testing.T, name string, change func(values map[string]any)) []map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(deployFile(t, "helm/tidemark/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	change(values)
	text := deployFile(t, "helm/tidemark/templates/"+name)
	tmpl, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"quote": func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"add":   func(a, b int) int { return a + b },
		"toJson": func(v any) (string, error) {
			raw, err := json.Marshal(v)
			return string(raw), err
		},
	}).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, map[string]any{
		"Values": values, "Release": map[string]any{"Name": "r", "Namespace": "n"},
	}); err != nil {
		t.Fatal(err)
	}
	var documents []map[string]any
	decoder := yaml.NewDecoder(&out)
	for {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out.String())
		}
		documents = append(documents, document)
	}
}

// at looks into nested maps and lists.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[step.(string)]
		case []any:
			v = x[step.(int)]
		default:
			t.Fatalf("%v: nothing at %v", path, step)
		}
	}
	return v
}

// What the chart sets is understood by the program, with and without what is optional, and its pods may
// do no more than they need.
func TestHelmChart(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, name := range []string{"nodes.yaml", "central.yaml"} {
			documents := rendered(t, name, func(values map[string]any) {
				values["substrate"] = all
				if all {
					values["tlsSecretName"] = "tls"
					for _, part := range []string{"nodes", "central"} {
						values[part].(map[string]any)["env"] = map[string]any{
							"TIDEMARK_UNREAD_RUNTIME_MAX_BYTES": "1GiB",
						}
					}
				}
			})
			workloads := 0
			for _, d := range documents {
				if kind := d["kind"]; kind == "StatefulSet" || kind == "Deployment" {
					workloads++
					t.Run(fmt.Sprintf("%s/%t", name, all), func(t *testing.T) { checkPod(t, d, all) })
				}
			}
			if workloads != 1 {
				t.Errorf("%s has %d workloads", name, workloads)
			}
		}
	}
}

var expansion = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

func checkPod(t *testing.T, workload map[string]any, all bool) {
	pod := at(t, workload, "spec", "template", "spec")
	container := at(t, pod, "containers", 0)
	env := map[string]string{}
	for _, item := range at(t, container, "env").([]any) {
		v := item.(map[string]any)
		value, ok := v["value"].(string)
		if !ok && v["valueFrom"] == nil {
			t.Errorf("%v is no text", v["name"])
		}
		if !ok {
			value = "r-node-0"
		}
		env[v["name"].(string)] = expansion.ReplaceAllStringFunc(value, func(s string) string {
			return env[s[2:len(s)-1]]
		})
	}
	mounts := fmt.Sprint(at(t, container, "volumeMounts"))
	understood(t, env, at(t, container, "args").([]any), func(path string) {
		if !strings.Contains(mounts, filepath.Dir(path)) {
			t.Errorf("nothing is mounted for %s", path)
		}
	})
	if all != (env["TIDEMARK_SUBSTRATE_FILE"] != "") {
		t.Error("the substrate is not as the values say")
	}
	for path, want := range map[string]any{
		"runAsNonRoot": at(t, pod, "securityContext", "runAsNonRoot"),
		"readOnly":     at(t, container, "securityContext", "readOnlyRootFilesystem"),
	} {
		if want != true {
			t.Errorf("%s is %v", path, want)
		}
	}
	if at(t, container, "securityContext", "allowPrivilegeEscalation") != false {
		t.Error("it may get more rights")
	}
	var drain int
	if _, err := fmt.Sscanf(env["TIDEMARK_DRAIN_TIMEOUT"], "%ds", &drain); err != nil ||
		at(t, pod, "terminationGracePeriodSeconds").(int) <= drain {
		t.Errorf("pods are killed while they drain for %d s", drain)
	}
	for probe, path := range map[string]string{"livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
		if got := at(t, container, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %v", probe, got)
		}
	}
}

// understood has the program read an environment, with files of its own in place of those that are
// mounted.
func understood(t *testing.T, env map[string]string, args []any, mounted func(path string)) {
	t.Helper()
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.(string)
	}
	files := filesOf(t, map[string]string{
		"facts": "postgres://u:p@h/d", "substrate": "redis://h:6379", "jwt": testSecret, "tls.crt": "", "tls.key": "",
	})
	known := knownVariables(t)
	for name, value := range env {
		if !strings.HasPrefix(name, "TIDEMARK_") {
			continue
		}
		if !slices.Contains(known, name) {
			t.Errorf("there is no variable %s", name)
		}
		if strings.HasPrefix(value, "/run/secrets/") {
			mounted(value)
			value = filepath.Join(files, filepath.Base(value))
		}
		t.Setenv(name, value)
	}
	m := &Main{Stdout: io.Discard, Stderr: io.Discard}
	cmd, done, err := m.parse(words)
	if err != nil || done {
		t.Fatalf("it is not understood: %v", err)
	}
	if serve, ok := cmd.(*serveCommand); !ok || !strings.HasPrefix(serve.Facts, "postgres://") {
		t.Errorf("it is %T, with the facts of somewhere else", cmd)
	}
}

// filesOf writes files into a directory.
func filesOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// knownVariables are those of serve.
func knownVariables(t *testing.T) []string {
	t.Helper()
	parser, err := (&Main{Stdout: io.Discard, Stderr: io.Discard}).parser(new(bool))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range parser.Model.Children {
		if n.Name == "serve" {
			for _, f := range n.Flags {
				names = append(names, f.Envs...)
			}
		}
	}
	return names
}
