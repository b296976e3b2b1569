package tidy

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// maxTextBytes is the size above which a file is taken for data: it is not read as text.
const maxTextBytes = 4 << 20

// Repo is a file tree as the rules see it.
type Repo struct {
	Module string  // the module path that go.mod states
	Files  []*File // every text file, in lexical order of its path
}

// File is one text file of a Repo.
type File struct {
	Path string // relative to the root, with slashes
	Text string
	Go   *ast.File // the syntax tree with comments; nil unless this is a Go file outside testdata

	fset *token.FileSet
}

// Finding is one place where a rule does not hold.
type Finding struct {
	Path string
	Line int // from 1; 0 when the finding is about the whole file or directory
	Text string
}

// String returns the finding as file, line and sentence, in the form that editors jump to.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.Text
	}
	return f.Path + ":" + strconv.Itoa(f.Line) + ": " + f.Text
}

// Rule is one thing that holds everywhere in the repository.
type Rule struct {
	Name  string
	Check func(*Repo) []Finding
}

// Rules returns every rule, in the order in which a newcomer should read them.
func Rules() []Rule {
	return []Rule{
		{"imports", checkImports},
		{"borrowed", checkBorrowed},
		{"sizes", checkSizes},
		{"names", checkNames},
		{"docs", checkDocs},
		{"sleep", checkSleep},
		{"leaks", checkLeaks},
		{"typescript", checkTypeScript},
		{"ids", checkIDs},
		{"hygiene", checkHygiene},
	}
}

// FindRoot walks up from dir to the directory whose go.mod states the module. It returns an error
// when there is none.
func FindRoot(dir, module string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find root: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && moduleOf(string(text)) == module {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find root: no go.mod of %s above %s", module, dir)
		}
	}
}

// Load reads the tree. Version control, dependencies of web packages and build output are left out;
// see skipDir.
func Load(fsys fs.FS) (*Repo, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("load tree: %w", err)
	}
	repo := &Repo{Module: moduleOf(string(mod))}
	if repo.Module == "" {
		return nil, errors.New("load tree: go.mod states no module")
	}
	fset := token.NewFileSet()
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		// A file that goes away during the walk is another process's temporary one.
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipDir(name) {
				return fs.SkipDir
			}
			return nil
		}
		file, err := loadFile(fsys, fset, name, d)
		if file != nil {
			repo.Files = append(repo.Files, file)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load tree: %w", err)
	}
	return repo, nil
}

// loadFile returns nil without an error for what is not text.
func loadFile(fsys fs.FS, fset *token.FileSet, name string, d fs.DirEntry) (*File, error) {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxTextBytes {
		return nil, nil
	}
	text, err := fs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, nil
	}
	file := &File{Path: name, Text: string(text), fset: fset}
	if path.Ext(name) != ".go" || file.inDir("testdata") {
		return file, nil
	}
	file.Go, err = parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// skipDir names the directories that hold nothing of ours. All but .git are ignored by version
// control as well.
func skipDir(name string) bool {
	switch path.Base(name) {
	case ".git", "node_modules", "bin", "out":
		return true
	}
	return false
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)

func moduleOf(goMod string) string {
	m := moduleLine.FindStringSubmatch(goMod)
	if m == nil {
		return ""
	}
	return m[1]
}

// Dir returns the directory of the file, "." at the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest tells whether the go command compiles the file for tests only.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// inDir tells whether some directory on the way to the file has the name.
func (f *File) inDir(name string) bool {
	return strings.Contains("/"+f.Dir()+"/", "/"+name+"/")
}

var generatedLine = regexp.MustCompile(`(?m)^(//|/\*) ?Code generated .* DO NOT EDIT\.`)

// Generated tells whether a program wrote the file, by the comment that Go tools agree on.
func (f *File) Generated() bool { return generatedLine.MatchString(f.Text) }

// Lines returns the number of lines.
func (f *File) Lines() int {
	n := strings.Count(f.Text, "\n")
	if f.Text != "" && !strings.HasSuffix(f.Text, "\n") {
		n++
	}
	return n
}

func (f *File) finding(pos token.Pos, format string, args ...any) Finding {
	line := 0
	if pos.IsValid() {
		line = f.fset.Position(pos).Line
	}
	return Finding{Path: f.Path, Line: line, Text: fmt.Sprintf(format, args...)}
}

// goFiles returns the Go files outside testdata.
func (r *Repo) goFiles() []*File {
	var files []*File
	for _, f := range r.Files {
		if f.Go != nil {
			files = append(files, f)
		}
	}
	return files
}

// packages returns the Go files by directory.
func (r *Repo) packages() map[string][]*File {
	dirs := make(map[string][]*File)
	for _, f := range r.goFiles() {
		dirs[f.Dir()] = append(dirs[f.Dir()], f)
	}
	return dirs
}

// file returns the file at the path, nil when there is none.
func (r *Repo) file(name string) *File {
	for _, f := range r.Files {
		if f.Path == name {
			return f
		}
	}
	return nil
}
