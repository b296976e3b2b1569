package main

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tidemark-im/tidemark/internal/settings"
)

// settingFlags are a flag for every setting of the table, with its variable and its key in the
// configuration file. What they hold is text; the table understands it.
type settingFlags struct {
	kong.Plugins

	texts  map[string]*string // by variable
	values settings.Values    // once they are valid
}

// newSettingFlags makes the flags out of the table. Those of a command that only looks at them
// are hidden from its help.
func newSettingFlags(hidden bool) settingFlags {
	var fields []reflect.StructField
	for i, p := range settings.Parts() {
		for j, s := range p.Settings {
			help := s.Does
			if least, most := s.Bounds(); !hidden {
				help = fmt.Sprintf("%s, %s to %s", strings.ReplaceAll(help, "`", ""), least, most)
			}
			tag := fmt.Sprintf("name:%q help:%s default:%q placeholder:%q group:%q", s.Flag(),
				strconv.Quote(strings.ToUpper(help[:1])+help[1:]+"."), s.Default(),
				strings.ToUpper(strings.ReplaceAll(s.Kind.String(), " ", "-")), p.Title)
			if hidden {
				tag += ` hidden:""`
			}
			fields = append(fields, reflect.StructField{
				Name: fmt.Sprintf("Setting%02d%02d", i, j), Type: reflect.TypeFor[string](),
				Tag: reflect.StructTag(tag),
			})
		}
	}
	all := reflect.New(reflect.StructOf(fields))
	f := settingFlags{Plugins: kong.Plugins{all.Interface()}, texts: map[string]*string{}}
	for i, s := range settings.All() {
		f.texts[s.Name] = all.Elem().Field(i).Addr().Interface().(*string)
	}
	return f
}

// load understands the texts, and refuses variables that nobody reads.
func (f *settingFlags) load() error {
	if err := settings.CheckNames(os.Environ()); err != nil {
		return err
	}
	var err error
	f.values, err = settings.Load(func(name string) (string, bool) { return *f.texts[name], true })
	return err
}

// changed returns the settings that are not their defaults.
func (f *settingFlags) changed() []settings.Setting {
	var out []settings.Setting
	for _, s := range settings.All() {
		if s.Text(&f.values) != s.Default() {
			out = append(out, s)
		}
	}
	return out
}

// tell logs which settings are not their defaults, and which of them do nothing here.
func (f *settingFlags) tell(log *slog.Logger) {
	for _, s := range f.changed() {
		if s.OfSnapshotMode() {
			log.Warn("this setting is of snapshot mode and does nothing here", "name", s.Name)
			continue
		}
		log.Info("setting", "name", s.Name, "value", s.Text(&f.values), "default", s.Default())
	}
}
