package bench

import (
	"fmt"
	"slices"
)

// Verdict is what became of a figure.
type Verdict string

const (
	Met         Verdict = "met"
	Missed      Verdict = "missed"
	Shown       Verdict = "shown" // measured, nothing is demanded of it
	NotMeasured Verdict = "not measured"
)

// Definition is a line of the catalogue.
type Definition struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Held says what the ratio is: what is divided by what.
	Held  string `json:"held,omitempty"`
	Bound Bound  `json:"bound"`
}

// Figure is a definition with what was measured for it.
type Figure struct {
	Definition
	Verdict Verdict `json:"verdict"`
	// Ratio has one value a round, which the bound is for; none where nothing is held.
	Ratio Series `json:"ratio"`
	// Control is the same ratio of one side to itself, measured twice in a round.
	Control Series   `json:"control"`
	Series  []Series `json:"series"`
	Notes   []string `json:"notes,omitempty"`
	Why     string   `json:"why,omitempty"` // not measured
}

// Add gives a series its value of this round.
func (f *Figure) Add(series string, unit Unit, value float64) {
	i := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == series })
	if i < 0 {
		i = len(f.Series)
		f.Series = append(f.Series, Series{Name: series, Unit: unit})
	}
	f.Series[i].Values = append(f.Series[i].Values, value)
}

// Hold gives the ratio its value of this round.
func (f *Figure) Hold(ratio float64) { f.Ratio.Values = append(f.Ratio.Values, ratio) }

// HoldControl gives the control its value of this round.
func (f *Figure) HoldControl(ratio float64) { f.Control.Values = append(f.Control.Values, ratio) }

// Note adds a sentence for the reader, once.
func (f *Figure) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// Skip says why the figure is not measured.
func (f *Figure) Skip(format string, args ...any) { f.Why = fmt.Sprintf(format, args...) }

// judge fills the verdict in. Every series must have a value for each round.
func (f *Figure) judge(rounds int) {
	f.Ratio.Unit, f.Control.Unit = Times, Times
	if f.Why == "" && len(f.Series) == 0 {
		f.Why = "nothing measures it"
	}
	for _, s := range f.Series {
		if f.Why == "" && len(s.Values) != rounds {
			f.Why = fmt.Sprintf("%s has %d values of %d rounds", s.Name, len(s.Values), rounds)
		}
	}
	if n := len(f.Ratio.Values); f.Why == "" && !f.Bound.None() && n != rounds {
		f.Why = fmt.Sprintf("%d ratios of %d rounds", n, rounds)
	}
	switch {
	case f.Why != "":
		f.Verdict = NotMeasured
	case f.Bound.None():
		f.Verdict = Shown
	case f.Bound.Holds(f.Ratio.Spread().Median):
		f.Verdict = Met
	default:
		f.Verdict = Missed
	}
}
